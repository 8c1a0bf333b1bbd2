//! A node of a cluster: where it sends clients, and what the commands about the cluster say and do.
//!
//! The texts are those of a real cluster of Redis 8.0.6, asked.

use dunlin::engine::Flow;
use dunlin::engine::exec::cluster::apply_claim;

use crate::growth::measure::too_fast;
use crate::node::{PORTS, node, node_of_three};
use crate::support::processor_time::processor_time;
use crate::world::World;

fn id(port: u16) -> String {
    node(port).id.to_string()
}

/// A node that knows no other.
fn alone() -> World {
    World::with(|settings| settings.cluster_mut().is_enabled = true)
}

/// Tells every node the claim of the one at `from`.
fn tell(nodes: &mut [World], from: usize) {
    let claim = nodes[from].engine.peers.cluster.as_ref().expect("it is a node").claim();
    nodes.iter_mut().for_each(|node| apply_claim(&mut node.engine, &claim));
}

#[track_caller]
fn expect(world: &mut World, table: &[(&str, &str)]) {
    for (command, reply) in table {
        assert_eq!(world.ask(command), format!("{reply}\r\n"), "{command}");
    }
}

#[test]
fn a_key_is_served_by_the_owner_of_its_slot_alone() {
    let mut node = node_of_three(0);
    expect(
        &mut node,
        &[
            ("SET bar 1", "+OK"),
            ("GET bar", "$1\r\n1"),
            ("GET foo", "-MOVED 12182 127.0.0.1:7003"),
            ("SET abc 1", "-MOVED 7638 127.0.0.1:7002"),
            ("SORT bar STORE foo", "-CROSSSLOT Keys in request don't hash to the same slot"),
            ("MGET bar foo", "-CROSSSLOT Keys in request don't hash to the same slot"),
            ("WATCH bar foo", "-CROSSSLOT Keys in request don't hash to the same slot"),
            ("EVAL x 2 bar foo", "-CROSSSLOT Keys in request don't hash to the same slot"),
            ("MSET {bar}1 a {bar}2 b", "+OK"),
            ("MSET {foo}1 a {foo}2 b", "-MOVED 12182 127.0.0.1:7003"),
            ("XREAD STREAMS foo 0", "-MOVED 12182 127.0.0.1:7003"),
            ("MIGRATE h 1 foo 0 1", "-MOVED 12182 127.0.0.1:7003"),
            ("DBSIZE", ":3"),
            ("SUNSUBSCRIBE foo", "-MOVED 12182 127.0.0.1:7003"),
            ("PING", "+PONG"),
        ],
    );
}

#[test]
fn the_endpoint_of_a_redirect_is_the_one_that_the_settings_prefer() {
    let mut node = node_of_three(0);
    expect(
        &mut node,
        &[
            ("CONFIG SET cluster-preferred-endpoint-type hostname", "+OK"),
            ("GET foo", "-MOVED 12182 ?:7003"),
            ("CONFIG SET cluster-preferred-endpoint-type unknown-endpoint", "+OK"),
            ("GET foo", "-MOVED 12182 :7003"),
            ("CONFIG SET cluster-announce-hostname host-1.test", "+OK"),
            (
                "CONFIG SET cluster-announce-hostname a_b",
                "-ERR CONFIG SET failed (possibly related to argument 'cluster-announce-hostname') - Hostnames may only \
                 contain alphanumeric characters, hyphens or dots",
            ),
        ],
    );
}

#[test]
fn a_node_without_all_slots_is_down() {
    let mut node = alone();
    expect(
        &mut node,
        &[
            ("GET bar", "-CLUSTERDOWN Hash slot not served"),
            ("MGET bar foo", "-CLUSTERDOWN Hash slot not served"),
            ("CLUSTER ADDSLOTS 5061", "+OK"),
            ("MGET bar foo", "-CROSSSLOT Keys in request don't hash to the same slot"),
            ("GET bar", "-CLUSTERDOWN The cluster is down"),
            ("SPUBLISH bar m", ":0"),
            ("CONFIG SET cluster-allow-pubsubshard-when-down no", "+OK"),
            ("SPUBLISH bar m", "-CLUSTERDOWN The cluster is down"),
            ("CONFIG SET cluster-allow-reads-when-down yes", "+OK"),
            ("GET bar", "$-1"),
            ("SET bar 1", "-CLUSTERDOWN The cluster is down and only accepts read commands"),
            ("CONFIG SET cluster-require-full-coverage no", "+OK"),
            ("SET bar 1", "+OK"),
            ("GET foo", "-CLUSTERDOWN Hash slot not served"),
        ],
    );
}

