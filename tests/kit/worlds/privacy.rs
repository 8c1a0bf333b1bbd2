//! Worlds are isolated: data, settings, users, clocks and everything else of one are private.

use std::time::Duration;

use dunlin::{Reply, Server};

use super::{ok, text, two};
use crate::{call, error};

#[test]
fn keys_and_databases_are_private() {
    let (server, worlds, [mut ann, mut ben]) = two();
    call(&mut ann, ["SET", "key", "ann's"]);
    call(&mut ben, ["SET", "key", "ben's"]);
    call(&mut server.client().expect("there is room"), ["SET", "key", "the first's"]);
    assert_eq!((call(&mut ann, ["GET", "key"]), call(&mut ben, ["GET", "key"])), (text("ann's"), text("ben's")));
    call(&mut ann, ["FLUSHALL"]);
    assert_eq!(call(&mut ben, ["DBSIZE"]), 1);
    assert_eq!((worlds[0].dump(), worlds[1].dump()), (String::new(), "SELECT 0\nSET key \"ben's\"\n".to_owned()));
    assert_eq!((worlds[0].name(), worlds[1].name(), server.name()), ("ann", "ben", "default"));
}

#[test]
fn messages_stay_in_their_own_world() {
    let (_server, worlds, [mut ann, mut ben]) = two();
    let mut listener = worlds[0].client().expect("there is room");
    call(&mut listener, ["SUBSCRIBE", "news"]);
    assert_eq!(call(&mut ben, ["PUBLISH", "news", "from ben"]), 0);
    assert_eq!(call(&mut ann, ["PUBLISH", "news", "from ann"]), 1);
    let message = listener.wait_for_message(Duration::from_secs(60)).expect("it is there").expect("one was published");
    assert_eq!(message.payload, b"from ann");
    assert_eq!(listener.next_message(), Ok(None));
    assert_eq!(call(&mut ben, ["PUBSUB", "CHANNELS"]), Reply::Array(Vec::new()));
}

#[test]
fn a_blocked_client_is_served_only_by_its_own_world() {
    let (_server, worlds, [mut ann, mut ben]) = two();
    let mut worker = worlds[0].client().expect("there is room");
    let waits = std::thread::spawn(move || worker.call(["BLPOP", "queue", "0"]));
    worlds[0].wait_until_blocked("queue", Duration::from_secs(60)).expect("it waits");
    call(&mut ben, ["RPUSH", "queue", "ben's"]);
    assert_eq!(call(&mut ben, ["LLEN", "queue"]), 1);
    call(&mut ann, ["RPUSH", "queue", "ann's"]);
    let popped = waits.join().expect("it ends").expect("it is served");
    assert_eq!(popped, Reply::Array(vec![text("queue"), text("ann's")]));
}

#[test]
fn scripts_and_functions_are_private() {
    let (_server, _worlds, [mut ann, mut ben]) = two();
    let digest = call(&mut ann, ["SCRIPT", "LOAD", "return 'mine'"]).text().expect("it is a text").into_owned();
    assert_eq!(call(&mut ann, ["EVALSHA", &digest, "0"]), "mine");
    assert!(error(&mut ben, ["EVALSHA", &digest, "0"]).starts_with("NOSCRIPT"));
    let library = "#!lua name=one\nredis.register_function('whose', function() return 'mine' end)";
    call(&mut ann, ["FUNCTION", "LOAD", library]);
    assert_eq!(call(&mut ann, ["FCALL", "whose", "0"]), "mine");
    assert_eq!(error(&mut ben, ["FCALL", "whose", "0"]), "ERR Function not found");
}

#[test]
fn settings_are_private() {
    let (server, _worlds, [mut ann, mut ben]) = two();
    call(&mut ann, ["CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxclients", "77"]);
    for client in [&mut ben, &mut server.client().expect("there is room")] {
        let policy = call(client, ["CONFIG", "GET", "maxmemory-policy"]);
        assert_eq!(policy, Reply::Map(vec![(text("maxmemory-policy"), text("noeviction"))]));
    }
}

#[test]
fn a_world_cannot_change_the_listeners_or_write_the_files_of_the_server() {
    let (_server, _worlds, [mut ann, _]) = two();
    assert!(error(&mut ann, ["CONFIG", "SET", "port", "0"]).contains("port"));
    assert_eq!(error(&mut ann, ["CONFIG", "REWRITE"]), "ERR The server is running without a config file");
    assert!(
        error(&mut ann, ["ACL", "SAVE"]).starts_with("ERR This Redis instance is not configured to use an ACL file")
    );
}

#[test]
fn users_are_private() {
    let (server, _worlds, [mut ann, mut ben]) = two();
    call(&mut ann, ["ACL", "SETUSER", "reader", "on", ">secret", "+get", "~*"]);
    assert_eq!(call(&mut ann, ["AUTH", "reader", "secret"]), ok());
    assert!(error(&mut ann, ["SET", "key", "value"]).starts_with("NOPERM"));
    for client in [&mut ben, &mut server.client().expect("there is room")] {
        assert!(error(client, ["AUTH", "reader", "secret"]).starts_with("WRONGPASS"));
        assert_eq!(call(client, ["ACL", "WHOAMI"]), "default");
    }
}

