//! DUNLIN FAULT: adds, lists and removes the rules by which commands, and calls of the disk, fail.

use super::filter::command;
use super::{ROW, count, explained, has_nodes, order_host};
use crate::engine::exec::operations;
use crate::engine::state::kit::{
    DiskCalls, DiskFailure, DiskFault, DiskFaults, Failure, Fault, FaultEffect, State, Trigger,
};
use crate::engine::{Args, Arity, Command, Ctx, Error, FaultOrder, HostCall, HostReply, ServerError, Table, says};
use crate::resp::Reply;
use crate::value::hash_slot::HASH_SLOTS;
use crate::value::number;

pub(super) const FAULT: Command = Command {
    name: "FAULT",
    syntax: "action:<add:<ADD name [COMMAND command] [KEY pattern] [CLIENT client] [NODE number] [NTH nth] \
             [TIMES times] [PERCENT percent] failure:<DELAY milliseconds|ERROR text|DROP-BEFORE|DROP-AFTER|HALF-REPLY|\
             SPLIT-REPLY|SILENCE|LOADING|BUSY|READONLY|OOM|moved:<MOVED slot node>|ask:<ASK slot node>|TRYAGAIN|\
             CLUSTERDOWN|CROSSSLOT|MASTERDOWN>>|\
             disk:<ADD name DISK calls:<READ|WRITE|SYNC|RENAME|ANY> [FILE pattern] [NTH nth] [TIMES times] \
             [PERCENT percent] failure:<EIO|ENOSPC|SPACE bytes|DELAY milliseconds>>|\
             REMOVE rule|LIST|CLEAR>",
    arity: Arity::AtLeast(3),
    cost: "O(N), N being the rules",
    about: "Makes commands fail, be late, or lose their replies or connections, or the disk fail, by rules. In a \
            cluster a rule is one of its node, and is listed and removed by any.",
    shows_data: false,
    run: |cx, args| explained(&FAULT, fault(cx, args)),
    ..ROW
};

fn fault(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let action = args.word()?;
    match () {
        () if says(action, "ADD") => add(cx, args),
        () if says(action, "REMOVE") => remove(cx, args),
        () if says(action, "LIST") => list(cx, args),
        () if says(action, "CLEAR") => clear(cx, args),
        () => Err(Error::Syntax),
    }
}

fn add(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let name = args.word()?;
    if args.take("DISK") {
        return add_for_disk(cx, name, args);
    }
    let mut rule = Fault::of(name);
    let node = options(cx.table(), &mut rule, &mut args)?;
    rule.effect = effect(&mut args)?;
    args.end()?;
    if let Some(number) = node {
        return order_host(cx, HostCall::Faults(FaultOrder::Add(number, Box::new(rule))));
    }
    if let Some(faults) = cx.engine().host.disk_faults() {
        faults.remove(name);
    }
    cx.observers_mut().kit().faults.add(rule);
    cx.reply().ok();
    Ok(())
}

/// Adds a rule for calls of the file system.
fn add_for_disk(cx: &mut Ctx<'_>, name: &[u8], mut args: Args<'_>) -> Result<(), Error> {
    let calls = disk_calls(args.word()?)?;
    let (mut file, mut trigger) = (None, Trigger::default());
    loop {
        if args.take("FILE") {
            file = Some(args.word()?.to_vec());
        } else if !trigger_option(&mut trigger, &mut args)? {
            break;
        }
    }
    let failure = disk_failure(calls, &mut args)?;
    args.end()?;
    let seed = if trigger.percent.is_some() { cx.random() } else { 0 };
    let Some(faults) = cx.engine().host.disk_faults() else {
        return Err(ServerError::Kit("only the first world has files".to_owned()).into());
    };
    faults.add(DiskFault { name: name.to_vec(), calls, file, trigger, failure }, seed);
    cx.observers_mut().kit().faults.remove(name);
    cx.observers_mut().put_kit_away();
    cx.reply().ok();
    Ok(())
}

