//! What changed about a command from one version of Redis to the next.
//!
//! A row holds its changes oldest first. What a change brought is named by the words of the row's syntax line, so that
//! COMMAND DOCS tells it twice from one place: as a line of the command's history, and as `since` of each argument that
//! came with it. The sentences are ours, the versions are Redis's.

/// One change of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The version of Redis that had it first.
    pub version: &'static str,
    /// The words that it concerns: literal words, or the names of arguments that stand without one.
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
    /// Arguments came: `words` stand for them.
    pub const fn brings(version: &'static str, words: &'static [&'static str]) -> Change {
        Change { version, words, kind: Kind::Brings }
    }

    /// Arguments should no longer be used: `words` stand for them.
    pub const fn outdates(version: &'static str, words: &'static [&'static str]) -> Change {
        Change { version, words, kind: Kind::Outdates }
    }

    /// Something else, in a sentence.
    pub const fn says(version: &'static str, sentence: &'static str) -> Change {
        Change { version, words: &[], kind: Kind::Says(sentence) }
    }

    /// True when arguments came with it.
    pub fn is_arrival(&self) -> bool {
        self.kind == Kind::Brings
    }

    /// True when arguments are deprecated by it.
    pub fn is_deprecation(&self) -> bool {
        self.kind == Kind::Outdates
    }

    /// The change in a sentence.
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
    fn a_change_is_told_in_a_sentence() {
        assert_eq!(Change::brings("6.0.0", &["KEEPTTL"]).sentence(), "Accepts `KEEPTTL`.");
        assert_eq!(Change::brings("6.2.0", &["GET", "EXAT", "PXAT"]).sentence(), "Accepts `GET`, `EXAT` and `PXAT`.");
        assert_eq!(Change::outdates("2.8.12", &["old-format"]).sentence(), "Discourages `old-format`.");
        assert_eq!(Change::says("2.4.0", "Takes several members.").sentence(), "Takes several members.");
    }
}
