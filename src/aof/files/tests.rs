//! The files on a simulated disk: what Redis would find, and that no call that fails, no crash and no power loss
//! takes away what was durable.

use super::*;
use crate::aof::scan::Scanner;
use crate::rdb::file::{Options, Saver};
use crate::storage::simulated::{CallKind, DataLoss, Fault as DiskFault, PowerLossModel, SimulatedDisk};

const FOLDER: &str = "/data/appendonlydir";
const MANIFEST: &str = "/data/appendonlydir/appendonly.aof.manifest";

fn disk() -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    disk.add_folder("/data");
    disk
}

fn place() -> Place {
    Place { folder: PathBuf::from(FOLDER), name: "appendonly.aof".to_owned() }
}

fn try_open(disk: &SimulatedDisk) -> Result<AofFiles, Fault> {
    AofFiles::open(Arc::new(disk.clone()), place())
}

fn open(disk: &SimulatedDisk) -> AofFiles {
    try_open(disk).expect("the files are whole")
}

fn in_folder(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

fn manifest(disk: &SimulatedDisk) -> String {
    String::from_utf8(disk.read(MANIFEST).expect("there is a manifest")).expect("it is text")
}

fn names(disk: &SimulatedDisk) -> Vec<String> {
    let paths = disk.paths();
    let name = |path: &PathBuf| path.strip_prefix("/data").expect("all is in /data").to_string_lossy().into_owned();
    paths.iter().map(name).collect()
}

/// A log of commands, each of one word.
fn log(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| format!("*1\r\n${}\r\n{word}\r\n", word.to_string().len()).into_bytes()).collect()
}

fn write_log<'a>(words: &'a [u32]) -> impl FnOnce(&mut dyn Write) -> io::Result<()> + 'a {
    move |out| out.write_all(&log(words))
}

fn rdb() -> Vec<u8> {
    let mut saver =
        Saver::begin(Vec::new(), Options { compresses: true, has_checksum: true, version: crate::rdb::VERSION });
    saver.aux("redis-ver", "8.0.6");
    saver.finish().expect("a Vec takes all").0
}

fn begun(disk: &SimulatedDisk) -> (AofFiles, Arc<dyn StorageFile>) {
    let mut files = open(disk);
    files.create_base(|out| out.write_all(&rdb())).expect("the disk works");
    let file = files.continue_last().expect("the disk works");
    (files, file)
}

/// Publishes a base, as a rewrite does.
fn rewrite(disk: &SimulatedDisk, files: &mut AofFiles, words: &[u32], keeps_history: bool) -> io::Result<()> {
    let temporary = files.temporary_base(1);
    replace::create(disk, &temporary, write_log(words))?;
    files.publish_base(&VerifiedBase::read(disk, temporary, false)?, keeps_history)
}

#[test]
fn an_empty_folder_gets_a_base_and_an_incremental_file() {
    let disk = disk();
    let mut files = open(&disk);
    assert!(files.is_empty());
    assert_eq!(files.create_base(|out| out.write_all(&rdb())).expect("the disk works"), "appendonly.aof.1.base.rdb");
    files.continue_last().expect("the disk works");
    assert!(!files.is_empty());
    assert_eq!(files.take_lines(), ["Creating AOF incr file appendonly.aof.1.incr.aof on server start"]);
    assert_eq!(
        manifest(&disk),
        "file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i startoffset 0\n"
    );
    let left = ["1.base.rdb", "1.incr.aof", "manifest"].map(|end| format!("appendonlydir/appendonly.aof.{end}"));
    assert_eq!(names(&disk), left);
    assert_eq!((files.base_bytes(), files.incr_bytes()), (rdb().len() as u64, 0));
}

