//! Delivery: queues push frames and late replies for sessions, and closes clients over their output limit.
//!
//! A frame is added to the session's [`crate::engine::PushQueue`]; the first frame of an empty queue wakes the
//! connection. Unsent output, here and in the connection, is compared with the limit of the client's class
//! (`client-output-buffer-limit`): at the hard limit the client is closed at once, over the soft limit once that has
//! lasted for the configured seconds. Output is counted as Redis stores it, so that the same clients are closed: the
//! first 16 KiB are in a buffer that does not count, the rest in blocks that do; the last block counts whole.
//!
//! Costs: O(1) for each frame. Frames are not copied, except small ones when many of them wait.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::engine::push_queue::RecentPacks;
use crate::engine::{Effect, Effects, Engine, Now, Session, SessionId, Sessions, Stats, Subscriptions};

/// The unsent bytes that do not count: the size of Redis's static reply buffer.
const FREE_BYTES: usize = 16 << 10;
/// The payload of a reply block, for output beyond [`FREE_BYTES`]; its size is [`WHOLE_BLOCK_BYTES`].
const BLOCK_BYTES: usize = 20_464;
const WHOLE_BLOCK_BYTES: usize = BLOCK_BYTES + 40;

/// The output buffer limit of a class of clients; 0 means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputLimit {
    /// The hard limit, in bytes: at it a client is closed at once.
    pub hard_bytes: u64,
    /// The soft limit, in bytes: a client that stays over it for `soft_s` is closed.
    pub soft_bytes: u64,
    /// How long a client may be over the soft limit, in seconds.
    pub soft_s: u64,
}

/// The output buffer limits of all classes of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// Plain clients, including monitors.
    pub normal: OutputLimit,
    /// Replicas.
    pub replica: OutputLimit,
    /// Clients that subscribe to a channel or pattern.
    pub pubsub: OutputLimit,
}

impl Default for OutputLimits {
    fn default() -> OutputLimits {
        OutputLimits {
            normal: OutputLimit::default(),
            replica: OutputLimit { hard_bytes: 256 << 20, soft_bytes: 64 << 20, soft_s: 60 },
            pubsub: OutputLimit { hard_bytes: 32 << 20, soft_bytes: 8 << 20, soft_s: 60 },
        }
    }
}

impl OutputLimits {
    /// False when the client has no limit and is not over an earlier one.
    pub(super) fn concern(&self, session: &Session) -> bool {
        self.of(session) != OutputLimit::default() || session.overfull_until.is_some()
    }

    /// The length in bytes from which a reply closes its client; `None` if there is no hard limit.
    pub(super) fn most_reply_bytes(&self, session: &Session) -> Option<u64> {
        let limit = self.of(session);
        (limit.hard_bytes > 0).then(|| limit.hard_bytes.saturating_add(FREE_BYTES as u64))
    }

    /// The limit of that client's class.
    fn of(&self, session: &Session) -> OutputLimit {
        if session.subscribed.is_empty() { self.normal } else { self.pubsub }
    }
}

/// The clients over their soft limit, ordered by the moment at which each is closed.
#[derive(Debug, Default)]
pub struct Overfull {
    ends: BTreeSet<(Now, SessionId)>,
}

impl Overfull {
    /// When the first client over its soft limit is closed.
    pub fn next(&self) -> Option<Now> {
        self.ends.first().map(|(end, _)| *end)
    }

    pub(super) fn forget(&mut self, session: &mut Session) {
        if let Some(end) = session.overfull_until.take() {
            self.ends.remove(&(end, session.id));
        }
    }
}

/// The parts of the engine that are needed to queue frames for sessions.
#[derive(Debug)]
pub(super) struct Delivery<'e> {
    pub(super) sessions: &'e mut Sessions,
    pub(super) overfull: &'e mut Overfull,
    pub(super) recent_packs: &'e mut RecentPacks,
    pub(super) effects: &'e mut Effects,
    pub(super) stats: &'e mut Stats,
    pub(super) limits: &'e OutputLimits,
    pub(super) now: Now,
}

