//! The parser: what it reads, refuses and leaves, compared with the replies of Redis 8.0.6 and with another decoder.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::OwnedFrame;

type Words = Vec<Vec<u8>>;

const LIMITS: Limits = Limits { max_bulk_bytes: 512 * 1024 * 1024, authenticated: true };
const UNAUTHENTICATED: Limits = Limits { authenticated: false, ..LIMITS };

/// Drives a parser as a connection does: each piece is one read. Returns the requests, then how the reading ended: an
/// error, or the number of bytes that are left over.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: &Limits) -> (Vec<Words>, Result<usize, ProtocolError>) {
    let (mut parser, mut input, mut requests) = (Parser::new(), Vec::new(), Vec::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        let mut taken = 0;
        loop {
            match parser.next(&input[taken..], limits) {
                Ok(Some(request)) => {
                    assert!(!request.is_empty());
                    requests.push(request.iter().map(<[u8]>::to_vec).collect());
                    taken += parser.consumed();
                }
                Ok(None) => break,
                Err(error) => return (requests, Err(error)),
            }
        }
        taken += parser.consumed();
        input.drain(..taken);
    }
    (requests, Ok(input.len()))
}

fn read_whole(input: &[u8]) -> (Vec<Words>, Result<usize, ProtocolError>) {
    read([input], &LIMITS)
}

fn error_text(input: &[u8], limits: &Limits) -> Option<String> {
    let error = read([input], limits).1.err()?;
    Some(error.text().escape_ascii().to_string())
}

