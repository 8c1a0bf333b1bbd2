//! Limits for clients, and the consequences of exceeding them.

use dunlin::Server;

use crate::timeout::wait_until;
use crate::wire::{bulk, connect, request};

const MEBIBYTE: usize = 1 << 20;

#[test]
fn one_client_too_many_gets_an_error_until_another_one_leaves() {
    let server = Server::builder().set("maxclients", "2").start().expect("it starts");
    let mut first = connect(server.addr());
    first.ask("SET a 1\r\n", "+OK\r\n");
    let mut second = connect(server.addr());
    second.ask("GET a\r\n", "$1\r\n1\r\n");
    assert_eq!(connect(server.addr()).rest(), b"-ERR max number of clients reached\r\n");
    first.send("POST\r\n");
    assert_eq!(first.rest(), b"");
    connect(server.addr()).ask("GET a\r\n", "$1\r\n1\r\n");
}

#[test]
fn more_clients_than_the_system_has_descriptors_for_are_refused() {
    let server = Server::start().expect("it starts");
    let mut client = connect(server.addr());
    client.ask(
        "CONFIG SET maxclients 4294967295\r\n",
        "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - The operating system is not able to \
         handle the specified number of clients, try with ",
    );
    let room = client.read_until(b"\r\n");
    let room: u64 = room.trim_end().parse().expect("a number of clients");
    assert!(room < 4_294_967_295, "{room}");
    client.ask("CONFIG GET maxclients\r\n", "*2\r\n$10\r\nmaxclients\r\n$5\r\n10000\r\n");
}

#[test]
fn a_string_for_which_there_is_no_memory_is_refused_without_a_crash() {
    let server = Server::start().expect("it starts");
    let mut client = connect(server.addr());
    client.ask(format!("CONFIG SET proto-max-bulk-len {}\r\n", i64::MAX), "+OK\r\n");
    for offset in [i64::MAX - 1, i64::MAX / 4] {
        let refusal = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n";
        client.ask(format!("SETRANGE a {offset} x\r\n"), refusal);
    }
    client.ask("EXISTS a\r\n", ":0\r\n");
}

#[test]
fn an_unauthenticated_client_that_does_not_read_is_closed() {
    let server = Server::builder().password("secret").start().expect("it starts");
    let stream = std::net::TcpStream::connect(server.addr()).expect("the server listens");
    let requests = "GET a\r\n".repeat(10_000);
    let mut sent = 0;
    while std::io::Write::write_all(&mut &stream, requests.as_bytes()).is_ok() {
        sent += requests.len();
        assert!(sent < 1 << 30, "the server takes everything");
    }
    connect(server.addr()).ask("GET a\r\n", "-NOAUTH Authentication required.\r\n");
    // Many of them that do not read their replies: the unsent bytes of all together stay few.
    let unauthenticated: Vec<_> = (0..CLIENTS).map(|_| connect(server.addr())).collect();
    let mut most = 0;
    for mut client in unauthenticated {
        client.send_as_far_as_it_goes("GET a\r\n".repeat(20_000));
        most = most.max(bytes_of_clients(&server));
    }
    assert!(most <= 16 * MEBIBYTE, "{most} bytes for {CLIENTS} clients");
}

/// The number of unauthenticated clients that connect at once.
const CLIENTS: usize = 200;

/// The memory of all clients, as the server counts it.
fn bytes_of_clients(server: &Server) -> usize {
    let mut friend = connect(server.addr());
    friend.ask("AUTH secret\r\n", "+OK\r\n");
    friend.send("INFO memory\r\n");
    let memory = friend.read_until(b"mem_cluster_links");
    let (_, rest) = memory.split_once("mem_clients_normal:").expect("INFO has it");
    rest.lines().next().and_then(|line| line.parse().ok()).expect("it is a number")
}

/// Redis 8.0.6 does so, too.
#[test]
fn an_unauthenticated_client_that_requests_too_much_at_once_is_closed() {
    let server = Server::builder().password("secret").start().expect("it starts");
    let refusal = "-NOAUTH Authentication required.\r\n";
    connect(server.addr()).ask("GET a\r\n".repeat(100), refusal.repeat(100));
    let mut client = connect(server.addr());
    client.send_as_far_as_it_goes("GET a\r\n".repeat(3000));
    // Of what arrived in several parts, the first may have been answered.
    assert!(client.rest().len() < 3000 * refusal.len());
    let mut friend = connect(server.addr());
    friend.ask("AUTH secret\r\n", "+OK\r\n");
    friend.ask("GET a\r\n".repeat(10_000), "$-1\r\n".repeat(10_000));
}

