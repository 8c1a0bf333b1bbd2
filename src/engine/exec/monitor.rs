//! MONITOR: sends every command to the clients that monitor.
//!
//! A command is sent after it ran, with the database that it left selected, and before the next one: so the commands of
//! a transaction come before EXEC. A command that runs a script is sent before the script's commands. Administrators'
//! commands are not sent, and secret arguments are hidden.
//!
//! Costs nothing while no client monitors.
//!
//! Source: what MONITOR of Redis 8.0.6 shows.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::exec::delivery;
use crate::engine::spec::{Command, CommandId, Flags, REDACTED};
use crate::engine::state::{Session, SessionId, Transport};
use crate::resp::{Request, write_escaped};

/// Starts MONITOR for a session; false if it was on already.
pub fn monitor(engine: &mut Engine, session: SessionId) -> bool {
    if let Some(client) = engine.sessions.get_mut(session) {
        client.monitors = true;
    }
    engine.observers.monitors.insert(session)
}

/// Sends a command that a session ran to the monitors, unless [`show_early`] did.
#[inline]
pub(super) fn show(engine: &mut Engine, session: SessionId, id: CommandId, request: Request<'_>) {
    if engine.observers.has_monitors() && !engine.table.entry(id).command.flags.has(Flags::SKIP_MONITOR) {
        show_of(engine, session, id, request, false);
    }
}

/// Sends a command that is about to run a script to the monitors; true if there was one to send.
#[inline]
pub(super) fn show_early(engine: &mut Engine, session: SessionId, id: CommandId, request: Request<'_>) -> bool {
    let is_early = engine.observers.has_monitors() && engine.table.entry(id).command.flags.has(Flags::SKIP_MONITOR);
    if is_early {
        show_of(engine, session, id, request, false);
    }
    is_early
}

/// Sends a command that a session's script ran to the monitors.
#[inline]
pub(super) fn show_from_script(engine: &mut Engine, session: SessionId, id: CommandId, request: Request<'_>) {
    if engine.observers.has_monitors() {
        show_of(engine, session, id, request, true);
    }
}

#[cold]
fn show_of(engine: &mut Engine, session: SessionId, id: CommandId, request: Request<'_>, is_script: bool) {
    let command = engine.table.entry(id).command;
    if command.flags.has(Flags::ADMIN) {
        return;
    }
    let Some(client) = engine.sessions.get(session) else { return };
    let line: Arc<[u8]> = line(engine, client, command, request, is_script).into();
    let monitors: Vec<SessionId> = engine.observers.monitors.iter().copied().collect();
    for monitor in monitors {
        // These lines count as replies to MONITOR, so CLIENT REPLY silences them.
        if engine.sessions.get(monitor).is_some_and(|monitor| monitor.wants_reply()) {
            delivery::send(engine, monitor, Arc::clone(&line));
        }
    }
}

/// Writes the line for a command: `+seconds.microseconds [database address] "word" "word"`.
fn line(engine: &Engine, client: &Session, command: &Command, request: Request<'_>, is_script: bool) -> Vec<u8> {
    let (seconds, rest_us) = (engine.now().unix_s(), engine.now().unix_us.rem_euclid(1_000_000));
    let origin = &client.origin;
    let (kind, address) = match origin.transport {
        _ if is_script => ("", "lua"),
        Transport::Unix => ("unix:", origin.address.strip_suffix(":0").unwrap_or(&origin.address)),
        Transport::Tcp | Transport::Direct => ("", origin.address.as_str()),
    };
    let mut line = format!("+{seconds}.{rest_us:06} [{} {kind}{address}]", client.database).into_bytes();
    for (index, word) in request.iter().enumerate() {
        line.extend_from_slice(b" \"");
        write_escaped(if command.secrets.hide(request, index) { REDACTED } else { word }, &mut line);
        line.push(b'"');
    }
    line.extend_from_slice(b"\r\n");
    line
}
