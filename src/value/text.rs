//! Text: Redis's string type, bytes that are sometimes a number.
//!
//! A text has three forms, which `OBJECT ENCODING` shows: a canonical 64-bit integer is kept as the number ("int"),
//! bytes set as a whole are "embstr" up to [`EMBEDDED_LIMIT`] and "raw" beyond, and bytes that a command edited in
//! place (APPEND, SETRANGE, SETBIT ...) stay "raw" whatever their length, because Redis does not embed them again.
//! The form is a matter of representation only: clients always see the same bytes.
//!
//! [`TextView`] is a stored text being read, borrowed from wherever the keyspace keeps it; [`Text`] is one that owns
//! its bytes. [`TextView::of`] is the rule of SET. This module knows no key, no reply and no clock.
//!
//! Bytes that were set as a whole never change, so a reader of such a [`Text`] may keep a reference to them: a reply
//! that is being sent, a copy of the value, a template. An edit makes a copy of its own, once.
//!
//! Invariant: `Int(n)` and the bytes `n` prints as are the same text, and [`parse_i64`] is the exact inverse of
//! printing: `parse_i64(b) == Some(n)` if and only if `n` prints as `b`.

use crate::value::number::parse_i64;
use crate::value::shared_bytes::SharedBytes;
use std::borrow::Cow;

/// The longest text, in bytes, that Redis calls "embstr".
pub const EMBEDDED_LIMIT: usize = 44;

/// A text, for reading. Equality compares the form too; compare [`TextView::as_bytes`] for the contents alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextView<'a> {
    /// A canonical integer, kept as a number.
    Int(i64),
    /// Bytes set as a whole.
    Bytes(&'a [u8]),
    /// Bytes set as a whole, which can be shared by reference.
    Shared(&'a SharedBytes),
    /// Bytes that were edited in place.
    Raw(&'a [u8]),
}

impl<'a> TextView<'a> {
    /// The form that SET gives to `bytes`: a number if they are a canonical one, else the bytes.
    pub fn of(bytes: &'a [u8]) -> TextView<'a> {
        parse_i64(bytes).map_or(TextView::Bytes(bytes), TextView::Int)
    }

    /// The length of the text in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes().map_or_else(int_len, <[u8]>::len)
    }

    /// The stored bytes, or the stored number.
    pub fn bytes(&self) -> Result<&'a [u8], i64> {
        match *self {
            TextView::Int(number) => Err(number),
            TextView::Bytes(bytes) | TextView::Raw(bytes) => Ok(bytes),
            TextView::Shared(bytes) => Ok(bytes),
        }
    }

    /// Whether the text has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of the text; `digits` holds them if it is a number.
    pub fn as_bytes<'b>(&self, digits: &'b mut itoa::Buffer) -> &'b [u8]
    where
        'a: 'b,
    {
        self.bytes().unwrap_or_else(|number| digits.format(number).as_bytes())
    }

    /// The bytes of the text, copied only if it is a number.
    pub fn to_cow(&self) -> Cow<'a, [u8]> {
        match self.bytes() {
            Ok(bytes) => Cow::Borrowed(bytes),
            Err(number) => Cow::Owned(itoa::Buffer::new().format(number).into()),
        }
    }

    /// Appends the bytes of the text to `out`.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes(&mut itoa::Buffer::new()));
    }

    /// The integer this text is, by Redis's strict rule (see [`parse_i64`]), whatever its form.
    pub fn as_int(&self) -> Option<i64> {
        self.bytes().map_or_else(Some, parse_i64)
    }

    /// The encoding that `OBJECT ENCODING` replies.
    pub fn encoding(&self) -> &'static str {
        match *self {
            TextView::Int(_) => "int",
            TextView::Raw(_) => "raw",
            TextView::Bytes(_) | TextView::Shared(_) if self.len() > EMBEDDED_LIMIT => "raw",
            TextView::Bytes(_) | TextView::Shared(_) => "embstr",
        }
    }

    /// A copy that owns its bytes.
    pub fn to_text(&self) -> Text {
        match *self {
            TextView::Int(number) => Text::Int(number),
            TextView::Bytes(bytes) => Text::Bytes(bytes.into()),
            TextView::Shared(bytes) => Text::Bytes(bytes.clone()),
            TextView::Raw(bytes) => Text::Raw(bytes.to_vec()),
        }
    }
}

/// A text that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// A canonical integer, kept as a number.
    Int(i64),
    /// Bytes set as a whole.
    Bytes(SharedBytes),
    /// Bytes that were edited in place, with room to grow.
    Raw(Vec<u8>),
}

