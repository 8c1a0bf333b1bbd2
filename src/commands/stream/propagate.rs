//! Propagates deliveries and claims: an XCLAIM for each entry that became pending, and an XGROUP SETID for the position
//! of the group.
//!
//! Source: the AOF that Redis 8.0.6 writes.

use crate::engine::Ctx;
use crate::engine::exec::operations;
use crate::value::stream::{Group, Id};

/// The changes of one group by one command, to be propagated when the stream is not borrowed any more.
#[derive(Debug, Default)]
pub(super) struct Claims {
    claims: Vec<Claimed>,
    /// The group's last id and the number of entries that it has read, if an XGROUP SETID is needed for them.
    position: Option<(Id, Option<i64>)>,
}

/// A pending entry.
#[derive(Debug)]
struct Claimed {
    consumer: Vec<u8>,
    /// The entry's id.
    word: Vec<u8>,
    delivered_ms: i64,
    times: u64,
    /// The group's last id.
    last: Id,
}

impl Claims {
    /// Adds the pending entry with that id, if there is one; `word` is the id as a client wrote it.
    pub(super) fn add(&mut self, group: &Group, id: Id, word: Option<&[u8]>) {
        self.claims.extend(group.pending(id).map(|pending| Claimed {
            consumer: group.consumer(pending.consumer()).name().to_vec(),
            word: word.map_or_else(|| id.to_string().into_bytes(), <[u8]>::to_vec),
            delivered_ms: pending.delivered_ms,
            times: pending.times,
            last: group.last,
        }));
    }

    /// Sets that the group reads on from where it is now.
    pub(super) fn advance(&mut self, group: &Group) {
        self.position = Some((group.last, group.read));
    }

    /// Puts everything into the log of changes.
    pub(super) fn propagate(self, cx: &mut Ctx<'_>, key: &[u8], group: &[u8]) {
        for claim in self.claims {
            let [delivered, times, last] =
                [claim.delivered_ms.to_string(), claim.times.cast_signed().to_string(), claim.last.to_string()];
            let (consumer, id) = (&*claim.consumer, &*claim.word);
            let head = [&b"XCLAIM"[..], key, group, consumer, b"0", id, b"TIME", delivered.as_bytes()];
            let rest = [&b"RETRYCOUNT"[..], times.as_bytes(), b"FORCE", b"JUSTID", b"LASTID", last.as_bytes()];
            operations::propagate_also(cx, &[&head[..], &rest].concat());
        }
        if let Some((last, read)) = self.position {
            let (last, read) = (last.to_string(), read.unwrap_or(-1).to_string());
            let words = [&b"XGROUP"[..], b"SETID", key, group, last.as_bytes(), b"ENTRIESREAD", read.as_bytes()];
            operations::propagate_also(cx, &words);
        }
    }
}
