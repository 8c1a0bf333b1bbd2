//! Damaged files of an append-only file: a log is refused or loaded up to the end of a unit, and a manifest is refused
//! or lists files that there are. Neither takes much memory.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dunlin::aof::files::{AofFiles, Place};
use dunlin::aof::scan::Tail;
use dunlin::engine::exec::aof_load::AofLoad;
use dunlin::engine::state::host::AofSource;
use dunlin::storage::simulated::SimulatedDisk;
use dunlin::{Disk, Server};

use crate::damaged_files::{BASE_BYTES, LIBRARY};
use crate::support::heap;
use crate::world::World;

/// What the reader of a manifest itself needs, and the simulated disk.
const MANIFEST_BASE_BYTES: usize = 16 << 10;
const LOG: &str = "appendonlydir/appendonly.aof.1.incr.aof";

/// A log, and the data after each of its units.
struct Written {
    log: Vec<u8>,
    /// Where each unit ends, with the digest of the data after it.
    units: Vec<(usize, String)>,
}

/// A log with commands, a transaction, a script's unit and annotations, also of checksums if it is to have them.
fn written(has_checksums: bool) -> Written {
    let disk = Disk::new();
    let builder = Server::builder().disk(&disk).frozen().set("appendonly", "yes").set("appendfsync", "always");
    let builder =
        builder.set("aof-timestamp-enabled", "yes").set("aof-checksum", if has_checksums { "yes" } else { "no" });
    let server = builder.allow_debug().start().expect("it starts");
    let mut client = server.client().expect("it connects");
    let script = "redis.call('SET', 'text', 1) return redis.call('INCR', 'text')";
    let (eval, library) = (["EVAL", script, "0"], ["FUNCTION", "LOAD", LIBRARY]);
    let split = |line: &'static str| line.split(' ').collect::<Vec<_>>();
    let mut units = Vec::new();
    for unit in [
        vec![split("SET text hello")],
        vec![split("MULTI"), split("RPUSH list a 1"), split("SELECT 3"), split("SET elsewhere y"), split("EXEC")],
        vec![eval.to_vec()],
        vec![split("HSET hash a 1 b two")],
        vec![split("HPEXPIREAT hash 4000000000000 FIELDS 1 a")],
        vec![split("XADD stream 1-1 field value")],
        vec![split("ZADD zset 1.5 a")],
        vec![library.to_vec()],
        vec![split("SADD set a 3")],
        vec![split("APPEND text xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")],
    ] {
        for words in unit {
            client.call(words).expect("it is answered");
        }
        server.advance(Duration::from_secs(1));
        let digest = client.call(["DEBUG", "DIGEST"]).expect("it is answered");
        let log = disk.read(LOG).expect("it is there");
        // The annotation behind a unit is not a part of it.
        let end = log.windows(5).rposition(|bytes| bytes == b"#CRC:").unwrap_or(log.len());
        units.push((end, format!("+{}\r\n", digest.text().expect("it is text"))));
    }
    Written { log: disk.read(LOG).expect("it is there"), units }
}

impl Written {
    /// The last unit that is whole within the first bytes: the end, and the digest of the data after it.
    fn up_to(&self, bytes: usize) -> Option<&(usize, String)> {
        self.units.iter().rfind(|(end, _)| *end <= bytes)
    }
}

fn world(has_checksums: bool) -> World {
    World::with(|settings| Arc::make_mut(&mut settings.files).has_log_checksums = has_checksums)
}

/// What was loaded of a log.
#[derive(Debug, PartialEq)]
struct Loaded {
    valid_bytes: u64,
    tail: Tail,
    digest: String,
}

/// Loads logs, one after the other, looks whether the databases are sound, and empties them.
fn load(world: &mut World, logs: &[&[u8]]) -> Result<Loaded, String> {
    let engine = &mut world.engine;
    let mut load = AofLoad::begin(engine);
    let loaded = logs.iter().try_for_each(|log| {
        let bytes = Box::new(Cursor::new(log.to_vec()));
        load.open(engine, AofSource { name: "log".to_owned(), is_base: true, bytes })?;
        while load.step(engine)? {}
        Ok(())
    });
    let (valid_bytes, tail) = load.tail();
    let counts = load.end(engine);
    engine.end_load(counts);
    engine.databases.iter().for_each(|database| database.check());
    let digest = world.ask("DEBUG DIGEST");
    world.ask("FLUSHALL");
    world.ask("FUNCTION FLUSH");
    world.engine.effects.take();
    loaded.map(|()| Loaded { valid_bytes, tail, digest })
}

/// As [`load`] does, within bounds of memory.
fn load_within_bounds(world: &mut World, log: &[u8]) -> Result<Loaded, String> {
    let (loaded, bytes) = heap::peak_of(|| load(world, &[log]));
    assert!(bytes <= BASE_BYTES + 4 * log.len(), "{bytes} bytes");
    loaded
}

