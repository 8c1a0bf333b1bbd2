//! `dunlin run`, which lends a command a server, and `dunlin ping`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use crate::files::Folder;
use crate::program::{dunlin, path, start};
use crate::timeout::wait_until;
use crate::wire::{Wire, connect};

const PROGRAM: &str = env!("CARGO_BIN_EXE_dunlin");

/// The output of `dunlin run` with these words.
fn run(words: &[&str]) -> Output {
    dunlin(&[&["run"], words].concat()).stdin(Stdio::null()).output().expect("the program starts")
}

/// The output of `dunlin run` with a line for a shell.
fn run_line(line: &str) -> Output {
    run(&["--", "sh", "-c", line])
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A command that runs, ends with its standard input, and whose first line of output was read.
struct Started {
    process: Child,
    output: BufReader<ChildStdout>,
    line: String,
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Started {
    /// Starts `dunlin run` with options and a line for a shell, which writes a line when it is ready.
    fn begin(options: &[&str], line: &str) -> Started {
        Started::of(&mut dunlin(&[&["run"], options, &["--", "sh", "-c", line]].concat()))
    }

    /// Starts a command, which writes a line when it is ready.
    fn of(command: &mut Command) -> Started {
        let mut process = command.spawn().expect("the program starts");
        let mut output = BufReader::new(process.stdout.take().expect("it is a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("it is text");
        Started { process, output, line: line.trim_end().to_owned() }
    }

    fn signal(&self, signal: &str) {
        let kill = format!("kill -s {signal} {}", self.process.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("there is a shell").success());
    }

    /// Waits for the line that the command writes next.
    fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it is text");
        line.trim_end().to_owned()
    }

    fn write(&mut self, text: &str) {
        self.process.stdin.as_mut().expect("it is open").write_all(text.as_bytes()).expect("it reads");
    }

    /// Connects to the server whose port is the first line.
    fn connect(&self) -> Wire<std::net::TcpStream> {
        let port: u16 = self.line.parse().expect("the line is a port");
        connect(SocketAddr::from(([127, 0, 0, 1], port)))
    }

    /// Ends the standard input of the command, and waits for its end.
    fn end(&mut self) -> (Option<i32>, String) {
        drop(self.process.stdin.take());
        let status = self.process.wait().expect("it ends");
        let mut text = String::new();
        self.process.stderr.take().expect("it is a pipe").read_to_string(&mut text).expect("it is text");
        assert_eq!(status.signal(), None);
        (status.code(), text)
    }
}

#[test]
fn the_exit_status_is_that_of_the_command() {
    for (line, code) in [("exit 0", 0), ("exit 1", 1), ("exit 77", 77), ("kill -KILL $$", 137), ("kill -TERM $$", 143)]
    {
        let output = run_line(line);
        assert_eq!((output.status.code(), output.status.signal()), (Some(code), None), "{line}");
        assert_eq!((out(&output), err(&output)), (String::new(), String::new()), "{line}");
    }
}

#[test]
fn a_command_that_cannot_start_has_the_exit_status_of_a_shell() {
    let output = run(&["--", "/no/such/command"]);
    assert_eq!(output.status.code(), Some(127));
    assert_eq!(err(&output), "dunlin run: /no/such/command: No such file or directory\n");
    let output = run(&["--", "/"]);
    assert_eq!((output.status.code(), &*err(&output)), (Some(126), "dunlin run: /: Permission denied\n"));
}

#[test]
fn without_a_server_no_command_runs_and_the_exit_status_is_125() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    for (words, why) in [
        (&["--port", &port, "--", "echo", "hello"][..], "Address already in use"),
        (&["--port", "x", "--", "echo", "hello"], "port \"x\": argument couldn't be parsed into an integer"),
        (&["/no/such/file", "--", "echo", "hello"], "can't open config file '/no/such/file'"),
        (&["--load", "/no/such/file", "--", "echo", "hello"], "/no/such/file"),
        (&["--announce", "yes", "--", "echo", "hello"], "'announce' cannot be used here"),
        (&["--end-with", "stdin", "--", "echo", "hello"], "'end-with' cannot be used here"),
        (&["echo", "hello"], "'--' comes before the command: dunlin run -- echo hello"),
        (&["--"], "there is no command"),
    ] {
        let output = run(words);
        assert_eq!((output.status.code(), &*out(&output)), (Some(125), ""), "{words:?}");
        assert!(err(&output).starts_with("dunlin run: ") && err(&output).contains(why), "{}", err(&output));
    }
}

#[test]
fn the_command_finds_its_server_by_many_names_and_never_that_of_others() {
    let line = r#"env; "$0" ping -p "$REDIS_PORT" && "$0" ping -s "$REDIS_SOCKET" && test "$DUNLIN_PID" = $PPID"#;
    let mut command = dunlin(&["run", "--env", "MY_CACHE", "--", "sh", "-c", line, PROGRAM]);
    let output = command.env("REDIS_URL", "redis://production:6379").output().expect("it starts");
    let text = out(&output);
    assert!(output.status.success() && text.ends_with("PONG\nPONG\n"), "{text}");
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
    let port = value("REDIS_PORT").expect("it is set");
    let url = format!("redis://127.0.0.1:{port}");
    for name in ["REDIS_URL", "DUNLIN_URL", "SPRING_DATA_REDIS_URL", "CELERY_BROKER_URL", "MY_CACHE"] {
        assert_eq!(value(name), Some(&*url), "{name}");
    }
    assert_eq!(value("REDIS_HOST"), Some("127.0.0.1"));
}

#[test]
fn the_command_finds_the_page_of_its_server() {
    let page = |words: &[&str]| {
        let text = out(&run(&[words, &["--", "env"]].concat()));
        text.lines().find_map(|line| Some(line.strip_prefix("DUNLIN_PAGE=")?.to_owned()))
    };
    let url = page(&["--page-port", "0"]).expect("it is set");
    let port = url.strip_prefix("http://127.0.0.1:").and_then(|rest| rest.strip_suffix('/'));
    assert!(port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0)), "{url}");
    assert_eq!(page(&[]), None);
}

