//! Commands about replication: its roles, and the wait for replicas.
//!
//! The nodes of a cluster in this process replicate to each other ([`crate::engine::exec::replication`]). Replication
//! from or to another server is refused, since OK would be a promise. But a client that only wants a copy of all data,
//! such as `redis-cli --rdb` or `redis-cli --cluster backup`, gets it by SYNC.

use crate::engine::cluster::{Address, NodeId};
use crate::engine::exec::replication::{self, is_replica};
use crate::engine::exec::{aof, operations};
use crate::engine::state::replication::{History, Replica, ReplicationId};
use crate::engine::state::{DataQuery, LateReply, RdbParts, RdbRequest};
use crate::engine::{
    Args, Arity, Block, ClusterError, Command, Ctx, Error, Family, Flags, HostCall, HostReply, ServerError, says, shown,
};
use crate::resp::{Reply, split_words};
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

const SYNC: Command = Command {
    name: "SYNC",
    family: Family::Server,
    flags: Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::NO_MULTI).and(Flags::NO_ASYNC_LOADING),
    cost: "",
    about: "Sends all data as an RDB file and closes the connection; a client that follows changes is refused.",
    run: sync,
    ..Command::ROW
};

const PSYNC: Command = Command {
    name: "PSYNC",
    syntax: "replicationid offset",
    arity: Arity::AtLeast(3),
    since: "2.8.0",
    about: "Like SYNC for a client with REPLCONF rdb-only 1; first sends the data's replication id and offset.",
    run: psync,
    ..SYNC
};

/// A node of a cluster sends the file also to a client that has not declared by `capa` what it can do, as replicas do
/// before they ask: `redis-cli --cluster backup` declares nothing, and leaves when it has the file.
fn sync(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let RdbRequest { wants_rdb_only, has_capabilities, .. } = cx.session().rdb_request;
    let is_node = cx.engine().peers.cluster.is_some();
    check_request(cx, wants_rdb_only || is_node && !has_capabilities)?;
    send_rdb(cx, None)
}

fn psync(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (id, offset) = (args.word()?, args.word()?);
    if args.take("FAILOVER") {
        let is_replica = is_replica(cx.engine());
        return Err(if is_replica { ServerError::NoReplication } else { ServerError::FailoverAtPrimary }.into());
    }
    check_request(cx, cx.session().rdb_request.wants_rdb_only)?;
    number::parse_i64(offset).ok_or(Error::NotAnInteger)?;
    send_rdb(cx, Some(id))
}

/// Refuses a client that wants more than an RDB file, such as the stream of changes after it, as a replica does. A
/// request that runs again, because its file is ready, was checked before.
fn check_request(cx: &Ctx<'_>, wants_file_alone: bool) -> Result<(), Error> {
    if cx.session().host_call.is_some() {
        return Ok(());
    }
    let RdbRequest { takes_eof_mark, parts, .. } = cx.session().rdb_request;
    if replication::is_disconnected(cx.engine()) {
        return Err(ServerError::SyncWithoutPrimary.into());
    }
    if parts.is_some() && !takes_eof_mark {
        return Err(ServerError::FilterNeedsMark.into());
    }
    if wants_file_alone { Ok(()) } else { Err(ServerError::NoReplication.into()) }
}

