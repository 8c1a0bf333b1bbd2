//! Survival of changes that were not synced when the power is lost, chosen at random.

use super::image::{Change, FileImage, NameChange, overwrite};

/// The unit in which a disk writes.
const SECTOR_BYTES: usize = 512;

/// What a disk may do at a power loss to changes that were not synced. By default it may do anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerLossModel {
    /// Which changes of names may survive.
    pub names: NameLoss,
    /// Which writes may survive.
    pub data: DataLoss,
    /// Whether the sync of a file makes its name durable, too, as ext4 does.
    pub sync_keeps_new_names: bool,
}

/// Which of the changes of names that were not synced may survive a power loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameLoss {
    /// Any of them.
    #[default]
    Any,
    /// The first ones, in the order in which they happened.
    InOrder,
}

/// Which of the writes to a file that were not synced may survive a power loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataLoss {
    /// Any of their sectors, each of them whole, in part, as zeros or as older data.
    #[default]
    Any,
    /// The first bytes, in the order in which they were written, and perhaps zeros for the others.
    InOrder,
}

/// The changes of names that survive, in their order.
pub(super) fn surviving(
    loss: NameLoss,
    mut changes: Vec<NameChange>,
    id: impl Fn(&NameChange) -> u64,
    random: &mut fastrand::Rng,
) -> Vec<NameChange> {
    match loss {
        NameLoss::InOrder => changes.truncate(random.usize(0..=changes.len())),
        NameLoss::Any => {
            let keeps_of_four = [0, 2, 2, 4][random.usize(0..4)];
            changes.retain(|_| random.u8(0..4) < keeps_of_four);
        }
    }
    // A change that needs another one comes behind it.
    let mut survivors: Vec<NameChange> = Vec::new();
    for change in changes {
        if change.needs.is_none_or(|needed| survivors.iter().any(|survivor| id(survivor) == needed)) {
            survivors.push(change);
        }
    }
    survivors
}

/// The contents of a file that survive.
pub(super) fn contents(loss: DataLoss, file: &FileImage, stale: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut contents = file.durable.clone();
    match (random.u8(0..4), loss) {
        (0, _) => {}
        (1, _) => file.pending.iter().for_each(|change| change.apply(&mut contents)),
        (2, _) | (_, DataLoss::InOrder) => keep_first(&mut contents, &file.pending, random),
        (_, DataLoss::Any) => keep_any(&mut contents, &file.pending, stale, random),
    }
    contents
}

/// Makes the first changes, and a part of the one behind them. Half of the time, the length is that of all changes.
fn keep_first(contents: &mut Vec<u8>, changes: &[Change], random: &mut fastrand::Rng) {
    let whole = random.usize(0..=changes.len());
    changes[..whole].iter().for_each(|change| change.apply(contents));
    if let Some(Change::Write { at, bytes }) = changes.get(whole) {
        overwrite(contents, *at, &bytes[..random.usize(0..=bytes.len())]);
    }
    let last_truncates = matches!(changes.get(whole..), Some([.., Change::Truncate(_)]));
    if random.bool() && !last_truncates {
        let end = |change: &Change| if let Change::Write { at, bytes } = change { at + bytes.len() } else { 0 };
        let length = changes[whole..].iter().map(end).max().unwrap_or(0);
        contents.resize(length.max(contents.len()), 0);
    }
}

/// Makes some of the changes, sector by sector.
fn keep_any(contents: &mut Vec<u8>, changes: &[Change], stale: &[u8], random: &mut fastrand::Rng) {
    for change in changes {
        match change {
            Change::Truncate(_) if random.bool() => change.apply(contents),
            Change::Truncate(_) => {}
            Change::Write { at, bytes } => {
                for (at, sector) in sectors(*at, bytes) {
                    keep_sector(contents, at, sector, stale, random);
                }
            }
        }
    }
}

/// Splits a write at the borders of sectors.
fn sectors(mut at: usize, mut bytes: &[u8]) -> Vec<(usize, &[u8])> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let (part, rest) = bytes.split_at(bytes.len().min(SECTOR_BYTES - at % SECTOR_BYTES));
        parts.push((at, part));
        (at, bytes) = (at + part.len(), rest);
    }
    parts
}

fn keep_sector(contents: &mut Vec<u8>, at: usize, sector: &[u8], stale: &[u8], random: &mut fastrand::Rng) {
    let middle = random.usize(0..=sector.len());
    match random.u8(0..8) {
        0..3 => overwrite(contents, at, sector),
        3 | 4 => {}
        5 => overwrite(contents, at, &sector[..middle]),
        6 => overwrite(contents, at + middle, &sector[middle..]),
        // The length has grown, but the data are zeros, or what another file had there.
        _ if stale.is_empty() || random.bool() => {
            contents.resize(contents.len().max(at + sector.len()), 0);
        }
        _ => {
            let from = random.usize(0..stale.len());
            let older: Vec<u8> = stale[from..].iter().chain(stale).copied().take(sector.len()).collect();
            if contents.len() < at + sector.len() {
                overwrite(contents, at, &older);
            }
        }
    }
}
