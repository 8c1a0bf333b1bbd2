//! Fuzzes RDB files: each is refused, with an offset within it, or loaded, and is then the same after it was saved and
//! loaded again.

use std::cell::RefCell;

use crate::support::world::World;
use dunlin::engine::exec::loading::Load;

thread_local! {
    /// One world for all: making one takes longer than what is tried in it.
    static WORLD: RefCell<World> = RefCell::new(World::with(|settings| settings.databases = 4));
}

pub fn run(bytes: &[u8]) {
    WORLD.with_borrow_mut(|world| {
        // A file rarely has the right checksum by chance, so it is not looked at.
        let loaded = Load::begin(bytes, false).and_then(|load| load.finish(&mut world.engine));
        match loaded {
            Ok(counts) => {
                assert_eq!(world.engine.databases.len() as u64, counts.keys);
                world.engine.databases.iter().for_each(|database| database.check());
                world.engine.end_load(counts);
                let before = world.ask("DEBUG DIGEST");
                assert_eq!(world.ask("DEBUG RELOAD"), "+OK\r\n");
                assert_eq!(world.ask("DEBUG DIGEST"), before, "the data come back as others");
            }
            Err(fault) => {
                assert!(fault.offset <= bytes.len() as u64, "{} is not in the file", fault.explained());
            }
        }
        world.ask("FLUSHALL");
        world.ask("FUNCTION FLUSH");
        world.engine.effects.take();
    });
}
