//! Decompression: into new memory, or into memory that is used again.

use super::{MAX_COPIED, MAX_LITERAL, WORD};

/// The best compression ratio: three bytes stand for [`MAX_COPIED`], so nothing gets smaller than this part of it.
const MIN_PART: usize = MAX_COPIED / 3;
/// The bytes that a copy moves at a time if it begins at least as far back; else, [`WORD`].
const PIECE: usize = 16;
/// The bytes behind a piece that are copied one by one.
const FEW: usize = 4;
/// A text is decompressed into this many bytes, or this many for each of its own, at first.
const FIRST_ROOM: usize = 4096;
const TYPICAL_PART: usize = 8;

/// Whether that few bytes can be a compression of `length`.
pub(in crate::rdb) fn is_plausible(short: usize, length: usize) -> bool {
    length <= short.saturating_mul(MIN_PART)
}

/// Decompresses bytes to `length` of them; `None` if they are damaged. Allocates for what the bytes stand for, not for
/// what the length claims.
pub(in crate::rdb) fn decompress(bytes: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut out = vec![0; first_room(bytes).min(length)];
    decompress_to(&mut out, bytes, length)?;
    Some(out)
}

/// Like [`decompress`], into memory whose contents do not matter. The result is its first bytes; what is behind them
/// is room for copies of a fixed size.
pub(in crate::rdb) fn decompress_into(out: &mut Vec<u8>, bytes: &[u8], length: usize) -> Option<()> {
    let room = first_room(bytes).min(length.saturating_add(MAX_COPIED));
    if out.len() < room {
        // New memory that is zero at once may come from the system as it is.
        *out = vec![0; room];
    }
    decompress_to(out, bytes, length)
}

fn first_room(bytes: &[u8]) -> usize {
    FIRST_ROOM.max(TYPICAL_PART.saturating_mul(bytes.len()))
}

/// Decompresses bytes to exactly `length` of them; memory that is shorter grows as they need it.
fn decompress_to(out: &mut Vec<u8>, mut bytes: &[u8], length: usize) -> Option<()> {
    let mut at = 0;
    loop {
        let is_whole = out.len() >= length;
        let last = if is_whole { length } else { out.len() - MAX_COPIED };
        while at <= last && !bytes.is_empty() {
            (at, bytes) = decompress_short(out, at, bytes, last);
            (at, bytes) = decompress_one(out, at, bytes)?;
        }
        if is_whole || bytes.is_empty() {
            return (at == length && bytes.is_empty()).then_some(());
        }
        out.resize(length.min(2 * out.len()), 0);
    }
}

/// Decompresses literals and short copies to a position and those behind it, until one is behind `last`, or until the
/// next is of another kind or too near an end; returns the position, and the bytes left.
///
/// Each kind has a branch of its own, in which the number of bytes that it takes is a constant: the processor guesses
/// where the next one begins, and need not wait for the bytes of this one.
#[inline(never)]
fn decompress_short<'b>(out: &mut [u8], mut at: usize, mut bytes: &'b [u8], last: usize) -> (usize, &'b [u8]) {
    while at <= last
        && let Some([control, ahead @ ..]) = bytes.first_chunk::<{ 1 + WORD }>()
    {
        let (kind, low_bits) = (control >> 5, control & 31);
        let high = usize::from(low_bits) << 8;
        match kind {
            0 if low_bits == 0 => {
                let Some(target) = out.get_mut(at) else { break };
                *target = ahead[0];
                at += 1;
                bytes = &bytes[2..];
            }
            0 => {
                let Some(()) = put_literal(&mut out[at..], &bytes[1..], low_bits) else { break };
                at += usize::from(low_bits) + 1;
                bytes = &bytes[usize::from(low_bits) + 2..];
            }
            7 => {
                let length = usize::from(ahead[0]) + 9;
                let Some(()) = put_short_copy(out, at, (high | usize::from(ahead[1])) + 1, length) else { break };
                at += length;
                bytes = &bytes[3..];
            }
            short => {
                let length = usize::from(short) + 2;
                let Some(()) = put_short_copy(out, at, (high | usize::from(ahead[0])) + 1, length) else { break };
                at += length;
                bytes = &bytes[2..];
            }
        }
    }
    (at, bytes)
}

/// Copies the first bytes of `from`, one more than `more`; `None` if there is no room to copy them in one or two moves.
/// Bytes that are copied behind them are overwritten later.
#[inline(always)]
fn put_literal(out: &mut [u8], from: &[u8], more: u8) -> Option<()> {
    if usize::from(more) < WORD {
        *out.first_chunk_mut::<WORD>()? = *from.first_chunk()?;
    } else {
        *out.first_chunk_mut::<MAX_LITERAL>()? = *from.first_chunk()?;
    }
    Some(())
}

/// Copies `length` bytes to `at` from `offset` bytes before, and some behind them, which are overwritten later; `None`
/// unless they are few, from far enough and within reach.
///
/// The last of them are copied one by one if they are few: what was written by several stores can be read by one load
/// only when all of them have left the processor, and copies are often from right behind the copy before.
#[inline(always)]
fn put_short_copy(out: &mut [u8], at: usize, offset: usize, length: usize) -> Option<()> {
    if length > 2 * PIECE || offset < WORD {
        return None;
    }
    let reach = out.get_mut(at.wrapping_sub(offset)..)?.get_mut(..offset + 2 * PIECE)?;
    if offset < PIECE {
        for start in [0, WORD, 2 * WORD, 3 * WORD] {
            put_piece::<WORD>(reach, start, offset)?;
            if length <= start + WORD {
                break;
            }
        }
        return Some(());
    }
    put_piece::<PIECE>(reach, 0, offset)?;
    if length > PIECE + FEW {
        return put_piece::<PIECE>(reach, PIECE, offset);
    }
    for place in [PIECE, PIECE + 1, PIECE + 2, PIECE + 3] {
        if length <= place {
            break;
        }
        reach[offset + place] = reach[place];
    }
    Some(())
}

