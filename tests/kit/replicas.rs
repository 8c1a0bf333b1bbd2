//! Replicas of a cluster in one process: they have what their primary has, and replace it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use dunlin::{CallError, Reply, Server};

use crate::nodes::Nodes;
use crate::timeout;

#[test]
fn a_replica_has_a_write_when_its_client_has_the_reply() {
    let mut nodes = Nodes::with_replicas();
    let moved = nodes.moved(5061, 0);
    nodes.expect(&[
        (0, "SET bar 1", "OK"),
        (3, "GET bar", &moved),
        (3, "READONLY", "OK"),
        (3, "GET bar", "1"),
        (3, "SET bar 2", &moved),
        (3, "READWRITE", "OK"),
        (3, "GET bar", &moved),
        (3, "READONLY", "OK"),
        (3, "RESET", "RESET"),
        (3, "GET bar", &moved),
        (3, "FLUSHALL", "READONLY You can't write against a read only replica."),
    ]);
    let to_second = nodes.moved(7638, 1);
    nodes.expect(&[(3, "READONLY", "OK"), (3, "GET abc", &to_second)]);
    assert_eq!(nodes.ask(3, "DBSIZE"), Reply::Integer(1));
}

#[test]
fn what_a_replica_applies_is_in_its_statistics_its_slow_log_and_its_monitor() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(3, "CONFIG SET slowlog-log-slower-than 0", "OK"), (3, "READONLY", "OK")]);
    nodes.expect(&[(3, "SLOWLOG RESET", "OK"), (3, "CONFIG RESETSTAT", "OK")]);
    let mut watcher = BufReader::new(TcpStream::connect(nodes.nodes[3].addr()).expect("it listens"));
    watcher.get_mut().set_read_timeout(Some(timeout::TIMEOUT)).expect("a time-out can be set");
    watcher.get_mut().write_all(b"MONITOR\r\n").expect("it reads");
    let mut lines = watcher.lines().map(|line| line.expect("it is told more"));
    assert_eq!(lines.next().as_deref(), Some("+OK"));
    nodes.expect(&[(0, "SET bar 1", "OK"), (0, "MULTI", "OK"), (0, "INCR bar", "QUEUED")]);
    nodes.expect(&[(0, "SETEX bar 9 x", "QUEUED"), (0, "EXEC", "[2, OK]")]);
    let port = nodes.port(0);
    let commands = [
        r#""SELECT" "0""#,
        r#""SET" "bar" "1""#,
        r#""MULTI""#,
        r#""INCR" "bar""#,
        r#""SET" "bar" "x" "PXAT" "1700000009000""#,
        r#""EXEC""#,
    ];
    for command in commands {
        assert_eq!(lines.next(), Some(format!("+1700000000.000000 [0 127.0.0.1:{port}] {command}")));
    }
    let statistics = nodes.text(3, "INFO commandstats");
    for (command, calls) in [("select", 1), ("set", 2), ("multi", 1), ("incr", 1), ("exec", 1)] {
        assert!(statistics.contains(&format!("cmdstat_{command}:calls={calls},usec=0,")), "{statistics}");
    }
    let slow = nodes.text(3, "SLOWLOG GET 10");
    for command in ["SELECT, 0", "SET, bar, 1", "MULTI", "INCR, bar", "SET, bar, x, PXAT, 1700000009000"] {
        assert!(slow.contains(&format!("[{command}], 127.0.0.1:{port}, ")), "{slow}");
    }
    assert!(!slow.contains("EXEC"), "{slow}");
}

#[test]
fn a_replica_shows_its_role_in_every_answer() {
    let mut nodes = Nodes::with_replicas();
    let (port, replica_port) = (nodes.port(0), nodes.port(3));
    assert_eq!(nodes.shown(1, 3).0, "slave");
    assert_eq!(nodes.shown(3, 3).0, "myself,slave");
    assert_eq!(nodes.text(3, "ROLE"), format!("[slave, 127.0.0.1, {port}, connected, 14]"));
    assert_eq!(nodes.text(0, "ROLE"), format!("[master, 14, [[127.0.0.1, {replica_port}, 14]]]"));
    assert_eq!(nodes.replication(3, "master_port"), port.to_string());
    assert_eq!(
        nodes.replication(0, "slave0"),
        format!("ip=127.0.0.1,port={replica_port},state=online,offset=14,lag=0")
    );
    assert_eq!(nodes.text(0, "CLUSTER MYSHARDID"), nodes.text(3, "CLUSTER MYSHARDID"));
    let hello = nodes.text(3, "HELLO 3");
    assert!(hello.contains("role: replica"), "{hello}");
    let slots = nodes.text(4, "CLUSTER SLOTS");
    assert!(slots.contains(&replica_port.to_string()), "{slots}");
    let clients = nodes.text(3, "CLIENT LIST");
    assert!(clients.contains(" flags=M "), "{clients}");
}