impl Delivery<'_> {
    /// The session, if it still receives frames.
    pub(super) fn listener(&self, session: SessionId) -> Option<&Session> {
        self.sessions.get(session).filter(|session| !session.closing)
    }

    /// Queues a frame for a session.
    pub(super) fn tell(&mut self, session: SessionId, frame: Arc<[u8]>) {
        let Some(client) = self.sessions.get_mut(session).filter(|client| !client.closing) else { return };
        if client.push_queue.push(frame) {
            self.effects.push(Effect::Wake(session));
        }
        client.push_queue.pack(self.recent_packs);
        let is_much = client.waiting_bytes() > FREE_BYTES;
        self.sessions.account_memory(session);
        if is_much {
            self.weigh(session, 0);
        }
    }

    /// Queues a frame for a session behind its first `told` unread frames, before all later ones.
    pub(super) fn tell_after(&mut self, told: usize, session: SessionId, frame: Arc<[u8]>) {
        let Some(client) = self.sessions.get_mut(session).filter(|client| !client.closing) else { return };
        if told == client.push_queue.frames() {
            return self.tell(session, frame);
        }
        // The connection was woken when the first of those frames was queued.
        client.push_queue.insert(told, frame);
        self.sessions.account_memory(session);
        self.weigh(session, 0);
    }

    /// Closes a session over its output limit; `more` counts bytes of replies that are not in its buffers yet.
    fn weigh(&mut self, session: SessionId, more: usize) {
        let Some(client) = self.sessions.get_mut(session) else { return };
        if !self.limits.concern(client) {
            return;
        }
        let limit = self.limits.of(client);
        let bytes = counted_bytes(client.waiting_bytes() + more);
        let exceeds = |limit_bytes: u64| limit_bytes > 0 && bytes > 0 && bytes >= limit_bytes;
        if exceeds(limit.hard_bytes) {
            self.cut_off(session);
        } else if !exceeds(limit.soft_bytes) {
            self.overfull.forget(client);
        } else if client.overfull_until.is_none() {
            let lasts_us = i64::try_from(limit.soft_s).unwrap_or(i64::MAX).saturating_mul(1_000_000);
            let end = Now::from_us(self.now.unix_us.saturating_add(lasts_us));
            client.overfull_until = Some(end);
            self.overfull.ends.insert((end, session));
        }
    }

    /// Closes a session that is over its output limit.
    pub(super) fn cut_off(&mut self, session: SessionId) {
        let Some(client) = self.sessions.get_mut(session).filter(|client| !client.closing) else { return };
        (client.closing, client.cut_off) = (true, true);
        self.overfull.forget(client);
        self.sessions.account_memory(session);
        self.stats.output_buffer_disconnections += 1;
        self.effects.push(Effect::CutOff(session));
    }
}

/// The part of a client's unsent bytes that counts against its limit.
fn counted_bytes(waiting_bytes: usize) -> u64 {
    (waiting_bytes.saturating_sub(FREE_BYTES).div_ceil(BLOCK_BYTES) * WHOLE_BLOCK_BYTES) as u64
}

impl Engine {
    /// The subscriptions, and the parts that are needed to queue frames for subscribers.
    pub(super) fn listening(&mut self) -> (&Subscriptions, Delivery<'_>) {
        let delivery = Delivery {
            sessions: &mut self.sessions,
            overfull: &mut self.observers.overfull,
            recent_packs: &mut self.observers.recent_packs,
            effects: &mut self.effects,
            stats: &mut self.stats,
            limits: &self.settings.output_limits,
            now: self.timing.now,
        };
        (&self.observers.subscriptions, delivery)
    }

    /// Queues a push (a message or an invalidation) for a session, apart from the replies to its own requests.
    pub fn tell(&mut self, session: SessionId, frame: Arc<[u8]>) {
        self.listening().1.tell(session, frame);
    }

    /// Closes a session over its output limit; `more` counts bytes of replies that are not in its buffers yet. To be
    /// called when the amount of unsent output has changed.
    pub fn check_output_limit(&mut self, session: SessionId, more: usize) {
        self.listening().1.weigh(session, more);
    }

    /// Whether the client has an output limit.
    pub fn limits_output(&self, session: SessionId) -> bool {
        self.sessions.get(session).is_some_and(|client| self.settings.output_limits.concern(client))
    }

    /// The longest reply, in bytes, to a command whose reply length the client chooses: the limit of one argument, or
    /// the client's output limit unless the reply is for a script.
    pub(super) fn reply_room(&self, session: SessionId, is_in_script: bool) -> usize {
        let client = self.sessions.get(session).filter(|_| !is_in_script);
        let most_bytes = client.and_then(|client| self.settings.output_limits.most_reply_bytes(client));
        let most_bytes = most_bytes.map_or(usize::MAX, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        self.settings.max_bulk_bytes.min(most_bytes)
    }

    /// A reply became longer than [`Engine::reply_room`]: closes the client if that was its output limit.
    #[cold]
    pub(super) fn overrun(&mut self, session: SessionId, is_in_script: bool) {
        if self.reply_room(session, is_in_script) < self.settings.max_bulk_bytes {
            self.listening().1.cut_off(session);
        }
    }

    /// Takes the log line about a client that was closed at its output limit; later calls return `None`.
    pub fn close_log_line(&mut self, session: SessionId) -> Option<String> {
        let client_info = self.client_info(self.sessions.get(session)?);
        self.sessions.get_mut(session)?.push_queue.clear();
        Some(format!("Client {client_info} scheduled to be closed ASAP for overcoming of output buffer limits."))
    }

    /// Closes a client at once, and drops its unsent output.
    pub(super) fn drop_session(&mut self, session: SessionId) {
        if let Some(client) = self.sessions.get_mut(session) {
            self.observers.forget(client);
            (client.closing, client.cut_off) = (true, true);
            client.push_queue.clear();
        }
        self.sessions.account_memory(session);
        self.effects.push(Effect::Close(session));
    }

    /// Closes the clients that have been over their soft limit for too long.
    pub(super) fn cut_off_overfull(&mut self) {
        while let Some(&(end, session)) = self.observers.overfull.ends.first()
            && end <= self.timing.now
        {
            self.observers.overfull.ends.pop_first();
            self.listening().1.cut_off(session);
        }
    }
}
