//! Errors about the server itself and about other servers: its logs, its configuration
//! file, modules, replicas, clusters.

use thiserror::Error as Texts;

/// Why a command about the server was refused. Its `Display` is the line that the client reads, code first.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum ServerError {
    // Looking into the server.
    /// SLOWLOG GET of fewer than no entries, or of something else.
    #[error("ERR count should be greater than or equal to -1")]
    SlowLogCount,
    /// LATENCY GRAPH of a kind of which there are no samples; as the client sent it.
    #[error("ERR No samples available for event '{0}'")]
    NoSpikes(String),
    /// CONFIG REWRITE where there is no file.
    #[error("ERR The server is running without a config file")]
    NoConfigFile,
    /// CONFIG REWRITE could not write; why.
    #[error("ERR Rewriting config file: {0}")]
    ConfigNotWritten(String),
    /// MODULE is not enabled.
    #[error(
        "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", you can run it from \
         a local connection, otherwise you need to set this option in the configuration file, and then restart the \
         server."
    )]
    ModuleDisabled,

    /// MODULE LOAD, which always fails.
    #[error("ERR Error loading the extension. Please check the server logs.")]
    ModuleNotLoaded,
    /// MODULE UNLOAD of what is not loaded.
    #[error("ERR Error unloading module: no such module with that name")]
    NoModule,

    // DEBUG.
    /// DEBUG LISTPACK of a value that is none in Redis either.
    #[error("ERR Not a listpack encoded object.")]
    NotAListpack,
    /// DEBUG HTSTATS of a database that there is not.
    #[error("ERR Out of range database")]
    NoSuchDatabase,

    // The test kit.
    /// A test wants this answer.
    #[error("{0}")]
    Injected(String),
    /// A command of the test kit cannot be obeyed, or what a test expects is not so; why.
    #[error("ERR {0}")]
    Kit(String),

    // Other servers.
    /// A command of clusters.
    #[error("ERR This instance has cluster support disabled")]
    NoCluster,
    /// Another server was to be followed, or wanted to follow.
    #[error("ERR this server does not replicate")]
    NoReplication,
    /// MIGRATE with a key, and KEYS beside it.
    #[error("ERR When using MIGRATE KEYS option, the key argument must be set to the empty string")]
    KeyBesideKeys,
    /// Another server could not be reached.
    #[error("IOERR error or timeout connecting to the client")]
    Unreachable,
    /// Another server was lost, or took too long, while it was written to or read from.
    #[error("IOERR error or timeout {0} to target instance")]
    Interrupted(&'static str),
    /// Another server refused a key; its words, code first.
    #[error("ERR Target instance replied with error: {0}")]
    Target(String),
    /// The port of another server is none.
    #[error("ERR Invalid master port")]
    PrimaryPort,
    /// Something was to be written, and there must be replicas for that.
    #[error("NOREPLICAS Not enough good replicas to write.")]
    NoReplicas,
    /// FAILOVER ABORT.
    #[error("ERR No failover in progress.")]
    NoFailover,
    /// FAILOVER, which needs a replica.
    #[error("ERR FAILOVER requires connected replicas.")]
    FailoverWithoutReplicas,
    /// FAILOVER within no time.
    #[error("ERR FAILOVER timeout must be greater than 0")]
    FailoverTimeout,
    /// WAITAOF for a file that is not written.
    #[error("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.")]
    WaitWithoutFile,
    /// WAITAOF for more than this server itself.
    #[error("ERR value is out of range, value must between 0 and 1")]
    NotZeroOrOne,
}
