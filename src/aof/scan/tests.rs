//! Logs that Redis 8.0.6 was started with, and what is ours: tails of zeros, annotations and transactions.

use proptest::prelude::*;

use super::*;

const SET_A: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
const SET_B: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$1\r\n2\r\n";
const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";

/// A source of which each read returns one byte.
struct Drops<'a>(&'a [u8]);

impl Read for Drops<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(1);
        self.0.read(&mut buffer[..most])
    }
}

#[derive(Debug, PartialEq)]
struct Scanned {
    commands: Vec<String>,
    valid_bytes: u64,
    tail: Tail,
}

fn scanned_from(source: impl Read) -> Scanned {
    let mut scanner = Scanner::new(source);
    let mut commands = Vec::new();
    while let Ok(Some(command)) = scanner.next_command() {
        let words: Vec<_> = command.words().map(|word| word.escape_ascii().to_string()).collect();
        commands.push(words.join(" "));
    }
    Scanned { commands, valid_bytes: scanner.valid_bytes(), tail: scanner.tail().expect("it is read to its end") }
}

fn scanned(log: &[u8]) -> Scanned {
    let scanned = scanned_from(log);
    assert_eq!(scanned_from(Drops(log)), scanned, "one byte at a time, {}", log.escape_ascii());
    scanned
}

fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// Checks a log that begins with `SET a 1`.
fn ends(rest: &[&[u8]], commands: &[&str], valid_bytes: usize, tail: Tail) {
    let log = joined(&[&[SET_A], rest].concat());
    let scanned = scanned(&log);
    assert_eq!(scanned.commands[0], "SET a 1");
    assert_eq!(scanned.commands[1..], *commands, "{}", log.escape_ascii());
    assert_eq!(
        (scanned.valid_bytes, scanned.tail),
        ((SET_A.len() + valid_bytes) as u64, tail),
        "{}",
        log.escape_ascii()
    );
}

/// Checks a log that begins with `SET a 1` and is valid as a whole.
fn is_whole(rest: &[&[u8]], commands: &[&str]) {
    ends(rest, commands, joined(rest).len(), Tail::Clean);
}

/// Checks that a log which begins with `SET a 1` is malformed at a position behind it.
fn is_malformed(rest: &[u8], at: usize) {
    ends(&[rest], &[], 0, Tail::Malformed((SET_A.len() + at) as u64));
}

#[test]
fn what_redis_loads_is_read() {
    is_whole(&[], &[]);
    is_whole(&[SET_B], &["SET b 2"]);
    is_whole(&[b"*3\n$3\nSET??$1\r\nb\n\n$1x\r\n2??", SET_B], &["SET b 2", "SET b 2"]);
    for count in ["+3", " 3", "3x", "3\0", &format!("{:0>130}", 3)] {
        let log = joined(&[b"*", count.as_bytes(), &SET_B[2..]]);
        is_whole(&[&log], &["SET b 2"]);
    }
    is_whole(&[b"*2\r\n$3\r\nGET\r\n$x\r\n\r\n"], &["GET "]);
    is_whole(&[EXEC, SET_B], &["EXEC", "SET b 2"]);
    is_whole(&[b"*1\r\n$4\r\n\0\xff\r\n\r\n"], &[r"\x00\xff\r\n"]);
}

#[test]
fn what_redis_refuses_is_malformed() {
    for line in ["*0", "*-1", "*", "*x", "*2147483648", "", " ", "SET b 2", "$3", "\r"] {
        is_malformed(format!("{line}\r\n{}", "x".repeat(50)).as_bytes(), 0);
    }
    is_malformed(b"\n", 0);
    is_malformed(b"*x", 0);
    is_malformed(b"\r", 0);
    is_malformed(b"hello world", 0);
    is_malformed(b"*3\r\n#x\r\n$3\r\nSET\r\n$1\r\nb\r\n$1\r\n2\r\n", 4);
    is_malformed(b"*1\r\n$-1\r\n", 4);
    is_malformed(b"*2\r\n$3\r\nGET\r\n\n$1\r\na\r\n", 13);
    is_malformed(&joined(&[b"*", "0".repeat(1022).as_bytes(), b"3\r\n"]), 0);
}

