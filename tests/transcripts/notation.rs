//! The notation of transcripts: the words of a command and the lines of a reply.

use crate::reply::{Order, Protocol, Undecoded, decode, render};
use crate::words::{quote, split};

fn words(line: &str) -> Vec<String> {
    split(line)
        .expect("it is well formed")
        .into_iter()
        .map(|word| String::from_utf8(word).expect("it is well formed"))
        .collect()
}

#[test]
fn words_are_split_as_redis_cli_splits_them() {
    assert_eq!(words(r#"SET "a b" 'c "d"' e"#), ["SET", "a b", "c \"d\"", "e"]);
    assert_eq!(split(r#""\x00\xff\n""#).expect("it is well formed"), [b"\x00\xff\n"]);
    assert_eq!(words(r#"SET k """#), ["SET", "k", ""]);
    assert!(split("\"open").is_err());
    assert!(split("\"a\"b").is_err());
}

#[test]
fn braces_repeat_text_and_count_words() {
    assert_eq!(words("SET k {ab*3}"), ["SET", "k", "ababab"]);
    assert_eq!(words("ZADD z {8..10: % m%}"), ["ZADD", "z", "8", "m8", "9", "m9", "10", "m10"]);
    assert_eq!(words("GET {user}:1"), ["GET", "{user}:1"]);
    assert_eq!(words("GET \"{a*3}\""), ["GET", "{a*3}"]);
}

#[test]
fn a_quoted_word_reads_back_as_itself() {
    let bytes: Vec<u8> = (0..=255).collect();
    assert_eq!(split(&quote(&bytes)).expect("it is well formed"), [bytes]);
}

fn rendered(bytes: &[u8], protocol: Protocol) -> Vec<String> {
    let (reply, used) = decode(bytes).expect("it is well formed");
    assert_eq!(used, bytes.len());
    render(&reply, protocol, Order::Given)
}

#[test]
fn nested_arrays_are_indented() {
    let bytes = b"*2\r\n$1\r\na\r\n*2\r\n:1\r\n*0\r\n";
    assert_eq!(rendered(bytes, Protocol::Resp2), ["1) \"a\"", "2) 1) (integer) 1", "   2) (empty array)"]);
}

#[test]
fn maps_show_each_value_behind_its_key() {
    let bytes = b"%2\r\n+a\r\n,1.5\r\n+b\r\n*2\r\n#t\r\n_\r\n";
    assert_eq!(rendered(bytes, Protocol::Resp3), ["1# a => (double) 1.5", "2# b => 1) (true)", "   2) (nil)"]);
}

#[test]
fn the_kinds_of_null_are_distinguished() {
    assert_eq!(rendered(b"$-1\r\n", Protocol::Resp2), ["(nil)"]);
    assert_eq!(rendered(b"*-1\r\n", Protocol::Resp2), ["(nil array)"]);
    assert_eq!(rendered(b"_\r\n", Protocol::Resp3), ["(nil)"]);
    assert_eq!(rendered(b"_\r\n", Protocol::Resp2), ["(null)"]);
    assert_eq!(rendered(b"$-1\r\n", Protocol::Resp3), ["(nil bulk)"]);
}

#[test]
fn a_space_at_the_end_of_an_error_can_be_seen() {
    assert_eq!(rendered(b"-ERR with: \r\n", Protocol::Resp2), ["(error) ERR with:\\x20"]);
}

#[test]
fn every_prefix_of_a_reply_is_incomplete() {
    let bytes = b"*3\r\n$3\r\na\r\n\r\n%1\r\n+k\r\n:-12\r\n=7\r\ntxt:abc\r\n";
    for end in 0..bytes.len() {
        assert_eq!(decode(&bytes[..end]), Err(Undecoded::Incomplete), "{end} bytes");
    }
    assert!(decode(bytes).is_ok());
}

#[test]
fn broken_bytes_are_refused() {
    for bytes in [b"?1\r\n".as_slice(), b":01\r\n", b"$-2\r\n", b"+a\n", b"$1\r\nabc\r\n", b"#x\r\n"] {
        assert!(matches!(decode(bytes), Err(Undecoded::Malformed(_))), "{}", quote(bytes));
    }
}

#[test]
fn sorting_inner_arrays_keeps_the_outer_order() {
    let (reply, _) = decode(b"*2\r\n$1\r\n0\r\n*2\r\n$1\r\nb\r\n$1\r\na\r\n").expect("it is well formed");
    assert_eq!(render(&reply, Protocol::Resp2, Order::InnerSorted), ["1) \"0\"", "2) 1) \"a\"", "   2) \"b\""]);
}
