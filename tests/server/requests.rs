//! Requests in any pieces and any number, and their replies.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use dunlin::Server;
use fastrand::Rng;

use crate::timeout::wait_until;
use crate::wire::{bulk, connect, request};

#[test]
fn a_request_may_arrive_byte_by_byte() {
    let server = Server::start().expect("it starts");
    let mut client = connect(server.addr());
    for byte in [request(&[b"SET", b"key", b"value"]), b"GET key\r\n".to_vec()].concat() {
        client.send([byte]);
    }
    client.expect("+OK\r\n$5\r\nvalue\r\n");
}

/// CVE-2023-41056: buffers that shrink and grow again.
#[test]
fn requests_of_any_size_in_any_pieces_are_answered_whole() {
    let server = Server::start().expect("it starts");
    let (mut client, mut rng) = (connect(server.addr()), Rng::with_seed(1));
    for round in 0..10_000 {
        let most = *rng.choice(&[1, 20, 200, 2_000, 20_000, 70_000, 300_000]).expect("the list is not empty");
        let length = if rng.u8(..4) == 0 { rng.usize(..most) } else { rng.usize(..most.min(300)) };
        let text: Vec<u8> = (0..length).map(|place| (place * 31 + round) as u8).collect();
        let bytes = request(&[b"ECHO", &text]).repeat(rng.usize(1..3));
        let requests = bytes.len() / request(&[b"ECHO", &text]).len();
        let mut sent = 0;
        while sent < bytes.len() {
            let piece = if rng.bool() { bytes.len() - sent } else { rng.usize(1..=bytes.len() - sent) };
            client.send(&bytes[sent..sent + piece]);
            sent += piece;
        }
        client.expect(bulk(&text).repeat(requests));
    }
}

#[test]
fn the_end_of_one_request_and_the_beginning_of_the_next_may_arrive_together() {
    let server = Server::start().expect("it starts");
    let mut client = connect(server.addr());
    client.ask("SET a 1\r\n*2\r\n$3\r\nGE", "+OK\r\n");
    client.ask("T\r\n$1\r\na\r\n*2\r\n$3\r\nGET\r\n$1", "$1\r\n1\r\n");
    client.ask("\r\na\r\n", "$1\r\n1\r\n");
}

#[test]
fn ten_thousand_requests_are_answered_even_if_their_replies_are_read_late() {
    let server = Server::start().expect("it starts");
    let mut client = connect(server.addr());
    let value = vec![b'x'; 4096];
    client.ask(request(&[b"SET", b"key", &value]), "+OK\r\n");
    client.send(request(&[b"GET", b"key"]).repeat(10_000));
    client.expect(bulk(&value).repeat(10_000));
    client.ask("GET none\r\n", "$-1\r\n");
}

#[test]
fn blocking_commands_of_a_pipeline_wait_one_after_the_other() {
    const COUNT: usize = 3000;
    let server = Server::start().expect("it starts");
    let (mut client, mut other) = (connect(server.addr()), connect(server.addr()));
    // The rest is longer than one read, and waits with the first.
    let commands: Vec<u8> =
        (0..COUNT).flat_map(|number| request(&[b"BLPOP", format!("list:{number:05}").as_bytes(), b"0"])).collect();
    client.send(commands);
    for number in 0..COUNT {
        let name = format!("list:{number:05}");
        other.ask(request(&[b"RPUSH", name.as_bytes(), b"x"]), ":1\r\n");
    }
    let replies: Vec<u8> = (0..COUNT)
        .flat_map(|number| [b"*2\r\n".to_vec(), bulk(format!("list:{number:05}").as_bytes()), bulk(b"x")].concat())
        .collect();
    client.expect(replies);
}

