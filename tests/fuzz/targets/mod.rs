//! The fuzz targets: functions of bytes, which `cargo test` runs on seeds and on random changes of them, and which
//! `fuzz/` gives to libFuzzer.

pub mod aof_files;
pub mod frame;
pub mod grammar;
pub mod manifests;
pub mod numbers;
pub mod patterns;
pub mod payloads;
pub mod play;
pub mod propagation;
pub mod rdb_files;
pub mod replies;
pub mod requests;
pub mod scripts;
pub mod storage;
