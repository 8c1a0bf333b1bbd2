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
/// The bytes of a run of literals with its head, and of a copy.
const SPARE: usize = 1 + MOST_LITERAL + 3;
/// The least gain: a compressed text that is shorter by less than this is not used.
const LEAST_GAIN: usize = 4;
/// The bits of a hash.
const HASH_BITS: u32 = 16;
/// The best compression ratio: three bytes stand for [`MOST_COPIED`], so nothing gets smaller than this part of it.
const LEAST_PART: usize = MOST_COPIED / 3;
/// The bytes that a copy moves at a time, if it begins at least as far back.
const WORD: usize = 8;
/// A text is decompressed into this many bytes, or this many for each of its own, at first.
const FIRST_ROOM: usize = 4096;
const USUAL_PART: usize = 8;

thread_local! {
    static SEEN: RefCell<Seen> = const { RefCell::new(Seen { places: None, end: 0 }) };
}

/// A position for each hash of three bytes.
type Places = [u32; 1 << HASH_BITS];

/// The position where three bytes were seen last, by their hash.
struct Seen {
    /// Positions, each counted from the base of its text.
    places: Option<Box<Places>>,
    /// The end of the positions so far.
    end: u32,
}

impl Seen {
    /// Begins a text of that length, whose base is out of reach of all earlier positions; `None` if it is too long.
    fn begin(&mut self, length: usize) -> Option<Positions<'_>> {
        let places = self.places.get_or_insert_with(|| Box::new([0; 1 << HASH_BITS]));
        let needed = u32::try_from(length.checked_add(REACH + 1)?).ok()?;
        self.end = self.end.checked_add(needed).unwrap_or_else(|| {
            places.fill(0);
            needed
        });
        Some(Positions { places, base: self.end - length as u32 })
    }
}

/// The positions of one text. Its very first one is never noted, as nothing is copied from there.
struct Positions<'s> {
    places: &'s mut Places,
    base: u32,
}

impl Positions<'_> {
    /// Notes a position of the three bytes that end `four`, and returns the distance to the last one with their hash.
    /// Other bytes may be there; a position in an earlier text is farther away than [`REACH`].
    #[inline(always)]
    fn swap(&mut self, four: [u8; 4], at: usize) -> usize {
        let word = u32::from_be_bytes(four);
        let hash = ((word >> (24 - HASH_BITS)) as u16).wrapping_sub((word as u16).wrapping_mul(5));
        let place = self.base.wrapping_add(at as u32);
        place.wrapping_sub(std::mem::replace(&mut self.places[usize::from(hash)], place)) as usize
    }

    /// Notes the last two positions before one, unless that is within two bytes of the end.
    #[inline]
    fn note_before(&mut self, bytes: &[u8], at: usize) {
        let five = bytes.get(at.wrapping_sub(3)..at.wrapping_add(2)).unwrap_or_default();
        if let (Some(four), Some(next)) = (five.first_chunk(), five.last_chunk()) {
            self.swap(*four, at - 2);
            self.swap(*next, at - 1);
        }
    }
}

/// The three bytes from a position on, and the one before it.
#[inline]
fn four_at(bytes: &[u8], at: usize) -> Option<[u8; 4]> {
    let start = at.wrapping_sub(1);
    bytes.get(start..start.wrapping_add(4))?.first_chunk().copied()
}

/// Whether the last three of four bytes are equal.
#[inline]
fn end_alike(four: [u8; 4], other: [u8; 4]) -> bool {
    (u32::from_be_bytes(four) ^ u32::from_be_bytes(other)) << 8 == 0
}

/// The output. It has room for [`SPARE`] bytes more than are allowed, so that parts of any length are written as if
/// they had the greatest.
struct Output {
    bytes: Vec<u8>,
    len: usize,
}

impl Output {
    /// The length with that many literals and the head of the next ones.
    fn len_with(&self, literals: usize) -> usize {
        self.len + literals + literals / MOST_LITERAL + 1
    }

