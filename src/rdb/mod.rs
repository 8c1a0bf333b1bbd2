//! RDB, Redis's serialization format: for DUMP and RESTORE of values and functions, and for files of all data.
//!
//! It opens no file ([`mod@file`] reads from any `Read` and writes to any `Write`), and knows no command. A [`Writer`]
//! appends to a payload, a [`Reader`] reads from one: lengths and texts, of which everything in the format consists
//! (`text`), and values (`save`, `load`). The footer behind a payload detects damage ([`with_footer`],
//! [`without_footer`]); [`dump`] and [`restore`] are for one value in a payload with a footer.
//!
//! To add a type, add its forms to `kind`, an arm to [`kind_of`] and [`Writer::value`], and one to [`Reader::value`]
//! with a file in `load`.
//!
//! Invariant: no input makes it panic, allocate by a length that the input claims, or produce more than a reader's
//! room.
//!
//! Source: payloads that Redis 8.0 wrote, read byte by byte.

mod checksum;
pub mod file;
mod jobs;
mod kind;
mod legacy;
mod listpack;
mod load;
mod lzf;
mod part;
mod save;
mod save_stream;
mod text;
mod vector_set;

pub use checksum::{continued as crc64_continued, crc64};
pub use kind::TEXT;
pub use load::Forms;
pub use save::{kind_of, node_bytes};
pub use text::{Reader, Writer};

use crate::value::{Value, View};

/// The version of the format, which every payload has in its footer.
pub const VERSION: u16 = 12;
/// The version that Valkey 9 writes.
const VALKEY_VERSION: u16 = 80;
/// The byte before the source of a function library.
pub const FUNCTION: u8 = 0xf5;
/// The byte before a library in the form of a version before 7.0.
pub const FUNCTION_PRE_GA: u8 = 0xf6;

/// The bytes of a footer: the version and the checksum of everything before it.
const FOOTER_BYTES: usize = 2 + 8;

/// The reason why a payload is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The payload is damaged.
    Damaged {
        /// The form in which its first byte says that the value is.
        form: &'static str,
    },
    /// The value in the payload is too large.
    TooLarge,
}

/// A value as a payload with a footer; `compresses` decides whether long texts are compressed.
pub fn dump(view: View<'_>, compresses: bool) -> Vec<u8> {
    with_footer(dump_without_footer(view, compresses))
}

/// Like [`dump`], with the earliest version in the footer that has the value's form: a server refuses a payload of a
/// later version than its own, whatever is in it, as Valkey 9 (version 11) and Redis 7.0 (version 10) do.
pub fn portable_dump(view: View<'_>, compresses: bool) -> Vec<u8> {
    with_footer_of(dump_without_footer(view, compresses), kind::version(kind_of(view)))
}

fn dump_without_footer(view: View<'_>, compresses: bool) -> Vec<u8> {
    let mut writer = Writer::new(compresses);
    writer.byte(kind_of(view));
    writer.value(view);
    writer.out
}

/// Reads the value at the start of a payload without its footer, in the forms that the settings require.
///
/// # Errors
/// The reason why the payload is refused.
pub fn restore(payload: &[u8], forms: &Forms, room_bytes: usize) -> Result<Value, LoadError> {
    restore_by(payload, room_bytes, |reader, kind| reader.value(kind, forms))
}

/// Like [`restore`], of a payload of Valkey 9: it has a type of its own, and none of Redis's types from 7.4 on.
///
/// # Errors
/// The reason why the payload is refused.
pub fn restore_of_valkey(payload: &[u8], forms: &Forms, room_bytes: usize) -> Result<Value, LoadError> {
    restore_by(payload, room_bytes, |reader, kind| match kind {
        kind::HASH_VALKEY => reader.valkey_hash(&forms.hash),
        ..=kind::STREAM_3 => reader.value(kind, forms),
        _ => None,
    })
}

