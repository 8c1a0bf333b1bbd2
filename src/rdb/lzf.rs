//! LZF, the compression of long texts: runs of literal bytes, and copies of earlier bytes.
//!
//! ```text
//!   000lllll                     l + 1 literal bytes follow
//!   lllooooo oooooooo            copy l + 2 bytes from o + 1 bytes back; l from 1 to 6
//!   111ooooo llllllll oooooooo   copy l + 9 bytes from o + 1 bytes back
//! ```
//!
//! A copy may overlap its own result, which is how runs of equal bytes are written. Where a copy is searched for, and
//! which of the bytes within one are noted, are choices that the format leaves open; they are made as Redis makes
//! them, so that the same text becomes the same bytes.
//!
//! Costs: one pass each; compressing takes a table of 256 KiB, of which short texts touch little.
//!
//! Source: the format as its author, Marc Lehmann, describes it; the choices, from payloads of Redis 8.0.

/// The greatest distance back at which a copy can begin.
const REACH: usize = 1 << 13;
/// The most bytes of one copy, and of one run of literals.
const MOST_COPIED: usize = 264;
const MOST_LITERAL: usize = 32;
/// The fewest bytes for which a copy is worth it.
const LEAST_COPIED: usize = 3;
/// The bytes of output that must be left when a copy is written, and when the last bytes are written.
const ROOM_TO_COPY: usize = 4;
const ROOM_TO_END: usize = 3;
/// The bytes before the end of the text at which a copy ends, unless it is one of the shortest.
const MARGIN: usize = 2;
/// The margin does not apply to copies up to this length if that many bytes and the margin are left.
const EAGER: usize = 18;
/// The least gain: a compressed text that is shorter by less than this is not used.
const LEAST_GAIN: usize = 4;
/// The bits of a hash.
const HASH_BITS: u32 = 16;
/// The best compression ratio: three bytes stand for [`MOST_COPIED`], so nothing gets smaller than this part of it.
const LEAST_PART: usize = MOST_COPIED / 3;

/// The place where three bytes were seen last; 0 means nowhere, so nothing is copied from the very beginning.
struct Seen(Vec<u32>);

impl Seen {
    /// Returns where the last three bytes like these were, and notes the new position.
    fn swap(&mut self, bytes: &[u8], at: usize) -> usize {
        let Some(&[first, second, third]) = bytes.get(at..).and_then(|rest| rest.first_chunk::<3>()) else { return 0 };
        let word = u32::from_be_bytes([0, first, second, third]);
        let hash = (word >> (24 - HASH_BITS)).wrapping_sub(word.wrapping_mul(5)) & ((1 << HASH_BITS) - 1);
        std::mem::replace(&mut self.0[hash as usize], at as u32) as usize
    }
}

/// The output: literal bytes are held back until their count is known.
struct Output<'b> {
    bytes: &'b [u8],
    literal: usize,
    out: Vec<u8>,
}

impl Output<'_> {
    /// The length of the output if it included the literals up to `at` and the head of the next ones.
    fn len(&self, at: usize) -> usize {
        let waiting = at - self.literal;
        self.out.len() + waiting + waiting / MOST_LITERAL + 1
    }

    /// The length of the output if it included the literals up to `at`, without a head for further ones.
    fn exact_len(&self, at: usize) -> usize {
        self.len(at) - usize::from((at - self.literal).is_multiple_of(MOST_LITERAL))
    }

    fn flush(&mut self, at: usize) {
        for stretch in self.bytes[self.literal..at].chunks(MOST_LITERAL) {
            self.out.push(stretch.len() as u8 - 1);
            self.out.extend_from_slice(stretch);
        }
        self.literal = at;
    }

    fn copy(&mut self, at: usize, offset: usize, length: usize) {
        self.flush(at);
        self.literal = at + length;
        let [low, high, ..] = offset.to_le_bytes();
        match length - 2 {
            short @ ..7 => self.out.push((short as u8) << 5 | high),
            long => self.out.extend_from_slice(&[7 << 5 | high, (long - 7) as u8]),
        }
        self.out.push(low);
    }
}

