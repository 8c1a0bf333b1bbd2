//! The RDB file: after a power loss there is the old one or the new one, and the new one if the save has succeeded.

use std::io::Read;
use std::path::Path;

use dunlin::engine::exec::loading::Load;
use dunlin::engine::{Checkpoint, Effect};
use dunlin::rdb::file::is_whole;
use dunlin::storage::simulated::{CallKind, Fault, SimulatedDisk};
use dunlin::storage::{Storage, replace};

use crate::support::choices::Choices;
use crate::support::crash::requests::Requests;
use crate::support::world::World;
use crate::{disk_of, seeds};

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
    save_beside(disk, world, |_| ())
}

/// Saves the data of this moment, while others change them after each key that is written.
fn save_beside(disk: &SimulatedDisk, world: &mut World, mut change: impl FnMut(&mut World)) -> bool {
    let checkpoint = checkpoint(world);
    let temporary = Path::new("data/temp-1.rdb");
    let written = replace::replace(
        disk,
        Path::new(FILE),
        temporary,
        |out| {
            checkpoint.write(out, || {
                change(world);
                Ok(())
            })
        },
        |file| is_whole(file),
    );
    let id = checkpoint.id();
    drop(checkpoint);
    let has_succeeded = written.is_ok();
    world.engine.end_save(id, written.map(drop).map_err(|failure| failure.error.to_string()));
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

/// A server that saves, and crashes several times in a row.
struct Run {
    disk: SimulatedDisk,
    choices: Choices<'static>,
    requests: Requests,
    world: World,
    /// The data of the last save that has succeeded, and of those since then that have not.
    saved: Vec<String>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let disk = disk_of(seed);
        disk.add_folder("data");
        let mut world = World::fresh();
        let saved = vec![digest(&mut world)];
        let choices = Choices::Seed(fastrand::Rng::with_seed(seed).u64(1..));
        Run { disk, choices, requests: Requests::default(), world, saved }
    }

    /// Changes the data and saves, until the disk stops or for a while.
    fn work(&mut self) {
        for _ in 0..self.choices.below(20) {
            if self.choices.below(4) == 0 {
                self.save();
            } else {
                change_by_chance(&mut self.world, &mut self.requests, &mut self.choices);
            }
            if self.disk.is_stopped() {
                return;
            }
        }
    }

    fn save(&mut self) {
        let wanted = digest(&mut self.world);
        let (requests, choices) = (&mut self.requests, &mut self.choices);
        let change = |world: &mut World| change_by_chance(world, requests, choices);
        if save_beside(&self.disk, &mut self.world, change) {
            self.saved.clear();
        }
        self.saved.push(wanted);
    }

    /// Crashes, and starts the server again.
    fn crash(&mut self) -> Result<(), String> {
        let keeps_power = self.choices.below(2) == 0;
        if keeps_power {
            self.disk.process_end();
        } else {
            self.disk.power_loss(self.choices.below(u32::MAX as usize) as u64);
        }
        let has_file = self.disk.paths().iter().any(|path| path == Path::new(FILE));
        self.world = if has_file { load(&self.disk)? } else { World::fresh() };
        let found = digest(&mut self.world);
        let known = self.saved.iter().position(|saved| *saved == found);
        known.ok_or_else(|| format!("the data are none of {} saves", self.saved.len()))?;
        // What is read while the power is on may still be lost with it, if its save did not succeed.
        if !keeps_power {
            self.saved = vec![found];
        }
        Ok(())
    }
}

/// Makes a request, or lets a millisecond pass, in which keys expire.
fn change_by_chance(world: &mut World, requests: &mut Requests, choices: &mut Choices<'_>) {
    if choices.below(8) == 0 {
        world.pass_ms(1);
        world.expire();
    } else {
        world.ask(&requests.make(choices));
    }
}

#[test]
fn a_dump_has_the_data_of_the_moment_of_bgsave_whatever_changes_meanwhile_and_wherever_it_crashes() {
    for seed in 0..seeds() {
        let mut run = Run::new(seed);
        for _ in 0..4 {
            if run.choices.below(4) > 0 {
                run.disk.stop_at_call(run.choices.below(30) as u64);
            }
            run.work();
            run.crash().unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
        }
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
