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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_may_contain_the_special_characters_of_urls() {
        assert_eq!(escaped("a:b@c/d é"), "a%3Ab%40c%2Fd%20%C3%A9");
    }
}
