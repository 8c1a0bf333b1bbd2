//! The settings of the files of data.

use crate::aof::decisions::SyncPolicy;
use crate::rdb::VERSION;

/// A point at which the data are saved: so many changes, and more than so many seconds since the last save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavePoint {
    /// The seconds.
    pub seconds: i64,
    /// The changes.
    pub changes: u64,
}

/// The settings of the files of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSettings {
    /// `rdbcompression`: whether long strings are compressed in saved values.
    pub compresses: bool,
    /// `rdbchecksum`: whether a file ends with its checksum, and is checked by it.
    pub has_checksum: bool,
    /// `rdb-version`: the version of the format of RDB files.
    pub rdb_version: u16,
    /// `save`: when to save without being asked.
    pub save_points: Vec<SavePoint>,
    /// `stop-writes-on-bgsave-error`: whether writes are refused while the save points cannot be kept.
    pub stops_writes: bool,
    /// `dbfilename`: the name of the RDB file.
    pub dump_file: String,
    /// Whether one of `save`, `dir` and `dbfilename` was set: only then is a file loaded at the start.
    pub loads_at_start: bool,
    /// `rdb-key-save-delay`: microseconds to wait for each saved key; if negative, one microsecond for that many keys.
    pub save_delay_us: i64,
    /// `key-load-delay`: the same for each key that is loaded.
    pub load_delay_us: i64,
    /// `appendonly`: whether every change goes into the append-only file.
    pub appends: bool,
    /// `appenddirname`: the name of the folder of the append-only file.
    pub append_folder: String,
    /// `appendfilename`: the name that the names of its files begin with.
    pub append_file: String,
    /// `appendfsync`: when it is synced.
    pub syncs: SyncPolicy,
    /// `no-appendfsync-on-rewrite`: whether it is not synced every second while data are being saved.
    pub skips_sync_while_saving: bool,
    /// `auto-aof-rewrite-percentage`: by how much it has to grow before it is rewritten; 0 for never.
    pub rewrite_percent: u64,
    /// `auto-aof-rewrite-min-size`: the bytes up to which it is not rewritten by itself.
    pub rewrite_from_bytes: u64,
    /// `aof-use-rdb-preamble`: whether its base is an RDB file, and not commands.
    pub has_rdb_base: bool,
    /// `aof-load-truncated`: whether it is loaded, and cut off, when its end is missing.
    pub loads_truncated: bool,
    /// `aof-timestamp-enabled`: whether the time is noted between its commands.
    pub has_timestamps: bool,
    /// `aof-checksum`: whether its commands have checksums, and are checked by them.
    pub has_log_checksums: bool,
    /// `aof-disable-auto-gc`: whether files that a rewrite has replaced are kept.
    pub keeps_history: bool,
    /// `load`: a file whose data a server starts with.
    pub load_file: String,
}

impl Default for FileSettings {
    fn default() -> FileSettings {
        FileSettings {
            compresses: true,
            has_checksum: true,
            rdb_version: VERSION,
            save_points: Vec::new(),
            stops_writes: true,
            dump_file: "dump.rdb".to_owned(),
            loads_at_start: false,
            save_delay_us: 0,
            load_delay_us: 0,
            appends: false,
            append_folder: "appendonlydir".to_owned(),
            append_file: "appendonly.aof".to_owned(),
            syncs: SyncPolicy::EverySecond,
            skips_sync_while_saving: false,
            rewrite_percent: 100,
            rewrite_from_bytes: 64 << 20,
            has_rdb_base: true,
            loads_truncated: true,
            has_timestamps: false,
            has_log_checksums: false,
            keeps_history: false,
            load_file: String::new(),
        }
    }
}