    /// The last position up to which literals from `literal` on keep the output shorter than `most`; the greatest
    /// number if they do to the end of the text, `length`. As a copy takes no more than its bytes as literals, that
    /// stays so.
    fn last_literal(&self, most: usize, literal: usize, length: usize) -> usize {
        if self.len_with(length - literal) + ROOM_TO_COPY < most {
            return usize::MAX;
        }
        // A head for each 32 literals: as many of these fit as 32 parts of 33 of the room.
        let room = most.saturating_sub(self.len + 2);
        literal + (MOST_LITERAL * room + MOST_LITERAL - 1) / (MOST_LITERAL + 1)
    }

    /// The length with that many literals, without a head for further ones.
    fn exact_len_with(&self, literals: usize) -> usize {
        self.len_with(literals) - usize::from(literals.is_multiple_of(MOST_LITERAL))
    }

    /// Appends the first `count` bytes of `rest` as literals.
    #[inline]
    fn put_literals(&mut self, rest: &[u8], count: usize) {
        let target = self.bytes[self.len..].first_chunk_mut::<{ 1 + MOST_LITERAL }>();
        match (rest.first_chunk::<MOST_LITERAL>(), target) {
            // Copying the most that can be is one instruction or two.
            (Some(most), Some([head, target @ ..])) if count.wrapping_sub(1) < MOST_LITERAL => {
                *head = count as u8 - 1;
                *target = *most;
                self.len += 1 + count;
            }
            _ => self.put_stretches(&rest[..count]),
        }
    }

    #[inline(never)]
    fn put_stretches(&mut self, literals: &[u8]) {
        for stretch in literals.chunks(MOST_LITERAL) {
            self.bytes[self.len] = stretch.len() as u8 - 1;
            self.bytes[self.len + 1..][..stretch.len()].copy_from_slice(stretch);
            self.len += 1 + stretch.len();
        }
    }

    #[inline]
    fn put_copy(&mut self, distance: usize, length: usize) {
        let [low, high, ..] = (distance - 1).to_le_bytes();
        let (count, bytes) = match length - 2 {
            short @ ..7 => (2, [(short as u8) << 5 | high, low, 0]),
            long => (3, [7 << 5 | high, (long - 7) as u8, low]),
        };
        if let Some(target) = self.bytes[self.len..].first_chunk_mut() {
            *target = bytes;
        }
        self.len += count;
    }
}

/// Compresses bytes; `None` if the result would not be shorter by [`LEAST_GAIN`].
pub(super) fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    let most = bytes.len().checked_sub(LEAST_GAIN).filter(|&most| most > 0)?;
    SEEN.with_borrow_mut(|seen| compress_with(&mut seen.begin(bytes.len())?, bytes, most))
}

/// Compresses bytes to less than `most`.
fn compress_with(positions: &mut Positions<'_>, bytes: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut output = Output { bytes: vec![0; most + SPARE], len: 0 };
    let (mut literal, mut at) = (0, 1);
    let mut last_literal = output.last_literal(most, literal, bytes.len());
    while let Some(four) = four_at(bytes, at) {
        let distance = positions.swap(four, at);
        let before = at.wrapping_sub(distance);
        if distance > REACH || four_at(bytes, before).is_none_or(|other| !end_alike(four, other)) {
            if at > last_literal {
                return None;
            }
            at = at.wrapping_add(1);
            continue;
        }
        if last_literal < usize::MAX && output.exact_len_with(at - literal) + ROOM_TO_COPY >= most {
            return None;
        }
        output.put_literals(&bytes[literal..], at - literal);
        let length = common(bytes, before, at);
        output.put_copy(distance, length);
        at += length;
        literal = at;
        positions.note_before(bytes, at);
        if last_literal < usize::MAX {
            last_literal = output.last_literal(most, literal, bytes.len());
        }
    }
    if output.len_with(at - literal) + ROOM_TO_END > most {
        return None;
    }
    output.put_literals(&bytes[literal..], bytes.len() - literal);
    output.bytes.truncate(output.len);
    Some(output.bytes)
}

