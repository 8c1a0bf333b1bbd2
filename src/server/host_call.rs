//! The answers to host calls: what a command asks of its host while its engine is not locked, about other worlds, other
//! nodes of the cluster, or the data as a whole.

use std::sync::Arc;

use super::data_reader::ReadOrder;
use super::shared::Shared;
use super::wake_flags::WakeFlags;
use crate::engine::{HostCall, HostReply, KitError, SessionId};

/// A session, its world, and its wake flags.
#[derive(Debug)]
pub(crate) struct Attachment {
    pub(crate) shared: Arc<Shared>,
    pub(crate) session: SessionId,
    pub(crate) wake_flags: Arc<WakeFlags>,
}

/// The state of a host call.
#[derive(Debug)]
pub(crate) enum HostCallState {
    /// It is answered: the request is to be run again.
    Answered,
    /// It is answered, and the session continues in another world.
    Moved(Attachment),
    /// The answer takes long: the request is to be run again when the session gets `WakeFlag::Resume`.
    Pending,
}

/// Answers the host call of a session. If it moves to another world, pushes that the old world had queued for it are
/// added to `output`.
pub(crate) fn answer(shared: &Arc<Shared>, session: SessionId, output: &mut Vec<u8>) -> HostCallState {
    let Some(call) = shared.engine().take_host_call(session) else { return HostCallState::Answered };
    if let HostCall::Read(query) = call {
        shared.worlds().data_reader().read(ReadOrder { shared: Arc::clone(shared), session, query });
        return HostCallState::Pending;
    }
    answer_at_once(shared, session, call, output).map_or(HostCallState::Answered, HostCallState::Moved)
}

fn answer_at_once(
    shared: &Arc<Shared>,
    session: SessionId,
    call: HostCall,
    output: &mut Vec<u8>,
) -> Option<Attachment> {
    let (worlds, cluster) = (shared.worlds(), shared.cluster());
    let (reply, attachment) = match &call {
        HostCall::Enter { world, is_temporary } => match worlds.enter(shared, session, world, *is_temporary) {
            Ok(attachment) => (HostReply::Done, attachment),
            Err(why) => (HostReply::Refused(why), None),
        },
        HostCall::Listen(name) => (worlds.listen(name).map_or_else(HostReply::Refused, HostReply::Port), None),
        HostCall::Worlds => (HostReply::Worlds(worlds.figures()), None),
        HostCall::Dump(name) => {
            (worlds.dump(name, shared, session).map_or_else(HostReply::Refused, HostReply::Text), None)
        }
        HostCall::Advance(advance) => (HostReply::Moment(shared.advance_all(*advance)), None),
        HostCall::Nodes => (HostReply::Nodes(cluster.node_figures()), None),
        HostCall::Node(number, order) => (done(cluster.order_node(*number, *order)), None),
        HostCall::AddNode(primary) => {
            let added = shared.add_node(*primary).map(|node| (node.node_number(), node.client_address()));
            (added.map_or_else(HostReply::Refused, |(number, address)| HostReply::NewNode(number, address)), None)
        }
        HostCall::RemoveNode(number) => (done(cluster.remove_node(*number)), None),
        HostCall::Partition(groups) => (done(cluster.partition(groups)), None),
        HostCall::HealLinks => {
            cluster.heal_links();
            (HostReply::Done, None)
        }
        HostCall::Link { one, other, order } => (done(cluster.set_link(*one, *other, *order)), None),
        HostCall::Journals(order) => (cluster.order_journals(order).unwrap_or_else(HostReply::Refused), None),
        HostCall::Snapshots(order) => (done(cluster.order_snapshots(order)), None),
        HostCall::Faults(order) => (cluster.order_faults(order).unwrap_or_else(HostReply::Refused), None),
        HostCall::MigrateSlot { slot, to, step } => (done(cluster.migrate_slot(*slot, *to, step)), None),
        // A thread answers it.
        HostCall::Read(_) => return None,
        HostCall::DropWorld(name) => (done(worlds.end(name)), None),
    };
    match &attachment {
        None => shared.engine().answer_host_call(session, call, reply),
        Some(attachment) => {
            attachment.shared.engine().answer_host_call(attachment.session, call, reply);
            if let Some(client) = shared.engine().sessions.get_mut(session) {
                client.push_queue.take(output, usize::MAX);
            }
            shared.disconnect(session);
        }
    }
    attachment
}

fn done(outcome: Result<(), KitError>) -> HostReply {
    outcome.map_or_else(HostReply::Refused, |()| HostReply::Done)
}
