//! The metrics beside what redis_exporter makes of the same server, and beside the rules of Prometheus.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Stdio};

use crate::binary::Binary;
use crate::programs::{Program, findings, run};
use crate::support::http;
use crate::timeout::wait_until;

/// The metrics of redis_exporter that the server does not have.
const LEFT_OUT: &[&str] = &[
    // What it says of itself.
    "redis_exporter_",
    "redis_last_key_groups_scrape_duration_milliseconds",
    "redis_target_scrape_request_errors_total",
    // Lines of INFO that it takes for something else: `subexpiry` for the cached keys of KeyDB, and the sizes of keys.
    "redis_db_keys_cached",
    "redis_db0_distrib_",
    "redis_db3_distrib_",
    // Its own process.
    "go_",
    "process_",
];

/// Metrics of later versions, up to 1.88, that the version 1.45 does not have.
const LATER: &[&str] = &[
    "redis_acl_access_denied_",
    "redis_allocator_muzzy_bytes",
    "redis_async_loading",
    "redis_client_output_buffer_limit_disconnections_total",
    "redis_client_query_buffer_limit_disconnections_total",
    "redis_cluster_links_",
    "redis_cluster_stats_messages_",
    "redis_commands_latencies_usec",
    "redis_config_client_output_buffer_limit_",
    "redis_config_repl_backlog_size",
    "redis_configured_hz",
    "redis_current_eviction_exceeded_time_ms",
    "redis_eventloop_",
    "redis_evicted_clients_total",
    "redis_evicted_scripts_total",
    "redis_eviction_exceeded_time_ms_total",
    "redis_expire_cycle_cpu_time_ms_total",
    "redis_expired_subkeys_total",
    "redis_hz",
    "redis_instantaneous_eventloop_",
    "redis_lazyfreed_objects",
    "redis_max_clients",
    "redis_mem_aof_buffer_bytes",
    "redis_mem_cluster_links_bytes",
    "redis_mem_overhead_db_hashtable_rehashing_bytes",
    "redis_mem_replication_backlog_bytes",
    "redis_mem_total_replication_buffers_bytes",
    "redis_memory_used_functions_bytes",
    "redis_memory_used_scripts_eval_bytes",
    "redis_memory_used_vm_",
    "redis_net_repl_",
    "redis_number_of_functions",
    "redis_number_of_libraries",
    "redis_pubsub_clients",
    "redis_pubsubshard_channels",
    "redis_rdb_last_load_",
    "redis_rdb_saves_total",
    "redis_reply_buffer_",
    "redis_total_blocking_keys",
    "redis_total_watched_keys",
    "redis_watching_clients",
];

/// Gauges of the version 1.45 that are counters from a later one on.
const COUNTERS_NOW: &[&str] = &["redis_expired_time_cap_reached_total"];

/// The metrics by which the exporter sees itself: it is a client, and it calls commands.
const OWN_TRACES: &[&str] = &[
    "redis_connected_clients",
    "redis_client_recent_max_",
    "redis_mem_clients_normal",
    "redis_memory_used_bytes",
    "redis_memory_used_overhead_bytes",
    "redis_memory_used_peak_bytes",
    "redis_memory_used_rss_bytes",
    "redis_allocator_",
    "redis_mem_fragmentation_",
    "redis_commands_processed_total",
    "redis_connections_received_total",
    "redis_net_",
    "redis_total_reads_processed",
    "redis_total_writes_processed",
    "redis_cpu_",
    "redis_uptime_in_seconds",
    // It goes by its own clock, and the server's is frozen.
    "redis_start_time_seconds",
    // The ratio of two counters that it moves.
    "redis_instantaneous_eventloop_",
];

/// The metrics of a text: the type of each family, and the value of each sample by its name and labels in order.
#[derive(Default)]
struct Metrics {
    types: BTreeMap<String, String>,
    samples: BTreeMap<String, f64>,
}

impl Metrics {
    fn parse(text: &str) -> Metrics {
        let mut metrics = Metrics::default();
        for line in text.lines() {
            if let Some(family) = line.strip_prefix("# TYPE ") {
                let (name, kind) = family.split_once(' ').expect("a family has a name and a type");
                metrics.types.insert(name.to_owned(), kind.to_owned());
            } else if !line.starts_with('#') {
                let (sample, value) = line.rsplit_once(' ').expect("a sample has a value");
                let value = value.parse().expect("a value is a number");
                assert!(metrics.samples.insert(in_order(sample), value).is_none(), "{sample} stands twice");
            }
        }
        metrics
    }

    fn of(address: SocketAddr) -> Metrics {
        Metrics::at(address, "/metrics")
    }

