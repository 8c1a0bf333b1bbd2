//! The slots of this node: ADDSLOTS, DELSLOTS and the like, SETSLOT, and the keys in a slot.

use std::collections::BTreeSet;

use super::{known_node, view};
use crate::engine::cluster::{NodeId, SlotMigration};
use crate::engine::exec::operations;
use crate::engine::{Args, ClusterError, Ctx, Error, says, shown};
use crate::value::hash_slot::{HASH_SLOTS, hash_slot};
use crate::value::number;

/// The slot that a word names.
fn slot(word: &[u8]) -> Result<u16, ClusterError> {
    let slot = number::parse_i64(word).and_then(|slot| u16::try_from(slot).ok());
    slot.filter(|slot| *slot < HASH_SLOTS).ok_or(ClusterError::Slot)
}

/// The change to slots that a request lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assignment {
    /// This node becomes their owner; they must have none.
    Add,
    /// They lose their owner, whichever that is.
    Delete,
}

/// ADDSLOTS and DELSLOTS: each word is a slot.
pub(super) fn assign(cx: &mut Ctx<'_>, args: Args<'_>, assignment: Assignment) -> Result<(), Error> {
    view(cx)?;
    let slots = args.rest().map(slot).collect::<Result<Vec<u16>, ClusterError>>()?;
    let mut chosen = BTreeSet::new();
    slots.into_iter().try_for_each(|slot| choose(cx, slot, assignment, &mut chosen))?;
    conclude(cx, chosen, assignment)
}

/// ADDSLOTSRANGE and DELSLOTSRANGE: two words are the first and the last slot of a range.
pub(super) fn assign_ranges(cx: &mut Ctx<'_>, mut args: Args<'_>, assignment: Assignment) -> Result<(), Error> {
    view(cx)?;
    if args.left() % 2 == 1 {
        return Err(Error::WrongArity(cx.command().name.clone()));
    }
    let mut chosen = BTreeSet::new();
    while !args.is_empty() {
        let (first, last) = (slot(args.word()?)?, slot(args.word()?)?);
        if first > last {
            return Err(ClusterError::Range(first, last).into());
        }
        (first..=last).try_for_each(|slot| choose(cx, slot, assignment, &mut chosen))?;
    }
    conclude(cx, chosen, assignment)
}

fn choose(cx: &Ctx<'_>, slot: u16, assignment: Assignment, chosen: &mut BTreeSet<u16>) -> Result<(), Error> {
    let is_owned = view(cx)?.owner(slot).is_some();
    match assignment {
        Assignment::Delete if !is_owned => Err(ClusterError::Unassigned(slot).into()),
        Assignment::Add if is_owned => Err(ClusterError::Busy(slot).into()),
        _ if !chosen.insert(slot) => Err(ClusterError::Repeated(slot).into()),
        _ => Ok(()),
    }
}

fn conclude(cx: &mut Ctx<'_>, slots: BTreeSet<u16>, assignment: Assignment) -> Result<(), Error> {
    operations::change_cluster(cx, |view| {
        let owner = (assignment == Assignment::Add).then_some(view.myself().id);
        for slot in slots {
            if let Some(SlotMigration::Importing(_)) = view.slot_migration(slot) {
                view.set_slot_migration(slot, None);
            }
            view.assign(slot, owner);
        }
    });
    cx.reply().ok();
    Ok(())
}

pub(super) fn flush(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    view(cx)?;
    if !cx.database().is_empty() {
        return Err(ClusterError::FlushWithKeys.into());
    }
    operations::change_cluster(cx, |view| {
        let slots: Vec<u16> = view.ranges_of(view.myself().id).into_iter().flatten().collect();
        slots.into_iter().for_each(|slot| view.assign(slot, None));
    });
    cx.reply().ok();
    Ok(())
}

/// An action of SETSLOT.
enum Action {
    /// The slot begins to move, to or from a node.
    Open(SlotMigration),
    /// The slot no longer moves.
    Close,
    /// The slot belongs to that node.
    Give(NodeId),
}

