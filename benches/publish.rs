//! The rate of messages delivered to 1,000 subscribers over TCP.
//!
//! `cargo bench --bench publish` measures this server; `cargo bench --bench publish -- PROGRAM ...` measures beside it,
//! in turns, servers that are programs, such as a `redis-server`, each started here on a port of its own; a number is
//! the port of one that runs already. One publisher keeps a number of PUBLISH requests in flight; one thread reads for
//! all subscribers, so clients and server share the machine in the same way for every server. A row is one
//! number of requests in flight. Without `--bench`, as in tests, everything is small.

#![expect(clippy::print_stdout, reason = "a bench prints what it measures")]
#![expect(clippy::disallowed_methods, reason = "a bench asks the clock")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dunlin::Server;

const PAYLOAD_BYTES: usize = 64;
const ROUNDS: usize = 3;

fn main() -> ExitCode {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let (subscribers, length) = if is_bench { (1000, Duration::from_secs(2)) } else { (10, Duration::from_millis(20)) };
    let Ok(server) = Server::start() else { return ExitCode::FAILURE };
    let peers: std::io::Result<Vec<Target>> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).map(Target::from_argument).collect();
    let Ok(peers) = peers else { return ExitCode::FAILURE };
    let ours = Target { name: "this server".to_owned(), address: server.addr(), process: None };
    let targets: Vec<Target> = [ours].into_iter().chain(peers).collect();
    for in_flight in [1, 16, 128] {
        let mut rates = vec![Vec::new(); targets.len()];
        for _ in 0..ROUNDS {
            for (target, rates) in targets.iter().zip(&mut rates) {
                rates.push(deliveries_per_s(target.address, subscribers, in_flight, length).unwrap_or(0));
            }
        }
        for (target, mut rates) in targets.iter().zip(rates) {
            rates.sort_unstable();
            println!(
                "{in_flight:4} in flight, {subscribers} subscribers, {:>12}/s  {}",
                rates[ROUNDS / 2],
                target.name
            );
        }
    }
    ExitCode::SUCCESS
}

/// A server to measure.
struct Target {
    name: String,
    address: SocketAddr,
    process: Option<Child>,
}

impl Target {
    /// The server at a port number, or a started program.
    fn from_argument(name: String) -> std::io::Result<Target> {
        if let Ok(port) = name.parse() {
            return Ok(Target { name, address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), process: None });
        }
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let process = Command::new(&name)
            .args(["--port", &address.port().to_string(), "--save", ""])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut target = Target { name, address, process: Some(process) };
        while TcpStream::connect(address).is_err() {
            if let Some(status) =
                target.process.as_mut().and_then(|process| process.try_wait().transpose()).transpose()?
            {
                return Err(std::io::Error::other(format!("{} ended with {status}", target.name)));
            }
            thread::yield_now();
        }
        Ok(target)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // The program may have ended by itself.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Publishes for a while; returns the number of messages that reached subscribers in a second.
fn deliveries_per_s(
    address: SocketAddr,
    subscribers: usize,
    in_flight: usize,
    length: Duration,
) -> std::io::Result<u64> {
    let message_bytes = frame(b"*3", &[b"message", b"news", &[b'x'; PAYLOAD_BYTES]]).len() as u64;
    let listening: Vec<TcpStream> = (0..subscribers).map(|_| subscribe(address)).collect::<Result<_, _>>()?;
    let (received, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| drain(&listening, &received, &is_over));
        let mut publisher = TcpStream::connect(address)?;
        publisher.set_nodelay(true)?;
        let batch = frame(b"*3", &[b"PUBLISH", b"news", &[b'x'; PAYLOAD_BYTES]]).repeat(in_flight);
        let (start, mut published, mut replies) = (Instant::now(), 0, vec![0; 64 << 10]);
        while start.elapsed() < length {
            publisher.write_all(&batch)?;
            let mut answered = 0;
            while answered < in_flight {
                let count = publisher.read(&mut replies)?;
                answered += replies[..count].iter().filter(|&&byte| byte == b'\n').count();
            }
            published += in_flight as u64;
        }
        let all = published * subscribers as u64 * message_bytes;
        while received.load(Ordering::Relaxed) < all && start.elapsed() < length * 10 {
            thread::yield_now();
        }
        let rate = received.load(Ordering::Relaxed) as f64 / message_bytes as f64 / start.elapsed().as_secs_f64();
        is_over.store(true, Ordering::Relaxed);
        Ok(rate as u64)
    })
}

/// Reads everything that any subscriber receives.
fn drain(listening: &[TcpStream], received: &AtomicU64, is_over: &AtomicBool) {
    let mut buffer = vec![0; 64 << 10];
    while !is_over.load(Ordering::Relaxed) {
        for mut stream in listening {
            if let Ok(count) = stream.read(&mut buffer) {
                received.fetch_add(count as u64, Ordering::Relaxed);
            }
        }
    }
}

fn subscribe(address: SocketAddr) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(&frame(b"*2", &[b"SUBSCRIBE", b"news"]))?;
    let confirmation = frame(b"*3", &[b"subscribe", b"news"]).len() + ":1\r\n".len();
    stream.read_exact(&mut vec![0; confirmation])?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// An array of bulk strings, after the given header.
fn frame(header: &[u8], words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = [header, b"\r\n"].concat();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
