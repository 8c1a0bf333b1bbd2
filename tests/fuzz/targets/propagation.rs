//! Fuzzes the log of changes: replaying what an engine has written gives the data that it has.
//!
//! A second engine replays the log piece by piece, with a clock at which nothing has expired yet, as a log says
//! itself what was deleted. Compared are the values of all keys with their deadlines and those of their fields,
//! streams with their groups and pending entries, and the sources of functions. Not compared is what no log of Redis
//! has: consumers without pending entries, and how often and when a pending entry was read again.

use super::play::Play;
use crate::support::choices::Choices;
use crate::support::reply::{Reply, decode};
use crate::support::world::World;
use ::dunlin::commands::{FAMILIES, dunlin};
use ::dunlin::engine::exec::{aof, persistence, snapshots};
use ::dunlin::engine::state::host::NoHost;
use ::dunlin::engine::state::propagation::Taken;
use ::dunlin::engine::{Engine, Now, Settings, Table};
use ::dunlin::resp::{Limits, Parser};
use ::dunlin::value::Stream;
use ::dunlin::value::View;
use ::dunlin::value::stream::Id;
use ::dunlin::value::vector_set;

/// A moment before all deadlines.
const BEFORE_ALL: Now = Now { unix_us: 0 };

/// How often the log is replayed, in requests; and how often the data are compared.
const REPLAY_EVERY: u64 = 7;
const COMPARE_EVERY: u64 = 70;

/// Requests that change data, and often find a value of their type; `#` is a number.
const LINES: &[&str] = &[
    "SET k1 # PX #",
    "SET k2 v# EX # GET",
    "SETEX k3 # v",
    "GETEX k1 PX #",
    "GETDEL k2",
    "INCRBYFLOAT n1 1.#",
    "PEXPIRE k1 #",
    "PEXPIRE l1 #",
    "PEXPIRE s1 #",
    "PEXPIRE x1 #",
    "PEXPIREAT z1 #",
    "MSETNX k1 # k4 #",
    "RENAME k1 k5",
    "COPY h1 h2 REPLACE",
    "MOVE k1 1",
    "SELECT 1",
    "SELECT 0",
    "SWAPDB 0 1",
    "RPUSH l1 a# b# c",
    "LPUSH l2 a#",
    "LMPOP 2 l1 l2 LEFT COUNT 3",
    "LMOVE l1 l2 LEFT RIGHT",
    "BLPOP l3 l1 0",
    "BLMOVE l3 l1 LEFT RIGHT 0",
    "RPUSH l3 a#",
    "LTRIM l1 -20 -1",
    "SADD s1 # # # #",
    "SPOP s1 2",
    "SPOP s1",
    "SPOP s1 100",
    "SUNIONSTORE s2 s1 s2",
    "SMOVE s1 s2 #",
    "ZADD z1 # a# # b# # c",
    "ZMPOP 1 z1 MIN COUNT 2",
    "BZPOPMIN z2 z1 0",
    "ZADD z2 # a",
    "GEOADD g1 13.# 38.# p#",
    "ZRANGESTORE z2 z1 0 3",
    "HSET h1 f# v# g v",
    "HPEXPIRE h1 # FIELDS 2 g f#",
    "HPEXPIRE h1 # NX FIELDS 1 g",
    "HSETEX h1 PX # FIELDS 2 g # f# v",
    "HSETEX h1 FNX KEEPTTL FIELDS 1 f# v",
    "HGETEX h1 PX # FIELDS 2 g f#",
    "HGETEX h1 PERSIST FIELDS 1 g",
    "HGETDEL h1 FIELDS 2 g f#",
    "HINCRBYFLOAT h1 n 1.#",
    "PFADD p1 # # #",
    "PFCOUNT p1",
    "PFMERGE p2 p1 p2",
    "SETBIT b1 # 1",
    "XADD x1 * f # g #",
    "XADD x1 MAXLEN ~ # * f #",
    "XADD x1 MINID ~ # LIMIT # * f #",
    "XADD x1 #-* f v",
    "XTRIM x1 MAXLEN ~ 3",
    "XTRIM x1 MAXLEN #",
    "XGROUP CREATE x1 g1 0 MKSTREAM",
    "XGROUP CREATE x1 g2 $ MKSTREAM",
    "XREADGROUP GROUP g1 c# COUNT 2 STREAMS x1 >",
    "XREADGROUP GROUP g1 c COUNT 3 BLOCK 0 NOACK STREAMS x1 >",
    "XREADGROUP GROUP g2 c BLOCK 0 STREAMS x1 >",
    "XREADGROUP GROUP g1 c STREAMS x1 0",
    "XAUTOCLAIM x1 g1 c# 0 0 COUNT 3",
    "XGROUP DELCONSUMER x1 g1 c",
    "CONFIG SET stream-node-max-entries 3",
    "MULTI",
    "EXEC",
    "FUNCTION FLUSH",
    "CONFIG SET maxmemory 1 maxmemory-policy allkeys-random",
    "CONFIG SET maxmemory 0",
];