impl Text {
    /// The form that SET gives to `bytes`.
    pub fn of(bytes: Vec<u8>) -> Text {
        match parse_i64(&bytes) {
            Some(number) => Text::Int(number),
            None => Text::Bytes(bytes.into()),
        }
    }

    /// A view of this text, for reading.
    pub fn view(&self) -> TextView<'_> {
        match self {
            Text::Int(number) => TextView::Int(*number),
            Text::Bytes(bytes) => TextView::Shared(bytes),
            Text::Raw(bytes) => TextView::Raw(bytes),
        }
    }

    /// The bytes for an edit: owned and growable; copied unless they were edited before.
    pub fn into_vec(self) -> Vec<u8> {
        match self {
            Text::Int(number) => itoa::Buffer::new().format(number).into(),
            Text::Bytes(bytes) => bytes.to_vec(),
            Text::Raw(bytes) => bytes,
        }
    }

    /// The bytes of memory held outside the `Text` itself.
    pub fn memory(&self) -> usize {
        match self {
            Text::Int(_) => 0,
            Text::Bytes(bytes) => bytes.memory(),
            Text::Raw(bytes) => bytes.capacity(),
        }
    }
}

/// The number of decimal digits of `number`, with its sign.
fn int_len(number: i64) -> usize {
    let digits = number.unsigned_abs().checked_ilog10().map_or(1, |log| log as usize + 1);
    digits + usize::from(number < 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_canonical_text_of_an_integer_is_stored_as_an_integer() {
        let most = i64::MAX.to_string();
        let least = i64::MIN.to_string();
        for (bytes, number) in [("0", 0), ("7", 7), ("-1", -1), (most.as_str(), i64::MAX), (least.as_str(), i64::MIN)] {
            assert_eq!(TextView::of(bytes.as_bytes()), TextView::Int(number));
        }
        for bytes in [
            "",
            "-",
            "+1",
            "01",
            "-0",
            "-01",
            "00",
            " 1",
            "1 ",
            "1.0",
            "1e3",
            "0x1",
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999",
            "18446744073709551617",
            "--1",
            "1-",
            "\u{661}",
        ] {
            assert_eq!(TextView::of(bytes.as_bytes()), TextView::Bytes(bytes.as_bytes()), "{bytes:?}");
        }
    }

    #[test]
    fn a_text_is_embedded_up_to_44_bytes_and_an_edited_one_never() {
        assert_eq!(TextView::Int(12).encoding(), "int");
        assert_eq!(TextView::Bytes(&[b'a'; 44]).encoding(), "embstr");
        assert_eq!(TextView::Bytes(&[b'a'; 45]).encoding(), "raw");
        assert_eq!(TextView::Raw(b"a").encoding(), "raw");
        assert_eq!(TextView::Bytes(b"").encoding(), "embstr");
    }

    #[test]
    fn edited_bytes_are_changed_in_place_and_others_are_shared() {
        let bytes = vec![b'a'; 100];
        let place = bytes.as_ptr();
        let edited = Text::Raw(bytes).into_vec();
        assert_eq!(edited.as_ptr(), place);
        let whole = Text::of(vec![b'a'; 100]);
        let (Text::Bytes(held), Text::Bytes(copied)) = (&whole, &whole.view().to_text()) else { panic!("no number") };
        assert!(held.is_same(copied));
    }

    proptest! {
        #[test]
        fn printing_and_parsing_are_inverse(number: i64, shift in 0u32..64) {
            let number = number >> shift;
            let mut digits = itoa::Buffer::new();
            let printed = TextView::Int(number).as_bytes(&mut digits);
            prop_assert_eq!(parse_i64(printed), Some(number));
            prop_assert_eq!(TextView::Int(number).len(), printed.len());
        }

        #[test]
        fn a_parsed_integer_prints_as_the_same_bytes(bytes in "[-+ 0-9]{0,21}") {
            if let Some(number) = parse_i64(bytes.as_bytes()) {
                prop_assert_eq!(number.to_string(), bytes);
            }
        }

        #[test]
        fn every_reader_sees_the_same_bytes(bytes: Vec<u8>) {
            let text = Text::of(bytes.clone());
            let view = text.view();
            let mut appended = b"x".to_vec();
            view.append_to(&mut appended);
            prop_assert_eq!(&appended[1..], &bytes);
            let seen = view.to_cow();
            prop_assert_eq!(seen.as_ref(), &bytes[..]);
            prop_assert_eq!(view.to_text(), text.clone());
            prop_assert_eq!(view.as_int(), parse_i64(&bytes));
            prop_assert_eq!(text.into_vec(), bytes);
        }
    }
}
