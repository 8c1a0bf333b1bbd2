//! Parameters of persistence: the RDB file and the append-only file.

use super::{INT, LONG_BYTES};
use crate::config::parameter::{Backing, Parameter};
use crate::config::words;
use crate::engine::{Settings, SyncPolicy};

pub(super) const ROWS: &[Parameter] = &[
    Parameter::words("save", words::save_points, Backing::Field(words::shown_save_points, words::assign_save_points)),
    Parameter::word(
        "dbfilename",
        words::database_file_name,
        Backing::Field(|s| s.files.dump_file.clone(), set_dump_file),
    )
    .protected(),
    Parameter::switch(
        "rdbchecksum",
        Backing::Field(|s| s.files.has_checksum, |s, yes| s.files_mut().has_checksum = yes),
    )
    .at_start(),
    Parameter::switch(
        "rdbcompression",
        Backing::Field(|all| all.files.compresses, |all, yes| all.files_mut().compresses = yes),
    ),
    Parameter::switch("rdb-del-sync-files", Backing::NoEffect("no")),
    Parameter::switch("rdb-save-incremental-fsync", Backing::NoEffect("yes")),
    Parameter::choice("sanitize-dump-payload", &["no", "yes", "clients"], Backing::NoEffect("no")),
    Parameter::switch(
        "stop-writes-on-bgsave-error",
        Backing::Field(|s| s.files.stops_writes, |s, yes| s.files_mut().stops_writes = yes),
    ),
    Parameter::switch(
        "aof-load-truncated",
        Backing::Field(|s| s.files.loads_truncated, |s, yes| s.files_mut().loads_truncated = yes),
    ),
    Parameter::switch("aof-rewrite-incremental-fsync", Backing::NoEffect("yes")),
    Parameter::switch(
        "aof-timestamp-enabled",
        Backing::Field(|s| s.files.has_timestamps, |s, yes| s.files_mut().has_timestamps = yes),
    ),
    Parameter::switch(
        "aof-use-rdb-preamble",
        Backing::Field(|s| s.files.has_rdb_base, |s, yes| s.files_mut().has_rdb_base = yes),
    ),
    Parameter::word(
        "appenddirname",
        words::append_directory_name,
        Backing::Field(|s| s.files.append_folder.clone(), |s, name| s.files_mut().append_folder = name),
    )
    .at_start(),
    Parameter::word(
        "appendfilename",
        words::append_file_name,
        Backing::Field(|s| s.files.append_file.clone(), |s, name| s.files_mut().append_file = name),
    )
    .at_start(),
    Parameter::choice(
        "appendfsync",
        &["everysec", "always", "no"],
        Backing::Field(|s| s.files.syncs.name(), |s, name| s.files_mut().syncs = SyncPolicy::named(name)),
    ),
    Parameter::switch("appendonly", Backing::Field(|s| s.files.appends, |s, yes| s.files_mut().appends = yes)),
    Parameter::memory(
        "auto-aof-rewrite-min-size",
        0,
        LONG_BYTES,
        Backing::Field(|s| s.files.rewrite_from_bytes, |s, bytes| s.files_mut().rewrite_from_bytes = bytes),
    ),
    Parameter::number(
        "auto-aof-rewrite-percentage",
        0,
        INT,
        Backing::Field(|s| s.files.rewrite_percent as i64, |s, percent| s.files_mut().rewrite_percent = percent as u64),
    ),
    Parameter::switch(
        "no-appendfsync-on-rewrite",
        Backing::Field(|s| s.files.skips_sync_while_saving, |s, yes| s.files_mut().skips_sync_while_saving = yes),
    ),
];

fn set_dump_file(settings: &mut Settings, name: String) {
    let files = settings.files_mut();
    (files.dump_file, files.loads_at_start) = (name, true);
}
