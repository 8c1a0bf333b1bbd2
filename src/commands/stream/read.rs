//! XREAD and XREADGROUP: read the next entries. XREAD returns entries after the given ids, XREADGROUP new entries for
//! the group, or the consumer's own pending ones.
//!
//! With BLOCK, both block while there is no entry. They run again from the start when one is added, so relative
//! arguments are first replaced in the request: `$` becomes the present last id. XREADGROUP also runs again when a key
//! or its group is deleted, and replies with the error.

use super::propagate::Claims;
use super::{all_if_zero, count, parse_id, write_entries, write_entry, write_id};
use crate::engine::exec::operations;
use crate::engine::{
    Args, Arity, Begin, Block, Command, Ctx, Error, Event, Family, Find, Flags, KeyFlags, KeySpec, Lookup,
    MetadataChange, Now, Propagated, StreamError, says, shown,
};
use crate::resp::{Protocol, Reply, Requests};
use crate::value::Stream;
use crate::value::number;
use crate::value::stream::{ConsumerNumber, Group, Id, Log};

pub(super) const XREAD: Command = Command {
    name: "XREAD",
    syntax: "[COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]",
    family: Family::Stream,
    arity: Arity::AtLeast(4),
    flags: Flags::READONLY.and(Flags::BLOCKING),
    keys: &[streams(1)],
    since: "5.0.0",
    cost: "",
    about: "Returns the entries after an id from each stream; may block.",
    run: |cx, args| read(cx, args, false),
    ..Command::ROW
};

pub(super) const XREADGROUP: Command = Command {
    name: "XREADGROUP",
    syntax: "group-block:<GROUP group consumer> [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key [key ...] \
             id [id ...]",
    arity: Arity::AtLeast(7),
    flags: Flags::WRITE.and(Flags::BLOCKING),
    propagated: Propagated::OwnWords,
    keys: &[streams(4)],
    cost: "O(M), M being the entries answered. Where it waits, XADD pays O(N) for the N clients that it serves.",
    about: "Returns new entries for a consumer of a group from each stream; may block.",
    run: |cx, args| read(cx, args, true),
    ..XREAD
};

/// The first half of the words after `STREAMS`.
const fn streams(from: i32) -> KeySpec {
    KeySpec {
        begin: Begin::Keyword("STREAMS", from),
        find: Find::Range { last: -1, step: 1, limit: 2 },
        access: KeyFlags::RO.and(KeyFlags::ACCESS),
        notes: "",
    }
}

fn read(cx: &mut Ctx<'_>, mut args: Args<'_>, is_group: bool) -> Result<(), Error> {
    let request: Vec<&[u8]> = std::iter::once(args.previous()).chain(args.rest()).collect();
    let read_options = ReadOptions::parse(&mut args, cx.now(), is_group)?;
    let after = read_options.resolve(cx)?;
    let answer = cx.reply().open_array();
    let mut replied = 0;
    for (key, &after) in read_options.keys.iter().zip(&after) {
        replied += usize::from(match read_options.reader {
            Some(reader) => read_options.deliver(cx, key, reader, after)?,
            None => read_options.answer(cx, key, after)?,
        });
    }
    if replied > 0 {
        match cx.reply().protocol() {
            Protocol::Resp2 => cx.reply().close_array(answer, replied),
            Protocol::Resp3 => cx.reply().close_map(answer, replied),
        }
        return Ok(());
    }
    match read_options.deadline_ms {
        None => cx.reply().null_array(),
        Some(deadline_ms) => {
            let block = Block::on::<Stream>(&read_options.keys, deadline_ms).again(again(&request, &after), is_group);
            cx.block(block, |reply| reply.null_array());
        }
    }
    Ok(())
}

/// The request with the present ids in place of `$`.
fn again(request: &[&[u8]], after: &[Id]) -> Requests {
    let (head, words) = request.split_at(request.len() - after.len());
    let ids: Vec<Vec<u8>> = words
        .iter()
        .zip(after)
        .map(|(word, id)| if says(word, "$") { id.to_string().into_bytes() } else { word.to_vec() })
        .collect();
    Requests::of(head.iter().copied().chain(ids.iter().map(Vec::as_slice)))
}

/// A group and its consumer that reads.
#[derive(Clone, Copy)]
struct Reader<'a> {
    group: &'a [u8],
    consumer: &'a [u8],
}

