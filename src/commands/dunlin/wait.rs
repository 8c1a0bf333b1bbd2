//! DUNLIN WAIT: waits until something is so, where a test would otherwise ask again and again.

use super::ROW;
use super::filter::filter;
use super::journal::no_journal;
use crate::engine::kit::{Condition, Filter, Waiter};
use crate::engine::{Args, Arity, Command, Ctx, Error, ServerError, says};

pub(super) const WAIT: Command = Command {
    name: "WAIT",
    syntax: "condition:<BLOCKED key|subscribers:<SUBSCRIBERS channel number>|journal:<JOURNAL number [COMMAND command] \
             [KEY pattern] [CLIENT name] [ERRORS]>> [TIMEOUT milliseconds]",
    arity: Arity::AtLeast(4),
    cost: "O(1), and as much after each command of others; O(N) with JOURNAL, N being the commands that are kept",
    about: "Waits until a client is blocked on a key, so many listen to a channel, or so many commands were run.",
    run: wait,
    ..ROW
};

fn wait(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let condition = condition(cx, &mut args)?;
    let mut deadline_ms = None;
    if args.take("TIMEOUT") {
        deadline_ms = args.timeout_ms(cx.now())?;
    }
    args.end()?;
    let is_kept = cx.engine().interest.kit.as_ref().is_some_and(|kit| kit.journal.is_some());
    if matches!(condition, Condition::Journal { .. }) && !is_kept {
        return Err(no_journal());
    }
    let (session, now_ms) = (cx.session().id, cx.now_ms());
    let before = cx.engine().take_waiter(session);
    if cx.engine().holds(&condition) {
        cx.engine().put_kit_away();
        cx.reply().ok();
        return Ok(());
    }
    if let Some(waiter) = before {
        deadline_ms = waiter.deadline_ms;
    }
    if deadline_ms.is_some_and(|deadline_ms| deadline_ms <= now_ms) {
        let text = missed(&condition, cx.engine().progress(&condition));
        cx.engine().put_kit_away();
        return Err(ServerError::Kit(text).into());
    }
    cx.engine().wait_until(Waiter { session, condition, deadline_ms });
    cx.block_until(deadline_ms, |_| {});
    Ok(())
}

fn condition(cx: &mut Ctx<'_>, args: &mut Args<'_>) -> Result<Condition, Error> {
    let kind = args.word()?;
    if says(kind, "BLOCKED") {
        return Ok(Condition::Blocked { database: cx.database_index(), key: args.key()?.to_vec() });
    }
    if says(kind, "SUBSCRIBERS") {
        let channel = args.word()?.to_vec();
        return Ok(Condition::Subscribers { channel, count: count(args)? });
    }
    if says(kind, "JOURNAL") {
        let count = count(args)?;
        let filter: Filter = filter(args)?;
        return Ok(Condition::Journal { count, filter });
    }
    Err(Error::Syntax)
}

fn count(args: &mut Args<'_>) -> Result<u64, Error> {
    u64::try_from(args.integer()?).map_err(|_| Error::NotAnInteger)
}

/// What was waited for in vain.
fn missed(condition: &Condition, progress: u64) -> String {
    match condition {
        Condition::Blocked { key, .. } => format!("waited in vain: no client waits for {}", shown(key)),
        Condition::Subscribers { channel, count } => {
            format!("waited in vain: {progress} of {count} listen to {}", shown(channel))
        }
        Condition::Journal { count, filter } => {
            format!("waited in vain: the journal has {progress} of {count} commands of{filter}")
        }
    }
}

fn shown(name: &[u8]) -> String {
    format!("'{}'", String::from_utf8_lossy(name))
}
