//! Worlds: private servers behind one port. A client goes into one by DUNLIN WORLD, or by the name that it logs in with
//! ([`of_login`]), which any URL can say.

use super::ROW;
use crate::engine::{Args, Arity, Command, Ctx, Effect, Error, HostCall, HostReply, KitError, Template, WorldName};

/// Names that lead into a world begin with one of these; the world of the second ends when its last client leaves.
const LASTING: &[u8] = b"world.";
const TEMPORARY: &[u8] = b"temporary-world.";

pub(super) const WORLD: Command = Command {
    name: "WORLD",
    syntax: "[world [TEMPORARY]]",
    arity: Arity::AtLeast(2),
    about: "Takes the client into a world, which is made if there is none of that name; or answers where it is.",
    run: world,
    ..ROW
};

fn world(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    if args.is_empty() {
        let (engine, reply) = cx.engine_and_reply();
        reply.bulk(engine.host.facts().name_of_world().as_bytes());
        return Ok(());
    }
    let world = WorldName::parse(args.word()?)?;
    let is_temporary = args.take("TEMPORARY");
    args.end()?;
    if cx.call_host(HostCall::Enter { world, is_temporary })?.is_some() {
        cx.reply().ok();
    }
    Ok(())
}

/// Where a login of that name leads; `None` where it is the name of a user.
///
/// # Errors
/// It would be a world, but none has such a name.
pub fn of_login(cx: &mut Ctx<'_>, user: &[u8]) -> Result<Option<HostCall>, KitError> {
    let named = |prefix| user.strip_prefix(prefix).map(WorldName::parse);
    let (world, is_temporary) = match (named(LASTING), named(TEMPORARY)) {
        _ if !cx.engine().settings.test_kit || cx.engine().acl.users.get(user).is_some() => return Ok(None),
        (Some(world), _) => (world?, false),
        (None, Some(world)) => (world?, true),
        (None, None) => return Ok(None),
    };
    Ok(Some(HostCall::Enter { world, is_temporary }))
}

pub(super) const WORLDS: Command = Command {
    name: "WORLDS",
    arity: Arity::Exactly(2),
    cost: "O(N), N being how many there are",
    about: "Answers the worlds there are, each with its clients, its keys, and whether it is temporary.",
    run: worlds,
    ..ROW
};

fn worlds(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let Some(HostReply::Worlds(worlds)) = cx.call_host(HostCall::Worlds)? else { return Ok(()) };
    let reply = cx.reply();
    reply.array(worlds.len());
    for world in worlds {
        reply.map(4);
        reply.bulk(b"name");
        reply.bulk(world.name.as_str().as_bytes());
        for (field, number) in
            [("clients", world.clients), ("keys", world.keys), ("temporary", usize::from(world.is_temporary))]
        {
            reply.bulk(field.as_bytes());
            reply.integer(number as i64);
        }
    }
    Ok(())
}

pub(super) const DROP_WORLD: Command = Command {
    name: "DROP-WORLD",
    syntax: "world",
    arity: Arity::Exactly(3),
    cost: "O(N), N being its clients",
    about: "Ends a world: its data is gone, its clients' connections close. The next to enter it finds a fresh one.",
    run: drop_world,
    ..ROW
};

fn drop_world(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let world = WorldName::parse(args.word()?)?;
    if cx.call_host(HostCall::DropWorld(world))?.is_some() {
        cx.reply().ok();
    }
    Ok(())
}

pub(super) const TEMPLATE: Command = Command {
    name: "TEMPLATE",
    arity: Arity::Exactly(2),
    cost: "O(N), N being all keys",
    about: "Has worlds that are made from now on begin as a copy of what this one is now.",
    run: |cx, _| {
        let template = cx.engine().template();
        set_template(cx, Some(Box::new(template)));
        Ok(())
    },
    ..ROW
};

pub(super) const DROP_TEMPLATE: Command = Command {
    name: "DROP-TEMPLATE",
    arity: Arity::Exactly(2),
    about: "Has worlds that are made from now on begin empty again.",
    run: |cx, _| {
        set_template(cx, None);
        Ok(())
    },
    ..ROW
};

fn set_template(cx: &mut Ctx<'_>, template: Option<Box<Template>>) {
    cx.effects().push(Effect::Template(template));
    cx.reply().ok();
}
