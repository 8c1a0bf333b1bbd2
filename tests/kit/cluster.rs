//! Several nodes of a cluster in one process: what one says the others know before the reply, and they have one clock.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, SystemTime};

use dunlin::{CallError, Reply, Server, World};

use crate::nodes::Nodes;

#[test]
fn all_nodes_agree_on_the_slots_from_the_start() {
    let mut three = Nodes::start();
    for node in 0..3 {
        assert_eq!(three.info(node, "cluster_state"), "ok");
        assert_eq!(three.info(node, "cluster_known_nodes"), "3");
        assert_eq!(three.slots(node), three.slots(0));
    }
    let ports = [0, 1, 2].map(|node| three.port(node));
    assert_eq!(ports, [ports[0], ports[0] + 1, ports[0] + 2]);
    let [to_first, to_third] = [three.moved(5061, 0), three.moved(12182, 2)];
    three.expect(&[
        (0, "SET bar 1", "OK"),
        (1, "SET bar 1", &to_first),
        (1, "SET abc 1", "OK"),
        (0, "GET foo", &to_third),
        (2, "SET foo 1", "OK"),
    ]);
}

#[test]
fn a_test_finds_a_node_by_its_number_and_by_a_key_that_it_owns() {
    let nodes = Nodes::with_replicas();
    let cluster = &nodes.server;
    let urls: Vec<String> = nodes.nodes.iter().map(World::url).collect();
    assert_eq!(cluster.urls(), urls);
    assert_eq!(cluster.node(5).map(|node| node.url()), Ok(urls[5].clone()));
    assert_eq!(cluster.node(6).map(|node| node.url()), Err(CallError::Refused("ERR no node 6".to_owned())));
    let owner = |key: &str| cluster.primary_of(key).map(|node| node.url());
    assert_eq!(["bar", "abc", "foo"].map(owner), [0, 1, 2].map(|number: usize| Ok(urls[number].clone())));
    cluster.make_view_stale(0).expect("it is up");
    nodes.nodes[5].fail_over(3).expect("it is a replica");
    assert_eq!(owner("bar"), Ok(urls[3].clone()), "node 0 has not heard that it was replaced");
    cluster.kill_node(1).expect("it is up");
    assert_eq!(owner("abc"), Err(CallError::Refused("ERR no node owns slot 7638".to_owned())));
}

#[test]
fn a_slot_moves_key_by_key_and_all_nodes_follow_at_its_end() {
    let mut three = Nodes::start();
    three.expect(&[(0, "SET bar 1", "OK"), (0, "SET {bar}2 2", "OK")]);
    three.open();
    assert_eq!(three.migrate(0, 1, "bar"), "OK");
    let to_second = three.moved(5061, 1);
    let (ask, to_first, second) = (to_second.replace("MOVED", "ASK"), three.moved(5061, 0), three.id(1));
    three.expect(&[
        (0, "GET bar", &ask),
        (0, "GET {bar}2", "2"),
        (0, "MGET bar {bar}2", "TRYAGAIN Multiple keys request during rehashing of slot"),
        (1, "GET bar", &to_first),
        (1, "ASKING", "OK"),
        (1, "GET bar", "1"),
        (2, "GET bar", &to_first),
    ]);
    assert_eq!(three.migrate(0, 1, "{bar}2"), "OK");
    assert_eq!(three.migrate(0, 1, "{bar}2"), "NOKEY");
    let give = format!("CLUSTER SETSLOT 5061 NODE {second}");
    three.expect(&[
        (1, &give, "OK"),
        (0, "GET bar", &to_second),
        (2, "GET bar", &to_second),
        (0, &give, "OK"),
        (1, "GET bar", "1"),
        (1, "GET {bar}2", "2"),
    ]);
    assert_eq!(three.slots(0), three.slots(2));
    assert_eq!([0, 1, 2].map(|node| three.info(node, "cluster_current_epoch")), ["4", "4", "4"]);
}

