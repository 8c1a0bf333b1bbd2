//! The states of the nodes in the story of a simulation.

use dunlin::Reply;

use super::{KEYS, Simulation};

impl Simulation {
    /// Adds to the story how each node sees the cluster, and what it has in each list.
    pub fn tell_states(&mut self) {
        for node in self.members() {
            let lists = KEYS.map(|(key, _)| format!("LRANGE {key} 0 -1"));
            for line in ["CLUSTER NODES", "CLUSTER INFO", "READONLY"].map(String::from).into_iter().chain(lists) {
                let reply = self.call(node, &line);
                let text = reply.as_ref().ok().and_then(Reply::text).map(String::from);
                let shown = self.without_ports(&text.unwrap_or_else(|| format!("{reply:?}")));
                self.tell(&format!("{line} at {node}: {shown}"));
            }
        }
    }

    /// A text with the numbers of nodes in the place of their addresses, as each run has other ports.
    pub(super) fn without_ports(&self, text: &str) -> String {
        let addresses = self.nodes.iter().map(|node| node.addr().to_string()).enumerate();
        let text = addresses
            .fold(text.to_owned(), |text, (number, address)| text.replace(&address, &format!("node {number}")));
        without_bus_ports(&text)
    }
}

/// A text without the digits behind each `@`, which are a port for other nodes.
fn without_bus_ports(text: &str) -> String {
    let mut parts = text.split('@');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.trim_start_matches(|letter: char| letter.is_ascii_digit()))
}