#[test]
fn a_transaction_is_one_request_with_the_keys_of_all() {
    let mut node = node_of_three(0);
    let cross_slot = "-CROSSSLOT Keys in request don't hash to the same slot";
    expect(
        &mut node,
        &[
            ("MULTI", "+OK"),
            ("SET bar 1", "+QUEUED"),
            ("SET {b}x 1", "+QUEUED"),
            ("EXEC", cross_slot),
            ("EXEC", "-ERR EXEC without MULTI"),
            ("MULTI", "+OK"),
            ("SET foo 1", "-MOVED 12182 127.0.0.1:7003"),
            ("SET bar 1", "+QUEUED"),
            ("EXEC", "-EXECABORT Transaction discarded because of previous errors."),
            ("GET bar", "$-1"),
        ],
    );
}

#[test]
fn the_acl_refuses_before_the_redirect_and_memory_after_it() {
    let mut node = node_of_three(0);
    node.ask("ACL SETUSER default resetkeys ~ba*");
    assert_eq!(node.ask("GET foo"), "-NOPERM No permissions to access a key\r\n");
    node.ask("ACL SETUSER default allkeys");
    node.ask("CONFIG SET maxmemory 1");
    expect(
        &mut node,
        &[
            ("SET foo 1", "-MOVED 12182 127.0.0.1:7003"),
            ("SET bar 1", "-OOM command not allowed when used memory > 'maxmemory'."),
        ],
    );
}

#[test]
fn a_slot_that_migrates_is_served_as_far_as_its_keys_are_here() {
    let mut node = node_of_three(0);
    node.ask("MSET {bar}1 a {bar}2 b");
    node.ask(&format!("CLUSTER SETSLOT 5061 MIGRATING {}", id(7002)));
    expect(
        &mut node,
        &[
            ("GET {bar}1", "$1\r\na"),
            ("GET {bar}3", "-ASK 5061 127.0.0.1:7002"),
            ("MGET {bar}1 {bar}3", "-TRYAGAIN Multiple keys request during rehashing of slot"),
            ("MGET {bar}3 {bar}4", "-ASK 5061 127.0.0.1:7002"),
            ("MGET {bar}1 {bar}2", "*2\r\n$1\r\na\r\n$1\r\nb"),
            ("BLPOP {bar}3 0", "-ASK 5061 127.0.0.1:7002"),
            ("SPUBLISH bar m", ":0"),
            ("MIGRATE 127.0.0.1 1 {bar}3 0 1", "+NOKEY"),
            ("MULTI", "+OK"),
            ("GET {bar}1", "+QUEUED"),
        ],
    );
    let other = node.join();
    node.ask_as(other, "DEL {bar}1");
    expect(&mut node, &[("EXEC", "-ASK 5061 127.0.0.1:7002")]);
    let id = id(7002);
    let refused = "-ERR Can't assign hashslot 5061 to a different node while I still hold keys for this hash slot.";
    expect(
        &mut node,
        &[
            (&format!("CLUSTER SETSLOT 5061 NODE {id}"), refused),
            ("DEL {bar}2", ":1"),
            (&format!("CLUSTER SETSLOT 5061 NODE {id}"), "+OK"),
            ("GET {bar}1", "-MOVED 5061 127.0.0.1:7002"),
        ],
    );
}

#[test]
fn a_slot_that_is_imported_is_served_to_those_who_ask() {
    let mut node = node_of_three(1);
    node.ask(&format!("CLUSTER SETSLOT 5061 IMPORTING {}", id(7001)));
    let moved = "-MOVED 5061 127.0.0.1:7001";
    expect(
        &mut node,
        &[
            ("GET {bar}1", moved),
            ("ASKING", "+OK"),
            ("SET {bar}1 a", "+OK"),
            ("GET {bar}1", moved),
            ("ASKING", "+OK"),
            ("MGET {bar}1 {bar}2", "-TRYAGAIN Multiple keys request during rehashing of slot"),
            ("ASKING", "+OK"),
            ("MGET {bar}2 {bar}2", "*2\r\n$-1\r\n$-1"),
            ("ASKING", "+OK"),
            ("NOSUCH", "-ERR unknown command 'NOSUCH', with args beginning with: "),
            ("GET {bar}1", moved),
            ("ASKING", "+OK"),
            ("MULTI", "+OK"),
            ("GET {bar}1", "+QUEUED"),
            ("GET {bar}2", "+QUEUED"),
            ("EXEC", "-TRYAGAIN Multiple keys request during rehashing of slot"),
            ("ASKING", "+OK"),
            ("MULTI", "+OK"),
            ("GET {bar}1", "+QUEUED"),
            ("EXEC", "*1\r\n$1\r\na"),
            ("GET {bar}1", moved),
            ("MULTI", "+OK"),
            ("ASKING", "+QUEUED"),
            ("GET {bar}1", moved),
            ("DISCARD", "+OK"),
        ],
    );
}

