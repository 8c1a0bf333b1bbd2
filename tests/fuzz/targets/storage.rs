//! Fuzzes the append-only file on a disk that loses power and fails: the bytes say what a server does, in which order,
//! and where the disk stops. No durable change may be lost, and none invented.

use crate::support::choices::Choices;
use crate::support::crash::run::Run;

pub fn run(bytes: &[u8]) {
    let mut choices = Choices::Bytes(bytes);
    let has_faults = choices.below(2) == 1;
    Run::new(choices, has_faults).run().unwrap_or_else(|fault| panic!("{fault}"));
}
