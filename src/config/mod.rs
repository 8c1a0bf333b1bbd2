//! The configuration: one row per parameter, and the parsers of files, the command line and CONFIG SET, which use them.
//!
//! Every parameter of Redis 8.0 has a row, so that this server starts with any of its configuration files and answers
//! CONFIG GET for any of its names. A row is one of three kinds:
//!
//! - it keeps its value in a field of [`Settings`], and the server goes by it;
//! - it stores a value without effect, because its topic does not exist here (`tls-ciphers`), or because what it asks
//!   for happens anyway (`lazyfree-lazy-user-del`);
//! - it always has the one value that this server behaves by.
//!
//! The rule for the third kind is honesty. CONFIG GET shows the value in effect. CONFIG SET accepts that value and
//! refuses every other one, since OK would be a promise. At startup another value causes a warning, as people use files
//! that were written for Redis, and durability or tuning changes no reply; a value that would change replies
//! (`replicaof`) makes the start fail. A malformed value is always refused with Redis's error, and so is an
//! unknown name.
//!
//! No file is opened here: [`Files`] reads included files.
//!
//! Source: the answers of Redis 8.0.6 to CONFIG GET, CONFIG SET and its command line.

#[cfg(feature = "program")]
mod arguments;
#[cfg(all(test, feature = "program"))]
mod completions;
#[cfg(feature = "program")]
mod file;
mod parameter;
mod rewrite;
mod rows;
#[cfg(feature = "program")]
mod users;
mod words;

#[cfg(feature = "program")]
pub use arguments::{HELP, Invocation, Sources, invocation};
#[cfg(feature = "program")]
pub use file::{Fatal, Files, Loaded, Unreadable, is_announced, load};
pub use parameter::{Assigned, Mutability, OnUnsupported, Parameter, parse_memory};
pub use rewrite::{Added, rewritten};
pub use rows::REPL_BACKLOG_SIZE;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::engine::Settings;

/// All parameters in the order of CONFIG GET.
pub fn parameters() -> impl Iterator<Item = &'static Parameter> {
    rows::ALL.iter().copied().flatten()
}

/// All parameters by their names and aliases, which are in lower case.
static BY_NAME: LazyLock<HashMap<&'static str, &'static Parameter>> = LazyLock::new(|| {
    // Of two with one name, the first is found.
    let names = parameters().flat_map(|parameter| parameter.names().map(move |name| (name, parameter)));
    names.fold(HashMap::new(), |mut known, (name, parameter)| {
        known.entry(name).or_insert(parameter);
        known
    })
});

/// The parameter with that name or alias, in any case, and the name as its row spells it.
pub fn find(name: &str) -> Option<(&'static Parameter, &'static str)> {
    BY_NAME.get_key_value(&*name.to_ascii_lowercase()).map(|(name, parameter)| (*parameter, *name))
}

/// The value of the parameter with that name, as CONFIG GET shows it.
pub fn shown(name: &str, settings: &Settings) -> Option<String> {
    find(name).map(|(parameter, _)| parameter.shown(settings))
}
