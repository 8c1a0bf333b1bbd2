//! Payloads: what DUMP answers brings the same value back, in the same form, here and on a real Redis; and no payload,
//! however it was damaged, does more than be refused.

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
