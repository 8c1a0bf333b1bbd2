//! Keys as a tree with counts, and the deadlines that come next.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use dunlin::{Client, Reply, Server};

use crate::{call, error, served};

/// A field of a map.
fn field<'r>(reply: &'r Reply, name: &str) -> &'r Reply {
    let Reply::Map(pairs) = reply else { panic!("no map: {reply:?}") };
    let found = pairs.iter().find(|(field, _)| field.text().is_some_and(|text| text == name));
    &found.unwrap_or_else(|| panic!("no {name} in {reply:?}")).1
}

fn count(reply: &Reply, name: &str) -> i64 {
    field(reply, name).integer().expect("it is a count")
}

/// The children of a namespace: name, kind, keys and bytes.
fn children(tree: &Reply) -> Vec<(String, String, i64, i64)> {
    let text = |child: &Reply, name: &str| field(child, name).text().expect("it is a text").into_owned();
    let children = field(tree, "children").items().expect("it is an array");
    let row = |child| (text(child, "name"), text(child, "kind"), count(child, "keys"), count(child, "bytes"));
    children.iter().map(row).collect()
}

fn tree(client: &mut Client, words: &[&str]) -> Reply {
    call(client, ["DUNLIN", "TREE"].iter().chain(words).copied())
}

fn memory(client: &mut Client, key: &str) -> i64 {
    call(client, ["MEMORY", "USAGE", key]).integer().expect("it exists")
}

#[test]
fn a_tree_has_the_exact_counts_of_each_namespace() {
    let (_server, mut client) = served();
    for line in
        ["SET user:1 a", "HSET user:2 f v", "RPUSH user:2:jobs a b", "SET plain v EX 100", "SELECT 1", "SET x y"]
    {
        call(&mut client, line.split(' '));
    }
    call(&mut client, ["SELECT", "0"]);
    let all = tree(&mut client, &[]);
    let users: i64 = ["user:1", "user:2", "user:2:jobs"].map(|key| memory(&mut client, key)).iter().sum();
    let plain = memory(&mut client, "plain");
    let expected =
        [("user:".to_owned(), "namespace".to_owned(), 3, users), ("plain".to_owned(), "key".to_owned(), 1, plain)];
    assert_eq!(children(&all), expected);
    assert_eq!((count(&all, "keys"), count(&all, "bytes"), count(&all, "expiring")), (4, users + plain, 1));
    let types = field(&all, "types");
    assert_eq!(["string", "hash", "list"].map(|name| count(types, name)), [2, 1, 1]);
    let below = tree(&mut client, &["user:", "DEPTH", "2", "LIMIT", "1"]);
    let jobs = memory(&mut client, "user:2:jobs");
    assert_eq!(children(&below), [("user:2:".to_owned(), "namespace".to_owned(), 1, jobs)]);
    let more = field(&below, "more");
    assert_eq!((count(more, "children"), count(more, "keys")), (2, 2));
    let Some([namespace]) = field(&below, "children").items() else { panic!("one child is shown") };
    assert_eq!(children(namespace), [("user:2:jobs".to_owned(), "key".to_owned(), 1, jobs)]);
    assert_eq!(children(&tree(&mut client, &["none"])), []);
    assert_eq!(children(&tree(&mut client, &["", "DELIMITER", "lain"])).len(), 4);
}

#[test]
fn the_children_of_a_tree_come_by_their_bytes_as_well() {
    let (_server, mut client) = served();
    let large = "x".repeat(2000);
    for words in [["SET", "many:1", "v"], ["SET", "many:2", "v"], ["SET", "few:1", &large], ["SET", "last", &large]] {
        call(&mut client, words);
    }
    call(&mut client, ["SET", "first", "v"]);
    let names = |client: &mut Client, words: &[&str]| -> Vec<String> {
        children(&tree(client, words)).into_iter().map(|child| child.0).collect()
    };
    assert_eq!(names(&mut client, &["ORDER", "KEYS"]), ["many:", "few:", "first", "last"]);
    assert_eq!(names(&mut client, &["ORDER", "BYTES"]), ["few:", "many:", "last", "first"]);
    assert_eq!(names(&mut client, &["ORDER", "bytes", "LIMIT", "3"]), ["few:", "many:", "last"]);
}

