//! Entering and leaving worlds, templates, and the end of worlds.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use dunlin::{CallError, Reply, Server};
use redis::Commands;

use super::{clients_in, ok, text, two};
use crate::timeout::wait_until;
use crate::{call, error, served};

/// The bytes that the server sends for `requests` when the client closes its sending half after them.
fn answers(server: &Server, requests: &str) -> String {
    let mut wire = TcpStream::connect(server.addr()).expect("it listens");
    wire.write_all(requests.replace('\n', "\r\n").as_bytes()).expect("it reads");
    wire.shutdown(Shutdown::Write).expect("it is open");
    let mut got = String::new();
    wire.read_to_string(&mut got).expect("it is ASCII");
    got.replace("\r\n", "\n")
}

#[test]
fn a_login_enters_a_world_within_a_pipeline() {
    let (server, mut first) = served();
    let got = answers(&server, "SET key first\nAUTH world.ann any\nDBSIZE\nSET key second\nDUNLIN WORLD\nGET key\n");
    assert_eq!(got, "+OK\n+OK\n:0\n+OK\n$3\nann\n$6\nsecond\n");
    assert_eq!(call(&mut first, ["GET", "key"]), "first");
}

#[test]
fn hello_replies_from_the_world_that_it_enters() {
    let (server, _) = served();
    let _others: Vec<_> = (0..3).map(|_| server.client()).collect();
    let got = answers(&server, "HELLO 3 AUTH world.ann any SETNAME me\nCLIENT ID\nCLIENT GETNAME\nHGETALL key\n");
    assert!(got.starts_with("%7\n") && got.ends_with(":1\n$2\nme\n%0\n"), "{got}");
    assert!(got.contains("$2\nid\n:1\n"), "{got}");
}

#[test]
fn a_client_keeps_its_name_and_library_when_it_changes_worlds() {
    let (server, _) = served();
    let requests = "HELLO 3\nCLIENT SETNAME me\nCLIENT SETINFO LIB-NAME mine\nSELECT 5\n\
                DUNLIN WORLD ann\nCLIENT INFO\nHGETALL key\n";
    let got = answers(&server, requests);
    for part in [" name=me ", " db=5 ", " lib-name=mine ", " resp=3 "] {
        assert!(got.contains(part), "{part} in {got}");
    }
    assert!(got.ends_with("%0\n"), "{got}");
}

#[test]
fn a_client_can_move_from_world_to_world_and_back() {
    let (_server, mut client) = served();
    for (place, world) in ["ann", "ben", "default", "ann"].into_iter().enumerate() {
        assert_eq!(call(&mut client, ["DUNLIN", "WORLD", world]), ok());
        assert_eq!(call(&mut client, ["DUNLIN", "WORLD"]), world);
        assert_eq!(call(&mut client, ["INCR", "visits"]), if place == 3 { 2 } else { 1 });
    }
    assert_eq!(call(&mut client, ["DUNLIN", "WORLD", "ann"]), ok());
    assert_eq!((clients_in(&mut client, "ann"), clients_in(&mut client, "default")), (Some(1), Some(0)));
}

#[test]
fn a_client_loses_its_watches_and_subscriptions_when_it_changes_worlds() {
    let (_server, [ann, _], [mut client, mut other]) = two();
    call(&mut client, ["SUBSCRIBE", "news"]);
    call(&mut client, ["WATCH", "key"]);
    call(&mut client, ["DUNLIN", "WORLD", "ben"]);
    call(&mut other, ["SET", "key", "changed"]);
    assert_eq!(call(&mut other, ["PUBLISH", "news", "unheard"]), 0);
    call(&mut client, ["MULTI"]);
    call(&mut client, ["GET", "key"]);
    assert_eq!(call(&mut client, ["EXEC"]), Reply::Array(vec![text("changed")]));
    let mut left = ann.client().expect("there is room");
    assert_eq!(call(&mut left, ["PUBLISH", "news", "unheard"]), 0);
}

