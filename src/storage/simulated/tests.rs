//! Tests: each promise of [`crate::storage`] is kept for every seed, and each freedom is used for some seed.

use super::*;
use std::thread;

const SEEDS: std::ops::Range<u64> = 0..400;

fn path(name: &str) -> &Path {
    Path::new(name)
}

/// The results of `read` after a power loss, for each seed, on a disk on which `prepare` did its work.
fn outcomes<T>(
    model: PowerLossModel,
    prepare: impl Fn(&SimulatedDisk) -> io::Result<()>,
    read: impl Fn(&SimulatedDisk) -> T,
) -> Vec<T> {
    let outcome = |seed| {
        let disk = SimulatedDisk::with(model);
        prepare(&disk).expect("no call fails");
        disk.power_loss(seed);
        read(&disk)
    };
    SEEDS.map(outcome).collect()
}

fn append(disk: &SimulatedDisk, name: &str, bytes: &[u8]) -> io::Result<Arc<dyn StorageFile>> {
    let file = disk.append(path(name)).or_else(|_| disk.create(path(name)))?;
    assert_eq!(file.write(bytes)?, bytes.len());
    Ok(file)
}

/// Creates a file that is durable with its name.
fn durable(disk: &SimulatedDisk, name: &str, bytes: &[u8]) -> io::Result<()> {
    append(disk, name, bytes)?.sync()?;
    disk.sync_folder(path(""))
}

fn read(disk: &SimulatedDisk) -> Option<Vec<u8>> {
    disk.read("file")
}

const IN_ORDER: PowerLossModel =
    PowerLossModel { names: NameLoss::InOrder, data: DataLoss::InOrder, sync_keeps_new_names: false };

#[test]
fn what_was_synced_with_its_name_survives_every_power_loss() {
    for model in [PowerLossModel::default(), IN_ORDER] {
        for found in outcomes(model, |disk| durable(disk, "file", b"synced"), read) {
            assert_eq!(found.as_deref(), Some(&b"synced"[..]));
        }
    }
}

#[test]
fn what_was_not_synced_is_lost_kept_torn_zero_or_stale() {
    let (old, new) = (vec![b'o'; 1000], vec![b'n'; 1000]);
    let prepare = |disk: &SimulatedDisk| {
        durable(disk, "other", &[b's'; 2000])?;
        disk.remove(path("other"))?;
        durable(disk, "file", &old)?;
        append(disk, "file", &new).map(drop)
    };
    let found: Vec<Vec<u8>> = outcomes(PowerLossModel::default(), prepare, read).into_iter().flatten().collect();
    assert!(
        found.iter().all(|found| found.starts_with(&old) && found.len() <= 2000),
        "more than the new bytes changed"
    );
    let tails: Vec<&[u8]> = found.iter().map(|found| &found[1000..]).collect();
    assert!(tails.iter().any(|tail| tail.is_empty()), "never lost");
    assert!(tails.iter().any(|tail| **tail == new), "never kept");
    assert!(tails.iter().any(|tail| !tail.is_empty() && tail.len() < 1000), "never torn");
    assert!(tails.iter().any(|tail| !tail.is_empty() && tail.iter().all(|byte| *byte == 0)), "never zero");
    assert!(tails.iter().any(|tail| tail.contains(&b's')), "never stale");
    assert!(tails.iter().any(|tail| tail.starts_with(&[0]) && tail.ends_with(b"n")), "never out of order");
}

#[test]
fn in_order_a_prefix_of_the_writes_survives_and_perhaps_zeros() {
    let prepare = |disk: &SimulatedDisk| {
        durable(disk, "file", b"old")?;
        append(disk, "file", &[b'n'; 1500])?;
        append(disk, "file", &[b'm'; 1500]).map(drop)
    };
    let found: Vec<Vec<u8>> = outcomes(IN_ORDER, prepare, read).into_iter().flatten().collect();
    let whole = [&b"old"[..], &[b'n'; 1500], &[b'm'; 1500]].concat();
    for found in &found {
        let text = found.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        assert_eq!(found[..text], whole[..text]);
    }
    assert!(found.iter().any(|found| found.ends_with(&[0])), "no zeros");
    assert!(found.iter().any(|found| found.len() > 1503 && found.len() < 3003), "nothing torn");
}

