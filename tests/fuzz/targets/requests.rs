//! Fuzzes the request parser with bytes that are split anywhere: no panic, no request beyond the received bytes, and
//! the same requests whether the bytes arrive at once or one by one.

use dunlin::resp::{Limits, Parser};

const LIMITS: Limits = Limits { max_bulk_bytes: 1 << 20, authenticated: true };

/// The requests in `bytes`, of which `step` arrive at a time, until they end or break the protocol.
fn requests(bytes: &[u8], step: usize) -> Vec<Vec<Vec<u8>>> {
    let (mut parser, mut start, mut end, mut found) = (Parser::new(), 0, 0, Vec::new());
    while end < bytes.len() {
        end = (end + step).min(bytes.len());
        loop {
            let words = match parser.next(&bytes[start..end], &LIMITS) {
                Err(_) => return found,
                Ok(request) => request.map(|request| request.iter().map(<[u8]>::to_vec).collect()),
            };
            let consumed = parser.consumed();
            assert!(consumed <= end - start);
            start += consumed;
            match words {
                Some(words) => found.push(words),
                None => break,
            }
        }
    }
    found
}

pub fn run(bytes: &[u8]) {
    let at_once = requests(bytes, bytes.len().max(1));
    assert_eq!(requests(bytes, 1), at_once);
}
