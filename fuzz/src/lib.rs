//! The fuzz targets of the tests, as a library for libFuzzer's programs.

#[path = "../../tests/support/mod.rs"]
mod support;
#[path = "../../tests/fuzz/targets/mod.rs"]
pub mod targets;
