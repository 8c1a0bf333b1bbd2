//! Parameters that CONFIG GET shows only by name: switches of Redis's own tests that slow down operations which are
//! never slow here, and the switch of our test kit.

use super::INT;
use crate::config::parameter::{Held, Parameter};

pub(super) const ROWS: &[Parameter] = &[
    Parameter::switch("aof-disable-auto-gc", Held::Always("no")).hidden(),
    Parameter::number("cluster-ping-interval", 0, INT, Held::Always("0")).hidden(),
    Parameter::number("key-load-delay", -INT - 1, INT, Held::Idle("0")).hidden(),
    Parameter::number("loading-process-events-interval-bytes", 1024, INT, Held::Idle("524288")).hidden(),
    Parameter::switch("lua-enable-deprecated-api", Held::Always("no")).at_start().hidden(),
    Parameter::number("rdb-key-save-delay", -INT - 1, INT, Held::Idle("0")).hidden(),
    Parameter::switch("repl-rdb-channel", Held::Idle("yes")).hidden(),
    Parameter::switch("test-kit", Held::Field(|s| s.test_kit, |s, on| s.test_kit = on)).at_start().hidden(),
    Parameter::switch("use-exit-on-panic", Held::Always("no")).hidden(),
    Parameter::number("watchdog-period", 0, INT, Held::Always("0")).hidden(),
];
