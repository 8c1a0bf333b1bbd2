//! Fuzzes the decoder of replies: no panic, and the result equals that of another decoder, `redis-protocol`.
//!
//! Our decoder accepts RESP2 and RESP3 at once and the other one of them at a time, and each is stricter than the other
//! in some points, which are named below.

use dunlin::resp::{DEEPEST, DecodeError, Frame};
use redis_protocol::resp2::decode::decode as decode_resp2;
use redis_protocol::resp2::types::OwnedFrame as Resp2Frame;
use redis_protocol::resp3::decode::complete::decode as decode_resp3;
use redis_protocol::resp3::encode::complete::encode;
use redis_protocol::resp3::types::OwnedFrame;

/// The other decoder nests by recursion.
const DEEPEST_TO_COMPARE: usize = 60;

enum Other {
    Resp2(Resp2Frame),
    Resp3(OwnedFrame),
}

/// The decoded value depends only on the reply's own bytes, and no prefix of a reply is a reply. The fuzzer checks only
/// this, as it soon finds bytes that only the other decoder accepts.
pub fn run_alone(bytes: &[u8]) {
    let Ok(Some((frame, length))) = Frame::decode(bytes) else { return };
    assert!((1..=bytes.len()).contains(&length));
    // Compared as text, since NaN is not equal to itself.
    let again = Frame::decode(&bytes[..length]);
    assert_eq!(format!("{again:?}"), format!("{:?}", Ok::<_, DecodeError>(Some((frame, length)))));
    for end in [length / 2, length - 1] {
        assert!(!matches!(Frame::decode(&bytes[..end]), Ok(Some(_))), "{}", bytes[..end].escape_ascii());
    }
}

#[allow(dead_code, reason = "the fuzzer does without the other decoder")]
pub fn run(bytes: &[u8]) {
    run_alone(bytes);
    let ours = Frame::decode(bytes);
    if bytes.iter().filter(|byte| b"*%~>|".contains(byte)).count() > DEEPEST_TO_COMPARE {
        return assert!(!matches!(ours, Ok(Some((_, length))) if length > bytes.len()));
    }
    match (ours, decode_other(bytes)) {
        (Ok(None), Ok(None)) | (Err(_), Ok(None) | Err(())) => {}
        (Ok(Some((frame, length))), Ok(Some((other, other_length)))) => {
            assert_eq!(length, other_length);
            assert!(is_same(&frame, &other), "{frame:?}");
        }
        (Err(DecodeError::Malformed), Ok(Some((other, length)))) => {
            assert!(!is_written_so(&other, &bytes[..length]), "what is well written is refused");
        }
        (Ok(Some((_, length))), Err(())) => assert!(is_too_much_for_the_other(&bytes[..length])),
        (Ok(None), Err(())) => assert!(is_too_much_for_the_other(bytes)),
        (ours, other) => panic!("{ours:?} beside {}", other.is_ok_and(|found| found.is_some())),
    }
}

/// Checks that both decoders read a well-formed reply as the same value, and that each prefix of it is incomplete.
#[allow(dead_code, reason = "the fuzzer has bytes only, the test has replies as well")]
pub fn run_well_formed(bytes: &[u8]) {
    let (ours, length) = Frame::decode(bytes).expect("it is well formed").expect("it is complete");
    assert_eq!(length, bytes.len());
    if !has_unusual_keys(&ours) {
        let (other, other_length) = decode_other(bytes).expect("it is well formed").expect("it is complete");
        assert_eq!(other_length, bytes.len());
        assert!(is_same(&ours, &other), "{ours:?}");
    }
    for end in 0..bytes.len() {
        assert_eq!(Frame::decode(&bytes[..end]), Ok(None), "{}", bytes[..end].escape_ascii());
    }
    const { assert!(DEEPEST > DEEPEST_TO_COMPARE) }
}

fn decode_other(bytes: &[u8]) -> Result<Option<(Other, usize)>, ()> {
    match decode_resp3(bytes) {
        Ok(found) => Ok(found.map(|(frame, length)| (Other::Resp3(frame), length))),
        // The other decoder accepts nulls of RESP2 only in RESP2.
        Err(_) => match decode_resp2(bytes) {
            Ok(found) => Ok(found.map(|(frame, length)| (Other::Resp2(frame), length))),
            Err(_) => Err(()),
        },
    }
}

/// The other decoder takes no aggregate as a key, a member or an attribute, no null of RESP2 among what is RESP3, no
/// format of text but two, and no text of a line that is not UTF-8.
fn is_too_much_for_the_other(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| b"%~|=".contains(byte))
        || bytes.windows(5).any(|part| part == b"$-1\r\n" || part == b"*-1\r\n")
        || str::from_utf8(bytes).is_err()
}

