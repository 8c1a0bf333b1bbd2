//! The configuration: one row per parameter, and how a file, a command line and CONFIG SET read values by those rows.
//!
//! Every parameter of Redis 8.0 has a row, so that this server starts with any of its configuration files and answers
//! CONFIG GET for any of its names. A row is one of three kinds:
//!
//! - it keeps its value in a field of [`Settings`], and the server goes by it;
//! - it keeps a value that nothing depends on, because what it is about is off, and matters no more in Redis then
//!   (`repl-timeout` where nothing replicates), or because what it asks for happens anyway (`lazyfree-lazy-expire`);
//! - it always has the one value that this server behaves by.
//!
//! The rule for the third kind is honesty. CONFIG GET shows the value we behave by. CONFIG SET accepts that value and
//! refuses every other one, since an OK would be a promise. At the start another value is a warning, as people bring
//! files that were written for Redis and durability or tuning changes no answer; where it would change answers
//! (`cluster-enabled yes`), the start is refused. A malformed value is refused with Redis's words in all cases, and so
//! is a name that Redis does not know.
//!
//! It opens no file: what a configuration file includes is asked of [`Files`].
//!
//! Source: the answers of Redis 8.0.6 to CONFIG GET, CONFIG SET and its command line.

mod arguments;
mod file;
mod parameter;
mod rewrite;
mod rows;
mod users;
mod words;

pub use arguments::{HELP, Invocation, Sources, invocation};
use file::unsupported;
pub use file::{Fatal, Files, Loaded, Unreadable, load};
pub use parameter::{Assigned, Mutability, Otherwise, Parameter, parse_memory};
pub use rewrite::rewritten;

use crate::engine::Settings;

/// All parameters in the order of CONFIG GET.
pub fn parameters() -> impl Iterator<Item = &'static Parameter> {
    rows::ALL.iter().copied().flatten()
}

/// The parameter of that name or alias, in any case, and the name as its row spells it.
pub fn find(name: &str) -> Option<(&'static Parameter, &'static str)> {
    parameters().find_map(|parameter| {
        let mut names = parameter.names();
        names.find(|known| known.eq_ignore_ascii_case(name)).map(|known| (parameter, known))
    })
}

/// The value of the parameter of that name, as CONFIG GET shows it.
pub fn shown(name: &str, settings: &Settings) -> Option<String> {
    find(name).map(|(parameter, _)| parameter.shown(settings))
}
