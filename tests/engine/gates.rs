//! The gates before a handler, and their order.

use dunlin::engine::{Flow, Permission};

use crate::world::World;

const NOAUTH: &str = "-NOAUTH Authentication required.\r\n";

fn locked() -> World {
    World::with(|settings| settings.password = "secret".to_owned())
}

#[test]
fn an_unknown_command_is_told_so_even_before_login() {
    let mut world = locked();
    assert_eq!(world.ask("NOSUCH a b"), "-ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b' \r\n");
}

#[test]
fn a_wrong_number_of_arguments_is_told_before_login_is_asked_for() {
    let mut world = locked();
    assert_eq!(world.ask("GET"), "-ERR wrong number of arguments for 'get' command\r\n");
    assert_eq!(world.ask("GET key"), NOAUTH);
}

#[test]
fn debug_is_refused_before_login_is_asked_for() {
    let mut world = World::with(|settings| {
        settings.password = "secret".to_owned();
        settings.debug_command = Permission::No;
    });
    assert!(world.ask("DEBUG JMAP").starts_with("-ERR DEBUG command not allowed."));
}

#[test]
fn a_login_opens_the_gate() {
    let mut world = locked();
    assert_eq!(world.ask("AUTH wrong"), "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    assert_eq!(world.ask("SET key value"), NOAUTH);
    assert_eq!(world.ask("AUTH secret"), "+OK\r\n");
    assert_eq!(world.ask("SET key value"), "+OK\r\n");
}

#[test]
fn a_web_page_that_talks_to_us_is_cut_off_without_an_answer() {
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
    assert!(reply.is_empty() && matches!(flow, Flow::Wait(_)), "{reply:?} {flow:?}");
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
    let stats = *world.engine.stats.command(id);
    assert_eq!((stats.calls, stats.rejected, stats.failed), (1, 1, 1));
    assert_eq!(world.engine.stats.errors_by_code.get("WRONGTYPE"), Some(&1));
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
