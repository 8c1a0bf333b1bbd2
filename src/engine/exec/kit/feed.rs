//! Passing finished commands on to those that want them: readers of the feed are woken, subscribers (DUNLIN FEED) are
//! sent a push message.
//!
//! The message is the word `feed` and the entry as DUNLIN JOURNAL LIST shows it. A subscriber for which much is unsent
//! already is sent nothing; the next message that it gets is preceded by `feed-dropped` and the number of those that
//! it missed. So is one whose user could no longer start the feed, without a number.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::exec::{acl, delivery};
use crate::engine::state::kit::feed::Ended;
use crate::engine::state::{Effect, SessionId, Sessions};
use crate::resp::{Protocol, Reply, Request};

/// The unsent bytes of a subscriber from which on commands are dropped for it.
const MAX_UNSENT_BYTES: usize = 1 << 20;

/// Hands a command over to the readers and subscribers that want it.
pub(super) fn publish(engine: &mut Engine, ended: &Ended) {
    ended.woken.iter().for_each(|reader| engine.effects.push(Effect::Wake(*reader)));
    if ended.subscribers.is_empty() {
        return;
    }
    let world = engine.host.facts().name_of_world();
    let frame = push(b"feed", |reply| ended.entry.write(world, reply));
    for subscriber in &ended.subscribers {
        if may_subscribe(engine, *subscriber) {
            send(engine, *subscriber, &frame);
        }
    }
}

/// Whether the user of a subscriber may still run the command that started its feed, and read all keys.
fn may_subscribe(engine: &Engine, subscriber: SessionId) -> bool {
    let command = engine.observers.kit.as_ref().and_then(|kit| kit.feed.command_of(subscriber));
    let words = Request::new(&[], &[]);
    command.is_some_and(|command| acl::may_read_all_keys(engine, subscriber, command, words))
}

/// Whether a subscriber has more than [`MAX_UNSENT_BYTES`] of unsent output, so that commands are dropped for it.
pub(super) fn is_slow(sessions: &Sessions, subscriber: SessionId) -> bool {
    sessions.get(subscriber).is_some_and(|client| client.waiting_bytes() > MAX_UNSENT_BYTES)
}

fn send(engine: &mut Engine, subscriber: SessionId, frame: &Arc<[u8]>) {
    let Some(kit) = &mut engine.observers.kit else { return };
    let dropped = kit.feed.take_dropped(subscriber);
    if dropped > 0 {
        delivery::send(engine, subscriber, push(b"feed-dropped", |reply| reply.integer(dropped.cast_signed())));
    }
    delivery::send(engine, subscriber, Arc::clone(frame));
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
