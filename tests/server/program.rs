//! The program: its start, its log, its end.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};

use dunlin::Reply;

use crate::files::Folder;
use crate::timeout::wait_until;
use crate::wire::connect;

/// A running program, and its output that was not read yet.
pub(crate) struct Running {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    ready: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The program with these arguments, before it starts.
pub(crate) fn dunlin(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dunlin"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts it and waits until it is ready.
pub(crate) fn start(arguments: &[&str]) -> Running {
    start_with_input(arguments, "")
}

fn start_with_input(arguments: &[&str], input: &str) -> Running {
    begin(&mut dunlin(arguments), input)
}

/// Starts a program that is described, and waits until it is ready.
pub(crate) fn begin(command: &mut Command, input: &str) -> Running {
    let mut process = command.spawn().expect("the program starts");
    let mut stdin = process.stdin.take().expect("its input is a pipe");
    stdin.write_all(input.as_bytes()).expect("it reads, or its input is ignored");
    drop(stdin);
    let mut lines = BufReader::new(process.stdout.take().expect("its output is a pipe")).lines();
    let ready = lines.by_ref().map_while(Result::ok).find(|line| line.contains(" ready on ")).expect("it gets ready");
    Running { process, lines, ready }
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        let places = self.ready.split(" ready on ").nth(1).expect("the line has the address");
        places.split(", ").next().expect("the list is not empty").parse().expect("it is an address")
    }

    pub(crate) fn end(&mut self) -> (ExitStatus, Vec<String>) {
        let lines = self.lines.by_ref().map_while(Result::ok).collect();
        (self.process.wait().expect("it ends"), lines)
    }

    /// Reads up to the next log line that contains these words, and returns it.
    pub(crate) fn line_with(&mut self, words: &str) -> Option<String> {
        self.lines.by_ref().map_while(Result::ok).find(|line| line.contains(words))
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: &str) {
        // The shell's own `kill`: a small machine has no program of that name.
        let kill = format!("kill -s {signal} {}", self.process.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("there is a shell").success());
    }
}

fn run_to_end(arguments: &[&str]) -> Output {
    dunlin(arguments).output().expect("the program starts")
}

/// A path that no other test uses.
pub(crate) fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("dunlin-{}-{name}", std::process::id()))
}

#[test]
fn with_port_0_the_system_chooses_a_port_and_the_program_reports_it() {
    let program = start(&["--port", "0"]);
    connect(program.address()).ask("PING\r\n", "+PONG\r\n");
    assert!(program.ready.contains(" * dunlin "), "{}", program.ready);
}

#[test]
#[cfg(unix)]
fn the_log_has_the_lines_of_redis_that_programs_wait_for() {
    let path = path("log-lines.sock");
    let mut program = start(&["--port", "0", "--bind", "127.0.0.1", "--unixsocket", &path.display().to_string()]);
    // A signal before these lines would add its own line between them.
    let first_lines: Vec<String> = program.lines.by_ref().map_while(Result::ok).take(3).collect();
    program.signal("TERM");
    let (id, rest) = (program.id(), program.end().1);
    let started = format!("* it answers as Redis version=8.0.6, bits={}, PID: {id}", usize::BITS);
    let words = [
        started.as_str(),
        "* Server initialized",
        "* Ready to accept connections unix",
        "* Received SIGTERM scheduling shutdown...",
        "* User requested shutdown...",
        "# Redis is now ready to exit, bye bye...",
    ];
    let lines: Vec<String> = first_lines.into_iter().chain(rest).collect();
    assert!(lines.iter().all(|line| line.starts_with(&format!("{id}:M "))), "{lines:?}");
    let messages: Vec<&str> = lines.iter().filter_map(|line| line.get(line.find(['*', '#'])?..)).collect();
    assert_eq!(messages, words);
}