#[test]
fn a_slot_that_was_given_away_is_followed_by_all_nodes() {
    let mut nodes = [0, 1, 2].map(node_of_three);
    let (source, target) = (id(7001), id(7002));
    nodes[1].ask(&format!("CLUSTER SETSLOT 5061 IMPORTING {source}"));
    nodes[0].ask(&format!("CLUSTER SETSLOT 5061 MIGRATING {target}"));
    assert_eq!(nodes[1].ask(&format!("CLUSTER SETSLOT 5061 NODE {target}")), "+OK\r\n");
    tell(&mut nodes, 1);
    assert_eq!(nodes[0].ask("GET bar"), "-MOVED 5061 127.0.0.1:7002\r\n");
    assert_eq!(nodes[1].ask("GET bar"), "$-1\r\n");
    assert_eq!(nodes[2].ask("GET bar"), "-MOVED 5061 127.0.0.1:7002\r\n");
    let epochs = nodes.map(|mut node| node.ask("CLUSTER INFO").split("epoch:").nth(1).unwrap_or("").to_owned());
    assert!(epochs.iter().all(|epoch| epoch.starts_with('4')), "{epochs:?}");
}

#[test]
fn a_claim_with_an_older_epoch_changes_nothing_and_keys_of_lost_slots_are_deleted() {
    let mut nodes = [0, 1, 2].map(node_of_three);
    nodes[0].ask("SET bar 1");
    // The first node has epoch 1, the second one 2.
    nodes[0].ask("CLUSTER DELSLOTS 7638");
    nodes[0].ask("CLUSTER ADDSLOTS 7638");
    tell(&mut nodes, 0);
    assert_eq!(nodes[1].ask("GET abc"), "$-1\r\n");
    nodes[1].ask("CLUSTER DELSLOTS 5061");
    nodes[1].ask("CLUSTER ADDSLOTS 5061");
    tell(&mut nodes, 1);
    assert_eq!(nodes[0].ask("GET bar"), "-MOVED 5061 127.0.0.1:7002\r\n");
    assert_eq!(nodes[0].ask("DBSIZE"), ":0\r\n");
}

#[test]
fn a_script_accesses_keys_of_this_node_and_of_one_slot_if_it_says_nothing_else() {
    let mut node = node_of_three(0);
    let mut run = |source: &[u8], keys: &[&[u8]]| {
        let count = keys.len().to_string();
        let words = [&[b"EVAL", source, count.as_bytes()], keys].concat();
        let reply = String::from_utf8_lossy(&node.send(node.client, &words).0).into_owned();
        reply.split(" script: ").next().unwrap_or_default().trim_end().to_owned()
    };
    let lenient = b"redis.call('get', 'bar') return redis.call('get', '{b}x')";
    let strict = b"#!lua\nredis.call('get', 'bar') return redis.call('get', '{b}x')";
    let open = b"#!lua flags=allow-cross-slot-keys\nredis.call('get', 'bar') return redis.call('get', '{b}x')";
    assert_eq!(run(lenient, &[]), "$-1");
    assert_eq!(run(open, &[]), "$-1");
    assert_eq!(run(strict, &[]), "-ERR Script attempted to access keys that do not hash to the same slot");
    assert_eq!(
        run(b"return redis.call('get', 'foo')", &[]),
        "-ERR Script attempted to access a non local key in a cluster node"
    );
    assert_eq!(
        run(b"return redis.call('mget', 'foo', 'bar')", &[]),
        "-ERR Command 'mget' in script attempted to access keys that don't hash to the same slot"
    );
    assert_eq!(
        run(b"#!lua flags=no-cluster\nreturn 1", &[]),
        "-ERR Can not run script on cluster, 'no-cluster' flag is set."
    );
    assert_eq!(run(b"return 1", &[b"foo"]), "-MOVED 12182 127.0.0.1:7003");
}

