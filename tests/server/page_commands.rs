//! Commands over HTTP: what the page may run, what it gets, and who is refused.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::page::start_with_token;
use crate::program::Running;
use crate::support::http::{self, Answer};
use crate::timeout::wait_until;
use crate::wire::connect;

/// A page that commands can be sent to.
struct Page {
    server: Running,
    address: SocketAddr,
    token: String,
}

impl Page {
    fn start(arguments: &[&str]) -> Page {
        let (server, address, token) = start_with_token(arguments);
        Page { server, address, token }
    }

    /// Sends a body as the page does, with more headers.
    fn post_with(&self, headers: &str, body: &[u8]) -> Answer {
        let headers = format!("Content-Type: application/json\r\nX-Dunlin: {}\r\n{headers}", self.token);
        http::post(self.address, "/command", &headers, body).expect("the page answers")
    }

    fn post(&self, body: &str) -> (u16, String) {
        let Answer { status, body, .. } = self.post_with("", body.as_bytes());
        (status, body)
    }

    /// The replies to commands, which are JSON.
    fn run(&self, commands: &str) -> String {
        let (status, body) = self.post(&format!("{{\"commands\":[{commands}]}}"));
        assert_eq!(status, 200, "{body}");
        let replies = body.strip_prefix("{\"replies\":[").and_then(|rest| rest.strip_suffix("]}"));
        replies.expect("it has replies").to_owned()
    }
}

#[test]
fn commands_have_typed_replies() {
    let page = Page::start(&[]);
    assert_eq!(page.token.len(), 32, "128 bits");
    let replies = page.run(
        r#"["SET","k","v"],["GET","k"],["GET","no"],["INCR","n"],["LPUSH","k","x"],["ZADD","z","1.5","m"],
           ["ZSCORE","z","m"],["HSET","h","f","g"],["HGETALL","h"],["SADD","s","a"],["SMEMBERS","s"],["no-such"]"#,
    );
    assert_eq!(
        replies,
        concat!(
            r#"{"status":"OK"},"v",null,{"integer":"1"},"#,
            r#"{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"},{"integer":"1"},"#,
            r#"{"double":"1.5"},{"integer":"1"},{"map":[["f","g"]]},{"integer":"1"},{"set":["a"]},"#,
            r#"{"error":"ERR unknown command 'no-such', with args beginning with: "}"#
        )
    );
}

