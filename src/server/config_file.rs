//! Reading and replacing the configuration file for CONFIG REWRITE; the file of users is replaced in the same way.
//!
//! A file is replaced as a whole or not at all: the text is written to a temporary file beside it, which is renamed to
//! the file's name only when all of it is on the disk. A reader, even after a crash, finds the old text or the new one.
//! The file keeps its permissions.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;

/// The text of the file; empty if the file does not exist.
///
/// # Errors
/// When the file exists and cannot be read.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}

/// Replaces the text of the file by `text`.
///
/// # Errors
/// When the text cannot be written; the file is then unchanged.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let beside = beside(path);
    let written = write(&beside, path, text).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // There may be nothing to remove.
        let _ = fs::remove_file(&beside);
    }
    written?;
    sync_folder(path)
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", process::id()));
    path.with_file_name(name)
}

fn write(beside: &Path, path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(beside)?;
    if let Ok(old) = fs::metadata(path) {
        file.set_permissions(old.permissions())?;
    }
    file.write_all(text)?;
    file.sync_all()
}

/// Makes the rename durable: the folder's entry for the new file is written to the disk.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(folder)?.sync_all()
}

/// Does nothing: on other systems a folder cannot be opened as a file.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_keeps_its_permissions() {
        let folder = std::env::temp_dir().join(format!("dunlin-config-{}", process::id()));
        fs::create_dir_all(&folder).expect("the folder can be made");
        let path = folder.join("redis.conf");
        assert_eq!(read(&path).expect("a missing file is empty"), b"");
        fs::write(&path, "port 1").expect("it can be written");
        #[cfg(unix)]
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("it is ours");
        replace(&path, b"port 2").expect("it can be replaced");
        assert_eq!(read(&path).expect("it is there"), b"port 2");
        #[cfg(unix)]
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).expect("there").permissions()),
            0o100_600
        );
        assert_eq!(fs::read_dir(&folder).expect("it is there").count(), 1);
        fs::remove_dir_all(&folder).expect("it is ours");
        assert!(replace(&path, b"port 3").is_err());
    }
}