#[test]
fn commands_for_primaries_are_refused_by_replicas_and_the_other_way_round() {
    let mut nodes = Nodes::with_replicas();
    let [first, second, replica] = [0, 1, 3].map(|node| nodes.id(node));
    nodes.expect(&[
        (3, "CLUSTER SETSLOT 1 STABLE", "ERR Please use SETSLOT only with masters."),
        (0, &format!("CLUSTER SETSLOT 1 NODE {replica}"), "ERR Target node is not a master"),
        (0, &format!("CLUSTER SETSLOT 1 MIGRATING {replica}"), "ERR Target node is not a master"),
        (0, &format!("CLUSTER REPLICATE {first}"), "ERR Can't replicate myself"),
        (0, &format!("CLUSTER REPLICATE {replica}"), "ERR I can only replicate a master, not a replica."),
        (
            0,
            &format!("CLUSTER REPLICATE {second}"),
            "ERR To set a master the node must be empty and without assigned slots.",
        ),
        (0, "CLUSTER FAILOVER", "ERR You should send CLUSTER FAILOVER to a replica"),
        (3, "CLUSTER FAILOVER SOON", "ERR syntax error"),
        (3, &format!("CLUSTER FORGET {first}"), "ERR Can't forget my master!"),
        (0, &format!("CLUSTER REPLICAS {replica}"), "ERR The specified node is not a master"),
    ]);
    let lines = nodes.text(1, &format!("CLUSTER REPLICAS {first}"));
    assert!(lines.matches(" slave ").count() == 1 && lines.contains(&replica), "{lines}");
    assert!(nodes.text(3, "WAIT 1 0").starts_with("ERR WAIT cannot be used with replica instances."));
    assert!(nodes.text(3, "WAITAOF 0 1 0").starts_with("ERR WAITAOF cannot be used with replica instances."));
}

#[test]
fn replicas_follow_random_commands_of_every_kind() {
    let mut nodes =
        Nodes::of(Server::cluster(1).replicas(2).seed(3).frozen().allow_debug().start().expect("it starts"));
    let mut generator = fastrand::Rng::with_seed(8);
    for round in 0..3000 {
        let mut key = || format!("{{t}}{}", generator.u8(..12));
        let (one, other) = (key(), key());
        let number = generator.u16(..400);
        let line = match generator.u8(..24) {
            0 => format!("SET {one} {number}"),
            1 => format!("SET {one} {number} PX {}", number + 1),
            2 => format!("INCRBYFLOAT {one} 0.5"),
            3 => format!("APPEND {one} {number}"),
            4 => format!("LPUSH {one}l {number} {number}"),
            5 => format!("LMOVE {one}l {other}l LEFT RIGHT"),
            6 => format!("SADD {one}s {number} a b c"),
            7 => format!("SPOP {one}s 2"),
            8 => format!("HSET {one}h {number} 1 b 2"),
            9 => format!("HPEXPIRE {one}h {} FIELDS 1 b", number + 1),
            10 => format!("ZADD {one}z {number} m{number}"),
            11 => format!("ZPOPMIN {one}z"),
            12 => format!("XADD {one}x * a {number}"),
            13 => format!("XGROUP CREATE {one}x g 0 MKSTREAM"),
            14 => format!("XREADGROUP GROUP g c COUNT 2 STREAMS {one}x >"),
            15 => format!("PEXPIRE {one} {}", number + 1),
            16 => format!("RENAME {one} {other}"),
            17 => format!(
                "EVAL redis.call('incr',KEYS[1]);return(redis.call('rpush',KEYS[2],math.random())) 2 {one}n {other}l"
            ),
            18 => format!("COPY {one}z {other}z REPLACE"),
            19 => format!("DEL {one} {other}l"),
            20 => format!("PFADD {one}p {number}"),
            21 => format!("SETBIT {one}b {number} 1"),
            22 => format!("GETEX {one} PX {}", number + 1),
            _ => format!("HINCRBYFLOAT {one}h f 1.5"),
        };
        if generator.u8(..8) == 0 {
            nodes.expect(&[(0, "MULTI", "OK"), (0, &line, "QUEUED"), (0, &format!("LPUSH {one}m 1"), "QUEUED")]);
            nodes.ask(0, "EXEC");
        } else {
            // Errors of types are part of the test.
            let _ = nodes.clients[0].call(line.split(' '));
        }
        nodes.advance_ms(generator.u64(..30));
        if round % 100 == 0 {
            nodes.assert_equal_data(0, 1);
            nodes.assert_equal_data(0, 2);
        }
    }
    nodes.advance_ms(10_000);
    nodes.assert_equal_data(0, 1);
    let offsets = [0, 1, 2].map(|node| nodes.replication(node, "master_repl_offset"));
    assert!(offsets.iter().all(|offset| *offset == offsets[0]), "{offsets:?}");
}

