//! The nodes: how this one meets, forgets and follows others, and its epoch.

use core::net::IpAddr;

use super::{known_node, report, view};
use crate::engine::cluster::{BUS_OFFSET, Node, NodeId};
use crate::engine::exec::operations;
use crate::engine::state::replication::FailoverWay;
use crate::engine::{Args, ClusterError, Ctx, Error, says, shown};
use crate::value::number;

pub(super) fn meet(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    view(cx)?;
    let (ip, port, bus_port) = (args.word()?, args.word()?, args.word().ok());
    if !args.is_empty() {
        return Err(subcommand_or_arity(&args));
    }
    let number = number::parse_i64(port).ok_or_else(|| ClusterError::MeetPort(shown(port)))?;
    let bus_number = match bus_port {
        Some(word) => number::parse_i64(word).ok_or_else(|| ClusterError::MeetBusPort(shown(word)))?,
        None => number.saturating_add(BUS_OFFSET.into()),
    };
    let is_port = |number: i64| (1..=i64::from(u16::MAX)).contains(&number);
    let is_address = shown(ip).parse::<IpAddr>().is_ok();
    if !is_address || !is_port(number) || !is_port(bus_number) {
        return Err(ClusterError::MeetAddress(shown(ip), shown(port)).into());
    }
    let (ip, port) = (shown(ip), number as u16);
    if !operations::meet_node(cx, &ip, port) {
        return Err(ClusterError::NobodyToMeet(ip, number).into());
    }
    cx.reply().ok();
    Ok(())
}

/// The error of a subcommand with too many words, which shows it as the client wrote it.
fn subcommand_or_arity(args: &Args<'_>) -> Error {
    Error::SubcommandOrArity { container: "CLUSTER", subcommand: shown(args.subcommand()) }
}

pub(super) fn forget(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let word = args.word()?;
    let now = cx.now();
    if view(cx)?.has_forgotten(word, now) {
        cx.reply().ok();
        return Ok(());
    }
    let id = known_node(cx, word)?.id;
    if id == view(cx)?.myself().id {
        return Err(ClusterError::ForgetsItself.into());
    }
    if view(cx)?.is_replica_of(id) {
        return Err(ClusterError::ForgetsPrimary.into());
    }
    operations::forget_node(cx, id);
    cx.reply().ok();
    Ok(())
}

pub(super) fn replicate(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (id, is_replica) = known_node(cx, args.word()?).map(|node| (node.id, node.is_replica()))?;
    let view = view(cx)?;
    if view.is_myself_id(id) {
        return Err(ClusterError::ReplicatesItself.into());
    }
    if is_replica {
        return Err(ClusterError::ReplicatesReplica.into());
    }
    let is_empty = !view.owns_slots(view.myself().id) && cx.database().is_empty();
    if !view.myself().is_replica() && !is_empty {
        return Err(ClusterError::ReplicaNotEmpty.into());
    }
    operations::follow_primary(cx, id);
    cx.reply().ok();
    Ok(())
}

pub(super) fn failover(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    view(cx)?;
    let way = match (args.word().ok(), args.is_empty()) {
        (_, false) => return Err(subcommand_or_arity(&args)),
        (None, true) => FailoverWay::Graceful,
        (Some(option), true) if says(option, "FORCE") => FailoverWay::Force,
        (Some(option), true) if says(option, "TAKEOVER") => FailoverWay::TakeOver,
        (Some(_), true) => return Err(Error::Syntax),
    };
    operations::fail_over(cx, way)?;
    cx.reply().ok();
    Ok(())
}

pub(super) fn replicas(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (id, is_replica) = known_node(cx, args.word()?).map(|node| (node.id, node.is_replica()))?;
    if is_replica {
        return Err(ClusterError::NotPrimary.into());
    }
    let (now_ms, view) = (cx.now_ms(), view(cx)?);
    let lines: Vec<String> = view.replicas_of(id).map(|replica| report::line(view, replica, now_ms)).collect();
    let reply = cx.reply();
    reply.array(lines.len());
    lines.iter().for_each(|line| reply.bulk(line.as_bytes()));
    Ok(())
}

pub(super) fn count_failure_reports(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let id = known_node(cx, args.word()?)?.id;
    let (now, timeout_ms) = (cx.now(), cx.engine().settings.cluster.node_timeout_ms);
    let reports = view(cx)?.failure_reports(id, now, timeout_ms);
    cx.reply().count(reports);
    Ok(())
}

pub(super) fn reset(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    view(cx)?;
    if args.left() > 1 {
        return Err(subcommand_or_arity(&args));
    }
    let is_hard = args.take("HARD");
    if !is_hard {
        args.take("SOFT");
    }
    args.end()?;
    if !view(cx)?.myself().is_replica() && !cx.database().is_empty() {
        return Err(ClusterError::ResetWithKeys.into());
    }
    let mut numbers = [(); 6].map(|()| cx.random()).into_iter();
    operations::end_replication(cx);
    operations::change_cluster(cx, |view| view.reset(is_hard, || numbers.next().unwrap_or_default()));
    cx.reply().ok();
    Ok(())
}

pub(super) fn set_config_epoch(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    view(cx)?;
    let number = args.integer()?;
    let epoch = u64::try_from(number).map_err(|_| ClusterError::Epoch(number))?;
    let view = view(cx)?;
    if view.nodes().len() > 1 {
        return Err(ClusterError::EpochAmongOthers.into());
    }
    if view.myself().config_epoch != 0 {
        return Err(ClusterError::EpochIsSet.into());
    }
    operations::change_cluster(cx, |view| {
        view.myself_mut().config_epoch = epoch;
        view.current_epoch = view.current_epoch.max(epoch);
    });
    cx.reply().ok();
    Ok(())
}

pub(super) fn bump_epoch(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    view(cx)?;
    let is_bumped = operations::change_cluster(cx, |view| view.bump_epoch()) == Some(true);
    let epoch = view(cx)?.myself().config_epoch;
    cx.reply().simple(format!("{} {epoch}", if is_bumped { "BUMPED" } else { "STILL" }));
    Ok(())
}

/// CLUSTER SAVECONFIG: what a node reads when it starts again is kept in memory, and was kept when it changed.
pub(super) fn save_config(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    view(cx)?;
    cx.reply().ok();
    Ok(())
}

pub(super) fn my_id(cx: &mut Ctx<'_>, id: fn(&Node) -> NodeId) -> Result<(), Error> {
    let id = id(view(cx)?.myself());
    cx.reply().bulk(id.as_bytes());
    Ok(())
}
