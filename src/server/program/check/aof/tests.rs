//! The output and effects of redis-check-aof of Redis 8.0.6, and where ours differ.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

const SET_A: &str = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
const MULTI: &str = "*1\r\n$5\r\nMULTI\r\n";
const EXEC: &str = "*1\r\n$4\r\nEXEC\r\n";
const MANIFEST: &str = "file base seq 1 type b\nfile a seq 1 type i\nfile b seq 2 type i\n";

/// A folder that is removed at the end of a test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static FOLDERS: AtomicU32 = AtomicU32::new(0);
        let name = format!("dunlin-check-{}-{}", std::process::id(), FOLDERS.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("the folder can be created");
        Folder(path)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).expect("it can be written");
    }

    fn read(&self, name: &str) -> String {
        String::from_utf8(fs::read(self.0.join(name)).expect("it is there")).expect("it is text")
    }

    /// Checks a file; returns whether it is valid, and the output with the folder as `.`.
    fn check(&self, name: &str, task: Task, answer: &str) -> (bool, String) {
        let mut out = Vec::new();
        let mut check = Check { task, out: &mut out, answers: &mut answer.as_bytes(), lines: 1 };
        let is_valid = check.run(&self.0.join(name)).expect("the files can be read");
        let out = String::from_utf8(out).expect("it is text");
        (is_valid, out.replace(&self.0.display().to_string(), "."))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that stays does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

const PLAIN: Task = Task { fixes: false, timestamp: 0 };
const FIX: Task = Task { fixes: true, timestamp: 0 };

fn until(timestamp: i64) -> Task {
    Task { fixes: false, timestamp }
}

/// Checks a single file; returns the output without its first line, and what is left of the file.
fn checked(text: &str, task: Task, answer: &str) -> (bool, String, String) {
    let folder = Folder::new();
    folder.write("x.aof", text);
    let (is_valid, out) = folder.check("x.aof", task, answer);
    let out = out.strip_prefix("Start checking Old-Style AOF\n").expect("it begins so").replace("./x.aof", "x.aof");
    (is_valid, out, folder.read("x.aof"))
}

#[test]
fn a_valid_file_is_said_to_be_valid() {
    let table = [
        (String::new(), "AOF x.aof is empty\n"),
        (
            SET_A.repeat(2),
            "AOF analyzed: filename=x.aof, size=54, ok_up_to=54, ok_up_to_line=15, diff=0\nAOF x.aof is valid\n",
        ),
        (
            format!("#TS:1\r\n{SET_A}#x\r\n{MULTI}{SET_A}#y\n{EXEC}"),
            "AOF analyzed: filename=x.aof, size=97, ok_up_to=97, ok_up_to_line=21, diff=0\nAOF x.aof is valid\n",
        ),
    ];
    for (text, out) in table {
        for task in [PLAIN, FIX] {
            assert_eq!(checked(&text, task, ""), (true, out.to_owned(), text.clone()));
        }
    }
}

/// The line about what is wrong, the valid bytes and the line in the file, for what comes behind `SET a 1`.
#[test]
fn what_is_wrong_is_said_in_the_words_of_redis() {
    let cut = |text: &str, bytes: usize| text[..text.len() - bytes].to_owned();
    let table = [
        (cut(SET_A, 3), "0x              33: Expected to read 3 bytes, got 0 bytes\n", 14),
        ("*3\r\n$3\r\nSE".to_owned(), "0x              23: Expected to read 5 bytes, got 2 bytes\n", 10),
        (
            "*1\r\n$99999999999\r\nx".to_owned(),
            "0x              2d: Expected to read 100000000001 bytes, got 1 bytes\n",
            10,
        ),
        ("*3\r\n".to_owned(), "", 9),
        ("*3\r\n$3\r".to_owned(), "0x              1f: Expected \\r\\n, got: 0d00\n", 9),
        (cut(SET_A, 2) + "??" + SET_A, "0x              33: Expected \\r\\n, got: 3f3f\n", 14),
        ("*1\n$4\nPING\r\n".to_owned(), "0x              1b: Expected \\r\\n, got: 0a00\n", 8),
        ("*3x\r\n".to_owned() + &SET_A[4..], "0x              1b: Expected \\r\\n, got: 780d\n", 8),
        ("*1\r\n$x\r\n\r\n".to_owned(), "0x              1f: Expected \\r\\n, got: 780d\n", 9),
        ("*1\r\nxx\r\n".to_owned(), "0x              1f: Expected prefix '$', got: 'x'\n", 9),
        (
            "*1\r\n$-1\r\n\r\n".to_owned(),
            "0x              1f: Expected to read string of -1 bytes, which is not in the suitable range\n",
            10,
        ),
        ("hello".to_owned(), "AOF x.aof format error\n", 8),
        ("\r\n".to_owned() + SET_A, "AOF x.aof format error\n", 8),
        ("\0".repeat(100), "AOF x.aof format error\n", 8),
        (MULTI.to_owned() + SET_A, "0x              42: Reached EOF before reading EXEC for MULTI\n", 18),
        (MULTI.to_owned() + SET_A + &cut(EXEC, 3), "0x              4d: Expected to read 6 bytes, got 3 bytes\n", 20),
        (EXEC.to_owned(), "0x              23: Unexpected EXEC in AOF x.aof\n", 11),
        (MULTI.repeat(2) + SET_A + EXEC, "0x              32: Unexpected MULTI in AOF x.aof\n", 14),
    ];
    for (rest, fault, line) in table {
        let text = SET_A.to_owned() + &rest;
        let (size, diff) = (text.len(), rest.len());
        let analyzed = format!(
            "{fault}AOF analyzed: filename=x.aof, size={size}, ok_up_to=27, ok_up_to_line={line}, diff={diff}\n"
        );
        let advice = "AOF x.aof is not valid. Use the --fix option to try fixing it.\n";
        assert_eq!(checked(&text, PLAIN, ""), (false, analyzed.clone() + advice, text.clone()));
        let question = format!(
            "{analyzed}This will shrink the AOF x.aof from {size} bytes, with {diff} bytes, to 27 bytes\n\
             Continue? [y/N]: "
        );
        let fixed = (true, question.clone() + "Successfully truncated AOF x.aof\n", SET_A.to_owned());
        assert_eq!(checked(&text, FIX, "Yes\n"), fixed);
        for answer in ["n\n", ""] {
            assert_eq!(checked(&text, FIX, answer), (false, question.clone() + "Aborting...\n", text.clone()));
        }
    }
}

/// Redis's tool says that these are valid, and then a server refuses them, or breaks them when it goes on.
#[test]
fn what_no_server_can_go_on_with_is_not_valid() {
    for (rest, fault) in [
        ("#TS:18", "0x              1b: Reached EOF before the end of an annotation\n"),
        ("*0\r\n", "AOF x.aof format error\n"),
        ("*-1\r\n", "AOF x.aof format error\n"),
    ] {
        let (is_valid, out, left) = checked(&(SET_A.to_owned() + rest), FIX, "y\n");
        assert!(is_valid && out.starts_with(fault), "{out}");
        assert_eq!(left, SET_A);
    }
}

#[test]
fn a_file_is_cut_back_to_a_time() {
    let text = format!("#TS:100\r\n{SET_A}#TS:200\r\n{SET_A}#TS:300\r\n{SET_A}");
    for (timestamp, left) in [(100, 36), (150, 36), (200, 72), (299, 72)] {
        let out = format!("Successfully truncated AOF x.aof to timestamp {timestamp}\n");
        assert_eq!(checked(&text, until(timestamp), ""), (true, out, text[..left].to_owned()));
    }
    for timestamp in [300, 400] {
        let out = format!("Truncate nothing in AOF x.aof to timestamp {timestamp}\nAOF x.aof is valid\n");
        assert_eq!(checked(&text, until(timestamp), ""), (true, out, text.clone()));
    }
    for timestamp in [99, -5] {
        let out = format!("AOF x.aof has nothing before timestamp {timestamp}, aborting...\n");
        assert_eq!(checked(&text, until(timestamp), ""), (false, out, text.clone()));
    }
    let wrong = format!("#TS:x\r\n{SET_A}");
    assert_eq!(checked(&wrong, until(5), ""), (false, "Invalid timestamp annotation\n".to_owned(), wrong.clone()));
    assert!(checked(&wrong, PLAIN, "").0);
    // Redis's tool cuts the transaction apart.
    let transaction = format!("#TS:100\r\n{SET_A}{MULTI}#TS:200\r\n{SET_A}{EXEC}");
    assert_eq!(checked(&transaction, until(150), "").2, transaction[..36]);
}

#[test]
fn all_files_of_a_manifest_are_checked() {
    let folder = Folder::new();
    folder.write("x.manifest", MANIFEST);
    folder.write("base", SET_A);
    folder.write("a", "");
    folder.write("b", SET_A);
    let valid = "Start checking Multi Part AOF\n\
        Start to check BASE AOF (RESP format).\n\
        AOF analyzed: filename=base, size=27, ok_up_to=27, ok_up_to_line=8, diff=0\n\
        BASE AOF base is valid\n\
        Start to check INCR files.\n\
        INCR AOF a is empty\n\
        AOF analyzed: filename=b, size=27, ok_up_to=27, ok_up_to_line=15, diff=0\n\
        INCR AOF b is valid\n\
        All AOF files and manifest are valid\n";
    assert_eq!(folder.check("x.manifest", PLAIN, ""), (true, valid.to_owned()));
    assert_eq!(folder.check("", PLAIN, ""), (true, valid.to_owned()), "the folder stands for the manifest in it");
    folder.write("x.manifest", &("# a comment\n".to_owned() + MANIFEST + "file c seq 3 type i\n"));
    let (is_valid, out) = folder.check("x.manifest", PLAIN, "");
    assert!(!is_valid && out.ends_with("Cannot open file ./c: No such file or directory, aborting...\n"), "{out}");
    folder.write("x.manifest", "file x seq 1 type q\n");
    let refused = "Start checking Multi Part AOF\n\n*** FATAL AOF MANIFEST FILE ERROR ***\n\
        Reading the manifest file, at line 1\n>>> 'file x seq 1 type q'\nUnknown AOF file type\n";
    assert_eq!(folder.check("x.manifest", PLAIN, ""), (false, refused.to_owned()));
}

#[test]
fn only_the_last_file_with_bytes_is_cut() {
    let folder = Folder::new();
    folder.write("x.manifest", MANIFEST);
    folder.write("base", SET_A);
    folder.write("a", &(SET_A.to_owned() + MULTI));
    folder.write("b", SET_A);
    let (is_valid, out) = folder.check("x.manifest", FIX, "y\n");
    assert!(!is_valid && out.ends_with("Failed to truncate AOF a because it is not the last file\n"), "{out}");
    folder.write("a", &format!("{SET_A}#TS:9\r\n{SET_A}"));
    let (is_valid, out) = folder.check("x.manifest", until(5), "");
    assert!(!is_valid && out.contains("to timestamp 5 to offset 27 because it is not the last file."), "{out}");
    folder.write("a", &(SET_A.to_owned() + MULTI));
    folder.write("b", "");
    assert!(folder.check("x.manifest", FIX, "y\n").0);
    assert_eq!(folder.read("a"), SET_A);
}

#[test]
fn the_rdb_file_that_a_base_begins_with_is_checked() {
    let folder = Folder::new();
    let mut saver = crate::rdb::file::Saver::begin(
        Vec::new(),
        crate::rdb::file::Options { compresses: true, has_checksum: true, version: crate::rdb::VERSION },
    );
    saver.aux("aof-base", "1");
    let whole = saver.finish().expect("a Vec takes all").0;
    let path = folder.0.join("x.aof");
    fs::write(&path, [&*whole, SET_A.as_bytes(), b"*1"].concat()).expect("it can be written");
    let (is_valid, out) = folder.check("x.aof", FIX, "y\n");
    assert!(is_valid && out.contains("RDB preamble is OK, proceeding with AOF tail...\n"), "{out}");
    assert_eq!(fs::read(&path).expect("it is there"), [&*whole, SET_A.as_bytes()].concat());
    fs::write(&path, &whole[..whole.len() - 1]).expect("it can be written");
    let (is_valid, out) = folder.check("x.aof", FIX, "y\n");
    assert!(!is_valid && out.ends_with("RDB preamble of AOF file is not sane, aborting.\n"), "{out}");
}

/// Valkey's files have another signature, which redis-check-aof takes for commands that are cut off.
#[test]
fn a_base_that_valkey_wrote_is_checked_and_never_cut() {
    let folder = Folder::new();
    let base = [&b"VALKEY080\xff"[..], &[0; 8]].concat();
    let path = folder.0.join("base");
    fs::write(&path, &base).expect("it can be written");
    folder.write("x.manifest", "file base seq 1 type b\nfile a seq 1 type i\n");
    folder.write("a", "");
    let (is_valid, out) = folder.check("x.manifest", FIX, "y\n");
    assert!(is_valid && out.contains("Start to check BASE AOF (RDB format).\n"), "{out}");
    fs::write(&path, &base[..10]).expect("it can be written");
    let (is_valid, out) = folder.check("x.manifest", FIX, "y\n");
    assert!(!is_valid && out.ends_with("RDB preamble of AOF file is not sane, aborting.\n"), "{out}");
    assert_eq!(fs::read(&path).expect("it is there"), &base[..10]);
}

#[test]
fn what_cannot_be_opened_is_reported() {
    let folder = Folder::new();
    let missing = "Cannot open file ./nope: No such file or directory\n".to_owned();
    assert_eq!(folder.check("nope", PLAIN, ""), (false, missing));
    assert_eq!(folder.check("", PLAIN, ""), (false, "Cannot read file: ./\n".to_owned()));
}

#[test]
fn an_aof_is_told_from_an_rdb_file_by_its_name_or_its_first_bytes() {
    let folder = Folder::new();
    for (name, text, is_aof) in [
        ("x.aof", "", true),
        ("x.manifest", "", true),
        ("log", SET_A, true),
        ("note", "#TS:1\r\n", true),
        ("list", MANIFEST, true),
        ("dump.rdb", "REDIS0012", false),
        ("empty", "", false),
    ] {
        folder.write(name, text);
        assert_eq!(super::super::is_aof(&folder.0.join(name)), is_aof, "{name}");
    }
    assert!(super::super::is_aof(&folder.0));
    assert!(!super::super::is_aof(&folder.0.join("nope")));
}