#[test]
fn functions_and_data_of_a_primary_are_copied_to_a_node_that_becomes_its_replica() {
    let mut nodes = Nodes::start();
    let library = "#!lua name=l\nredis.register_function{function_name='f', callback=function() return 7 end, flags={'no-writes'}}";
    nodes.clients[0].call(["FUNCTION", "LOAD", library]).expect("it loads");
    for number in 0..500 {
        nodes.ask(0, &format!("RPUSH {{bar}}{number} a b c"));
    }
    let [first, third] = [0, 2].map(|node| nodes.id(node));
    for node in [0, 1, 2] {
        nodes.expect(&[(node, "CLUSTER DELSLOTSRANGE 10923 16383", "OK")]);
    }
    nodes.expect(&[(0, "CLUSTER ADDSLOTSRANGE 10923 16383", "OK")]);
    nodes.expect(&[(2, &format!("CLUSTER REPLICATE {first}"), "OK"), (2, "FCALL f 0", "7")]);
    nodes.assert_equal_data(0, 2);
    assert_eq!(nodes.shown(1, 2).0, "slave");
    nodes.expect(&[(0, "SET bar 1", "OK"), (2, "READONLY", "OK"), (2, "GET bar", "1")]);
    assert_eq!(nodes.id(2), third, "its own id stays");
}

#[test]
fn a_key_of_a_replica_ends_when_its_primary_says_so_and_is_not_shown_from_its_deadline_on() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(0, "SET bar 1 PX 100", "OK"), (3, "READONLY", "OK"), (3, "GET bar", "1")]);
    nodes.server.kill_node(0).expect("it runs");
    nodes.advance_ms(100);
    assert_eq!(nodes.ask(3, "GET bar"), Reply::Null);
    assert_eq!(nodes.ask(3, "DBSIZE"), Reply::Integer(1), "it is still there");
    assert_eq!(nodes.ask(3, "TTL bar"), Reply::Integer(-2));
    nodes.advance_ms(20_000);
    assert_eq!(nodes.ask(3, "DBSIZE"), Reply::Integer(0), "a primary ends its keys itself");
}

#[test]
fn replicas_have_all_that_a_client_wrote_in_files_if_it_wrote_nothing() {
    let mut nodes = Nodes::with_replicas();
    assert_eq!(nodes.text(0, "WAITAOF 0 1 0"), "[0, 1]");
    nodes.expect(&[(0, "SET bar 1", "OK")]);
    assert_eq!(nodes.text(0, "WAITAOF 0 0 0"), "[0, 0]");
    nodes.expect(&[
        (3, "WAITAOF 2 0 0", "ERR value is out of range, value must between 0 and 1"),
        (3, "WAITAOF 0 -1 0", "ERR value is out of range, must be positive"),
        (3, "WAITAOF 0 0 -1", "ERR timeout is negative"),
    ]);
    assert!(nodes.text(3, "WAITAOF 0 0 0").starts_with("ERR WAITAOF cannot be used with replica instances."));
}

