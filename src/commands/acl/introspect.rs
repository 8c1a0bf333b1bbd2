//! ACL's other subcommands: categories, password generation, the dry run of a command, and the log of denials.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::acl::{Denial, Entry};
use crate::engine::exec::{acl, operations};
use crate::engine::{AclError, Args, CATEGORIES, Ctx, Error, shown};
use crate::resp::{Reply, Request, Span};
use crate::value::hexadecimal;

pub(super) fn cat(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let subcommand = args.previous();
    let name = if args.is_empty() { None } else { Some(args.word()?) };
    nothing_left(&args, subcommand)?;
    let (engine, reply) = cx.engine_and_reply();
    let Some(name) = name else {
        reply.array(CATEGORIES.len());
        CATEGORIES.into_iter().for_each(|category| reply.bulk(category.as_bytes()));
        return Ok(());
    };
    let category = CATEGORIES.into_iter().find(|category| name.eq_ignore_ascii_case(category.as_bytes()));
    let category = category.ok_or_else(|| AclError::UnknownCategory(shown(name).chars().take(128).collect()))?;
    let members: Vec<_> = engine.table.entries().iter().filter(|entry| entry.command.is_in(category)).collect();
    reply.array(members.len());
    members.into_iter().for_each(|entry| reply.bulk(entry.name.as_bytes()));
    Ok(())
}

/// Redis checks the number of arguments here by hand, so its error differs from that of the arity gate.
fn nothing_left(args: &Args<'_>, subcommand: &[u8]) -> Result<(), Error> {
    if args.is_empty() {
        Ok(())
    } else {
        Err(Error::SubcommandOrArity { container: "ACL", subcommand: shown(subcommand) })
    }
}

/// The longest password, in bits.
const MAX_BITS: i64 = 4096;

pub(super) fn password(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let subcommand = args.previous();
    if args.left() > 1 {
        return Err(Error::SubcommandOrArity { container: "ACL", subcommand: shown(subcommand) });
    }
    let bits = if args.is_empty() { 256 } else { args.integer()? };
    if !(1..=MAX_BITS).contains(&bits) {
        return Err(AclError::PasswordBits.into());
    }
    let digits = (bits as usize).div_ceil(4);
    let secret = operations::secret(cx);
    let blocks = (0_u32..).map(|number| Sha256::new().chain_update(secret).chain_update(number.to_le_bytes()));
    let bytes: Vec<u8> = blocks.flat_map(|block| block.finalize()).take(digits.div_ceil(2)).collect();
    cx.reply().bulk(&hexadecimal::text(&bytes).as_bytes()[..digits]);
    Ok(())
}

pub(super) fn dry_run(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let name = args.word()?;
    let (mut buffer, mut spans) = (Vec::new(), Vec::new());
    for word in args.rest() {
        let start = buffer.len();
        buffer.extend_from_slice(word);
        spans.push(Span { start, end: buffer.len() });
    }
    let request = Request::new(&buffer, &spans);
    let (engine, reply) = cx.engine_and_reply();
    let user = engine.acl.users.get(name).map(Arc::clone);
    let user = user.ok_or_else(|| AclError::UnknownUser(shown(name)))?;
    let unknown = |_| AclError::UnknownCommand(shown(request.get(0).unwrap_or_default()));
    let (id, _) = engine.table.resolve(request).map_err(unknown)?;
    let entry = engine.table.entry(id);
    if !entry.command.arity.admits(request.len()) {
        return Err(Error::WrongArity(entry.name.clone()));
    }
    let Err(denial) = acl::may_run(engine, &user, id, request) else {
        reply.ok();
        return Ok(());
    };
    let mut text = [b"User ", user.name(), b" has no permissions to "].concat();
    let (act, object, kind) = match denial {
        Denial::Command => ("run the '", entry.name.as_bytes(), "' command"),
        Denial::Key(place) => ("access the '", request.get(place).unwrap_or_default(), "' key"),
        Denial::Channel(place) => ("access the '", request.get(place).unwrap_or_default(), "' channel"),
    };
    for part in [act.as_bytes(), object, kind.as_bytes()] {
        text.extend_from_slice(part);
    }
    reply.bulk(&text);
    Ok(())
}

/// The number of log entries returned if the client gives none.
const DEFAULT_ENTRIES: i64 = 10;

pub(super) fn log(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let subcommand = args.previous();
    if args.left() > 1 {
        return Err(Error::SubcommandOrArity { container: "ACL", subcommand: shown(subcommand) });
    }
    if args.take("RESET") {
        operations::clear_acl_log(cx);
        cx.reply().ok();
        return Ok(());
    }
    let count = if args.is_empty() { DEFAULT_ENTRIES } else { args.integer()? };
    let now_ms = cx.now_ms();
    let (engine, reply) = cx.engine_and_reply();
    let entries = engine.acl.log.iter();
    let count = usize::try_from(count).unwrap_or(0).min(entries.len());
    reply.array(count);
    entries.take(count).for_each(|entry| write_entry(reply, entry, now_ms));
    Ok(())
}

fn write_entry(reply: &mut Reply<'_>, entry: &Entry, now_ms: i64) {
    let refusal = &entry.refusal;
    let (reason, context) = (refusal.reason.name().as_bytes(), refusal.context.name().as_bytes());
    reply.map(10);
    write_number(reply, "count", entry.count as i64);
    write_text(reply, "reason", reason);
    write_text(reply, "context", context);
    write_text(reply, "object", &refusal.object);
    write_text(reply, "username", &refusal.user);
    reply.bulk(b"age-seconds");
    reply.double((now_ms - entry.last_ms) as f64 / 1000.0);
    write_text(reply, "client-info", &entry.client);
    write_number(reply, "entry-id", entry.id as i64);
    write_number(reply, "timestamp-created", entry.first_ms);
    write_number(reply, "timestamp-last-updated", entry.last_ms);
}

fn write_text(reply: &mut Reply<'_>, name: &str, text: &[u8]) {
    reply.bulk(name.as_bytes());
    reply.bulk(text);
}

fn write_number(reply: &mut Reply<'_>, name: &str, value: i64) {
    reply.bulk(name.as_bytes());
    reply.integer(value);
}
