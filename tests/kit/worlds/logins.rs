//! The user of a client in the world that it enters: never one as which it has not logged in.
//!
//! Each case begins with a key `secret` in the first world and the user `bob` there, who may enter worlds, and read
//! other keys. Its steps are requests of `bob`'s connection, which has logged in as this user; of `admin`, which calls
//! the first world directly; and of `owner`, which calls the world `w` directly. Each step has the beginning of the
//! reply.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use dunlin::{Client, Server};

use crate::{call, served};

/// A client with a socket.
struct Wire(BufReader<TcpStream>);

impl Wire {
    fn to(server: &Server) -> Wire {
        Wire(BufReader::new(TcpStream::connect(server.addr()).expect("it listens")))
    }

    /// The reply as a line; of a string its text.
    fn ask(&mut self, request: &str) -> String {
        self.0.get_mut().write_all(format!("{request}\r\n").as_bytes()).expect("it reads");
        let line = self.line();
        if line.starts_with('$') && line != "$-1" { self.line() } else { line }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("it answers");
        line.trim_end().to_owned()
    }
}

/// The answer as it would be on a wire.
fn ask_directly(client: &mut Client, request: &str) -> String {
    match client.call(request.split(' ')) {
        Ok(reply) => reply.text().map_or_else(|| "other".to_owned(), |text| text.into_owned()),
        Err(error) => format!("-{error}"),
    }
}

/// Goes through the steps `who: request -> answer`, one a line.
fn play(case: &str, steps: &str) {
    let (server, mut admin) = served();
    call(&mut admin, ["SET", "secret", "42"]);
    call(&mut admin, ["SET", "public", "7"]);
    let rules = "ACL SETUSER bob on >pw +dunlin|world +get +acl|whoami ~pub*";
    call(&mut admin, rules.split(' '));
    let mut bob = Wire::to(&server);
    assert_eq!(bob.ask("AUTH bob pw"), "+OK");
    for step in steps.lines().map(str::trim).filter(|step| !step.is_empty()) {
        let (who, step) = step.split_once(": ").expect("the step has a client");
        let (request, expected) = step.split_once(" -> ").expect("there is an answer");
        let answer = match who {
            "bob" => bob.ask(request),
            "admin" => ask_directly(&mut admin, request),
            "owner" => {
                ask_directly(&mut server.world("w").expect("it is there").client().expect("there is room"), request)
            }
            other => panic!("no client is called {other}"),
        };
        assert!(answer.trim_start_matches('+').starts_with(expected), "{case}: {who}: {request}: {answer}");
    }
}

/// By what the default user of the first world, unlike that of the others, needs a login.
const WAYS_TO_LOCK: [(&str, &str); 3] = [
    ("a password was set", "admin: CONFIG SET requirepass top -> OK"),
    ("the default user was disabled", "admin: ACL SETUSER default off -> OK"),
    ("the default user was given a password", "admin: ACL SETUSER default resetpass >top -> OK"),
];