/// In a pipeline the gates are skipped as long as each request has one key of this node.
#[test]
fn each_request_of_a_pipeline_is_sent_where_its_slot_is() {
    let mut three = Nodes::start();
    let (moved, ask) = (three.moved(12182, 2), three.moved(5061, 1).replace("MOVED", "ASK"));
    let crossing = "CROSSSLOT Keys in request don't hash to the same slot";
    let requests = "SET bar 1\nGET bar\nGET foo\nGET bar\nSET foo 1\nMGET bar foo\nINCR bar\nMGET bar {bar}\nDBSIZE\n";
    let replies = format!("+OK\n$1\n1\n-{moved}\n$1\n1\n-{moved}\n-{crossing}\n:2\n*2\n$1\n2\n$-1\n:1\n");
    let address = three.nodes[0].addr();
    let send = |requests: &str, replies: &str| {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(requests.replace('\n', "\r\n").as_bytes()).expect("it is connected");
        let mut found = vec![0; replies.replace('\n', "\r\n").len()];
        stream.read_exact(&mut found).expect("it answers");
        assert_eq!(String::from_utf8_lossy(&found).replace("\r\n", "\n"), replies);
    };
    send(requests, &replies);
    three.open();
    send("GET bar\nGET {bar}\nSET {bar} 1\nGET bar\n", &format!("$1\n2\n-{ask}\n-{ask}\n$1\n2\n"));
}

#[test]
fn a_node_that_gives_up_importing_a_slot_hears_who_has_taken_it_meanwhile() {
    let mut three = Nodes::start();
    let import = format!("CLUSTER SETSLOT 5061 IMPORTING {}", three.id(0));
    three.expect(&[(2, &import, "OK"), (0, "DUNLIN MIGRATE-SLOT 5061 TO 1", "OK")]);
    let (to_first, to_second) = (three.moved(5061, 0), three.moved(5061, 1));
    three.expect(&[(2, "GET bar", &to_first), (2, "CLUSTER SETSLOT 5061 STABLE", "OK"), (2, "GET bar", &to_second)]);
    assert_eq!(three.slots(0), three.slots(2));
}

#[test]
fn a_node_counts_whom_it_sent_elsewhere() {
    let mut three = Nodes::start();
    let journals = three.nodes.clone();
    let [first, second] = [0, 1].map(|node: usize| journals[node].journal());
    three.expect(&[(0, "SET bar 1", "OK"), (0, "DUNLIN MIGRATE-SLOT 5061 TO 1 BEGIN", "OK")]);
    let ask = three.moved(5061, 1).replace("MOVED", "ASK");
    three.expect(&[
        (0, "GET {bar}2", &ask),
        (0, "GET bar", "1"),
        (0, "INCR bar x", "ERR wrong number of arguments for 'incr' command"),
    ]);
    first.redirected().assert_exactly(1);
    let moved = three.moved(5061, 1);
    three.expect(&[(0, "DUNLIN MIGRATE-SLOT 5061 TO 1 FINISH", "OK"), (0, "GET bar", &moved), (1, "GET bar", "1")]);
    three.expect(&[(0, "DUNLIN JOURNAL EXPECT EXACTLY 1 KEY bar REDIRECTED", "OK")]);
    three.expect(&[(0, "DUNLIN JOURNAL COUNT REDIRECTED ERRORS", "2"), (0, "DUNLIN JOURNAL COUNT ERRORS", "3")]);
    second.redirected().assert_none();
    let mut waiter = journals[0].client().expect("there is room");
    let wait = first.redirected().command("GET");
    assert!(wait.wait_for(2, Duration::from_secs(1)).is_ok());
    let refused =
        waiter.call("DUNLIN JOURNAL EXPECT NONE COMMAND get REDIRECTED".split(' ')).expect_err("there are two");
    assert!(refused.to_string().contains("COMMAND get REDIRECTED"), "{refused}");
}

