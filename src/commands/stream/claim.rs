//! XCLAIM and XAUTOCLAIM: transfer pending entries to another consumer, by ids or by idle time.
//!
//! Both create the consumer if it does not exist, and drop pending entries that are no longer in the stream.

use super::propagate::Claims;
use super::{find_group, id, interval_start, write_entry, write_id, write_ids};
use crate::engine::exec::operations;
use crate::engine::{
    Args, Arity, Change, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec, Lookup, MetadataChange, Peek,
    Propagated, StreamError, shown,
};
use crate::resp::Reply;
use crate::value::stream::{ConsumerNumber, Entry, Group, Id, Log};
use crate::value::{Stream, number};

pub(super) const XCLAIM: Command = Command {
    name: "XCLAIM",
    syntax: "key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds] [RETRYCOUNT count] \
             [FORCE] [JUSTID] [LASTID lastid]",
    family: Family::Stream,
    arity: Arity::AtLeast(6),
    flags: Flags::WRITE.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::UPDATE))],
    since: "5.0.0",
    cost: "O(log N), N being what is pending in the group.",
    about: "Transfers pending entries to another consumer.",
    propagated: Propagated::OwnWords,
    tips: &["nondeterministic_output"],
    run: xclaim,
    ..Command::ROW
};

/// The arguments are parsed after the group was found.
fn xclaim(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, group) = (args.key()?, args.word()?);
    find_group(cx.read::<Stream>(key)?.0, key, group)?;
    let now_ms = cx.now_ms();
    let mut ids = args;
    ids.part(2);
    let (consumer, claim) = Claim::parse(&mut args, now_ms)?;
    let mut claims = operations::is_propagating(cx).then(Claims::default);
    cx.update_metadata(key, |stream: &mut Stream, reply| {
        let changed = stream.edit_group(group, |log, group| {
            let is_further = claim.last > group.last;
            group.last = group.last.max(claim.last);
            let mut claiming = ClaimingConsumer::new(group, consumer, now_ms, claims.as_mut());
            let array = reply.open_array();
            let claimed = claim.ids.iter().zip(ids.rest());
            let claimed = claimed.filter(|(id, word)| claim.carry_out(&mut claiming, log, reply, **id, word)).count();
            reply.close_array(array, claimed);
            // A claimed entry implies the new last id, which counts as a change only by itself.
            let tells_last = is_further && claiming.changes == 0;
            claiming.end(tells_last)
        });
        Ok(metadata_change(changed.unwrap_or_default()))
    })?;
    claims.into_iter().for_each(|claims| claims.propagate(cx, key, group));
    Ok(())
}

/// The consumer that takes entries over, and the results.
struct ClaimingConsumer<'g> {
    group: &'g mut Group,
    number: ConsumerNumber,
    is_new: bool,
    now_ms: i64,
    changes: usize,
    /// The claims for the log of changes, if there is one.
    claims: Option<&'g mut Claims>,
}

impl<'g> ClaimingConsumer<'g> {
    fn new(group: &'g mut Group, consumer: &[u8], now_ms: i64, claims: Option<&'g mut Claims>) -> ClaimingConsumer<'g> {
        let (number, is_new) = group.add_consumer(consumer, now_ms);
        group.consumer_mut(number).seen_ms = now_ms;
        ClaimingConsumer { group, number, is_new, now_ms, changes: 0, claims }
    }

    /// The number of changes, and whether the consumer is new; with the group's last id as a change of its own if
    /// `tells_last`.
    fn end(self, tells_last: bool) -> (usize, bool) {
        if tells_last {
            self.claims.into_iter().for_each(|claims| claims.advance(self.group));
        }
        (self.changes + usize::from(tells_last), self.is_new)
    }

    /// An entry that no longer exists is dropped from the pending ones. `word` is its id as the client wrote it.
    fn drop_deleted(&mut self, id: Id, word: Option<&[u8]>) {
        if let Some(claims) = &mut self.claims {
            claims.add(self.group, id, word);
        }
        self.changes += usize::from(self.group.acknowledge(id));
    }

    /// Whether an entry has been idle for this time.
    fn is_idle(&self, delivered_ms: i64, min_idle_ms: i64) -> bool {
        min_idle_ms == 0 || self.now_ms.wrapping_sub(delivered_ms) >= min_idle_ms
    }

    fn take(&mut self, id: Id, word: Option<&[u8]>, delivered_ms: i64, times: u64) {
        self.group.assign(id, self.number, delivered_ms, times);
        self.group.consumer_mut(self.number).active_ms = Some(self.now_ms);
        self.changes += 1;
        if let Some(claims) = &mut self.claims {
            claims.add(self.group, id, word);
        }
    }
}

