//! Users and their permissions: the ACL gate, and sessions whose user changes. `tests/matrix/checked_keys.rs` tests
//! that all used keys are checked.

use dunlin::engine::{Arity, Flags, Flow, SessionId};
use fastrand::Rng;

use crate::world::World;

const NO_KEY: &str = "-NOPERM No permissions to access a key\r\n";

fn text(words: &[&[u8]]) -> String {
    words.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ")
}

/// A client that acts as a new user with these rules.
fn join_as(world: &mut World, rules: &str) -> SessionId {
    assert_eq!(world.ask(&format!("ACL SETUSER ann on nopass {rules}")), "+OK\r\n");
    let client = world.join();
    assert_eq!(world.ask_as(client, "AUTH ann x").0, "+OK\r\n");
    client
}

#[test]
fn a_new_user_may_call_nothing_but_what_serves_to_log_in() {
    // Kvrocks CVE-2026-41566: a command that is not allowed by name is refused, also a new one.
    let mut world = World::fresh();
    let client = join_as(&mut world, "");
    let entries: Vec<_> =
        world.engine.table.entries().iter().map(|entry| (entry.name.clone(), entry.command)).collect();
    // A command that a setting must enable is refused before that.
    let is_enabled = |flags: Flags| !flags.has(Flags::PROTECTED) && !flags.has(Flags::EXTENDS);
    let entries = entries.iter().filter(|(_, command)| !command.is_container() && is_enabled(command.flags));
    for (name, command) in entries {
        let (Arity::Exactly(words) | Arity::AtLeast(words)) = command.arity;
        let mut request: Vec<&[u8]> = name.split('|').map(str::as_bytes).collect();
        request.resize(request.len().max(words.into()), b"1");
        let (reply, _) = world.send(client, &request);
        let refusal = format!("User ann has no permissions to run the '{name}' command\r\n");
        let is_refused = String::from_utf8_lossy(&reply).ends_with(&refusal);
        assert_eq!(is_refused, !command.flags.has(Flags::NO_AUTH), "{name}");
        if !is_refused {
            world.ask_as(client, "AUTH ann x");
        }
    }
}

#[test]
fn the_arity_is_checked_before_keys_are_searched_for() {
    // R#14847: keys were searched for beyond the last word.
    let mut world = World::fresh();
    let client = join_as(&mut world, "+@all ~a");
    let entries: Vec<_> =
        world.engine.table.entries().iter().map(|entry| (entry.name.clone(), entry.command)).collect();
    for (name, command) in entries.iter().filter(|(_, command)| !command.is_container()) {
        let (Arity::Exactly(words) | Arity::AtLeast(words)) = command.arity;
        let start: Vec<&[u8]> = name.split('|').map(str::as_bytes).collect();
        for length in start.len()..words.into() {
            let mut request = start.clone();
            request.resize(length, b"b");
            let (reply, _) = world.send(client, &request);
            let error = format!("-ERR wrong number of arguments for '{name}' command\r\n");
            assert_eq!(String::from_utf8_lossy(&reply), error, "{}", text(&request));
        }
    }
}

