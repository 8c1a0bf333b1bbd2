//! The process and its system: running in the background, the pid file, supervision, the OOM score and processor
//! affinity.

use std::fs;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::program::{Running, begin, dunlin, path, start};
use crate::timeout::{TIMEOUT, wait_until};
use crate::wire::{Wire, connect};

/// A folder for one server, which is removed with what is in it.
struct Folder(PathBuf);

impl Folder {
    fn of(name: &str) -> Folder {
        let folder = path(name);
        fs::create_dir_all(&folder).expect("it can be made");
        Folder(folder)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server in the background, which ends with the test.
struct Background(u32);

impl Background {
    /// The one that a file names, once it does.
    fn named_by(file: &Path) -> Background {
        let mut id = None;
        wait_until("the file names a process", || {
            id = fs::read_to_string(file).ok().filter(|text| text.ends_with('\n')).and_then(|t| t.trim().parse().ok());
            id.is_some()
        });
        Background(id.expect("it was waited for"))
    }

    /// A field of the process in /proc, counted from its state on.
    fn stat_field(&self, field: usize) -> String {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.0)).expect("it runs");
        let fields = text.rsplit(") ").next().unwrap_or_default();
        fields.split(' ').nth(field).unwrap_or_default().to_owned()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // The process has ended by then if all went well.
        let kill = format!("kill -s KILL {} 2>/dev/null", self.0);
        let _ = Command::new("sh").args(["-c", &kill]).status();
    }
}

fn connect_to(socket: &Path) -> Wire<UnixStream> {
    let mut stream = None;
    wait_until("it listens", || {
        stream = UnixStream::connect(socket).ok();
        stream.is_some()
    });
    let stream = stream.expect("it was waited for");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a time can be set");
    Wire::new(stream)
}

#[test]
fn a_daemon_has_its_own_process_session_and_a_pid_file_until_it_ends() {
    let folder = Folder::of("background");
    fs::create_dir_all(folder.0.join("data")).expect("it can be made");
    let lines = "daemonize yes\nport 0\nunixsocket socket\npidfile id\nlogfile log\n";
    fs::write(folder.0.join("redis.conf"), lines).expect("it can be written");
    let mut command = dunlin(&["redis.conf", "--dir", "data", "-"]);
    let mut parent = command.current_dir(&folder.0).spawn().expect("the program starts");
    let mut stdin = parent.stdin.take().expect("its input is a pipe");
    std::io::Write::write_all(&mut stdin, b"maxclients 77\n").expect("it reads");
    drop(stdin);
    let output = parent.wait_with_output().expect("it ends");
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");

    let data = folder.0.join("data");
    let server = Background::named_by(&data.join("id"));
    assert_eq!(server.stat_field(3), server.0.to_string(), "it leads a session");
    for stream in [1, 2] {
        let leads = fs::read_link(format!("/proc/{}/fd/{stream}", server.0)).expect("it runs");
        assert_eq!(leads, Path::new("/dev/null"));
    }
    let mut client = connect_to(&data.join("socket"));
    client.ask("CONFIG GET daemonize\r\n", "*2\r\n$9\r\ndaemonize\r\n$3\r\nyes\r\n");
    client.ask("CONFIG GET pidfile\r\n", "*2\r\n$7\r\npidfile\r\n$2\r\nid\r\n");
    client.ask("CONFIG GET maxclients\r\n", "*2\r\n$10\r\nmaxclients\r\n$2\r\n77\r\n");
    client.send("SHUTDOWN\r\n");
    wait_until("it has ended", || !Path::new(&format!("/proc/{}", server.0)).exists());
    assert!(!data.join("id").exists() && folder.text("data/log").contains("Removing the pid file."));
}

#[test]
fn configuration_errors_are_reported_before_the_program_becomes_a_daemon() {
    let output = dunlin(&["--daemonize", "yes", "--port", "x"]).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("argument couldn't be parsed into an integer"));
}

#[test]
fn a_process_in_the_foreground_writes_a_pid_file_if_one_is_configured() {
    let file = path("foreground.pid");
    let mut program = start(&["--port", "0", "--pidfile", &file.display().to_string()]);
    assert_eq!(fs::read_to_string(&file).expect("it is there"), format!("{}\n", program.id()));
    program.signal("TERM");
    assert!(program.end().0.success() && !file.exists());
}

#[test]
fn the_program_starts_although_its_pid_file_cannot_be_written() {
    let mut program = start(&["--port", "0", "--pidfile", "/no/such/folder/id"]);
    connect(program.address()).ask("PING\r\n", "+PONG\r\n");
    program.signal("TERM");
    let (status, lines) = program.end();
    assert!(status.success() && !lines.iter().any(|line| line.contains("Removing")), "{lines:?}");
}

fn score(program: &Running) -> i32 {
    let score = fs::read_to_string(format!("/proc/{}/oom_score_adj", program.id())).expect("it runs");
    score.trim().parse().expect("it is a number")
}