#[test]
fn clocks_are_private() {
    let (server, [ann, ben], [mut in_ann, mut in_ben]) = two();
    [&*server, &ann, &ben].iter().for_each(|world| world.freeze());
    for client in [&mut in_ann, &mut in_ben] {
        call(client, ["SET", "key", "value", "EX", "100"]);
    }
    let (first, before) = (server.now(), ben.now());
    assert!(call(&mut in_ann, ["DUNLIN", "ADVANCE", "100000"]).integer().is_some());
    assert_eq!(
        (call(&mut in_ann, ["EXISTS", "key"]), call(&mut in_ben, ["EXISTS", "key"])),
        (Reply::Integer(0), Reply::Integer(1))
    );
    assert_eq!((ben.now(), server.now()), (before, first));
    ben.advance(Duration::from_secs(100));
    assert_eq!(call(&mut in_ben, ["EXISTS", "key"]), 0);
}

#[test]
fn a_running_world_keeps_its_deadlines_by_itself() {
    let (_server, [ann, _], [mut in_ann, _]) = two();
    let mut listener = ann.client().expect("there is room");
    call(&mut in_ann, ["CONFIG", "SET", "notify-keyspace-events", "Ex"]);
    call(&mut listener, ["SUBSCRIBE", "__keyevent@0__:expired"]);
    call(&mut in_ann, ["SET", "key", "value", "PX", "5"]);
    let message = listener.wait_for_message(Duration::from_secs(60)).expect("it is there").expect("it expires");
    assert_eq!(message.payload, b"key");
}

#[test]
fn the_random_generator_is_private_to_each_world() {
    let server = Server::builder().seed(7).start().expect("the server starts");
    let drawn = |name: &str| {
        let mut client = server.world(name).expect("it can be made").client().expect("there is room");
        call(&mut client, ["SADD", "set", "a", "b", "c", "d", "e", "f", "g", "h"]);
        (0..20).map(|_| call(&mut client, ["SRANDMEMBER", "set"])).collect::<Vec<_>>()
    };
    assert_eq!(drawn("ann"), drawn("ben"));
    let (mut ann, mut ben) = (server.world("ann"), server.world("ben"));
    let [ann, ben] = [&mut ann, &mut ben].map(|world| world.as_ref().expect("it is there"));
    call(&mut ann.client().expect("there is room"), ["DUNLIN", "SEED", "1"]);
    call(&mut ben.client().expect("there is room"), ["DUNLIN", "SEED", "2"]);
    assert_ne!(drawn("ann"), drawn("ben"));
}

#[test]
fn snapshots_are_private() {
    let (_server, [ann, ben], [mut in_ann, mut in_ben]) = two();
    call(&mut in_ann, ["SET", "key", "1"]);
    call(&mut in_ben, ["SET", "key", "1"]);
    ann.snapshot("before");
    assert_eq!((ann.snapshots().len(), ben.snapshots().len()), (1, 0));
    call(&mut in_ann, ["INCR", "key"]);
    call(&mut in_ben, ["INCR", "key"]);
    ann.rollback("before").expect("it is there");
    assert_eq!((call(&mut in_ann, ["GET", "key"]), call(&mut in_ben, ["GET", "key"])), (text("1"), text("2")));
    assert_eq!(error(&mut in_ben, ["DUNLIN", "ROLLBACK", "before"]), "ERR no snapshot named 'before'");
}

#[test]
fn journals_and_faults_are_private() {
    let (_server, [ann, ben], [mut in_ann, mut in_ben]) = two();
    let (journal, other) = (ann.journal(), ben.journal());
    ann.fault("flaky").command("GET").error("ERR try again");
    assert_eq!(error(&mut in_ann, ["GET", "key"]), "ERR try again");
    assert_eq!(call(&mut in_ben, ["GET", "key"]), Reply::Null);
    journal.errors().assert_exactly(1);
    other.errors().assert_none();
    other.command("GET").assert_exactly(1);
}

#[test]
fn clients_see_and_kill_only_clients_of_their_world() {
    let (_server, [ann, _], [mut in_ann, mut in_ben]) = two();
    let listed =
        |client: &mut dunlin::Client| call(client, ["CLIENT", "LIST"]).text().expect("it is a text").lines().count();
    let _other = ann.client().expect("there is room");
    assert_eq!((listed(&mut in_ann), listed(&mut in_ben)), (2, 1));
    assert_eq!(call(&mut in_ann, ["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]), 1);
    assert_eq!(call(&mut in_ben, ["PING"]), Reply::Status("PONG".to_owned()));
    call(&mut in_ann, ["CLIENT", "PAUSE", "100000", "ALL"]);
    assert_eq!(call(&mut in_ben, ["SET", "key", "value"]), ok());
}

#[test]
fn a_world_shows_its_commands_to_those_in_it() {
    let (_server, [ann, _], [mut in_ann, mut in_ben]) = two();
    let mut wire = redis::Client::open(ann.url()).and_then(|client| client.get_connection()).expect("it connects");
    let _: () = redis::cmd("MONITOR").query(&mut wire).expect("it answers");
    call(&mut in_ben, ["SET", "secret", "of ben"]);
    call(&mut in_ann, ["SET", "key", "of ann"]);
    let line: String =
        wire.recv_response().and_then(|line| redis::from_redis_value(line).map_err(Into::into)).expect("it is shown");
    assert!(line.ends_with("\"SET\" \"key\" \"of ann\""), "{line}");
}
