//! Parameters of sockets, clients and their limits.

use super::{INT, LONG, LONG_BYTES, PORT, UINT, tls};
use crate::config::parameter::{Backing, Parameter};
use crate::config::words;
use crate::engine::{Notifications, Settings};

pub(super) const ROWS: &[Parameter] = &[
    Parameter::words("bind", words::addresses, Backing::Field(|s| s.bind.join(" "), set_bind)),
    Parameter::text("bind-source-addr", Backing::NoEffect("")),
    Parameter::number("port", 0, PORT, Backing::Field(|s| s.port.into(), |s, port| s.port = port as u16)),
    Parameter::number("tls-port", 0, PORT, Backing::Fixed("0")).or_refuse().refusing(tls::REFUSAL),
    Parameter::text("unixsocket", Backing::Field(|s| s.unix_socket.clone(), |s, path| s.unix_socket = path)).at_start(),
    Parameter::mode(
        "unixsocketperm",
        Backing::Field(|s| s.unix_socket_mode.into(), |s, mode| s.unix_socket_mode = mode as u32),
    )
    .at_start(),
    Parameter::number(
        "tcp-backlog",
        0,
        INT,
        Backing::Field(|s| s.tcp_backlog.into(), |s, count| s.tcp_backlog = count as u32),
    )
    .at_start(),
    Parameter::number(
        "tcp-keepalive",
        0,
        INT,
        Backing::Field(|s| s.tcp_keepalive_s.into(), |s, seconds| s.tcp_keepalive_s = seconds as u32),
    ),
    Parameter::number(
        "timeout",
        0,
        INT,
        Backing::Field(|s| s.timeout_s.into(), |s, seconds| s.timeout_s = seconds as u32),
    ),
    Parameter::number(
        "maxclients",
        1,
        UINT,
        Backing::Field(|s| s.max_clients as i64, |s, count| s.max_clients = count as usize),
    ),
    Parameter::switch("protected-mode", Backing::Field(|s| s.protected_mode, |s, on| s.protected_mode = on)),
    Parameter::text("requirepass", Backing::Field(|s| s.password.clone(), |s, password| s.password = password)),
    Parameter::text("aclfile", Backing::Field(|s| s.acl_file.clone(), |s, path| s.acl_file = path)).at_start(),
    Parameter::choice(
        "acl-pubsub-default",
        &["allchannels", "resetchannels"],
        Backing::Field(
            |s| if s.new_users_get_all_channels { "allchannels" } else { "resetchannels" },
            |s, name| s.new_users_get_all_channels = name == "allchannels",
        ),
    ),
    Parameter::number(
        "acllog-max-len",
        0,
        LONG,
        Backing::Field(|s| s.access_log_entries as i64, |s, count| s.access_log_entries = count as usize),
    ),
    Parameter::memory(
        "client-query-buffer-limit",
        1_048_576,
        LONG_BYTES,
        Backing::Field(|s| s.query_buffer_bytes as u64, |s, bytes| s.query_buffer_bytes = bytes as usize),
    ),
    Parameter::words(
        "client-output-buffer-limit",
        words::output_limits,
        Backing::Field(words::shown_output_limits, words::assign_output_limits),
    ),
    Parameter::memory(
        "proto-max-bulk-len",
        1_048_576,
        LONG_BYTES,
        Backing::Field(|s| s.max_bulk_bytes as u64, |s, bytes| s.max_bulk_bytes = bytes as usize),
    ),
    Parameter::number(
        "io-threads",
        1,
        128,
        Backing::Field(|s| s.event_loops.unwrap_or(1) as i64, |s, count| s.event_loops = Some(count as usize)),
    )
    .at_start(),
    Parameter::number(
        "max-new-connections-per-cycle",
        1,
        1000,
        Backing::Field(|s| s.accepted_at_once.into(), |s, count| s.accepted_at_once = count as u16),
    ),
    Parameter::number("max-new-tls-connections-per-cycle", 1, 1000, Backing::NoEffect("1")),
    Parameter::number(
        "socket-mark-id",
        0,
        UINT,
        Backing::Field(|s| s.process.socket_mark.into(), |s, mark| s.process_mut().socket_mark = mark as u32),
    )
    .at_start(),
    Parameter::number(
        "tracking-table-max-keys",
        0,
        LONG,
        Backing::Field(|s| s.tracked_keys as i64, |s, keys| s.tracked_keys = keys as usize),
    ),
    Parameter::word(
        "notify-keyspace-events",
        words::event_classes,
        Backing::Field(|s| s.notifications.to_string(), set_notifications),
    ),
];

fn set_bind(settings: &mut Settings, addresses: String) {
    settings.bind = addresses.split(' ').filter(|_| !addresses.is_empty()).map(str::to_owned).collect();
}

fn set_notifications(settings: &mut Settings, letters: String) {
    // The words were checked before, so they name classes.
    settings.notifications = Notifications::named(&letters).unwrap_or_default();
}
