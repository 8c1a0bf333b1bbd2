//! VCARD, VDIM, VINFO and VLINKS: what a vector set is made of.

use super::{QUICK_READ, ROW, expect_arguments, wrong_arity};
use crate::engine::{Args, Command, Ctx, Error, VectorSetError};
use crate::value::VectorSet;

pub(super) const VCARD: Command = Command {
    name: "VCARD",
    syntax: "key",
    flags: QUICK_READ,
    about: "Returns the number of elements of a vector set.",
    run: vcard,
    ..ROW
};

fn vcard(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    expect_arguments(cx, &args, |count| count == 1)?;
    let (set, reply) = cx.read::<VectorSet>(args.key()?)?;
    reply.count(set.map_or(0, VectorSet::len));
    Ok(())
}

pub(super) const VDIM: Command = Command {
    name: "VDIM",
    syntax: "key",
    flags: QUICK_READ,
    about: "Returns the dimensions of the vectors as they are stored.",
    run: vdim,
    ..ROW
};

fn vdim(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    expect_arguments(cx, &args, |count| count == 1)?;
    let (set, reply) = cx.read::<VectorSet>(args.key()?)?;
    reply.integer(set.ok_or(VectorSetError::NoKey)?.dimensions().into());
    Ok(())
}

pub(super) const VINFO: Command = Command {
    name: "VINFO",
    syntax: "key",
    flags: QUICK_READ,
    about: "Returns the parameters of a vector set and figures of its graph.",
    run: vinfo,
    ..ROW
};

fn vinfo(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    expect_arguments(cx, &args, |count| count == 1)?;
    let (set, reply) = cx.read::<VectorSet>(args.key()?)?;
    let Some(set) = set else {
        reply.null_array();
        return Ok(());
    };
    let numbers = [
        ("hnsw-m", set.links().into()),
        ("vector-dim", set.dimensions().into()),
        ("projection-input-dim", set.input_dimensions().unwrap_or_default().into()),
        ("size", set.len() as i64),
        ("max-level", set.max_level() as i64),
        ("attributes-count", set.attributed() as i64),
        ("vset-uid", set.id() as i64),
        ("hnsw-max-node-uid", set.last_element_id() as i64),
    ];
    reply.map(1 + numbers.len());
    reply.simple("quant-type");
    reply.simple(set.quantization().name());
    for (name, number) in numbers {
        reply.simple(name);
        reply.integer(number);
    }
    Ok(())
}

pub(super) const VLINKS: Command = Command {
    name: "VLINKS",
    syntax: "key element [WITHSCORES]",
    flags: QUICK_READ,
    about: "Returns the elements that an element is linked with, by layers of the graph.",
    run: vlinks,
    ..ROW
};

fn vlinks(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    expect_arguments(cx, &args, |count| (2..=3).contains(&count))?;
    let (key, name) = (args.key()?, args.word()?);
    let has_scores = !args.is_empty();
    if has_scores && !args.take("WITHSCORES") {
        return Err(wrong_arity(cx));
    }
    let (set, reply) = cx.read::<VectorSet>(key)?;
    let Some(layers) = set.and_then(|set| set.links_of(name)) else {
        reply.null();
        return Ok(());
    };
    reply.array(layers.len());
    for links in layers {
        if has_scores {
            reply.map(links.len())
        } else {
            reply.array(links.len())
        }
        for (linked, distance) in links {
            reply.bulk(linked);
            if has_scores {
                reply.double((1.0 - distance / 2.0).into());
            }
        }
    }
    Ok(())
}
