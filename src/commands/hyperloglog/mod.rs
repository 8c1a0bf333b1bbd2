//! HyperLogLogs: about how many different elements were seen, without the elements.
//!
//! A key holds a string that clients may read, copy and write; what is a sketch and what is not is found out each time
//! ([`crate::value::hyperloglog`]). To count one is to write the count down in it, which changes the string but is told
//! to nobody; so is turning it dense to look at it.
//!
//! [`debug`] holds the two commands that look inside.

mod debug;

use crate::engine::{
    Args, Arity, Changed, Command, Ctx, Error, Event, Family, Flags, HyperLogLogError, KeyFlags, KeySpec,
};
use crate::value::TextView;
use crate::value::hyperloglog::{Corrupted, Form, REGISTERS, Registers, Sketch, SketchMut, count_of};

/// The family's rows.
pub const COMMANDS: &[Command] = &[PFADD, PFCOUNT, debug::PFDEBUG, PFMERGE, debug::PFSELFTEST];

impl From<Corrupted> for Error {
    fn from(_: Corrupted) -> Error {
        HyperLogLogError::Corrupted.into()
    }
}

const ADDED: Event = Event::string("pfadd");

const PFADD: Command = Command {
    name: "PFADD",
    syntax: "key [element [element ...]]",
    family: Family::HyperLogLog,
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::INSERT))],
    since: "2.8.9",
    cost: "O(1) for each element",
    about: "Adds elements to a HyperLogLog, or makes an empty one.",
    run: pfadd,
    ..Command::ROW
};

fn pfadd(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let limit = cx.settings().sparse_hll_bytes;
    let is_new = is_new(cx, key)?;
    let changes = cx.edit_text(key, ADDED, |bytes| {
        let mut sketch = if is_new { SketchMut::fresh(bytes, limit) } else { open(bytes, limit)? };
        let changes = sketch.add_all(args.rest())? + usize::from(is_new);
        if changes > 0 {
            sketch.invalidate_count();
        }
        Ok(Changed::by(changes, changes))
    })?;
    cx.reply().integer(i64::from(changes > 0));
    Ok(())
}

/// Whether there is no such key yet; what there is must be a sketch.
fn is_new(cx: &mut Ctx<'_>, key: &[u8]) -> Result<bool, Error> {
    let sketch = cx.text_to_change(key)?.map(sketch_of).transpose()?;
    Ok(sketch.is_none())
}

fn open(bytes: &mut Vec<u8>, limit: usize) -> Result<SketchMut<'_>, Error> {
    Ok(SketchMut::of(bytes, limit).ok_or(HyperLogLogError::NotOne)?)
}

const PFCOUNT: Command = Command {
    name: "PFCOUNT",
    syntax: "key [key ...]",
    family: Family::HyperLogLog,
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY.and(Flags::MAY_REPLICATE),
    keys: &[KeySpec::all(KeyFlags::RW.and(KeyFlags::ACCESS))
        .noting("RW because it may change the internal representation of the key, and propagate to replicas")],
    since: "2.8.9",
    cost: "O(1), and with several keys O(N) with a much larger constant",
    about: "Answers about how many different elements were added to HyperLogLogs.",
    run: pfcount,
    ..Command::ROW
};

fn pfcount(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    if args.left() > 1 {
        let keys: Vec<_> = args.rest().collect();
        let (merged, _) = merged(cx, &keys)?;
        cx.reply().integer(count_of(&merged).cast_signed());
        return Ok(());
    }
    let key = args.key()?;
    let (Some(text), reply) = cx.text(key)? else {
        cx.reply().integer(0);
        return Ok(());
    };
    let sketch = sketch_of(text)?;
    // A text that was set whole and is looked at here is raw from then on.
    let is_embedded = text.encoding() == "embstr";
    let (kept, count) = match sketch.cached_count() {
        Some(count) => (true, count),
        None => (false, sketch.count()?),
    };
    reply.integer(count.cast_signed());
    if !kept || is_embedded {
        cx.edit_text(key, None, |bytes| {
            open(bytes, 0)?.cache_count(count);
            Ok(Changed::by(usize::from(!kept), ()))
        })?;
    }
    Ok(())
}

/// The sketch that a text is.
fn sketch_of(text: TextView<'_>) -> Result<Sketch<'_>, Error> {
    Ok(text.bytes().ok().and_then(Sketch::of).ok_or(HyperLogLogError::NotOne)?)
}

/// The greatest registers of several sketches, and whether one of them is dense. A missing key is one without elements.
fn merged(cx: &mut Ctx<'_>, keys: &[&[u8]]) -> Result<(Registers, bool), Error> {
    let (mut registers, mut is_dense) = ([0; REGISTERS], false);
    for key in keys {
        if let (Some(text), _) = cx.text(key)? {
            let sketch = sketch_of(text)?;
            sketch.merge_into(&mut registers)?;
            is_dense |= sketch.form() == Form::Dense;
        }
    }
    Ok((registers, is_dense))
}

const PFMERGE: Command = Command {
    name: "PFMERGE",
    syntax: "destkey [sourcekey [sourcekey ...]]",
    family: Family::HyperLogLog,
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE.and(Flags::DENYOOM),
    keys: &[
        KeySpec::one(KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::INSERT)),
        KeySpec::range(2, -1, 1, KeyFlags::RO.and(KeyFlags::ACCESS)),
    ],
    since: "2.8.9",
    cost: "O(N) to merge N HyperLogLogs, with a large constant",
    about: "Adds to a HyperLogLog what was added to others.",
    run: pfmerge,
    ..Command::ROW
};

fn pfmerge(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let keys: Vec<_> = args.rest().collect();
    let target = args.key()?;
    let (registers, is_dense) = merged(cx, &keys)?;
    let limit = cx.settings().sparse_hll_bytes;
    let is_new = is_new(cx, target)?;
    cx.edit_text(target, ADDED, |bytes| {
        let mut sketch = if is_new { SketchMut::fresh(bytes, limit) } else { open(bytes, limit)? };
        if is_dense {
            sketch.make_dense()?;
        }
        sketch.raise_all(&registers)?;
        sketch.invalidate_count();
        Ok(Changed::by(1, ()))
    })?;
    cx.reply().ok();
    Ok(())
}
