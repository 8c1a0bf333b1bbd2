//! BITFIELD and BITFIELD_RO: integers of any width in a string.
//!
//! A request is a list of steps, all of which are parsed before the first runs. If one of them may write, the string is
//! extended for the farthest writing step before the first step runs, whatever the steps do.

use super::{edit, place};
use crate::engine::{Args, Arity, BitmapError, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec, says};
use crate::resp::{Reply, Request};
use crate::value::bits::field::{Field, Overflow};
use crate::value::number::{parse_i64, until_nul};

pub(super) const BITFIELD: Command = Command {
    name: "BITFIELD",
    syntax: "key operation:[GET get-block:<encoding offset>|\
             write:<[OVERFLOW overflow-block:<WRAP|SAT|FAIL>] \
             write-operation:<SET set-block:<encoding offset value>|\
             INCRBY incrby-block:<encoding offset increment>>> ...]",
    family: Family::Bitmap,
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE.and(Flags::DENYOOM),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE).and(KeyFlags::VARIABLE))
        .noting("This command allows both access and modification of the key")],
    access_of: Some(access),
    since: "3.2.0",
    cost: "O(1) for each step",
    about: "Reads, sets and increments integers of any width at any offset in a string.",
    run: |cx, args| bitfield(cx, args, true),
    ..Command::ROW
};

/// The command only reads if all its steps only read. A malformed request counts as a write.
fn access(request: Request<'_>) -> KeyFlags {
    let writing = KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE);
    let mut place = 2;
    while let Some(word) = request.get(place) {
        place += match request.len() - place {
            3.. if says(word, "GET") => 3,
            2.. if says(word, "OVERFLOW") => 2,
            _ => return writing,
        };
    }
    KeyFlags::RO.and(KeyFlags::ACCESS)
}

pub(super) const BITFIELD_RO: Command = Command {
    name: "BITFIELD_RO",
    syntax: "key [GET get-block:<encoding offset> [GET get-block:<encoding offset> ...]]",
    family: Family::Bitmap,
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "6.0.0",
    cost: "O(1) for each step",
    about: "Reads integers of any width at any offset in a string.",
    run: |cx, args| bitfield(cx, args, false),
    ..Command::ROW
};

fn bitfield(cx: &mut Ctx<'_>, mut args: Args<'_>, may_write: bool) -> Result<(), Error> {
    let key = args.key()?;
    let steps = parse(cx, &mut args)?;
    let last = steps.iter().filter(|step| step.act != Act::Get).map(Step::last).max();
    match last {
        None => read(cx, key, &steps),
        Some(_) if !may_write => Err(BitmapError::ReadOnly.into()),
        Some(last) => write(cx, key, &steps, last),
    }
}

fn read(cx: &mut Ctx<'_>, key: &[u8], steps: &[Step]) -> Result<(), Error> {
    let (text, reply) = cx.text(key)?;
    let mut digits = itoa::Buffer::new();
    let bytes = text.as_ref().map_or(&b""[..], |text| text.as_bytes(&mut digits));
    reply.array(steps.len());
    steps.iter().for_each(|step| reply.integer(step.field.read(bytes, step.place)));
    Ok(())
}

fn write(cx: &mut Ctx<'_>, key: &[u8], steps: &[Step], last: u64) -> Result<(), Error> {
    let results = edit(cx, key, last, |bytes, grew| {
        let mut changes = 0;
        let results: Vec<Option<i64>> = steps.iter().map(|step| step.take(bytes, grew, &mut changes)).collect();
        (changes, results)
    })?;
    let reply = cx.reply();
    reply.array(results.len());
    results.into_iter().for_each(|result| write_result(reply, result));
    Ok(())
}

fn write_result(reply: &mut Reply<'_>, result: Option<i64>) {
    match result {
        Some(number) => reply.integer(number),
        None => reply.null(),
    }
}

