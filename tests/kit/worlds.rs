//! Worlds: private servers behind one port.

mod entering;
mod logins;
mod ports;
mod privacy;

use dunlin::{Client, Reply, Server, World};

/// A server with worlds `ann` and `ben`, and a client in each.
fn two() -> (Server, [World; 2], [Client; 2]) {
    let server = Server::start().expect("the server starts");
    let worlds = ["ann", "ben"].map(|name| server.world(name).expect("it can be made"));
    let clients = worlds.each_ref().map(|world| world.client().expect("there is room"));
    (server, worlds, clients)
}

fn ok() -> Reply {
    Reply::Status("OK".to_owned())
}

fn text(text: &str) -> Reply {
    Reply::Bytes(text.into())
}

/// The number of clients in a world, as a client of another world sees it.
pub fn clients_in(client: &mut Client, world: &str) -> Option<i64> {
    let Reply::Array(worlds) = client.call(["DUNLIN", "WORLDS"]).expect("it answers") else { panic!("it is a list") };
    let figures = worlds.iter().find(|figures| figure(figures, "name") == Reply::Bytes(world.into()))?;
    match figure(figures, "clients") {
        Reply::Integer(clients) => Some(clients),
        other => panic!("{other:?} is no number"),
    }
}

fn figure(figures: &Reply, name: &str) -> Reply {
    let Reply::Map(pairs) = figures else { panic!("{figures:?} is no map") };
    let found = pairs.iter().find(|(field, _)| *field == name).map(|(_, value)| value.clone());
    found.expect("there is such a figure")
}