#[test]
fn wait_counts_the_replicas_that_have_the_writes_of_its_client() {
    let mut nodes = Nodes::of(Server::cluster(1).replicas(2).seed(3).frozen().start().expect("it starts"));
    assert_eq!(nodes.ask(0, "WAIT 2 0"), Reply::Integer(2), "nothing was written");
    nodes.expect(&[(0, "SET a 1", "OK")]);
    assert_eq!(nodes.ask(0, "WAIT 2 0"), Reply::Integer(2));
    nodes.expect(&[(0, "DUNLIN LAG 2 500", "OK"), (0, "SET a 2", "OK")]);
    assert_eq!(nodes.ask(0, "WAIT 1 0"), Reply::Integer(1));

    let mut waiting = nodes.nodes[0].client().expect("there is room");
    let waits = thread::spawn(move || {
        waiting.call(["SET", "a", "3"]).expect("it is set");
        waiting.call(["WAIT", "2", "10000"]).expect("it answers")
    });
    timeout::wait_until("the client blocks", || nodes.text(0, "INFO clients").contains("blocked_clients:1"));
    nodes.advance_ms(499);
    assert!(!waits.is_finished());
    nodes.advance_ms(1);
    assert_eq!(waits.join().expect("it ends"), Reply::Integer(2));

    nodes.expect(&[(0, "SET a 4", "OK"), (0, "MULTI", "OK"), (0, "WAIT 2 1000", "QUEUED")]);
    assert_eq!(nodes.text(0, "EXEC"), "[1]");
}

#[test]
fn writes_are_refused_while_too_few_replicas_are_up_to_date() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(0, "CONFIG SET min-replicas-to-write 1 min-replicas-max-lag 5", "OK"), (0, "SET bar 1", "OK")]);
    assert_eq!(nodes.replication(0, "min_slaves_good_slaves"), "1");
    nodes.expect(&[(0, "DUNLIN LAG 3 60000", "OK"), (0, "SET bar 2", "OK")]);
    nodes.advance_ms(5999);
    nodes.expect(&[(0, "SET bar 3", "OK")]);
    nodes.advance_ms(1);
    nodes.expect(&[(0, "SET bar 4", "NOREPLICAS Not enough good replicas to write."), (0, "GET bar", "3")]);
    nodes.expect(&[(0, "DUNLIN LAG 3 0", "OK"), (0, "SET bar 5", "OK")]);
    nodes.server.kill_node(3).expect("it runs");
    nodes.expect(&[(0, "SET bar 6", "NOREPLICAS Not enough good replicas to write.")]);
}

#[test]
fn a_replica_without_its_primary_serves_old_data_unless_it_must_not() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(0, "SET bar 1", "OK"), (3, "READONLY", "OK")]);
    nodes.server.kill_node(0).expect("it runs");
    nodes.advance_ms(3000);
    assert_eq!(nodes.replication(3, "master_link_status"), "down");
    assert_eq!(nodes.replication(3, "master_link_down_since_seconds"), "3");
    let stale = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
    nodes.expect(&[
        (3, "GET bar", "1"),
        (3, "CONFIG SET replica-serve-stale-data no", "OK"),
        (3, "GET bar", stale),
        (3, "PING", stale),
        (3, "CLUSTER KEYSLOT bar", "5061"),
    ]);
    nodes.restart(0);
    nodes.expect(&[(3, "GET bar", "1")]);
    assert_eq!(nodes.replication(3, "master_link_status"), "up");
}