fn disk_calls(word: &[u8]) -> Result<DiskCalls, Error> {
    Ok(match () {
        () if says(word, "ANY") => DiskCalls::Any,
        () if says(word, "READ") => DiskCalls::Read,
        () if says(word, "WRITE") => DiskCalls::Write,
        () if says(word, "SYNC") => DiskCalls::Sync,
        () if says(word, "RENAME") => DiskCalls::Rename,
        () => return Err(Error::Syntax),
    })
}

fn disk_failure(calls: DiskCalls, args: &mut Args<'_>) -> Result<DiskFailure, Error> {
    let word = args.word()?;
    Ok(match () {
        () if says(word, "EIO") => DiskFailure::InputOutput,
        () if says(word, "ENOSPC") => DiskFailure::Full,
        () if says(word, "SPACE") && calls == DiskCalls::Write => DiskFailure::Space { bytes: not_negative(args)? },
        () if says(word, "DELAY") => DiskFailure::Delay { ms: not_negative(args)? },
        () => return Err(Error::Syntax),
    })
}

fn not_negative(args: &mut Args<'_>) -> Result<u64, Error> {
    u64::try_from(args.integer()?).map_err(|_| Error::NotAnInteger)
}

/// Parses the commands that a rule matches, and for which matches it fires. Returns the number of its node, if that is
/// named.
fn options(table: &Table, rule: &mut Fault, args: &mut Args<'_>) -> Result<Option<usize>, Error> {
    let mut node = None;
    loop {
        if args.take("COMMAND") {
            rule.command = Some(command(table, args)?);
        } else if args.take("KEY") {
            rule.key = Some(args.word()?.to_vec());
        } else if args.take("CLIENT") {
            rule.client = Some(args.word()?.to_vec());
        } else if args.take_with("NODE", 1) {
            node = Some(count(args)?);
        } else if !trigger_option(&mut rule.trigger, args)? {
            return Ok(node);
        }
    }
}

