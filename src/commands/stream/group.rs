//! XGROUP: creates, moves and deletes consumer groups and their consumers.

use super::{parse_any_id, parse_id};
use crate::commands::help;
use crate::engine::{
    Args, Arity, Change, Changed, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec, Lookup, MetadataChange,
    Missing, Peek, StreamError, says, shown,
};
use crate::value::Stream;
use crate::value::stream::Id;

pub(super) const XGROUP: Command = Command {
    name: "XGROUP",
    family: Family::Stream,
    arity: Arity::AtLeast(2),
    since: "5.0.0",
    cost: "Depends on subcommand.",
    about: "A container for commands about consumer groups.",
    subcommands: &[CREATE, CREATECONSUMER, DELCONSUMER, DESTROY, help::row(Family::Stream, "5.0.0"), SETID],
    ..Command::ROW
};

const CREATE: Command = Command {
    name: "CREATE",
    syntax: "key group id-selector:<id|new-id:$> [MKSTREAM] [ENTRIESREAD entriesread:entries-read]",
    family: Family::Stream,
    arity: Arity::AtLeast(5),
    flags: Flags::WRITE.and(Flags::DENYOOM),
    keys: &[KeySpec::at(2, KeyFlags::RW.and(KeyFlags::INSERT))],
    since: "5.0.0",
    history: &[Change::says("7.0.0", "Takes the number of entries that the group has read.")],
    cost: "O(1)",
    about: "Creates a consumer group that reads entries after an id.",
    run: create,
    ..Command::ROW
};

const SETID: Command = Command {
    name: "SETID",
    syntax: "key group id-selector:<id|new-id:$> [ENTRIESREAD entriesread:entries-read]",
    flags: Flags::WRITE,
    keys: &[KeySpec::at(2, KeyFlags::RW.and(KeyFlags::UPDATE))],
    about: "Sets the id after which a consumer group reads.",
    run: set_id,
    ..CREATE
};

const DESTROY: Command = Command {
    name: "DESTROY",
    syntax: "key group",
    arity: Arity::Exactly(4),
    keys: &[KeySpec::at(2, KeyFlags::RW.and(KeyFlags::DELETE))],
    history: &[],
    cost: "O(N), N being what is pending in the group.",
    about: "Deletes a consumer group.",
    run: destroy,
    ..SETID
};

const CREATECONSUMER: Command = Command {
    name: "CREATECONSUMER",
    syntax: "key group consumer",
    arity: Arity::Exactly(5),
    since: "6.2.0",
    history: &[],
    about: "Creates a consumer in a group.",
    run: create_consumer,
    ..CREATE
};

const DELCONSUMER: Command = Command {
    name: "DELCONSUMER",
    syntax: "key group consumer",
    arity: Arity::Exactly(5),
    cost: "O(1)",
    about: "Deletes a consumer of a group, with its pending entries.",
    run: delete_consumer,
    ..DESTROY
};

/// The options of CREATE and SETID, after the id.
#[derive(Default)]
struct Options {
    makes_stream: bool,
    read: Option<i64>,
}

impl Options {
    fn parse(args: &mut Args<'_>, refusal: &Error, may_make: bool) -> Result<Options, Error> {
        let mut options = Options::default();
        while !args.is_empty() {
            if may_make && args.take("MKSTREAM") {
                options.makes_stream = true;
            } else if args.take_with("ENTRIESREAD", 1) {
                options.read = match args.integer()? {
                    -1 => None,
                    ..0 => return Err(StreamError::EntriesReadNegative.into()),
                    read => Some(read),
                };
            } else {
                return Err(refusal.clone());
            }
        }
        Ok(options)
    }
}

/// The error for a subcommand with too many or invalid words.
fn refusal(args: &Args<'_>) -> Error {
    let subcommand: String = shown(args.previous()).chars().take(128).collect();
    Error::SubcommandOrArity { container: "XGROUP", subcommand }
}

/// The stream at `key`.
fn stream<'c>(cx: &'c mut Ctx<'_>, key: &[u8]) -> Result<Option<&'c Stream>, Error> {
    cx.lookup(key, Lookup::WRITE).map(Peek::read::<Stream>).transpose()
}

