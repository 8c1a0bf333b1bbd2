//! Counts how much of a walk was compared, and how exactly.

use std::collections::BTreeMap;
use std::fmt;

/// The number of commands with masked replies that are shown.
const SHOWN: usize = 10;

/// Counts requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    exact: usize,
    masked: BTreeMap<String, usize>,
    pub(super) not_sent: usize,
    /// Outings that ended early, as the walk's own client was closed.
    pub(super) runs_cut_short: usize,
}

impl Tally {
    /// Counts a request whose replies were the same: to the byte, or but for what may differ.
    pub(super) fn count(&mut self, is_exact: bool, command: &str) {
        match is_exact {
            true => self.exact += 1,
            false => *self.masked.entry(command.to_owned()).or_default() += 1,
        }
    }

    /// The number of steps.
    pub(super) fn steps(&self) -> usize {
        self.exact + self.masked.values().sum::<usize>() + self.not_sent
    }

    pub(super) fn has_compared_nothing(&self) -> bool {
        self.exact == 0
    }

    pub(super) fn add(&mut self, other: &Tally) {
        self.exact += other.exact;
        other.masked.iter().for_each(|(name, count)| *self.masked.entry(name.clone()).or_default() += count);
        self.not_sent += other.not_sent;
        self.runs_cut_short += other.runs_cut_short;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let masked: usize = self.masked.values().sum();
        write!(
            out,
            "{} requests compared to the byte, {masked} with a mask, {} not sent; ",
            self.exact, self.not_sent
        )?;
        write!(out, "{} runs cut short", self.runs_cut_short)?;
        let mut most: Vec<_> = self.masked.iter().collect();
        most.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
        let most: Vec<String> = most.iter().take(SHOWN).map(|(name, count)| format!("{name} {count}")).collect();
        if most.is_empty() { Ok(()) } else { write!(out, "; masked most: {}", most.join(", ")) }
    }
}

#[test]
fn a_tally_shows_what_was_compared_and_how_closely() {
    let mut tally = Tally::default();
    assert!(tally.has_compared_nothing());
    tally.count(false, "dump");
    assert!(tally.has_compared_nothing(), "a mask may hide all");
    tally.count(true, "get");
    (tally.not_sent, tally.runs_cut_short) = (1, 1);
    let mut whole = tally.clone();
    whole.add(&tally);
    assert!(!whole.has_compared_nothing());
    let text = "2 requests compared to the byte, 2 with a mask, 2 not sent; 2 runs cut short; masked most: dump 2";
    assert_eq!((whole.steps(), whole.to_string().as_str()), (6, text));
}
