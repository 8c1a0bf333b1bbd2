//! Reading and replacing the configuration file for CONFIG REWRITE; the file of users is replaced in the same way.
//!
//! A file is replaced as a whole or not at all ([`super::atomic_file`]), and keeps its permissions. The nodes of a
//! cluster share a file, so replacements take turns: each has the temporary file beside it for itself.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;

use parking_lot::Mutex;

use super::atomic_file;

/// Held while a file is replaced.
static TURN: Mutex<()> = Mutex::new(());

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
    let _turn = TURN.lock();
    let beside = beside(path);
    atomic_file::replace(path, &beside, || Ok((write(&beside, path, text)?, ())))
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", process::id()));
    path.with_file_name(name)
}

fn write(beside: &Path, path: &Path, text: &[u8]) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(beside)?;
    if let Ok(old) = fs::metadata(path) {
        file.set_permissions(old.permissions())?;
    }
    file.write_all(text)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("dunlin-config-{name}-{}", process::id()));
        fs::create_dir_all(&folder).expect("the folder can be made");
        folder
    }

    #[test]
    fn nodes_that_replace_their_file_at_the_same_time_all_do() {
        let folder = folder("turns");
        let path = folder.join("redis.conf");
        let (start, texts) =
            (Barrier::new(4), [1, 2, 3, 4].map(|number| format!("maxclients {number}\n").repeat(2000)));
        thread::scope(|scope| {
            for text in &texts {
                scope.spawn(|| {
                    for _ in 0..10 {
                        start.wait();
                        replace(&path, text.as_bytes()).expect("it can be replaced");
                    }
                });
            }
        });
        let last = String::from_utf8(read(&path).expect("it is there")).expect("it is text");
        assert!(texts.contains(&last), "the file is what one of them has written");
        assert_eq!(fs::read_dir(&folder).expect("it is there").count(), 1, "nothing is left beside it");
        fs::remove_dir_all(&folder).expect("it is ours");
    }

    #[test]
    fn a_file_is_replaced_whole_and_keeps_its_permissions() {
        let folder = folder("whole");
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
