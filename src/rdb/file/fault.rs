//! Why a file cannot be loaded.

use std::io;

use thiserror::Error;

/// Why a file cannot be loaded, and where.
#[derive(Debug, Error)]
#[error("{reason}")]
pub struct Fault {
    /// The bytes before the record with the fault.
    pub offset: u64,
    /// The key of the record, if it was read.
    pub key: Option<Vec<u8>>,
    /// The type byte or the opcode of the record, if it was read.
    pub kind: Option<u8>,
    /// The reason why the file is refused.
    pub reason: FaultReason,
}

impl Fault {
    /// The fault as a text, with its place and its key.
    pub fn explained(&self) -> String {
        let mut text = format!("{self} (at offset {}", self.offset);
        if let Some(kind) = self.kind {
            text.push_str(&format!(", type {kind}"));
        }
        if let Some(key) = &self.key {
            text.push_str(&format!(", key '{}'", key.escape_ascii()));
        }
        text.push(')');
        text
    }
}

/// A reason why a file is refused.
#[derive(Debug, Error)]
pub enum FaultReason {
    /// It does not begin as an RDB file.
    #[error("Wrong signature trying to load DB from file")]
    Signature,
    /// Its version is not known.
    #[error("Can't handle RDB format version {0}")]
    Version(u16),
    /// It ends too early.
    #[error("Short read or OOM loading DB. Unrecoverable error, aborting now.")]
    Short,
    /// A type or an opcode is not known.
    #[error("Unknown RDB encoding type {0}")]
    UnknownType(u8),
    /// A value contradicts its type.
    #[error("the value is damaged")]
    Damaged,
    /// Data of a module that belong to no key.
    #[error("The RDB file contains AUX module data I can't load: no matching module '{0}'")]
    ModuleAux(String),
    /// A value of a module.
    #[error("The RDB file contains module data I can't load: no matching module type '{0}'")]
    ModuleType(String),
    /// A library in the form of the release candidates of 7.0.
    #[error("Pre-release function format not supported.")]
    EarlyFunction,
    /// The bytes are not those that were written.
    #[error("Wrong RDB checksum expected: ({expected:x}) but got ({got:x}). Aborting now.")]
    Checksum {
        /// The checksum of the bytes before it.
        expected: u64,
        /// The checksum in the file.
        got: u64,
    },
    /// The caller refused a record.
    #[error("{0}")]
    Refused(String),
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}
