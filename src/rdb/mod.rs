//! Redis's own format of data as bytes, the one of its files: for DUMP and RESTORE of values and functions.
//!
//! It opens no file, and knows neither values nor commands. Here are [`read_text`] and [`write_text`], of which everything
//! in the format is made, and the seal behind a payload ([`sealed`], [`unsealed`]), by which a damaged one is known.
//!
//! Invariant: no bytes make it panic or allocate more than a small multiple of what is there.
//!
//! Source: payloads that Redis 8.0 wrote, read byte by byte.

mod checksum;
mod lzf;
mod text;

pub use checksum::crc64;
pub use text::{Reader, write_text};

/// The version of the format, which payloads bear.
pub const VERSION: u16 = 12;
/// Before the source of a library of functions.
pub const FUNCTION: u8 = 0xf5;
/// Before a library in the form of a version before 7.0.
pub const EARLY_FUNCTION: u8 = 0xf6;

/// Bytes of a seal: the version and the checksum of all that stands before it.
const SEAL_BYTES: usize = 2 + 8;

/// Seals a payload.
pub fn sealed(mut payload: Vec<u8>) -> Vec<u8> {
    payload.extend_from_slice(&VERSION.to_le_bytes());
    let checksum = crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}

/// What stands before the seal; `None` when the seal is missing or wrong, or of a later version.
pub fn unsealed(bytes: &[u8]) -> Option<&[u8]> {
    let (checked, checksum) = bytes.split_last_chunk::<8>()?;
    let (payload, version) = checked.split_last_chunk::<2>()?;
    debug_assert_eq!(bytes.len() - payload.len(), SEAL_BYTES, "a seal has two parts");
    let is_right = u16::from_le_bytes(*version) <= VERSION && u64::from_le_bytes(*checksum) == crc64(checked);
    is_right.then_some(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What FUNCTION DUMP of Redis 8.0 answers when there is no function.
    const EMPTY: &[u8] = b"\x0c\x00\x96\xedh\x80\xf5U<\x93";

    #[test]
    fn the_seal_is_that_of_redis() {
        assert_eq!(sealed(Vec::new()), EMPTY);
        assert_eq!(unsealed(EMPTY), Some(&b""[..]));
    }

    #[test]
    fn a_seal_that_is_broken_or_of_the_future_is_refused() {
        for broken in [&EMPTY[..9], b"", b"\x0d\x00\xff2\xd5\xf3\x08\xca\xd5\x1a", b"\x0c\x00\x96\xedh\x80\xf5U<\x94"] {
            assert_eq!(unsealed(broken), None);
        }
    }

    #[test]
    fn a_seal_of_an_earlier_version_is_good() {
        assert_eq!(unsealed(b"\x0b\x004D\xe13\xf2\xe0KS"), Some(&b""[..]));
        assert_eq!(unsealed(b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), Some(&b""[..]));
    }
}