/// The metadata change for a number of changes and for whether the consumer is new.
fn metadata_change((changes, is_new): (usize, bool)) -> MetadataChange<()> {
    MetadataChange::by(changes + usize::from(is_new), is_new.then_some(Event::stream("xgroup-createconsumer")), ())
}

fn write_claimed(reply: &mut Reply<'_>, entry: &Entry<'_>, ids_only: bool) {
    if ids_only { write_id(reply, entry.id()) } else { write_entry(reply, entry) }
}

/// The parsed arguments of XCLAIM.
struct Claim {
    min_idle_ms: i64,
    ids: Vec<Id>,
    /// The delivery time that the entries get.
    delivered_ms: i64,
    /// The delivery count that the entries get.
    times: Option<u64>,
    forces: bool,
    ids_only: bool,
    /// The group's last id becomes at least this one.
    last: Id,
}

impl Claim {
    fn parse<'a>(args: &mut Args<'a>, now_ms: i64) -> Result<(&'a [u8], Claim), Error> {
        let consumer = args.word()?;
        let min_idle_ms = claim_number(args, "min-idle-time", "XCLAIM")?.max(0);
        let mut ids = Vec::new();
        while let Some(id) = args.peek().and_then(|word| Id::parse(word, 0)) {
            ids.push(id);
            args.word()?;
        }
        let (delivered_ms, times, last) = (now_ms, None, Id::MIN);
        let mut claim = Claim { min_idle_ms, ids, delivered_ms, times, forces: false, ids_only: false, last };
        while let Some(word) = args.peek() {
            if args.take("FORCE") {
                claim.forces = true;
            } else if args.take("JUSTID") {
                claim.ids_only = true;
            } else if args.take_with("IDLE", 1) {
                claim.delivered_ms = now_ms.wrapping_sub(claim_number(args, "IDLE option", "XCLAIM")?);
            } else if args.take_with("TIME", 1) {
                claim.delivered_ms = claim_number(args, "TIME option", "XCLAIM")?;
            } else if args.take_with("RETRYCOUNT", 1) {
                claim.times = u64::try_from(claim_number(args, "RETRYCOUNT option", "XCLAIM")?).ok();
            } else if args.take_with("LASTID", 1) {
                claim.last = id(args)?;
            } else {
                return Err(StreamError::ClaimOption(shown(word)).into());
            }
        }
        // A client's clock may be ahead of ours, which is no reason for an error.
        if !(0..=now_ms).contains(&claim.delivered_ms) {
            claim.delivered_ms = now_ms;
        }
        Ok((consumer, claim))
    }

    /// Claims one entry and replies with it; returns false if it cannot be claimed.
    fn carry_out(
        &self,
        claiming: &mut ClaimingConsumer<'_>,
        log: &Log,
        reply: &mut Reply<'_>,
        id: Id,
        word: &[u8],
    ) -> bool {
        let Some(entry) = log.get(id) else {
            claiming.drop_deleted(id, Some(word));
            return false;
        };
        let times = match claiming.group.pending(id) {
            Some(pending) if !claiming.is_idle(pending.delivered_ms, self.min_idle_ms) => return false,
            Some(pending) => pending.times,
            None if self.forces => 1,
            None => return false,
        };
        let more = if self.ids_only { times } else { times.wrapping_add(1) };
        claiming.take(id, Some(word), self.delivered_ms, self.times.unwrap_or(more));
        write_claimed(reply, &entry, self.ids_only);
        true
    }
}

fn claim_number(args: &mut Args<'_>, argument: &'static str, command: &'static str) -> Result<i64, Error> {
    Ok(number::parse_i64(args.word()?).ok_or(StreamError::InvalidClaimNumber { argument, command })?)
}