fn encode(words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn ping() -> Words {
    vec![b"PING".to_vec()]
}

/// Redis 8.0.6 replied to each of these with one PONG and kept the connection open.
#[test]
fn the_requests_after_empty_ones_and_sloppy_line_ends_are_parsed() {
    let table: [&[u8]; 25] = [
        b"*0\r\nPING\r\n",
        b"*-1\r\nPING\r\n",
        b"*-2\r\nPING\r\n",
        b"*-9223372036854775808\r\nPING\r\n",
        b"*0\r\n*0\r\n\r\n\nPING\r\n",
        b"*0\rZPING\r\n",
        b"*-1\rQPING\r\n",
        b"\r\nPING\r\n",
        b"\nPING\r\n",
        b"   \r\nPING\r\n",
        b"\r\r\nPING\r\n",
        b"PING\n",
        b"PING\r\n",
        b"PING\r\r\n",
        b"PING \r\n",
        b" PING\r\n",
        b"\tPING\t\n",
        b"*1\r\n$4\r\nPING\r\n",
        b"*1\rX$4\r\nPING\r\n",
        b"*1\r\r$4\r\nPING\r\n",
        b"*1\r\0$4\r\nPING\r\n",
        b"*1\r\n$4\rXPING\r\n",
        b"*1\r\n$4\r\nPINGXX",
        b"*1\r\n$4\r\nPING\n\n",
        b"*0\r\n*1\r\n$4\r\nPING\r\n",
    ];
    for input in table {
        assert_eq!(read_whole(input), (vec![ping()], Ok(0)), "{}", input.escape_ascii());
    }
}

/// Redis 8.0.6 replied to each of these with this error and closed the connection.
#[test]
fn each_fault_has_the_error_text_of_redis() {
    let table: [(&[u8], &str); 27] = [
        (b"*\r\nPING\r\n", "invalid multibulk length"),
        (b"*-\r\nPING\r\n", "invalid multibulk length"),
        (b"*+1\r\nPING\r\n", "invalid multibulk length"),
        (b"*01\r\n$4\r\nPING\r\n", "invalid multibulk length"),
        (b"*-0\r\nPING\r\n", "invalid multibulk length"),
        (b"* 1\r\nPING\r\n", "invalid multibulk length"),
        (b"*1 \r\nPING\r\n", "invalid multibulk length"),
        (b"*a\r\nPING\r\n", "invalid multibulk length"),
        (b"*1\n$4\r\nPING\r\n", "invalid multibulk length"),
        (b"*2147483648\r\n", "invalid multibulk length"),
        (b"*9223372036854775808\r\n", "invalid multibulk length"),
        (b"*-9223372036854775809\r\nPING\r\n", "invalid multibulk length"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$\r\n", "invalid bulk length"),
        (b"*1\r\n$a\r\n", "invalid bulk length"),
        (b"*1\r\n$04\r\nPING\r\n", "invalid bulk length"),
        (b"*1\r\n$+4\r\nPING\r\n", "invalid bulk length"),
        (b"*1\r\n$-0\r\n\r\n", "invalid bulk length"),
        (b"*1\r\n$536870913\r\n", "invalid bulk length"),
        (b"*1\r\n$9999999999999999999999\r\n", "invalid bulk length"),
        (b"*1\r\nPING\r\n", "expected \\'$\\', got \\'P\\'"),
        (b"*3\r\n$3\r\nSET\r\n$1\r\na\r\nx\r\n", "expected \\'$\\', got \\'x\\'"),
        (b"*1\r\n\r\n", "expected \\'$\\', got \\' \\'"),
        (b"*1\r\n\n\r\n", "expected \\'$\\', got \\' \\'"),
        (b"*1\r\n\xff\r\n", "expected \\'$\\', got \\'\\xff\\'"),
        (b"ECHO \"a\r\n", "unbalanced quotes in request"),
        (b"ECHO 'a'b\r\n", "unbalanced quotes in request"),
    ];
    for (input, text) in table {
        let expected = format!("Protocol error: {text}");
        assert_eq!(error_text(input, &LIMITS), Some(expected), "{}", input.escape_ascii());
    }
}

/// Redis 8.0.6 waited for more bytes after each of these.
#[test]
fn incomplete_requests_are_waited_for() {
    let table: [&[u8]; 13] = [
        b"",
        b"*",
        b"*1\r",
        b"*1\n$4\nPING\n",
        b"*2147483647\r\n",
        b"*1\r\n$536870912\r\n",
        b"*1\r\nP",
        b"*1\r\nPIN\r",
        b"*1\r\n\0\r\n",
        b"*1\0\r\n",
        b"PING\0\n",
        b"\0\r\nPING\r\n",
        b"*1\r\n$4\r\nPING\r",
    ];
    for input in table {
        assert_eq!(read_whole(input), (vec![], Ok(input.len())), "{}", input.escape_ascii());
    }
}

#[test]
fn of_a_line_64_kib_may_come_without_its_end_and_not_one_byte_more() {
    let table = [
        ("", "", "A", "inline request"),
        ("", "\0", "A\n", "inline request"),
        ("", "*", "1", "mbulk count string"),
        ("*1\r\n", "$", "1", "bulk count string"),
        ("*1\r\n", "$\0", "1\r\n", "bulk count string"),
    ];
    for (before, start, filler, what) in table {
        let line = [start, &filler.repeat(MAX_LINE_BYTES + 1)].concat();
        let full = [before, &line[..MAX_LINE_BYTES]].concat();
        assert_eq!(read_whole(full.as_bytes()), (vec![], Ok(full.len())), "{what}");
        let over = [before, &line[..=MAX_LINE_BYTES]].concat();
        assert_eq!(error_text(over.as_bytes(), &LIMITS), Some(format!("Protocol error: too big {what}")));
    }
    for more in [0, 1, 1000] {
        let line = "A".repeat(MAX_LINE_BYTES + more);
        let whole = [&line, "\r\n"].concat();
        assert_eq!(
            read([whole.as_bytes()], &LIMITS),
            (vec![vec![line.clone().into_bytes()]], Ok(0)),
            "{more} more at once"
        );
        let in_two = [line.as_bytes(), b"\r\n"];
        assert_eq!(read(in_two, &LIMITS).0.len(), usize::from(more == 0), "{more} more, and the end later");
    }
    let too_long = ["A".repeat(MAX_WHOLE_LINE_BYTES).as_bytes(), b"\r\n"].concat();
    assert!(error_text(&too_long, &LIMITS).is_some_and(|text| text.ends_with("too big inline request")));
}

#[test]
fn a_client_may_send_ten_words_of_16_kib_until_it_logs_in() {
    assert_eq!(read([&b"*10\r\n$16384\r\n"[..]], &UNAUTHENTICATED), (vec![], Ok(13)));
    let text = |input| error_text(input, &UNAUTHENTICATED);
    assert_eq!(text(b"*11\r\n").as_deref(), Some("Protocol error: unauthenticated multibulk length"));
    assert_eq!(text(b"*-1\r\n*11\r\n").as_deref(), Some("Protocol error: unauthenticated multibulk length"));
    assert_eq!(text(b"*2147483648\r\n").as_deref(), Some("Protocol error: invalid multibulk length"));
    assert_eq!(text(b"*1\r\n$16385\r\n").as_deref(), Some("Protocol error: unauthenticated bulk length"));
    assert_eq!(text(b"*1\r\n$536870913\r\n").as_deref(), Some("Protocol error: invalid bulk length"));
    let mut parser = Parser::new();
    let login = b"AUTH x\r\n*11\r\n";
    assert!(matches!(parser.next(login, &UNAUTHENTICATED), Ok(Some(_))));
    let after = &login[parser.consumed()..];
    assert!(matches!(parser.next(after, &LIMITS), Ok(None)));
}

#[test]
fn declared_lengths_allocate_nothing() {
    let mut parser = Parser::new();
    assert!(matches!(parser.next(b"*2147483647\r\n$536870912\r\n", &LIMITS), Ok(None)));
    assert!(parser.words.capacity() <= KEPT_WORDS && parser.text.capacity() <= KEPT_TEXT_BYTES);
    let boundless = Limits { max_bulk_bytes: usize::MAX, authenticated: true };
    let mut parser = Parser::new();
    assert!(matches!(parser.next(b"*1\r\n$9223372036854775807\r\n", &boundless), Ok(None)));
}

#[test]
fn a_parser_frees_the_memory_of_a_request_of_many_words() {
    let mut parser = Parser::new();
    let long = encode(&vec![b"x".to_vec(); 100_000]);
    assert_eq!(parser.next(&long, &LIMITS).ok().flatten().map(|request| request.len()), Some(100_000));
    assert!(matches!(parser.next(b"PING\r\n", &LIMITS), Ok(Some(_))));
    assert!(parser.words.capacity() < 2 * KEPT_WORDS);
}

#[test]
fn reading_a_missing_word_returns_none() {
    let spans = [Span { start: 0, end: 4 }, Span { start: 3, end: 9 }];
    let request = Request::new(b"PING", &spans);
    assert_eq!((request.len(), request.get(0)), (2, Some(&b"PING"[..])));
    assert_eq!((request.get(1), request.get(2)), (Some(&b""[..]), None));
}

/// Every order of up to five of these: such mixes are where a parser with two request forms can lose its position.
#[test]
fn every_mix_of_empty_and_full_requests_is_parsed() {
    let kinds: [&[u8]; 6] = [b"\r\n", b"*0\r\n", b"*-1\r\n", b"PING\r\n", b"*1\r\n$4\r\nPING\r\n", b"*1\r\n$4\r\nPI"];
    let mut sequences: Vec<Vec<usize>> = vec![vec![]];
    for _ in 0..5 {
        let longer: Vec<_> = sequences
            .iter()
            .flat_map(|sequence| (0..kinds.len()).map(move |kind| [&sequence[..], &[kind]].concat()))
            .collect();
        for sequence in &longer {
            // A partial request is completed by the piece after it.
            let mut pieces: Vec<Vec<u8>> = sequence.iter().map(|&kind| kinds[kind].to_vec()).collect();
            let mut unfinished = false;
            for (piece, &kind) in pieces.iter_mut().zip(sequence) {
                if unfinished {
                    piece.splice(..0, *b"NG\r\n");
                }
                unfinished = kind == 5;
            }
            let full = sequence.iter().filter(|&&kind| kind >= 3).count() - usize::from(unfinished);
            let left = if unfinished { kinds[5].len() } else { 0 };
            let expected = (vec![ping(); full], Ok(left));
            assert_eq!(read(pieces.iter().map(Vec::as_slice), &LIMITS), expected, "{sequence:?} in pieces");
            assert_eq!(read_whole(&pieces.concat()), expected, "{sequence:?} in one read");
        }
        sequences = longer;
    }
}

fn any_request() -> impl Strategy<Value = Words> {
    vec(vec(any::<u8>(), 0..40), 1..6)
}

/// Bytes that look like requests often enough to reach every branch.
fn near_requests() -> impl Strategy<Value = Vec<u8>> {
    let scrap = prop_oneof![
        4 => prop::sample::select(vec![
            "\r\n", "*", "$", "*1\r\n", "*2\r\n", "*-1\r\n", "$1\r\n", "$0\r\n\r\n", "$3\r\nabc\r\n", "PING\r\n",
            "\"", "'", "\\x4", "\r", "\n", "\0", "123456789", "-", "0",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..8),
    ];
    vec(scrap, 0..20).prop_map(|scraps| scraps.concat())
}

proptest! {
    #[test]
    fn valid_frames_read_as_another_decoder_reads_them(requests in vec(any_request(), 1..6)) {
        let input: Vec<u8> = requests.iter().flat_map(|words| encode(words)).collect();
        let (mut decoded, mut rest) = (Vec::new(), &input[..]);
        while let Some((OwnedFrame::Array(words), bytes)) = decode(rest).expect("valid frames") {
            decoded.push(words.into_iter().map(|word| match word {
                OwnedFrame::BulkString(word) => word,
                other => panic!("{other:?}"),
            }).collect::<Words>());
            rest = &rest[bytes..];
        }
        prop_assert_eq!(read_whole(&input), (decoded, Ok(0)));
    }

    #[test]
    fn the_split_of_input_into_reads_makes_no_difference(input in near_requests(), cut: prop::sample::Index) {
        let whole = read_whole(&input);
        let (head, tail) = input.split_at(cut.index(input.len() + 1));
        prop_assert_eq!(read([head, tail], &LIMITS), whole.clone());
        prop_assert_eq!(read(input.chunks(1), &LIMITS), whole);
    }

    #[test]
    fn no_input_makes_the_parser_panic_or_consume_more_than_it_has(input in vec(any::<u8>(), 0..200), login: bool) {
        let limits = Limits { max_bulk_bytes: 100, authenticated: login };
        let mut parser = Parser::new();
        let mut rest = &input[..];
        while let Ok(Some(_)) = parser.next(rest, &limits) {
            prop_assert!((1..=rest.len()).contains(&parser.consumed()));
            rest = &rest[parser.consumed()..];
        }
        prop_assert!(parser.consumed() <= rest.len());
    }
}