/// The events while the client is in `w`, and its user afterwards: the same, or none, so that it has to log in.
const MEANWHILE: [(&str, &str); 17] = [
    ("he comes back as himself", "bob: DUNLIN WORLD default -> OK\nbob: ACL WHOAMI -> bob\nbob: GET secret -> -NOPERM"),
    ("over a third world too", "bob: DUNLIN WORLD v -> OK\nbob: DUNLIN WORLD default -> OK\nbob: ACL WHOAMI -> bob"),
    (
        "over a temporary one too",
        "bob: DUNLIN WORLD v TEMPORARY -> OK\nbob: DUNLIN WORLD default -> OK\nbob: ACL WHOAMI -> bob",
    ),
    ("by RESET he becomes nobody", "bob: RESET -> RESET\nbob: DUNLIN WORLD default -> OK\nbob: GET secret -> -NOAUTH"),
    (
        "as somebody else of that world he is nobody",
        "bob: ACL SETUSER root on nopass +@all ~* -> OK\nadmin: ACL SETUSER root on >deep +@all ~* -> OK
         bob: AUTH root any -> OK\nbob: DUNLIN WORLD default -> OK\nbob: GET secret -> -NOAUTH
         bob: AUTH root any -> -WRONGPASS",
    ),
    (
        "as a namesake of that world he is himself",
        "bob: ACL SETUSER bob on nopass +@all ~* -> OK\nbob: AUTH bob any -> OK\nbob: DUNLIN WORLD default -> OK
         bob: ACL WHOAMI -> bob\nbob: GET secret -> -NOPERM",
    ),
    (
        "by a name that leads there he is nobody",
        "bob: AUTH world.default any -> -WRONGPASS\nbob: GET secret -> -NOAUTH\nbob: AUTH bob pw -> OK",
    ),
    ("by HELLO too", "bob: HELLO 3 AUTH world.default any -> -WRONGPASS\nbob: GET secret -> -NOAUTH"),
    ("removed", "admin: ACL DELUSER bob -> other\nbob: DUNLIN WORLD default -> OK\nbob: GET public -> -NOAUTH"),
    (
        "disabled",
        "admin: ACL SETUSER bob off -> OK\nbob: DUNLIN WORLD default -> OK\nbob: PING -> -NOAUTH
         bob: AUTH bob pw -> -WRONGPASS",
    ),
    (
        "with another password",
        "admin: ACL SETUSER bob resetpass >new -> OK\nbob: DUNLIN WORLD default -> OK\nbob: PING -> -NOAUTH
         bob: AUTH bob new -> OK",
    ),
    (
        "with one more password",
        "admin: ACL SETUSER bob >new -> OK\nbob: DUNLIN WORLD default -> OK\nbob: ACL WHOAMI -> bob",
    ),
    (
        "with any password",
        "admin: ACL SETUSER bob nopass -> OK\nbob: DUNLIN WORLD default -> OK\nbob: ACL WHOAMI -> bob",
    ),
    (
        "with other rights",
        "admin: ACL SETUSER bob allkeys -get -> OK\nbob: DUNLIN WORLD default -> OK\nbob: GET secret -> -NOPERM",
    ),
    (
        "removed, and made again by others",
        "admin: ACL DELUSER bob -> other\nadmin: ACL SETUSER bob on >his +@all ~* -> OK
         bob: DUNLIN WORLD default -> OK\nbob: GET secret -> -NOAUTH",
    ),
    (
        "never there, after a rollback",
        "admin: ACL DELUSER bob -> other\nadmin: DUNLIN SNAPSHOT none -> OK\nadmin: ACL SETUSER bob on >pw +@all -> OK
         admin: DUNLIN ROLLBACK none -> OK\nbob: DUNLIN WORLD default -> OK\nbob: PING -> -NOAUTH",
    ),
    ("who looks at the first world from there", "bob: DUNLIN DIFF WORLD default -> -NOPERM"),
];

#[test]
fn a_client_that_returns_to_the_first_world_has_its_old_user_or_must_log_in() {
    for (lock, locked) in WAYS_TO_LOCK {
        for (case, steps) in MEANWHILE {
            let goes = "bob: DUNLIN WORLD w -> OK\nbob: ACL WHOAMI -> default";
            play(&format!("{lock}, {case}"), &format!("{locked}\n{goes}\n{steps}"));
        }
    }
}

#[test]
fn an_unknown_client_is_the_default_user_where_no_login_is_needed() {
    for (case, steps) in [
        ("himself", "bob: DUNLIN WORLD default -> OK\nbob: ACL WHOAMI -> bob"),
        ("removed", "admin: ACL DELUSER bob -> other\nbob: DUNLIN WORLD default -> OK\nbob: ACL WHOAMI -> default"),
        ("by RESET", "bob: RESET -> RESET\nbob: DUNLIN WORLD default -> OK\nbob: ACL WHOAMI -> default"),
        (
            "locked meanwhile",
            "bob: RESET -> RESET\nadmin: CONFIG SET requirepass top -> OK\nbob: DUNLIN WORLD default -> OK
             bob: PING -> -NOAUTH\nbob: DUNLIN WORLD w -> -NOAUTH\nbob: AUTH top -> OK\nbob: DUNLIN WORLD -> default",
        ),
    ] {
        play(case, &format!("bob: DUNLIN WORLD w -> OK\nbob: ACL WHOAMI -> default\n{steps}"));
    }
}

