//! DUNLIN WAIT: waits for an event, so that a test need not poll.

use super::filter::filter;
use super::journal::is_of_all_nodes;
use super::{ROW, count, explained};
use crate::engine::exec::kit::waits;
use crate::engine::state::LateReply;
use crate::engine::state::kit::{Condition, Filter, Waiter};
use crate::engine::{Args, Arity, Block, Command, Ctx, Engine, Error, KitError, ServerError, says};

pub(super) const WAIT: Command = Command {
    name: "WAIT",
    syntax: "condition:<blocked:<BLOCKED key [number]>|subscribers:<SUBSCRIBERS channel number>|\
             journal:<JOURNAL number [ALL-NODES] [COMMAND command] [KEY pattern] [CLIENT name] [ERRORS] [REDIRECTED]>|\
             fault:<FAULT name number>|clients:<CLIENTS number>|cluster:<CLUSTER <OK | FAIL | AGREED>>|SYNCED> \
             [TIMEOUT milliseconds]",
    arity: Arity::AtLeast(3),
    cost: "O(1), and as much after each command of others; with JOURNAL O(N) once, N being the commands that are kept, \
           and O(N) after each with ALL-NODES",
    about: "Waits until clients are blocked on a key, subscribed to a channel or connected, a fault has fired, \
            commands were run, this node of a cluster serves keys or no longer does, all nodes agree, or replicas have \
            all writes.",
    shows_data: false,
    run: |cx, args| explained(&WAIT, wait(cx, args)),
    ..ROW
};

fn wait(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let mut condition = condition(cx, &mut args)?;
    let mut deadline_ms = None;
    if args.take("TIMEOUT") {
        deadline_ms = args.timeout_ms(cx.now())?;
    }
    args.end()?;
    let (session, now_ms) = (cx.session().id, cx.now_ms());
    let before = cx.observers_mut().take_waiter(session);
    if let Err(error) = check_can_hold(cx, &condition) {
        cx.observers_mut().put_kit_away();
        return Err(error);
    }
    if let Some(waiter) = &before
        && let Condition::JournalOfAllNodes { found, .. } = &waiter.condition
    {
        condition.clone_from(&waiter.condition);
        if let Err(error) = found {
            cx.observers_mut().put_kit_away();
            return Err(error.clone().into());
        }
    }
    if waits::holds(cx.engine(), &condition) {
        cx.observers_mut().put_kit_away();
        cx.reply().ok();
        return Ok(());
    }
    if let Some(waiter) = before {
        deadline_ms = waiter.deadline_ms;
    }
    if deadline_ms.is_some_and(|deadline_ms| deadline_ms <= now_ms) {
        let text = timeout_message(cx.engine(), &condition);
        cx.observers_mut().put_kit_away();
        return Err(ServerError::Kit(text).into());
    }
    if let Condition::JournalOfAllNodes { .. } = condition {
        cx.engine().host.count_journals();
    }
    cx.observers_mut().wait_until(Waiter { session, condition, deadline_ms });
    cx.block(Block::until(deadline_ms, LateReply::Nothing), |_| {});
    Ok(())
}

/// Refuses a condition that can never hold: there is no journal, no cluster, or no rule of that name.
fn check_can_hold(cx: &mut Ctx<'_>, condition: &Condition) -> Result<(), Error> {
    let kit = cx.engine().observers.kit.as_ref();
    match condition {
        Condition::Cluster { .. } | Condition::Agreed if cx.engine().peers.cluster.is_none() => {
            Err(ServerError::NoCluster.into())
        }
        Condition::Journal { .. } if kit.is_none_or(|kit| kit.journal.is_none()) => Err(KitError::NoJournal.into()),
        Condition::Fired { rule, .. } if waits::trigger(cx.engine(), rule).is_none() => {
            Err(ServerError::Kit(format!("no fault rule {}; add one with DUNLIN FAULT ADD", shown(rule))).into())
        }
        _ => Ok(()),
    }
}

fn condition(cx: &mut Ctx<'_>, args: &mut Args<'_>) -> Result<Condition, Error> {
    let kind = args.word()?;
    if says(kind, "BLOCKED") {
        let key = args.key()?.to_vec();
        let is_counted = args.peek().is_some_and(|word| !says(word, "TIMEOUT"));
        let count = if is_counted { count(args)? } else { 1 };
        return Ok(Condition::Blocked { database: cx.database_index(), key, count });
    }
    if says(kind, "SUBSCRIBERS") {
        let channel = args.word()?.to_vec();
        return Ok(Condition::Subscribers { channel, count: count(args)? });
    }
    if says(kind, "JOURNAL") {
        let count = count(args)?;
        let mut is_of_all = is_of_all_nodes(cx, args)?;
        let filter: Filter = filter(cx.table(), args)?;
        is_of_all |= is_of_all_nodes(cx, args)?;
        return Ok(match is_of_all {
            true => Condition::JournalOfAllNodes { count, filter, found: Ok(0) },
            false => Condition::Journal { count, filter },
        });
    }
    if says(kind, "FAULT") {
        let rule = args.word()?.to_vec();
        return Ok(Condition::Fired { rule, count: count(args)? });
    }
    if says(kind, "CLIENTS") {
        return Ok(Condition::Clients { count: count(args)?, asker: cx.session().id });
    }
    if says(kind, "CLUSTER") {
        if args.take("AGREED") {
            return Ok(Condition::Agreed);
        }
        let is_ok = args.take("OK");
        return if is_ok || args.take("FAIL") { Ok(Condition::Cluster { is_ok }) } else { Err(Error::Syntax) };
    }
    if says(kind, "SYNCED") {
        return Ok(Condition::Synced);
    }
    Err(Error::Syntax)
}

/// The error for a wait that timed out.
fn timeout_message(engine: &Engine, condition: &Condition) -> String {
    let progress = waits::progress(engine, condition);
    match condition {
        Condition::Blocked { key, .. } if progress == 0 => {
            format!("waited in vain: no client waits for {}", shown(key))
        }
        Condition::Blocked { key, count, .. } => {
            format!("waited in vain: {progress} of {count} clients wait for {}", shown(key))
        }
        Condition::Subscribers { channel, count } => {
            format!("waited in vain: {progress} of {count} listen to {}", shown(channel))
        }
        Condition::Journal { count, filter } => {
            format!("waited in vain: the journal has {progress} of {count} commands of{filter}")
        }
        Condition::JournalOfAllNodes { count, filter, .. } => {
            format!("waited in vain: the journals of all nodes have {progress} of {count} commands of{filter}")
        }
        Condition::Fired { rule, count } => {
            format!("waited in vain: the rule {} has fired {progress} of {count} times", shown(rule))
        }
        Condition::Clients { count, .. } => format!("waited in vain: the number of clients is {progress}, not {count}"),
        Condition::Cluster { is_ok } => {
            format!("waited in vain: the cluster_state of this node is {}", if *is_ok { "fail" } else { "ok" })
        }
        Condition::Agreed => {
            let why = engine.host.disagreement().map(|why| why.to_string());
            format!("waited in vain: the nodes do not agree: {}", why.unwrap_or_default())
        }
        Condition::Synced => format!("waited in vain: the number of replicas that are behind is {progress}"),
    }
}

fn shown(name: &[u8]) -> String {
    format!("'{}'", String::from_utf8_lossy(name))
}