#[test]
fn a_key_past_its_deadline_counts_as_moved() {
    let mut nodes = Nodes::start();
    nodes.expect(&[(0, "DEBUG SET-ACTIVE-EXPIRE 0", "OK"), (0, "SET bar 1 PX 10", "OK")]);
    nodes.open();
    nodes.expect(&[(0, "GET bar", "1")]);
    nodes.advance_ms(11);
    let asked = format!("ASK 5061 127.0.0.1:{}", nodes.port(1));
    nodes.expect(&[(0, "GET bar", &asked), (0, "DBSIZE", "1")]);
}

#[test]
fn a_value_keeps_its_deadline_when_it_moves() {
    let mut three = Nodes::start();
    three.expect(&[(0, "SET bar 1 PX 1500", "OK")]);
    three.open();
    assert_eq!(three.migrate(0, 1, "bar"), "OK");
    three.server.advance(Duration::from_millis(1499));
    three.expect(&[(1, "ASKING", "OK"), (1, "GET bar", "1")]);
    three.server.advance(Duration::from_millis(1));
    assert_eq!(three.ask(1, "DBSIZE"), Reply::Integer(0));
}

#[test]
fn migrate_is_refused_as_another_server_would_refuse_it() {
    let mut three = Nodes::start();
    three.expect(&[(0, "SET bar 1", "OK"), (0, "CONFIG SET requirepass secret", "OK")]);
    three.expect(&[(1, "CONFIG SET requirepass secret", "OK")]);
    three.open();
    assert_eq!(three.migrate(0, 1, "bar"), "ERR Target instance replied with error: NOAUTH Authentication required.");
    let port = three.port(1);
    let with_login = format!("MIGRATE 127.0.0.1 {port} bar 0 100 AUTH secret");
    three.expect(&[(0, &with_login, "OK")]);
    let ask = three.moved(5061, 1).replace("MOVED", "ASK");
    three.expect(&[(0, "GET bar", &ask)]);
}

#[test]
fn migrate_to_itself_times_out_as_in_redis() {
    let mut three = Nodes::start();
    three.expect(&[(0, "SET bar 1", "OK")]);
    assert_eq!(three.migrate(0, 0, "bar"), "IOERR error or timeout reading to target instance");
    three.expect(&[(0, "GET bar", "1")]);
}

#[test]
fn a_subscriber_of_any_node_hears_what_another_one_publishes() {
    let mut three = Nodes::start();
    let mut listeners = [0, 1, 2].map(|node| three.nodes[node].client().expect("there is room"));
    for listener in &mut listeners {
        listener.call(["SUBSCRIBE", "news"]).expect("it answers");
    }
    assert_eq!(three.ask(1, "PUBLISH news hello"), Reply::Integer(1));
    for listener in &mut listeners {
        let heard = listener.next_message().expect("it is connected").expect("it hears");
        assert_eq!((&heard.channel[..], &heard.payload[..]), (&b"news"[..], &b"hello"[..]));
        assert!(listener.next_message().expect("it is connected").is_none(), "it hears it once");
    }
}

#[test]
fn a_keyspace_notification_stays_at_its_node() {
    let mut three = Nodes::start();
    let mut listener = three.nodes[1].client().expect("there is room");
    listener.call(["SUBSCRIBE", "__keyevent@0__:set"]).expect("it answers");
    (0..3).for_each(|node| assert_eq!(three.text(node, "CONFIG SET notify-keyspace-events KEA"), "OK"));
    three.expect(&[(0, "SET bar 1", "OK")]);
    assert!(listener.next_message().expect("it is connected").is_none());
    three.expect(&[(1, "SET abc 1", "OK")]);
    assert!(listener.next_message().expect("it is connected").is_some());
}

