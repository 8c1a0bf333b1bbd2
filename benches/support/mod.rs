//! Code shared by the benches that compare servers: the servers, and the plan of what runs for how long.

#![allow(dead_code, reason = "each bench uses a part of it")]

pub(crate) mod peer;
pub(crate) mod plan;
