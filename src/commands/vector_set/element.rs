//! The commands about one element: its vector, its attributes, whether it is there, and its removal.

use super::{QUICK_READ, READ, ROW, WRITE, expect_arguments};
use crate::engine::{Args, Changed, Command, Ctx, Error, Flags, Missing, VectorSetError};
use crate::value::VectorSet;
use crate::value::vector_set::Quantization;

pub(super) const VEMB: Command = Command {
    name: "VEMB",
    syntax: "key element [RAW]",
    flags: QUICK_READ,
    about: "Returns the vector of an element, as exact as it is stored, or its stored bytes.",
    run: vemb,
    ..ROW
};

fn vemb(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    expect_arguments(cx, &args, |count| count >= 2)?;
    let (key, name) = (args.key()?, args.word()?);
    let is_raw = !args.is_empty();
    while !args.is_empty() {
        if !args.take("RAW") {
            return Err(VectorSetError::EmbeddingOption.into());
        }
    }
    let (set, reply) = cx.read::<VectorSet>(key)?;
    let Some((set, element)) = set.and_then(|set| Some((set, set.get(name)?))) else {
        reply.null();
        return Ok(());
    };
    let (vector, quantization) = (element.vector, set.quantization());
    if is_raw {
        let has_range = quantization == Quantization::Q8;
        reply.array(3 + usize::from(has_range));
        reply.simple(quantization.name());
        reply.bulk(&vector.bytes);
        reply.double(vector.norm.into());
        if has_range {
            reply.double(vector.range.into());
        }
        return Ok(());
    }
    reply.array(set.dimensions() as usize);
    for component in vector.components(quantization, set.dimensions() as usize) {
        reply.double(component.into());
    }
    Ok(())
}

pub(super) const VISMEMBER: Command = Command {
    name: "VISMEMBER",
    syntax: "key element",
    flags: READ,
    about: "Returns whether an element is in a vector set.",
    run: vismember,
    ..ROW
};

fn vismember(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    expect_arguments(cx, &args, |count| count == 2)?;
    let (key, name) = (args.key()?, args.word()?);
    let (set, reply) = cx.read::<VectorSet>(key)?;
    reply.boolean(set.is_some_and(|set| set.get(name).is_some()));
    Ok(())
}

pub(super) const VGETATTR: Command = Command {
    name: "VGETATTR",
    syntax: "key element",
    flags: QUICK_READ,
    about: "Returns the attributes of an element, a JSON text.",
    run: vgetattr,
    ..ROW
};

fn vgetattr(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    expect_arguments(cx, &args, |count| count == 2)?;
    let (key, name) = (args.key()?, args.word()?);
    let (set, reply) = cx.read::<VectorSet>(key)?;
    reply.bulk_or_null(set.and_then(|set| set.get(name)?.attributes));
    Ok(())
}

pub(super) const VSETATTR: Command = Command {
    name: "VSETATTR",
    syntax: "key element attributes",
    flags: WRITE.and(Flags::FAST),
    about: "Sets the attributes of an element, a JSON text; an empty one removes them.",
    run: vsetattr,
    ..ROW
};

fn vsetattr(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    expect_arguments(cx, &args, |count| count == 3)?;
    let (key, name, attributes) = (args.key()?, args.word()?, args.word()?);
    let attributes = Some(attributes).filter(|attributes| !attributes.is_empty());
    edit(cx, key, |set| set.set_attributes(name, attributes))
}

pub(super) const VREM: Command = Command {
    name: "VREM",
    syntax: "key element",
    flags: WRITE,
    cost: "O(log(N)) for N elements.",
    about: "Removes an element from a vector set, and deletes the set with its last element.",
    run: vrem,
    ..ROW
};

fn vrem(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    expect_arguments(cx, &args, |count| count == 2)?;
    let (key, name) = (args.key()?, args.word()?);
    edit(cx, key, |set| set.remove(name))
}

/// Changes a set, and replies whether that changed anything. As in Redis, WATCH notices it even if it did not.
fn edit(cx: &mut Ctx<'_>, key: &[u8], act: impl FnOnce(&mut VectorSet) -> bool) -> Result<(), Error> {
    let changed = cx.update(key, Missing::Skip, None, |set: &mut VectorSet, _| {
        let is_changed = act(set);
        Ok(Changed::by(usize::from(is_changed), is_changed).announced())
    })?;
    cx.reply().boolean(changed.unwrap_or_default());
    Ok(())
}
