//! Programs that are killed while a client changes data of many types: after a restart, the data are those after some
//! request that was sent, and not of one before the last that was answered. A server in this process, which gets the
//! same requests, says what they are.
//!
//! Each round starts on the files that the last one has left.

use std::io::{Read, Write};
use std::net::TcpStream;

use dunlin::Server;

use crate::files::{Folder, told};
use crate::program::Running;
use crate::support::choices::Choices;
use crate::support::reply::{Undecoded, decode};
use crate::timeout::wait_until;

const ROUNDS: usize = 40;
/// The requests that are sent at once; the program is killed while it runs them.
const REQUESTS: usize = 64;

/// Requests with the same result wherever and whenever they run: `~` is a small number, `%` the number of the request.
/// So vector sets are not here, whose graphs are drawn by lot, nor what remembers the time of a read.
const CHANGES: &[&str] = &[
    "SET text:~ %",
    "SET text:~ % PXAT 4000000000%",
    "APPEND text:~ some-more-text-%",
    "SETRANGE text:~ 9 %",
    "SETBIT bits:~ % 1",
    "BITFIELD bits:~ INCRBY u8 #0 7",
    "INCRBYFLOAT number:~ 1.5",
    "MSET text:1 % text:2 % number:3 %",
    "GETDEL text:~",
    "GETEX text:~ EXAT 4000000000",
    "PEXPIREAT list:~ 400000000000~",
    "PERSIST list:~",
    "RENAME list:~ list:~",
    "COPY hash:~ hash:~ REPLACE",
    "COPY stream:~ stream:~ REPLACE",
    "DEL text:~ zset:~",
    "UNLINK set:~",
    "RPUSH list:~ % ~ a-longer-element-%",
    "LPUSH list:~ %",
    "LMOVE list:~ list:~ LEFT RIGHT",
    "LMPOP 2 list:1 list:2 RIGHT COUNT 2",
    "LINSERT list:~ BEFORE ~ %",
    "LREM list:~ 1 ~",
    "LTRIM list:~ -30 -1",
    "HSET hash:~ f~ % g ~",
    "HINCRBYFLOAT hash:~ n 0.5",
    "HPEXPIREAT hash:~ 400000000000~ FIELDS 2 f~ g",
    "HPERSIST hash:~ FIELDS 1 g",
    "HSETEX hash:~ PXAT 400000000000~ FIELDS 1 f~ %",
    "HGETDEL hash:~ FIELDS 1 f~",
    "SADD set:~ ~ ~ word-~",
    "SREM set:~ ~",
    "SMOVE set:~ set:~ ~",
    "SUNIONSTORE set:~ set:~ set:~",
    "ZADD zset:~ % a~ ~ b~",
    "ZINCRBY zset:~ 1.5 a~",
    "ZPOPMIN zset:~ 2",
    "ZREMRANGEBYRANK zset:~ 8 -1",
    "ZRANGESTORE zset:~ zset:~ 0 5",
    "GEOADD places 13.~ 38.~ p~",
    "PFADD sketch:~ % ~",
    "PFMERGE sketch:~ sketch:~ sketch:~",
    "XADD stream:~ %-1 number % field ~",
    "XTRIM stream:~ MAXLEN 9",
    "XDEL stream:~ %-1",
    "XGROUP CREATE stream:~ group:~ 0 MKSTREAM",
    "XGROUP SETID stream:~ group:~ $",
    "XGROUP CREATECONSUMER stream:~ group:~ consumer:~",
    "SORT list:~ ALPHA STORE list:~",
    "EVAL \"redis.call('INCR',KEYS[1])redis.call('RPUSH',KEYS[2],ARGV[1])\" 2 number:~ list:~ %",
    "MULTI\r\nSET text:~ %\r\nLPUSH list:~ %\r\nEXEC",
    "SELECT 1",
    "SELECT 0",
    "MOVE text:~ 1",
    "SWAPDB 0 1",
    "FUNCTION LOAD REPLACE \"#!lua name=l\\nredis.register_function('f',function()return % end)\"",
];

/// A client with its requests, and those that it has sent and not given to the mirror yet.
struct Writer {
    choices: Choices<'static>,
    number: usize,
    sent: Vec<String>,
}

impl Writer {
    fn next_request(&mut self) -> String {
        self.number += 1;
        let mut request = String::new();
        for letter in CHANGES[self.choices.below(CHANGES.len())].chars() {
            match letter {
                '%' => request.push_str(&self.number.to_string()),
                '~' => request.push_str(&self.choices.below(4).to_string()),
                letter => request.push(letter),
            }
        }
        request + "\r\n"
    }

    /// Sends requests, waits until some have been answered, and kills the program. Returns the number of answered ones.
    fn write_until_killed(&mut self, program: Running) -> usize {
        let answered = self.choices.below(REQUESTS);
        self.sent = (0..REQUESTS).map(|_| self.next_request()).collect();
        let mut stream = connect(&program);
        stream.write_all(self.sent.concat().as_bytes()).expect("the program reads");
        read_replies(&mut stream, self.sent[..answered].iter().map(|request| replies_to(request)).sum());
        drop(program);
        answered
    }
}

fn connect(program: &Running) -> TcpStream {
    TcpStream::connect(program.address()).expect("it listens")
}

/// The number of replies to a request: one for each of its lines.
fn replies_to(request: &str) -> usize {
    request.matches("\r\n").count()
}

fn read_replies(stream: &mut TcpStream, count: usize) {
    let (mut bytes, mut read) = (Vec::new(), 0);
    while read < count {
        match decode(&bytes) {
            Ok((_, length)) => {
                bytes.drain(..length);
                read += 1;
            }
            Err(Undecoded::Incomplete) => {
                let mut more = [0; 4096];
                let length = stream.read(&mut more).expect("the program writes");
                assert_ne!(length, 0, "the program has ended by itself");
                bytes.extend_from_slice(&more[..length]);
            }
            Err(Undecoded::Malformed(fault)) => panic!("{fault}"),
        }
    }
}

#[test]
fn a_killed_program_has_the_data_as_of_a_request_not_before_the_last_that_was_answered() {
    let (folder, mirror) = (Folder::new("killed-writer"), Server::start().expect("it starts"));
    let mut writer = Writer { choices: Choices::Seed(7), number: 0, sent: Vec::new() };
    let (mut answered, mut later) = (0, 0);
    for round in 0..ROUNDS {
        let arguments = ["--appendonly", "yes", "--appendfsync", "always", "--test-kit", "yes"];
        let growth = ["--auto-aof-rewrite-min-size", "20000", "--auto-aof-rewrite-percentage", "50"];
        let program = folder.program(&[&arguments[..], if round % 2 == 0 { &growth } else { &[] }].concat());
        wait_until("it is loaded", || told(&program, "PING") == "+PONG");
        let dump = told(&program, "DUNLIN DUMP");
        let found = dump.split_once("\r\n").map_or("", |(_, text)| text);
        let mut mirrored = TcpStream::connect(mirror.addr()).expect("it listens");
        let mut apply = |request: &String| {
            mirrored.write_all(request.as_bytes()).expect("it reads");
            read_replies(&mut mirrored, replies_to(request));
        };
        writer.sent[..answered].iter().for_each(&mut apply);
        let mut unanswered = writer.sent[answered..].iter();
        while mirror.dump().trim_end() != found {
            let request = unanswered.next();
            apply(request.unwrap_or_else(|| panic!("round {round}: {}", mirror.diff(found).expect("it is a dump"))));
            later += 1;
        }
        answered = writer.write_until_killed(program);
    }
    assert!(later > 0, "no request is ever kept without an answer");
}
