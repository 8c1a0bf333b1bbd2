//! Two nodes that move keys to each other at the same moment. Each waits for the other one, as two servers of Redis do,
//! until its MIGRATE gives up.

use std::sync::Barrier;
use std::thread;

use dunlin::Client;

use crate::nodes::{Nodes, text};
use crate::timeout::wait_until;

const KEYS: usize = 50;

/// The answer to a MIGRATE whose target does not answer in time.
const GAVE_UP: &str = "IOERR error or timeout reading to target instance";

/// Three nodes, of which the first moves its keys with the tag `bar` to the second, and that its keys with the tag
/// `abc` to the first.
fn nodes_with_crossed_moves(value: &str) -> Nodes {
    let mut three = Nodes::start();
    for number in 0..KEYS {
        three.expect(&[(0, &format!("SET {{bar}}{number} {value}"), "OK")]);
        three.expect(&[(1, &format!("SET {{abc}}{number} {value}"), "OK")]);
    }
    let [first, second] = [three.id(0), three.id(1)];
    three.open();
    three.expect(&[
        (0, &format!("CLUSTER SETSLOT 7638 IMPORTING {second}"), "OK"),
        (1, &format!("CLUSTER SETSLOT 7638 MIGRATING {first}"), "OK"),
    ]);
    three
}

/// Runs `act` with the clients of both nodes at once, each with the port of the other node and the tag of its keys.
fn at_both<R: Send>(three: &mut Nodes, act: impl Fn(&mut Client, u16, &str) -> R + Sync) -> [R; 2] {
    let [to_first, to_second] = [three.port(0), three.port(1)];
    let (one, others) = three.clients.split_at_mut(1);
    let (act, start) = (&act, &Barrier::new(2));
    thread::scope(|scope| {
        let nodes = [(&mut one[0], to_second, "bar"), (&mut others[0], to_first, "abc")];
        let workers = nodes.map(|(client, port, tag)| {
            scope.spawn(move || {
                start.wait();
                act(client, port, tag)
            })
        });
        workers.map(|worker| worker.join().expect("no thread panics"))
    })
}

#[test]
fn two_nodes_that_move_keys_to_each_other_at_once_lose_none_and_come_to_an_end() {
    let mut three = nodes_with_crossed_moves("1");
    at_both(&mut three, |client, port, tag| {
        for number in 0..KEYS {
            // Of two that wait for each other one may give up; it tries again then.
            let line = format!("MIGRATE 127.0.0.1 {port} {{{tag}}}{number} 0 20");
            while let Err(error) = client.call(line.split(' ')) {
                assert_eq!(error.to_string(), GAVE_UP);
            }
        }
    });
    three.expect(&[(0, "DBSIZE", "50"), (1, "DBSIZE", "50")]);
    three.expect(&[(0, "CLUSTER COUNTKEYSINSLOT 7638", "50"), (1, "CLUSTER COUNTKEYSINSLOT 5061", "50")]);
}

#[test]
fn of_two_nodes_that_wait_for_each_other_one_gives_up_and_both_keep_their_keys() {
    // Writing the keys takes longer than a processor stays with one thread, so both nodes are at it at once soon.
    let mut three = nodes_with_crossed_moves(&"x".repeat(200_000));
    wait_until("one gives up", || {
        let answers = at_both(&mut three, |client, port, tag| {
            let keys = (0..KEYS).map(|number| format!("{{{tag}}}{number}")).collect::<Vec<_>>().join(" ");
            text(client, &format!("MIGRATE 127.0.0.1 {port}  0 100 COPY REPLACE KEYS {keys}"))
        });
        answers.iter().for_each(|answer| assert!(["OK", GAVE_UP].contains(&&**answer), "{answer}"));
        // When it has, the other one may still be in time.
        answers.iter().any(|answer| answer == GAVE_UP)
    });
    three.expect(&[(0, "CLUSTER COUNTKEYSINSLOT 5061", "50"), (0, "STRLEN {bar}7", "200000")]);
    three.expect(&[(1, "CLUSTER COUNTKEYSINSLOT 7638", "50"), (1, "STRLEN {abc}7", "200000")]);
    let port = three.port(1);
    three.expect(&[(0, &format!("MIGRATE 127.0.0.1 {port} {{bar}}7 0 100 REPLACE"), "OK")]);
}