/// Scores only rise here: to lower one takes a privilege.
#[test]
fn the_oom_score_follows_the_configuration_and_is_restored_when_a_set_fails() {
    let program = start(&["--port", "0"]);
    let usual = score(&program);
    let mut client = connect(program.address());
    client.ask("CONFIG SET oom-score-adj-values \"7 20 30\"\r\n", "+OK\r\n");
    assert_eq!(score(&program), usual);
    client.ask("CONFIG SET oom-score-adj relative\r\n", "+OK\r\n");
    assert_eq!(score(&program), usual + 7);
    client.ask("CONFIG GET oom-score-adj\r\n", "*2\r\n$13\r\noom-score-adj\r\n$3\r\nyes\r\n");
    client.ask("CONFIG SET oom-score-adj-values \"9 20 30\"\r\n", "+OK\r\n");
    assert_eq!(score(&program), usual + 9);
    let refusal =
        "-ERR CONFIG SET failed (possibly related to argument 'bind') - Failed to bind to specified addresses.\r\n";
    client.ask("CONFIG SET oom-score-adj-values \"11 20 30\" bind 192.0.2.1\r\n", refusal);
    assert_eq!(score(&program), usual + 9);
    client.ask("CONFIG SET oom-score-adj no\r\n", "+OK\r\n");
    assert_eq!(score(&program), usual);
}

#[test]
fn the_oom_score_is_set_at_the_start_too() {
    let usual = score(&start(&["--port", "0"]));
    let program = start(&["--port", "0", "--oom-score-adj", "absolute", "--oom-score-adj-values", "1000", "0", "0"]);
    assert_eq!(score(&program), 1000.max(usual));
}

#[test]
fn systemd_is_notified_when_the_program_is_ready_and_when_it_ends() {
    let folder = Folder::of("systemd");
    let socket = folder.0.join("notify");
    let systemd = UnixDatagram::bind(&socket).expect("the folder takes sockets");
    systemd.set_read_timeout(Some(TIMEOUT)).expect("a time can be set");
    let notification = || {
        let mut message = [0; 256];
        let length = systemd.recv(&mut message).expect("a message arrives");
        String::from_utf8_lossy(&message[..length]).into_owned()
    };
    for wanted in ["systemd", "auto"] {
        // A supervised process stays in the foreground.
        let mut command = dunlin(&["--port", "0", "--supervised", wanted, "--daemonize", "yes"]);
        let mut program = begin(command.env("NOTIFY_SOCKET", &socket), "");
        assert!(notification().starts_with("STATUS="));
        assert_eq!(notification(), "STATUS=Ready to accept connections\nREADY=1\n");
        let mut client = connect(program.address());
        client.ask("CONFIG GET supervised\r\n", "*2\r\n$10\r\nsupervised\r\n$7\r\nsystemd\r\n");
        client.send("INFO server\r\n");
        assert!(client.read_until(b"run_id").contains("process_supervised:systemd\r\n"));
        program.signal("TERM");
        assert_eq!(notification(), "STOPPING=1\n");
        assert!(program.end().0.success());
    }
}

#[test]
fn the_program_stops_itself_for_upstart_and_continues_on_its_signal() {
    let mut command = dunlin(&["--port", "0", "--supervised", "upstart"]);
    let mut program = command.env("UPSTART_JOB", "dunlin").stdout(Stdio::piped()).spawn().expect("it starts");
    let process = Background(program.id());
    wait_until("it stops", || process.stat_field(0) == "T");
    let go_on = format!("kill -s CONT {}", process.0);
    assert!(Command::new("sh").args(["-c", &go_on]).status().expect("there is a shell").success());
    wait_until("it goes on", || process.stat_field(0) != "T");
    program.kill().expect("it runs");
    program.wait().expect("it ends");
}

#[test]
fn a_missing_supervisor_is_only_logged() {
    for (wanted, missed) in [("systemd", "NOTIFY_SOCKET not found"), ("upstart", "UPSTART_JOB not found")] {
        let file = path(&format!("{wanted}.log"));
        let mut command = dunlin(&["--port", "0", "--supervised", wanted, "--logfile", &file.display().to_string()]);
        let mut program = command.env_remove("NOTIFY_SOCKET").env_remove("UPSTART_JOB").spawn().expect("it starts");
        wait_until("it is ready", || fs::read_to_string(&file).is_ok_and(|log| log.contains("Ready to accept")));
        assert!(fs::read_to_string(&file).expect("it is there").contains(missed));
        program.kill().expect("it runs");
        program.wait().expect("it ends");
        fs::remove_file(file).expect("it is there");
    }
}

/// A field of the process's status in /proc.
fn status(id: u32, field: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix(field)).expect("the field exists");
    line.trim_start_matches(':').trim().to_owned()
}

#[test]
fn the_program_uses_the_configured_processors_and_pages() {
    let allowed = status(std::process::id(), "Cpus_allowed_list");
    let first = allowed.split([',', '-']).next().expect("the list is not empty");
    let program = start(&["--port", "0", "--server-cpulist", first, "--disable-thp", "no"]);
    connect(program.address()).ask("PING\r\n", "+PONG\r\n");
    assert_eq!(status(program.id(), "Cpus_allowed_list"), first);
    assert_eq!(status(program.id(), "THP_enabled"), "1");
    let program = start(&["--port", "0"]);
    connect(program.address()).ask("PING\r\n", "+PONG\r\n");
    assert_eq!(status(program.id(), "Cpus_allowed_list"), allowed);
    assert_eq!(status(program.id(), "THP_enabled"), "0");
}
