//! The result of a script as a reply.
//!
//! Numbers lose their fraction; booleans are 1 and null, or booleans if the script switched to RESP3; tables are
//! arrays up to their first nil, unless they have a field `err`, `ok`, `double`, `map`, `set`, `big_number` or
//! `verbatim_string` of the right type.
//!
//! Tables are walked without recursion, so that a script can nest them as deep as Lua's stack allows and no deeper. A
//! table may occur in many places, so that a few tables can make a reply that is endless for all practical purposes.
//! So the writing of a large one is given up and done by a run of its own ([`convert_slowly`]), which can be
//! suspended and ended like a script, and whose reply must fit into the memory that scripts may take.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::ScriptBackend;
use crate::lua::{Kind, Raise, Reference, Scalar, Stack};
use crate::resp::{OpenArray, Protocol, Reply};

/// A table whose elements are being written; it is on the stack.
enum Level {
    /// Elements up to the first nil, and how many were written.
    Array(OpenArray, usize),
    /// A map or set, as its keys and values in a row above it: the index of the next, of the last one, and the step
    /// between them.
    Entries { next: usize, last: usize, step: usize },
}

/// The names of the fields that give a table another meaning than an array, as strings of Lua.
#[derive(Debug)]
pub(super) struct FieldNames {
    err: Reference,
    ok: Reference,
    double: Reference,
    big_number: Reference,
    verbatim: Reference,
    map: Reference,
    set: Reference,
}

impl FieldNames {
    pub(super) fn new(stack: &mut Stack<'_>) -> FieldNames {
        let mut keep = |name: &str| {
            stack.push_plain(name.as_bytes());
            stack.make_ref()
        };
        FieldNames {
            err: keep("err"),
            ok: keep("ok"),
            double: keep("double"),
            big_number: keep("big_number"),
            verbatim: keep("verbatim_string"),
            map: keep("map"),
            set: keep("set"),
        }
    }

    fn release(self, stack: &mut Stack<'_>) {
        let FieldNames { err, ok, double, big_number, verbatim, map, set } = self;
        [err, ok, double, big_number, verbatim, map, set].into_iter().for_each(|name| stack.release(name));
    }
}

/// The length of the name of a verbatim text's form.
const FORM_LETTERS: usize = 3;
/// The bytes that can be moved in the time of writing a value.
const BYTES_MOVED: usize = 256;
/// The stack values that one more level needs.
const LEVEL_VALUES: usize = 4;

/// The errors in the result of a script.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReturnedErrors {
    /// The number of errors that were counted when the command that made them failed.
    pub counted: u64,
    /// The codes of the others, each with a space behind it if it had one, and how often they occur.
    pub uncounted: BTreeMap<String, u64>,
}

impl ReturnedErrors {
    /// The most codes, and the most letters of a code: statistics stop long before.
    const MAX_CODES: usize = 1_000;
    const MAX_LETTERS: usize = 100;

    fn count(&mut self, line: &str) {
        let code = line.split_inclusive(' ').next().unwrap_or_default();
        if self.uncounted.len() < ReturnedErrors::MAX_CODES || self.uncounted.contains_key(code) {
            *self.uncounted.entry(code.chars().take(ReturnedErrors::MAX_LETTERS).collect()).or_default() += 1;
        }
    }
}

/// The reply for a script that returned a large value.
#[derive(Debug)]
pub struct ConvertedReply {
    /// The reply, in the protocol of its client.
    pub(super) bytes: Vec<u8>,
    pub(super) faults: ReturnedErrors,
}

/// Writes the value on top; `protocol` is that in which the script reads replies. Returns the errors in it, or `None`
/// if the reply is large: then nothing is written.
pub(super) fn write(
    stack: &mut Stack<'_>,
    names: &FieldNames,
    reply: &mut Reply<'_>,
    protocol: Protocol,
) -> Option<ReturnedErrors> {
    const QUICK_VALUES: usize = 50_000;
    const QUICK_BYTES: usize = 4 << 20;
    let (start, top, mut values) = (reply.position(), stack.top(), 0);
    let written = write_with(stack, names, reply, protocol, |_, reply, count| {
        values += count;
        let is_quick = values <= QUICK_VALUES && reply.position() - start <= QUICK_BYTES;
        if is_quick { Ok(()) } else { Err(Raise::Top) }
    });
    if written.is_err() {
        stack.truncate(top);
        reply.rewind(start);
    }
    written.ok()
}

