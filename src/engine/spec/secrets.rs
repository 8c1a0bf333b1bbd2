//! Secret arguments of requests, which MONITOR, SLOWLOG and the journal must not show.

use crate::engine::spec::{Command, says};
use crate::resp::Request;

/// The text that replaces a secret.
pub const REDACTED: &[u8] = b"(redacted)";

impl Command {
    /// The words of a request, with [`REDACTED`] in place of each secret.
    pub fn redacted_words<'a>(&self, request: Request<'a>) -> impl Iterator<Item = &'a [u8]> {
        let words = request.iter().enumerate();
        words.map(move |(index, word)| if self.secrets.hide(request, index) { REDACTED } else { word })
    }
}

/// The arguments of a command that are not to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// No argument is secret.
    None,
    /// All arguments are secret.
    All,
    /// All words are secret except this number of words at the beginning.
    Behind(usize),
    /// This number of arguments after that word is secret.
    After(&'static str, usize),
    /// The values of some options are secret; options begin at the word `first` and end with the option `last`.
    Options {
        /// The place of the first word that may be an option.
        first: usize,
        /// The option after which no more options follow.
        last: &'static str,
        /// The options with secret values, and the number of values of each.
        secret: &'static [(&'static str, usize)],
    },
    /// The one argument after each of these words is secret.
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
            Secrets::Options { first, last, secret } => {
                let mut place = first;
                while let Some(word) = request.get(place).filter(|word| place < index && !says(word, last)) {
                    let option = secret.iter().find(|(name, _)| says(word, name));
                    let values = option.map_or(0, |(_, values)| *values);
                    if index <= place + values {
                        return place + values < request.len();
                    }
                    place += 1 + values;
                }
                false
            }
            Secrets::ValuesOf(words) => {
                let before = index.checked_sub(1).and_then(|place| request.get(place)).unwrap_or_default();
                words.iter().any(|word| says(before, word))
            }
        }
    }
}
