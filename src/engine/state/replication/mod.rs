//! Replication as a node takes part in it: the history of its data, the replicas that follow it, or the primary that it
//! follows itself.
//!
//! A point in a history of the data is named by a [`History`]: a replication id, and an offset in the stream of
//! changes. A replica that has the same history gets the stream from its offset on, if the backlog has that; any other
//! one gets all data. A replica that becomes the primary gives the history another id, and remembers the old one, so
//! that the other replicas can continue by a partial synchronization.
//!
//! - Not here: what a change is in the stream ([`super::Propagation`]), and what runs it ([`crate::engine::exec`]).
//! - Invariant: only a replica has a link.
//!
//! Source: the behaviour of Redis 8.0.6.

mod backlog;
mod message;
mod settings;

pub use backlog::Backlog;
pub use message::{Content, FullSync, ReplicationMessage};
pub use settings::ReplicationSettings;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::engine::cluster::NodeId;
use crate::engine::spec::{CommandId, Now};
use crate::engine::state::SessionId;

/// A replication id (`master_replid`): forty hexadecimal digits.
pub type ReplicationId = NodeId;

/// The offset at which a history begins: that of Redis after the first PING of a primary. Clients are not told of
/// replicas whose offset is 0.
const FIRST_OFFSET: u64 = 14;

/// A point in a history of the data, which names the data there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// The id, which INFO shows as `master_replid`.
    pub id: ReplicationId,
    /// The bytes of the stream of changes up to there.
    pub offset: u64,
}

/// A replica of this node.
#[derive(Clone, Copy, Debug)]
pub struct Replica {
    /// Its id.
    pub id: NodeId,
    /// The offset up to which it has applied the stream.
    pub offset: u64,
    /// When it last acknowledged that offset.
    pub acknowledged: Now,
    /// Its session, once that is open.
    pub(in crate::engine) session: Option<SessionId>,
}

/// The state of a replica's link to its primary.
#[derive(Debug)]
pub struct Link {
    /// The primary.
    pub primary: NodeId,
    /// The state of the connection.
    pub state: LinkState,
    /// When the primary was heard last.
    pub last_message: Now,
    /// Parts of the stream that are not applied yet, each with the moment when it is; single writes if some are held
    /// back.
    pub(in crate::engine) queue: VecDeque<(Now, Arc<[u8]>)>,
    /// The session in which the stream is applied, once the data are those of the primary.
    pub(in crate::engine) session: Option<SessionId>,
}

/// The state of the link of a replica to its primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// It is connected.
    Up,
    /// It is disconnected since then.
    DownSince(Now),
    /// It was never connected since the node became a replica or its process started: its data may be any.
    NeverUp,
}

impl LinkState {
    /// The state of a link that ends now, if it has not ended.
    pub fn ended(self, now: Now) -> LinkState {
        if self == LinkState::Up { LinkState::DownSince(now) } else { self }
    }
}

impl Link {
    /// A link that is not connected yet, in the place of a former one to another primary, if there was one.
    pub fn to(primary: NodeId, former: Option<&Link>, now: Now) -> Link {
        let state = former.map_or(LinkState::NeverUp, |former| former.state.ended(now));
        Link { primary, state, last_message: now, queue: VecDeque::new(), session: None }
    }

    /// The bytes of the stream that are not applied yet.
    pub fn queued_bytes(&self) -> usize {
        self.queue.iter().map(|(_, part)| part.len()).sum()
    }

    /// Whether it is connected.
    pub fn is_up(&self) -> bool {
        self.state == LinkState::Up
    }
}

/// A client that waits until enough replicas have its writes (WAIT).
#[derive(Clone, Copy, Debug)]
pub struct ReplicaWait {
    /// The client.
    pub session: SessionId,
    /// Its command.
    pub command: CommandId,
    /// The number of replicas.
    pub count: usize,
    /// The offset behind its writes.
    pub offset: u64,
}