#[test]
fn the_default_user_stays_logged_in_where_the_password_is_the_same() {
    for (case, steps) in [
        (
            "there and back",
            "admin: CONFIG SET requirepass top -> OK\nbob: AUTH world.w top -> OK\nbob: DUNLIN WORLD default -> OK
             bob: GET secret -> 42\nbob: DUNLIN WORLD w -> OK\nbob: AUTH any -> -ERR\nbob: DUNLIN DIFF WORLD default -> - SET public 7",
        ),
        (
            "the other world has another password",
            "bob: RESET -> RESET\nowner: CONFIG SET requirepass deep -> OK\nbob: DUNLIN WORLD w -> OK
             bob: AUTH deep -> OK\nbob: DUNLIN WORLD w -> OK\nbob: DUNLIN WORLD default -> OK\nbob: GET secret -> 42",
        ),
        (
            "the password of the first world was changed",
            "bob: RESET -> RESET\nadmin: CONFIG SET requirepass top -> OK\nbob: AUTH top -> OK\nbob: DUNLIN WORLD w -> OK
             admin: CONFIG SET requirepass new -> OK\nbob: DUNLIN WORLD default -> OK\nbob: GET secret -> -NOAUTH",
        ),
    ] {
        play(case, steps);
    }
}

#[test]
fn a_login_that_moved_a_client_and_failed_lets_no_later_command_pass() {
    for login in ["AUTH world.w wrong", "HELLO 3 AUTH world.w wrong"] {
        let moves = format!("owner: CONFIG SET requirepass deep -> OK\nbob: {login} -> -WRONGPASS");
        play(login, &format!("{moves}\nbob: DUNLIN WORLD -> -NOAUTH\nbob: DUNLIN WORLD v -> -NOAUTH"));
    }
}

#[test]
fn a_client_that_has_moved_is_told_so_whatever_it_may_do_there() {
    for (locked, refusal) in
        [("owner: ACL SETUSER default -@all -> OK", "-NOPERM"), ("owner: CONFIG SET requirepass deep -> OK", "-NOAUTH")]
    {
        let moves = "bob: RESET -> RESET\nbob: DUNLIN WORLD w -> OK";
        play(locked, &format!("{locked}\n{moves}\nbob: PING -> {refusal}\nbob: DUNLIN WORLD w -> {refusal}"));
    }
}

#[test]
fn users_of_a_template_accept_clients_with_their_password() {
    for (case, steps) in [
        ("the same", "bob: DUNLIN WORLD w -> OK\nbob: ACL WHOAMI -> bob\nbob: GET secret -> -NOPERM"),
        (
            "another password there",
            "owner: ACL SETUSER bob resetpass >other -> OK\nbob: DUNLIN WORLD w -> OK\nbob: AUTH bob pw -> -WRONGPASS
             bob: AUTH bob other -> OK\nbob: DUNLIN WORLD default -> OK\nbob: ACL WHOAMI -> bob\nbob: GET secret -> -NOPERM",
        ),
        ("disabled there", "owner: ACL SETUSER bob off -> OK\nbob: DUNLIN WORLD w -> OK\nbob: PING -> -NOAUTH"),
        ("removed there", "owner: ACL DELUSER bob -> other\nbob: DUNLIN WORLD w -> OK\nbob: AUTH top -> OK"),
    ] {
        let template = "admin: CONFIG SET requirepass top -> OK\nadmin: DUNLIN TEMPLATE -> OK";
        play(case, &format!("{template}\n{steps}"));
    }
}
