//! Copying short texts.
//!
//! Most elements are short, and for those the call of a copy of any length costs more than the copy. A few copies of
//! fixed lengths, which may overlap, are a few instructions.

/// Copies bytes into a slice of the same length.
#[inline]
pub(crate) fn copy_short(target: &mut [u8], source: &[u8]) {
    match source.len() {
        0 => {}
        length @ 1..4 => {
            for place in [0, length / 2, length - 1] {
                target[place] = source[place];
            }
        }
        4..8 => copy_ends::<4>(target, source),
        8..16 => copy_ends::<8>(target, source),
        16..=32 => copy_ends::<16>(target, source),
        _ => target.copy_from_slice(source),
    }
}

/// Copies the first and the last `N` bytes, which are all if there are at least as many and at most twice as many.
#[inline]
fn copy_ends<const N: usize>(target: &mut [u8], source: &[u8]) {
    if let (Some(target), Some(source)) = (target.first_chunk_mut::<N>(), source.first_chunk()) {
        *target = *source;
    }
    if let (Some(target), Some(source)) = (target.last_chunk_mut::<N>(), source.last_chunk()) {
        *target = *source;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_every_length_are_copied_whole() {
        let source: Vec<u8> = (1..=100).collect();
        for length in 0..source.len() {
            let mut target = vec![0; length];
            copy_short(&mut target, &source[..length]);
            assert_eq!(target, source[..length]);
        }
    }
}
