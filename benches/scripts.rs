//! The cost of a script beside its commands: calling an empty one, and each `redis.call` in it.
//!
//! `cargo bench --bench scripts` times a command by itself, a script without commands, and scripts that call the
//! command once and eleven times: a tenth of the difference of the last two, less the command's own time, is the cost
//! of a call. Then it times a script of several commands, which maintains a list of recent activity.

use criterion::{Criterion, criterion_group, criterion_main};
use dunlin::commands::FAMILIES;
use dunlin::engine::state::host::NoHost;
use dunlin::engine::{Engine, Now, Origin, SessionId, Settings, Table};
use dunlin::resp::{Request, Span};
use std::hint::black_box;

const NOW: Now = Now { unix_us: 1_783_012_441_000_000 };

/// An engine with one client.
struct TestEngine {
    engine: Engine,
    client: SessionId,
    reply: Vec<u8>,
}

/// A request that is sent repeatedly.
struct PreparedRequest {
    text: Vec<u8>,
    spans: Vec<Span>,
}

impl PreparedRequest {
    fn new(words: &[&str]) -> PreparedRequest {
        let mut request = PreparedRequest { text: Vec::new(), spans: Vec::new() };
        for word in words {
            let start = request.text.len();
            request.text.extend_from_slice(word.as_bytes());
            request.spans.push(Span { start, end: request.text.len() });
        }
        request
    }
}

impl TestEngine {
    fn new() -> TestEngine {
        let mut engine = Engine::new(Table::of(FAMILIES), Settings::default(), 1, NOW, Box::<NoHost>::default());
        let client = engine.connect(NOW, Origin::default()).expect("there is room");
        TestEngine { engine, client, reply: Vec::new() }
    }

    fn run(&mut self, request: &PreparedRequest) -> &[u8] {
        self.reply.clear();
        self.engine.run(NOW, self.client, Request::new(&request.text, &request.spans), &mut self.reply);
        &self.reply
    }

    /// Loads a script, and returns its name (SHA1).
    fn load(&mut self, source: &str) -> String {
        let reply = String::from_utf8_lossy(self.run(&PreparedRequest::new(&["SCRIPT", "LOAD", source]))).into_owned();
        reply.lines().nth(1).expect("it answers the name").to_owned()
    }
}

fn calls(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("call");
    let mut engine = TestEngine::new();
    engine.run(&PreparedRequest::new(&["SET", "key", "value"]));
    let get = PreparedRequest::new(&["GET", "key"]);
    group.bench_function("GET by itself", |bencher| bencher.iter(|| black_box(engine.run(&get)).len()));
    for count in [0, 1, 11] {
        let name = engine.load(&"redis.call('GET', KEYS[1]) ".repeat(count));
        let request = PreparedRequest::new(&["EVALSHA", &name, "1", "key"]);
        group.bench_function(format!("a script with {count}"), |bencher| {
            bencher.iter(|| black_box(engine.run(&request)).len());
        });
    }
    group.finish();
}

fn recent_activity(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("patterns");
    let mut engine = TestEngine::new();
    let recent = engine.load(
        "redis.call('LPUSH', KEYS[1], ARGV[1]) redis.call('LTRIM', KEYS[1], 0, ARGV[2] - 1) \
         redis.call('EXPIRE', KEYS[1], 2592000) return redis.call('LLEN', KEYS[1])",
    );
    let request = PreparedRequest::new(&["EVALSHA", &recent, "1", "u:1", "product-1", "100"]);
    group.bench_function("recent activity", |bencher| bencher.iter(|| black_box(engine.run(&request)).len()));
    group.finish();
}

criterion_group!(benches, calls, recent_activity);
criterion_main!(benches);
