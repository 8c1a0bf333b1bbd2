//! The errors of rules, in Redis's words.

use thiserror::Error;

/// The reason why a rule is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RuleError {
    /// The rule names an unknown command or category.
    #[error("Unknown command or category name in ACL")]
    Unknown,
    /// The text is not a rule.
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
    /// A password is to be removed that the user does not have.
    #[error("The password you are trying to remove from the user does not exist")]
    NoSuchPassword,
    /// The hash is not a SHA-256 in hexadecimal digits.
    #[error("The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters")]
    BadHash,
    /// A first argument can only be allowed for a command, not for a subcommand.
    #[error("Allowing first-arg of a subcommand is not supported")]
    FirstArgumentOfSubcommand,
    /// The file has declared the user before.
    #[error("Duplicate user found. A user can only be defined once in config files")]
    DeclaredTwice,
}
