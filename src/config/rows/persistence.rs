//! What is written to disk, which so far is nothing.

use super::{INT, LONG_BYTES};
use crate::config::parameter::{Held, Parameter};
use crate::config::words;

pub(super) const ROWS: &[Parameter] = &[
    Parameter::words("save", words::save_points, Held::Always("")),
    Parameter::word("dbfilename", words::database_file_name, Held::Always("dump.rdb")).protected(),
    Parameter::switch("rdbchecksum", Held::Always("yes")).at_start(),
    Parameter::switch("rdbcompression", Held::Always("yes")),
    Parameter::switch("rdb-del-sync-files", Held::Always("no")),
    Parameter::switch("rdb-save-incremental-fsync", Held::Always("yes")),
    Parameter::choice("sanitize-dump-payload", &["no", "yes", "clients"], Held::Always("no")),
    Parameter::switch("stop-writes-on-bgsave-error", Held::Always("yes")),
    Parameter::switch("aof-load-truncated", Held::Always("yes")),
    Parameter::switch("aof-rewrite-incremental-fsync", Held::Always("yes")),
    Parameter::switch("aof-timestamp-enabled", Held::Always("no")),
    Parameter::switch("aof-use-rdb-preamble", Held::Always("yes")),
    Parameter::word("appenddirname", words::append_directory_name, Held::Always("appendonlydir")).at_start(),
    Parameter::word("appendfilename", words::append_file_name, Held::Always("appendonly.aof")).at_start(),
    Parameter::choice("appendfsync", &["everysec", "always", "no"], Held::Always("everysec")),
    Parameter::switch("appendonly", Held::Always("no")),
    Parameter::memory("auto-aof-rewrite-min-size", 0, LONG_BYTES, Held::Always("67108864")),
    Parameter::number("auto-aof-rewrite-percentage", 0, INT, Held::Always("100")),
    Parameter::switch("no-appendfsync-on-rewrite", Held::Always("no")),
];
