//! The words of the commands by which tests wait until a condition holds (DUNLIN WAIT).

use std::time::Duration;

/// The longest timeout: the server refuses one that its clock cannot count.
const LONGEST_MS: u128 = 1 << 50;

/// Words of a command.
pub(super) type Words = Vec<Vec<u8>>;

/// The command that waits until `condition` holds, or `timeout` has passed.
pub(super) fn command(condition: Words, timeout: Duration) -> Words {
    let timeout_ms = timeout.as_millis().clamp(1, LONGEST_MS).to_string();
    [words(&[b"DUNLIN", b"WAIT"]), condition, words(&[b"TIMEOUT", timeout_ms.as_bytes()])].concat()
}

/// A client is blocked on a key.
pub(super) fn blocked(key: impl AsRef<[u8]>) -> Words {
    words(&[b"BLOCKED", key.as_ref()])
}

/// At least this many clients are blocked on a key.
pub(super) fn blocked_clients(key: impl AsRef<[u8]>, count: u64) -> Words {
    words(&[b"BLOCKED", key.as_ref(), count.to_string().as_bytes()])
}

/// At least this many clients are subscribed to a channel.
pub(super) fn subscribers(channel: impl AsRef<[u8]>, count: u64) -> Words {
    words(&[b"SUBSCRIBERS", channel.as_ref(), count.to_string().as_bytes()])
}

/// A fault rule has fired at least this many times.
pub(super) fn fired(rule: &str, count: u64) -> Words {
    words(&[b"FAULT", rule.as_bytes(), count.to_string().as_bytes()])
}

/// Exactly this many clients are connected.
pub(super) fn clients(count: u64) -> Words {
    words(&[b"CLIENTS", count.to_string().as_bytes()])
}

/// The state of the cluster is `ok`.
pub(super) fn cluster_is_ok() -> Words {
    words(&[b"CLUSTER", b"OK"])
}

/// The state of the cluster is `fail`.
pub(super) fn cluster_fails() -> Words {
    words(&[b"CLUSTER", b"FAIL"])
}

/// All nodes of the cluster that are up agree.
pub(super) fn cluster_agrees() -> Words {
    words(&[b"CLUSTER", b"AGREED"])
}

/// The replicas have the writes of this node, or this replica those of its primary.
pub(super) fn synced() -> Words {
    words(&[b"SYNCED"])
}

/// The journal has at least this many commands that `selection` admits.
pub(super) fn journal(count: u64, selection: Words) -> Words {
    [words(&[b"JOURNAL", count.to_string().as_bytes()]), selection].concat()
}

fn words(words: &[&[u8]]) -> Words {
    words.iter().map(|word| word.to_vec()).collect()
}
