//! Passing finished commands on to those that want them: readers of the feed are woken, listeners (DUNLIN FEED) are
//! sent a push message.
//!
//! The message is the word `feed` and the entry as DUNLIN JOURNAL LIST shows it. A listener for which much is unsent
//! already is sent nothing; the next message that it gets is preceded by `feed-dropped` and the number of those that
//! it missed. So is one whose user could no longer start the feed, without a number.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::exec::{delivery, rights};
use crate::engine::state::kit::feed::Ended;
use crate::engine::state::{Effect, SessionId, Sessions};
use crate::resp::{Protocol, Reply, Request};

/// The unsent bytes of a listener from which on commands are dropped for it.
const MAX_UNSENT_BYTES: usize = 1 << 20;

/// Hands a command over to the readers and listeners that want it.
pub(super) fn publish(engine: &mut Engine, ended: &Ended) {
    ended.woken.iter().for_each(|reader| engine.effects.push(Effect::Wake(*reader)));
    if ended.listeners.is_empty() {
        return;
    }
    let world = engine.host.facts().name_of_world();
    let frame = push(b"feed", |reply| ended.entry.write(world, reply));
    for listener in &ended.listeners {
        if may_listen(engine, *listener) {
            send(engine, *listener, &frame);
        }
    }
}

/// Whether the user of a listener may still run the command that started its feed, and read all keys.
fn may_listen(engine: &Engine, listener: SessionId) -> bool {
    let command = engine.observers.kit.as_ref().and_then(|kit| kit.feed.command_of(listener));
    let words = Request::new(&[], &[]);
    command.is_some_and(|command| rights::may_read_all_keys(engine, listener, command, words))
}

/// Whether a listener has more than [`MAX_UNSENT_BYTES`] of unsent output, so that commands are dropped for it.
pub(super) fn is_slow(sessions: &Sessions, listener: SessionId) -> bool {
    sessions.get(listener).is_some_and(|client| client.waiting_bytes() > MAX_UNSENT_BYTES)
}

fn send(engine: &mut Engine, listener: SessionId, frame: &Arc<[u8]>) {
    let Some(kit) = &mut engine.observers.kit else { return };
    let dropped = kit.feed.take_dropped(listener);
    if dropped > 0 {
        delivery::send(engine, listener, push(b"feed-dropped", |reply| reply.integer(dropped.cast_signed())));
    }
    delivery::send(engine, listener, Arc::clone(frame));
}

/// A push message of two elements: its kind, and the one that `write` writes.
fn push(kind: &[u8], write: impl FnOnce(&mut Reply<'_>)) -> Arc<[u8]> {
    let mut frame = Vec::new();
    let mut reply = Reply::new(&mut frame, Protocol::Resp3);
    reply.push(2);
    reply.bulk(kind);
    write(&mut reply);
    frame.into()
}