#[test]
fn messages_from_the_old_world_are_still_delivered() {
    let (_server, [ann, _], [mut client, _]) = two();
    call(&mut client, ["SUBSCRIBE", "news"]);
    call(&mut ann.client().expect("there is room"), ["PUBLISH", "news", "last"]);
    call(&mut client, ["DUNLIN", "WORLD", "ben"]);
    assert_eq!(client.next_message().expect("it is there").map(|message| message.payload), Some(b"last".to_vec()));
}

#[test]
fn a_transaction_does_not_leave_its_world() {
    let (server, mut client) = served();
    call(&mut client, ["MULTI"]);
    assert_eq!(error(&mut client, ["DUNLIN", "WORLD", "ann"]), "ERR Command not allowed inside a transaction");
    assert!(error(&mut client, ["EXEC"]).starts_with("EXECABORT"));
    let got = answers(&server, "MULTI\nAUTH world.ann any\nINCR key\nEXEC\nDUNLIN WORLD\n");
    let refused = "-ERR other worlds cannot be used inside MULTI or a script\n";
    assert_eq!(got, format!("+OK\n+QUEUED\n+QUEUED\n*2\n{refused}:1\n$7\ndefault\n"));
    assert_eq!(server.worlds(), ["default"]);
}

#[test]
fn a_subscriber_that_speaks_resp2_stays_where_it_is() {
    let (server, _) = served();
    let got = answers(&server, "SUBSCRIBE news\nDUNLIN WORLD ann\n");
    assert!(got.contains("-ERR Can't execute 'dunlin|world'"), "{got}");
    assert_eq!(server.worlds(), ["default"]);
}

#[test]
fn a_blocked_command_is_answered_before_the_client_changes_worlds() {
    let (server, mut first) = served();
    let mut wire = TcpStream::connect(server.addr()).expect("it listens");
    wire.write_all(b"BLPOP queue 0\r\nAUTH world.ann any\r\nLLEN queue\r\n").expect("it reads");
    server.wait_until_blocked("queue", Duration::from_secs(60)).expect("it waits");
    assert_eq!(server.worlds(), ["default"]);
    call(&mut first, ["RPUSH", "queue", "job", "left"]);
    wire.shutdown(Shutdown::Write).expect("it is open");
    let mut got = String::new();
    wire.read_to_string(&mut got).expect("it is ASCII");
    assert_eq!(got, "*2\r\n$5\r\nqueue\r\n$3\r\njob\r\n+OK\r\n:0\r\n");
}

#[test]
fn names_that_no_world_has_are_refused() {
    let (server, mut client) = served();
    let refused = "ERR the name of a world must be 1 to 64 letters, digits, '-', '_' or '.'";
    let long = "x".repeat(65);
    for name in ["", "a b", "a/b", &long] {
        assert_eq!(error(&mut client, ["DUNLIN", "WORLD", name]), refused);
        assert_eq!(error(&mut client, ["AUTH", &format!("world.{name}"), "any"]), refused);
        assert_eq!(server.world(name).map(|_| ()), Err(CallError::Refused(refused.to_owned())));
    }
    assert_eq!(error(&mut client, ["DUNLIN", "DROP-WORLD", "nobody"]), "ERR no world named 'nobody'");
    let lasting = "ERR the world 'default' cannot be dropped";
    assert_eq!(error(&mut client, ["DUNLIN", "DROP-WORLD", "default"]), lasting);
    assert_eq!(error(&mut client, ["DUNLIN", "WORLD", "default", "TEMPORARY"]), lasting);
    assert_eq!(error(&mut client, ["DUNLIN", "WORLD", "ann", "FOREVER"]), "ERR syntax error");
    assert_eq!(server.worlds(), ["default"]);
}

#[test]
fn without_the_test_kit_there_are_no_worlds() {
    let server = Server::builder().set("test-kit", "no").start().expect("the server starts");
    let got = answers(&server, "AUTH world.ann any\nHELLO 3 AUTH world.ann any\nDUNLIN WORLD ann\n");
    assert_eq!(got.matches("-WRONGPASS").count(), 2, "{got}");
    assert!(got.contains("-ERR unknown command 'DUNLIN'"), "{got}");
}

