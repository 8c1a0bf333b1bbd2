//! The settings of the files of data.

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
    /// `save`: when to save without being asked.
    pub save_points: Vec<SavePoint>,
    /// `stop-writes-on-bgsave-error`: whether writes are refused while the save points cannot be kept.
    pub stops_writes: bool,
    /// `dbfilename`: the name of the RDB file.
    pub dump_file: String,
    /// Whether one of `save`, `dir` and `dbfilename` was set: only then is a file loaded at the start.
    pub are_wanted: bool,
    /// `rdb-key-save-delay`: microseconds to wait for each key that is saved; if negative, one for so many keys.
    pub save_delay_us: i64,
    /// `key-load-delay`: the same for each key that is loaded.
    pub load_delay_us: i64,
    /// `load`: a file whose data a server starts with.
    pub load_file: String,
}

impl Default for FileSettings {
    fn default() -> FileSettings {
        FileSettings {
            compresses: true,
            has_checksum: true,
            save_points: Vec::new(),
            stops_writes: true,
            dump_file: "dump.rdb".to_owned(),
            are_wanted: false,
            save_delay_us: 0,
            load_delay_us: 0,
            load_file: String::new(),
        }
    }
}
