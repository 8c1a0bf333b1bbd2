//! MIGRATE: moves keys to another server.
//!
//! Each key becomes a RESTORE there, and is deleted here when its reply is positive. No other client is served in
//! between, as in Redis: otherwise a client could write to a key that is about to be deleted. This is also true in
//! transactions and scripts. The host connects to the other server ([`crate::engine::RemoteRequest`]).
//!
//! A payload says the earliest version that has its value, unlike that of DUMP, which is exactly Redis's: so Valkey 9
//! and Redis 7.2 take all but hashes whose fields have deadlines.
//!
//! Source: the requests that Redis 8.0.6 sends, and its replies when servers refuse, stay silent or close the
//! connection.

use std::ops::Range;

use crate::engine::exec::operations;
use crate::engine::{
    Args, Arity, Begin, Change, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec, Lookup, RemoteFault,
    RemoteRequest, RemoteResult, Secrets, ServerError, says, shown,
};
use crate::rdb;
use crate::resp::{Protocol, Reply, Request};
use crate::value::number;

const MIGRATED: KeyFlags = KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::DELETE);

/// The index of the first word that may be an option.
const OPTIONS: usize = 6;

pub(super) const MIGRATE: Command = Command {
    name: "MIGRATE",
    syntax: "host port key-selector:<key|empty-string:\"\"> destination-db timeout [COPY] [REPLACE] \
             authentication:[AUTH auth:password|AUTH2 username password] [KEYS keys:key [keys:key ...]]",
    family: Family::Generic,
    arity: Arity::AtLeast(6),
    flags: Flags::WRITE.and(Flags::DANGEROUS),
    keys: &[
        KeySpec::at(3, MIGRATED),
        KeySpec { begin: Begin::Keyword("KEYS", -2), ..KeySpec::range(0, -1, 1, MIGRATED.and(KeyFlags::INCOMPLETE)) },
    ],
    keys_by: Some(places_of_keys),
    since: "2.6.0",
    history: &[
        Change::brings("3.0.0", &["COPY", "REPLACE"]),
        Change::brings("3.0.6", &["KEYS"]),
        Change::brings("4.0.7", &["AUTH"]),
        Change::brings("6.0.0", &["AUTH2"]),
    ],
    cost: "That of DUMP and DEL here and of RESTORE there, and of O(N) bytes on the way between",
    about: "Moves keys to another server, or copies them there.",
    tips: &["nondeterministic_output"],
    secrets: Secrets::Options { first: OPTIONS, last: "KEYS", secret: &[("AUTH", 1), ("AUTH2", 2)] },
    run: migrate,
    ..Command::ROW
};

/// The positions of the keys: after KEYS, or, if the key argument is not empty, that argument. Both together are an
/// error.
fn places_of_keys(request: Request<'_>) -> Range<usize> {
    let mut place = OPTIONS;
    while let Some(word) = request.get(place) {
        place += 1;
        if says(word, "KEYS") && place < request.len() {
            let is_selected = request.get(3).is_some_and(|key| !key.is_empty());
            return if is_selected { 0..0 } else { place..request.len() };
        }
        place += if says(word, "AUTH") {
            1
        } else if says(word, "AUTH2") {
            2
        } else {
            0
        };
    }
    3..4
}

/// The options of a migration.
#[derive(Default)]
struct Options<'a> {
    /// The keys stay here as well.
    copies: bool,
    /// The keys replace existing ones there.
    replaces: bool,
    /// The credentials for the other server.
    login: Vec<&'a [u8]>,
    keys: Vec<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(args: &mut Args<'a>, key: &'a [u8]) -> Result<Options<'a>, Error> {
        let mut options = Options { keys: vec![key], ..Options::default() };
        while !args.is_empty() {
            if args.take("COPY") {
                options.copies = true;
            } else if args.take("REPLACE") {
                options.replaces = true;
            } else if args.take("AUTH") {
                options.login = args.words(1)?;
            } else if args.take("AUTH2") {
                options.login = args.words(2)?;
            } else if args.take("KEYS") {
                if !key.is_empty() {
                    return Err(ServerError::KeyBesideKeys.into());
                }
                options.keys = args.words(args.left())?;
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(options)
    }
}

