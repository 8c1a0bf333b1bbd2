//! Strings: bytes under a key, which count when they are digits.
//!
//! What is set whole may be kept as a number or embedded; what is edited in place stays raw, as OBJECT ENCODING tells
//! (see [`crate::value::text`]). Setting a string replaces what the key held, of whatever type, and clears its deadline
//! unless told otherwise; editing one keeps the deadline.
//!
//! [`set`] holds the commands that replace, [`get`] those that read (and GETDEL and GETEX), and [`expiration`] the
//! options `EX PX EXAT PXAT` that both share.

mod expiration;
mod get;
mod set;

use crate::engine::Command;
use crate::resp::Reply;
use crate::value::text::TextView;

/// The family's rows.
pub const COMMANDS: &[Command] = &[get::GET, set::SET];

/// Answers a text as a bulk string.
fn write_text(reply: &mut Reply<'_>, text: TextView<'_>) {
    match text {
        TextView::Int(number) => reply.bulk_integer(number),
        TextView::Bytes(bytes) | TextView::Raw(bytes) => reply.bulk(bytes),
    }
}

/// Answers a text, or null where there is none.
fn write_text_or_null(reply: &mut Reply<'_>, text: Option<TextView<'_>>) {
    match text {
        Some(text) => write_text(reply, text),
        None => reply.null(),
    }
}
