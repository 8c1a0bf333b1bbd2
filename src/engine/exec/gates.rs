//! The gates: what may refuse or hold back a command before it runs, in Redis's order, so that a request with two
//! faults is refused for the same one.
//!
//! Each gate says when it is active for a client. While it is not, it lets every data command pass, so the fast path
//! ([`super::fast_path`]) is open only while no gate is active: a gate that is added to this list closes it by itself.
//! A gate that concerns only commands with certain flags keeps those commands off the fast path instead, by the list of
//! such flags in `spec/command`, which a test here compares with the gates. The gate of a cluster's slots is checked by
//! the fast path itself, since nodes are to be fast, too.
//!
//! Debug builds of the fast path ask all gates, active or not, and assert that they let the command pass.
//!
//! Each gate can be asked without an effect, too ([`would_pass`]): so the test kit leaves alone what would not run.
//!
//! Not here: whether a command exists and how many words it takes ([`super::dispatch`]), the checks of a command that a
//! script calls ([`super::scripts`]), and the right to what a transaction queued ([`super::acl`]).
//!
//! Source for the order: the behaviour of Redis 8.0, asked with requests that fail at two gates at once.

use crate::engine::Engine;
use crate::engine::exec::{acl, cluster, cluster_compatibility, eviction, replication, tracking};
use crate::engine::spec::{CommandId, Error, Flags, Now, ServerError};
use crate::engine::state::{Session, SessionId};
use crate::resp::Request;

/// A command on its way through the gates.
#[derive(Clone, Copy, Debug)]
pub(super) struct GateRequest<'r> {
    pub(super) session: SessionId,
    pub(super) id: CommandId,
    /// The flags of the command, and of what it is about to run (EXEC, EVAL).
    pub(super) flags: Flags,
    pub(super) request: Request<'r>,
}