#[test]
#[cfg(unix)]
fn port_0_with_a_unix_socket_opens_no_port() {
    let path = path("program.sock");
    let program = start(&["--port", "0", "--unixsocket", &path.display().to_string()]);
    assert!(program.ready.ends_with(&format!(" ready on {}", path.display())), "{}", program.ready);
    drop(program);
    // A program that is killed leaves its socket file.
    let _ = std::fs::remove_file(path);
}

#[test]
#[cfg(unix)]
fn the_program_shuts_down_on_a_signal() {
    for signal in ["INT", "TERM"] {
        let path = path(&format!("{signal}.sock"));
        let mut program = start(&["--port", "0", "--unixsocket", &path.display().to_string()]);
        program.signal(signal);
        let (status, lines) = program.end();
        assert!(status.success() && lines.iter().any(|line| line.contains(signal)), "{status} {lines:?}");
        assert!(!path.exists());
    }
}

#[test]
#[cfg(unix)]
fn the_program_keeps_serving_after_sighup() {
    let mut program = start(&["--port", "0"]);
    let mut client = connect(program.address());
    program.signal("HUP");
    client.ask("PING\r\n", "+PONG\r\n");
    program.signal("TERM");
    assert!(program.end().0.success());
}

#[test]
#[cfg(unix)]
fn the_program_ends_even_while_it_stalls_all_clients() {
    let mut program = start(&["--port", "0", "--enable-debug-command", "yes"]);
    let mut client = connect(program.address());
    client.send("DEBUG LOG marker\r\nDEBUG SLEEP 1000000\r\n");
    program.lines.by_ref().map_while(Result::ok).find(|line| line.contains("marker")).expect("the line is logged");
    program.signal("TERM");
    assert!(program.end().0.success());
}

/// Sends two signals, and answers how the program has ended then. One that comes while another is pending is the same
/// to the system, so they are sent apart.
#[cfg(unix)]
fn insist(program: &mut Running) -> (ExitStatus, Vec<String>) {
    program.signal("TERM");
    assert!(program.line_with("Received SIGTERM").is_some(), "the first signal is obeyed");
    program.signal("INT");
    wait_until("the second signal ends it", || program.process.try_wait().is_ok_and(|status| status.is_some()));
    program.end()
}

/// The process hangs in a command that takes more than a minute and holds the engine's lock. The exit status is that of
/// Redis.
#[test]
#[cfg(unix)]
fn a_second_signal_ends_a_process_that_hangs() {
    let mut program = start(&["--port", "0", "--enable-debug-command", "yes"]);
    let mut client = connect(program.address());
    client.ask("EVAL \"for i = 1, 200000 do redis.call('SADD', 's', i) end\" 0\r\n", "$-1\r\n");
    client.send(format!("DEBUG LOG marker\r\n*8001\r\n$6\r\nSUNION\r\n{}", "$1\r\ns\r\n".repeat(8000)));
    assert!(program.line_with("marker").is_some());
    let (status, lines) = insist(&mut program);
    assert_eq!(status.code(), Some(1));
    assert!(lines.iter().any(|line| line.ends_with("# You insist... exiting now.")), "{lines:?}");
}

#[test]
#[cfg(unix)]
fn a_second_signal_ends_a_process_whose_cron_is_paused() {
    let mut program = start(&["--port", "0", "--enable-debug-command", "yes"]);
    connect(program.address()).ask("DEBUG PAUSE-CRON 1\r\n", "+OK\r\n");
    assert_eq!(insist(&mut program).0.code(), Some(1));
}

/// The pauses between its keys make the save take twenty seconds.
#[test]
#[cfg(unix)]
fn a_second_signal_ends_the_last_save_and_leaves_no_file_of_it() {
    let folder = Folder::new("insisted");
    let mut program = folder.program(&["--save", "900 1", "--enable-debug-command", "yes"]);
    connect(program.address()).ask("DEBUG POPULATE 20\r\nCONFIG SET rdb-key-save-delay 1000000\r\n", "+OK\r\n+OK\r\n");
    program.signal("TERM");
    wait_until("the last save has begun", || folder.files().iter().any(|name| name.starts_with("temp-")));
    program.signal("INT");
    assert_eq!(program.end().0.code(), Some(1));
    assert_eq!(folder.files(), [""; 0]);
}

