//! XADD: appends an entry to a stream, and optionally trims the stream.

use super::trim::{TrimOptions, Trimming, XTRIM_EVENT};
use super::write_id;
use crate::engine::exec::operations;
use crate::engine::{
    Args, Arity, Change, Changed, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec, Missing, StreamError,
    says,
};
use crate::value::Stream;
use crate::value::stream::{Id, Log, MAX_BYTES};

pub(super) const XADD: Command = Command {
    name: "XADD",
    syntax: "key [NOMKSTREAM] \
             trim:[strategy:<MAXLEN|MINID> operator:[equal:=|approximately:~] threshold [LIMIT count]] \
             id-selector:<auto-id:*|id> field value [field value ...]",
    family: Family::Stream,
    arity: Arity::AtLeast(5),
    flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::UPDATE))
        .noting("UPDATE instead of INSERT because of the optional trimming feature")],
    since: "5.0.0",
    history: &[
        Change::brings("6.2.0", &["NOMKSTREAM", "MINID", "LIMIT"]),
        Change::says("7.0.0", "An id may have an automatic sequence number: `<ms>-*`."),
    ],
    cost: "O(1) for the entry, and O(N) for trimming, N being the entries that go.",
    about: "Appends an entry to a stream, which is created if it does not exist.",
    tips: &["nondeterministic_output"],
    run: xadd,
    ..Command::ROW
};

const ADDED: Event = Event::stream("xadd");

fn xadd(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let limits = cx.settings().stream_blocks;
    let (options, wanted) = parse(cx, &mut args)?;
    let place = args.position() - 1;
    if args.left() < 2 || !args.left().is_multiple_of(2) {
        return Err(Error::WrongArity("xadd".to_owned()));
    }
    if wanted == Wanted::Exactly(Id::MIN) {
        return Err(StreamError::EntryIdZero.into());
    }
    let now_ms = u64::try_from(cx.now_ms()).unwrap_or(0);
    let added = cx.update(key, Missing::create_if(options.makes_stream), ADDED, |stream: &mut Stream, _| {
        let id = wanted.id_in(stream.log(), now_ms)?;
        if args.rest().map(<[u8]>::len).sum::<usize>() > MAX_BYTES {
            return Err(StreamError::EntryTooLarge.into());
        }
        stream.log_mut().push(id, args.rest(), &limits);
        Ok(Changed::by(1, id).ready())
    })?;
    let Some(id) = added else {
        cx.reply().null();
        return Ok(());
    };
    if let Some(trim) = options.trim {
        cx.update(key, Missing::Skip, XTRIM_EVENT, |stream: &mut Stream, _| {
            let is_shorter = trim.carry_out(stream) > 0;
            Ok(if is_shorter { Changed::by(0, ()).announced() } else { Changed::by(0, ()) })
        })?;
    }
    write_id(cx.reply(), id);
    if operations::is_propagating(cx) {
        propagate(cx, &args, options.trim, (wanted, id), place);
    }
    Ok(())
}

/// Propagates XADD with the id that the entry got instead of the wanted one, and with an exact trim.
fn propagate(cx: &mut Ctx<'_>, args: &Args<'_>, trim: Option<Trimming>, (wanted, id): (Wanted, Id), place: usize) {
    let (mut words, id) = (args.all(), id.to_string());
    let trim = trim.filter(|trim| trim.is_approximate());
    let threshold = trim.map(|trim| trim.threshold_left(cx, words[1])).unwrap_or_default();
    if let Some(trim) = trim {
        trim.say_exactly(&mut words, &threshold);
    }
    if !matches!(wanted, Wanted::Exactly(_)) {
        words[place] = id.as_bytes();
    }
    operations::propagate_instead(cx, &words);
}

/// The requested id of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// An id made from the current time.
    Now,
    /// An id with this time, and the next free sequence number.
    Of(u64),
    /// Exactly this id.
    Exactly(Id),
}

impl Wanted {
    fn parse(word: &[u8]) -> Result<Wanted, Error> {
        let (ms, seq) = Id::parse_open(word).ok_or(StreamError::InvalidStreamId)?;
        Ok(seq.map_or(Wanted::Of(ms), |seq| Wanted::Exactly(Id::new(ms, seq))))
    }

    /// The resulting id in a stream with these entries.
    fn id_in(self, log: &Log, now_ms: u64) -> Result<Id, Error> {
        let next = log.next_id(now_ms).ok_or(StreamError::EntryIdsExhausted)?;
        let last = log.last();
        let id = match self {
            Wanted::Now => next,
            Wanted::Of(ms) if ms == last.ms => {
                Id::new(ms, last.seq.checked_add(1).ok_or(StreamError::EntryIdTooSmall)?)
            }
            Wanted::Of(ms) => Id::new(ms, 0),
            Wanted::Exactly(id) => id,
        };
        if id > last { Ok(id) } else { Err(StreamError::EntryIdTooSmall.into()) }
    }
}

/// Parses the options, and the id that ends them.
fn parse(cx: &Ctx<'_>, args: &mut Args<'_>) -> Result<(TrimOptions, Wanted), Error> {
    let mut options = TrimOptions::default();
    let mut wanted = Wanted::Now;
    while let Some(word) = args.peek() {
        if says(word, "*") {
            args.word()?;
            break;
        }
        if options.take(args)? {
            continue;
        }
        if args.take("NOMKSTREAM") {
            options.makes_stream = false;
        } else {
            wanted = Wanted::parse(args.word()?)?;
            break;
        }
    }
    options.resolve(cx)?;
    Ok((options, wanted))
}
