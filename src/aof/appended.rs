//! The end of the stream that the log does not have yet: the bytes that the engine has handed over, and the files that
//! they go into.
//!
//! The engine hands over under its own lock. The log is locked while it writes to the disk, so the engine never locks
//! that: whoever locks the log takes over what is here first ([`Appended::hand_over`]).

use std::mem;
use std::sync::Arc;

use super::decisions::NextFile;
use super::log::Log;
use crate::storage::StorageFile;

/// The end of the stream that the log does not have yet.
#[derive(Debug, Default)]
pub struct Appended {
    bytes: Vec<u8>,
    /// In the order of the stream.
    switches: Vec<Switch>,
}

/// The stream goes on in another file.
#[derive(Debug)]
struct Switch {
    /// How many of the bytes go before it.
    position: usize,
    /// Where that is in the stream.
    offset: u64,
    file: Arc<dyn StorageFile>,
    next: NextFile,
}

impl Appended {
    /// The bytes, to be added to at their end.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Directs what is added from now on into `file`. `offset` is the end of the stream so far.
    pub fn switch(&mut self, file: Arc<dyn StorageFile>, next: NextFile, offset: u64) {
        self.switches.push(Switch { position: self.bytes.len(), offset, file, next });
    }

    /// Whether the stream goes on in another file that the log does not know yet.
    pub fn is_switching(&self) -> bool {
        !self.switches.is_empty()
    }

    /// Gives everything to the log, which begins with the first file. What is before that file is dropped: no file was
    /// open, so nobody needs it.
    pub fn hand_over(&mut self, log: &mut Option<Log>) {
        if self.switches.is_empty() {
            append(log, &mut self.bytes);
            return;
        }
        let mut bytes = mem::take(&mut self.bytes);
        let mut taken = 0;
        for Switch { position, offset, file, next } in mem::take(&mut self.switches) {
            append(log, &mut bytes.drain(..position - taken).collect());
            taken = position;
            match log {
                Some(log) => next.direct(file, log),
                None => *log = Some(Log::new(file, offset, next == NextFile::Following)),
            }
        }
        append(log, &mut bytes);
    }
}

/// Appends bytes to the log, if there is one, and empties them.
fn append(log: &mut Option<Log>, bytes: &mut Vec<u8>) {
    let Some(log) = log else { return bytes.clear() };
    log.append(|unwritten| {
        if unwritten.is_empty() {
            mem::swap(unwritten, bytes);
        } else {
            unwritten.append(bytes);
        }
    });
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::storage::Storage;
    use crate::storage::simulated::SimulatedDisk;

    fn write(disk: &SimulatedDisk, appended: &mut Appended, log: &mut Option<Log>) -> [String; 3] {
        appended.hand_over(log);
        log.as_mut().expect("a file is open").write().expect("the disk works");
        ["a", "b", "c"].map(|name| String::from_utf8(disk.read(name).unwrap_or_default()).expect("it is text"))
    }

    #[test]
    fn bytes_go_into_the_file_that_was_the_last_when_they_were_added() {
        let disk = SimulatedDisk::new();
        let file = |name: &str| disk.create(Path::new(name)).expect("the disk works");
        let (mut appended, mut log) = (Appended::default(), None);
        appended.bytes_mut().extend_from_slice(b"dropped");
        appended.switch(file("a"), NextFile::Anew, 7);
        appended.bytes_mut().extend_from_slice(b"one");
        appended.switch(file("b"), NextFile::Following, 10);
        appended.switch(file("c"), NextFile::Following, 10);
        assert!(appended.is_switching());
        appended.bytes_mut().extend_from_slice(b"three");
        assert_eq!(write(&disk, &mut appended, &mut log), ["one", "", "three"]);
        assert!(!appended.is_switching());
        assert_eq!(log.as_ref().map(|log| (log.appended(), log.written(), log.is_listed())), Some((15, 15, true)));

        appended.bytes_mut().extend_from_slice(b"more");
        assert_eq!(write(&disk, &mut appended, &mut log), ["one", "", "threemore"]);
    }

    #[test]
    fn bytes_without_a_file_are_dropped() {
        let (mut appended, mut log) = (Appended::default(), None);
        appended.bytes_mut().extend_from_slice(b"dropped");
        appended.hand_over(&mut log);
        assert!(log.is_none() && appended.bytes_mut().is_empty());
    }
}
