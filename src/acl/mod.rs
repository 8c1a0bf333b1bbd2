//! Access control (ACL): users, their passwords and rules, and the log of refused requests.
//!
//! It is pure: it knows what a rule means, not what a command does. Commands are indices into a table that implements
//! [`Commands`], and a request comes as an [`AccessRequest`]: its command, its keys with the kind of access, its
//! channels.
//!
//! A [`User`] has [`Selector`]s, one of which must allow all of a request. The command rules of a selector are stored
//! twice: as one bit for each command, for decisions, and as the list in [`CommandRules`], for ACL LIST. Of
//! passwords, only the SHA-256 is stored.
//!
//! Invariant: a user that is made from its own description has the same rights and the same description.
//!
//! Sources: the replies of Redis 8.0.6 to random sequences of rules.

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
pub use log::{Context, Entry, Log, LoggedDenial, Reason};
pub use password::Password;
pub use rule::RuleError;
pub use selector::{Access, AccessRequest, Denial, Selector};
pub use user::{User, is_name};
pub use users::Users;

/// The commands that rules name, by their indices in the server's table.
pub trait Commands {
    /// The command or subcommand with that full name, such as `get` or `config|get`, in any case.
    fn index(&self, name: &[u8]) -> Option<usize>;
    /// The full name, in lower case.
    fn name(&self, index: usize) -> &str;
    /// Whether it is a subcommand, the second word of a container.
    fn is_subcommand(&self, index: usize) -> bool;
    /// The indices of its subcommands; none if it is not a container.
    fn subcommands(&self, index: usize) -> Range<usize>;
    /// All commands and subcommands in the category of that name, in any case; `None` if there is no such category.
    fn in_category(&self, name: &[u8]) -> Option<Vec<usize>>;
}

/// Whether the bytes contain a blank or a NUL.
fn has_blanks(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| matches!(byte, 0 | b' ' | b'\t'..=b'\r'))
}
