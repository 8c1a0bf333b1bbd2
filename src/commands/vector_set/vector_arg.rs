//! The vector of a request: `FP32 bytes`, or `VALUES count number ...`.

use crate::engine::{Args, Error, VectorSetError};
use crate::value::VectorSet;

/// Takes a vector.
///
/// # Errors
/// [`VectorSetError::Vector`] unless the words that follow are one.
pub(super) fn take(args: &mut Args<'_>) -> Result<Vec<f32>, Error> {
    components(args).ok_or(VectorSetError::Vector.into())
}

fn components(args: &mut Args<'_>) -> Option<Vec<f32>> {
    if args.take("FP32") {
        let (components, rest) = args.word().ok()?.as_chunks();
        let is_whole = rest.is_empty() && !components.is_empty();
        return is_whole.then(|| components.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect());
    }
    if !args.take("VALUES") {
        return None;
    }
    let count = usize::try_from(args.integer().ok()?).ok()?;
    if count == 0 || count > args.left() {
        return None;
    }
    (0..count).map(|_| args.float().ok().map(|number| number as f32)).collect()
}

/// Projects a vector if the set projects all.
///
/// # Errors
/// [`VectorSetError::InputDimensions`] if it has another number of components than the projection.
pub(super) fn projected(set: &VectorSet, components: Vec<f32>) -> Result<Vec<f32>, Error> {
    match set.input_dimensions() {
        None => Ok(components),
        Some(expected) if components.len() == expected as usize => Ok(set.project(&components)),
        Some(expected) => Err(VectorSetError::InputDimensions { given: components.len(), expected }.into()),
    }
}

/// The error of a vector that has not the dimensions of the set.
pub(super) fn mismatch(set: &VectorSet, given: usize) -> Error {
    VectorSetError::Dimensions { given, expected: set.dimensions() }.into()
}