#[test]
fn a_client_that_waits_for_a_key_is_sent_on_when_the_slot_leaves() {
    let mut node = node_of_three(0);
    let (waiting, other) = (node.join(), node.join());
    assert_eq!(node.ask_as(waiting, "BLPOP bar 0").1, Flow::Block);
    node.ask(&format!("CLUSTER SETSLOT 5061 NODE {}", id(7002)));
    assert_eq!(node.take_pushes(waiting), "-MOVED 5061 127.0.0.1:7002\r\n");
    assert_eq!(node.ask_as(other, "BLPOP {b}x 0").1, Flow::Block);
    node.ask("CLUSTER DELSLOTS 16000");
    assert_eq!(node.take_pushes(other), "-CLUSTERDOWN The cluster is down\r\n");
}

#[test]
fn a_listener_of_a_shard_channel_is_unsubscribed_when_the_slot_leaves() {
    let mut node = node_of_three(0);
    let listener = node.join();
    node.ask_as(listener, "SSUBSCRIBE bar");
    node.ask_as(listener, "SSUBSCRIBE {b}x");
    assert_eq!(node.ask("SSUBSCRIBE foo"), "-MOVED 12182 127.0.0.1:7003\r\n");
    node.ask(&format!("CLUSTER SETSLOT 5061 NODE {}", id(7002)));
    assert_eq!(node.take_pushes(listener), "*3\r\n$12\r\nsunsubscribe\r\n$3\r\nbar\r\n:1\r\n");
}

#[test]
fn commands_of_several_databases_or_of_replication_are_refused() {
    let mut node = node_of_three(0);
    let by = "-ERR BY option of SORT denied in Cluster mode when keys formed by the pattern may be in different slots.";
    let get = by.replace("BY", "GET");
    expect(
        &mut node,
        &[
            ("SELECT 0", "+OK"),
            ("SELECT 1", "-ERR SELECT is not allowed in cluster mode"),
            ("SWAPDB 0 1", "-ERR SWAPDB is not allowed in cluster mode"),
            ("MOVE bar 1", "-ERR MOVE is not allowed in cluster mode"),
            ("MOVE foo 1", "-MOVED 12182 127.0.0.1:7003"),
            ("REPLICAOF NO ONE", "-ERR REPLICAOF not allowed in cluster mode."),
            ("FAILOVER", "-ERR FAILOVER not allowed in cluster mode. Use CLUSTER FAILOVER command instead."),
            ("SORT bar BY w*", by),
            ("SORT bar GET x*", &get),
            ("SORT bar BY nosort", "*0"),
            ("SORT bar GET foo", &get),
            ("SORT bar GET bar", "*0"),
            ("SORT bar BY {bar}* GET {bar}x* GET #", "*0"),
        ],
    );
}

#[test]
fn slots_are_added_and_deleted_as_a_whole() {
    let mut node = alone();
    expect(
        &mut node,
        &[
            ("CLUSTER ADDSLOTS x", "-ERR Invalid or out of range slot"),
            ("CLUSTER ADDSLOTS 16384", "-ERR Invalid or out of range slot"),
            ("CLUSTER ADDSLOTS 1 1", "-ERR Slot 1 specified multiple times"),
            ("CLUSTER ADDSLOTS 1 2", "+OK"),
            ("CLUSTER ADDSLOTS 3 2", "-ERR Slot 2 is already busy"),
            ("CLUSTER ADDSLOTSRANGE 5 4", "-ERR start slot number 5 is greater than end slot number 4"),
            ("CLUSTER ADDSLOTSRANGE 5 6 7", "-ERR wrong number of arguments for 'cluster|addslotsrange' command"),
            ("CLUSTER ADDSLOTSRANGE 5 6 6 7", "-ERR Slot 6 specified multiple times"),
            ("CLUSTER DELSLOTS 3", "-ERR Slot 3 is already unassigned"),
            ("CLUSTER DELSLOTSRANGE 1 2", "+OK"),
            ("CLUSTER ADDSLOTSRANGE 0 16383", "+OK"),
            ("SET bar 1", "+OK"),
            ("CLUSTER FLUSHSLOTS", "-ERR DB must be empty to perform CLUSTER FLUSHSLOTS."),
            ("CLUSTER RESET", "-ERR CLUSTER RESET can't be called with master nodes containing keys"),
            ("DEL bar", ":1"),
            ("CLUSTER FLUSHSLOTS", "+OK"),
            ("SET bar 1", "-CLUSTERDOWN Hash slot not served"),
        ],
    );
}