pub(super) const XAUTOCLAIM: Command = Command {
    name: "XAUTOCLAIM",
    syntax: "key group consumer min-idle-time start [COUNT count] [JUSTID]",
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::DELETE))],
    since: "6.2.0",
    history: &[Change::says("7.0.0", "Returns the pending entries that no longer exist.")],
    cost: "O(1) for a small count.",
    about: "Transfers pending entries that were idle for long to another consumer.",
    run: xautoclaim,
    ..XCLAIM
};

/// The default count of XAUTOCLAIM.
const DEFAULT_COUNT: i64 = 100;
/// XAUTOCLAIM visits at most this many times the count.
const ATTEMPTS_PER_COUNT: usize = 10;
/// The maximum count.
const MAX_COUNT: i64 = i64::MAX / 16;
/// From this count on Redis finds no memory for the ids.
const OVERFLOW_COUNT: i64 = 1 << 43;

fn xautoclaim(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, group, consumer) = (args.key()?, args.word()?, args.word()?);
    cx.lookup(key, Lookup::READ);
    let auto_claim = AutoClaim::parse(&mut args)?;
    let stream = cx.lookup(key, Lookup::NO_TRACE).map(Peek::read::<Stream>).transpose()?;
    find_group(stream, key, group)?;
    if auto_claim.count >= OVERFLOW_COUNT {
        return Err(StreamError::ClaimCountTooHigh.into());
    }
    let now_ms = cx.now_ms();
    let mut claims = operations::is_propagating(cx).then(Claims::default);
    cx.update_metadata(key, |stream: &mut Stream, reply| {
        let changed = stream.edit_group(group, |log, group| {
            let mut claiming = ClaimingConsumer::new(group, consumer, now_ms, claims.as_mut());
            auto_claim.carry_out(&mut claiming, log, reply);
            claiming.end(false)
        });
        Ok(metadata_change(changed.unwrap_or_default()))
    })?;
    claims.into_iter().for_each(|claims| claims.propagate(cx, key, group));
    Ok(())
}

/// The parsed arguments of XAUTOCLAIM.
struct AutoClaim {
    min_idle_ms: i64,
    start: Id,
    count: i64,
    ids_only: bool,
}

impl AutoClaim {
    fn parse(args: &mut Args<'_>) -> Result<AutoClaim, Error> {
        let min_idle_ms = claim_number(args, "min-idle-time", "XAUTOCLAIM")?.max(0);
        let start = interval_start(args.word()?)?;
        let mut auto_claim = AutoClaim { min_idle_ms, start, count: DEFAULT_COUNT, ids_only: false };
        while !args.is_empty() {
            if args.take_with("COUNT", 1) {
                let count = number::parse_i64(args.word()?).filter(|count| (1..=MAX_COUNT).contains(count));
                auto_claim.count = count.ok_or(StreamError::ClaimCount)?;
            } else if args.take("JUSTID") {
                auto_claim.ids_only = true;
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(auto_claim)
    }

    /// Claims entries, and replies with the next start id, the claimed entries, and the pending ids that no longer
    /// exist.
    fn carry_out(&self, claiming: &mut ClaimingConsumer<'_>, log: &Log, reply: &mut Reply<'_>) {
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        let look = count.saturating_mul(ATTEMPTS_PER_COUNT);
        let pending =
            claiming.group.pending_from(self.start).take(look).map(|pending| (pending.id(), pending.delivered_ms));
        let pending: Vec<(Id, i64)> = pending.collect();
        let (mut claimed, mut gone, mut next) = (Vec::new(), Vec::new(), Some(self.start));
        for (id, delivered_ms) in pending {
            if claimed.len() + gone.len() == count {
                break;
            }
            next = id.next();
            match log.get(id) {
                None => {
                    claiming.drop_deleted(id, None);
                    gone.push(id);
                }
                Some(entry) if claiming.is_idle(delivered_ms, self.min_idle_ms) => {
                    let times = claiming.group.pending(id).map_or(0, |pending| pending.times);
                    claiming.take(id, None, claiming.now_ms, if self.ids_only { times } else { times.wrapping_add(1) });
                    claimed.push(entry);
                }
                Some(_) => {}
            }
        }
        let cursor =
            next.and_then(|next| claiming.group.pending_from(next).next()).map_or(Id::MIN, |pending| pending.id());
        reply.array(3);
        write_id(reply, cursor);
        reply.array(claimed.len());
        claimed.iter().for_each(|entry| write_claimed(reply, entry, self.ids_only));
        write_ids(reply, &gone);
    }
}