#[test]
fn a_truncation_is_durable_when_it_was_synced() {
    let cut = |disk: &SimulatedDisk, syncs: bool| {
        durable(disk, "file", b"whole and torn")?;
        let file = disk.append(path("file"))?;
        file.truncate(5)?;
        if syncs { file.sync() } else { Ok(()) }
    };
    let synced = outcomes(PowerLossModel::default(), |disk| cut(disk, true), read);
    assert!(synced.iter().all(|found| found.as_deref() == Some(b"whole")));
    let unsynced = outcomes(PowerLossModel::default(), |disk| cut(disk, false), read);
    assert!(unsynced.iter().any(|found| found.as_deref() == Some(b"whole and torn")));
}

#[test]
fn a_new_name_is_durable_when_its_folder_was_synced() {
    let unsynced = outcomes(PowerLossModel::default(), |disk| append(disk, "file", b"bytes")?.sync(), read);
    assert!(unsynced.iter().any(Option::is_none), "never lost");
    assert!(unsynced.iter().any(Option::is_some), "never kept");
    let keeping = PowerLossModel { sync_keeps_new_names: true, ..PowerLossModel::default() };
    let found = outcomes(keeping, |disk| append(disk, "file", b"bytes")?.sync(), read);
    assert!(found.iter().all(Option::is_some), "ext4 keeps the name of a new file that was synced");
}

#[test]
fn a_renamed_file_has_its_old_name_or_its_new_one() {
    let prepare = |disk: &SimulatedDisk| {
        durable(disk, "file", b"old")?;
        append(disk, "temporary", b"new")?.sync()?;
        disk.sync_folder(path(""))?;
        disk.rename(path("temporary"), path("file"))
    };
    let found = outcomes(PowerLossModel::default(), prepare, |disk| (disk.read("file"), disk.read("temporary")));
    let (old, new) = (Some(b"old".to_vec()), Some(b"new".to_vec()));
    assert!(found.iter().all(|found| *found == (old.clone(), new.clone()) || *found == (new.clone(), None)));
    assert!(found.iter().any(|found| found.1.is_none()) && found.iter().any(|found| found.1.is_some()));
    let synced =
        outcomes(PowerLossModel::default(), |disk| prepare(disk).and_then(|()| disk.sync_folder(path(""))), read);
    assert!(synced.iter().all(|found| *found == new));
}

#[test]
fn a_file_that_moves_to_another_folder_is_never_in_neither() {
    let prepare = |disk: &SimulatedDisk| {
        disk.write("from/file", "bytes");
        disk.add_folder("to");
        disk.rename(path("from/file"), path("to/file"))
    };
    let places = |disk: &SimulatedDisk| (disk.read("from/file").is_some(), disk.read("to/file").is_some());
    for model in [PowerLossModel::default(), IN_ORDER] {
        assert!(outcomes(model, prepare, places).iter().all(|(from, to)| *from || *to));
    }
    let one = |disk: &SimulatedDisk| prepare(disk).and_then(|()| disk.sync_folder(path("to")));
    assert!(
        outcomes(PowerLossModel::default(), one, places).contains(&(true, true)),
        "the folder it left was not synced"
    );
    let both = |disk: &SimulatedDisk| one(disk).and_then(|()| disk.sync_folder(path("from")));
    assert!(outcomes(PowerLossModel::default(), both, places).iter().all(|found| *found == (false, true)));
}

#[test]
fn a_removal_is_durable_when_its_folder_was_synced() {
    let prepare = |disk: &SimulatedDisk| durable(disk, "file", b"bytes").and_then(|()| disk.remove(path("file")));
    assert!(outcomes(PowerLossModel::default(), prepare, read).iter().any(Option::is_some), "never back");
    let synced = |disk: &SimulatedDisk| prepare(disk).and_then(|()| disk.sync_folder(path("")));
    assert!(outcomes(PowerLossModel::default(), synced, read).iter().all(Option::is_none));
}

