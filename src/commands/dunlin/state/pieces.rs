//! The data as pieces: for each library and each key, the commands that create it, one per line.
//!
//! Lines have a fixed order: libraries by name, keys by database and name, fields and members by name, members of
//! sorted sets by rank. A word with blanks, quotes or unprintable bytes is quoted as by redis-cli. Expired keys and
//! fields are left out, and so is when keys and consumers were last active.
//!
//! An entry of a stream that was deleted while it was pending is added and deleted again, as nothing else makes it
//! pending.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::Engine;
use crate::keyspace::{Database, KeyHandle};
use crate::rdb;
use crate::resp::write_escaped;
use crate::value::stream::{Group, Id};
use crate::value::{HashView, Stream, View, number};

/// A library, which is in no database, or a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) database: Option<usize>,
    pub(super) name: Vec<u8>,
    pub(super) lines: Vec<String>,
}

/// All pieces, in their order.
pub(super) fn of(engine: &Engine) -> Vec<Piece> {
    let libraries = engine.scripts.functions.registry.libraries().map(|(name, library)| Piece {
        database: None,
        name: name.as_bytes().to_vec(),
        lines: vec![line(&[b"FUNCTION", b"LOAD", &library.source])],
    });
    let mut all: Vec<Piece> = libraries.collect();
    for (number, database) in engine.databases.iter().enumerate() {
        let keys = database.handles().map(|handle| of_key(number, database, handle, engine.timing.due_ms()));
        all.extend(keys.filter(|piece| !piece.lines.is_empty()));
    }
    all.sort_unstable_by(|one, other| (one.database, &one.name).cmp(&(other.database, &other.name)));
    all
}

/// The piece of a key, if it exists.
pub(super) fn of_name(engine: &Engine, number: usize, key: &[u8]) -> Option<Piece> {
    let database = engine.databases.get(number);
    let piece = of_key(number, database, database.find(key)?, engine.timing.due_ms());
    Some(piece).filter(|piece| !piece.lines.is_empty())
}

/// The pieces as a text.
pub(super) fn text(pieces: &[Piece]) -> String {
    let (mut text, mut database) = (String::new(), None);
    for piece in pieces {
        if piece.database != database {
            database = piece.database;
            text.extend(database.map(select));
        }
        text.extend(piece.lines.iter().map(|line| format!("{line}\n")));
    }
    text
}

pub(super) fn select(database: usize) -> String {
    format!("SELECT {database}\n")
}

/// Joins words into a line that redis-cli splits into the same words.
fn line(words: &[&[u8]]) -> String {
    let mut line = Vec::new();
    for (place, word) in words.iter().enumerate() {
        if place > 0 {
            line.push(b' ');
        }
        let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"'\\#".contains(byte);
        if !word.is_empty() && word.iter().all(is_plain) {
            line.extend_from_slice(word);
        } else {
            line.push(b'"');
            write_escaped(word, &mut line);
            line.push(b'"');
        }
    }
    line.into_iter().map(char::from).collect()
}

fn of_key(number: usize, database: &Database, handle: KeyHandle, due_ms: i64) -> Piece {
    let key = database.key(handle);
    let mut lines = Vec::new();
    let deadline_ms = database.deadline(handle);
    if deadline_ms.is_none_or(|deadline_ms| deadline_ms > due_ms) {
        match database.view(handle) {
            View::Text(text) => lines.push(line(&[b"SET", key, &text.to_cow()])),
            View::List(list) => lines.extend(list.iter().map(|element| line(&[b"RPUSH", key, &element.to_cow()]))),
            View::Set(set) => {
                let members: BTreeSet<Vec<u8>> = set.iter().map(|member| member.to_vec()).collect();
                lines.extend(members.iter().map(|member| line(&[b"SADD", key, member])));
            }
            View::Zset(zset) => lines.extend(zset.iter().map(|entry| {
                let mut score = Vec::new();
                number::write_f64(&mut score, entry.score);
                line(&[b"ZADD", key, &score, entry.member])
            })),
            View::Hash(hash) => of_hash(key, hash, due_ms, &mut lines),
            View::Stream(stream) => of_stream(key, stream, &mut lines),
            // The vectors are quantized, so VADD would not set them again exactly.
            view @ View::VectorSet(_) => lines.push(line(&[b"RESTORE", key, b"0", &rdb::dump(view, false)])),
        }
    }
    if let Some(deadline_ms) = deadline_ms.filter(|_| !lines.is_empty()) {
        lines.push(line(&[b"PEXPIREAT", key, deadline_ms.to_string().as_bytes()]));
    }
    Piece { database: Some(number), name: key.to_vec(), lines }
}

