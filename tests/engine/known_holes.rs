//! Vulnerabilities and faults that were found in Redis and in servers like it, each tested here or where the list says.
//!
//! [`ROWS`] has a row for each of them; a test checks that the named tests exist. A fault of a part that this server
//! does not have is tested by the absence of that part. One is open as in Redis 8.0: a client that tracks prefixes gets
//! the names of keys for which it has no permission (68).

use std::fs;
use std::path::Path;

use dunlin::engine::Flow;

use crate::world::World;

/// A hole: its number, what it is known as, and the file and the test that try it.
type Row = (u8, &'static str, &'static str, &'static str);

const HERE: &str = "tests/engine/known_holes.rs";
const LUA: &str = "tests/engine/lua_holes.rs";
const INTERPRETER: &str = "src/lua/tests.rs";
const RIGHTS: &str = "tests/engine/rights.rs";
const USERS: &str = "src/acl/tests.rs";
const SKETCH: &str = "src/value/hyperloglog/tests.rs";
const MATRIX: &str = "tests/matrix/main.rs";
const PARSER: &str = "src/resp/parser/tests.rs";
const UNAUTHENTICATED: &str = "tests/server/unauthenticated.rs";
const GLOB: &str = "src/value/glob.rs";
const FUZZ: &str = "tests/fuzz/main.rs";
const PAYLOADS: &str = "tests/payloads/holes.rs";
const HOLES_OF_SIZE: &str = "tests/engine/large_holes.rs";
const STREAMS: &str = "tests/engine/stream_holes.rs";
const PAYLOADS_OF_STREAMS: &str = "tests/payloads/streams.rs";
const PROGRAM: &str = "tests/server/program.rs";
const WAITING: &str = "tests/engine/waiting.rs";

const ROWS: &[Row] = &[
    (1, "CVE-2014-5461", LUA, "a_function_with_many_parameters_is_called_with_any_number_of_arguments"),
    (2, "CVE-2015-8080", "src/script/structure.rs", "no_size_in_a_format_overflows"),
    (3, "CVE-2018-11218", "src/script/cmsgpack/tests.rs", "the_number_of_arguments_and_the_nesting_are_limited"),
    (4, "CVE-2018-11219", "src/script/structure.rs", "no_offset_reaches_beyond_the_data"),
    (5, "CVE-2018-12326", PROGRAM, "arguments_and_lines_of_any_length_are_refused_with_a_message"),
    (6, "CVE-2018-12453", MATRIX, "every_command_treats_every_type_as_in_redis"),
    (7, "CVE-2019-10192", SKETCH, "runs_that_do_not_cover_all_registers_count_as_corrupted_and_stay"),
    (8, "CVE-2019-10193", SKETCH, "registers_that_no_elements_can_produce_are_counted_without_an_error"),
    (9, "CVE-2021-3470", "tests/memory.rs", "no_byte_is_written_behind_the_end_of_an_allocation"),
    (10, "CVE-2021-21309", PARSER, "declared_lengths_allocate_nothing"),
    (11, "CVE-2021-29477", HERE, "lcs_of_texts_whose_table_would_be_too_large_is_refused"),
    (12, "CVE-2021-29478", PAYLOADS, "a_set_of_integers_with_a_wrong_length_in_its_header_is_refused"),
    (13, "CVE-2021-32626", LUA, "a_command_accepts_as_many_words_as_lua_unpacks_and_a_reply_may_nest_deep"),
    (14, "CVE-2021-32627", STREAMS, "an_entry_of_gigabytes_is_refused_and_leaves_nothing"),
    (15, "CVE-2021-32628", HERE, "limits_of_encodings_may_be_of_any_size"),
    (16, "CVE-2021-32672", LUA, "the_lua_debugger_cannot_be_started"),
    (
        17,
        "CVE-2021-32675",
        UNAUTHENTICATED,
        "a_thousand_unauthenticated_clients_that_declare_much_get_an_error_each_and_take_little_memory",
    ),
    (18, "CVE-2021-32687", HOLES_OF_SIZE, "a_million_integers_stay_integers_through_dump_and_restore"),
    (19, "CVE-2021-32761", MATRIX, "every_number_at_the_edges_of_its_range_is_answered_as_in_redis"),
    (20, "CVE-2021-32762", HERE, "no_command_connects_to_another_server"),
    (21, "CVE-2021-41099", HERE, "a_text_grows_to_its_limit_and_not_one_byte_further"),
    (22, "CVE-2022-0543", LUA, "scripts_see_exactly_the_listed_globals"),
    (23, "CVE-2022-24735", LUA, "no_script_changes_what_others_see"),
    (24, "CVE-2022-24736", LUA, "malformed_source_is_an_error"),
    (25, "CVE-2022-24834", "src/script/cjson/tests.rs", "values_that_are_too_deep_or_too_large_are_errors"),
    (26, "CVE-2022-31144", STREAMS, "deleted_entries_are_reported_by_a_claim_and_no_longer_pending"),
    (27, "CVE-2022-35951", STREAMS, "a_count_above_the_number_of_entries_is_refused_or_claims_all"),
    (28, "CVE-2022-35977", HERE, "numbers_that_crashed_other_servers_are_answered"),
    (29, "CVE-2022-36021", GLOB, "many_stars_and_long_patterns_take_no_exponential_time"),
    (30, "CVE-2023-22458", HERE, "numbers_that_crashed_other_servers_are_answered"),
    (31, "CVE-2023-25155", HERE, "numbers_that_crashed_other_servers_are_answered"),
    (32, "CVE-2023-28425", HERE, "the_same_key_twice_is_set_twice"),
    (33, "CVE-2023-28856", HERE, "nan_is_never_stored"),
    (34, "CVE-2023-36824", RIGHTS, "keys_are_found_in_requests_of_any_shape"),
    (35, "CVE-2023-41053", "tests/matrix/checked_keys.rs", "keys_that_are_used_are_keys_that_were_checked"),
    (36, "CVE-2023-41056", "tests/server/requests.rs", "requests_of_any_size_in_any_pieces_are_answered_whole"),
    (37, "CVE-2023-45145", "tests/server/unix_socket.rs", "no_client_connects_before_the_permissions_are_set"),
    (38, "CVE-2024-31227", USERS, "every_prefix_of_a_key_pattern_is_a_rule_or_refused"),
    (39, "CVE-2024-31228", HERE, "patterns_of_millions_of_bytes_are_answered"),
    (40, "CVE-2024-31449", "src/script/bit.rs", "the_most_negative_count_of_tohex_is_just_a_large_one"),
    (41, "CVE-2024-46981", LUA, "the_collector_frees_no_value_in_use"),
    (42, "CVE-2024-51741", USERS, "a_user_made_from_its_own_line_has_the_same_rights"),
    (
        43,
        "CVE-2025-21605",
        UNAUTHENTICATED,
        "a_thousand_unauthenticated_clients_that_do_not_read_are_all_closed_and_take_little_memory",
    ),
    (44, "CVE-2025-27151", PROGRAM, "arguments_and_lines_of_any_length_are_refused_with_a_message"),
    (45, "CVE-2025-32023", HOLES_OF_SIZE, "sketches_with_any_bytes_changed_are_counted_or_refused"),
    (46, "CVE-2025-48367", "tests/server/holes.rs", "clients_that_reset_their_connection_at_once_lock_out_no_client"),
    (47, "CVE-2025-46817", LUA, "unpack_counts_its_range_correctly"),
    (48, "CVE-2025-46818", LUA, "no_script_changes_what_others_see"),
    (49, "CVE-2025-46819", INTERPRETER, "the_memory_of_a_long_bracket_is_limited"),
    (50, "CVE-2025-49844", INTERPRETER, "the_collector_does_not_run_while_source_is_compiled"),
    (51, "CVE-2025-62507", HOLES_OF_SIZE, "entries_are_deleted_and_acknowledged_by_any_number_of_ids"),
    (52, "CVE-2025-67733", HERE, "every_reply_is_one_frame_whatever_bytes_it_repeats"),
    (53, "CVE-2026-27623", PARSER, "every_mix_of_empty_and_full_requests_is_parsed"),
    (54, "CVE-2026-21863", HERE, "no_command_connects_to_another_server"),
    (55, "CVE-2026-21864", PAYLOADS, "types_of_modules_are_refused"),
    (56, "CVE-2026-23479", WAITING, "blocked_clients_may_leave_in_any_way_and_nothing_is_lost"),
    (57, "CVE-2026-25243", FUZZ, "a_payload_is_refused_or_becomes_a_key_like_any_other"),
    (58, "CVE-2026-23631", HERE, "no_command_connects_to_another_server"),
    (59, "CVE-2026-25588", PAYLOADS, "types_of_modules_are_refused"),
    (60, "CVE-2026-56684", "tests/server/holes.rs", "a_tls_port_is_refused"),
    (61, "CVE-2026-63639", PAYLOADS_OF_STREAMS, "a_pending_entry_belongs_to_one_consumer_once"),
    (62, "Redis 8.10.1", PAYLOADS, "rdb_records_that_are_not_values_are_refused"),
    (63, "R#15594", HERE, "clients_may_disconnect_while_another_one_that_waits_for_the_key_is_served"),
    (64, "R#15478", RIGHTS, "no_arrangement_of_options_hides_a_key"),
    (65, "R#14847", RIGHTS, "the_arity_is_checked_before_keys_are_searched_for"),
    (66, "R#15673", RIGHTS, "permissions_are_checked_again_when_a_transaction_runs"),
    (67, "R#14659", HERE, "commands_of_later_versions_and_of_modules_are_unknown"),
    (
        68,
        "R#15371",
        "tests/engine/tracking.rs",
        "prefixes_cover_keys_without_permission_as_in_redis_8_0_but_single_keys_do_not",
    ),
    (69, "V#3801", RIGHTS, "no_arrangement_of_options_hides_a_key"),
    (70, "Redis 8.10.1", "tests/server/holes.rs", "a_tls_port_is_refused"),
    (71, "R#13274", RIGHTS, "users_can_be_added_and_removed_while_their_clients_are_blocked_or_subscribed"),
    (72, "RED-167787", "src/config/rewrite.rs", "no_value_adds_a_second_line_to_a_rewrite"),
    (73, "RED-167788", HOLES_OF_SIZE, "a_client_can_subscribe_to_a_million_channels_while_memory_is_short"),
    (74, "GHSA-fq2f-crmw-q97r", LUA, "the_lua_debugger_cannot_be_started"),
    (75, "GHSA-f4q9-j22m-xqq9", HERE, "a_large_message_to_a_channel_of_a_long_name_arrives"),
    (76, "GHSA-jcj7-v34w-v9vv", "tests/server/holes.rs", "a_tls_port_is_refused"),
    (77, "R#15722", HERE, "no_command_connects_to_another_server"),
    (78, "R#14982", MATRIX, "every_number_at_the_edges_of_its_range_is_answered_as_in_redis"),
    (79, "Redis 8.2.3", MATRIX, "every_request_that_is_too_short_or_too_long_is_answered_as_in_redis"),
    (80, "R#14163", LUA, "tables_of_all_shapes_are_answered"),
    (81, "R#13863", HOLES_OF_SIZE, "randomkey_ends_though_all_keys_are_overdue_and_writes_are_paused"),
    (82, "V#2872", FUZZ, "every_request_gets_one_well_formed_reply_and_every_command_runs"),
    (83, "V#4733", PAYLOADS, "a_declared_length_is_not_allocated_before_its_bytes_arrive"),
    (84, "V#3921", PAYLOADS, "scores_that_are_not_numbers_and_zipmaps_of_a_wrong_length_are_refused"),
    (85, "cross-protocol scripting", "tests/server/requests.rs", "a_request_of_a_web_page_gets_no_reply"),
    (86, "CVE-2025-26269", LUA, "library_functions_survive_any_arguments"),
    (87, "CVE-2026-41566", RIGHTS, "a_new_user_may_call_nothing_but_what_serves_to_log_in"),
    (
        88,
        "KeyDB#961",
        "tests/server/subscribers.rs",
        "a_subscriber_that_does_not_read_is_closed_and_the_others_get_everything",
    ),
    (89, "CVE-2025-46686", PARSER, "declared_lengths_allocate_nothing"),
    (90, "vector sets", HERE, "vector_sets_survive_nested_attributes_and_huge_numbers"),
];

#[test]
fn every_known_hole_names_an_existing_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let numbers: Vec<u8> = ROWS.iter().map(|row| row.0).collect();
    assert!(numbers.into_iter().eq(1..=90), "each hole has a row");
    let mut missing = Vec::new();
    for (number, name, file, test) in ROWS {
        let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
        if !text.contains(&format!("fn {test}(")) {
            missing.push(format!("{number} {name}: {file} has no {test}"));
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn numbers_that_crashed_other_servers_are_answered() {
    let mut world = World::fresh();
    for command in ["RPUSH list 3 2 1", "HSET hash f 1", "ZADD zset 1 m", "SADD set m"] {
        world.ask(command);
    }
    let too_long = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n";
    let out_of_range = "-ERR value is out of range";
    let table = [
        ("SETRANGE key 9223372036854775807 x", too_long),
        ("SORT list LIMIT 2 9223372036854775807", "*1\r\n$1\r\n3\r\n"),
        ("SORT_RO list LIMIT 2 9223372036854775807", "*1\r\n$1\r\n3\r\n"),
        ("LRANGE list -9223372036854775808 9223372036854775807", "*3\r\n"),
        ("GETRANGE key -9223372036854775808 9223372036854775807", "$0\r\n"),
        ("ZRANGE zset -inf +inf BYSCORE LIMIT 0 9223372036854775807", "*1\r\n"),
        ("HRANDFIELD hash -9223372036854770000 WITHVALUES", out_of_range),
        ("ZRANDMEMBER zset -9223372036854770000 WITHSCORES", out_of_range),
        ("HRANDFIELD hash 4611686018427387904 WITHVALUES", out_of_range),
        ("ZRANDMEMBER zset 4611686018427387904 WITHSCORES", out_of_range),
        ("SRANDMEMBER set -9223372036854775808", out_of_range),
        ("HRANDFIELD hash -9223372036854775808", out_of_range),
        ("ZRANDMEMBER zset -9223372036854775808", out_of_range),
    ];
    for (command, start) in table {
        let reply = world.ask(command);
        assert!(reply.starts_with(start), "{command}: {reply}");
    }
    assert_eq!(world.ask("EXISTS key"), ":0\r\n");
}

#[test]
fn the_same_key_twice_is_set_twice() {
    let mut world = World::fresh();
    assert_eq!(world.ask("MSETNX x a x b"), ":1\r\n");
    assert_eq!(world.ask("GET x"), "$1\r\nb\r\n");
}

#[test]
fn nan_is_never_stored() {
    let mut world = World::fresh();
    world.ask("HSET hash f 1e308");
    for (amount, error) in [
        ("inf", "value is NaN or Infinity"),
        ("-inf", "value is NaN or Infinity"),
        ("nan", "value is not a valid float"),
    ] {
        assert_eq!(world.ask(&format!("HINCRBYFLOAT hash f {amount}")), format!("-ERR {error}\r\n"), "{amount}");
    }
    assert_eq!(world.ask("HGET hash f"), "$5\r\n1e308\r\n");
}

#[test]
fn lcs_of_texts_whose_table_would_be_too_large_is_refused() {
    let mut world = World::fresh();
    let text = vec![b'x'; 1 << 20];
    for key in [&b"a"[..], b"b"] {
        world.send(world.client, &[b"SET", key, &text]);
    }
    let refusal = "-ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len\r\n";
    for command in ["LCS a b", "LCS a b LEN", "LCS a b IDX WITHMATCHLEN"] {
        assert_eq!(world.ask(command), refusal, "{command}");
    }
}

#[test]
fn limits_of_encodings_may_be_of_any_size() {
    let mut world = World::fresh();
    for parameter in [
        "hash-max-listpack-entries",
        "hash-max-listpack-value",
        "zset-max-listpack-entries",
        "zset-max-listpack-value",
        "set-max-intset-entries",
        "set-max-listpack-entries",
        "set-max-listpack-value",
    ] {
        assert_eq!(world.ask(&format!("CONFIG SET {parameter} 9223372036854775807")), "+OK\r\n", "{parameter}");
    }
    let large = vec![b'x'; 3 << 20];
    for (add, read) in [("HSET hash", "HGET hash"), ("ZADD zset 1", "ZSCORE zset"), ("SADD set", "SISMEMBER set")] {
        let mut words: Vec<&[u8]> = add.split(' ').map(str::as_bytes).collect();
        words.push(&large);
        if add == "HSET hash" {
            words.push(b"v");
        }
        assert_eq!(world.send(world.client, &words).0, b":1\r\n", "{add}");
        let mut words: Vec<&[u8]> = read.split(' ').map(str::as_bytes).collect();
        words.push(&large);
        assert!(matches!(world.send(world.client, &words).0.as_slice(), b"$1\r\nv\r\n" | b"$1\r\n1\r\n" | b":1\r\n"));
    }
}

#[test]
fn a_text_grows_to_its_limit_and_not_one_byte_further() {
    let mut world = World::fresh();
    assert_eq!(world.ask("CONFIG SET proto-max-bulk-len 1mb"), "+OK\r\n");
    assert_eq!(world.ask("SETRANGE key 1048575 x"), ":1048576\r\n");
    let refusal = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n";
    for command in ["APPEND key y", "SETRANGE key 1048576 y"] {
        assert_eq!(world.ask(command), refusal, "{command}");
    }
    assert_eq!(world.ask("STRLEN key"), ":1048576\r\n");
}

#[test]
fn patterns_of_millions_of_bytes_are_answered() {
    let mut world = World::fresh();
    world.ask("SET key 1");
    let pattern = b"*a".repeat(8 << 20);
    let requests: [&[&[u8]]; 6] = [
        &[b"KEYS", &pattern],
        &[b"SCAN", b"0", b"MATCH", &pattern],
        &[b"COMMAND", b"LIST", b"FILTERBY", b"PATTERN", &pattern],
        &[b"FUNCTION", b"LIST", b"LIBRARYNAME", &pattern],
        &[b"CONFIG", b"GET", &pattern],
        &[b"ACL", b"DRYRUN", b"default", b"PSUBSCRIBE", &pattern],
    ];
    for request in requests {
        let (reply, flow) = world.send(world.client, request);
        assert!(reply.len() < 100 && flow == Flow::Next, "{}", String::from_utf8_lossy(request[0]));
    }
    let rule = [b"~", pattern.as_slice()].concat();
    assert_eq!(world.send(world.client, &[b"ACL", b"SETUSER", b"ann", b"+get", &rule]).0, b"+OK\r\n");
    assert!(world.ask("ACL DRYRUN ann GET key").contains("no permissions to access the 'key' key"));
    world.send(world.client, &[b"PSUBSCRIBE", &pattern]);
    let other = world.join();
    assert_eq!(world.ask_as(other, "PUBLISH key 1").0, ":0\r\n");
}

#[test]
fn a_large_message_to_a_channel_of_a_long_name_arrives() {
    let mut world = World::fresh();
    let (listener, name, message) = (world.join(), vec![b'c'; 8 << 20], vec![b'm'; 8 << 20]);
    world.send(listener, &[b"SUBSCRIBE", &name]);
    assert_eq!(world.send(world.client, &[b"PUBLISH", &name, &message]).0, b":1\r\n");
    let waiting = world.engine.sessions.get(listener).expect("it is there").push_queue.bytes();
    assert!(waiting > 16 << 20, "{waiting}");
}

/// The end of the reply at the beginning of `bytes`, if it is complete and well formed.
fn frame_end(bytes: &[u8]) -> Option<usize> {
    let line_end = bytes.windows(2).position(|pair| pair == b"\r\n")? + 2;
    let line = &bytes[1..line_end - 2];
    if line.contains(&0) && bytes[0] != b'$' {
        return None;
    }
    let number = || str::from_utf8(line).ok().and_then(|text| text.parse::<i64>().ok());
    match bytes[0] {
        b'+' | b'-' => (!line.contains(&b'\n')).then_some(line_end),
        b':' => number().map(|_| line_end),
        b'$' => match usize::try_from(number()?) {
            Ok(length) => bytes.get(line_end + length..)?.starts_with(b"\r\n").then_some(line_end + length + 2),
            Err(_) => Some(line_end),
        },
        b'*' => {
            let mut end = line_end;
            for _ in 0..number()? {
                end += frame_end(&bytes[end..])?;
            }
            Some(end)
        }
        _ => None,
    }
}

#[test]
fn every_reply_is_one_frame_whatever_bytes_it_repeats() {
    let names: Vec<String> = World::fresh().engine.table.entries().iter().map(|entry| entry.name.clone()).collect();
    let evil: &[u8] = b"a\r\n+OK\r\n\0b";
    for name in names.iter().map(String::as_str).chain(["nosuch", "acl|nosuch"]) {
        for length in 0..6 {
            let mut world = World::fresh();
            let mut request: Vec<&[u8]> = name.split('|').map(str::as_bytes).collect();
            request.extend(std::iter::repeat_n(evil, length));
            for _ in 0..2 {
                let (reply, flow) = world.send(world.client, &request);
                let frames = std::iter::successors(Some(0), |at| {
                    reply.get(*at..).filter(|rest| !rest.is_empty()).and_then(frame_end).map(|end| at + end)
                });
                let end = frames.last().unwrap_or_default();
                assert_eq!(end, reply.len(), "{name} {length}: {}", reply.escape_ascii());
                let is_subscription = name.contains("subscribe");
                assert!(is_subscription || frame_end(&reply).is_none_or(|end| end == reply.len()), "{name} {length}");
                if flow != Flow::Next {
                    break;
                }
            }
        }
    }
    let mut world = World::fresh();
    let scripts = [
        "return redis.error_reply('a\\r\\n+OK\\r\\n\\0b')",
        "return redis.status_reply('a\\r\\n+OK\\r\\n\\0b')",
        "return {ok = 'a\\r\\n+OK'}",
        "return {err = 'a\\r\\n+OK'}",
        "error('a\\r\\n+OK')",
        "error({err = 'a\\r\\n+OK'})",
        "return redis.pcall('a\\r\\n+OK')",
    ];
    for script in scripts {
        let (reply, _) = world.send(world.client, &[b"EVAL", script.as_bytes(), b"0"]);
        assert_eq!(frame_end(&reply), Some(reply.len()), "{script}: {}", reply.escape_ascii());
    }
}

#[test]
fn commands_of_later_versions_and_of_modules_are_unknown() {
    let mut world = World::fresh();
    let names = ["XACKDEL", "XDELEX", "MSETEX", "VRANGE", "TS.ADD", "BF.ADD", "CMS.INITBYDIM", "JSON.SET"];
    for name in names {
        assert!(world.ask(&format!("{name} k a b c")).starts_with("-ERR unknown command"), "{name}");
    }
}

#[test]
fn vector_sets_survive_nested_attributes_and_huge_numbers() {
    let mut world = World::fresh();
    let nested = format!("{{\"a\":{}", "[".repeat(200_000));
    let client = world.client;
    world.send(client, &[b"VADD", b"v", b"VALUES", b"1", b"1", b"e", b"SETATTR", nested.as_bytes()]);
    assert_eq!(world.ask("VSIM v VALUES 1 1 FILTER .a"), "*0\r\n");
    for huge in ["9223372036854775807", "4294967296", "268435456"] {
        assert_eq!(world.ask(&format!("VSIM v ELE e COUNT {huge} EF {huge}")), "*1\r\n$1\r\ne\r\n", "{huge}");
        assert!(
            world.ask(&format!("VADD w REDUCE {huge} VALUES 2 1 2 e")).starts_with("-ERR invalid vector"),
            "{huge}"
        );
        assert!(world.ask(&format!("VADD w VALUES {huge} 1 e")).starts_with("-ERR invalid vector"), "{huge}");
        assert!(world.ask(&format!("VRANDMEMBER v -{huge}")).starts_with('-'), "{huge}");
    }
}

#[test]
fn no_command_connects_to_another_server() {
    let mut world = World::fresh();
    assert!(world.ask("INFO cluster").contains("cluster_enabled:0\r\n"));
    assert!(world.ask("INFO replication").contains("connected_slaves:0\r\n"));
    assert!(world.ask("REPLICAOF 127.0.0.1 1").starts_with('-'));
    assert!(world.ask("CLUSTER MEET 127.0.0.1 1").starts_with('-'));
}

#[test]
fn clients_may_disconnect_while_another_one_that_waits_for_the_key_is_served() {
    let mut world = World::fresh();
    for count in [2, 3, 10, 50] {
        let clients: Vec<_> = (0..count).map(|_| world.join()).collect();
        for client in &clients {
            assert_eq!(world.ask_as(*client, "BLMPOP 0 1 list LEFT").1, Flow::Block);
        }
        let goes = world.engine.sessions.get(clients[1]).expect("it is there").id.number;
        world.ask("MULTI");
        for command in ["RPUSH list x", &format!("CLIENT KILL ID {goes}"), "RPUSH list y", "DEL list", "SET list 1"] {
            world.ask(command);
        }
        assert!(world.ask("EXEC").ends_with("+OK\r\n"));
        world.ask("DEL list");
        for _ in 0..count {
            world.ask("RPUSH list z");
        }
        assert_eq!(world.ask("LLEN list"), ":1\r\n", "all that wait are served but the one that is gone");
        world.ask("DEL list");
        clients.into_iter().for_each(|client| world.engine.disconnect(client));
    }
}
