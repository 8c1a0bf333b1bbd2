//! Append-only files that were cut at any byte: a server that starts with one has whole units, and what is written
//! behind it stays.

use std::path::PathBuf;

use dunlin::{Disk, Server};

fn start(disk: &Disk) -> Server {
    let builder = Server::builder().disk(disk).set("appendonly", "yes").set("appendfsync", "always");
    builder.start().expect("a torn end is cut off")
}

fn run(server: &Server, words: &[&str]) {
    server.client().expect("there is room").call(words).expect("it succeeds");
}

/// Commands and a script, each of which is a unit in the file.
const UNITS: [&[&str]; 5] = [
    &["SET", "key", "first"],
    &["EVAL", "redis.call('INCR', 'n') redis.call('RPUSH', 'list', 'a', 'b')", "0"],
    &["HSET", "hash", "field", "value"],
    &["EVAL", "redis.call('INCR', 'n') redis.call('DEL', 'key')", "0"],
    &["SET", "volatile", "x", "PXAT", "99999999999999"],
];

#[test]
fn a_log_that_was_cut_anywhere_has_whole_units_and_keeps_what_is_written_behind_them() {
    let disk = Disk::new();
    let server = start(&disk);
    let mut dumps = vec![server.dump()];
    for unit in UNITS {
        run(&server, unit);
        dumps.push(server.dump());
    }
    drop(server);
    let files: Vec<(PathBuf, Vec<u8>)> =
        disk.paths().into_iter().map(|path| (path.clone(), disk.read(&path).expect("it is there"))).collect();
    let is_log = |path: &PathBuf| path.to_string_lossy().ends_with(".incr.aof");
    let length = files.iter().find(|(path, _)| is_log(path)).expect("there is a log").1.len();
    let mut whole = 0;
    for cut in 0..=length {
        let disk = Disk::new();
        for (path, bytes) in &files {
            disk.write(path, if is_log(path) { &bytes[..cut] } else { bytes });
        }
        let found = start(&disk).dump();
        whole += usize::from(found != dumps[whole]);
        assert_eq!(found, dumps[whole], "cut at {cut}");
        for later in ["1", "2"] {
            run(&start(&disk), &["SET", "later", later]);
            let server = start(&disk);
            assert!(server.dump().contains(&format!("SET later {later}")), "cut at {cut}: {}", server.dump());
            run(&server, &["DEL", "later"]);
            assert_eq!(server.dump(), dumps[whole], "cut at {cut}");
        }
    }
    assert_eq!(whole, UNITS.len());
}