/// A nested run must not lead to the page of the outer one, either.
#[test]
fn names_for_which_the_server_has_nothing_are_removed() {
    let stale = ["DUNLIN_PAGE", "REDIS_USERNAME", "REDIS_TLS_URL"];
    let mut command = dunlin(&["run", "--", "env"]);
    let text = out(&command.envs(stale.map(|name| (name, "stale"))).output().expect("it starts"));
    assert!(text.contains("DUNLIN_URL=") && !text.contains("stale"), "{text}");
    let mut exported = dunlin(&["run", "--export", "--env-only", "A", "--end-with", &std::process::id().to_string()]);
    let text = out(&exported.output().expect("it starts"));
    assert!(text.starts_with("export A=") && !text.contains("unset"), "{text}");
}

#[test]
fn the_page_is_told_on_the_standard_error_and_changes_nothing_else() {
    let output = run(&["--page", "--", "sh", "-c", "echo $DUNLIN_PAGE; exit 7"]);
    let (text, told) = (out(&output), err(&output));
    assert_eq!(output.status.code(), Some(7));
    let link = told.strip_prefix("dunlin run: the page is at ").and_then(|line| line.strip_suffix('\n'));
    let (url, token) = link.and_then(|link| link.split_once("#token=")).expect("it is one line with the token");
    assert_eq!((text.trim_end(), token.len()), (url, 32));
    assert_eq!(err(&run(&["--page-port", "0", "--", "true"])), "", "nobody has asked for it");
}

#[test]
fn only_the_named_variables_can_be_set() {
    let mut command = dunlin(&["run", "--env-only", "A", "--env", "B", "--", "sh", "-c", r#"env; test "$A" = "$B""#]);
    let output = command.env("REDIS_URL", "redis://elsewhere").output().expect("it starts");
    assert!(output.status.success());
    assert!(out(&output).contains("\nREDIS_URL=redis://elsewhere\n") && !out(&output).contains("REDIS_PORT"));
    let printed = out(&run(&["--print-env", "--env", "B", "--port", "0"]));
    assert!(printed.starts_with("REDIS_URL=redis://127.0.0.1:") && printed.contains("\nB=redis://127"), "{printed}");
}

#[test]
fn the_streams_are_those_of_the_command() {
    let mut process = dunlin(&["run", "--", "sh", "-c", "tee /dev/stderr"]).spawn().expect("it starts");
    let bytes: Vec<u8> = (0..100_000_u32).map(|number| (number * 7 % 256) as u8).collect();
    let mut stdin = process.stdin.take().expect("it is a pipe");
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&sent).expect("it reads"));
    let output = process.wait_with_output().expect("it ends");
    writer.join().expect("it has written");
    assert!(output.status.success() && output.stdout == bytes && output.stderr == bytes);
}

