//! The server's log lines, as `tracing` events. The process decides where they go: the `dunlin` program writes them
//! (`program/log.rs`), and in another program they go nowhere unless it subscribes to them.

use std::sync::OnceLock;

use crate::engine::LogLevel;

/// Applies a level to the log of this process, if it has one.
type ApplyLevel = Box<dyn Fn(LogLevel) + Send + Sync>;

static APPLY_LEVEL: OnceLock<ApplyLevel> = OnceLock::new();

/// Logs a line at a level.
pub(crate) fn write(level: LogLevel, line: &str) {
    match level {
        LogLevel::Debug => tracing::debug!("{line}"),
        LogLevel::Verbose => tracing::debug!("{line}"),
        LogLevel::Notice => tracing::info!("{line}"),
        LogLevel::Warning | LogLevel::Nothing => tracing::warn!("{line}"),
    }
}

/// Applies a changed `loglevel` to the log of this process, if it has one.
pub(crate) fn set_level(level: LogLevel) {
    if let Some(apply) = APPLY_LEVEL.get() {
        apply(level);
    }
}

/// Sets what a changed `loglevel` does. Only the first log of a process has a level.
#[cfg(feature = "program")]
pub(crate) fn when_level_changes(apply: impl Fn(LogLevel) + Send + Sync + 'static) {
    let _ = APPLY_LEVEL.set(Box::new(apply));
}
