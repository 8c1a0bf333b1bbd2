//! Measures a case at two sizes.

use super::remote::LinkedHost;
use crate::support::processor_time::processor_time;
use crate::world::{START, World};
use dunlin::commands::WITH_TEST_KIT;
use dunlin::engine::{Effect, Engine, Permission, SessionId, Settings, Table};
use dunlin::resp::{Request, Span};
use std::time::Duration;

/// Requests whose work is measured, after others that prepare it. A line is one request, with this notation:
///
/// | notation | meaning |
/// |---|---|
/// | `{a# b}` | what is in the braces n times, with 0, 1, 2 ... for `#` and `9999999`, `9999998` ... for `^` |
/// | `!` | n |
/// | `$` | a text of n bytes |
/// | `$comment` | a script of n bytes |
/// | `$library` | a library with a function `f` |
/// | `''` | a word without bytes |
/// | `_` | a blank within a word that is not the first |
/// | `;` | a new line within a word |
/// | `{_a#}`, `{;a#}` | as with other braces, but all within one word |
/// | `*` before the line | the line n times, each with the next number for `#` and `^` |
/// | `~` before the line, behind a `*` | a client of its own for each |
/// | `-` before the line, behind the others | it is refused |
#[derive(Clone, Copy)]
pub struct Case {
    pub before: &'static [&'static str],
    pub timed: &'static [&'static str],
}

impl Case {
    pub fn name(&self) -> String {
        format!("{} (after {})", self.timed.join("; "), self.before.join("; "))
    }
}

/// Times as long, and times as much work as may be.
const TIMES: usize = 8;
const MAX: f64 = 20.0;
/// The work of the smaller size is at least this, unless that size would be more than that.
const ENOUGH: Duration = Duration::from_millis(2);
const LARGEST: usize = 16_384;
/// A case that takes no longer than this at the larger size is not measured again.
const BRIEF: Duration = Duration::from_millis(20);
const ATTEMPTS: usize = 4;
/// Twice the larger size takes at most this many times its work: twice if the work is linear, four times if quadratic.
const MAX_DOUBLED: f64 = 3.0;

const LIBRARY: &[u8] = b"#!lua name=l\nredis.register_function('f', function() return 1 end)";

/// A request in the form that the engine takes.
struct Ready {
    is_alone: bool,
    is_refused: bool,
    buffer: Vec<u8>,
    spans: Vec<Span>,
}

/// The message for a case whose work grows faster than its size, if it does.
pub fn grows_too_fast(case: &Case) -> Option<String> {
    let refused = std::cell::RefCell::new(None);
    let work = |size| {
        work(case, size).unwrap_or_else(|refusal| {
            *refused.borrow_mut() = Some(format!("{}: {refusal}", case.name()));
            Duration::ZERO
        })
    };
    let slow = too_fast(&case.name(), work);
    refused.into_inner().or(slow)
}

/// Measures any work that can be done at a size.
pub fn too_fast(name: &str, work: impl Fn(usize) -> Duration) -> Option<String> {
    let mut size = 256;
    let mut small = work(size);
    while small < ENOUGH && size < LARGEST {
        size *= 4;
        small = work(size);
    }
    let mut large = work(size * TIMES);
    for _ in 0..ATTEMPTS {
        if is_linear(small, large) {
            return None;
        }
        small = small.max(work(size));
        large = large.min(work(size * TIMES));
    }
    if is_linear(small, large) {
        return None;
    }
    // Data that leave the caches between the two sizes take longer too; twice the larger size tells that apart.
    let doubled = least(|| work(size * TIMES * 2));
    if doubled.as_secs_f64() <= MAX_DOUBLED * large.as_secs_f64() {
        return None;
    }
    let sizes = (size * TIMES, size * TIMES * 2);
    Some(format!("{name}: {small:?} at {size}, {large:?} at {}, {doubled:?} at {}", sizes.0, sizes.1))
}

fn least(work: impl Fn() -> Duration) -> Duration {
    (0..ATTEMPTS).map(|_| work()).min().unwrap_or_default()
}

