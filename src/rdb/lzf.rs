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
//! Costs: one pass each. Compressing takes a table of 256 KiB, which a thread allocates for the first text and keeps:
//! it is not cleared between texts.
//!
//! Source: the format as its author, Marc Lehmann, describes it; the choices, from payloads of Redis 8.0.

use std::cell::RefCell;

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
/// A text is decompressed into this many bytes, or this many for each of its own, at first.
const FIRST_ROOM: usize = 4096;
const USUAL_PART: usize = 8;

thread_local! {
    static SEEN: RefCell<Seen> = const { RefCell::new(Seen { places: None, base: 0, end: 0 }) };
}

/// A position for each hash of three bytes.
type Places = [u32; 1 << HASH_BITS];

/// The position where three bytes were seen last, by their hash.
struct Seen {
    /// Positions, counted from `base`. Those below it are of earlier texts.
    places: Option<Box<Places>>,
    base: u32,
    /// The base of the next text.
    end: u32,
}

impl Seen {
    /// Begins a text of that length, with no position of earlier ones.
    fn begin(&mut self, length: u32) -> Positions<'_> {
        let places = self.places.get_or_insert_with(|| Box::new([0; 1 << HASH_BITS]));
        if self.end.checked_add(length).is_none() {
            places.fill(0);
            self.end = 0;
        }
        self.base = self.end;
        self.end += length;
        Positions { places, base: self.base }
    }
}

/// The positions of one text.
struct Positions<'s> {
    places: &'s mut Places,
    base: u32,
}

impl Positions<'_> {
    /// Returns where three bytes like these were, and records their new position. 0 means nowhere, so nothing is copied
    /// from the very beginning.
    #[inline]
    fn swap(&mut self, three: [u8; 3], at: usize) -> usize {
        let word = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        let hash = (word >> (24 - HASH_BITS)).wrapping_sub(word.wrapping_mul(5)) as u16;
        let before = std::mem::replace(&mut self.places[usize::from(hash)], self.base.wrapping_add(at as u32));
        before.saturating_sub(self.base) as usize
    }
}

/// The three bytes from a position on.
#[inline]
fn three_at(bytes: &[u8], at: usize) -> Option<[u8; 3]> {
    bytes.get(at..)?.first_chunk().copied()
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

    /// The last position up to which the output with its literals is shorter than `most`.
    fn last_literal(&self, most: usize) -> usize {
        // A head for each 32 literals: as many of these fit as 32 parts of 33 of the room.
        let room = most.saturating_sub(self.out.len() + 2);
        self.literal + (MOST_LITERAL * room + MOST_LITERAL - 1) / (MOST_LITERAL + 1)
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
    let most = bytes.len().checked_sub(LEAST_GAIN).filter(|&most| most > 0)?;
    let length = u32::try_from(bytes.len()).ok()?;
    SEEN.with_borrow_mut(|seen| compress_with(&mut seen.begin(length), bytes, most))
}

/// Compresses bytes to less than `most`.
fn compress_with(seen: &mut Positions<'_>, bytes: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut output = Output { bytes, literal: 0, out: Vec::with_capacity(most.min(1 << 16)) };
    let mut at = 0;
    let mut last_literal = output.last_literal(most);
    while let Some(three) = three_at(bytes, at) {
        let before = seen.swap(three, at);
        if before == 0 || at.wrapping_sub(before) > REACH || three_at(bytes, before) != Some(three) {
            if at > last_literal {
                return None;
            }
            at = at.wrapping_add(1);
            continue;
        }
        if output.exact_len(at) + ROOM_TO_COPY >= most {
            return None;
        }
        let length = common(bytes, before, at);
        output.copy(at, at - before - 1, length);
        at += length;
        last_literal = output.last_literal(most);
        if at + MARGIN < bytes.len() {
            for at in [at - 2, at - 1] {
                three_at(bytes, at).map(|three| seen.swap(three, at));
            }
        }
    }
    if output.len(at) + ROOM_TO_END > most {
        return None;
    }
    output.flush(bytes.len());
    Some(output.out)
}

/// The length of a copy: the number of equal bytes from two positions on, which is at least [`LEAST_COPIED`], up to a
/// limit.
fn common(bytes: &[u8], before: usize, at: usize) -> usize {
    let equal = equal_bytes(&bytes[before..], &bytes[at..]);
    let most = (bytes.len() - at - MARGIN).min(MOST_COPIED);
    match most {
        _ if most < EAGER - 1 => equal.min(most).max(LEAST_COPIED),
        _ if equal <= EAGER => equal,
        _ => equal.min(most).max(EAGER + 1),
    }
}

/// The number of equal bytes at the front of two texts, as far as a copy can be long.
fn equal_bytes(one: &[u8], other: &[u8]) -> usize {
    let most = other.len().min(MOST_COPIED);
    let (one, other) = (&one[..most], &other[..most]);
    let (words, others) = (one.as_chunks::<8>().0, other.as_chunks::<8>().0);
    for (index, (word, with)) in words.iter().zip(others).enumerate() {
        let differences = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*with);
        if differences != 0 {
            return 8 * index + differences.trailing_zeros() as usize / 8;
        }
    }
    let start = 8 * words.len();
    start + one[start..].iter().zip(&other[start..]).take_while(|(byte, with)| byte == with).count()
}

