//! What redis-cli does to clusters, by `--cluster` and `--rdb`, against nodes of the program and nodes of Redis's own.

use std::fs;
use std::path::Path;

use dunlin::Server;
use redis::{RedisResult, Value, cmd};

use crate::binary::Binary;
use crate::cluster::{Cluster, Node};
use crate::programs::{Program, run};
use crate::support::process::{self, Process};
use crate::timeout::wait_until;

/// Runs `redis-cli --cluster` with these words.
fn cluster_command(cli: &Program, words: &[&str]) -> String {
    run(cli.command().arg("--cluster").args(words), "")
}

#[test]
fn redis_cli_creates_checks_reshards_and_takes_apart_a_cluster() {
    let Some(cli) = Program::find("redis-cli", &["--version"]) else { return };
    let mut cluster = Cluster::start(0);
    let places = cluster.places();
    let [first, second, third] = [&*places[0], &*places[1], &*places[2]];

    assert!(cluster_command(&cli, &["check", first]).contains("[OK] All 16384 slots covered."));
    cluster.reset();
    let created = cluster_command(&cli, &["create", first, second, third, "--cluster-yes"]);
    assert!(created.contains("[OK] All 16384 slots covered."), "{created}");
    for node in &mut cluster.nodes {
        node.id = cmd("CLUSTER").arg("MYID").query(&mut node.connection).expect("it has a new id");
    }

    let sets: String = (0..60).map(|number| format!("SET key:{number} {number}\n")).collect();
    run(cli.command().args(["-c", "-p", &cluster.program.port()]), &sets);
    let third_id = cluster.nodes[2].id.clone();
    let to_third = ["--cluster-from", "all", "--cluster-to", &third_id, "--cluster-slots", "300", "--cluster-yes"];
    cluster_command(&cli, &[&["reshard", first], &to_third[..]].concat());
    assert!(cluster_command(&cli, &["check", second]).contains("[OK] All nodes agree about slots configuration."));
    assert!(cluster_command(&cli, &["info", first]).contains("[OK] 60 keys in 3 masters."));

    let first_id = cluster.nodes[0].id.clone();
    let from_third =
        ["--cluster-from", &third_id, "--cluster-to", &first_id, "--cluster-slots", "5761", "--cluster-yes"];
    cluster_command(&cli, &[&["reshard", first], &from_third[..]].concat());
    let removed = cluster_command(&cli, &["del-node", first, &third_id]);
    assert!(removed.contains("Sending CLUSTER RESET SOFT"), "{removed}");
    assert!(cluster_command(&cli, &["info", first]).contains("[OK] 60 keys in 2 masters."));
    let added = cluster_command(&cli, &["add-node", third, first]);
    assert!(added.contains("[OK] New node added correctly."), "{added}");
    cluster_command(&cli, &["rebalance", first, "--cluster-use-empty-masters", "--cluster-threshold", "20"]);
    assert!(cluster_command(&cli, &["info", third]).contains("[OK] 60 keys in 3 masters."));
}