/// Counted in commands of the other client, as a machine may be slow: a client that streams runs a few hundred before
/// one that waits has its turn.
#[test]
fn a_client_that_streams_requests_does_not_delay_the_others() {
    let server = Server::start().expect("it starts");
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let requests = request(&[b"SET", b"a", &[b'x'; 100]]).repeat(1000);
    let commands_between = |client: &mut crate::wire::Wire<std::net::TcpStream>| {
        let mut count = || {
            client.send("INFO stats\r\n");
            let stats = client.read_until(b"acl_access_denied_channel");
            client.read_until(b"\r\n\r\n");
            let line = stats.lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
            line.and_then(|count| count.parse::<usize>().ok()).expect("it is a number")
        };
        let before = count();
        count() - before
    };
    std::thread::scope(|scope| {
        let stream = std::net::TcpStream::connect(server.addr()).expect("the server listens");
        let mut replies = stream.try_clone().expect("a socket can be cloned");
        let (is_over, requests) = (&is_over, &requests);
        scope.spawn(move || {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                std::io::Write::write_all(&mut &stream, requests).expect("the server reads");
            }
            stream.shutdown(std::net::Shutdown::Write).expect("it is open");
        });
        scope.spawn(move || std::io::copy(&mut replies, &mut std::io::sink()));
        let mut client = connect(server.addr());
        wait_until("the other client streams", || commands_between(&mut client) > 10);
        let mut between: Vec<usize> = (0..101).map(|_| commands_between(&mut client)).collect();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        between.sort_unstable();
        assert!(between[50] < 20_000, "{between:?}");
    });
}

/// A client without a socket runs on another thread, so it competes for the lock all the time.
#[test]
fn nobody_sees_half_of_a_pipeline_that_came_at_once() {
    const READS: usize = 500;
    /// The most bytes that Redis reads at once.
    const BYTES: usize = 20_474;
    let (reads, padding) = ("GET key\r\n".repeat(READS), "x".repeat(BYTES - READS * 9 - 18));
    let servers =
        [Server::builder().start(), Server::builder().set("maxmemory", "1gb").start(), Server::cluster(1).start()];
    for server in servers.map(|server| server.expect("it starts")) {
        let has_ended = AtomicBool::new(false);
        let seen: Vec<(usize, Vec<u8>)> = thread::scope(|scope| {
            scope.spawn(|| {
                let mut other = server.client().expect("there is room");
                while !has_ended.load(Ordering::Relaxed) {
                    other.call(["SET", "key", "x"]).expect("it answers");
                }
            });
            let mut clients = [(); 3].map(|()| connect(server.addr()));
            let mut seen = Vec::new();
            for _ in 0..20 {
                for (number, client) in clients.iter_mut().enumerate() {
                    let pipeline = format!("SET key {number}\r\nPING {padding}\r\n{reads}");
                    assert_eq!(pipeline.len(), BYTES);
                    client.send(pipeline);
                }
                let length = "+OK\r\n".len() + bulk(padding.as_bytes()).len() + READS * "$1\r\n0\r\n".len();
                seen.extend(clients.iter_mut().map(|client| client.read_bytes(length)).enumerate());
            }
            has_ended.store(true, Ordering::Relaxed);
            seen
        });
        for (number, replies) in seen {
            let values = format!("$1\r\n{number}\r\n").repeat(READS);
            assert_eq!(replies, [b"+OK\r\n", &*bulk(padding.as_bytes()), values.as_bytes()].concat());
        }
    }
}

#[test]
fn a_large_value_is_stored_and_returned() {
    let server = Server::start().expect("it starts");
    let mut client = connect(server.addr());
    let value: Vec<u8> = (0..20_000_003_u32).map(|index| index.to_le_bytes()[1]).collect();
    client.ask(request(&[b"SET", b"key", &value]), "+OK\r\n");
    client.ask("GET key\r\n", bulk(&value));
}