    fn at(address: SocketAddr, path: &str) -> Metrics {
        Metrics::parse(&http::get(address, path, "").expect("it answers").body)
    }
}

/// A sample with its labels in order. No value of a label here has a comma.
fn in_order(sample: &str) -> String {
    let Some((name, labels)) = sample.trim_end_matches('}').split_once('{') else { return sample.to_owned() };
    let mut labels: Vec<&str> = labels.split(',').collect();
    labels.sort_unstable();
    format!("{name}{{{}}}", labels.join(","))
}

fn begins_with(name: &str, list: &[&str]) -> bool {
    list.iter().any(|start| name.starts_with(start))
}

/// A running redis_exporter; ended when dropped.
struct Exporter {
    process: Child,
    address: SocketAddr,
}

impl Exporter {
    fn start(program: &Program, port: &str) -> Exporter {
        let free = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = free.local_addr().expect("it is bound");
        drop(free);
        let arguments = ["-redis.addr", &format!("redis://127.0.0.1:{port}"), "-include-system-metrics"];
        let mut command = program.command();
        command.args(arguments).args(["-web.listen-address", &address.to_string()]);
        let process = command.stderr(Stdio::null()).spawn().expect("it starts");
        let exporter = Exporter { process, address };
        wait_until("the exporter listens", || http::get(address, "/health", "").is_ok());
        exporter
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A server whose metrics have something to say, and the address of its page.
fn busy_server() -> Option<(Binary, SocketAddr)> {
    let cli = Program::find("redis-cli", &["--version"])?;
    let mut server = Binary::start_with(&["--page-port", "0", "--enable-debug-command", "yes"]);
    let page = server.page();
    let requests = "DUNLIN FREEZE\nSET a 1\nSET b 2 PX 100000\nGET a\nGET nothing\nLPUSH a x\nGET\nFOO\nSELECT 3\n\
        RPUSH list 1 2 3\nCONFIG SET slowlog-log-slower-than 0\nSET c 1\nCONFIG SET slowlog-log-slower-than 100000\n\
        CONFIG SET latency-monitor-threshold 1\nDEBUG SLEEP 0.01\n";
    run(cli.command().args(["-p", &server.port()]), requests);
    Some((server, page))
}

#[test]
fn the_metrics_are_those_of_redis_exporter() {
    let Some(program) = Program::find("prometheus-redis-exporter", &["-version"]) else { return };
    let Some((server, page)) = busy_server() else { return };
    assert_same(&Exporter::start(&program, &server.port()), || Metrics::of(page));
}

/// Nodes of a cluster have metrics of their own: a primary of its replica, and a replica of its primary.
#[test]
fn the_metrics_of_nodes_of_a_cluster_are_those_of_redis_exporter() {
    let Some(program) = Program::find("prometheus-redis-exporter", &["-version"]) else { return };
    let Some(cli) = Program::find("redis-cli", &["--version"]) else { return };
    let mut server = Binary::start_with(&["--cluster", "3", "--replicas", "1", "--page-port", "0"]);
    let page = server.page();
    let nodes = run(cli.command().args(["-p", &server.port()]), "SET bar 1\nCLUSTER NODES\nDUNLIN FREEZE\n");
    for role in ["myself,master", "slave"] {
        let line = nodes.lines().find(|line| line.contains(role)).expect("there is one");
        let port = line.split([':', '@']).nth(1).expect("it has a port");
        let world = world_of_port(page, port);
        let own = || Metrics::at(page, &format!("/metrics?world={world}"));
        assert_same(&Exporter::start(&program, port), own);
        assert_read(&own(), if role == "slave" { READ_OF_REPLICA } else { READ });
    }
}

/// The world that is the node of this port.
fn world_of_port(page: SocketAddr, port: &str) -> String {
    let is_it = |world: &String| {
        let text = http::get(page, &format!("/metrics?world={world}"), "").expect("it answers").body;
        text.contains(&format!("tcp_port=\"{port}\""))
    };
    let others = (1..6).map(|number| format!("node-{number}"));
    ["default".to_owned()].into_iter().chain(others).find(is_it).expect("it is one of them")
}

/// The metrics are those that the exporter has of the same server, but for what it sees of itself.
fn assert_same(exporter: &Exporter, own: impl Fn() -> Metrics) {
    // The first time it calls commands that were never called before.
    Metrics::of(exporter.address);
    let (before, theirs, after) = (own(), Metrics::of(exporter.address), own());

    for (name, kind) in theirs.types.iter().filter(|(name, _)| !begins_with(name, LEFT_OUT)) {
        let kind = if COUNTERS_NOW.contains(&name.as_str()) { "counter" } else { kind };
        assert_eq!(before.types.get(name).map(String::as_str), Some(kind), "{name}");
    }
    let more = |own: &str| own.starts_with("redis_") && !begins_with(own, LATER);
    let more_types: Vec<_> =
        before.types.keys().filter(|name| more(name) && !theirs.types.contains_key(*name)).collect();
    assert!(more_types.is_empty(), "the exporter does not have {more_types:?}");
    let is_new = |sample: &&String| !theirs.samples.contains_key(*sample) && !sample.starts_with("redis_instance_info");
    let more_samples: Vec<_> = before.samples.keys().filter(|name| more(name)).filter(is_new).collect();
    assert!(more_samples.is_empty(), "the exporter does not have {more_samples:?}");
    let mut compared = 0;
    for (sample, value) in theirs.samples.iter().filter(|(name, _)| !begins_with(name, LEFT_OUT)) {
        if sample.starts_with("redis_instance_info") {
            continue;
        }
        let own = before.samples.get(sample).unwrap_or_else(|| panic!("{sample} is missing"));
        let is_still = after.samples.get(sample) == Some(own);
        if is_still && !begins_with(sample, OWN_TRACES) {
            assert_eq!(own, value, "{sample}");
            compared += 1;
        }
    }
    assert!(compared > 140, "only {compared} samples stood still");

    let info = |metrics: &Metrics| {
        let sample = metrics.samples.keys().find(|name| name.starts_with("redis_instance_info")).expect("it is there");
        let labels = sample.trim_end_matches('}').split_once('{').expect("it has labels").1;
        labels.split(',').map(str::to_owned).collect::<Vec<_>>()
    };
    let own = info(&before);
    assert!(info(&theirs).iter().all(|label| own.contains(label)), "{own:?}");
}

/// The series that the expressions of redis_exporter's own dashboard, and the dashboard and the alerts of its mixin,
/// read of a server without peers, with the labels by which they sum. They name two more that the exporter does
/// not have either: `redis_command_calls_total` of its versions before 1.0, and `redis_memory_fragmentation_ratio`,
/// which a rule of the mixin makes of two of these.
const READ: &[(&str, &[&str])] = &[
    ("blocked_clients", &[]),
    ("commands_duration_seconds_total", &["cmd"]),
    ("commands_processed_total", &[]),
    ("commands_total", &["cmd"]),
    ("connected_clients", &[]),
    ("connected_slaves", &[]),
    ("db_keys", &["db"]),
    ("db_keys_expiring", &["db"]),
    ("evicted_keys_total", &[]),
    ("expired_keys_total", &[]),
    ("keyspace_hits_total", &[]),
    ("keyspace_misses_total", &[]),
    ("memory_max_bytes", &[]),
    ("memory_used_bytes", &[]),
    ("memory_used_rss_bytes", &[]),
    ("net_input_bytes_total", &[]),
    ("net_output_bytes_total", &[]),
    ("total_system_memory_bytes", &[]),
    ("up", &[]),
    ("uptime_in_seconds", &[]),
];

/// Those that they read of a replica in a cluster besides.
const READ_OF_REPLICA: &[(&str, &[&str])] = &[
    ("cluster_slots_fail", &[]),
    ("cluster_slots_pfail", &[]),
    ("cluster_state", &[]),
    ("master_last_io_seconds_ago", &["master_host", "master_port"]),
];

/// There is a series of each name, and all have the labels.
fn assert_read(metrics: &Metrics, series: &[(&str, &[&str])]) {
    for (name, labels) in series {
        let of_name = |sample: &String| {
            let (family, rest) = sample.split_once('{').unwrap_or((sample, ""));
            (family == format!("redis_{name}")).then(|| rest.to_owned())
        };
        let found: Vec<String> = metrics.samples.keys().filter_map(of_name).collect();
        assert!(!found.is_empty(), "{name}");
        for rest in found {
            let names: Vec<&str> = rest.split(',').filter_map(|label| Some(label.split_once('=')?.0)).collect();
            assert_eq!(names, *labels, "{name}");
        }
    }
}

#[test]
fn the_series_that_public_dashboards_read_are_there() {
    let Some((_server, page)) = busy_server() else { return };
    assert_read(&Metrics::of(page), READ);
}

/// A server that has all metrics of its own, and the address of its page.
fn measured_server() -> Option<(Binary, SocketAddr)> {
    let (server, page) = busy_server()?;
    let cli = Program::find("redis-cli", &["--version"])?;
    let requests = "DUNLIN MEASURE QUEUE email jobs PROCESSING jobs:doing FAILED jobs:dead\nLPUSH jobs a\nRPOP jobs\n\
        DUNLIN MEASURE QUEUE events log\nXADD log * f v\n\
        DUNLIN MEASURE SET dedupe seen:*\nSADD seen:1 a\nSADD seen:1 a\nSISMEMBER seen:1 a\n\
        DUNLIN MEASURE ZSET scheduler delayed PROCESSING doing\nZADD delayed 1 a\nZPOPMIN delayed\n\
        DUNLIN STRICT SET ALL warn\nDUNLIN FAULT ADD f COMMAND get ERROR ERR\nGET a\n";
    run(cli.command().args(["-p", &server.port()]), requests);
    Some((server, page))
}

/// The expressions of a dashboard, with the intervals that Grafana puts in.
fn expressions(dashboard: &str) -> Vec<String> {
    let lines = dashboard.lines().filter_map(|line| line.trim().strip_prefix("\"expr\": \"")?.strip_suffix("\","));
    lines.map(|expression| expression.replace("$__rate_interval", "1m")).collect()
}

const DASHBOARD: &str = include_str!("../../docs/grafana/structures.json");

/// The metrics of our own that docs/metrics.md lists.
fn documented() -> Vec<&'static str> {
    let rows = include_str!("../../docs/metrics.md").lines().filter(|line| line.starts_with("| `dunlin_"));
    let first_cells = rows.filter_map(|row| row.split('|').nth(1));
    first_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn our_dashboard_shows_all_metrics_that_are_documented() {
    let (expressions, documented) = (expressions(DASHBOARD).join("\n"), documented());
    assert!(documented.len() > 20, "{documented:?}");
    for name in documented.into_iter().filter(|name| *name != "dunlin_build_info") {
        assert!(expressions.contains(name), "{name}");
    }
    // It reports with its status, which `run` checks.
    let Some(python) = Program::find("python3", &["--version"]) else { return };
    run(python.command().args(["-m", "json.tool"]), DASHBOARD);
}

#[test]
fn each_expression_of_our_dashboard_finds_a_series() {
    let Some((_server, page)) = measured_server() else { return };
    let metrics = Metrics::of(page);
    let expressions = expressions(DASHBOARD);
    assert!(expressions.len() > 25, "{expressions:?}");
    for expression in &expressions {
        let words = expression.split(|character: char| !(character.is_ascii_alphanumeric() || character == '_'));
        let names: Vec<&str> = words.filter(|word| begins_with(word, &["redis_", "dunlin_"])).collect();
        assert!(!names.is_empty(), "{expression}");
        for name in names {
            let is_it = |sample: &String| {
                sample.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('{'))
            };
            assert!(metrics.samples.keys().any(is_it), "{name}");
        }
    }
    let Some(promtool) = Program::find("promtool", &["--version"]) else { return };
    let rules = expressions
        .iter()
        .enumerate()
        .map(|(number, expression)| format!("  - record: dashboard:expression:{number}\n    expr: {expression}\n"));
    let rules = format!("groups:\n- name: dashboard\n  rules:\n{}", rules.collect::<String>());
    // It reports with its status, which `run` checks.
    run(promtool.command().args(["check", "rules", "/dev/stdin"]), &rules);
}

/// The names with which promtool finds fault. They are the exporter's.
const NAMED_BY_THE_EXPORTER: &[&str] = &[
    "redis_aof_current_rewrite_duration_sec",
    "redis_aof_last_rewrite_duration_sec",
    "redis_current_eviction_exceeded_time_ms",
    "redis_dump_payload_sanitizations",
    "redis_eviction_exceeded_time_ms_total",
    "redis_expire_cycle_cpu_time_ms_total",
    "redis_instantaneous_eventloop_cycles_per_sec",
    "redis_io_threaded_reads_processed",
    "redis_io_threaded_writes_processed",
    "redis_memory_used_vm_total",
    "redis_migrate_cached_sockets_total",
    "redis_rdb_current_bgsave_duration_sec",
    "redis_rdb_last_bgsave_duration_sec",
    "redis_rdb_saves_total",
    "redis_total_error_replies",
    "redis_total_reads_processed",
    "redis_total_writes_processed",
    "redis_unexpected_error_replies",
];

#[test]
fn promtool_finds_nothing_but_names_of_the_exporter() {
    let Some(promtool) = Program::find("promtool", &["--version"]) else { return };
    let Some((_server, page)) = measured_server() else { return };
    let text = http::get(page, "/metrics", "").expect("it answers").body;
    for name in ["strict_findings_total", "faults_fired_total", "queue_requeued_total", "set_cardinality", "zset_due"] {
        assert!(text.contains(&format!("\ndunlin_{name}{{")), "{name}: {text}");
    }
    let findings = findings(promtool.command().args(["check", "metrics"]), &text);
    let names: Vec<&str> = findings.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, NAMED_BY_THE_EXPORTER, "{findings}");
}
