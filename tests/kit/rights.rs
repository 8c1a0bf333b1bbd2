//! The test kit and the rights of users: what may show any key is for those who may read all keys.

use dunlin::{Client, Server};

use crate::{call, error};

const REFUSED: &str = "NOPERM No permissions to access a key";

/// A server with keys of an application and others, a client who may do all, and one who may read the application's.
fn with_reader() -> (Server, Client, Client) {
    let server = Server::start().expect("the server starts");
    let mut owner = server.client().expect("there is room");
    for line in [
        "SET app:1 v PX 1000000",
        "SET secret v PX 1000000",
        "DUNLIN JOURNAL START",
        "ACL SETUSER reader on nopass +@all ~app:*",
        "ACL SETUSER all on nopass +@all %R~* %W~app:*",
    ] {
        call(&mut owner, line.split(' '));
    }
    let mut reader = server.client().expect("there is room");
    call(&mut reader, ["AUTH", "reader", "x"]);
    call(&mut reader, ["HELLO", "3"]);
    (server, owner, reader)
}

#[test]
fn a_user_dumps_the_keys_alone_that_it_may_read() {
    let (_server, mut owner, mut reader) = with_reader();
    let dumped = call(&mut reader, ["DUNLIN", "DUMP", "KEY", "app:1"]);
    assert!(dumped.text().is_some_and(|text| text.contains("SET app:1 v")), "{dumped:?}");
    assert_eq!(error(&mut reader, ["DUNLIN", "DUMP", "KEY", "secret"]), REFUSED);
    call(&mut owner, ["ACL", "SETUSER", "reader", "resetkeys", "%W~*"]);
    assert_eq!(error(&mut reader, ["DUNLIN", "DUMP", "KEY", "app:1"]), REFUSED, "to write is not to read");
}

#[test]
fn what_may_show_any_key_is_for_users_who_may_read_all() {
    let (_server, mut owner, mut reader) = with_reader();
    call(&mut owner, ["DUNLIN", "SNAPSHOT", "before"]);
    let lines = [
        "DUNLIN DUMP",
        "DUNLIN DIFF SET",
        "DUNLIN DIFF SNAPSHOT before",
        "DUNLIN DIFF SNAPSHOT before before",
        "DUNLIN DUE",
        "DUNLIN FEED",
        "DUNLIN JOURNAL LIST",
        "DUNLIN JOURNAL PATTERNS",
        "DUNLIN JOURNAL EXPECT NONE",
        "DUNLIN JOURNAL EXPORT",
        "DUNLIN STRICT FINDINGS",
        "DUNLIN STRICT CHECK",
    ];
    for line in lines {
        assert_eq!(error(&mut reader, line.split(' ')), REFUSED, "{line}");
    }
    call(&mut reader, ["DUNLIN", "FEED", "OFF"]);
    call(&mut reader, ["AUTH", "all", "x"]);
    for line in lines.into_iter().filter(|line| !line.ends_with("SET") && !line.ends_with("NONE")) {
        call(&mut reader, line.split(' '));
    }
}