#[test]
fn a_wrong_password_opens_no_world() {
    let server = Server::builder().password("secret").start().expect("the server starts");
    let got = answers(&server, "AUTH world.ann any\nDUNLIN WORLD ann\nAUTH world.ann secret\nDUNLIN WORLD\n");
    assert!(got.starts_with("-WRONGPASS"), "{got}");
    assert!(got.ends_with("-NOAUTH Authentication required.\n+OK\n$3\nann\n"), "{got}");
    let ann = server.world("ann").expect("it is there");
    let mut connection =
        redis::Client::open(ann.url()).and_then(|client| client.get_connection()).expect("it connects");
    let world: String = redis::cmd("DUNLIN").arg("WORLD").query(&mut connection).expect("it answers");
    assert_eq!(world, "ann");
}

#[test]
fn a_user_with_the_name_of_a_world_login_logs_in_as_itself() {
    let (server, mut client) = served();
    call(&mut client, ["ACL", "SETUSER", "world.ann", "on", ">secret", "+@all", "~*"]);
    let got = answers(&server, "AUTH world.ann any\nAUTH world.ann secret\nACL WHOAMI\nDUNLIN WORLD\n");
    assert!(got.starts_with("-WRONGPASS") && got.ends_with("+OK\n$9\nworld.ann\n$7\ndefault\n"), "{got}");
}

#[test]
fn a_temporary_world_ends_with_its_last_client() {
    let (server, mut first) = served();
    let mut ann = server.client().expect("there is room");
    call(&mut ann, ["DUNLIN", "WORLD", "brief", "TEMPORARY"]);
    let mut ben = server.client().expect("there is room");
    call(&mut ben, ["AUTH", "temporary-world.brief", "any"]);
    call(&mut ann, ["SET", "key", "value"]);
    drop(ann);
    assert_eq!((call(&mut ben, ["GET", "key"]), clients_in(&mut first, "brief")), (text("value"), Some(1)));
    call(&mut ben, ["DUNLIN", "WORLD", "default"]);
    assert_eq!(server.worlds(), ["default"]);
    call(&mut ben, ["DUNLIN", "WORLD", "brief"]);
    assert_eq!(call(&mut ben, ["EXISTS", "key"]), 0);
    drop(ben);
    assert_eq!(server.worlds(), ["default", "brief"]);
    let brief = server.world("brief").expect("it is there");
    brief.make_temporary();
    drop(brief.client());
    assert_eq!(server.worlds(), ["default"]);
    assert_eq!(brief.client().map(|_| ()), Err(CallError::Closed));
}

#[test]
fn a_temporary_world_ends_when_connections_close() {
    let (server, _first) = served();
    let url = format!("redis://temporary-world.brief:any@{}/", server.addr());
    let client = redis::Client::open(url).expect("the address is right");
    let mut connections: Vec<_> = (0..3).map(|_| client.get_connection().expect("it connects")).collect();
    let _: () = connections[0].set("key", "value").expect("it answers");
    assert_eq!(connections[2].get::<_, String>("key").expect("it answers"), "value");
    assert_eq!(server.worlds(), ["default", "brief"]);
    drop(connections);
    wait_until("the world has ended", || server.worlds() == ["default"]);
}

#[test]
fn a_temporary_world_ends_when_the_script_of_its_last_client_does() {
    let (server, _first) = served();
    let mut wire = TcpStream::connect(server.addr()).expect("it listens");
    let runs = "EVAL 'local sum = 0 for number = 1, 3000000 do sum = sum + number end return sum' 0";
    let sent = format!("AUTH temporary-world.brief any\r\nCONFIG SET busy-reply-threshold 1\r\n{runs}\r\n");
    wire.write_all(sent.as_bytes()).expect("it reads");
    wire.read_exact(&mut [0; 10]).expect("it answers");
    drop(wire);
    wait_until("the world has ended", || server.worlds() == ["default"]);
}