#[test]
fn a_rewrite_replaces_the_base_and_the_files_before_its_cut() {
    let disk = disk();
    let (mut files, _) = begun(&disk);
    files.next_incr(1).expect("the disk works");
    files.next_incr(2).expect("the disk works");
    assert_eq!(files.to_load().len(), 4);
    rewrite(&disk, &mut files, &[1], true).expect("the disk works");
    let kept = "file appendonly.aof.3.incr.aof seq 3 type i startoffset 2\n";
    assert_eq!(
        manifest(&disk),
        format!(
            "file appendonly.aof.2.base.aof seq 2 type b\n\
             file appendonly.aof.2.incr.aof seq 2 type h startoffset 1\n\
             file appendonly.aof.1.incr.aof seq 1 type h startoffset 0\n\
             file appendonly.aof.1.base.rdb seq 1 type h\n{kept}"
        )
    );
    files.remove_history().expect("the disk works");
    assert_eq!(manifest(&disk), format!("file appendonly.aof.2.base.aof seq 2 type b\n{kept}"));
    assert_eq!(
        files.take_lines().last().expect("there are lines"),
        "Removing the history file appendonly.aof.1.base.rdb in the background"
    );
    let left = ["2.base.aof", "3.incr.aof", "manifest"].map(|end| format!("appendonlydir/appendonly.aof.{end}"));
    assert_eq!(names(&disk), left);
}

#[test]
fn a_rewrite_of_an_aof_that_is_off_replaces_all_files() {
    let disk = disk();
    drop(begun(&disk));
    let mut files = open(&disk);
    rewrite(&disk, &mut files, &[], false).expect("the disk works");
    assert_eq!(manifest(&disk), "file appendonly.aof.2.base.aof seq 2 type b\n");
}

#[test]
fn an_aof_that_begins_anew_is_listed_with_its_base() {
    let disk = disk();
    let (mut files, _) = begun(&disk);
    files.end(7).expect("the disk works");
    assert!(manifest(&disk).ends_with("startoffset 0 endoffset 7\n"));
    let before = manifest(&disk);
    let file = files.first_incr(9).expect("the disk works");
    file.write(&log(&[2])).expect("the disk works");
    assert_eq!(manifest(&disk), before);
    rewrite(&disk, &mut files, &[1], false).expect("the disk works");
    file.write(&log(&[3])).expect("the disk works");
    assert_eq!(
        manifest(&disk),
        "file appendonly.aof.2.base.aof seq 2 type b\nfile appendonly.aof.2.incr.aof seq 2 type i startoffset 9\n"
    );
    assert_eq!(disk.read(in_folder("appendonly.aof.2.incr.aof")), Some(log(&[2, 3])));
}

#[test]
fn a_file_that_goes_on_has_no_end() {
    let disk = disk();
    let (mut files, _) = begun(&disk);
    files.end(7).expect("the disk works");
    drop(files);
    let mut files = open(&disk);
    assert_eq!(files.manifest().incrs[0].end_offset, Some(7));
    files.continue_last().expect("the disk works");
    assert!(manifest(&disk).ends_with("seq 1 type i startoffset 0\n"));
    assert_eq!(files.take_lines(), ["Opening AOF incr file appendonly.aof.1.incr.aof on server start"]);
}

#[test]
fn a_single_file_of_an_older_redis_becomes_the_base() {
    let disk = disk();
    disk.write("/data/appendonly.aof", log(&[1]));
    let mut files = open(&disk);
    let line = "Successfully migrated an old-style AOF file (appendonly.aof) into the AOF directory (appendonlydir).";
    assert_eq!(files.take_lines(), [line]);
    assert_eq!(manifest(&disk), "file appendonly.aof seq 1 type b\n");
    assert_eq!(names(&disk), ["appendonlydir/appendonly.aof", "appendonlydir/appendonly.aof.manifest"]);
    let base =
        LogFile { path: in_folder("appendonly.aof"), is_base: true, is_last: true, bytes: log(&[1]).len() as u64 };
    assert_eq!(files.to_load(), [base]);
}

#[test]
fn a_single_file_beside_a_manifest_is_left_alone() {
    let disk = disk();
    drop(begun(&disk));
    disk.write("/data/appendonly.aof", log(&[1]));
    let mut files = open(&disk);
    assert_eq!(files.take_lines(), Vec::<String>::new());
    assert!(disk.read("/data/appendonly.aof").is_some());
}

