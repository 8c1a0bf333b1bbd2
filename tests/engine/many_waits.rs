//! Blocked clients by the thousand, with large requests, and during a pause.

use dunlin::engine::{SessionId, Settings};

use crate::world::World;

/// A figure in the line of CLIENT LIST of a client with that flag.
fn figure(world: &mut World, flag: &str, name: &str) -> usize {
    let list = world.ask("CLIENT LIST");
    let line = list.lines().find(|line| line.contains(&format!("flags={flag}"))).expect("there is one");
    let field =
        line.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('=')).expect("it has that field");
    field.parse().expect("it is a number")
}

#[test]
fn the_request_that_a_client_is_blocked_in_counts_as_its_memory() {
    let mut world = World::fresh();
    let blocked = world.join();
    let key = "k".repeat(100_000);
    world.ask_as(blocked, &format!("BLPOP {key} other 0"));
    assert_eq!(figure(&mut world, "b", "argv-mem"), "BLPOP".len() + key.len() + "other".len() + 1);
    assert!(figure(&mut world, "b", "tot-mem") > key.len());
    let with_it = world.engine.sessions.memory_bytes();
    world.ask(&format!("RPUSH {key} x"));
    assert!(world.engine.sessions.memory_bytes() + key.len() < with_it);
}

#[test]
fn a_key_that_is_ready_is_tried_again_when_the_pause_ends_and_not_before() {
    let mut world = World::fresh();
    let blocked = world.join();
    world.ask_as(blocked, "BLPOP queue 0");
    for command in ["MULTI", "RPUSH queue job", "CLIENT PAUSE 60000 WRITE", "EXEC", "GET other"] {
        world.ask(command);
    }
    assert_eq!(world.take_pushes(blocked), "");
    assert!(world.engine.observers.waiting.next_ready().is_none(), "each command would try all its waiters");
    world.ask("CLIENT UNPAUSE");
    assert_eq!(world.take_pushes(blocked), "*2\r\n$5\r\nqueue\r\n$3\r\njob\r\n");
}

fn with_test_kit() -> World {
    World::with_kit(Settings::default())
}

/// Each of them runs when its wait is over, and may end the waits of others.
#[test]
fn thousands_of_tests_wait_for_the_same() {
    let mut world = with_test_kit();
    let waiting: Vec<SessionId> = (0..4000).map(|_| world.join()).collect();
    for session in &waiting {
        world.ask_as(*session, "DUNLIN WAIT SUBSCRIBERS news 1");
    }
    world.ask("SUBSCRIBE news");
    assert!(waiting.into_iter().all(|session| world.take_pushes(session) == "+OK\r\n"));
}

#[test]
fn a_late_reply_is_in_no_journal_that_began_after_its_request() {
    let mut world = with_test_kit();
    let blocked = world.join();
    world.ask("DUNLIN JOURNAL START");
    world.ask_as(blocked, "BLPOP queue 0");
    world.ask("DUNLIN JOURNAL START");
    world.ask("GET innocent");
    world.ask(&format!("CLIENT UNBLOCK {} ERROR", blocked.number));
    assert!(world.take_pushes(blocked).starts_with("-UNBLOCKED"));
    assert_eq!(world.ask("DUNLIN JOURNAL EXPECT NONE ERRORS"), "+OK\r\n");
}

#[test]
fn a_rollback_restores_the_order_of_keys_that_a_seed_has_changed() {
    let mut world = with_test_kit();
    world.ask("DUNLIN SEED 1");
    for number in 0..50 {
        world.ask(&format!("SET key:{number} 1"));
    }
    world.ask("DUNLIN SNAPSHOT before");
    let order = world.ask("SCAN 0 COUNT 100");
    world.ask("DUNLIN SEED 5");
    assert_ne!(world.ask("SCAN 0 COUNT 100"), order);
    assert_eq!(world.ask("DUNLIN ROLLBACK before"), "+OK\r\n");
    assert_eq!(world.ask("SCAN 0 COUNT 100"), order);
}
