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
    let mut reader = Reader::within(payload, room_bytes);
    let value = reader.byte().and_then(|kind| reader.value(kind, forms));
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

/// The payload before the footer; `None` if the footer is missing or wrong, or of a later version. The checksum is
/// verified only if `is_checked`.
pub fn without_footer(bytes: &[u8], is_checked: bool) -> Option<&[u8]> {
    let (checked, checksum) = bytes.split_last_chunk::<8>()?;
    let (payload, version) = checked.split_last_chunk::<2>()?;
    debug_assert_eq!(bytes.len() - payload.len(), FOOTER_BYTES, "a footer has two parts");
    let is_intact = !is_checked || u64::from_le_bytes(*checksum) == crc64(checked);
    (is_intact && u16::from_le_bytes(*version) <= VERSION).then_some(payload)
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
    fn a_footer_of_an_earlier_version_is_accepted() {
        assert_eq!(without_footer(b"\x0b\x004D\xe13\xf2\xe0KS", true), Some(&b""[..]));
        assert_eq!(without_footer(b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", true), Some(&b""[..]));
    }
}
