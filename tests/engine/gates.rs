//! The gates before a handler, and their order.

use dunlin::engine::{Flow, Permission};

use crate::world::World;

const NOAUTH: &str = "-NOAUTH Authentication required.\r\n";

fn locked() -> World {
    World::with(|settings| settings.password = "secret".to_owned())
}

#[test]
fn an_unknown_command_is_reported_even_before_login() {
    let mut world = locked();
    assert_eq!(world.ask("NOSUCH a b"), "-ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b' \r\n");
}

#[test]
fn a_wrong_number_of_arguments_is_reported_before_a_missing_login() {
    let mut world = locked();
    assert_eq!(world.ask("GET"), "-ERR wrong number of arguments for 'get' command\r\n");
    assert_eq!(world.ask("GET key"), NOAUTH);
}

#[test]
fn a_forbidden_debug_is_reported_before_a_missing_login() {
    let mut world = World::with(|settings| {
        settings.password = "secret".to_owned();
        settings.debug_command = Permission::No;
    });
    assert!(world.ask("DEBUG JMAP").starts_with("-ERR DEBUG command not allowed."));
}

#[test]
fn commands_are_allowed_after_a_login() {
    let mut world = locked();
    assert_eq!(world.ask("AUTH wrong"), "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    assert_eq!(world.ask("SET key value"), NOAUTH);
    assert_eq!(world.ask("AUTH secret"), "+OK\r\n");
    assert_eq!(world.ask("SET key value"), "+OK\r\n");
}

#[test]
fn a_request_of_a_web_page_closes_the_connection_without_a_reply() {
    let mut world = World::fresh();
    for line in ["POST / HTTP/1.1", "Host: localhost:6379"] {
        assert_eq!(world.ask_as(world.client, line), (String::new(), Flow::Abort));
    }
}

#[test]
fn a_pause_of_writes_lets_reads_pass() {
    let mut world = World::fresh();
    let other = world.join();
    assert_eq!(world.ask("CLIENT PAUSE 50 WRITE"), "+OK\r\n");
    assert_eq!(world.ask_as(other, "GET key").0, "$-1\r\n");
    let (reply, flow) = world.ask_as(other, "SET key value");
    assert!(reply.is_empty() && matches!(flow, Flow::HeldBack(_)), "{reply:?} {flow:?}");
    world.pass_ms(50);
    assert_eq!(world.ask_as(other, "SET key value").0, "+OK\r\n");
}

#[test]
fn a_pause_keeps_keys_alive_until_it_ends() {
    let mut world = World::fresh();
    world.ask("SET key value PX 10");
    world.ask("CLIENT PAUSE 100 WRITE");
    world.pass_ms(20);
    assert_eq!(world.expire(), 0);
    assert_eq!(world.ask("GET key"), "$-1\r\n", "a reader must not see it all the same");
    world.pass_ms(80);
    assert_eq!(world.expire(), 1);
}

#[test]
fn a_refused_command_is_counted_as_rejected_and_a_failed_one_as_failed() {
    let mut world = World::fresh();
    world.ask("GET");
    world.ask("ZADD board 1 ann");
    world.ask("GET board");
    let id = world.engine.table.find(b"get").expect("GET exists");
    let stats = world.engine.stats.command(id).clone();
    assert_eq!((stats.calls, stats.rejected, stats.failed), (1, 1, 1));
    assert!(world.engine.stats.errors_by_code.iter().any(|pair| pair == ("WRONGTYPE", 1)));
}

#[test]
fn skipped_replies_are_those_of_the_next_command_only() {
    let mut world = World::fresh();
    assert_eq!(world.ask("CLIENT REPLY SKIP"), "");
    assert_eq!(world.ask("PING"), "");
    assert_eq!(world.ask("PING"), "+PONG\r\n");
}

#[test]
fn replies_stay_off_until_they_are_switched_on() {
    let mut world = World::fresh();
    assert_eq!(world.ask("CLIENT REPLY OFF"), "");
    assert_eq!(world.ask("GET"), "");
    assert_eq!(world.ask("CLIENT REPLY ON"), "+OK\r\n");
    assert_eq!(world.ask("PING"), "+PONG\r\n");
}

#[test]
fn a_script_with_the_flag_no_writes_runs_while_writes_are_paused() {
    let mut world = World::fresh();
    let reading: &[&[u8]] = &[b"EVAL", b"#!lua flags=no-writes\nreturn 1", b"0"];
    let silent: &[&[u8]] = &[b"EVAL", b"return 1", b"0"];
    let kept = world.send(world.client, &[b"SCRIPT", b"LOAD", reading[1]]).0;
    let name = kept.split(|&byte| byte == b'\n').nth(1).expect("it has a name").trim_ascii_end().to_vec();
    world.ask("CLIENT PAUSE 1000 WRITE");
    assert_eq!(world.send(world.client, reading), (b":1\r\n".to_vec(), Flow::Next));
    assert_eq!(world.send(world.client, &[b"EVALSHA", &name, b"0"]), (b":1\r\n".to_vec(), Flow::Next));
    assert!(matches!(world.send(world.client, silent).1, Flow::HeldBack(_)), "a script that says nothing may write");
    let library: &[u8] = b"#!lua name=l\nredis.register_function{function_name='f', callback=function() \
        return 2 end, flags={'no-writes'}}";
    world.ask("CLIENT UNPAUSE");
    world.send(world.client, &[b"FUNCTION", b"LOAD", library]);
    world.ask("CLIENT PAUSE 1000 WRITE");
    assert_eq!(world.ask("FCALL f 0"), ":2\r\n");
}