/// Whether that few bytes can be a compression of `length`.
pub(super) fn is_plausible(short: usize, length: usize) -> bool {
    length <= short.saturating_mul(LEAST_PART)
}

/// Decompresses bytes to `length` of them; `None` if they are damaged. Allocates for what the bytes stand for, not for
/// what the length claims.
pub(super) fn decompress(mut bytes: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut out = vec![0; length.min(FIRST_ROOM.max(USUAL_PART * bytes.len()))];
    let mut at = 0;
    while let [control, rest @ ..] = bytes {
        if at + MOST_COPIED > out.len() && out.len() < length {
            out.resize(length.min(2 * out.len()), 0);
        }
        let (count, high) = (usize::from(control >> 5), usize::from(control & 31));
        if count == 0 {
            let count = high + 1;
            bytes = put_literal(out.get_mut(at..)?, rest, count)?;
            at += count;
            continue;
        }
        let (count, low, rest) = match *rest {
            [low, ref rest @ ..] if count < 7 => (count, low, rest),
            [more, low, ref rest @ ..] if count == 7 => (count + usize::from(more), low, rest),
            _ => return None,
        };
        let offset = (high << 8 | usize::from(low)) + 1;
        repeat(&mut out, at, offset, count + 2)?;
        at += count + 2;
        bytes = rest;
    }
    (at == length).then_some(out)
}

/// Copies the first `count` bytes of `from`, and returns those behind them; `None` if there are fewer, there or here.
#[inline]
fn put_literal<'b>(out: &mut [u8], from: &'b [u8], count: usize) -> Option<&'b [u8]> {
    // Copying the most that can be is one instruction or two; what is too much is overwritten later.
    if let (Some(target), Some(source)) = (out.first_chunk_mut::<MOST_LITERAL>(), from.first_chunk()) {
        *target = *source;
    } else {
        out.get_mut(..count)?.copy_from_slice(from.get(..count)?);
    }
    from.get(count..)
}

/// Copies `count` bytes to `at` from `offset` bytes before; `None` if either is out of range. Like the format, a copy
/// repeats bytes if it overlaps its own result.
#[inline]
fn repeat(out: &mut [u8], at: usize, offset: usize, count: usize) -> Option<()> {
    const WORD: usize = 8;
    let start = at.checked_sub(offset)?;
    let end = at.checked_add(count).filter(|&end| end <= out.len())?;
    if offset >= WORD && end + WORD <= out.len() {
        // Whole words, the last of which may be too long: what is too much is overwritten later.
        let mut done = 0;
        while done < count {
            let word: [u8; WORD] = *out.get(start + done..)?.first_chunk()?;
            *out.get_mut(at + done..)?.first_chunk_mut()? = word;
            done += WORD;
        }
        return Some(());
    }
    if offset == 1 {
        let byte = out[start];
        out[at..end].fill(byte);
        return Some(());
    }
    for place in start..end - offset {
        out[place + offset] = out[place];
    }
    Some(())
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
    fn literals_are_held_back_as_long_as_the_output_with_them_is_short_enough() {
        for out in [0, 3, 40] {
            let output = Output { bytes: &[], literal: 7, out: vec![0; out] };
            for most in out + 2..out + 300 {
                let last = output.last_literal(most);
                assert!(output.len(last) < most && output.len(last + 1) >= most, "{most}");
            }
        }
    }

    #[test]
    fn a_text_is_compressed_alike_whatever_was_compressed_before_it() {
        let text = b"one two three, one two three, one two three, four";
        let expected = compress(text);
        assert!(expected.is_some());
        let mut seen = Seen { places: None, base: 0, end: u32::MAX - 120 };
        for _ in 0..4 {
            let mut positions = seen.begin(text.len() as u32);
            assert_eq!(compress_with(&mut positions, text, text.len() - LEAST_GAIN), expected);
        }
        assert!(seen.end < 200, "the positions have been counted anew");
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
