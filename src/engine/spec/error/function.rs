//! Errors of functions.

use thiserror::Error as Texts;

/// The reason why a command of functions failed.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum FunctionError {
    /// FCALL names a function that does not exist.
    #[error("ERR Function not found")]
    NoFunction,
    /// FUNCTION DELETE names a library that does not exist.
    #[error("ERR Library not found")]
    NoLibrary,
    /// FUNCTION LOAD has an unknown option; as the client sent it.
    #[error("ERR Unknown option given: {0}")]
    LoadOption(String),
    /// FUNCTION LIST has an unknown option; as the client sent it.
    #[error("ERR Unknown argument {0}")]
    ListArgument(String),
    /// FUNCTION LIST has LIBRARYNAME without a name.
    #[error("ERR library name argument was not given")]
    ListNameless,
    /// The argument of FUNCTION FLUSH is neither SYNC nor ASYNC.
    #[error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")]
    FlushOption,
}
