//! Faults: rules that make commands fail as real networks and servers do.
//!
//! Rules are checked for each command that a client sends, not for those that a script calls. A failure that is a
//! state of the server (LOADING, READONLY and so on) hits the commands that a server in that state refuses, and no
//! others. A request that a gate would refuse or hold back hits no rule (`would_pass` in `exec/gates` names the one
//! exception). One that has called the host and comes again hits none a second time. In a transaction a refused command
//! makes EXEC fail, as any refusal does.
//!
//! Sources: the texts of Redis 8.0.6.

use std::fmt::{self, Display};

use crate::engine::spec::{ClusterError, Error, Flags};
use crate::engine::state::kit::{Trigger, quoted};

/// All fault rules.
#[derive(Debug, Default)]
pub struct Faults {
    pub(in crate::engine) rules: Vec<Fault>,
}

/// A fault rule: which commands it matches, and what happens to them.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The name, by which it is removed.
    pub name: Vec<u8>,
    /// The command, its container, or any.
    pub command: Option<Vec<u8>>,
    /// A glob that one of the keys matches.
    pub key: Option<Vec<u8>>,
    /// The name of the client.
    pub client: Option<Vec<u8>>,
    /// When it fires.
    pub trigger: Trigger,
    /// The effect on a command that it strikes.
    pub effect: FaultEffect,
}

/// What happens to a command when the rule fires.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultEffect {
    /// The command fails in this way.
    Failure(Failure),
    /// The server seems to be in a state in which it refuses the command.
    State(State),
}

/// The way in which a command, or its reply, fails.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The command runs after a delay.
    Delay {
        /// The delay, in milliseconds of the server's clock.
        ms: i64,
    },
    /// The command is not run; the reply is this error line.
    Error(String),
    /// The connection is closed, and the command is not run.
    DropBefore,
    /// The command is run, and the connection is closed without the reply.
    DropAfter,
    /// The command is run, and the connection is closed in the middle of the reply.
    HalfReply,
    /// Each byte of the reply is sent by itself.
    SplitReply,
    /// The command is not run, and the client never gets a reply again.
    Silence,
}

/// A state in which a server refuses commands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// The server loads its data.
    Loading,
    /// A script runs for too long.
    Busy,
    /// The server is a replica.
    ReadOnly,
    /// Memory is short.
    OutOfMemory,
    /// The server is a replica without its master.
    MasterDown,
    /// The server is a node of a cluster, and does not own the slot of the keys.
    Moved {
        /// The slot.
        slot: u16,
        /// The node that owns the slot.
        node: String,
    },
    /// The server is a node of a cluster, and the keys have moved to another one before their slot has.
    Ask {
        /// The slot.
        slot: u16,
        /// The node that has the keys.
        node: String,
    },
    /// The server is a node of a cluster, and some of several keys have moved to another one.
    TryAgain,
    /// The server is a node of a cluster that is down.
    ClusterDown,
    /// The server is a node of a cluster, and several keys are in different slots.
    CrossSlot,
}

impl Failure {
    /// True when the connection is closed after the command.
    pub(in crate::engine) fn ends_connection(&self) -> bool {
        matches!(self, Failure::DropAfter | Failure::HalfReply)
    }
}

impl State {
    /// True when a command of that name and these flags, with so many keys or shard channels, is refused.
    pub(in crate::engine) fn refuses(&self, name: &str, flags: Flags, keys: usize) -> bool {
        match self {
            State::Loading => !flags.has(Flags::LOADING),
            // The script that seems to run is a script, not a function.
            State::Busy => !flags.has(Flags::ALLOW_BUSY) || matches!(name, "function|stats" | "function|kill"),
            State::ReadOnly => flags.has(Flags::WRITE),
            State::OutOfMemory => flags.has(Flags::DENYOOM),
            State::MasterDown => !flags.has(Flags::STALE),
            State::Moved { .. } | State::Ask { .. } | State::ClusterDown => keys > 0,
            State::TryAgain | State::CrossSlot => keys > 1,
        }
    }

