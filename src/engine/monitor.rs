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

use crate::engine::{Command, CommandId, Engine, Flags, REDACTED, Session, SessionId, Transport};
use crate::resp::{Request, write_escaped};

impl Engine {
    /// Starts MONITOR for a session; false if it was on already.
    pub fn monitor(&mut self, session: SessionId) -> bool {
        if let Some(client) = self.sessions.get_mut(session) {
            client.monitors = true;
        }
        self.observers.monitors.insert(session)
    }

    /// Sends a command that a session ran to the monitors, unless [`Engine::show_early`] did.
    #[inline]
    pub(super) fn show(&mut self, session: SessionId, id: CommandId, request: Request<'_>) {
        if self.has_monitors() && !self.table.entry(id).command.flags.has(Flags::SKIP_MONITOR) {
            self.show_of(session, id, request, false);
        }
    }

    /// Sends a command that is about to run a script to the monitors; true if there was one to send.
    #[inline]
    pub(super) fn show_early(&mut self, session: SessionId, id: CommandId, request: Request<'_>) -> bool {
        let is_early = self.has_monitors() && self.table.entry(id).command.flags.has(Flags::SKIP_MONITOR);
        if is_early {
            self.show_of(session, id, request, false);
        }
        is_early
    }

    /// Sends a command that a session's script ran to the monitors.
    #[inline]
    pub(super) fn show_from_script(&mut self, session: SessionId, id: CommandId, request: Request<'_>) {
        if self.has_monitors() {
            self.show_of(session, id, request, true);
        }
    }

    pub(super) fn has_monitors(&self) -> bool {
        !self.observers.monitors.is_empty()
    }

    #[cold]
    fn show_of(&mut self, session: SessionId, id: CommandId, request: Request<'_>, is_script: bool) {
        let command = self.table.entry(id).command;
        if command.flags.has(Flags::ADMIN) {
            return;
        }
        let Some(client) = self.sessions.get(session) else { return };
        let line: Arc<[u8]> = self.line(client, command, request, is_script).into();
        let watchers: Vec<SessionId> = self.observers.monitors.iter().copied().collect();
        for watcher in watchers {
            // These lines count as replies to MONITOR, so CLIENT REPLY silences them.
            if self.sessions.get(watcher).is_some_and(|watcher| watcher.wants_reply()) {
                self.tell(watcher, Arc::clone(&line));
            }
        }
    }

    /// Writes the line for a command: `+seconds.microseconds [database address] "word" "word"`.
    fn line(&self, client: &Session, command: &Command, request: Request<'_>, is_script: bool) -> Vec<u8> {
        let (seconds, rest_us) = (self.now().unix_s(), self.now().unix_us.rem_euclid(1_000_000));
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
}
