//! Payloads of DUMP: RESTORE gives the same value in the same encoding, here and on a real Redis; and a damaged payload
//! is always refused.

#[path = "../oracle/process.rs"]
#[expect(dead_code, reason = "shared with the tests that start a real server in other ways")]
mod process;
#[path = "../engine/world.rs"]
#[expect(dead_code, reason = "shared with the engine's tests, which use all of it")]
mod world;

mod holes;
mod oracle;
mod restore;
mod round_trip;
mod samples;
mod streams;