    /// The error line for a command with these flags.
    fn text(&self, flags: Flags) -> String {
        match self {
            // A replica refuses writes, whether or not it has its master.
            State::MasterDown if flags.has(Flags::WRITE) => State::ReadOnly.text(flags),
            State::Loading => "LOADING Redis is loading the dataset in memory".to_owned(),
            State::Busy => Error::Busy.to_string(),
            State::ReadOnly => "READONLY You can't write against a read only replica.".to_owned(),
            State::OutOfMemory => Error::OutOfMemory.to_string(),
            State::MasterDown => {
                "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.".to_owned()
            }
            State::Moved { slot, node } => format!("MOVED {slot} {node}"),
            State::Ask { slot, node } => format!("ASK {slot} {node}"),
            State::TryAgain => ClusterError::TryAgain.to_string(),
            State::ClusterDown => ClusterError::Down.to_string(),
            State::CrossSlot => ClusterError::CrossSlot.to_string(),
        }
    }
}

impl Faults {
    /// True when there is no rule.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Adds a rule behind the others; it replaces the one of its name.
    pub fn add(&mut self, rule: Fault) {
        self.remove(&rule.name);
        self.rules.push(rule);
    }

    /// Removes a rule; false when there is none of that name.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let before = self.rules.len();
        self.rules.retain(|rule| rule.name != name);
        self.rules.len() < before
    }

    /// Removes all rules.
    pub fn clear(&mut self) {
        self.rules.clear();
    }

    /// All rules, in the order in which they are tried.
    pub fn rules(&self) -> &[Fault] {
        &self.rules
    }
}

impl Fault {
    /// A rule of that name for all commands, all clients and all times.
    pub fn of(name: &[u8]) -> Fault {
        Fault {
            name: name.to_vec(),
            command: None,
            key: None,
            client: None,
            trigger: Trigger::default(),
            effect: FaultEffect::Failure(Failure::Silence),
        }
    }

    /// The failure that it causes for a command with these flags.
    pub(in crate::engine) fn failure(&self, flags: Flags) -> Failure {
        match &self.effect {
            FaultEffect::Failure(failure) => failure.clone(),
            FaultEffect::State(state) => Failure::Error(state.text(flags)),
        }
    }
}

impl Display for Fault {
    /// The rule in the syntax of DUNLIN FAULT ADD, behind the name.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (word, value) in [("COMMAND", &self.command), ("KEY", &self.key), ("CLIENT", &self.client)] {
            if let Some(value) = value {
                write!(formatter, "{word} {} ", quoted(value))?;
            }
        }
        write!(formatter, "{}", self.trigger)?;
        match &self.effect {
            FaultEffect::Failure(failure) => failure.fmt(formatter),
            FaultEffect::State(state) => state.fmt(formatter),
        }
    }
}

impl Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Failure::Delay { ms } => return write!(formatter, "DELAY {ms}"),
            Failure::Error(text) => return write!(formatter, "ERROR {}", quoted(text.as_bytes())),
            Failure::DropBefore => "DROP-BEFORE",
            Failure::DropAfter => "DROP-AFTER",
            Failure::HalfReply => "HALF-REPLY",
            Failure::SplitReply => "SPLIT-REPLY",
            Failure::Silence => "SILENCE",
        })
    }
}

impl Display for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            State::Loading => "LOADING",
            State::Busy => "BUSY",
            State::ReadOnly => "READONLY",
            State::OutOfMemory => "OOM",
            State::MasterDown => "MASTERDOWN",
            State::Moved { slot, node } => return write!(formatter, "MOVED {slot} {node}"),
            State::Ask { slot, node } => return write!(formatter, "ASK {slot} {node}"),
            State::TryAgain => "TRYAGAIN",
            State::ClusterDown => "CLUSTERDOWN",
            State::CrossSlot => "CROSSSLOT",
        })
    }
}
