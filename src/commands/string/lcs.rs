//! LCS: the longest common subsequence of two strings.

use super::subsequence::{Common, Run, common_length};
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};
use crate::resp::Reply;
use crate::value::View;

pub(super) const LCS: Command = Command {
    name: "LCS",
    syntax: "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]",
    family: Family::String,
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::range(1, 1, 1, KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "7.0.0",
    cost: "O(N*M) where N and M are the lengths of the two strings",
    about: "Returns the longest common subsequence of two strings, or its length or positions.",
    run: lcs,
    ..Command::ROW
};

fn lcs(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let keys = [args.key()?, args.key()?];
    let limit_bytes = cx.settings().max_bulk_bytes;
    let (views, reply) = cx.views(&keys, |_| true);
    let (mut digits, mut other_digits) = (itoa::Buffer::new(), itoa::Buffer::new());
    let one = bytes_of(views.first(), &mut digits)?;
    let other = bytes_of(views.get(1), &mut other_digits)?;
    let options = Options::parse(&mut args)?;
    admit_lengths(one.len(), other.len(), limit_bytes)?;
    match options.answer {
        Answer::Bytes => reply.bulk(&Common::find(one, other).bytes()),
        Answer::Length => reply.count(common_length(one, other)),
        Answer::Places => write_places(reply, &Common::find(one, other), options),
    }
    Ok(())
}

/// The text of a key that may be missing.
fn bytes_of<'a>(view: Option<&'a Option<View<'a>>>, digits: &'a mut itoa::Buffer) -> Result<&'a [u8], Error> {
    match view {
        Some(Some(View::Text(text))) => Ok(text.as_bytes(digits)),
        Some(Some(_)) => Err(Error::NotBothStrings),
        _ => Ok(b""),
    }
}

/// Refuses inputs that Redis refuses: it allocates a table of 32-bit numbers, one for each pair of positions.
fn admit_lengths(one: usize, other: usize, limit_bytes: usize) -> Result<(), Error> {
    let table_bytes = (one as u128 + 1) * (other as u128 + 1) * 4;
    match u128::max(one as u128, other as u128) {
        longer if longer >= u128::from(u32::MAX) - 1 => Err(Error::StringsTooLongForLcs),
        _ if table_bytes > limit_bytes as u128 => Err(Error::LcsMemory),
        _ => Ok(()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Bytes,
    Length,
    Places,
}

#[derive(Clone, Copy, Debug)]
struct Options {
    answer: Answer,
    /// The minimum length of returned runs.
    min_run: usize,
    with_length: bool,
}

impl Options {
    fn parse(args: &mut Args<'_>) -> Result<Options, Error> {
        let (mut length, mut places, mut min_run, mut with_length) = (false, false, 0, false);
        while !args.is_empty() {
            if args.take("IDX") {
                places = true;
            } else if args.take("LEN") {
                length = true;
            } else if args.take("WITHMATCHLEN") {
                with_length = true;
            } else if args.take_with("MINMATCHLEN", 1) {
                min_run = usize::try_from(args.integer()?).unwrap_or(0);
            } else {
                return Err(Error::Syntax);
            }
        }
        let answer = match (places, length) {
            (true, true) => return Err(Error::LcsLengthAndPlaces),
            (true, false) => Answer::Places,
            (false, true) => Answer::Length,
            (false, false) => Answer::Bytes,
        };
        Ok(Options { answer, min_run, with_length })
    }
}

fn write_places(reply: &mut Reply<'_>, common: &Common<'_>, options: Options) {
    let runs: Vec<Run> = common.runs().iter().copied().filter(|run| run.length >= options.min_run).collect();
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(runs.len());
    for run in runs {
        reply.array(if options.with_length { 3 } else { 2 });
        for start in [run.in_one, run.in_other] {
            reply.array(2);
            reply.count(start);
            reply.count(start + run.length - 1);
        }
        if options.with_length {
            reply.count(run.length);
        }
    }
    reply.bulk(b"len");
    reply.count(common.len());
}