pub(super) fn set_slot(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    if view(cx)?.myself().is_replica() {
        return Err(ClusterError::SetSlotAtReplica.into());
    }
    let slot = slot(args.word()?)?;
    let (name, node) = (args.word()?, args.word().ok());
    if !args.is_empty() {
        return Err(ClusterError::SetSlot.into());
    }
    match action(cx, slot, name, node)? {
        Action::Open(migration) => {
            _ = operations::change_cluster(cx, |view| view.set_slot_migration(slot, Some(migration)))
        }
        Action::Close => _ = operations::change_cluster(cx, |view| view.set_slot_migration(slot, None)),
        Action::Give(node) => give(cx, slot, node),
    }
    cx.reply().ok();
    Ok(())
}

fn action(cx: &Ctx<'_>, slot: u16, name: &[u8], node: Option<&[u8]>) -> Result<Action, Error> {
    let view = view(cx)?;
    let other = |id: &[u8]| match view.find(id) {
        Some(node) if node.is_replica() => Err(ClusterError::TargetIsReplica),
        Some(node) => Ok(node.id),
        None => Err(ClusterError::NotKnown(shown(id))),
    };
    Ok(match node {
        Some(_) if says(name, "MIGRATING") && !view.owns(slot) => return Err(ClusterError::NotOwner(slot).into()),
        Some(_) if says(name, "IMPORTING") && view.owns(slot) => return Err(ClusterError::AlreadyOwner(slot).into()),
        Some(id) if says(name, "MIGRATING") => Action::Open(SlotMigration::Migrating(other(id)?)),
        Some(id) if says(name, "IMPORTING") => Action::Open(SlotMigration::Importing(other(id)?)),
        None if says(name, "STABLE") => Action::Close,
        Some(id) if says(name, "NODE") => {
            let node = known_node(cx, id)?;
            if node.is_replica() {
                return Err(ClusterError::TargetIsReplica.into());
            }
            let node = node.id;
            if view.owns(slot) && node != view.myself().id && cx.database().hash_slot_len(slot) > 0 {
                return Err(ClusterError::SlotHasKeys(slot).into());
            }
            Action::Give(node)
        }
        _ => return Err(ClusterError::SetSlot.into()),
    })
}

/// Gives a slot to a node. A slot that was imported is claimed with a new epoch, so that all other nodes follow. A
/// primary that gives its last slot away becomes a replica of the new owner.
fn give(cx: &mut Ctx<'_>, slot: u16, node: NodeId) {
    let was_mine = cx.engine().peers.cluster.as_ref().is_some_and(|view| view.owns(slot));
    let is_empty = cx.database().hash_slot_len(slot) == 0;
    operations::change_cluster(cx, |view| {
        let (migration, is_mine) = (view.slot_migration(slot), node == view.myself().id);
        view.assign(slot, Some(node));
        match migration {
            Some(SlotMigration::Migrating(_)) if is_empty => view.set_slot_migration(slot, None),
            Some(SlotMigration::Importing(_)) if is_mine => {
                view.bump_epoch();
                view.set_slot_migration(slot, None);
            }
            _ => {}
        }
    });
    let view = cx.engine().peers.cluster.as_ref();
    let is_left_without = view.is_some_and(|view| was_mine && !view.owns_slots(view.myself().id));
    if is_left_without && cx.settings().cluster.allows_replica_migration {
        operations::follow_primary(cx, node);
    }
}

pub(super) fn count_keys(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    view(cx)?;
    let slot = u16::try_from(args.integer()?).ok().filter(|slot| *slot < HASH_SLOTS);
    let count = cx.database().hash_slot_len(slot.ok_or(ClusterError::CountedSlot)?);
    cx.reply().count(count);
    Ok(())
}

pub(super) fn get_keys(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    view(cx)?;
    let (slot, count) = (args.integer()?, args.integer()?);
    let slot = u16::try_from(slot).ok().filter(|slot| *slot < HASH_SLOTS).ok_or(ClusterError::SlotOrCount)?;
    let count = usize::try_from(count).map_err(|_| ClusterError::SlotOrCount)?;
    let (engine, reply) = cx.engine_and_reply();
    let database = engine.databases.get(0);
    reply.array(count.min(database.hash_slot_len(slot)));
    database.hash_slot_keys(slot).take(count).for_each(|found| reply.bulk(database.key(found)));
    Ok(())
}

pub(super) fn key_slot(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    view(cx)?;
    let slot = hash_slot(args.word()?);
    cx.reply().integer(slot.into());
    Ok(())
}
