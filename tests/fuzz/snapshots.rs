//! Fuzzes snapshots: whatever runs after one was taken, rolling back to it restores everything that it promises.
//!
//! All that can be seen of the data is compared: every key's payload of DUMP, its encoding, deadline and access time,
//! the settings, users, sources of functions and names of scripts, and the next random number. The restored state is
//! also dumped as text, and a server that loads the text has the same state.

use crate::choices::Choices;
use crate::play::Play;
use crate::world::World;
use ::dunlin::commands::dunlin;
use ::dunlin::engine::Engine;
use ::dunlin::engine::exec::snapshots;
use ::dunlin::rdb;
use std::collections::BTreeSet;

/// All that a snapshot promises to bring back.
#[derive(Debug, PartialEq)]
pub struct Picture {
    /// In the order of their databases and names.
    keys: Vec<(usize, Vec<u8>, String)>,
    rules: Vec<String>,
    now_us: i64,
    chance: u64,
}

pub fn picture(engine: &Engine) -> Picture {
    let mut keys = Vec::new();
    for (number, database) in engine.databases.iter().enumerate() {
        keys.extend(database.handles().map(|handle| {
            let (view, marks) = (database.view(handle), (database.deadline(handle), database.access(handle)));
            let shown = format!("{} {marks:?} {}", view.encoding(), rdb::dump(view, false).escape_ascii());
            (number, database.key(handle).to_vec(), shown)
        }));
    }
    keys.sort();
    let scripts = &engine.scripts;
    let sources = scripts.functions.registry.sources().into_iter().map(|source| source.escape_ascii().to_string());
    let mut rules =
        vec![format!("{:?}", engine.settings), format!("{:?}", scripts.cache.digests().collect::<BTreeSet<_>>())];
    rules.push(engine.acl.users.text().escape_ascii().to_string());
    rules.extend(sources);
    Picture { keys, rules, now_us: engine.now().unix_us, chance: engine.generator.clone().u64(..) }
}

/// Continues a play while snapshots are taken, rolled back to and dropped; returns the number of rollbacks.
pub fn run(play: &mut Play, choices: &mut Choices<'_>, rounds: u64) -> usize {
    let (mut taken, mut rollbacks): (Vec<(String, Picture)>, usize) = (Vec::new(), 0);
    for round in 0..rounds {
        play.step(choices, &format!("round {round}"));
        match choices.below(60) {
            0 => {
                let name = format!("snapshot-{}", choices.below(4));
                taken.retain(|(known, _)| *known != name);
                snapshots::take_snapshot(&mut play.world.engine, name.as_bytes());
                taken.push((name, picture(&play.world.engine)));
            }
            1 if !taken.is_empty() => {
                taken.truncate(choices.below(taken.len()) + 1);
                let (name, before) = taken.last().expect("a snapshot is left");
                play.roll_back(name);
                let after = picture(&play.world.engine);
                assert_eq!(differences(before, &after), Vec::<String>::new(), "round {round}, {name}");
                assert_eq!(*before, after, "round {round}, {name}");
                play.check();
                holds_as_text(&mut play.world, &format!("round {round}"));
                // A client that is blocked on a restored key takes its elements.
                play.world.engine.unblock_ready();
                rollbacks += 1;
            }
            2 if choices.below(4) == 0 && !taken.is_empty() => {
                let (name, _) = taken.remove(choices.below(taken.len()));
                play.world.engine.databases.drop_snapshot(name.as_bytes()).expect("it was taken");
            }
            _ => {}
        }
        let names: Vec<Vec<u8>> = play.world.engine.databases.snapshots().map(<[u8]>::to_vec).collect();
        assert!(taken.iter().map(|(name, _)| name.as_bytes()).eq(names.iter().map(Vec::as_slice)));
    }
    rollbacks
}

/// Checks that a server that loads the text of a state has the same text and the same digest.
fn holds_as_text(world: &mut World, context: &str) {
    let text = dunlin::dump(&world.engine);
    let mut other = World::fresh();
    other.pass_ms((world.now().unix_us - other.now().unix_us) / 1000);
    other.engine.at(other.now());
    let loaded = dunlin::load(&mut other.engine, text.as_bytes());
    assert_eq!(loaded.map(|()| dunlin::dump(&other.engine)), Ok(text), "{context}");
    assert_eq!(dunlin::diff(&world.engine, dunlin::dump(&other.engine).as_bytes()), Ok(String::new()), "{context}");
    let is_overdue = world.engine.databases.next_deadline().is_some_and(|due_ms| due_ms <= world.now().unix_ms());
    let digest = world.ask("DEBUG DIGEST");
    if !is_overdue && digest.starts_with('+') {
        assert_eq!(other.ask("DEBUG DIGEST"), digest, "{context}");
    }
}

fn differences(before: &Picture, after: &Picture) -> Vec<String> {
    let missing = before.keys.iter().filter(|key| !after.keys.contains(key)).map(|key| format!("- {key:?}"));
    let added = after.keys.iter().filter(|key| !before.keys.contains(key)).map(|key| format!("+ {key:?}"));
    missing.chain(added).collect()
}
