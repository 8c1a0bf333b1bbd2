//! The HTTP port of the program: the metrics for Prometheus, and whether the server is ready.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::files::Folder;
use crate::program::{self, Running};
use crate::support::http::{self, Answer};
use crate::timeout::wait_until;
use crate::wire::connect;

/// A server with a page, and the address of the page.
fn start(arguments: &[&str]) -> (Running, SocketAddr) {
    let (server, address, _) = start_with_token(arguments);
    (server, address)
}

/// A server with a page, the address of the page, and its token, which is empty if there is none.
pub(crate) fn start_with_token(arguments: &[&str]) -> (Running, SocketAddr, String) {
    let mut server = program::start(&[&["--port", "0", "--page-port", "0"], arguments].concat());
    let line = server.line_with("The page is at http://").expect("the log says where it is");
    let (_, link) = line.rsplit_once("http://").expect("it is a URL");
    let (address, rest) = link.split_once('/').expect("it has a path");
    let token = rest.strip_prefix("#token=").unwrap_or_default().to_owned();
    (server, address.parse().expect("it is an address"), token)
}

fn exchange(address: SocketAddr, head: &str) -> Answer {
    http::exchange(address, head).expect("the page answers")
}

fn get(address: SocketAddr, path: &str, headers: &str) -> Answer {
    http::get(address, path, headers).expect("the page answers")
}

fn value<'t>(text: &'t str, sample: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '))
}

#[test]
fn the_metrics_are_what_the_server_counts() {
    let (server, address) = start(&["--test-kit", "yes"]);
    let mut client = connect(server.address());
    client.ask(
        "SET a 1\r\nGET a\r\nGET b\r\nLPUSH a x\r\n",
        "+OK\r\n$1\r\n1\r\n$-1\r\n-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
    );
    let Answer { status, head, body: text } = get(address, "/metrics", "");
    assert_eq!(status, 200);
    assert!(head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"), "{head}");
    for (sample, expected) in [
        ("redis_up", "1"),
        ("redis_connected_clients", "1"),
        ("redis_db_keys{db=\"db0\"}", "1"),
        ("redis_db_keys{db=\"db15\"}", "0"),
        ("redis_keyspace_hits_total", "1"),
        ("redis_keyspace_misses_total", "1"),
        ("redis_commands_total{cmd=\"get\"}", "2"),
        ("redis_commands_failed_calls_total{cmd=\"lpush\"}", "1"),
        ("redis_errors_total{err=\"WRONGTYPE\"}", "1"),
        ("redis_commands_latencies_usec_bucket{cmd=\"get\",le=\"+Inf\"}", "2"),
        ("redis_rdb_last_bgsave_status", "1"),
        ("redis_config_client_output_buffer_limit_bytes{class=\"pubsub\",limit=\"hard\"}", "33554432"),
    ] {
        assert_eq!(value(&text, sample), Some(expected), "{sample} in {text}");
    }
}

#[test]
fn a_node_of_a_cluster_has_metrics_of_its_cluster_and_its_replicas() {
    let (_server, address) = start(&["--test-kit", "yes", "--cluster", "3", "--replicas", "1"]);
    let metrics = |world: &str| get(address, &format!("/metrics?world={world}"), "").body;
    let (primary, replica) = (metrics("default"), metrics("node-3"));
    for (text, sample, expected) in [
        (&primary, "redis_cluster_state", "1"),
        (&primary, "redis_cluster_slots_ok", "16384"),
        (&primary, "redis_cluster_slots_pfail", "0"),
        (&primary, "redis_cluster_slots_fail", "0"),
        (&primary, "redis_cluster_known_nodes", "6"),
        (&primary, "redis_cluster_size", "3"),
        (&primary, "redis_connected_slaves", "1"),
        (&replica, "redis_cluster_state", "1"),
        (&replica, "redis_slave_priority", "100"),
    ] {
        assert_eq!(value(text, sample), Some(expected), "{sample} in {text}");
    }
    let announced = ["redis_cluster_messages_sent_total", "redis_cluster_stats_messages_pong_sent"];
    for sample in announced {
        let sent = value(&primary, sample).expect("it is there").parse::<u64>().expect("it is a number");
        assert!(sent >= 5, "it has announced itself to five nodes, but {sample} is {sent}");
    }
    let with_labels = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("{name}{{")));
        line.and_then(|line| line.rsplit_once("} ")).map(|(_, value)| value.to_owned())
    };
    assert_eq!(with_labels(&replica, "redis_master_link_up").as_deref(), Some("1"));
    assert_eq!(with_labels(&replica, "redis_master_last_io_seconds_ago").as_deref(), Some("0"));
    let applied = with_labels(&replica, "redis_slave_repl_offset");
    assert_eq!((with_labels(&primary, "redis_connected_slave_offset_bytes"), applied.is_some()), (applied, true));
}