/// The parsed arguments.
struct ReadOptions<'a> {
    reader: Option<Reader<'a>>,
    most: usize,
    /// Whether the command blocks, and until when, in unix milliseconds.
    deadline_ms: Option<Option<i64>>,
    no_ack: bool,
    keys: Vec<&'a [u8]>,
    ids: Vec<&'a [u8]>,
}

/// The id that represents `>`: new entries of the group.
const NEW: Id = Id::MAX;

impl<'a> ReadOptions<'a> {
    fn parse(args: &mut Args<'a>, now: Now, is_group: bool) -> Result<ReadOptions<'a>, Error> {
        let none = Vec::new;
        let mut read_options =
            ReadOptions { reader: None, most: usize::MAX, deadline_ms: None, no_ack: false, keys: none(), ids: none() };
        while !args.is_empty() {
            if args.take_with("BLOCK", 1) {
                read_options.deadline_ms = Some(deadline(args.word()?, now)?);
            } else if args.take_with("COUNT", 1) {
                read_options.most = all_if_zero(count(args)?);
            } else if args.take_with("STREAMS", 1) {
                read_options.take_streams(args, is_group)?;
            } else if args.take_with("GROUP", 2) {
                let (group, consumer) = (args.word()?, args.word()?);
                if !is_group {
                    return Err(StreamError::OnlyReadGroup("GROUP").into());
                }
                read_options.reader = Some(Reader { group, consumer });
            } else if args.take("NOACK") {
                if !is_group {
                    return Err(StreamError::OnlyReadGroup("NOACK").into());
                }
                read_options.no_ack = true;
            } else {
                return Err(Error::Syntax);
            }
        }
        match (read_options.keys.is_empty(), is_group && read_options.reader.is_none()) {
            (true, _) => Err(Error::Syntax),
            (_, true) => Err(StreamError::GroupMissing.into()),
            _ => Ok(read_options),
        }
    }

    fn take_streams(&mut self, args: &mut Args<'a>, is_group: bool) -> Result<(), Error> {
        if !args.left().is_multiple_of(2) {
            let (command, ids) = if is_group { ("xreadgroup", "ID or '>'") } else { ("xread", "ID, '+', or '$'") };
            return Err(StreamError::UnbalancedStreams { command, ids }.into());
        }
        let half = args.left() / 2;
        self.keys = args.words(half)?;
        self.ids = args.words(half)?;
        Ok(())
    }

    /// The ids after which each stream is read. All are resolved before anything is read, delivered or blocked on.
    fn resolve(&self, cx: &mut Ctx<'_>) -> Result<Vec<Id>, Error> {
        self.keys.iter().zip(&self.ids).map(|(key, id)| self.resolve_one(cx, key, id)).collect()
    }

    fn resolve_one(&self, cx: &mut Ctx<'_>, key: &[u8], id: &[u8]) -> Result<Id, Error> {
        let (stream, _) = cx.read::<Stream>(key)?;
        let log = stream.map(Stream::log);
        let Some(reader) = self.reader else {
            return match id {
                _ if says(id, "$") => Ok(log.map_or(Id::MIN, Log::last)),
                _ if says(id, "+") => Ok(log.and_then(before_last).unwrap_or(Id::MIN)),
                _ if says(id, ">") => Err(StreamError::NewEntriesWithoutGroup.into()),
                _ => parse_id(id, 0),
            };
        };
        if stream.and_then(|stream| stream.group(reader.group)).is_none() {
            return Err(StreamError::NoGroupToRead { key: shown(key), group: shown(reader.group) }.into());
        }
        match id {
            _ if says(id, "$") => Err(StreamError::MeaninglessId('$').into()),
            _ if says(id, "+") => Err(StreamError::MeaninglessId('+').into()),
            _ if says(id, ">") => Ok(NEW),
            _ => parse_id(id, 0),
        }
    }

    /// Replies with a stream's entries after an id; returns false if there are none.
    fn answer(&self, cx: &mut Ctx<'_>, key: &[u8], after: Id) -> Result<bool, Error> {
        let (stream, reply) = cx.read::<Stream>(key)?;
        let Some(log) = stream.map(Stream::log).filter(|log| log.has_after(after)) else { return Ok(false) };
        write_key(reply, key);
        write_entries(reply, log.range(after.next().unwrap_or(NEW), Id::MAX).take(self.most));
        Ok(true)
    }

    /// Delivers a stream's entries to the consumer, which is created if needed; returns false if there are none.
    fn deliver(&self, cx: &mut Ctx<'_>, key: &[u8], reader: Reader<'_>, after: Id) -> Result<bool, Error> {
        let now_ms = cx.now_ms();
        if cx.lookup(key, Lookup::READ).is_none() {
            return Ok(false);
        }
        let mut claims = operations::is_propagating(cx).then(Claims::default);
        let mut is_new_reader = false;
        let is_replied = cx.update_metadata(key, |stream: &mut Stream, reply| {
            let given = stream.edit_group(reader.group, |log, group| {
                let (consumer, is_new) = group.add_consumer(reader.consumer, now_ms);
                group.consumer_mut(consumer).seen_ms = now_ms;
                let has_entries = after == NEW && log.has_after(group.last);
                if has_entries {
                    write_key(reply, key);
                    self.deliver_new(reply, log, group, consumer, now_ms, claims.as_mut());
                } else if after != NEW {
                    write_key(reply, key);
                    self.deliver_pending(reply, log, group, consumer, after, now_ms);
                }
                (is_new, has_entries, after != NEW)
            });
            let (is_new, has_entries, is_history) = given.unwrap_or_default();
            is_new_reader = is_new;
            let event = is_new.then_some(Event::stream("xgroup-createconsumer"));
            Ok(MetadataChange::by(usize::from(is_new) + usize::from(has_entries), event, has_entries || is_history))
        })?;
        if let Some(claims) = claims {
            if is_new_reader && self.no_ack {
                operations::propagate_also(cx, &[b"XGROUP", b"CREATECONSUMER", key, reader.group, reader.consumer]);
            }
            claims.propagate(cx, key, reader.group);
        }
        Ok(is_replied.unwrap_or(false))
    }

    /// Delivers entries that no consumer has got yet.
    fn deliver_new(
        &self,
        reply: &mut Reply<'_>,
        log: &Log,
        group: &mut Group,
        consumer: ConsumerNumber,
        now_ms: i64,
        mut claims: Option<&mut Claims>,
    ) {
        let first = group.last.next().unwrap_or(NEW);
        let array = reply.open_array();
        let mut replied = 0;
        for entry in log.range(first, Id::MAX).take(self.most) {
            group.advance(log, entry.id());
            write_entry(reply, &entry);
            if !self.no_ack {
                group.deliver(entry.id(), consumer, now_ms);
                if let Some(claims) = &mut claims {
                    claims.add(group, entry.id(), None);
                }
            }
            replied += 1;
        }
        claims.into_iter().for_each(|claims| claims.advance(group));
        reply.close_array(array, replied);
    }

    /// Replies with the consumer's own pending entries; for a deleted entry, only with its id.
    fn deliver_pending(
        &self,
        reply: &mut Reply<'_>,
        log: &Log,
        group: &mut Group,
        consumer: ConsumerNumber,
        after: Id,
        now_ms: i64,
    ) {
        let first = after.next().unwrap_or(NEW);
        let ids: Vec<Id> = group.pending_of(consumer, first).map(|pending| pending.id()).take(self.most).collect();
        reply.array(ids.len());
        for id in ids {
            let Some(entry) = log.get(id) else {
                reply.array(2);
                write_id(reply, id);
                reply.null_array();
                continue;
            };
            write_entry(reply, &entry);
            if let Some(pending) = group.pending_mut(id) {
                pending.delivered_ms = now_ms;
                pending.times = pending.times.wrapping_add(1);
            }
        }
    }
}

/// The id before the last entry.
fn before_last(log: &Log) -> Option<Id> {
    log.last_entry()?.id().previous()
}

/// Writes the header before the entries of a stream: in RESP2 a pair is an array of two.
fn write_key(reply: &mut Reply<'_>, key: &[u8]) {
    if reply.protocol() == Protocol::Resp2 {
        reply.array(2);
    }
    reply.bulk(key);
}

/// Parses a timeout in milliseconds into its end; `None` for 0, which means for ever.
fn deadline(word: &[u8], now: Now) -> Result<Option<i64>, Error> {
    match number::parse_i64(word).ok_or(Error::TimeoutNotAnInteger)? {
        ..0 => Err(Error::TimeoutNegative),
        0 => Ok(None),
        timeout_ms => now.wait_end_ms(timeout_ms).ok_or(Error::TimeoutOutOfRange).map(Some),
    }
}
