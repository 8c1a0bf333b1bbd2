//! The backlog: the latest bytes of the replication stream, for replicas that were disconnected for a while.
//!
//! Costs: `repl-backlog-size` bytes at most, and only as many as there were changes.

use std::collections::VecDeque;

/// The latest bytes of a stream.
#[derive(Debug, Default)]
pub struct Backlog {
    bytes: VecDeque<u8>,
}

impl Backlog {
    /// Adds bytes at the end of the stream, and drops the oldest ones above `limit`.
    pub(super) fn push(&mut self, bytes: &[u8], limit: usize) {
        let kept = &bytes[bytes.len().saturating_sub(limit)..];
        let excess = (self.bytes.len() + kept.len()).saturating_sub(limit);
        self.bytes.drain(..excess.min(self.bytes.len()));
        self.bytes.extend(kept);
    }

    /// The last `count` bytes; `None` if they are not all here.
    pub(super) fn last(&self, count: u64) -> Option<Vec<u8>> {
        let first = self.bytes.len().checked_sub(usize::try_from(count).ok()?)?;
        Some(self.bytes.range(first..).copied().collect())
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Drops all bytes.
    pub(super) fn clear(&mut self) {
        self.bytes = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backlog_has_the_latest_bytes_up_to_its_limit() {
        let (mut backlog, mut all) = (Backlog::default(), Vec::new());
        let mut generator = fastrand::Rng::with_seed(5);
        for _ in 0..2000 {
            let (limit, length) = (generator.usize(1..64), generator.usize(..100));
            let bytes: Vec<u8> = (0..length).map(|_| generator.u8(..)).collect();
            let kept = (backlog.len() + length).min(limit);
            backlog.push(&bytes, limit);
            all.extend_from_slice(&bytes);
            assert_eq!(backlog.len(), kept, "the limit is {limit}");
            let wanted = generator.usize(..=kept);
            assert_eq!(backlog.last(wanted as u64).as_deref(), Some(&all[all.len() - wanted..]));
            assert_eq!(backlog.last(kept as u64 + 1), None);
        }
    }
}
