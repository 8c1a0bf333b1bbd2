//! XSETID: sets a stream's last id and counters.

use super::id;
use crate::engine::{
    Args, Arity, Change, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec, MetadataChange, StreamError,
};
use crate::value::Stream;
use crate::value::stream::Id;

pub(super) const XSETID: Command = Command {
    name: "XSETID",
    syntax: "key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]",
    family: Family::Stream,
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::UPDATE))],
    since: "5.0.0",
    history: &[Change::brings("7.0.0", &["ENTRIESADDED", "MAXDELETEDID"])],
    cost: "O(1)",
    about: "Sets the last id of a stream, and its counters.",
    run: xsetid,
    ..Command::ROW
};

fn xsetid(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let last = id(&mut args)?;
    let (mut added, mut max_deleted) = (None, Id::MIN);
    while !args.is_empty() {
        if args.take_with("ENTRIESADDED", 1) {
            added = Some(u64::try_from(args.integer()?).map_err(|_| StreamError::AddedNegative)?);
        } else if args.take_with("MAXDELETEDID", 1) {
            max_deleted = id(&mut args)?;
            if last < max_deleted {
                return Err(StreamError::LastIdBeforeGiven.into());
            }
        } else {
            return Err(Error::Syntax);
        }
    }
    let set = cx.update_metadata(key, |stream: &mut Stream, _| {
        admit(stream, last, added)?;
        let log = stream.log_mut();
        log.set_last(last);
        if let Some(added) = added {
            log.set_added(added);
        }
        if max_deleted != Id::MIN {
            log.set_max_deleted(max_deleted);
        }
        Ok(MetadataChange::by(1, Some(Event::stream("xsetid")), ()))
    })?;
    set.ok_or(Error::NoSuchKey)?;
    cx.reply().ok();
    Ok(())
}

/// The new values must not contradict the stream's content.
fn admit(stream: &Stream, last: Id, added: Option<u64>) -> Result<(), Error> {
    let log = stream.log();
    if last < log.max_deleted() {
        return Err(StreamError::LastIdBeforeDeleted.into());
    }
    if log.has_after(last) {
        return Err(StreamError::LastIdTooSmall.into());
    }
    if added.is_some_and(|added| added < log.len() as u64) {
        return Err(StreamError::AddedTooSmall.into());
    }
    Ok(())
}