/// The stream at `key`, which must exist and have the group.
fn stream_with_group<'c>(cx: &'c mut Ctx<'_>, key: &[u8], group: &[u8]) -> Result<&'c Stream, Error> {
    let stream = stream(cx, key)?.ok_or(StreamError::GroupNeedsKey)?;
    match stream.group(group) {
        Some(_) => Ok(stream),
        None => Err(StreamError::NoGroup { group: shown(group), key: shown(key) }.into()),
    }
}

/// The maximum number of words of CREATE after its name, and of SETID.
const MAX_CREATE_WORDS: usize = 6;
const MAX_SETID_WORDS: usize = 5;

fn create(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (refusal, words) = (refusal(&args), args.left());
    let (key, group, id) = (args.key()?, args.word()?, args.word()?);
    let options = Options::parse(&mut args, &refusal, true)?;
    let found = stream(cx, key)?;
    if found.is_none() && !options.makes_stream {
        return Err(StreamError::GroupNeedsKey.into());
    }
    if words > MAX_CREATE_WORDS {
        return Err(refusal);
    }
    let last = match id {
        _ if says(id, "$") => found.map_or(Id::MIN, |stream| stream.log().last()),
        _ => parse_id(id, 0)?,
    };
    let event = Event::stream("xgroup-create");
    if found.is_none() {
        cx.update(key, Missing::Create, event, |stream: &mut Stream, _| {
            stream.add_group(group, last, options.read);
            Ok(Changed::by(1, ()))
        })?;
    } else {
        cx.update_metadata(key, |stream: &mut Stream, _| match stream.add_group(group, last, options.read) {
            true => Ok(MetadataChange::by(1, Some(event), ())),
            false => Err(StreamError::GroupExists.into()),
        })?;
    }
    cx.reply().ok();
    Ok(())
}

fn set_id(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (refusal, words) = (refusal(&args), args.left());
    let (key, group, id) = (args.key()?, args.word()?, args.word()?);
    let options = Options::parse(&mut args, &refusal, false)?;
    let found = stream_with_group(cx, key, group)?;
    if words > MAX_SETID_WORDS {
        return Err(refusal);
    }
    let last = if says(id, "$") { found.log().last() } else { parse_any_id(id, 0)? };
    cx.update_metadata(key, |stream: &mut Stream, _| {
        stream.edit_group(group, |_, group| (group.last, group.read) = (last, options.read));
        Ok(MetadataChange::by(1, Some(Event::stream("xgroup-setid")), ()))
    })?;
    cx.reply().ok();
    Ok(())
}

fn destroy(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, group) = (args.key()?, args.word()?);
    let is_there = stream(cx, key)?.ok_or(StreamError::GroupNeedsKey)?.group(group).is_some();
    if is_there {
        cx.update_metadata(key, |stream: &mut Stream, _| {
            stream.remove_group(group);
            Ok(MetadataChange::by(1, Some(Event::stream("xgroup-destroy")), ()).ready())
        })?;
    }
    cx.reply().integer(is_there.into());
    Ok(())
}

fn create_consumer(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, group, consumer) = (args.key()?, args.word()?, args.word()?);
    stream_with_group(cx, key, group)?;
    let now_ms = cx.now_ms();
    let is_new = cx.update_metadata(key, |stream: &mut Stream, _| {
        let is_new = stream.edit_group(group, |_, group| group.add_consumer(consumer, now_ms).1).unwrap_or(false);
        Ok(MetadataChange::by(is_new.into(), is_new.then_some(Event::stream("xgroup-createconsumer")), is_new))
    })?;
    cx.reply().integer(is_new.unwrap_or(false).into());
    Ok(())
}

fn delete_consumer(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, group, consumer) = (args.key()?, args.word()?, args.word()?);
    stream_with_group(cx, key, group)?;
    let pending = cx.update_metadata(key, |stream: &mut Stream, _| {
        let pending = stream.edit_group(group, |_, group| group.remove_consumer(consumer)).flatten();
        let event = pending.map(|_| Event::stream("xgroup-delconsumer"));
        Ok(MetadataChange::by(pending.is_some().into(), event, pending))
    })?;
    cx.reply().count(pending.flatten().unwrap_or(0));
    Ok(())
}