/// The state after the replay.
#[derive(Debug, Default)]
pub struct Replayed {
    /// The number of commands.
    pub commands: usize,
    /// The number of times that the data became other data.
    pub bases: usize,
}

/// A play whose log is replayed.
struct Replaying<'p> {
    play: &'p mut Play,
    reader: Reader,
    replayed: Replayed,
}

/// Plays until the bytes are used up, and replays the log.
pub fn run(bytes: &[u8]) {
    let (mut choices, mut play) = (Choices::Bytes(bytes), Play::new(1));
    let mut replaying = Replaying::begin(&mut play);
    while !choices.is_empty() {
        replaying.step(&mut choices, "");
    }
    replaying.replay("");
    replaying.compare("");
}

/// Plays this number of requests, and replays their log.
pub fn play(play: &mut Play, choices: &mut Choices<'_>, rounds: u64) -> Replayed {
    let mut replaying = Replaying::begin(play);
    for round in 0..rounds {
        let context = format!("round {round}");
        replaying.step(choices, &context);
        if round.is_multiple_of(REPLAY_EVERY) {
            replaying.replay(&context);
        }
        if round.is_multiple_of(COMPARE_EVERY * REPLAY_EVERY) {
            replaying.compare(&context);
        }
    }
    replaying.replayed
}

impl Replaying<'_> {
    fn begin(play: &mut Play) -> Replaying<'_> {
        play.lines = LINES;
        play.world.engine.effects.propagation.turn_on();
        Replaying { play, reader: Reader::new(), replayed: Replayed::default() }
    }

    fn step(&mut self, choices: &mut Choices<'_>, context: &str) {
        self.play.step(choices, context);
        replace_data(self.play, choices);
    }

    /// Replays what the log has, and goes on from the data where the log needs them.
    fn replay(&mut self, context: &str) {
        let Taken { bytes, needs_base } = self.play.world.engine.effects.propagation.take();
        self.replayed.commands += self.reader.replay(&bytes, context);
        if needs_base {
            self.replayed.bases += 1;
            self.reader = Reader::from_base(&self.play.world.engine);
        }
    }

    /// Compares the data when the whole log is replayed.
    fn compare(&mut self, context: &str) {
        expect_equal(&self.play.world.engine, &self.reader.world.engine, context);
        expect_same_from_commands(&mut self.play.world.engine, context);
    }
}

/// Checks that a base of commands gives the data of an engine.
fn expect_same_from_commands(engine: &mut Engine, context: &str) {
    let mut commands = Vec::new();
    let base = aof::first_base(engine);
    let length = base.write_commands(&mut commands, false, || Ok(())).expect("a Vec takes all");
    drop(base);
    persistence::reclaim(engine);
    assert_eq!(length, commands.len() as u64);
    let mut reader = Reader::new();
    reader.replay(&commands, context);
    let [ours, replayed] = [&*engine, &reader.world.engine].map(|engine| contents(engine, Pending::Stored));
    assert_eq!(ours, replayed, "{context}: the data on the left, what a base of commands says on the right");
}

/// The data become other data now and then, which no command of a log says.
fn replace_data(play: &mut Play, choices: &mut Choices<'_>) {
    let engine = &mut play.world.engine;
    match choices.below(1500) {
        0 => snapshots::take_snapshot(engine, b"log"),
        1 if engine.databases.snapshots().len() > 0 => play.roll_back("log"),
        2 => dunlin::load(engine, b"SET k1 loaded").expect("the text is a command"),
        _ => return,
    }
    // A client that is blocked on a key that exists again takes its elements.
    play.world.engine.unblock_ready();
}

/// An engine that replays a log.
struct Reader {
    world: World,
    parser: Parser,
}

impl Reader {
    fn new() -> Reader {
        let host = Box::new(NoHost::default());
        let engine = Engine::new(Table::of(FAMILIES), Settings::default(), 1, BEFORE_ALL, host);
        Reader::of(engine)
    }

    fn of(mut engine: Engine) -> Reader {
        engine.effects.propagation.begin_loading();
        engine.settings = Settings::default();
        Reader { world: World::of_engine(engine), parser: Parser::new() }
    }

    /// A reader of the log that begins with the data of an engine.
    fn from_base(origin: &Engine) -> Reader {
        let mut reader = Reader::new();
        reader.world.engine.begin_as(&origin.template());
        Reader::of(reader.world.engine)
    }

