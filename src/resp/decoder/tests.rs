//! The decoder: what it reads, waits for and refuses. `tests/fuzz` compares it with another decoder.

use super::*;

fn whole(bytes: &[u8]) -> Frame<'_> {
    match Frame::decode(bytes) {
        Ok(Some((frame, length))) if length == bytes.len() => frame,
        other => panic!("{}: {other:?}", bytes.escape_ascii()),
    }
}

#[test]
fn every_kind_of_reply_is_read() {
    use Frame::*;
    let table = [
        (&b"+OK\r\n"[..], Status(b"OK")),
        (b"+a\rb\nc\r\n", Status(b"a\rb\nc")),
        (b"-ERR no\r\n", Error(b"ERR no")),
        (b"!6\r\na\r\nb\xff\0\r\n", Error(b"a\r\nb\xff\0")),
        (b"$0\r\n\r\n", Bytes(b"")),
        (b"$4\r\n\r\n\r\n\r\n", Bytes(b"\r\n\r\n")),
        (b"=7\r\ntxt:a\r\n\r\n", Verbatim(b"txt:a\r\n")),
        (b":-9223372036854775808\r\n", Integer(i64::MIN)),
        (b",1.5e300\r\n", Double(1.5e300)),
        (b",inf\r\n", Double(f64::INFINITY)),
        (b",-inf\r\n", Double(f64::NEG_INFINITY)),
        (b"#t\r\n", Boolean(true)),
        (b"#f\r\n", Boolean(false)),
        (b"(-12345678901234567890123\r\n", BigNumber(b"-12345678901234567890123")),
        (b"_\r\n", Null),
        (b"$-1\r\n", NullBytes),
        (b"*-1\r\n", NullArray),
        (b"*0\r\n", Array(vec![])),
        (b"%0\r\n", Map(vec![])),
        (b"~2\r\n:1\r\n:1\r\n", Set(vec![Integer(1), Integer(1)])),
        (b">2\r\n+a\r\n*1\r\n_\r\n", Push(vec![Status(b"a"), Array(vec![Null])])),
        (b"%2\r\n:2\r\n*0\r\n*0\r\n$-1\r\n", Map(vec![Integer(2), Array(vec![]), Array(vec![]), NullBytes])),
    ];
    for (bytes, frame) in table {
        assert_eq!(whole(bytes), frame, "{}", bytes.escape_ascii());
    }
    assert!(matches!(whole(b",nan\r\n"), Double(number) if number.is_nan()));
}

#[test]
fn attributes_are_skipped_wherever_they_are() {
    assert_eq!(whole(b"|1\r\n+ttl\r\n*1\r\n:5\r\n:7\r\n"), Frame::Integer(7));
    assert_eq!(whole(b"|0\r\n|1\r\n+a\r\n+b\r\n*0\r\n"), Frame::Array(vec![]));
    assert_eq!(
        whole(b"*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n"),
        Frame::Array(vec![Frame::Integer(1), Frame::Integer(2)])
    );
    for early in [&b"|0\r\n"[..], b"|1\r\n+a\r\n+b\r\n", b"*1\r\n:1\r\n|0\r\n"] {
        let starts_whole = early.starts_with(b"*");
        assert_eq!(Frame::decode(early).map(|found| found.is_some()), Ok(starts_whole));
    }
}

#[test]
fn bytes_behind_a_reply_are_not_consumed() {
    assert_eq!(Frame::decode(b"*1\r\n+a\r\n?!"), Ok(Some((Frame::Array(vec![Frame::Status(b"a")]), 8))));
}

#[test]
fn every_prefix_of_a_reply_decodes_as_incomplete() {
    let bytes = b"*5\r\n|1\r\n+k\r\n(1\r\n=5\r\ntxt:a\r\n%1\r\n!2\r\nab\r\n,1.5\r\n~1\r\n#t\r\n$2\r\nxy\r\n>1\r\n_\r\n";
    assert_eq!(Frame::decode(bytes).map(|found| found.map(|(_, length)| length)), Ok(Some(bytes.len())));
    for end in 0..bytes.len() {
        assert_eq!(Frame::decode(&bytes[..end]), Ok(None), "{}", bytes[..end].escape_ascii());
    }
}

#[test]
fn bytes_that_break_the_protocol_are_refused() {
    let table: [&[u8]; 23] = [
        b"x",
        b"\r\n",
        b":\r\n",
        b":1x\r\n",
        b":9223372036854775808\r\n",
        b":+1\r\n",
        b"$-2\r\n",
        b"$?\r\n",
        b"*?\r\n",
        b"%-1\r\n",
        b"~-1\r\n",
        b">-1\r\n",
        b"!-1\r\n",
        b"$1\r\nabc\r\n",
        b"$1\r\na\rb",
        b"$18446744073709551616\r\n",
        b"_x\r\n",
        b"#T\r\n",
        b",1,5\r\n",
        b",\xff\r\n",
        b"=3\r\ntxt\r\n",
        b"=5\r\ntxt.a\r\n",
        b"*1\r\n;1\r\na\r\n",
    ];
    for bytes in table {
        assert_eq!(Frame::decode(bytes), Err(DecodeError::Malformed), "{}", bytes.escape_ascii());
    }
}

#[test]
fn nesting_is_limited_and_declared_lengths_allocate_nothing() {
    let deepest = [b"*1\r\n".repeat(DEEPEST), b":1\r\n".to_vec()].concat();
    assert!(matches!(whole(&deepest), Frame::Array(_)));
    assert_eq!(Frame::decode(&b"*1\r\n".repeat(DEEPEST + 1)), Err(DecodeError::TooDeep));
    assert_eq!(Frame::decode(&b"|1\r\n".repeat(1 << 20)), Err(DecodeError::TooDeep));
    for announced in [&b"$9223372036854775807\r\n"[..], b"*9223372036854775807\r\n", b"%9223372036854775807\r\n"] {
        assert_eq!(Frame::decode(announced), Ok(None));
        assert_eq!(Frame::decode(&[b"*2\r\n", announced].concat()), Ok(None));
    }
}
