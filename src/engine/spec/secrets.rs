//! Secret arguments of requests, which MONITOR, SLOWLOG and the journal must not show.

use crate::engine::spec::{Command, says};
use crate::resp::Request;

/// What stands in the place of a secret.
pub const REDACTED: &[u8] = b"(redacted)";

impl Command {
    /// The words of a request with [`REDACTED`] in the place of what is secret.
    pub fn words_shown<'a>(&self, request: Request<'a>) -> impl Iterator<Item = &'a [u8]> {
        let words = request.iter().enumerate();
        words.map(move |(index, word)| if self.secrets.hide(request, index) { REDACTED } else { word })
    }
}

/// The arguments of a command that are not to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// None.
    None,
    /// All.
    All,
    /// All but the first so many words.
    Behind(usize),
    /// This many arguments after that word.
    After(&'static str, usize),
    /// This many arguments after each of these options, which begin at the word `first` and end with the option
    /// `last`.
    Options {
        /// The place of the first word that may be an option.
        first: usize,
        /// What follows this option are no options.
        last: &'static str,
        /// The options with secrets, and how many words each has.
        secret: &'static [(&'static str, usize)],
    },
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
