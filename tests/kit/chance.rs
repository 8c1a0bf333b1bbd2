//! One seed for everything.

use dunlin::Server;

use crate::{call, served};

#[test]
fn after_the_same_seed_the_same_is_chosen() {
    let (_server, mut client) = served();
    let members: Vec<String> = (0..500).map(|number| format!("member:{number}")).collect();
    call(&mut client, ["SADD", "set"].into_iter().chain(members.iter().map(String::as_str)));
    let mut chosen = |seed| {
        call(&mut client, ["DUNLIN", "SEED", seed]);
        call(&mut client, ["SRANDMEMBER", "set", "20"])
    };
    let (first, other, again) = (chosen("7"), chosen("8"), chosen("7"));
    assert_eq!(first, again);
    assert_ne!(first, other);
}

#[test]
fn servers_of_one_seed_are_alike_from_the_start() {
    let run_id = || {
        let server = Server::builder().seed(7).start().expect("it starts");
        let mut client = server.client().expect("there is room");
        let numbers: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        call(&mut client, ["SADD", "set"].into_iter().chain(numbers.iter().map(String::as_str)));
        (call(&mut client, ["SPOP", "set", "10"]), call(&mut client, ["CLIENT", "ID"]))
    };
    assert_eq!(run_id(), run_id());
}