/// The length of a copy: the number of equal bytes from two positions on, which is at least [`LEAST_COPIED`], up to a
/// limit.
#[inline]
fn common(bytes: &[u8], before: usize, at: usize) -> usize {
    // Byte by byte: the processor guesses where the next copy begins, and need not wait for the length of this one.
    if let (Some(one), Some(other)) =
        (bytes[before..].first_chunk::<{ EAGER + 1 }>(), bytes[at..].first_chunk::<{ EAGER + 1 }>())
    {
        for length in LEAST_COPIED..EAGER + 1 {
            if one[length] != other[length] {
                return length;
            }
        }
    }
    common_of_many(bytes, before, at)
}

#[inline(never)]
fn common_of_many(bytes: &[u8], before: usize, at: usize) -> usize {
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
    loop {
        let is_whole = out.len() == length;
        let last = if is_whole { usize::MAX } else { out.len() - MOST_COPIED };
        (at, bytes) = decompress_to(&mut out, at, bytes, last)?;
        if is_whole || bytes.is_empty() {
            return (at == length).then_some(out);
        }
        out.resize(length.min(2 * out.len()), 0);
    }
}

/// Decompresses bytes to a position and those behind it, until one is behind `last`; returns it, and the bytes left.
fn decompress_to<'b>(out: &mut [u8], mut at: usize, mut bytes: &'b [u8], last: usize) -> Option<(usize, &'b [u8])> {
    while let [control, rest @ ..] = bytes {
        if at > last {
            break;
        }
        let (count, high) = (usize::from(control >> 5), usize::from(control & 31));
        if count == 0 {
            let count = high + 1;
            put_literal(out.get_mut(at..)?, rest, count)?;
            at += count;
            bytes = &rest[count..];
            continue;
        }
        let (count, low, rest) = match *rest {
            [low, ref rest @ ..] if count < 7 => (count, low, rest),
            [more, low, ref rest @ ..] if count == 7 => (count + usize::from(more), low, rest),
            _ => return None,
        };
        let offset = (high << 8 | usize::from(low)) + 1;
        repeat(out, at, offset, count + 2)?;
        at += count + 2;
        bytes = rest;
    }
    Some((at, bytes))
}

/// Copies the first `count` bytes of `from`; `None` if there are fewer, there or here.
#[inline]
fn put_literal(out: &mut [u8], from: &[u8], count: usize) -> Option<()> {
    // Copying the most that can be is one instruction or two; what is too much is overwritten later.
    if let (Some(target), Some(source)) = (out.first_chunk_mut::<MOST_LITERAL>(), from.first_chunk()) {
        *target = *source;
        return Some(());
    }
    out.get_mut(..count)?.copy_from_slice(from.get(..count)?);
    Some(())
}

