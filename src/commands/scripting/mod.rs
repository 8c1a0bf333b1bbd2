//! Scripts and functions: EVAL and related commands run a script, SCRIPT caches scripts; FCALL and related commands
//! call a function, FUNCTION stores libraries.
//!
//! `engine/exec/scripts` runs scripts and checks their permissions; `script` is the environment that they see.

mod eval;
mod fcall;
mod function;
mod script;

use crate::engine::Command;

/// The rows of this family's commands.
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
