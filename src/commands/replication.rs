//! Other servers, which this one neither follows nor feeds: what it answers is what a primary without replicas answers.
//!
//! ROLE, WAIT and the like are true of such a server. To follow another one, or to be followed, is refused: an OK would
//! be a promise. A client that waits for replicas waits, as in Redis, until its time is over.

use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, ServerError, says};
use crate::resp::Reply;
use crate::value::number;

/// The family's rows.
pub const COMMANDS: &[Command] = &[FAILOVER, PSYNC, REPLCONF, REPLICAOF, ROLE, SLAVEOF, SYNC, WAIT, WAITAOF];

const ROLE: Command = Command {
    name: "ROLE",
    family: Family::Server,
    flags: Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE).and(Flags::FAST).and(Flags::FOR_ADMINS),
    since: "2.8.12",
    about: "Tells that this server follows no other, and that none follows it.",
    run: role,
    ..Command::ROW
};

fn role(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let reply = cx.reply();
    reply.array(3);
    reply.bulk(b"master");
    reply.integer(0);
    reply.array(0);
    Ok(())
}

const REPLICAOF: Command = Command {
    name: "REPLICAOF",
    syntax: "args:<host-port:<host port>|no-one:<NO ONE>>",
    family: Family::Server,
    arity: Arity::Exactly(3),
    flags: Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::STALE).and(Flags::NO_ASYNC_LOADING),
    since: "5.0.0",
    about: "Follows no other server any more (NO ONE); that it follows another is refused.",
    run: replicaof,
    ..Command::ROW
};

fn replicaof(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (host, port) = (args.word()?, args.word()?);
    if says(host, "no") && says(port, "one") {
        cx.reply().ok();
        return Ok(());
    }
    match number::parse_i64(port).map(u16::try_from) {
        Some(Ok(_)) => Err(ServerError::NoReplication.into()),
        _ => Err(ServerError::PrimaryPort.into()),
    }
}

const SLAVEOF: Command = Command {
    name: "SLAVEOF",
    since: "1.0.0",
    about: "Is REPLICAOF by an older name.",
    deprecated: Some(("5.0.0", "`REPLICAOF`")),
    ..REPLICAOF
};

const FAILOVER: Command = Command {
    name: "FAILOVER",
    syntax: "target:[TO <host port [FORCE]>] [ABORT] [TIMEOUT milliseconds]",
    family: Family::Server,
    arity: Arity::AtLeast(1),
    flags: Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::STALE),
    since: "6.2.0",
    about: "Would let a replica take over; there is none.",
    run: failover,
    ..Command::ROW
};

fn failover(_: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (mut target, mut timeout_ms, mut abort, mut force) = (false, None, false, false);
    let words = args.left();
    while !args.is_empty() {
        if timeout_ms.is_none() && args.take_with("TIMEOUT", 1) {
            timeout_ms = Some(args.integer()?);
            if timeout_ms.is_some_and(|timeout_ms| timeout_ms <= 0) {
                return Err(ServerError::FailoverTimeout.into());
            }
        } else if words == 1 && args.take("ABORT") {
            abort = true;
        } else if !target && args.take_with("TO", 2) {
            args.word()?;
            args.integer()?;
            target = true;
        } else if !force && args.take("FORCE") {
            force = true;
        } else {
            return Err(Error::Syntax);
        }
    }
    Err(if abort { ServerError::NoFailover } else { ServerError::FailoverWithoutReplicas }.into())
}

/// What a replica says to its primary: refused, so that it learns that there is none here.
const SYNC: Command = Command {
    name: "SYNC",
    family: Family::Server,
    flags: Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::NO_MULTI).and(Flags::NO_ASYNC_LOADING),
    cost: "",
    about: "Would send all data to a replica; this server has none.",
    run: |_, _| Err(ServerError::NoReplication.into()),
    ..Command::ROW
};

const PSYNC: Command = Command {
    name: "PSYNC",
    syntax: "replicationid offset",
    arity: Arity::AtLeast(3),
    since: "2.8.0",
    about: "Would go on sending data to a replica; this server has none.",
    ..SYNC
};

const REPLCONF: Command = Command {
    name: "REPLCONF",
    family: Family::Server,
    arity: Arity::AtLeast(1),
    flags: Flags::ADMIN
        .and(Flags::NOSCRIPT)
        .and(Flags::LOADING)
        .and(Flags::STALE)
        .and(Flags::ALLOW_BUSY)
        .and(Flags::SYSTEM),
    since: "3.0.0",
    about: "Would settle how a replica is fed; this server has none.",
    run: |_, _| Err(ServerError::NoReplication.into()),
    ..Command::ROW
};

const WAIT: Command = Command {
    name: "WAIT",
    syntax: "numreplicas timeout",
    family: Family::Generic,
    arity: Arity::Exactly(3),
    flags: Flags::BLOCKING.and(Flags::CONNECTION),
    since: "3.0.0",
    about: "Waits until so many replicas have this client's writes, and answers how many have: none.",
    tips: &["request_policy:all_shards", "response_policy:agg_min"],
    run: wait,
    ..Command::ROW
};

fn wait(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let replicas = args.integer()?;
    let deadline_ms = args.timeout_ms(cx.now())?;
    wait_for(cx, replicas, deadline_ms, |reply| reply.integer(0));
    Ok(())
}

const WAITAOF: Command = Command {
    name: "WAITAOF",
    syntax: "numlocal numreplicas timeout",
    arity: Arity::Exactly(4),
    since: "7.2.0",
    about: "Waits until this client's writes are in the files of so many servers, and answers in how many they \
            are: none.",
    run: waitaof,
    ..WAIT
};

fn waitaof(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let own = args.integer()?;
    if !(0..=1).contains(&own) {
        return Err(ServerError::NotZeroOrOne.into());
    }
    let replicas = number::parse_i64(args.word()?).filter(|replicas| *replicas >= 0).ok_or(Error::NotPositive)?;
    let deadline_ms = args.timeout_ms(cx.now())?;
    if own > 0 {
        return Err(ServerError::WaitWithoutFile.into());
    }
    wait_for(cx, replicas, deadline_ms, |reply| {
        reply.array(2);
        reply.integer(0);
        reply.integer(0);
    });
    Ok(())
}

/// Waits for replicas: as there are none, until the time is over, unless none are wanted.
fn wait_for(cx: &mut Ctx<'_>, replicas: i64, deadline_ms: Option<i64>, answer: fn(&mut Reply<'_>)) {
    if replicas <= 0 {
        answer(cx.reply());
    } else {
        cx.block_until(deadline_ms, answer);
    }
}
