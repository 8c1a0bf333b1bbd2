//! GETBIT and SETBIT: a single bit.

use super::{edit, place};
use crate::engine::{Args, Arity, BitmapError, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};
use crate::value::bits;
use crate::value::number::parse_i64;

pub(super) const GETBIT: Command = Command {
    name: "GETBIT",
    syntax: "key offset",
    family: Family::Bitmap,
    arity: Arity::Exactly(3),
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "2.2.0",
    about: "Returns the bit at an offset in a string.",
    run: getbit,
    ..Command::ROW
};

fn getbit(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let place = place(cx, parse_i64(args.word()?))?;
    let (text, reply) = cx.text(key)?;
    let mut digits = itoa::Buffer::new();
    let bytes = text.as_ref().map_or(&b""[..], |text| text.as_bytes(&mut digits));
    reply.integer(bits::get(bytes, place).into());
    Ok(())
}

pub(super) const SETBIT: Command = Command {
    name: "SETBIT",
    syntax: "key offset value",
    family: Family::Bitmap,
    arity: Arity::Exactly(4),
    flags: Flags::WRITE.and(Flags::DENYOOM),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE))],
    since: "2.2.0",
    about: "Sets or clears the bit at an offset in a string, and returns its previous value.",
    run: setbit,
    ..Command::ROW
};

fn setbit(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let place = place(cx, parse_i64(args.word()?))?;
    let bit = match args.word()? {
        b"0" => false,
        b"1" => true,
        _ => return Err(BitmapError::Bit.into()),
    };
    let before = edit(cx, key, place, |bytes, grew| {
        let before = bits::set(bytes, place, bit);
        (usize::from(grew || before != bit), before)
    })?;
    cx.reply().integer(before.into());
    Ok(())
}