#[test]
fn wrong_options_of_a_tree_are_refused() {
    let (_server, mut client) = served();
    let usage = "ERR syntax error, usage: DUNLIN TREE [prefix] [DELIMITER delimiter] [DEPTH depth] [LIMIT limit] \
                 [ORDER <KEYS|BYTES>]";
    for words in [
        &["DEPTH", "0"][..],
        &["DEPTH", "17"],
        &["LIMIT", "-1"],
        &["DELIMITER", ""],
        &["a", "b", "c"],
        &["a", "b"],
        &["ORDER", "size"],
    ] {
        assert_eq!(error(&mut client, ["DUNLIN", "TREE"].iter().chain(words).copied()), usage, "{words:?}");
    }
}

#[test]
fn the_counts_of_many_keys_are_those_of_one_moment_while_keys_come_and_go() {
    const KEYS: usize = 30_000;
    let (server, mut client) = served();
    let fill = "for i = 1, ARGV[1] do redis.call('SET', 'ns' .. i % 100 .. ':' .. i, i) end";
    call(&mut client, ["EVAL", fill, "0", &KEYS.to_string()]);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut other = server.client().expect("there is room");
            // Each transaction moves one key from one namespace to another, and makes and removes some.
            for number in (0_u64..).take_while(|_| !is_over.load(Ordering::Relaxed)) {
                let key = format!("ns{}:{}", 1 + number % 99, 1 + number % 99);
                for words in [&["MULTI"][..], &["RENAME", &key, "moved:1"], &["RENAME", "moved:1", &key], &["EXEC"]] {
                    other.call(words).expect("the server answers");
                }
                other.call(["SET", &format!("new:{}", number % 7), "v"]).expect("the server answers");
                other.call(["DEL", &format!("new:{}", number % 7)]).expect("the server answers");
            }
        });
        for _ in 0..10 {
            let all = tree(&mut client, &["LIMIT", "1000"]);
            let (children, more) = (children(&all), field(&all, "more"));
            let sum: i64 = children.iter().map(|(_, _, keys, _)| keys).sum();
            assert_eq!((sum, count(more, "keys")), (count(&all, "keys"), 0));
            assert!((30_000..=30_001).contains(&sum), "{sum}");
            assert_eq!(
                children.iter().filter(|(name, ..)| name.starts_with("ns")).map(|child| child.2).sum::<i64>(),
                30_000
            );
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let after = tree(&mut client, &[]);
    assert_eq!(Reply::Integer(count(&after, "keys")), call(&mut client, ["DBSIZE"]));
    let seventh = memory(&mut client, "ns7:7");
    let own = tree(&mut client, &["ns7:7", "DELIMITER", "#", "LIMIT", "1"]);
    assert_eq!(children(&own), [("ns7:7".to_owned(), "key".to_owned(), 1, seventh)], "as MEMORY USAGE counts it");
}

#[test]
fn a_server_with_the_data_of_a_template_counts_its_keys_as_well() {
    let server = Server::builder().port(0).start().expect("it starts");
    let mut client = server.client().expect("there is room");
    call(&mut client, ["EVAL", "for i = 1, 20000 do redis.call('SET', 'k:' .. i, i) end", "0"]);
    call(&mut client, ["DUNLIN", "TEMPLATE"]);
    let mut other = server.world("north").expect("it can be made").client().expect("there is room");
    call(&mut other, ["SET", "k:own", "v"]);
    assert_eq!(count(&tree(&mut other, &[]), "keys"), 20_001);
    assert_eq!(count(&tree(&mut client, &[]), "keys"), 20_000);
}

