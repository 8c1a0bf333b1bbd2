//! COMMAND GETKEYS and GETKEYSANDFLAGS: the words of a request that are keys, by the rules that the gates use.

use super::OPEN;
use super::details::write_names;
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags};
use crate::resp::{Reply, Request, Span};

pub(super) const GETKEYS: Command = Command {
    name: "GETKEYS",
    syntax: "command [arg [arg ...]]",
    family: Family::Server,
    arity: Arity::AtLeast(3),
    flags: OPEN,
    since: "2.8.13",
    cost: "O(N) where N is the number of arguments to the command",
    about: "Finds the keys in a request.",
    run: getkeys,
    ..Command::ROW
};

fn getkeys(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    write_keys(cx, args, |reply, key, _| reply.bulk(key))
}

pub(super) const GETKEYSANDFLAGS: Command = Command {
    name: "GETKEYSANDFLAGS",
    since: "7.0.0",
    about: "Finds the keys in a request, with flags for how they would be used.",
    run: getkeysandflags,
    ..GETKEYS
};

fn getkeysandflags(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    write_keys(cx, args, |reply, key, access| {
        reply.array(2);
        reply.bulk(key);
        write_names(reply, access.names());
    })
}

fn write_keys(cx: &mut Ctx<'_>, args: Args<'_>, write: impl Fn(&mut Reply<'_>, &[u8], KeyFlags)) -> Result<(), Error> {
    let mut buffer = Vec::new();
    let mut spans = Vec::new();
    for word in args.rest() {
        let start = buffer.len();
        buffer.extend_from_slice(word);
        spans.push(Span { start, end: buffer.len() });
    }
    let request = Request::new(&buffer, &spans);
    let keys = keys_of(cx, request)?;
    let reply = cx.reply();
    reply.array(keys.len());
    for (place, access) in keys {
        write(reply, request.get(place).unwrap_or_default(), access);
    }
    Ok(())
}

/// The positions of the keys in a request, with flags for how each would be used.
fn keys_of(cx: &Ctx<'_>, request: Request<'_>) -> Result<Vec<(usize, KeyFlags)>, Error> {
    let (id, _) = cx.table().resolve(request).map_err(|_| Error::InvalidCommandGiven)?;
    let command = cx.table().entry(id).command;
    if command.keys.iter().all(|spec| spec.access.has(KeyFlags::NOT_KEY)) {
        return Err(Error::NoKeyArguments);
    }
    if !command.arity.admits(request.len()) {
        return Err(Error::InvalidArityGiven);
    }
    if command.keys_by.is_some() {
        let keys = command.keys_of(request);
        return if keys.is_empty() { Err(Error::InvalidArgumentsGiven) } else { Ok(keys) };
    }
    let mut keys = Vec::new();
    for spec in command.keys {
        let places = spec.places(request);
        let may_lack = command.flags.has(Flags::NO_MANDATORY_KEYS) || spec.access.has(KeyFlags::INCOMPLETE);
        if places.is_empty() && !may_lack && !spec.begin.is_optional() {
            return Err(Error::InvalidArgumentsGiven);
        }
        let access = command.access(spec, request);
        keys.extend(places.into_iter().map(|place| (place, access)));
    }
    Ok(keys)
}
