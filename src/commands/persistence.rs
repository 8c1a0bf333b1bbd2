//! SAVE, BGSAVE and LASTSAVE: the data as an RDB file. BGREWRITEAOF: the append-only file.

use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Change, Command, Ctx, Error, Family, Flags, ServerError};

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[SAVE, BGSAVE, BGREWRITEAOF, LASTSAVE];

const SAVING: Flags = Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::NO_ASYNC_LOADING);

const SAVE: Command = Command {
    name: "SAVE",
    family: Family::Server,
    flags: SAVING.and(Flags::NO_MULTI),
    cost: "O(N), N being the number of keys in all databases",
    about: "Saves all databases to the RDB file.",
    run: save,
    ..Command::ROW
};

fn save(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    operations::save(cx)
}

const BGSAVE: Command = Command {
    name: "BGSAVE",
    syntax: "[SCHEDULE]",
    family: Family::Server,
    arity: Arity::AtLeast(1),
    flags: SAVING,
    history: &[Change::brings("3.2.2", &["SCHEDULE"])],
    about: "Saves all databases to the RDB file in the background.",
    run: bgsave,
    ..Command::ROW
};

/// With SCHEDULE, the save begins when the append-only file has been rewritten. Within a transaction it begins behind
/// that, and while a SAVE is in progress, behind that.
fn bgsave(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let waits = !args.is_empty();
    if waits && !args.take("SCHEDULE") {
        return Err(Error::Syntax);
    }
    args.end()?;
    let is_rewriting = cx.engine().persistence.aof.rewrite.is_some();
    let is_awaited = match &cx.engine().persistence.saving {
        Some(saving) if !saving.is_awaited() => return Err(ServerError::SaveInProgress.into()),
        saving => saving.is_some(),
    };
    if is_rewriting && !waits && !cx.is_nested() {
        return Err(ServerError::RewriteActive.into());
    }
    if cx.is_nested() || is_rewriting {
        operations::schedule_save(cx);
        cx.reply().simple("Background saving scheduled");
        return Ok(());
    }
    if is_awaited {
        operations::schedule_save(cx);
    } else {
        operations::begin_save(cx)?;
    }
    cx.reply().simple("Background saving started");
    Ok(())
}

const BGREWRITEAOF: Command = Command {
    name: "BGREWRITEAOF",
    family: Family::Server,
    flags: SAVING,
    since: "1.0.0",
    about: "Rewrites the append-only file in the background, as the commands that its data need.",
    run: bgrewriteaof,
    ..Command::ROW
};

fn bgrewriteaof(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let begins = operations::rewrite_aof(cx)?;
    cx.reply().simple(if begins {
        "Background append only file rewriting started"
    } else {
        "Background append only file rewriting scheduled"
    });
    Ok(())
}

const LASTSAVE: Command = Command {
    name: "LASTSAVE",
    family: Family::Server,
    flags: Flags::LOADING.and(Flags::STALE).and(Flags::FAST).and(Flags::FOR_ADMINS),
    about: "Returns when the data was last saved, in unix seconds; when the server started if it never was.",
    tips: &["nondeterministic_output"],
    run: lastsave,
    ..Command::ROW
};

fn lastsave(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let saved_s = cx.engine().persistence.last_save.unix_s();
    cx.reply().integer(saved_s);
    Ok(())
}