/// Copies `count` bytes to `at` from `offset` bytes before; `None` if either is out of range. Like the format, a copy
/// repeats bytes if it overlaps its own result.
#[inline]
fn repeat(out: &mut [u8], at: usize, offset: usize, count: usize) -> Option<()> {
    let start = at.checked_sub(offset)?;
    let end = at.checked_add(count).filter(|&end| end <= out.len())?;
    if offset >= WORD && end + 2 * WORD <= out.len() {
        // Whole words, and two even of a short copy: what is too much is overwritten later.
        put_word(out, start, at)?;
        put_word(out, start + WORD, at + WORD)?;
        let mut done = 2 * WORD;
        while done < count {
            put_word(out, start + done, at + done)?;
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

#[inline(always)]
fn put_word(out: &mut [u8], from: usize, to: usize) -> Option<()> {
    let word: [u8; WORD] = *out.get(from..)?.first_chunk()?;
    *out.get_mut(to..)?.first_chunk_mut()? = word;
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
        for len in [0, 3, 40] {
            let output = Output { bytes: Vec::new(), len };
            for most in len + 2..len + 300 {
                let literals = output.last_literal(most, 7, 1000) - 7;
                assert!(output.len_with(literals) < most && output.len_with(literals + 1) >= most, "{most}");
            }
        }
    }

    #[test]
    fn a_text_is_compressed_alike_whatever_was_compressed_before_it() {
        let text = b"one two three, one two three, one two three, four";
        let expected = compress(text);
        assert!(expected.is_some());
        let mut seen = Seen { places: None, end: u32::MAX - 2 * (REACH as u32 + 100) };
        for _ in 0..4 {
            let mut positions = seen.begin(text.len()).expect("it is short");
            assert_eq!(compress_with(&mut positions, text, text.len() - LEAST_GAIN), expected);
        }
        assert!(seen.end < 4 * REACH as u32, "the positions have been counted anew");
    }

    /// Compresses bytes one by one, with each choice as Redis makes it.
    fn compress_plainly(bytes: &[u8]) -> Option<Vec<u8>> {
        let most = bytes.len().checked_sub(LEAST_GAIN).filter(|&most| most > 0)?;
        let (mut out, mut literal, mut at) = (Vec::new(), Vec::new(), 0);
        let mut seen = std::collections::HashMap::new();
        let pair = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let hash = |at: usize| pair(at).wrapping_sub(pair(at + 1).wrapping_mul(5));
        while at + 2 < bytes.len() {
            let before = seen.insert(hash(at), at).filter(|&before| before > 0 && at - before <= REACH);
            match before.filter(|&before| bytes[before..before + 3] == bytes[at..at + 3]) {
                None if out.len() + 1 + literal.len() >= most => return None,
                None => {
                    literal.push(bytes[at]);
                    at += 1;
                    if literal.len() == MOST_LITERAL {
                        write_literal(&mut out, &mut literal);
                    }
                }
                Some(before) => {
                    if out.len() + usize::from(!literal.is_empty()) + literal.len() + ROOM_TO_COPY >= most {
                        return None;
                    }
                    write_literal(&mut out, &mut literal);
                    let limit = (bytes.len() - at - 2).min(MOST_COPIED);
                    let mut length = 3;
                    while (length < limit || limit > 16 && length <= 18) && bytes[before + length] == bytes[at + length]
                    {
                        length += 1;
                    }
                    let [high, low] = ((at - before - 1) as u16).to_be_bytes();
                    match length - 2 {
                        short @ ..7 => out.extend([(short as u8) << 5 | high, low]),
                        long => out.extend([7 << 5 | high, (long - 7) as u8, low]),
                    }
                    at += length;
                    if at + 2 < bytes.len() {
                        seen.extend([(hash(at - 2), at - 2), (hash(at - 1), at - 1)]);
                    }
                }
            }
        }
        if out.len() + 1 + literal.len() + ROOM_TO_END > most {
            return None;
        }
        for &byte in &bytes[at..] {
            literal.push(byte);
            if literal.len() == MOST_LITERAL {
                write_literal(&mut out, &mut literal);
            }
        }
        write_literal(&mut out, &mut literal);
        Some(out)
    }

    fn write_literal(out: &mut Vec<u8>, literal: &mut Vec<u8>) {
        if let Some(more) = literal.len().checked_sub(1) {
            out.push(more as u8);
            out.append(literal);
        }
    }

    #[test]
    fn every_choice_is_that_of_the_plain_form() {
        let mut generator = fastrand::Rng::with_seed(8);
        for length in (0..300).flat_map(|length| [length; 8]).chain([9_000, 20_000]) {
            let (letters, most_repeated) = (generator.u8(1..60), generator.usize(1..400));
            let mut text = Vec::new();
            while text.len() < length {
                let start = generator.usize(..=text.len());
                let end = (start + generator.usize(..most_repeated)).min(text.len());
                text.extend_from_within(start..end);
                text.extend((0..generator.usize(1..9)).map(|_| generator.u8(..letters)));
            }
            text.truncate(length);
            assert_eq!(compress(&text), compress_plainly(&text), "{text:?}");
            goes_there_and_back(&text);
        }
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