/// True if the other encoder writes the frame as these bytes: it takes more spellings of a number than one, and any
/// two bytes as the end of a string.
fn is_written_so(other: &Other, bytes: &[u8]) -> bool {
    let Other::Resp3(frame) = other else { return false };
    let mut written = vec![0; bytes.len() + 16];
    !is_piece(frame) && encode(&mut written, frame, false).is_ok_and(|length| written.get(..length) == Some(bytes))
}

/// True for what is no reply: a piece of a string of unknown length, and HELLO as a request; also within others.
fn is_piece(frame: &OwnedFrame) -> bool {
    match frame {
        OwnedFrame::ChunkedString(_) | OwnedFrame::Hello { .. } => true,
        OwnedFrame::Array { data, .. } | OwnedFrame::Push { data, .. } => data.iter().any(is_piece),
        OwnedFrame::Set { data, .. } => data.iter().any(is_piece),
        OwnedFrame::Map { data, .. } => data.iter().any(|(key, value)| is_piece(key) || is_piece(value)),
        _ => false,
    }
}

#[allow(dead_code, reason = "see run_well_formed")]
fn has_unusual_keys(frame: &Frame<'_>) -> bool {
    let is_aggregate =
        |frame: &Frame<'_>| matches!(frame, Frame::Array(_) | Frame::Map(_) | Frame::Set(_) | Frame::Push(_));
    match frame {
        Frame::Set(items) => items.iter().any(is_aggregate),
        Frame::Map(items) => items.chunks(2).any(|pair| is_aggregate(&pair[0])) || items.iter().any(has_unusual_keys),
        Frame::Array(items) | Frame::Push(items) => items.iter().any(has_unusual_keys),
        _ => false,
    }
}

fn is_same(ours: &Frame<'_>, other: &Other) -> bool {
    match other {
        Other::Resp2(other) => is_same_resp2(ours, other),
        Other::Resp3(other) => is_same_resp3(ours, other),
    }
}

fn is_same_resp2(ours: &Frame<'_>, other: &Resp2Frame) -> bool {
    match (ours, other) {
        (Frame::NullBytes | Frame::NullArray, Resp2Frame::Null) => true,
        (Frame::Status(text), Resp2Frame::SimpleString(data)) => text == data,
        (Frame::Bytes(bytes), Resp2Frame::BulkString(data)) => bytes == data,
        (Frame::Error(text), Resp2Frame::Error(data)) => *text == data.as_bytes(),
        (Frame::Integer(integer), Resp2Frame::Integer(data)) => integer == data,
        (Frame::Array(items), Resp2Frame::Array(data)) => {
            items.len() == data.len() && items.iter().zip(data).all(|(item, other)| is_same_resp2(item, other))
        }
        _ => false,
    }
}

fn is_same_resp3(ours: &Frame<'_>, other: &OwnedFrame) -> bool {
    match (ours, other) {
        (Frame::Null, OwnedFrame::Null) => true,
        (Frame::Status(text), OwnedFrame::SimpleString { data, .. }) => text == data,
        (Frame::Error(text), OwnedFrame::SimpleError { data, .. }) => *text == data.as_bytes(),
        (Frame::Error(text), OwnedFrame::BlobError { data, .. }) => text == data,
        (Frame::Verbatim(bytes), OwnedFrame::VerbatimString { data, .. }) => bytes[4..] == **data,
        (Frame::Bytes(bytes), OwnedFrame::BlobString { data, .. }) => bytes == data,
        (Frame::Integer(integer), OwnedFrame::Number { data, .. }) => integer == data,
        (Frame::Double(double), OwnedFrame::Double { data, .. }) => {
            double.to_bits() == data.to_bits() || (double.is_nan() && data.is_nan())
        }
        (Frame::Boolean(is_true), OwnedFrame::Boolean { data, .. }) => is_true == data,
        (Frame::BigNumber(digits), OwnedFrame::BigNumber { data, .. }) => digits == data,
        (Frame::Array(items), OwnedFrame::Array { data, .. }) | (Frame::Push(items), OwnedFrame::Push { data, .. }) => {
            are_same(items, data.iter())
        }
        // Duplicate elements are there once in the result of the other decoder, which builds a map from its end.
        (Frame::Set(items), OwnedFrame::Set { data, .. }) if items.len() == data.len() => are_same(items, data.iter()),
        (Frame::Set(items), OwnedFrame::Set { data, .. }) => items.len() > data.len(),
        (Frame::Map(items), OwnedFrame::Map { data, .. }) if items.len() == data.len() * 2 => {
            are_same(items, data.iter().rev().flat_map(|(key, value)| [key, value]))
        }
        (Frame::Map(items), OwnedFrame::Map { data, .. }) => items.len() > data.len() * 2,
        _ => false,
    }
}

fn are_same<'o>(ours: &[Frame<'_>], mut others: impl Iterator<Item = &'o OwnedFrame>) -> bool {
    ours.iter().all(|item| others.next().is_some_and(|other| is_same_resp3(item, other))) && others.next().is_none()
}