#[test]
fn a_node_tells_which_keys_are_in_a_slot() {
    let mut node = node_of_three(0);
    node.ask("MSET {bar}1 a {bar}2 b {bar}3 c");
    node.ask("EXPIRE {bar}3 10");
    expect(
        &mut node,
        &[
            ("CLUSTER KEYSLOT {bar}1", ":5061"),
            ("CLUSTER COUNTKEYSINSLOT 5061", ":3"),
            ("CLUSTER COUNTKEYSINSLOT 16384", "-ERR Invalid slot"),
            ("CLUSTER COUNTKEYSINSLOT x", "-ERR value is not an integer or out of range"),
            ("CLUSTER GETKEYSINSLOT 5061 -1", "-ERR Invalid slot or number of keys"),
            ("CLUSTER GETKEYSINSLOT 5061 0", "*0"),
        ],
    );
    assert!(node.ask("CLUSTER GETKEYSINSLOT 5061 2").starts_with("*2\r\n$6\r\n{bar}"));
    node.pass_ms(10_001);
    node.expire();
    assert_eq!(node.ask("CLUSTER COUNTKEYSINSLOT 5061"), ":2\r\n");
    node.ask("RENAME {bar}1 {bar}2");
    assert_eq!(node.ask("CLUSTER COUNTKEYSINSLOT 5061"), ":1\r\n");
    node.ask("FLUSHALL");
    assert_eq!(node.ask("CLUSTER COUNTKEYSINSLOT 5061"), ":0\r\n");
}

#[test]
fn a_walk_through_a_slot_takes_as_long_as_the_slot_has_keys() {
    let walk = |keys: usize| {
        let mut node = node_of_three(0);
        for number in 0..keys {
            let (one, other) = (format!("{{bar}}{number}"), format!("{{b}}{number}"));
            node.send(node.client, &[b"SET", one.as_bytes(), b"1"]);
            node.send(node.client, &[b"SET", other.as_bytes(), b"1"]);
        }
        let (start, mut cursor, mut steps) = (processor_time(), "0".to_owned(), 0);
        loop {
            let reply = node.ask(&format!("SCAN {cursor} MATCH {{bar}}* COUNT 10"));
            reply.split("\r\n").nth(2).expect("the reply has a cursor").clone_into(&mut cursor);
            steps += 1;
            if cursor == "0" {
                assert!(steps <= keys.div_ceil(10), "{steps} steps through {keys} keys");
                return processor_time() - start;
            }
        }
    };
    assert_eq!(too_fast("SCAN of a slot", walk), None);
}

#[test]
fn what_a_node_cannot_do_is_refused_in_the_words_of_redis() {
    let mut node = node_of_three(0);
    let (mine, other, nobody) = (id(7001), id(7002), "0".repeat(40));
    let ask = |words: &str| format!("CLUSTER {words}");
    let table: Vec<(String, String)> = vec![
        (ask(&format!("SETSLOT 7638 MIGRATING {other}")), "I'm not the owner of hash slot 7638".into()),
        (ask(&format!("SETSLOT 1 IMPORTING {other}")), "I'm already the owner of hash slot 1".into()),
        (ask(&format!("SETSLOT 1 MIGRATING {nobody}")), format!("I don't know about node {nobody}")),
        (ask(&format!("SETSLOT 1 NODE {nobody}")), format!("Unknown node {nobody}")),
        (ask("SETSLOT 1 x"), "Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP".into()),
        (ask("FAILOVER"), "You should send CLUSTER FAILOVER to a replica".into()),
        (ask("FAILOVER x"), "syntax error".into()),
        (ask(&format!("REPLICATE {nobody}")), format!("Unknown node {nobody}")),
        (ask(&format!("REPLICATE {mine}")), "Can't replicate myself".into()),
        (
            ask(&format!("REPLICATE {other}")),
            "To set a master the node must be empty and without assigned slots.".into(),
        ),
        (ask(&format!("FORGET {mine}")), "I tried hard but I can't forget myself...".into()),
        (ask(&format!("FORGET {nobody}")), format!("Unknown node {nobody}")),
        (ask("RESET x"), "syntax error".into()),
        (ask("RESET SOFT x"), "unknown subcommand or wrong number of arguments for 'RESET'. Try CLUSTER HELP.".into()),
        (ask("MEET x 1"), "Invalid node address specified: x:1".into()),
        (ask("MEET 127.0.0.1 x"), "Invalid base port specified: x".into()),
        (ask("MEET 127.0.0.1 1 x"), "Invalid bus port specified: x".into()),
        (ask("SET-CONFIG-EPOCH -1"), "Invalid config epoch specified: -1".into()),
        (
            ask("SET-CONFIG-EPOCH 1"),
            "The user can assign a config epoch only when the node does not know any other node.".into(),
        ),
        (ask(&format!("REPLICAS {nobody}")), format!("Unknown node {nobody}")),
    ];
    for (command, error) in table {
        assert_eq!(node.ask(&command), format!("-ERR {error}\r\n"), "{command}");
    }
    assert_eq!(node.ask(&ask(&format!("REPLICAS {other}"))), "*0\r\n");
    assert_eq!(node.ask(&ask(&format!("COUNT-FAILURE-REPORTS {other}"))), ":0\r\n");
}