#[test]
fn long_words_of_a_pipeline_are_stored_whole_in_whatever_pieces_they_arrive() {
    let server = Server::start().expect("it starts");
    let mut rng = Rng::with_seed(3);
    for round in 0..40 {
        let words = [100_000, 40, 32 << 10, 33_000, 300_000, 5].map(|length| vec![rng.u8(b'a'..=b'z'); length]);
        let [long, short, least, appended, last, start] = words.each_ref().map(Vec::as_slice);
        let requests = [
            request(&[b"SET", b"a", long]),
            request(&[b"SET", b"b", short]),
            request(&[b"MSET", b"c", least, b"d", appended]),
            request(&[b"MULTI"]),
            request(&[b"SET", b"e", last, b"EX", b"100"]),
            request(&[b"EXEC"]),
            request(&[b"SETEX", b"f", b"100", last]),
            request(&[b"APPEND", b"f", appended]),
            request(&[b"GETSET", b"a", last]),
            request(&[b"SETRANGE", b"a", b"0", start]),
        ]
        .concat();
        let mut client = connect(server.addr());
        let mut rest = &requests[..];
        while !rest.is_empty() {
            let (piece, others) = rest.split_at(rng.usize(1..=60_000 << (round % 4)).min(rest.len()));
            client.send(piece);
            rest = others;
        }
        client.expect(b"+OK\r\n+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n+OK\r\n:333000\r\n");
        client.expect([bulk(long), b":300000\r\n".to_vec()].concat());
        for (key, expected) in [
            (b"a", [start, &last[start.len()..]].concat()),
            (b"b", short.to_vec()),
            (b"c", least.to_vec()),
            (b"d", appended.to_vec()),
            (b"e", last.to_vec()),
            (b"f", [last, appended].concat()),
        ] {
            client.ask(request(&[b"GET", key]), bulk(&expected));
        }
    }
}

/// The string is sent from its place in memory, long after the next commands have run.
#[test]
fn a_later_change_does_not_affect_a_large_string_that_is_being_sent() {
    let server = Server::start().expect("it starts");
    let mut client = connect(server.addr());
    let before: Vec<u8> = (0..3_000_000_u32).map(|index| index.to_le_bytes()[1]).collect();
    let (longer, after) = ([&before[..], b"!"].concat(), vec![b'y'; 100_000]);
    let edited = [b"?", &before[1..], b"!"].concat();
    let changes = [
        (request(&[b"SET", b"key", &before]), b"+OK\r\n".to_vec(), &before),
        (request(&[b"COPY", b"key", b"other"]), b":1\r\n".to_vec(), &before),
        (request(&[b"APPEND", b"key", b"!"]), b":3000001\r\n".to_vec(), &longer),
        (request(&[b"SETRANGE", b"key", b"0", b"?"]), b":3000001\r\n".to_vec(), &edited),
        (request(&[b"SET", b"key", &after, b"GET"]), bulk(&edited), &after),
        (request(&[b"RENAME", b"other", b"key"]), b"+OK\r\n".to_vec(), &before),
        (request(&[b"GETDEL", b"key"]), bulk(&before), &Vec::new()),
        (request(&[b"SET", b"key", &after]), b"+OK\r\n".to_vec(), &after),
    ];
    let mut replies = Vec::new();
    for (change, reply, value) in changes {
        client.send([&change[..], b"GET key\r\n"].concat());
        replies.extend(reply);
        replies.extend(if value.is_empty() { b"$-1\r\n".to_vec() } else { bulk(value) });
    }
    client.send("DEL key\r\n");
    replies.extend(b":1\r\n");
    client.expect(replies);
}

/// So is the value of a field, whatever then becomes of the field and its hash.
#[test]
fn a_later_change_does_not_affect_a_large_field_that_is_being_sent() {
    let server = Server::start().expect("it starts");
    let mut client = connect(server.addr());
    let before: Vec<u8> = (0..3_000_000_u32).map(|index| index.to_le_bytes()[1]).collect();
    let as_long: Vec<u8> = before.iter().rev().copied().collect();
    let shorter = vec![b'y'; 100_000];
    let changes = [
        (request(&[b"HSET", b"key", b"field", &before]), ":1\r\n", &before),
        (request(&[b"COPY", b"key", b"other"]), ":1\r\n", &before),
        (request(&[b"HSET", b"key", b"field", &as_long]), ":0\r\n", &as_long),
        (request(&[b"HPEXPIRE", b"key", b"9000000", b"FIELDS", b"1", b"field"]), "*1\r\n:1\r\n", &as_long),
        (request(&[b"HSET", b"key", b"field", &shorter]), ":0\r\n", &shorter),
        (request(&[b"RENAME", b"other", b"key"]), "+OK\r\n", &before),
        (request(&[b"HDEL", b"key", b"field"]), ":1\r\n", &Vec::new()),
    ];
    let mut replies = Vec::new();
    for (change, reply, value) in changes {
        client.send([&change[..], b"HGET key field\r\nHMGET key field none field\r\n"].concat());
        let value = if value.is_empty() { b"$-1\r\n".to_vec() } else { bulk(value) };
        replies.extend([reply.as_bytes(), &value, b"*3\r\n", &value, b"$-1\r\n", &value].concat());
    }
    client.expect(replies);
}