fn restore_by(
    payload: &[u8],
    room_bytes: usize,
    read: impl FnOnce(&mut Reader<'_>, u8) -> Option<Value>,
) -> Result<Value, LoadError> {
    let mut reader = Reader::within(payload, room_bytes);
    let value = reader.byte().and_then(|kind| read(&mut reader, kind));
    value.ok_or_else(|| {
        if reader.is_full() {
            return LoadError::TooLarge;
        }
        LoadError::Damaged { form: kind::form(payload.first().copied().unwrap_or(u8::MAX)) }
    })
}

impl Writer {
    /// The payload with its footer.
    pub fn with_footer(self) -> Vec<u8> {
        with_footer(self.out)
    }
}

/// Adds the footer to a payload.
pub fn with_footer(payload: Vec<u8>) -> Vec<u8> {
    with_footer_of(payload, VERSION)
}

/// Adds the footer of a version to a payload.
pub fn with_footer_of(mut payload: Vec<u8>, version: u16) -> Vec<u8> {
    payload.extend_from_slice(&version.to_le_bytes());
    let checksum = crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}

/// The payload before the footer; `None` if the footer is missing or wrong, or of a later version than ours and not of
/// Valkey 9's. The checksum is verified only if `is_checked`.
pub fn without_footer(bytes: &[u8], is_checked: bool) -> Option<&[u8]> {
    let (checked, checksum) = bytes.split_last_chunk::<8>()?;
    let (payload, version) = checked.split_last_chunk::<2>()?;
    debug_assert_eq!(bytes.len() - payload.len(), FOOTER_BYTES, "a footer has two parts");
    let is_intact = !is_checked || u64::from_le_bytes(*checksum) == crc64(checked);
    let is_known = matches!(u16::from_le_bytes(*version), 0..=VERSION | VALKEY_VERSION);
    (is_intact && is_known).then_some(payload)
}

/// Whether the footer of a payload has the version of Valkey 9.
pub fn is_of_valkey(bytes: &[u8]) -> bool {
    let version = bytes.split_last_chunk::<8>().and_then(|(checked, _)| checked.last_chunk::<2>());
    version.is_some_and(|version| u16::from_le_bytes(*version) == VALKEY_VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reply of Redis 8.0 to FUNCTION DUMP when there is no function.
    const EMPTY: &[u8] = b"\x0c\x00\x96\xedh\x80\xf5U<\x93";

    #[test]
    fn the_footer_has_the_bytes_of_redis() {
        assert_eq!(with_footer(Vec::new()), EMPTY);
        assert_eq!(without_footer(EMPTY, true), Some(&b""[..]));
    }

    #[test]
    fn a_footer_that_is_damaged_or_of_a_later_version_is_refused() {
        for broken in [&EMPTY[..9], b"", b"\x0d\x00\xff2\xd5\xf3\x08\xca\xd5\x1a", b"\x0c\x00\x96\xedh\x80\xf5U<\x94"] {
            assert_eq!(without_footer(broken, true), None);
        }
    }

    #[test]
    fn a_payload_of_valkey_is_known_by_its_version() {
        let theirs = with_footer_of(b"\x00\x01v".to_vec(), VALKEY_VERSION);
        assert!(is_of_valkey(&theirs) && !is_of_valkey(EMPTY) && !is_of_valkey(b"P\x00"));
        assert_eq!(without_footer(&theirs, true), Some(&b"\x00\x01v"[..]));
        assert_eq!(without_footer(&with_footer_of(Vec::new(), VALKEY_VERSION + 1), true), None);
    }

    #[test]
    fn a_type_has_the_meaning_that_it_has_in_valkey() {
        let hash = |kind: u8| [&[kind], &b"\x01\x01f\x01v"[..], &[0xff; 8]].concat();
        let restored = |kind: u8| restore_of_valkey(&hash(kind), &Forms::default(), 1 << 20);
        for kind in [kind::HASH_METADATA, kind::HASH_LISTPACK_EX, kind::HASH_LISTPACK_EX_PRE_GA] {
            assert!(matches!(restored(kind), Err(LoadError::Damaged { .. })), "{kind}");
        }
        assert!(restored(kind::HASH_VALKEY).is_ok());
    }

    #[test]
    fn a_footer_of_an_earlier_version_is_accepted() {
        assert_eq!(without_footer(b"\x0b\x004D\xe13\xf2\xe0KS", true), Some(&b""[..]));
        assert_eq!(without_footer(b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", true), Some(&b""[..]));
    }
}