#[test]
fn a_file_that_is_not_listed_is_neither_loaded_nor_removed_nor_overwritten() {
    let disk = disk();
    for name in ["appendonly.aof.1.incr.aof", "appendonly.aof.1.base.rdb", "note.txt"] {
        disk.write(in_folder(name), "precious");
    }
    let temporary = ["base", "12.base", "incr", "manifest"].map(|what| format!("temp-appendonly.aof.{what}"));
    for name in &temporary {
        disk.write(in_folder(name), "left over");
    }
    disk.write(in_folder("appendonly.aof.2.incr.aof"), "");
    let (mut files, _) = begun(&disk);
    let unlisted = |name| format!("The file {name} is not listed in the AOF manifest: it is not loaded");
    let mut lines = files.take_lines();
    lines.sort();
    assert_eq!(
        lines,
        [
            "Creating AOF incr file appendonly.aof.2.incr.aof on server start".to_owned(),
            unlisted("appendonly.aof.1.base.rdb"),
            unlisted("appendonly.aof.1.incr.aof"),
            unlisted("appendonly.aof.2.incr.aof"),
        ]
    );
    assert_eq!(
        manifest(&disk),
        "file appendonly.aof.2.base.rdb seq 2 type b\nfile appendonly.aof.2.incr.aof seq 2 type i startoffset 0\n"
    );
    for name in ["appendonly.aof.1.incr.aof", "appendonly.aof.1.base.rdb", "note.txt"] {
        assert_eq!(disk.read(in_folder(name)), Some(b"precious".to_vec()));
    }
    assert!(!names(&disk).iter().any(|name| name.contains("temp-")));
}

#[test]
fn what_cannot_be_opened_is_refused_in_the_words_of_redis() {
    let text = |disk: &SimulatedDisk| try_open(disk).expect_err("it is refused").to_string();
    let disk = disk();
    let (files, _) = begun(&disk);
    assert_eq!(text(&disk), "The append-only file appendonly.aof.1.incr.aof is in use by another server");
    drop(files);
    disk.write(MANIFEST, "file nope.rdb seq 1 type b\n");
    assert!(text(&disk).starts_with("Unable to obtain the AOF file nope.rdb length. stat: "));
    disk.write(MANIFEST, "");
    assert_eq!(text(&disk), "\n*** FATAL AOF MANIFEST FILE ERROR ***\nFound an empty AOF manifest");
}

/// A server that was killed had not synced it, and the next one shows it to clients.
#[test]
fn what_a_start_has_loaded_is_durable() {
    for seed in 0..20 {
        let disk = disk();
        let (_, file) = begun(&disk);
        file.write(&log(&[1])).expect("the disk works");
        disk.process_end();
        open(&disk).continue_last().expect("the disk works");
        disk.power_loss(seed);
        assert_eq!(disk.read(in_folder("appendonly.aof.1.incr.aof")), Some(log(&[1])), "seed {seed}");
    }
}

/// As in Redis, whose tests do so.
#[test]
fn two_servers_with_other_names_share_a_folder() {
    let disk = disk();
    let (_first, _) = begun(&disk);
    let other = Place { name: "other.aof".to_owned(), ..place() };
    let mut files = AofFiles::open(Arc::new(disk.clone()), other).expect("it has files of its own");
    files.create_base(write_log(&[])).expect("the disk works");
    files.continue_last().expect("the disk works");
    assert_eq!(files.take_lines(), ["Creating AOF incr file other.aof.1.incr.aof on server start"]);
}

#[test]
fn the_last_incremental_file_is_locked_whichever_it_is() {
    let disk = disk();
    let refused = || try_open(&disk).expect_err("another server has the files").to_string();
    let in_use = |number| format!("The append-only file appendonly.aof.{number}.incr.aof is in use by another server");
    let mut files = open(&disk);
    assert_eq!(refused(), "The append-only folder appendonlydir is in use by another server");
    files.create_base(write_log(&[])).expect("the disk works");
    assert_eq!(refused(), "The append-only folder appendonlydir is in use by another server");
    files.continue_last().expect("the disk works");
    assert_eq!(refused(), in_use(1));
    files.next_incr(1).expect("the disk works");
    assert_eq!(refused(), in_use(2));
    rewrite(&disk, &mut files, &[], false).expect("the disk works");
    assert_eq!(refused(), in_use(2));
    files.first_incr(2).expect("the disk works");
    assert_eq!(refused(), in_use(2));
    rewrite(&disk, &mut files, &[], false).expect("the disk works");
    assert_eq!(refused(), in_use(3));
    drop(files);
    open(&disk);
}

