//! Damaged RDB files: what one claims in its lengths takes no memory.

use dunlin::engine::exec::loading::Load;
use dunlin::{Disk, Server};
use fastrand::Rng;

use crate::samples::sample;
use crate::support::heap;
use crate::world::World;

/// What the loader itself needs, and the smallest database.
const BASE_BYTES: usize = 256 << 10;

/// A file with keys of all types, whose texts are not compressed: a compressed one rightly takes more memory than file.
fn file() -> Vec<u8> {
    let disk = Disk::new();
    let server = Server::builder().disk(&disk).set("rdbcompression", "no").start().expect("it starts");
    let (mut client, mut rng) = (server.client().expect("it connects"), Rng::with_seed(1));
    for number in 0..60 {
        for words in sample(&mut rng) {
            client.call(words).expect("it is answered");
        }
        // A sample may also remove its key again.
        let _ = client.call(["RENAME", "key", &format!("key:{number}")]);
    }
    client.call(["SAVE"]).expect("it is saved");
    disk.read("dump.rdb").expect("it is there")
}

/// The bytes that are allocated at most while a file is loaded.
fn allocated(file: &[u8]) -> usize {
    let mut world = World::fresh();
    let (loaded, bytes) = heap::peak_of(|| Load::begin(file, false).and_then(|load| load.finish(&mut world.engine)));
    // Damage that is within a text is not seen without the checksum.
    drop(loaded);
    bytes
}

#[test]
fn a_damaged_file_takes_no_more_memory_than_four_times_its_length() {
    let whole = file();
    let most = BASE_BYTES + 4 * whole.len();
    assert!(whole.len() > BASE_BYTES, "a file of {} bytes is no test", whole.len());
    let mut rng = Rng::with_seed(2);
    for number in 0..500 {
        let place = if number < 150 { number } else { rng.usize(..whole.len()) };
        let mut damaged = whole.clone();
        let change = *rng.choice(&[0xff, 0x80, 0x81, 0x40, 0xfc, 0xc2, 0xc3]).unwrap_or(&0xff);
        damaged[place] = change;
        if rng.bool() {
            damaged.truncate(rng.usize(place..whole.len()));
        }
        let bytes = allocated(&damaged);
        assert!(bytes <= most, "byte {place} is {change:#x}: {bytes} bytes for {} of file", damaged.len());
    }
}
