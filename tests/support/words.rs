//! Splits a command line of a transcript into arguments.
//!
//! Quoting is that of an interactive redis-cli: `"a\x00\n"` knows escapes, `'a b'` does not. Two forms are added, both
//! only where a word starts with an unquoted brace, so that long commands stay readable:
//!
//! - `{x*65}` is one argument: `x` written 65 times;
//! - `{1..129: % m%}` is the words after the colon once for every number, with `%` replaced by the number.

/// One argument, decoded.
pub(crate) type Word = Vec<u8>;

/// Splits `line` into the arguments that it represents.
pub(crate) fn split(line: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        rest = match counted(rest)? {
            Some((expanded, after)) => {
                words.extend(expanded);
                after
            }
            None => {
                let (word, after) = one_word(rest)?;
                words.push(repeated(&word, rest).unwrap_or(word));
                after
            }
        };
        rest = rest.trim_start();
    }
    Ok(words)
}

/// `{1..3: a%}` at the start of `text`: the words that it represents, and the text after it.
fn counted(text: &str) -> Result<Option<(Vec<Word>, &str)>, String> {
    let Some((range, rest)) = text.strip_prefix('{').and_then(|inner| inner.split_once(':')) else {
        return Ok(None);
    };
    let bounds = range.split_once("..").and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
    let Some((low, high)) = bounds else {
        return Ok(None);
    };
    let (template, after) = rest.split_once('}').ok_or("a `{1..9:` without its `}`")?;
    let mut words = Vec::new();
    for number in low..=high {
        let number: u32 = number;
        words.extend(split(&template.replace('%', &number.to_string()))?);
    }
    Ok(Some((words, after)))
}

/// `{x*65}`, when the unquoted `word` that `text` starts with has that form.
fn repeated(word: &[u8], text: &str) -> Option<Word> {
    let inner = word.strip_prefix(b"{")?.strip_suffix(b"}")?;
    if !text.as_bytes().starts_with(word) {
        return None;
    }
    let star = inner.iter().rposition(|&byte| byte == b'*')?;
    let times: usize = std::str::from_utf8(&inner[star + 1..]).ok()?.parse().ok()?;
    (star > 0).then(|| inner[..star].repeat(times))
}

/// The first word of `text`, and what follows it.
fn one_word(text: &str) -> Result<(Word, &str), String> {
    let bytes = text.as_bytes();
    let mut word = Vec::new();
    let mut at = 0;
    while at < bytes.len() && !bytes[at].is_ascii_whitespace() {
        at = match bytes[at] {
            b'"' => double_quoted(text, at + 1, &mut word)?,
            b'\'' => single_quoted(text, at + 1, &mut word)?,
            byte => {
                word.push(byte);
                at + 1
            }
        };
    }
    Ok((word, &text[at..]))
}

/// Reads up to the closing quote; returns the place after it.
fn double_quoted(text: &str, start: usize, word: &mut Word) -> Result<usize, String> {
    let bytes = text.as_bytes();
    let mut at = start;
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (None, _) => return Err(format!("unbalanced quotes in `{text}`")),
            (Some(b'"'), next) => return closed(at + 1, next, text),
            (Some(b'\\'), Some(b'x')) => {
                let digits = text.get(at + 2..at + 4).ok_or("`\\x` needs two digits")?;
                word.push(u8::from_str_radix(digits, 16).map_err(|_| format!("not hexadecimal: `\\x{digits}`"))?);
                at += 4;
            }
            (Some(b'\\'), Some(&escaped)) => {
                word.push(unescape(escaped));
                at += 2;
            }
            (Some(&byte), _) => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

/// Reads up to the closing quote; returns the place after it.
fn single_quoted(text: &str, start: usize, word: &mut Word) -> Result<usize, String> {
    let bytes = text.as_bytes();
    let mut at = start;
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (None, _) => return Err(format!("unbalanced quotes in `{text}`")),
            (Some(b'\''), next) => return closed(at + 1, next, text),
            (Some(b'\\'), Some(b'\'')) => {
                word.push(b'\'');
                at += 2;
            }
            (Some(&byte), _) => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

fn closed(after: usize, next: Option<&u8>, text: &str) -> Result<usize, String> {
    match next {
        Some(byte) if !byte.is_ascii_whitespace() => Err(format!("a closing quote must end its word in `{text}`")),
        _ => Ok(after),
    }
}

fn unescape(letter: u8) -> u8 {
    match letter {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

/// `bytes` as a quoted word that [`split`] reads back, in redis-cli's writing.
pub(crate) fn quote(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => text.extend(['\\', char::from(byte)]),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            8 => text.push_str("\\b"),
            7 => text.push_str("\\a"),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}