/// Redis writes a manifest that no start can read.
#[test]
fn a_name_that_no_manifest_can_have_is_refused() {
    let disk = disk();
    let place = Place { name: "\u{e9}".repeat(130), ..place() };
    let mut files = AofFiles::open(Arc::new(disk.clone()), place).expect("the folder is empty");
    let error = files.create_base(write_log(&[])).expect_err("the line is too long");
    assert_eq!(error.to_string(), "the names of the AOF are too long for its manifest");
    assert_eq!(names(&disk), Vec::<String>::new());
}

#[test]
fn only_a_file_with_nothing_behind_it_is_the_last() {
    let disk = disk();
    let (mut files, first) = begun(&disk);
    first.write(&log(&[1])).expect("the disk works");
    let second = files.next_incr(1).expect("the disk works");
    let last = |files: &AofFiles| files.to_load().iter().map(|file| file.is_last).collect::<Vec<_>>();
    assert_eq!(last(&files), [false, true, true]);
    second.write(&log(&[2])).expect("the disk works");
    assert_eq!(last(&files), [false, false, true]);
}

#[test]
fn a_torn_tail_is_cut_off_for_good() {
    let disk = disk();
    let (files, file) = begun(&disk);
    file.write(b"*1\r\n$1\r\n1\r\n*1\r\n").expect("the disk works");
    file.sync().expect("the disk works");
    let path = in_folder("appendonly.aof.1.incr.aof");
    files.cut(&path, 11).expect("the disk works");
    disk.power_loss(1);
    assert_eq!(disk.read(&path), Some(log(&[1])));
}

#[test]
fn a_base_that_is_not_as_it_was_written_is_removed() {
    let whole = rdb();
    let mut damaged: Vec<(Vec<u8>, bool)> = (0..whole.len()).map(|cut| (whole[..cut].to_vec(), true)).collect();
    for at in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[at / 8] ^= 1 << (at % 8);
        damaged.push((flipped, true));
    }
    damaged.extend((1..log(&[1]).len()).map(|cut| (log(&[1])[..cut].to_vec(), false)));
    damaged.push((b"*1\r\n$5\r\nMULTI\r\n".to_vec(), false));
    for (bytes, is_rdb) in damaged {
        let disk = disk();
        let (files, _) = begun(&disk);
        let before = names(&disk);
        let temporary = files.temporary_base(1);
        disk.write(&temporary, bytes.clone());
        let verified = VerifiedBase::read(&disk, temporary, is_rdb);
        assert!(verified.is_err(), "{}", bytes.escape_ascii());
        assert_eq!(names(&disk), before);
    }
}

#[test]
fn a_large_base_is_read_in_parts() {
    let mut saver =
        Saver::begin(Vec::new(), Options { compresses: false, has_checksum: true, version: crate::rdb::VERSION });
    saver.function(&vec![b'x'; 1_000_000]).expect("a Vec takes all");
    let whole = saver.finish().expect("a Vec takes all").0;
    let disk = disk();
    disk.write("/data/whole", whole.clone());
    disk.write("/data/torn", &whole[..whole.len() - 1]);
    assert!(VerifiedBase::read(&disk, PathBuf::from("/data/whole"), true).is_ok());
    assert!(VerifiedBase::read(&disk, PathBuf::from("/data/torn"), true).is_err());
}

/// A server on the disk that ends at the first error of what it cannot do without.
struct Run {
    disk: SimulatedDisk,
    /// The numbers that were written, in order.
    written: Vec<u32>,
    /// How many of them are durable.
    synced: usize,
}

