//! Errors about users and their permissions (ACL), each with its exact text.

use crate::acl::RuleError;
use thiserror::Error as Texts;

/// The reason why a permission is missing or an ACL command failed.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum AclError {
    /// The user has no permission to run a command.
    #[error("NOPERM User {user} has no permissions to run the '{command}' command")]
    Command {
        /// The user's name.
        user: String,
        /// The command's full name.
        command: String,
    },
    /// The user has no permission to access a key.
    #[error("NOPERM No permissions to access a key")]
    Key,
    /// The user has no permission to access a channel.
    #[error("NOPERM No permissions to access a channel")]
    Channel,
    /// A script calls a command for which its user has no permission; the reason as the user would receive it.
    #[error("ERR ACL failure in script: {0}")]
    InScript(String),
    /// The user lost the permission for a command between the time it was queued and EXEC; the reason.
    #[error(
        "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command \
         is no longer allowed for the following reason: {0}"
    )]
    Changed(&'static str),
    /// SORT with BY or GET is called by a user who may not read all keys; the option's name.
    #[error("ERR {0} option of SORT denied due to insufficient ACL permissions.")]
    SortOption(&'static str),

    /// The user name for ACL SETUSER has spaces or null characters.
    #[error("ERR Usernames can't contain spaces or null characters")]
    Name,
    /// A selector of ACL SETUSER has an opening parenthesis and no closing one; the selector.
    #[error("ERR Unmatched parenthesis in acl selector starting at '{0}'.")]
    Unmatched(String),
    /// A rule of ACL SETUSER is invalid.
    #[error("ERR Error in ACL SETUSER modifier '{rule}': {reason}")]
    Rule {
        /// The rule as the client sent it.
        rule: String,
        /// The reason.
        reason: RuleError,
    },
    /// ACL DELUSER names the user `default`.
    #[error("ERR The 'default' user cannot be removed")]
    DefaultStays,
    /// ACL DRYRUN names a user that does not exist.
    #[error("ERR User '{0}' not found")]
    UnknownUser(String),
    /// ACL DRYRUN names a command that does not exist.
    #[error("ERR Command '{0}' not found")]
    UnknownCommand(String),
    /// ACL CAT names a category that does not exist.
    #[error("ERR Unknown category '{0}'")]
    UnknownCategory(String),
    /// The number of bits for ACL GENPASS is not from 1 to 4096.
    #[error(
        "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096"
    )]
    PasswordBits,
    /// ACL LOAD or ACL SAVE is called while `aclfile` is not set.
    #[error(
        "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL \
         SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order \
         to store users in the Redis configuration."
    )]
    NoFile,
    /// ACL LOAD finds that the ACL file cannot be read or has invalid lines; the reasons.
    #[error("ERR {0}")]
    File(String),
    /// ACL SAVE cannot write the ACL file.
    #[error("ERR There was an error trying to save the ACLs. Please check the server logs for more information")]
    NotSaved,
}