#[test]
fn a_signal_that_the_caller_ignores_is_ignored_by_the_command() {
    let line = format!("trap '' HUP; exec {} run -- sh -c 'kill -HUP $PPID; kill -HUP $$; echo alive'", PROGRAM);
    let output = Command::new("sh").args(["-c", &line]).output().expect("there is a shell");
    assert_eq!((output.status.code(), &*out(&output)), (Some(0), "alive\n"));
}

#[test]
fn the_command_has_the_limits_of_its_caller_and_nothing_is_left_behind() {
    let folder = Folder::new("run-leaves-nothing");
    let limits = "ulimit -Sn; ulimit -Hn; cat /proc/self/oom_score_adj; grep -e THP -e Cpus -e Sig /proc/self/status";
    let outside = Command::new("sh").args(["-c", limits]).output().expect("there is a shell");
    let mut command = dunlin(&["run", "--", "sh", "-c", &format!("{limits}; test -S \"$REDIS_SOCKET\"")]);
    let inside = command.env("TMPDIR", &folder.0).stdin(Stdio::null()).output().expect("it starts");
    assert!(inside.status.success());
    assert_eq!(out(&inside), out(&outside));
    assert_eq!(folder.files(), [""; 0]);
}

#[test]
fn what_a_killed_run_has_left_goes_with_the_next_one_and_nothing_of_one_that_runs() {
    let folder = Folder::new("run-killed");
    let begin = || {
        let line = "echo \"$REDIS_SOCKET\"; read line; test -S \"$REDIS_SOCKET\"";
        let mut command = dunlin(&["run", "--", "sh", "-c", line]);
        Started::of(command.env("TMPDIR", &folder.0))
    };
    let (mut running, killed) = (begin(), begin());
    killed.signal("KILL");
    drop(killed);
    assert_eq!(folder.files().len(), 2, "nobody has removed the folder of the killed one");
    let mut next = begin();
    let mut left = [&running.line, &next.line].map(|socket| folder_of(socket));
    left.sort();
    assert_eq!(folder.files(), left);
    assert_eq!((running.end().0, next.end().0), (Some(0), Some(0)));
    assert_eq!(folder.files(), [""; 0]);
}

/// The name of the folder that a file is in.
fn folder_of(path: &str) -> String {
    let folder = std::path::Path::new(path).parent().and_then(std::path::Path::file_name).expect("it is in a folder");
    folder.to_string_lossy().into_owned()
}

/// Fails if this process was started with interrupts ignored, as a shell without job control does for `command &`. What
/// it starts ignores them too then, and would wait for ever.
fn assert_interrupts_are_not_ignored() {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
    let ignored = u64::from_str_radix(ignored.trim(), 16).expect("it is a set of signals");
    let interrupt = 1_u64 << (nix::sys::signal::Signal::SIGINT as i32 - 1);
    assert_eq!(ignored & interrupt, 0, "interrupts are ignored: start the tests in the foreground");
}

#[test]
fn signals_are_passed_on_once() {
    assert_interrupts_are_not_ignored();
    for signal in ["TERM", "HUP", "USR1", "USR2", "INT", "QUIT"] {
        let line = format!(
            "trap 'n=$((n + 1)); echo got' {signal}; echo ready; until test \"$x\" = end; do read x; done; exit 4$n"
        );
        let mut started = Started::begin(&[], &line);
        assert_eq!(started.line, "ready");
        started.signal(signal);
        // Some shells run a trap only when they have read a line.
        started.write("\n");
        assert_eq!(started.next_line(), "got", "{signal}");
        started.write("end\n");
        assert_eq!(started.end().0, Some(41), "{signal}");
    }
}

#[test]
fn the_second_request_to_end_kills_the_command() {
    let mut started =
        Started::begin(&[], "trap 'echo got' TERM; echo ready; while :; do read x || exec sleep 1000; done");
    started.signal("TERM");
    started.write("\n");
    assert_eq!(started.next_line(), "got");
    let mut status = None;
    wait_until("it is killed", || {
        started.signal("TERM");
        status = started.process.try_wait().expect("it can be waited for");
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.code()), Some(137));
}

