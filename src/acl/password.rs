//! Passwords, of which only the SHA-256 is stored.

use std::cmp::Ordering;
use std::hint::black_box;

use sha2::{Digest, Sha256};

use crate::value::hexadecimal;

const BYTES: usize = 32;

#[cfg(test)]
thread_local! {
    static HASHED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The SHA-256 of a password.
#[derive(Clone, Copy, Debug)]
pub struct Password([u8; BYTES]);

impl Password {
    /// Hashes a password.
    pub fn of(text: &[u8]) -> Password {
        #[cfg(test)]
        HASHED.set(HASHED.get() + 1);
        Password(Sha256::digest(text).into())
    }

    /// The number of passwords hashed on this thread so far.
    #[cfg(test)]
    pub(super) fn hashed() -> usize {
        HASHED.get()
    }

    /// Reads a hash from 64 hexadecimal digits in lower case.
    pub fn parse(digits: &[u8]) -> Option<Password> {
        if digits.len() != 2 * BYTES {
            return None;
        }
        let mut bytes = [0; BYTES];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Password(bytes))
    }

    /// The hash in 64 hexadecimal digits.
    pub fn digits(&self) -> String {
        hexadecimal::text(&self.0)
    }
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

/// The comparison takes the same time wherever two of them differ.
impl PartialEq for Password {
    fn eq(&self, other: &Password) -> bool {
        let differences = self.0.iter().zip(&other.0).fold(0, |differences, (one, two)| differences | one ^ two);
        black_box(differences) == 0
    }
}

impl Eq for Password {}

/// The order for the list of a user's passwords, which only users that may set passwords change.
impl Ord for Password {
    fn cmp(&self, other: &Password) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Password {
    fn partial_cmp(&self, other: &Password) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_shown_as_its_hash() {
        let digits = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        assert_eq!(Password::of(b"hello").digits(), digits);
        assert_eq!(Password::parse(digits.as_bytes()), Some(Password::of(b"hello")));
    }

    #[test]
    fn a_hash_has_64_digits_in_lower_case() {
        let digits = "2CF24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        for wrong in [digits, &digits[1..], &digits.replace('C', "g"), ""] {
            assert_eq!(Password::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
