//! The RDB file that a client wants of SYNC or PSYNC: what it said of that by REPLCONF before.

/// The RDB file that a client wants of SYNC, as it has said by REPLCONF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RdbRequest {
    /// It wants a file, and no stream of changes after it (`rdb-only`): it is no replica.
    pub wants_rdb_only: bool,
    /// It can take a file whose length it is not told before, but which ends with a mark (`capa eof`).
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