/// `timeout` sends its signal to the process that it has started, and then to the group of that.
#[test]
fn a_signal_that_comes_twice_at_once_is_one_request_to_end() {
    let mut started = Started::begin(
        &[],
        "trap 'n=$((n + 1)); echo got' TERM; echo ready; until test \"$x\" = end; do read x; done; exit 4$n",
    );
    started.signal("TERM");
    started.signal("TERM");
    started.write("\n");
    assert_eq!(started.next_line(), "got");
    started.write("end\n");
    assert_eq!(started.end().0, Some(41));
}

/// Keys of a terminal send a signal to the command and to `dunlin run`, which must not pass it on a second time.
#[test]
#[cfg(target_os = "linux")]
fn a_key_of_the_terminal_reaches_the_command_once() {
    assert_interrupts_are_not_ignored();
    let terminal = nix::pty::openpty(None, None).expect("there is a terminal");
    let line = "trap 'n=$((n + 1)); echo got' INT; echo ready; read x; read x; exit 4$n";
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait", PROGRAM, "run", "--", "sh", "-c", line]);
    command.stdin(terminal.slave).stdout(Stdio::piped());
    let mut process = command.spawn().expect("there is setsid");
    drop(command);
    let mut lines = BufReader::new(process.stdout.take().expect("it is a pipe")).lines().map_while(Result::ok);
    let mut keys = fs::File::from(terminal.master);
    assert_eq!(lines.next().as_deref(), Some("ready"));
    keys.write_all(b"\x03").expect("it takes keys");
    assert_eq!(lines.next().as_deref(), Some("got"));
    // A signal that was passed on would have come before these lines.
    keys.write_all(b"\n\n").expect("it takes keys");
    assert_eq!(process.wait().expect("it ends").code(), Some(41));
}

#[test]
fn what_strict_mode_finds_fails_a_command_that_passes() {
    for (level, code, reply) in [("error", 1, "-STRICT"), ("warn", 0, ":1\r\n")] {
        let mut started = Started::begin(&["--strict", level], "echo $REDIS_PORT; read x; exit 0");
        let mut client = started.connect();
        client.ask("SADD seen a\r\n", ":1\r\n");
        client.send("EXPIRE seen 100\r\n");
        assert!(client.read_until(b"\r\n").starts_with(reply), "{level}");
        let (status, text) = started.end();
        assert_eq!(status, Some(code), "{level}");
        assert!(text.starts_with("dunlin run: strict mode found ") && text.contains("late-expire"), "{text}");
    }
    assert_eq!(run(&["--strict", "error", "--", "sh", "-c", "exit 3"]).status.code(), Some(3));
    assert_eq!(run(&["--strict", "error", "--", "true"]).status.code(), Some(0));
}

#[test]
fn what_strict_mode_finds_in_a_world_counts_after_the_world_has_ended() {
    let mut started = Started::begin(&["--strict", "error"], "echo $REDIS_PORT; read x; exit 0");
    for world in ["first", "second"] {
        let mut client = started.connect();
        client.ask(format!("DUNLIN WORLD {world} TEMPORARY\r\nSADD seen a\r\n"), "+OK\r\n:1\r\n");
        client.send("EXPIRE seen 100\r\n");
        assert!(client.read_until(b"\r\n").starts_with("-STRICT"), "{world}");
    }
    wait_until("the worlds have ended", || {
        let mut client = started.connect();
        client.send("DUNLIN WORLDS\r\n");
        client.read_until(b"\r\n") == "*1\r\n"
    });
    let (status, text) = started.end();
    assert_eq!(status, Some(1));
    let found =
        ["late-expire", "unbounded-collection"].map(|rule| text.lines().filter(|line| line.contains(rule)).count());
    assert!(found == [1, 1] && text.matches("(2 times)").count() == 2, "{text}");
}

#[test]
fn each_world_of_a_run_begins_with_the_loaded_data() {
    let folder = Folder::new("run-load-worlds");
    let fixture = folder.0.join("fixture.txt");
    fs::write(&fixture, "SET greeting hello\n").expect("it can be written");
    let mut started = Started::begin(&["--load", fixture.to_str().expect("it is text")], "echo $REDIS_PORT; read x");
    for world in ["first", "second"] {
        started.connect().ask(format!("DUNLIN WORLD {world}\r\nGETDEL greeting\r\n"), "+OK\r\n$5\r\nhello\r\n");
    }
    started.end();
}

