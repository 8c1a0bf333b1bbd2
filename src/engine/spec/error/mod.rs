//! Every error that a command can return, each with its exact text.
//!
//! One variant has one text, which is written nowhere else. The wording is Redis 8.0's, since clients and tests match
//! on it. Errors of files and sockets are not here: the engine has neither.

mod acl;
mod bitmap;
mod cluster;
mod function;
mod geo;
mod hyperloglog;
mod kit;
mod restore;
mod server;
mod stream;
mod tracking;
mod vector_set;

pub use acl::AclError;
pub use bitmap::BitmapError;
pub use cluster::ClusterError;
pub use function::FunctionError;
pub use geo::GeoError;
pub use hyperloglog::HyperLogLogError;
pub use kit::KitError;
pub use restore::RestoreError;
pub use server::ServerError;
pub use stream::StreamError;
pub use tracking::TrackingError;
pub use vector_set::VectorSetError;

use crate::script::LibraryError;
use thiserror::Error as Texts;

/// The reason why a command failed. Its `Display` is the line that the client receives, the error code first.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum Error {
    // Finding a command.
    /// No command has this name; the error repeats the name and the first arguments.
    #[error("ERR unknown command '{name}', with args beginning with: {arguments}")]
    UnknownCommand {
        /// The name as the client sent it, cut to 128 bytes.
        name: String,
        /// The first arguments, quoted, cut to 128 bytes.
        arguments: String,
    },
    /// A container command, such as CONFIG, has no subcommand of this name.
    #[error("ERR unknown subcommand '{subcommand}'. Try {container} HELP.")]
    UnknownSubcommand {
        /// The container's name in upper case.
        container: String,
        /// The subcommand, cut to 128 bytes.
        subcommand: String,
    },
    /// A command has too few or too many arguments; its full name in lower case.
    #[error("ERR wrong number of arguments for '{0}' command")]
    WrongArity(String),

    /// A handler finds an unknown subcommand or a wrong number of arguments (DEBUG, XINFO and others).
    #[error("ERR unknown subcommand or wrong number of arguments for '{subcommand}'. Try {container} HELP.")]
    SubcommandOrArity {
        /// The container's name in upper case.
        container: &'static str,
        /// The subcommand as the client sent it, cut to 128 bytes.
        subcommand: String,
    },

    // Gates.
    /// A command that may add data is refused: memory is above `maxmemory`, or the value would be too large.
    #[error("OOM command not allowed when used memory > 'maxmemory'.")]
    OutOfMemory,
    /// A function, or script with a `#!` line, without `allow-oom` is called while memory is above `maxmemory`.
    #[error("OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'")]
    ScriptWithoutMemory,
    /// A client that has not logged in calls a command that needs a login.
    #[error("NOAUTH Authentication required.")]
    NoAuth,
    /// DEBUG is called while `enable-debug-command` does not allow it.
    #[error(
        "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a \
         local connection, otherwise you need to set this option in the configuration file, and then restart the \
         server."
    )]
    DebugDisabled,

    // Permissions.
    /// An error about users and their permissions.
    #[error(transparent)]
    Acl(#[from] AclError),

    // Subscribers and monitors.
    /// A RESP2 client with subscriptions calls another kind of command; its full name in lower case.
    #[error(
        "ERR Can't execute '{0}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this \
         context"
    )]
    OnlyListens(String),
    /// A client in MONITOR mode, which Redis treats as a replica, calls a command that reads or writes data.
    #[error("ERR Replica can't interact with the keyspace")]
    ReplicaTouchesKeys,
    /// MONITOR is called inside MULTI or by a script.
    #[error("ERR MONITOR isn't allowed for DENY BLOCKING client")]
    MonitorDenied,
    /// SSUBSCRIBE is called inside MULTI or by a script.
    #[error("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")]
    ShardSubscribeDenied,

    // Arguments.
    /// An option is unknown, in the wrong place or in conflict with another; or an argument is missing.
    #[error("ERR syntax error")]
    Syntax,
    /// An argument is not a 64-bit signed integer in canonical form.
    #[error("ERR value is not an integer or out of range")]
    NotAnInteger,
    /// A count with WITHVALUES or WITHSCORES is too large to be doubled (HRANDFIELD, ZRANDMEMBER).
    #[error("ERR value is out of range")]
    OutOfRange,
    /// A negative count makes the reply too long. Where the client's output limit is the reason, it is closed.
    #[error("ERR value is out of range")]
    ReplyTooLong,
    /// A count is negative or not an integer (LPOP, SPOP, ZPOPMIN and others).
    #[error("ERR value is out of range, must be positive")]
    NotPositive,
    /// An argument, or the value to increment, is not a floating-point number.
    #[error("ERR value is not a valid float")]
    NotAFloat,
    /// `numkeys` is not a positive integer (LMPOP, ZMPOP, SINTERCARD and others).
    #[error("ERR numkeys should be greater than 0")]
    NumkeysNotPositive,
    /// `numkeys` is larger than the number of arguments after it (EVAL, FCALL, SINTERCARD).
    #[error("ERR Number of keys can't be greater than number of args")]
    NumkeysTooLarge,
    /// COUNT of LMPOP, ZMPOP and their blocking forms is not a positive integer.
    #[error("ERR count should be greater than 0")]
    CountNotPositive,
    /// LIMIT of SINTERCARD or ZINTERCARD is negative or not an integer.
    #[error("ERR LIMIT can't be negative")]
    NegativeLimit,
    /// A count or rank is the smallest 64-bit integer, which cannot be negated (LREM, LPOS, SRANDMEMBER).
    #[error("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807")]
    CountOutOfRange,
    /// A database number is negative or not below `databases`.
    #[error("ERR DB index is out of range")]
    DatabaseOutOfRange,

    // Configuration.
    /// CONFIG SET names a parameter that does not exist.
    #[error("ERR Unknown option or number of arguments for CONFIG SET - '{0}'")]
    ConfigUnknown(String),
    /// CONFIG SET names a parameter that cannot be set at run time, or gives an invalid value.
    #[error("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}")]
    ConfigRefused {
        /// The parameter as the client sent it.
        name: String,
        /// The reason.
        reason: String,
    },

    // The server itself and other servers.
    /// An error about the server itself, or about other servers.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// An error of a node of a cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterError),

    // COMMAND GETKEYS.
    /// COMMAND GETKEYS is given a request whose command does not exist.
    #[error("ERR Invalid command specified")]
    InvalidCommandGiven,
    /// COMMAND GETKEYS is given a request whose command takes no keys.
    #[error("ERR The command has no key arguments")]
    NoKeyArguments,
    /// COMMAND GETKEYS is given a request with the wrong number of arguments.
    #[error("ERR Invalid number of arguments specified for command")]
    InvalidArityGiven,
    /// COMMAND GETKEYS is given a request in which no keys can be found.
    #[error("ERR Invalid arguments specified for command")]
    InvalidArgumentsGiven,

    // Data.
    /// The key holds a value of another type than the command needs.
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongType,
    /// SORT without ALPHA finds an element, or a value of its BY pattern, that is not a number.
    #[error("ERR One or more scores can't be converted into double")]
    WeightNotADouble,
    /// A key that must exist does not (RENAME, LSET, XSETID, XINFO, DEBUG OBJECT).
    #[error("ERR no such key")]
    NoSuchKey,

    // Expiry of keys.
    /// An expire time is too far away, or not positive where it must be; the command's name in lower case.
    #[error("ERR invalid expire time in '{0}' command")]
    InvalidExpireTime(&'static str),

    /// EXPIRE or one of its variants has NX together with XX, GT or LT.
    #[error("ERR NX and XX, GT or LT options at the same time are not compatible")]
    ExpireNxAndOthers,
    /// EXPIRE or one of its variants has both GT and LT.
    #[error("ERR GT and LT options at the same time are not compatible")]
    ExpireGtAndLt,
    /// EXPIRE or one of its variants has an unknown option; as the client sent it.
    #[error("ERR Unsupported option {0}")]
    UnsupportedOption(String),

    // Keys and databases.
    /// COPY or MOVE has the same source and destination.
    #[error("ERR source and destination objects are the same")]
    SameObject,
    /// COPY names a vector set, which as a module's type in Redis is not copied.
    #[error("ERR not supported for this module key")]
    NotCopied,
    /// The first argument of SWAPDB is not a number.
    #[error("ERR invalid first DB index")]
    FirstDatabaseInvalid,
    /// The second argument of SWAPDB is not a number.
    #[error("ERR invalid second DB index")]
    SecondDatabaseInvalid,
    /// OBJECT FREQ is called while `maxmemory-policy` is not an LFU policy.
    #[error(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching \
         between policies at runtime LRU and LFU data will take some time to adjust."
    )]
    NoLfuPolicy,
    /// OBJECT IDLETIME is called while `maxmemory-policy` is an LFU policy.
    #[error(
        "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between \
         policies at runtime LRU and LFU data will take some time to adjust."
    )]
    LfuPolicy,

    // Scanning.
    /// The cursor of SCAN, HSCAN, SSCAN or ZSCAN is not an unsigned 64-bit integer.
    #[error("ERR invalid cursor")]
    InvalidCursor,
    /// SCAN, SSCAN or ZSCAN has the option NOVALUES, which only HSCAN has.
    #[error("ERR NOVALUES option can only be used in HSCAN")]
    NoValuesOfHash,

    // Lists.
    /// LSET names an index at which the list has no element.
    #[error("ERR index out of range")]
    IndexOutOfRange,
    /// RANK of LPOS is 0; ranks count from 1, or from -1 backwards.
    #[error(
        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start \
         from the end of the list"
    )]
    RankZero,
    /// COUNT of LPOS is negative.
    #[error("ERR COUNT can't be negative")]
    CountNegative,
    /// MAXLEN of LPOS is negative.
    #[error("ERR MAXLEN can't be negative")]
    MaxlenNegative,

    // Sorted sets.
    /// ZADD or GEOADD has both NX and XX.
    #[error("ERR XX and NX options at the same time are not compatible")]
    NxAndXx,
    /// ZADD has two of GT, LT and NX.
    #[error("ERR GT, LT, and/or NX options at the same time are not compatible")]
    GtLtNx,
    /// ZADD with INCR has more than one pair of score and member.
    #[error("ERR INCR option supports a single increment-element pair")]
    IncrOnePair,
    /// ZINCRBY or ZADD with INCR would add infinity and minus infinity.
    #[error("ERR resulting score is not a number (NaN)")]
    ScoreNotANumber,
    /// A bound of a range of scores is not a number (ZRANGEBYSCORE, ZCOUNT and others).
    #[error("ERR min or max is not a float")]
    ScoreBounds,
    /// A bound of a range of members does not begin with `[` or `(` and is not `-` or `+` (ZRANGEBYLEX and others).
    #[error("ERR min or max not valid string range item")]
    LexBounds,
    /// ZRANGE or ZRANGESTORE has LIMIT without BYSCORE or BYLEX.
    #[error("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")]
    LimitByRank,
    /// ZRANGE has both WITHSCORES and BYLEX.
    #[error("ERR syntax error, WITHSCORES not supported in combination with BYLEX")]
    ScoresByLex,
    /// `numkeys` of ZUNION, ZINTER, ZDIFF or a variant is below 1; the command's name in lower case.
    #[error("ERR at least 1 input key is needed for '{0}' command")]
    NoInputKeys(&'static str),
    /// An argument of WEIGHTS is not a number (ZUNION, ZINTER and variants).
    #[error("ERR weight value is not a float")]
    WeightNotAFloat,

    // Strings.
    /// A string would become longer than `proto-max-bulk-len`, or than memory allows.
    #[error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")]
    StringTooLong,
    /// The offset of SETRANGE is negative.
    #[error("ERR offset is out of range")]
    OffsetOutOfRange,
    /// INCRBY, HINCRBY or a variant would leave the range of 64-bit integers.
    #[error("ERR increment or decrement would overflow")]
    IncrementOverflow,
    /// The decrement of DECRBY is the smallest 64-bit integer, which cannot be negated.
    #[error("ERR decrement would overflow")]
    DecrementOverflow,
    /// The result of INCRBYFLOAT or HINCRBYFLOAT would be infinite or not a number.
    #[error("ERR increment would produce NaN or Infinity")]
    NotFinite,
    /// LCS names a key that holds another type than a string.
    #[error("ERR The specified keys must contain string values")]
    NotBothStrings,
    /// LCS has both LEN and IDX.
    #[error("ERR If you want both the length and indexes, please just use IDX.")]
    LcsLengthAndPlaces,
    /// LCS names a string of 4 GiB or more.
    #[error("ERR String too long for LCS")]
    StringsTooLongForLcs,
    /// The table that LCS needs for these two strings would be larger than `proto-max-bulk-len`.
    #[error("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")]
    LcsMemory,

    /// An error of a bitmap command.
    #[error(transparent)]
    Bitmap(#[from] BitmapError),
    /// An error of a HyperLogLog command.
    #[error(transparent)]
    HyperLogLog(#[from] HyperLogLogError),
    /// An error of RESTORE.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// An error of a geospatial command.
    #[error(transparent)]
    Geo(#[from] GeoError),
    /// An error of a stream command.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// An error of a vector set command.
    #[error(transparent)]
    VectorSet(#[from] VectorSetError),

    // Hashes.
    /// HINCRBY finds a field whose value is not an integer.
    #[error("ERR hash value is not an integer")]
    HashValueNotAnInteger,
    /// HINCRBYFLOAT finds a field whose value is not a number.
    #[error("ERR hash value is not a float")]
    HashValueNotAFloat,
    /// The increment of HINCRBYFLOAT is infinite.
    #[error("ERR value is NaN or Infinity")]
    NanOrInfinity,

    /// The word FIELDS is missing or in another place (HEXPIRE, HTTL, HGETEX and others).
    #[error("ERR Mandatory argument FIELDS is missing or not at the right position")]
    FieldsMissing,
    /// The number of fields is not a positive integer (HTTL, HPERSIST, HGETDEL, HGETEX and others).
    #[error("ERR Number of fields must be a positive integer")]
    FieldsNotPositive,
    /// The number of fields of HEXPIRE or one of its variants is not a positive integer.
    #[error("ERR Parameter `numFields` should be greater than 0")]
    NumFieldsNotPositive,
    /// The number of fields of HSETEX is not a positive 32-bit integer.
    #[error("ERR invalid number of fields")]
    InvalidFieldCount,
    /// The number of fields differs from the number of arguments after it (HEXPIRE, HTTL and others).
    #[error("ERR The `numfields` parameter must match the number of arguments")]
    NotSoManyFields,
    /// The expire time of a hash field is negative (HEXPIRE, HGETEX, HSETEX and variants).
    #[error("ERR invalid expire time, must be >= 0")]
    NegativeExpireTime,
    /// HSETEX has both FNX and FXX, or one of them twice.
    #[error("ERR Only one of FXX or FNX arguments can be specified")]
    FnxAndFxx,
    /// HSETEX has more than one of EX, PX, EXAT, PXAT and KEEPTTL.
    #[error("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified")]
    SeveralExpireTimes,
    /// HSETEX has an unknown option; as the client sent it.
    #[error("ERR unknown argument: {0}")]
    UnknownArgument(String),

    // Connections.
    /// A number that must fit into 32 bits, such as a database number, does not.
    #[error("ERR value is out of range, value must between -2147483648 and 2147483647")]
    OutOfInt32,
    /// AUTH is called with a password alone while the default user has none.
    #[error(
        "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
         configuration is correct?"
    )]
    AuthWithoutPassword,
    /// AUTH or HELLO names a user that does not exist or is disabled, or has the wrong password.
    #[error("WRONGPASS invalid username-password pair or user is disabled.")]
    WrongPassword,
    /// HELLO is called without AUTH before login.
    #[error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> \
         <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"
    )]
    HelloBeforeAuth,
    /// The protocol version of HELLO is not a number.
    #[error("ERR Protocol version is not an integer or out of range")]
    ProtocolNotAnInteger,
    /// The protocol version of HELLO is neither 2 nor 3.
    #[error("NOPROTO unsupported protocol version")]
    UnsupportedProtocol,
    /// HELLO has an unknown option, or one without its value; as the client sent it.
    #[error("ERR Syntax error in HELLO option '{0}'")]
    HelloOption(String),
    /// A client's name (CLIENT SETNAME, HELLO SETNAME) has characters that would break a line of CLIENT LIST.
    #[error("ERR Client names cannot contain spaces, newlines or special characters.")]
    ClientName,
    /// CLIENT SETINFO names an unknown attribute; as the client sent it.
    #[error("ERR Unrecognized option '{0}'")]
    ClientInfoOption(String),
    /// A value of CLIENT SETINFO has characters that would break a line of CLIENT LIST; the attribute's name.
    #[error("ERR {0} cannot contain spaces, newlines or special characters.")]
    ClientInfoValue(String),
    /// CLIENT LIST or CLIENT KILL names an unknown type of client; as the client sent it.
    #[error("ERR Unknown client type '{0}'")]
    ClientType(String),
    /// An argument of CLIENT LIST ID is not a number.
    #[error("ERR Invalid client ID")]
    ClientId,
    /// The argument of CLIENT KILL ID is not a positive integer.
    #[error("ERR client-id should be greater than 0")]
    ClientIdNotPositive,
    /// The argument of CLIENT KILL MAXAGE is not an integer.
    #[error("ERR maxage is not an integer or out of range")]
    MaxAgeNotAnInteger,
    /// The argument of CLIENT KILL MAXAGE is not positive.
    #[error("ERR maxage should be greater than 0")]
    MaxAgeNotPositive,
    /// CLIENT KILL with an address finds no client that has it.
    #[error("ERR No such client")]
    NoSuchClient,
    /// CLIENT KILL USER names a user that does not exist.
    #[error("ERR No such user '{0}'")]
    NoSuchUser(String),
    /// The mode of CLIENT PAUSE is neither WRITE nor ALL.
    #[error("ERR CLIENT PAUSE mode must be WRITE or ALL")]
    PauseMode,
    /// A timeout in milliseconds is not an integer (WAIT, XREAD BLOCK, CLIENT PAUSE and others).
    #[error("ERR timeout is not an integer or out of range")]
    TimeoutNotAnInteger,
    /// A timeout in seconds is not a number (BLPOP, BLMOVE, BZPOPMIN and others).
    #[error("ERR timeout is not a float or out of range")]
    TimeoutNotAFloat,
    /// A timeout is negative.
    #[error("ERR timeout is negative")]
    TimeoutNegative,
    /// A timeout ends later than a 64-bit time in milliseconds can express.
    #[error("ERR timeout is out of range")]
    TimeoutOutOfRange,

    // Transactions and blocked commands.
    /// EXEC is called outside a transaction.
    #[error("ERR EXEC without MULTI")]
    ExecWithoutMulti,
    /// DISCARD is called outside a transaction.
    #[error("ERR DISCARD without MULTI")]
    DiscardWithoutMulti,
    /// MULTI is called inside a transaction.
    #[error("ERR MULTI calls can not be nested")]
    NestedMulti,
    /// WATCH is called inside a transaction.
    #[error("ERR WATCH inside MULTI is not allowed")]
    WatchInMulti,
    /// A command that cannot be queued is called inside a transaction.
    #[error("ERR Command not allowed inside a transaction")]
    NotInTransaction,
    /// EXEC discards the transaction, because a request was refused when it was queued.
    #[error("EXECABORT Transaction discarded because of previous errors.")]
    TransactionFaulty,
    /// EXEC itself is refused, for example because memory is short; the reason.
    #[error("EXECABORT Transaction discarded because of: {0}")]
    TransactionRefused(String),
    /// A blocked command ends, because CLIENT UNBLOCK with ERROR was called for its client.
    #[error("UNBLOCKED client unblocked via CLIENT UNBLOCK")]
    Unblocked,
    /// The last argument of CLIENT UNBLOCK is neither TIMEOUT nor ERROR.
    #[error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")]
    UnblockReason,

    // Scripts.
    /// EVALSHA names a script that is not in the cache.
    #[error("NOSCRIPT No matching script. Please use EVAL.")]
    NoScript,
    /// The first line of a script (`#!lua ...`) is invalid; the reason.
    #[error("ERR {0}")]
    Shebang(String),
    /// A script does not compile; Lua's message.
    #[error("ERR Error compiling script (new function): {0}")]
    ScriptDoesNotCompile(String),
    /// A script or function failed while it ran; the whole error line.
    #[error("{line}")]
    ScriptFailed {
        /// The line that the client receives.
        line: String,
        /// Whether the error was already counted, when a command failed that the script called.
        is_counted: bool,
    },
    /// A script calls a command that does not exist.
    #[error("ERR Unknown Redis command called from script")]
    UnknownInScript,
    /// A script calls a command with too few or too many arguments.
    #[error("ERR Wrong number of args calling Redis command from script")]
    WrongArityInScript,
    /// A script calls a command that has the flag `noscript`.
    #[error("ERR This Redis command is not allowed from script")]
    NotInScript,
    /// A script called by EVAL_RO, FCALL_RO or with `no-writes` calls a command that writes.
    #[error("ERR Write commands are not allowed from read-only scripts.")]
    WriteInReadOnlyScript,
    /// A script runs longer than `busy-reply-threshold`, and the command is not one that may run meanwhile.
    #[error("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")]
    Busy,
    /// A function runs longer than `busy-reply-threshold`, and the command is not one that may run meanwhile.
    #[error("BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.")]
    BusyFunction,
    /// SCRIPT KILL or FUNCTION KILL is called while no script exceeds `busy-reply-threshold`.
    #[error("NOTBUSY No scripts in execution right now.")]
    NotBusy,
    /// SCRIPT KILL or FUNCTION KILL is called for a script that has already written.
    #[error(
        "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the \
         script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
    )]
    Unkillable,
    /// `numkeys` of EVAL, FCALL or a variant is negative.
    #[error("ERR Number of keys can't be negative")]
    NumkeysNegative,
    /// The argument of SCRIPT FLUSH is neither SYNC nor ASYNC.
    #[error("ERR SCRIPT FLUSH only support SYNC|ASYNC option")]
    ScriptFlushOption,
    /// The argument of SCRIPT DEBUG is neither YES, SYNC nor NO.
    #[error("ERR Use SCRIPT DEBUG YES/SYNC/NO")]
    ScriptDebugOption,
    /// SCRIPT DEBUG YES or SYNC is called; this server has no debugger for scripts.
    #[error("ERR there is no script debugger in this server")]
    NoScriptDebugger,

    // Functions.
    /// EVAL_RO or FCALL_RO calls a function, or a script with a `#!` line, without the flag `no-writes`.
    #[error("ERR Can not execute a script with write flag using *_ro command.")]
    WritesThoughReading,
    /// `numkeys` of FCALL or FCALL_RO is not an integer.
    #[error("ERR Bad number of keys provided")]
    NumkeysNotANumber,
    /// An error of a command of functions.
    #[error(transparent)]
    Function(#[from] FunctionError),
    /// The source of a function library is invalid, or its name or a function is already in use.
    #[error("ERR {0}")]
    Library(#[from] LibraryError),
    /// The policy of FUNCTION RESTORE is neither FLUSH, APPEND nor REPLACE.
    #[error("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")]
    RestorePolicy,
    /// The payload of RESTORE or FUNCTION RESTORE has a wrong checksum, or a later version.
    #[error("ERR DUMP payload version or checksum are wrong")]
    PayloadWrong,
    /// An error of the test kit.
    #[error(transparent)]
    Kit(#[from] KitError),
    /// An error of CLIENT TRACKING or CLIENT CACHING.
    #[error(transparent)]
    Tracking(#[from] TrackingError),

    // DEBUG and SHUTDOWN.
    /// DEBUG PROTOCOL names an unknown type.
    #[error(
        "ERR Wrong protocol type name. Please use one of the following: \
         string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false"
    )]
    ProtocolType,
    /// DEBUG RELOAD has an unknown option.
    #[error("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.")]
    ReloadOption,
    /// DEBUG RELOAD cannot load the file: it is missing or damaged, or has a key that is there already.
    #[error("ERR Error trying to load the RDB dump, check server logs.")]
    NotLoaded,
    /// DEBUG QUICKLIST-PACKED-THRESHOLD is not given a size, or one that is too large.
    #[error("ERR argument must be a memory value bigger than 1 and smaller than 4gb")]
    PackedThreshold,
    /// DEBUG PROTOCOL PUSH is called by a RESP2 client.
    #[error("ERR RESP2 is not supported by this command")]
    NotInResp2,
    /// SHUTDOWN ABORT is called while no shutdown is in progress.
    #[error("ERR No shutdown in progress.")]
    NoShutdown,
    /// SHUTDOWN is called, and the data cannot be saved; the log has the reason.
    #[error("ERR Errors trying to SHUTDOWN. Check logs.")]
    ShutdownFailed,
}

/// Converts bytes of a client for an error text: up to the first NUL, each byte becomes the character with its number,
/// which [`crate::resp::Reply::error`] writes as that byte again.
pub fn shown(bytes: &[u8]) -> String {
    bytes.iter().take_while(|&&byte| byte != 0).copied().map(char::from).collect()
}