#[test]
fn a_folder_is_lost_with_all_that_is_in_it_until_the_one_above_was_synced() {
    let prepare = |disk: &SimulatedDisk| {
        disk.create_folder(path("folder"))?;
        append(disk, "folder/file", b"bytes")?.sync()?;
        disk.sync_folder(path("folder"))
    };
    let exists = |disk: &SimulatedDisk| disk.read("folder/file").is_some();
    assert!(outcomes(PowerLossModel::default(), prepare, exists).contains(&false));
    let synced = |disk: &SimulatedDisk| prepare(disk).and_then(|()| disk.sync_folder(path("")));
    assert!(!outcomes(PowerLossModel::default(), synced, exists).contains(&false));
}

#[test]
fn names_survive_in_order_or_in_any_order() {
    let prepare = |disk: &SimulatedDisk| {
        append(disk, "first", b"")?;
        append(disk, "second", b"").map(drop)
    };
    let names = |disk: &SimulatedDisk| disk.list(path("")).expect("it is a folder");
    let any = outcomes(PowerLossModel::default(), prepare, names);
    assert!(any.contains(&vec!["second".to_owned()]) && any.contains(&vec!["first".to_owned()]));
    let in_order = outcomes(IN_ORDER, prepare, names);
    assert!(!in_order.contains(&vec!["second".to_owned()]) && in_order.contains(&vec!["first".to_owned()]));
}

#[test]
fn a_failed_sync_loses_its_bytes_for_good() {
    let prepare = |disk: &SimulatedDisk| {
        durable(disk, "file", b"old")?;
        let file = append(disk, "file", b"new")?;
        disk.fail_next_sync();
        assert!(file.sync().is_err());
        assert_eq!(read(disk).as_deref(), Some(&b"oldnew"[..]), "programs still read them");
        file.sync()
    };
    assert!(outcomes(PowerLossModel::default(), prepare, read).iter().all(|found| found.as_deref() == Some(b"old")));
}

#[test]
fn each_call_can_fail_in_each_way() {
    let run = |disk: &SimulatedDisk| {
        let file = append(disk, "file", b"0123456789")?;
        file.sync()?;
        disk.rename(path("file"), path("renamed"))?;
        disk.sync_folder(path(""))?;
        disk.remove(path("renamed"))
    };
    let disk = SimulatedDisk::new();
    run(&disk).expect("nothing fails");
    for number in 0..disk.calls() {
        for fault in [Fault::InputOutput, Fault::Full] {
            let disk = SimulatedDisk::new();
            disk.fail_call(number, fault);
            // The first call finds no file anyway, and one is created.
            assert_eq!(run(&disk).is_err(), number > 0, "call {number}");
        }
    }
    disk.fail_call(0, Fault::Interrupted);
    let interrupted = disk.length(path("file")).expect_err("it is interrupted");
    assert_eq!(interrupted.kind(), io::ErrorKind::Interrupted);
    let file = disk.create(path("file")).expect("nothing fails");
    disk.fail_call(0, Fault::Short);
    assert_eq!(file.write(b"0123456789").expect("it takes a part"), 5);
    assert_eq!(read(&disk).expect("it exists"), b"01234");
}

#[test]
fn a_stopped_machine_does_nothing_until_it_starts_again() {
    let disk = SimulatedDisk::new();
    let file = append(&disk, "file", b"bytes").expect("nothing fails");
    disk.stop_at_call(1);
    file.sync().expect("the machine still runs");
    assert!(disk.sync_folder(path("")).is_err() && file.sync().is_err() && disk.is_stopped());
    disk.power_loss(1);
    assert!(!disk.is_stopped() && file.write(b"more").is_err(), "the file was opened before");
    assert!(disk.list(path("")).is_ok());
}

#[test]
fn the_end_of_a_process_loses_nothing_but_what_it_had_open() {
    let disk = SimulatedDisk::new();
    let file = append(&disk, "file", b"bytes").expect("nothing fails");
    let lock = disk.lock(path("")).expect("nothing fails").expect("nobody has it");
    assert!(disk.lock(path("")).expect("nothing fails").is_none());
    disk.process_end();
    assert!(file.sync().is_err());
    assert_eq!(read(&disk).expect("it exists"), b"bytes");
    let next = disk.lock(path("")).expect("nothing fails").expect("the lock ended with the process");
    drop(lock);
    assert!(disk.lock(path("")).expect("nothing fails").is_none(), "the dead lock's end frees nothing");
    drop(next);
    assert!(disk.lock(path("")).expect("nothing fails").is_some());
}

