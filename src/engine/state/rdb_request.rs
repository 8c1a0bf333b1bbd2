//! The kind of RDB file that a client wants from SYNC or PSYNC, as it has declared by REPLCONF.

/// The RDB file that a client wants of SYNC, as it has said by REPLCONF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RdbRequest {
    /// It wants a file, and no stream of changes after it (`rdb-only`): it is no replica.
    pub wants_rdb_only: bool,
    /// It has declared a capability (`capa`), as replicas do before they ask.
    pub has_capabilities: bool,
    /// It accepts a file without its length in front, which ends with a mark instead (`capa eof`).
    pub takes_eof_mark: bool,
    /// The parts that it wants (`rdb-filter-only`); `None` for all.
    pub parts: Option<RdbParts>,
}

/// Parts of an RDB file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdbParts {
    /// The keys of all databases.
    pub keys: bool,
    /// The libraries of functions.
    pub functions: bool,
}