#[test]
#[cfg(unix)]
fn a_log_without_a_reader_stalls_no_client() {
    const LINES: usize = 3000;
    const DROPPED: &str = " lines of the log were dropped: they were not read in time";
    let mut program = start(&["--port", "0", "--enable-debug-command", "yes"]);
    let mut client = connect(program.address());
    // More than a pipe holds, and more than is kept for it.
    client.ask(format!("DEBUG LOG {}\r\n", "x".repeat(1000)).repeat(LINES), "+OK\r\n".repeat(LINES));
    program.signal("TERM");
    let (status, lines) = program.end();
    assert!(status.success());
    let dropped_by = |line: &String| line.split_once(" # ")?.1.strip_suffix(DROPPED)?.parse::<usize>().ok();
    let dropped = lines.iter().find_map(dropped_by).expect("it says how many were dropped");
    let written = lines.iter().filter(|line| line.contains("xxx")).count();
    assert!(written > 1000 && written + dropped >= LINES, "{written} and {dropped}");
}

#[test]
#[cfg(unix)]
fn signals_end_a_process_whose_log_has_no_reader() {
    let mut program = start(&["--port", "0", "--enable-debug-command", "yes"]);
    // More than a pipe holds.
    let line = format!("DEBUG LOG {}\r\n", "x".repeat(1000));
    connect(program.address()).ask(line.repeat(150), "+OK\r\n".repeat(150));
    program.signal("TERM");
    wait_until("the signal ends it", || program.process.try_wait().is_ok_and(|status| status.is_some()));
}

#[test]
fn shutdown_ends_the_program() {
    let mut program = start(&["--port", "0"]);
    let mut client = connect(program.address());
    client.send("SHUTDOWN\r\n");
    assert_eq!(client.rest(), b"");
    assert!(program.end().0.success());
}

#[test]
fn after_shutdown_has_closed_a_connection_no_new_one_is_accepted() {
    for threads in ["1", "3"] {
        let mut program = start(&["--port", "0", "--io-threads", threads]);
        let mut clients: Vec<_> = (0..8).map(|_| connect(program.address())).collect();
        clients[3].send("SHUTDOWN\r\n");
        for client in &mut clients {
            assert_eq!(client.rest(), b"");
            assert!(TcpStream::connect(program.address()).is_err());
        }
        assert!(program.end().0.success());
    }
}

#[test]
#[cfg(unix)]
fn a_pending_shutdown_can_be_aborted() {
    let mut program = start(&["--port", "0", "--enable-debug-command", "yes"]);
    let mut client = connect(program.address());
    for outcome in ["cancelled", "done"] {
        client.ask("SHUTDOWN ABORT\r\n", "-ERR No shutdown in progress.\r\n");
        client.ask("DEBUG PAUSE-CRON 1\r\n", "+OK\r\n");
        program.signal("TERM");
        program.lines.by_ref().map_while(Result::ok).find(|line| line.contains("SIGTERM")).expect("the line is logged");
        if outcome == "done" {
            client.send("DEBUG PAUSE-CRON 0\r\n");
            break;
        }
        let is_aborted = || {
            client.send("SHUTDOWN ABORT\r\n");
            client.read_until(b"\r\n") == "+OK\r\n"
        };
        wait_until("the signal is handled", is_aborted);
        client.ask("DEBUG PAUSE-CRON 0\r\n", "+OK\r\n");
    }
    assert!(program.end().0.success());
}

