//! The pattern of a key: the same for all keys whose names differ in numbers and ids alone, so that commands can be
//! grouped by what they are about. Nobody declares patterns; they are read off the names.

/// The length of a UUID as text.
const UUID: usize = 36;

/// The least number of hexadecimal digits that are an id, as those of a hash are.
const LEAST_DIGITS: usize = 16;

/// A key with `{n}` in place of each number, and `{id}` in place of each UUID and each hash.
pub(crate) fn pattern_of(key: &[u8]) -> Vec<u8> {
    let (mut pattern, mut rest) = (Vec::new(), key);
    while !rest.is_empty() {
        let length = if begins_with_uuid(rest) { UUID } else { word_length(rest).max(1) };
        let (word, behind) = rest.split_at(length);
        let is_hexadecimal = word.iter().all(u8::is_ascii_hexdigit) && word.iter().any(u8::is_ascii_digit);
        pattern.extend_from_slice(match () {
            () if word.iter().all(u8::is_ascii_digit) => b"{n}",
            () if length == UUID && word[8] == b'-' => b"{id}",
            () if is_hexadecimal && length >= LEAST_DIGITS => b"{id}",
            () => word,
        });
        rest = behind;
    }
    pattern
}

/// The number of letters and digits at the beginning.
fn word_length(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count()
}

fn begins_with_uuid(text: &[u8]) -> bool {
    let Some((uuid, behind)) = text.split_at_checked(UUID) else { return false };
    let is_right = |(place, byte): (usize, &u8)| match place {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    uuid.iter().enumerate().all(is_right) && word_length(behind) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ids_of_a_key_are_left_out_and_words_stay() {
        for (key, expected) in [
            ("", ""),
            ("jobs", "jobs"),
            ("user:17:cart", "user:{n}:cart"),
            ("17", "{n}"),
            ("online:2026-07-02", "online:{n}-{n}-{n}"),
            ("{user:17}:a.-1", "{user:{n}}:a.-{n}"),
            ("order2:v1", "order2:v1"),
            ("job:0f8fad5b-d9cb-469f-a165-70867728950e:log", "job:{id}:log"),
            ("0F8FAD5B-D9CB-469F-A165-70867728950E", "{id}"),
            ("0f8fad5b-d9cb-469f-a165-70867728950e1", "0f8fad5b-d9cb-469f-a165-70867728950e1"),
            ("0f8fad5b-d9cb-469f-a165-70867728950", "0f8fad5b-d9cb-469f-a165-{n}"),
            ("blob:9e107d9d372bb6826bd81d3542a419d6", "blob:{id}"),
            ("blob:9e107d9d372bb682", "blob:{id}"),
            ("blob:9e107d9d372bb68", "blob:9e107d9d372bb68"),
            ("face:deadbeefdeadbeef", "face:deadbeefdeadbeef"),
            ("caf\u{e9}:7", "caf\u{e9}:{n}"),
        ] {
            assert_eq!(String::from_utf8_lossy(&pattern_of(key.as_bytes())), expected, "{key}");
        }
        assert_eq!(pattern_of(b"\xff\x001"), b"\xff\x00{n}");
    }
}
