//! Errors of the stream commands.

use thiserror::Error as Texts;

/// The reason why a stream command failed.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum StreamError {
    /// An argument is not a stream ID.
    #[error("ERR Invalid stream ID specified as stream command argument")]
    InvalidStreamId,
    /// The start of XRANGE or another command is `(` before the largest possible ID.
    #[error("ERR invalid start ID for the interval")]
    IntervalStart,
    /// The end of XRANGE or another command is `(` before the smallest possible ID.
    #[error("ERR invalid end ID for the interval")]
    IntervalEnd,
    /// XADD or XTRIM has both MAXLEN and MINID, or one of them twice.
    #[error("ERR syntax error, MAXLEN and MINID options at the same time are not compatible")]
    SeveralTrims,
    /// MAXLEN of XADD or XTRIM is negative.
    #[error("ERR The MAXLEN argument must be >= 0.")]
    TrimLengthNegative,
    /// LIMIT of XADD or XTRIM is negative.
    #[error("ERR The LIMIT argument must be >= 0.")]
    TrimLimitNegative,
    /// XADD or XTRIM has LIMIT without MAXLEN or MINID.
    #[error("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy")]
    TrimLimitAlone,
    /// XADD or XTRIM has LIMIT without `~`.
    #[error("ERR syntax error, LIMIT cannot be used without the special ~ option")]
    TrimLimitExact,
    /// XTRIM has neither MAXLEN nor MINID.
    #[error("ERR syntax error, XTRIM must be called with a trimming strategy")]
    TrimMissing,
    /// The ID for XADD is 0-0, which no entry can have.
    #[error("ERR The ID specified in XADD must be greater than 0-0")]
    EntryIdZero,
    /// XADD finds that the stream's last ID is the largest possible one.
    #[error("ERR The stream has exhausted the last possible ID, unable to add more items")]
    EntryIdsExhausted,
    /// The ID for XADD is not greater than the stream's last ID.
    #[error("ERR The ID specified in XADD is equal or smaller than the target stream top item")]
    EntryIdTooSmall,
    /// The fields and values for XADD have more than 1 GiB together.
    #[error("ERR Elements are too large to be stored")]
    EntryTooLarge,
    /// The ID for XSETID is smaller than that of the last entry.
    #[error("ERR The ID specified in XSETID is smaller than the target stream top item")]
    LastIdTooSmall,
    /// The ID for XSETID is smaller than the largest deleted ID.
    #[error("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id")]
    LastIdBeforeDeleted,
    /// The ID for XSETID is smaller than its MAXDELETEDID.
    #[error("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id")]
    LastIdBeforeGiven,
    /// ENTRIESADDED of XSETID is negative.
    #[error("ERR entries_added must be positive")]
    AddedNegative,
    /// ENTRIESADDED of XSETID is smaller than the number of entries.
    #[error("ERR The entries_added specified in XSETID is smaller than the target stream length")]
    AddedTooSmall,
    /// XREAD or XREADGROUP has an odd number of keys and IDs after STREAMS.
    #[error("ERR Unbalanced '{command}' list of streams: for each stream key an {ids} must be specified.")]
    UnbalancedStreams {
        /// The command's name in lower case.
        command: &'static str,
        /// The kinds of IDs that the command accepts.
        ids: &'static str,
    },
    /// XREAD has GROUP or NOACK, which only XREADGROUP has; the option.
    #[error("ERR The {0} option is only supported by XREADGROUP. You called XREAD instead.")]
    OnlyReadGroup(&'static str),
    /// XREADGROUP has no GROUP.
    #[error("ERR Missing GROUP option for XREADGROUP")]
    GroupMissing,
    /// XREADGROUP has the ID `$` or `+`, which only XREAD accepts.
    #[error(
        "ERR The {0} ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by \
         specifying a proper ID, or use the > ID to get new messages. The {0} ID would just return an empty result set."
    )]
    MeaninglessId(char),
    /// XREAD has the ID `>`, which only XREADGROUP accepts.
    #[error("ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.")]
    NewEntriesWithoutGroup,
    /// XREADGROUP names a stream or a group that does not exist.
    #[error("NOGROUP No such key '{key}' or consumer group '{group}' in XREADGROUP with GROUP option")]
    NoGroupToRead {
        /// The key.
        key: String,
        /// The group.
        group: String,
    },
    /// XPENDING, XCLAIM or XAUTOCLAIM names a stream or a group that does not exist.
    #[error("NOGROUP No such key '{key}' or consumer group '{group}'")]
    NoKeyOrGroup {
        /// The key.
        key: String,
        /// The group.
        group: String,
    },
    /// XGROUP or XINFO CONSUMERS names a group that an existing stream does not have.
    #[error("NOGROUP No such consumer group '{group}' for key name '{key}'")]
    NoGroup {
        /// The key.
        key: String,
        /// The group.
        group: String,
    },
    /// XGROUP names a key that does not exist.
    #[error(
        "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM \
         option to create an empty stream automatically."
    )]
    GroupNeedsKey,
    /// XGROUP CREATE names a group that already exists.
    #[error("BUSYGROUP Consumer Group name already exists")]
    GroupExists,
    /// ENTRIESREAD of XGROUP is below -1.
    #[error("ERR value for ENTRIESREAD must be positive or -1")]
    EntriesReadNegative,
    /// A numeric argument of XCLAIM or XAUTOCLAIM is not an integer.
    #[error("ERR Invalid {argument} argument for {command}")]
    InvalidClaimNumber {
        /// The argument's name.
        argument: &'static str,
        /// The command's name in upper case.
        command: &'static str,
    },
    /// XCLAIM has an unknown option; as the client sent it.
    #[error("ERR Unrecognized XCLAIM option '{0}'")]
    ClaimOption(String),
    /// COUNT of XAUTOCLAIM is not a positive integer, or is too large.
    #[error("ERR COUNT must be > 0")]
    ClaimCount,
    /// COUNT of XAUTOCLAIM is so large that Redis could not allocate memory for it.
    #[error("ERR Insufficient memory, failed allocating transient memory, COUNT too high.")]
    ClaimCountTooHigh,
}