#[test]
fn a_replica_takes_over_from_a_primary_that_has_failed_and_is_followed_by_it_afterwards() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(0, "SET bar 1", "OK")]);
    nodes.server.kill_node(0).expect("it runs");
    nodes.advance_ms(15_000);
    nodes.expect(&[(1, "GET abc", "CLUSTERDOWN The cluster is down")]);
    assert_eq!(nodes.shown(3, 3).0, "myself,slave");
    nodes.advance_ms(499);
    assert_eq!(nodes.shown(3, 3).0, "myself,slave", "it waits half a second at least");
    nodes.advance_ms(501);
    let moved = nodes.moved(5061, 3);
    nodes.expect(&[(3, "GET bar", "1"), (3, "SET bar 2", "OK"), (1, "GET bar", &moved), (5, "GET bar", &moved)]);
    assert_eq!(nodes.info(1, "cluster_state"), "ok");
    assert_eq!(nodes.info(3, "cluster_my_epoch"), "7");
    assert_eq!(nodes.shown(1, 0).0, "master,fail");

    nodes.restart(0);
    assert_eq!(nodes.shown(1, 0), ("slave".to_owned(), "connected".to_owned()));
    nodes.expect(&[(0, "READONLY", "OK"), (0, "GET bar", "2")]);
    nodes.assert_equal_data(0, 3);
    assert_eq!(nodes.replication(0, "master_replid"), nodes.replication(3, "master_replid"));
}

#[test]
fn what_a_replica_had_not_applied_when_its_primary_failed_is_lost() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(0, "SET bar old", "OK"), (0, "DUNLIN LAG 3 100", "OK"), (0, "SET bar new", "OK")]);
    nodes.server.kill_node(0).expect("it runs");
    nodes.advance_ms(16_000);
    nodes.expect(&[(3, "GET bar", "old")]);
    nodes.restart(0);
    nodes.expect(&[(0, "READONLY", "OK"), (0, "GET bar", "old")]);
    nodes.assert_equal_data(0, 3);
}

#[test]
fn of_two_replicas_the_one_with_more_data_takes_over() {
    for [behind, ahead] in [[3, 6], [6, 3]] {
        for seed in 0..5 {
            let server = Server::cluster(3).replicas(2).seed(seed).frozen().allow_debug().start();
            let mut nodes = Nodes::of(server.expect("the nodes start"));
            nodes.server.set_lag(behind, Duration::from_secs(60)).expect("it is a replica");
            nodes.expect(&[(0, "SET bar 1", "OK")]);
            nodes.server.kill_node(0).expect("it runs");
            nodes.advance_ms(18_000);
            nodes.expect(&[(ahead, "GET bar", "1"), (behind, "READONLY", "OK"), (behind, "GET bar", "1")]);
            let role = nodes.text(behind, "ROLE");
            assert!(role.contains(&nodes.port(ahead).to_string()), "{role}");
        }
    }
}

#[test]
fn an_ordered_failover_loses_nothing_and_ends_in_the_same_moment() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(0, "SET bar 1", "OK"), (3, "CLUSTER FAILOVER", "OK")]);
    let moved = nodes.moved(5061, 3);
    for node in [0, 1, 2, 4, 5] {
        nodes.expect(&[(node, "GET bar", &moved)]);
    }
    nodes.expect(&[(3, "INCR bar", "2"), (0, "READONLY", "OK"), (0, "GET bar", "2")]);
    assert_eq!(nodes.replication(3, "connected_slaves"), "1");
    assert_eq!(nodes.replication(3, "master_replid2").len(), 40);
    assert_ne!(nodes.replication(3, "second_repl_offset"), "-1");
    nodes.expect(&[(1, "DUNLIN FAILOVER 0", "OK"), (0, "INCR bar", "3")]);
    // The others vote for replicas of one primary only once in twice the timeout.
    nodes.advance_ms(30_000);
    nodes.expect(&[(1, "DUNLIN FAILOVER 3 FORCE", "OK"), (3, "INCR bar", "4")]);
    nodes.expect(&[(1, "DUNLIN FAILOVER 0 TAKEOVER", "OK"), (0, "INCR bar", "5")]);
    nodes.expect(&[(
        1,
        "DUNLIN FAILOVER 0",
        "ERR node 0 cannot fail over: You should send CLUSTER FAILOVER to a replica",
    )]);
    nodes.server.kill_node(0).expect("it runs");
    let refused = "ERR Master is down or failed, please use CLUSTER FAILOVER FORCE";
    nodes.expect(&[(3, "CLUSTER FAILOVER", refused), (3, "CLUSTER FAILOVER TAKEOVER", "OK"), (3, "GET bar", "5")]);
}

