//! Client-side caching (CLIENT TRACKING): which invalidations a client gets, and when.

use dunlin::engine::SessionId;
use dunlin::engine::exec::tracking;

use crate::world::World;

fn pushes(world: &mut World, session: SessionId) -> String {
    tracking::broadcast(&mut world.engine);
    let mut frames = Vec::new();
    if let Some(client) = world.engine.sessions.get_mut(session) {
        client.push_queue.take(&mut frames, usize::MAX);
    }
    String::from_utf8_lossy(&frames).into_owned()
}

fn invalidation(key: &str) -> String {
    format!(">2\r\n$10\r\ninvalidate\r\n*1\r\n${}\r\n{key}\r\n", key.len())
}

/// A world whose client speaks RESP3 and tracks, with another one.
fn tracking(options: &str) -> (World, SessionId) {
    let mut world = World::fresh();
    world.ask("HELLO 3");
    assert_eq!(world.ask(&format!("CLIENT TRACKING on {options}")), "+OK\r\n");
    let other = world.join();
    (world, other)
}

#[test]
fn an_evicted_key_is_invalidated_before_the_reply_of_the_command() {
    let (mut world, _) = tracking("");
    world.ask("SET key value");
    world.ask("GET key");
    world.ask("CONFIG SET maxmemory-policy allkeys-random");
    world.ask("CONFIG SET maxmemory 1");
    let reply = world.ask("PING");
    assert_eq!(reply, format!("{}+PONG\r\n", invalidation("key")));
}

#[test]
fn a_clients_own_change_is_invalidated_after_the_reply() {
    let (mut world, _) = tracking("");
    world.ask("GET key");
    assert_eq!(world.ask("SET key value"), format!("+OK\r\n{}", invalidation("key")));
    world.ask("GET key");
    world.ask("MULTI");
    world.ask("SET key other");
    world.ask("GET key");
    assert_eq!(world.ask("EXEC"), format!("*2\r\n+OK\r\n$5\r\nother\r\n{}", invalidation("key")));
}

#[test]
fn a_synchronous_flush_replies_after_its_invalidation() {
    let (mut world, _) = tracking("");
    let null = ">2\r\n$10\r\ninvalidate\r\n_\r\n";
    assert_eq!(world.ask("FLUSHALL"), format!("{null}+OK\r\n"));
    assert_eq!(world.ask("FLUSHDB ASYNC"), format!("+OK\r\n{null}"));
}

#[test]
fn keys_beyond_the_table_limit_are_invalidated_at_random() {
    let (mut world, other) = tracking("");
    world.ask("CONFIG SET tracking-table-max-keys 50");
    (0..60).for_each(|number| _ = world.ask(&format!("GET key:{number}")));
    world.ask_as(other, "PING");
    assert_eq!(world.engine.observers.tracking.keys(), 50);
    let client = world.client;
    let frames = pushes(&mut world, client);
    // All but the last were sent before some reply.
    assert!(frames.matches("invalidate").count() <= 10);
    world.ask("CONFIG SET tracking-table-max-keys 0");
    (0..60).for_each(|number| _ = world.ask(&format!("GET key:{number}")));
    assert_eq!(world.engine.observers.tracking.keys(), 60);
}

#[test]
fn a_client_is_notified_when_its_redirection_target_disconnects() {
    let mut world = World::fresh();
    let redirected = world.join();
    world.ask("HELLO 3");
    world.ask(&format!("CLIENT TRACKING on REDIRECT {}", redirected.number));
    world.ask("GET key");
    world.engine.disconnect(redirected);
    let other = world.join();
    world.ask_as(other, "SET key value");
    let client = world.client;
    let broken = format!(">2\r\n$21\r\ntracking-redir-broken\r\n:{}\r\n", redirected.number);
    assert_eq!(pushes(&mut world, client), broken);
    assert!(world.ask("CLIENT TRACKINGINFO").contains("broken_redirect"));
    assert!(world.ask(&format!("CLIENT LIST ID {}", client.number)).contains(" flags=tR "));
}

#[test]
fn changes_under_a_prefix_are_invalidated_in_one_message() {
    let (mut world, other) = tracking("BCAST PREFIX user: PREFIX job:");
    for command in ["SET user:2 a", "SET user:1 a", "DEL user:2", "SET other a", "SET job:1 a"] {
        world.ask_as(other, command);
    }
    let client = world.client;
    let users = ">2\r\n$10\r\ninvalidate\r\n*2\r\n$6\r\nuser:1\r\n$6\r\nuser:2\r\n";
    assert_eq!(pushes(&mut world, client), format!("{}{users}", invalidation("job:1")));
    assert_eq!(pushes(&mut world, client), "");
}

#[test]
fn a_client_that_disconnects_or_stops_tracking_leaves_no_prefix() {
    let (mut world, other) = tracking("BCAST PREFIX a");
    world.ask_as(other, "CLIENT TRACKING on BCAST PREFIX b");
    assert_eq!((world.engine.observers.tracking.prefixes(), world.engine.observers.tracking.clients()), (2, 2));
    world.engine.disconnect(other);
    world.ask("RESET");
    assert_eq!((world.engine.observers.tracking.prefixes(), world.engine.observers.tracking.clients()), (0, 0));
    assert!(!world.engine.observers.tracking.is_on());
}

/// R#15371: Redis 8.0 sends the names of keys by prefix to clients without permission for them, and so does this
/// server; a key of the default mode was read before, which needs the permission.
#[test]
fn prefixes_cover_keys_without_permission_as_in_redis_8_0_but_single_keys_do_not() {
    let mut world = World::fresh();
    world.ask("ACL SETUSER ann on nopass +@all -@dangerous +client %R~mine:*");
    let (prefix, single) = (world.join(), world.join());
    for (client, options) in [(prefix, "BCAST"), (single, "")] {
        world.ask_as(client, "AUTH ann any");
        world.ask_as(client, "HELLO 3");
        assert_eq!(world.ask_as(client, &format!("CLIENT TRACKING ON {options}")).0, "+OK\r\n");
    }
    for (key, expected) in [("mine:1", invalidation("mine:1")), ("other:1", String::new())] {
        let reply = world.ask_as(single, &format!("GET {key}")).0;
        assert_eq!(reply.starts_with("-NOPERM"), key == "other:1", "{reply}");
        world.ask(&format!("SET {key} 1"));
        assert_eq!(world.take_pushes(single), expected);
    }
    let both = ">2\r\n$10\r\ninvalidate\r\n*2\r\n$6\r\nmine:1\r\n$7\r\nother:1\r\n";
    assert_eq!(pushes(&mut world, prefix), both);
}

#[test]
fn data_that_are_loaded_anew_are_flushed_first() {
    let (mut world, other) = tracking("");
    world.ask_as(other, "HELLO 3");
    world.ask_as(other, "CLIENT TRACKING on");
    let null = ">2\r\n$10\r\ninvalidate\r\n_\r\n";
    assert_eq!(world.ask("DEBUG RELOAD"), format!("+OK\r\n{null}"));
    assert_eq!(pushes(&mut world, other), null);
}
