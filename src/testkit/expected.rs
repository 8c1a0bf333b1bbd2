//! Expected replies, and their comparison with actual ones.
//!
//! One fact has several replies: a score is a number to one client and a text to another, and the elements of a set
//! have no order. So an expectation compares the meaning: a number with a number or its digits, a set in any order, a
//! map as pairs in any order.

use std::fmt::{self, Display};

use super::{CallError, Reply};
use crate::engine::state::kit::quoted;
use crate::value::number;

/// An expected reply: the right side of [`assert_reply`](crate::assert_reply).
///
/// It can be made from texts, bytes, numbers, booleans, `()` and `None` for nil, and arrays of all these.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Expected {
    /// A null reply.
    Nil,
    /// A string or status, or a number with these digits.
    Text(Vec<u8>),
    /// An integer, or any number or digits of equal value.
    Integer(i64),
    /// A floating-point number, or any number or digits of equal value.
    Float(f64),
    /// True or false, or 1 or 0.
    Boolean(bool),
    /// An error whose text starts with this.
    Error(String),
    /// All these elements: of an array in this order, of a set in any order, of a map as pairs.
    All(Vec<Expected>),
    /// Exactly this reply.
    Reply(Reply),
}

impl Expected {
    /// Whether the result of a call meets the expectation.
    pub(super) fn is(&self, outcome: &Result<Reply, CallError>) -> bool {
        match (self, outcome) {
            (Expected::Error(start), Err(CallError::Refused(line))) => line.starts_with(start.as_str()),
            (_, Err(_)) => false,
            (_, Ok(reply)) => self.admits(reply),
        }
    }

    fn admits(&self, reply: &Reply) -> bool {
        match (self, reply) {
            (Expected::Nil, reply) => reply.is_null(),
            (Expected::Text(text), reply) => reply.bytes() == Some(text) || digits(reply).as_ref() == Some(text),
            (Expected::Integer(integer), Reply::Integer(number)) => integer == number,
            (Expected::Integer(integer), Reply::Bytes(bytes)) => number::parse_i64(bytes) == Some(*integer),
            (Expected::Integer(integer), Reply::Double(double)) => *double == *integer as f64,
            (Expected::Float(float), Reply::Double(double)) => float == double,
            (Expected::Float(float), Reply::Bytes(bytes)) => number::parse_f64(bytes) == Some(*float),
            (Expected::Float(float), Reply::Integer(integer)) => *float == *integer as f64,
            (Expected::Boolean(is_true), Reply::Boolean(other)) => is_true == other,
            (Expected::Boolean(is_true), Reply::Integer(integer)) => i64::from(*is_true) == *integer,
            (Expected::Error(start), Reply::Error(line)) => line.starts_with(start.as_str()),
            (Expected::All(all), Reply::Array(items) | Reply::Push(items)) => {
                all.len() == items.len() && all.iter().zip(items).all(|(expected, item)| expected.admits(item))
            }
            (Expected::All(all), Reply::Set(items)) => in_any_order(all, items, Expected::admits),
            (Expected::All(all), Reply::Map(pairs)) => in_any_order(all, pairs, Expected::admits_pair),
            (Expected::Reply(wanted), reply) => wanted == reply,
            _ => false,
        }
    }

    fn admits_pair(&self, (key, value): &(Reply, Reply)) -> bool {
        matches!(self, Expected::All(pair) if matches!(&pair[..], [a, b] if a.admits(key) && b.admits(value)))
    }
}

/// The digits of a number.
fn digits(reply: &Reply) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    match reply {
        Reply::Integer(integer) => number::write_i64(&mut text, *integer),
        Reply::Double(double) => number::write_f64(&mut text, *double),
        _ => return None,
    }
    Some(text)
}

/// Whether both have the same length, and each of `all` matches a different one of `items`.
fn in_any_order<T>(all: &[Expected], items: &[T], admits: impl Fn(&Expected, &T) -> bool) -> bool {
    let mut rest: Vec<&T> = items.iter().collect();
    let takes_one = |expected: &Expected| {
        let place = rest.iter().position(|item| admits(expected, item));
        place.map(|place| rest.swap_remove(place)).is_some()
    };
    all.len() == items.len() && all.iter().all(takes_one)
}

impl Display for Expected {
    /// The expectation as a test would write it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Nil => formatter.write_str("(nil)"),
            Expected::Text(text) => Reply::Bytes(text.clone()).fmt(formatter),
            Expected::Integer(integer) => integer.fmt(formatter),
            Expected::Float(float) => float.fmt(formatter),
            Expected::Boolean(is_true) => is_true.fmt(formatter),
            Expected::Error(start) => write!(formatter, "an error: {start}"),
            Expected::All(all) => {
                formatter.write_str("[")?;
                for (place, expected) in all.iter().enumerate() {
                    write!(formatter, "{}{expected}", if place > 0 { ", " } else { "" })?;
                }
                formatter.write_str("]")
            }
            Expected::Reply(reply) => reply.fmt(formatter),
        }
    }
}

macro_rules! expected {
    ($($type:ty => $value:ident: $made:expr;)*) => {
        $(impl From<$type> for Expected {
            fn from($value: $type) -> Expected {
                $made
            }
        })*
    };
}

