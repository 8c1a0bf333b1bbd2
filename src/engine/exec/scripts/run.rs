//! RunningScript a script: from its call to its reply, in one go or, if it takes too long, in time slices.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::exec::ctx::Halt;
use crate::engine::exec::scripts::{load, take_vm};
use crate::engine::exec::stages::Ending;
use crate::engine::exec::{
    Ctx, aof, blocking, cluster_compatibility, dispatch, propagation, replication, snapshots, timing, tracking,
};
use crate::engine::spec::{ClusterError, CommandId, Error, Flags, Now, ServerError};
use crate::engine::state::SessionId;
use crate::engine::state::scripts::{Digest, Name, RunningScript, ScriptOrFunction, SuspendedTransaction};
use crate::resp::{Protocol, Request, Requests};
use crate::script::{Drand48, Failure, Function, Header, LuaVm, Outcome, ReturnedErrors};
use crate::value::hash_slot::hash_slot;

/// A script to run, and its arguments.
#[derive(Debug)]
pub struct Call<'a> {
    /// The SHA-1 digest of the script, which names it.
    pub digest: Digest,
    /// The source, if the request has it (EVAL).
    pub source: Option<&'a [u8]>,
    /// The table `KEYS`.
    pub keys: Request<'a>,
    /// The table `ARGV`.
    pub arguments: Request<'a>,
}

/// A function to call, and its arguments.
#[derive(Debug)]
pub struct FunctionCall<'a> {
    /// The function.
    pub function: Arc<Function>,
    /// Its first argument: the keys.
    pub keys: Request<'a>,
    /// Its second argument: the other words.
    pub arguments: Request<'a>,
}

impl Call<'_> {
    /// Runs the script and replies with its result. To be called last, before any reply.
    ///
    /// # Errors
    /// There is no such script, it cannot be compiled, or it failed.
    pub fn run(&self, cx: &mut Ctx<'_>) -> Result<(), Error> {
        let mut vm = take_vm(&mut cx.engine.scripts);
        let result = self.run_on(&mut vm, cx);
        cx.engine.scripts.vm = Some(vm);
        result
    }

    fn run_on(&self, vm: &mut LuaVm, cx: &mut Ctx<'_>) -> Result<(), Error> {
        if self.source.is_some() && !cx.engine.scripts.cache.contains(self.digest) {
            snapshots::before_scripts_change(cx.engine);
        }
        let cache = &mut cx.engine.scripts.cache;
        if let Some(source) = self.source {
            cache.add(source, self.digest, false, vm)?;
        }
        let (header, script) = cache.take_compiled(self.digest, vm)?;
        let outcome = begin(cx, Name::Script(self.digest), &header, self.keys)
            .map(|()| vm.run(cx.engine, &script, self.keys, self.arguments, &mut cx.reply));
        cx.engine.scripts.cache.put_back_compiled(self.digest, script);
        conclude(cx, outcome?)
    }
}

impl FunctionCall<'_> {
    /// Calls the function and replies with its result. To be called last, before any reply.
    ///
    /// # Errors
    /// The function may not run, or it failed.
    pub fn run(&self, cx: &mut Ctx<'_>) -> Result<(), Error> {
        let function = &*self.function;
        begin(cx, Name::Function(Arc::clone(&self.function)), &function.header, self.keys)?;
        let mut vm = load::take_function_vm(cx.engine);
        let outcome = vm.call(cx.engine, function, self.keys, self.arguments, &mut cx.reply);
        cx.engine.scripts.functions.vm = Some(vm);
        conclude(cx, outcome)
    }
}

/// Ends the running script with its outcome, or suspends the command with it.
fn conclude(cx: &mut Ctx<'_>, outcome: Outcome) -> Result<(), Error> {
    if outcome == Outcome::Suspended {
        cx.halt = Halt::Suspended;
        return Ok(());
    }
    let name = end_script(cx.engine);
    conclude_outcome(cx.engine, outcome, name, cx.command)
}