/// A reply that others read, or that is moved, is made contiguous.
#[test]
fn large_strings_keep_their_place_among_other_replies() {
    let server = Server::start().expect("it starts");
    let (mut client, value) = (connect(server.addr()), vec![b'x'; 100_000]);
    let large = String::from_utf8(bulk(&value)).expect("it is text");
    client.ask(request(&[b"MSET", b"a", &value, b"b", b"small", b"c", &value]), "+OK\r\n");
    client.send("GET b\r\nMGET a none b c a\r\nGET a\r\nGET c extra\r\nGET b\r\n");
    let refusal = "-ERR wrong number of arguments for 'get' command\r\n";
    client.expect(format!(
        "$5\r\nsmall\r\n*5\r\n{large}$-1\r\n$5\r\nsmall\r\n{large}{large}{large}{refusal}$5\r\nsmall\r\n"
    ));
    client.send("MULTI\r\nGET a\r\nGET b\r\nEXEC\r\nCLIENT REPLY SKIP\r\nGET a\r\nGET c\r\n");
    client.expect(format!("+OK\r\n{0}{0}*2\r\n{large}$5\r\nsmall\r\n{large}", "+QUEUED\r\n"));
    client.ask("EVAL \"return redis.call('GET', 'a')\" 0\r\nGET a\r\n", format!("{large}{large}"));
    let mut watcher = connect(server.addr());
    watcher.ask("CONFIG SET notify-keyspace-events KA\r\n", "+OK\r\n");
    watcher.send("HELLO 3\r\nSUBSCRIBE __keyspace@0__:a\r\n");
    watcher.read_until(b"subscribe\r\n$16\r\n__keyspace@0__:a\r\n:1\r\n");
    watcher.send("GET c\r\nGETEX a EX 100\r\nGETDEL a\r\nGET c\r\n");
    let event =
        |event: &str| format!(">3\r\n$7\r\nmessage\r\n$16\r\n__keyspace@0__:a\r\n${}\r\n{event}\r\n", event.len());
    watcher.expect(format!("{large}{large}{}{large}{}{large}", event("expire"), event("del")));
}

/// A large element is stored in the buffer in which it came, and sent from there, also when the list no longer has it.
#[test]
fn large_elements_of_lists_leave_as_they_came() {
    let server = Server::start().expect("it starts");
    let mut client = connect(server.addr());
    let [first, second, third] = [b'1', b'2', b'3'].map(|byte| vec![byte; 300_000]);
    for (command, element, len) in [(b"RPUSH", &second, 1), (b"LPUSH", &first, 2), (b"RPUSH", &third, 3)] {
        client.ask(request(&[command, b"list", element]), format!(":{len}\r\n"));
    }
    client.ask("COPY list other\r\nRPUSH list small\r\n", ":1\r\n:4\r\n");
    client.send("LINDEX list 1\r\nLINDEX list 9\r\nLPOP list\r\nRPOP list\r\nRPOP list\r\nBLPOP list 1\r\n");
    client.send("LRANGE other 0 -1\r\nLMOVE other list LEFT RIGHT\r\nLSET other 0 x\r\nRPOP other 2\r\n");
    client.send("DEL other\r\nLPOP list\r\nLPOP list\r\n");
    let large = [&first, &second, &third].map(|element| bulk(element));
    let replies: [&[u8]; 19] = [
        &large[1],
        b"$-1\r\n",
        &large[0],
        b"$5\r\nsmall\r\n",
        &large[2],
        b"*2\r\n$4\r\nlist\r\n",
        &large[1],
        b"*3\r\n",
        &large[0],
        &large[1],
        &large[2],
        &large[0],
        b"+OK\r\n",
        b"*2\r\n",
        &large[2],
        b"$1\r\nx\r\n",
        b":0\r\n",
        &large[0],
        b"$-1\r\n",
    ];
    client.expect(replies.concat());
}

