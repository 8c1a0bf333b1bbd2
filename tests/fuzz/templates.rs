//! Fuzzes templates: a server that begins as a template behaves as the server that it was taken from, and the template
//! does not change.
//!
//! The server and one that began as its template share all data that neither has changed. Both get the same requests,
//! many of which choose at random: a different order of keys, choice or deadline shows in a reply. Then a third server
//! begins as the template, and has the data of the moment when that was taken.

use ::dunlin::commands::FAMILIES;
use ::dunlin::engine::state::host::NoHost;
use ::dunlin::engine::{Engine, Settings, Table, Template};

use crate::choices::Choices;
use crate::snapshots::picture;
use crate::world::{START, World};

/// Requests whose replies do not depend on the client's history. Each `#` is replaced by a number.
const LINES: &[&str] = &[
    "SET key:# #",
    "SET key:# a-text-of-some-thirty-characters PX #",
    "SETRANGE key:# # x",
    "APPEND key:# more",
    "GET key:#",
    "DEL key:# key:#",
    "RENAME key:# key:#",
    "COPY key:# copy:# REPLACE",
    "EXPIRE key:# #",
    "PERSIST key:#",
    "TTL key:#",
    "OBJECT ENCODING key:#",
    "SADD set:# # # # # #",
    "SPOP set:# 3",
    "SRANDMEMBER set:# -5",
    "HSET hash:# f# # f# # f# #",
    "HPEXPIRE hash:# # FIELDS 1 f#",
    "HRANDFIELD hash:# 5 WITHVALUES",
    "ZADD zset:# # m# # m#",
    "ZPOPMIN zset:#",
    "RPUSH list:# # # #",
    "LMOVE list:# list:# LEFT RIGHT",
    "XADD stream:# * f #",
    "XTRIM stream:# MAXLEN 2",
    "RANDOMKEY",
    "SCAN 0 COUNT 20",
    "DBSIZE",
    "MOVE key:# 1",
    "EVAL return{redis.call('RANDOMKEY'),math.random(1000)} 0",
];

/// The bound of the numbers.
const NUMBERS: usize = 4000;

/// Fills a server, and compares it with what begins as it is; the template of that is the next to be compared with.
pub fn run(seed: u64, rounds: u64) {
    let mut choices = Choices::Seed(seed | 1);
    let mut world = World::seeded(seed, |_| ());
    for _ in 0..rounds {
        let line = line(&mut choices);
        world.ask(&line);
        world.expire();
    }
    for generation in 0..3 {
        let (template, before) = (world.engine.template(), picture(&world.engine));
        let mut copy = started_from(&template);
        assert_eq!(picture(&copy.engine), before, "generation {generation}");
        for round in 0..rounds {
            let (line, pause_ms) = (line(&mut choices), choices.below(3) as i64);
            let replies = [&mut world, &mut copy].map(|world| {
                let reply = world.ask(&line);
                world.pass_ms(pause_ms);
                world.expire();
                reply
            });
            assert_eq!(replies[0], replies[1], "generation {generation}, round {round}: {line}");
        }
        assert_eq!(picture(&copy.engine), picture(&world.engine), "generation {generation}");
        assert_eq!(picture(&started_from(&template).engine), before, "generation {generation}");
        copy.engine.databases.iter().for_each(|database| database.check());
        world = copy;
    }
}

fn line(choices: &mut Choices<'_>) -> String {
    let words = LINES[choices.below(LINES.len())].split(' ');
    let words = words.map(|word| word.replace('#', &choices.below(NUMBERS).to_string()));
    words.collect::<Vec<_>>().join(" ")
}

/// A server that begins as the template.
fn started_from(template: &Template) -> World {
    let host = Box::new(NoHost::default());
    let (now, _) = template.clock.expect("a template of an engine has its clock");
    let mut engine = Engine::new(Table::of(FAMILIES), Settings::default(), 0, now, host);
    engine.begin_as(template);
    let mut world = World::of_engine(engine);
    world.pass_ms((now.unix_us - START.unix_us) / 1000);
    world.engine.at(world.now());
    world
}
