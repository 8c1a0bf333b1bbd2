//! How sessions are told something, and what becomes of one that does not read.
//!
//! A frame goes into the session's [`crate::engine::PushQueue`], and its connection is woken if it was the first. What
//! waits for a client, here and in its connection, is weighed against the limit of its class
//! (`client-output-buffer-limit`): at the hard one the client is closed at once, over the soft one when that has lasted
//! for so many seconds. What waits is counted as Redis would keep it, so that the same clients are closed: the first 16
//! KiB in a buffer that does not count, and the rest in blocks that do, the last of which has room left.
//!
//! Costs: O(1) for each frame; no copy, but one of small frames when many of them wait.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::engine::push_queue::RecentPacks;
use crate::engine::{Effect, Effects, Engine, Now, Session, SessionId, Sessions, Stats, Subscriptions};

/// The bytes that may wait for a client without being counted: Redis's static reply buffer.
const FREE_BYTES: usize = 16 << 10;
/// The payload and the size of a block for what waits beyond that.
const BLOCK_BYTES: usize = 20_464;
const WHOLE_BLOCK_BYTES: usize = BLOCK_BYTES + 40;

/// How much may wait for the clients of a class; 0 for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputLimit {
    /// At so many bytes a client is closed.
    pub hard_bytes: u64,
    /// At so many bytes a client is closed when that lasts.
    pub soft_bytes: u64,
    /// How long it may last, in seconds.
    pub soft_s: u64,
}

/// The limits of all classes of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// Plain clients, and those that watch commands.
    pub normal: OutputLimit,
    /// Replicas.
    pub replica: OutputLimit,
    /// Clients that subscribe.
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
    /// False when any amount may wait for that client, and always might.
    pub(super) fn concern(&self, session: &Session) -> bool {
        self.of(session) != OutputLimit::default() || session.overfull_until.is_some()
    }

    /// From how many bytes on a reply has its client closed; `None` for no number.
    pub(super) fn most_reply_bytes(&self, session: &Session) -> Option<u64> {
        let limit = self.of(session);
        (limit.hard_bytes > 0).then(|| limit.hard_bytes.saturating_add(FREE_BYTES as u64))
    }

    /// The limit for that client.
    fn of(&self, session: &Session) -> OutputLimit {
        if session.subscribed.is_empty() { self.normal } else { self.pubsub }
    }
}

/// The clients over their soft limit, by the moment at which each is to be closed.
#[derive(Debug, Default)]
pub struct Overfull {
    ends: BTreeSet<(Now, SessionId)>,
}

impl Overfull {
    /// When the first of them is to be closed.
    pub fn next(&self) -> Option<Now> {
        self.ends.first().map(|(end, _)| *end)
    }

    pub(super) fn forget(&mut self, session: &mut Session) {
        if let Some(end) = session.overfull_until.take() {
            self.ends.remove(&(end, session.id));
        }
    }
}

/// What it takes to tell sessions something.
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
    /// The session, if it is there to be told anything.
    pub(super) fn listener(&self, session: SessionId) -> Option<&Session> {
        self.sessions.get(session).filter(|session| !session.closing)
    }

    /// Tells a session something.
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

    /// Tells a session something behind the first `told` frames that it has not read, before all others.
    pub(super) fn tell_after(&mut self, told: usize, session: SessionId, frame: Arc<[u8]>) {
        let Some(client) = self.sessions.get_mut(session).filter(|client| !client.closing) else { return };
        if told == client.push_queue.frames() {
            return self.tell(session, frame);
        }
        // It was woken when the first of those came.
        client.push_queue.insert(told, frame);
        self.sessions.account_memory(session);
        self.weigh(session, 0);
    }

    /// Closes a session for which too much waits, `more` bytes of replies counted that are not in its buffers yet.
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

    /// Closes a session for which too much waits.
    pub(super) fn cut_off(&mut self, session: SessionId) {
        let Some(client) = self.sessions.get_mut(session).filter(|client| !client.closing) else { return };
        (client.closing, client.cut_off) = (true, true);
        self.overfull.forget(client);
        self.sessions.account_memory(session);
        self.stats.output_buffer_disconnections += 1;
        self.effects.push(Effect::CutOff(session));
    }
}

/// What of so many bytes that wait for a client is held against it.
fn counted_bytes(waiting_bytes: usize) -> u64 {
    (waiting_bytes.saturating_sub(FREE_BYTES).div_ceil(BLOCK_BYTES) * WHOLE_BLOCK_BYTES) as u64
}

impl Engine {
    /// Who listens, and what it takes to tell them something.
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

    /// Has a session be told something beside the replies to its own requests.
    pub fn tell(&mut self, session: SessionId, frame: Arc<[u8]>) {
        self.listening().1.tell(session, frame);
    }

    /// Closes a session for which too much waits, `more` bytes of replies counted that are not in its buffers yet; to
    /// be called when that has changed.
    pub fn check_output_limit(&mut self, session: SessionId, more: usize) {
        self.listening().1.weigh(session, more);
    }

    /// Whether the client is closed when too many replies wait for it.
    pub fn limits_output(&self, session: SessionId) -> bool {
        self.sessions.get(session).is_some_and(|client| self.settings.output_limits.concern(client))
    }

    /// How long a reply may get whose length the client asked for, in bytes: what one argument may have, or what his
    /// limit for replies is, unless it is for a script.
    pub(super) fn reply_room(&self, session: SessionId, is_in_script: bool) -> usize {
        let client = self.sessions.get(session).filter(|_| !is_in_script);
        let most_bytes = client.and_then(|client| self.settings.output_limits.most_reply_bytes(client));
        let most_bytes = most_bytes.map_or(usize::MAX, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        self.settings.max_bulk_bytes.min(most_bytes)
    }

    /// A reply became longer than [`Engine::reply_room`]: closes the client if that was his limit.
    #[cold]
    pub(super) fn overrun(&mut self, session: SessionId, is_in_script: bool) {
        if self.reply_room(session, is_in_script) < self.settings.max_bulk_bytes {
            self.listening().1.cut_off(session);
        }
    }

    /// What the log says of a client that was cut off because too much waited for it. That is forgotten then.
    pub fn close_log_line(&mut self, session: SessionId) -> Option<String> {
        let client_info = self.client_info(self.sessions.get(session)?);
        self.sessions.get_mut(session)?.push_queue.clear();
        Some(format!("Client {client_info} scheduled to be closed ASAP for overcoming of output buffer limits."))
    }

    /// Closes a client at once, whatever waits for it.
    pub(super) fn drop_session(&mut self, session: SessionId) {
        if let Some(client) = self.sessions.get_mut(session) {
            self.observers.forget(client);
            (client.closing, client.cut_off) = (true, true);
            client.push_queue.clear();
        }
        self.sessions.account_memory(session);
        self.effects.push(Effect::Close(session));
    }

    /// Closes the clients that were over their soft limit for too long.
    pub(super) fn cut_off_overfull(&mut self) {
        while let Some(&(end, session)) = self.observers.overfull.ends.first()
            && end <= self.timing.now
        {
            self.observers.overfull.ends.pop_first();
            self.listening().1.cut_off(session);
        }
    }
}