#[test]
fn a_scrape_is_no_client_and_no_command() {
    let (server, address) = start(&[]);
    let count = || {
        let text = get(address, "/metrics", "").body;
        ["redis_connections_received_total", "redis_commands_processed_total", "redis_connected_clients"]
            .map(|sample| value(&text, sample).map(str::to_owned).expect("it is there"))
    };
    assert_eq!(count(), ["0", "0", "0"]);
    assert_eq!(count(), ["0", "0", "0"]);
    connect(server.address()).ask("PING\r\n", "+PONG\r\n");
}

#[test]
fn each_world_has_metrics_of_its_own() {
    let (server, address) = start(&["--test-kit", "yes"]);
    let mut client = connect(server.address());
    client.ask("DUNLIN WORLD cart\r\nSET a 1\r\nSET b 1\r\n", "+OK\r\n+OK\r\n+OK\r\n");
    let keys = |path: &str| {
        let Answer { status, body: text, .. } = get(address, path, "");
        (status, value(&text, "redis_db_keys{db=\"db0\"}").unwrap_or_default().to_owned())
    };
    assert_eq!(keys("/metrics?world=cart"), (200, "2".to_owned()));
    assert_eq!(keys("/metrics?world=default"), (200, "0".to_owned()));
    assert_eq!(keys("/metrics"), (200, "0".to_owned()));
    assert_eq!(keys("/metrics?world=none").0, 404);
    assert_eq!(keys("/metrics?world=%2e").0, 404);
    assert_eq!(keys("/metrics?world=%63art"), (200, "2".to_owned()));
    assert_eq!(keys("/metrics?what=1&world=none").0, 400);
}

#[test]
fn findings_and_faults_of_the_test_kit_are_counted() {
    let (server, address) = start(&["--test-kit", "yes"]);
    let mut client = connect(server.address());
    client.ask("DUNLIN STRICT SET lossy-scores warn\r\nZADD z 90071992547409930 m\r\n", "+OK\r\n:1\r\n");
    client.ask("DUNLIN FAULT ADD \"o\\\"ops\" COMMAND get ERROR \"ERR no\"\r\nGET a\r\n", "+OK\r\n-ERR no\r\n");
    let text = get(address, "/metrics", "").body;
    assert_eq!(value(&text, "dunlin_strict_findings_total{rule=\"lossy-scores\",level=\"warn\"}"), Some("1"));
    assert_eq!(value(&text, "dunlin_strict_findings_total{rule=\"lossy-scores\",level=\"error\"}"), Some("0"));
    assert_eq!(value(&text, "dunlin_strict_findings_total{rule=\"cross-slot\",level=\"warn\"}"), Some("0"));
    assert_eq!(value(&text, "dunlin_faults_fired_total{fault=\"o\\\"ops\"}"), Some("1"));
}

#[test]
fn measures_of_the_configuration_are_there_in_each_world() {
    let measure = ["--test-kit", "yes", "--measure", "queue", "email", "jobs:email", "failed", "jobs:dead"];
    let (server, address) = start(&[&measure[..], &["--measure", "set", "seen", "seen:*"]].concat());
    let mut client = connect(server.address());
    client.ask("RPUSH jobs:email a b\r\nDUNLIN WORLD cart\r\nRPUSH jobs:dead a\r\n", ":2\r\n+OK\r\n:1\r\n");
    let sample = |world: &str, sample: &str| {
        let text = get(address, &format!("/metrics?world={world}"), "").body;
        value(&text, sample).map(str::to_owned)
    };
    let (length, failed) = ("dunlin_queue_length{queue=\"email\"}", "dunlin_queue_failed_total{queue=\"email\"}");
    assert_eq!([length, failed].map(|name| sample("default", name)), [Some("2".into()), Some("0".into())]);
    assert_eq!([length, failed].map(|name| sample("cart", name)), [Some("0".into()), Some("1".into())]);
    assert_eq!(sample("default", "dunlin_set_cardinality{set=\"seen\"}"), Some("0".into()));
    assert_eq!(sample("default", "dunlin_worlds"), Some("2".into()));
}

