//! Errors about the server itself (its logs, configuration file, modules) and about other servers (replicas, clusters).

use thiserror::Error as Texts;

/// The reason why a command about servers failed. Its `Display` is the line that the client receives, code first.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum ServerError {
    // Logs, configuration file and modules.
    /// The count of SLOWLOG GET is below -1, or not an integer.
    #[error("ERR count should be greater than or equal to -1")]
    SlowLogCount,
    /// LATENCY GRAPH names an event that has no samples; as the client sent it.
    #[error("ERR No samples available for event '{0}'")]
    NoLatencySamples(String),
    /// CONFIG REWRITE is called while the server runs without a configuration file.
    #[error("ERR The server is running without a config file")]
    NoConfigFile,
    /// CONFIG REWRITE cannot write the file; the reason.
    #[error("ERR Rewriting config file: {0}")]
    ConfigNotWritten(String),
    /// MODULE is called while `enable-module-command` does not allow it.
    #[error(
        "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", you can run it from \
         a local connection, otherwise you need to set this option in the configuration file, and then restart the \
         server."
    )]
    ModuleDisabled,

    /// MODULE LOAD is called, which always fails here.
    #[error("ERR Error loading the extension. Please check the server logs.")]
    ModuleNotLoaded,
    /// MODULE UNLOAD names a module that is built in.
    #[error("ERR Error unloading module: the module can't be unloaded")]
    ModuleBuiltIn,
    /// MODULE UNLOAD names another module; none is ever loaded here.
    #[error("ERR Error unloading module: no such module with that name")]
    NoModule,

    // Saving and loading.
    /// SAVE and others fail for a reason that only the log has.
    #[error("ERR")]
    Unspecified,
    /// SAVE or BGSAVE is called while a BGSAVE is in progress.
    #[error("ERR Background save already in progress")]
    SaveInProgress,
    /// BGSAVE is called while the append-only file is being rewritten.
    #[error(
        "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule \
         a BGSAVE whenever possible."
    )]
    RewriteActive,
    /// BGREWRITEAOF is called while the append-only file is being rewritten.
    #[error("ERR Background append only file rewriting already in progress")]
    RewriteInProgress,
    /// The append-only file cannot be rewritten; the log has the reason.
    #[error("ERR Can't execute an AOF background rewriting. Please check the server logs for more information.")]
    RewriteFailed,
    /// DEBUG LOADAOF cannot load the append-only file; the log has the reason.
    #[error("ERR Error trying to load the AOF files, check server logs.")]
    AofNotLoaded,
    /// A command writes while the append-only file cannot be written, for this reason.
    #[error("MISCONF Errors writing to the AOF file: {0}")]
    NotAppended(String),
    /// A command comes while the server is loading its data.
    #[error("LOADING Redis is loading the dataset in memory")]
    Loading,
    /// A command writes while the data cannot be saved (`stop-writes-on-bgsave-error`).
    #[error(
        "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands \
         that may modify the data set are disabled, because this instance is configured to report errors during writes \
         if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about \
         the RDB error."
    )]
    NotSaved,
    /// A script that may write is to run within a transaction while the data cannot be saved.
    #[error(
        "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Writable \
         scripts are blocked. Use 'no-writes' flag for read only scripts."
    )]
    ScriptNotSaved,
    /// A script that may write is to run within a transaction while the append-only file cannot be written, for this
    /// reason.
    #[error(
        "MISCONF Redis is configured to persist data to AOF, but it's currently unable to persist to disk. Writable \
         scripts are blocked. Use 'no-writes' flag for read only scripts. AOF error: {0}"
    )]
    ScriptNotAppended(String),

    // DEBUG.
    /// DEBUG LISTPACK names a value that is not a listpack in Redis either.
    #[error("ERR Not a listpack encoded object.")]
    NotAListpack,
    /// DEBUG HTSTATS names a database that does not exist.
    #[error("ERR Out of range database")]
    NoSuchDatabase,

    // The test kit.
    /// The test kit answers with an error that a test has set (a fault rule or strict mode).
    #[error("{0}")]
    Injected(String),
    /// A command of the test kit cannot be carried out, or an expectation does not hold; the reason.
    #[error("ERR {0}")]
    Kit(String),

    // Other servers.
    /// A command is called that works only in a cluster.
    #[error("ERR This instance has cluster support disabled")]
    NoCluster,
    /// A command would begin replication: REPLICAOF, SYNC, PSYNC, REPLCONF.
    #[error("ERR this server does not replicate")]
    NoReplication,
    /// SYNC was sent to a replica that is disconnected from its primary.
    #[error("NOMASTERLINK Can't SYNC while not connected with my master")]
    SyncWithoutPrimary,
    /// REPLCONF has an option that does not exist.
    #[error("ERR Unrecognized REPLCONF option: {0}")]
    ReplconfOption(String),
    /// `rdb-filter-only` of REPLCONF has quotes that do not close.
    #[error("ERR Missing rdb-filter-only values")]
    NoRdbFilter,
    /// `rdb-filter-only` of REPLCONF names a part that does not exist.
    #[error("ERR Unsupported rdb-filter-only option: {0}")]
    RdbFilter(String),
    /// SYNC is to send parts of a file to a client that cannot take one that ends with a mark.
    #[error("ERR Filtered replica requires EOF capability")]
    FilterNeedsMark,
    /// PSYNC is to end a failover, of which a primary knows nothing.
    #[error("ERR PSYNC FAILOVER can't be sent to a master.")]
    FailoverAtPrimary,
    /// MIGRATE has both a key and the option KEYS.
    #[error("ERR When using MIGRATE KEYS option, the key argument must be set to the empty string")]
    KeyBesideKeys,
    /// MIGRATE cannot connect to the other server.
    #[error("IOERR error or timeout connecting to the client")]
    Unreachable,
    /// MIGRATE lost the connection or timed out; during `writing` or `reading`.
    #[error("IOERR error or timeout {0} to target instance")]
    Interrupted(&'static str),
    /// The other server replied to MIGRATE with an error; its text, the error code first.
    #[error("ERR Target instance replied with error: {0}")]
    Target(String),
    /// The port of REPLICAOF is not a port number.
    #[error("ERR Invalid master port")]
    PrimaryPort,
    /// A write is refused: there are fewer replicas than `min-replicas-to-write`.
    #[error("NOREPLICAS Not enough good replicas to write.")]
    NoReplicas,
    /// A write is refused by a replica.
    #[error("READONLY You can't write against a read only replica.")]
    ReadOnlyReplica,
    /// A replica is disconnected from its primary, and is not to serve then.
    #[error("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.")]
    PrimaryIsDown,
    /// A script that may write is called at a replica.
    #[error("READONLY Can not run script with write flag on readonly replica.")]
    WritingScriptAtReplica,
    /// A script is called at a replica that is not to serve, and does not say that it may run nevertheless.
    #[error(
        "MASTERDOWN Link with MASTER is down, replica-serve-stale-data is set to 'no' and 'allow-stale' flag is not \
         set on the script."
    )]
    ScriptWithStaleData,
    /// A script calls a command at a replica that is not to serve.
    #[error("ERR Can not execute the command on a stale replica")]
    StaleInScript,
    /// A blocked client is told that the server is a replica now.
    #[error("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)")]
    RoleChanged,
    /// WAITAOF is called at a replica.
    #[error(
        "ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas are just local and \
         are not propagated."
    )]
    WaitAofAtReplica,
    /// WAIT is called at a replica.
    #[error(
        "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is \
         configured to be writable (which is not the default) writes to replicas are just local and are not propagated."
    )]
    WaitAtReplica,
    /// FAILOVER ABORT is called while no failover is in progress.
    #[error("ERR No failover in progress.")]
    NoFailover,
    /// FAILOVER is called, but there are no replicas.
    #[error("ERR FAILOVER requires connected replicas.")]
    FailoverWithoutReplicas,
    /// TIMEOUT of FAILOVER is not positive.
    #[error("ERR FAILOVER timeout must be greater than 0")]
    FailoverTimeout,
    /// WAITAOF waits for the local append-only file, which does not exist here.
    #[error("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.")]
    WaitWithoutFile,
    /// A client that may not block calls a command by which it would wait for messages; its name.
    #[error("ERR {0} isn't allowed for a DENY BLOCKING client")]
    DenyBlocking(String),
    /// `numlocal` of WAITAOF is neither 0 nor 1.
    #[error("ERR value is out of range, value must between 0 and 1")]
    NotZeroOrOne,
}
