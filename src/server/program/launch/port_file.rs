//! The file with the port of a server (`port-file`), for scripts that wait for a file.
//!
//! It is written when clients are served, beside its place and then renamed, so a reader finds either no file or the
//! whole number. It is removed when the server ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use crate::server::os_host::reason;

/// The file with the port; removed when this is dropped.
#[derive(Debug)]
pub(in super::super) struct PortFile(PathBuf);

impl PortFile {
    /// Writes the file.
    ///
    /// # Errors
    /// A sentence with the reason why it cannot be written.
    pub(in super::super) fn write(path: &str, port: u16) -> Result<PortFile, String> {
        let beside = format!("{path}.{}", process::id());
        let written = fs::write(&beside, format!("{port}\n")).and_then(|()| fs::rename(&beside, path));
        match written {
            Ok(()) => Ok(PortFile(Path::new(path).to_owned())),
            Err(error) => {
                // There may be nothing to remove.
                let _ = fs::remove_file(&beside);
                Err(format!("cannot write the port file {path}: {}", reason(&error)))
            }
        }
    }
}

impl Drop for PortFile {
    fn drop(&mut self) {
        // Somebody may have removed it already.
        let _ = fs::remove_file(&self.0);
    }
}
