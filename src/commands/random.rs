//! Shared code of HRANDFIELD, SRANDMEMBER, VRANDMEMBER and ZRANDMEMBER: arguments, and replies with repeated elements.
//!
//! Distinct elements are chosen elsewhere, since the method depends on the collection.

use crate::engine::{Args, Error};
use crate::resp::Reply;

/// The bytes of the shortest element in a reply: `$0`, two line ends.
const MIN_BYTES: usize = 6;

/// The parsed count and options.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// The number of distinct elements, or, if negative, of possibly repeated ones. Never `i64::MIN`, so that its
    /// absolute value exists.
    pub(super) count: i64,
    /// Whether each element is returned with its value or score.
    pub(super) in_pairs: bool,
}

impl Wanted {
    /// Parses `count`, and `word` after it, to the last word.
    ///
    /// # Errors
    /// A count that is not a number or is too large, or any other word.
    pub(super) fn parse(args: &mut Args<'_>, word: &str) -> Result<Wanted, Error> {
        let count = count(args)?;
        let in_pairs = args.take(word);
        args.end()?;
        if in_pairs && count.unsigned_abs() > i64::MAX as u64 / 2 {
            return Err(Error::OutOfRange);
        }
        Ok(Wanted { count, in_pairs })
    }
}

/// Parses the next word as a count, which is never `i64::MIN`, so that its absolute value exists.
///
/// # Errors
/// [`Error::NotAnInteger`], or [`Error::CountOutOfRange`] for `i64::MIN`.
pub(super) fn count(args: &mut Args<'_>) -> Result<i64, Error> {
    let count = args.integer()?;
    if count == i64::MIN { Err(Error::CountOutOfRange) } else { Ok(count) }
}

/// Replies with `count` possibly repeated elements, by `header` and one call of `element` for each.
///
/// # Errors
/// [`Error::ReplyTooLong`] for a reply longer than `most_bytes`, where Redis continues until memory runs out.
pub(super) fn repeat(
    reply: &mut Reply<'_>,
    count: u64,
    most_bytes: usize,
    header: impl FnOnce(&mut Reply<'_>, usize),
    mut element: impl FnMut(&mut Reply<'_>),
) -> Result<(), Error> {
    let count = usize::try_from(count).map_err(|_| Error::ReplyTooLong)?;
    if count > most_bytes / MIN_BYTES {
        return Err(Error::ReplyTooLong);
    }
    let start = reply.position();
    header(reply, count);
    for _ in 0..count {
        element(reply);
        if reply.position() - start > most_bytes {
            return Err(Error::ReplyTooLong);
        }
    }
    Ok(())
}
