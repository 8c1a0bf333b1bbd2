//! What a node of a cluster does beside its commands: it sends clients to the node that owns their slot, and tells
//! clients and other nodes when its view changes.
//!
//! The decision itself is a pure function ([`redirect`]). While the server is no node of a cluster, all this costs the
//! gate's one branch, once for a batch of the fast path.

use crate::engine::Engine;
use crate::engine::cluster::{
    Address, BUS_OFFSET, Claim, EndpointType, Health, NodeId, Opening, QueriedKey, Query, Refusal, View, redirect,
};
use crate::engine::exec::gates::Asked;
use crate::engine::exec::{blocking, changes, propagation, publish};
use crate::engine::spec::{ClusterError, Command, CommandId, Error, Event, Family, Flags, KeyFlags};
use crate::engine::state::{Effect, SessionId, Settings};
use crate::resp::Request;
use crate::value::hash_slot::hash_slot;

/// Refuses a request whose keys this node does not serve. A transaction that is refused is over.
#[cold]
pub(super) fn pass_redirect(engine: &mut Engine, asked: &Asked<'_>) -> Result<(), Error> {
    let query = query(engine, asked.session, asked.id, asked.flags, asked.request);
    match decide(engine, &query) {
        Ok(_) => Ok(()),
        Err(refusal) => Err(error_of(engine, refusal).into()),
    }
}

/// Refuses a request of a script whose keys this node does not serve, or that are in another slot than those before.
pub(super) fn pass_redirect_of_script(engine: &mut Engine, id: CommandId, request: Request<'_>) -> Result<(), Error> {
    if engine.cluster.is_none() {
        return Ok(());
    }
    let (session, flags) = (engine.scripts.running().session, engine.table.entry(id).command.flags);
    let decision = decide(engine, &query(engine, session, id, flags, request));
    let name = || engine.table.entry(id).name.clone();
    let slot = decision.map_err(|refusal| match refusal {
        Refusal::Unowned => ClusterError::ScriptUnowned,
        Refusal::CrossSlot => ClusterError::ScriptCrossSlot(name()),
        Refusal::Down => ClusterError::ScriptDown,
        Refusal::ReadsOnly => ClusterError::ScriptReadsOnly,
        Refusal::TryAgain => ClusterError::ScriptTryAgain(name()),
        Refusal::Ask(..) | Refusal::Moved(..) => ClusterError::ScriptMoved,
    })?;
    let running = engine.scripts.running();
    match (slot, running.hash_slot) {
        _ if running.allows_cross_slot => Ok(()),
        (Some(slot), Some(before)) if slot != before => Err(ClusterError::ScriptSlots.into()),
        (slot, before) => {
            running.hash_slot = before.or(slot);
            Ok(())
        }
    }
}

fn decide(engine: &Engine, query: &Query<'_>) -> Result<Option<u16>, Refusal> {
    let Some(view) = &engine.cluster else { return Ok(None) };
    redirect(view, &engine.settings.cluster, query, |key| engine.databases.get(0).find(key).is_some())
}

/// The keys of a request, or of all requests of the transaction that it runs.
fn query<'e>(engine: &'e Engine, session: SessionId, id: CommandId, flags: Flags, request: Request<'e>) -> Query<'e> {
    let command = engine.table.entry(id).command;
    let client = engine.sessions.get(session);
    let is_asking = flags.has(Flags::ASKING) || client.is_some_and(|client| client.asking.is_on());
    let mut query =
        Query { keys: Vec::new(), writes: flags.has(Flags::WRITE), migrates: command.name == "MIGRATE", is_asking };
    if !flags.has(Flags::RUNS_QUEUE) {
        add_keys(command, request, &mut query.keys);
        return query;
    }
    let transaction = client.and_then(|client| client.transaction.as_deref());
    for queued in transaction.iter().flat_map(|transaction| transaction.queue.iter()) {
        if let Ok((id, _)) = engine.table.resolve(queued) {
            add_keys(engine.table.entry(id).command, queued, &mut query.keys);
        }
    }
    query
}

/// Adds the keys and the shard channels of a request. Rows describe shard channels as words that look like keys.
fn add_keys<'r>(command: &Command, request: Request<'r>, keys: &mut Vec<QueriedKey<'r>>) {
    if command.has_keys() {
        let names = command.keys_of(request).into_iter().filter_map(|(place, _)| request.get(place));
        return keys.extend(names.map(|name| QueriedKey { name, is_channel: false }));
    }
    let specs =
        command.keys.iter().filter(|spec| command.family == Family::PubSub && spec.access.has(KeyFlags::NOT_KEY));
    let names = specs.flat_map(|spec| spec.places(request)).filter_map(|place| request.get(place));
    keys.extend(names.map(|name| QueriedKey { name, is_channel: true }));
}

