//! A server without free file descriptors: connected clients are served, and others are accepted when some leave.
//! CVE-2025-48367 is the same fault with connections that break off.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use crate::timeout::{TIMEOUT, wait_until};
use crate::wire::connect;

#[test]
fn a_server_without_free_descriptors_serves_its_clients_and_does_not_spin() {
    let mut program = Limited::start();
    let mut first = connect(program.address);
    let crowd: Vec<_> = (0..80).filter_map(|_| TcpStream::connect(program.address).ok()).collect();
    first.ask("PING\r\n", "+PONG\r\n");
    let before = program.ticks();
    // A second of the machine's time, in which there is nothing to do.
    for _ in 0..20 {
        first.ask("BLPOP nosuch 0.05\r\n", "*-1\r\n");
    }
    let spent = program.ticks() - before;
    assert!(spent < 30, "{spent} hundredths of a second");
    drop(crowd);
    wait_until("there is room again", || answers(program.address));
    first.ask("PING\r\n", "+PONG\r\n");
    program.end();
}

/// Each world counts its own clients for `maxclients`, and none of these worlds has more than two.
#[test]
fn clients_of_many_worlds_get_an_error_when_all_descriptors_are_used() {
    let mut program = Limited::start();
    let mut served = Vec::new();
    let refused = (0..48).find_map(|number| {
        let mut client = connect(program.address);
        client.send(format!("AUTH world.w{} any\r\n", number / 2));
        let reply = client.read_until(b"\r\n");
        (reply != "+OK\r\n").then_some(reply).or_else(|| {
            served.push(client);
            None
        })
    });
    assert_eq!(refused.as_deref(), Some("-ERR max number of clients reached\r\n"));
    assert!(served.len() > 16, "{} clients", served.len());
    drop(served);
    wait_until("there is room again", || answers(program.address));
    program.end();
}

/// Whether a client that connects now is served, and not refused because there are too many.
fn answers(address: SocketAddr) -> bool {
    let mut reply = [0; 7];
    let exchange = TcpStream::connect(address).and_then(|mut stream| {
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.write_all(b"PING\r\n")?;
        stream.read_exact(&mut reply)
    });
    exchange.is_ok() && reply == *b"+PONG\r\n"
}

/// A program that may open few files.
struct Limited {
    process: Child,
    address: SocketAddr,
}

impl Limited {
    fn start() -> Limited {
        let command = format!("ulimit -n 48; exec {} --port 0 --test-kit yes", env!("CARGO_BIN_EXE_dunlin"));
        let mut shell = Command::new("sh");
        let mut process = shell
            .args(["-c", &command])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(process.stdout.take().expect("its output is a pipe")).lines();
        let ready = lines.map_while(Result::ok).find(|line| line.contains(" ready on ")).expect("it gets ready");
        let address = ready.split(" ready on ").nth(1).and_then(|places| places.split(", ").next()?.parse().ok());
        Limited { process, address: address.expect("the line has the address") }
    }

    /// The processor time of the server, in hundredths of a second.
    fn ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.id())).expect("it runs");
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        [11, 12].iter().filter_map(|&place| fields.get(place)?.parse::<u64>().ok()).sum()
    }

    fn end(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ends");
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
