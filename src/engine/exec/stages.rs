//! The one path on which a command runs, whoever calls it: a client, EXEC, a script, or a client that was blocked.
//!
//! [`execute`] calls the handler and counts the call. Each feature that acts around a command is a [`Stage`]: the limit
//! of the clients' memory, the test kit, key tracking, measures, MONITOR. A stage says when it is active. It has steps
//! around a call (before the command, when it begins, after it, and when its reply has its place among the pushes) for
//! the callers that it names, and steps around a client's request, whether its command runs or not (when it arrives,
//! when its reply is written, and when it is done). A command of the fast path ([`super::fast_path`]) skips the stages,
//! so that path is open only while none is active: a stage that is added to this list closes it by itself.
//!
//! Not here: what may refuse a command ([`super::gates`]), and the order of replies and pushes ([`super::dispatch`]).
//!
//! Invariant: while a stage is not active, each of its steps would do nothing.

use crate::engine::Engine;
use crate::engine::exec::kit::{journal, strict};
use crate::engine::exec::{Ctx, Flow, delivery, dispatch, kit, measures, monitor, propagation, timing, tracking};
use crate::engine::spec::{Args, Command, CommandId, Error, Flags, KeyFlags};
use crate::engine::state::kit::{Recorded, Source};
use crate::engine::state::timing::Stopwatch;
use crate::engine::state::{Block, ClientsLimit, SessionId};
use crate::resp::{Reply, Request};

/// Where a call comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// A request of a client.
    Client,
    /// The queue of a transaction.
    Transaction,
    /// A script.
    Script,
    /// A client that was blocked in this command, which runs again from the start.
    Unblocked,
}

/// A command that passed the gates and is about to run.
#[derive(Debug)]
pub(super) struct Call<'r> {
    pub(super) session: SessionId,
    pub(super) id: CommandId,
    pub(super) request: Request<'r>,
    /// How many words of the request name the command.
    pub(super) name_words: usize,
    pub(super) caller: Caller,
    /// Where a nested call is recorded, and when it began.
    entry: Option<(Recorded, Stopwatch)>,
}

impl<'r> Call<'r> {
    pub(super) fn new(
        session: SessionId,
        (id, name_words): (CommandId, usize),
        request: Request<'r>,
        caller: Caller,
    ) -> Call<'r> {
        Call { session, id, request, name_words, caller, entry: None }
    }

    /// Whether another command runs around it.
    pub(super) fn is_nested(&self) -> bool {
        matches!(self.caller, Caller::Transaction | Caller::Script)
    }
}

/// A request of a client that has arrived, and whose command is not looked up yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival<'r> {
    pub(super) session: SessionId,
    pub(super) request: Request<'r>,
    /// Whether the test kit has delayed it, and lets it run now.
    pub(super) was_delayed: bool,
}

/// The state of the reply to a client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyState {
    /// It is written, from this position on.
    Written(usize),
    /// It is written, from the first byte on, and goes to a client that was blocked.
    Late,
    /// It is still to come: the client is blocked.
    Blocked,
}

/// The way in which a command ended.
#[derive(Debug)]
pub(in crate::engine) enum Ending {
    /// The command has replied.
    Answered,
    /// The command is blocked.
    Blocked(Box<Block>),
    /// The command is a script, or a transaction with one, that was suspended.
    Suspended,
    /// The command has called the engine's host.
    CallsHost,
}