#[test]
fn a_port_in_use_is_reported_and_ends_the_program() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    let output = run_to_end(&["--port", &port]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1));
    let words =
        format!("# Could not create server TCP listening socket 127.0.0.1:{port}: bind: Address already in use\n");
    assert!(text.ends_with(&words), "{text}");
}

#[test]
fn settings_come_from_a_file_the_standard_input_and_the_command_line() {
    let (file, included) = (path("redis.conf"), path("included.conf"));
    fs::write(&file, format!("port 1\ndatabases 3\nmaxclients 7\ninclude {}\n", included.display()))
        .expect("it is written");
    fs::write(&included, "requirepass secret\n").expect("it is written");
    let arguments = [&file.display().to_string(), "--port", "0", "-"];
    let program = start_with_input(&arguments, "maxclients 8\n");
    let mut client = connect(program.address());
    client.ask("AUTH secret\r\n", "+OK\r\n");
    client.ask("CONFIG GET databases\r\n", "*2\r\n$9\r\ndatabases\r\n$1\r\n3\r\n");
    client.ask("CONFIG GET maxclients\r\n", "*2\r\n$10\r\nmaxclients\r\n$1\r\n8\r\n");
    for path in [file, included] {
        fs::remove_file(path).expect("it is there");
    }
}

#[test]
fn the_log_has_the_configured_target_and_level() {
    let file = path("log");
    let arguments =
        ["--port", "0", "--logfile", &file.display().to_string(), "--loglevel", "warning", "--always-show-logo", "yes"];
    let mut process = dunlin(&arguments).spawn().expect("the program starts");
    let mut text = String::new();
    wait_until("a line of the log", || {
        text = fs::read_to_string(&file).unwrap_or_default();
        text.ends_with('\n')
    });
    process.kill().expect("it runs");
    process.wait().expect("it ends");
    fs::remove_file(&file).expect("it is there");
    let line = text.lines().next().unwrap_or_default();
    assert!(line.contains(" # ") && line.contains("always-show-logo"), "{line}");
}

/// As in Redis. Two hundred times, as a line that is written later is often there in time.
#[test]
fn a_line_is_in_the_file_of_the_log_when_its_command_is_answered() {
    let file = path("log-of-answers");
    let output = fs::File::create(&file).expect("it can be written");
    let arguments = ["--port", "0", "--enable-debug-command", "yes"];
    let mut process = dunlin(&arguments).stdout(output).spawn().expect("the program starts");
    let text = || fs::read_to_string(&file).expect("it is text");
    wait_until("it is ready", || text().contains(" ready on "));
    let port =
        text().split(" ready on 127.0.0.1:").nth(1).and_then(|rest| rest.split([',', '\n']).next()?.parse().ok());
    let mut client = connect(SocketAddr::from(([127, 0, 0, 1], port.expect("it is a port"))));
    for number in 0..200 {
        client.ask(format!("DEBUG LOG line-{number}\r\n"), "+OK\r\n");
        assert!(text().ends_with(&format!("DEBUG LOG: line-{number}\n")), "{number}");
    }
    process.kill().expect("it runs");
    process.wait().expect("it ends");
    fs::remove_file(&file).expect("it is there");
}