impl Run {
    /// Loads all files, as a start does. Ours must be loadable after anything.
    fn load(&mut self, files: &AofFiles) -> io::Result<Vec<u32>> {
        let mut words = Vec::new();
        for file in files.to_load() {
            let mut scanner = Scanner::new(self.disk.open(&file.path)?);
            while let Some(command) = scanner.next_command().map_err(io::Error::other)? {
                let word = std::str::from_utf8(command.name()).expect("it is a number");
                words.push(word.parse().expect("it is a number"));
            }
            if scanner.valid_bytes() < file.bytes {
                assert!(file.is_last, "a file before others is torn");
                files.cut(&file.path, scanner.valid_bytes())?;
            }
        }
        assert!(words.len() >= self.synced, "{words:?} of {:?}, {} synced", self.written, self.synced);
        assert_eq!(words, self.written[..words.len()], "what is loaded is what was written first");
        Ok(words)
    }

    fn append(&mut self, file: &Arc<dyn StorageFile>) -> io::Result<()> {
        let word = self.written.len() as u32 + 10;
        self.written.push(word);
        let bytes = log(&[word]);
        let count = file.write(&bytes)?;
        if count < bytes.len() { Err(io::ErrorKind::WriteZero.into()) } else { Ok(()) }
    }

    fn append_and_sync(&mut self, file: &Arc<dyn StorageFile>) -> io::Result<()> {
        self.append(file)?;
        file.sync()?;
        self.synced = self.written.len();
        Ok(())
    }

    /// A start, writes, two rewrites, of which each may fail, an AOF that begins anew, and an end.
    fn serve(&mut self) -> io::Result<()> {
        let mut files = try_open(&self.disk).map_err(|fault| io::Error::other(fault.to_string()))?;
        if files.is_empty() {
            assert_eq!(self.synced, 0, "there were data");
            self.written.clear();
            files.create_base(write_log(&[]))?;
        }
        self.written = self.load(&files)?;
        let mut file = files.continue_last()?;
        // What was loaded is shown to clients.
        self.synced = self.written.len();
        for begins_anew in [false, true] {
            self.append_and_sync(&file)?;
            self.append(&file)?;
            let offset = self.written.len() as u64;
            let next = if begins_anew { files.first_incr(offset) } else { files.next_incr(offset) };
            let Ok(next) = next else { continue };
            let data = self.written.clone();
            if !begins_anew {
                file.sync()?;
                self.synced = self.written.len();
                file = Arc::clone(&next);
                self.append_and_sync(&file)?;
            }
            if rewrite(&self.disk, &mut files, &data, false).is_ok() && begins_anew {
                file = next;
                self.synced = self.synced.max(data.len());
                self.append_and_sync(&file)?;
            }
        }
        self.append_and_sync(&file)?;
        files.end(9)
    }
}

fn run_twice_with(fault: impl Fn(&SimulatedDisk), seed: u64, loses_power: bool) {
    let disk = disk_of_run();
    let mut run = Run { disk: disk.clone(), written: Vec::new(), synced: 0 };
    for round in 0..3 {
        if round == 1 {
            fault(&disk);
        }
        let served = run.serve();
        if round != 1 {
            served.expect("the disk works, so the server starts and serves");
        }
        if loses_power {
            disk.power_loss(seed + round);
        } else {
            // A process that ends does not start the machine again, if that was stopped.
            if disk.is_stopped() {
                disk.power_loss(seed + round);
            }
            disk.process_end();
        }
    }
}

/// A disk that may lose names in any order. What a log without checksums has of a file is taken to be its first
/// bytes and zeros: other bytes in their place cannot be told from commands.
fn disk_of_run() -> SimulatedDisk {
    let disk = SimulatedDisk::with(PowerLossModel { data: DataLoss::InOrder, ..PowerLossModel::default() });
    disk.add_folder("/data");
    disk
}

/// The calls of a run without faults.
fn calls_of_a_run() -> u64 {
    let disk = disk_of_run();
    let mut run = Run { disk: disk.clone(), written: Vec::new(), synced: 0 };
    run.serve().expect("the disk works");
    disk.process_end();
    let before = disk.calls();
    run.serve().expect("the disk works");
    disk.calls() - before
}

