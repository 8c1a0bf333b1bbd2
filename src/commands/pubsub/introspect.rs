//! PUBSUB: lists channels and counts subscribers.
//!
//! Lists are sorted by name, where Redis has no order.

use crate::commands::help;
use crate::engine::state::observers::Audience;
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, Topic, shown};
use crate::value::glob::Pattern;

pub(super) const PUBSUB: Command = Command {
    name: "PUBSUB",
    family: Family::PubSub,
    arity: Arity::AtLeast(2),
    since: "2.8.0",
    cost: "Depends on subcommand.",
    about: "A container for commands about subscriptions.",
    subcommands: &[CHANNELS, NUMPAT, NUMSUB, SHARDCHANNELS, SHARDNUMSUB, HELP],
    ..Command::ROW
};

const CHANNELS: Command = Command {
    name: "CHANNELS",
    syntax: "[pattern]",
    family: Family::PubSub,
    arity: Arity::AtLeast(2),
    flags: Flags::PUBSUB.and(Flags::LOADING).and(Flags::STALE),
    since: "2.8.0",
    cost: "O(N), N being the number of channels that have subscribers",
    about: "Lists the channels that have subscribers, all or those that match a pattern.",
    run: |cx, args| channels(cx, args, Topic::Channel),
    ..Command::ROW
};

const SHARDCHANNELS: Command = Command {
    name: "SHARDCHANNELS",
    since: "7.0.0",
    cost: "O(N), N being the number of shard channels that have subscribers",
    about: "Lists the shard channels that have subscribers, all or those that match a pattern.",
    run: |cx, args| channels(cx, args, Topic::Shard),
    ..CHANNELS
};

fn channels(cx: &mut Ctx<'_>, mut args: Args<'_>, topic: Topic) -> Result<(), Error> {
    let subcommand = args.previous();
    let pattern = if args.is_empty() { None } else { Some(Pattern::new(args.word()?, false)) };
    if !args.is_empty() {
        return Err(Error::SubcommandOrArity { container: "PUBSUB", subcommand: shown(subcommand) });
    }
    let (engine, reply) = cx.engine_and_reply();
    let is_wanted = |name: &[u8]| pattern.as_ref().is_none_or(|pattern| pattern.matches(name));
    let names = engine.observers.subscriptions.names(topic, is_wanted);
    reply.array(names.len());
    reply.bulks(names.into_iter());
    Ok(())
}

const NUMSUB: Command = Command {
    name: "NUMSUB",
    syntax: "[channel [channel ...]]",
    cost: "O(N), N being the number of channels asked for",
    about: "Returns the number of subscribers of channels, without those by pattern.",
    run: |cx, args| subscribers(cx, args, Topic::Channel),
    ..CHANNELS
};

const SHARDNUMSUB: Command = Command {
    name: "SHARDNUMSUB",
    syntax: "[shardchannel [shardchannel ...]]",
    since: "7.0.0",
    cost: "O(N), N being the number of shard channels asked for",
    about: "Returns the number of subscribers of shard channels.",
    run: |cx, args| subscribers(cx, args, Topic::Shard),
    ..CHANNELS
};

fn subscribers(cx: &mut Ctx<'_>, args: Args<'_>, topic: Topic) -> Result<(), Error> {
    let (engine, reply) = cx.engine_and_reply();
    reply.array(args.left() * 2);
    for name in args.rest() {
        reply.bulk(name);
        reply.count(engine.observers.subscriptions.audience(topic, name).map_or(0, Audience::len));
    }
    Ok(())
}

const NUMPAT: Command = Command {
    name: "NUMPAT",
    syntax: "",
    arity: Arity::Exactly(2),
    cost: "O(1)",
    about: "Returns the number of different patterns that have subscribers.",
    run: numpat,
    ..CHANNELS
};

fn numpat(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let (engine, reply) = cx.engine_and_reply();
    reply.count(engine.observers.subscriptions.count(Topic::Pattern));
    Ok(())
}

const HELP: Command = help::row(Family::PubSub, "6.2.0");