#[test]
fn a_dropped_world_closes_its_connections_and_is_created_again_empty() {
    let (server, [ann, _], [mut direct, mut ben]) = two();
    let mut wire = redis::Client::open(ann.url()).and_then(|client| client.get_connection()).expect("it connects");
    let _: () = wire.set("key", "value").expect("it answers");
    call(&mut ben, ["SET", "key", "stays"]);
    server.drop_world("ann").expect("it is there");
    assert_eq!(direct.call(["PING"]), Err(CallError::Closed));
    wait_until("the connection is closed", || wire.get::<_, String>("key").is_err());
    assert_eq!(ann.client().map(|_| ()), Err(CallError::Closed));
    let mut again = server.world("ann").expect("it can be made").client().expect("there is room");
    assert_eq!((call(&mut again, ["DBSIZE"]), call(&mut ben, ["GET", "key"])), (Reply::Integer(0), text("stays")));
}

#[test]
fn a_client_blocked_in_a_dropped_world_is_closed() {
    let (_server, [ann, _], [mut worker, mut ben]) = two();
    let waits = thread::spawn(move || worker.call(["BLPOP", "queue", "0"]));
    ann.wait_until_blocked("queue", Duration::from_secs(60)).expect("it waits");
    assert_eq!(call(&mut ben, ["DUNLIN", "DROP-WORLD", "ann"]), ok());
    assert_eq!(waits.join().expect("it ends"), Err(CallError::Closed));
}

#[test]
fn shutdown_in_a_world_ends_only_that_world() {
    let (server, _, [mut ann, mut ben]) = two();
    assert_eq!(ann.call(["SHUTDOWN", "NOSAVE"]), Err(CallError::Closed));
    assert_eq!(call(&mut ben, ["PING"]), Reply::Status("PONG".to_owned()));
    assert_eq!(server.worlds(), ["default", "ben"]);
    assert_eq!(answers(&server, "AUTH world.ben any\nSHUTDOWN\nPING\n"), "+OK\n");
    assert_eq!(server.worlds(), ["default"]);
    assert_eq!(answers(&server, "PING\n"), "+PONG\n");
}

#[test]
fn a_world_starts_as_its_template_and_does_not_change_it() {
    let (server, mut client) = served();
    server.freeze();
    let mut fixture = String::new();
    for words in [
        "SET text value EX 100",
        "RPUSH list a b c",
        "HSET hash field value",
        "ZADD zset 1 a",
        "SELECT 3",
        "SADD set a",
        "CONFIG SET maxmemory-policy allkeys-lru",
        "ACL SETUSER reader on >secret +get ~*",
        "DUNLIN SEED 5",
        "DUNLIN TEMPLATE",
        "FLUSHALL",
    ] {
        if words == "FLUSHALL" {
            fixture = server.dump();
        }
        call(&mut client, words.split(' '));
    }
    server.advance(Duration::from_secs(1000));
    for name in ["ann", "ben"] {
        let world = server.world(name).expect("it can be made");
        assert_eq!(world.dump(), fixture);
        let mut client = world.client().expect("there is room");
        assert_eq!(call(&mut client, ["TTL", "text"]), 100);
        let policy = call(&mut client, ["CONFIG", "GET", "maxmemory-policy"]);
        assert_eq!(policy, Reply::Map(vec![(text("maxmemory-policy"), text("allkeys-lru"))]));
        call(&mut client, ["RPUSH", "list", "d"]);
        call(&mut client, ["DEL", "hash", "zset"]);
        assert_eq!(call(&mut client, ["LLEN", "list"]), 4);
        world.advance(Duration::from_secs(100));
        assert_eq!(call(&mut client, ["EXISTS", "text"]), 0);
        assert_eq!(call(&mut client, ["AUTH", "reader", "secret"]), ok());
    }
    assert_eq!(call(&mut client, ["DUNLIN", "DROP-TEMPLATE"]), ok());
    assert_eq!(server.world("empty").expect("it can be made").dump(), "");
}

