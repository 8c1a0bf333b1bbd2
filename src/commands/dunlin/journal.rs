//! DUNLIN JOURNAL: records the commands that were run, their clients and their replies.

use super::filter::filter;
use super::{ROW, check_reads_all, explained, has_nodes, order_host};
use crate::engine::state::kit::{Bound, DEFAULT_ENTRIES, Entry, Filter, Journal, Kit, MAX_ENTRIES, by_pattern};
use crate::engine::{
    Args, Arity, Command, Ctx, Engine, Error, HostCall, HostReply, JournalOrder, KitError, ServerError, WorldName, says,
};
use crate::resp::Reply;
use crate::value::number;

/// The word for the journals of all nodes of a cluster.
const ALL_NODES: &str = "ALL-NODES";

pub(super) const JOURNAL: Command = Command {
    name: "JOURNAL",
    syntax: "action:<start:<START [ALL-NODES] [count]>|stop:<STOP [ALL-NODES]>|clear:<CLEAR [ALL-NODES]>|\
             list:<LIST [ALL-NODES] [COMMAND command] [KEY pattern] [CLIENT name] [ERRORS] [REDIRECTED]>|\
             patterns:<PATTERNS [ALL-NODES] [COMMAND command] [KEY pattern] [CLIENT name] [ERRORS] [REDIRECTED]>|\
             count-of:<COUNT [ALL-NODES] [COMMAND command] [KEY pattern] [CLIENT name] [ERRORS] [REDIRECTED]>|\
             expect:<EXPECT bound:<NONE|AT-MOST number|AT-LEAST number|EXACTLY number> [ALL-NODES] \
             [COMMAND command] [KEY pattern] [CLIENT name] [ERRORS] [REDIRECTED]>|EXPORT>",
    arity: Arity::AtLeast(3),
    cost: "O(N), N being the commands that are kept",
    about: "Records the last commands, lists, groups and counts them, checks their number, exports a transcript; of this node or \
            of all nodes of a cluster.",
    run: |cx, args| explained(&JOURNAL, journal(cx, args)),
    ..ROW
};

fn journal(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let action = args.word()?;
    match () {
        () if says(action, "START") => start(cx, args),
        () if says(action, "STOP") => change(cx, args, JournalOrder::Stop, Kit::stop_journal),
        () if says(action, "CLEAR") => change(cx, args, JournalOrder::Clear, Kit::clear_journal),
        () if says(action, "LIST") => list(cx, args),
        () if says(action, "PATTERNS") => patterns(cx, args),
        () if says(action, "COUNT") => count(cx, args),
        () if says(action, "EXPECT") => expect(cx, args),
        () if says(action, "EXPORT") => export(cx, args),
        () => Err(Error::Syntax),
    }
}

/// Whether the command is about the journals of all nodes.
pub(super) fn is_of_all_nodes(cx: &mut Ctx<'_>, args: &mut Args<'_>) -> Result<bool, Error> {
    match args.take(ALL_NODES) {
        true if !has_nodes(cx) => Err(KitError::NoNodes.into()),
        is_taken => Ok(is_taken),
    }
}

/// Starts a new journal.
fn start(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let is_of_all = is_of_all_nodes(cx, &mut args)?;
    let most = match args.is_empty() {
        true => DEFAULT_ENTRIES,
        false => usize::try_from(args.integer()?).map_err(|_| Error::NotAnInteger)?,
    };
    args.end()?;
    if !(1..=MAX_ENTRIES).contains(&most) {
        return Err(ServerError::Kit(format!("the size of a journal must be 1 to {MAX_ENTRIES} commands")).into());
    }
    if is_of_all {
        return order_host(cx, HostCall::Journals(JournalOrder::Start(most)));
    }
    cx.observers_mut().kit().restart_journal(most);
    cx.reply().ok();
    Ok(())
}

/// Changes the journal of this node by `change`, or those of all nodes by an order.
fn change(
    cx: &mut Ctx<'_>,
    mut args: Args<'_>,
    order: JournalOrder,
    change: fn(&mut Kit) -> bool,
) -> Result<(), Error> {
    let is_of_all = is_of_all_nodes(cx, &mut args)?;
    args.end()?;
    if is_of_all {
        return order_host(cx, HostCall::Journals(order));
    }
    let has_changed = change(cx.observers_mut().kit());
    cx.observers_mut().put_kit_away();
    if !has_changed {
        return Err(KitError::NoJournal.into());
    }
    cx.reply().ok();
    Ok(())
}

/// Replies with the selected commands, by `act`, or with their number, of this node or of all.
fn read(
    cx: &mut Ctx<'_>,
    mut args: Args<'_>,
    only_counts: bool,
    act: impl FnOnce(&Engine, &mut Reply<'_>, &Filter, &[&Entry]) -> Result<(), Error>,
) -> Result<(), Error> {
    let is_named_first = is_of_all_nodes(cx, &mut args)?;
    let filter = filter(cx.table(), &mut args)?;
    let is_of_all = is_named_first || is_of_all_nodes(cx, &mut args)?;
    args.end()?;
    if !only_counts {
        check_reads_all(cx, &args)?;
    }
    if is_of_all {
        let reply = cx.call_host(HostCall::Journals(JournalOrder::Read(filter.clone())))?;
        let Some(HostReply::Journal(entries)) = reply else { return Ok(()) };
        let (engine, reply) = cx.engine_and_reply();
        return act(engine, reply, &filter, &entries.iter().collect::<Vec<_>>());
    }
    let (engine, reply) = cx.engine_and_reply();
    let entries: Vec<&Entry> = kept(&engine.observers.kit)?.matching(&filter, &engine.table).collect();
    act(engine, reply, &filter, &entries)
}

fn kept(kit: &Option<Box<Kit>>) -> Result<&Journal, Error> {
    kit.as_ref().and_then(|kit| kit.journal.as_ref()).ok_or_else(|| KitError::NoJournal.into())
}

fn list(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    read(cx, args, false, |engine, reply, _, entries| {
        reply.array(entries.len());
        let own = engine.host.facts().name_of_world();
        let world = WorldName::parse(own.as_bytes())?.world_and_node().0;
        for entry in entries {
            match entry.node {
                Some(node) => entry.write(world.of_node(node).as_str(), reply),
                None => entry.write(own, reply),
            }
        }
        Ok(())
    })
}

/// Lists the commands grouped by their name and the patterns of their keys.
fn patterns(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    read(cx, args, false, |engine, reply, _, entries| {
        let groups = by_pattern(entries, &engine.table);
        reply.array(groups.len());
        for group in groups {
            reply.map(5);
            for (name, text) in [("command", group.command.map(String::into_bytes)), ("pattern", group.pattern)] {
                reply.bulk(name.as_bytes());
                reply.bulk_or_null(text.as_deref());
            }
            let figures =
                [("count", group.commands), ("errors", group.errors), ("duration-microseconds", group.elapsed_us)];
            for (name, number) in figures {
                reply.bulk(name.as_bytes());
                reply.integer(number.cast_signed());
            }
        }
        Ok(())
    })
}

fn count(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    read(cx, args, true, |_, reply, _, entries| {
        reply.count(entries.len());
        Ok(())
    })
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
    read(cx, args, false, |_, reply, filter, entries| {
        bound.check(filter, entries).map_err(ServerError::Kit)?;
        reply.ok();
        Ok(())
    })
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
