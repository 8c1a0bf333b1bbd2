//! Reads replies that a [`Reply`](super::Reply) wrote for a script: as typed values, without a detour over text.
//!
//! Only a writer of this process writes this form, so a broken frame is a bug here: reading ends at it.

/// One reply, or the head of an aggregate whose elements follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReplyValue<'v> {
    /// An integer.
    Integer(i64),
    /// A bulk string.
    Bulk(&'v [u8]),
    /// A simple string.
    Simple(&'v [u8]),
    /// An error.
    Error(&'v [u8]),
    /// Null.
    Null,
    /// A double.
    Double(f64),
    /// A boolean.
    Boolean(bool),
    /// Text behind a three-letter form and a colon.
    Verbatim(&'v [u8]),
    /// The digits of an integer of any size.
    BigNumber(&'v [u8]),
    /// The head of an array of that many replies.
    Array(usize),
    /// The head of a map of that many pairs of replies.
    Map(usize),
    /// The head of a set of that many replies.
    Set(usize),
    /// The head of that many pairs of attributes of the reply behind them.
    Attribute(usize),
}

/// Iterates over the replies in a buffer.
#[derive(Clone, Debug)]
pub struct Values<'v> {
    rest: &'v [u8],
}

impl<'v> Values<'v> {
    /// Reads `bytes` that a [`Reply::of_values`](super::Reply::of_values) wrote.
    pub fn new(bytes: &'v [u8]) -> Values<'v> {
        Values { rest: bytes }
    }

    fn number(&mut self) -> Option<i64> {
        let (number, rest) = self.rest.split_first_chunk::<8>()?;
        self.rest = rest;
        Some(i64::from_le_bytes(*number))
    }

    fn length(&mut self) -> Option<usize> {
        self.number().and_then(|length| usize::try_from(length).ok())
    }

    fn bytes(&mut self) -> Option<&'v [u8]> {
        let length = self.length()?;
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }
}

impl<'v> Iterator for Values<'v> {
    type Item = ReplyValue<'v>;

    fn next(&mut self) -> Option<ReplyValue<'v>> {
        let (&kind, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(match kind {
            b':' => ReplyValue::Integer(self.number()?),
            b'$' => ReplyValue::Bulk(self.bytes()?),
            b'+' => ReplyValue::Simple(self.bytes()?),
            b'-' => ReplyValue::Error(self.bytes()?),
            b'_' => ReplyValue::Null,
            b',' => ReplyValue::Double(f64::from_bits(self.number()?.cast_unsigned())),
            b'#' => ReplyValue::Boolean(self.number()? != 0),
            b'=' => ReplyValue::Verbatim(self.bytes()?),
            b'(' => ReplyValue::BigNumber(self.bytes()?),
            b'*' | b'>' => ReplyValue::Array(self.length()?),
            b'%' => ReplyValue::Map(self.length()?),
            b'~' => ReplyValue::Set(self.length()?),
            b'|' => ReplyValue::Attribute(self.length()?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::{Protocol, Reply};

    fn read_back(protocol: Protocol, write: impl FnOnce(&mut Reply<'_>), check: impl FnOnce(Vec<ReplyValue<'_>>)) {
        let mut out = Vec::new();
        write(&mut Reply::of_values(&mut out, protocol));
        check(Values::new(&out).collect());
    }

    fn write_all(reply: &mut Reply<'_>) {
        let open = reply.open_array();
        reply.integer(-5);
        reply.bulk(b"a\r\nb");
        reply.simple("OK\r");
        reply.error("ERR no");
        reply.null();
        reply.double(0.1);
        reply.boolean(true);
        reply.verbatim("txt", b"hi");
        reply.big_number("123");
        reply.map(0);
        reply.set(0);
        reply.close_array(open, 11);
    }

    #[test]
    fn a_script_reads_a_resp3_reply_as_it_was_written() {
        read_back(Protocol::Resp3, write_all, |values| {
            use ReplyValue::*;
            let simple = [Integer(-5), Bulk(b"a\r\nb"), Simple(b"OK "), Error(b"ERR no"), Null, Double(0.1)];
            let rest = [Boolean(true), Verbatim(b"txt:hi"), BigNumber(b"123"), Map(0), Set(0)];
            assert_eq!(values, [&[Array(11)][..], &simple, &rest].concat());
        });
    }

    #[test]
    fn a_script_reads_a_resp2_reply_as_it_was_written() {
        read_back(Protocol::Resp2, write_all, |values| {
            use ReplyValue::*;
            let simple = [Integer(-5), Bulk(b"a\r\nb"), Simple(b"OK "), Error(b"ERR no"), Null, Bulk(b"0.1")];
            let rest = [Integer(1), Bulk(b"hi"), Bulk(b"123"), Array(0), Array(0)];
            assert_eq!(values, [&[Array(11)][..], &simple, &rest].concat());
        });
    }

    #[test]
    fn a_broken_frame_ends_the_conversion() {
        for bytes in [&b":123"[..], b"$\x05\0\0\0\0\0\0\0abc", b"*\xff\xff\xff\xff\xff\xff\xff\xff", b"?"] {
            assert_eq!(Values::new(bytes).next(), None, "{bytes:?}");
        }
    }
}