#[test]
fn the_offset_of_the_clock_is_told() {
    let (server, address) = start(&["--test-kit", "yes"]);
    let mut client = connect(server.address());
    client.send("DUNLIN ADVANCE 3600000\r\n");
    client.read_until(b"\r\n");
    let text = get(address, "/metrics", "").body;
    let offset = value(&text, "dunlin_clock_offset_seconds").and_then(|text| text.parse::<f64>().ok());
    assert!(offset.is_some_and(|offset| (3599.0..=3601.0).contains(&offset)), "{offset:?}");
}

#[test]
fn the_lag_of_expired_keys_and_fields_is_measured() {
    let (server, address) = start(&[]);
    let mut client = connect(server.address());
    client.ask("SET a 1 PX 1\r\nHSET h f 1 g 2\r\n", "+OK\r\n:2\r\n");
    client.ask("HPEXPIRE h 1 FIELDS 2 f g\r\n", "*2\r\n:1\r\n:1\r\n");
    wait_until("they are removed", || {
        let text = get(address, "/metrics", "").body;
        let removals = value(&text, "dunlin_expiry_lag_seconds_count").expect("it is there");
        assert_eq!(value(&text, "dunlin_expiry_lag_seconds_bucket{le=\"+Inf\"}"), Some(removals));
        removals == "3"
    });
}

#[test]
fn other_paths_and_methods_are_refused() {
    let (_server, address) = start(&[]);
    assert_eq!(get(address, "/nothing", "").status, 404);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "BREW"] {
        let Answer { status, head, .. } =
            exchange(address, &format!("{method} /metrics HTTP/1.1\r\nHost: {address}\r\n"));
        assert!(status == 405 && head.contains("allow: get, head"), "{method}: {head}");
    }
    for method in ["GET", "OPTIONS", "PUT"] {
        let Answer { status, head, .. } =
            exchange(address, &format!("{method} /command HTTP/1.1\r\nHost: {address}\r\n"));
        assert!(status == 405 && head.contains("allow: post"), "{method}: {head}");
        assert!(!head.contains("access-control"), "no browser may send it for another site: {head}");
    }
    let Answer { status, head, body } = exchange(address, &format!("HEAD /ready HTTP/1.1\r\nHost: {address}\r\n"));
    assert!(status == 200 && head.contains("content-length: 6") && body.is_empty(), "{head}");
}

#[test]
fn names_and_sites_of_others_are_refused() {
    let (_server, address) = start(&["--page-host", "metrics.test"]);
    for host in ["evil.test", "0.0.0.0", "localhost."] {
        let head = format!("GET /metrics HTTP/1.1\r\nHost: {host}:{}\r\n", address.port());
        let Answer { status, head, body } = exchange(address, &head);
        assert!(status == 421 && body.contains("page-host"), "{host}: {head}");
    }
    assert_eq!(exchange(address, "GET /metrics HTTP/1.0\r\n").status, 421, "no name at all");
    assert_eq!(exchange(address, "GET /metrics HTTP/1.1\r\nHost: metrics.test\r\n").status, 200);
    for header in ["Origin: null\r\n", "Origin: http://evil.test\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
        let Answer { status, head, .. } = get(address, "/metrics", header);
        assert_eq!(status, 403, "{header}");
        assert!(!head.contains("access-control"), "{head}");
    }
    let Answer { head, .. } = get(address, "/metrics", "Sec-Fetch-Site: none\r\n");
    for header in ["x-content-type-options: nosniff", "frame-ancestors 'none'", "cache-control: no-store"] {
        assert!(head.contains(header), "{header} in {head}");
    }
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                  base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    for path in ["/", "/assets/app.js"] {
        let Answer { head, .. } = get(address, path, "");
        assert!(head.contains(&format!("content-security-policy: {policy}\r\n")), "{head}");
    }
}

#[test]
fn where_users_log_in_the_metrics_are_for_those_who_may_run_info() {
    let (server, address) = start(&["--requirepass", "pw"]);
    let mut client = connect(server.address());
    client.ask("AUTH pw\r\nACL SETUSER a on >x +info\r\nACL SETUSER b on >x +@all -info\r\n", "+OK\r\n+OK\r\n+OK\r\n");
    let Answer { status, head, .. } = get(address, "/metrics", "");
    assert!(status == 401 && head.contains("www-authenticate: basic realm=\"dunlin\""), "{head}");
    for (credentials, expected) in [
        ("OnB3", 200),             // :pw
        ("ZGVmYXVsdDpwdw==", 200), // default:pw
        ("YTp4", 200),             // a:x
        ("Yjp4", 403),             // b:x
        ("YTp5", 401),             // a:y
        ("!", 401),
    ] {
        assert_eq!(get(address, "/metrics", &format!("Authorization: Basic {credentials}\r\n")).status, expected);
    }
    assert_eq!(get(address, "/ready", "").status, 200, "that it is ready is no secret");
}