/// A function that writes its first argument for the server ([`ScriptBackend::converted_reply`]). The second argument
/// is the protocol of the client, the third one that of the script, and the fourth one the most bytes of a string
/// ([`Reply::cutting`]) or nil.
pub(super) fn convert_slowly<S: ScriptBackend>(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let protocol = |number: i32| if stack.truth(number) { Protocol::Resp3 } else { Protocol::Resp2 };
    let (of_client, of_script) = (protocol(2), protocol(3));
    let most_of_string = stack.number(4).and_then(|most| NonZeroU32::new(most as u32));
    let names = FieldNames::new(stack);
    let (mut bytes, mut written) = (Vec::new(), 0);
    let mut reply = Reply::new(&mut bytes, of_client).cutting(most_of_string);
    stack.push_copy(1);
    let result = write_with(stack, &names, &mut reply, of_script, |stack, reply, count| {
        let position = reply.position();
        stack.check_memory(position)?;
        stack.step(count)?;
        stack.work(position.saturating_sub(written))?;
        written = position;
        Ok(())
    });
    names.release(stack);
    let faults = result?;
    stack.host(|server: &mut S, _| *server.converted_reply() = Some(Box::new(ConvertedReply { bytes, faults })));
    stack.push_nil();
    Ok(1)
}

/// Writes the value on top. `check` is called before each value with the amount of work since.
fn write_with(
    stack: &mut Stack<'_>,
    names: &FieldNames,
    reply: &mut Reply<'_>,
    protocol: Protocol,
    mut check: impl FnMut(&Stack<'_>, &Reply<'_>, usize) -> Result<(), Raise>,
) -> Result<ReturnedErrors, Raise> {
    let mut faults = ReturnedErrors::default();
    let base = stack.top();
    // The innermost level has its own place: most results have no other.
    let (mut innermost, mut outer): (Option<Level>, Vec<Level>) = (None, Vec::new());
    stack.push_copy(-1);
    loop {
        check(stack, reply, 1)?;
        // The value on top is written and popped, or becomes a level.
        if let Some(level) = write_value(stack, names, reply, protocol, &mut faults)? {
            if let Level::Entries { last, .. } = level {
                check(stack, reply, last)?;
            }
            outer.extend(innermost.replace(level));
        }
        // Finds the next value of the innermost level that has one.
        loop {
            match &mut innermost {
                None => {
                    stack.truncate(base);
                    return Ok(faults);
                }
                Some(Level::Array(_, count)) => {
                    *count = push_element(stack, reply, *count + 1, &mut check)? - 1;
                    if stack.kind(-1) != Kind::Nil {
                        *count += 1;
                        break;
                    }
                    stack.pop(2);
                    if let Some(Level::Array(open, count)) = std::mem::replace(&mut innermost, outer.pop()) {
                        check(stack, reply, reply.since(open.start()).len() / BYTES_MOVED)?;
                        reply.close_array(open, count);
                    }
                }
                Some(Level::Entries { next, last, step }) => {
                    if next <= last {
                        stack.get_element(-1, *next);
                        *next += *step;
                        break;
                    }
                    stack.pop(2);
                    innermost = outer.pop();
                }
            }
        }
    }
}

/// Writes the elements of the table on top from the one at `first` on, up to the first that is neither text nor number,
/// which is pushed; returns its number. If the stack is nearly full, the first element is pushed whatever it is.
fn push_element(
    stack: &mut Stack<'_>,
    reply: &mut Reply<'_>,
    first: usize,
    mut check: impl FnMut(&Stack<'_>, &Reply<'_>, usize) -> Result<(), Raise>,
) -> Result<usize, Raise> {
    if stack.reserve(1 + LEVEL_VALUES).is_err() {
        stack.get_element(-1, first);
        return Ok(first);
    }
    stack.read_elements(first, |stack, element| {
        check(stack, reply, 1)?;
        match element {
            Scalar::Text(text) => reply.bulk(text),
            Scalar::Number(number) => reply.integer(truncated(number)),
            Scalar::Other(_) => {}
        }
        Ok(())
    })
}

/// Writes the value on top and pops it, unless it is a table with more to write.
fn write_value(
    stack: &mut Stack<'_>,
    names: &FieldNames,
    reply: &mut Reply<'_>,
    protocol: Protocol,
    faults: &mut ReturnedErrors,
) -> Result<Option<Level>, Raise> {
    if stack.reserve(LEVEL_VALUES).is_err() {
        let line = "ERR reached lua stack limit";
        reply.error(line);
        faults.count(line);
        stack.pop(1);
        return Ok(None);
    }
    match stack.scalar(-1) {
        Scalar::Text(text) => reply.bulk(text),
        Scalar::Number(number) => reply.integer(truncated(number)),
        Scalar::Other(Kind::Boolean) => write_boolean(stack.truth(-1), reply, protocol),
        Scalar::Other(Kind::Table) => return write_table(stack, names, reply, faults),
        Scalar::Other(_) => reply.null(),
    }
    stack.pop(1);
    Ok(None)
}

/// A double as a 64-bit integer, as C converts it on the machines that Redis runs on.
fn truncated(number: f64) -> i64 {
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number);
    if fits { number as i64 } else { i64::MIN }
}

