//! The reply writer: command handlers reply only through it.
//!
//! A handler gives a value (an integer, a map, null) and the writer encodes it in the connection's protocol: RESP3
//! has doubles, maps, sets and booleans of its own, RESP2 encodes them as bulk strings and arrays. The writer knows
//! no socket and no command, so a handler runs alike behind a connection, in a transaction and in a test.
//!
//! Invariant: each reply is one well-formed frame. Lines (`+` and `-`) are built in one place, [`Reply::error`] and
//! [`Reply::simple`], and CR, LF and NUL in them become spaces, so no text that a client sent can end its frame early
//! and forge the next one.
//!
//! For a script it writes a third form ([`Reply::of_values`]): the same frames with numbers as eight bytes instead of
//! digits and without line ends, only for [`super::Values`] to read.
//!
//! Sources: the RESP2 and RESP3 specifications.

use std::num::NonZeroU32;

use super::Protocol;
use super::cut_string::CutString;
use super::encoded::EncodedElements;
use super::reply_buffer::{ReplyBuffer, SharedStrings, ZERO_COPY_BYTES};
use crate::value::{Item, SharedBytes, number};

/// Writes replies of one session into the buffer that its connection sends.
#[derive(Debug)]
pub struct Reply<'a> {
    pub(super) out: &'a mut Vec<u8>,
    /// The list of large strings that need not be copied.
    shared_strings: Option<&'a mut SharedStrings>,
    protocol: Protocol,
    form: Form,
    /// The most bytes of a bulk string: [`Reply::cutting`].
    most_of_string: usize,
}

/// The reader of the replies, which determines their encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A client: RESP.
    Wire,
    /// A script: the form for [`super::Values`].
    Values,
}

/// The position for the header of an array whose length is not known yet.
#[derive(Debug)]
#[must_use = "an array that is never closed leaves a broken frame"]
pub struct OpenArray {
    start: usize,
}

impl OpenArray {
    /// The place where the elements of the array begin.
    pub fn start(&self) -> usize {
        self.start
    }
}

