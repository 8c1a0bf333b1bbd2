//! The errors of users and their rights, each with its exact text.

use crate::acl::RuleError;
use thiserror::Error as Texts;

/// Why something about users was refused.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum RightsError {
    /// The user may not run a command; its full name.
    #[error("NOPERM User {user} has no permissions to run the '{command}' command")]
    Command {
        /// The user.
        user: String,
        /// The command.
        command: String,
    },
    /// The user may not touch a key.
    #[error("NOPERM No permissions to access a key")]
    Key,
    /// The user may not use a channel.
    #[error("NOPERM No permissions to access a channel")]
    Channel,
    /// A script may not do that; what its user would be told.
    #[error("ERR ACL failure in script: {0}")]
    InScript(String),
    /// The user was allowed a command when it was queued, and is not any more; why.
    #[error(
        "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command \
         is no longer allowed for the following reason: {0}"
    )]
    Changed(&'static str),
    /// SORT would read keys that nobody checked; the option's name.
    #[error("ERR {0} option of SORT denied due to insufficient ACL permissions.")]
    SortOption(&'static str),

    /// A name of a user.
    #[error("ERR Usernames can't contain spaces or null characters")]
    Name,
    /// A bracket is opened and not closed.
    #[error("ERR Unmatched parenthesis in acl selector starting at '{0}'.")]
    Unmatched(String),
    /// A rule is refused.
    #[error("ERR Error in ACL SETUSER modifier '{rule}': {reason}")]
    Rule {
        /// The rule.
        rule: String,
        /// Why.
        reason: RuleError,
    },
    /// The default user stays.
    #[error("ERR The 'default' user cannot be removed")]
    DefaultStays,
    /// ACL DRYRUN knows no such user.
    #[error("ERR User '{0}' not found")]
    UnknownUser(String),
    /// ACL DRYRUN knows no such command.
    #[error("ERR Command '{0}' not found")]
    UnknownCommand(String),
    /// ACL CAT knows no such category.
    #[error("ERR Unknown category '{0}'")]
    UnknownCategory(String),
    /// ACL GENPASS makes no such password.
    #[error(
        "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096"
    )]
    PasswordBits,
    /// There is no file of users.
    #[error(
        "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL \
         SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order \
         to store users in the Redis configuration."
    )]
    NoFile,
    /// The file of users cannot be read, or holds faults.
    #[error("ERR {0}")]
    File(String),
    /// The file of users cannot be written.
    #[error("ERR There was an error trying to save the ACLs. Please check the server logs for more information")]
    NotSaved,
}