/// Parses one of the options that say when a rule fires, if the next word is one: `NTH n` alone fires once.
fn trigger_option(trigger: &mut Trigger, args: &mut Args<'_>) -> Result<bool, Error> {
    if args.take("NTH") {
        trigger.set_nth(from_one(args)?);
    } else if args.take("TIMES") {
        trigger.times = Some(from_one(args)?);
    } else if args.take("PERCENT") {
        let percent = args.float()?;
        trigger.percent = Some(percent).filter(|percent| (0.0..=100.0).contains(percent));
        trigger.percent.ok_or_else(|| ServerError::Kit("a percentage must be from 0 to 100".to_owned()))?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn from_one(args: &mut Args<'_>) -> Result<u64, Error> {
    u64::try_from(args.integer()?).ok().filter(|number| *number > 0).ok_or(Error::NotPositive)
}

fn effect(args: &mut Args<'_>) -> Result<FaultEffect, Error> {
    let word = args.word()?;
    let state = match () {
        () if says(word, "LOADING") => State::Loading,
        () if says(word, "BUSY") => State::Busy,
        () if says(word, "READONLY") => State::ReadOnly,
        () if says(word, "OOM") => State::OutOfMemory,
        () if says(word, "MASTERDOWN") => State::MasterDown,
        () if says(word, "MOVED") => {
            let (slot, node) = redirect(args)?;
            State::Moved { slot, node }
        }
        () if says(word, "ASK") => {
            let (slot, node) = redirect(args)?;
            State::Ask { slot, node }
        }
        () if says(word, "TRYAGAIN") => State::TryAgain,
        () if says(word, "CLUSTERDOWN") => State::ClusterDown,
        () if says(word, "CROSSSLOT") => State::CrossSlot,
        () => return failure(word, args).map(FaultEffect::Failure),
    };
    Ok(FaultEffect::State(state))
}

/// A slot, and the node to which its commands are redirected.
fn redirect(args: &mut Args<'_>) -> Result<(u16, String), Error> {
    let slot = u16::try_from(args.integer()?).ok().filter(|slot| *slot < HASH_SLOTS).ok_or(Error::NotAnInteger)?;
    Ok((slot, line(args.word()?)?))
}

fn failure(word: &[u8], args: &mut Args<'_>) -> Result<Failure, Error> {
    Ok(match () {
        () if says(word, "DELAY") => {
            let ms = number::parse_i64(args.word()?).filter(|ms| *ms >= 0).ok_or(Error::NotAnInteger)?;
            Failure::Delay { ms }
        }
        () if says(word, "ERROR") => Failure::Error(line(args.word()?)?),
        () if says(word, "DROP-BEFORE") => Failure::DropBefore,
        () if says(word, "DROP-AFTER") => Failure::DropAfter,
        () if says(word, "HALF-REPLY") => Failure::HalfReply,
        () if says(word, "SPLIT-REPLY") => Failure::SplitReply,
        () if says(word, "SILENCE") => Failure::Silence,
        () => return Err(Error::Syntax),
    })
}

/// A text that can be the line of an error.
fn line(text: &[u8]) -> Result<String, Error> {
    let fault = || Error::from(ServerError::Kit("an error must be one line of text".to_owned()));
    let text = std::str::from_utf8(text).ok().filter(|text| !text.is_empty() && !text.contains(['\r', '\n', '\0']));
    text.map(str::to_owned).ok_or_else(fault)
}

fn remove(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let name = args.word()?;
    args.end()?;
    if has_nodes(cx) {
        let Some(reply) = cx.call_host(HostCall::Faults(FaultOrder::Remove(name.to_vec())))? else { return Ok(()) };
        cx.reply().integer(matches!(reply, HostReply::Removed(true)).into());
        return Ok(());
    }
    let was_there = operations::remove_fault(cx, name);
    cx.reply().integer(was_there.into());
    Ok(())
}

fn clear(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    args.end()?;
    if has_nodes(cx) {
        return order_host(cx, HostCall::Faults(FaultOrder::Clear));
    }
    operations::clear_faults(cx);
    cx.reply().ok();
    Ok(())
}

fn list(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    args.end()?;
    if has_nodes(cx) {
        return list_of_nodes(cx);
    }
    let (engine, reply) = cx.engine_and_reply();
    let rules = engine.observers.kit.as_ref().map_or(&[][..], |kit| kit.faults.rules());
    let disk_rules = engine.host.disk_faults().map(DiskFaults::rules).unwrap_or_default();
    reply.array(rules.len() + disk_rules.len());
    let mut write = |name: &[u8], text: &str, trigger: &Trigger| {
        reply.map(4);
        write_rule(name, text, trigger, reply);
    };
    rules.iter().for_each(|rule| write(&rule.name, &rule.to_string(), &rule.trigger));
    disk_rules.iter().for_each(|rule| write(&rule.name, &rule.to_string(), &rule.trigger));
    Ok(())
}

/// Lists the rules of all nodes of the cluster, each with its node.
fn list_of_nodes(cx: &mut Ctx<'_>) -> Result<(), Error> {
    let Some(HostReply::Faults(rules)) = cx.call_host(HostCall::Faults(FaultOrder::List))? else { return Ok(()) };
    let reply = cx.reply();
    reply.array(rules.len());
    for (node, rule) in rules {
        reply.map(5);
        reply.bulk(b"node");
        reply.count(node);
        write_rule(&rule.name, &rule.to_string(), &rule.trigger, reply);
    }
    Ok(())
}

fn write_rule(name: &[u8], text: &str, trigger: &Trigger, reply: &mut Reply<'_>) {
    reply.bulk(b"name");
    reply.bulk(name);
    reply.bulk(b"rule");
    reply.bulk(text.as_bytes());
    reply.bulk(b"matched");
    reply.integer(trigger.matched.cast_signed());
    reply.bulk(b"fired");
    reply.integer(trigger.fired.cast_signed());
}