/// Redis 8.0.6 answered so.
#[test]
fn a_renamed_command_has_only_its_new_name_and_acl_rules_use_the_old_one() {
    let arguments = ["--port", "0", "--rename-command", "flushdb", "badger", "--rename-command", "config", ""];
    let program = start(&arguments);
    let mut client = connect(program.address());
    client.ask("FLUSHDB\r\n", "-ERR unknown command 'FLUSHDB', with args beginning with: \r\n");
    client.ask("CONFIG GET port\r\n", "-ERR unknown command 'CONFIG', with args beginning with: 'GET' 'port' \r\n");
    client.ask("SET a 1\r\nBADGER x y\r\nBadger\r\nEXISTS a\r\n", "+OK\r\n-ERR syntax error\r\n+OK\r\n:0\r\n");
    client.ask("EVAL \"return redis.call('badger')\" 0\r\n", "+OK\r\n");
    client.ask("COMMAND INFO flushdb config\r\n", "*2\r\n$-1\r\n$-1\r\n");
    client.ask("COMMAND INFO badger\r\n", "*1\r\n*10\r\n$7\r\nflushdb\r\n");
    let mut client = connect(program.address());
    client.ask("ACL SETUSER bob +flushdb +config\r\n", "+OK\r\n");
    client.ask("ACL DRYRUN bob badger\r\n", "+OK\r\n");
    client.ask("ACL DRYRUN bob flushdb\r\n", "-ERR Command 'flushdb' not found\r\n");
    let refusal = "-ERR Error in ACL SETUSER modifier '+badger': Unknown command or category name in ACL\r\n";
    client.ask("ACL SETUSER bob +badger\r\n", refusal);
}

#[test]
fn unknown_options_and_missing_files_are_refused() {
    let output = run_to_end(&["--no-such-thing", "1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Bad directive or wrong number of arguments"));
    let output = run_to_end(&["/no/such/file"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/no/such/file"));
}

/// CVE-2018-12326, CVE-2025-27151: very long arguments, paths and lines.
#[test]
fn arguments_and_lines_of_any_length_are_refused_with_a_message() {
    // A system takes no longer argument than 128 KiB.
    let (word, line) = ("x".repeat(120_000), "y".repeat(1 << 20));
    let printed_bytes = |output: &Output| [output.stdout.as_slice(), &output.stderr].concat().len();
    for arguments in [
        vec![word.as_str()],
        vec!["--port", &word],
        vec!["--bind", &word],
        vec!["--unixsocket", &word],
        vec!["--dir", &word],
        vec!["--aclfile", &word],
        vec!["--logfile", &word],
        vec![&format!("--{word}"), "1"],
        vec!["--rename-command", &word, &word],
    ] {
        let output = run_to_end(&[&arguments[..], &["--port", "0"]].concat());
        assert_eq!(output.status.code(), Some(1), "{:.20} {}", arguments[0], arguments.len());
        assert!((1..1 << 20).contains(&printed_bytes(&output)), "{} bytes", printed_bytes(&output));
    }
    // Every parameter, as an argument and as a line, followed by an invalid one, as some accept any text.
    let server = dunlin::Server::start().expect("it starts");
    let parameters = server.client().expect("a client comes in").call(["CONFIG", "GET", "*"]).expect("it is answered");
    let Reply::Map(parameters) = parameters else { panic!("CONFIG GET answers {parameters}") };
    for name in parameters.iter().filter_map(|(name, _)| name.text()) {
        let output = run_to_end(&[&format!("--{name}"), &word, "--port", "none"]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!((1..1 << 20).contains(&printed_bytes(&output)), "{name}: {} bytes", printed_bytes(&output));
    }
    let others = ["no-such-thing", "include", "loadmodule", "user", "rename-command"];
    for name in parameters.iter().filter_map(|(name, _)| name.text()).chain(others.map(Into::into)) {
        let path = path(&format!("long-{name}"));
        fs::write(&path, format!("port 0\n{name} {line}\nmaxmemory {line}\n")).expect("it can be written");
        let output = run_to_end(&[path.to_str().expect("it is text")]);
        fs::remove_file(&path).expect("it is there");
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!((1..4 << 20).contains(&printed_bytes(&output)), "{name}: {} bytes", printed_bytes(&output));
    }
}

#[test]
fn the_program_prints_its_version_and_its_help() {
    let version = run_to_end(&["--version"]);
    let text = String::from_utf8_lossy(&version.stdout);
    assert!(version.status.success() && text.starts_with("Redis server v=8.0.6 sha="), "{text}");
    assert!(text.ends_with(" dunlin=0.1.0\n"), "{text}");
    let help = run_to_end(&["--help"]);
    assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("Usage: dunlin"));
}
