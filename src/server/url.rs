//! Parts of the URLs that clients connect by.

/// A password, escaped for a URL.
pub(crate) fn escaped(password: &str) -> String {
    let mut text = String::with_capacity(password.len());
    for byte in password.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(byte.into());
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// A part of a URL without its escapes; `None` if an escape is malformed, or the bytes are no text.
#[cfg(feature = "program")]
pub(crate) fn unescaped(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' { digit(rest.next()?)? << 4 | digit(rest.next()?)? } else { byte });
    }
    String::from_utf8(bytes).ok()
}

/// The value of a hexadecimal digit.
#[cfg(feature = "page")]
pub(crate) fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(all(test, feature = "program"))]
mod tests {
    use super::*;

    #[test]
    fn a_password_may_contain_the_special_characters_of_urls() {
        let password = "a:b@c/d é";
        assert_eq!(escaped(password), "a%3Ab%40c%2Fd%20%C3%A9");
        assert_eq!(unescaped(&escaped(password)).as_deref(), Some(password));
    }

    #[test]
    fn a_malformed_escape_is_refused() {
        for part in ["%", "%4", "%+1", "%zz", "%ff"] {
            assert_eq!(unescaped(part), None, "{part}");
        }
    }
}