#[test]
fn an_unauthenticated_client_must_not_leave_a_request_unfinished() {
    let server = Server::builder().password("secret").start().expect("it starts");
    let mut client = connect(server.addr());
    client.send("*2\r\n$16385\r\n");
    assert_eq!(client.rest(), b"-ERR Protocol error: unauthenticated bulk length\r\n");
    // A thousand that declare more than an unauthenticated client may, each then closed, and a thousand that may.
    for (nth, head) in ["*1048576\r\n", "*2\r\n$536870912\r\n"].into_iter().cycle().take(1000).enumerate() {
        let mut client = connect(server.addr());
        client.send(head);
        let what = if nth.is_multiple_of(2) { "multibulk" } else { "bulk" };
        assert_eq!(client.rest(), format!("-ERR Protocol error: unauthenticated {what} length\r\n").as_bytes());
    }
    let unauthenticated: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let mut client = connect(server.addr());
            client.send("*10\r\n$16384\r\n");
            client
        })
        .collect();
    let bytes = bytes_of_clients(&server);
    assert!(bytes <= 16 * MEBIBYTE, "{bytes} bytes for announcements");
    drop(unauthenticated);
}

#[test]
fn a_request_longer_than_the_limit_closes_the_connection_without_a_reply() {
    let server = Server::builder().set("client-query-buffer-limit", "1mb").start().expect("it starts");
    let mut client = connect(server.addr());
    client.send(format!("*2\r\n$3\r\nGET\r\n${}\r\n", 2 * MEBIBYTE));
    client.send(vec![b'x'; MEBIBYTE + 1]);
    assert_eq!(client.rest(), b"");
}

/// Redis 8.0.6 does so, too: the line ends after the word have been read, too, before the request runs.
#[test]
fn a_word_as_long_as_the_limit_is_closed_before_it_is_run() {
    let server = Server::builder().set("client-query-buffer-limit", "1mb").start().expect("it starts");
    let mut client = connect(server.addr());
    client.ask(request(&[b"SET", b"a", &vec![b'x'; MEBIBYTE - 2]]), "+OK\r\n");
    client.send_as_far_as_it_goes(request(&[b"SET", b"b", &vec![b'x'; MEBIBYTE]]));
    assert_eq!(client.rest(), b"");
    let mut other = connect(server.addr());
    other.ask("EXISTS a b\r\n", ":1\r\n");
    other.send("INFO stats\r\n");
    let stats = other.read_until(b"acl_access_denied_auth");
    assert!(stats.contains("client_query_buffer_limit_disconnections:1\r\n"), "{stats}");
}

/// Redis 8.0.6 does so, too.
#[test]
fn complete_words_of_an_unfinished_request_do_not_count_as_query_buffer() {
    let server = Server::builder().set("client-query-buffer-limit", "1mb").start().expect("it starts");
    let mut client = connect(server.addr());
    let words = vec![b"x".repeat(1000); 3000];
    let mut words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    words.insert(0, b"DEL");
    let bytes = request(&words);
    let (begin, end) = bytes.split_at(bytes.len() - 100);
    client.send(begin);
    client.ask(end, ":0\r\n");
}

#[test]
fn all_unauthenticated_clients_together_get_little_query_buffer() {
    const CLIENTS: usize = 400;
    let server = Server::builder().password("secret").start().expect("it starts");
    let unfinished = [b"*10\r\n".as_slice(), &bulk(&[b'x'; 16 << 10]).repeat(9), b"$5\r\n"].concat();
    let unauthenticated: Vec<std::net::TcpStream> = (0..CLIENTS)
        .map(|_| {
            let client = std::net::TcpStream::connect(server.addr()).expect("the server listens");
            // The connection may be closed before everything is sent.
            let _ = std::io::Write::write_all(&mut &client, &unfinished);
            client
        })
        .collect();
    let mut site = server.client().expect("there is room");
    let held = || {
        let list = site.call(["CLIENT", "LIST"]).expect("it is answered");
        let list = list.text().expect("it is text").into_owned();
        let memory = list.split([' ', '\n']).filter_map(|word| word.strip_prefix("tot-mem="));
        (list.lines().count(), memory.filter_map(|bytes| bytes.parse::<usize>().ok()).sum::<usize>())
    };
    let mut held = held;
    wait_until("clients are closed until the others fit", || {
        let (clients, bytes) = held();
        clients < CLIENTS && bytes < 26 * MEBIBYTE
    });
    let mut friend = connect(server.addr());
    friend.ask("AUTH secret\r\n", "+OK\r\n");
    drop(unauthenticated);
    wait_until("they are gone", || held().0 == 2);
    // Their memory is free again.
    let mut client = connect(server.addr());
    client.send(&unfinished[..unfinished.len() - 4]);
    client.send(b"$5\r\nabcde\r\n");
    assert!(client.read_until(b"\r\n").starts_with("-ERR unknown command 'xxxx"));
}

