//! How many messages reach 1,000 subscribers in a second, over TCP.
//!
//! `cargo bench --bench publish` measures this server; `cargo bench --bench publish -- PORT ...` measures the servers
//! that listen there beside it, such as a Redis, in turns. One publisher keeps a number of PUBLISH requests in flight;
//! one thread drains all subscribers, so client and server share the machine alike for everyone. A row is one number of
//! requests in flight. Without `--bench`, as in tests, everything is small.

#![expect(clippy::print_stdout, reason = "a bench prints what it measures")]
#![expect(clippy::disallowed_methods, reason = "a bench asks the clock")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
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
    let ports: Vec<u16> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let peers = ports.iter().map(|port| (format!("port {port}"), SocketAddr::from(([127, 0, 0, 1], *port))));
    let targets: Vec<(String, SocketAddr)> = [("dunlin".to_owned(), server.addr())].into_iter().chain(peers).collect();
    for in_flight in [1, 16, 128] {
        for (name, address) in &targets {
            let mut rates: Vec<u64> =
                (0..ROUNDS).map(|_| deliveries_per_s(*address, subscribers, in_flight, length).unwrap_or(0)).collect();
            rates.sort_unstable();
            println!("{in_flight:4} in flight, {subscribers} subscribers, {name:12} {:>12}/s", rates[ROUNDS / 2]);
        }
    }
    ExitCode::SUCCESS
}

/// Publishes for a while; answers how many messages reached subscribers in a second.
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

/// Reads whatever comes to any subscriber.
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

/// An array of bulk strings under that header.
fn frame(header: &[u8], words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = [header, b"\r\n"].concat();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
