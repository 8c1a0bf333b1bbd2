//! When a key was last used: 24 bits in its record, as a clock of seconds that wraps after 194 days.
//!
//! It is noted by every read and write that is meant to count as use, and read by OBJECT IDLETIME.

use crate::engine::Now;
use crate::keyspace::{Database, Slot};

const CLOCK_MASK: i64 = (1 << 24) - 1;

/// The moment as that clock tells it.
pub fn clock(now: Now) -> u32 {
    (now.unix_s() & CLOCK_MASK) as u32
}

/// Notes that the key is used now.
pub fn note(database: &mut Database, slot: Slot, now: Now) {
    database.set_access(slot, clock(now));
}

/// Notes that the key is new.
pub fn start(database: &mut Database, slot: Slot, now: Now) {
    note(database, slot, now);
}

/// Seconds since the access that `noted` stands for.
pub fn idle_s(noted: u32, now: Now) -> i64 {
    i64::from(clock(now).wrapping_sub(noted)) & CLOCK_MASK
}

/// The note of a key that was last used that many seconds ago, at least 0; what is longer goes round.
pub fn before(now: Now, idle_s: i64) -> u32 {
    clock(now).wrapping_sub((idle_s % CLOCK_MASK) as u32) & CLOCK_MASK as u32
}
