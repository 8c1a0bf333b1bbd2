//! Fuzzes pipelines: a request in a batch gets the same reply as by itself, on the fast path and off it.
//!
//! Two servers of one seed get the same requests. One of them runs them in batches, where most take the fast path and
//! are timed together. The other runs each by itself, while a client that tracks keys closes the fast path.

use dunlin::engine::{Flags, Flow, SessionId};
use dunlin::resp::Requests;

use crate::choices::Choices;
use crate::grammar::Grammar;
use crate::world::World;

/// The most requests in one batch.
const LONGEST: usize = 8;

struct Pair {
    batched: (World, SessionId),
    single: (World, SessionId),
    grammar: Grammar,
}

impl Pair {
    fn new(seed: u64) -> Pair {
        let [batched, mut single] = [seed; 2].map(|seed| {
            let mut world = World::seeded(seed, |settings| settings.max_bulk_bytes = 1 << 20);
            let client = world.join();
            (world, client)
        });
        assert_eq!(single.0.ask("CLIENT TRACKING on BCAST PREFIX no-key-begins-so"), "+OK\r\n");
        let grammar = Grammar::new(batched.0.engine.table.entries());
        Pair { batched, single, grammar }
    }

    /// A request about data that does not wait.
    fn request(&self, choices: &mut Choices<'_>) -> Vec<Vec<u8>> {
        loop {
            let words = self.grammar.request(choices);
            let table = &self.batched.0.engine.table;
            let flags = table.find(&words[0]).map_or(Flags::NONE, |id| table.entry(id).command.flags);
            let is_of_data = flags.has(Flags::READONLY) || flags.has(Flags::WRITE);
            if is_of_data && !flags.has(Flags::BLOCKING) && !flags.has(Flags::NOSCRIPT) {
                return words;
            }
        }
    }

    fn step(&mut self, choices: &mut Choices<'_>, context: &str) {
        let requests: Vec<Vec<Vec<u8>>> = (0..=choices.below(LONGEST)).map(|_| self.request(choices)).collect();
        let (world, client) = &mut self.batched;
        let replies = run_batch(world, *client, &requests);
        let (world, client) = &mut self.single;
        assert_eq!(replies.len(), requests.len(), "{context}: {requests:?}");
        for (request, reply) in requests.iter().zip(replies) {
            let words: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
            let alone = world.send(*client, &words);
            let shown: Vec<String> = words.iter().map(|word| word.escape_ascii().to_string()).collect();
            assert_eq!(
                (reply.0.escape_ascii().to_string(), reply.1),
                (alone.0.escape_ascii().to_string(), alone.1),
                "{context}: {shown:?}"
            );
        }
        let passed_ms = choices.below(3) as i64;
        for (world, _) in [&mut self.batched, &mut self.single] {
            world.pass_ms(passed_ms);
            world.expire();
            world.engine.effects.take();
        }
    }
}

/// Runs requests that came together, as a connection does.
fn run_batch(world: &mut World, client: SessionId, requests: &[Vec<Vec<u8>>]) -> Vec<(Vec<u8>, Flow)> {
    let (now, engine) = (world.now(), &mut world.engine);
    engine.begin_batch(now);
    let run_one = |words: &Vec<Vec<u8>>| {
        let request = Requests::of(words.iter().map(Vec::as_slice));
        let request = request.iter().next().expect("the batch has a request");
        let mut reply = Vec::new();
        let flow = engine.run(now, client, request, &mut reply);
        if !engine.is_timed_later() {
            engine.finish(now, request);
        }
        (reply, flow)
    };
    let replies = requests.iter().map(run_one).collect();
    engine.end_batch();
    replies
}

/// Runs `rounds` batches; the data are the same in the end.
pub fn run(seed: u64, rounds: u64) {
    let (mut pair, mut choices) = (Pair::new(seed), Choices::Seed(seed | 1));
    for round in 0..rounds {
        pair.step(&mut choices, &format!("seed {seed} round {round}"));
    }
    let [one, two] = [&mut pair.batched.0, &mut pair.single.0].map(|world| world.ask("DEBUG DIGEST"));
    assert!(one.starts_with('+'), "{one}");
    assert_eq!(one, two);
    let calls = |world: &World| -> Vec<(u64, u64)> {
        world.engine.stats.by_command().map(|stats| (stats.calls, stats.failed)).collect()
    };
    let differing = calls(&pair.batched.0).iter().zip(calls(&pair.single.0)).filter(|(one, two)| **one != *two).count();
    // CLIENT TRACKING was called in one of them.
    assert_eq!(differing, 1, "commands whose calls are counted otherwise in batches");
}
