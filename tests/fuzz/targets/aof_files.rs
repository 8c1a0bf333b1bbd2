//! Fuzzes files of an AOF: each is refused, and if that is at an offset, then at one within it, or loaded up to its
//! last whole unit. What is cut off changes no data, and a base of commands gives the same data again.

use std::cell::RefCell;
use std::io::Cursor;

use crate::support::world::World;
use dunlin::aof::scan::Tail;
use dunlin::engine::Engine;
use dunlin::engine::exec::aof_load::AofLoad;
use dunlin::engine::exec::{aof, persistence};
use dunlin::engine::state::host::AofSource;
use dunlin::value::View;

thread_local! {
    /// One world for all: making one takes longer than what is tried in it.
    static WORLD: RefCell<World> = RefCell::new(World::with(|settings| settings.databases = 4));
}

pub fn run(bytes: &[u8]) {
    WORLD.with_borrow_mut(|world| {
        if let Some((valid_bytes, tail)) = load(&mut world.engine, bytes) {
            assert!(valid_bytes <= bytes.len() as u64, "{valid_bytes} bytes are valid");
            assert_eq!(tail == Tail::Clean, valid_bytes == bytes.len() as u64, "{tail:?} behind {valid_bytes} bytes");
            world.engine.databases.iter().for_each(|database| database.check());
            let valid = usize::try_from(valid_bytes).expect("it is within the file");
            expect_same_from_commands(world);
            clear(world);
            assert_eq!(load(&mut world.engine, &bytes[..valid]), Some((valid_bytes, Tail::Clean)), "the valid bytes");
        }
        clear(world);
    });
}

/// Loads a file; `None` if it is refused.
fn load(engine: &mut Engine, bytes: &[u8]) -> Option<(u64, Tail)> {
    let mut load = AofLoad::begin(engine);
    let bytes_of_file = Box::new(Cursor::new(bytes.to_vec()));
    let source = AofSource { name: "fuzzed".to_owned(), is_base: true, bytes: bytes_of_file };
    let mut loaded = load.open(engine, source).map(|()| true);
    while let Ok(true) = loaded {
        loaded = load.step(engine);
    }
    if let Err(reason) = &loaded {
        let offset = reason.split("(at offset ").nth(1).and_then(|rest| rest.split([',', ')']).next());
        let is_within = |offset: &str| offset.parse::<usize>().is_ok_and(|offset| offset <= bytes.len());
        assert!(offset.is_none_or(is_within), "{reason}, in {} bytes", bytes.len());
    }
    let found = loaded.is_ok().then(|| load.tail());
    let counts = load.end(engine);
    engine.end_load(counts);
    engine.effects.take();
    found
}

/// Checks that a base of commands gives the data of an engine, streams apart, of which it does not have everything.
fn expect_same_from_commands(world: &mut World) {
    let has_streams = |engine: &Engine| {
        let mut databases = engine.databases.iter();
        databases.any(|database| database.handles().any(|handle| matches!(database.view(handle), View::Stream(_))))
    };
    if has_streams(&world.engine) {
        return;
    }
    let mut commands = Vec::new();
    let base = aof::first_base(&mut world.engine);
    base.write_commands(&mut commands, true, || Ok(())).expect("a Vec takes all");
    drop(base);
    persistence::reclaim(&mut world.engine);
    let before = world.ask("DEBUG DIGEST");
    clear(world);
    assert_eq!(load(&mut world.engine, &commands), Some((commands.len() as u64, Tail::Clean)), "a base is whole");
    assert_eq!(world.ask("DEBUG DIGEST"), before, "the data come back as others");
}

fn clear(world: &mut World) {
    world.ask("FLUSHALL");
    world.ask("FUNCTION FLUSH");
    world.engine.effects.take();
}