#[test]
fn the_clock_is_one_whichever_node_moves_it() {
    let mut three = Nodes::start();
    three.expect(&[(0, "SET bar 1 PX 100", "OK"), (2, "SET foo 1 PX 200", "OK")]);
    three.nodes[1].advance(Duration::from_millis(100));
    assert_eq!([0, 2].map(|node| three.ask(node, "DBSIZE")), [Reply::Integer(0), Reply::Integer(1)]);
    three.ask(0, "DUNLIN ADVANCE 100");
    assert_eq!(three.ask(2, "DBSIZE"), Reply::Integer(0));
    let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(2_000_000_000);
    three.nodes[2].set_time(moment);
    assert_eq!([0, 1, 2].map(|node| three.nodes[node].now()), [moment; 3]);
    three.expect(&[(1, "DEBUG SLEEP 5", "OK")]);
    assert_eq!([0, 1, 2].map(|node| three.nodes[node].now()), [moment + Duration::from_secs(5); 3]);
}

#[test]
fn nodes_that_were_reset_meet_again() {
    let mut three = Nodes::start();
    let old = three.id(2);
    for node in 0..3 {
        three.expect(&[(node, "CLUSTER RESET HARD", "OK")]);
        assert_eq!(three.info(node, "cluster_known_nodes"), "1");
        assert_eq!(three.info(node, "cluster_state"), "fail");
    }
    assert_ne!(three.id(2), old);
    let [to_first, to_second] = [0, 1].map(|node| format!("CLUSTER MEET 127.0.0.1 {}", three.port(node)));
    three.expect(&[
        (0, "CLUSTER ADDSLOTSRANGE 0 8191", "OK"),
        (1, "CLUSTER ADDSLOTSRANGE 8192 16383", "OK"),
        (1, &to_first, "OK"),
        (2, &to_second, "OK"),
    ]);
    for node in 0..3 {
        assert_eq!(three.info(node, "cluster_known_nodes"), "3", "node {node} knows who the others know");
        assert_eq!(three.info(node, "cluster_state"), "ok");
        assert_eq!(three.slots(node), three.slots(0));
    }
    let nobody = three.text(0, "CLUSTER MEET 127.0.0.1 1");
    assert_eq!(nobody, "ERR this server meets only nodes of its own process, and none of them listens at 127.0.0.1:1");
}

#[test]
fn nodes_with_one_epoch_settle_who_takes_a_new_one() {
    let mut three = Nodes::start();
    (0..3).for_each(|node| three.expect(&[(node, "CLUSTER RESET HARD", "OK")]));
    let meet = format!("CLUSTER MEET 127.0.0.1 {}", three.port(0));
    three.expect(&[(1, &meet, "OK"), (2, &meet, "OK")]);
    let mut epochs = [0, 1, 2].map(|node| three.info(node, "cluster_my_epoch"));
    epochs.sort();
    assert_eq!(epochs, ["0", "1", "2"]);
}

#[test]
fn a_node_that_ends_closes_its_port_and_leaves_the_others() {
    let mut three = Nodes::start();
    let port = three.port(1);
    let _ = three.clients[1].call(["SHUTDOWN", "NOSAVE"]);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    let to_second = three.moved(7638, 1);
    three.expect(&[(0, "SET bar 1", "OK"), (2, "SET abc 1", &to_second), (2, "SET foo 1", "OK")]);
}

#[test]
fn equal_seeds_make_equal_nodes() {
    let ids = |seed: u64| {
        let mut three = Nodes::of(Server::cluster(3).seed(seed).start().expect("the nodes start"));
        [0, 1, 2].map(|node| three.id(node))
    };
    let [first, second, third] = ids(3);
    assert!(first != second && second != third && third != first);
    assert_eq!(ids(3), [first, second, third]);
    assert_ne!(ids(4), ids(3));
}

#[test]
fn a_cluster_of_one_node_owns_all_slots() {
    let mut one = Nodes::of(Server::cluster(1).start().expect("the node starts"));
    assert_eq!(one.info(0, "cluster_state"), "ok");
    one.expect(&[(0, "SET foo 1", "OK"), (0, "SET bar 1", "OK")]);
}

