//! The checksum of payloads: CRC-64 with Jones' polynomial, reflected, with the initial value 0.
//!
//! Costs: 16 tables of 2 KiB, computed at compile time; 16 bytes at a time.

use std::fmt;

use crc::{CRC_64_REDIS, Crc, Digest, Table};

static CRC: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_REDIS);

/// Computes the checksum of bytes.
pub fn crc64(bytes: &[u8]) -> u64 {
    CRC.checksum(bytes)
}

/// The checksum of bytes that come in parts.
#[derive(Clone)]
pub(super) struct RunningChecksum(Digest<'static, u64, Table<16>>);

impl RunningChecksum {
    pub(super) fn new() -> RunningChecksum {
        RunningChecksum(CRC.digest())
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all bytes so far.
    pub(super) fn value(&self) -> u64 {
        self.0.clone().finalize()
    }
}

impl fmt::Debug for RunningChecksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunningChecksum({:x})", self.value())
    }
}

#[cfg(test)]
mod tests {
    use super::crc64;

    #[test]
    fn the_checksum_of_nine_digits_is_the_published_one() {
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }
}
