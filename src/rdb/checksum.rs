//! The checksum of payloads: CRC-64 with Jones' polynomial, reflected, with the initial value 0.
//!
//! Costs: a table of 2 KiB, computed at compile time; a look-up for each byte.

/// Jones' polynomial `0xad93d23594c935a9`, its bits reversed.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;
const TABLE: [u64; 256] = table();

const fn table() -> [u64; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest & 1 == 1 { (rest >> 1) ^ POLYNOMIAL } else { rest >> 1 };
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
}

/// Computes the checksum of bytes.
pub fn crc64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |checksum, byte| {
        let [low, ..] = (checksum ^ u64::from(*byte)).to_le_bytes();
        TABLE[usize::from(low)] ^ (checksum >> 8)
    })
}

#[cfg(test)]
mod tests {
    use super::crc64;

    #[test]
    fn the_checksum_of_nine_digits_is_the_published_one() {
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }
}