#[test]
fn any_bytes_come_and_go_unchanged() {
    let page = Page::start(&[]);
    let hostile = r#"<img src=x onerror=alert(1)>\"</script>\u0000\u2028"#;
    assert_eq!(page.run(&format!(r#"["SET","{hostile}",{{"base64":"/wD+"}}]"#)), r#"{"status":"OK"}"#);
    let keys = page.run(r#"["KEYS","*"]"#);
    assert_eq!(keys, "[\"<img src=x onerror=alert(1)>\\\"</script>\\u0000\u{2028}\"]");
    assert_eq!(page.run(&format!(r#"["GET","{hostile}"]"#)), r#"{"base64":"/wD+"}"#);
    page.run(r#"["SETRANGE","large","10000000","x"]"#);
    let large = page.run(r#"["GET","large"]"#);
    assert_eq!(large.len(), 2 + 6 * 10_000_000 + 1, "zeros are escaped");
}

#[test]
fn long_strings_are_cut_where_a_batch_asks_for_it() {
    let page = Page::start(&[]);
    let cut = |bytes: u32, commands: &str| page.post(&format!("{{\"cut\":{bytes},\"commands\":[{commands}]}}")).1;
    page.run(r#"["RPUSH","l","short","longer"],["SETRANGE","large","100000000","x"],["HSET","h","field","a\u00e9bc"]"#);
    assert_eq!(cut(5, r#"["LRANGE","l","0","-1"]"#), r#"{"replies":[["short",{"cut":"longe","length":6}]]}"#);
    assert_eq!(
        cut(2, r#"["HGETALL","h"],["GET","large"],["ECHO","abc"],["LLEN","l"]"#),
        concat!(
            r#"{"replies":[{"map":[[{"cut":"fi","length":5},{"cut":"a","length":5}]]},"#,
            r#"{"cut":"\u0000\u0000","length":100000001},{"cut":"ab","length":3},{"integer":"2"}]}"#
        )
    );
    assert_eq!(
        cut(1, r#"["MULTI"],["LPOP","l"],["EXEC"],["EVAL","return {KEYS[1], redis.call('LPOP', 'l')}","1","key"]"#),
        concat!(
            r#"{"replies":[{"status":"OK"},{"status":"QUEUED"},[{"cut":"s","length":5}],"#,
            r#"[{"cut":"k","length":3},{"cut":"l","length":6}]]}"#
        ),
        "a script has whole strings, and its reply is cut"
    );
    assert_eq!(page.post(r#"{"cut":0,"commands":[]}"#).0, 400);
}

#[test]
fn long_strings_of_a_script_are_cut_however_long_it_takes_and_whatever_it_returns() {
    let page = Page::start(&["--busy-reply-threshold", "20"]);
    let cut = |commands: &str| page.post(&format!("{{\"cut\":1,\"commands\":[{commands}]}}")).1;
    let suspended = r#"["EVAL","local began = redis.call('TIME') repeat local now = redis.call('TIME')
        until (now[1] - began[1]) * 1000000 + now[2] - began[2] > 50000 return 'abc'","0"]"#
        .replace('\n', " ");
    assert_eq!(cut(&suspended), r#"{"replies":[{"cut":"a","length":3}]}"#);
    assert_eq!(
        cut(&format!(r#"["MULTI"],{suspended},["ECHO","defg"],["EXEC"]"#)),
        concat!(
            r#"{"replies":[{"status":"OK"},{"status":"QUEUED"},{"status":"QUEUED"},"#,
            r#"[{"cut":"a","length":3},{"cut":"d","length":4}]]}"#
        )
    );
    let many = cut(r#"["EVAL","local all = {} for number = 1, 60000 do all[number] = 'abc' end return all","0"]"#);
    assert_eq!(many.matches(r#"{"cut":"a","length":3}"#).count(), 60_000);
}

#[test]
fn the_rows_of_a_list_of_large_elements_are_all_there() {
    let page = Page::start(&[]);
    let element = "x".repeat(1 << 20);
    let mut client = connect(page.server.address());
    for _ in 0..200 {
        client.send(format!("*3\r\n$5\r\nRPUSH\r\n$1\r\nl\r\n$1048576\r\n{element}\r\n"));
        client.read_until(b"\r\n");
    }
    assert!(page.run(r#"["LRANGE","l","0","199"]"#).contains("too long for one answer"));
    let (status, rows) = page.post(r#"{"cut":100,"commands":[["LRANGE","l","0","199"]]}"#);
    assert_eq!((status, rows.matches(r#""length":1048576"#).count()), (200, 200));
    assert!(rows.len() < 40_000, "{}", rows.len());
}

#[test]
fn a_batch_is_a_client_of_its_own_that_may_not_wait() {
    let page = Page::start(&["--test-kit", "yes"]);
    let named = page.run(r#"["CLIENT","GETNAME"],["CLIENT","LIST"],["SELECT","3"],["SET","k","3"]"#);
    assert!(named.starts_with("\"page\"") && named.contains("name=page"), "{named}");
    assert_eq!(page.run(r#"["GET","k"]"#), "null", "the next batch begins in database 0");
    assert_eq!(page.post(r#"{"database":3,"commands":[["GET","k"]]}"#).1, r#"{"replies":["3"]}"#);
    assert_eq!(
        page.run(r#"["BLPOP","list","0"],["BZPOPMIN","z","0"],["XREAD","BLOCK","0","STREAMS","x","$"]"#),
        "null,null,null"
    );
    assert_eq!(page.run(r#"["WAIT","1","0"]"#), r#"{"integer":"0"}"#);
    for (command, name) in [
        (r#"["SUBSCRIBE","c"]"#, "SUBSCRIBE"),
        (r#"["PSUBSCRIBE","*"]"#, "PSUBSCRIBE"),
        (r#"["SSUBSCRIBE","c"]"#, "SSUBSCRIBE"),
        (r#"["MONITOR"]"#, "MONITOR"),
        (r#"["DUNLIN","WAIT","BLOCKED","k"]"#, "DUNLIN|WAIT"),
    ] {
        let refusal = format!(r#"{{"error":"ERR {name} isn't allowed for a DENY BLOCKING client"}}"#);
        assert_eq!(page.run(command), refusal);
        if name == "DUNLIN|WAIT" {
            continue;
        }
        assert_eq!(page.run(&format!(r#"["MULTI"],{command}"#)), format!(r#"{{"status":"OK"}},{refusal}"#));
    }
    assert_eq!(page.run(r#"["MULTI"],["SET","m","1"]"#), r#"{"status":"OK"},{"status":"QUEUED"}"#);
    assert_eq!(page.run(r#"["EXEC"],["GET","m"]"#), r#"{"error":"ERR EXEC without MULTI"},null"#);
    assert_eq!(page.run(r#"["MULTI"],["INCR","m"],["EXEC"]"#).split(',').next_back(), Some(r#"[{"integer":"1"}]"#));
    let after = page.run(r#"["QUIT"],["SET","q","1"]"#);
    assert_eq!(after, r#"{"status":"OK"},{"error":"ERR the client was closed"}"#);
    assert_eq!(page.run(r#"["EXISTS","q"]"#), r#"{"integer":"0"}"#);
    assert_eq!(page.run(r#"["CLIENT","REPLY","OFF"],["PING"]"#), "null,null");
}

#[test]
fn a_file_of_all_data_is_a_reply_as_any_other() {
    let page = Page::start(&[]);
    let replies = page.run(r#"["SET","a","b"],["REPLCONF","rdb-only","1"],["SYNC"],["PSYNC","?","-1"],["GET","a"]"#);
    assert!(replies.starts_with(r#"{"status":"OK"},{"status":"OK"},{"#) && replies.ends_with(r#","b""#), "{replies}");
    assert_eq!(replies.matches("UkVESVMwMDEy").count(), 2, "REDIS0012 in Base64: {replies}");
}

#[test]
fn a_batch_waits_while_clients_are_paused_and_others_are_answered() {
    let page = Page::start(&[]);
    let mut client = connect(page.server.address());
    client.ask("CLIENT PAUSE 100000 WRITE\r\n", "+OK\r\n");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| page.run(r#"["SET","k","v"]"#));
        crate::timeout::wait_until("it waits", || page.run(r#"["INFO","clients"]"#).contains("blocked_clients:1"));
        client.ask("CLIENT UNPAUSE\r\n", "+OK\r\n");
        assert_eq!(waiting.join().expect("it is answered"), r#"{"status":"OK"}"#);
    });
}

#[test]
fn each_batch_runs_in_the_world_that_it_names() {
    let page = Page::start(&["--test-kit", "yes"]);
    connect(page.server.address()).ask("DUNLIN WORLD cart\r\nSET a 1\r\n", "+OK\r\n+OK\r\n");
    assert_eq!(page.post(r#"{"world":"cart","commands":[["GET","a"]]}"#).1, r#"{"replies":["1"]}"#);
    assert_eq!(page.run(r#"["GET","a"],["DUNLIN","WORLD","cart"],["GET","a"]"#), r#"null,{"status":"OK"},"1""#);
    assert_eq!(page.post(r#"{"world":"none","commands":[]}"#).0, 404);
    assert_eq!(page.post(r#"{"database":16,"commands":[]}"#).0, 400);
}

#[test]
fn what_is_no_batch_is_refused_and_nothing_runs() {
    let page = Page::start(&[]);
    let deep = "[".repeat(500_000);
    for body in ["", "{", r#"{"commands":[["SET","k","v"],"GET"]}"#, r#"{"commands":[["SET","k",1]]}"#, &deep] {
        let (status, answer) = page.post(body);
        assert!(status == 400 && answer.starts_with("{\"error\":\""), "{answer}");
    }
    let huge = format!(r#"{{"commands":[["SET","k","{}"]]}}"#, "x".repeat(1 << 20));
    assert_eq!(page.post(&huge).0, 413);
    assert_eq!(page.run(r#"["DBSIZE"]"#), r#"{"integer":"0"}"#);
}

#[test]
fn other_sites_forms_and_those_without_the_token_are_refused_and_nothing_runs() {
    let page = Page::start(&[]);
    let (address, token) = (page.address, &page.token);
    let body = br#"{"commands":[["SET","k","v"]]}"#;
    let json = "Content-Type: application/json\r\n";
    for (headers, status) in [
        (json.to_owned(), 403),
        (format!("{json}X-Dunlin: \r\n"), 403),
        (format!("{json}X-Dunlin: {}\r\n", "0".repeat(32)), 403),
        (format!("X-Dunlin: {token}\r\n"), 415),
        (format!("X-Dunlin: {token}\r\nContent-Type: text/plain\r\n"), 415),
        (format!("X-Dunlin: {token}\r\nContent-Type: application/x-www-form-urlencoded\r\n"), 415),
        (format!("{json}X-Dunlin: {token}\r\nOrigin: http://evil.test\r\n"), 403),
        (format!("{json}X-Dunlin: {token}\r\nOrigin: null\r\n"), 403),
        (format!("{json}X-Dunlin: {token}\r\nSec-Fetch-Site: cross-site\r\n"), 403),
        (format!("{json}X-Dunlin: {token}\r\nHost: evil.test\r\n"), 421),
    ] {
        let Answer { status: given, head, body } =
            http::post(address, "/command", &headers, body).expect("the page answers");
        assert_eq!(given, status, "{headers}");
        assert!(body.starts_with("{\"error\":\""), "{body}");
        assert!(!head.contains("access-control") && head.contains("content-security-policy"), "{head}");
    }
    assert_eq!(page.run(r#"["DBSIZE"]"#), r#"{"integer":"0"}"#);
}

#[test]
fn without_tokens_the_header_is_still_needed() {
    let page = Page::start(&["--page-token", "no"]);
    assert_eq!(page.token, "");
    assert_eq!(page.run(r#"["PING"]"#), r#"{"status":"PONG"}"#);
    let answer = http::post(page.address, "/command", "Content-Type: application/json\r\n", b"{}");
    assert_eq!(answer.expect("the page answers").status, 403);
}

#[test]
fn where_users_log_in_a_batch_has_the_rights_of_its_user() {
    let page = Page::start(&["--requirepass", "pw"]);
    let mut client = connect(page.server.address());
    client.ask("AUTH pw\r\nACL SETUSER a on >x +@read +client ~app:*\r\n", "+OK\r\n+OK\r\n");
    let post = |login: &str, commands: &str| page.post_with(login, format!("{{\"commands\":[{commands}]}}").as_bytes());
    let Answer { status, head, .. } = post("", r#"["PING"]"#);
    assert!(status == 401 && !head.contains("www-authenticate"), "no browser shows a dialog for it: {head}");
    assert_eq!(post("Authorization: Basic YTp5\r\n", r#"["PING"]"#).status, 401);
    let Answer { body, .. } =
        post("Authorization: Basic YTp4\r\n", r#"["GET","app:1"],["GET","b"],["SET","app:1","v"]"#);
    assert_eq!(body.matches("NOPERM").count(), 2, "{body}");
    assert!(body.starts_with("{\"replies\":[null,"), "{body}");
    let denied = http::get(page.address, "/metrics", "Authorization: Basic OnB3\r\n").expect("it answers").body;
    for what in ["cmd_total 0", "key_total 0", "auth_total 1"] {
        assert!(denied.contains(&format!("\nredis_acl_access_denied_{what}\n")), "{what} in {denied}");
    }
    let Answer { body, .. } = post("Authorization: Basic OnB3\r\n", r#"["ACL","LOG"]"#);
    assert!(!body.contains("\"app:1\""), "what the page was refused is not the application's: {body}");
    for part in ["\"auth\"", "\"username\",\"a\"", "name=page"] {
        assert!(body.contains(part), "{part} in {body}");
    }
}

#[test]
fn the_page_is_sent_with_its_policy_and_not_twice() {
    let page = Page::start(&[]);
    let Answer { status, head, body } = http::get(page.address, "/", "").expect("the page answers");
    assert!(status == 200 && body.starts_with("<!doctype html>"), "{head}");
    for header in [
        "content-type: text/html; charset=utf-8",
        "script-src 'self'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cross-origin-opener-policy: same-origin",
        "cross-origin-resource-policy: same-origin",
    ] {
        assert!(head.contains(header), "{header} in {head}");
    }
    let etag = head.lines().find_map(|line| line.strip_prefix("etag: ")).expect("it has a tag");
    let Answer { status, body, .. } =
        http::get(page.address, "/", &format!("If-None-Match: {etag}\r\n")).expect("the page answers");
    assert!(status == 304 && body.is_empty(), "{body}");
    assert_eq!(http::get(page.address, "/assets/none.js", "").expect("the page answers").status, 404);
}

#[test]
fn a_reply_that_is_too_long_is_an_error_and_the_page_goes_on() {
    let page = Page::start(&[]);
    let mut client = connect(page.server.address());
    client.ask("SETRANGE long 20000000 x\r\nSETRANGE zeros 12000000 x\r\n", ":20000001\r\n:12000001\r\n");
    let too_long = r#"{"error":"ERR the reply is too long for one answer; ask for a part of it"}"#;
    assert_eq!(page.run(r#"["GET","long"],["STRLEN","long"]"#), format!(r#"{too_long},{{"integer":"20000001"}}"#));
    let stopped = r#"{"error":"ERR the replies before this one are too long for one batch"}"#;
    assert_eq!(page.run(r#"["GET","zeros"],["PING"]"#), format!("{too_long},{stopped}"), "zeros are long as JSON");
}

#[test]
fn answers_that_nobody_reads_leave_no_room_for_further_long_ones() {
    let page = Page::start(&[]);
    let mut client = connect(page.server.address());
    let text = "v".repeat(12 << 20);
    client.ask(format!("*3\r\n$3\r\nSET\r\n$4\r\ntext\r\n${}\r\n{text}\r\n", text.len()), "+OK\r\n");
    let body = r#"{"commands":[["GET","text"]]}"#;
    let unread: Vec<TcpStream> = (0..2)
        .map(|_| {
            let mut socket = TcpStream::connect(page.address).expect("it listens");
            let head = format!("Host: {}\r\nContent-Type: application/json\r\nX-Dunlin: {}", page.address, page.token);
            let request = format!("POST /command HTTP/1.1\r\n{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            socket.write_all(request.as_bytes()).expect("it is taken");
            let mut begin = [0; 12];
            socket.read_exact(&mut begin).expect("the answer begins");
            assert_eq!(&begin, b"HTTP/1.1 200");
            socket
        })
        .collect();
    let (status, answer) = page.post(body);
    assert_eq!(status, 503, "{}", &answer[..answer.len().min(100)]);
    assert_eq!(page.run(r#"["STRLEN","text"]"#), r#"{"integer":"12582912"}"#, "a short one has room");
    drop(unread);
    wait_until("there is room again", || page.post(body).0 == 200);
}

/// Otherwise it would use them up while somebody looks at a test, or be silent for good.
#[test]
fn faults_do_not_concern_the_page() {
    let page = Page::start(&["--test-kit", "yes"]);
    let mut client = connect(page.server.address());
    client.ask("DUNLIN FAULT ADD quiet TIMES 1 ERROR no\r\n", "+OK\r\n");
    assert_eq!(page.run(r#"["GET","a"]"#), "null");
    client.ask("GET a\r\nGET a\r\n", "-no\r\n$-1\r\n");
}

#[test]
fn what_the_page_asks_is_neither_in_the_journal_nor_judged_by_strict_mode() {
    let page = Page::start(&["--test-kit", "yes"]);
    let mut client = connect(page.server.address());
    client.ask("DUNLIN STRICT SET ALL error\r\nDUNLIN JOURNAL START\r\nGET a\r\n", "+OK\r\n+OK\r\n$-1\r\n");
    let replies = page.run(
        r#"["ZADD","z","90071992547409930","m"],
           ["EVAL","return redis.call('ZADD',KEYS[1],'90071992547409930','n')","1","z"]"#,
    );
    assert_eq!(replies, r#"{"integer":"1"},{"integer":"1"}"#);
    client.ask("DUNLIN STRICT FINDINGS\r\nDUNLIN JOURNAL COUNT\r\n", "*0\r\n:1\r\n");
    client.ask("ZADD z 90071992547409930 o\r\n", "-STRICT lossy-scores: ");
}

#[test]
fn what_the_page_asks_is_not_counted() {
    let page = Page::start(&["--test-kit", "yes"]);
    let mut waiting = connect(page.server.address());
    waiting.send("BLPOP jobs 0\r\n");
    wait_until("the client waits", || scrape(&page).contains("\nredis_blocked_clients 1\n"));
    let figures = |text: &str| -> Vec<String> {
        let is_counted = |line: &&str| COUNTED.iter().any(|name| line.starts_with(name));
        text.lines().filter(is_counted).map(str::to_owned).collect()
    };
    let before = figures(&scrape(&page));
    let replies = page.run(
        r#"["SET","a","1"],["GET","a"],["GET","none"],["LPUSH","a","x"],["NONE"],["GET"],["CONFIG","GET","port"],
           ["MULTI"],["INCR","a"],["LPUSH","a","x"],["EXEC"],["EVAL","return redis.call('GET', KEYS[1])","1","a"]"#,
    );
    assert!(replies.starts_with(r#"{"status":"OK"},"1",null,{"error":"WRONGTYPE "#), "{replies}");
    assert_eq!(figures(&scrape(&page)), before);
    let info = page.run(r#"["INFO","stats","clients"]"#);
    assert!(info.contains("connected_clients:1\\r\\n"), "{info}");
    page.run(r#"["RPUSH","jobs","1"]"#);
    waiting.read_until(b"$1\r\n1\r\n");
    wait_until("what the page has unblocked is counted", || {
        let text = scrape(&page);
        text.contains("\nredis_commands_total{cmd=\"blpop\"} 1\n") && !text.contains("cmd=\"rpush\"")
    });
    page.run(r#"["CONFIG","RESETSTAT"]"#);
    assert!(scrape(&page).contains("\nredis_commands_processed_total 0\n"));
    waiting.ask("GET a\r\n", "$1\r\n2\r\n");
    assert!(scrape(&page).contains("\nredis_commands_total{cmd=\"get\"} 1\n"));
}

/// The beginnings of the samples that tell what requests did.
const COUNTED: [&str; 6] = [
    "redis_command",
    "redis_connect",
    "redis_errors_total",
    "redis_keyspace_",
    "redis_latency_percentiles",
    "redis_total_error_replies",
];

fn scrape(page: &Page) -> String {
    http::get(page.address, "/metrics", "").expect("the page answers").body
}