#[test]
fn nothing_durable_is_lost_whichever_call_fails() {
    for passed in 0..calls_of_a_run() + 5 {
        for fault in [DiskFault::InputOutput, DiskFault::Full, DiskFault::Short] {
            for (seed, loses_power) in [(1, false), (2, true), (3, true)] {
                run_twice_with(|disk| disk.fail_call(passed, fault), seed * 1000 + passed, loses_power);
            }
        }
    }
}

#[test]
fn nothing_durable_is_lost_at_whichever_call_the_machine_stops() {
    for passed in 0..calls_of_a_run() + 1 {
        for seed in 0..40 {
            run_twice_with(|disk| disk.stop_at_call(passed), seed * 1000 + passed, true);
        }
    }
}

/// Each sync of the files is needed: without one of its kind, some power loss takes something away.
#[test]
fn a_sync_that_is_left_out_loses_something() {
    let is_survived = |kind: CallKind, end: &'static str| {
        std::panic::catch_unwind(|| {
            for passed in (0..calls_of_a_run()).step_by(3) {
                for seed in 0..20 {
                    let leave_out = |disk: &SimulatedDisk| {
                        disk.ignore_syncs(move |call| call.kind == kind && call.path.to_string_lossy().ends_with(end));
                        disk.stop_at_call(passed);
                    };
                    run_twice_with(leave_out, seed * 1000 + passed, true);
                }
            }
        })
        .is_ok()
    };
    for (kind, end) in [
        (CallKind::SyncFolder, "appendonlydir"),
        (CallKind::Sync, ".manifest"),
        (CallKind::Sync, ".base"),
        (CallKind::Sync, ".incr.aof"),
    ] {
        assert!(!is_survived(kind, end), "{kind:?} {end}");
    }
}

#[test]
fn a_first_manifest_that_is_not_durable_leaves_none() {
    let disk = disk();
    let mut files = open(&disk);
    disk.record();
    files.create_base(|out| out.write_all(&rdb())).expect("the disk works");
    let last_sync = disk.recorded().iter().rposition(|call| call.kind == CallKind::SyncFolder).expect("it was synced");

    let disk = self::disk();
    let mut files = open(&disk);
    disk.fail_call(last_sync as u64, DiskFault::InputOutput);
    files.create_base(|out| out.write_all(&rdb())).expect_err("the folder cannot be synced");
    assert_eq!(disk.read(MANIFEST), None);
    drop(files);
    assert!(open(&disk).is_empty());
}

#[test]
fn an_aof_that_begins_anew_again_does_not_share_its_file_with_the_log_before() {
    let disk = disk();
    let (mut files, _) = begun(&disk);
    let former = files.first_incr(0).expect("the disk works");
    disk.fail_call(0, DiskFault::InputOutput);
    files.first_incr(0).expect_err("the former file cannot be removed");
    let next = files.first_incr(0).expect("the disk works");
    former.write(b"former").expect("the disk works");
    next.write(b"next").expect("the disk works");
    assert_eq!(disk.read(in_folder("temp-appendonly.aof.incr")).as_deref(), Some(&b"next"[..]));
}

#[test]
fn a_single_file_that_cannot_be_looked_at_is_not_taken_for_a_missing_one() {
    let old = "/data/appendonly.aof";
    let disk = self::disk();
    disk.write(old, log(&[1]));
    disk.record();
    drop(open(&disk));
    let is_look = |call: &crate::storage::simulated::Call| call.kind == CallKind::Length && call.path == Path::new(old);
    let looked = disk.recorded().iter().position(is_look).expect("it was looked at");

    let disk = self::disk();
    disk.write(old, log(&[1]));
    disk.fail_call(looked as u64, DiskFault::InputOutput);
    assert!(try_open(&disk).is_err());
    assert_eq!(names(&disk), ["appendonly.aof"]);
}

#[test]
fn a_manifest_that_is_too_long_is_refused_and_not_cut() {
    let disk = disk();
    begun(&disk);
    let line = "# a comment of some length that says nothing at all\n";
    disk.write(MANIFEST, line.repeat((16 << 20) / line.len() + 1) + &manifest(&disk));
    assert!(matches!(try_open(&disk), Err(Fault::Manifest(_))));
}