fn is_linear(small: Duration, large: Duration) -> bool {
    large < BRIEF || large.as_secs_f64() <= MAX * small.max(ENOUGH).as_secs_f64()
}

/// The processor time that the requests take, or which of them is refused. What they leave to be freed is freed later:
/// a server does that on another thread, and no client waits for it.
fn work(case: &Case, size: usize) -> Result<Duration, String> {
    let mut world = world();
    run(&mut world, &requests(case.before, size))?;
    let timed = requests(case.timed, size);
    let start = processor_time();
    let left = run(&mut world, &timed)?;
    let spent = processor_time() - start;
    drop(left);
    Ok(spent)
}

/// An engine with the test kit, and with another server for MIGRATE.
pub fn world() -> World {
    let settings = Settings { debug_command: Permission::Yes, max_clients: usize::MAX, ..Settings::default() };
    World::of_engine(Engine::new(Table::of(WITH_TEST_KIT), settings, 1, START, Box::new(LinkedHost::default())))
}

/// Runs the requests; returns their effects.
fn run(world: &mut World, requests: &[Ready]) -> Result<Vec<Effect>, String> {
    let (mut reply, mut effects) = (Vec::new(), Vec::new());
    for request in requests {
        reply.clear();
        let client = if request.is_alone { world.join() } else { world.client };
        answer(world, client, Request::new(&request.buffer, &request.spans), &mut reply);
        effects.append(&mut world.engine.effects.take());
        if reply.starts_with(b"-") != request.is_refused {
            let start = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(100)]).into_owned();
            return Err(format!("the reply to {} is {}", start(&request.buffer), start(&reply)));
        }
    }
    Ok(effects)
}

fn answer(world: &mut World, client: SessionId, request: Request<'_>, reply: &mut Vec<u8>) {
    world.engine.run(world.now(), client, request, reply);
    world.engine.finish(world.now(), request);
}

fn requests(lines: &[&str], size: usize) -> Vec<Ready> {
    let mut requests = Vec::new();
    for line in lines {
        let repeated = line.strip_prefix('*');
        let line = repeated.unwrap_or(line);
        let alone = line.strip_prefix('~');
        let line = alone.unwrap_or(line);
        let refused = line.strip_prefix('-');
        let line = refused.unwrap_or(line);
        for number in 0..if repeated.is_some() { size } else { 1 } {
            let (buffer, spans) = words(&expanded(line, number, size), size);
            requests.push(Ready { is_alone: alone.is_some(), is_refused: refused.is_some(), buffer, spans });
        }
    }
    requests
}

/// The words of a line, behind one another, and where each of them is.
fn words(line: &str, size: usize) -> (Vec<u8>, Vec<Span>) {
    let (mut buffer, mut spans) = (Vec::new(), Vec::new());
    for word in line.split_ascii_whitespace() {
        let start = buffer.len();
        match word {
            "$" => buffer.resize(start + size, b'x'),
            "$comment" => buffer.extend([b"--", "x".repeat(size).as_bytes()].concat()),
            "''" => {}
            "$library" => buffer.extend_from_slice(LIBRARY),
            _ if start == 0 => buffer.extend_from_slice(word.as_bytes()),
            _ => buffer.extend(word.bytes().map(|byte| match byte {
                b'_' => b' ',
                b';' => b'\n',
                _ => byte,
            })),
        }
        spans.push(Span { start, end: buffer.len() });
    }
    (buffer, spans)
}

/// The line with its repeated parts written out.
fn expanded(line: &str, number: usize, size: usize) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((plain, behind)) = rest.split_once('{') {
        let (part, behind) = behind.split_once('}').expect("braces are closed");
        text.push_str(&numbered(plain, number, size));
        for number in 0..size {
            text.push_str(&numbered(part, number, size));
            if !part.starts_with(['_', ';']) {
                text.push(' ');
            }
        }
        rest = behind;
    }
    text.push_str(&numbered(rest, number, size));
    text
}

fn numbered(text: &str, number: usize, size: usize) -> String {
    let text = text.replace('!', &size.to_string()).replace('#', &number.to_string());
    text.replace('^', &(9_999_999 - number).to_string())
}
