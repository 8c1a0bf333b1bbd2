//! Parameters that CONFIG GET shows only by name: switches of Redis's own tests, most of which slow something down, and
//! those of our own.

use super::INT;
use crate::config::parameter::{Backing, Parameter};
use crate::engine::cluster::MAX_NODES;
use crate::rdb::VERSION;

pub(super) const ROWS: &[Parameter] = &[
    Parameter::switch(
        "aof-checksum",
        Backing::Field(|s| s.files.has_log_checksums, |s, yes| s.files_mut().has_log_checksums = yes),
    )
    .hidden(),
    Parameter::switch(
        "aof-disable-auto-gc",
        Backing::Field(|s| s.files.keeps_history, |s, yes| s.files_mut().keeps_history = yes),
    )
    .hidden(),
    Parameter::number(
        "cluster",
        0,
        MAX_NODES as i64,
        Backing::Field(|s| s.cluster.primaries.into(), |s, count| s.start_cluster(count as u16)),
    )
    .at_start()
    .hidden(),
    Parameter::number("cluster-ping-interval", 0, INT, Backing::NoEffect("0")).hidden(),
    Parameter::number(
        "key-load-delay",
        -INT - 1,
        INT,
        Backing::Field(|s| s.files.load_delay_us, |s, us| s.files_mut().load_delay_us = us),
    )
    .hidden(),
    Parameter::text("load", Backing::Field(|s| s.files.load_file.clone(), |s, path| s.files_mut().load_file = path))
        .alias("seed")
        .at_start()
        .hidden(),
    Parameter::number("loading-process-events-interval-bytes", 1024, INT, Backing::NoEffect("524288")).hidden(),
    Parameter::switch("lua-enable-deprecated-api", Backing::Fixed("no")).at_start().hidden(),
    Parameter::number(
        "rdb-key-save-delay",
        -INT - 1,
        INT,
        Backing::Field(|s| s.files.save_delay_us, |s, us| s.files_mut().save_delay_us = us),
    )
    .hidden(),
    Parameter::number(
        "rdb-version",
        10,
        VERSION as i64,
        Backing::Field(|s| s.files.rdb_version.into(), |s, version| s.files_mut().rdb_version = version as u16),
    )
    .hidden(),
    Parameter::switch("repl-rdb-channel", Backing::NoEffect("yes")).hidden(),
    Parameter::number(
        "replicas",
        0,
        MAX_NODES as i64,
        Backing::Field(|s| s.cluster.replicas.into(), |s, count| s.cluster_mut().replicas = count as u16),
    )
    .at_start()
    .hidden(),
    Parameter::switch("test-kit", Backing::Field(|s| s.test_kit, |s, on| s.test_kit = on)).at_start().hidden(),
    Parameter::switch("use-exit-on-panic", Backing::Fixed("no")).hidden(),
    Parameter::number("watchdog-period", 0, INT, Backing::Fixed("0")).hidden(),
];
