//! DUNLIN WAIT JOURNAL: the journal keeps the count of commands that a client waits for.

use dunlin::engine::state::kit::Filter;
use dunlin::engine::{Flow, SessionId, Settings};

use crate::support::choices::Choices;
use crate::world::World;

/// Requests whose entries come, change and leave in every way.
const REQUESTS: &[&str] = &[
    "SET k1 v",
    "SET other v",
    "GET k1",
    "LPUSH k1 x",
    "NOSUCH k1",
    "MULTI",
    "EXEC",
    "DISCARD",
    "BLPOP queue 0",
    "DEL queue",
    "RPUSH queue x",
    "SET queue x",
    "EVAL redis.call('set','k2','v');redis.pcall('lpush','k2','v') 0",
    "CLIENT SETNAME ann",
    "CLIENT SETNAME bob",
    "CLIENT PAUSE 1000 WRITE",
    "CLIENT UNPAUSE",
    "AUTH world.cart any",
    "DUNLIN JOURNAL CLEAR",
    "DUNLIN JOURNAL STOP",
    "DUNLIN JOURNAL START 5",
    "DUNLIN JOURNAL START 20",
];

/// Filters as a client writes them, and as the journal has them.
fn filters() -> [(&'static str, Filter); 5] {
    let (set, keys, ann) = (Some(b"SET".to_vec()), Some(b"k*".to_vec()), Some(b"ann".to_vec()));
    [
        ("", Filter::default()),
        ("COMMAND SET", Filter { command: set, ..Filter::default() }),
        ("KEY k*", Filter { key: keys.clone(), ..Filter::default() }),
        ("ERRORS", Filter { errors: true, ..Filter::default() }),
        ("KEY k* CLIENT ann ERRORS", Filter { key: keys, client: ann, errors: true, ..Filter::default() }),
    ]
}

/// Clients that wait for more commands than there will be, one with each filter.
fn begin_waits(world: &mut World) -> Vec<SessionId> {
    let begin = |(words, _): (&str, Filter)| {
        let waiter = world.join();
        let (reply, flow) = world.ask_as(waiter, &format!("DUNLIN WAIT JOURNAL 1000000 {words}"));
        assert_eq!((reply.as_str(), flow), ("", Flow::Block), "{words}");
        waiter
    };
    filters().into_iter().map(begin).collect()
}

/// The counts that the journal keeps, and those that a look at each of its entries finds.
fn counts(world: &World) -> (Vec<Option<u64>>, Vec<Option<u64>>) {
    let Some(journal) = world.engine.observers.kit.as_ref().and_then(|kit| kit.journal.as_ref()) else {
        return Default::default();
    };
    let kept = filters().map(|(_, filter)| journal.kept_count(&filter));
    let found = filters().map(|(_, filter)| Some(journal.matching(&filter, &world.engine.table).count() as u64));
    (kept.to_vec(), found.to_vec())
}

#[test]
fn the_count_that_a_wait_keeps_is_that_of_a_look_at_all_commands() {
    for seed in 1..=40 {
        let mut choices = Choices::Seed(seed);
        let mut world = World::with_kit(Settings::default());
        world.ask("DUNLIN JOURNAL START 20");
        let clients = [world.client, world.join(), world.join()];
        (0..choices.below(30)).for_each(|_| _ = world.ask("SET k1 v"));
        begin_waits(&mut world);
        for step in 0..300 {
            let (client, request) = (clients[choices.below(3)], REQUESTS[choices.below(REQUESTS.len())]);
            if world.engine.is_blocked(client) {
                continue;
            }
            world.ask_as(client, request);
            world.engine.take_host_call(client);
            // A new journal counts when the waits look at it, which they do not during a pause.
            if request.starts_with("DUNLIN JOURNAL START") {
                world.ask_as(clients[0], "CLIENT UNPAUSE");
            }
            let (kept, found) = counts(&world);
            assert_eq!(kept, found, "seed {seed}, step {step}: {request}");
        }
    }
}

#[test]
fn a_count_ends_with_the_last_wait_for_it() {
    let mut world = World::with_kit(Settings::default());
    world.ask("DUNLIN JOURNAL START");
    let waits: Vec<SessionId> = [begin_waits(&mut world), begin_waits(&mut world)].concat();
    let (last, others) = waits.split_last().expect("there are some");
    others.iter().for_each(|waiter| world.engine.disconnect(*waiter));
    assert_eq!(counts(&world).0, [None, None, None, None, Some(0)]);
    world.engine.disconnect(*last);
    assert_eq!(counts(&world).0, [None; 5]);
}

#[test]
fn a_wait_whose_journal_or_rule_is_gone_leaves_nothing_behind_at_its_timeout() {
    for (start, wait, end, error) in [
        ("DUNLIN JOURNAL START", "JOURNAL 1", "DUNLIN JOURNAL STOP", "-ERR no journal"),
        ("DUNLIN FAULT ADD rule OOM", "FAULT rule 1", "DUNLIN FAULT CLEAR", "-ERR no fault rule 'rule'"),
    ] {
        let mut world = World::with_kit(Settings::default());
        world.ask(start);
        let waiter = world.join();
        world.ask_as(waiter, &format!("DUNLIN WAIT {wait} TIMEOUT 50"));
        world.ask(end);
        world.ask("DUNLIN JOURNAL CLEAR");
        world.pass_ms(50);
        world.expire();
        let reply = world.take_pushes(waiter);
        assert!(reply.starts_with(error), "{reply}");
        assert!(world.engine.observers.kit.is_none(), "nothing is left of it");
    }
}