#[test]
fn the_nodes_keep_no_files_and_have_ports_one_after_the_other() {
    for (name, value) in [("appendonly", "yes"), ("save", "60 1")] {
        let refused = Server::cluster(2).set(name, value).start().expect_err("it is refused").to_string();
        assert_eq!(refused, "the nodes of one process keep no files, and load none");
    }
    for (name, value) in [("cluster-enabled", "no"), ("cluster-port", "7000"), ("cluster-announce-port", "7000")] {
        let refused = Server::cluster(2).port(55_535).set(name, value).start().expect_err("it is refused").to_string();
        assert!(
            refused.starts_with("Redis port number too high.") || refused.contains("one after the other"),
            "{refused}"
        );
    }
    let refused = Server::cluster(2).set("cluster-enabled", "no").start().expect_err("it is refused").to_string();
    assert_eq!(refused, "the nodes of one process have ports one after the other, and are a cluster");
    let too_high = Server::cluster(2).port(55_535).start().expect_err("it is refused").to_string();
    assert!(too_high.starts_with("Redis port number too high."), "{too_high}");
}

#[test]
fn a_node_that_was_killed_has_failed_after_the_timeout() {
    let mut three = Nodes::start();
    three.server.kill_node(2).expect("it runs");
    assert!(TcpStream::connect(three.nodes[2].addr()).is_err());
    assert_eq!(three.clients[2].call(["PING"]), Err(CallError::Closed));
    three.server.advance(Duration::from_millis(14_999));
    assert_eq!(three.shown(0, 2), ("master".to_owned(), "disconnected".to_owned()));
    let to_third = three.moved(12182, 2);
    three.expect(&[(0, "SET bar 1", "OK"), (1, "GET foo", &to_third)]);

    three.server.advance(Duration::from_millis(1));
    for node in [0, 1] {
        assert_eq!(three.shown(node, 2), ("master,fail".to_owned(), "disconnected".to_owned()));
        assert_eq!(three.info(node, "cluster_state"), "fail");
        assert_eq!(three.info(node, "cluster_slots_fail"), "5461");
        assert_eq!(three.info(node, "cluster_slots_ok"), "10923");
    }
    three.expect(&[(0, "GET bar", "CLUSTERDOWN The cluster is down")]);
    three.expect(&[(1, "CONFIG SET cluster-require-full-coverage no", "OK"), (1, "SET abc 1", "OK")]);
    three.expect(&[(1, "GET foo", &to_third)]);
}

#[test]
fn a_node_that_starts_again_is_heard_and_after_twice_the_timeout_as_before() {
    let mut three = Nodes::start();
    three.expect(&[(2, "SET foo 1", "OK")]);
    three.server.kill_node(2).expect("it runs");
    three.server.advance(Duration::from_secs(15));
    three.server.restart_node(2).expect("its port is free");
    three.clients[2] = three.nodes[2].client().expect("it lets clients in");
    three.server.advance(Duration::from_millis(1999));
    three.expect(&[(2, "GET foo", "CLUSTERDOWN The cluster is down")]);
    three.server.advance(Duration::from_millis(1));
    three.expect(&[(2, "GET foo", "1")]);
    assert_eq!(three.shown(0, 2), ("master,fail".to_owned(), "connected".to_owned()));
    three.server.advance(Duration::from_millis(27_999));
    three.expect(&[(0, "GET bar", "CLUSTERDOWN The cluster is down")]);
    three.server.advance(Duration::from_millis(1));
    assert_eq!(three.shown(0, 2), ("master".to_owned(), "connected".to_owned()));
    three.expect(&[(0, "SET bar 1", "OK")]);
}

