//! The history of a command: what changed from one version of Redis to the next.
//!
//! A row lists its changes, the oldest first. A change names the arguments that it added by the words of the row's
//! syntax, so that COMMAND DOCS shows it in two places from one source: as a line of the command's history, and as
//! `since` of each added argument. The sentences are ours, the versions are Redis's.

/// One change of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The first version of Redis that had this change.
    pub version: &'static str,
    /// The words of the syntax that it concerns: literal words, or the names of arguments without one.
    pub words: &'static [&'static str],
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Brings,
    Outdates,
    Says(&'static str),
}

impl Change {
    /// A change that added arguments, which `words` name.
    pub const fn brings(version: &'static str, words: &'static [&'static str]) -> Change {
        Change { version, words, kind: Kind::Brings }
    }

    /// A change that deprecated arguments, which `words` name.
    pub const fn outdates(version: &'static str, words: &'static [&'static str]) -> Change {
        Change { version, words, kind: Kind::Outdates }
    }

    /// Another change, described in a sentence.
    pub const fn says(version: &'static str, sentence: &'static str) -> Change {
        Change { version, words: &[], kind: Kind::Says(sentence) }
    }

    /// True when the change added arguments.
    pub fn is_arrival(&self) -> bool {
        self.kind == Kind::Brings
    }

    /// True when the change deprecated arguments.
    pub fn is_deprecation(&self) -> bool {
        self.kind == Kind::Outdates
    }

    /// The description of the change in a sentence.
    pub fn sentence(&self) -> String {
        match self.kind {
            Kind::Brings => format!("Accepts {}.", listed(self.words)),
            Kind::Outdates => format!("Discourages {}.", listed(self.words)),
            Kind::Says(sentence) => sentence.to_owned(),
        }
    }
}

/// Words in quotes, the last one after an "and".
fn listed(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => quoted.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_described_in_a_sentence() {
        assert_eq!(Change::brings("6.0.0", &["KEEPTTL"]).sentence(), "Accepts `KEEPTTL`.");
        assert_eq!(Change::brings("6.2.0", &["GET", "EXAT", "PXAT"]).sentence(), "Accepts `GET`, `EXAT` and `PXAT`.");
        assert_eq!(Change::outdates("2.8.12", &["old-format"]).sentence(), "Discourages `old-format`.");
        assert_eq!(Change::says("2.4.0", "Takes several members.").sentence(), "Takes several members.");
    }
}
