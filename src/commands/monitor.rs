//! MONITOR: streams every command of every client as it runs.

use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags};

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[MONITOR];

const MONITOR: Command = Command {
    name: "MONITOR",
    family: Family::Server,
    arity: Arity::Exactly(1),
    flags: Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::LOADING).and(Flags::STALE),
    cost: "",
    about: "Streams every command that the server runs from now on.",
    run: monitor,
    ..Command::ROW
};

/// A client that already monitors gets no reply.
fn monitor(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    if cx.is_nested() {
        return Err(Error::MonitorDenied);
    }
    if operations::monitor(cx) {
        cx.reply().ok();
    }
    Ok(())
}
