//! A bulk string of which a reply has only the beginning ([`super::Reply::cutting`]).
//!
//! In the reply it is a verbatim string of the form `cut`, whose text is the whole length, a colon, and the beginning.
//! So a cut reply is well-formed RESP3, and every decoder reads it. A script may return such a string as well: who asks
//! for cut replies must not trust the length.

use std::borrow::Cow;

use crate::value::number::parse_i64;

/// A bulk string that was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutString<'a> {
    /// Its first bytes.
    pub shown: Cow<'a, [u8]>,
    /// The number of all its bytes.
    pub length: usize,
}

impl<'a> CutString<'a> {
    /// The form of the verbatim string.
    pub(super) const FORM: &'static [u8] = b"cut";

    /// The text of the verbatim string.
    pub(super) fn to_text(&self) -> Vec<u8> {
        [self.length.to_string().as_bytes(), b":", &self.shown].concat()
    }

    /// Reads a verbatim string with its form; `None` if it is no cut string.
    pub fn read(verbatim: &'a [u8]) -> Option<CutString<'a>> {
        let text = verbatim.strip_prefix(CutString::FORM)?.strip_prefix(b":")?;
        let colon = text.iter().position(|byte| *byte == b':')?;
        let length = usize::try_from(parse_i64(&text[..colon])?).ok()?;
        Some(CutString { shown: Cow::Borrowed(&text[colon + 1..]), length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    use crate::resp::{Frame, Protocol, Reply, ReplyBuffer};
    use crate::value::{Item, SharedBytes};

    /// The replies that `write` writes where strings have at most three bytes.
    fn written(protocol: Protocol, write: impl FnOnce(&mut Reply<'_>)) -> Vec<u8> {
        let mut output = ReplyBuffer::default();
        write(&mut Reply::zero_copy(&mut output, protocol).cutting(NonZeroU32::new(3)));
        output.into_bytes()
    }

    #[test]
    fn a_long_string_is_cut_however_it_is_written() {
        let large = SharedBytes::from(vec![b'a'; 100_000]);
        type Write<'a> = &'a dyn Fn(&mut Reply<'_>);
        let writes: [(Write<'_>, usize); 6] = [
            (&|reply| reply.bulk(b"aaaa"), 4),
            (&|reply| reply.bulk_or_null(Some(b"aaaaa")), 5),
            (&|reply| reply.item(Item::Text(b"aa", b"aa")), 4),
            (&|reply| reply.shared(&large), 100_000),
            (&|reply| reply.items([Item::Text(b"a", b"aaa")].into_iter()), 4),
            (&|reply| reply.bulks([&b"aaaa"[..]].into_iter()), 4),
        ];
        for (write, length) in writes {
            let bytes = written(Protocol::Resp3, write);
            let Ok(Some((Frame::Verbatim(text), _))) = Frame::decode(&bytes) else { panic!("{bytes:?}") };
            assert_eq!(CutString::read(text), Some(CutString { shown: b"aaa".into(), length }));
        }
    }

    #[test]
    fn what_is_no_long_string_stays_whole() {
        let write = |reply: &mut Reply<'_>| {
            reply.bulk(b"abc");
            reply.item(Item::Text(b"a", b"bc"));
            reply.verbatim("txt", b"long text");
        };
        assert_eq!(written(Protocol::Resp3, write), b"$3\r\nabc\r\n$3\r\nabc\r\n=13\r\ntxt:long text\r\n");
        assert_eq!(written(Protocol::Resp2, |reply| reply.bulk(b"abcd")), b"$4\r\nabcd\r\n");
        for no_cut in [&b"txt:5:abc"[..], b"cut", b"cut:", b"cut:abc", b"cut:-1:abc", b"cut:x:abc"] {
            assert_eq!(CutString::read(no_cut), None);
        }
    }
}
