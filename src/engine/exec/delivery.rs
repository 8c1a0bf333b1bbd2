//! Delivery: queues push frames and late replies for sessions, and closes clients over their output limit.
//!
//! A frame is added to the session's [`crate::engine::PushQueue`]; the first frame of an empty queue wakes the
//! connection. Unsent output, here and in the connection, is compared with the limit of the client's class
//! (`client-output-buffer-limit`): at the hard limit the client is closed at once, over the soft limit once that has
//! lasted for the configured seconds. Output is counted as Redis stores it, so that the same clients are closed: the
//! first 16 KiB are in a buffer that does not count, the rest in blocks that do; the last block counts whole.
//!
//! Costs: O(1) for each frame. Frames are not copied, except small ones when many of them wait.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::exec::client_line;
use crate::engine::spec::Now;
use crate::engine::state::PushQueue;
use crate::engine::state::output_limits::{FREE_BYTES, Overfull};
use crate::engine::state::push_queue::RecentPacks;
use crate::engine::state::{Effect, Effects, OutputLimits, Session, SessionId, Sessions, Stats, Subscriptions};

/// The payload of a reply block, for output beyond [`FREE_BYTES`]; its size is [`WHOLE_BLOCK_BYTES`].
const BLOCK_BYTES: usize = 20_464;

const WHOLE_BLOCK_BYTES: usize = BLOCK_BYTES + 40;

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
    pub(super) fn receiver(&self, session: SessionId) -> Option<&Session> {
        self.sessions.get(session).filter(|session| !session.closing)
    }

    /// Queues a frame for a session.
    pub(super) fn send(&mut self, session: SessionId, frame: Arc<[u8]>) {
        self.add(session, |queue| queue.push(frame));
    }

    /// Queues a frame that shows nothing of the data for a session.
    pub(super) fn send_without_data(&mut self, session: SessionId, frame: Arc<[u8]>) {
        self.add(session, |queue| queue.push_without_data(frame));
    }

    fn add(&mut self, session: SessionId, push: impl FnOnce(&mut PushQueue) -> bool) {
        let Some(client) = self.sessions.get_mut(session).filter(|client| !client.closing) else { return };
        if push(&mut client.push_queue) {
            self.effects.push(Effect::Wake(session));
        }
        client.push_queue.pack(self.recent_packs);
        let is_much = client.waiting_bytes() > FREE_BYTES;
        self.sessions.account_memory(session);
        if is_much {
            self.check_limit(session, 0);
        }
    }

    /// Queues a frame for a session after its first `frames_before` unread frames, before all later ones.
    pub(super) fn send_after(&mut self, frames_before: usize, session: SessionId, frame: Arc<[u8]>) {
        let Some(client) = self.sessions.get_mut(session).filter(|client| !client.closing) else { return };
        if frames_before == client.push_queue.frames() {
            return self.send(session, frame);
        }
        // The connection was woken when the first of those frames was queued.
        client.push_queue.insert(frames_before, frame);
        self.sessions.account_memory(session);
        self.check_limit(session, 0);
    }

    /// Closes a session over its output limit; `more` counts bytes of replies that are not in its buffers yet.
    fn check_limit(&mut self, session: SessionId, more: usize) {
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
    /// Closes a session over its output limit; `more` counts bytes of replies that are not in its buffers yet. To be
    /// called when the amount of unsent output has changed.
    pub fn check_output_limit(&mut self, session: SessionId, more: usize) {
        of(self).check_limit(session, more);
    }
}

/// The parts that are needed to queue frames.
pub(super) fn of(engine: &mut Engine) -> Delivery<'_> {
    with_subscriptions(engine).1
}

/// The subscriptions, and the parts that are needed to queue frames for subscribers.
pub(super) fn with_subscriptions(engine: &mut Engine) -> (&Subscriptions, Delivery<'_>) {
    let delivery = Delivery {
        sessions: &mut engine.sessions,
        overfull: &mut engine.observers.overfull,
        recent_packs: &mut engine.observers.recent_packs,
        effects: &mut engine.effects,
        stats: &mut engine.stats,
        limits: &engine.settings.output_limits,
        now: engine.timing.now,
    };
    (&engine.observers.subscriptions, delivery)
}

/// Queues a push (a message or an invalidation) for a session, apart from the replies to its own requests.
pub fn send(engine: &mut Engine, session: SessionId, frame: Arc<[u8]>) {
    of(engine).send(session, frame);
}

/// Whether the client has an output limit.
pub fn limits_output(engine: &Engine, session: SessionId) -> bool {
    engine.sessions.get(session).is_some_and(|client| engine.settings.output_limits.concern(client))
}

/// The longest reply, in bytes, to a command whose reply length the client chooses: the limit of one argument, or
/// the client's output limit unless the reply is for a script.
pub(super) fn reply_room(engine: &Engine, session: SessionId, is_in_script: bool) -> usize {
    let client = engine.sessions.get(session).filter(|_| !is_in_script);
    let most_bytes = client.and_then(|client| engine.settings.output_limits.most_reply_bytes(client));
    let most_bytes = most_bytes.map_or(usize::MAX, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    engine.settings.max_bulk_bytes.min(most_bytes)
}

/// A reply became longer than [`reply_room`]: closes the client if that was its output limit.
#[cold]
pub(super) fn overrun(engine: &mut Engine, session: SessionId, is_in_script: bool) {
    if reply_room(engine, session, is_in_script) < engine.settings.max_bulk_bytes {
        of(engine).cut_off(session);
    }
}

/// Takes the log line about a client that was closed at its output limit; later calls return `None`.
pub fn close_log_line(engine: &mut Engine, session: SessionId) -> Option<String> {
    let client_info = client_line::client_info(engine, engine.sessions.get(session)?);
    engine.sessions.get_mut(session)?.push_queue.clear();
    Some(format!("Client {client_info} scheduled to be closed ASAP for overcoming of output buffer limits."))
}

/// Closes a client at once, and drops its unsent output.
pub(super) fn drop_session(engine: &mut Engine, session: SessionId) {
    if let Some(client) = engine.sessions.get_mut(session) {
        engine.observers.forget(client);
        (client.closing, client.cut_off) = (true, true);
        client.push_queue.clear();
    }
    engine.sessions.account_memory(session);
    engine.effects.push(Effect::Close(session));
}

/// Closes the clients that have been over their soft limit for too long.
pub(super) fn cut_off_overfull(engine: &mut Engine) {
    while let Some(&(end, session)) = engine.observers.overfull.ends.first()
        && end <= engine.timing.now
    {
        engine.observers.overfull.ends.pop_first();
        of(engine).cut_off(session);
    }
}