#[test]
fn a_failover_that_was_ordered_waits_for_a_late_replica_and_holds_back_writes_meanwhile() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(1, "DUNLIN LAG 3 1000", "OK"), (0, "SET bar 1", "OK"), (3, "CLUSTER FAILOVER", "OK")]);
    assert_eq!(nodes.shown(1, 3).0, "slave");
    let mut writer = nodes.nodes[0].client().expect("there is room");
    let held_back = thread::spawn(move || writer.call(["SET", "bar", "2"]));
    timeout::wait_until("the write is held back", || nodes.text(0, "INFO clients").contains("blocked_clients:1"));
    nodes.expect(&[(0, "GET bar", "1")]);
    nodes.advance_ms(1000);
    assert_eq!(nodes.shown(1, 3).0, "master");
    let moved = nodes.moved(5061, 3);
    assert_eq!(held_back.join().expect("it ends"), Err(CallError::Refused(moved)));
    nodes.expect(&[(3, "GET bar", "1")]);
}

#[test]
fn a_failover_that_takes_too_long_is_given_up_and_writes_go_on() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(1, "DUNLIN LAG 3 60000", "OK"), (0, "SET bar 1", "OK"), (3, "CLUSTER FAILOVER", "OK")]);
    let mut writer = nodes.nodes[0].client().expect("there is room");
    let held_back = thread::spawn(move || writer.call(["SET", "bar", "2"]));
    timeout::wait_until("the write is held back", || nodes.text(0, "INFO clients").contains("blocked_clients:1"));
    nodes.advance_ms(5000);
    assert_eq!(held_back.join().expect("it ends").expect("it is set"), "OK");
    assert_eq!(nodes.shown(1, 3).0, "slave");
}

#[test]
fn a_client_that_waits_for_a_key_is_told_when_its_server_becomes_a_replica() {
    let mut nodes = Nodes::with_replicas();
    let mut waiting = nodes.nodes[0].client().expect("there is room");
    let waits = thread::spawn(move || waiting.call(["BLPOP", "bar", "0"]));
    nodes.nodes[0].wait_until_blocked("bar", timeout::TIMEOUT).expect("it blocks");
    nodes.expect(&[(3, "CLUSTER FAILOVER", "OK")]);
    let ended = "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)";
    assert_eq!(waits.join().expect("it ends"), Err(CallError::Refused(ended.to_owned())));
}

#[test]
fn a_replica_that_must_not_or_is_too_old_does_not_take_over() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(3, "CONFIG SET cluster-replica-no-failover yes", "OK")]);
    assert_eq!([nodes.shown(0, 3).0, nodes.shown(3, 3).0], ["slave,nofailover", "myself,slave,nofailover"]);
    nodes.server.kill_node(0).expect("it runs");
    nodes.advance_ms(60_000);
    assert_eq!(nodes.shown(1, 3).0, "slave,nofailover");

    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(3, "CONFIG SET cluster-replica-validity-factor 1", "OK")]);
    nodes.server.partition(&[&[0], &[3], &[1, 2, 4, 5]]).expect("there are such nodes");
    nodes.advance_ms(60_000);
    nodes.server.heal();
    nodes.server.kill_node(0).expect("it runs");
    nodes.advance_ms(10_000);
    assert_eq!(nodes.shown(1, 3).0, "slave");
}

#[test]
fn a_primary_that_gives_its_last_slot_away_becomes_a_replica_of_the_new_owner() {
    let mut nodes = Nodes::start();
    nodes.expect(&[(0, "SET bar 1", "OK"), (2, "CLUSTER DELSLOTSRANGE 10923 16382", "OK")]);
    nodes.server.migrate_slot(16383, 0).expect("both ends are up");
    assert_eq!(nodes.shown(0, 2).0, "slave");
    assert_eq!(nodes.shown(1, 2).0, "slave");
    nodes.assert_equal_data(0, 2);

    let mut nodes = Nodes::start();
    nodes.expect(&[(2, "CONFIG SET cluster-allow-replica-migration no", "OK")]);
    nodes.expect(&[(2, "CLUSTER DELSLOTSRANGE 10923 16382", "OK")]);
    nodes.server.migrate_slot(16383, 0).expect("both ends are up");
    assert_eq!(nodes.shown(0, 2).0, "master");
}