impl<'r> GateRequest<'r> {
    pub(super) fn of(engine: &Engine, session: SessionId, id: CommandId, request: Request<'r>) -> GateRequest<'r> {
        let command = engine.table.entry(id).command;
        let flags = command.flags_of.map_or(command.flags, |flags_of| flags_of(engine, request));
        GateRequest { session, id, flags: engine.sessions.flags_with_queue(session, flags), request }
    }

    /// Whether the command may change data, here or on replicas.
    fn writes(&self) -> bool {
        self.flags.has(Flags::WRITE) || self.flags.has(Flags::MAY_REPLICATE)
    }
}

/// The result of a gate that does not refuse: the moment until which the command is held back, if it is.
type Passed = Result<Option<Now>, Error>;

/// The result of a gate that refuses a command with that error, or lets it pass at once.
fn refuse_if(is_refused: bool, error: impl Into<Error>) -> Passed {
    if is_refused { Err(error.into()) } else { Ok(None) }
}

/// A check before a command runs, which may refuse it or hold it back.
pub(super) struct Gate {
    #[cfg_attr(not(debug_assertions), expect(dead_code, reason = "the assertion that names it is in debug builds"))]
    name: &'static str,
    /// Commands with one of these flags are the only ones that it concerns; all commands if there are none.
    only_for: &'static [Flags],
    /// Whether it may refuse or hold back a command of that client now.
    is_active: fn(&Engine, &Session) -> bool,
    /// For a gate that the fast path checks itself, for each command: whether it may do so for that client now. While
    /// any other gate is active, the fast path is closed.
    checked_by_fast_path: Option<fn(&Engine, &Session) -> bool>,
    /// Decides about a command of that client without any effect.
    ask: fn(&Engine, &Session, &GateRequest<'_>) -> Passed,
    /// For a gate with an effect, such as evicting keys: what it does when a command comes, and says then.
    pass: Option<fn(&mut Engine, &GateRequest<'_>) -> Passed>,
}

impl Gate {
    /// The fields that a row leaves out: a gate that concerns all commands, and closes the fast path while it is
    /// active.
    const ROW: Gate = Gate {
        name: "",
        only_for: &[],
        is_active: |_, _| false,
        checked_by_fast_path: None,
        ask: |_, _, _| Ok(None),
        pass: None,
    };

    /// Whether the fast path may be open for a client, as far as this gate is concerned.
    fn is_open(&self, engine: &Engine, client: &Session) -> bool {
        !self.only_for.is_empty()
            || !(self.is_active)(engine, client)
            || self.checked_by_fast_path.is_some_and(|may_check| may_check(engine, client))
    }
}

/// The commands after which a client receives more than one reply: messages, or the result of a wait.
const LASTING: [&str; 5] = ["dunlin|wait", "monitor", "psubscribe", "ssubscribe", "subscribe"];

/// All gates, in the order in which they are asked.
const GATES: [Gate; 18] = [
    Gate {
        name: "enable-debug-command and enable-module-command",
        only_for: &[Flags::PROTECTED, Flags::EXTENDS],
        is_active: |_, _| true,
        ask: |engine, client, asked| engine.settings.check_enabled(client, asked.flags).map(|()| None),
        ..Gate::ROW
    },
    Gate {
        name: "authentication",
        is_active: |engine, client| !client.authenticated && engine.acl.users.must_log_in(),
        ask: |engine, client, asked| {
            let is_known = client.authenticated || !engine.acl.users.must_log_in();
            refuse_if(!is_known && !asked.flags.has(Flags::NO_AUTH), Error::NoAuth)
        },
        ..Gate::ROW
    },
    Gate {
        name: "commands that are not allowed in a transaction",
        only_for: &[Flags::NO_MULTI],
        is_active: |_, client| client.transaction.is_some(),
        ask: |_, _, _| Err(Error::NotInTransaction),
        ..Gate::ROW
    },
    Gate {
        name: "commands of the page, which gets no messages and does not wait",
        is_active: |_, client| client.origin.is_page,
        ask: |engine, client, asked| {
            let name = &engine.table.entry(asked.id).name;
            let is_refused = client.origin.is_page && LASTING.contains(&name.as_str());
            if is_refused { Err(ServerError::DenyBlocking(name.to_uppercase()).into()) } else { Ok(None) }
        },
        ..Gate::ROW
    },
    Gate {
        name: "ACL",
        is_active: |engine, _| !engine.acl.users.are_unrestricted(),
        ask: |engine, client, asked| {
            let may_run = acl::may_run(engine, &client.user, asked.id, asked.request).map(|()| None);
            may_run.map_err(|denial| acl::refusal(engine, asked.session, asked.id, denial))
        },
        pass: Some(|engine, asked| acl::pass_rights(engine, asked.session, asked.id, asked.request).map(|()| None)),
        ..Gate::ROW
    },
    Gate {
        name: "slots of a cluster",
        is_active: |engine, _| engine.peers.cluster.is_some(),
        checked_by_fast_path: Some(cluster::serves_what_it_owns),
        ask: |engine, _, asked| Ok(cluster::check_redirect(engine, asked).map(|()| None)?),
        pass: Some(|engine, asked| cluster::pass_redirect(engine, asked).map(|()| None)),
        ..Gate::ROW
    },
    Gate {
        name: "cluster-compatibility-sample-ratio",
        is_active: |engine, _| cluster_compatibility::is_sampling(engine),
        pass: Some(|engine, asked| {
            cluster_compatibility::check_command(engine, asked);
            Ok(None)
        }),
        ..Gate::ROW
    },
    Gate {
        name: "maxmemory",
        is_active: |engine, _| engine.settings.max_memory_bytes != 0 || engine.databases.pressure.is_short,
        ask: |engine, _, asked| refuse_if(eviction::refuses_at_sight(engine, asked.flags), Error::OutOfMemory),
        pass: Some(|engine, asked| refuse_if(eviction::evict_for(engine, asked.flags), Error::OutOfMemory)),
        ..Gate::ROW
    },
    Gate {
        name: "tracking-table-max-keys",
        is_active: |engine, _| engine.observers.tracking.is_on(),
        pass: Some(|engine, _| {
            tracking::limit_tracking(engine);
            Ok(None)
        }),
        ..Gate::ROW
    },
    Gate {
        name: "stop-writes-on-bgsave-error and errors of the append-only file",
        is_active: |engine, _| engine.persistence.disk_error(&engine.settings).is_some(),
        ask: |engine, _, asked| {
            let is_concerned = asked.flags.has(Flags::WRITE) || engine.table.entry(asked.id).command.name == "PING";
            let error = engine.persistence.disk_error(&engine.settings).filter(|_| is_concerned);
            error.map_or(Ok(None), |error| Err(error.into()))
        },
        ..Gate::ROW
    },
    Gate {
        name: "min-replicas-to-write",
        is_active: |engine, _| replication::lacks_replicas(engine),
        ask: |engine, _, asked| {
            let is_refused = asked.flags.has(Flags::WRITE) && replication::lacks_replicas(engine);
            refuse_if(is_refused, ServerError::NoReplicas)
        },
        ..Gate::ROW
    },
    Gate {
        name: "replica-read-only",
        is_active: |engine, _| replication::is_read_only(engine),
        ask: |engine, _, asked| {
            let is_refused = asked.flags.has(Flags::WRITE) && replication::is_read_only(engine);
            refuse_if(is_refused, ServerError::ReadOnlyReplica)
        },
        ..Gate::ROW
    },
    Gate {
        name: "subscribers that speak RESP2",
        is_active: |_, client| client.is_resp2_subscriber(),
        ask: |engine, client, asked| {
            let is_refused = client.is_resp2_subscriber() && !asked.flags.has(Flags::WHILE_SUBSCRIBED);
            if is_refused { Err(Error::OnlyListens(engine.table.entry(asked.id).name.clone())) } else { Ok(None) }
        },
        ..Gate::ROW
    },
    Gate {
        name: "replica-serve-stale-data",
        is_active: |engine, _| replication::is_stale(engine),
        ask: |engine, _, asked| {
            let is_refused = replication::is_stale(engine) && !asked.flags.has(Flags::STALE);
            refuse_if(is_refused, ServerError::PrimaryIsDown)
        },
        ..Gate::ROW
    },
    Gate {
        name: "loading",
        is_active: |engine, _| engine.persistence.loading.is_some(),
        ask: |engine, _, asked| {
            let is_refused = engine.persistence.loading.is_some() && !asked.flags.has(Flags::LOADING);
            refuse_if(is_refused, ServerError::Loading)
        },
        ..Gate::ROW
    },
    Gate {
        name: "busy script",
        is_active: |engine, _| engine.scripts.is_any_running(),
        ask: |engine, _, asked| engine.scripts.gate(asked.flags).map(|()| None),
        ..Gate::ROW
    },
    Gate {
        name: "monitors, which Redis takes for replicas",
        is_active: |_, client| client.monitors,
        ask: |_, client, asked| {
            let touches_keys = asked.writes() || asked.flags.has(Flags::READONLY);
            refuse_if(client.monitors && touches_keys, Error::ReplicaTouchesKeys)
        },
        ..Gate::ROW
    },
    Gate {
        name: "CLIENT PAUSE",
        is_active: |engine, _| engine.timing.pause.holds(engine.timing.now),
        ask: |engine, _, asked| {
            // The test kit stands outside: it moves the clock out of a pause.
            let until = engine.timing.pause.holds_back(engine.timing.now, asked.writes());
            Ok(until.filter(|_| !engine.table.is_of_kit(asked.request)))
        },
        ..Gate::ROW
    },
];

impl Gate {
    /// Whether it concerns a command with these flags.
    fn concerns(&self, flags: Flags) -> bool {
        self.only_for.is_empty() || self.only_for.iter().any(|&flag| flags.has(flag))
    }

    /// Asks the gate about a command, with the gate's effects, such as evicting keys.
    fn pass(&self, engine: &mut Engine, asked: &GateRequest<'_>) -> Passed {
        match (self.pass, engine.sessions.get(asked.session)) {
            (Some(pass), _) => pass(engine, asked),
            (None, Some(client)) => (self.ask)(engine, client, asked),
            (None, None) => Ok(None),
        }
    }
}

/// Asks the gates in their order: whether the command passes, waits until a moment, or is refused.
pub(super) fn pass_gates(engine: &mut Engine, asked: &GateRequest<'_>) -> Passed {
    for gate in &GATES {
        let Some(client) = engine.sessions.get(asked.session) else { return Ok(None) };
        if gate.concerns(asked.flags)
            && (gate.is_active)(engine, client)
            && let Some(moment) = gate.pass(engine, asked)?
        {
            return Ok(Some(moment));
        }
    }
    Ok(None)
}

/// Whether a request would pass all gates now. That nothing changes has one limit: only evicting keys shows whether
/// enough of them can be evicted, so a request passes the gate of `maxmemory` here while there is any to evict.
pub(super) fn would_pass(engine: &Engine, asked: &GateRequest<'_>) -> bool {
    engine.sessions.get(asked.session).is_some_and(|client| {
        let concerned = GATES.iter().filter(|gate| gate.concerns(asked.flags) && (gate.is_active)(engine, client));
        concerned.into_iter().all(|gate| matches!((gate.ask)(engine, client, asked), Ok(None)))
    })
}

/// Whether no gate is active for that client but those that the fast path checks itself, so that any command passes
/// that has no gate of its own.
#[inline]
pub(super) fn are_gates_open(engine: &Engine, client: &Session) -> bool {
    GATES.iter().all(|gate| gate.is_open(engine, client))
}

/// Asks all gates, active or not, and panics if one does not let a command of the fast path pass.
#[cfg(debug_assertions)]
pub(super) fn assert_gates_pass(engine: &mut Engine, asked: &GateRequest<'_>) {
    for gate in GATES.iter().filter(|gate| gate.concerns(asked.flags)) {
        let passed = gate.pass(engine, asked);
        assert!(matches!(passed, Ok(None)), "the fast path skips the gate of {}: {passed:?}", gate.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::spec::Command;

    #[test]
    fn a_flag_with_a_gate_keeps_commands_off_the_fast_path() {
        assert!(Command { flags: Flags::READONLY, ..Command::ROW }.may_run_fast());
        for flag in GATES.iter().flat_map(|gate| gate.only_for) {
            let command = Command { flags: Flags::READONLY.and(*flag), ..Command::ROW };
            assert!(!command.may_run_fast(), "{flag:?}");
        }
    }
}