#[test]
fn a_failure_has_one_moment_at_all_nodes_however_far_the_clock_moves_at_once() {
    let mut three = Nodes::start();
    three.server.kill_node(2).expect("it runs");
    three.server.advance(Duration::from_secs(40));
    three.server.restart_node(2).expect("its port is free");
    // It failed after 15 seconds, and that is over 30 seconds later.
    three.server.advance(Duration::from_millis(4999));
    assert_eq!([0, 1].map(|node| three.info(node, "cluster_state")), ["fail", "fail"]);
    three.server.advance(Duration::from_millis(1));
    assert_eq!([0, 1].map(|node| three.info(node, "cluster_state")), ["ok", "ok"]);
}

#[test]
fn a_failure_that_is_long_past_is_over_when_the_node_is_heard() {
    let mut three = Nodes::start();
    three.server.kill_node(2).expect("it runs");
    three.server.advance(Duration::from_secs(100));
    three.server.restart_node(2).expect("its port is free");
    assert_eq!([0, 1].map(|node| three.info(node, "cluster_state")), ["ok", "ok"]);
}

#[test]
fn a_node_without_slots_counts_when_nodes_agree_on_a_failure() {
    let mut three = Nodes::start();
    let slots: Vec<String> = (10923..16384).map(|slot: u16| slot.to_string()).collect();
    three.expect(&[(2, &format!("CLUSTER DELSLOTS {}", slots.join(" ")), "OK")]);
    for node in [0, 1] {
        three.expect(&[(node, &format!("CLUSTER DELSLOTS {}", slots.join(" ")), "OK")]);
    }
    three.expect(&[(0, "CLUSTER ADDSLOTSRANGE 10923 16383", "OK")]);
    assert_eq!(three.info(2, "cluster_size"), "2");
    three.server.kill_node(1).expect("it runs");
    three.server.advance(Duration::from_secs(15));
    for node in [0, 2] {
        assert_eq!(three.shown(node, 1).0, "master,fail");
    }
}

#[test]
fn a_node_that_starts_again_in_time_was_never_missed() {
    let mut three = Nodes::start();
    three.expect(&[(1, "SET abc 1", "OK")]);
    three.server.kill_node(1).expect("it runs");
    three.server.advance(Duration::from_secs(14));
    three.server.restart_node_empty(1).expect("its port is free");
    three.clients[1] = three.nodes[1].client().expect("it lets clients in");
    three.server.advance(Duration::from_secs(2));
    assert_eq!(three.ask(1, "GET abc"), Reply::Null);
    three.server.advance(Duration::from_secs(100));
    assert_eq!(three.shown(0, 1), ("master".to_owned(), "connected".to_owned()));
    three.expect(&[(0, "SET bar 1", "OK")]);
}

#[test]
fn a_node_that_was_down_learns_which_slots_moved_meanwhile() {
    let mut three = Nodes::start();
    three.expect(&[(0, "SET bar 1", "OK")]);
    three.server.kill_node(2).expect("it runs");
    three.server.migrate_slot(5061, 1).expect("both ends are up");
    three.server.restart_node(2).expect("its port is free");
    three.clients[2] = three.nodes[2].client().expect("it lets clients in");
    three.server.advance(Duration::from_secs(2));
    let to_second = three.moved(5061, 1);
    three.expect(&[(2, "GET bar", &to_second), (1, "GET bar", "1")]);
}

#[test]
fn a_node_that_is_down_can_be_neither_met_nor_given_keys() {
    let mut three = Nodes::start();
    three.expect(&[(0, "SET bar 1", "OK")]);
    three.open();
    three.server.kill_node(1).expect("it runs");
    assert_eq!(three.migrate(0, 1, "bar"), "IOERR error or timeout writing to target instance");
    three.expect(&[(0, "GET bar", "1")]);
    let meet = three.text(0, &format!("CLUSTER MEET 127.0.0.1 {}", three.port(1)));
    assert!(meet.starts_with("ERR this server meets only nodes of its own process"), "{meet}");
}

