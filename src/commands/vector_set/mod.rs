//! Vector sets: elements with a vector each, and the search for those whose vectors are similar.
//!
//! In Redis they are a module that is built in, and clients see that: the commands have no arity in their rows and are
//! in no ACL category, and no key events follow from them. Redis searches and adds (CAS) on threads; here a command
//! runs to its end, as all do.
//!
//! [`add`] and [`element`] change a set, [`similar`] searches with conditions ([`filter`]), [`info`] tells about the
//! whole set, and [`random`] chooses elements.
//!
//! The graph differs from Redis's, since both choose the level of an element at random: VLINKS has other links, and an
//! approximate search may miss other elements. All distances are the same. One fault of Redis is not repeated: it does
//! not propagate a VADD that replaces the vector of an element, which is then missing from the append-only file. And
//! WATCH does not notice a command that fails, or finds no set, as it does in Redis.

mod add;
mod element;
mod filter;
mod info;
mod random;
mod similar;
mod vector_arg;

use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[
    add::VADD,
    info::VCARD,
    info::VDIM,
    element::VEMB,
    element::VGETATTR,
    info::VINFO,
    element::VISMEMBER,
    info::VLINKS,
    random::VRANDMEMBER,
    element::VREM,
    element::VSETATTR,
    similar::VSIM,
];

/// The default values of a row.
const ROW: Command = Command {
    family: Family::VectorSet,
    arity: Arity::AtLeast(1),
    flags: READ,
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE))],
    since: "8.0.0",
    ..Command::ROW
};

const READ: Flags = Flags::READONLY.and(Flags::MODULE);
const QUICK_READ: Flags = READ.and(Flags::FAST);
const WRITE: Flags = Flags::WRITE.and(Flags::MODULE);

/// Checks the number of arguments, which a handler does here since its row does not.
///
/// # Errors
/// [`Error::WrongArity`].
fn expect_arguments(cx: &Ctx<'_>, args: &Args<'_>, is_expected: impl FnOnce(usize) -> bool) -> Result<(), Error> {
    if is_expected(args.left()) { Ok(()) } else { Err(wrong_arity(cx)) }
}

fn wrong_arity(cx: &Ctx<'_>) -> Error {
    Error::WrongArity(cx.command().name.clone())
}