fn write_boolean(value: bool, reply: &mut Reply<'_>, protocol: Protocol) {
    if protocol == Protocol::Resp3 {
        reply.boolean(value);
    } else if value {
        reply.integer(1);
    } else {
        reply.null();
    }
}

fn write_table(
    stack: &mut Stack<'_>,
    names: &FieldNames,
    reply: &mut Reply<'_>,
    faults: &mut ReturnedErrors,
) -> Result<Option<Level>, Raise> {
    if is_short_list(stack) {
        return Ok(Some(Level::Array(reply.open_array(), 0)));
    }
    if let Some(line) = error_line(stack, names) {
        reply.error(&line);
        if is_counted(stack) {
            faults.counted += 1;
        } else {
            faults.count(&line);
        }
    } else if let Some(text) = text_of(stack, &names.ok) {
        reply.simple(super::up_to_nul(&text));
    } else if let Some(number) = double_field(stack, names) {
        reply.double(number);
    } else if let Some(digits) = text_of(stack, &names.big_number) {
        let digits: Vec<u8> =
            digits.iter().map(|&byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }).collect();
        reply.big_number(digits);
    } else if let Some((form, text)) = verbatim(stack, names) {
        let form = super::up_to_nul(&form).iter().chain(b"   ").copied().take(FORM_LETTERS);
        reply.verbatim(form.collect::<Vec<u8>>(), &text);
    } else if let Some(count) = flatten(stack, &names.map)? {
        reply.map(count);
        return Ok(Some(Level::Entries { next: 1, last: count * 2, step: 1 }));
    } else if let Some(count) = flatten(stack, &names.set)? {
        reply.set(count);
        return Ok(Some(Level::Entries { next: 1, last: count * 2, step: 2 }));
    } else {
        return Ok(Some(Level::Array(reply.open_array(), 0)));
    }
    stack.pop(1);
    Ok(None)
}

/// Whether the table on top has a few elements and nothing else, which is faster to find out than that it has none of
/// seven fields.
fn is_short_list(stack: &mut Stack<'_>) -> bool {
    const FEW: usize = 8;
    if stack.length(-1) > FEW {
        return false;
    }
    let (top, mut left) = (stack.top(), FEW);
    let walked = stack.each(-1, |stack| {
        if left == 0 || stack.kind(-2) != Kind::Number {
            return Err(Raise::Top);
        }
        left -= 1;
        Ok(())
    });
    stack.truncate(top);
    walked.is_ok()
}

/// The text in a field of the table on top, if it is a text.
fn text_of(stack: &mut Stack<'_>, name: &Reference) -> Option<Vec<u8>> {
    if stack.find_field(name) { take_text(stack) } else { None }
}

/// Pops the value on top; returns its bytes if it is a string.
fn take_text(stack: &mut Stack<'_>) -> Option<Vec<u8>> {
    let text = stack.bytes(-1).map(<[u8]>::to_vec);
    stack.pop(1);
    text
}

fn double_field(stack: &mut Stack<'_>, names: &FieldNames) -> Option<f64> {
    if !stack.find_field(&names.double) {
        return None;
    }
    let number = if let Scalar::Number(number) = stack.scalar(-1) { Some(number) } else { None };
    stack.pop(1);
    number
}

fn verbatim(stack: &mut Stack<'_>, names: &FieldNames) -> Option<(Vec<u8>, Vec<u8>)> {
    if !stack.find_field(&names.verbatim) {
        return None;
    }
    let part = |stack: &mut Stack<'_>, name| {
        stack.get_field(-1, name);
        take_text(stack)
    };
    let mut found = None;
    if stack.kind(-1) == Kind::Table
        && let Some(text) = part(stack, "string")
        && let Some(form) = part(stack, "format")
    {
        found = Some((form, text));
    }
    stack.pop(1);
    found
}

/// Pushes the keys and values of the table in that field alternately; returns the number of pairs, or `None` if the
/// field is not a table.
///
/// # Errors
/// If memory has run out.
fn flatten(stack: &mut Stack<'_>, name: &Reference) -> Result<Option<usize>, Raise> {
    if !stack.find_field(name) {
        return Ok(None);
    }
    if stack.kind(-1) != Kind::Table {
        stack.pop(1);
        return Ok(None);
    }
    let count = stack.push_entries(-1)?;
    stack.remove_below();
    Ok(Some(count))
}

/// The error line of the table on top, if it is an error: its text up to the first NUL, without trailing line ends.
fn error_line(stack: &mut Stack<'_>, names: &FieldNames) -> Option<String> {
    text_of(stack, &names.err).map(|text| super::latin(super::without_line_ends(super::up_to_nul(&text))))
}

/// Whether the error on top of the stack came from a command, which was counted.
pub(super) fn is_counted(stack: &mut Stack<'_>) -> bool {
    stack.get_field(-1, "ignore_error_stats_update");
    let is_counted = stack.kind(-1) == Kind::Boolean && stack.truth(-1);
    stack.pop(1);
    is_counted
}
