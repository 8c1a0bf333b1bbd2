//! The nodes of a cluster as tests use them: with a client for each.

use std::time::{Duration, SystemTime};

use dunlin::{CallError, Client, Reply, Server, World};

/// The nodes of a cluster with a direct client for each. Of three primaries, `bar` is in slot 5061 of the first, `abc`
/// in slot 7638 of the second, `foo` in slot 12182 of the third.
pub struct Nodes {
    pub server: Server,
    pub nodes: Vec<World>,
    pub clients: Vec<Client>,
}

impl Nodes {
    pub fn start() -> Nodes {
        Nodes::of(Server::cluster(3).seed(7).frozen().allow_debug().start().expect("the nodes start"))
    }

    pub fn of(server: Server) -> Nodes {
        let nodes = server.nodes();
        let clients = nodes.iter().map(|node| node.client().expect("there is room")).collect();
        Nodes { server, nodes, clients }
    }

    pub fn ask(&mut self, node: usize, line: &str) -> Reply {
        self.clients[node].call(line.split(' ')).expect("it answers")
    }

    /// A reply in one line, or an error.
    pub fn text(&mut self, node: usize, line: &str) -> String {
        text(&mut self.clients[node], line)
    }

    #[track_caller]
    pub fn expect(&mut self, table: &[(usize, &str, &str)]) {
        for (node, line, reply) in table {
            assert_eq!(self.text(*node, line), *reply, "node {node}: {line}");
        }
    }

    /// Two nodes have the same data.
    #[track_caller]
    pub fn assert_equal_data(&mut self, one: usize, other: usize) {
        let digests = [one, other].map(|node| self.text(node, "DEBUG DIGEST"));
        assert_eq!(digests[0], digests[1], "nodes {one} and {other}");
    }

    pub fn id(&mut self, node: usize) -> String {
        self.text(node, "CLUSTER MYID")
    }

    pub fn port(&self, node: usize) -> u16 {
        self.nodes[node].addr().port()
    }

    /// The error by which clients are told that a slot has moved to a node.
    pub fn moved(&self, slot: u16, node: usize) -> String {
        format!("MOVED {slot} 127.0.0.1:{}", self.port(node))
    }

    pub fn info(&mut self, node: usize, field: &str) -> String {
        let info = self.text(node, "CLUSTER INFO");
        let value = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value.expect("there is such a field").to_owned()
    }

    /// The owners of all slots as a node sees them.
    pub fn slots(&mut self, node: usize) -> Reply {
        self.ask(node, "CLUSTER SLOTS")
    }

    /// Begins to move slot 5061 from the first node to the second.
    pub fn open(&mut self) {
        let [first, second] = [self.id(0), self.id(1)];
        self.expect(&[
            (1, &format!("CLUSTER SETSLOT 5061 IMPORTING {first}"), "OK"),
            (0, &format!("CLUSTER SETSLOT 5061 MIGRATING {second}"), "OK"),
        ]);
    }

    pub fn migrate(&mut self, from: usize, to: usize, keys: &str) -> String {
        let port = self.port(to);
        let line = format!("MIGRATE 127.0.0.1 {port}  0 100 KEYS {keys}");
        self.text(from, &line)
    }

    /// Three primaries, and behind them a replica of each, at a moment that is always the same.
    pub fn with_replicas() -> Nodes {
        Nodes::with_replicas_each(1)
    }

    /// Three primaries, and behind them that many replicas of each, one for each in turn.
    pub fn with_replicas_each(replicas: u16) -> Nodes {
        let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let server = Server::cluster(3).replicas(replicas).seed(7).frozen_at(moment).allow_debug().start();
        Nodes::of(server.expect("the nodes start"))
    }

    /// The flags of a node, and the state of its link, as another one shows them.
    pub fn shown(&mut self, by: usize, node: usize) -> (String, String) {
        let port = format!("127.0.0.1:{}@", self.port(node));
        let nodes = self.text(by, "CLUSTER NODES");
        let line = nodes.lines().find(|line| line.contains(&port)).expect("the node is known");
        let words: Vec<&str> = line.split(' ').collect();
        (words[2].to_owned(), words[7].to_owned())
    }

    /// A field of INFO's section about replication.
    pub fn replication(&mut self, node: usize, field: &str) -> String {
        let info = self.text(node, "INFO replication");
        let value = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value.unwrap_or_else(|| panic!("there is a field {field}")).to_owned()
    }

    /// Starts a node again, with a new client.
    pub fn restart(&mut self, node: usize) {
        self.server.restart_node(node).expect("its port is free");
        self.clients[node] = self.nodes[node].client().expect("it lets clients in");
    }

    pub fn advance_ms(&self, ms: u64) {
        self.server.advance(Duration::from_millis(ms));
    }
}

/// A reply in one line, or an error.
pub fn text(client: &mut Client, line: &str) -> String {
    match client.call(line.split(' ')) {
        Ok(reply) => in_one_line(&reply),
        Err(CallError::Refused(error)) => error,
        Err(error) => panic!("{line}: {error}"),
    }
}

/// A reply in one line.
pub fn in_one_line(reply: &Reply) -> String {
    match reply {
        Reply::Array(all) => format!("[{}]", all.iter().map(in_one_line).collect::<Vec<_>>().join(", ")),
        Reply::Map(pairs) => {
            let pairs = pairs.iter().map(|(name, value)| format!("{}: {}", in_one_line(name), in_one_line(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        Reply::Integer(number) => number.to_string(),
        other => other.text().map_or_else(|| "nil".to_owned(), |text| text.into_owned()),
    }
}
