//! Fuzzes manifests: each is refused, or read, and is then the same after it was written and read again.

use dunlin::aof::manifest::{FaultReason, Manifest};

pub fn run(bytes: &[u8]) {
    let Ok(manifest) = Manifest::parse(bytes) else { return };
    let text = manifest.text();
    match Manifest::parse(text.as_bytes()) {
        Ok(again) => assert_eq!(again.text(), text),
        // A name that is quoted may be four times as long, and no file is nothing to write.
        Err(fault) => {
            assert!(matches!(fault.reason, FaultReason::LongLine | FaultReason::Empty), "{fault:?}");
            assert_eq!(fault.reason == FaultReason::Empty, text.is_empty());
        }
    }
}