/// The ways in which a replica replaces its primary when it is ordered to (CLUSTER FAILOVER).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailoverWay {
    /// With the help of the primary, which holds back writes until it is replaced.
    Graceful,
    /// Without the primary's help, by an election (FORCE).
    Force,
    /// Without an election: the replica takes the slots by itself (TAKEOVER).
    TakeOver,
    /// Like `TakeOver`, but first drops this number of its primary's last writes; a transaction counts as one.
    Losing(usize),
}

/// The lag with which a replica applies the stream of its primary, set by a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lag {
    /// That many milliseconds.
    Milliseconds(i64),
    /// That many writes: the latest ones are not applied. A transaction is one.
    Writes(usize),
}

impl Lag {
    /// Everything is applied at once.
    pub const NONE: Lag = Lag::Milliseconds(0);

    /// When what is sent now is to be applied.
    pub(in crate::engine) fn due(self, now: Now) -> Now {
        match self {
            Lag::Milliseconds(lag_ms) => now.after_ms(lag_ms),
            Lag::Writes(_) => now,
        }
    }

    /// How many writes are held back whatever the time.
    pub(in crate::engine) fn held_back(self) -> usize {
        match self {
            Lag::Milliseconds(_) => 0,
            Lag::Writes(count) => count,
        }
    }
}

/// A failover that an administrator ordered, at the replica or at its primary.
#[derive(Clone, Copy, Debug)]
pub struct ManualFailover {
    /// When it is given up.
    pub ends: Now,
    /// The offset that the replica has to reach; `None` until the primary has told it.
    pub offset: Option<u64>,
}

/// The replication of a node.
#[derive(Debug)]
pub struct Replication {
    /// The name of the data.
    pub history: History,
    /// The history before this node became the primary (Redis's `replid2`), with the offset up to which it is the same.
    pub previous: Option<History>,
    /// The latest part of the stream.
    pub backlog: Backlog,
    /// The replicas that are connected.
    pub replicas: Vec<Replica>,
    /// The sessions of replicas that are open.
    pub(in crate::engine) replica_sessions: Vec<SessionId>,
    /// The link to the primary, if this node is a replica.
    pub link: Option<Link>,
    /// By how much this node applies the stream of its primary late.
    pub lag: Lag,
    /// The clients that wait for replicas.
    pub(in crate::engine) waits: Vec<ReplicaWait>,
    /// The replicas that are to be answered when a script or a pause has ended, each with what it has.
    pub(in crate::engine) waiting_replicas: Vec<(NodeId, History)>,
    /// The failover that was ordered, if one is in progress.
    pub(in crate::engine) failover: Option<ManualFailover>,
    /// The offset that other nodes can look up ([`crate::engine::Host::offset_of_node`]).
    pub(in crate::engine) published: u64,
    /// The difference between an offset of the history and one of [`super::Propagation`].
    shift: u64,
}

impl Replication {
    /// The replication of a node without replicas and primary.
    pub fn of(id: ReplicationId) -> Replication {
        Replication {
            history: History { id, offset: FIRST_OFFSET },
            previous: None,
            backlog: Backlog::default(),
            replicas: Vec::new(),
            replica_sessions: Vec::new(),
            link: None,
            lag: Lag::NONE,
            waits: Vec::new(),
            waiting_replicas: Vec::new(),
            failover: None,
            published: 0,
            shift: 0,
        }
    }

    /// Adds bytes to the stream. Returns the offset before them.
    pub fn append(&mut self, bytes: &[u8], settings: &ReplicationSettings) -> u64 {
        let offset = self.history.offset;
        self.backlog.push(bytes, usize::try_from(settings.backlog_bytes).unwrap_or(usize::MAX));
        self.history.offset += bytes.len() as u64;
        offset
    }

