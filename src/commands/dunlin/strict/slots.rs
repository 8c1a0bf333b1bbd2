//! The slots of a cluster: maps a key to one of 16,384 slots.
//!
//! If the text between the first `{` and the next `}` is not empty, it alone is hashed. Sources: Redis's specification
//! of clusters; the checksum is CRC-16/XMODEM.

const SLOTS: u16 = 16_384;

/// The slot of a key.
pub(super) fn slot_of(key: &[u8]) -> u16 {
    checksum(tag_of(key)) % SLOTS
}

fn tag_of(key: &[u8]) -> &[u8] {
    let behind = key.iter().position(|byte| *byte == b'{').map(|place| &key[place + 1..]);
    let tag = behind.and_then(|rest| rest.iter().position(|byte| *byte == b'}').map(|end| &rest[..end]));
    tag.filter(|tag| !tag.is_empty()).unwrap_or(key)
}

fn checksum(bytes: &[u8]) -> u16 {
    let shift = |sum: u16| if sum & 0x8000 == 0 { sum << 1 } else { sum << 1 ^ 0x1021 };
    bytes.iter().fold(0, |sum, byte| (0..8).fold(sum ^ u16::from(*byte) << 8, |sum, _| shift(sum)))
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
            assert_eq!(slot_of(key), slot, "{}", String::from_utf8_lossy(key));
        }
    }
}
