//! Counting what a cluster would refuse, on a server that is none (`cluster-compatibility-sample-ratio`).
//!
//! A sampled command counts once if its keys are in several slots of a cluster; so does a script for the keys of all
//! that it calls. Patterns of SORT count if they name keys of other slots. What is refused whatever its keys are (other
//! databases, scripts with the flag `no-cluster`) counts always, as in Redis.
//!
//! Costs: nothing while the ratio is 0, but a branch for each command that a script calls.
//!
//! Source: the behaviour of Redis 8.0.

use crate::engine::Engine;
use crate::engine::exec::cluster;
use crate::engine::exec::gates::GateRequest;
use crate::engine::spec::{CommandId, Flags};
use crate::engine::state::scripts::SampledSlot;
use crate::resp::Request;
use crate::value::hash_slot::hash_slot;

/// Whether some commands are sampled.
pub fn is_sampling(engine: &Engine) -> bool {
    engine.settings.cluster.compatibility_sample_percent > 0 && engine.peers.cluster.is_none()
}

/// Counts an operation that a cluster refuses.
pub fn count(engine: &mut Engine) {
    engine.stats.cluster_incompatible_operations += 1;
}

/// Counts that many operations that a cluster refuses, as far as they are sampled.
pub fn count_sampled(engine: &mut Engine, operations: usize) {
    for _ in 0..operations {
        if is_sampled(engine) {
            count(engine);
        }
    }
}

fn is_sampled(engine: &mut Engine) -> bool {
    let percent = engine.settings.cluster.compatibility_sample_percent;
    is_sampling(engine) && (percent >= 100 || engine.generator.u8(..100) < percent)
}

/// Checks a command that is about to run, if it has keys and is sampled.
pub(super) fn check_command(engine: &mut Engine, asked: &GateRequest<'_>) {
    engine.scripts.sampled_slot = SampledSlot::Ignored;
    let may_have_keys = asked.flags.has(Flags::RUNS_QUEUE) || !engine.table.entry(asked.id).command.keys.is_empty();
    if may_have_keys && is_sampled(engine) {
        engine.scripts.sampled_slot = slot_of(engine, asked);
        if engine.scripts.sampled_slot == SampledSlot::Ignored {
            count(engine);
        }
    }
}

/// Checks a command that a sampled script calls.
pub(super) fn check_call(engine: &mut Engine, id: CommandId, request: Request<'_>) {
    let running = engine.scripts.running();
    let (session, before) = (running.session, running.sampled_slot);
    if before == SampledSlot::Ignored {
        return;
    }
    let flags = engine.table.entry(id).command.flags;
    let now = slot_of(engine, &GateRequest { session, id, flags, request });
    let running = engine.scripts.running();
    running.sampled_slot = match (before, now) {
        (_, SampledSlot::Unknown) => before,
        (_, SampledSlot::Of(_)) if running.allows_cross_slot => before,
        (SampledSlot::Of(slot), SampledSlot::Of(other)) if slot != other => SampledSlot::Ignored,
        _ => now,
    };
    if running.sampled_slot == SampledSlot::Ignored {
        count(engine);
    }
}

/// The one slot of all keys; there is no more to be found if they are in several.
fn slot_of(engine: &Engine, asked: &GateRequest<'_>) -> SampledSlot {
    let query = cluster::query(engine, asked);
    let mut slots = query.keys.iter().map(|key| hash_slot(key.name));
    match slots.next() {
        None => SampledSlot::Unknown,
        Some(first) if slots.all(|slot| slot == first) => SampledSlot::Of(first),
        Some(_) => SampledSlot::Ignored,
    }
}
