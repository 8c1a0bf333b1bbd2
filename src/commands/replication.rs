//! Commands about replication, which is not supported: the server answers as a primary without replicas.
//!
//! The replies of ROLE, WAIT and the like are true of such a server. Replication from or to another server is refused,
//! since OK would be a promise. A client in WAIT blocks until its timeout, as in Redis.

use crate::engine::exec::{aof, operations};
use crate::engine::{Args, Arity, Block, ClusterError, Command, Ctx, Error, Family, Flags, ServerError, says};
use crate::resp::Reply;
use crate::value::number;

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[FAILOVER, PSYNC, REPLCONF, REPLICAOF, ROLE, SLAVEOF, SYNC, WAIT, WAITAOF];

const ROLE: Command = Command {
    name: "ROLE",
    family: Family::Server,
    flags: Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE).and(Flags::FAST).and(Flags::FOR_ADMINS),
    since: "2.8.12",
    about: "Returns the replication role: a primary without replicas.",
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
    about: "Ends replication (NO ONE); replication from another server is refused.",
    run: replicaof,
    ..Command::ROW
};

fn replicaof(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    if cx.engine().cluster.is_some() {
        return Err(ClusterError::ReplicaOf.into());
    }
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
    about: "Older name of REPLICAOF.",
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
    about: "Would start a failover to a replica; there is none.",
    run: failover,
    ..Command::ROW
};

fn failover(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    if cx.engine().cluster.is_some() {
        return Err(ClusterError::Failover.into());
    }
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

/// REPLCONF, which a replica sends to its primary: refused, so that the replica learns that this is none.
const SYNC: Command = Command {
    name: "SYNC",
    family: Family::Server,
    flags: Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::NO_MULTI).and(Flags::NO_ASYNC_LOADING),
    cost: "",
    about: "Would send all data to a replica; replication is not supported.",
    run: |_, _| Err(ServerError::NoReplication.into()),
    ..Command::ROW
};

const PSYNC: Command = Command {
    name: "PSYNC",
    syntax: "replicationid offset",
    arity: Arity::AtLeast(3),
    since: "2.8.0",
    about: "Would continue sending data to a replica; replication is not supported.",
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
    about: "Would configure the replication stream; replication is not supported.",
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
    about: "Waits until a number of replicas have this client's writes, and returns how many have: none.",
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
    about: "Waits until a number of servers have this client's writes in their files, and returns how many have: none.",
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
    let has_file = cx.engine().persistence.aof.is_on();
    if own > 0 && !has_file {
        return Err(ServerError::WaitWithoutFile.into());
    }
    let is_synced = has_file && aof::has_synced(cx.engine(), cx.session().id);
    let answer: fn(&mut Reply<'_>) =
        if is_synced { |reply| aof::write_local(reply, 1) } else { |reply| aof::write_local(reply, 0) };
    if replicas <= 0 && (own == 0 || is_synced) {
        answer(cx.reply());
        return Ok(());
    }
    cx.block(Block::until(deadline_ms, answer), answer);
    if has_file && !is_synced {
        operations::await_sync(cx, replicas <= 0);
    }
    Ok(())
}

/// Blocks until the timeout, as there are no replicas, unless the requested number is 0.
fn wait_for(cx: &mut Ctx<'_>, replicas: i64, deadline_ms: Option<i64>, answer: fn(&mut Reply<'_>)) {
    if replicas <= 0 {
        answer(cx.reply());
    } else {
        cx.block(Block::until(deadline_ms, answer), answer);
    }
}