/// Sends the data as an RDB file, and closes the connection. For PSYNC, with the replication id that the client knows
/// or `?`, a line with the present id and offset comes first. A client without a socket gets the file as a string,
/// which is all that it can read.
fn send_rdb(cx: &mut Ctx<'_>, known_id: Option<&[u8]>) -> Result<(), Error> {
    let RdbRequest { takes_eof_mark, parts, .. } = cx.session().rdb_request;
    let parts = parts.unwrap_or(RdbParts { keys: true, functions: true });
    let Some(HostReply::Rdb(file, History { id, offset })) = cx.call_host(HostCall::Read(DataQuery::Rdb(parts)))?
    else {
        return Ok(());
    };
    let stats = cx.stats_mut();
    stats.full_syncs += 1;
    stats.refused_partial_syncs += u64::from(known_id.is_some_and(|known| known != b"?"));
    if cx.session().origin.is_in_process() {
        cx.reply().shared(&file);
        return Ok(());
    }
    let mark = takes_eof_mark.then(|| ReplicationId::random(|| cx.random()));
    cx.session_mut().closing = true;
    let reply = cx.reply();
    if known_id.is_some() {
        reply.simple(format!("FULLRESYNC {id} {offset}"));
    }
    match mark {
        None => {
            reply.whole(format!("${}\r\n", file.len()).as_bytes());
            reply.raw(&file);
        }
        Some(mark) => {
            reply.whole(format!("$EOF:{mark}\r\n").as_bytes());
            reply.raw(&file);
            reply.whole(mark.as_bytes());
        }
    }
    Ok(())
}

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
    about: "Sets options of SYNC; the options that only replicas use are refused.",
    run: replconf,
    ..Command::ROW
};

/// The options of REPLCONF by which replicas report their address and their offset.
const OF_REPLICAS: [&str; 6] = ["listening-port", "ip-address", "ack", "getack", "rdb-channel", "main-ch-client-id"];

fn replconf(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    if !args.left().is_multiple_of(2) {
        return Err(Error::Syntax);
    }
    while !args.is_empty() {
        let (option, value) = (args.word()?, args.word()?);
        let request = &mut cx.session_mut().rdb_request;
        match () {
            () if says(option, "capa") => {
                request.has_capabilities = true;
                request.takes_eof_mark |= says(value, "eof");
            }
            () if says(option, "rdb-only") => request.wants_rdb_only = flag(value)?,
            () if says(option, "rdb-filter-only") => request.parts = Some(parts(value)?),
            () if OF_REPLICAS.iter().any(|name| says(option, name)) => return Err(ServerError::NoReplication.into()),
            () => return Err(ServerError::ReplconfOption(shown(option)).into()),
        }
    }
    cx.reply().ok();
    Ok(())
}

fn flag(value: &[u8]) -> Result<bool, Error> {
    match number::parse_i64(value).ok_or(Error::NotAnInteger)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(ServerError::NotZeroOrOne.into()),
    }
}

/// The parts of a file that a list of words names: functions, or nothing.
fn parts(value: &[u8]) -> Result<RdbParts, Error> {
    let (mut text, mut spans) = (Vec::new(), Vec::new());
    split_words(value, &mut text, &mut spans).map_err(|_| ServerError::NoRdbFilter)?;
    let mut words = spans.iter().map(|span| &text[span.start..span.end]);
    match words.find(|word| !says(word, "functions")) {
        Some(other) => Err(ServerError::RdbFilter(shown(other)).into()),
        None => Ok(RdbParts { keys: false, functions: !spans.is_empty() }),
    }
}

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
    let own = args.integer()?;
    if !(0..=1).contains(&own) {
        return Err(ServerError::NotZeroOrOne.into());
    }
    let replicas = number::parse_i64(args.word()?).filter(|replicas| *replicas >= 0).ok_or(Error::NotPositive)?;
    let deadline_ms = args.timeout_ms(cx.now())?;
    if is_replica(cx.engine()) {
        return Err(ServerError::WaitAofAtReplica.into());
    }
    let has_file = cx.engine().persistence.aof.is_on();
    if own > 0 && !has_file {
        return Err(ServerError::WaitWithoutFile.into());
    }
    let is_synced = has_file && aof::has_synced(cx.engine(), cx.session().id);
    let synced_replicas = replication::replicas_that_have_synced(cx.engine(), cx.session().id) as i64;
    let reply = aof::synced_reply(is_synced.into(), synced_replicas);
    if replicas <= synced_replicas && (own == 0 || is_synced) {
        reply.write(cx.reply());
        return Ok(());
    }
    cx.block(Block::until(deadline_ms, reply), |out| reply.write(out));
    if has_file && !is_synced {
        operations::await_sync(cx, replicas <= synced_replicas);
    }
    Ok(())
}
