//! Programs that start a server for themselves: how they learn where it is, and how it ends with them.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use crate::files::Folder;
use crate::program::{dunlin, path};
use crate::timeout::wait_until;
use crate::wire::{Wire, connect};

/// A server that was started by this test, with its standard input and the line that it has announced.
struct Launched {
    process: Child,
    stdin: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    announced: String,
}

impl Drop for Launched {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn launch(arguments: &[&str]) -> Launched {
    let mut process = dunlin(&[&["--announce", "yes"], arguments].concat()).spawn().expect("the program starts");
    let (stdin, stdout) = (process.stdin.take(), process.stdout.take().expect("its output is a pipe"));
    let (mut output, mut announced) = (BufReader::new(stdout), String::new());
    output.read_line(&mut announced).expect("its output is text");
    Launched { process, stdin, output, announced }
}

impl Launched {
    /// The value of a field that is announced, as JSON.
    fn field(&self, name: &str) -> &str {
        let (_, rest) = self.announced.split_once(&format!("\"{name}\":")).expect("the field is announced");
        rest.split([',', '}']).next().expect("the field has a value")
    }

    fn connect(&self) -> Wire<std::net::TcpStream> {
        let port: u16 = self.field("port").parse().expect("it is a port");
        connect(([127, 0, 0, 1], port).into())
    }

    fn is_running(&mut self) -> bool {
        self.process.try_wait().is_ok_and(|status| status.is_none())
    }