#[test]
fn annotations_are_passed_over_up_to_1023_bytes() {
    for line in ["#TS:5\r\n", "#\r\n", "#\n", "#a\0b\r\n", &format!("#{}\n", "x".repeat(1021))] {
        is_whole(&[line.as_bytes(), SET_B, line.as_bytes()], &["SET b 2"]);
        let transaction = [MULTI, line.as_bytes(), SET_B, line.as_bytes(), EXEC];
        is_whole(&transaction, &["MULTI", "SET b 2", "EXEC"]);
    }
    is_malformed(format!("#{}\n", "x".repeat(1022)).as_bytes(), 0);
}

#[test]
fn annotations_are_returned_to_who_asks_for_them() {
    let log = joined(&[b"#TS:5\r\n", SET_A, b"#x\n"]);
    let mut scanner = Scanner::new(&*log);
    let mut found = Vec::new();
    while let Some(item) = scanner.next_item().expect("the log is whole") {
        found.push(match item {
            Item::Command(command) => (command.offset, command.end, command.name().to_vec()),
            Item::Annotation { offset, line } => (offset, offset + line.len() as u64, line.to_vec()),
        });
    }
    let (start, end) = (7, 7 + SET_A.len() as u64);
    let expected = [(0, start, &b"#TS:5\r\n"[..]), (start, end, b"SET"), (end, end + 3, b"#x\n")];
    assert_eq!(found, expected.map(|(start, end, bytes)| (start, end, bytes.to_vec())));
}

#[test]
fn a_torn_command_is_a_truncated_tail_wherever_it_is_cut() {
    for cut in 1..SET_B.len() {
        ends(&[&SET_B[..cut]], &[], 0, Tail::Truncated);
    }
    for claim in ["*2147483647\r\n$3\r\nSET\r\n", "*1\r\n$999999999999\r\nx", "*1\r\n$9223372036854775807\r\n\r\n"] {
        ends(&[claim.as_bytes()], &[], 0, Tail::Truncated);
    }
}

/// Redis cuts off only the torn command: what is appended to the rest is queued by MULTI at the next start, and lost.
#[test]
fn a_transaction_that_is_torn_anywhere_is_cut_off_from_its_multi() {
    let transaction = joined(&[MULTI, SET_B, b"#TS:1\r\n", EXEC]);
    for cut in 1..transaction.len() {
        let log = joined(&[SET_A, &transaction[..cut]]);
        let scanned = scanned(&log);
        assert_eq!(scanned.valid_bytes, SET_A.len() as u64, "cut at {cut}");
        let is_between_commands =
            [MULTI.len(), MULTI.len() + SET_B.len(), transaction.len() - EXEC.len()].contains(&cut);
        let tail = if is_between_commands { Tail::OpenTransaction } else { Tail::Truncated };
        assert_eq!(scanned.tail, tail, "cut at {cut}");
    }
    is_whole(&[MULTI, MULTI, SET_B, EXEC, SET_B], &["MULTI", "MULTI", "SET b 2", "EXEC", "SET b 2"]);
    is_whole(&[b"*2\r\n$5\r\nmulti\r\n$1\r\nx\r\n", SET_B, b"*1\r\n$4\r\nexec\r\n"], &["multi x", "SET b 2", "exec"]);
    ends(
        &[MULTI, SET_B, b"*1\r\n$7\r\nDISCARD\r\n", SET_B],
        &["MULTI", "SET b 2", "DISCARD", "SET b 2"],
        0,
        Tail::OpenTransaction,
    );
}

/// Redis leaves it in the file, and the next command is appended to it.
#[test]
fn a_torn_annotation_is_cut_off() {
    for torn in ["#", "#TS:18", "#TS:18\r"] {
        ends(&[SET_B, torn.as_bytes()], &["SET b 2"], SET_B.len(), Tail::Truncated);
        ends(&[b"#TS:17\r\n", torn.as_bytes()], &[], 8, Tail::Truncated);
        ends(&[MULTI, SET_B, torn.as_bytes()], &["MULTI", "SET b 2"], 0, Tail::Truncated);
    }
}

