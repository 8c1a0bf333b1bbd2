//! Fuzzes glob patterns and texts: no panic, no endless search, and every required match is found.

use dunlin::value::glob;

/// The first byte is the length of the pattern.
pub fn run(bytes: &[u8]) {
    let Some((&length, rest)) = bytes.split_first() else { return };
    let (pattern, text) = rest.split_at(usize::from(length).min(rest.len()));
    let exact = glob::matches(pattern, text, false);
    let _ = glob::matches(pattern, text, true);
    let escaped: Vec<u8> = text.iter().flat_map(|&byte| [b'\\', byte]).collect();
    assert!(glob::matches(&escaped, text, false), "a text matches itself");
    // As in Redis, only the empty pattern matches an empty text.
    if text.is_empty() {
        return;
    }
    assert!(glob::matches(&[escaped.as_slice(), b"*"].concat(), text, false), "and with anything behind it");
    assert!(glob::matches(&vec![b'?'; text.len()], text, false), "and any bytes of its number");
    if exact && !pattern.ends_with(b"\\") {
        let open = [pattern, b"*"].concat();
        assert!(pattern.contains(&b'[') || glob::matches(&open, &[text, b"more"].concat(), false));
    }
}
