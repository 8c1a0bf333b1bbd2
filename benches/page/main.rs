//! What looking at a server costs its clients: their requests a second while somebody looks, beside those alone.
//!
//! `cargo bench --bench page` fills a server with a million keys in a thousand namespaces, and eight clients read and
//! write them. In turns they are alone, or the page's tree of all keys is counted, at the page's pace and without a
//! rest, or one reader takes the feed of all commands. A row is the median of the rounds, for clients that wait for
//! each reply and for pipelines of sixteen. A thread that only computes, in the same rhythm as the tree, shows what a
//! machine with few processors loses to any other work. Without `--bench`, as in tests, everything is small.

#![expect(clippy::print_stdout, reason = "a bench prints what it measures")]
#![expect(clippy::disallowed_methods, reason = "a bench asks the clock")]

#[path = "../support/mod.rs"]
mod support;

use std::error::Error;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dunlin::Server;
use support::load::{self, Shape};
use support::requests::Requests;

const CLIENTS: usize = 8;
const NAMESPACES: u64 = 1000;
/// How many times as long as a look took the page leaves the server alone after it.
const RESTS: u32 = 2;

/// What goes on beside the clients.
#[derive(Clone, Copy)]
enum Beside {
    Nothing,
    /// Looks at the tree, with the page's rests or without.
    Tree {
        rests: bool,
    },
    /// A thread that computes for as long as a look at the tree takes, with the rests of the page or without.
    Computing {
        rests: bool,
    },
    Feed,
}

const ROWS: [(&str, Beside); 5] = [
    ("the tree, at the page's pace", Beside::Tree { rests: true }),
    ("computing, at that pace", Beside::Computing { rests: true }),
    ("the tree, without a rest", Beside::Tree { rests: false }),
    ("computing, without a rest", Beside::Computing { rests: false }),
    ("the feed", Beside::Feed),
];

fn main() -> Result<(), Box<dyn Error>> {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let (keys, rounds, length) =
        if is_bench { (1_000_000, 9, Duration::from_secs(1)) } else { (2000, 1, Duration::from_millis(5)) };
    let server = Server::builder().page(0).start()?;
    let page = Page::of(&server).ok_or("the server has a page")?;
    let fill =
        "for number = 0, ARGV[1] - 1 do redis.call('SET', 'space:' .. number % ARGV[2] .. ':' .. number, number) end";
    server.client()?.call(["EVAL", fill, "0", &keys.to_string(), &NAMESPACES.to_string()])?;
    let look = page.look()?;
    println!("a look at the tree of {keys} keys takes {:.1} ms", look.as_secs_f64() * 1e3);
    for operations_in_flight in [1, 16] {
        let bench = Bench { server: &server, page: &page, look, keys, length, operations_in_flight };
        for (name, beside) in ROWS {
            let mut shares = Vec::new();
            for _ in 0..rounds {
                let alone = bench.rate(Beside::Nothing)?;
                shares.push(bench.rate(beside)? / alone);
            }
            shares.sort_by(f64::total_cmp);
            println!("{operations_in_flight:2} in flight, beside {name:30} {:.2}", shares[rounds / 2]);
        }
    }
    Ok(())
}

/// Where the page is, and the token for its commands.
struct Page {
    address: SocketAddr,
    token: String,
}

impl Page {
    fn of(server: &Server) -> Option<Page> {
        let url = server.page_url()?;
        let (address, token) = url.strip_prefix("http://")?.split_once("/#token=")?;
        Some(Page { address: address.parse().ok()?, token: token.to_owned() })
    }

    fn request(&self, line: &str, body: &str) -> io::Result<TcpStream> {
        let mut socket = TcpStream::connect(self.address)?;
        let head = format!("Host: {}\r\nX-Dunlin: {}\r\nContent-Type: application/json", self.address, self.token);
        write!(socket, "{line} HTTP/1.0\r\n{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
        Ok(socket)
    }

    /// Asks for the tree as the page does; returns how long that took.
    fn look(&self) -> io::Result<Duration> {
        let begin = Instant::now();
        let body = r#"{"commands":[["DUNLIN","TREE","","DELIMITER",":","LIMIT","1000"]]}"#;
        let mut answer = Vec::new();
        self.request("POST /command", body)?.read_to_end(&mut answer)?;
        let is_right = answer.windows(6).any(|part| part == b"space:");
        if is_right {
            Ok(begin.elapsed())
        } else {
            Err(io::Error::other(String::from_utf8_lossy(&answer).into_owned()))
        }
    }

    /// Reads the feed until it is told to stop.
    fn read_feed(&self, stops: &AtomicBool) -> io::Result<()> {
        let mut feed = self.request("GET /stream?world=default", "")?;
        feed.set_read_timeout(Some(Duration::from_millis(20)))?;
        let mut buffer = vec![0; 1 << 16];
        while !stops.load(Ordering::Relaxed) {
            match feed.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

struct Bench<'b> {
    server: &'b Server,
    page: &'b Page,
    /// How long a look at the tree takes when nothing else goes on.
    look: Duration,
    keys: u64,
    length: Duration,
    operations_in_flight: usize,
}

impl Bench<'_> {
    /// The requests a second that the clients get answered.
    fn rate(&self, beside: Beside) -> io::Result<f64> {
        let stops = AtomicBool::new(false);
        thread::scope(|scope| {
            let beside = scope.spawn(|| self.go_on(beside, &stops));
            let shape = Shape { connections: CLIENTS, operations_in_flight: self.operations_in_flight };
            let templates = ["GET space:{random:1000}:{key}", "SET space:{random:1000}:{key} 1 XX"];
            let mut requests = Requests::new(&templates, self.keys, &[], 1);
            let outcome = load::drive(self.server.addr(), shape, &mut requests, self.length);
            stops.store(true, Ordering::Relaxed);
            beside.thread().unpark();
            beside.join().map_err(|_| io::Error::other("what goes on beside has panicked"))??;
            outcome.map(|outcome| outcome.commands as f64 / outcome.elapsed.as_secs_f64())
        })
    }

    fn go_on(&self, beside: Beside, stops: &AtomicBool) -> io::Result<()> {
        while !stops.load(Ordering::Relaxed) {
            let (took, rests) = match beside {
                Beside::Nothing => return Ok(()),
                Beside::Feed => return self.page.read_feed(stops),
                Beside::Tree { rests } => (self.page.look()?, rests),
                Beside::Computing { rests } => (compute(self.look), rests),
            };
            if rests {
                thread::park_timeout(RESTS * took);
            }
        }
        Ok(())
    }
}

/// Computes for that long, and a little more where others need the processor; returns how long it took.
fn compute(length: Duration) -> Duration {
    let begin = Instant::now();
    let mut number = 0_u64;
    while begin.elapsed() < length {
        for _ in 0..1000 {
            number = black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    }
    begin.elapsed()
}
