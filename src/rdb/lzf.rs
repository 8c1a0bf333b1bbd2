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
//! it is not cleared between texts. In a listpack of similar elements every other step is a copy, of eight bytes, so
//! the steps for a copy count as much as those for a literal.
//!
//! Source: the format as its author, Marc Lehmann, describes it; the choices, from payloads of Redis 8.0.

mod decompress;

pub(super) use decompress::{decompress, decompress_into, is_plausible};

use std::cell::RefCell;

/// The greatest distance back at which a copy can begin.
const REACH: usize = 1 << 13;
/// The most bytes of one copy, and of one run of literals.
const MAX_COPIED: usize = 264;
const MAX_LITERAL: usize = 32;
/// The fewest bytes for which a copy is worth it.
const MIN_COPIED: usize = 3;
/// The bytes of output that must be left when the last bytes are written.
const ROOM_TO_END: usize = 3;
/// The bytes before the end of the text at which a copy ends, unless it is one of the shortest.
const MARGIN: usize = 2;
/// The margin does not apply to copies up to this length if that many bytes and the margin are left.
const EAGER: usize = 18;
/// The bytes of three words behind the fewest, and the margin: where so many are left, a copy is as long as they are
/// equal.
const AT_ONCE: usize = MIN_COPIED + 3 * WORD + MARGIN;
/// The least gain: a compressed text that is shorter by less than this is not used.
const MIN_GAIN: usize = 4;
/// The bits of a hash, and those of a place.
const HASH_BITS: u32 = 16;
const PLACE_BITS: u32 = 24;
/// The bytes that are compressed in one stretch. A longer text is several, of which none has copies from another.
const STRETCH: usize = 1 << 23;
/// The bytes that are compared or moved at a time.
const WORD: usize = 8;
/// The most memory for the output that a thread keeps.
const MAX_KEPT: usize = 1 << 16;

thread_local! {
    static COMPRESSOR: RefCell<Compressor> = const { RefCell::new(Compressor { notes: None, end: 0, room: Vec::new() }) };
}

/// A note for each hash of three bytes: the place where these were seen last, and the third of them in the bits above
/// it. That byte and the hash determine the two others.
type Notes = [u32; 1 << HASH_BITS];

/// The compressor of a thread, with the memory that it keeps from one text to the next.
struct Compressor {
    notes: Option<Box<Notes>>,
    /// The end of the places so far.
    end: u32,
    /// The memory of the output.
    room: Vec<u8>,
}

impl Compressor {
    /// Compresses bytes to less than `most`.
    fn compress(&mut self, bytes: &[u8], most: usize) -> Option<&[u8]> {
        let needed = bytes.len() + bytes.len() / MAX_LITERAL + MAX_LITERAL;
        if self.room.len() < needed {
            self.room.resize(needed, 0);
        }
        let notes = self.notes.get_or_insert_with(|| Box::new([0; 1 << HASH_BITS]));
        let mut len = 0;
        for stretch in bytes.chunks(STRETCH) {
            // All earlier places are out of reach.
            let mut base = self.end + REACH as u32 + 1;
            if base + stretch.len() as u32 > 1 << PLACE_BITS {
                notes.fill(0);
                base = REACH as u32 + 1;
            }
            self.end = base + stretch.len() as u32;
            len += compress_stretch(notes, base, stretch, self.room.get_mut(len..)?, most.saturating_sub(len))?;
        }
        self.room.get(..len)
    }
}

