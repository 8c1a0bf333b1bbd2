//! Parameters of the process: its log, its place in the system, and its monitoring.

use super::{INT, LONG};
use crate::config::parameter::{Backing, Parameter};
use crate::config::words;
use crate::engine::{LogLevel, OomScore, Permission, Settings, Supervisor};

/// The largest `hz` that Redis accepts unchanged.
const MAX_HZ: i64 = 500;

pub(super) const ROWS: &[Parameter] = &[
    Parameter::switch("always-show-logo", Backing::Fixed("no")).at_start(),
    Parameter::text("aof-rewrite-cpulist", Backing::NoEffect("")).alias("aof_rewrite_cpulist").at_start(),
    Parameter::text(
        "bgsave-cpulist",
        Backing::Field(|s| s.process.save_processors.clone(), |s, list| s.process_mut().save_processors = list),
    )
    .alias("bgsave_cpulist")
    .at_start(),
    Parameter::text(
        "bio-cpulist",
        Backing::Field(
            |s| s.process.background_processors.clone(),
            |s, list| s.process_mut().background_processors = list,
        ),
    )
    .alias("bio_cpulist")
    .at_start(),
    Parameter::number(
        "busy-reply-threshold",
        0,
        LONG,
        Backing::Field(
            |s| s.busy_reply_threshold_ms as i64,
            |s, threshold_ms| s.busy_reply_threshold_ms = threshold_ms as u64,
        ),
    )
    .alias("lua-time-limit"),
    Parameter::switch("crash-log-enabled", Backing::NoEffect("yes")),
    Parameter::switch("crash-memcheck-enabled", Backing::NoEffect("yes")),
    Parameter::switch(
        "daemonize",
        Backing::Field(|s| s.process.in_background, |s, on| s.process_mut().in_background = on),
    )
    .at_start(),
    Parameter::number(
        "databases",
        1,
        INT,
        Backing::Field(|s| s.databases as i64, |s, count| s.databases = count as usize),
    )
    .at_start(),
    Parameter::text("dir", Backing::Field(|s| s.directory.clone(), set_directory)).protected(),
    Parameter::switch(
        "disable-thp",
        Backing::Field(|s| s.process.refuses_huge_pages, |s, on| s.process_mut().refuses_huge_pages = on),
    )
    .at_start(),
    Parameter::switch("dynamic-hz", Backing::NoEffect("yes")),
    Parameter::choice(
        "enable-debug-command",
        &["no", "yes", "local"],
        Backing::Field(|s| s.debug_command.name(), |s, name| s.debug_command = Permission::named(name)),
    )
    .at_start(),
    Parameter::choice(
        "enable-module-command",
        &["no", "yes", "local"],
        Backing::Field(|s| s.module_command.name(), |s, name| s.module_command = Permission::named(name)),
    )
    .at_start(),
    Parameter::choice(
        "enable-protected-configs",
        &["no", "yes", "local"],
        Backing::Field(|s| s.protected_configs.name(), |s, name| s.protected_configs = Permission::named(name)),
    )
    .at_start(),
    Parameter::switch("hide-user-data-from-log", Backing::NoEffect("no")),
    Parameter::number("hz", 0, INT, Backing::Field(|s| s.hz.into(), |s, hz| s.hz = hz.clamp(1, MAX_HZ) as u16)),
    Parameter::text("ignore-warnings", Backing::NoEffect("")),
    Parameter::switch("jemalloc-bg-thread", Backing::NoEffect("yes")),
    Parameter::number(
        "latency-monitor-threshold",
        0,
        LONG,
        Backing::Field(|s| s.latency_threshold_ms as i64, |s, from_ms| s.latency_threshold_ms = from_ms as u64),
    ),
    Parameter::switch("latency-tracking", Backing::Field(|s| s.tracks_latency, |s, on| s.tracks_latency = on)),
    Parameter::words(
        "latency-tracking-info-percentiles",
        words::percentiles,
        Backing::Field(words::shown_percentiles, words::assign_percentiles),
    ),
    Parameter::word("locale-collate", words::locale, Backing::NoEffect("")),
    Parameter::text("logfile", Backing::Field(|s| s.log_file.clone(), |s, path| s.log_file = path)).at_start(),
    Parameter::choice(
        "loglevel",
        &["debug", "verbose", "notice", "warning", "nothing"],
        Backing::Field(|s| s.log_level.name(), |s, name| s.log_level = LogLevel::named(name)),
    ),
    Parameter::choice(
        "oom-score-adj",
        &["no", "yes", "relative", "absolute"],
        Backing::Field(|s| s.process.oom_score.name(), |s, name| s.process_mut().oom_score = OomScore::named(name)),
    ),
    Parameter::words(
        "oom-score-adj-values",
        words::oom_scores,
        Backing::Field(words::shown_oom_scores, words::assign_oom_scores),
    ),
    Parameter::text("pidfile", Backing::Field(|s| s.process.id_file.clone(), |s, path| s.process_mut().id_file = path))
        .at_start(),
    Parameter::word(
        "proc-title-template",
        words::title_template,
        Backing::NoEffect("{title} {listen-addr} {server-mode}"),
    ),
    Parameter::choice(
        "propagation-error-behavior",
        &["ignore", "panic", "panic-on-replicas"],
        Backing::NoEffect("ignore"),
    ),
    Parameter::text(
        "server-cpulist",
        Backing::Field(|s| s.process.server_processors.clone(), |s, list| s.process_mut().server_processors = list),
    )
    .alias("server_cpulist")
    .at_start(),
    Parameter::switch("set-proc-title", Backing::Fixed("yes")).at_start(),
    Parameter::words(
        "shutdown-on-sigint",
        words::shutdown_options,
        Backing::Field(|s| s.process.on_sigint.clone(), |s, words| s.process_mut().on_sigint = words),
    ),
    Parameter::words(
        "shutdown-on-sigterm",
        words::shutdown_options,
        Backing::Field(|s| s.process.on_sigterm.clone(), |s, words| s.process_mut().on_sigterm = words),
    ),
    Parameter::number("shutdown-timeout", 0, INT, Backing::NoEffect("10")),
    Parameter::number(
        "slowlog-log-slower-than",
        -1,
        LONG,
        Backing::Field(
            |s| s.slowlog_threshold_us.map_or(-1, |from_us| from_us as i64),
            |s, from_us| s.slowlog_threshold_us = u64::try_from(from_us).ok(),
        ),
    ),
    Parameter::number(
        "slowlog-max-len",
        0,
        LONG,
        Backing::Field(|s| s.slow_log_entries as i64, |s, count| s.slow_log_entries = count as usize),
    ),
    Parameter::choice(
        "supervised",
        &["upstart", "systemd", "auto", "no"],
        Backing::Field(|s| s.process.supervisor.name(), |s, name| s.process_mut().supervisor = Supervisor::named(name)),
    )
    .at_start(),
    Parameter::switch(
        "syslog-enabled",
        Backing::Field(|s| s.process.logs_to_system, |s, on| s.process_mut().logs_to_system = on),
    )
    .at_start(),
    Parameter::choice(
        "syslog-facility",
        &["user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"],
        Backing::Field(|s| s.process.log_facility, |s, name| s.process_mut().log_facility = name),
    )
    .at_start(),
    Parameter::text(
        "syslog-ident",
        Backing::Field(|s| s.process.log_name.clone(), |s, name| s.process_mut().log_name = name),
    )
    .at_start(),
];

fn set_directory(settings: &mut Settings, path: String) {
    settings.directory = path;
    settings.files_mut().loads_at_start = true;
}
