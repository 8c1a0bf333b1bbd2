//! The descriptions of all commands, each encoded when it is first wanted.
//!
//! COMMAND and COMMAND DOCS reply hundreds of kilobytes that depend on nothing but the table and the protocol, and many
//! clients request them whenever they connect. All copies of a table share them.

use crate::resp::{EncodedElements, Protocol};
use std::sync::OnceLock;

/// A description that each command has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Description {
    /// The fields of COMMAND INFO.
    Details,
    /// The map of COMMAND DOCS.
    Docs,
}

/// The descriptions of all commands of a table that can be called, in the table's order.
#[derive(Debug, Default)]
pub(super) struct Descriptions {
    details: [OnceLock<EncodedElements>; 2],
    docs: [OnceLock<EncodedElements>; 2],
}

impl Descriptions {
    /// The descriptions for a protocol, encoded by `encode` the first time.
    pub(super) fn get(
        &self,
        description: Description,
        protocol: Protocol,
        encode: impl FnOnce() -> EncodedElements,
    ) -> &EncodedElements {
        let of_protocol = match description {
            Description::Details => &self.details,
            Description::Docs => &self.docs,
        };
        of_protocol[usize::from(protocol == Protocol::Resp3)].get_or_init(encode)
    }
}
