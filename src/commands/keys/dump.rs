//! DUMP, RESTORE and RESTORE-ASKING: serialized values of keys.

use crate::engine::exec::operations;
use crate::engine::{
    Args, Arity, Change, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec, LogLevel, Lookup, RestoreError,
    state::lru::LruHint,
};
use crate::rdb::{self, LoadError};

const RESTORED: Event = Event::generic("restore");

pub(super) const DUMP: Command = Command {
    name: "DUMP",
    syntax: "key",
    family: Family::Generic,
    arity: Arity::Exactly(2),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "2.6.0",
    cost: "O(1) to find the key and O(N*M) to write it, N being the number of its elements and M their mean size",
    about: "Returns the serialized value of a key, for RESTORE.",
    tips: &["nondeterministic_output"],
    run: dump,
    ..Command::ROW
};

fn dump(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let compresses = cx.settings().files.compresses;
    let (view, reply) = cx.view(key);
    match view {
        Some(view) => reply.bulk(&rdb::dump(view, compresses)),
        None => reply.null(),
    }
    Ok(())
}

pub(super) const RESTORE: Command = Command {
    name: "RESTORE",
    syntax: "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
    family: Family::Generic,
    arity: Arity::AtLeast(4),
    flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::DANGEROUS),
    keys: &[KeySpec::one(KeyFlags::OW.and(KeyFlags::UPDATE))],
    since: "2.6.0",
    history: &[
        Change::brings("3.0.0", &["REPLACE"]),
        Change::brings("5.0.0", &["ABSTTL"]),
        Change::brings("5.0.0", &["IDLETIME", "FREQ"]),
    ],
    cost: "O(1) to make the key and O(N*M) to read its value, N being the number of its elements and M their mean \
           size; O(N*M*log(N)) for a sorted set",
    about: "Creates a key from a value serialized by DUMP.",
    run: restore,
    ..Command::ROW
};

pub(super) const RESTORE_ASKING: Command = Command {
    name: "RESTORE-ASKING",
    family: Family::Server,
    flags: Flags::WRITE
        .and(Flags::DENYOOM)
        .and(Flags::ASKING)
        .and(Flags::DANGEROUS)
        .and(Flags::KEYSPACE)
        .and(Flags::SYSTEM),
    since: "3.0.0",
    about: "Creates a key from a value serialized by DUMP, for use between the nodes of a cluster.",
    ..RESTORE
};

/// The options after the payload.
#[derive(Default)]
struct Options {
    replace: bool,
    is_absolute: bool,
    /// The access time or counter of the key.
    hint: Option<LruHint>,
}

impl Options {
    fn parse(args: &mut Args<'_>) -> Result<Options, Error> {
        let mut options = Options::default();
        while !args.is_empty() {
            if args.take("REPLACE") {
                options.replace = true;
            } else if args.take("ABSTTL") {
                options.is_absolute = true;
            } else if !matches!(options.hint, Some(LruHint::Frequency(_))) && args.take_with("IDLETIME", 1) {
                let idle_s = Some(args.integer()?).filter(|&idle_s| idle_s >= 0);
                options.hint = Some(LruHint::Idle(idle_s.ok_or(RestoreError::NegativeIdleTime)?));
            } else if !matches!(options.hint, Some(LruHint::Idle(_))) && args.take_with("FREQ", 1) {
                let count = u8::try_from(args.integer()?).map_err(|_| RestoreError::FrequencyOutOfRange)?;
                options.hint = Some(LruHint::Frequency(count));
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(options)
    }
}

fn restore(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, ttl, payload) = (args.key()?, args.word()?, args.word()?);
    let options = Options::parse(&mut args)?;
    if !options.replace && cx.lookup(key, Lookup::WRITE).is_some() {
        return Err(RestoreError::Busy.into());
    }
    let deadline_ms = deadline(ttl, options.is_absolute, cx.now_ms())?;
    let is_of_valkey = rdb::is_of_valkey(payload);
    let payload = rdb::without_footer(payload, cx.engine().switches.verifies_checksums).ok_or(Error::PayloadWrong)?;
    let room_bytes = cx.engine().switches.capacity.collection_bytes;
    let restore = if is_of_valkey { rdb::restore_of_valkey } else { rdb::restore };
    let value = restore(payload, &cx.settings().forms(), room_bytes).map_err(|refusal| match refusal {
        LoadError::Damaged { form } => {
            operations::log(cx, LogLevel::Verbose, format!("{form} integrity check failed."));
            RestoreError::BadFormat.into()
        }
        LoadError::TooLarge => Error::OutOfMemory,
    })?;
    if deadline_ms.is_some_and(|deadline_ms| deadline_ms <= cx.engine().timing.past_ms()) {
        if cx.remove(key, Event::DEL) && operations::is_propagating(cx) {
            propagate_deletion(cx, key);
        }
    } else {
        let database = cx.database_index();
        // Redis, which may load our append-only file, takes no payload of Valkey.
        let is_rewritten = is_of_valkey && operations::is_propagating(cx);
        let rewritten = is_rewritten.then(|| rdb::dump(value.view(), cx.settings().files.compresses));
        cx.restore(database, key, value, deadline_ms, options.hint, RESTORED);
        let relative_ms = deadline_ms.filter(|_| !options.is_absolute && operations::is_propagating(cx));
        if rewritten.is_some() || relative_ms.is_some() {
            let (mut words, mut digits) = (args.all(), itoa::Buffer::new());
            if let Some(payload) = &rewritten {
                words[3] = payload;
            }
            if let Some(deadline_ms) = relative_ms {
                words[2] = digits.format(deadline_ms).as_bytes();
                words.push(b"ABSTTL");
            }
            operations::propagate_instead(cx, &words);
        }
    }
    cx.reply().ok();
    Ok(())
}

/// Propagates the deletion of a key by a command of another name, instead of that command.
pub(in crate::commands) fn propagate_deletion(cx: &mut Ctx<'_>, key: &[u8]) {
    let name = if cx.settings().lazy_free.replaced { &b"UNLINK"[..] } else { b"DEL" };
    operations::propagate_instead(cx, &[name, key]);
}

/// The deadline for a time to live in milliseconds, 0 for none.
fn deadline(ttl: &[u8], is_absolute: bool, now_ms: i64) -> Result<Option<i64>, Error> {
    let ttl_ms = crate::value::number::parse_i64(ttl).ok_or(Error::NotAnInteger)?;
    match ttl_ms {
        ..0 => Err(RestoreError::NegativeTtl.into()),
        0 => Ok(None),
        _ if is_absolute => Ok(Some(ttl_ms)),
        _ => Ok(Some(now_ms.saturating_add(ttl_ms))),
    }
}