/// Makes the script the running one, unless its header does not allow that now.
fn begin(cx: &mut Ctx<'_>, name: Name, header: &Header, keys: Request<'_>) -> Result<(), Error> {
    if header.is_there && header.no_cluster && cx.engine.peers.cluster.is_some() {
        return Err(ClusterError::ScriptRefused.into());
    }
    if header.is_there && header.no_cluster {
        cluster_compatibility::count(cx.engine);
    }
    if !header.allow_stale && replication::is_stale(cx.engine) {
        let error = if header.is_there { ServerError::ScriptWithStaleData } else { ServerError::PrimaryIsDown };
        return Err(error.into());
    }
    let now_us = cx.engine.host.elapsed_us();
    let command = cx.command().command;
    if header.is_there && !header.no_writes {
        admit_writing(cx.engine, command.flags)?;
    }
    if header.is_there && !header.allow_oom && !header.no_writes && cx.engine.databases.pressure.is_short {
        return Err(Error::ScriptWithoutMemory);
    }
    cx.engine.scripts.running = Some(RunningScript {
        session: cx.session,
        command: cx.command,
        name,
        is_read_only: header.no_writes || command.flags.has(Flags::READONLY),
        allows_oom: header.is_there && header.allow_oom,
        allows_cross_slot: !header.is_there || header.allow_cross_slot,
        hash_slot: keys.get(0).map(hash_slot),
        last_slot: keys.get(0).map(hash_slot),
        sampled_slot: cx.engine.scripts.sampled_slot,
        has_written: false,
        propagates: true,
        protocol: Protocol::Resp2,
        random: Drand48::of(cx.engine.generator.u64(..)),
        now: cx.engine.now(),
        time_shown: cx.engine.now(),
        database: cx.database,
        logged_bytes: 0,
        started_us: now_us,
        slice_began_us: now_us,
        is_busy: false,
        request: Requests::default(),
        is_killed: false,
        is_detached: false,
        transaction: None,
        partial_reply: Vec::new(),
    });
    Ok(())
}

/// Whether a script that may write can run now, in Redis's order. Most are refused at the gates; one whose source a
/// transaction has loaded before was not known there.
fn admit_writing(engine: &Engine, flags: Flags) -> Result<(), Error> {
    if replication::is_read_only(engine) {
        return Err(ServerError::WritingScriptAtReplica.into());
    }
    match engine.persistence.disk_error(&engine.settings) {
        Some(ServerError::NotAppended(reason)) => return Err(ServerError::ScriptNotAppended(reason).into()),
        Some(_) => return Err(ServerError::ScriptNotSaved.into()),
        None => {}
    }
    if flags.has(Flags::READONLY) {
        return Err(Error::WritesThoughReading);
    }
    if replication::lacks_replicas(engine) { Err(ServerError::NoReplicas.into()) } else { Ok(()) }
}

/// Makes the running transaction continue with the request at `next` when the suspended script has ended.
pub fn suspend_transaction_at(cx: &mut Ctx<'_>, next: usize) {
    if let Some(running) = &mut cx.engine.scripts.running {
        running.transaction = Some(SuspendedTransaction { command: cx.command, next });
    }
    cx.halt = Halt::Suspended;
}

impl Engine {
    /// Runs the suspended script for one time slice.
    pub fn go_on(&mut self, now: Now) {
        // What was written before does not wait for its end.
        aof::sync_if_due(self, now);
        self.timing.now = now;
        let now_us = self.host.elapsed_us();
        let Some(running) = &mut self.scripts.running else { return };
        let kind = running.name.kind();
        let place = match kind {
            ScriptOrFunction::Script => &mut self.scripts.vm,
            ScriptOrFunction::Function => &mut self.scripts.functions.vm,
        };
        let Some(mut vm) = place.take() else { return };
        (running.slice_began_us, running.time_shown, running.logged_bytes) = (now_us, now, 0);
        let (session, mut partial) = (running.session, std::mem::take(&mut running.partial_reply));
        self.timing.now = running.now;
        self.observers.tracking.begin_command(session);
        if self.sessions.is_page(session) {
            self.stats.begin_uncounted();
        }
        let mut reply = self.sessions.reply_to(session, &mut partial);
        // A panic ends only the script's client and its virtual machine: the timer has other clients to serve.
        if let Ok(outcome) = catch_unwind(AssertUnwindSafe(|| vm.resume(self, &mut reply))) {
            match kind {
                ScriptOrFunction::Script => self.scripts.vm = Some(vm),
                ScriptOrFunction::Function => self.scripts.functions.vm = Some(vm),
            }
            match outcome {
                Outcome::Suspended => stash_partial_reply(self, &mut partial, 0),
                outcome => conclude_script(self, session, outcome, partial),
            }
        } else {
            give_up_script(self, session);
        }
        self.stats.end_uncounted();
        tracking::end_tracking(self, session);
        self.observers.tracking.end_request();
        self.timing.now = now;
        if !self.scripts.is_busy() {
            propagation::end_suspended_unit(self, session);
            self.unblock_ready();
            aof::end_script(self);
        }
    }
}

/// Adds a script to the cache (SCRIPT LOAD).
///
/// # Errors
/// The fault in the script.
pub fn load_script(engine: &mut Engine, source: &[u8]) -> Result<Digest, Error> {
    let digest = Digest::of(source);
    if engine.scripts.cache.contains(digest) {
        return Ok(digest);
    }
    snapshots::before_scripts_change(engine);
    let mut vm = take_vm(&mut engine.scripts);
    let added = engine.scripts.cache.add(source, digest, true, &mut vm);
    engine.scripts.vm = Some(vm);
    added.map(|()| digest)
}

