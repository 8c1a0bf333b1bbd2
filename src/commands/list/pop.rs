//! LPOP, RPOP and LMPOP: remove elements at the ends of a list.
//!
//! Elements are written to the reply from their place in the list before they are removed, so that none is copied
//! twice. A [`Portion`] defines how many elements are popped and the form of the reply; the blocking commands use it
//! too.

use super::{end, popped, write_element};
use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Change, Changed, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec, Missing};
use crate::resp::Reply;
use crate::value::list::{End, Limits};
use crate::value::{List, Value};

pub(super) const LPOP: Command = Command {
    name: "LPOP",
    about: "Removes and returns elements at the head of a list.",
    run: |cx, args| pop(cx, args, End::Head),
    ..POPPING
};

pub(super) const RPOP: Command = Command {
    name: "RPOP",
    about: "Removes and returns elements at the tail of a list.",
    run: |cx, args| pop(cx, args, End::Tail),
    ..POPPING
};

const POPPING: Command = Command {
    syntax: "key [count]",
    family: Family::List,
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE.and(Flags::FAST),
    keys: &[KeySpec::one(POPPED)],
    since: "1.0.0",
    history: &[Change::brings("6.2.0", &["count"])],
    cost: "O(N), N being the elements answered.",
    ..Command::ROW
};

/// The flags of a key from which elements are popped.
pub(super) const POPPED: KeyFlags = KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::DELETE);

fn pop(cx: &mut Ctx<'_>, mut args: Args<'_>, end: End) -> Result<(), Error> {
    let name = if end == End::Head { "lpop" } else { "rpop" };
    let key = args.key()?;
    if args.left() > 1 {
        return Err(Error::WrongArity(name.to_owned()));
    }
    if args.is_empty() {
        if pop_from(cx, key, end, Portion::One)?.is_none() {
            cx.reply().null();
        }
        return Ok(());
    }
    let count = args.at_least(0, Error::NotPositive)?;
    if pop_from(cx, key, end, Portion::Several(count))?.is_none() {
        cx.reply().null_array();
    }
    Ok(())
}

pub(super) const LMPOP: Command = Command {
    name: "LMPOP",
    syntax: "numkeys key [key ...] where:<LEFT|RIGHT> [COUNT count]",
    family: Family::List,
    arity: Arity::AtLeast(4),
    flags: Flags::WRITE,
    keys: &[KeySpec::counted(1, POPPED)],
    since: "7.0.0",
    cost: "O(N+M), N being the keys and M the elements answered.",
    about: "Removes and returns elements from an end of the first list that exists.",
    run: lmpop,
    ..Command::ROW
};

fn lmpop(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let wanted = Wanted::parse(&mut args)?;
    if !pop_first(cx, wanted.keys.iter().copied(), wanted.end, Portion::KeyAndSeveral(wanted.count))? {
        cx.reply().null_array();
    }
    Ok(())
}

/// The parsed arguments of LMPOP.
#[derive(Clone, Debug)]
pub(crate) struct Wanted<'a> {
    /// The keys to try, in order.
    pub(crate) keys: Vec<&'a [u8]>,
    /// The end to pop from.
    pub(crate) end: End,
    /// The maximum number of elements.
    pub(crate) count: usize,
}

impl<'a> Wanted<'a> {
    /// Parses `numkeys key [key ...] where:<LEFT|RIGHT> [COUNT count]`, to the last word.
    ///
    /// # Errors
    /// A number below 1, fewer keys than numkeys, or any other word.
    pub(crate) fn parse(args: &mut Args<'a>) -> Result<Wanted<'a>, Error> {
        let numkeys = args.at_least(1, Error::NumkeysNotPositive)?;
        let keys = args.words(numkeys)?;
        let end = end(args)?;
        let count = if args.take_with("COUNT", 1) { args.at_least(1, Error::CountNotPositive)? } else { 1 };
        args.end()?;
        Ok(Wanted { keys, end, count })
    }
}

/// The number of elements to pop, and the form of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Portion {
    /// One element, by itself.
    One,
    /// Elements up to this number, in an array.
    Several(usize),
    /// One element, after its key.
    KeyAndOne,
    /// Elements up to this number in an array, after their key.
    KeyAndSeveral(usize),
}

impl Portion {
    fn count(self) -> usize {
        match self {
            Portion::One | Portion::KeyAndOne => 1,
            Portion::Several(count) | Portion::KeyAndSeveral(count) => count,
        }
    }

    fn take(self, list: &mut List, key: &[u8], end: End, limits: &Limits, reply: &mut Reply<'_>) -> Changed<usize> {
        let count = self.count().min(list.len());
        if let Portion::KeyAndOne | Portion::KeyAndSeveral(_) = self {
            reply.array(2);
            reply.bulk(key);
        }
        if let Portion::Several(_) | Portion::KeyAndSeveral(_) = self {
            reply.array(count);
        }
        let positions = match end {
            End::Head => 0..count,
            End::Tail => list.len() - count..list.len(),
        };
        if count == 1 {
            list.element(positions.start).into_iter().for_each(|element| write_element(reply, element));
        } else if end == End::Head {
            reply.items(list.range(positions.clone()));
        } else {
            reply.items(list.range(positions.clone()).rev());
        }
        let gone = list.remove(positions, limits);
        Changed::by(count, count).leaving(gone.map(Value::List))
    }
}

/// Pops from the list at `key`, and returns the number of elements; `None`, without a reply, if there is none.
fn pop_from(cx: &mut Ctx<'_>, key: &[u8], end: End, portion: Portion) -> Result<Option<usize>, Error> {
    let limits = cx.settings().list_nodes;
    cx.update(
        key,
        Missing::Skip,
        popped(end),
        |list: &mut List, reply| Ok(portion.take(list, key, end, &limits, reply)),
    )
}

/// Propagates a pop from one list as LPOP or RPOP.
fn propagate(cx: &mut Ctx<'_>, key: &[u8], end: End, portion: Portion, count: usize) {
    let name = if end == End::Head { &b"LPOP"[..] } else { b"RPOP" };
    if let Portion::KeyAndSeveral(_) = portion {
        operations::propagate_instead(cx, &[name, key, itoa::Buffer::new().format(count).as_bytes()]);
    } else {
        operations::propagate_instead(cx, &[name, key]);
    }
}

/// Pops from the first of `keys` that is a list; returns false, without a reply, if none is.
///
/// # Errors
/// [`Error::WrongType`] if a key before the first list has another type.
pub(crate) fn pop_first<'a>(
    cx: &mut Ctx<'_>,
    keys: impl IntoIterator<Item = &'a [u8]>,
    end: End,
    portion: Portion,
) -> Result<bool, Error> {
    for key in keys {
        if let Some(count) = pop_from(cx, key, end, portion)? {
            if operations::is_propagating(cx) {
                propagate(cx, key, end, portion, count);
            }
            return Ok(true);
        }
    }
    Ok(false)
}