#[test]
fn a_world_gets_the_scripts_and_functions_of_its_template() {
    let (server, mut client) = served();
    let digest = call(&mut client, ["SCRIPT", "LOAD", "return 'known'"]).text().expect("it is a text").into_owned();
    let library = "#!lua name=one\nredis.register_function('whose', function() return 'mine' end)";
    call(&mut client, ["FUNCTION", "LOAD", library]);
    server.make_template();
    let mut ann = server.world("ann").expect("it can be made").client().expect("there is room");
    assert_eq!(
        (call(&mut ann, ["EVALSHA", &digest, "0"]), call(&mut ann, ["FCALL", "whose", "0"])),
        (text("known"), text("mine"))
    );
}

#[test]
fn each_world_has_the_libraries_of_the_template_for_itself() {
    let (server, mut client) = served();
    let library = "#!lua name=counters\nlocal count = 0\n\
        redis.register_function('count', function() count = count + 1; return count end)";
    call(&mut client, ["FUNCTION", "LOAD", library]);
    assert_eq!(call(&mut client, ["FCALL", "count", "0"]), 1);
    server.make_template();
    let enter = |name: &str| server.world(name).expect("it can be made").client().expect("there is room");
    let listed = call(&mut client, ["FUNCTION", "LIST", "WITHCODE"]);
    let dumped = call(&mut client, ["FUNCTION", "DUMP"]);

    let mut ann = enter("ann");
    assert_eq!(call(&mut ann, ["FUNCTION", "LIST", "WITHCODE"]), listed);
    assert_eq!(call(&mut ann, ["FUNCTION", "DUMP"]), dumped);
    assert_eq!(
        (1..=3).map(|_| call(&mut ann, ["FCALL", "count", "0"])).collect::<Vec<_>>(),
        [1, 2, 3].map(Reply::Integer)
    );
    assert_eq!(call(&mut ann, ["FUNCTION", "LIST", "WITHCODE"]), listed);

    let mut ben = enter("ben");
    let other = library.replace("name=counters", "name=others");
    assert_eq!(error(&mut ben, ["FUNCTION", "LOAD", &other]), "ERR Function count already exists");
    assert_eq!(call(&mut ben, ["FCALL", "COUNT", "0"]), 1);

    let mut cid = enter("cid");
    assert_eq!(call(&mut cid, ["FUNCTION", "DELETE", "counters"]), ok());
    assert_eq!(error(&mut cid, ["FCALL", "count", "0"]), "ERR Function not found");
    assert_eq!(call(&mut ann, ["FCALL", "count", "0"]), 4);
    assert_eq!(call(&mut client, ["FCALL", "count", "0"]), 2);
}

#[test]
fn a_template_has_the_rules_of_strict_mode_but_not_their_findings() {
    let (server, mut client) = served();
    call(&mut client, ["DUNLIN", "STRICT", "SET", "endless-waits", "error"]);
    let refused = error(&mut client, ["BLPOP", "jobs", "0"]);
    server.make_template();
    let mut ann = server.world("ann").expect("it can be made").client().expect("there is room");
    assert_eq!(call(&mut ann, ["DUNLIN", "STRICT", "CHECK"]), ok());
    assert_eq!(error(&mut ann, ["BLPOP", "jobs", "0"]), refused);
    assert!(refused.starts_with("STRICT endless-waits"), "{refused}");
}

#[test]
fn a_reconnecting_client_enters_its_world_again() {
    let (server, _first) = served();
    let ann = server.world("ann").expect("it can be made");
    let client = redis::Client::open(ann.url()).expect("the address is right");
    let mut pooled = client.get_connection().expect("it connects");
    let _: () = pooled.set("key", "value").expect("it answers");
    call(&mut ann.client().expect("there is room"), ["CLIENT", "KILL", "TYPE", "normal"]);
    wait_until("the connection is closed", || pooled.get::<_, String>("key").is_err());
    let mut again = client.get_connection().expect("it connects");
    assert_eq!(again.get::<_, String>("key").expect("it answers"), "value");
}

