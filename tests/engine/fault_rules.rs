//! DUNLIN FAULT and strict mode are about requests that would run: what a gate refuses hits no rule.

use dunlin::engine::cluster::View;
use dunlin::engine::exec::cluster::join;
use dunlin::engine::{Flow, SessionId, Settings};

use crate::node::{PORTS, node};
use crate::world::World;

/// A server with a user `reader`, who may read some keys, and an application that has called `before`.
fn with_application(before: &[&str]) -> (World, SessionId) {
    let mut world = World::with_kit(Settings::default());
    world.ask("ACL SETUSER reader on nopass +@all -set ~app:*");
    let application = world.join();
    for line in before {
        world.ask_as(application, line);
    }
    (world, application)
}

/// The reply to a request, which comes behind what the client was sent before.
fn answer(world: &mut World, client: SessionId, request: &str) -> (String, Flow) {
    let (reply, flow) = world.ask_as(client, request);
    (world.take_pushes(client) + &reply, flow)
}

/// How many requests the only rule has matched.
fn matched(world: &World) -> u64 {
    world.engine.observers.kit.as_ref().map_or(0, |kit| kit.faults.rules()[0].trigger.matched)
}

/// Requests that a gate refuses: what the client called before, the request, and the error.
const REFUSED: &[(&[&str], &str, &str)] = &[
    (&["SUBSCRIBE news"], "GET app:1", "-ERR Can't execute 'get'"),
    (&["MONITOR"], "GET app:1", "-ERR Replica can't interact with the keyspace"),
    (&["MULTI"], "SAVE", "-ERR Command not allowed inside a transaction"),
    (&["AUTH reader any"], "SET app:1 v", "-NOPERM User reader has no permissions"),
    (&["AUTH reader any"], "GET other", "-NOPERM No permissions to access a key"),
    (&["SET app:1 v", "CONFIG SET maxmemory 1"], "SET app:1 v", "-OOM"),
    (&["SET app:1 v", "CONFIG SET maxmemory-policy volatile-lru", "CONFIG SET maxmemory 1"], "SET app:1 v", "-OOM"),
    (&[], "DEBUG JMAP", "-ERR DEBUG command not allowed"),
    (&[], "GET", "-ERR wrong number of arguments"),
    (&[], "NOSUCH", "-ERR unknown command"),
];

#[test]
fn a_request_that_is_refused_anyway_hits_no_rule_and_is_not_counted() {
    for (before, request, error) in REFUSED {
        for failure in ["ERROR boom", "DROP-AFTER", "NTH 1 SILENCE"] {
            let (mut world, application) = with_application(before);
            world.ask(&format!("DUNLIN FAULT ADD rule {failure}"));
            let (reply, flow) = answer(&mut world, application, request);
            assert!(reply.contains(error) && flow == Flow::Next, "{request} after {before:?}: {reply} {flow:?}");
            assert_eq!(matched(&world), 0, "{request} after {before:?}");
        }
    }
}

#[test]
fn a_request_that_passes_hits_the_rule() {
    let passing: &[(&[&str], &str)] = &[
        (&["HELLO 3", "SUBSCRIBE news"], "GET app:1"),
        (&["SUBSCRIBE news"], "PING"),
        (&["MONITOR"], "PING"),
        (&["AUTH reader any"], "GET app:1"),
        // What a command finds wrong itself comes later.
        (&["LPUSH app:1 v"], "GET app:1"),
        (&["MULTI"], "WATCH app:1"),
    ];
    for (before, request) in passing {
        let (mut world, application) = with_application(before);
        world.ask("DUNLIN FAULT ADD rule ERROR boom");
        let (reply, _) = answer(&mut world, application, request);
        assert!(reply.contains("-boom\r\n"), "{request} after {before:?}: {reply}");
        assert_eq!(matched(&world), 1, "{request} after {before:?}");
    }
}

/// Whether enough of them can be evicted is seen only when that is done, and a rule may keep the request from it.
#[test]
fn a_request_without_memory_hits_the_rule_while_there_are_keys_to_evict() {
    let mut world = World::with_kit(Settings::default());
    for line in [
        "SETRANGE large 3000000 x",
        "DUNLIN FAULT ADD rule COMMAND SET ERROR boom",
        "CONFIG SET maxmemory-policy allkeys-lru",
        "CONFIG SET maxmemory 2000000",
    ] {
        world.ask(line);
    }
    assert_eq!(world.ask("SET key value"), "-boom\r\n");
    assert_eq!(world.engine.databases.get(0).len(), 1, "the rule was asked, and nothing is evicted for that");
    world.ask("PING");
    assert_eq!(world.engine.databases.get(0).len(), 0);
}

#[test]
fn a_request_that_another_node_serves_hits_no_rule_here() {
    let mut world = World::with_kit(Settings::default());
    world.engine.settings.cluster_mut().is_enabled = true;
    join(&mut world.engine, View::of_cluster(PORTS.map(node).to_vec(), PORTS.len()).swap_remove(0));
    world.ask("DUNLIN FAULT ADD rule ERROR boom");
    assert_eq!(world.ask("GET foo"), "-MOVED 12182 127.0.0.1:7003\r\n");
    assert_eq!(matched(&world), 0);
    assert_eq!(world.ask("GET bar"), "-boom\r\n");
}

#[test]
fn a_request_that_a_pause_holds_back_hits_the_rule_when_it_ends() {
    let (mut world, application) = with_application(&["CLIENT PAUSE 100 WRITE"]);
    world.ask("DUNLIN FAULT ADD rule ERROR boom");
    assert!(matches!(world.ask_as(application, "SET app:1 v").1, Flow::HeldBack(_)));
    assert_eq!(matched(&world), 0);
    world.pass_ms(100);
    assert_eq!(world.ask_as(application, "SET app:1 v").0, "-boom\r\n");
    assert_eq!(matched(&world), 1);
}

#[test]
fn strict_mode_leaves_a_request_alone_that_is_refused_anyway() {
    for (before, error) in [
        ("SUBSCRIBE news", "-ERR Can't execute 'keys'"),
        ("MONITOR", "-ERR Replica can't interact with the keyspace"),
        ("AUTH reader any", "-STRICT keys-command"),
    ] {
        let (mut world, application) = with_application(&[before]);
        world.ask("MSET app:1 v app:2 v");
        world.ask("DUNLIN STRICT SET keys-command error LIMIT 1");
        let (reply, _) = answer(&mut world, application, "KEYS *");
        assert!(reply.contains(error), "after {before}: {reply}");
    }
}

#[test]
fn a_simulated_state_refuses_a_script_by_the_flags_that_it_declares() {
    for (state, refused) in [("READONLY", "-READONLY"), ("OOM", "-OOM"), ("MASTERDOWN", "-READONLY")] {
        let (mut world, application) = with_application(&[]);
        world.ask(&format!("DUNLIN FAULT ADD state {state}"));
        let mut run = |source: &[u8]| {
            let reply = world.send(application, &[b"EVAL", source, b"0"]).0;
            String::from_utf8_lossy(&reply).into_owned()
        };
        assert!(run(b"#!lua\nreturn 1").starts_with(refused), "{state}");
        assert_eq!(run(b"#!lua flags=no-writes,allow-stale\nreturn 1"), ":1\r\n", "{state}");
    }
}