/// Compresses bytes; `None` if the result would not be shorter by [`LEAST_GAIN`].
pub(super) fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    let most = bytes.len().checked_sub(LEAST_GAIN).filter(|&most| most > 0 && u32::try_from(bytes.len()).is_ok())?;
    let mut seen = Seen(vec![0; 1 << HASH_BITS]);
    let mut output = Output { bytes, literal: 0, out: Vec::with_capacity(most.min(1 << 16)) };
    let mut at = 0;
    while at + MARGIN < bytes.len() {
        let before = seen.swap(bytes, at);
        if before == 0 || at - before > REACH || bytes[before..before + LEAST_COPIED] != bytes[at..at + LEAST_COPIED] {
            if output.len(at) >= most {
                return None;
            }
            at += 1;
            continue;
        }
        if output.exact_len(at) + ROOM_TO_COPY >= most {
            return None;
        }
        let length = common(bytes, before, at);
        output.copy(at, at - before - 1, length);
        at += length;
        if at + MARGIN < bytes.len() {
            seen.swap(bytes, at - 2);
            seen.swap(bytes, at - 1);
        }
    }
    if output.len(at) + ROOM_TO_END > most {
        return None;
    }
    output.flush(bytes.len());
    Some(output.out)
}

/// The number of equal bytes from two positions on, up to a limit.
fn common(bytes: &[u8], before: usize, at: usize) -> usize {
    let same = |length: usize| bytes.get(before + length).is_some_and(|byte| bytes.get(at + length) == Some(byte));
    let most = (bytes.len() - at - MARGIN).min(MOST_COPIED);
    let mut length = LEAST_COPIED;
    if most >= EAGER - 1 {
        while length < EAGER && same(length) {
            length += 1;
        }
        if !same(length) {
            return length;
        }
        length += 1;
    }
    while length < most && same(length) {
        length += 1;
    }
    length
}

/// Whether that few bytes can be a compression of `length`.
pub(super) fn is_plausible(short: usize, length: usize) -> bool {
    length <= short.saturating_mul(LEAST_PART)
}

/// Decompresses bytes to `length` of them; `None` if they are damaged.
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
    fn text_compressed_by_redis_is_read() {
        let bytes = b"\x08tion('f',\xe0\x00\x0c\n) return 'a\xe0\xff\x00\xe0\xe2\x00\x05' end)";
        assert_eq!(decompress(bytes, 544), None, "its beginning is missing");
        let run = b"\x00a\xe0\xff\x00\x00b";
        assert_eq!(decompress(run, 266), Some([&[b'a'; 265][..], b"b"].concat()));
    }

    #[test]
    fn decompressed_bytes_are_the_original() {
        let mut generator = fastrand::Rng::with_seed(5);
        for length in (0..700).chain([9_000, 40_000]) {
            let letters = generator.u8(1..8);
            goes_there_and_back(&(0..length).map(|_| generator.u8(..letters)).collect::<Vec<u8>>());
        }
        goes_there_and_back(&[b'a'; 10_000]);
    }

    #[test]
    fn a_run_of_equal_bytes_is_compressed_well() {
        assert!(compress(&[b'a'; 10_000]).is_some_and(|short| short.len() < 150));
    }

    #[test]
    fn damaged_compressed_bytes_are_refused() {
        let mut generator = fastrand::Rng::with_seed(6);
        for _ in 0..2_000 {
            let bytes: Vec<u8> = (0..generator.usize(..40)).map(|_| generator.u8(..)).collect();
            let length = generator.usize(..300);
            assert!(decompress(&bytes, length).is_none_or(|out| out.len() == length));
        }
        assert_eq!(decompress(b"\x20\x05", 3), None, "the copy begins before the text");
        assert_eq!(decompress(b"\x05ab", 6), None);
    }
}
