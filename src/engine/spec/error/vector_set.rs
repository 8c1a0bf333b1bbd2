//! Errors of vector sets.

use thiserror::Error as Texts;

/// The reason why a command of vector sets failed.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum VectorSetError {
    /// The vector of VADD or VSIM is missing, incomplete or not of numbers, or REDUCE is not a positive number.
    #[error("ERR invalid vector specification")]
    Vector,
    /// VADD has an unknown option, or one without its value.
    #[error("ERR invalid option after element")]
    AddOption,
    /// M of VADD is not from 4 to 4096.
    #[error("ERR invalid M")]
    Links,
    /// EF is not a positive number, or for VADD above 1,000,000.
    #[error("ERR invalid EF")]
    Effort,
    /// COUNT of VSIM is not a positive number.
    #[error("ERR invalid COUNT")]
    Count,
    /// EPSILON of VSIM is not a positive number.
    #[error("ERR invalid EPSILON")]
    Epsilon,
    /// FILTER-EF of VSIM is not a positive number.
    #[error("ERR invalid FILTER-EF")]
    FilterEffort,
    /// The expression of FILTER is invalid from here on; its bytes as characters.
    #[error("ERR syntax error in FILTER expression near: {0}")]
    Filter(String),
    /// VSIM has an unknown option, or one without its value.
    #[error("ERR syntax error in VSIM command")]
    SimilarOption,
    /// VEMB has another option than RAW.
    #[error("ERR invalid option")]
    EmbeddingOption,
    /// VADD quantizes in another way than the set does.
    #[error("ERR asked quantization mismatch with existing vector set")]
    Quantization,
    /// VADD has another M than the set.
    #[error("ERR asked M value mismatch with existing vector set")]
    OtherLinks,
    /// A vector has another number of dimensions than those of the set.
    #[error("ERR Vector dimension mismatch - got {given} but set has {expected}")]
    Dimensions {
        /// The dimensions of the given vector.
        given: usize,
        /// The dimensions of the set.
        expected: u32,
    },
    /// A vector has another number of dimensions than the set projects.
    #[error("ERR Input dimension mismatch for projection - got {given} but projection expects {expected}")]
    InputDimensions {
        /// The dimensions of the given vector.
        given: usize,
        /// The dimensions of a vector before its projection.
        expected: u32,
    },
    /// VADD reduces vectors for a set that does not.
    #[error("ERR cannot add projection to existing set without projection")]
    Projection,
    /// VSIM searches by an element that is not in the set.
    #[error("ERR element not found in set")]
    NoElement,
    /// VDIM names a key that does not exist.
    #[error("ERR key does not exist")]
    NoKey,
    /// The count of VRANDMEMBER is not a number.
    #[error("ERR COUNT value is not an integer")]
    RandomCount,
}
