//! DEBUG DIGEST and DEBUG DIGEST-VALUE: a hash of the data, equal to that of a Redis with the same data.
//!
//! Elements of an unordered collection (the keys of a database, the members of a set) are hashed one by one and
//! combined by exclusive or, so their order does not matter; ordered elements are chained through the hash. Of the
//! deadlines of keys and fields only their presence counts. Expired fields count as long as they are stored.
//!
//! Cost: a pass over all data.

use sha1::{Digest, Sha1};

use crate::engine::{Args, Ctx, Error, Lookup};
use crate::keyspace::{Database, KeyHandle};
use crate::value::hexadecimal;
use crate::value::number;
use crate::value::stream::Id;
use crate::value::zset::Zset;
use crate::value::{Stream, VectorSet, View};

type Hash = [u8; 20];

/// Numbers of types as Redis counts them.
const TEXT: u32 = 0;
const LIST: u32 = 1;
const SET: u32 = 2;
const SORTED_SET: u32 = 3;
const HASH: u32 = 4;
const MODULE: u32 = 5;
const STREAM: u32 = 6;

pub(super) fn whole(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let mut hash = Hash::default();
    for (number, database) in cx.databases().iter().enumerate().filter(|(_, database)| !database.is_empty()) {
        chain(&mut hash, &(number as u32).to_be_bytes());
        for handle in database.handles() {
            let mut entry = Hash::default();
            chain(&mut entry, database.key(handle));
            add_value(&mut entry, database, handle);
            join(&mut hash, &entry);
        }
    }
    cx.reply().simple(hexadecimal::text(&hash));
    Ok(())
}

pub(super) fn values(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    cx.reply().array(args.left());
    for key in args.rest() {
        let mut hash = Hash::default();
        if cx.lookup(key, Lookup::NO_TRACE).is_some() {
            let database = cx.database();
            if let Some(handle) = database.find(key) {
                add_value(&mut hash, database, handle);
            }
        }
        cx.reply().simple(hexadecimal::text(&hash));
    }
    Ok(())
}

fn add_value(hash: &mut Hash, database: &Database, handle: KeyHandle) {
    match database.view(handle) {
        View::Text(text) => {
            chain(hash, &TEXT.to_be_bytes());
            chain(hash, &text.to_cow());
        }
        View::Zset(zset) => {
            chain(hash, &SORTED_SET.to_be_bytes());
            add_members(hash, zset);
        }
        View::List(list) => {
            chain(hash, &LIST.to_be_bytes());
            list.iter().for_each(|element| chain(hash, &element.to_cow()));
        }
        View::Set(set) => {
            chain(hash, &SET.to_be_bytes());
            set.iter().for_each(|member| join(hash, &member.to_cow()));
        }
        View::Hash(fields) => {
            chain(hash, &HASH.to_be_bytes());
            let has_deadlines = fields.first_deadline().is_some();
            for entry in fields.iter() {
                let mut element = Hash::default();
                chain(&mut element, &entry.field.to_cow());
                chain(&mut element, &entry.value.to_cow());
                if has_deadlines && fields.deadline(&entry.field.to_cow()).flatten().is_some() {
                    join(&mut element, b"!!hexpire!!");
                }
                join(hash, &element);
            }
        }
        View::Stream(stream) => {
            chain(hash, &STREAM.to_be_bytes());
            add_entries(hash, stream);
        }
        View::VectorSet(set) => {
            chain(hash, &MODULE.to_be_bytes());
            add_vectors(hash, set);
        }
    }
    if database.deadline(handle).is_some() {
        join(hash, b"!!expire!!");
    }
}

fn add_members(hash: &mut Hash, zset: &Zset) {
    let mut digits = Vec::new();
    for entry in zset.iter() {
        let mut element = Hash::default();
        chain(&mut element, entry.member);
        digits.clear();
        number::write_f64_by_digits(&mut digits, entry.score);
        chain(&mut element, &digits);
        join(hash, &element);
    }
}

fn add_entries(hash: &mut Hash, stream: &Stream) {
    for entry in stream.log().range(Id::MIN, Id::MAX) {
        chain(hash, format!("{}.{}", entry.id().ms, entry.id().seq).as_bytes());
        for (field, value) in entry.pairs() {
            chain(hash, &field.to_cow());
            chain(hash, &value.to_cow());
        }
    }
}

fn add_vectors(hash: &mut Hash, set: &VectorSet) {
    let mut head = Hash::default();
    chain(&mut head, set.len().to_string().as_bytes());
    chain(&mut head, set.dimensions().to_string().as_bytes());
    let mut all = Hash::default();
    join(&mut all, &head);
    for element in set.iter() {
        let mut hash = Hash::default();
        chain(&mut hash, &element.vector.bytes);
        chain(&mut hash, element.name);
        if let Some(attributes) = element.attributes {
            chain(&mut hash, attributes);
        }
        join(&mut all, &hash);
    }
    join(hash, &all);
}

/// Exclusive or with the hash of `bytes`: the order of such steps does not matter.
fn join(hash: &mut Hash, bytes: &[u8]) {
    let other: Hash = Sha1::digest(bytes).into();
    hash.iter_mut().zip(other).for_each(|(byte, other)| *byte ^= other);
}

/// Combines, then hashes the result: the order of such steps matters.
fn chain(hash: &mut Hash, bytes: &[u8]) {
    join(hash, bytes);
    *hash = Sha1::digest(*hash).into();
}