#[test]
fn epochs_ascend() {
    let mut node = alone();
    expect(
        &mut node,
        &[
            ("CLUSTER SET-CONFIG-EPOCH 7", "+OK"),
            ("CLUSTER SET-CONFIG-EPOCH 8", "-ERR Node config epoch is already non-zero"),
            ("CLUSTER BUMPEPOCH", "+STILL 7"),
            ("CLUSTER RESET HARD", "+OK"),
            ("CLUSTER BUMPEPOCH", "+BUMPED 1"),
        ],
    );
}

#[test]
fn a_reset_forgets_all_and_a_hard_one_changes_the_ids() {
    let mut node = node_of_three(0);
    let ids = |node: &mut World| (node.ask("CLUSTER MYID"), node.ask("CLUSTER MYSHARDID"));
    let before = ids(&mut node);
    assert_eq!(before.0, format!("$40\r\n{}\r\n", id(7001)));
    assert_eq!(node.ask("CLUSTER RESET SOFT"), "+OK\r\n");
    assert_eq!(ids(&mut node), before);
    assert_eq!(node.ask("CLUSTER SLOTS"), "*0\r\n");
    node.ask("CLUSTER RESET HARD");
    let after = ids(&mut node);
    assert!(after.0 != before.0 && after.1 != before.1);
}

#[test]
fn a_node_describes_its_cluster() {
    let mut node = node_of_three(0);
    node.ask(&format!("CLUSTER SETSLOT 1 MIGRATING {}", id(7002)));
    let [a, b, c] = PORTS.map(id);
    let lines = format!(
        "{a} 127.0.0.1:7001@17001 myself,master - 0 0 1 connected 0-5460 [1->-{b}]\n\
         {b} 127.0.0.1:7002@17002 master - 0 1767268800000 2 connected 5461-10922\n\
         {c} 127.0.0.1:7003@17003 master - 0 1767268800000 3 connected 10923-16383\n"
    );
    assert_eq!(node.ask("CLUSTER NODES"), format!("${}\r\n{lines}\r\n", lines.len()));
    let owner = |range: &str, port: u16| {
        let id = id(port);
        format!("*3\r\n{range}*4\r\n$9\r\n127.0.0.1\r\n:{port}\r\n$40\r\n{id}\r\n*0\r\n")
    };
    let slots =
        [owner(":0\r\n:5460\r\n", 7001), owner(":5461\r\n:10922\r\n", 7002), owner(":10923\r\n:16383\r\n", 7003)];
    assert_eq!(node.ask("CLUSTER SLOTS"), format!("*3\r\n{}", slots.concat()));
    let info = node.ask("CLUSTER INFO");
    for line in ["cluster_state:ok", "cluster_slots_assigned:16384", "cluster_known_nodes:3", "cluster_size:3"] {
        assert!(info.contains(&format!("{line}\r\n")), "{info}");
    }
    assert!(node.ask("HELLO 3").contains("$4\r\nmode\r\n$7\r\ncluster\r\n"));
    assert!(node.ask("INFO server").contains("redis_mode:cluster\r\n"));
    assert!(node.ask("INFO cluster").contains("cluster_enabled:1\r\n"));
}

#[test]
fn a_server_by_itself_refuses_all_of_it() {
    let mut world = World::fresh();
    for command in ["CLUSTER INFO", "CLUSTER HELP", "CLUSTER ADDSLOTS x", "ASKING", "READONLY", "READWRITE"] {
        assert_eq!(world.ask(command), "-ERR This instance has cluster support disabled\r\n", "{command}");
    }
}