#[test]
fn clients_share_the_data_but_not_their_input() {
    let server = Server::start().expect("it starts");
    let (mut ann, mut bob) = (connect(server.addr()), connect(server.addr()));
    ann.send("*2\r\n$3\r\nGET\r\n$3\r\nk");
    bob.ask("SET key bob\r\n", "+OK\r\n");
    ann.ask("ey\r\n", "$3\r\nbob\r\n");
}

#[test]
fn invalid_input_is_answered_after_the_requests_before_it_and_closes_the_connection() {
    let server = Server::start().expect("it starts");
    let mut client = connect(server.addr());
    client.send("SET a 1\r\n*1\r\n!4\r\nSET a 2\r\n");
    assert_eq!(client.rest(), b"+OK\r\n-ERR Protocol error: expected '$', got '!'\r\n");
    connect(server.addr()).ask("GET a\r\n", "$1\r\n1\r\n");
}

#[test]
fn invalid_input_behind_a_command_that_blocks_is_answered_when_that_is_done() {
    let server = Server::start().expect("it starts");
    let table = [
        ("*x\r\n", "invalid multibulk length"),
        ("*1\r\n$-1\r\n", "invalid bulk length"),
        ("*1\r\nfoo\r\n", "expected '$', got 'f'"),
        ("*2\r\n$4\r\nECHO\r\n:1\r\n", "expected '$', got ':'"),
    ];
    for (invalid, why) in table {
        let (mut client, mut other) = (connect(server.addr()), connect(server.addr()));
        client.send(format!("BLPOP list 0\r\n{invalid}"));
        let mut watcher = server.client().expect("there is room");
        wait_until("the client blocks", || {
            let clients = watcher.call(["INFO", "clients"]).expect("it answers");
            clients.text().is_some_and(|text| text.contains("blocked_clients:1"))
        });
        other.ask("RPUSH list a\r\n", ":1\r\n");
        let reply = format!("*2\r\n$4\r\nlist\r\n$1\r\na\r\n-ERR Protocol error: {why}\r\n");
        assert_eq!(String::from_utf8_lossy(&client.rest()), reply);
    }
}

#[test]
fn a_request_of_a_web_page_gets_no_reply() {
    let server = Server::start().expect("it starts");
    let mut client = connect(server.addr());
    client.send("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nSET a 1\r\n");
    assert_eq!(client.rest(), b"");
    let mut client = connect(server.addr());
    client.send("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nSET a 1\r\n");
    assert_eq!(client.rest(), b"");
    connect(server.addr()).ask("GET a\r\n", "$-1\r\n");
}

#[test]
fn a_client_that_closes_its_sending_half_gets_all_replies() {
    let server = Server::start().expect("it starts");
    let stream = std::net::TcpStream::connect(server.addr()).expect("the server listens");
    let half = stream.try_clone().expect("a socket can be shared");
    let mut client = crate::wire::Wire::new(stream);
    let value = vec![b'x'; 100_000];
    client.ask(request(&[b"SET", b"key", &value]), "+OK\r\n");
    client.send(request(&[b"GET", b"key"]).repeat(100));
    half.shutdown(std::net::Shutdown::Write).expect("a socket can be closed by half");
    assert_eq!(client.rest().len(), 100 * bulk(&value).len());
}

#[test]
fn several_event_loops_serve_the_same_data() {
    let server = Server::builder().set("io-threads", "3").start().expect("it starts");
    let mut clients: Vec<_> = (0..7).map(|_| connect(server.addr())).collect();
    for (index, client) in clients.iter_mut().enumerate() {
        client.ask(format!("SET key:{index} {index}\r\n"), "+OK\r\n");
    }
    for client in &mut clients {
        for index in 0..7 {
            client.ask(format!("GET key:{index}\r\n"), format!("$1\r\n{index}\r\n"));
        }
    }
}

