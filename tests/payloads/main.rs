//! Payloads of DUMP: RESTORE gives the same value in the same encoding, here and on a real Redis; and a damaged payload
//! is always refused.

mod damaged_files;
mod damaged_logs;
mod holes;
mod oracle;
mod restore;
mod round_trip;
mod samples;
mod streams;
#[path = "../support/mod.rs"]
mod support;

use support::{process, world};

/// For the test of what a claimed length allocates.
#[global_allocator]
static ALLOCATOR: support::heap::Counting = support::heap::Counting;
