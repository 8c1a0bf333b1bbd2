//! Transactions: MULTI has the following requests queued, EXEC runs them as one step, DISCARD forgets them. WATCH makes
//! EXEC depend on keys staying as they are.
//!
//! Queueing is dispatch's: what is refused there spoils the transaction. What fails when
//! it runs does not stop the rest.

use std::sync::Arc;

use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec, Transaction};

/// The commands of this family.
pub const COMMANDS: &[Command] = &[MULTI, EXEC, DISCARD, WATCH, UNWATCH];

/// What most of them share.
const ROW: Command = Command {
    family: Family::Transactions,
    arity: Arity::Exactly(1),
    flags: UNWATCHING.and(Flags::UNQUEUED),
    ..Command::ROW
};

/// UNWATCH alone is queued like any other command.
const UNWATCHING: Flags = Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE).and(Flags::FAST).and(Flags::ALLOW_BUSY);

const MULTI: Command = Command { name: "MULTI", since: "1.2.0", about: "Begins a transaction.", run: multi, ..ROW };

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
    since: "1.2.0",
    cost: "That of all the commands in the transaction",
    about: "Runs all commands of the transaction as one step, unless a watched key changed.",
    run: exec,
    ..ROW
};

fn exec(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    // While it runs, the session is still seen within its transaction.
    let transaction = cx.session().transaction.clone().ok_or(Error::ExecWithoutMulti)?;
    let is_broken = cx.unwatch();
    if transaction.is_faulty {
        cx.session_mut().transaction = None;
        return Err(Error::TransactionFaulty);
    }
    if is_broken {
        cx.reply().null_array();
    } else {
        // The commands may change whether replies are sent (CLIENT REPLY); the head is one by itself.
        if cx.session().wants_reply() {
            cx.reply().array(transaction.queue.len());
        }
        for (index, request) in transaction.queue.iter().enumerate() {
            if !cx.run(request) {
                cx.rest_before(index + 1);
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
    about: "Forgets the transaction, and all watched keys.",
    run: discard,
    ..ROW
};

fn discard(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    cx.session_mut().transaction.take().ok_or(Error::DiscardWithoutMulti)?;
    cx.unwatch();
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
    about: "Lets the next transaction run only if these keys stay as they are.",
    run: watch,
    ..ROW
};

fn watch(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    if cx.session().transaction.is_some() {
        return Err(Error::WatchInMulti);
    }
    for key in args.rest() {
        cx.watch(key);
    }
    cx.reply().ok();
    Ok(())
}

const UNWATCH: Command = Command {
    name: "UNWATCH",
    flags: UNWATCHING,
    since: "2.2.0",
    about: "Forgets all watched keys.",
    run: unwatch,
    ..ROW
};

fn unwatch(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    cx.unwatch();
    cx.reply().ok();
    Ok(())
}
