//! The settings of the process: how it runs in its system, and its supervisor.
//!
//! The engine only stores them. `server/` applies them, most of them once, as the program starts: an embedded server
//! leaves the process to the program that embeds it, except for the score.

#[cfg(feature = "page")]
use std::time::Duration;

use crate::engine::state::measures::Measure;

/// `supervised`: the supervisor of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Supervisor {
    /// No supervisor.
    #[default]
    Nobody,
    /// The supervisor that the environment variables indicate.
    Auto,
    /// Upstart, which waits for the process to stop itself.
    Upstart,
    /// systemd, which waits for a message.
    Systemd,
}

impl Supervisor {
    const ALL: [Supervisor; 4] = [Supervisor::Nobody, Supervisor::Auto, Supervisor::Upstart, Supervisor::Systemd];

    /// The value's name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Supervisor::Nobody => "no",
            Supervisor::Auto => "auto",
            Supervisor::Upstart => "upstart",
            Supervisor::Systemd => "systemd",
        }
    }

    /// The supervisor of that name; none when the name is unknown.
    pub fn named(name: &str) -> Supervisor {
        Supervisor::ALL.into_iter().find(|supervisor| supervisor.name() == name).unwrap_or_default()
    }
}

/// `oom-score-adj`: how the score is set by which the system, when out of memory, chooses a process to kill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OomScore {
    /// The score is left as it is.
    #[default]
    Kept,
    /// The configured value is added to it.
    Relative,
    /// The score is the configured value.
    Absolute,
}

impl OomScore {
    /// The value's name in the configuration. `yes` means `relative`, which is shown as `yes`.
    pub fn name(self) -> &'static str {
        match self {
            OomScore::Kept => "no",
            OomScore::Relative => "yes",
            OomScore::Absolute => "absolute",
        }
    }

    /// The mode of that name; the score is left as it is when the name is unknown.
    pub fn named(name: &str) -> OomScore {
        match name {
            "yes" | "relative" => OomScore::Relative,
            "absolute" => OomScore::Absolute,
            _ => OomScore::Kept,
        }
    }
}

/// `end-with`: the events each of which ends the server, beside the requests to shut down.
#[cfg(feature = "program")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndWith {
    /// The end of the standard input: whoever holds its other end keeps the server alive.
    pub stdin: bool,
    /// The ends of the processes with these ids.
    pub processes: Vec<u32>,
}

#[cfg(feature = "program")]
impl EndWith {
    /// The meaning of a value in the configuration: `stdin` and ids of processes, with blanks between them. `None` for
    /// a value that means nothing.
    pub fn named(value: &str) -> Option<EndWith> {
        let mut all = EndWith::default();
        for word in value.split_ascii_whitespace() {
            if word.eq_ignore_ascii_case("stdin") {
                all.stdin = true;
            } else {
                // The system's process ids are positive and have 31 bits.
                let id = word.parse().ok().filter(|id| (1..=i32::MAX as u32).contains(id))?;
                all.add(EndWith { stdin: false, processes: vec![id] });
            }
        }
        Some(all)
    }

    /// Adds events; if there are none to add, removes those that there were.
    pub fn add(&mut self, more: EndWith) {
        if more.is_empty() {
            *self = more;
            return;
        }
        self.stdin |= more.stdin;
        for id in more.processes {
            if !self.processes.contains(&id) {
                self.processes.push(id);
            }
        }
    }

    /// Whether there is no such event.
    pub fn is_empty(&self) -> bool {
        !self.stdin && self.processes.is_empty()
    }

    /// The value in the configuration.
    pub fn name(&self) -> String {
        let stdin = self.stdin.then(|| "stdin".to_owned());
        stdin.into_iter().chain(self.processes.iter().map(u32::to_string)).collect::<Vec<_>>().join(" ")
    }
}

