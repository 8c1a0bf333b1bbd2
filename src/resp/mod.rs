//! The wire: bytes to requests, replies to bytes, and back to replies. Knows no command.

mod batch;
mod decoder;
mod inline;
mod items;
mod parser;
mod protocol_error;
mod reply;
mod reply_buffer;
mod request;
mod requests;
mod values;
mod whole;

pub use batch::Batch;
pub use decoder::{DEEPEST, DecodeError, Frame};
pub use inline::{UnbalancedQuotes, split_words, write_escaped};
pub use parser::{Limits, Parser};
pub use protocol_error::ProtocolError;
pub use reply::{OpenArray, Reply};
pub use reply_buffer::{ReplyBuffer, ReplyPiece};
pub use request::{Request, Span};
pub use requests::Requests;
pub use values::{ReplyValue, Values};

/// The version of the protocol that a session speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// What every connection starts with.
    #[default]
    Resp2,
    /// What `HELLO 3` switches to: it has maps, sets, doubles and booleans of its own.
    Resp3,
}

impl Protocol {
    /// Its number, as HELLO and CLIENT LIST say it.
    pub fn version(self) -> i64 {
        match self {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        }
    }
}
