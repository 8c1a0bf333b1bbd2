//! Clients that are killed, paused or listed, with a clock that moves.

use crate::world::World;
use dunlin::engine::{Effect, Flow};

#[test]
fn a_client_that_kills_itself_gets_its_reply_and_is_closed() {
    let mut world = World::fresh();
    let id = world.client.number;
    let (reply, flow) = world.ask_as(world.client, &format!("CLIENT KILL ID {id} SKIPME NO"));
    assert_eq!((reply.as_str(), flow), (":1\r\n", Flow::Close));
}

#[test]
fn killing_another_client_is_an_effect() {
    let mut world = World::fresh();
    let victim = world.join();
    assert_eq!(world.ask(&format!("CLIENT KILL ID {}", victim.number)), ":1\r\n");
    let wishes = world.engine.effects.take();
    assert!(matches!(wishes[..], [Effect::Close(id)] if id == victim), "{wishes:?}");
}

#[test]
fn only_clients_older_than_the_age_are_killed() {
    let mut world = World::fresh();
    let old = world.join();
    world.pass_ms(60_000);
    world.join();
    assert_eq!(world.ask("CLIENT KILL MAXAGE 61"), ":0\r\n");
    assert_eq!(world.ask("CLIENT KILL MAXAGE 60"), ":1\r\n");
    let wishes = world.engine.effects.take();
    assert!(matches!(wishes[..], [Effect::Close(id)] if id == old), "{wishes:?}");
}

#[test]
fn a_client_grows_older_and_idle() {
    let mut world = World::fresh();
    let other = world.join();
    world.pass_ms(7_000);
    world.ask_as(other, "PING");
    world.pass_ms(3_500);
    let line = world.ask(&format!("CLIENT LIST ID {}", other.number));
    assert!(line.contains(" age=10 idle=3 "), "{line}");
}

#[test]
fn shutdown_is_an_effect_and_has_no_reply() {
    let mut world = World::fresh();
    let (reply, flow) = world.ask_as(world.client, "SHUTDOWN NOSAVE");
    assert_eq!((reply.as_str(), flow), ("", Flow::Close));
    let wishes = world.engine.effects.take();
    assert!(matches!(wishes[..], [Effect::Log(..), Effect::Shutdown]), "{wishes:?}");
}

#[test]
fn the_end_of_a_pause_resumes_all_clients() {
    let mut world = World::fresh();
    world.ask("CLIENT PAUSE 100000 WRITE");
    assert!(matches!(world.ask_as(world.client, "SET key value").1, Flow::HeldBack(_)));
    world.ask("CLIENT UNPAUSE");
    assert!(matches!(world.engine.effects.take()[..], [Effect::Resume]));
    assert_eq!(world.ask("SET key value"), "+OK\r\n");
}
