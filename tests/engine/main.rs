//! Tests of the engine alone: no socket, no thread, a clock that the test moves.

mod base_of_commands;
mod capacity;
mod changes_while_saved;
mod clients;
mod cluster;
mod ctx;
mod debug;
mod expiry;
mod fault_rules;
mod feed;
mod fields;
mod flood;
mod functions;
mod gates;
mod growth;
mod info_config;
mod journal_counts;
mod keys;
mod known_holes;
mod large_holes;
mod long_scripts;
mod lua_holes;
mod many_waits;
mod memory_limits;
mod oracle;
mod panics;
mod propagation;
mod rights;
mod rows;
mod seed;
mod settings;
mod slow;
mod slow_functions;
mod sorted_sets;
mod stream_holes;
#[path = "../support/mod.rs"]
mod support;
mod tracking;
mod waiting;

use support::{node, process, world};
