//! Every error a command can answer, each with its exact text.
//!
//! One variant is one text, and the text stands nowhere else. The wording is Redis 8.0's, since clients and tests match
//! on it. Errors of files and sockets are not here: the engine has neither.

mod bitmap;
mod geo;
mod hyperloglog;
mod kit;
mod restore;
mod rights;
mod server;
mod stream;
mod tracking;

pub use bitmap::BitmapError;
pub use geo::GeoError;
pub use hyperloglog::HyperLogLogError;
pub use kit::KitError;
pub use restore::RestoreError;
pub use rights::RightsError;
pub use server::ServerError;
pub use stream::StreamError;
pub use tracking::TrackingError;

use crate::script::LibraryError;
use thiserror::Error as Texts;

/// Why a command was refused. Its `Display` is the line that the client reads, code first.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum Error {
    // Finding a command.
    /// No command of that name; the name and the start of the arguments, as the client sent them.
    #[error("ERR unknown command '{name}', with args beginning with: {arguments}")]
    UnknownCommand {
        /// The name, cut to 128 bytes.
        name: String,
        /// The first arguments, quoted, cut to 128 bytes.
        arguments: String,
    },
    /// A container command has no such subcommand.
    #[error("ERR unknown subcommand '{subcommand}'. Try {container} HELP.")]
    UnknownSubcommand {
        /// The container's name in upper case.
        container: String,
        /// The subcommand, cut to 128 bytes.
        subcommand: String,
    },
    /// Too few or too many arguments; the command's full name in lower case.
    #[error("ERR wrong number of arguments for '{0}' command")]
    WrongArity(String),

    /// A container's subcommand does not exist, or not with so many arguments.
    #[error("ERR unknown subcommand or wrong number of arguments for '{subcommand}'. Try {container} HELP.")]
    SubcommandOrArity {
        /// The container's name in upper case.
        container: &'static str,
        /// The subcommand as the client sent it, cut to 128 bytes.
        subcommand: String,
    },

    // Gates.
    /// What the command could add might not fit.
    #[error("OOM command not allowed when used memory > 'maxmemory'.")]
    OutOfMemory,
    /// A script would need memory, and does not say that it may run while that is short.
    #[error("OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'")]
    ScriptWithoutMemory,
    /// The session has not logged in.
    #[error("NOAUTH Authentication required.")]
    NoAuth,
    /// DEBUG is not enabled.
    #[error(
        "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a \
         local connection, otherwise you need to set this option in the configuration file, and then restart the \
         server."
    )]
    DebugDisabled,

    // Rights.
    /// Something about users and their rights.
    #[error(transparent)]
    Rights(#[from] RightsError),

    // Listening.
    /// A subscriber that speaks RESP2 called something else; the command's full name in lower case.
    #[error(
        "ERR Can't execute '{0}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this \
         context"
    )]
    OnlyListens(String),
    /// A client that watches commands wants to read or write data: Redis takes it for a replica.
    #[error("ERR Replica can't interact with the keyspace")]
    ReplicaTouchesKeys,
    /// MONITOR where nothing may wait.
    #[error("ERR MONITOR isn't allowed for DENY BLOCKING client")]
    MonitorDenied,
    /// SSUBSCRIBE where nothing may wait.
    #[error("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")]
    ShardSubscribeDenied,

    // Arguments.
    /// An option is unknown, misplaced or contradicts another.
    #[error("ERR syntax error")]
    Syntax,
    /// Not a 64-bit signed integer in canonical form.
    #[error("ERR value is not an integer or out of range")]
    NotAnInteger,
    /// An integer outside of what the argument can mean.
    #[error("ERR value is out of range")]
    OutOfRange,
    /// A count that makes a reply too long. Where that is the client's limit, it is closed.
    #[error("ERR value is out of range")]
    ReplyTooLong,
    /// An integer that must not be negative.
    #[error("ERR value is out of range, must be positive")]
    NotPositive,
    /// Not a number.
    #[error("ERR value is not a valid float")]
    NotAFloat,
    /// A number of keys that must be positive.
    #[error("ERR numkeys should be greater than 0")]
    NumkeysNotPositive,
    /// A number of keys that is more than the words that follow it.
    #[error("ERR Number of keys can't be greater than number of args")]
    NumkeysTooLarge,
    /// A count of elements that must be positive.
    #[error("ERR count should be greater than 0")]
    CountNotPositive,
    /// A limit that must not be negative.
    #[error("ERR LIMIT can't be negative")]
    NegativeLimit,
    /// A count that cannot be negated.
    #[error("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807")]
    CountOutOfRange,
    /// A database number that is not there.
    #[error("ERR DB index is out of range")]
    DatabaseOutOfRange,

    // Configuration.
    /// No parameter of that name.
    #[error("ERR Unknown option or number of arguments for CONFIG SET - '{0}'")]
    ConfigUnknown(String),
    /// A parameter cannot be set, or not to that value.
    #[error("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}")]
    ConfigRefused {
        /// The parameter.
        name: String,
        /// Why not.
        reason: String,
    },

    // The server itself, and others.
    /// What was asked of the server itself, or of servers together.
    #[error(transparent)]
    Server(#[from] ServerError),

    // Telling of commands.
    /// The request whose keys are asked for names no command.
    #[error("ERR Invalid command specified")]
    InvalidCommandGiven,
    /// The command whose keys are asked for has none.
    #[error("ERR The command has no key arguments")]
    NoKeyArguments,
    /// The request whose keys are asked for is too short or too long.
    #[error("ERR Invalid number of arguments specified for command")]
    InvalidArityGiven,
    /// The request whose keys are asked for is malformed.
    #[error("ERR Invalid arguments specified for command")]
    InvalidArgumentsGiven,

    // Data.
    /// The key holds another type.
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongType,
    /// What elements are to be sorted by is no number.
    #[error("ERR One or more scores can't be converted into double")]
    WeightNotADouble,
    /// The key must exist.
    #[error("ERR no such key")]
    NoSuchKey,

    // Deadlines.
    /// A deadline that is not positive, or too far away; the command's name in lower case.
    #[error("ERR invalid expire time in '{0}' command")]
    InvalidExpireTime(&'static str),

    /// EXPIRE with NX and another condition.
    #[error("ERR NX and XX, GT or LT options at the same time are not compatible")]
    ExpireNxAndOthers,
    /// EXPIRE with both.
    #[error("ERR GT and LT options at the same time are not compatible")]
    ExpireGtAndLt,
    /// An option that is none; as the client sent it.
    #[error("ERR Unsupported option {0}")]
    UnsupportedOption(String),

    // Keys and databases.
    /// From a key to itself.
    #[error("ERR source and destination objects are the same")]
    SameObject,
    /// SWAPDB's first argument is no number.
    #[error("ERR invalid first DB index")]
    FirstDatabaseInvalid,
    /// SWAPDB's second argument is no number.
    #[error("ERR invalid second DB index")]
    SecondDatabaseInvalid,
    /// OBJECT FREQ where nobody counts.
    #[error(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching \
         between policies at runtime LRU and LFU data will take some time to adjust."
    )]
    NoLfuPolicy,
    /// OBJECT IDLETIME under a policy that goes by how often keys are used.
    #[error(
        "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between \
         policies at runtime LRU and LFU data will take some time to adjust."
    )]
    LfuPolicy,

    // Scanning.
    /// Not an unsigned 64-bit integer.
    #[error("ERR invalid cursor")]
    InvalidCursor,
    /// NOVALUES where there are no fields.
    #[error("ERR NOVALUES option can only be used in HSCAN")]
    NoValuesOfHash,

    // Lists.
    /// LSET where there is no element.
    #[error("ERR index out of range")]
    IndexOutOfRange,
    /// LPOS counts matches from 1.
    #[error(
        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start \
         from the end of the list"
    )]
    RankZero,
    /// LPOS for fewer than no matches.
    #[error("ERR COUNT can't be negative")]
    CountNegative,
    /// LPOS among fewer than no elements.
    #[error("ERR MAXLEN can't be negative")]
    MaxlenNegative,

    // Sorted sets.
    /// ZADD with both.
    #[error("ERR XX and NX options at the same time are not compatible")]
    NxAndXx,
    /// ZADD with two of them.
    #[error("ERR GT, LT, and/or NX options at the same time are not compatible")]
    GtLtNx,
    /// ZADD INCR with several members.
    #[error("ERR INCR option supports a single increment-element pair")]
    IncrOnePair,
    /// Infinity and minus infinity were to be added.
    #[error("ERR resulting score is not a number (NaN)")]
    ScoreNotANumber,
    /// No bound of a range of scores.
    #[error("ERR min or max is not a float")]
    ScoreBounds,
    /// No bound of a range of members.
    #[error("ERR min or max not valid string range item")]
    LexBounds,
    /// LIMIT with a range of ranks.
    #[error("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")]
    LimitByRank,
    /// WITHSCORES with a range of members.
    #[error("ERR syntax error, WITHSCORES not supported in combination with BYLEX")]
    ScoresByLex,
    /// No keys to combine; the command's name in lower case.
    #[error("ERR at least 1 input key is needed for '{0}' command")]
    NoInputKeys(&'static str),
    /// A factor of scores that is no number.
    #[error("ERR weight value is not a float")]
    WeightNotAFloat,

    // Strings.
    /// A string would become longer than `proto-max-bulk-len`.
    #[error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")]
    StringTooLong,
    /// A place in a string that is negative.
    #[error("ERR offset is out of range")]
    OffsetOutOfRange,
    /// A whole number would leave 64 bits.
    #[error("ERR increment or decrement would overflow")]
    IncrementOverflow,
    /// A decrement that has no negative.
    #[error("ERR decrement would overflow")]
    DecrementOverflow,
    /// A sum that is no number.
    #[error("ERR increment would produce NaN or Infinity")]
    NotFinite,
    /// LCS of something else.
    #[error("ERR The specified keys must contain string values")]
    NotBothStrings,
    /// LCS with both LEN and IDX.
    #[error("ERR If you want both the length and indexes, please just use IDX.")]
    LcsLengthAndPlaces,
    /// LCS of a string of 4 GiB or more.
    #[error("ERR String too long for LCS")]
    StringsTooLongForLcs,
    /// LCS of strings whose table would be too large.
    #[error("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")]
    LcsMemory,

    /// Of bits.
    #[error(transparent)]
    Bitmap(#[from] BitmapError),
    /// Of HyperLogLogs.
    #[error(transparent)]
    HyperLogLog(#[from] HyperLogLogError),
    /// Of RESTORE.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// Of places on earth.
    #[error(transparent)]
    Geo(#[from] GeoError),
    /// Of streams.
    #[error(transparent)]
    Stream(#[from] StreamError),

    // Hashes.
    /// A whole number was to be added to another value.
    #[error("ERR hash value is not an integer")]
    HashValueNotAnInteger,
    /// A number was to be added to another value.
    #[error("ERR hash value is not a float")]
    HashValueNotAFloat,
    /// A number to add that is none.
    #[error("ERR value is NaN or Infinity")]
    NanOrInfinity,

    /// `FIELDS` is not where it must be.
    #[error("ERR Mandatory argument FIELDS is missing or not at the right position")]
    FieldsMissing,
    /// A number of fields that must be positive.
    #[error("ERR Number of fields must be a positive integer")]
    FieldsNotPositive,
    /// A number of fields that must be positive, in the words of HEXPIRE.
    #[error("ERR Parameter `numFields` should be greater than 0")]
    NumFieldsNotPositive,
    /// A number of fields that must be positive, in the words of HSETEX.
    #[error("ERR invalid number of fields")]
    InvalidFieldCount,
    /// Another number of fields than announced.
    #[error("ERR The `numfields` parameter must match the number of arguments")]
    NotSoManyFields,
    /// A field was to live for less than no time.
    #[error("ERR invalid expire time, must be >= 0")]
    NegativeExpireTime,
    /// HSETEX with both, or with one twice.
    #[error("ERR Only one of FXX or FNX arguments can be specified")]
    FnxAndFxx,
    /// HSETEX with several of them.
    #[error("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified")]
    SeveralExpireTimes,
    /// HSETEX has no such option; as the client sent it.
    #[error("ERR unknown argument: {0}")]
    UnknownArgument(String),

    // Connections.
    /// An integer beyond 32 bits.
    #[error("ERR value is out of range, value must between -2147483648 and 2147483647")]
    OutOfInt32,
    /// A password was given and none is set.
    #[error(
        "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
         configuration is correct?"
    )]
    AuthWithoutPassword,
    /// No such user, or the wrong password.
    #[error("WRONGPASS invalid username-password pair or user is disabled.")]
    WrongPassword,
    /// HELLO before login, without AUTH.
    #[error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> \
         <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"
    )]
    HelloBeforeAuth,
    /// HELLO's version is no number.
    #[error("ERR Protocol version is not an integer or out of range")]
    ProtocolNotAnInteger,
    /// HELLO's version is not spoken here.
    #[error("NOPROTO unsupported protocol version")]
    UnsupportedProtocol,
    /// HELLO has no such option.
    #[error("ERR Syntax error in HELLO option '{0}'")]
    HelloOption(String),
    /// A client's name that would break a line of CLIENT LIST.
    #[error("ERR Client names cannot contain spaces, newlines or special characters.")]
    ClientName,
    /// CLIENT SETINFO has no such option.
    #[error("ERR Unrecognized option '{0}'")]
    ClientInfoOption(String),
    /// A library's name or version that would break a line of CLIENT LIST.
    #[error("ERR {0} cannot contain spaces, newlines or special characters.")]
    ClientInfoValue(String),
    /// No such kind of client.
    #[error("ERR Unknown client type '{0}'")]
    ClientType(String),
    /// CLIENT LIST ID takes numbers.
    #[error("ERR Invalid client ID")]
    ClientId,
    /// CLIENT KILL ID takes numbers from 1.
    #[error("ERR client-id should be greater than 0")]
    ClientIdNotPositive,
    /// CLIENT KILL MAXAGE takes a number.
    #[error("ERR maxage is not an integer or out of range")]
    MaxAgeNotAnInteger,
    /// CLIENT KILL MAXAGE takes seconds from 1.
    #[error("ERR maxage should be greater than 0")]
    MaxAgeNotPositive,
    /// CLIENT KILL found nobody.
    #[error("ERR No such client")]
    NoSuchClient,
    /// There is no such user.
    #[error("ERR No such user '{0}'")]
    NoSuchUser(String),
    /// CLIENT PAUSE has no such mode.
    #[error("ERR CLIENT PAUSE mode must be WRITE or ALL")]
    PauseMode,
    /// A time to wait that is no number.
    #[error("ERR timeout is not an integer or out of range")]
    TimeoutNotAnInteger,
    /// Seconds to wait that are no number.
    #[error("ERR timeout is not a float or out of range")]
    TimeoutNotAFloat,
    /// A time to wait below 0.
    #[error("ERR timeout is negative")]
    TimeoutNegative,
    /// A time to wait beyond the end of time.
    #[error("ERR timeout is out of range")]
    TimeoutOutOfRange,

    // Transactions and waiting.
    /// EXEC where nothing was queued.
    #[error("ERR EXEC without MULTI")]
    ExecWithoutMulti,
    /// DISCARD where nothing was queued.
    #[error("ERR DISCARD without MULTI")]
    DiscardWithoutMulti,
    /// MULTI after MULTI.
    #[error("ERR MULTI calls can not be nested")]
    NestedMulti,
    /// WATCH after MULTI.
    #[error("ERR WATCH inside MULTI is not allowed")]
    WatchInMulti,
    /// A command that cannot be queued.
    #[error("ERR Command not allowed inside a transaction")]
    NotInTransaction,
    /// A request was refused when it was to be queued.
    #[error("EXECABORT Transaction discarded because of previous errors.")]
    TransactionFaulty,
    /// EXEC itself was refused; why.
    #[error("EXECABORT Transaction discarded because of: {0}")]
    TransactionRefused(String),
    /// Somebody else ended the wait.
    #[error("UNBLOCKED client unblocked via CLIENT UNBLOCK")]
    Unblocked,
    /// CLIENT UNBLOCK has no such reason.
    #[error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")]
    UnblockReason,

    // Scripts.
    /// There is no script of that name.
    #[error("NOSCRIPT No matching script. Please use EVAL.")]
    NoScript,
    /// A script's first line is wrong; why.
    #[error("ERR {0}")]
    Shebang(String),
    /// A script cannot be compiled; why.
    #[error("ERR Error compiling script (new function): {0}")]
    ScriptDoesNotCompile(String),
    /// A script failed; the whole line.
    #[error("{line}")]
    ScriptFailed {
        /// What the client reads.
        line: String,
        /// The error was counted when the command failed that the script called.
        is_counted: bool,
    },
    /// A script called a command that does not exist.
    #[error("ERR Unknown Redis command called from script")]
    UnknownInScript,
    /// A script called a command with too few or too many arguments.
    #[error("ERR Wrong number of args calling Redis command from script")]
    WrongArityInScript,
    /// A script called a command that scripts may not call.
    #[error("ERR This Redis command is not allowed from script")]
    NotInScript,
    /// A script that does not write called a command that does.
    #[error("ERR Write commands are not allowed from read-only scripts.")]
    WriteInReadOnlyScript,
    /// A script takes too long, and only commands that can end it are heard.
    #[error("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")]
    Busy,
    /// A function takes too long, and only commands that can end it are heard.
    #[error("BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.")]
    BusyFunction,
    /// No script is there that could be ended.
    #[error("NOTBUSY No scripts in execution right now.")]
    NotBusy,
    /// The script that takes too long has written.
    #[error(
        "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the \
         script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
    )]
    Unkillable,
    /// A number of keys that must not be negative.
    #[error("ERR Number of keys can't be negative")]
    NumkeysNegative,
    /// SCRIPT FLUSH with another word.
    #[error("ERR SCRIPT FLUSH only support SYNC|ASYNC option")]
    ScriptFlushOption,
    /// SCRIPT DEBUG with another word.
    #[error("ERR Use SCRIPT DEBUG YES/SYNC/NO")]
    ScriptDebugOption,
    /// SCRIPT DEBUG would start a debugger.
    #[error("ERR there is no script debugger in this server")]
    NoScriptDebugger,

    // Functions.
    /// A script that may write was called by a command that only reads.
    #[error("ERR Can not execute a script with write flag using *_ro command.")]
    WritesThoughReading,
    /// There is no function of that name.
    #[error("ERR Function not found")]
    NoFunction,
    /// There is no library of that name.
    #[error("ERR Library not found")]
    NoLibrary,
    /// A number of keys that is no number.
    #[error("ERR Bad number of keys provided")]
    NumkeysNotANumber,
    /// What is wrong with a library.
    #[error("ERR {0}")]
    Library(#[from] LibraryError),
    /// FUNCTION LOAD with another word.
    #[error("ERR Unknown option given: {0}")]
    FunctionLoadOption(String),
    /// FUNCTION LIST with another word.
    #[error("ERR Unknown argument {0}")]
    FunctionListArgument(String),
    /// FUNCTION LIST LIBRARYNAME without a name.
    #[error("ERR library name argument was not given")]
    FunctionListNameless,
    /// FUNCTION FLUSH with another word.
    #[error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")]
    FunctionFlushOption,
    /// FUNCTION RESTORE with another word.
    #[error("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")]
    RestorePolicy,
    /// A payload is not what DUMP gave, or of a later version.
    #[error("ERR DUMP payload version or checksum are wrong")]
    PayloadWrong,

    /// Of the test kit.
    #[error(transparent)]
    Kit(#[from] KitError),
    /// Of tracking keys.
    #[error(transparent)]
    Tracking(#[from] TrackingError),

    // DEBUG and SHUTDOWN.
    /// DEBUG PROTOCOL has no such type.
    #[error(
        "ERR Wrong protocol type name. Please use one of the following: \
         string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false"
    )]
    ProtocolType,
    /// DEBUG RELOAD with another word.
    #[error("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.")]
    ReloadOption,
    /// DEBUG RELOAD of what cannot be loaded.
    #[error("ERR Error trying to load the RDB dump, check server logs.")]
    NotLoaded,
    /// DEBUG QUICKLIST-PACKED-THRESHOLD of no size, or of too large a one.
    #[error("ERR argument must be a memory value bigger than 1 and smaller than 4gb")]
    PackedThreshold,
    /// RESP2 cannot say it.
    #[error("ERR RESP2 is not supported by this command")]
    NotInResp2,
    /// There is no shutdown to be called off.
    #[error("ERR No shutdown in progress.")]
    NoShutdown,
    /// The data could not be saved before the end: there are no files to save it to.
    #[error("ERR Errors trying to SHUTDOWN. Check logs.")]
    ShutdownFailed,
}

/// Bytes of a client as an error repeats them: up to the first NUL, each byte as the character of its number, which
/// [`crate::resp::Reply::error`] writes as that byte again.
pub fn shown(bytes: &[u8]) -> String {
    bytes.iter().take_while(|&&byte| byte != 0).copied().map(char::from).collect()
}