/// Brief commands of a pipeline are timed together, up to a number and of some kinds.
#[test]
fn every_command_of_a_pipeline_is_timed_once() {
    let server = Server::builder().frozen().start().expect("it starts");
    let mut client = connect(server.addr());
    let value = "x".repeat(2_000);
    client.ask(request(&[b"SET", b"large", value.as_bytes()]), "+OK\r\n");
    let round = "GET none\r\nSET a 1\r\nLPUSH b x\r\nRPOP b\r\nSISMEMBER c x\r\nHGET d x\r\nECHO x\r\nSTRLEN large\r\n";
    let replies = "$-1\r\n+OK\r\n:1\r\n$1\r\nx\r\n:0\r\n$-1\r\n$1\r\nx\r\n:2000\r\n";
    client.send(format!("{round}GETRANGE large 0 -1\r\n{}", "GET none\r\n".repeat(5)).repeat(100));
    client.expect(format!("{replies}$2000\r\n{value}\r\n{}", "$-1\r\n".repeat(5)).repeat(100));
    let calls = [("get", 600), ("set", 101), ("lpush", 100), ("hget", 100), ("echo", 100), ("getrange", 100)];
    for (name, calls) in calls {
        let histogram = format!("$14\r\nhistogram_usec\r\n*2\r\n:1\r\n:{calls}\r\n");
        let expected = format!("*2\r\n${}\r\n{name}\r\n*4\r\n$5\r\ncalls\r\n:{calls}\r\n{histogram}", name.len());
        client.ask(format!("LATENCY HISTOGRAM {name}\r\n"), expected);
    }
}

/// Their data is prefetched before the first of them runs; the guess which data that is may be wrong.
#[test]
fn a_pipeline_about_large_collections_is_answered_in_order() {
    const MEMBERS: usize = 12_000;
    let server = Server::start().expect("it starts");
    let mut client = connect(server.addr());
    for member in 0..MEMBERS {
        client
            .send(format!("ZADD board {member} m{member}\r\nSADD seen m{member}\r\nHSET jobs m{member} {member}\r\n"));
    }
    client.expect(":1\r\n".repeat(3 * MEMBERS));
    let mut replies = String::new();
    for member in (0..MEMBERS).step_by(500) {
        client.send(format!(
            "ZRANK board m{member}\r\nZINCRBY board {MEMBERS} m{member}\r\nSREM seen m{member} none\r\n"
        ));
        client.send(format!("HGET jobs m{member}\r\nDEL jobs{member}\r\nZCARD board\r\nHGET jobs\r\n"));
        let (above, value) = (member + MEMBERS, member.to_string());
        let refusal = "-ERR wrong number of arguments for 'hget' command\r\n";
        replies += &format!(":{}\r\n${}\r\n{above}\r\n", member - member / 500, above.to_string().len());
        replies += &format!(":1\r\n${}\r\n{value}\r\n:0\r\n:{MEMBERS}\r\n{refusal}", value.len());
    }
    client.expect(replies);
}

/// The walk over all keys is on another thread, and the connections of one event loop take turns.
#[test]
fn clients_that_have_many_keys_counted_get_their_replies_in_order_and_others_are_served() {
    let server = Server::start().expect("it starts");
    let mut other = connect(server.addr());
    let fill = b"for i = 1, 20000 do redis.call('SET', 'key:' .. i, i) end";
    other.ask(request(&[b"EVAL", fill, b"0"]), "$-1\r\n");
    let mut clients: Vec<_> = (0..5).map(|_| connect(server.addr())).collect();
    let expected = "*12\r\n$4\r\nkeys\r\n:20000\r\n";
    for client in &mut clients {
        client.send("GET key:1\r\nDUNLIN TREE key: LIMIT 0\r\nGET key:2\r\nDUNLIN TREE none:\r\nECHO end\r\n");
    }
    other.ask("GET key:3\r\n", "$1\r\n3\r\n");
    let mut leaver = connect(server.addr());
    leaver.send("DUNLIN TREE\r\n");
    drop(leaver);
    for client in &mut clients {
        client.expect("$1\r\n1\r\n");
        client.expect(expected);
        let rest = client.read_until(b"$3\r\nend\r\n");
        let (of_keys, of_none) = rest.split_once("$1\r\n2\r\n").expect("the replies are in order");
        assert!(of_keys.contains("$5\r\nbytes\r\n") && of_none.starts_with("*12\r\n$4\r\nkeys\r\n:0\r\n"), "{rest}");
    }
    wait_until("the connection that was closed is gone", || {
        other.send("INFO clients\r\n");
        other.read_until(b"connected_clients:");
        let count = other.read_until(b"\r\n");
        other.read_until(b"\r\n\r\n");
        count == "6\r\n"
    });
}