#[test]
fn a_command_starts_with_loaded_data_and_leaves_its_own_as_text() {
    let folder = Folder::new("run-load");
    let (fixture, dump) = (folder.0.join("fixture.txt"), folder.0.join("left.txt"));
    fs::write(&fixture, "SET greeting hello\n").expect("it can be written");
    let [fixture, dump_path] = [&fixture, &dump].map(|path| path.to_str().expect("it is text"));
    let mut started = Started::begin(&["--load", fixture, "--dump", dump_path], "echo $REDIS_PORT; read x");
    started.connect().ask("GETDEL greeting\r\nSET name ann\r\n", "$5\r\nhello\r\n+OK\r\n");
    // The end of its input fails the last command of the shell.
    assert_eq!(started.end().0, Some(1));
    assert!(fs::read_to_string(dump).expect("it is there").contains("SET name ann"));
}

#[test]
fn the_commands_of_clients_are_left_as_a_transcript() {
    let folder = Folder::new("run-journal");
    let path = folder.0.join("journal.txt");
    let path = path.to_str().expect("it is text");
    let mut started = Started::begin(&["--journal", path], "echo $REDIS_PORT; read x; exit 0");
    started.connect().ask("SET name ann\r\nINCR name\r\n", "+OK\r\n-ERR value is not an integer or out of range\r\n");
    assert_eq!(started.end().0, Some(0));
    let transcript = fs::read_to_string(path).expect("it is there");
    for part in ["SET name ann", "INCR name", "value is not an integer"] {
        assert!(transcript.contains(part), "{transcript}");
    }
    let output = run(&["--journal", "/nowhere/journal", "--", "true"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("cannot write /nowhere/journal: No such file or directory"), "{}", err(&output));
}

#[test]
fn the_server_waits_for_clients_that_linger() {
    let mut started = Started::begin(&["--linger", "60"], "echo $REDIS_PORT; read x; echo over; exit 3");
    let mut client = started.connect();
    // A connection that the server has not accepted yet is no client.
    client.ask("PING\r\n", "+PONG\r\n");
    drop(started.process.stdin.take());
    assert_eq!(started.next_line(), "over");
    // A server that ended with the command would not answer so late.
    client.ask("BLPOP nothing 0.3\r\n", "*-1\r\n");
    drop(client);
    assert_eq!(started.end().0, Some(3));
    // Without clients nothing waits, and with them no longer than was said.
    assert_eq!(run(&["--linger", "60", "--", "true"]).status.code(), Some(0));
    let mut started = Started::begin(&["--linger", "0.01"], "echo $REDIS_PORT; read x; exit 0");
    let _client = started.connect();
    assert_eq!(started.end().0, Some(0));
}

#[test]
fn a_command_may_shut_its_server_down() {
    let mut started = Started::begin(&[], "echo $REDIS_PORT; read x; exit 5");
    let mut client = started.connect();
    client.send("SHUTDOWN\r\n");
    assert_eq!(client.rest(), b"");
    assert_eq!(started.end().0, Some(5));
}

/// The output of a shell that runs a line, in which `$0` is the program.
fn shell(line: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", line, PROGRAM]).stdin(Stdio::null()).output().expect("there is a shell")
}

/// Whether a process has not ended, whether or not somebody has waited for it.
fn is_running(id: &str) -> bool {
    fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|state| !state.contains(") Z "))
}

#[test]
fn a_shell_has_a_server_that_ends_with_it() {
    let output =
        shell(r#"eval "$("$0" run --export --env MINE)"; "$0" ping "$MINE"; echo $DUNLIN_PID; echo "$REDIS_URL""#);
    let text = out(&output);
    let [pong, id, url] = *text.lines().collect::<Vec<_>>() else { panic!("{text}{}", err(&output)) };
    assert_eq!((pong, err(&output).as_str()), ("PONG", ""));
    assert!(url.starts_with("redis://127.0.0.1:"), "{url}");
    wait_until("the server has ended", || !is_running(id));
}

#[test]
fn a_server_for_a_shell_can_end_with_another_process() {
    let folder = Folder::new("run-export");
    let dump = folder.0.join("dump.txt").display().to_string();
    let mut process = Command::new("sleep").arg("1000").spawn().expect("there is sleep");
    let end_with = process.id().to_string();
    let output = run(&["--export", "--end-with", &end_with, "--env-only", "A", "--dump", &dump]);
    let text = out(&output);
    let port = text.strip_prefix("export A='redis://127.0.0.1:").and_then(|rest| rest.strip_suffix("';\n"));
    let port: u16 = port.and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("{text}{}", err(&output)));
    connect(SocketAddr::from(([127, 0, 0, 1], port))).ask("SET name ann\r\n", "+OK\r\n");
    process.kill().and_then(|()| process.wait()).expect("it ends");
    wait_until("the data are written", || fs::read_to_string(&dump).is_ok_and(|text| text.contains("SET name ann")));
}

