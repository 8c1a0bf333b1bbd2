//! DUNLIN JOURNAL: records the commands that were run, their clients and their replies.

use super::filter::filter;
use super::{ROW, check_reads_all, explained};
use crate::engine::state::kit::{Bound, DEFAULT_ENTRIES, Entry, Journal, Kit, MAX_ENTRIES};
use crate::engine::{Args, Arity, Command, Ctx, Error, ServerError, says};
use crate::value::number;

pub(super) const JOURNAL: Command = Command {
    name: "JOURNAL",
    syntax: "action:<start:<START [count]>|STOP|CLEAR|\
             list:<LIST [COMMAND command] [KEY pattern] [CLIENT name] [ERRORS] [REDIRECTED]>|\
             count-of:<COUNT [COMMAND command] [KEY pattern] [CLIENT name] [ERRORS] [REDIRECTED]>|\
             expect:<EXPECT bound:<NONE|AT-MOST number|AT-LEAST number|EXACTLY number> \
             [COMMAND command] [KEY pattern] [CLIENT name] [ERRORS] [REDIRECTED]>|EXPORT>",
    arity: Arity::AtLeast(3),
    cost: "O(N), N being the commands that are kept",
    about: "Records the last commands, lists and counts them, checks their number, exports a transcript.",
    run: |cx, args| explained(&JOURNAL, journal(cx, args)),
    ..ROW
};

fn journal(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let action = args.word()?;
    match () {
        () if says(action, "START") => start(cx, args),
        () if says(action, "STOP") => change(cx, args, stop),
        () if says(action, "CLEAR") => change(cx, args, clear),
        () if says(action, "LIST") => list(cx, args),
        () if says(action, "COUNT") => count(cx, args),
        () if says(action, "EXPECT") => expect(cx, args),
        () if says(action, "EXPORT") => export(cx, args),
        () => Err(Error::Syntax),
    }
}

/// Starts a new journal.
fn start(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let most = match args.is_empty() {
        true => DEFAULT_ENTRIES,
        false => usize::try_from(args.integer()?).map_err(|_| Error::NotAnInteger)?,
    };
    args.end()?;
    if !(1..=MAX_ENTRIES).contains(&most) {
        return Err(ServerError::Kit(format!("the size of a journal must be 1 to {MAX_ENTRIES} commands")).into());
    }
    cx.observers_mut().kit().journal = Some(Journal::of(most));
    cx.reply().ok();
    Ok(())
}

/// Replaces the journal by what `change` makes of it.
fn change(cx: &mut Ctx<'_>, args: Args<'_>, change: fn(Journal) -> Option<Journal>) -> Result<(), Error> {
    args.end()?;
    let journal = cx.observers_mut().kit.as_mut().map(|kit| &mut kit.journal).filter(|journal| journal.is_some());
    let journal = journal.ok_or_else(no_journal)?;
    *journal = journal.take().and_then(change);
    cx.observers_mut().put_kit_away();
    cx.reply().ok();
    Ok(())
}

/// A stopped journal can still be read, also when it is empty.
fn stop(mut journal: Journal) -> Option<Journal> {
    journal.is_on = false;
    Some(journal)
}

/// Empties a running journal; drops a stopped one.
fn clear(mut journal: Journal) -> Option<Journal> {
    journal.clear();
    journal.is_on.then_some(journal)
}

/// The error for a journal that was not started.
pub(super) fn no_journal() -> Error {
    ServerError::Kit("no journal; start one with DUNLIN JOURNAL START".to_owned()).into()
}

fn kept(kit: &Option<Box<Kit>>) -> Result<&Journal, Error> {
    kit.as_ref().and_then(|kit| kit.journal.as_ref()).ok_or_else(no_journal)
}

fn list(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let filter = filter(cx.table(), &mut args)?;
    args.end()?;
    check_reads_all(cx, &args)?;
    let (engine, reply) = cx.engine_and_reply();
    let entries: Vec<&Entry> = kept(&engine.observers.kit)?.matching(&filter, &engine.table).collect();
    reply.array(entries.len());
    let world = engine.host.facts().name_of_world();
    entries.into_iter().for_each(|entry| entry.write(world, reply));
    Ok(())
}

fn count(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let filter = filter(cx.table(), &mut args)?;
    args.end()?;
    let (engine, reply) = cx.engine_and_reply();
    reply.count(kept(&engine.observers.kit)?.matching(&filter, &engine.table).count());
    Ok(())
}

fn expect(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let word = args.word()?;
    let bound = match () {
        () if says(word, "NONE") => Bound::Exactly(0),
        () if says(word, "AT-MOST") => Bound::AtMost(number(&mut args)?),
        () if says(word, "AT-LEAST") => Bound::AtLeast(number(&mut args)?),
        () if says(word, "EXACTLY") => Bound::Exactly(number(&mut args)?),
        () => return Err(Error::Syntax),
    };
    let filter = filter(cx.table(), &mut args)?;
    args.end()?;
    check_reads_all(cx, &args)?;
    let (engine, reply) = cx.engine_and_reply();
    kept(&engine.observers.kit)?.expect(bound, &filter, &engine.table).map_err(ServerError::Kit)?;
    reply.ok();
    Ok(())
}

fn number(args: &mut Args<'_>) -> Result<u64, Error> {
    let count = number::parse_i64(args.word()?).and_then(|count| u64::try_from(count).ok());
    count.ok_or(Error::NotAnInteger)
}

fn export(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    args.end()?;
    check_reads_all(cx, &args)?;
    let (engine, reply) = cx.engine_and_reply();
    let text = kept(&engine.observers.kit)?.transcript(&engine.table);
    reply.verbatim("txt", text.as_bytes());
    Ok(())
}
