//! MULTI, EXEC, DISCARD, WATCH and UNWATCH. MULTI queues the following requests, and EXEC runs them atomically, unless
//! a watched key has changed.
//!
//! The dispatcher queues the requests: an error while queueing makes EXEC fail. An error while running does not stop
//! the rest.

use std::sync::Arc;

use crate::engine::exec::operations;
use crate::engine::exec::scripts::suspend_transaction_at;
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec, Propagated, Transaction};

/// The commands of this family.
pub const COMMANDS: &[Command] = &[MULTI, EXEC, DISCARD, WATCH, UNWATCH];

/// Fields shared by most of these rows.
const ROW: Command = Command {
    family: Family::Transactions,
    arity: Arity::Exactly(1),
    flags: UNWATCHING.and(Flags::UNQUEUED),
    ..Command::ROW
};

/// Only UNWATCH is queued like any other command.
const UNWATCHING: Flags = Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE).and(Flags::FAST).and(Flags::ALLOW_BUSY);

const MULTI: Command = Command { name: "MULTI", since: "1.2.0", about: "Starts a transaction.", run: multi, ..ROW };

fn multi(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let session = cx.session_mut();
    if session.transaction.is_some() {
        return Err(Error::NestedMulti);
    }
    session.transaction = Some(Arc::new(Transaction::begin()));
    cx.reply().ok();
    Ok(())
}

const EXEC: Command = Command {
    name: "EXEC",
    flags: Flags::NOSCRIPT
        .and(Flags::LOADING)
        .and(Flags::STALE)
        .and(Flags::SKIP_SLOWLOG)
        .and(Flags::UNQUEUED)
        .and(Flags::RUNS_QUEUE),
    propagated: Propagated::Never,
    since: "1.2.0",
    cost: "That of all the commands in the transaction",
    about: "Runs all commands of the transaction atomically, unless a watched key changed.",
    run: exec,
    ..ROW
};

fn exec(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    // While the commands run, the session still counts as within its transaction.
    let transaction = cx.session().transaction.clone().ok_or(Error::ExecWithoutMulti)?;
    let is_broken = operations::unwatch_all(cx);
    if transaction.is_faulty {
        cx.session_mut().transaction = None;
        return Err(Error::TransactionFaulty);
    }
    if is_broken {
        cx.reply().null_array();
    } else {
        // The commands may change whether replies are sent (CLIENT REPLY); the array header is decided before.
        if cx.session().wants_reply() {
            cx.reply().array(transaction.queue.len());
        }
        for (index, request) in transaction.queue.iter().enumerate() {
            if !cx.run(request) {
                suspend_transaction_at(cx, index + 1);
                return Ok(());
            }
        }
    }
    cx.session_mut().transaction = None;
    Ok(())
}

const DISCARD: Command = Command {
    name: "DISCARD",
    since: "2.0.0",
    cost: "O(N), N being the number of queued commands",
    about: "Discards the transaction and unwatches all keys.",
    run: discard,
    ..ROW
};

fn discard(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    cx.session_mut().transaction.take().ok_or(Error::DiscardWithoutMulti)?;
    operations::unwatch_all(cx);
    cx.reply().ok();
    Ok(())
}

const WATCH: Command = Command {
    name: "WATCH",
    syntax: "key [key ...]",
    arity: Arity::AtLeast(2),
    keys: &[KeySpec::all(KeyFlags::RO)],
    since: "2.2.0",
    cost: "O(1) for every key",
    about: "Watches keys: the next transaction runs only if they do not change before.",
    run: watch,
    ..ROW
};

fn watch(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    if cx.session().transaction.is_some() {
        return Err(Error::WatchInMulti);
    }
    for key in args.rest() {
        operations::watch_key(cx, key);
    }
    cx.reply().ok();
    Ok(())
}

const UNWATCH: Command =
    Command { name: "UNWATCH", flags: UNWATCHING, since: "2.2.0", about: "Unwatches all keys.", run: unwatch, ..ROW };

fn unwatch(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    operations::unwatch_all(cx);
    cx.reply().ok();
    Ok(())
}
