//! What is wrong with a rule, in Redis's words.

use thiserror::Error;

/// Why a rule is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RuleError {
    /// It names no command and no category.
    #[error("Unknown command or category name in ACL")]
    Unknown,
    /// It is no rule.
    #[error("Syntax error")]
    Syntax,
    /// A pattern of keys where all keys are allowed.
    #[error(
        "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try \
         'resetkeys' to start with an empty list of patterns"
    )]
    KeysAfterAll,
    /// A pattern of channels where all channels are allowed.
    #[error(
        "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. \
         Try 'resetchannels' to start with an empty list of channels"
    )]
    ChannelsAfterAll,
    /// A password that is not there is to be removed.
    #[error("The password you are trying to remove from the user does not exist")]
    NoSuchPassword,
    /// It is no SHA-256 in hexadecimal digits.
    #[error("The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters")]
    BadHash,
    /// A first argument is only allowed to commands.
    #[error("Allowing first-arg of a subcommand is not supported")]
    FirstArgumentOfSubcommand,
    /// The user was declared before.
    #[error("Duplicate user found. A user can only be defined once in config files")]
    DeclaredTwice,
}