#[test]
fn a_log_that_is_cut_anywhere_is_loaded_up_to_its_last_whole_unit() {
    for has_checksums in [false, true] {
        let (written, mut world) = (written(has_checksums), world(has_checksums));
        let empty = world.ask("DEBUG DIGEST");
        for cut in 0..=written.log.len() {
            let loaded = load_within_bounds(&mut world, &written.log[..cut]).expect("it is cut");
            let (end, digest) = written.up_to(cut).map_or((0, &empty), |(end, digest)| (*end, digest));
            assert_eq!(&loaded.digest, digest, "cut at {cut}");
            assert!((end as u64..=cut as u64).contains(&loaded.valid_bytes), "cut at {cut}: {loaded:?}");
        }
    }
}

#[test]
fn a_log_with_any_bit_flipped_is_refused_or_loaded_up_to_its_last_whole_unit() {
    let (mut log, mut world) = (written(false).log, world(false));
    for bit in 0..8 * log.len() {
        log[bit / 8] ^= 1 << (bit % 8);
        if let Ok(loaded) = load_within_bounds(&mut world, &log) {
            let valid = usize::try_from(loaded.valid_bytes).expect("it is within the log");
            assert_eq!(loaded.tail == Tail::Clean, valid == log.len(), "bit {bit}: {loaded:?}");
            if loaded.tail != Tail::Clean {
                let valid_alone = Ok(Loaded { tail: Tail::Clean, ..loaded });
                assert_eq!(load(&mut world, &[&log[..valid]]), valid_alone, "bit {bit}");
            }
        }
        log[bit / 8] ^= 1 << (bit % 8);
    }
}

/// A flip that makes the last word of a command seem longer than the log looks as if the log were cut there; one in an
/// annotation changes no data.
#[test]
fn with_checksums_a_flipped_bit_never_gives_other_data() {
    let (Written { mut log, units }, mut world) = (written(true), world(true));
    let whole = &units.last().expect("there are some").1;
    let mut loaded_bits = 0;
    for bit in 0..8 * log.len() {
        log[bit / 8] ^= 1 << (bit % 8);
        if let Ok(loaded) = load_within_bounds(&mut world, &log) {
            let is_cut = loaded.tail != Tail::Clean && units.iter().any(|(_, digest)| *digest == loaded.digest);
            assert!(is_cut || loaded.digest == *whole, "bit {bit}: {loaded:?}");
            loaded_bits += 1;
        }
        log[bit / 8] ^= 1 << (bit % 8);
    }
    assert!(loaded_bits < log.len(), "{loaded_bits} of {} bits were not noticed", 8 * log.len());
}

/// The manifest of an append-only file after a rewrite.
const MANIFEST: &str = "file appendonly.aof.2.base.rdb seq 2 type b\n\
                        file appendonly.aof.1.incr.aof seq 1 type h startoffset 0 endoffset 6\n\
                        file appendonly.aof.2.incr.aof seq 2 type i startoffset 6\n\
                        file appendonly.aof.3.incr.aof seq 3 type i startoffset 9\n";

/// The names of the files that would be loaded with a manifest; `None` if it is refused.
fn files_with(manifest: &[u8]) -> Option<Vec<String>> {
    let (disk, folder) = (SimulatedDisk::new(), PathBuf::from("data/appendonlydir"));
    for name in MANIFEST.lines().filter_map(|line| line.split(' ').nth(1)) {
        disk.write(folder.join(name), "");
    }
    disk.write(folder.join("appendonly.aof.manifest"), manifest);
    let place = Place { folder, name: "appendonly.aof".to_owned() };
    let (files, bytes) = heap::peak_of(|| AofFiles::open(Arc::new(disk.clone()), place));
    assert!(bytes <= MANIFEST_BASE_BYTES, "{bytes} bytes");
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    files.ok().map(|files| files.to_load().iter().map(|file| name(&file.path)).collect())
}

/// Servers replace a manifest as a whole, so none is ever cut by a crash.
#[test]
fn a_manifest_that_is_cut_within_a_line_is_refused() {
    let line_ends = MANIFEST.match_indices('\n').map(|(at, _)| at + 1);
    let whole = (0..=MANIFEST.len()).filter(|&cut| files_with(&MANIFEST.as_bytes()[..cut]).is_some());
    assert_eq!(whole.collect::<Vec<_>>(), line_ends.collect::<Vec<_>>());
}

/// The format has no checksum: a line that becomes a comment is not seen, nor is another type, or a line end that
/// becomes a blank.
#[test]
fn a_manifest_with_any_byte_changed_is_refused_or_lists_no_file_that_is_not_there() {
    let mut manifest = MANIFEST.as_bytes().to_vec();
    let whole = files_with(&manifest).expect("it is whole");
    let known: Vec<_> = MANIFEST.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    let mut unnoticed = Vec::new();
    for (at, change) in (0..manifest.len()).flat_map(|at| (1..=u8::MAX).map(move |change| (at, change))) {
        manifest[at] ^= change;
        if let Some(files) = files_with(&manifest).filter(|files| *files != whole) {
            assert!(files.iter().all(|file| known.contains(&file.as_str())), "{files:?}");
            unnoticed.push(manifest.escape_ascii().to_string());
        }
        manifest[at] ^= change;
    }
    assert!(unnoticed.len() < 20, "{unnoticed:#?}");
}