    /// The bytes that a replica with such data has missed; `None` if it needs all data.
    pub fn missed_since(&self, known: History) -> Option<Vec<u8>> {
        let is_former = |former: History| former.id == known.id && known.offset <= former.offset;
        if known.id != self.history.id && !self.previous.is_some_and(is_former) {
            return None;
        }
        self.backlog.last(self.history.offset.checked_sub(known.offset)?)
    }

    /// Begins another history: the data are others, and no replica has them.
    pub fn begin_history(&mut self, id: ReplicationId) {
        self.history.id = id;
        self.previous = None;
        self.backlog.clear();
        self.replicas.clear();
    }

    /// Begins anew, as the process of this node has ended, and its data with it.
    pub fn restart(&mut self, id: ReplicationId) {
        self.history.offset = FIRST_OFFSET;
        self.begin_history(id);
    }

    /// Continues the history under another id, as this node is the primary now.
    pub fn promote(&mut self, id: ReplicationId) {
        self.rename(id);
        self.link = None;
    }

    /// Goes on with the history under the id that it has at the primary.
    pub fn rename(&mut self, id: ReplicationId) {
        if self.history.id != id {
            self.previous = Some(self.history);
            self.history.id = id;
        }
    }

    /// Takes the history over from the primary, whose data these are.
    pub fn adopt(&mut self, history: History) {
        if self.history != history {
            self.backlog.clear();
        }
        (self.history, self.previous) = (history, None);
    }

    /// Relates the offsets of [`super::Propagation`], which is at `offset`, to those of the history.
    pub fn align(&mut self, offset: u64) {
        self.shift = self.history.offset.wrapping_sub(offset);
    }

    /// The offset of the history for one of [`super::Propagation`]; 0 for 0, which means that nothing was written.
    pub fn offset_of(&self, written: u64) -> u64 {
        if written == 0 { 0 } else { written.wrapping_add(self.shift) }
    }

    /// The number of replicas that have applied the stream up to an offset.
    pub fn count_at(&self, offset: u64) -> usize {
        self.replicas.iter().filter(|replica| replica.offset >= offset).count()
    }

    /// For how many seconds a replica has been behind.
    pub fn lag_s(&self, replica: &Replica, now: Now) -> i64 {
        if replica.offset >= self.history.offset { 0 } else { (now.since_us(replica.acknowledged) / 1_000_000) as i64 }
    }

    /// The number of replicas whose lag is at most that many seconds.
    pub fn count_good(&self, max_lag_s: i64, now: Now) -> usize {
        self.replicas.iter().filter(|replica| self.lag_s(replica, now) <= max_lag_s).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(byte: u8) -> ReplicationId {
        ReplicationId::of([byte; 20])
    }

    #[test]
    fn a_replica_continues_by_either_id_as_far_as_the_backlog_goes() {
        let settings = ReplicationSettings { backlog_bytes: 8, ..ReplicationSettings::default() };
        let mut replication = Replication::of(id(1));
        assert_eq!(replication.append(b"abcdef", &settings), FIRST_OFFSET);
        let at = |id, offset: u64| History { id, offset: offset + FIRST_OFFSET - 1 };
        assert_eq!(replication.missed_since(at(id(1), 4)).as_deref(), Some(&b"def"[..]));
        assert_eq!(replication.missed_since(at(id(2), 4)), None, "another history");
        replication.promote(id(3));
        replication.append(b"ghi", &settings);
        assert_eq!(replication.missed_since(at(id(3), 8)).as_deref(), Some(&b"hi"[..]));
        assert_eq!(replication.missed_since(at(id(1), 7)).as_deref(), Some(&b"ghi"[..]), "the former id");
        assert_eq!(replication.missed_since(at(id(1), 8)), None, "it has what the new primary never had");
        assert_eq!(replication.missed_since(at(id(3), 1)), None, "the backlog has eight bytes");
        assert_eq!(replication.missed_since(at(id(3), 11)), None, "it has more than there is");
    }
}