    /// Waits for its end; returns its status and what it has written after its announcement.
    fn end(&mut self) -> (ExitStatus, String) {
        wait_until("the server ends", || !self.is_running());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("it is text");
        (self.process.wait().expect("it has ended"), rest)
    }
}

#[test]
fn a_server_announces_where_it_is_and_then_writes_only_to_the_standard_error() {
    let mut server = launch(&["--free-port", "yes", "--requirepass", "a b"]);
    let port = server.field("port").to_owned();
    let (version, id) = (env!("CARGO_PKG_VERSION"), server.process.id());
    assert_eq!(
        server.announced,
        format!(
            "{{\"dunlin\":\"{version}\",\"redis\":\"8.0.6\",\"pid\":{id},\"host\":\"127.0.0.1\",\"port\":{port},\
             \"socket\":null,\"url\":\"redis://:a%20b@127.0.0.1:{port}\",\"page\":null}}\n"
        )
    );
    let mut client = server.connect();
    client.ask("AUTH \"a b\"\r\nPING\r\n", "+OK\r\n+PONG\r\n");
    client.send("SHUTDOWN\r\n");
    let (status, rest) = server.end();
    assert!(status.success() && rest.is_empty(), "{status} {rest}");
    let mut log = String::new();
    server.process.stderr.take().expect("it is a pipe").read_to_string(&mut log).expect("it is text");
    assert!(log.contains("Ready to accept connections tcp") && log.contains("bye bye"), "{log}");
}

#[test]
fn a_server_that_cannot_start_announces_why_and_ends_with_status_1() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    let data = path("launched.rdb");
    fs::write(&data, "this is no data").expect("it can be written");
    let in_use = format!("Could not create server TCP listening socket 127.0.0.1:{port}: bind: Address already in use");
    for (arguments, why) in [
        (&["--port", "x"][..], r#"port \"x\": argument couldn't be parsed into an integer"#),
        (&["--no-such-thing", "1"], r#"no-such-thing \"1\": Bad directive or wrong number of arguments"#),
        (&["--port", &port], &in_use),
        (&["--unixsocket", "/no/such/folder/socket"], "Failed opening Unix socket /no/such/folder/socket"),
        (&["--load", data.to_str().expect("it is text")], data.to_str().expect("it is text")),
        (&["--end-with", "nobody"], r#"end-with \"nobody\": argument must be 'stdin' or the id of a process"#),
        (&["--end-with", "0"], "argument must be 'stdin' or the id of a process"),
        (&["--daemonize", "yes"], "'announce yes' and 'daemonize yes' cannot be used together"),
        (&["--end-with", "stdin", "-"], "'end-with stdin' and '-' cannot be used together"),
        (&["--port-file", "/no/such/folder/port"], "cannot write the port file /no/such/folder/port: No such file"),
        (&["--port", "0", "--unixsocket", "s", "--port-file", "p"], "'port-file' needs a port"),
    ] {
        let free = if arguments.contains(&"--port") { &[][..] } else { &["--free-port", "yes"] };
        let output = dunlin(&[&["--announce", "yes"], free, arguments].concat()).output().expect("it starts");
        let announced = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(announced.starts_with("{\"error\":\"") && announced.ends_with("\"}\n"), "{announced}");
        assert!(announced.contains(why) && announced.lines().count() == 1, "{announced} lacks {why}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
    fs::remove_file(data).expect("it is there");
}

#[test]
fn a_configuration_file_may_ask_for_the_announcement_of_its_own_fault() {
    let file = path("announces.conf");
    fs::write(&file, "announce yes\nport x\n").expect("it can be written");
    let output = dunlin(&[file.to_str().expect("it is text")]).output().expect("it starts");
    fs::remove_file(file).expect("it is there");
    let announced = String::from_utf8_lossy(&output.stdout);
    assert_eq!(announced, "{\"error\":\"port x: argument couldn't be parsed into an integer\"}\n");
}

#[test]
#[cfg(unix)]
fn a_free_port_is_opened_beside_a_unix_socket_and_whatever_port_is_configured() {
    let socket = path("free-port.sock");
    let socket = socket.to_str().expect("it is text");
    for port in ["0", "1", "6379"] {
        let server = launch(&["--port", port, "--unixsocket", socket, "--free-port", "yes"]);
        assert_eq!(server.field("socket"), format!("\"{socket}\""));
        server.connect().ask("PING\r\n", "+PONG\r\n");
        assert!(std::os::unix::net::UnixStream::connect(socket).is_ok());
    }
    // A server that is killed leaves its socket file, which the next one has replaced.
    fs::remove_file(socket).expect("it is there");
}

#[test]
#[cfg(unix)]
fn a_server_without_a_port_announces_its_socket() {
    let folder = Folder::new("announced");
    let server = launch(&["--dir", folder.text(), "--port", "0", "--unixsocket", "s"]);
    assert_eq!((server.field("host"), server.field("port")), ("null", "null"));
    assert_eq!(server.field("url"), format!("\"unix://{}/s\"", folder.text()));
}

#[test]
fn a_server_ends_with_its_standard_input_and_removes_its_files() {
    let folder = Folder::new("ends-with-stdin");
    let port_file = folder.0.join("port");
    let arguments = ["--free-port", "yes", "--dir", folder.text(), "--port-file", "port", "--end-with", "stdin"];
    let socket = if cfg!(unix) { &["--unixsocket", "socket"][..] } else { &[] };
    let mut server = launch(&[&arguments[..], socket].concat());
    assert_eq!(fs::read_to_string(&port_file).expect("it is there"), format!("{}\n", server.field("port")));
    let mut blocked = server.connect();
    blocked.send("BLPOP queue 0\r\n");
    server.stdin.as_mut().expect("it is open").write_all(b"what is written there is ignored\n").expect("it reads");
    server.connect().ask("PING\r\n", "+PONG\r\n");
    server.stdin = None;
    let (status, rest) = server.end();
    assert!(status.success() && rest.is_empty(), "{status} {rest}");
    assert_eq!(folder.files(), [""; 0]);
}

#[test]
fn a_server_that_ends_with_its_launcher_saves_its_data() {
    let folder = Folder::new("saved-for-launcher");
    let mut server = launch(&["--free-port", "yes", "--dir", folder.text(), "--save", "900 1", "--end-with", "stdin"]);
    server.connect().ask("SET key value\r\n", "+OK\r\n");
    server.stdin = None;
    assert!(server.end().0.success());
    assert_eq!(folder.files(), ["dump.rdb"]);
}

/// The command takes more than a minute and holds the engine's lock.
#[test]
fn a_server_that_hangs_in_a_command_ends_with_its_launcher_too() {
    let mut server = launch(&["--free-port", "yes", "--end-with", "stdin", "--enable-debug-command", "yes"]);
    let mut client = server.connect();
    client.ask("EVAL \"for i = 1, 200000 do redis.call('SADD', 's', i) end\" 0\r\n", "$-1\r\n");
    client.send(format!("DEBUG LOG marker\r\n*8001\r\n$6\r\nSUNION\r\n{}", "$1\r\ns\r\n".repeat(8000)));
    let mut log = BufReader::new(server.process.stderr.take().expect("it is a pipe")).lines();
    assert!(log.by_ref().map_while(Result::ok).any(|line| line.contains("marker")));
    server.stdin = None;
    assert_eq!(server.end().0.code(), Some(1));
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_ends_with_a_process_and_does_not_start_without_it() {
    let mut launcher = Command::new("cat").stdin(Stdio::piped()).spawn().expect("there is a cat");
    let id = launcher.id().to_string();
    let arguments = ["--free-port", "yes", "--end-with", &id];
    let mut server = launch(&arguments);
    server.connect().ask("CONFIG GET end-with\r\n", format!("*2\r\n$8\r\nend-with\r\n${}\r\n{id}\r\n", id.len()));
    launcher.kill().expect("it runs");
    launcher.wait().expect("it has ended");
    assert!(server.end().0.success());
    let mut late = launch(&arguments);
    assert_eq!(late.announced, format!("{{\"error\":\"cannot end with process {id}: No such process\"}}\n"));
    assert_eq!(late.end().0.code(), Some(1));
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_with_several_events_to_end_with_ends_with_the_first_of_them() {
    for ends_by_stdin in [true, false] {
        let mut other = Command::new("cat").stdin(Stdio::piped()).spawn().expect("there is a cat");
        let id = other.id().to_string();
        let mut server = launch(&["--free-port", "yes", "--end-with", &id, "--end-with", "stdin"]);
        let shown = format!("stdin {id}");
        let length = shown.len();
        server.connect().ask("CONFIG GET end-with\r\n", format!("*2\r\n$8\r\nend-with\r\n${length}\r\n{shown}\r\n"));
        if ends_by_stdin {
            server.stdin = None;
            assert!(server.end().0.success());
        }
        other.kill().expect("it runs");
        other.wait().expect("it has ended");
        assert!(server.end().0.success());
    }
}

#[test]
fn an_idle_server_ends_only_without_clients() {
    let mut server = launch(&["--free-port", "yes", "--idle-end", "1", "--test-kit", "yes"]);
    let mut client = server.connect();
    client.ask("DUNLIN WORLD ann\r\n", "+OK\r\n");
    // The time of idle-end is the machine's: a clock that is moved ends nothing.
    client.send("DUNLIN ADVANCE 3600000\r\n");
    assert!(client.read_until(b"\r\n").starts_with(':'));
    client.ask("BLPOP nothing 2.5\r\n", "*-1\r\n");
    assert!(server.is_running());
    drop(client);
    assert!(server.end().0.success());
}

#[test]
fn the_port_file_is_never_half_written() {
    let folder = Folder::new("port-file");
    let port_file = folder.0.join("port");
    for _ in 0..10 {
        let mut process = dunlin(&["--free-port", "yes", "--port-file", port_file.to_str().expect("it is text")])
            .spawn()
            .expect("it starts");
        let mut text = String::new();
        wait_until("the file is there", || {
            text = fs::read_to_string(&port_file).unwrap_or_default();
            !text.is_empty()
        });
        let port: u16 = text.strip_suffix('\n').expect("it is a whole line").parse().expect("it is a port");
        connect(([127, 0, 0, 1], port).into()).send("SHUTDOWN\r\n");
        assert!(process.wait().expect("it ends").success());
        assert_eq!(folder.files(), [""; 0]);
    }
}

#[test]
fn the_parameters_for_launchers_are_shown_only_by_name_and_cannot_be_set() {
    let server = launch(&["--free-port", "yes", "--end-with", "stdin"]);
    let mut client = server.connect();
    for (name, value) in [("announce", "yes"), ("end-with", "stdin"), ("free-port", "yes"), ("idle-end", "0")] {
        let shown = format!("*2\r\n${}\r\n{name}\r\n${}\r\n{value}\r\n", name.len(), value.len());
        client.ask(format!("CONFIG GET {name}\r\n"), shown);
        let refusal = "can't set immutable config";
        let refusal = format!("-ERR CONFIG SET failed (possibly related to argument '{name}') - {refusal}\r\n");
        client.ask(format!("CONFIG SET {name} {value}\r\n"), refusal);
    }
    client.ask("CONFIG GET *announce\r\nCONFIG GET idle*\r\n", "*0\r\n*0\r\n");
}

/// How often the threads of a process have waited for something, and so have been awake before.
#[cfg(target_os = "linux")]
fn waits_of(id: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{id}/task")).expect("it runs");
    let waits = |status: String| -> Option<u64> {
        status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse().ok())
    };
    threads.flatten().filter_map(|thread| waits(fs::read_to_string(thread.path().join("status")).ok()?)).sum()
}

/// Nodes that tell each other at once what has changed need not ask, as Redis's do ten times a second.
#[cfg(target_os = "linux")]
#[test]
fn the_nodes_of_an_idle_cluster_sleep() {
    const SECOND: std::time::Duration = std::time::Duration::from_secs(1);
    let server = launch(&["--port", "0", "--cluster", "3", "--replicas", "1"]);
    server.connect().ask("PING\r\n", "+PONG\r\n");
    wait_until("nothing wakes a node for a second", || {
        let before = waits_of(server.process.id());
        crate::oracle::wait(SECOND);
        waits_of(server.process.id()) <= before + 2
    });
}