#[test]
fn keys_are_found_in_requests_of_any_shape() {
    // CVE-2023-36824: odd numbers of keys led beyond the last word. All words differ, so each reported key is either a
    // word of the request after the command, or was read out of bounds.
    let mut world = World::fresh();
    let names: Vec<String> = world.engine.table.entries().iter().map(|entry| entry.name.clone()).collect();
    for name in names {
        for count in ["-1", "0", "1", "2", "3", "2147483648", "9223372036854775807", "x", ""] {
            for length in 0..6 {
                let start = ["COMMAND", "GETKEYSANDFLAGS"].into_iter().chain(name.split('|'));
                let mut request: Vec<&[u8]> = start.map(str::as_bytes).collect();
                request.extend(std::iter::repeat_n(count.as_bytes(), length));
                let (reply, _) = world.send(world.client, &request);
                assert!(matches!(reply.first(), Some(b'*' | b'-')), "{}", text(&request));
                for number_at in 0..length {
                    let words: Vec<String> = (0..length)
                        .map(|at| if at == number_at { count.to_owned() } else { format!("w{at}") })
                        .collect();
                    let start = ["COMMAND", "GETKEYS"].into_iter().chain(name.split('|'));
                    let request: Vec<&[u8]> =
                        start.chain(words.iter().map(String::as_str)).map(str::as_bytes).collect();
                    let (reply, _) = world.send(world.client, &request);
                    let reply = String::from_utf8_lossy(&reply);
                    let keys: Vec<&str> =
                        if reply.starts_with('*') { reply.split("\r\n").skip(2).step_by(2).collect() } else { vec![] };
                    let is_word = |key: &&str| words.iter().any(|word| word == key);
                    assert!(keys.iter().all(is_word) && keys.len() <= length, "{}: {reply}", text(&request));
                }
                request.drain(..2);
                request.splice(..0, [&b"ACL"[..], b"DRYRUN", b"default"]);
                world.send(world.client, &request);
            }
        }
    }
}

#[test]
fn permissions_are_checked_again_when_a_transaction_runs() {
    // R#15673.
    let mut world = World::fresh();
    let client = join_as(&mut world, "+@all ~*");
    for command in ["MULTI", "SET a 1", "GET a", "PING"] {
        world.ask_as(client, command);
    }
    world.ask("ACL SETUSER ann resetkeys");
    let refusal = "-NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. \
                   This command is no longer allowed for the following reason: no permission to touch the specified \
                   keys\r\n";
    assert_eq!(world.ask_as(client, "EXEC").0, format!("*3\r\n{refusal}{refusal}+PONG\r\n"));
    assert_eq!(world.ask("EXISTS a"), ":0\r\n");
}

#[test]
fn no_arrangement_of_options_hides_a_key() {
    // CVE-2023-41053, R#15478: what was checked was not what was used.
    let mut world = World::fresh();
    world.ask("RPUSH a 1 2");
    world.ask("SET b secret");
    let client = join_as(&mut world, "+@all ~a");
    let refused = [
        "SORT a STORE b",
        "SORT a STORE a STORE b",
        "SORT a LIMIT 0 1 STORE b",
        "SORT a BY nosort STORE b",
        "SORT b",
        "SORT_RO b",
        "COPY a b",
        "COPY a b DB 1",
        "COPY b a DB 1 REPLACE DB 0",
        "ZUNIONSTORE a 1 b",
        "EVAL return 2 a b",
        "LMPOP 1 b LEFT",
        "MSET a 1 b 2",
    ];
    for command in refused {
        assert_eq!(world.ask_as(client, command).0, NO_KEY, "{command}");
    }
    for command in ["SORT a BY b*", "SORT a GET b*", "SORT_RO a GET b", "SORT a GET #"] {
        let reply = world.ask_as(client, command).0;
        assert!(
            reply.ends_with("option of SORT denied due to insufficient ACL permissions.\r\n"),
            "{command}: {reply}"
        );
    }
    assert_eq!(world.ask("GET b"), "$6\r\nsecret\r\n");
}

#[test]
fn a_blocked_client_is_closed_with_its_user() {
    let mut world = World::fresh();
    let client = join_as(&mut world, "+@all ~*");
    assert_eq!(world.ask_as(client, "BLPOP list 0").1, Flow::Block);
    assert_eq!(world.ask("ACL DELUSER ann"), ":1\r\n");
    assert!(world.engine.sessions.get(client).is_none_or(|session| session.closing));
    assert_eq!(world.ask("RPUSH list x"), ":1\r\n");
    assert_eq!(world.ask("LLEN list"), ":1\r\n", "no client takes the new element");
}

