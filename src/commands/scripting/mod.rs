//! Scripts: EVAL and its kin run one, SCRIPT keeps them.
//!
//! What a script may do and how it is run is `engine/scripts`' business, what it sees is `script`'s.

mod eval;
mod keep;

use crate::engine::Command;

/// The family's rows.
pub const COMMANDS: &[Command] = &[eval::EVAL, eval::EVALSHA, eval::EVAL_RO, eval::EVALSHA_RO, keep::SCRIPT];