/// What Redis's own cli sends to mend a slot that a migration has left open, to call all nodes, to import the keys of
/// another server, and to set the timeout, which needs a configuration file.
#[test]
fn redis_cli_fixes_a_cluster_calls_its_nodes_and_imports_keys() {
    let Some(cli) = Program::find("redis-cli", &["--version"]) else { return };
    let mut cluster = Cluster::start(0);
    let places = cluster.places();
    let (first, keys) = (&*places[0], |cli: &Program| cluster_command(cli, &["info", &places[0]]));
    run(cli.command().args(["-c", "-p", &cluster.program.port()]), "SET {bar}1 1\nSET {bar}2 2\nSET abc 3\n");

    let (source, target) = (cluster.nodes[0].id.clone(), cluster.nodes[1].id.clone());
    cluster.set_slot(1, 5061, "IMPORTING", &source).expect("it may come");
    cluster.set_slot(0, 5061, "MIGRATING", &target).expect("it may go");
    let migrate = ["MIGRATE", "127.0.0.1", &cluster.nodes[1].port.to_string(), "{bar}1", "0", "5000"];
    let mut moved = cmd(migrate[0]);
    let _: Value = moved.arg(&migrate[1..]).query(&mut cluster.nodes[0].connection).expect("the key moves");
    let checked = cli.command().args(["--cluster", "check", first]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&checked.stdout).contains("[WARNING] The following slots are open: 5061."));
    let fixed = cluster_command(&cli, &["fix", first, "--cluster-yes"]);
    assert!(fixed.contains(">>> Fixing open slot 5061"), "{fixed}");
    assert!(cluster_command(&cli, &["check", first]).contains("[OK] All 16384 slots covered."));
    assert_eq!(keys(&cli).matches("[OK] 3 keys in 3 masters.").count(), 1);

    let called = cluster_command(&cli, &["call", first, "DBSIZE"]);
    assert_eq!(places.iter().filter(|place| called.contains(&format!("{place}: "))).count(), 3, "{called}");

    let other = Binary::start_with(&[]);
    let from = format!("127.0.0.1:{}", other.port());
    run(cli.command().args(["-p", &other.port()]), "SET one 1\nRPUSH two a b\nHSET three field 3\n");
    let imported = cluster_command(&cli, &["import", first, "--cluster-from", &from, "--cluster-copy"]);
    assert!(imported.contains("*** Importing 3 keys from DB 0"), "{imported}");
    assert_eq!(keys(&cli).matches("[OK] 6 keys in 3 masters.").count(), 1);
    assert_eq!(run(cli.command().args(["-p", &other.port(), "DBSIZE"]), "").trim(), "3");

    let set = cluster_command(&cli, &["set-timeout", first, "20000"]);
    assert_eq!(set.matches("ERR The server is running without a config file").count(), 3, "{set}");
}

/// The nodes share the file, whose port is that of the first one.
#[test]
fn redis_cli_sets_the_timeout_of_nodes_that_have_a_configuration_file() {
    let Some(cli) = Program::find("redis-cli", &["--version"]) else { return };
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("set-timeout.conf");
    fs::write(&file, "port 0\ncluster 3\n").expect("it can be written");
    let program = Binary::start_with_file(&file);
    let set = cluster_command(&cli, &["set-timeout", &format!("127.0.0.1:{}", program.port()), "20000"]);
    assert!(set.contains("New node timeout set. 3 OK, 0 ERR."), "{set}");
    let text = fs::read_to_string(&file).expect("it is there");
    assert!(text.contains("\ncluster-node-timeout 20000\n"), "{text}");
    let port = |text: &str| text.lines().find_map(|line| line.strip_prefix("port ").map(str::to_owned));
    assert!(port(&text).is_some_and(|port| port == "0" || port == program.port()), "{text}");
    fs::remove_file(&file).expect("it is there");
}

#[test]
fn redis_cli_creates_a_cluster_with_replicas() {
    let Some(cli) = Program::find("redis-cli", &["--version"]) else { return };
    let mut cluster = Cluster::start(1);
    let places = cluster.places();
    cluster.reset();
    let words = ["create"].into_iter().chain(places.iter().map(String::as_str));
    let created = cluster_command(&cli, &words.chain(["--cluster-replicas", "1", "--cluster-yes"]).collect::<Vec<_>>());
    assert!(created.contains("[OK] All 16384 slots covered."), "{created}");
    assert_eq!(created.matches("1 additional replica(s)").count(), 3, "{created}");
    run(cli.command().args(["-c", "-p", &cluster.program.port()]), "SET bar 1\nSET abc 1\nSET foo 1\n");
    for node in &mut cluster.nodes {
        let keys: i64 = cmd("DBSIZE").query(&mut node.connection).expect("it answers");
        assert_eq!(keys, 1, "each key is at its primary and at the replica of that");
    }
}