/// Redis 8.0 refuses such a log. Zeros are what a file system shows for bytes that had not arrived.
#[test]
fn zeros_to_the_end_are_cut_off_with_the_command_that_they_begin_in() {
    for zeros in [1, 2, 511, 4096, 200_000] {
        let zeros = vec![0; zeros];
        ends(&[&zeros], &[], 0, Tail::Zeros);
        ends(&[MULTI, SET_B, &zeros], &["MULTI", "SET b 2"], 0, Tail::Zeros);
        for cut in 1..SET_B.len() {
            let log = joined(&[SET_A, &SET_B[..cut], &zeros]);
            let scanned = scanned(&log);
            assert_eq!((scanned.commands.len(), scanned.valid_bytes), (1, SET_A.len() as u64), "cut at {cut}");
            assert!(matches!(scanned.tail, Tail::Zeros | Tail::Truncated), "cut at {cut}");
        }
    }
}

#[test]
fn zeros_before_anything_else_are_malformed() {
    is_malformed(&joined(&[&[0; 600], SET_B]), 0);
    is_malformed(b"hello\0\0\0", 0);
    is_malformed(b"*3\r\n$3\r\nSET\r\n\0\0\0\0x", 13);
    is_malformed(&joined(&[b"*1\r\n$1\r\nx\0\0", SET_B]), 10);
    is_whole(&[b"*2\r\n$1\r\nx\0\0$1\r\ny\0x", SET_B], &["x y", "SET b 2"]);
}

#[test]
fn a_claim_takes_no_memory() {
    let long = joined(&[b"*2147483647\r\n$9999999999\r\n", &[b'x'; 300_000]]);
    let mut scanner = Scanner::new(&*long);
    assert!(scanner.next_command().expect("it is short").is_none());
    assert!(scanner.window.capacity() <= 4 * long.len(), "{} bytes", scanner.window.capacity());
    let many = SET_A.repeat(100_000);
    let mut scanner = Scanner::new(&*many);
    while scanner.next_command().expect("it is whole").is_some() {}
    assert!(scanner.window.capacity() <= 4 * WINDOW_BYTES, "{} bytes", scanner.window.capacity());
}

#[test]
fn offsets_count_from_the_start_of_the_file() {
    let mut scanner = Scanner::at(SET_A, 100);
    let command = scanner.next_command().expect("it is whole").expect("there is one");
    assert_eq!((command.offset, command.end), (100, 100 + SET_A.len() as u64));
    assert_eq!(scanner.valid_bytes(), 100 + SET_A.len() as u64);
    let fault = Scanner::at(&b"x"[..], 100).next_command().expect_err("it is malformed");
    assert_eq!(fault.offset, 100);
}

#[test]
fn a_log_that_cannot_be_read_is_a_fault() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::Other.into())
        }
    }
    let fault = Scanner::new(SET_A.chain(Broken)).next_command().expect_err("what follows cannot be read");
    assert!(matches!(fault.reason, FaultReason::Io(_)));
    let fault = Scanner::new(Broken).next_command().expect_err("it cannot be read");
    assert!(matches!(fault.reason, FaultReason::Io(_)));
}

proptest! {
    /// Whole units, and a part of the next one.
    #[test]
    fn a_log_is_valid_up_to_its_last_whole_unit(units in proptest::collection::vec(0..4_usize, 1..12), cut in 0..200_usize) {
        let transaction = joined(&[MULTI, SET_A, SET_B, EXEC]);
        let parts: [&[u8]; 4] = [SET_A, b"#TS:1\r\n", &transaction, b"*1\r\n$3\r\na\rb\r\n"];
        let ends: Vec<usize> = units
            .iter()
            .scan(0, |end, &unit| {
                *end += parts[unit].len();
                Some(*end)
            })
            .collect();
        let log: Vec<u8> = units.iter().flat_map(|&unit| parts[unit].to_vec()).collect();
        let cut = log.len().saturating_sub(cut);
        let valid_bytes = ends.iter().copied().filter(|&end| end <= cut).max().unwrap_or(0);
        prop_assert_eq!(scanned(&log[..cut]).valid_bytes, valid_bytes as u64);
    }

    #[test]
    fn no_bytes_make_it_panic_and_valid_bytes_are_valid(
        log in proptest::collection::vec(
            prop_oneof![Just(b'*'), Just(b'$'), Just(b'1'), Just(b'3'), Just(b'\n'), Just(b'#'), Just(0), any::<u8>()],
            0..120,
        ),
    ) {
        let all = scanned(&log);
        let valid = scanned(&log[..usize::try_from(all.valid_bytes).expect("it is within the log")]);
        prop_assert_eq!((valid.valid_bytes, valid.tail), (all.valid_bytes, Tail::Clean));
    }
}
