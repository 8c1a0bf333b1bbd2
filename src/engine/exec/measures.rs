//! Counts how commands change the keys of the declared measures, and reads how many elements these keys have.
//!
//! A request counts as a whole: a script or a transaction that takes an element from one key and puts it into another
//! has moved it. Its keys are looked at before and after each of its commands, so every command counts that makes a key
//! longer or shorter, and no command's reply needs to be understood.
//!
//! Keys are looked up by name where a pattern is one. For globs the database keeps an index of the keys that match
//! ([`Database::index_patterns`]): the first time, all keys are compared with the globs, a slice at a time, so that
//! other clients get their turn; from then on, a key when it is added. The globs of a database have one index, which
//! passes that run at the same time complete together.

use std::ops::Bound;

use crate::engine::Engine;
use crate::engine::exec::stages::Call;
use crate::engine::exec::timing;
use crate::engine::spec::{KeyFlags, says};
use crate::engine::state::measures::{
    Change, KeySize, LARGE_SET, Measure, MeasureKind, Measures, Role, ScoreUnit, Touched, is_glob,
};
use crate::keyspace::{Database, KeyHandle};
use crate::value::View;
use crate::value::number;
use crate::value::stream::Id;
use crate::value::zset::ScoreRange;

/// The most keys that a glob of a measure sums up.
const MAX_KEYS: usize = 10_000;
/// How many times a key is compared with a glob before other clients get their turn.
const COMPARED_AT_ONCE: usize = 512;
/// How many keys are read before other clients get their turn.
const READ_AT_ONCE: usize = 512;

/// The commands that take elements, and do not only remove them.
const TAKES: [&str; 18] = [
    "LPOP",
    "RPOP",
    "BLPOP",
    "BRPOP",
    "LMPOP",
    "BLMPOP",
    "LMOVE",
    "BLMOVE",
    "RPOPLPUSH",
    "BRPOPLPUSH",
    "XREADGROUP",
    "ZREM",
    "ZPOPMIN",
    "ZPOPMAX",
    "BZPOPMIN",
    "BZPOPMAX",
    "ZMPOP",
    "BZMPOP",
];
/// The commands that put a value in place of that of another key, whatever it was.
const REPLACES: [&str; 3] = ["COPY", "RENAME", "RESTORE"];
/// The commands that look up members of a set.
const LOOKS_UP: [&str; 2] = ["SISMEMBER", "SMISMEMBER"];

/// Records the size of the measured keys of a command that is about to run.
pub(super) fn begin(engine: &mut Engine, call: &Call<'_>) {
    let Some(measures) = &engine.observers.measures else { return };
    let touched = touched(engine, measures, call);
    let timer = measures.running.is_empty().then(|| timing::start_timer(engine));
    let Some(measures) = &mut engine.observers.measures else { return };
    measures.running.push(touched);
    measures.timer = timer.or(measures.timer);
}

/// Records how a command has changed its keys, unless its reply is an error, and counts the changes if it is the
/// outermost one.
pub(super) fn end(engine: &mut Engine, call: &Call<'_>, reply: &[u8]) {
    let Some(mut measures) = engine.observers.measures.take() else { return };
    let touched = measures.running.pop().unwrap_or_default();
    if !reply.starts_with(b"-") {
        // COPY says by 0 that it has done nothing; to a script, by a number of eight bytes.
        let is_done = !matches!(reply, b":0\r\n" | b":\0\0\0\0\0\0\0\0");
        touched.iter().for_each(|touched| note(engine, &mut measures, call, touched, is_done));
    }
    if measures.running.is_empty()
        && let Some(timer) = measures.timer.take()
    {
        let elapsed_us = if measures.changes.is_empty() { 0 } else { timing::elapsed_us(engine, timer) };
        measures.apply_changes(elapsed_us);
    }
    engine.observers.measures = Some(measures);
}

/// The measured keys of a command. Those of a script are not its own: its commands are looked at one by one.
fn touched(engine: &Engine, measures: &Measures, call: &Call<'_>) -> Vec<Touched> {
    let command = engine.table.entry(call.id).command;
    let Some(client) = engine.sessions.get(call.session).filter(|_| !command.is_of_scripts()) else {
        return Vec::new();
    };
    let mut all: Vec<Touched> = Vec::new();
    for (place, access) in command.keys_of(call.request) {
        let key = call.request.get(place).unwrap_or_default();
        for database in databases_of_key(engine, call, access, client.database) {
            for (measure, role) in measures.of_key(database, key) {
                let is_known = |known: &Touched| {
                    (known.measure, known.role) == (measure, role) && call.request.get(known.place) == Some(key)
                };
                if !all.iter().any(is_known) {
                    let is_replaced = access.has(KeyFlags::OW) && REPLACES.contains(&command.name);
                    let before = key_size(engine, database, key);
                    all.push(Touched { measure, role, database, place, is_replaced, before });
                }
            }
        }
    }
    all
}

