//! HyperLogLogs: the approximate number of distinct elements, without storing the elements.
//!
//! A key holds a string that clients may read, copy and write, so each command validates it
//! ([`crate::value::hyperloglog`]). PFCOUNT of one key caches the count in the string, which changes it without a
//! notification; so does the conversion to the dense form for PFDEBUG.
//!
//! [`debug`] has the two commands about internals.

mod debug;

use crate::engine::{
    Args, Arity, Changed, Command, Ctx, Error, Event, Family, Flags, HyperLogLogError, KeyFlags, KeySpec, Lookup, Peek,
};
use crate::value::TextView;
use crate::value::hyperloglog::{Corrupted, Form, REGISTERS, Registers, Sketch, SketchMut, count_of};

/// The rows of this family's commands.
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
    about: "Adds elements to a HyperLogLog, which is created if it does not exist.",
    run: pfadd,
    ..Command::ROW
};

fn pfadd(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let limit = cx.settings().sparse_hll_bytes;
    let is_new = is_new(cx, key)?;
    let changes = cx.update_text(key, ADDED, |bytes| {
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

/// Whether the key is missing; an existing value must be a HyperLogLog.
fn is_new(cx: &mut Ctx<'_>, key: &[u8]) -> Result<bool, Error> {
    let sketch = cx.lookup(key, Lookup::WRITE).map(Peek::text).transpose()?.map(sketch_of).transpose()?;
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
    about: "Returns the approximate number of distinct elements in HyperLogLogs.",
    run: pfcount,
    ..Command::ROW
};

fn pfcount(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    if args.left() > 1 {
        let keys: Vec<_> = args.rest().collect();
        let mut registers = [0; REGISTERS];
        merge_all(cx, &keys, &mut registers)?;
        cx.reply().integer(count_of(&registers).cast_signed());
        return Ok(());
    }
    let key = args.key()?;
    let (Some(text), reply) = cx.text(key)? else {
        cx.reply().integer(0);
        return Ok(());
    };
    let sketch = sketch_of(text)?;
    // A text that was set as a whole becomes raw when it is counted here.
    let is_embedded = text.encoding() == "embstr";
    let (kept, count) = match sketch.cached_count() {
        Some(count) => (true, count),
        None => (false, sketch.count()?),
    };
    reply.integer(count.cast_signed());
    if !kept || is_embedded {
        cx.update_text(key, None, |bytes| {
            open(bytes, 0)?.cache_count(count);
            Ok(Changed::by(usize::from(!kept), ()))
        })?;
    }
    Ok(())
}

/// The HyperLogLog in a text.
fn sketch_of(text: TextView<'_>) -> Result<Sketch<'_>, Error> {
    Ok(text.bytes().ok().and_then(Sketch::of).ok_or(HyperLogLogError::NotOne)?)
}

/// Raises `registers` to the maxima of the registers of several HyperLogLogs; returns whether one of them is dense. A
/// missing key counts as empty.
fn merge_all(cx: &mut Ctx<'_>, keys: &[&[u8]], registers: &mut Registers) -> Result<bool, Error> {
    let mut is_dense = false;
    for key in keys {
        if let (Some(text), _) = cx.text(key)? {
            let sketch = sketch_of(text)?;
            sketch.merge_into(registers)?;
            is_dense |= sketch.form() == Form::Dense;
        }
    }
    Ok(is_dense)
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
    about: "Merges HyperLogLogs into one.",
    run: pfmerge,
    ..Command::ROW
};

fn pfmerge(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let keys: Vec<_> = args.rest().collect();
    let target = args.key()?;
    let mut registers = [0; REGISTERS];
    let is_dense = merge_all(cx, &keys, &mut registers)?;
    let limit = cx.settings().sparse_hll_bytes;
    let is_new = is_new(cx, target)?;
    cx.update_text(target, ADDED, |bytes| {
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
