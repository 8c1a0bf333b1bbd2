//! VADD: adds an element, or replaces its vector.

use super::{ROW, WRITE, expect_arguments, vector_arg, wrong_arity};
use crate::engine::{Args, Changed, Command, Ctx, Error, Flags, Missing, VectorSetError};
use crate::value::VectorSet;
use crate::value::vector_set::{LINKS, Parameters, Quantization};
use fastrand::Rng;

pub(super) const VADD: Command = Command {
    name: "VADD",
    syntax: "key [REDUCE dim] <FP32 vector|VALUES num value [value ...]> element [CAS] [NOQUANT|Q8|BIN] [EF effort] \
             [SETATTR attributes] [M links]",
    flags: WRITE.and(Flags::DENYOOM),
    cost: "O(log(N)) for N elements.",
    about: "Adds an element with its vector to a vector set, or replaces the vector.",
    run: vadd,
    ..ROW
};

/// The links that a new element gets on each layer.
const DEFAULT_LINKS: u16 = 16;
const DEFAULT_EFFORT: usize = 200;
const MAX_EFFORT: usize = 1_000_000;
/// The most factors of a projection, which takes as many multiplications for each vector. Redis has no limit, and
/// allocates all factors.
const MAX_FACTORS: usize = 1 << 24;
/// The most dimensions of a projection of a vector that has fewer itself.
const MAX_ADDED_DIMENSIONS: usize = 1024;

fn vadd(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    expect_arguments(cx, &args, |count| count >= 4)?;
    let key = args.key()?;
    let reduced = take_reduced(&mut args)?;
    let components = vector_arg::take(&mut args)?;
    let dimensions = u32::try_from(components.len()).map_err(|_| VectorSetError::Vector)?;
    if reduced.is_some_and(|reduced| is_too_large(reduced as usize, components.len())) {
        return Err(VectorSetError::Vector.into());
    }
    let element = args.word().map_err(|_| wrong_arity(cx))?;
    let options = Options::parse(&mut args)?;
    let Options { quantization, links, .. } = options;
    let wanted = Parameters { dimensions, reduced, quantization, links };
    let seed = cx.settings().packed_set.seed;
    let mut generator = Rng::with_seed(cx.random());
    let added = cx.update(key, Missing::Create, None, |set: &mut VectorSet, _| {
        if set.is_empty() {
            *set = VectorSet::with(&wanted, generator.u32(..).into(), seed);
        } else {
            check(set, &wanted)?;
        }
        let components = vector_arg::projected(set, components)?;
        let is_new = set.insert(element, &components, options.attributes, options.effort, &mut generator);
        Ok(Changed::by(1, is_new))
    })?;
    cx.reply().boolean(added.unwrap_or_default());
    Ok(())
}

/// Whether a projection would take much more memory or time than the vector that was sent.
fn is_too_large(reduced: usize, dimensions: usize) -> bool {
    reduced > dimensions.max(MAX_ADDED_DIMENSIONS) || reduced.saturating_mul(dimensions) > MAX_FACTORS
}

/// Takes `REDUCE dimensions`, if something follows it.
fn take_reduced(args: &mut Args<'_>) -> Result<Option<u32>, Error> {
    if !args.take_with("REDUCE", 2) {
        return Ok(None);
    }
    let reduced =
        u32::try_from(args.integer().map_err(|_| VectorSetError::Vector)?).ok().filter(|reduced| *reduced > 0);
    reduced.ok_or(VectorSetError::Vector.into()).map(Some)
}

/// The options behind the element.
struct Options<'a> {
    quantization: Quantization,
    links: u16,
    effort: usize,
    attributes: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(args: &mut Args<'a>) -> Result<Options<'a>, Error> {
        let mut options =
            Options { quantization: Quantization::Q8, links: DEFAULT_LINKS, effort: DEFAULT_EFFORT, attributes: None };
        while !args.is_empty() {
            if args.take("CAS") {
                // Nothing is added on a thread.
            } else if args.take_with("EF", 1) {
                options.effort = args.at_least(1, VectorSetError::Effort.into())?;
                if options.effort > MAX_EFFORT {
                    return Err(VectorSetError::Effort.into());
                }
            } else if args.take_with("M", 1) {
                let links = args.integer().ok().and_then(|links| u16::try_from(links).ok());
                options.links = links.filter(|links| LINKS.contains(links)).ok_or(VectorSetError::Links)?;
            } else if args.take_with("SETATTR", 1) {
                options.attributes = Some(args.word()?);
            } else if args.take("NOQUANT") {
                options.quantization = Quantization::None;
            } else if args.take("BIN") {
                options.quantization = Quantization::Binary;
            } else if args.take("Q8") {
                options.quantization = Quantization::Q8;
            } else {
                return Err(VectorSetError::AddOption.into());
            }
        }
        Ok(options)
    }
}

/// Checks that a vector with these parameters fits a set.
fn check(set: &VectorSet, wanted: &Parameters) -> Result<(), Error> {
    if set.quantization() != wanted.quantization {
        return Err(VectorSetError::Quantization.into());
    }
    if set.links() != wanted.links {
        return Err(VectorSetError::OtherLinks.into());
    }
    let stored = match set.input_dimensions() {
        Some(_) => wanted.reduced.unwrap_or_default(),
        None => wanted.dimensions,
    };
    if stored != set.dimensions() {
        return Err(vector_arg::mismatch(set, wanted.dimensions as usize));
    }
    if wanted.reduced.is_some() && set.input_dimensions().is_none() {
        return Err(VectorSetError::Projection.into());
    }
    Ok(())
}
