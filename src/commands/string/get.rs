//! Reading strings.

use super::write_text_or_null;
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};

pub(super) const GET: Command = Command {
    name: "GET",
    syntax: "key",
    family: Family::String,
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    about: "Answers the string that a key holds.",
    run: get,
    ..Command::ROW
};

fn get(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (text, reply) = cx.text(args.key()?)?;
    write_text_or_null(reply, text);
    Ok(())
}