impl<'a> Reply<'a> {
    /// A writer that appends to `out` in `protocol`.
    pub fn new(out: &'a mut Vec<u8>, protocol: Protocol) -> Reply<'a> {
        Reply { out, shared_strings: None, protocol, form: Form::Wire, most_of_string: usize::MAX }
    }

    /// A writer that appends to `output` in `protocol`, and shares large strings with it instead of copying them.
    pub fn zero_copy(output: &'a mut ReplyBuffer, protocol: Protocol) -> Reply<'a> {
        let shared_strings = Some(&mut output.shared_strings);
        Reply { out: &mut output.bytes, shared_strings, protocol, form: Form::Wire, most_of_string: usize::MAX }
    }

    /// A writer for [`super::Values`], which distinguishes maps, sets and the like from arrays if `protocol` does.
    pub fn of_values(out: &'a mut Vec<u8>, protocol: Protocol) -> Reply<'a> {
        Reply { out, shared_strings: None, protocol, form: Form::Values, most_of_string: usize::MAX }
    }

    /// This writer, with a limit for the bytes of a bulk string if one is given: of longer ones it writes the beginning
    /// ([`CutString`]). So a reader that shows no more needs no memory for the rest.
    pub fn cutting(self, most_of_string: Option<NonZeroU32>) -> Reply<'a> {
        let most_of_string = most_of_string.map_or(usize::MAX, |most| most.get() as usize);
        Reply { most_of_string, ..self }
    }

    /// The limit for the bytes of a bulk string, if there is one.
    pub fn most_of_string(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(u32::try_from(self.most_of_string).ok()?)
    }

    /// Whether strings are written in a way of their own: for a script, or cut.
    pub(super) fn writes_each(&self) -> bool {
        self.is_of_values() || self.most_of_string < usize::MAX
    }

    fn is_of_values(&self) -> bool {
        self.form == Form::Values
    }

    /// A writer like this one that appends to the same output.
    pub fn reborrow(&mut self) -> Reply<'_> {
        Reply {
            out: self.out,
            shared_strings: self.shared_strings.as_deref_mut(),
            protocol: self.protocol,
            form: self.form,
            most_of_string: self.most_of_string,
        }
    }

    /// The protocol in which replies are written.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Changes the protocol from the next reply on (`HELLO`).
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// The length of the output so far, for [`Reply::since`] and [`Reply::rewind`].
    pub fn position(&self) -> usize {
        self.out.len()
    }

    /// The bytes written after `position`, without strings that are sent without a copy.
    pub fn since(&self, position: usize) -> &[u8] {
        self.out.get(position..).unwrap_or_default()
    }

    /// Removes everything written after `position`.
    pub fn rewind(&mut self, position: usize) {
        self.out.truncate(position);
        if let Some(shared_strings) = &mut self.shared_strings {
            shared_strings.cut(position);
        }
    }

    /// Appends a reply that another writer has written in the same protocol.
    pub fn whole(&mut self, frame: &[u8]) {
        self.out.extend_from_slice(frame);
    }

    /// Writes `+OK`.
    pub fn ok(&mut self) {
        match self.form {
            Form::Wire => self.out.extend_from_slice(b"+OK\r\n"),
            Form::Values => self.line(b'+', b"OK"),
        }
    }

    /// Writes a simple string.
    pub fn simple(&mut self, text: impl AsRef<[u8]>) {
        self.line(b'+', text.as_ref());
    }

    /// Writes an error; `text` starts with its code, such as `ERR` or `WRONGTYPE`. Each of its characters stands for
    /// one byte, so that an error can repeat bytes of a client that are not UTF-8.
    pub fn error(&mut self, text: &str) {
        let bytes: Vec<u8> = text.chars().map(|character| u8::try_from(character).unwrap_or(b'?')).collect();
        self.line(b'-', &bytes);
    }

    /// Writes an integer.
    pub fn integer(&mut self, value: i64) {
        self.number(b':', value);
    }

    /// Writes a count or a length as an integer.
    pub fn count(&mut self, value: usize) {
        self.integer(value as i64);
    }

    /// Writes a bulk string.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        if bytes.len() > self.most_of_string {
            return self.long(bytes, &[]);
        }
        self.number(b'$', bytes.len() as i64);
        self.out.extend_from_slice(bytes);
        self.end_line();
    }

    /// Writes a stored, immutable string as a bulk string; a large one is sent without a copy where that is possible.
    pub fn shared(&mut self, bytes: &SharedBytes) {
        if bytes.len() > self.most_of_string {
            return self.long(bytes, &[]);
        }
        self.number(b'$', bytes.len() as i64);
        self.raw(bytes);
        self.end_line();
    }

    /// Whether a stored string of that length is sent without a copy if [`Reply::shared`] gets it.
    pub fn is_zero_copy(&self, length: usize) -> bool {
        length >= ZERO_COPY_BYTES && self.shared_strings.is_some()
    }

    /// Writes bytes as they are; many are sent without a copy where that is possible.
    pub fn raw(&mut self, bytes: &SharedBytes) {
        match &mut self.shared_strings {
            Some(shared_strings) if bytes.len() >= ZERO_COPY_BYTES => shared_strings.push(self.out.len(), bytes),
            _ => self.out.extend_from_slice(bytes),
        }
    }

    /// Whether the reply goes to a client, so that it may contain elements encoded before ([`Reply::encoded`]).
    pub fn takes_encoded(&self) -> bool {
        self.form == Form::Wire && self.most_of_string == usize::MAX
    }

    /// Writes elements that were encoded for this protocol, behind the header of their array or map; without a copy
    /// where that is possible.
    pub fn encoded(&mut self, elements: &EncodedElements) {
        self.raw(elements.bytes());
        self.end_line();
    }

    /// Writes one of the elements that were encoded for this protocol.
    pub fn encoded_element(&mut self, elements: &EncodedElements, number: usize) {
        self.out.extend_from_slice(elements.element(number));
        self.end_line();
    }

    /// Writes an integer as a bulk string, as `GET` replies a counter.
    pub fn bulk_integer(&mut self, value: i64) {
        let mut digits = itoa::Buffer::new();
        self.bulk(digits.format(value).as_bytes());
    }

    /// Writes an element of a collection as a bulk string.
    pub fn item(&mut self, item: Item<'_>) {
        match item {
            Item::Int(number) => self.bulk_integer(number),
            Item::Text(bytes, []) | Item::Text([], bytes) => self.bulk(bytes),
            Item::Text(first, second) if first.len() + second.len() > self.most_of_string => self.long(first, second),
            Item::Text(first, second) => {
                self.number(b'$', (first.len() + second.len()) as i64);
                self.out.extend_from_slice(first);
                self.out.extend_from_slice(second);
                self.end_line();
            }
        }
    }

    /// Writes a bulk string of two parts that is longer than those of this reply may be: its beginning in RESP3; in
    /// RESP2, which has no form for that, all of it.
    #[cold]
    fn long(&mut self, first: &[u8], second: &[u8]) {
        if self.protocol == Protocol::Resp3 {
            let shown = first.iter().chain(second).take(self.most_of_string).copied().collect();
            let cut = CutString { shown, length: first.len() + second.len() };
            return self.verbatim(CutString::FORM, &cut.to_text());
        }
        self.number(b'$', (first.len() + second.len()) as i64);
        self.out.extend_from_slice(first);
        self.out.extend_from_slice(second);
        self.end_line();
    }

    /// Writes a bulk string, or null if there is none.
    pub fn bulk_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// Writes null: in RESP2 the null bulk string.
    pub fn null(&mut self) {
        self.out.extend_from_slice(match (self.form, self.protocol) {
            (Form::Values, _) => b"_",
            (Form::Wire, Protocol::Resp2) => b"$-1\r\n",
            (Form::Wire, Protocol::Resp3) => b"_\r\n",
        });
    }

    /// Writes null in place of an array: in RESP2 the null array.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(match (self.form, self.protocol) {
            (Form::Values, _) => b"_",
            (Form::Wire, Protocol::Resp2) => b"*-1\r\n",
            (Form::Wire, Protocol::Resp3) => b"_\r\n",
        });
    }

    /// Writes a double: in RESP2 a bulk string of the same digits.
    pub fn double(&mut self, value: f64) {
        match (self.protocol, self.form) {
            (Protocol::Resp2, _) => {
                let start = self.out.len();
                number::write_f64(self.out, value);
                let end = self.out.len();
                self.number(b'$', (end - start) as i64);
                let header = self.out.len() - end;
                self.out[start..].rotate_right(header);
                self.end_line();
            }
            (Protocol::Resp3, Form::Values) => self.number(b',', value.to_bits().cast_signed()),
            (Protocol::Resp3, Form::Wire) => {
                self.out.push(b',');
                number::write_f64(self.out, value);
                self.out.extend_from_slice(b"\r\n");
            }
        }
    }

    /// Writes a boolean: in RESP2 the integers 1 and 0.
    pub fn boolean(&mut self, value: bool) {
        match (self.protocol, self.form) {
            (Protocol::Resp2, _) => self.integer(value.into()),
            (Protocol::Resp3, Form::Values) => self.number(b'#', value.into()),
            (Protocol::Resp3, Form::Wire) => self.out.extend_from_slice(if value { b"#t\r\n" } else { b"#f\r\n" }),
        }
    }

    /// Writes text with a three-letter form such as `txt` (a verbatim string): in RESP2 a bulk string.
    pub fn verbatim(&mut self, form: impl AsRef<[u8]>, text: &[u8]) {
        let form = form.as_ref();
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => {
                self.number(b'=', (form.len() + 1 + text.len()) as i64);
                self.out.extend_from_slice(form);
                self.out.push(b':');
                self.out.extend_from_slice(text);
                self.end_line();
            }
        }
    }

    /// Writes an integer of any size, in decimal digits: in RESP2 a bulk string.
    pub fn big_number(&mut self, digits: impl AsRef<[u8]>) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(digits.as_ref()),
            Protocol::Resp3 => self.line_without(b'(', digits.as_ref(), |byte| matches!(byte, b'\r' | b'\n')),
        }
    }

    /// Writes the header of an array; `length` replies follow.
    pub fn array(&mut self, length: usize) {
        self.number(b'*', length as i64);
    }

    /// Writes the header of a map; `pairs` times a key and a value follow. In RESP2 an array of twice the length.
    pub fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(pairs * 2),
            Protocol::Resp3 => self.number(b'%', pairs as i64),
        }
    }

    /// Writes the header of a set; `length` replies follow. In RESP2 an array.
    pub fn set(&mut self, length: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(length),
            Protocol::Resp3 => self.number(b'~', length as i64),
        }
    }

    /// Writes the header of a push message; `length` replies follow. In RESP2 an array.
    pub fn push(&mut self, length: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(length),
            Protocol::Resp3 => self.number(b'>', length as i64),
        }
    }

    /// Writes the header of an attribute map, which RESP3 clients read before the reply that follows it.
    ///
    /// RESP2 has none: write it only if [`Reply::protocol`] is RESP3.
    pub fn attribute(&mut self, pairs: usize) {
        self.number(b'|', pairs as i64);
    }

    /// Opens an array whose length is known only when [`Reply::close_array`] is called.
    pub fn open_array(&mut self) -> OpenArray {
        OpenArray { start: self.out.len() }
    }

    /// Writes the header of an array that [`Reply::open_array`] opened; costs one move of the bytes written since.
    pub fn close_array(&mut self, open: OpenArray, length: usize) {
        let end = self.out.len();
        self.array(length);
        self.put_in_front(open, end);
    }

    /// Writes the header of a set that [`Reply::open_array`] opened.
    pub fn close_set(&mut self, open: OpenArray, length: usize) {
        let end = self.out.len();
        self.set(length);
        self.put_in_front(open, end);
    }

    /// Writes the header of a map of `pairs` that [`Reply::open_array`] opened.
    pub fn close_map(&mut self, open: OpenArray, pairs: usize) {
        let end = self.out.len();
        self.map(pairs);
        self.put_in_front(open, end);
    }

    /// Moves the bytes written since `end` to where an array was opened.
    fn put_in_front(&mut self, open: OpenArray, end: usize) {
        let header = self.out.len() - end;
        self.out[open.start..].rotate_right(header);
        if let Some(shared_strings) = &mut self.shared_strings {
            shared_strings.shift(open.start..end, header);
        }
    }

    #[inline]
    fn number(&mut self, kind: u8, value: i64) {
        if self.form == Form::Values {
            self.out.push(kind);
            return self.out.extend_from_slice(&value.to_le_bytes());
        }
        // Lengths of one or two digits are the most frequent: one store each.
        match u8::try_from(value) {
            Ok(digit @ 0..=9) => self.out.extend_from_slice(&[kind, b'0' + digit, b'\r', b'\n']),
            Ok(number @ 10..=99) => {
                self.out.extend_from_slice(&[kind, b'0' + number / 10, b'0' + number % 10, b'\r', b'\n']);
            }
            _ => {
                self.out.push(kind);
                self.out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
                self.out.extend_from_slice(b"\r\n");
            }
        }
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.line_without(kind, text, |byte| matches!(byte, b'\r' | b'\n' | 0));
    }

    /// Writes a line in which only the bytes for which `is_unwanted` holds become spaces.
    fn line_without(&mut self, kind: u8, text: &[u8], is_unwanted: impl Fn(u8) -> bool) {
        match self.form {
            Form::Wire => self.out.push(kind),
            Form::Values => self.number(kind, text.len() as i64),
        }
        let start = self.out.len();
        self.out.extend_from_slice(text);
        self.out[start..].iter_mut().filter(|byte| is_unwanted(**byte)).for_each(|byte| *byte = b' ');
        self.end_line();
    }

    #[inline]
    fn end_line(&mut self) {
        if self.form == Form::Wire {
            self.out.extend_from_slice(b"\r\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(protocol: Protocol, write: impl FnOnce(&mut Reply<'_>)) -> String {
        let mut out = Vec::new();
        write(&mut Reply::new(&mut out, protocol));
        String::from_utf8(out).expect("these replies are text")
    }

    #[test]
    fn an_error_that_carries_a_line_break_stays_one_frame() {
        assert_eq!(written(Protocol::Resp2, |r| r.error("ERR a\r\n+OK\0")), "-ERR a  +OK \r\n");
    }

    #[test]
    fn an_error_repeats_bytes_that_are_not_text() {
        let mut out = Vec::new();
        Reply::new(&mut out, Protocol::Resp2).error("ERR '\u{ff}\u{1}'");
        assert_eq!(out, b"-ERR '\xff\x01'\r\n");
    }

    #[test]
    fn a_map_is_an_array_of_twice_the_length_in_resp2() {
        assert_eq!(written(Protocol::Resp2, |r| r.map(2)), "*4\r\n");
        assert_eq!(written(Protocol::Resp3, |r| r.map(2)), "%2\r\n");
    }

    #[test]
    fn an_array_of_unknown_length_gets_its_header_in_front() {
        let text = written(Protocol::Resp2, |r| {
            r.integer(7);
            let open = r.open_array();
            r.bulk(b"a");
            r.null();
            r.close_array(open, 2);
        });
        assert_eq!(text, ":7\r\n*2\r\n$1\r\na\r\n$-1\r\n");
    }

    #[test]
    fn a_rewound_reply_is_never_sent() {
        let text = written(Protocol::Resp3, |r| {
            let start = r.position();
            r.array(3);
            r.rewind(start);
            r.boolean(true);
        });
        assert_eq!(text, "#t\r\n");
    }

    #[test]
    fn line_ends_in_a_big_number_become_spaces_and_nothing_else_changes() {
        let mut out = Vec::new();
        let mut reply = Reply::new(&mut out, Protocol::Resp3);
        reply.simple("a\r\nb\0c");
        reply.big_number("1\r\n2\x003");
        assert_eq!(out, b"+a  b c\r\n(1  2\x003\r\n");
    }
}
