//! Calls from a running script into the engine.
//!
//! A command that a script calls passes separate gates, in Redis's order: it must be known, have a valid number of
//! words, be allowed in scripts and to the user, write only if this script may write, and fit in memory. A script that
//! has written once goes on even if memory is short, since it cannot be undone.

use crate::engine::Engine;
use crate::engine::exec::stages::{Call, Caller, Ending};
use crate::engine::exec::{acl, cluster, cluster_compatibility, dispatch, replication, stages};
use crate::engine::spec::{Error, Flags, ServerError};
use crate::engine::state::{Effect, LogLevel};
use crate::lua::{Interrupt, ScriptHost};
use crate::resp::{Protocol, Reply, Request};
use crate::script::{ConvertedReply, Drand48, RegisteredFunctions, ScriptBackend, Words};

/// How long a script that takes too long runs at a time before other clients are served.
const SLICE_US: u64 = 2_000;

/// The most bytes that a script may log in one time slice: they are kept until the script ends or is suspended.
const MAX_LOGGED_BYTES: usize = 16 << 20;

impl ScriptHost for Engine {
    fn check_interrupt(&mut self) -> Interrupt {
        let now_us = self.host.elapsed_us();
        let threshold_us = self.settings.busy_reply_threshold_ms.saturating_mul(1000);
        if let Some(pending) = &self.scripts.functions.pending {
            return if now_us < pending.until_us { Interrupt::Continue } else { Interrupt::Abort };
        }
        let Some(running) = &mut self.scripts.running else { return Interrupt::Continue };
        if running.is_killed {
            return Interrupt::Abort;
        }
        let limit_us = if running.is_busy { SLICE_US } else { threshold_us };
        if threshold_us == 0 || now_us.saturating_sub(running.slice_began_us) < limit_us {
            return Interrupt::Continue;
        }
        if !running.is_busy {
            let line = format!(
                "Slow script detected: still in execution after {} milliseconds. You can try killing the script using \
                 the {} command. Script name is: {}.",
                (now_us - running.started_us) / 1000,
                running.name.kind().killer(),
                running.name
            );
            self.effects.push(Effect::Log(LogLevel::Warning, line));
        }
        running.is_busy = true;
        Interrupt::Suspend
    }
}

/// Checks a command that a script calls, and records whether it writes.
fn admit_from_script(engine: &mut Engine, request: Request<'_>) -> Result<(crate::engine::CommandId, usize), Error> {
    let (id, words) = engine.table.resolve(request).map_err(|_| Error::UnknownInScript)?;
    let command = engine.table.entry(id).command;
    let flags = command.flags;
    if !command.arity.admits(request.len()) {
        engine.stats.command_mut(id).rejected += 1;
        return Err(Error::WrongArityInScript);
    }
    if flags.has(Flags::NOSCRIPT) && !engine.switches.may_inspect(command) {
        engine.stats.command_mut(id).rejected += 1;
        return Err(Error::NotInScript);
    }
    let session = engine.scripts.running().session;
    if let Err(error) = acl::pass_rights_of_script(engine, session, id, request) {
        engine.stats.command_mut(id).rejected += 1;
        return Err(error);
    }
    let refusal = if replication::is_stale(engine) && !flags.has(Flags::STALE) {
        Some(ServerError::StaleInScript)
    } else if flags.has(Flags::WRITE) && replication::lacks_replicas(engine) {
        Some(ServerError::NoReplicas)
    } else {
        None
    };
    if let Some(refusal) = refusal {
        engine.stats.command_mut(id).rejected += 1;
        return Err(refusal.into());
    }
    let is_read_only = replication::is_read_only(engine);
    let is_short = engine.databases.pressure.is_short;
    let running = engine.scripts.running();
    let writes = flags.has(Flags::WRITE);
    let refusal = if running.is_read_only && (writes || flags.has(Flags::MAY_REPLICATE)) {
        Some(Error::WriteInReadOnlyScript)
    } else if is_short && flags.has(Flags::DENYOOM) && !running.has_written && !running.allows_oom {
        Some(Error::OutOfMemory)
    } else if writes && is_read_only {
        Some(ServerError::ReadOnlyReplica.into())
    } else if writes {
        engine.persistence.disk_error(&engine.settings).map(Error::from)
    } else {
        None
    };
    if let Some(refusal) = refusal {
        engine.stats.command_mut(id).rejected += 1;
        return Err(refusal);
    }
    running.has_written |= writes;
    if let Err(refusal) = cluster::pass_redirect_of_script(engine, id, request) {
        engine.stats.command_mut(id).rejected += 1;
        return Err(refusal);
    }
    cluster_compatibility::check_call(engine, id, request);
    Ok((id, words))
}

impl ScriptBackend for Engine {
    fn run_command(&mut self, request: Request<'_>, out: &mut Vec<u8>) -> Result<(), String> {
        let admitted = admit_from_script(self, request).and_then(|found| {
            let mut call = Call::new(self.scripts.running().session, found, request, Caller::Script);
            stages::begin_stages(self, &mut call)?;
            Ok(call)
        });
        let mut call = admitted.map_err(|error| {
            let line = error.to_string();
            dispatch::count_error(self, &line);
            line
        })?;
        let protocol = self.scripts.running().protocol;
        let ending = stages::run_call(self, &mut call, Reply::of_values(out, protocol));
        debug_assert!(matches!(ending, Ending::Answered), "a command within a script does not wait");
        stages::end_stages(self, &call);
        Ok(())
    }

    fn may_run(&mut self, request: Request<'_>) -> Option<bool> {
        let (id, _) = self.table.resolve(request).ok()?;
        let session = self.scripts.running().session;
        let user = &self.sessions.get(session)?.user;
        Some(acl::may_run(self, user, id, request).is_ok())
    }

    fn log(&mut self, level: u8, line: &[u8]) {
        let level = match level {
            0 => LogLevel::Debug,
            1 => LogLevel::Verbose,
            2 => LogLevel::Notice,
            _ => LogLevel::Warning,
        };
        if let Some(running) = &mut self.scripts.running {
            let before = running.logged_bytes;
            running.logged_bytes = before.saturating_add(line.len());
            if running.logged_bytes > MAX_LOGGED_BYTES {
                if before <= MAX_LOGGED_BYTES {
                    let text =
                        format!("What {} logs beyond this is dropped until others have been heard.", running.name);
                    self.effects.push(Effect::Log(LogLevel::Warning, text));
                }
                return;
            }
        }
        self.effects.push(Effect::Log(level, String::from_utf8_lossy(line).into_owned()));
    }

    fn protocol(&self) -> Protocol {
        self.scripts.running.as_ref().map_or(Protocol::Resp2, |running| running.protocol)
    }

    fn set_protocol(&mut self, protocol: Protocol) {
        self.scripts.running().protocol = protocol;
    }

    fn set_propagates(&mut self, propagates: bool) {
        self.scripts.running().propagates = propagates;
    }

    fn words(&mut self) -> &mut Option<Box<Words>> {
        &mut self.scripts.request_buffer
    }

    fn converted_reply(&mut self) -> &mut Option<Box<ConvertedReply>> {
        &mut self.scripts.converted_reply
    }

    fn random(&mut self) -> &mut Drand48 {
        &mut self.scripts.running().random
    }

    fn registered(&mut self) -> Option<&mut RegisteredFunctions> {
        self.scripts.functions.pending.as_mut().map(|pending| &mut pending.registered)
    }

    fn processor_s(&mut self) -> f64 {
        let time = self.host.processor_time().process;
        (time.user_us + time.system_us) as f64 / 1e6
    }
}
