//! Parameters of persistence. Nothing is written to disk so far, so some have a fixed value and others are stored
//! without effect.

use super::{INT, LONG_BYTES};
use crate::config::parameter::{Held, Parameter};
use crate::config::words;

pub(super) const ROWS: &[Parameter] = &[
    Parameter::words("save", words::save_points, Held::Always("")),
    Parameter::word("dbfilename", words::database_file_name, Held::Idle("dump.rdb")).protected(),
    Parameter::switch("rdbchecksum", Held::Always("yes")).at_start(),
    Parameter::switch("rdbcompression", Held::Field(|all| all.rdb_compression, |all, yes| all.rdb_compression = yes)),
    Parameter::switch("rdb-del-sync-files", Held::Idle("no")),
    Parameter::switch("rdb-save-incremental-fsync", Held::Idle("yes")),
    Parameter::choice("sanitize-dump-payload", &["no", "yes", "clients"], Held::Idle("no")),
    Parameter::switch("stop-writes-on-bgsave-error", Held::Idle("yes")),
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
