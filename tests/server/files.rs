//! The folder that a server has its files in, and short ways to talk to such a server.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use dunlin::{Reply, Server};

use crate::program::{Running, start};
use crate::wire::connect;

/// A folder that is removed at the end of its test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("dunlin-{}-files-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder can be made");
        Folder(path)
    }

    pub(crate) fn text(&self) -> &str {
        self.0.to_str().expect("its name is text")
    }

    pub(crate) fn dump(&self) -> PathBuf {
        self.0.join("dump.rdb")
    }

    /// The names of the files in it.
    pub(crate) fn files(&self) -> Vec<String> {
        names_in(&self.0)
    }

    /// A server whose files are here.
    pub(crate) fn server(&self) -> Server {
        Server::builder().set("dir", self.text()).allow_debug().start().expect("it starts")
    }

    /// A program whose files are here.
    pub(crate) fn program(&self, more: &[&str]) -> Running {
        start(&[&["--port", "0", "--dir", self.text()], more].concat())
    }
}

/// The names of the files in a folder, in order.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it is there");
    let name =
        |entry: io::Result<fs::DirEntry>| entry.expect("it can be read").file_name().to_string_lossy().into_owned();
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs commands, one in each line, which must succeed.
pub(crate) fn run(server: &Server, commands: &str) {
    let mut client = server.client().expect("it connects");
    for line in commands.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let reply = client.call(line.split(' ')).expect("it is answered");
        assert!(!matches!(reply, Reply::Error(_)), "{line}: {reply:?}");
    }
}

pub(crate) fn ask(server: &Server, command: &str) -> Reply {
    server.client().expect("it connects").call(command.split(' ')).expect("it is answered")
}

/// Sends one command to a server, and returns the reply as it came: nothing if the server ends.
pub(crate) fn told_by(address: SocketAddr, command: &str) -> String {
    let mut client = connect(address);
    client.send(format!("{command}\r\nQUIT\r\n"));
    let reply = String::from_utf8(client.rest()).expect("it is text");
    reply.strip_suffix("+OK\r\n").unwrap_or(&reply).trim_end().to_owned()
}

/// Sends one command to a program, and returns the reply as it came: nothing if the program ends.
pub(crate) fn told(program: &Running, command: &str) -> String {
    told_by(program.address(), command)
}

/// The text of a reply that may be an error.
pub(crate) fn error(server: &Server, command: &str) -> String {
    match server.client().expect("it connects").call(command.split(' ')) {
        Ok(reply) => format!("{reply:?}"),
        Err(error) => error.to_string(),
    }
}

pub(crate) fn info(server: &Server, field: &str) -> String {
    let reply = ask(server, "INFO persistence");
    let text = reply.text().expect("INFO is text").into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{field}:")).map(str::to_owned));
    line.unwrap_or_else(|| panic!("INFO has no {field}"))
}

/// Data of every type, with deadlines of keys and fields, in two databases.
pub(crate) const DATA: &str = "SET text hello
    SET number 12345
    SET volatile x PX 100000000
    RPUSH list 1 2 three
    SADD integers 1 2 3
    SADD set a b 3
    ZADD zset 1 a 2.5 b
    HSET hash a 1 b two
    HSET fields a 1 b 2
    HPEXPIRE fields 100000000 FIELDS 1 a
    XADD stream 1-1 field value
    XADD stream 2-1 field value other x
    XGROUP CREATE stream group 0
    XREADGROUP GROUP group consumer COUNT 1 STREAMS stream >
    PFADD sketch a b c
    SELECT 3
    SET elsewhere y";

/// A figure of INFO's section about clients.
pub(crate) fn clients(server: &Server, field: &str) -> String {
    let reply = ask(server, "INFO clients");
    let text = reply.text().expect("INFO is text").into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{field}:")).map(str::to_owned));
    line.unwrap_or_else(|| panic!("INFO has no {field}"))
}
