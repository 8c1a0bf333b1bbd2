//! AUTH and HELLO: authenticate the client and set its protocol.

use super::ANY_TIME;
use super::client::{fits_client_list, name_the_client};
use crate::commands::dunlin::of_login;
use crate::commands::module;
use crate::engine::REDIS_VERSION;
use crate::engine::exec::{operations, replication};
use crate::engine::{Args, Arity, Change, Command, Ctx, Error, Family, Secrets, shown};
use crate::resp::Protocol;
use crate::value::number;

const DEFAULT_USER: &[u8] = b"default";

pub(super) const AUTH: Command = Command {
    name: "AUTH",
    syntax: "[username] password",
    family: Family::Connection,
    arity: Arity::AtLeast(2),
    flags: ANY_TIME,
    history: &[Change::brings("6.0.0", &["username"])],
    cost: "O(N), N being the number of passwords of the user",
    about: "Authenticates the connection.",
    secrets: Secrets::All,
    run: auth,
    ..Command::ROW
};

fn auth(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let word = args.previous();
    let words = args.words(args.left())?;
    let is_done = match words[..] {
        [_] if default_needs_no_password(cx) => return Err(Error::AuthWithoutPassword),
        [password] => log_in(cx, DEFAULT_USER, password, word)?,
        [user, password] => log_in(cx, user, password, word)?,
        _ => return Err(Error::Syntax),
    };
    if is_done {
        cx.reply().ok();
    }
    Ok(())
}

fn default_needs_no_password(cx: &mut Ctx<'_>) -> bool {
    cx.engine().acl.users.default_user().needs_no_password()
}

/// Authenticates the client. The user name may name a world, where the client acts as the default user. Returns false
/// if the client must enter that world first: then nothing is replied yet, and the command runs again there.
fn log_in(cx: &mut Ctx<'_>, user: &[u8], password: &[u8], word: &[u8]) -> Result<bool, Error> {
    let way = of_login(cx, user)?;
    let user = if way.is_some() { DEFAULT_USER } else { user };
    operations::log_in(cx, user, password, word)?;
    way.map_or(Ok(true), |ask| Ok(cx.call_host(ask)?.is_some()))
}

pub(super) const HELLO: Command = Command {
    name: "HELLO",
    syntax: "arguments:[protover [AUTH username password] [SETNAME clientname]]",
    family: Family::Connection,
    arity: Arity::AtLeast(1),
    flags: ANY_TIME,
    since: "6.0.0",
    history: &[Change::says("6.2.0", "Without a version returns information about the connection as it is.")],
    about: "Returns information about the server and sets the protocol; may also authenticate and name the connection.",
    secrets: Secrets::After("AUTH", 2),
    run: hello,
    ..Command::ROW
};

/// The parsed arguments of HELLO.
#[derive(Default)]
struct Greeting<'a> {
    protocol: Option<Protocol>,
    login: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a [u8]>,
}

impl<'a> Greeting<'a> {
    fn parse(mut args: Args<'a>) -> Result<Greeting<'a>, Error> {
        let mut greeting = Greeting::default();
        if args.is_empty() {
            return Ok(greeting);
        }
        greeting.protocol = match number::parse_i64(args.word()?).ok_or(Error::ProtocolNotAnInteger)? {
            2 => Some(Protocol::Resp2),
            3 => Some(Protocol::Resp3),
            _ => return Err(Error::UnsupportedProtocol),
        };
        while let Some(option) = args.peek() {
            if args.take_with("AUTH", 2) {
                greeting.login = Some((args.word()?, args.word()?));
            } else if args.take_with("SETNAME", 1) {
                greeting.name = Some(args.word()?).filter(|name| fits_client_list(name));
                greeting.name.ok_or(Error::ClientName)?;
            } else {
                return Err(Error::HelloOption(shown(option)));
            }
        }
        Ok(greeting)
    }
}

fn hello(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let greeting = Greeting::parse(args)?;
    if let Some((user, password)) = greeting.login
        && !log_in(cx, user, password, args.previous())?
    {
        return Ok(());
    }
    if !cx.session().authenticated {
        return Err(Error::HelloBeforeAuth);
    }
    if let Some(name) = greeting.name {
        name_the_client(cx, name);
    }
    if let Some(protocol) = greeting.protocol {
        cx.session_mut().protocol = protocol;
        if protocol == Protocol::Resp2 {
            // Its client could not tell messages from replies.
            operations::end_feed(cx);
        }
        cx.reply().set_protocol(protocol);
    }
    write_server_properties(cx);
    Ok(())
}

fn write_server_properties(cx: &mut Ctx<'_>) {
    let id = cx.session().id.number;
    let mode = if cx.engine().peers.cluster.is_some() { "cluster" } else { "standalone" };
    let role = if replication::is_replica(cx.engine()) { "replica" } else { "master" };
    let reply = cx.reply();
    reply.map(7);
    for (field, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
        reply.bulk(field.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"proto");
    reply.integer(reply.protocol().version());
    reply.bulk(b"id");
    reply.integer(id as i64);
    for (field, value) in [("mode", mode), ("role", role)] {
        reply.bulk(field.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"modules");
    module::write_list(reply);
}