/// Compresses bytes and has the result read; `None` if it would not be shorter by [`MIN_GAIN`].
pub(super) fn compress<R>(bytes: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R> {
    let most = bytes.len().checked_sub(MIN_GAIN).filter(|&most| most > 0)?;
    COMPRESSOR.with_borrow_mut(|compressor| {
        let result = compressor.compress(bytes, most).map(read);
        if compressor.room.len() > MAX_KEPT {
            compressor.room = Vec::new();
        }
        result
    })
}

/// Compresses the bytes from place `base` on; returns the length. `None` if that is not less than `most`, or if so few
/// bytes would be left in front of the last literals that Redis gives up.
///
/// The first place is not noted, as nothing is copied from there. The output has room for literals only, so that the
/// length need not be checked on the way. Few local variables live in the loop, for the registers that there are.
#[inline(never)]
fn compress_stretch(notes: &mut Notes, base: u32, bytes: &[u8], out: &mut [u8], most: usize) -> Option<usize> {
    let [first, second, third, rest @ ..] = bytes else { return put_last(out, 0, 1, bytes) };
    // The head of the run of literals, and their end.
    let (mut head, mut to, mut rest) = (0_usize, 2_usize, rest);
    *out.get_mut(1)? = *first;
    let mut word = u32::from_be_bytes([0, *first, *second, *third]);
    let place_at_end = base.wrapping_add((bytes.len() - MARGIN) as u32);
    let last = loop {
        let [next, after @ ..] = rest else { break bytes.len() - MARGIN };
        word = word << 8 | u32::from(*next);
        let place = place_at_end.wrapping_sub(rest.len() as u32);
        let distance = note(notes, word, place);
        if distance > REACH as u32 {
            rest = after;
            *out.get_mut(to)? = (word >> 16) as u8;
            to = to.wrapping_add(1);
            if to.wrapping_sub(head) > MAX_LITERAL {
                *out.get_mut(head)? = MAX_LITERAL as u8 - 1;
                head = to;
                to = to.wrapping_add(1);
            }
            continue;
        }
        let literals = to.wrapping_sub(head).wrapping_sub(1);
        *out.get_mut(head)? = (literals as u8).wrapping_sub(1);
        to = if literals == 0 { head } else { to };
        let at = place.wrapping_sub(base) as usize;
        let length = common(bytes, at.wrapping_sub(distance as usize), at);
        head = to.wrapping_add(put_copy(out.get_mut(to..)?, distance, length)?);
        to = head.wrapping_add(1);
        let at = at.wrapping_add(length);
        rest = bytes.get(at.wrapping_add(MARGIN)..).unwrap_or_default();
        let Some(four) = bytes.get(at.wrapping_sub(2)..).and_then(|bytes| bytes.first_chunk()) else { break at };
        if rest.is_empty() {
            break at;
        }
        // Of the places in a copy, the last two are noted.
        word = u32::from_be_bytes(*four);
        let place = base.wrapping_add(at as u32);
        note(notes, word >> 8, place.wrapping_sub(2));
        note(notes, word, place.wrapping_sub(1));
    };
    if to + ROOM_TO_END > most {
        return None;
    }
    put_last(out, head, to, bytes.get(last..)?)
}

/// Notes where the last three bytes of a word are, and returns the distance to where they were seen last: more than
/// [`REACH`] if they were not, or if other bytes with their hash were seen since.
#[inline(always)]
fn note(notes: &mut Notes, word: u32, place: u32) -> u32 {
    let hash = ((word >> (24 - HASH_BITS)) as u16).wrapping_sub((word as u16).wrapping_mul(5));
    let note = (word << PLACE_BITS).wrapping_add(place);
    note.wrapping_sub(std::mem::replace(&mut notes[usize::from(hash)], note))
}

/// Writes a copy; returns its length in the output.
#[inline(always)]
fn put_copy(out: &mut [u8], distance: u32, length: usize) -> Option<usize> {
    let [low, high, ..] = distance.wrapping_sub(1).to_le_bytes();
    let target = out.first_chunk_mut()?;
    match (length as u8).wrapping_sub(2) {
        short if length < 9 => {
            *target = [short << 5 | high, low, 0];
            Some(2)
        }
        long => {
            *target = [7 << 5 | high, long.wrapping_sub(7), low];
            Some(3)
        }
    }
}

/// Writes the last literals, to a run that begins at `head` and ends at `to`; returns the length of the output.
#[inline(never)]
fn put_last(out: &mut [u8], mut head: usize, mut to: usize, literals: &[u8]) -> Option<usize> {
    for &byte in literals {
        *out.get_mut(to)? = byte;
        to += 1;
        if to - head > MAX_LITERAL {
            *out.get_mut(head)? = MAX_LITERAL as u8 - 1;
            head = to;
            to += 1;
        }
    }
    let Some(more) = (to - head).checked_sub(2) else { return Some(head) };
    *out.get_mut(head)? = more as u8;
    Some(to)
}

/// The length of a copy: the number of equal bytes from two positions on, which is at least [`MIN_COPIED`], up to a
/// limit.
#[inline]
fn common(bytes: &[u8], before: usize, at: usize) -> usize {
    if let (Some(one), Some(other)) = (bytes[before..].first_chunk(), bytes[at..].first_chunk()) {
        for start in [MIN_COPIED, MIN_COPIED + WORD, MIN_COPIED + 2 * WORD] {
            let differences = word_at(one, start) ^ word_at(other, start);
            for place in 0..WORD {
                if (differences >> (8 * place)) as u8 != 0 {
                    return start + place;
                }
            }
        }
    }
    common_of_many(bytes, before, at)
}

#[inline(always)]
fn word_at(bytes: &[u8; AT_ONCE], start: usize) -> u64 {
    bytes[start..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

#[inline(never)]
fn common_of_many(bytes: &[u8], before: usize, at: usize) -> usize {
    let equal = equal_bytes(&bytes[before..], &bytes[at..]);
    let most = (bytes.len() - at - MARGIN).min(MAX_COPIED);
    match most {
        _ if most < EAGER - 1 => equal.min(most).max(MIN_COPIED),
        _ if equal <= EAGER => equal,
        _ => equal.min(most).max(EAGER + 1),
    }
}

/// The number of equal bytes at the front of two texts, as far as a copy can be long.
fn equal_bytes(one: &[u8], other: &[u8]) -> usize {
    let most = other.len().min(MAX_COPIED);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn compressed(bytes: &[u8]) -> Option<Vec<u8>> {
        compress(bytes, <[u8]>::to_vec)
    }

    fn goes_there_and_back(bytes: &[u8]) {
        if let Some(short) = compressed(bytes) {
            assert!(short.len() < bytes.len());
            assert_eq!(decompress(&short, bytes.len()).as_deref(), Some(bytes));
        }
    }

    #[test]
    fn a_text_is_compressed_alike_whatever_was_compressed_before_it() {
        let text = b"one two three, one two three, one two three, four";
        let expected = compressed(text);
        assert!(expected.is_some());
        let mut compressor =
            Compressor { notes: None, end: (1 << PLACE_BITS) - 2 * (REACH as u32 + 100), room: Vec::new() };
        for _ in 0..4 {
            assert_eq!(compressor.compress(text, text.len() - MIN_GAIN), expected.as_deref());
        }
        assert!(compressor.end < 4 * REACH as u32, "the places have been counted anew");
    }

    #[test]
    fn a_text_of_several_stretches_is_compressed_in_each() {
        let mut generator = fastrand::Rng::with_seed(9);
        let part: Vec<u8> = (0..500).map(|_| generator.u8(..)).collect();
        let text = part.iter().copied().cycle().take(2 * STRETCH + 2).collect::<Vec<u8>>();
        assert!(compressed(&text).is_some_and(|short| short.len() < text.len() / 50));
        goes_there_and_back(&text);
    }

    /// Compresses bytes one by one, with each choice as Redis makes it.
    fn compress_plainly(bytes: &[u8]) -> Option<Vec<u8>> {
        let most = bytes.len().checked_sub(MIN_GAIN).filter(|&most| most > 0)?;
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
                    if literal.len() == MAX_LITERAL {
                        write_literal(&mut out, &mut literal);
                    }
                }
                Some(before) => {
                    if out.len() + usize::from(!literal.is_empty()) + literal.len() + 4 >= most {
                        return None;
                    }
                    write_literal(&mut out, &mut literal);
                    let limit = (bytes.len() - at - 2).min(MAX_COPIED);
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
            if literal.len() == MAX_LITERAL {
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
            assert_eq!(compressed(&text), compress_plainly(&text), "{text:?}");
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
        assert!(compressed(&[b'a'; 10_000]).is_some_and(|short| short.len() < 150));
    }
}
