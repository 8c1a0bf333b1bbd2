//! SHUTDOWN: ends the process, or an embedded server or world.

use crate::engine::exec::operations::{self, ShutdownOptions};
use crate::engine::{Args, Arity, Change, Command, Ctx, Effect, Error, Family, Flags, LogLevel, ServerError};

/// The commands of this family.
pub const COMMANDS: &[Command] = &[SHUTDOWN];

const SHUTDOWN: Command = Command {
    name: "SHUTDOWN",
    syntax: "save-selector:[NOSAVE|SAVE] [NOW] [FORCE] [ABORT]",
    family: Family::Server,
    arity: Arity::AtLeast(1),
    flags: Flags::ADMIN
        .and(Flags::NOSCRIPT)
        .and(Flags::LOADING)
        .and(Flags::STALE)
        .and(Flags::NO_MULTI)
        .and(Flags::ALLOW_BUSY),
    history: &[Change::brings("7.0.0", &["NOW", "FORCE", "ABORT"])],
    cost: "O(N) when saving, N being the number of keys; otherwise O(1)",
    about: "Stops the server. The client's connection closes.",
    run: shutdown,
    ..Command::ROW
};

#[derive(Default)]
struct Options {
    save: bool,
    no_save: bool,
    now: bool,
    force: bool,
    abort: bool,
}

fn shutdown(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let mut options = Options::default();
    while !args.is_empty() {
        match () {
            () if args.take("NOSAVE") => options.no_save = true,
            () if args.take("SAVE") => options.save = true,
            () if args.take("NOW") => options.now = true,
            () if args.take("FORCE") => options.force = true,
            () if args.take("ABORT") => options.abort = true,
            () => return Err(Error::Syntax),
        }
    }
    if (options.save && options.no_save)
        || (options.abort && (options.save || options.no_save || options.now || options.force))
    {
        return Err(Error::Syntax);
    }
    if options.abort {
        return abort(cx);
    }
    if operations::is_loading(cx) {
        // A log of changes must not end the server that reads it. Redis refuses all but NOW.
        return Err(ServerError::DenyBlocking("SHUTDOWN without NOW or ABORT".to_owned()).into());
    }
    let how = ShutdownOptions { saves: options.save, skips_save: options.no_save, is_forced: options.force };
    operations::prepare_shutdown(cx, how)?;
    cx.session_mut().closing = true;
    cx.effects().push(Effect::Shutdown);
    Ok(())
}

/// Cancels a shutdown. A shutdown takes effect at once, so one can be in progress only while DEBUG PAUSE-CRON is on.
fn abort(cx: &mut Ctx<'_>) -> Result<(), Error> {
    if !operations::cancel_shutdown(cx) {
        return Err(Error::NoShutdown);
    }
    cx.effects().push(Effect::Log(LogLevel::Notice, "Shutdown manually aborted.".to_owned()));
    cx.reply().ok();
    Ok(())
}