#[test]
fn a_process_that_has_ended_changes_nothing_on_the_disk() {
    let disk = SimulatedDisk::new();
    let former = disk.attached();
    append(&former, "file", b"bytes").expect("nothing fails");
    disk.process_end();
    assert!(former.create(path("file")).is_err() && former.remove(path("file")).is_err());
    assert_eq!(read(&disk.attached()).expect("it exists"), b"bytes");
    assert!(disk.attached().remove(path("file")).is_ok());
}

#[test]
fn a_full_disk_takes_what_fits() {
    let disk = SimulatedDisk::new();
    let file = append(&disk, "file", b"123").expect("there is space");
    disk.set_capacity(Some(5));
    assert_eq!(file.write(b"456789").expect("two bytes fit"), 2);
    assert_eq!(file.write(b"6").expect_err("it is full").kind(), io::ErrorKind::StorageFull);
    disk.remove(path("file")).expect("a full disk can be emptied");
    append(&disk, "next", b"12345").expect("there is space");
    disk.set_capacity(None);
    disk.set_full(true);
    assert!(append(&disk, "next", b"6").is_err() && disk.create(path("third")).is_err());
    disk.set_full(false);
    append(&disk, "next", b"6").expect("there is space");
}

#[test]
fn a_held_sync_does_not_hold_up_writes() {
    let disk = SimulatedDisk::new();
    let file = append(&disk, "file", b"first").expect("nothing fails");
    disk.hold(|call| call.kind == CallKind::Sync);
    let syncing = Arc::clone(&file);
    let sync = thread::spawn(move || syncing.sync());
    disk.wait_until_held();
    assert_eq!(file.write(b"second").expect("it is not held"), 6);
    disk.release();
    sync.join().expect("it does not panic").expect("it succeeds");
}

#[test]
fn a_held_call_of_a_stopped_machine_fails() {
    let disk = SimulatedDisk::new();
    let file = append(&disk, "file", b"first").expect("nothing fails");
    disk.hold(|call| call.kind == CallKind::Sync);
    let sync = thread::spawn(move || file.sync());
    disk.wait_until_held();
    disk.power_loss(0);
    assert!(sync.join().expect("it does not panic").is_err());
}

#[test]
fn calls_take_as_long_as_is_wanted() {
    let disk = SimulatedDisk::new();
    disk.set_delay(Duration::from_millis(2));
    assert!(disk.list(path("")).is_ok());
}

#[test]
fn an_ignored_sync_does_nothing() {
    let prepare = |disk: &SimulatedDisk| {
        disk.record();
        disk.ignore_syncs(|call| call.kind == CallKind::SyncFolder);
        durable(disk, "file", b"bytes")
    };
    assert!(outcomes(PowerLossModel::default(), prepare, read).contains(&None));
    let kinds = |disk: &SimulatedDisk| disk.recorded().iter().map(|call| call.kind).collect::<Vec<_>>();
    let wanted = [CallKind::Append, CallKind::Create, CallKind::Write, CallKind::Sync, CallKind::SyncFolder];
    assert!(outcomes(PowerLossModel::default(), prepare, kinds).iter().all(|kinds| *kinds == wanted));
}

#[test]
fn a_bit_that_flips_stays_flipped() {
    let disk = SimulatedDisk::new();
    disk.write("folder/file", "a");
    disk.flip_bit("folder/file", 1);
    disk.flip_bit("folder/file", 100);
    assert_eq!(disk.read("./folder/file").expect("it exists"), b"c");
    disk.power_loss(3);
    assert_eq!((disk.paths(), disk.read("folder/file")), (vec![PathBuf::from("folder/file")], Some(b"c".to_vec())));
}

#[test]
fn the_same_seed_leaves_the_same() {
    let prepare = |disk: &SimulatedDisk| append(disk, "file", &[b'x'; 3000])?.sync();
    assert_eq!(outcomes(IN_ORDER, prepare, read), outcomes(IN_ORDER, prepare, read));
}
