//! A disk that is busy. With `appendfsync everysec` replies do not wait for it longer than in Redis, what the disk
//! takes survives a kill, and what it does not take is limited. Whatever waits for it, others are served.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::files::{Folder, told};
use crate::program::Running;
use crate::timeout::wait_until;

/// A program whose syncs of the append-only file take ten minutes, of which one has begun.
fn syncing(folder: &Folder) -> Running {
    let program = folder.program(&["--test-kit", "yes", "--appendonly", "yes", "--appendfsync", "everysec"]);
    wait_until("it is loaded", || told(&program, "PING") == "+PONG");
    assert_eq!(told(&program, "DUNLIN FAULT ADD sync DISK SYNC FILE *.incr.aof DELAY 600000"), "+OK");
    assert_eq!(told(&program, "SET before 1"), "+OK");
    assert_eq!(told(&program, "DUNLIN WAIT FAULT sync 1"), "+OK");
    program
}

fn persistence(program: &Running, field: &str) -> bool {
    told(program, "INFO persistence").lines().any(|line| line == field)
}

#[test]
fn what_is_acknowledged_while_a_sync_takes_long_survives_a_kill() {
    let folder = Folder::new("slow-sync");
    let program = syncing(&folder);
    for number in 0..100 {
        assert_eq!(told(&program, &format!("SET key:{number} {number}")), "+OK");
    }
    assert!(persistence(&program, "aof_pending_bio_fsync:1"));
    wait_until("the writes count as delayed", || {
        assert_eq!(told(&program, "APPEND later x").chars().next(), Some(':'));
        persistence(&program, "aof_delayed_fsync:1")
    });
    let later = told(&program, "GET later");
    // A thread that writes and does not get the processor for a millisecond is a busy disk, too.
    wait_until("it is written", || persistence(&program, "aof_buffer_length:0"));
    // The end of the scope kills it.
    drop(program);
    let program = folder.program(&["--appendonly", "yes"]);
    wait_until("it is loaded", || told(&program, "PING") == "+PONG");
    assert_eq!((told(&program, "DBSIZE"), told(&program, "GET key:99")), (":102".to_owned(), "$2\r\n99".to_owned()));
    assert_eq!(told(&program, "GET later"), later);
}

#[test]
fn replies_leave_while_a_write_waits_for_the_disk_and_what_they_are_about_is_written_later() {
    let folder = Folder::new("slow-write");
    let program = syncing(&folder);
    assert_eq!(told(&program, "DUNLIN FAULT ADD write DISK WRITE FILE *.incr.aof DELAY 600000"), "+OK");
    assert_eq!(told(&program, "SET key acknowledged"), "+OK");
    assert_eq!(told(&program, "DUNLIN WAIT FAULT write 1"), "+OK");
    assert!(!persistence(&program, "aof_buffer_length:0"));
    assert_eq!(told(&program, "DUNLIN FAULT CLEAR"), "+OK");
    wait_until("it is written", || persistence(&program, "aof_buffer_length:0"));
    drop(program);
    let program = folder.program(&["--appendonly", "yes"]);
    wait_until("it is loaded", || told(&program, "PING") == "+PONG");
    assert_eq!(told(&program, "GET key"), "$12\r\nacknowledged");
}

#[test]
fn a_client_that_streams_changes_waits_when_too_much_is_unwritten() {
    const VALUE: usize = 1 << 20;
    const REQUESTS: usize = 200;
    let folder = Folder::new("slow-backlog");
    let program = syncing(&folder);
    assert_eq!(told(&program, "DUNLIN FAULT ADD write DISK WRITE FILE *.incr.aof DELAY 600000"), "+OK");
    let mut stream = TcpStream::connect(program.address()).expect("it listens");
    stream.set_write_timeout(Some(Duration::from_secs(1))).expect("it can be set");
    let request = [&format!("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n${VALUE}\r\n").into_bytes()[..], &[b'x'; VALUE], b"\r\n"];
    let requests = request.concat().repeat(REQUESTS);
    let mut sent = 0;
    while sent < requests.len() {
        match stream.write(&requests[sent..]) {
            Ok(length) => sent += length,
            Err(fault) if matches!(fault.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            Err(fault) => panic!("{fault}"),
        }
    }
    // Beside the 64 MiB, the buffers of the socket have a part.
    assert!((60..96).contains(&(sent / VALUE)), "it has read {} MiB", sent / VALUE);
    // The rules are removed at once; the reply to that waits, too.
    assert_eq!(told(&program, "DUNLIN FAULT CLEAR"), "+OK");
    stream.set_write_timeout(None).expect("it can be set");
    let mut reader = stream.try_clone().expect("it can be cloned");
    let read = std::thread::spawn(move || {
        let mut replies = vec![0; REQUESTS * 5];
        reader.read_exact(&mut replies).map(|()| replies)
    });
    stream.write_all(&requests[sent..]).expect("it reads on");
    assert_eq!(read.join().expect("it ends").expect("all is answered"), b"+OK\r\n".repeat(REQUESTS));
}

/// A connection whose change was run, and waits for the disk.
fn unanswered(program: &Running, change: &str, rule: &str) -> TcpStream {
    let mut stream = TcpStream::connect(program.address()).expect("it listens");
    stream.write_all(format!("{change}\r\n").as_bytes()).expect("it is sent");
    assert_eq!(told(program, &format!("DUNLIN WAIT FAULT {rule} 1")), "+OK");
    stream
}

#[test]
fn others_are_served_while_a_write_or_a_sync_is_slow_and_learn_that_it_is() {
    for (policy, calls) in [("everysec", "WRITE"), ("always", "WRITE"), ("always", "SYNC")] {
        let folder = Folder::new(&format!("slow-{policy}-{calls}"));
        let program = folder.program(&["--test-kit", "yes", "--appendonly", "yes", "--appendfsync", policy]);
        wait_until("it is loaded", || told(&program, "PING") == "+PONG");
        assert_eq!(told(&program, "SET other kept"), "+OK");
        let rule = format!("DUNLIN FAULT ADD slow DISK {calls} FILE *.incr.aof DELAY 600000");
        assert_eq!(told(&program, &rule), "+OK");
        let mut waiting = unanswered(&program, "SET key value", "slow");
        assert_eq!(told(&program, "GET other"), "$4\r\nkept", "{policy} {calls}");
        let late = told(&program, "DUNLIN WAIT FAULT slow 2 TIMEOUT 1");
        assert_eq!(late, "-ERR waited in vain: the rule 'slow' has fired 1 of 2 times", "{policy} {calls}");
        assert_eq!(told(&program, "DUNLIN FAULT REMOVE slow"), ":1");
        let mut reply = [0; 5];
        waiting.read_exact(&mut reply).expect("it is answered");
        assert_eq!(&reply, b"+OK\r\n", "{policy} {calls}");
    }
}