#[test]
fn a_blocked_client_that_loses_its_permission_pops_nothing() {
    let mut world = World::fresh();
    let client = join_as(&mut world, "+@all ~*");
    world.ask_as(client, "BLPOP list 0");
    world.ask("ACL SETUSER ann resetkeys ~other");
    world.ask("RPUSH list x");
    assert_eq!(world.ask("LLEN list"), ":1\r\n");
}

#[test]
fn a_subscriber_that_loses_its_permission_is_closed() {
    let mut world = World::fresh();
    let client = join_as(&mut world, "+@all &news &other");
    world.ask_as(client, "SUBSCRIBE news");
    let is_closed = |world: &World| world.engine.sessions.get(client).is_none_or(|session| session.closing);
    world.ask("ACL SETUSER ann resetchannels &news");
    assert!(!is_closed(&world));
    world.ask("ACL SETUSER ann resetchannels &other");
    assert!(is_closed(&world));
}

#[test]
fn a_user_that_deletes_itself_in_a_transaction_gets_a_complete_reply_and_is_closed() {
    let mut world = World::fresh();
    let client = join_as(&mut world, "+@all ~*");
    for command in ["MULTI", "ACL DELUSER ann", "ACL WHOAMI"] {
        world.ask_as(client, command);
    }
    assert_eq!(world.ask_as(client, "EXEC"), ("*2\r\n:1\r\n$7\r\ndefault\r\n".to_owned(), Flow::Close));
}

#[test]
fn a_wrong_password_fills_no_memory() {
    let mut world = World::fresh();
    for number in 0..10_000 {
        let reply = world.ask(&format!("AUTH user{number} secret"));
        assert_eq!(reply, "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    }
    assert_eq!(world.engine.acl.log.iter().len(), 128);
    assert!(world.ask("INFO stats").contains("acl_access_denied_auth:10000\r\n"));
    world.ask("CONFIG RESETSTAT");
    // As in Redis, refused commands stay counted.
    assert!(world.ask("INFO stats").contains("acl_access_denied_auth:10000\r\n"));
}

#[test]
fn users_can_be_added_and_removed_while_their_clients_are_blocked_or_subscribed() {
    // R#13274, V#3800: a user that went while a client of it was being freed ended the server.
    let mut world = World::fresh();
    let mut chance = Rng::with_seed(3);
    let mut clients: Vec<SessionId> = (0..8).map(|_| world.join()).collect();
    let acts = ["BLPOP l 0", "SUBSCRIBE c", "PSUBSCRIBE c*", "MULTI", "PING", "EXEC", "ACL DELUSER u1", "MONITOR"];
    let rules =
        ["-@all", "+@all", "resetchannels", "&c", "allchannels", "~l", "resetkeys", "reset", "off", "on nopass"];
    for _ in 0..20_000 {
        let at = chance.usize(..clients.len());
        let user = chance.usize(..3);
        let command = match chance.u8(..5) {
            0 => format!("ACL SETUSER u{user} on nopass {}", rules[chance.usize(..rules.len())]),
            1 => format!("ACL DELUSER u{user}"),
            2 => format!("AUTH u{user} x"),
            3 => ["RPUSH l x", "PUBLISH c m"][chance.usize(..2)].to_owned(),
            _ => acts[chance.usize(..acts.len())].to_owned(),
        };
        let is_own = chance.bool() && command.len() > 4;
        let sender = if is_own { clients[at] } else { world.client };
        let is_gone = world.engine.sessions.get(sender).is_none_or(|session| session.closing);
        if !is_own && !command.starts_with("ACL") || world.engine.is_blocked(sender) && !is_gone {
            continue;
        }
        if is_gone || matches!(world.ask_as(sender, &command).1, Flow::Close | Flow::Abort) {
            world.engine.disconnect(sender);
            clients[at] = world.join();
        }
        world.engine.effects.take();
    }
    assert_eq!(world.ask("PING"), "+PONG\r\n");
}
