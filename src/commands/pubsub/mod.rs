//! Publish and subscribe: messages to the present subscribers of a channel.
//!
//! The commands that subscribe reply with one message for each name, which RESP3 sends as a push; so CLIENT REPLY does
//! not suppress them. Without a cluster, shard channels are channels in a separate namespace.

mod introspect;

use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Channels, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec, Topic};

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    PUBLISH,
    SPUBLISH,
    SUBSCRIBE,
    UNSUBSCRIBE,
    PSUBSCRIBE,
    PUNSUBSCRIBE,
    SSUBSCRIBE,
    SUNSUBSCRIBE,
    introspect::PUBSUB,
];

const PUBLISH: Command = Command {
    name: "PUBLISH",
    syntax: "channel message",
    family: Family::PubSub,
    arity: Arity::Exactly(3),
    flags: Flags::PUBSUB.and(Flags::LOADING).and(Flags::STALE).and(Flags::FAST).and(Flags::MAY_REPLICATE),
    channels: Channels::First,
    since: "2.0.0",
    cost: "O(N+M), N being the number of subscribers of the channel and M that of all patterns",
    about: "Publishes a message to the subscribers of a channel.",
    run: |cx, args| publish(cx, args, Topic::Channel),
    ..Command::ROW
};

const SPUBLISH: Command = Command {
    name: "SPUBLISH",
    syntax: "shardchannel message",
    keys: &[KeySpec::one(KeyFlags::NOT_KEY)],
    since: "7.0.0",
    cost: "O(N), N being the number of subscribers of the shard channel",
    about: "Publishes a message to the subscribers of a shard channel.",
    run: |cx, args| publish(cx, args, Topic::Shard),
    ..PUBLISH
};

fn publish(cx: &mut Ctx<'_>, mut args: Args<'_>, topic: Topic) -> Result<(), Error> {
    let (channel, message) = (args.word()?, args.word()?);
    let receivers = operations::publish(cx, topic, channel, message);
    cx.reply().count(receivers);
    Ok(())
}

const SUBSCRIBE: Command = Command {
    name: "SUBSCRIBE",
    syntax: "channel [channel ...]",
    family: Family::PubSub,
    arity: Arity::AtLeast(2),
    flags: Flags::PUBSUB.and(Flags::NOSCRIPT).and(Flags::LOADING).and(Flags::STALE).and(Flags::WHILE_SUBSCRIBED),
    channels: Channels::All,
    since: "2.0.0",
    cost: "O(N), N being the number of channels",
    about: "Subscribes to channels.",
    run: |cx, args| subscribe(cx, args, Topic::Channel, "subscribe"),
    ..Command::ROW
};

const PSUBSCRIBE: Command = Command {
    name: "PSUBSCRIBE",
    syntax: "pattern [pattern ...]",
    channels: Channels::Patterns,
    cost: "O(N), N being the number of patterns",
    about: "Subscribes to all channels that match patterns.",
    run: |cx, args| subscribe(cx, args, Topic::Pattern, "psubscribe"),
    ..SUBSCRIBE
};

const SSUBSCRIBE: Command = Command {
    name: "SSUBSCRIBE",
    syntax: "shardchannel [shardchannel ...]",
    keys: &[KeySpec::all(KeyFlags::NOT_KEY)],
    since: "7.0.0",
    cost: "O(N), N being the number of shard channels",
    about: "Subscribes to shard channels.",
    run: |cx, args| subscribe(cx, args, Topic::Shard, "ssubscribe"),
    ..SUBSCRIBE
};

/// Within a transaction clients cannot subscribe to shard channels, but to the others.
fn subscribe(cx: &mut Ctx<'_>, args: Args<'_>, topic: Topic, kind: &str) -> Result<(), Error> {
    if topic == Topic::Shard && cx.is_nested() {
        return Err(Error::ShardSubscribeDenied);
    }
    for name in args.rest() {
        operations::subscribe(cx, topic, name);
        confirm(cx, topic, kind, Some(name));
    }
    Ok(())
}

const UNSUBSCRIBE: Command = Command {
    name: "UNSUBSCRIBE",
    syntax: "[channel [channel ...]]",
    arity: Arity::AtLeast(1),
    channels: Channels::None,
    about: "Unsubscribes from channels, by default from all.",
    run: |cx, args| unsubscribe(cx, args, Topic::Channel, "unsubscribe"),
    ..SUBSCRIBE
};

const PUNSUBSCRIBE: Command = Command {
    name: "PUNSUBSCRIBE",
    syntax: "[pattern [pattern ...]]",
    arity: Arity::AtLeast(1),
    channels: Channels::None,
    about: "Unsubscribes from patterns, by default from all.",
    run: |cx, args| unsubscribe(cx, args, Topic::Pattern, "punsubscribe"),
    ..PSUBSCRIBE
};

const SUNSUBSCRIBE: Command = Command {
    name: "SUNSUBSCRIBE",
    syntax: "[shardchannel [shardchannel ...]]",
    arity: Arity::AtLeast(1),
    channels: Channels::None,
    about: "Unsubscribes from shard channels, by default from all.",
    run: |cx, args| unsubscribe(cx, args, Topic::Shard, "sunsubscribe"),
    ..SSUBSCRIBE
};

fn unsubscribe(cx: &mut Ctx<'_>, args: Args<'_>, topic: Topic, kind: &str) -> Result<(), Error> {
    if !args.is_empty() {
        for name in args.rest() {
            operations::unsubscribe(cx, topic, name);
            confirm(cx, topic, kind, Some(name));
        }
        return Ok(());
    }
    if cx.session().subscribed.count(topic) == 0 {
        confirm(cx, topic, kind, None);
    }
    while let Some(name) = cx.session().subscribed.first(topic) {
        operations::unsubscribe(cx, topic, &name);
        confirm(cx, topic, kind, Some(&name));
    }
    Ok(())
}

/// Writes the number of the client's subscriptions: to shard channels, or to channels and patterns together.
fn confirm(cx: &mut Ctx<'_>, topic: Topic, kind: &str, name: Option<&[u8]>) {
    let subscribed = &cx.session().subscribed;
    let count = match topic {
        Topic::Shard => subscribed.count(Topic::Shard),
        Topic::Channel | Topic::Pattern => subscribed.count(Topic::Channel) + subscribed.count(Topic::Pattern),
    };
    operations::push_reply(cx, |reply| {
        reply.push(3);
        reply.bulk(kind.as_bytes());
        reply.bulk_or_null(name);
        reply.count(count);
    });
}