#[test]
fn a_value_that_is_too_long_for_the_other_node_stays() {
    let mut three = Nodes::start();
    let value = "x".repeat(2 << 20);
    three.expect(&[(0, &format!("SET bar {value}"), "OK"), (0, "SET {bar}2 1", "OK")]);
    three.expect(&[(0, "CONFIG SET rdbcompression no", "OK"), (1, "CONFIG SET proto-max-bulk-len 1mb", "OK")]);
    three.open();
    assert_eq!(three.migrate(0, 1, "bar {bar}2"), "IOERR error or timeout reading to target instance");
    assert_eq!(three.ask(0, "STRLEN bar"), Reply::Integer(2 << 20));
}

#[test]
fn the_first_node_can_be_killed_too() {
    let mut three = Nodes::start();
    three.server.kill_node(0).expect("it runs");
    assert!(TcpStream::connect(three.nodes[0].addr()).is_err());
    three.server.advance(Duration::from_secs(15));
    three.expect(&[(1, "GET abc", "CLUSTERDOWN The cluster is down")]);
    three.server.restart_node(0).expect("its port is free");
    assert!(TcpStream::connect(three.nodes[0].addr()).is_ok());
}

#[test]
fn one_of_two_nodes_is_no_majority_and_serves_nothing() {
    let mut two = Nodes::of(Server::cluster(2).frozen().start().expect("the nodes start"));
    two.expect(&[(0, "CONFIG SET cluster-require-full-coverage no", "OK")]);
    two.server.kill_node(1).expect("it runs");
    two.server.advance(Duration::from_secs(15));
    assert_eq!(two.shown(0, 1), ("master,fail?".to_owned(), "disconnected".to_owned()));
    two.expect(&[(0, "GET bar", "CLUSTERDOWN The cluster is down")]);
    two.server.restart_node(1).expect("its port is free");
    two.server.advance(Duration::from_millis(4999));
    two.expect(&[(0, "GET bar", "CLUSTERDOWN The cluster is down")]);
    two.server.advance(Duration::from_millis(1));
    two.expect(&[(0, "SET bar 1", "OK")]);
}

#[test]
fn a_node_whose_wait_ends_while_it_is_in_a_minority_has_nothing_more_to_do() {
    let mut three = Nodes::start();
    three.server.kill_node(0).expect("it runs");
    three.server.kill_node(1).expect("it runs");
    three.server.advance(Duration::from_secs(15));
    three.server.kill_node(2).expect("it runs");
    three.server.restart_node(2).expect("its port is free");
    three.clients[2] = three.nodes[2].client().expect("it lets clients in");
    three.server.advance(Duration::from_secs(20));
    assert_eq!(three.ask(2, "DUNLIN ADVANCE-TO-NEXT"), Reply::Null);
    three.expect(&[(2, "GET foo", "CLUSTERDOWN The cluster is down")]);
}

/// What was written to the new node meanwhile goes back, too.
#[test]
fn the_keys_of_a_slot_whose_migration_is_cancelled_go_back_to_its_owner() {
    let mut nodes = Nodes::start();
    let asked = format!("ASK 5061 127.0.0.1:{}", nodes.port(2));
    nodes.expect(&[
        (0, "MSET {bar}1 1 {bar}2 2 {bar}3 3", "OK"),
        (0, "DUNLIN MIGRATE-SLOT 5061 TO 2 BEGIN", "OK"),
        (1, "DUNLIN MIGRATE-SLOT 5061 TO 2 KEY {bar}2 {bar}3", "OK"),
        (0, "MGET {bar}2 {bar}3", &asked),
        (0, "GET {bar}1", "1"),
        (2, "ASKING", "OK"),
        (2, "SET {bar}new 4", "OK"),
        (1, "DUNLIN MIGRATE-SLOT 5061 TO 2 CANCEL", "OK"),
        (0, "MGET {bar}1 {bar}2 {bar}3 {bar}new", "[1, 2, 3, 4]"),
        (0, "CLUSTER COUNTKEYSINSLOT 5061", "4"),
        (2, "DBSIZE", "0"),
    ]);
    assert!(!nodes.text(2, "CLUSTER NODES").contains("5061-"), "the slot is no longer open");
}

