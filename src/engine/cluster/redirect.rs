//! The redirect rule: whether a node serves a request for these keys, or where the client is to go.
//!
//! It is one pure function of the view, the keys and the connection. Everything that a client notices of a cluster
//! follows from it, and from views that differ between nodes.
//!
//! Source: the answers of Redis 8.0.6, asked with requests to which several rules apply.

use super::{ClusterSettings, Health, NodeId, SlotMigration, View};
use crate::value::hash_slot::hash_slot;

/// A key or shard channel of a request, or of a request of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct QueriedKey<'k> {
    /// The key, or the name of the channel.
    pub name: &'k [u8],
    /// Whether it may be missing while its slot moves. As in Redis, nothing is for a request that publishes or
    /// subscribes, nor for those behind it in a transaction; a channel of SUNSUBSCRIBE is, where no key has its name.
    pub may_be_missing: bool,
}

/// A request, as far as the rule is concerned.
#[derive(Clone, Debug, Default)]
pub struct Query<'k> {
    /// Its keys and shard channels; for a transaction those of all its requests.
    pub keys: Vec<QueriedKey<'k>>,
    /// Whether it, or a request of the transaction, publishes or subscribes, to a shard channel or to another one.
    pub uses_channels: bool,
    /// Whether it may change data.
    pub writes: bool,
    /// Whether it moves keys between nodes (MIGRATE).
    pub migrates: bool,
    /// Whether it may access a slot that is being imported.
    pub is_asking: bool,
    /// Whether its client reads from replicas, too (READONLY).
    pub reads_replicas: bool,
}

/// Why a node does not serve a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The slot of the first key has no owner.
    Unowned,
    /// The keys are in different slots.
    CrossSlot,
    /// The cluster is down.
    Down,
    /// The cluster is down and serves reads only.
    ReadsOnly,
    /// Some of the keys have moved to another node, or not come from one yet.
    TryAgain,
    /// The keys have moved already, or are new: the named node is to be asked, once.
    Ask(u16, NodeId),
    /// The slot belongs to the named node.
    Moved(u16, NodeId),
}

/// The keys of a request in their one slot.
struct Found {
    slot: u16,
    migration: Option<SlotMigration>,
    /// Whether there are several different keys.
    are_several: bool,
    missing: usize,
    present: usize,
}

/// Decides whether a node serves a request, and returns the slot of its keys then; `None` if it has no keys. `has_key`
/// says whether a key exists: one past its deadline does not, though it may still be stored.
///
/// # Errors
/// The reason why it does not.
pub fn redirect(
    view: &View,
    settings: &ClusterSettings,
    query: &Query<'_>,
    has_key: impl Fn(&[u8]) -> bool,
) -> Result<Option<u16>, Refusal> {
    let Some(found) = find(view, query, has_key)? else { return Ok(None) };
    if view.health() == Health::Fail {
        serve_when_down(settings, query)?;
    }
    let slot = found.slot;
    let owner = view.owner(slot).ok_or(Refusal::Unowned)?;
    match found.migration {
        Some(_) if query.migrates => Ok(Some(slot)),
        Some(SlotMigration::Migrating(_)) if found.missing > 0 && found.present > 0 => Err(Refusal::TryAgain),
        Some(SlotMigration::Migrating(to)) if found.missing > 0 && !view.is_myself_id(to) => {
            Err(Refusal::Ask(slot, to))
        }
        Some(SlotMigration::Importing(_)) if query.is_asking && found.are_several && found.missing > 0 => {
            Err(Refusal::TryAgain)
        }
        Some(SlotMigration::Importing(_)) if query.is_asking => Ok(Some(slot)),
        _ if view.is_myself(owner) => Ok(Some(slot)),
        _ if view.is_replica_of(owner.id) && reads_here(query) => Ok(Some(slot)),
        _ => Err(Refusal::Moved(slot, owner.id)),
    }
}

/// Finds the one slot of all keys, and which of them are missing if it moves.
fn find(view: &View, query: &Query<'_>, has_key: impl Fn(&[u8]) -> bool) -> Result<Option<Found>, Refusal> {
    let Some((first, others)) = query.keys.split_first() else { return Ok(None) };
    let slot = hash_slot(first.name);
    let owner = view.owner(slot).ok_or(Refusal::Unowned)?;
    let migration = view.slot_migration(slot).filter(|migration| match migration {
        SlotMigration::Migrating(_) => view.is_myself(owner),
        SlotMigration::Importing(_) => true,
    });
    if others.iter().any(|key| hash_slot(key.name) != slot) {
        return Err(Refusal::CrossSlot);
    }
    let mut found = Found { slot, migration, are_several: false, missing: 0, present: 0 };
    for key in query.keys.iter().filter(|_| migration.is_some()) {
        found.are_several |= key.name != first.name;
        if !key.may_be_missing {
            continue;
        }
        if has_key(key.name) {
            found.present += 1;
        } else {
            found.missing += 1;
        }
    }
    Ok(Some(found))
}

/// Whether a replica of the owner serves a request, too.
fn reads_here(query: &Query<'_>) -> bool {
    (query.reads_replicas || query.uses_channels) && !query.writes
}

/// Whether a request with keys is served although the cluster is down.
fn serve_when_down(settings: &ClusterSettings, query: &Query<'_>) -> Result<(), Refusal> {
    let is_of_channels = query.uses_channels;
    let allows =
        if is_of_channels { settings.allows_shard_channels_when_down } else { settings.allows_reads_when_down };
    match (allows, is_of_channels) {
        (false, _) => Err(Refusal::Down),
        (true, false) if query.writes => Err(Refusal::ReadsOnly),
        (true, _) => Ok(()),
    }
}