#[test]
fn queued_commands_of_a_transaction_count_as_query_buffer() {
    let server = Server::builder().set("client-query-buffer-limit", "1mb").start().expect("it starts");
    let mut client = connect(server.addr());
    client.ask("CLIENT SETNAME one\r\nMULTI\r\n", "+OK\r\n+OK\r\n");
    // A word counts with a pointer to it: twelve bytes for each of these.
    let whole = MEBIBYTE / 12;
    client.send("PING\r\n".repeat(whole));
    client.expect("+QUEUED\r\n".repeat(whole));
    let mut other = connect(server.addr());
    other.send("CLIENT LIST\r\n");
    let list = other.read_until(b"\n\r\n");
    assert!(list.contains(&format!(" multi-mem={} ", 12 * whole)), "{list}");
    client.send("PING\r\n");
    assert_eq!(client.rest(), b"");
    other.send("INFO stats\r\n");
    let stats = other.read_until(b"acl_access_denied_auth");
    assert!(stats.contains("client_query_buffer_limit_disconnections:1\r\n"), "{stats}");
}

#[test]
fn an_idle_client_is_closed_when_its_time_is_up_and_a_busy_one_is_not() {
    let server = Server::builder().frozen().set("timeout", "60").start().expect("it starts");
    let (mut idle, mut busy) = (connect(server.addr()), connect(server.addr()));
    idle.ask("SET a 1\r\n", "+OK\r\n");
    busy.ask("GET a\r\n", "$1\r\n1\r\n");
    server.advance(std::time::Duration::from_secs(59));
    busy.ask("GET a\r\n", "$1\r\n1\r\n");
    server.advance(std::time::Duration::from_secs(1));
    assert_eq!(idle.rest(), b"");
    busy.ask("GET a\r\n", "$1\r\n1\r\n");
}

/// The field of a client's line in CLIENT LIST; none where it is not listed.
fn listed(client: &mut dunlin::Client, name: &str, field: &str) -> Option<usize> {
    let list = client.call(["CLIENT", "LIST"]).expect("it is answered");
    let list = list.text().expect("it is text").into_owned();
    let line = list.lines().find(|line| line.contains(&format!(" name={name} ")))?;
    let value = line.split(' ').find_map(|word| word.strip_prefix(&format!("{field}=")))?;
    Some(value.parse().expect("it is a number"))
}

#[test]
fn the_received_part_of_a_request_is_counted_as_words_and_as_unparsed_bytes() {
    let server = Server::start().expect("it starts");
    let (mut site, mut sender) = (server.client().expect("there is room"), connect(server.addr()));
    sender.ask("CLIENT SETNAME ann\r\n", "+OK\r\n");
    sender.send("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1000000\r\n");
    sender.send(vec![b'x'; 300_000]);
    wait_until("all of it has come", || listed(&mut site, "ann", "qbuf") == Some(300_000));
    assert_eq!(listed(&mut site, "ann", "argv-mem"), Some("SETa".len()));
    let total = listed(&mut site, "ann", "tot-mem").expect("it is listed");
    assert!((300_000..302_000).contains(&total), "{total}");
}

#[test]
fn a_client_that_sends_too_much_is_closed_before_its_request_is_run_and_is_listed_no_more() {
    let server = Server::builder().set("maxmemory-clients", "1mb").start().expect("it starts");
    let (mut site, mut sender) = (server.client().expect("there is room"), connect(server.addr()));
    sender.ask("CLIENT SETNAME ann\r\n", "+OK\r\n");
    sender.send(request(&[b"SET", b"a", &vec![b'x'; 900_000]]));
    sender.expect("+OK\r\n");
    // The connection may be closed before everything is sent.
    sender.send_as_far_as_it_goes(request(&[b"SET", b"a", &vec![b'y'; 2 * MEBIBYTE]]));
    assert_eq!(sender.rest(), b"");
    assert_eq!(listed(&mut site, "ann", "qbuf"), None);
    assert_eq!(site.call(["STRLEN", "a"]).expect("it is answered"), 900_000);
}

#[test]
fn a_client_is_closed_for_a_reply_beyond_its_limit_as_redis_counts_it() {
    let server = Server::start().expect("it starts");
    let mut site = server.client().expect("there is room");
    for number in 0..100 {
        site.call(["SADD", "s", &format!("{number:01000}")]).expect("it is answered");
    }
    // 16 KiB do not count, and the rest comes in blocks of 20,504 bytes.
    let replies = [("SMEMBERS s\r\n", 102_500, true), ("SMEMBERS s\r\n", 102_521, false)];
    let counts = [("SRANDMEMBER s -1000000\r\n", 102_520, true), ("SRANDMEMBER s -20\r\n", 102_520, false)];
    for (request, limit_bytes, is_closed) in replies.into_iter().chain(counts) {
        site.call(["CONFIG", "SET", "client-output-buffer-limit", &format!("normal {limit_bytes} 0 0")])
            .expect("it is a setting");
        let mut reader = connect(server.addr());
        reader.send(request);
        if is_closed {
            assert_eq!(reader.rest(), b"", "{request} {limit_bytes}");
        } else {
            reader.read_until(b"\r\n");
        }
    }
    let refusal = site.call(["EVAL", "return redis.pcall('SRANDMEMBER', 's', -100000000).err", "0"]);
    assert_eq!(refusal.expect("scripts are not clients"), "ERR value is out of range");
}