#[test]
fn redis_cli_adds_a_replica_and_covers_a_slot_without_owner() {
    let Some(cli) = Program::find("redis-cli", &["--version"]) else { return };
    let mut cluster = Cluster::start(1);
    let places = cluster.places();
    let (first, replica) = (&*places[0], &*places[3]);
    run(cli.command().args(["-c", "-p", &cluster.program.port()]), "SET bar 1\n");

    let [primary_id, replica_id] = [0, 3].map(|node: usize| cluster.nodes[node].id.clone());
    let removed = cluster_command(&cli, &["del-node", first, &replica_id]);
    assert!(removed.contains("Sending CLUSTER RESET SOFT"), "{removed}");
    let of_first = ["--cluster-slave", "--cluster-master-id", &primary_id];
    let added = cluster_command(&cli, &[&["add-node", replica, first], &of_first[..]].concat());
    assert!(added.contains("[OK] New node added correctly."), "{added}");
    let replicas: Vec<String> =
        cmd("CLUSTER").arg("REPLICAS").arg(&primary_id).query(&mut cluster.nodes[1].connection).expect("it answers");
    assert!(replicas.len() == 1 && replicas[0].starts_with(&replica_id), "{replicas:?}");
    let keys: i64 = cmd("DBSIZE").query(&mut cluster.nodes[3].connection).expect("it answers");
    assert_eq!(keys, 1, "the replica has the key of its primary");

    for node in &mut cluster.nodes[..3] {
        let () = cmd("CLUSTER").arg("DELSLOTS").arg(3300).query(&mut node.connection).expect("the slot has an owner");
    }
    let checked = cli.command().args(["--cluster", "check", first]).output().expect("it runs");
    let checked = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.contains("[ERR] Not all 16384 slots are covered by nodes."), "{checked}");
    let fixed = run(cli.command().args(["--cluster", "fix", first]), "yes\n");
    assert!(fixed.contains(">>> Fixing slots coverage..."), "{fixed}");
    assert!(cluster_command(&cli, &["check", first]).contains("[OK] All 16384 slots covered."));
}

impl Node {
    fn dunlin(&mut self, words: &str) -> String {
        cmd("DUNLIN").arg(words.split(' ').collect::<Vec<_>>()).query(&mut self.connection).expect(words)
    }

    fn cluster(&mut self, words: &str) -> RedisResult<Value> {
        cmd("CLUSTER").arg(words.split(' ').collect::<Vec<_>>()).query(&mut self.connection)
    }
}

/// Asserts that a server that loads the file has the data of the node, and of no other.
fn has_data_of(node: &mut Node, file: &Path) {
    let path = file.to_str().expect("its name is text");
    let loaded = Server::builder().set("load", path).start().expect("it is a file of Redis");
    assert_eq!(loaded.dump(), node.dunlin("DUMP"), "{path}");
}

#[test]
fn redis_cli_backs_up_the_data_of_each_primary() {
    let Some(cli) = Program::find("redis-cli", &["--version"]) else { return };
    let mut cluster = Cluster::start(1);
    let data =
        "SET bar 1\nSET abc 2\nRPUSH foo a b\nHSET hello field 3\nSADD list 1 2\nSET later 4 PXAT 4102444800000\n";
    run(cli.command().args(["-c", "-p", &cluster.program.port()]), data);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("backup");
    fs::create_dir_all(&folder).expect("the folder can be made");
    let backup = cluster_command(&cli, &["backup", &cluster.places()[0], folder.to_str().expect("its name is text")]);
    assert!(backup.contains("[OK] Backup created into"), "{backup}");
    for node in &mut cluster.nodes[..3] {
        let name = format!("redis-node-127.0.0.1-{}-{}.rdb", node.port, node.id);
        has_data_of(node, &folder.join(name));
    }
    let nodes = fs::read_to_string(folder.join("nodes.json")).expect("it lists the nodes");
    assert!(cluster.nodes.iter().all(|node| nodes.contains(&node.id)), "{nodes}");

    for node in [0, 3] {
        let (node, file) = (&mut cluster.nodes[node], folder.join("node.rdb"));
        let _ = fs::remove_file(&file);
        run(cli.command().args(["-p", &node.port.to_string(), "--rdb"]).arg(&file), "");
        has_data_of(node, &file);
    }
    fs::remove_dir_all(&folder).expect("the folder is there");
}

/// It runs once only, as it asks each node about each slot.
#[test]
fn redis_cli_gives_a_slot_of_two_owners_to_the_one_that_has_its_keys() {
    let Some(cli) = Program::find("redis-cli", &["--version"]) else { return };
    let mut cluster = Cluster::start(0);
    let first = cluster.places()[0].clone();
    run(cli.command().args(["-c", "-p", &cluster.program.port()]), "SET {bar}1 1\nSET {bar}2 2\n");
    // So that nobody takes the node on the other side for failed.
    cluster.nodes[0].dunlin("FREEZE");
    cluster.nodes[0].dunlin("PARTITION 0,1 2");
    for action in ["DELSLOTS 5061", "ADDSLOTS 5061"] {
        cluster.nodes[2].cluster(action).expect("no other node hears of it");
    }
    let fixed = cluster_command(&cli, &["fix", &first, "--cluster-search-multiple-owners"]);
    assert!(fixed.contains("[WARNING] Slot 5061 has 2 owners:"), "{fixed}");
    assert!(fixed.contains(&format!(">>> Setting slot 5061 owner: {first}")), "{fixed}");
    cluster.nodes[0].dunlin("HEAL");
    assert!(cluster_command(&cli, &["check", &first]).contains("[OK] All nodes agree about slots configuration."));
    assert_eq!(run(cli.command().args(["-p", &cluster.program.port(), "GET", "{bar}2"]), "").trim(), "2");
}

