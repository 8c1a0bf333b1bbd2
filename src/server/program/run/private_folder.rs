//! The folder of the Unix socket of `dunlin run`, which only its user may enter.
//!
//! The folder goes with the server. A `dunlin run` that is killed cannot remove its own, so each one removes what those
//! before it have left. A folder is in use while its server holds the lock on it, which the system lets go with the
//! process; the number of the process in its name would not tell, as containers that share a folder for temporary files
//! have processes of the same numbers.

use std::fs::File;
use std::path::PathBuf;

/// The name of the socket in its folder.
const SOCKET: &str = "socket";

/// A folder that only this user may enter, removed when this is dropped, after the server has removed its socket.
#[derive(Debug)]
pub(super) struct PrivateFolder {
    path: PathBuf,
    _locked: File,
}

impl PrivateFolder {
    /// Makes one where the path of a socket is short enough; `None` if there is no such place.
    pub(super) fn make() -> Option<PrivateFolder> {
        #[cfg(unix)]
        return unix::make();
        // There are no Unix sockets on other systems.
        #[cfg(not(unix))]
        None
    }

    /// The path of the socket in it.
    pub(super) fn socket(&self) -> String {
        self.path.join(SOCKET).display().to_string()
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // The server has removed its file, so nothing is lost where this fails.
        let _ = std::fs::remove_dir(&self.path);
    }
}

#[cfg(unix)]
mod unix {
    use std::env;
    use std::fs::{self, DirBuilder, File};
    use std::hash::{BuildHasher, RandomState};
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    use std::path::{Path, PathBuf};
    use std::process;

    use super::{PrivateFolder, SOCKET};

    /// The beginning of the names of all these folders.
    const PREFIX: &str = "dunlin-run-";
    /// The longest path of a Unix socket that every system takes, in bytes.
    const LONGEST_PATH: usize = 100;

    pub(super) fn make() -> Option<PrivateFolder> {
        let places = [env::temp_dir(), PathBuf::from("/tmp")];
        places.iter().find_map(|place| {
            let name = format!("{PREFIX}{}-{:08x}", process::id(), RandomState::new().hash_one(0) as u32);
            let path = place.join(name);
            if path.join(SOCKET).as_os_str().len() > LONGEST_PATH {
                return None;
            }
            DirBuilder::new().mode(0o700).create(&path).ok()?;
            let locked = File::open(&path).ok()?;
            // A file system without locks keeps what a killed process leaves.
            let _ = locked.lock();
            // Until it was locked, another process that started then may have taken it for abandoned.
            if !path.exists() {
                return None;
            }
            remove_abandoned(place, &path);
            Some(PrivateFolder { path, _locked: locked })
        })
    }

    /// Removes what killed processes of the user of the folder `own` have left beside it. What cannot be removed stays.
    fn remove_abandoned(place: &Path, own: &Path) {
        let (Ok(entries), Ok(own_data)) = (fs::read_dir(place), fs::symlink_metadata(own)) else { return };
        for entry in entries.flatten() {
            if !entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) || entry.path() == own {
                continue;
            }
            let path = entry.path();
            // No link is followed: its target may be anybody's.
            let is_own = fs::symlink_metadata(&path).is_ok_and(|data| data.is_dir() && data.uid() == own_data.uid());
            let Some(folder) = is_own.then(|| File::open(&path).ok()).flatten() else { continue };
            if folder.try_lock().is_ok() {
                let _ = fs::remove_file(path.join(SOCKET));
                let _ = fs::remove_dir(&path);
            }
        }
    }
}