/// Ends the running script, and restores its client's database. Returns the script's name.
fn end_script(engine: &mut Engine) -> Option<Name> {
    let running = engine.scripts.running.take()?;
    if let Some(client) = engine.sessions.get_mut(running.session) {
        client.database = running.database;
    }
    Some(running.name)
}

/// Converts a failure of the interpreter into an error.
fn conclude_outcome(
    engine: &mut Engine,
    outcome: Outcome,
    name: Option<Name>,
    command: CommandId,
) -> Result<(), Error> {
    match outcome {
        Outcome::Done(faults) => {
            count_returned_errors(engine, &faults, command);
            Ok(())
        }
        Outcome::Suspended => Ok(()),
        Outcome::Failed(failure) => Err(script_error(failure, name)),
    }
}

/// Counts the errors that a script returned: its own errors together as one failure, and each error of a command as
/// one.
fn count_returned_errors(engine: &mut Engine, faults: &ReturnedErrors, command: CommandId) {
    let own = u64::from(!faults.uncounted.is_empty());
    engine.stats.command_mut(command).failed += faults.counted + own;
    faults.uncounted.iter().for_each(|(line, times)| dispatch::count_errors(engine, line, *times));
}

/// Takes the partial reply of a suspended command out of `out`, to be sent when the command has ended.
pub(in crate::engine) fn stash_partial_reply(engine: &mut Engine, out: &mut Vec<u8>, start: usize) {
    engine.timing.running = None;
    if let Some(running) = &mut engine.scripts.running {
        running.partial_reply = out.split_off(start);
    }
}

/// Ends the script that a panic went through, and its client.
fn give_up_script(engine: &mut Engine, session: SessionId) {
    let is_detached = engine.scripts.running.as_ref().is_some_and(|running| running.is_detached);
    end_script(engine);
    if is_detached {
        engine.disconnect(session);
    } else {
        engine.close_session_later(session);
    }
}

/// Replies to a script that had been suspended, and continues the transaction that it is part of.
fn conclude_script(engine: &mut Engine, session: SessionId, outcome: Outcome, mut out: Vec<u8>) {
    let Some(running) = &mut engine.scripts.running else { return };
    let (command, suspended, is_detached, started_us) =
        (running.command, running.transaction, running.is_detached, running.started_us);
    let requests = std::mem::take(&mut running.request);
    let name = end_script(engine);
    let result = conclude_outcome(engine, outcome, name, command);
    dispatch::count(engine, command, result.is_err());
    if let Some(request) = requests.iter().next() {
        timing::record_time(engine, session, command, request, engine.host.elapsed_us().saturating_sub(started_us));
    }
    if let Err(error) = result {
        let mut reply = engine.sessions.reply_to(session, &mut out);
        dispatch::refuse(engine, error, &mut reply);
    }
    if let Some(suspended) = suspended
        && !resume_queue(engine, session, suspended, &mut out)
    {
        if let Some(running) = &mut engine.scripts.running {
            (running.is_detached, running.partial_reply) = (is_detached, out);
        }
        return;
    }
    let frames_before = engine.sessions.get(session).map_or(0, |client| client.push_queue.frames());
    blocking::answer(engine, session, frames_before, out);
    if is_detached {
        engine.disconnect(session);
    }
}

/// Runs the rest of a transaction; false when another script of it is suspended.
fn resume_queue(engine: &mut Engine, session: SessionId, suspended: SuspendedTransaction, out: &mut Vec<u8>) -> bool {
    let transaction = engine.sessions.get(session).and_then(|client| client.transaction.clone());
    let Some(transaction) = transaction else { return true };
    for (index, request) in transaction.queue.iter().enumerate().skip(suspended.next) {
        let reply = engine.sessions.reply_to(session, out);
        let ending = dispatch::run_within(engine, session, request, reply);
        if let Ending::Suspended = ending {
            if let Some(running) = &mut engine.scripts.running {
                running.transaction = Some(SuspendedTransaction { next: index + 1, ..suspended });
            }
            return false;
        }
    }
    if let Some(client) = engine.sessions.get_mut(session) {
        client.transaction = None;
    }
    dispatch::count(engine, suspended.command, false);
    true
}

/// The error line for the client of a failed script.
fn script_error(failure: Failure, name: Option<Name>) -> Error {
    let Failure { message, place, is_counted } = failure;
    let line = match (place, name) {
        (Some(place), Some(name)) => {
            format!("{message} script: {name}, on {}:{}.", place.source, place.line.unwrap_or(-1))
        }
        _ => message,
    };
    Error::ScriptFailed { line, is_counted }
}
