//! A test of a cache that keeps entries for an hour, without waiting for an hour.
//!
//! Run it with `cargo run --example embed`.

use std::time::Duration;

use dunlin::Server;
use redis::Commands;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::start()?;
    let mut connection = redis::Client::open(server.url())?.get_connection()?;

    let () = connection.set_ex("page:home", "<h1>hello</h1>", 3600)?;
    server.advance(Duration::from_secs(3599));
    assert_eq!(connection.get("page:home"), Ok(Some("<h1>hello</h1>".to_owned())));

    server.advance(Duration::from_secs(1));
    assert_eq!(connection.get("page:home"), Ok(None::<String>));
    Ok(())
}