/// How a program that starts a server for itself learns where it is, and how the server ends with that program.
#[cfg(feature = "program")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// `announce`: the addresses are announced on the standard output.
    pub is_announced: bool,
    /// `end-with`: what the server ends with, whichever comes first.
    pub end_with: EndWith,
    /// `free-port`: the system picks the port.
    pub uses_free_port: bool,
    /// `port-file`: the path of a file with the port, empty for none.
    pub port_file: String,
    /// `idle-end`: the seconds without a client after which the server ends, 0 for never.
    pub idle_end_s: u32,
}

/// The HTTP service of a server, and its guests.
#[cfg(feature = "page")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// `page-port`: the port; 0 for one that the system picks, `None` if nothing is served.
    pub port: Option<u16>,
    /// `page-bind`: the addresses that it listens on, as those of `bind`.
    pub bind: Vec<String>,
    /// `page-host`: the names, beside those of the loopback interface, by which browsers and scrapers may ask for it.
    pub hosts: Vec<String>,
    /// `page-token`: commands are run only for those who have opened the address that the server prints.
    pub has_token: bool,
    /// The time for the head of a request to arrive, and for its body. It is no parameter: tests make it short.
    pub request_timeout: Duration,
}

#[cfg(feature = "page")]
impl Default for Page {
    fn default() -> Page {
        let bind = vec!["127.0.0.1".to_owned(), "-::1".to_owned()];
        Page { port: None, bind, hosts: Vec::new(), has_token: true, request_timeout: Duration::from_secs(10) }
    }
}

/// The settings of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// `daemonize`: it runs in the background.
    pub in_background: bool,
    /// `pidfile`: the path of the file that names the process, empty for none.
    pub id_file: String,
    /// `supervised`: the supervisor of the process.
    pub supervisor: Supervisor,
    /// `syslog-enabled`: the log goes to the system's, too.
    pub logs_to_system: bool,
    /// `syslog-ident`: the program's name in the system's log.
    pub log_name: String,
    /// `syslog-facility`: the facility of its messages in the system's log.
    pub log_facility: &'static str,
    /// `oom-score-adj`: how the out-of-memory score is set.
    pub oom_score: OomScore,
    /// `oom-score-adj-values`: of a server that others follow, of one that follows another, and of what saves in the
    /// background. Only the first is ever needed.
    pub oom_scores: [i16; 3],
    /// `disable-thp`: memory comes in small pages even where the system would give huge ones.
    pub refuses_huge_pages: bool,
    /// `server-cpulist`: the processors for the event loops, empty for any.
    pub server_processors: String,
    /// `bio-cpulist`: the processors for the threads that free memory and speak to other servers.
    pub background_processors: String,
    /// `bgsave-cpulist`: the processors for the threads that save.
    pub save_processors: String,
    /// `shutdown-on-sigint`: the options of SHUTDOWN for that signal, or `default`.
    pub on_sigint: String,
    /// `shutdown-on-sigterm`: the same for SIGTERM.
    pub on_sigterm: String,
    /// `socket-mark-id`: the mark of the listening sockets, for the rules of the system's firewall; 0 for none.
    pub socket_mark: u32,
    /// `measure`: whose keys the metrics tell of.
    pub measures: Vec<Measure>,
    /// The settings for programs that start a server for themselves.
    #[cfg(feature = "program")]
    pub launch: Launch,
    /// The HTTP service.
    #[cfg(feature = "page")]
    pub page: Page,
}

impl Default for Process {
    fn default() -> Process {
        Process {
            in_background: false,
            id_file: String::new(),
            supervisor: Supervisor::Nobody,
            logs_to_system: false,
            log_name: "redis".to_owned(),
            log_facility: "local0",
            oom_score: OomScore::Kept,
            oom_scores: [0, 200, 800],
            refuses_huge_pages: true,
            server_processors: String::new(),
            background_processors: String::new(),
            save_processors: String::new(),
            on_sigint: "default".to_owned(),
            on_sigterm: "default".to_owned(),
            socket_mark: 0,
            measures: Vec::new(),
            #[cfg(feature = "program")]
            launch: Launch::default(),
            #[cfg(feature = "page")]
            page: Page::default(),
        }
    }
}
