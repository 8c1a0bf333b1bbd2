//! Who may do what: users, their passwords, the rules that they are described by, and the log of what was refused.
//!
//! It is pure: it knows what a rule means, not what a command does. The commands are places in a table that it is shown
//! as [`Commands`], and what a request would do comes as a [`AccessRequest`]: which command, which keys and how, which
//! channels.
//!
//! A [`User`] has [`Selector`]s, of which one must allow all of a request. What a selector was told about commands is
//! kept twice: as one bit for each command, to decide by, and as [`CommandRules`]' list, to be told again in ACL LIST.
//! Passwords are kept as their SHA-256 alone.
//!
//! Invariant: a user that is made from its own description has the same rights and the same description.
//!
//! Sources: the answers of Redis 8.0.6 to random sequences of rules.

mod bits;
mod command_rules;
mod file;
mod listed;
mod log;
mod password;
mod rule;
mod selector;
#[cfg(test)]
mod tests;
mod user;
mod users;

use std::ops::Range;

pub use command_rules::CommandRules;
pub use file::{Fault, merged, parse};
pub use log::{Context, Entry, Log, Reason, Refusal};
pub use password::Password;
pub use rule::RuleError;
pub use selector::{Access, AccessRequest, Denial, Selector};
pub use user::{User, is_name};
pub use users::Users;

/// The commands that rules speak of, by their places in the server's table.
pub trait Commands {
    /// The command or subcommand of that full name, such as `get` or `config|get`, in any case.
    fn index(&self, name: &[u8]) -> Option<usize>;
    /// Its full name, in lower case.
    fn name(&self, index: usize) -> &str;
    /// Whether it is the second word of a container.
    fn is_subcommand(&self, index: usize) -> bool;
    /// The places of its subcommands; none if it is no container.
    fn subcommands(&self, index: usize) -> Range<usize>;
    /// All commands and subcommands in the category of that name, in any case; `None` if there is no such category.
    fn in_category(&self, name: &[u8]) -> Option<Vec<usize>>;
}

/// Whether there is a blank or a NUL in it.
fn has_blanks(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| matches!(byte, 0 | b' ' | b'\t'..=b'\r'))
}
