//! Files whose bytes are right and which a server refuses: `dunlin check` says so, where redis-check-rdb does not.

use std::fs;
use std::path::{Path, PathBuf};

use dunlin::Server;

use crate::files::Folder;
use crate::program::dunlin;

const LIBRARY: &str = "#!lua name=l\nredis.register_function('f', function() return 7 end)";

/// A part of an RDB file.
enum Part<'a> {
    Library(&'a str),
    Database(u8),
    Text(&'a str),
    Expired(&'a str),
    EmptySet(&'a str),
}

use Part::{Database, EmptySet, Expired, Library, Text};

/// Writes an RDB file without a checksum.
fn write(folder: &Folder, parts: &[Part<'_>]) -> PathBuf {
    let mut file = b"REDIS0012".to_vec();
    let text = |file: &mut Vec<u8>, text: &str| {
        let length = u16::try_from(text.len()).expect("it is short") | 0x4000;
        file.extend(length.to_be_bytes());
        file.extend(text.as_bytes());
    };
    for part in parts {
        match part {
            Library(source) => {
                file.push(0xf5);
                text(&mut file, source);
            }
            Database(number) => file.extend([0xfe, *number]),
            Text(key) | Expired(key) => {
                if matches!(part, Expired(_)) {
                    file.push(0xfc);
                    file.extend(1i64.to_le_bytes());
                }
                file.push(0);
                text(&mut file, key);
                text(&mut file, "value");
            }
            EmptySet(key) => {
                file.push(2);
                text(&mut file, key);
                file.push(0);
            }
        }
    }
    file.push(0xff);
    file.extend([0; 8]);
    let path = folder.0.join("crafted.rdb");
    fs::write(&path, file).expect("it can be written");
    path
}

/// What the check says that a server refuses, and its exit code.
fn check(path: &Path) -> (Vec<String>, i32) {
    let output = dunlin(&["check", path.to_str().expect("it is text")]).output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("it is text");
    assert!(text.contains("\\o/ RDB looks OK! \\o/"), "{text}");
    let refused = text.lines().filter_map(|line| line.split_once("] A server refuses this file: "));
    let refused = refused.map(|(offset, reason)| format!("{}: {reason}", offset.trim_start_matches("[offset ")));
    (refused.collect(), output.status.code().expect("it ends by itself"))
}

/// Expects that check and server refuse a file for a reason.
fn expect_refused(parts: &[Part<'_>], offset: u64, reason: &str) {
    let folder = Folder::new(&format!("checked-{offset}-{}", reason.len()));
    let path = write(&folder, parts);
    assert_eq!(check(&path), (vec![format!("{offset}: {reason}")], 1));
    let refused = Server::builder().load(&path).start().expect_err("a server refuses it").to_string();
    assert!(refused.contains(reason), "{refused}");
}

#[test]
fn a_key_that_occurs_twice_in_a_database_is_found() {
    let reason = "RDB has duplicated key 'a' in DB 0";
    expect_refused(&[Database(0), Text("a"), Text("b"), Text("a")], 33, reason);
    expect_refused(&[Database(0), Text("a"), Database(1), Text("a"), Database(0), Text("a")], 37, reason);
}

#[test]
fn a_library_that_cannot_be_loaded_is_found() {
    for (source, reason) in [
        ("#!lua name=l\nthis is no lua", "Error compiling function: user_function:2: '=' expected near 'is'"),
        ("#!lua name=l\nlocal x = 1", "No functions registered"),
        ("return 1", "Missing library metadata"),
        ("#!js name=l\nx", "Engine 'js' not found"),
    ] {
        expect_refused(&[Library(source)], 9, &format!("Failed loading library, {reason}"));
    }
    let other = LIBRARY.replace("name=l", "name=m");
    let second = 9 + 3 + LIBRARY.len() as u64;
    for (source, reason) in [(LIBRARY, "Library 'l' already exists"), (&other, "Function f already exists")] {
        expect_refused(&[Library(LIBRARY), Library(source)], second, &format!("Failed loading library, {reason}"));
    }
}

#[test]
fn a_library_that_does_not_come_to_an_end_is_found() {
    let folder = Folder::new("checked-endless");
    let path = write(&folder, &[Library("#!lua name=l\nwhile true do end")]);
    let (refused, code) = check(&path);
    assert!(refused.len() == 1 && refused[0].starts_with("9: Failed loading library, "), "{refused:?}");
    assert_eq!(code, 1);
}

#[test]
fn what_a_server_loads_is_not_refused() {
    let folder = Folder::new("checked-right");
    for parts in [
        &[Library(LIBRARY), Database(0), Text("a"), Database(1), Text("a")][..],
        &[Database(0), Expired("a"), Text("a"), Expired("a")],
        &[Database(0), EmptySet("a"), Text("a"), EmptySet("a")],
    ] {
        let path = write(&folder, parts);
        assert_eq!(check(&path), (Vec::new(), 0));
        Server::builder().load(&path).start().expect("a server loads it");
    }
}

#[test]
#[cfg(unix)]
fn as_redis_check_rdb_the_program_ends_as_that_does() {
    let folder = Folder::new("checked-name");
    let path = write(&folder, &[Database(0), Text("a"), Text("a")]);
    let tool = folder.0.join("redis-check-rdb");
    std::os::unix::fs::symlink(dunlin(&[]).get_program(), &tool).expect("it can be linked");
    let output = std::process::Command::new(tool).arg(path).output().expect("it runs");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("it is text");
    assert!(text.ends_with("A server refuses this file: RDB has duplicated key 'a' in DB 0\n"), "{text}");
}

/// Of a million keys, of which one occurs twice.
#[test]
#[cfg(target_os = "linux")]
fn a_check_needs_less_memory_than_four_times_the_file() {
    let folder = Folder::new("checked-memory");
    let mut names: Vec<String> = (0..1_000_000).map(|number| format!("{number:x}")).collect();
    names.push("ffff".to_owned());
    let parts: Vec<Part<'_>> = std::iter::once(Database(0)).chain(names.iter().map(|name| Text(name))).collect();
    let path = write(&folder, &parts);
    let bytes = fs::metadata(&path).expect("it is there").len();
    let limit_kb = 4 * bytes / 1024;
    let script = format!("ulimit -v {limit_kb}; exec \"$@\"");
    let program = dunlin(&[]);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script, "sh"]).arg(program.get_program()).arg("check").arg(&path);
    let output = shell.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("RDB has duplicated key 'ffff' in DB 0"), "{text} {:?}", output.stderr);
}
