//! The RDB file: the whole data of a server, as SAVE writes it and a start loads it.
//!
//! ```text
//! REDIS0012                                    the magic and the version
//! FA name value                                facts about the server that wrote it
//! F5 source                                    a library of functions
//! FE number, FB keys deadlines                 a database, and how large its tables will be
//! [FC deadline] [F8 idle or F9 frequency] type key value
//! FF checksum                                  CRC64 of everything before it; 0 if there is none
//! ```
//!
//! [`Saver`] writes one into any `Write`; [`Loader`] reads one from any `Read`, record by record, so the caller decides
//! what to do with them and may do something else in between. Neither opens a file, and neither holds more of it in
//! memory than the largest value.
//!
//! Written is version 12, as by Redis 7.4 to 8.0. Read is everything since version 1, and `VALKEY080`, which Valkey 9
//! writes and no Redis reads. Of versions 13 to 15 is read what version 12 knows.
//!
//! Sources: files that Redis 8.0.6 and Valkey 9.1.2 wrote, read byte by byte.

mod ahead;
mod fault;
mod load;
mod record;
mod save;
mod verify;

pub use fault::{Fault, FaultReason};
pub use load::{Loader, is_rdb};
pub use record::{Checksum, Entry, HEADER_BYTES, Loaded, Record};
pub use save::{Options, SavedKey, Saver};
pub use verify::is_whole;

use super::{FUNCTION, FUNCTION_PRE_GA};

/// How recently or how often a key was accessed, as a file or RESTORE (IDLETIME, FREQ) says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LruHint {
    /// Seconds since the last access.
    Idle(i64),
    /// The counter of accesses.
    Frequency(u8),
}

/// The bytes that introduce what is not a key.
pub mod opcode {
    /// A function library.
    pub const FUNCTION: u8 = super::FUNCTION;
    /// A library in an early form.
    pub const FUNCTION_PRE_GA: u8 = super::FUNCTION_PRE_GA;
    /// Slots of a cluster, with how large their tables will be.
    pub const SLOT_INFO: u8 = 0xf4;
    /// Data of a module that are not a key's.
    pub const MODULE_AUX: u8 = 0xf7;
    /// How long the next key was not accessed.
    pub const IDLE: u8 = 0xf8;
    /// How often the next key was accessed.
    pub const FREQUENCY: u8 = 0xf9;
    /// A fact about the file.
    pub const AUX: u8 = 0xfa;
    /// The numbers of keys of the database.
    pub const SIZES: u8 = 0xfb;
    /// The deadline of the next key, in milliseconds.
    pub const DEADLINE_MS: u8 = 0xfc;
    /// The deadline of the next key, in seconds.
    pub const DEADLINE_S: u8 = 0xfd;
    /// The number of the database of the keys that follow.
    pub const DATABASE: u8 = 0xfe;
    /// The end, before the checksum.
    pub const END: u8 = 0xff;
    /// The first byte that is an opcode: those below are types of values.
    pub const FIRST: u8 = 0xf3;
}

#[cfg(test)]
mod tests;
