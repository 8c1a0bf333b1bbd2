//! The query of a URL: parameters with percent-encoded values.

use crate::server::url::digit;

/// The parameters in their order, each with its value, which is empty if there is none. A value that is not well formed
/// is taken as it is written.
pub(super) fn parameters(query: &str) -> impl Iterator<Item = (&str, Vec<u8>)> {
    query.split('&').filter(|part| !part.is_empty()).map(|part| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (name, decoded(value))
    })
}

fn decoded(value: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        let byte = match (first, after) {
            (b'%', [high, low, behind @ ..]) => digit(*high).zip(digit(*low)).map(|(high, low)| {
                rest = behind;
                high << 4 | low
            }),
            (b'+', _) => Some(b' '),
            _ => None,
        };
        bytes.push(byte.unwrap_or(first));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded() {
        let read: Vec<(&str, Vec<u8>)> = parameters("a=1&b&&key=x%3a%2A+y%ff&c=100%&d=%zz").collect();
        let expected: [(&str, &[u8]); 5] =
            [("a", b"1"), ("b", b""), ("key", b"x:* y\xff"), ("c", b"100%"), ("d", b"%zz")];
        assert_eq!(read, expected.map(|(name, value)| (name, value.to_vec())));
        assert_eq!(parameters("").count(), 0);
    }
}