    /// Replays whole units of a log; returns the number of commands.
    fn replay(&mut self, mut log: &[u8], context: &str) -> usize {
        let mut commands = 0;
        let limits = Limits { max_bulk_bytes: 512 << 20, authenticated: true };
        while !log.is_empty() {
            let request = self.parser.next(log, &limits).expect("a log is well formed").expect("a log has whole units");
            let (shown, mut reply) = (
                format!(
                    "{:?}",
                    request.iter().map(<[u8]>::escape_ascii).map(|word| word.to_string()).collect::<Vec<_>>()
                ),
                Vec::new(),
            );
            self.world.engine.run(BEFORE_ALL, self.world.client, request, &mut reply);
            self.world.engine.effects.take();
            assert!(!has_error(&reply), "{context}: {shown} is answered {}", reply.escape_ascii());
            log = &log[self.parser.consumed()..];
            commands += 1;
        }
        let session = self.world.engine.sessions.get(self.world.client).expect("nothing ends it");
        assert!(session.transaction.is_none(), "{context}: the log ends within a transaction");
        commands
    }
}

/// Whether a reply is an error, or that of a transaction with one.
fn has_error(reply: &[u8]) -> bool {
    match decode(reply) {
        Ok((Reply::Error(_), _)) => true,
        Ok((Reply::Array(replies), _)) => replies.iter().any(|reply| matches!(reply, Reply::Error(_))),
        Ok(_) => false,
        Err(_) => true,
    }
}

fn expect_equal(ours: &Engine, replayed: &Engine, context: &str) {
    let [ours, replayed] = [ours, replayed].map(|engine| contents(engine, Pending::All));
    for (one, other) in ours.iter().zip(&replayed) {
        assert_eq!(one, other, "{context}: the data on the left, what the log says on the right");
    }
    assert_eq!(ours.len(), replayed.len(), "{context}: as many keys and functions");
}

/// Which pending entries are compared.
#[derive(Clone, Copy, PartialEq)]
enum Pending {
    All,
    /// Those whose entry is in the stream: a base of commands has no others.
    Stored,
}

/// Everything that a log repeats, in a fixed order.
fn contents(engine: &Engine, pending: Pending) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, database) in engine.databases.iter().enumerate() {
        lines.extend(database.handles().map(|handle| {
            let (key, value) = (database.key(handle).escape_ascii(), value(database.view(handle), pending));
            format!("{number} {key} {:?} {value}", database.deadline(handle))
        }));
    }
    let sources = engine.scripts.functions.registry.sources();
    lines.extend(sources.into_iter().map(|source| source.escape_ascii().to_string()));
    lines.sort();
    lines
}

fn value(view: View<'_>, pending: Pending) -> String {
    let shown = |bytes: &[u8]| bytes.escape_ascii().to_string();
    match view {
        View::Text(text) => format!("string {}", shown(&text.to_cow())),
        View::List(list) => format!("list {:?}", list.iter().map(|item| shown(&item.to_cow())).collect::<Vec<_>>()),
        View::Set(set) => format!("set {:?}", sorted(set.iter().map(|item| shown(&item.to_cow())))),
        View::Zset(zset) => {
            let entry = |score: f64, member: &[u8]| format!("{score:?} {}", shown(member));
            format!("zset {:?}", zset.iter().map(|one| entry(one.score, one.member)).collect::<Vec<_>>())
        }
        View::Hash(hash) => {
            let field = |name: &[u8], value: &[u8]| {
                format!("{} {} {:?}", shown(name), shown(value), hash.deadline(name).flatten())
            };
            format!("hash {:?}", sorted(hash.iter().map(|entry| field(&entry.field.to_cow(), &entry.value.to_cow()))))
        }
        View::Stream(stream) => format!("stream {}", of_stream(stream, pending)),
        View::VectorSet(set) => {
            let element = |element: vector_set::Element<'_>| {
                let attributes = element.attributes.map(shown);
                format!("{} {:?} {attributes:?}", shown(element.name), element.vector.bytes)
            };
            format!("vectorset {:?}", sorted(set.iter().map(element)))
        }
    }
}

fn sorted(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines
}

fn of_stream(stream: &Stream, compared: Pending) -> String {
    let log = stream.log();
    let entry = |entry: ::dunlin::value::stream::Entry<'_>| {
        let pairs = entry.pairs().map(|(field, value)| format!("{:?} {:?}", field.to_cow(), value.to_cow()));
        format!("{} {:?}", entry.id(), pairs.collect::<Vec<_>>())
    };
    let entries: Vec<String> = log.range(Id::MIN, Id::MAX).map(entry).collect();
    let groups = stream.groups().iter().map(|group| {
        let pending = group.pending_from(Id::MIN);
        let pending = pending.filter(|one| compared == Pending::All || log.get(one.id()).is_some()).map(|pending| {
            let consumer = group.consumer(pending.consumer()).name().escape_ascii().to_string();
            format!("{} {consumer}", pending.id())
        });
        format!("{} {} {:?} {:?}", group.name().escape_ascii(), group.last, group.read, pending.collect::<Vec<_>>())
    });
    format!("{} {} {} {entries:?} {:?}", log.last(), log.added(), log.max_deleted(), sorted(groups))
}
