//! Parameters of persistence. There is no append-only file so far, so those about it are stored without effect.

use super::{INT, LONG_BYTES};
use crate::config::parameter::{Held, Parameter};
use crate::config::words;
use crate::engine::Settings;

pub(super) const ROWS: &[Parameter] = &[
    Parameter::words("save", words::save_points, Held::Field(words::shown_save_points, words::assign_save_points)),
    Parameter::word("dbfilename", words::database_file_name, Held::Field(|s| s.files.dump_file.clone(), set_dump_file))
        .protected(),
    Parameter::switch("rdbchecksum", Held::Field(|s| s.files.has_checksum, |s, yes| s.files_mut().has_checksum = yes))
        .at_start(),
    Parameter::switch(
        "rdbcompression",
        Held::Field(|all| all.files.compresses, |all, yes| all.files_mut().compresses = yes),
    ),
    Parameter::switch("rdb-del-sync-files", Held::Idle("no")),
    Parameter::switch("rdb-save-incremental-fsync", Held::Idle("yes")),
    Parameter::choice("sanitize-dump-payload", &["no", "yes", "clients"], Held::Idle("no")),
    Parameter::switch(
        "stop-writes-on-bgsave-error",
        Held::Field(|s| s.files.stops_writes, |s, yes| s.files_mut().stops_writes = yes),
    ),
    Parameter::switch("aof-load-truncated", Held::Idle("yes")),
    Parameter::switch("aof-rewrite-incremental-fsync", Held::Idle("yes")),
    Parameter::switch("aof-timestamp-enabled", Held::Idle("no")),
    Parameter::switch("aof-use-rdb-preamble", Held::Idle("yes")),
    Parameter::word("appenddirname", words::append_directory_name, Held::Idle("appendonlydir")).at_start(),
    Parameter::word("appendfilename", words::append_file_name, Held::Idle("appendonly.aof")).at_start(),
    Parameter::choice("appendfsync", &["everysec", "always", "no"], Held::Idle("everysec")),
    Parameter::switch("appendonly", Held::Always("no")),
    Parameter::memory("auto-aof-rewrite-min-size", 0, LONG_BYTES, Held::Idle("67108864")),
    Parameter::number("auto-aof-rewrite-percentage", 0, INT, Held::Idle("100")),
    Parameter::switch("no-appendfsync-on-rewrite", Held::Idle("no")),
];

fn set_dump_file(settings: &mut Settings, name: String) {
    let files = settings.files_mut();
    (files.dump_file, files.are_wanted) = (name, true);
}
