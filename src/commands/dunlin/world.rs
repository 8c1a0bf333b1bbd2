//! DUNLIN WORLD and related commands: private servers behind one port. A client enters a world by DUNLIN WORLD, by the
//! user name of its login ([`of_login`]), which any URL can contain, or through the port that DUNLIN LISTEN has opened.

use super::{ROW, order_host};
use crate::engine::{Args, Arity, Command, Ctx, Effect, Error, HostCall, HostReply, KitError, Template, WorldName};

/// The prefixes of user names that name a world; a world of the second prefix ends when its last client leaves.
const LASTING: &[u8] = b"world.";
const TEMPORARY: &[u8] = b"temporary-world.";

pub(super) const WORLD: Command = Command {
    name: "WORLD",
    syntax: "[world [TEMPORARY]]",
    arity: Arity::AtLeast(2),
    about: "Enters a world, which is created if it does not exist; without a name, returns the current world.",
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
        cx.session_mut().keeps_world = is_temporary;
        cx.reply().ok();
    }
    Ok(())
}

/// The world that this user name leads to; `None` if it is an ordinary user name.
///
/// # Errors
/// The name has the prefix of a world, but the rest is not a valid world name.
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
    about: "Lists the worlds, each with its number of clients and of keys, and whether it is temporary.",
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

pub(super) const LISTEN: Command = Command {
    name: "LISTEN",
    syntax: "world",
    arity: Arity::Exactly(3),
    about: "Opens a port whose clients come into a world, which is created if it does not exist; returns the port, which \
            closes with the world.",
    run: listen,
    ..ROW
};

fn listen(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let world = WorldName::parse(args.word()?)?;
    if let Some(HostReply::Port(port)) = cx.call_host(HostCall::Listen(world))? {
        cx.reply().integer(port.into());
    }
    Ok(())
}

pub(super) const DROP_WORLD: Command = Command {
    name: "DROP-WORLD",
    syntax: "world",
    arity: Arity::Exactly(3),
    cost: "O(N), N being its clients",
    about: "Ends a world: its data is deleted and its connections close. The next client to enter gets a new one.",
    run: drop_world,
    ..ROW
};

fn drop_world(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let world = WorldName::parse(args.word()?)?;
    order_host(cx, HostCall::DropWorld(world))
}

pub(super) const TEMPLATE: Command = Command {
    name: "TEMPLATE",
    arity: Arity::Exactly(2),
    cost: "O(N), N being all keys",
    about: "Makes new worlds start as a copy of the present state of this one.",
    run: |cx, _| {
        if cx.settings().cluster.nodes() > 0 {
            return Err(KitError::NoTemplate.into());
        }
        let template = cx.engine().template();
        set_template(cx, Some(Box::new(template)));
        Ok(())
    },
    ..ROW
};

pub(super) const DROP_TEMPLATE: Command = Command {
    name: "DROP-TEMPLATE",
    arity: Arity::Exactly(2),
    about: "Makes new worlds start empty again.",
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