#[test]
fn a_server_that_loads_its_data_is_not_ready() {
    let folder = Folder::new("page-loading");
    let arguments = ["--dir", folder.text(), "--save", "900 1", "--enable-debug-command", "yes"];
    let (server, _) = start(&arguments);
    connect(server.address()).ask("DEBUG POPULATE 1000\r\nSAVE\r\n", "+OK\r\n+OK\r\n");
    drop(server);
    let (server, address) = start(&[&arguments[..], &["--key-load-delay", "100000"]].concat());
    let Answer { status, body, .. } = get(address, "/ready", "");
    assert_eq!((status, &*body), (503, "loading\n"));
    // At that pace it would take until the timeout.
    connect(server.address()).ask("CONFIG SET key-load-delay 0\r\n", "+OK\r\n");
    wait_until("it is ready", || get(address, "/ready", "").status == 200);
}

#[test]
fn long_heads_are_refused_and_silent_connections_harm_nobody() {
    let (server, address) = start(&[]);
    let long = format!("X: {}\r\n", "x".repeat(20_000));
    assert_eq!(get(address, "/ready", &long).status, 431);
    let silent: Vec<TcpStream> = (0..128).map(|_| TcpStream::connect(address).expect("it listens")).collect();
    connect(server.address()).ask("PING\r\n", "+PONG\r\n");
    drop(silent);
    assert_eq!(get(address, "/ready", "").status, 200, "the places are free again");
}

#[test]
fn a_new_connection_takes_the_place_of_the_one_that_is_idle_for_longest() {
    let (_server, address) = start(&[]);
    let request = format!("GET /ready HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let mut kept: Vec<TcpStream> = (0..128).map(|_| TcpStream::connect(address).expect("it listens")).collect();
    let ready = |connection: &mut TcpStream| {
        connection.write_all(request.as_bytes()).expect("it reads");
        let mut answer = [0; 1024];
        connection.read(&mut answer).unwrap_or_default()
    };
    for connection in kept.iter_mut().rev() {
        assert!(ready(connection) > 0, "all have a place");
    }
    assert_eq!(get(address, "/ready", "").status, 200);
    assert_eq!(ready(&mut kept[127]), 0, "it was answered first, so it has been idle for longest");
    assert!(ready(&mut kept[0]) > 0, "the others stay: none of them was waited for until its time was over");
}

#[test]
fn a_page_that_cannot_listen_ends_the_start_and_without_one_nothing_listens() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    let output = program::dunlin(&["--port", "0", "--page-port", &port]).output().expect("it starts");
    let log = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success() && log.contains("Address already in use"), "{log}");
    let server = program::start(&["--port", "0"]);
    connect(server.address()).ask("CONFIG GET page-port\r\n", "*2\r\n$9\r\npage-port\r\n$2\r\n-1\r\n");
}

/// What a page that is off would cost: a thread, and a socket that listens.
#[cfg(target_os = "linux")]
#[test]
fn a_page_that_is_off_has_no_thread_and_no_socket() {
    let of = |server: &Running| {
        let process = format!("/proc/{}", server.id());
        let threads = std::fs::read_dir(format!("{process}/task")).expect("it runs");
        let names = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
        let has_thread = names.into_iter().any(|name| name.trim() == "dunlin-page");
        let files = std::fs::read_dir(format!("{process}/fd")).expect("it runs");
        let targets = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
        let own: Vec<String> = targets.map(|target| target.to_string_lossy().into_owned()).collect();
        let table = std::fs::read_to_string(format!("{process}/net/tcp")).expect("it has sockets");
        // The fourth field is the state, in which 0A is to listen; the tenth is the inode.
        let listens = |line: &&str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields.get(3) == Some(&"0A")
                && fields.get(9).is_some_and(|inode| own.contains(&format!("socket:[{inode}]")))
        };
        (has_thread, table.lines().filter(listens).count())
    };
    let (with_page, page) = start(&[]);
    // A thread names itself when it runs.
    wait_until("it is ready", || get(page, "/ready", "").status == 200);
    assert_eq!(of(&with_page), (true, 2));
    assert_eq!(of(&program::start(&["--port", "0"])), (false, 1));
}