/// Copies `N` bytes from `start` on to `offset` bytes behind.
#[inline(always)]
fn put_piece<const N: usize>(bytes: &mut [u8], start: usize, offset: usize) -> Option<()> {
    let piece: [u8; N] = *bytes.get(start..)?.first_chunk()?;
    *bytes.get_mut(start + offset..)?.first_chunk_mut()? = piece;
    Some(())
}

/// Decompresses one literal or copy of any kind, if there is one, to a position; returns the position behind it, and
/// the bytes left. `None` if it is damaged.
#[inline(never)]
fn decompress_one<'b>(out: &mut [u8], at: usize, bytes: &'b [u8]) -> Option<(usize, &'b [u8])> {
    let [control, rest @ ..] = bytes else { return Some((at, bytes)) };
    let (count, high) = (usize::from(control >> 5), usize::from(control & 31));
    if count == 0 {
        let (literal, rest) = rest.split_at_checked(high + 1)?;
        out.get_mut(at..)?.get_mut(..literal.len())?.copy_from_slice(literal);
        return Some((at + literal.len(), rest));
    }
    let (count, low, rest) = match *rest {
        [low, ref rest @ ..] if count < 7 => (count, low, rest),
        [more, low, ref rest @ ..] if count == 7 => (count + usize::from(more), low, rest),
        _ => return None,
    };
    repeat(out, at, (high << 8 | usize::from(low)) + 1, count + 2)?;
    Some((at + count + 2, rest))
}

/// Copies `count` bytes to `at` from `offset` bytes before; `None` if either is out of range. Like the format, a copy
/// repeats bytes if it overlaps its own result.
#[inline]
fn repeat(out: &mut [u8], at: usize, offset: usize, count: usize) -> Option<()> {
    let start = at.checked_sub(offset)?;
    let end = at.checked_add(count).filter(|&end| end <= out.len())?;
    if offset == 1 {
        let byte = out[start];
        out[at..end].fill(byte);
        return Some(());
    }
    let mut place = start;
    while offset >= WORD && place + WORD <= end - offset {
        put_piece::<WORD>(out, place, offset)?;
        place += WORD;
    }
    for place in place..end - offset {
        out[place + offset] = out[place];
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::REACH;
    use super::*;

    #[test]
    fn text_compressed_by_redis_is_read() {
        let bytes = b"\x08tion('f',\xe0\x00\x0c\n) return 'a\xe0\xff\x00\xe0\xe2\x00\x05' end)";
        assert_eq!(decompress(bytes, 544), None, "its beginning is missing");
        let run = b"\x00a\xe0\xff\x00\x00b";
        assert_eq!(decompress(run, 266), Some([&[b'a'; 265][..], b"b"].concat()));
    }

    /// Decompresses byte by byte.
    fn decompress_plainly(bytes: &[u8], length: usize) -> Option<Vec<u8>> {
        let (mut out, mut bytes) = (Vec::new(), bytes.iter().map(|&byte| usize::from(byte)));
        while let Some(control) = bytes.next() {
            match control >> 5 {
                0 => (0..=control).try_for_each(|_| bytes.next().map(|byte| out.push(byte as u8)))?,
                count => {
                    let count = count + 2 + if count == 7 { bytes.next()? } else { 0 };
                    let start = out.len().checked_sub(((control & 31) << 8 | bytes.next()?) + 1)?;
                    (start..start + count).for_each(|place| out.push(out[place]));
                }
            }
        }
        (out.len() == length).then_some(out)
    }

    #[test]
    fn literals_and_copies_of_every_kind_are_decompressed_as_in_the_plain_form() {
        let mut generator = fastrand::Rng::with_seed(9);
        for _ in 0..4000 {
            let (mut bytes, mut length) = (Vec::new(), 0);
            for _ in 0..generator.usize(1..60) {
                if length == 0 || generator.u8(..3) == 0 {
                    let count = generator.u8(1..=32);
                    bytes.push(count - 1);
                    bytes.extend((0..count).map(|_| generator.u8(..)));
                    length += usize::from(count);
                    continue;
                }
                // Mostly short, and mostly not too far.
                let most = [2, 20, REACH][generator.usize(..3)].min(length + 1);
                let offset = generator.usize(..most) as u16;
                let [high, low] = offset.to_be_bytes();
                let (count, more) = (generator.u8(1..=7), generator.u8(..));
                bytes.push(count << 5 | high);
                bytes.extend((count == 7).then_some(more));
                bytes.push(low);
                length += usize::from(count) + 2 + if count == 7 { usize::from(more) } else { 0 };
            }
            if generator.u8(..4) == 0 {
                bytes.truncate(generator.usize(..bytes.len()));
            }
            let length = (length + generator.usize(..4)).saturating_sub(generator.usize(..4));
            let expected = decompress_plainly(&bytes, length);
            assert_eq!(decompress(&bytes, length), expected);
            let mut memory = vec![7; generator.usize(..3000)];
            let whole = decompress_into(&mut memory, &bytes, length);
            assert_eq!(whole.and_then(|()| memory.get(..length)), expected.as_deref());
        }
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