/// One step: an operation on one integer.
#[derive(Clone, Copy, Debug)]
struct Step {
    act: Act,
    field: Field,
    place: u64,
    overflow: Overflow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Get,
    Set(i64),
    Add(i64),
}

impl Step {
    /// The position of the integer's last bit.
    fn last(&self) -> u64 {
        self.place + u64::from(self.field.width) - 1
    }

    /// Runs the step and returns the number to reply with: nothing if a number overflows.
    fn take(&self, bytes: &mut [u8], grew: bool, changes: &mut usize) -> Option<i64> {
        let before = self.field.read(bytes, self.place);
        let wanted = match self.act {
            Act::Get => return Some(before),
            Act::Add(increment) => i128::from(before) + i128::from(increment),
            // Redis treats a number as an overflow if 64 bits cannot hold its distance below the maximum.
            Act::Set(number) if self.overflow == Overflow::Saturate && self.field.is_far_below(number) => i128::MAX,
            Act::Set(number) if self.field.is_signed => number.into(),
            // For an unsigned field a negative number is a large one.
            Act::Set(number) => number.cast_unsigned().into(),
        };
        let after = self.field.fit(wanted, self.overflow)?;
        self.field.write(bytes, self.place, after);
        *changes += usize::from(grew || before != after);
        Some(if matches!(self.act, Act::Set(_)) { before } else { after })
    }
}

fn parse(cx: &Ctx<'_>, args: &mut Args<'_>) -> Result<Vec<Step>, Error> {
    let mut overflow = Overflow::default();
    let mut steps = Vec::new();
    while !args.is_empty() {
        if args.take_with("OVERFLOW", 1) {
            overflow = parse_overflow(args)?;
        } else {
            steps.push(parse_step(cx, args, overflow)?);
        }
    }
    Ok(steps)
}

fn parse_overflow(args: &mut Args<'_>) -> Result<Overflow, Error> {
    let ways = [("WRAP", Overflow::Wrap), ("SAT", Overflow::Saturate), ("FAIL", Overflow::Fail)];
    let way = ways.into_iter().find(|(name, _)| args.take(name));
    Ok(way.map(|(_, way)| way).ok_or(BitmapError::Overflow)?)
}

fn parse_step(cx: &Ctx<'_>, args: &mut Args<'_>, overflow: Overflow) -> Result<Step, Error> {
    let act: fn(i64) -> Act = if args.take_with("GET", 2) {
        |_| Act::Get
    } else if args.take_with("SET", 3) {
        Act::Set
    } else if args.take_with("INCRBY", 3) {
        Act::Add
    } else {
        return Err(Error::Syntax);
    };
    let field = parse_field(args.word()?)?;
    let place = place_of_field(cx, args.word()?, field)?;
    let number = if act(0) == Act::Get { 0 } else { args.integer()? };
    Ok(Step { act: act(number), field, place, overflow })
}

/// The type of an integer, such as `i8` or `u63`.
fn parse_field(word: &[u8]) -> Result<Field, Error> {
    let (is_signed, digits) = match word {
        [b'i', digits @ ..] => (true, digits),
        [b'u', digits @ ..] => (false, digits),
        _ => return Err(BitmapError::FieldType.into()),
    };
    let widest = if is_signed { 64 } else { 63 };
    let width = parse_i64(until_nul(digits)).filter(|width| (1..=widest).contains(width));
    let width = width.ok_or(BitmapError::FieldType)?;
    Ok(Field { is_signed, width: width as u8 })
}

/// An offset in bits, or after a `#` in fields. For offsets beyond 64 bits Redis continues with a truncated one; here
/// they are out of range.
fn place_of_field(cx: &Ctx<'_>, word: &[u8], field: Field) -> Result<u64, Error> {
    match word {
        [b'#', digits @ ..] => place(cx, parse_i64(digits).and_then(|index| index.checked_mul(field.width.into()))),
        digits => place(cx, parse_i64(digits)),
    }
}
