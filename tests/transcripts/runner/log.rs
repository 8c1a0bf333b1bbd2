//! The log of changes as lines: a command each, with its times relative to now.

use crate::reply::{Reply, decode};
use crate::words::quote;

/// The longest time before or after now that is a time, and no other number.
const NEAR_MS: i64 = 30 * 86_400_000;
/// The age up to which a time counts as now, as a real clock moves on until the log is read.
const JUST_NOW_MS: i64 = 1000;

/// The commands in `bytes`, a line for each. A time is written as `now` or `now+1000`, rounded up to `step_ms`.
pub(crate) fn lines(mut bytes: &[u8], now_ms: i64, step_ms: i64) -> Vec<String> {
    let mut lines = Vec::new();
    while !bytes.is_empty() {
        let Ok((Reply::Array(words), used)) = decode(bytes) else {
            lines.push(format!("(malformed) {}", quote(bytes)));
            break;
        };
        let words = words.iter().map(|word| match word {
            Reply::Bulk(word) => shown(word, now_ms, step_ms),
            other => format!("(no word) {other:?}"),
        });
        lines.push(words.collect::<Vec<_>>().join(" "));
        bytes = &bytes[used..];
    }
    lines
}

fn shown(word: &[u8], now_ms: i64, step_ms: i64) -> String {
    let text = std::str::from_utf8(word).unwrap_or_default();
    let (ms, rest) = text.find('-').map_or((text, ""), |at| text.split_at(at));
    if ms.len() == 13
        && let Ok(ms) = ms.parse::<i64>()
        && (-JUST_NOW_MS..NEAR_MS).contains(&(ms - now_ms))
    {
        let after_ms = (ms - now_ms + step_ms - 1).div_euclid(step_ms) * step_ms;
        return if after_ms <= 0 { format!("now{rest}") } else { format!("now+{after_ms}{rest}") };
    }
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:+*~=$>(".contains(byte);
    if !word.is_empty() && word.iter().all(is_plain) { text.to_owned() } else { quote(word) }
}

#[test]
fn a_log_is_shown_as_commands_with_relative_times() {
    let log = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\na b\r\n*2\r\n$13\r\n1700000001990\r\n$15\r\n1700000000000-1\r\n";
    assert_eq!(lines(log, 1_700_000_000_000, 100), ["SET k \"a b\"", "now+2000 now-1"]);
}
