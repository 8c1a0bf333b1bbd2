//! VSIM: the elements whose vectors are most similar to one.

use super::filter::Filter;
use super::{READ, ROW, expect_arguments, vector_arg};
use crate::engine::{Args, Command, Ctx, Error, VectorSetError, shown};
use crate::resp::{Protocol, Reply};
use crate::value::VectorSet;
use crate::value::vector_set::{Condition, Element, Search};

pub(super) const VSIM: Command = Command {
    name: "VSIM",
    syntax: "key <ELE element|FP32 vector|VALUES num value [value ...]> [WITHSCORES] [WITHATTRIBS] [COUNT count] \
             [EPSILON distance] [EF effort] [FILTER expression] [FILTER-EF max-visits] [TRUTH] [NOTHREAD]",
    flags: READ,
    cost: "O(log(N)) for N elements, with TRUTH O(N).",
    about: "Returns the elements whose vectors are most similar to a vector or to that of an element.",
    run: vsim,
    ..ROW
};

const DEFAULT_COUNT: usize = 10;
const DEFAULT_EFFORT: usize = 100;
/// The default of FILTER-EF for each element of COUNT.
const DEFAULT_VISITS_PER_RESULT: usize = 100;

fn vsim(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    expect_arguments(cx, &args, |count| count >= 3)?;
    let (set, reply) = cx.read::<VectorSet>(args.key()?)?;
    let Some(set) = set else {
        reply.array(0);
        return Ok(());
    };
    let components = query(set, &mut args)?;
    let options = Options::parse(&mut args)?;
    let matches = options.filter.as_ref().map(|filter| |attributes: &[u8]| filter.matches(attributes));
    let found = set.nearest(
        &components,
        &Search {
            effort: options.effort.unwrap_or(DEFAULT_EFFORT).max(options.count),
            filter: matches.as_ref().map(|matches| matches as Condition<'_>),
            max_visits: options.max_visits.unwrap_or_else(|| options.count.saturating_mul(DEFAULT_VISITS_PER_RESULT)),
            is_exact: options.is_exact,
        },
    );
    // A distance that is no number is not too far.
    let is_far = |distance: f32| distance / 2.0 > options.epsilon;
    let found: Vec<_> = found.iter().take(options.count).take_while(|(_, distance)| !is_far(*distance)).collect();
    options.write_header(reply, found.len());
    for (element, distance) in found {
        reply.bulk(element.name);
        options.write_properties(reply, element, *distance);
    }
    Ok(())
}

/// The vector that others are compared with.
fn query(set: &VectorSet, args: &mut Args<'_>) -> Result<Vec<f32>, Error> {
    if args.take("ELE") {
        let element = set.get(args.word()?).ok_or(VectorSetError::NoElement)?;
        return Ok(element.vector.components(set.quantization(), set.dimensions() as usize));
    }
    let components = vector_arg::take(args)?;
    match set.input_dimensions() {
        _ if components.len() == set.dimensions() as usize => Ok(components),
        None => Err(vector_arg::mismatch(set, components.len())),
        Some(_) => vector_arg::projected(set, components),
    }
}

/// The options behind the vector.
struct Options {
    has_scores: bool,
    has_attributes: bool,
    count: usize,
    /// The greatest distance, where 1 is that of opposite directions.
    epsilon: f32,
    effort: Option<usize>,
    filter: Option<Filter>,
    max_visits: Option<usize>,
    is_exact: bool,
}

impl Options {
    fn parse(args: &mut Args<'_>) -> Result<Options, Error> {
        let mut options = Options {
            has_scores: false,
            has_attributes: false,
            count: DEFAULT_COUNT,
            epsilon: 2.0,
            effort: None,
            filter: None,
            max_visits: None,
            is_exact: false,
        };
        while !args.is_empty() {
            if args.take("WITHSCORES") {
                options.has_scores = true;
            } else if args.take("WITHATTRIBS") {
                options.has_attributes = true;
            } else if args.take("TRUTH") {
                options.is_exact = true;
            } else if args.take("NOTHREAD") {
                // No search takes a thread.
            } else if args.take_with("COUNT", 1) {
                options.count = args.at_least(1, VectorSetError::Count.into())?;
            } else if args.take_with("EPSILON", 1) {
                let epsilon = args.float().ok().filter(|epsilon| *epsilon > 0.0);
                options.epsilon = epsilon.ok_or(VectorSetError::Epsilon)? as f32;
            } else if args.take_with("EF", 1) {
                options.effort = Some(args.at_least(1, VectorSetError::Effort.into())?);
            } else if args.take_with("FILTER-EF", 1) {
                options.max_visits = Some(args.at_least(1, VectorSetError::FilterEffort.into())?);
            } else if args.take_with("FILTER", 1) {
                options.filter = Some(filter(args.word()?)?);
            } else {
                return Err(VectorSetError::SimilarOption.into());
            }
        }
        Ok(options)
    }

    /// Begins the reply: in RESP3 a map if elements have properties.
    fn write_header(&self, reply: &mut Reply<'_>, count: usize) {
        let properties = usize::from(self.has_scores) + usize::from(self.has_attributes);
        if reply.protocol() == Protocol::Resp3 && properties > 0 {
            reply.map(count);
        } else {
            reply.array(count * (1 + properties));
        }
    }

    /// Writes what is wanted of an element besides its name.
    fn write_properties(&self, reply: &mut Reply<'_>, element: &Element<'_>, distance: f32) {
        if reply.protocol() == Protocol::Resp3 && self.has_scores && self.has_attributes {
            reply.array(2);
        }
        if self.has_scores {
            reply.double(1.0 - f64::from(distance) / 2.0);
        }
        if self.has_attributes {
            reply.bulk_or_null(element.attributes);
        }
    }
}

/// The condition of FILTER.
fn filter(text: &[u8]) -> Result<Filter, Error> {
    Filter::parse(text).map_err(|position| {
        let position = if position < text.len() { position } else { 0 };
        VectorSetError::Filter(shown(&text[position..]).trim_end_matches(['\r', '\n']).into()).into()
    })
}
