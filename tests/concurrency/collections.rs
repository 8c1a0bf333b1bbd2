//! Patterns with sets: deduplication of events, and the members of a room.

use std::time::Duration;

use dunlin::Server;
use redis::{Commands, pipe};

use crate::{at_once, connect};

#[test]
fn each_event_is_handled_once_in_its_window_however_many_receive_it() {
    const EVENTS: usize = 500;
    let server = Server::builder().frozen().start().expect("it starts");
    let receive = |client: usize, connection: &mut redis::Connection| {
        let handled = (0..EVENTS).filter(|event| {
            // Clients meet the events in orders of their own.
            let event = (event * 7 + client * 61) % EVENTS;
            let bucket = format!("dedupe:order-events:2026112{}", event % 3);
            let (is_first, _): (bool, bool) = pipe()
                .atomic()
                .sadd(&bucket, format!("event-{event}"))
                .expire(&bucket, 900)
                .query(connection)
                .expect("it is noted");
            is_first
        });
        handled.count()
    };
    assert_eq!(at_once(&server, 8, receive).iter().sum::<usize>(), EVENTS);
    server.advance(Duration::from_secs(899));
    assert_eq!(at_once(&server, 2, receive).iter().sum::<usize>(), 0);
    server.advance(Duration::from_secs(900));
    assert_eq!(redis::cmd("DBSIZE").query(&mut connect(&server)), Ok(0));
    assert_eq!(at_once(&server, 4, receive).iter().sum::<usize>(), EVENTS);
}

#[test]
fn a_room_holds_exactly_the_members_that_joined_and_did_not_leave() {
    let server = Server::start().expect("it starts");
    at_once(&server, 8, |client, connection| {
        for number in 0..200 {
            let visitor = format!("connection-{client}-{number}");
            assert_eq!(connection.sadd("room:7:connections", &visitor), Ok(1));
            if number % 4 != 0 {
                assert_eq!(connection.srem("room:7:connections", &visitor), Ok(1));
            }
        }
    });
    let mut connection = connect(&server);
    let mut there: Vec<String> = connection.smembers("room:7:connections").expect("it is there");
    there.sort_unstable();
    let mut expected: Vec<String> = (0..8)
        .flat_map(|client| (0..200).step_by(4).map(move |number| format!("connection-{client}-{number}")))
        .collect();
    expected.sort_unstable();
    assert_eq!(there, expected);
}
