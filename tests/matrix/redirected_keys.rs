//! Every key that a request names counts for where a node of a cluster sends its client.
//!
//! The keys are found by the syntax lines, as in `checked_keys`, and never by the key specifications of a row, which
//! decide it.

use dunlin::commands::FAMILIES;
use dunlin::engine::Table;

use crate::checked_keys::{entries_with_keys, printed, with_foreign_keys};
use crate::node::node_of_three;

/// A key of this node, and one of another.
const OWN: &str = "bar";
const FOREIGN: &str = "foo";

const MOVED: &str = "-MOVED 12182 127.0.0.1:7003\r\n";
const CROSS_SLOT: &str = "-CROSSSLOT Keys in request don't hash to the same slot\r\n";

/// Sends each sample of each command with keys to the first of three nodes, with `foreign` in the place of one key at a
/// time and `own` in that of the others; asserts the reply that `expected` gives for the number of keys.
fn try_all(own: &'static str, foreign: &'static str, expected: fn(usize) -> &'static str) {
    let table = Table::of(FAMILIES);
    let mut node = node_of_three(0);
    let mut tried = 0;
    for (entry, samples) in entries_with_keys(&table) {
        for sample in &samples {
            let requests = with_foreign_keys(entry, sample, own, foreign);
            for words in &requests {
                let request: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                let reply = node.send(node.client, &request).0;
                assert_eq!(String::from_utf8_lossy(&reply), expected(requests.len()), "{}", printed(words));
                tried += 1;
            }
        }
    }
    assert!(tried > 500, "{tried} keys");
}

#[test]
fn a_request_with_keys_of_another_node_is_redirected_to_it() {
    try_all(FOREIGN, FOREIGN, |_| MOVED);
}

#[test]
fn one_key_in_another_slot_is_enough_to_refuse_a_request() {
    try_all(OWN, FOREIGN, |keys| if keys > 1 { CROSS_SLOT } else { MOVED });
}

#[test]
fn a_shard_channel_of_another_node_is_redirected_as_a_key_is() {
    let mut node = node_of_three(0);
    for command in ["SSUBSCRIBE foo", "SSUBSCRIBE foo {foo}2", "SPUBLISH foo hello", "SUNSUBSCRIBE foo"] {
        assert_eq!(node.ask(command), MOVED, "{command}");
    }
    assert_eq!(node.ask("SSUBSCRIBE bar foo"), CROSS_SLOT);
}