#[test]
fn a_replica_that_was_away_gets_what_it_missed_or_all_data() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(0, "SET bar 1", "OK")]);
    nodes.server.kill_node(3).expect("it runs");
    nodes.expect(&[(0, "SET bar 2", "OK"), (0, "CONFIG SET repl-backlog-size 16384", "OK")]);
    nodes.restart(3);
    nodes.assert_equal_data(0, 3);
    nodes.server.kill_node(3).expect("it runs");
    let value = "x".repeat(10_000);
    nodes.expect(&[(0, &format!("SET bar {value}"), "OK"), (0, &format!("SET {{bar}}2 {value}"), "OK")]);
    nodes.restart(3);
    nodes.assert_equal_data(0, 3);
    nodes.server.kill_node(3).expect("it runs");
    nodes.server.restart_node_empty(3).expect("its port is free");
    nodes.clients[3] = nodes.nodes[3].client().expect("it lets clients in");
    nodes.assert_equal_data(0, 3);
    assert_eq!(nodes.ask(3, "DBSIZE"), Reply::Integer(2));
    nodes.server.kill_node(0).expect("it runs");
    nodes.server.restart_node_empty(0).expect("its port is free");
    nodes.clients[0] = nodes.nodes[0].client().expect("it lets clients in");
    assert_eq!(nodes.ask(3, "DBSIZE"), Reply::Integer(0), "a primary that comes back without data empties its replica");
}

#[test]
fn every_node_knows_how_much_the_others_have_unless_it_is_cut_off() {
    let mut six = Nodes::with_replicas();
    let offsets = |six: &mut Nodes, node: usize| {
        let shown = six.text(node, "CLUSTER SHARDS");
        let parts = shown.split("replication-offset: ").skip(1);
        let mut offsets: Vec<u64> = parts.filter_map(|part| part.split(',').next()?.parse().ok()).collect();
        offsets.sort_unstable();
        offsets
    };
    six.expect(&[(0, "SET bar 1", "OK")]);
    let at_first = offsets(&mut six, 0);
    assert_eq!(at_first.len(), 6);
    assert!(at_first[4] > at_first[3] && at_first[4] == at_first[5], "the writes of one shard: {at_first:?}");
    (1..6).for_each(|node| assert_eq!(offsets(&mut six, node), at_first, "as node {node} has it"));
    six.expect(&[(0, "DUNLIN LINK 0 1 CUT", "OK"), (0, "SET bar 2", "OK")]);
    assert_ne!(offsets(&mut six, 1), offsets(&mut six, 2));
}

#[test]
fn a_history_with_another_id_is_one_that_a_replica_does_not_have() {
    let mut nodes = Nodes::with_replicas();
    let before = nodes.replication(0, "master_replid");
    nodes.expect(&[(0, "SET bar 1", "OK"), (0, "DEBUG CHANGE-REPL-ID", "OK"), (0, "SET bar 2", "OK")]);
    let after = nodes.replication(0, "master_replid");
    assert_ne!(before, after);
    nodes.server.kill_node(3).expect("it runs");
    nodes.restart(3);
    assert_eq!(nodes.replication(3, "master_replid"), after);
    nodes.assert_equal_data(0, 3);
}

#[test]
fn the_data_of_a_replica_are_replaced_by_nobody_but_its_primary() {
    let mut nodes = Nodes::with_replicas();
    let refused = "ERR a replica has the data of its primary, and no others";
    nodes.expect(&[(0, "SET bar 2", "OK"), (3, "READONLY", "OK")]);
    let loaded = nodes.clients[3].call(["DUNLIN", "LOAD", "SET bar 3"]);
    assert_eq!(loaded, Err(CallError::Refused(refused.to_owned())));
    nodes.expect(&[(3, "GET bar", "2"), (3, "CLUSTER FAILOVER", "OK")]);
    let loaded = nodes.clients[3].call(["DUNLIN", "LOAD", "SET bar 3"]);
    assert_eq!(loaded.expect("it is a primary now"), "OK");
    nodes.expect(&[(0, "READONLY", "OK"), (0, "GET bar", "3")]);
}

