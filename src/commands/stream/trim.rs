//! XTRIM: removes the oldest entries of a stream, down to a length or up to an id. XADD trims with the same options.

use super::id;
use crate::engine::exec::operations;
use crate::engine::{
    Args, Arity, Change, Changed, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec, Lookup, Missing,
    StreamError,
};
use crate::value::Stream;
use crate::value::stream::{Id, Limits, Trim};

pub(super) const XTRIM: Command = Command {
    name: "XTRIM",
    syntax: "key trim:<strategy:<MAXLEN|MINID> operator:[equal:=|approximately:~] threshold [LIMIT count]>",
    family: Family::Stream,
    arity: Arity::AtLeast(4),
    flags: Flags::WRITE,
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::DELETE))],
    since: "5.0.0",
    history: &[Change::brings("6.2.0", &["MINID", "LIMIT"])],
    cost: "O(N), N being the entries that go.",
    about: "Removes the oldest entries of a stream, down to a length or up to an id.",
    tips: &["nondeterministic_output"],
    run: xtrim,
    ..Command::ROW
};

pub(super) const XTRIM_EVENT: Event = Event::stream("xtrim");

fn xtrim(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let mut options = TrimOptions::default();
    while !args.is_empty() {
        if !options.take(&mut args)? {
            return Err(Error::Syntax);
        }
    }
    if options.trim.is_none() && options.limit.is_none_or(|limit| limit == 0) {
        return Err(StreamError::TrimMissing.into());
    }
    let trim = options.resolve(cx)?.ok_or(StreamError::TrimMissing)?;
    let gone = cx.update(key, Missing::Skip, XTRIM_EVENT, |stream: &mut Stream, _| {
        let gone = trim.carry_out(stream);
        Ok(Changed::by(gone, gone))
    })?;
    if gone.is_some_and(|gone| gone > 0) && trim.is_approximate() && operations::is_propagating(cx) {
        let threshold = trim.threshold_left(cx, key);
        let mut words = args.all();
        trim.say_exactly(&mut words, &threshold);
        operations::propagate_instead(cx, &words);
    }
    cx.reply().count(gone.unwrap_or(0));
    Ok(())
}

/// The options of XADD and XTRIM.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrimOptions {
    /// The part of the stream to remove.
    pub(super) trim: Option<Trimming>,
    limit: Option<usize>,
    /// XADD creates a missing stream.
    pub(super) makes_stream: bool,
}

/// The entries to remove, and whether exactly or approximately.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trimming {
    which: Trim,
    approximately: bool,
    /// The maximum number of entries to remove, 0 for no limit.
    limit: usize,
    /// The index of the threshold in the request.
    place: usize,
}

/// The largest default of LIMIT, the most entries that an approximate trim removes, whatever the size of blocks.
const MAX_DEFAULT_LIMIT: i64 = 1_000_000;
/// The default of LIMIT if blocks have no maximum size.
const DEFAULT_LIMIT: i64 = 10_000;

impl Default for TrimOptions {
    fn default() -> TrimOptions {
        TrimOptions { trim: None, limit: None, makes_stream: true }
    }
}

impl TrimOptions {
    /// Parses one trimming option; returns false if the next word is none.
    pub(super) fn take(&mut self, args: &mut Args<'_>) -> Result<bool, Error> {
        if args.take_with("MAXLEN", 1) {
            self.take_strategy(args, |args| {
                let length = usize::try_from(args.integer()?).map_err(|_| StreamError::TrimLengthNegative)?;
                Ok(Trim::ToLength(length))
            })?;
        } else if args.take_with("MINID", 1) {
            self.take_strategy(args, |args| id(args).map(Trim::Before))?;
        } else if args.take_with("LIMIT", 1) {
            self.limit = Some(usize::try_from(args.integer()?).map_err(|_| StreamError::TrimLimitNegative)?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn take_strategy<'a>(
        &mut self,
        args: &mut Args<'a>,
        threshold: impl FnOnce(&mut Args<'a>) -> Result<Trim, Error>,
    ) -> Result<(), Error> {
        if self.trim.is_some() {
            return Err(StreamError::SeveralTrims.into());
        }
        let approximately = args.take_with("~", 1);
        if !approximately {
            args.take_with("=", 1);
        }
        let place = args.position();
        self.trim = Some(Trimming { which: threshold(args)?, approximately, limit: 0, place });
        Ok(())
    }

    /// Checks that the options are compatible, and returns what to remove. Approximate trimming has a default limit: a
    /// hundred blocks.
    pub(super) fn resolve(&mut self, cx: &Ctx<'_>) -> Result<Option<Trimming>, Error> {
        let (limits, is_loading) = (&cx.settings().stream_blocks, operations::is_loading(cx));
        let Some(trim) = &mut self.trim else {
            return match self.limit {
                None => Ok(None),
                Some(0) => Err(StreamError::TrimLimitExact.into()),
                Some(_) => Err(StreamError::TrimLimitAlone.into()),
            };
        };
        match self.limit {
            // A trim that was approximate is exact in the log of changes, and keeps its limit.
            Some(_) if is_loading && !trim.approximately => {}
            Some(_) if !trim.approximately => return Err(StreamError::TrimLimitExact.into()),
            Some(limit) => trim.limit = limit,
            None if trim.approximately => trim.limit = default_limit(limits),
            None => {}
        }
        Ok(self.trim)
    }
}

fn default_limit(limits: &Limits) -> usize {
    let limit = match (limits.entries as i64).wrapping_mul(100) {
        ..=0 => DEFAULT_LIMIT,
        limit => limit.min(MAX_DEFAULT_LIMIT),
    };
    limit as usize
}

impl Trimming {
    /// Whether it goes into the log of changes in other words than the request's.
    pub(super) fn is_approximate(self) -> bool {
        self.approximately
    }

    /// The threshold at which an exact trim of the stream leaves what is left of it now.
    pub(super) fn threshold_left(self, cx: &mut Ctx<'_>, key: &[u8]) -> Vec<u8> {
        let stream = cx.lookup(key, Lookup::NO_TRACE).and_then(|found| found.read::<Stream>().ok());
        let threshold = stream.map(Stream::log).map(|log| match self.which {
            Trim::ToLength(_) => log.len().to_string(),
            Trim::Before(_) => log.first_stored().unwrap_or(Id::MAX).to_string(),
        });
        threshold.unwrap_or_default().into_bytes()
    }

    /// Makes the words of a request trim exactly to a threshold.
    pub(super) fn say_exactly<'a>(self, words: &mut [&'a [u8]], threshold: &'a [u8]) {
        (words[self.place - 1], words[self.place]) = (b"=", threshold);
    }

    /// Trims, and returns the number of removed entries.
    pub(super) fn carry_out(self, stream: &mut Stream) -> usize {
        stream.log_mut().trim(self.which, self.approximately, self.limit)
    }
}
