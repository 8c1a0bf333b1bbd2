//! XPENDING: the entries that a group has delivered to consumers and that they have not acknowledged.

use super::{count, find_group, interval_end, interval_start, write_id};
use crate::engine::{Args, Arity, Change, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};
use crate::resp::Reply;
use crate::value::Stream;
use crate::value::stream::{Group, Id, Pending};

pub(super) const XPENDING: Command = Command {
    name: "XPENDING",
    syntax: "key group filters:[[IDLE min-idle-time] start end count [consumer]]",
    family: Family::Stream,
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "5.0.0",
    history: &[Change::brings("6.2.0", &["IDLE"])],
    cost: "O(N), N being the entries looked at; of the summary, O(N), N being the consumers.",
    about: "Returns the pending entries of a group: a summary, or the entries in a range of ids.",
    tips: &["nondeterministic_output"],
    run: xpending,
    ..Command::ROW
};

fn xpending(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, name) = (args.key()?, args.word()?);
    let filter = if args.is_empty() { None } else { Some(Filter::parse(&mut args)?) };
    let now_ms = cx.now_ms();
    let (stream, reply) = cx.read::<Stream>(key)?;
    let group = find_group(stream, key, name)?;
    match filter {
        Some(filter) => filter.write(reply, group, now_ms),
        None => summarise(reply, group),
    }
    Ok(())
}

/// The maximum number of words after the group's name.
const MAX_WORDS: usize = 6;

/// The filter of the returned entries.
struct Filter<'a> {
    idle_ms: i64,
    start: Id,
    end: Id,
    most: usize,
    consumer: Option<&'a [u8]>,
}

impl<'a> Filter<'a> {
    fn parse(args: &mut Args<'a>) -> Result<Filter<'a>, Error> {
        if !(3..=MAX_WORDS).contains(&args.left()) {
            return Err(Error::Syntax);
        }
        let mut idle_ms = 0;
        if args.take("IDLE") {
            idle_ms = args.integer()?;
        }
        if args.left() < 3 {
            return Err(Error::Syntax);
        }
        let (start, end) = (args.word()?, args.word()?);
        let most = count(args)?;
        let (start, end) = (interval_start(start)?, interval_end(end)?);
        Ok(Filter { idle_ms, start, end, most, consumer: args.word().ok() })
    }

    fn write(&self, reply: &mut Reply<'_>, group: &Group, now_ms: i64) {
        match self.consumer.map(|name| group.find_consumer(name)) {
            None => self.write_among(reply, group, now_ms, group.pending_from(self.start)),
            Some(Some(number)) => self.write_among(reply, group, now_ms, group.pending_of(number, self.start)),
            Some(None) => reply.array(0),
        }
    }

    fn write_among<'g>(
        &self,
        reply: &mut Reply<'_>,
        group: &Group,
        now_ms: i64,
        pending: impl Iterator<Item = &'g Pending>,
    ) {
        let idle = |pending: &Pending| now_ms.wrapping_sub(pending.delivered_ms);
        let within = pending.take_while(|pending| pending.id() <= self.end);
        let listed = within.filter(|pending| self.idle_ms == 0 || idle(pending) >= self.idle_ms).take(self.most);
        let array = reply.open_array();
        let listed = listed.map(|pending| {
            reply.array(4);
            write_id(reply, pending.id());
            reply.bulk(group.consumer(pending.consumer()).name());
            reply.integer(idle(pending).max(0));
            reply.integer(pending.times.cast_signed());
        });
        let count = listed.count();
        reply.close_array(array, count);
    }
}

fn summarise(reply: &mut Reply<'_>, group: &Group) {
    reply.array(4);
    reply.count(group.pending_len());
    let Some((first, last)) = group.pending_ends() else {
        reply.null();
        reply.null();
        return reply.null_array();
    };
    write_id(reply, first);
    write_id(reply, last);
    let busy = group.consumers().filter(|(_, consumer)| consumer.pending_len() > 0);
    reply.array(busy.clone().count());
    for (_, consumer) in busy {
        reply.array(2);
        reply.bulk(consumer.name());
        reply.bulk_integer(consumer.pending_len() as i64);
    }
}
