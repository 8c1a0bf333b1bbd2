//! The wire: bytes to requests, and replies to bytes. Knows no command.

mod inline;
mod parser;
mod protocol_error;
mod request;

pub use inline::{UnbalancedQuotes, split_words};
pub use parser::{Limits, Parser};
pub use protocol_error::ProtocolError;
pub use request::{Request, Span};
