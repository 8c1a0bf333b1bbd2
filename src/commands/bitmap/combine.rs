//! BITOP: combines several strings bit by bit.

use crate::engine::exec::operations;
use crate::engine::{
    Args, Arity, BitmapError, Command, Ctx, Deadline, Error, Event, Family, Flags, KeyFlags, KeySpec, says,
};
use crate::keyspace::New;
use crate::value::bits::{self, Operation};
use crate::value::{Text, Value, View};
use std::borrow::Cow;

pub(super) const BITOP: Command = Command {
    name: "BITOP",
    syntax: "operation:<AND|OR|XOR|NOT> destkey key [key ...]",
    family: Family::Bitmap,
    arity: Arity::AtLeast(4),
    flags: Flags::WRITE.and(Flags::DENYOOM),
    keys: &[
        KeySpec::at(2, KeyFlags::OW.and(KeyFlags::UPDATE)),
        KeySpec::range(3, -1, 1, KeyFlags::RO.and(KeyFlags::ACCESS)),
    ],
    since: "2.6.0",
    cost: "O(N)",
    about: "Combines strings bit by bit and stores the result.",
    run: bitop,
    ..Command::ROW
};

fn bitop(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let operation = parse_operation(args.word()?)?;
    let target = args.key()?;
    let keys: Vec<&[u8]> = args.rest().collect();
    if operation == Operation::Not && keys.len() != 1 {
        return Err(BitmapError::NotOfSeveral.into());
    }
    let (views, _) = cx.views(&keys, |view| matches!(view, View::Text(_)));
    let sources: Result<Vec<Cow<'_, [u8]>>, Error> = views.into_iter().map(bytes_of).collect();
    let sources = sources?;
    let sources: Vec<&[u8]> = sources.iter().map(AsRef::as_ref).collect();
    let result = bits::combine(operation, &sources);
    let length = result.len();
    if length == 0 {
        operations::remove_present(cx, target, Event::DEL);
    } else {
        cx.put(target, New::Value(Value::Text(Text::Raw(result))), Deadline::Clear, Event::string("set"));
    }
    cx.reply().count(length);
    Ok(())
}

fn parse_operation(word: &[u8]) -> Result<Operation, Error> {
    let names = [("AND", Operation::And), ("OR", Operation::Or), ("XOR", Operation::Xor), ("NOT", Operation::Not)];
    let named = names.into_iter().find(|(name, _)| says(word, name));
    named.map(|(_, operation)| operation).ok_or(Error::Syntax)
}

/// The bytes of a text; a missing key counts as empty.
fn bytes_of(view: Option<View<'_>>) -> Result<Cow<'_, [u8]>, Error> {
    match view {
        None => Ok(Cow::Borrowed(b"")),
        Some(View::Text(text)) => Ok(text.to_cow()),
        Some(_) => Err(Error::WrongType),
    }
}
