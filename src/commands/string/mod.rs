//! Strings: bytes under a key, which can be numbers.
//!
//! A string that is set as a whole may be stored as an integer or embedded; one that is edited in place stays raw, as
//! OBJECT ENCODING shows (see [`crate::value::text`]). Setting a string replaces a value of any type and clears the
//! deadline unless an option keeps it; editing keeps the deadline. No string exceeds `proto-max-bulk-len`.
//!
//! `set` and `get` have the commands on one whole string, `mget_mset` those on several, `edit` and `count` those that
//! change one in place, `lcs` the one that compares two.

mod count;
mod edit;
mod expire_args;
mod get;
mod lcs;
mod mget_mset;
mod set;
mod subsequence;

use crate::engine::{Args, Command, Ctx, Deadline, Event};
use crate::keyspace::New;
use crate::resp::Reply;
use crate::value::TextView;

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[
    edit::APPEND,
    count::DECR,
    count::DECRBY,
    get::GET,
    get::GETDEL,
    get::GETEX,
    get::GETRANGE,
    set::GETSET,
    count::INCR,
    count::INCRBY,
    count::INCRBYFLOAT,
    lcs::LCS,
    mget_mset::MGET,
    mget_mset::MSET,
    mget_mset::MSETNX,
    set::PSETEX,
    set::SET,
    set::SETEX,
    set::SETNX,
    edit::SETRANGE,
    get::STRLEN,
    get::SUBSTR,
];

const SET_EVENT: Event = Event::string("set");

/// Stores a word of the request as the text of a key. A long one is not copied if it was received in a buffer of its
/// own.
fn put_word(cx: &mut Ctx<'_>, args: &Args<'_>, key: &[u8], word: &[u8], deadline: Deadline, event: Event) {
    match args.share(word) {
        Some(shared) => cx.put(key, New::Text(TextView::Shared(&shared)), deadline, event),
        None => cx.put(key, New::Text(TextView::of(word)), deadline, event),
    }
}

/// Replies with a text as a bulk string.
fn write_text(reply: &mut Reply<'_>, text: TextView<'_>) {
    match text {
        TextView::Int(number) => reply.bulk_integer(number),
        TextView::Bytes(bytes) | TextView::Raw(bytes) => reply.bulk(bytes),
        TextView::Shared(bytes) => reply.shared(bytes),
    }
}

/// Replies with a text, or null if there is none.
fn write_text_or_null(reply: &mut Reply<'_>, text: Option<TextView<'_>>) {
    match text {
        Some(text) => write_text(reply, text),
        None => reply.null(),
    }
}
