//! LOLWUT and TIME: small commands about the server.

mod lolwut;

use crate::engine::exec::scripts;
use crate::engine::{Args, Command, Ctx, Error, Family, Flags};

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[lolwut::LOLWUT, TIME];

const TIME: Command = Command {
    name: "TIME",
    family: Family::Server,
    flags: Flags::LOADING.and(Flags::STALE).and(Flags::FAST),
    since: "2.6.0",
    about: "Returns the server's time: seconds since 1970, and the microseconds of the current second.",
    tips: &["nondeterministic_output"],
    run: time,
    ..Command::ROW
};

fn time(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let now = scripts::shown_now(cx.engine());
    let reply = cx.reply();
    reply.array(2);
    reply.bulk_integer(now.unix_s());
    reply.bulk_integer(now.unix_us.rem_euclid(1_000_000));
    Ok(())
}
