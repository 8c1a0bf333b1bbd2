//! Fuzzes strict mode: rules that only warn change no byte of any reply, and a command that a rule refuses gets one
//! error and changes nothing, as the play itself checks.

use std::collections::BTreeSet;

use dunlin::commands::dunlin::strict::set_rules;
use dunlin::engine::exec::kit::strict;
use dunlin::{Level, Rule};

use crate::choices::Choices;
use crate::play::Play;
use crate::repeats::without_addresses;

fn checked(seed: u64, level: Level) -> Play {
    let mut play = Play::new(seed);
    for rule in Rule::ALL {
        set_rules(&mut play.world.engine.observers, &[rule], level, rule.usual_limit().map(|_| 1));
    }
    play
}

/// Plays with rules that are off, that warn, and that are errors.
pub fn run(seed: u64, rounds: u64) {
    let [mut free, mut warned, mut refused] = [Level::Off, Level::Warn, Level::Error].map(|level| checked(seed, level));
    let [mut one, mut two, mut three] = [(); 3].map(|()| Choices::Seed(seed | 1));
    for round in 0..rounds {
        let context = format!("seed {seed} round {round}");
        free.step(&mut one, &context);
        warned.step(&mut two, &context);
        if free.received != warned.received {
            assert_eq!(without_addresses(&free), without_addresses(&warned), "{context}");
        }
        refused.step(&mut three, &context);
    }
    assert!(strict::findings(&free.world.engine).is_empty());
    for play in [warned, refused] {
        let found: BTreeSet<&str> =
            strict::findings(&play.world.engine).iter().map(|finding| finding.rule.name()).collect();
        assert!(found.len() >= 6, "only {found:?} found anything");
    }
}
