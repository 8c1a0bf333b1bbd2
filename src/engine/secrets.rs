//! Which arguments of a request are secret, so that nobody is shown them who watches commands (MONITOR) or looks which of
//! them took long (SLOWLOG).

use crate::engine::says;
use crate::resp::Request;

/// What stands in the place of a secret.
pub const REDACTED: &[u8] = b"(redacted)";

/// The arguments of a command that are not to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// None.
    None,
    /// All.
    All,
    /// All but the first so many words.
    Behind(usize),
    /// So many arguments after that word.
    After(&'static str, usize),
    /// The one argument after each of these words.
    ValuesOf(&'static [&'static str]),
}

impl Secrets {
    /// Whether the word of `request` at `index` is secret.
    pub fn hide(self, request: Request<'_>, index: usize) -> bool {
        match self {
            Secrets::None => false,
            Secrets::All => index > 0,
            Secrets::Behind(count) => index >= count,
            Secrets::After(word, count) => {
                let is_word = |place: usize| request.get(place).is_some_and(|given| says(given, word));
                (1..=count).any(|distance| index > distance && is_word(index - distance))
            }
            Secrets::ValuesOf(words) => {
                let before = index.checked_sub(1).and_then(|place| request.get(place)).unwrap_or_default();
                words.iter().any(|word| says(before, word))
            }
        }
    }
}
