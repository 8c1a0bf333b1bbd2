//! The RDB file: after a power loss there is the old one or the new one, and the new one if the save has succeeded.

use std::io::Read;
use std::path::Path;

use dunlin::engine::exec::loading::Load;
use dunlin::engine::{Checkpoint, Effect};
use dunlin::rdb::file::is_whole;
use dunlin::storage::simulated::{CallKind, Fault, SimulatedDisk};
use dunlin::storage::{Storage, replace};

use crate::disk_of;
use crate::support::world::World;

const FILE: &str = "data/dump.rdb";
const SEEDS: u64 = 40;

/// Changes the data; each `round` does so otherwise.
fn change(world: &mut World, round: u64) {
    for number in 0..20 {
        world.ask(&format!("SET text:{number} {round}"));
        world.ask(&format!("RPUSH list:{} {round}:{number}", number % 3));
        world.ask(&format!("HSET hash field:{number} {round}"));
    }
    world.ask(&format!("ZADD zset {round} member:{round}"));
    world.ask(&format!("PEXPIREAT text:1 {}", 4_000_000_000_000_u64 + round));
}

fn digest(world: &mut World) -> String {
    world.ask("DEBUG DIGEST")
}

/// The data of this moment.
fn checkpoint(world: &mut World) -> Box<Checkpoint> {
    world.ask("BGSAVE");
    let effects = world.engine.effects.take();
    let saved = effects.into_iter().find_map(|effect| match effect {
        Effect::Save(checkpoint) => Some(checkpoint),
        _ => None,
    });
    saved.expect("nothing else is in progress")
}

/// Saves the data, as the server does.
fn save(disk: &SimulatedDisk, world: &mut World) -> bool {
    let checkpoint = checkpoint(world);
    let temporary = Path::new("data/temp-1.rdb");
    let written = replace::replace(
        disk,
        Path::new(FILE),
        temporary,
        |out| checkpoint.write(out, || Ok(())),
        |file| is_whole(file),
    );
    let id = checkpoint.id();
    drop(checkpoint);
    let has_succeeded = written.is_ok();
    world.engine.end_save(id, written.map(drop).map_err(|error| error.to_string()));
    has_succeeded
}

/// Loads the file.
fn load(disk: &SimulatedDisk) -> Result<World, String> {
    let mut file = disk.open(Path::new(FILE)).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let mut world = World::fresh();
    let loaded = Load::begin(&bytes[..], true).and_then(|load| load.finish(&mut world.engine));
    world.engine.end_load(loaded.map_err(|fault| fault.explained())?);
    Ok(world)
}

/// The number of calls of a save.
fn calls() -> u64 {
    let disk = disk_of(0);
    disk.add_folder("data");
    let mut world = World::fresh();
    change(&mut world, 0);
    assert!(save(&disk, &mut world));
    disk.calls()
}

#[test]
fn after_a_power_loss_before_any_call_there_is_the_old_dump_or_the_new_one_three_times_in_a_row() {
    for (passed, seed) in (0..=calls()).flat_map(|passed| (0..SEEDS).map(move |seed| (passed, seed))) {
        let disk = disk_of(seed);
        disk.add_folder("data");
        let mut world = World::fresh();
        change(&mut world, 0);
        assert!(save(&disk, &mut world), "nothing fails");
        for round in 1..=3 {
            let before = digest(&mut world);
            change(&mut world, round);
            let after = digest(&mut world);
            disk.stop_at_call(passed);
            let has_succeeded = save(&disk, &mut world);
            disk.power_loss(seed * 3 + round);
            world = load(&disk).expect("there was a dump");
            let found = digest(&mut world);
            assert!(found == after || (found == before && !has_succeeded), "call {passed}, seed {seed}, round {round}");
        }
    }
}

#[test]
fn a_save_that_fails_leaves_the_old_dump() {
    for (passed, fault) in (0..calls()).flat_map(|passed| [(passed, Fault::InputOutput), (passed, Fault::Full)]) {
        let disk = disk_of(0);
        disk.add_folder("data");
        let mut world = World::fresh();
        change(&mut world, 0);
        assert!(save(&disk, &mut world), "nothing fails");
        let before = digest(&mut world);
        change(&mut world, 1);
        disk.fail_call(passed, fault);
        let has_succeeded = save(&disk, &mut world);
        let found = digest(&mut load(&disk).expect("there was a dump"));
        // Only the sync of the folder fails when the new dump is in place already.
        let is_replaced = has_succeeded || passed + 1 == calls();
        assert_eq!(found == before, !is_replaced, "call {passed}, {fault:?}");
        assert!(save(&disk, &mut world), "the next save succeeds");
        assert_eq!(disk.paths(), [Path::new(FILE)], "nothing else is left");
    }
}

/// Whether a dump can be lost or damaged when one kind of sync is left out.
fn is_needed(kind: CallKind) -> bool {
    (0..SEEDS).any(|seed| {
        let disk = disk_of(seed);
        disk.add_folder("data");
        disk.ignore_syncs(move |call| call.kind == kind);
        let mut world = World::fresh();
        change(&mut world, 0);
        let wanted = digest(&mut world);
        assert!(save(&disk, &mut world), "nothing fails");
        disk.power_loss(seed);
        load(&disk).map(|mut world| digest(&mut world)) != Ok(wanted)
    })
}

#[test]
fn no_sync_of_a_save_can_be_left_out() {
    assert!(is_needed(CallKind::Sync), "that of the file");
    assert!(is_needed(CallKind::SyncFolder), "that of its folder");
}

/// Texts are stored some at a time; the fault is told of the one that it is about.
#[test]
fn a_key_that_is_twice_in_a_file_is_refused_at_its_offset() {
    let record = |key: &str| format!("\0\u{1}{key}\u{1}1").into_bytes();
    let records = ["a", "b", "a", "c", "d"].map(record).concat();
    let file = [b"REDIS0012", &*records, b"\xff", &[0; 8]].concat();
    let mut world = World::fresh();
    let fault = Load::begin(&file[..], true).and_then(|load| load.finish(&mut world.engine)).expect_err("a is twice");
    assert_eq!(fault.explained(), "RDB has duplicated key 'a' in DB 0 (at offset 19, type 0, key 'a')");
}
