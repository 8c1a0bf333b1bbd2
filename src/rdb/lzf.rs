//! LZF, the compression of long texts: stretches of bytes as they are, and of bytes that stood before.
//!
//! ```text
//!   000lllll                     l + 1 bytes follow as they are
//!   lllooooo oooooooo            l + 2 bytes from o + 1 bytes back; l from 1 to 6
//!   111ooooo llllllll oooooooo   l + 9 bytes from o + 1 bytes back
//! ```
//!
//! What is copied may overlap what it makes, which is how runs are written.
//!
//! Costs: one pass each; compressing takes a table of 32 KiB.

/// How far back a stretch can begin.
const REACH: usize = 1 << 13;
/// Most bytes of one stretch that is copied, and of one that stands as it is.
const MOST_COPIED: usize = 264;
const MOST_LITERAL: usize = 32;
/// A stretch is worth copying from so many bytes on.
const LEAST_COPIED: usize = 3;
/// How many bits a hash has.
const HASH_BITS: u32 = 13;

/// Where three bytes were seen last: the place after it, 0 for nowhere.
struct Seen(Vec<u32>);

impl Seen {
    /// The place of the last three bytes like these, and notes this one.
    fn swap(&mut self, bytes: &[u8], at: usize) -> Option<usize> {
        let &[first, second, third] = bytes.get(at..)?.first_chunk::<3>()?;
        let word = u32::from_be_bytes([0, first, second, third]);
        let place = &mut self.0[(word.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize];
        let before = std::mem::replace(place, u32::try_from(at + 1).ok()?);
        (before as usize).checked_sub(1)
    }
}

/// Bytes in a shorter form; `None` when that would not be shorter.
pub(super) fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut seen = Seen(vec![0; 1 << HASH_BITS]);
    let (mut out, mut literal, mut at) = (Vec::with_capacity(bytes.len()), 0, 0);
    while at < bytes.len() {
        let before = seen.swap(bytes, at).filter(|before| at - before <= REACH);
        let length = before.map_or(0, |before| common(&bytes[before..], &bytes[at..]));
        let (Some(before), LEAST_COPIED..) = (before, length) else {
            at += 1;
            continue;
        };
        write_literals(&bytes[literal..at], &mut out);
        write_copy(at - before - 1, length, &mut out);
        for passed in at + 1..at + length {
            seen.swap(bytes, passed);
        }
        at += length;
        literal = at;
        if out.len() >= bytes.len() {
            return None;
        }
    }
    write_literals(&bytes[literal..], &mut out);
    (out.len() < bytes.len()).then_some(out)
}

fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take(MOST_COPIED).take_while(|(one, other)| one == other).count()
}

fn write_literals(bytes: &[u8], out: &mut Vec<u8>) {
    for stretch in bytes.chunks(MOST_LITERAL) {
        out.push(stretch.len() as u8 - 1);
        out.extend_from_slice(stretch);
    }
}

fn write_copy(offset: usize, length: usize, out: &mut Vec<u8>) {
    let [low, high, ..] = offset.to_le_bytes();
    match length - 2 {
        short @ ..7 => out.push((short as u8) << 5 | high),
        long => out.extend_from_slice(&[7 << 5 | high, (long - 7) as u8]),
    }
    out.push(low);
}

/// The bytes that were compressed, `length` of them; `None` when they are damaged.
pub(super) fn decompress(mut bytes: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    while let Some((&control, rest)) = bytes.split_first() {
        bytes = rest;
        let (count, high) = (usize::from(control >> 5), usize::from(control & 31));
        if count == 0 {
            let (stretch, rest) = bytes.split_at_checked(high + 1)?;
            bytes = rest;
            out.extend_from_slice(stretch);
        } else {
            let mut next = || -> Option<usize> {
                let (&byte, rest) = bytes.split_first()?;
                bytes = rest;
                Some(usize::from(byte))
            };
            let count = if count == 7 { count + next()? } else { count };
            let start = out.len().checked_sub((high << 8 | next()?) + 1)?;
            for place in start..start + count + 2 {
                out.push(out[place]);
            }
        }
        if out.len() > length {
            return None;
        }
    }
    (out.len() == length).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goes_there_and_back(bytes: &[u8]) {
        if let Some(short) = compress(bytes) {
            assert!(short.len() < bytes.len());
            assert_eq!(decompress(&short, bytes.len()).as_deref(), Some(bytes));
        }
    }

    #[test]
    fn what_redis_compressed_is_read() {
        let bytes = b"\x08tion('f',\xe0\x00\x0c\n) return 'a\xe0\xff\x00\xe0\xe2\x00\x05' end)";
        assert_eq!(decompress(bytes, 544), None, "its beginning is missing");
        let run = b"\x00a\xe0\xff\x00\x00b";
        assert_eq!(decompress(run, 266), Some([&[b'a'; 265][..], b"b"].concat()));
    }

    #[test]
    fn bytes_come_back_as_they_were() {
        let mut generator = fastrand::Rng::with_seed(5);
        for length in (0..700).chain([9_000, 40_000]) {
            let letters = generator.u8(1..8);
            goes_there_and_back(&(0..length).map(|_| generator.u8(..letters)).collect::<Vec<u8>>());
        }
        goes_there_and_back(&[b'a'; 10_000]);
    }

    #[test]
    fn a_run_becomes_short() {
        assert!(compress(&[b'a'; 10_000]).is_some_and(|short| short.len() < 150));
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let mut generator = fastrand::Rng::with_seed(6);
        for _ in 0..2_000 {
            let bytes: Vec<u8> = (0..generator.usize(..40)).map(|_| generator.u8(..)).collect();
            let length = generator.usize(..300);
            assert!(decompress(&bytes, length).is_none_or(|out| out.len() == length));
        }
        assert_eq!(decompress(b"\x20\x05", 3), None, "it begins before the beginning");
        assert_eq!(decompress(b"\x05ab", 6), None);
    }
}
