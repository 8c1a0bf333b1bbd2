//! Commands about replication: its roles, and the wait for replicas.
//!
//! The nodes of a cluster in this process replicate to each other ([`crate::engine::exec::replication`]). Replication
//! from or to another server is refused, since OK would be a promise.

use crate::engine::cluster::{Address, NodeId};
use crate::engine::exec::replication::{self, is_replica};
use crate::engine::exec::{aof, operations};
use crate::engine::state::LateReply;
use crate::engine::state::replication::Replica;
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
    about: "Returns the replication role.",
    run: role,
    ..Command::ROW
};

fn role(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let (engine, reply) = cx.engine_and_reply();
    let address = |id: NodeId| {
        let node = engine.peers.cluster.as_ref().and_then(|view| view.get(id));
        node.map(|node| node.address.clone()).unwrap_or_default()
    };
    let Some(replication) = &engine.peers.replication else {
        write_primary(reply, 0, &[], address);
        return Ok(());
    };
    let offset = replication.history.offset;
    match &replication.link {
        None => write_primary(reply, offset, &replication.replicas, address),
        Some(link) => {
            let primary = address(link.primary);
            reply.array(5);
            reply.bulk(b"slave");
            reply.bulk(primary.ip.as_bytes());
            reply.integer(primary.port.into());
            reply.bulk(if link.is_up() { b"connected" } else { b"connect" });
            reply.integer(if link.is_up() { offset as i64 } else { -1 });
        }
    }
    Ok(())
}

fn write_primary(reply: &mut Reply<'_>, offset: u64, replicas: &[Replica], address: impl Fn(NodeId) -> Address) {
    reply.array(3);
    reply.bulk(b"master");
    reply.integer(offset as i64);
    reply.array(replicas.len());
    for replica in replicas {
        let Address { ip, port, .. } = address(replica.id);
        reply.array(3);
        reply.bulk(ip.as_bytes());
        reply.bulk(port.to_string().as_bytes());
        reply.bulk(replica.offset.to_string().as_bytes());
    }
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
    if cx.engine().peers.cluster.is_some() {
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
    about: "Refused: nodes of a cluster use CLUSTER FAILOVER, and other servers have no replicas.",
    run: failover,
    ..Command::ROW
};

fn failover(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    if cx.engine().peers.cluster.is_some() {
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

/// SYNC, by which a replica asks for all data: refused, so that it learns that this is no primary for it.
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
    about: "Waits until a number of replicas have this client's writes, and returns how many have.",
    tips: &["request_policy:all_shards", "response_policy:agg_min"],
    run: wait,
    ..Command::ROW
};

fn wait(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    if is_replica(cx.engine()) {
        return Err(ServerError::WaitAtReplica.into());
    }
    let wanted = args.integer()?;
    let deadline_ms = args.timeout_ms(cx.now())?;
    let (count, offset) = replication::count_replicas_with_writes_of(cx.engine(), cx.session().id);
    let reply = LateReply::Integer(count as i64);
    match usize::try_from(wanted) {
        Ok(wanted) if wanted > count => {
            cx.block(Block::until(deadline_ms, reply), |out| reply.write(out));
            operations::await_replicas(cx, wanted, offset);
        }
        _ => reply.write(cx.reply()),
    }
    Ok(())
}

const WAITAOF: Command = Command {
    name: "WAITAOF",
    syntax: "numlocal numreplicas timeout",
    arity: Arity::Exactly(4),
    since: "7.2.0",
    about: "Waits until a number of servers have this client's writes in their files, and returns how many have.",
    run: waitaof,
    ..WAIT
};

fn waitaof(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    if is_replica(cx.engine()) {
        return Err(ServerError::WaitAofAtReplica.into());
    }
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
    let reply = aof::synced_reply(is_synced.into());
    if replicas <= 0 && (own == 0 || is_synced) {
        reply.write(cx.reply());
        return Ok(());
    }
    cx.block(Block::until(deadline_ms, reply), |out| reply.write(out));
    if has_file && !is_synced {
        operations::await_sync(cx, replicas <= 0);
    }
    Ok(())
}
