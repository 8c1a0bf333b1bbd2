//! The rules of strict mode for an application whose production is a cluster.

use dunlin::{Level, Reply, Rule};

use super::{admits, field, finds};
use crate::{call, served};

#[test]
fn another_database_is_found() {
    finds(
        Rule::Select,
        &[
            (
                &["SELECT 1"],
                "SELECT uses another database, and a cluster has only database 0; tell keys apart by a prefix",
            ),
            (
                &["SET a 1", "COPY a DB DB 3 REPLACE"],
                "COPY uses another database, and a cluster has only database 0; tell keys apart by a prefix",
            ),
            (
                &["SET a 1", "MOVE a 1"],
                "MOVE uses another database, and a cluster has only database 0; tell keys apart by a prefix",
            ),
            (
                &["SWAPDB 0 1"],
                "SWAPDB uses another database, and a cluster has only database 0; tell keys apart by a prefix",
            ),
        ],
    );
    admits(Rule::Select, &[&["SELECT 0"], &["SET DB 1", "COPY DB db"], &["SET a 1", "COPY a b DB 0"], &["SELECT x"]]);
}

#[test]
fn a_command_about_all_keys_is_found() {
    finds(
        Rule::WholeServer,
        &[
            (
                &["KEYS user:*"],
                "KEYS is about the keys of one node of a cluster only; keep the names in a set, or give what belongs \
                 together one hash tag",
            ),
            (
                &["SCAN 0 COUNT 10 MATCH user:*"],
                "SCAN is about the keys of one node of a cluster only; have the client visit each node, or give what \
                 belongs together one hash tag",
            ),
            (
                &["DBSIZE"],
                "DBSIZE is about the keys of one node of a cluster only; ask each node, or count in a key of its own",
            ),
            (
                &["RANDOMKEY"],
                "RANDOMKEY is about the keys of one node of a cluster only; keep the names in a set, and use SRANDMEMBER",
            ),
            (
                &["FLUSHALL ASYNC"],
                "FLUSHALL is about the keys of one node of a cluster only; flush each node, or let the keys expire",
            ),
        ],
    );
    admits(Rule::WholeServer, &[&["KEYS {user:1}:*"], &["SCAN 0 MATCH {user:1}:*"], &["SADD keys 1", "SSCAN keys 0"]]);
}

#[test]
fn a_sort_that_reads_other_slots_is_found() {
    let text = "SORT reads keys as weight:*, which may be in other slots than ids; give them one hash tag before the *, \
                or sort in the client";
    finds(
        Rule::SortOutside,
        &[
            (&["RPUSH ids 2 1", "SORT ids BY weight:*"], text),
            (&["RPUSH ids 2 1", "SORT_RO ids LIMIT 0 5 GET # GET weight:*"], text),
        ],
    );
    admits(
        Rule::SortOutside,
        &[
            &["RPUSH ids 2 1", "SORT ids DESC"],
            &["RPUSH ids 2 1", "SORT ids BY nosort GET # STORE get"],
            &["RPUSH {ids} 2 1", "SORT {ids} BY {ids}:weight:* GET {ids}:name:*->text"],
        ],
    );
}

#[test]
fn the_rules_of_a_cluster_are_set_together() {
    let (server, mut client) = served();
    server.strict().set_cluster(Level::Error);
    call(&mut client, ["DUNLIN", "STRICT", "ALLOW", "CLUSTER", "free:*"]);
    let levels = || {
        let rules = call(&mut server.client().expect("it is served"), ["DUNLIN", "STRICT"]);
        let is_on = |rule: &&Reply| *field(rule, "level") == "error" && *field(rule, "allowed") != Reply::Array(vec![]);
        let rules = rules.items().expect("an array");
        rules
            .iter()
            .filter(is_on)
            .map(|rule| field(rule, "rule").text().expect("a name").into_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(levels(), Rule::CLUSTER.map(Rule::name));
    call(&mut client, ["DUNLIN", "STRICT", "SET", "CLUSTER", "off"]);
    assert!(levels().is_empty());
}
