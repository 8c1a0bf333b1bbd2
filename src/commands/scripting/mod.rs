//! Scripts and functions: EVAL and its kin run a script, SCRIPT keeps them; FCALL and its kin call a function, FUNCTION
//! keeps them.
//!
//! What a script may do and how it is run is `engine/scripts`' business, what it sees is `script`'s.

mod eval;
mod fcall;
mod function;
mod script;

use crate::engine::Command;

/// The family's rows.
pub const COMMANDS: &[Command] = &[
    eval::EVAL,
    eval::EVALSHA,
    eval::EVAL_RO,
    eval::EVALSHA_RO,
    fcall::FCALL,
    fcall::FCALL_RO,
    function::FUNCTION,
    script::SCRIPT,
];
