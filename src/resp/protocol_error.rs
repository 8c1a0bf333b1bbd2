//! Protocol errors: the texts for a client whose bytes are not a request.
//!
//! One variant for each text. Source: the replies of Redis 8.0.6, as the tests of the parser list them.

use std::borrow::Cow;
use std::fmt;

use super::inline::UnbalancedQuotes;

/// The reason why bytes are not a request. The client gets it as an error, and its connection is closed: the parser
/// cannot find the next request any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The word count is not a number, or more than `i32::MAX`.
    InvalidMultibulkLength,
    /// More than 10 words before login.
    UnauthenticatedMultibulkLength,
    /// The length of a word is not a number, negative, or over the limit.
    InvalidBulkLength,
    /// A word of more than 16 KiB before login.
    UnauthenticatedBulkLength,
    /// A word of an array began with this byte instead of `$`.
    ExpectedDollar(u8),
    /// A line without LF is longer than 64 KiB.
    TooBigInline,
    /// A line without CR that begins with `*` is longer than 64 KiB.
    TooBigMultibulkCount,
    /// A line without CR where a word should begin is longer than 64 KiB.
    TooBigBulkCount,
    /// A quote in an inline line does not close, or closes in the middle of a word.
    UnbalancedQuotes,
}

impl ProtocolError {
    /// The text after `-ERR `, exactly as in Redis. Bytes, because one error contains a byte that the client sent.
    pub fn text(self) -> Cow<'static, [u8]> {
        let text: &'static str = match self {
            Self::InvalidMultibulkLength => "Protocol error: invalid multibulk length",
            Self::UnauthenticatedMultibulkLength => "Protocol error: unauthenticated multibulk length",
            Self::InvalidBulkLength => "Protocol error: invalid bulk length",
            Self::UnauthenticatedBulkLength => "Protocol error: unauthenticated bulk length",
            Self::ExpectedDollar(byte) => return Cow::Owned(expected_dollar(byte)),
            Self::TooBigInline => "Protocol error: too big inline request",
            Self::TooBigMultibulkCount => "Protocol error: too big mbulk count string",
            Self::TooBigBulkCount => "Protocol error: too big bulk count string",
            Self::UnbalancedQuotes => "Protocol error: unbalanced quotes in request",
        };
        Cow::Borrowed(text.as_bytes())
    }
}

/// An error line contains no CR or LF: they become blanks.
fn expected_dollar(byte: u8) -> Vec<u8> {
    let shown = if matches!(byte, b'\r' | b'\n') { b' ' } else { byte };
    [b"Protocol error: expected '$', got '", &[shown][..], b"'"].concat()
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.text()))
    }
}

impl std::error::Error for ProtocolError {}

impl From<UnbalancedQuotes> for ProtocolError {
    fn from(_: UnbalancedQuotes) -> Self {
        Self::UnbalancedQuotes
    }
}