/// Its three slots take redis-cli less time than a third of all.
#[test]
fn redis_cli_gives_the_slots_of_a_dead_primary_to_others_if_it_is_told_so() {
    let Some(cli) = Program::find("redis-cli", &["--version"]) else { return };
    let mut cluster = Cluster::start(0);
    cluster.reset();
    for (place, slots) in ["0 8191", "8192 16380", "16381 16383"].into_iter().enumerate() {
        let meet = format!("MEET 127.0.0.1 {}", cluster.nodes[place].port);
        cluster.nodes[place].cluster(&format!("ADDSLOTSRANGE {slots}")).expect("it has no slots");
        cluster.nodes[place].cluster(&format!("SET-CONFIG-EPOCH {}", place + 1)).expect("it knows no node");
        cluster.nodes[0].cluster(&meet).expect("the node is in the same process");
    }
    cluster.nodes[0].dunlin("NODE 2 KILL");
    let first = &*cluster.places()[0];
    let refused = cli.command().args(["--cluster", "fix", first]).output().expect("it runs");
    let refused = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(refused.contains("*** Fixing slots coverage with 1 unreachable masters is dangerous"), "{refused}");
    let words = ["--cluster", "fix", first, "--cluster-fix-with-unreachable-masters"];
    let fixed = run(cli.command().args(words), "yes\n");
    assert_eq!(fixed.matches(">>> Covering slot").count(), 3, "{fixed}");
    assert!(cluster_command(&cli, &["check", first]).contains("[OK] All 16384 slots covered."));
    cluster.nodes[0].dunlin("NODE 2 RESTART");
    assert!(cluster_command(&cli, &["check", first]).contains("[OK] All nodes agree about slots configuration."));
}

/// A node of Redis's own takes what redis-cli imports from here, and what a node of ours migrates to it.
#[test]
fn a_real_node_takes_keys_from_here() {
    let Some(cli) = Program::find("redis-cli", &["--version"]) else { return };
    let Some(oracle) = process::Program::from_environment("a real node takes keys from here") else { return };
    // Above some ports there is none for the other nodes.
    let start = || Process::start_with(&oracle, &["--cluster-enabled", "yes"]);
    let real = (0..10).fold(start(), |started, _| started.or_else(|_| start())).expect("it starts");
    let (place, port) = (real.address.to_string(), real.address.port().to_string());
    let ask = |words: &[&str]| run(cli.command().args(["-p", &port]).args(words), "").trim().to_owned();
    assert_eq!(ask(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]), "OK");
    wait_until("the node serves keys", || ask(&["CLUSTER", "INFO"]).contains("cluster_state:ok"));

    let server = Binary::start_with(&[]);
    let from = format!("127.0.0.1:{}", server.port());
    run(
        cli.command().args(["-p", &server.port()]),
        "SET one 1\nRPUSH two a b\nHSET three field 3\nXADD four 1-1 f v\n",
    );
    let imported = cluster_command(&cli, &["import", &place, "--cluster-from", &from, "--cluster-copy"]);
    assert!(imported.contains("*** Importing 4 keys from DB 0"), "{imported}");
    assert_eq!((ask(&["DBSIZE"]), ask(&["LRANGE", "two", "0", "-1"])), ("4".to_owned(), "a\nb".to_owned()));

    let mut cluster = Cluster::start(0);
    let connection = &mut cluster.nodes[0].connection;
    let () = cmd("HSET").arg("bar").arg("field").arg("value").query(connection).expect("the node owns the slot");
    let migrated: String =
        cmd("MIGRATE").arg("127.0.0.1").arg(&port).arg("bar").arg(0).arg(5000).query(connection).expect("it arrives");
    let left: i64 = cmd("EXISTS").arg("bar").query(connection).expect("the node owns the slot");
    assert_eq!((&*migrated, left, &*ask(&["HGET", "bar", "field"])), ("OK", 0, "value"));
}
