//! What commands on streams refuse.

use thiserror::Error as Texts;

/// Why a command on streams was refused.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum StreamError {
    /// Not an id of an entry.
    #[error("ERR Invalid stream ID specified as stream command argument")]
    InvalidStreamId,
    /// `(` before the last id there is.
    #[error("ERR invalid start ID for the interval")]
    IntervalStart,
    /// `(` before the first id there is.
    #[error("ERR invalid end ID for the interval")]
    IntervalEnd,
    /// Both ways to trim, or one twice.
    #[error("ERR syntax error, MAXLEN and MINID options at the same time are not compatible")]
    SeveralTrims,
    /// A length below 0.
    #[error("ERR The MAXLEN argument must be >= 0.")]
    TrimLengthNegative,
    /// A limit below 0.
    #[error("ERR The LIMIT argument must be >= 0.")]
    TrimLimitNegative,
    /// LIMIT where nothing is trimmed.
    #[error("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy")]
    TrimLimitAlone,
    /// LIMIT where all must go.
    #[error("ERR syntax error, LIMIT cannot be used without the special ~ option")]
    TrimLimitExact,
    /// XTRIM that does not say what must go.
    #[error("ERR syntax error, XTRIM must be called with a trimming strategy")]
    TrimMissing,
    /// 0-0 is no entry's id.
    #[error("ERR The ID specified in XADD must be greater than 0-0")]
    EntryIdZero,
    /// No id is left.
    #[error("ERR The stream has exhausted the last possible ID, unable to add more items")]
    EntryIdsExhausted,
    /// An id that is not behind all others.
    #[error("ERR The ID specified in XADD is equal or smaller than the target stream top item")]
    EntryIdTooSmall,
    /// An entry of more than a gibibyte.
    #[error("ERR Elements are too large to be stored")]
    EntryTooLarge,
    /// XSETID with an id before that of an entry.
    #[error("ERR The ID specified in XSETID is smaller than the target stream top item")]
    LastIdTooSmall,
    /// XSETID with an id before one that was deleted.
    #[error("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id")]
    LastIdBeforeDeleted,
    /// XSETID with an id before the one that it says was deleted.
    #[error("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id")]
    LastIdBeforeGiven,
    /// XSETID with a count below 0.
    #[error("ERR entries_added must be positive")]
    AddedNegative,
    /// XSETID with fewer entries than there are.
    #[error("ERR The entries_added specified in XSETID is smaller than the target stream length")]
    AddedTooSmall,
    /// XREAD with keys and ids that do not pair up; its name, and what stands for an id.
    #[error("ERR Unbalanced '{command}' list of streams: for each stream key an {ids} must be specified.")]
    UnbalancedStreams {
        /// The command's name in lower case.
        command: &'static str,
        /// What an id can be.
        ids: &'static str,
    },
    /// XREAD with an option of XREADGROUP.
    #[error("ERR The {0} option is only supported by XREADGROUP. You called XREAD instead.")]
    OnlyReadGroup(&'static str),
    /// XREADGROUP without GROUP.
    #[error("ERR Missing GROUP option for XREADGROUP")]
    GroupMissing,
    /// XREADGROUP with an id that only XREAD has.
    #[error(
        "ERR The {0} ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by \
         specifying a proper ID, or use the > ID to get new messages. The {0} ID would just return an empty result set."
    )]
    MeaninglessId(char),
    /// XREAD with the id that only XREADGROUP has.
    #[error("ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.")]
    NewEntriesWithoutGroup,
    /// XREADGROUP of a group that is not there.
    #[error("NOGROUP No such key '{key}' or consumer group '{group}' in XREADGROUP with GROUP option")]
    NoGroupToRead {
        /// The key.
        key: String,
        /// The group.
        group: String,
    },
    /// A group that is not there, or its key.
    #[error("NOGROUP No such key '{key}' or consumer group '{group}'")]
    NoKeyOrGroup {
        /// The key.
        key: String,
        /// The group.
        group: String,
    },
    /// A group that is not there.
    #[error("NOGROUP No such consumer group '{group}' for key name '{key}'")]
    NoGroup {
        /// The key.
        key: String,
        /// The group.
        group: String,
    },
    /// XGROUP of no stream.
    #[error(
        "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM \
         option to create an empty stream automatically."
    )]
    GroupNeedsKey,
    /// A group of that name is there.
    #[error("BUSYGROUP Consumer Group name already exists")]
    GroupExists,
    /// A number of entries that were read.
    #[error("ERR value for ENTRIESREAD must be positive or -1")]
    EntriesReadNegative,
    /// A number that is none: which argument, and of which command.
    #[error("ERR Invalid {argument} argument for {command}")]
    InvalidClaimNumber {
        /// The argument.
        argument: &'static str,
        /// The command's name in upper case.
        command: &'static str,
    },
    /// XCLAIM has no such option; as the client sent it.
    #[error("ERR Unrecognized XCLAIM option '{0}'")]
    ClaimOption(String),
    /// XAUTOCLAIM of fewer than one entry, or of too many.
    #[error("ERR COUNT must be > 0")]
    ClaimCount,
    /// XAUTOCLAIM of more entries than memory could hold.
    #[error("ERR Insufficient memory, failed allocating transient memory, COUNT too high.")]
    ClaimCountTooHigh,
}
