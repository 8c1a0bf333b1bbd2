//! RESP, the wire protocol: parses requests, writes replies, and decodes replies. It knows no command.

mod batch;
mod cut_string;
mod decoder;
mod encoded;
mod fast_parse;
mod inline;
mod items;
mod parser;
mod protocol_error;
mod reply;
mod reply_buffer;
mod request;
mod requests;
mod values;

pub use batch::Batch;
pub use cut_string::CutString;
pub use decoder::{DEEPEST, DecodeError, Frame};
pub use encoded::EncodedElements;
pub use inline::{UnbalancedQuotes, split_words, write_escaped};
pub use parser::{Limits, Parser};
pub use protocol_error::ProtocolError;
pub use reply::{OpenArray, Reply};
pub use reply_buffer::{ReplyBuffer, ReplyPiece};
pub use request::{Request, Span};
pub use requests::Requests;
pub use values::{ReplyValue, Values};

/// The protocol version of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// RESP2, with which every connection starts.
    #[default]
    Resp2,
    /// RESP3, to which `HELLO 3` switches: it has maps, sets, doubles and booleans of its own.
    Resp3,
}

impl Protocol {
    /// The version number, as in HELLO and CLIENT LIST.
    pub fn version(self) -> i64 {
        match self {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        }
    }
}