fn of_hash(key: &[u8], hash: HashView<'_>, due_ms: i64, lines: &mut Vec<String>) {
    let fields: BTreeMap<Vec<u8>, Vec<u8>> =
        hash.iter().map(|entry| (entry.field.to_vec(), entry.value.to_vec())).collect();
    for (field, value) in fields {
        let deadline_ms = hash.deadline(&field).flatten();
        if deadline_ms.is_some_and(|deadline_ms| deadline_ms <= due_ms) {
            continue;
        }
        lines.push(line(&[b"HSET", key, &field, &value]));
        if let Some(deadline_ms) = deadline_ms {
            let deadline = deadline_ms.to_string();
            lines.push(line(&[b"HPEXPIREAT", key, deadline.as_bytes(), b"FIELDS", b"1", &field]));
        }
    }
}

fn of_stream(key: &[u8], stream: &Stream, lines: &mut Vec<String>) {
    let log = stream.log();
    let pending = stream.groups().iter().flat_map(|group| group.pending_from(Id::MIN));
    let deleted: BTreeSet<Id> = pending.map(|pending| pending.id()).filter(|id| log.get(*id).is_none()).collect();
    let mut entries: BTreeMap<Id, String> =
        deleted.iter().map(|id| (*id, line(&[b"XADD", key, id.to_string().as_bytes(), b"", b""]))).collect();
    for entry in log.range(Id::MIN, Id::MAX) {
        let id = entry.id().to_string();
        let pairs: Vec<_> = entry.pairs().flat_map(|(field, value)| [field.to_vec(), value.to_vec()]).collect();
        let words: Vec<&[u8]> =
            [b"XADD", key, id.as_bytes()].into_iter().chain(pairs.iter().map(Vec::as_slice)).collect();
        entries.insert(entry.id(), line(&words));
    }
    if entries.is_empty() {
        // Nothing else creates an empty stream to which nothing was ever added.
        lines.push(line(&[b"XGROUP", b"CREATE", key, b"", b"0", b"MKSTREAM"]));
        lines.push(line(&[b"XGROUP", b"DESTROY", key, b""]));
    }
    lines.extend(entries.into_values());
    stream.groups().iter().for_each(|group| of_group(key, group, lines));
    lines.extend(deleted.iter().map(|id| line(&[b"XDEL", key, id.to_string().as_bytes()])));
    let (last, added, gone) = (log.last().to_string(), log.added().to_string(), log.max_deleted().to_string());
    let counts = [b"ENTRIESADDED", added.as_bytes(), b"MAXDELETEDID", gone.as_bytes()];
    lines.push(line(&[&[b"XSETID", key, last.as_bytes()][..], &counts].concat()));
}

fn of_group(key: &[u8], group: &Group, lines: &mut Vec<String>) {
    let (name, last, read) = (group.name(), group.last.to_string(), group.read.unwrap_or(-1).to_string());
    lines.push(line(&[b"XGROUP", b"CREATE", key, name, last.as_bytes(), b"ENTRIESREAD", read.as_bytes()]));
    for (_, consumer) in group.consumers() {
        lines.push(line(&[b"XGROUP", b"CREATECONSUMER", key, name, consumer.name()]));
    }
    for pending in group.pending_from(Id::MIN) {
        let (id, given, times) =
            (pending.id().to_string(), pending.delivered_ms.to_string(), pending.times.to_string());
        let claim = [b"XCLAIM", key, name, group.consumer(pending.consumer()).name(), b"0", id.as_bytes()];
        let given = [b"TIME", given.as_bytes(), b"RETRYCOUNT", times.as_bytes(), b"FORCE", b"JUSTID"];
        lines.push(line(&[&claim[..], &given].concat()));
    }
}