#[test]
fn the_next_deadlines_are_those_of_keys_and_of_fields() {
    let server = Server::builder().frozen().start().expect("it starts");
    let mut client = server.client().expect("there is room");
    assert_eq!(call(&mut client, ["DUNLIN", "DUE"]), Reply::Array(Vec::new()));
    for line in [
        "SET late v PXAT 9000000000300",
        "SET soon v PXAT 9000000000100",
        "SET never v",
        "HSET h a 1 b 2 c 3",
        "HPEXPIREAT h 9000000000200 FIELDS 1 b",
        "HPEXPIREAT h 9000000000400 FIELDS 1 a",
        "SELECT 1",
        "SET other v PXAT 9000000000000",
        "SELECT 0",
    ] {
        call(&mut client, line.split(' '));
    }
    let due = |client: &mut Client, words: &[&str]| {
        let reply = call(client, ["DUNLIN", "DUE"].iter().chain(words).copied());
        let text = |due: &Reply, name| field(due, name).text().expect("it is a text").into_owned();
        let row = |due: &Reply| {
            let Reply::Map(pairs) = due else { panic!("no map: {due:?}") };
            let field = if pairs.len() == 3 { text(due, "field") } else { String::new() };
            format!("{} {field} {}", text(due, "key"), count(due, "deadline") - 9_000_000_000_000)
        };
        reply.items().expect("it is an array").iter().map(row).collect::<Vec<_>>()
    };
    assert_eq!(due(&mut client, &[]), ["soon  100", "h b 200", "late  300", "h a 400"]);
    assert_eq!(due(&mut client, &["COUNT", "2"]), ["soon  100", "h b 200"]);
    assert_eq!(due(&mut client, &["COUNT", "3"]), ["soon  100", "h b 200", "late  300"]);
    call(&mut client, ["PERSIST", "soon"]);
    assert_eq!(due(&mut client, &["COUNT", "1"]), ["h b 200"]);
    for words in [&["COUNT", "0"][..], &["COUNT", "10001"], &["2"]] {
        let refusal = error(&mut client, ["DUNLIN", "DUE"].iter().chain(words).copied());
        assert_eq!(refusal, "ERR syntax error, usage: DUNLIN DUE [COUNT count]");
    }
}

#[test]
fn the_next_deadlines_are_found_among_the_fields_of_many_hashes() {
    const HASHES: usize = 7;
    const FIELDS: usize = 600;
    let server = Server::builder().frozen().start().expect("it starts");
    let mut client = server.client().expect("there is room");
    for number in 0..HASHES * FIELDS {
        let (key, field) = (format!("h{}", number % HASHES), format!("f{number}"));
        // A prime number of steps, so that they come in no order.
        let deadline = (9_000_000_000_000 + number * 1009 % 4201).to_string();
        call(&mut client, ["HSET", &key, &field, "v"]);
        call(&mut client, ["HPEXPIREAT", &key, &deadline, "FIELDS", "1", &field]);
        call(&mut client, ["HSET", &key, &format!("never{number}"), "v"]);
    }
    let due = |client: &mut Client, count: usize| -> Vec<i64> {
        let reply = call(client, ["DUNLIN", "DUE", "COUNT", &count.to_string()]);
        reply
            .items()
            .expect("it is an array")
            .iter()
            .map(|due| self::count(due, "deadline") - 9_000_000_000_000)
            .collect()
    };
    let all: Vec<i64> = due(&mut client, 10_000);
    assert_eq!(all.len(), HASHES * FIELDS);
    assert!(all.is_sorted() && all[0] == 0, "{all:?}");
    assert_eq!(due(&mut client, 1234), all[..1234]);
    // Each leaves a hash without deadlines, or with later ones.
    call(&mut client, ["DEL", "h0"]);
    call(&mut client, ["DUNLIN", "SET-TIME", "9000000002000"]);
    assert!(due(&mut client, 10_000).iter().all(|deadline| *deadline > 2000));
}
