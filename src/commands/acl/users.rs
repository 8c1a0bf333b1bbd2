//! ACL's subcommands about users: listing them, changing them, and their file.

use std::sync::Arc;

use crate::acl::{Selector, User};
use crate::engine::exec::operations;
use crate::engine::{AclError, Args, Ctx, Error};
use crate::resp::Reply;

pub(super) fn set(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let name = args.word()?;
    let rules: Vec<Vec<u8>> = args.rest().map(<[u8]>::to_vec).collect();
    operations::set_user(cx, name, &rules)?;
    cx.reply().ok();
    Ok(())
}

pub(super) fn delete(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    if args.rest().any(|name| name == b"default") {
        return Err(AclError::DefaultStays.into());
    }
    let removed = args.rest().filter(|name| operations::remove_user(cx, name)).count();
    cx.reply().count(removed);
    Ok(())
}

pub(super) fn get(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let name = args.word()?;
    let (engine, reply) = cx.engine_and_reply();
    match engine.acl.users.get(name) {
        Some(user) => write_user(reply, user),
        None => reply.null(),
    }
    Ok(())
}

fn write_user(reply: &mut Reply<'_>, user: &User) {
    reply.map(6);
    reply.bulk(b"flags");
    let flags = user.flags();
    reply.set(flags.clone().count());
    for flag in flags {
        reply.bulk(flag.as_bytes());
    }
    reply.bulk(b"passwords");
    reply.array(user.passwords().len());
    for password in user.passwords() {
        reply.bulk(password.digits().as_bytes());
    }
    write_selector(reply, user.root());
    reply.bulk(b"selectors");
    reply.array(user.others().len());
    for selector in user.others() {
        reply.map(3);
        write_selector(reply, selector);
    }
}

fn write_selector(reply: &mut Reply<'_>, selector: &Selector) {
    for (name, rules) in ["commands", "keys", "channels"].into_iter().zip(selector.parts()) {
        reply.bulk(name.as_bytes());
        reply.bulk(&rules);
    }
}

pub(super) fn list(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    write_all(cx, User::write_line)
}

pub(super) fn names(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    write_all(cx, |user, text| text.extend_from_slice(user.name()))
}

fn write_all(cx: &mut Ctx<'_>, write: impl Fn(&User, &mut Vec<u8>)) -> Result<(), Error> {
    let (engine, reply) = cx.engine_and_reply();
    let users = &engine.acl.users;
    reply.array(users.iter().len());
    let mut text = Vec::new();
    for user in users.iter().map(Arc::as_ref) {
        text.clear();
        write(user, &mut text);
        reply.bulk(&text);
    }
    Ok(())
}

pub(super) fn load(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    has_file(cx)?;
    operations::load_users(cx).map_err(AclError::File)?;
    cx.reply().ok();
    Ok(())
}

pub(super) fn save(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    has_file(cx)?;
    if !operations::save_users(cx) {
        return Err(AclError::NotSaved.into());
    }
    cx.reply().ok();
    Ok(())
}

fn has_file(cx: &Ctx<'_>) -> Result<(), Error> {
    if cx.settings().acl_file.is_empty() { Err(AclError::NoFile.into()) } else { Ok(()) }
}