/// The default timeout of a step, in milliseconds.
const DEFAULT_TIMEOUT_MS: u64 = 1000;

fn migrate(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (host, port, key) = (args.word()?, args.word()?, args.key()?);
    let (database, timeout) = (args.word()?, args.word()?);
    let options = Options::parse(&mut args, key)?;
    let timeout_ms = number::parse_i64(timeout).ok_or(Error::NotAnInteger)?;
    let database = number::parse_i64(database).ok_or(Error::NotAnInteger)?;
    let mut requests = Vec::new();
    let goes =
        |key: &&[u8]| cx.lookup(key, Lookup::READ).is_some() && write_restore(cx, key, options.replaces, &mut requests);
    let keys: Vec<&[u8]> = options.keys.iter().copied().filter(goes).collect();
    if keys.is_empty() {
        cx.reply().simple("NOKEY");
        return Ok(());
    }
    let port = number::leading_i64(port);
    if port < 0 {
        return Err(ServerError::Unreachable.into());
    }
    let timeout_ms = u64::try_from(timeout_ms).ok().filter(|&ms| ms > 0).unwrap_or(DEFAULT_TIMEOUT_MS);
    let mut remote = RemoteRequest {
        host: shown(host),
        port: port as u16,
        database,
        login: Vec::new(),
        requests,
        count: keys.len(),
        timeout_ms,
    };
    if !options.login.is_empty() {
        let words = [&b"AUTH"[..]].into_iter().chain(options.login.iter().copied());
        write_request(&mut remote.login, 1 + options.login.len(), words);
    }
    let report = operations::send_remote(cx, remote);
    conclude(cx, &keys, options.copies, &report)
}

fn write_request<'w>(out: &mut Vec<u8>, count: usize, words: impl Iterator<Item = &'w [u8]>) {
    let mut request = Reply::new(out, Protocol::Resp2);
    request.array(count);
    words.for_each(|word| request.bulk(word));
}

/// Adds the request that restores a key on the other server; false if the key does not exist here.
fn write_restore(cx: &mut Ctx<'_>, key: &[u8], replaces: bool, out: &mut Vec<u8>) -> bool {
    let (now_ms, compresses) = (cx.now_ms(), cx.settings().files.compresses);
    let Some(found) = cx.lookup(key, Lookup::NO_TRACE) else { return false };
    // An existing key lives for at least another millisecond: 0 would mean for ever.
    let ttl_ms = found.deadline_ms().map_or(0, |deadline_ms| deadline_ms.saturating_sub(now_ms).max(1)).to_string();
    let payload = rdb::portable_dump(found.view(), compresses);
    let name = if cx.engine().peers.cluster.is_some() { &b"RESTORE-ASKING"[..] } else { b"RESTORE" };
    let words = [name, key, ttl_ms.as_bytes(), &payload].into_iter();
    let words = words.chain(replaces.then_some(&b"REPLACE"[..]));
    write_request(out, 4 + usize::from(replaces), words);
    true
}

/// Deletes the keys that have arrived, and replies.
fn conclude(cx: &mut Ctx<'_>, keys: &[&[u8]], copies: bool, report: &RemoteResult) -> Result<(), Error> {
    let (mut refusal, mut removed) = (None, vec![&b"DEL"[..]]);
    for (number, key) in keys.iter().enumerate().take(report.replies.len()) {
        match report.refusal_of(number) {
            Some(line) => _ = refusal.get_or_insert(line),
            None if copies => {}
            None if cx.remove(key, Event::DEL) => removed.push(key),
            None => {}
        }
    }
    if removed.len() > 1 && operations::is_propagating(cx) {
        operations::propagate_instead(cx, &removed);
    }
    match (refusal, report.fault) {
        (Some(line), _) => Err(ServerError::Target(shown(line.get(1..).unwrap_or_default())).into()),
        (None, Some(RemoteFault::Connecting)) => Err(ServerError::Unreachable.into()),
        (None, Some(RemoteFault::Writing)) => Err(ServerError::Interrupted("writing").into()),
        (None, Some(RemoteFault::Reading)) => Err(ServerError::Interrupted("reading").into()),
        (None, None) => {
            cx.reply().ok();
            Ok(())
        }
    }
}