#[test]
fn a_client_of_any_node_orders_the_others_about() {
    let mut three = Nodes::start();
    three.expect(&[(0, "SET bar 1", "OK"), (0, "SET {bar}2 1", "OK")]);
    let ask = three.moved(5061, 2).replace("MOVED", "ASK");
    three.expect(&[
        (1, "DUNLIN MIGRATE-SLOT 5061 TO 2 BEGIN", "OK"),
        (1, "DUNLIN MIGRATE-SLOT 5061 TO 2 KEYS 1", "OK"),
        (0, "MGET bar {bar}2", "TRYAGAIN Multiple keys request during rehashing of slot"),
        (0, "GET {bar}3", &ask),
        (1, "DUNLIN MIGRATE-SLOT 5061 TO 2 FINISH", "OK"),
        (2, "GET bar", "1"),
        (1, "DUNLIN MIGRATE-SLOT 5061 TO 2", "ERR slot 5061 cannot move: node 2 owns it already"),
        (1, "DUNLIN MIGRATE-SLOT 5061 TO 3", "ERR no node 3"),
        (1, "DUNLIN MIGRATE-SLOT 5061 TO 0 KEY bar abc", "ERR slot 5061 cannot move: the key is in slot 7638"),
        (1, "DUNLIN NODE 2 KILL", "OK"),
        (1, "DUNLIN NODE 2 KILL", "ERR node 2 is down"),
        (1, "DUNLIN MIGRATE-SLOT 0 TO 2", "ERR node 2 is down"),
        (0, "DUNLIN NODE 2 RESTART EMPTY", "OK"),
        (0, "DUNLIN NODE 2 RESTART", "ERR node 2 is up"),
        (
            0,
            "DUNLIN NODE 2 STOP",
            "ERR syntax error, usage: DUNLIN NODE <ADD [REPLICA-OF number] | number <KILL | PAUSE | RESUME | RESTART [EMPTY] | REMOVE>>",
        ),
    ]);
    let Reply::Array(nodes) = three.ask(0, "DUNLIN NODES") else { panic!("it is a list") };
    let field = |node: &Reply, name: &str| {
        let Reply::Map(pairs) = node else { panic!("{node:?} is no map") };
        pairs.iter().find(|(field, _)| *field == name).and_then(|(_, value)| value.integer())
    };
    assert_eq!([0, 1, 2].map(|number| field(&nodes[number], "slots")), [Some(5460), Some(5462), Some(5462)]);
    for (name, value) in [("up", 1), ("lag-ms", 0), ("lag-writes", 0)] {
        assert_eq!([0, 1, 2].map(|number| field(&nodes[number], name)), [Some(value); 3], "{name}");
    }

    let mut plain = Server::start().expect("it starts").client().expect("there is room");
    let refused = plain.call(["DUNLIN", "NODE", "0", "KILL"]);
    assert_eq!(refused, Err(CallError::Refused("ERR no node 0".to_owned())));
    assert_eq!(plain.call(["DUNLIN", "NODES"]), Ok(Reply::Array(Vec::new())));
}

#[test]
fn a_dump_of_a_key_shows_what_that_node_has() {
    let mut nodes = Nodes::with_replicas();
    let dumped = "SELECT 0\nSET bar 1\n";
    nodes.expect(&[
        (0, "SET bar 1", "OK"),
        (0, "DUNLIN DUMP KEY bar", dumped),
        (3, "DUNLIN DUMP KEY bar", dumped),
        (1, "DUNLIN DUMP KEY bar", ""),
    ]);
    nodes.open();
    assert_eq!(nodes.migrate(0, 1, "bar"), "OK");
    nodes.expect(&[
        (0, "DUNLIN DUMP KEY bar", ""),
        (3, "DUNLIN DUMP KEY bar", ""),
        (1, "DUNLIN DUMP KEY bar", dumped),
        (4, "DUNLIN DUMP KEY bar", dumped),
    ]);
}
