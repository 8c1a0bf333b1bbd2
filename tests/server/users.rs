//! The ACL file, and users in the configuration.

use std::fs;
use std::path::PathBuf;

use dunlin::{Server, StartError};

use crate::wire::{Wire, connect};

/// A file that no other test uses, with that text; it goes with this value.
struct UserFile(PathBuf);

impl UserFile {
    fn holding(name: &str, text: &str) -> UserFile {
        let path = std::env::temp_dir().join(format!("dunlin-{}-{name}.acl", std::process::id()));
        fs::write(&path, text).expect("it can be written");
        UserFile(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("the path is text")
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.0).expect("it can be read")
    }

    fn server(&self) -> Result<Server, StartError> {
        Server::builder().set("aclfile", self.path()).start()
    }
}

impl Drop for UserFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn ask<S: std::io::Read + std::io::Write>(client: &mut Wire<S>, exchanges: &[(&str, &str)]) {
    for (command, reply) in exchanges {
        client.ask(format!("{command}\r\n"), format!("{reply}\r\n"));
    }
}

#[test]
fn users_are_loaded_from_the_acl_file_at_the_start_and_saved_into_it() {
    let file = UserFile::holding("start", "user ann on nopass ~a* +get\nuser default on nopass ~* &* +@all\n\n");
    let server = file.server().expect("it starts");
    let mut client = connect(server.addr());
    ask(&mut client, &[("ACL SETUSER bob on nopass", "+OK"), ("ACL SAVE", "+OK")]);
    let saved = "user ann on nopass sanitize-payload ~a* resetchannels -@all +get\n\
                 user bob on nopass sanitize-payload resetchannels -@all\n\
                 user default on nopass sanitize-payload ~* &* +@all\n";
    assert_eq!(file.text(), saved);
    ask(&mut client, &[("ACL DELUSER bob", ":1"), ("ACL LOAD", "+OK"), ("AUTH bob x", "+OK"), ("AUTH ann x", "+OK")]);
    ask(&mut client, &[("GET a1", "$-1"), ("GET b", "-NOPERM No permissions to access a key")]);
}

#[test]
fn an_acl_file_with_an_error_changes_nothing() {
    let file = UserFile::holding("fault", "user ann on nopass +get\n");
    let server = file.server().expect("it starts");
    let mut client = connect(server.addr());
    fs::write(file.path(), "user bob on\nuser cid on +nosuch\nnobody\n").expect("it can be written");
    let path = file.path();
    let expected = format!(
        "-ERR {path}:2: Error in applying operation '+nosuch': Unknown command or category name in ACL. {path}:3 \
         should start with user keyword followed by the username. WARNING: ACL errors detected, no change to the \
         previously active ACL rules was performed"
    );
    ask(&mut client, &[("ACL LOAD", expected.as_str()), ("ACL USERS", "*2\r\n$3\r\nann\r\n$7\r\ndefault")]);
    fs::remove_file(path).expect("it is there");
    let expected = format!("-ERR Error loading ACLs, opening file '{path}': No such file or directory");
    ask(&mut client, &[("ACL LOAD", expected.as_str()), ("ACL USERS", "*2\r\n$3\r\nann\r\n$7\r\ndefault")]);
}

#[test]
fn a_server_does_not_start_with_a_faulty_acl_file() {
    let file = UserFile::holding("refused", "user ann on foo\n");
    let fault = file.server().expect_err("there is a fault").to_string();
    let expected = format!(
        "Aborting Redis startup because of ACL errors: {}:1: Syntax error. WARNING: ACL errors detected, no change to \
         the previously active ACL rules was performed",
        file.path()
    );
    assert_eq!(fault, expected);
}

#[test]
fn an_acl_file_that_cannot_be_written_is_reported_and_unchanged() {
    let file = UserFile::holding("stays", "");
    let server = Server::builder().set("aclfile", file.path()).start().expect("it starts");
    let mut client = connect(server.addr());
    fs::remove_file(file.path()).expect("it is there");
    fs::create_dir(file.path()).expect("a folder can take its place");
    let expected = "-ERR There was an error trying to save the ACLs. Please check the server logs for more information";
    ask(&mut client, &[("ACL SAVE", expected)]);
    fs::remove_dir(file.path()).expect("it is empty");
}

#[test]
fn a_loaded_acl_file_closes_the_clients_of_users_that_it_lacks() {
    let file = UserFile::holding("closed", "user ann on nopass &* +@all\nuser bob on nopass &* +@all\n");
    let server = file.server().expect("it starts");
    let (mut client, mut ann, mut bob) = (connect(server.addr()), connect(server.addr()), connect(server.addr()));
    ask(&mut ann, &[("AUTH ann x", "+OK"), ("SUBSCRIBE news", "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1")]);
    ask(&mut bob, &[("AUTH bob x", "+OK")]);
    fs::write(file.path(), "user ann on nopass &other +@all\n").expect("it can be written");
    ask(&mut client, &[("ACL LOAD", "+OK")]);
    assert_eq!((ann.rest(), bob.rest()), (Vec::new(), Vec::new()));
}

#[test]
fn generated_passwords_are_random_unless_a_seed_is_set() {
    let password = |server: Server| server.client().and_then(|mut client| client.call(["ACL", "GENPASS"]));
    let seeded = || password(Server::builder().seed(5).start().expect("it starts"));
    let free = || password(Server::start().expect("it starts"));
    assert_eq!(seeded(), seeded());
    assert_ne!(free(), free());
}