/// A feature of the server that concerns commands beyond their data.
struct Stage {
    is_active: fn(&Engine) -> bool,
    /// When a client's request arrives. With a flow it is dealt with, and does not run.
    arrive: fn(&mut Engine, Arrival<'_>, &mut Vec<u8>) -> Option<Flow>,
    /// The callers whose calls have the next four steps.
    callers: &'static [Caller],
    /// Before the command runs. An error is its reply, and it does not run.
    before: fn(&mut Engine, &mut Call<'_>) -> Result<(), Error>,
    /// When it begins to run: nothing refuses it any more.
    begin: fn(&mut Engine, &Call<'_>),
    /// After it ran, with its reply.
    after: fn(&mut Engine, &mut Call<'_>, &[u8]),
    /// When its reply has its place among the pushes, or it waits.
    end: fn(&mut Engine, &Call<'_>),
    /// When the reply to a client's request is written, or the client is blocked.
    reply: fn(&mut Engine, SessionId, ReplyState, &mut Vec<u8>),
    /// When a client's request is done, or is to come again.
    leave: fn(&mut Engine, SessionId, Flow),
}

impl Stage {
    const NONE: Stage = Stage {
        is_active: |_| false,
        arrive: |_, _, _| None,
        callers: &[],
        before: |_, _| Ok(()),
        begin: |_, _| {},
        after: |_, _, _| {},
        end: |_, _| {},
        reply: |_, _, _, _| {},
        leave: |_, _, _| {},
    };

    #[inline]
    fn concerns(&self, engine: &Engine, call: &Call<'_>) -> bool {
        (self.is_active)(engine) && self.callers.contains(&call.caller)
    }
}

/// All stages, in the order in which they have their steps.
const STAGES: [Stage; 5] = [
    // `maxmemory-clients`: clients are evicted when a request arrives, its own client too.
    Stage {
        is_active: |engine| engine.settings.max_client_bytes != ClientsLimit::Bytes(0),
        arrive: |engine, _, _| {
            engine.evict_clients();
            None
        },
        ..Stage::NONE
    },
    // The test kit: injected failures, strict mode and the journal, and its own waits.
    Stage {
        is_active: |engine| engine.observers.kit.is_some(),
        arrive: kit::arrive,
        callers: &[Caller::Transaction, Caller::Script],
        before: |engine, call| {
            let source = if call.caller == Caller::Script { Source::Script } else { Source::Transaction };
            match journal::begin_inner(engine, call.session, call.request, source) {
                Ok(entry) => call.entry = entry,
                Err(error) if source == Source::Script => return Err(error),
                // A failure of a queued command was injected when it was queued.
                Err(_) => {}
            }
            Ok(())
        },
        after: |engine, call, reply| {
            strict::end_command(engine, reply);
            if let Some((recorded, timer)) = call.entry.take() {
                journal::end_entry(engine, recorded, timer, reply);
            }
        },
        reply: kit::complete,
        leave: kit::leave,
        ..Stage::NONE
    },
    // Client-side caching: keys that were read are remembered, and invalidations for the caller itself are sent.
    Stage {
        is_active: |engine| engine.observers.tracking.is_on(),
        callers: &[Caller::Client, Caller::Transaction, Caller::Script, Caller::Unblocked],
        after: |engine, call, _| {
            let command = engine.table.entry(call.id).command;
            tracking::remember(engine, call.session, command, call.request);
        },
        ..Stage::NONE
    },
    // Measures: what commands do to the keys that the metrics tell of.
    Stage {
        is_active: |engine| engine.observers.measures.is_some(),
        callers: &[Caller::Client, Caller::Transaction, Caller::Script, Caller::Unblocked],
        begin: measures::begin,
        after: |engine, call, reply| measures::end(engine, call, reply),
        ..Stage::NONE
    },
    // MONITOR. A command that runs others is shown before them.
    Stage {
        is_active: |engine| engine.observers.has_monitors(),
        callers: &[Caller::Client, Caller::Transaction, Caller::Script],
        before: |engine, call| {
            if call.caller != Caller::Script {
                monitor::show_early(engine, call.session, call.id, call.request);
            }
            Ok(())
        },
        end: |engine, call| match call.caller {
            Caller::Script => monitor::show_from_script(engine, call.session, call.id, call.request),
            _ => monitor::show(engine, call.session, call.id, call.request),
        },
        ..Stage::NONE
    },
];

/// Whether no stage is active, so that running a command is all there is to do.
#[inline]
pub(super) fn are_stages_idle(engine: &Engine) -> bool {
    STAGES.iter().all(|stage| !(stage.is_active)(engine))
}

/// The steps of the stages when a client's request arrives. With a flow it is dealt with, and does not run.
pub(super) fn arrive(engine: &mut Engine, arrival: Arrival<'_>, out: &mut Vec<u8>) -> Option<Flow> {
    STAGES.iter().find_map(|stage| {
        let is_active = (stage.is_active)(engine);
        is_active.then(|| (stage.arrive)(engine, arrival, out)).flatten()
    })
}

/// The steps of the stages when the reply to a client's request is written in `out`, or the client is blocked.
pub(super) fn reply(engine: &mut Engine, session: SessionId, state: ReplyState, out: &mut Vec<u8>) {
    for stage in &STAGES {
        if (stage.is_active)(engine) {
            (stage.reply)(engine, session, state, out);
        }
    }
}

/// The steps of the stages when a client's request is done, or is to come again.
pub(super) fn leave(engine: &mut Engine, session: SessionId, flow: Flow) {
    for stage in &STAGES {
        if (stage.is_active)(engine) {
            (stage.leave)(engine, session, flow);
        }
    }
}

/// The steps of the stages before a command.
///
/// # Errors
/// A stage answers in the command's place.
pub(super) fn begin_stages(engine: &mut Engine, call: &mut Call<'_>) -> Result<(), Error> {
    for stage in &STAGES {
        if stage.concerns(engine, call) {
            (stage.before)(engine, call)?;
        }
    }
    Ok(())
}

/// Runs a command, and the steps of the stages after it.
pub(super) fn run_call(engine: &mut Engine, call: &mut Call<'_>, mut reply: Reply<'_>) -> Ending {
    let start = reply.position();
    if !call.is_nested() {
        engine.observers.tracking.begin_command(call.session);
    }
    for stage in &STAGES {
        if stage.concerns(engine, call) {
            (stage.begin)(engine, call);
        }
    }
    let ending = execute(engine, call, reply.reborrow());
    for stage in &STAGES {
        if stage.concerns(engine, call) {
            (stage.after)(engine, call, reply.since(start));
        }
    }
    if !call.is_nested() {
        tracking::end_tracking(engine, call.session);
    }
    ending
}

/// The last steps of the stages.
pub(super) fn end_stages(engine: &mut Engine, call: &Call<'_>) {
    for stage in &STAGES {
        if stage.concerns(engine, call) {
            (stage.end)(engine, call);
        }
    }
}

/// Calls the handler of a command and counts the call. A command that has to wait has not replied and is not
/// counted yet; the caller keeps what it waits for.
pub(super) fn execute(engine: &mut Engine, call: &Call<'_>, mut reply: Reply<'_>) -> Ending {
    let (session, id, is_nested) = (call.session, call.id, call.is_nested());
    let args = Args::new(call.request, call.name_words);
    let command = engine.table.entry(id).command;
    let timer = is_nested.then(|| timing::start_nested(engine, call.caller));
    let has_room = has_room(engine, session, command, &args);
    let start = reply.position();
    let recording = propagation::begin(engine, call);
    let mut ctx = Ctx::new(engine, session, id, reply.reborrow(), is_nested);
    let result = if has_room { (command.run)(&mut ctx, args) } else { Err(Error::OutOfMemory) };
    if result.is_err() {
        ctx.reply().rewind(start);
    }
    let ending = ctx.into_ending();
    if let Some(recording) = recording {
        propagation::end(engine, call, recording, &ending, result.is_err());
    }
    if let Ending::Suspended = ending {
        engine.scripts.keep_request(call.request);
    }
    if let Ending::Answered = ending {
        dispatch::count(engine, id, result.is_err());
        if let Some(timer) = timer {
            let elapsed_us = timing::end_nested(engine, timer);
            timing::record_time(engine, session, id, call.request, elapsed_us);
        }
    }
    if let Err(error) = result {
        if matches!(error, Error::ReplyTooLong) {
            delivery::overrun(engine, session, is_nested && engine.scripts.is_any_running());
        }
        dispatch::refuse(engine, error, &mut reply);
    }
    ending
}

/// Whether there is room for all that a command may add.
#[inline]
fn has_room(engine: &Engine, session: SessionId, command: &Command, args: &Args<'_>) -> bool {
    let adds = |command: &Command| command.keys.iter().any(|spec| spec.access.has(KeyFlags::INSERT));
    if !(command.flags.has(Flags::DENYOOM) || command.flags.has(Flags::WRITE) && adds(command)) {
        return true;
    }
    let Some(client) = engine.sessions.get(session) else { return true };
    let (capacity, database) = (&engine.switches.capacity, engine.databases.get(client.database));
    let is_little = args.buffer_bytes() < capacity.collection_bytes / 12;
    is_little && database.content_bytes() < capacity.collection_bytes / 3
        || engine.switches.capacity.has_room_left(database, command, args)
}