#[test]
fn replicas_have_the_keys_of_a_slot_that_moves() {
    let mut nodes = Nodes::with_replicas();
    for number in 0..250 {
        nodes.expect(&[(0, &format!("SET {{bar}}{number} {number} PX 60000"), "OK")]);
    }
    nodes.server.migrate_keys_of_slot(5061, 1, 100).expect("both ends are up");
    nodes.assert_equal_data(0, 3);
    nodes.assert_equal_data(1, 4);
    nodes.server.migrate_slot(5061, 1).expect("both ends are up");
    assert_eq!(nodes.ask(4, "CLUSTER COUNTKEYSINSLOT 5061"), Reply::Integer(250));
    assert_eq!(nodes.ask(3, "DBSIZE"), Reply::Integer(0));
    nodes.assert_equal_data(1, 4);
    nodes.advance_ms(60_000);
    assert_eq!([1, 4].map(|node| nodes.ask(node, "DBSIZE")), [Reply::Integer(0), Reply::Integer(0)]);
}

#[test]
fn functions_and_messages_of_a_shard_reach_its_replicas_and_no_others() {
    let mut nodes = Nodes::with_replicas();
    let library = "#!lua name=l\nredis.register_function{function_name='f', callback=function() return 7 end, \
                   flags={'no-writes'}}";
    nodes.clients[0].call(["FUNCTION", "LOAD", library]).expect("it loads");
    nodes.expect(&[(3, "FCALL f 0", "7"), (4, "FCALL f 0", "ERR Function not found")]);
    let mut listeners = [0, 3].map(|node| nodes.nodes[node].client().expect("there is room"));
    listeners.iter_mut().for_each(|listener| _ = listener.call(["SSUBSCRIBE", "bar"]).expect("it is of this shard"));
    assert_eq!(nodes.ask(0, "SPUBLISH bar hello"), Reply::Integer(1), "those of this node are counted");
    for listener in &mut listeners {
        let message = listener.wait_for_message(timeout::TIMEOUT).expect("it is open").expect("it comes");
        assert_eq!(message.payload, b"hello");
    }
}

#[test]
fn a_wait_that_has_ended_does_not_count_for_the_next_one_of_its_client() {
    let mut nodes = Nodes::of(Server::cluster(1).replicas(2).seed(3).frozen().start().expect("it starts"));
    nodes.expect(&[(0, "DUNLIN LAG 1 500", "OK"), (0, "DUNLIN LAG 2 900", "OK")]);
    let mut waiting = nodes.nodes[0].client().expect("there is room");
    let waits = thread::spawn(move || {
        waiting.call(["SET", "a", "1"]).expect("it is set");
        (waiting.call(["WAIT", "1", "100"]), waiting.call(["WAIT", "2", "10000"]))
    });
    let blocked = |nodes: &mut Nodes| nodes.text(0, "INFO clients").contains("blocked_clients:1");
    timeout::wait_until("the first wait begins", || blocked(&mut nodes));
    nodes.advance_ms(100);
    timeout::wait_until("the second wait begins", || blocked(&mut nodes));
    nodes.advance_ms(400);
    assert!(!waits.is_finished(), "one replica is not enough");
    nodes.advance_ms(400);
    let replies = waits.join().expect("it ends");
    assert_eq!(replies, (Ok(Reply::Integer(0)), Ok(Reply::Integer(2))));
}

#[test]
fn the_same_seed_gives_the_same_failover_byte_for_byte() {
    let story = || {
        let mut nodes = Nodes::with_replicas();
        let mut told = Vec::new();
        nodes.expect(&[(0, "SET bar 1", "OK")]);
        nodes.server.kill_node(0).expect("it runs");
        for _ in 0..6 {
            told.push(nodes.text(1, "DUNLIN ADVANCE-TO-NEXT"));
            told.push(nodes.text(2, "CLUSTER NODES"));
        }
        nodes.restart(0);
        nodes.advance_ms(3000);
        told.push(nodes.text(0, "CLUSTER NODES"));
        told.push(nodes.text(0, "INFO replication"));
        told.join("\n")
    };
    let without_ports = |text: String| -> String {
        text.split([' ', '\n', ',']).filter(|word| !word.contains("127.0.0.1:") && !word.contains("port")).collect()
    };
    let first = without_ports(story());
    for _ in 0..5 {
        assert_eq!(without_ports(story()), first);
    }
}
