//! Taking elements from the ends of a list: LPOP, RPOP and LMPOP.
//!
//! Elements are answered from where they lie, before they are removed, so that none is copied twice. What a command
//! pops and how it says so is a [`Portion`]; the commands that wait use it too.

use super::{end, popped};
use crate::engine::{Args, Arity, Change, Changed, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};
use crate::resp::Reply;
use crate::value::list::{End, Limits};
use crate::value::{List, Value};

pub(super) const LPOP: Command = Command {
    name: "LPOP",
    about: "Removes the elements at the head of a list and answers them.",
    run: |cx, args| pop(cx, args, End::Head),
    ..POPPING
};

pub(super) const RPOP: Command = Command {
    name: "RPOP",
    about: "Removes the elements at the tail of a list and answers them.",
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

/// What happens to a key that elements are popped from.
pub(super) const POPPED: KeyFlags = KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::DELETE);

fn pop(cx: &mut Ctx<'_>, mut args: Args<'_>, end: End) -> Result<(), Error> {
    let name = if end == End::Head { "lpop" } else { "rpop" };
    let key = args.key()?;
    if args.left() > 1 {
        return Err(Error::WrongArity(name.to_owned()));
    }
    if args.is_empty() {
        if !pop_from(cx, key, end, Portion::One)? {
            cx.reply().null();
        }
        return Ok(());
    }
    let count = args.at_least(0, Error::NotPositive)?;
    if !pop_from(cx, key, end, Portion::Several(count))? {
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
    about: "Removes elements from an end of the first list that is there, and answers them.",
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

/// What LMPOP is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted<'a> {
    /// The keys to look at, in order.
    pub(crate) keys: Vec<&'a [u8]>,
    /// Where to take from.
    pub(crate) end: End,
    /// How many to take at most.
    pub(crate) count: usize,
}

impl<'a> Wanted<'a> {
    /// Reads `numkeys key [key ...] where:<LEFT|RIGHT> [COUNT count]`, to the last word.
    ///
    /// # Errors
    /// A number below 1, fewer keys than announced, or any other word.
    pub(crate) fn parse(args: &mut Args<'a>) -> Result<Wanted<'a>, Error> {
        let numkeys = args.at_least(1, Error::NumkeysNotPositive)?;
        let keys = args.words(numkeys)?;
        let end = end(args)?;
        let count = if args.take_with("COUNT", 1) { args.at_least(1, Error::CountNotPositive)? } else { 1 };
        args.end()?;
        Ok(Wanted { keys, end, count })
    }
}

/// How many elements are popped, and how they are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Portion {
    /// One, alone.
    One,
    /// Up to so many, in an array.
    Several(usize),
    /// One, behind its key.
    KeyAndOne,
    /// Up to so many in an array, behind their key.
    KeyAndSeveral(usize),
}

impl Portion {
    fn count(self) -> usize {
        match self {
            Portion::One | Portion::KeyAndOne => 1,
            Portion::Several(count) | Portion::KeyAndSeveral(count) => count,
        }
    }

    fn take(self, list: &mut List, key: &[u8], end: End, limits: &Limits, reply: &mut Reply<'_>) -> Changed<()> {
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
            list.get(positions.start).into_iter().for_each(|element| reply.item(element));
        } else if end == End::Head {
            reply.items(list.range(positions.clone()));
        } else {
            reply.items(list.range(positions.clone()).rev());
        }
        let gone = list.remove(positions, limits);
        Changed::by(count, ()).leaving(gone.map(Value::List))
    }
}

/// Pops from the list that `key` holds; false, with nothing answered, when it holds none.
///
/// # Errors
/// [`Error::WrongType`].
pub(crate) fn pop_from(cx: &mut Ctx<'_>, key: &[u8], end: End, portion: Portion) -> Result<bool, Error> {
    let limits = cx.settings().list_nodes;
    let done =
        cx.edit_and_reply(key, popped(end), |list: &mut List, reply| Ok(portion.take(list, key, end, &limits, reply)))?;
    Ok(done.is_some())
}

/// Pops from the first of `keys` that holds a list; false, with nothing answered, when none does.
///
/// # Errors
/// [`Error::WrongType`] when a key before the first list holds something else.
pub(crate) fn pop_first<'a>(
    cx: &mut Ctx<'_>,
    keys: impl IntoIterator<Item = &'a [u8]>,
    end: End,
    portion: Portion,
) -> Result<bool, Error> {
    for key in keys {
        if pop_from(cx, key, end, portion)? {
            return Ok(true);
        }
    }
    Ok(false)
}