#[test]
fn a_server_for_a_shell_ends_at_a_signal_and_tells_where_its_page_is() {
    let output = shell(r#"eval "$("$0" run --export --page)"; kill $DUNLIN_PID; echo $DUNLIN_PID $DUNLIN_PAGE"#);
    let (text, told) = (out(&output), err(&output));
    let (id, page) = text.trim_end().split_once(' ').unwrap_or_else(|| panic!("{text}{told}"));
    assert!(
        told.starts_with(&format!("dunlin run: the page is at {page}#token=")) && told.lines().count() == 1,
        "{told}"
    );
    wait_until("the server has ended", || !is_running(id));
}

#[test]
fn a_shell_gets_no_line_when_its_server_cannot_start() {
    for (words, why) in [
        (&["--load", "/no/such/file"][..], "/no/such/file"),
        (&["--end-with", "stdin"], "the standard input stays the shell's"),
        (&["--end-with", "4194305"], "cannot end with process 4194305"),
        (&["--daemonize", "yes"], "'daemonize' cannot be used here: the server ends with the shell"),
        (&["--", "true"], "--export takes no command"),
    ] {
        let output = run(&[&["--export"], words].concat());
        assert_eq!((output.status.code(), &*out(&output)), (Some(125), ""), "{words:?}");
        assert!(err(&output).starts_with("dunlin run: ") && err(&output).contains(why), "{}", err(&output));
    }
}

#[test]
fn ping_tells_whether_a_server_answers() {
    let socket = path("ping.sock");
    let socket = socket.to_str().expect("it is text");
    let program = start(&["--port", "0", "--requirepass", "secret"]);
    let port = program.address().port().to_string();
    let silent = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let of_silent = silent.local_addr().expect("it is bound").port().to_string();
    let ping = |words: &[&str]| {
        let mut command = dunlin(&[&["ping"], words].concat());
        let output = command.env_remove("REDISCLI_AUTH").output().expect("it starts");
        (output.status.code(), out(&output) + &err(&output))
    };
    assert_eq!(ping(&["-p", &port, "-a", "secret"]), (Some(0), "PONG\n".to_owned()));
    assert_eq!(ping(&["-h", "localhost", "-p", &port, "-a", "secret"]).0, Some(0));
    let url = format!("redis://:secret@127.0.0.1:{port}");
    assert_eq!(ping(&[&url]), (Some(0), "PONG\n".to_owned()));
    assert_eq!(ping(&["-u", &url]).0, Some(0));
    assert_eq!(ping(&["--user", "default", "-p", &port, "-a", "secret"]).0, Some(0));
    for (words, why) in [
        (&["redis://127.0.0.1:x"][..], "'redis://127.0.0.1:x' is not a value for -u"),
        (&["-p", &port], "the answer was: -NOAUTH Authentication required."),
        (&["-p", &port, "-a", "wrong"], "the answer was: -WRONGPASS"),
        (&["-p", &of_silent, "--wait", "0.1"], "no answer in time"),
        (&["-s", socket], "No such file or directory"),
        (&["-p", "1", "--wait", "0.1"], "Connection refused"),
        (&["-p", "x"], "'x' is not a value for -p"),
        (&["--port", "1"], "unknown option '--port'"),
    ] {
        let (code, text) = ping(words);
        assert!(code == Some(1) && text.starts_with("dunlin ping: ") && text.contains(why), "{text}");
    }
}

#[test]
fn ping_waits_for_a_server_that_starts() {
    let socket = path("ping-waits.sock");
    let socket = socket.to_str().expect("it is text");
    let mut waiting = dunlin(&["ping", "-s", socket, "--wait", "60"]).spawn().expect("it starts");
    let _program = start(&["--port", "0", "--unixsocket", socket]);
    wait_until("it is answered", || waiting.try_wait().is_ok_and(|status| status.is_some()));
    assert!(waiting.wait().expect("it has ended").success());
    fs::remove_file(socket).expect("it is there");
}