/// The error for the client of a request that is not served here.
fn error_of(engine: &Engine, refusal: Refusal) -> ClusterError {
    let at = |id: NodeId| {
        let node = engine.cluster.as_ref().and_then(|view| view.find(id.as_bytes()));
        let address = node.map(|node| node.address.clone()).unwrap_or_default();
        (endpoint(&engine.settings, &address).unwrap_or_default(), address.port)
    };
    match refusal {
        Refusal::Unowned => ClusterError::Unowned,
        Refusal::CrossSlot => ClusterError::CrossSlot,
        Refusal::Down => ClusterError::Down,
        Refusal::ReadsOnly => ClusterError::ReadsOnly,
        Refusal::TryAgain => ClusterError::TryAgain,
        Refusal::Ask(slot, id) => {
            let (endpoint, port) = at(id);
            ClusterError::Ask { slot, endpoint, port }
        }
        Refusal::Moved(slot, id) => {
            let (endpoint, port) = at(id);
            ClusterError::Moved { slot, endpoint, port }
        }
    }
}

/// What clients are told as the endpoint of a node at that address; `None` if they are told none.
pub fn endpoint(settings: &Settings, address: &Address) -> Option<String> {
    match settings.cluster.endpoint_type {
        EndpointType::Ip => Some(address.ip.clone()),
        EndpointType::Hostname if address.hostname.is_empty() => Some("?".to_owned()),
        EndpointType::Hostname => Some(address.hostname.clone()),
        EndpointType::Unknown => None,
    }
}

/// Makes the server the node that `view` is of. Its data are one database, whose keys are indexed by their slots.
pub fn join(engine: &mut Engine, view: View) {
    engine.databases.index_hash_slots();
    engine.cluster = Some(Box::new(view));
    apply_settings(engine);
}

/// Puts changed settings in force: where this node is reached, and whether it serves keys while slots have no owner.
pub fn apply_settings(engine: &mut Engine) {
    let (settings, port) = (&engine.settings.cluster, engine.settings.port);
    let Some(view) = &engine.cluster else { return };
    let or = |announced: u16, real: u16| if announced == 0 { real } else { announced };
    let ip = if settings.announced_ip.is_empty() { &view.own_ip } else { &settings.announced_ip };
    let address = Address {
        ip: ip.clone(),
        port: or(settings.announced_port, port),
        bus_port: or(settings.announced_bus_port, or(settings.bus_port, port.saturating_add(BUS_OFFSET))),
        hostname: settings.announced_hostname.clone(),
    };
    change(engine, |view| view.myself_mut().address = address);
}

/// Changes the view, with all that follows: whether keys are served at all, the clients that wait for keys or listen
/// to shard channels which belong to another node now, and the announcement to the other nodes. `None` if the server
/// is no node.
pub fn change<R>(engine: &mut Engine, act: impl FnOnce(&mut View) -> R) -> Option<R> {
    let requires_full_coverage = engine.settings.cluster.requires_full_coverage;
    let view = engine.cluster.as_mut()?;
    let (owners, myself, slots) = (view.owners(), view.myself().clone(), view.ranges_of(view.myself().id));
    let result = act(view);
    view.update_health(requires_full_coverage);
    let is_other = *view.myself() != myself || view.ranges_of(view.myself().id) != slots;
    if is_other && view.nodes().len() > 1 {
        engine.effects.push(Effect::Claim(Box::new(view.claim())));
    }
    let released = view.owners_changed_since(&owners);
    end_shard_subscriptions(engine, &released);
    blocking::redirect_waiting(engine);
    Some(result)
}

/// Takes the claim of another node. Keys in slots that this node loses by it are deleted.
pub fn take_claim(engine: &mut Engine, claim: &Claim) {
    let lost = change(engine, |view| view.take_claim(claim)).unwrap_or_default();
    for slot in lost {
        delete_keys(engine, slot);
    }
}

fn delete_keys(engine: &mut Engine, hash_slot: u16) {
    loop {
        let data = engine.databases.get(0);
        let Some(slot) = data.hash_slot_keys(hash_slot).next() else { return };
        let key = data.key(slot).to_vec();
        let lazy_free = engine.databases.get_mut(0).delete(slot);
        engine.free(lazy_free);
        engine.stats.changes += 1;
        propagation::deletion(engine, 0, &key, false);
        changes::changed(engine, 0, Event::DEL, &key);
    }
}

/// Unsubscribes all clients from the shard channels in slots that have another owner now, and tells them.
fn end_shard_subscriptions(engine: &mut Engine, released: &[u16]) {
    if released.is_empty() || !engine.observers.subscriptions.has_shard_channels() {
        return;
    }
    let is_released = |name: &[u8]| released.binary_search(&hash_slot(name)).is_ok();
    publish::end_shard_subscriptions(engine, is_released);
}

/// Why a client that waits for a key in this slot waits for it in vain: the node no longer serves it.
pub(super) fn refusal_of_wait(engine: &Engine, key: &[u8]) -> Option<Error> {
    let view = engine.cluster.as_ref()?;
    if view.health() == Health::Fail {
        return Some(ClusterError::Down.into());
    }
    let slot = hash_slot(key);
    if view.owns(slot) || matches!(view.opening(slot), Some(Opening::Importing(_))) {
        return None;
    }
    let refusal = view.owner(slot).map_or(Refusal::Unowned, |owner| Refusal::Moved(slot, owner.id));
    Some(error_of(engine, refusal).into())
}