/// The databases in which a command may change a key that it names: the selected one, but COPY the one behind its last
/// DB, and MOVE both.
fn databases_of_key(
    engine: &Engine,
    call: &Call<'_>,
    access: KeyFlags,
    selected: usize,
) -> impl Iterator<Item = usize> + use<> {
    let (request, count) = (call.request, engine.databases.count());
    let number_at = |place: usize| usize::try_from(number::parse_i64(request.get(place)?)?).ok();
    let says_db = |place: &usize| request.get(*place).is_some_and(|word| says(word, "DB"));
    let all = match engine.table.entry(call.id).command.name {
        "MOVE" => [Some(selected), number_at(2)],
        "COPY" if access.has(KeyFlags::OW) => match (3..request.len()).rev().find(says_db) {
            Some(place) => [number_at(place + 1), None],
            None => [Some(selected), None],
        },
        _ => [Some(selected), None],
    };
    all.into_iter().flatten().filter(move |database| *database < count)
}

/// Notes what a command has done to one of its keys. Of one whose value it has replaced, all elements are new, but the
/// members of a set only as far as there are more: nobody knows which of them were there.
fn note(engine: &Engine, measures: &mut Measures, call: &Call<'_>, touched: &Touched, is_done: bool) {
    let Some(kind) = measures.kind(touched.measure) else { return };
    let key = call.request.get(touched.place).unwrap_or_default();
    let (before, after) = (touched.before, key_size(engine, touched.database, key));
    let added = after.length.saturating_sub(before.length);
    let removed = before.length.saturating_sub(after.length);
    let (put, left) = if touched.is_replaced && is_done { (after.length, before.length) } else { (added, removed) };
    let name = engine.table.entry(call.id).command.name;
    let mut change = Change::default();
    match (touched.role, kind) {
        (Role::Main, MeasureKind::Set) => {
            change.first_seen = added;
            if name == "SADD" {
                let given = call.request.len().saturating_sub(call.name_words + 1);
                change.duplicates = (given as u64).saturating_sub(added);
            }
            change.looked_up = u64::from(LOOKS_UP.contains(&name));
            change.grown_large = u64::from(before.length <= LARGE_SET && LARGE_SET < after.length);
        }
        (Role::Main, MeasureKind::Queue | MeasureKind::Zset) => {
            change.put = put;
            if TAKES.contains(&name) {
                change.taken = removed + after.pending.saturating_sub(before.pending);
            }
        }
        (Role::Processing, _) => change.from_processing = left,
        (Role::Failed, _) => change.failed = put,
    }
    measures.changes.entry(touched.measure).or_default().add(change);
}

/// The size of a key; zero if it has expired or does not exist.
fn key_size(engine: &Engine, database: usize, key: &[u8]) -> KeySize {
    let data = engine.databases.get(database);
    data.find(key)
        .filter(|handle| is_live(engine, data, *handle))
        .map_or(KeySize::default(), |handle| of_view(data.view(handle)))
}

fn is_live(engine: &Engine, data: &Database, handle: KeyHandle) -> bool {
    data.deadline(handle).is_none_or(|deadline_ms| engine.timing.due_ms() < deadline_ms)
}

fn of_view(view: View<'_>) -> KeySize {
    let length = match view {
        View::Text(_) => 0,
        View::Zset(zset) => zset.len(),
        View::List(list) => list.len(),
        View::Set(set) => set.len(),
        View::Hash(hash) => hash.len(),
        View::VectorSet(set) => set.len(),
        View::Stream(stream) => {
            let pending: usize = stream.groups().iter().map(|group| group.pending_len()).sum();
            return KeySize { length: stream.log().len() as u64, pending: pending as u64 };
        }
    };
    KeySize { length: length as u64, pending: 0 }
}

/// The present state of the keys of a measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Elements of the keys that are measured.
    pub length: u64,
    /// Members whose time has come.
    pub due: u64,
    /// Elements that are processed.
    pub processing: u64,
    /// Members that are processed, and whose time for it has passed.
    pub processing_due: u64,
    /// The keys that have more elements than [`LARGE_SET`].
    pub large: u64,
    /// When the entry came that has waited longest for a consumer, in Unix milliseconds; `None` if none waits, or no
    /// key is a stream.
    pub waiting_since_ms: Option<u64>,
}

/// A pass over the keys of all measures, which is made in steps.
#[derive(Debug, Default)]
pub struct Readings {
    all: Vec<(Measure, Reading)>,
    /// The globs whose keys are still to be read.
    globs: Vec<Glob>,
}