expected! {
    () => _nothing: Expected::Nil;
    &str => text: Expected::Text(text.into());
    String => text: Expected::Text(text.into());
    &String => text: Expected::Text(text.as_bytes().to_vec());
    &[u8] => bytes: Expected::Text(bytes.to_vec());
    bool => is_true: Expected::Boolean(is_true);
    i32 => integer: Expected::Integer(integer.into());
    i64 => integer: Expected::Integer(integer);
    u32 => integer: Expected::Integer(integer.into());
    usize => integer: Expected::Integer(i64::try_from(integer).unwrap_or(i64::MAX));
    f64 => float: Expected::Float(float);
    Reply => reply: Expected::Reply(reply);
}

impl<const LENGTH: usize> From<&[u8; LENGTH]> for Expected {
    fn from(bytes: &[u8; LENGTH]) -> Expected {
        Expected::Text(bytes.to_vec())
    }
}

impl<T: Into<Expected>> From<Option<T>> for Expected {
    fn from(value: Option<T>) -> Expected {
        value.map_or(Expected::Nil, Into::into)
    }
}

impl<T: Into<Expected>> From<Vec<T>> for Expected {
    fn from(all: Vec<T>) -> Expected {
        Expected::All(all.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Expected>, const LENGTH: usize> From<[T; LENGTH]> for Expected {
    fn from(all: [T; LENGTH]) -> Expected {
        Expected::All(all.into_iter().map(Into::into).collect())
    }
}

/// A word of a command in an assertion: texts, bytes and numbers.
pub trait Word {
    /// The bytes of the word.
    fn word(&self) -> Vec<u8>;
}

macro_rules! words_of {
    ($($type:ty => $self:ident: $bytes:expr;)*) => {
        $(impl Word for $type {
            fn word(&$self) -> Vec<u8> {
                $bytes
            }
        })*
    };
}

words_of! {
    str => self: self.into();
    String => self: self.as_str().into();
    [u8] => self: self.to_vec();
    Vec<u8> => self: self.clone();
    i32 => self: self.to_string().into();
    i64 => self: self.to_string().into();
    u32 => self: self.to_string().into();
    u64 => self: self.to_string().into();
    usize => self: self.to_string().into();
    f64 => self: self.to_string().into();
}

impl<const LENGTH: usize> Word for [u8; LENGTH] {
    fn word(&self) -> Vec<u8> {
        self.to_vec()
    }
}

impl<T: Word + ?Sized> Word for &T {
    fn word(&self) -> Vec<u8> {
        (**self).word()
    }
}

/// A command as one line.
pub(super) fn line_of(words: &[Vec<u8>]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Reply {
        Reply::Bytes(text.into())
    }

    fn admits(expected: impl Into<Expected>, reply: &Reply) -> bool {
        expected.into().admits(reply)
    }

    #[test]
    fn numbers_and_their_digits_mean_the_same() {
        assert!(admits(10, &Reply::Integer(10)) && admits(10, &text("10")) && admits(10, &Reply::Double(10.0)));
        assert!(
            admits("10", &Reply::Integer(10))
                && admits("10", &Reply::Double(10.0))
                && admits("1.5", &Reply::Double(1.5))
        );
        assert!(admits(1.5, &text("1.5")) && admits(2.0, &Reply::Integer(2)) && admits(1.5, &Reply::Double(1.5)));
        assert!(admits(true, &Reply::Integer(1)) && admits(false, &Reply::Boolean(false)));
        assert!(!admits(10, &text("010")) && !admits("10.0", &Reply::Integer(10)) && !admits(1, &Reply::Null));
        assert!(!admits(true, &Reply::Integer(2)) && !admits(1, &text("one")));
    }

    #[test]
    fn none_equals_nil_and_no_empty_text() {
        assert!(admits((), &Reply::Null) && admits(None::<&str>, &Reply::Null));
        assert!(!admits("", &Reply::Null) && !admits((), &text("")) && admits(Some("a"), &text("a")));
    }

    #[test]
    fn arrays_have_an_order_and_sets_and_maps_none() {
        let (a, b) = (text("a"), text("b"));
        assert!(admits(["a", "b"], &Reply::Array(vec![a.clone(), b.clone()])));
        assert!(!admits(["b", "a"], &Reply::Array(vec![a.clone(), b.clone()])));
        let set = Reply::Set(vec![a.clone(), b.clone()]);
        assert!(admits(["b", "a"], &set) && !admits(["a", "a"], &set) && !admits(["a"], &set));
        let map = Reply::Map(vec![(a, Reply::Integer(1)), (b, Reply::Integer(2))]);
        assert!(admits([["b", "2"], ["a", "1"]], &map) && !admits([["a", "2"], ["b", "1"]], &map));
        assert!(!admits(["a", "b"], &map) && admits(Vec::<&str>::new(), &Reply::Array(Vec::new())));
    }

    #[test]
    fn an_error_is_compared_by_its_prefix() {
        let refused = Err(CallError::Refused("ERR syntax error".to_owned()));
        assert!(
            Expected::Error("ERR".to_owned()).is(&refused) && !Expected::Error("WRONGTYPE".to_owned()).is(&refused)
        );
        assert!(!Expected::Nil.is(&refused) && !Expected::Error("ERR".to_owned()).is(&Ok(text("ERR"))));
    }
}