#[test]
fn a_thousand_worlds_serve_at_once() {
    const WORLDS: usize = 1000;
    let (server, mut first) = served();
    let mut clients: Vec<_> = (0..WORLDS)
        .map(|number| server.world(&format!("w{number}")).expect("it can be made").client().expect("there is room"))
        .collect();
    for (number, client) in clients.iter_mut().enumerate() {
        call(client, ["INCRBY", "number", &number.to_string()]);
    }
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(call(client, ["GET", "number"]), number.to_string().as_str());
    }
    assert_eq!(call(&mut first, ["DBSIZE"]), 0);
    assert_eq!(server.worlds().len(), WORLDS + 1);
}

#[test]
fn many_clients_use_many_worlds_in_parallel() {
    const THREADS: usize = 8;
    const ROUNDS: i64 = 200;
    let (server, _first) = served();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let world = format!("w{}", thread / 2);
            let server = &server;
            scope.spawn(move || {
                let world = server.world(&world).expect("it can be made");
                let client = redis::Client::open(world.url()).expect("the address is right");
                let mut wire = client.get_connection().expect("it connects");
                for _ in 0..ROUNDS {
                    let _: i64 = wire.incr("count", 1).expect("it answers");
                }
            });
        }
    });
    for number in 0..THREADS / 2 {
        let mut client = server.world(&format!("w{number}")).expect("it is there").client().expect("there is room");
        assert_eq!(call(&mut client, ["GET", "count"]), (2 * ROUNDS).to_string().as_str());
    }
}

#[test]
fn clients_connect_and_leave_while_a_temporary_world_ends_and_begins() {
    let (server, _first) = served();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let mut client = server.client().expect("there is room");
                    assert_eq!(call(&mut client, ["DUNLIN", "WORLD", "brief", "TEMPORARY"]), ok());
                    call(&mut client, ["INCR", "count"]);
                }
            });
        }
    });
    assert_eq!(server.worlds(), ["default"]);
}

#[test]
fn worlds_are_private_on_several_event_loops() {
    let server = Server::builder().set("io-threads", "3").start().expect("the server starts");
    let ann = server.world("ann").expect("it can be made");
    let client = redis::Client::open(ann.url()).expect("the address is right");
    let mut wires: Vec<_> = (0..6).map(|_| client.get_connection().expect("it connects")).collect();
    for wire in &mut wires {
        let _: i64 = wire.incr("count", 1).expect("it answers");
    }
    assert_eq!(call(&mut ann.client().expect("there is room"), ["GET", "count"]), "6");
    assert_eq!(call(&mut server.client().expect("there is room"), ["DBSIZE"]), 0);
}

/// The packages for tests keep one connection in a world, which ends with it.
#[test]
fn what_an_application_tries_does_not_close_or_pause_the_connection_that_keeps_its_world() {
    let server = Server::builder().frozen().start().expect("it starts");
    let keeper = TcpStream::connect(server.addr()).expect("it listens");
    let (mut keeper, mut replies) = (&keeper, BufReader::new(&keeper));
    let mut ask = |line: &str| {
        writeln!(keeper, "{line}\r").expect("it is open");
        let mut reply = String::new();
        replies.read_line(&mut reply).expect("it is answered");
        reply
    };
    assert_eq!(ask("DUNLIN WORLD ann TEMPORARY"), "+OK\r\n");
    let requests = "DUNLIN WORLD ann\nCONFIG SET timeout 10\nCLIENT KILL TYPE normal\nCLIENT PAUSE 60000\n";
    assert_eq!(answers(&server, requests), "+OK\n+OK\n:0\n+OK\n");
    assert!(ask("DUNLIN ADVANCE 59000").starts_with(':'));
    assert!(ask("DUNLIN ADVANCE 1000").starts_with(':'), "neither idle for too long, nor held back by the pause");
    assert_eq!(ask("CONFIG GET timeout"), "*2\r\n");
}