/// A glob of a measure.
#[derive(Debug)]
struct Glob {
    /// The place of the measure.
    place: usize,
    role: Role,
    database: usize,
    pattern: Box<[u8]>,
    /// Where the next keys are in the index of the database, and how many are still to be read.
    cursor: u64,
    left: usize,
}

impl Readings {
    /// Begins a pass: reads the keys that have names.
    pub fn begin(engine: &mut Engine) -> Readings {
        (0..engine.databases.count()).for_each(|database| _ = index_globs(engine, database));
        let mut readings = Readings::default();
        let measures = engine.observers.measures.iter().flat_map(|measures| measures.iter());
        for (place, (measure, _)) in measures.enumerate() {
            let (database, mut reading) = (measure.database, Reading::default());
            let data = engine.databases.get(database);
            for (role, pattern) in measure.patterns() {
                if is_glob(pattern) {
                    let pattern = pattern.into();
                    readings.globs.push(Glob { place, role, database, pattern, cursor: 0, left: MAX_KEYS });
                } else if let Some(handle) = data.find(pattern).filter(|handle| is_live(engine, data, *handle)) {
                    reading.add(engine, measure.unit, role, data.view(handle));
                }
            }
            readings.all.push((measure.clone(), reading));
        }
        readings
    }

    /// Reads some more keys of the globs, or looks for them; false when all were read.
    pub fn step(&mut self, engine: &mut Engine) -> bool {
        let Some(glob) = self.globs.last_mut() else { return false };
        // The database may be another one since the last step, and the measures may be others.
        let globs = index_globs(engine, glob.database);
        if engine.databases.get_mut(glob.database).complete_patterns((COMPARED_AT_ONCE / globs.max(1)).max(1)) {
            return true;
        }
        let Some((measure, reading)) = self.all.get_mut(glob.place) else { return false };
        let (data, mut count) = (engine.databases.get(glob.database), 0);
        for (next, handle) in data.matching(&glob.pattern, glob.cursor).take(READ_AT_ONCE.min(glob.left)) {
            (glob.cursor, count) = (next, count + 1);
            if is_live(engine, data, handle) {
                reading.add(engine, measure.unit, glob.role, data.view(handle));
            }
        }
        glob.left -= count;
        if count < READ_AT_ONCE {
            self.globs.pop();
        }
        !self.globs.is_empty()
    }

    /// The measures, with what was read.
    pub fn iter(&self) -> impl Iterator<Item = (&Measure, &Reading)> {
        self.all.iter().map(|(measure, reading)| (measure, reading))
    }
}

/// Makes a database keep an index of the keys that match globs of measures, or none if there are no such measures;
/// returns the number of globs.
fn index_globs(engine: &mut Engine, database: usize) -> usize {
    let globs = engine.observers.measures.as_ref().map(|measures| measures.globs(database)).unwrap_or_default();
    engine.databases.get_mut(database).index_patterns(&globs);
    globs.len()
}

impl Reading {
    fn add(&mut self, engine: &Engine, unit: Option<ScoreUnit>, role: Role, view: View<'_>) {
        let (KeySize { length, pending }, due) = (of_view(view), due(engine, unit, view));
        match role {
            Role::Main => {
                self.length += length;
                self.due += due;
                self.processing += pending;
                self.large += u64::from(length > LARGE_SET);
                self.waiting_since_ms = self.waiting_since_ms.into_iter().chain(waiting_since_ms(view)).min();
            }
            Role::Processing => {
                self.processing += length;
                self.processing_due += due;
            }
            Role::Failed => {}
        }
    }
}

/// When the first entry came that a group of a stream has not read, or the first one of all if there is no group. Only
/// ids tell when something came, and elements of lists have none.
fn waiting_since_ms(view: View<'_>) -> Option<u64> {
    let View::Stream(stream) = view else { return None };
    let read = stream.groups().iter().map(|group| group.last).min();
    let from = read.map_or(Some(Id::MIN), Id::next)?;
    stream.log().range(from, Id::MAX).next().map(|entry| entry.id().ms)
}

/// The members whose score is not later than now.
fn due(engine: &Engine, unit: Option<ScoreUnit>, view: View<'_>) -> u64 {
    let (Some(unit), View::Zset(zset)) = (unit, view) else { return 0 };
    let now_ms = engine.now().unix_ms() as f64;
    let now = if unit == ScoreUnit::Seconds { now_ms / 1000.0 } else { now_ms };
    zset.by_score(&ScoreRange { min: Bound::Unbounded, max: Bound::Included(now) }).len() as u64
}
