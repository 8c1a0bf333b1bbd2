//! DEBUG DIGEST and DEBUG DIGEST-VALUE: a hash of the data, the same as a Redis that holds the same data computes.
//!
//! Elements of an unordered whole (the keys of a database, the members of a set) are hashed one by one and joined by
//! exclusive or, so their order does not matter; what has an order is chained through the hash. Deadlines count only as
//! being there. Costs: a pass over all data.

use sha1::{Digest, Sha1};

use crate::engine::{Args, Ctx, Error};
use crate::keyspace::{Database, Slot};
use crate::value::View;
use crate::value::zset::Zset;

type Hash = [u8; 20];

/// Numbers of types as Redis counts them.
const TEXT: u32 = 0;
const SORTED_SET: u32 = 3;

pub(super) fn whole(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let mut hash = Hash::default();
    for (number, database) in cx.databases().iter().enumerate().filter(|(_, database)| !database.is_empty()) {
        chain(&mut hash, &(number as u32).to_be_bytes());
        for slot in database.slots() {
            let mut entry = Hash::default();
            chain(&mut entry, database.key(slot));
            add_value(&mut entry, database, slot);
            join(&mut hash, &entry);
        }
    }
    cx.reply().simple(&hexadecimal(&hash));
    Ok(())
}

pub(super) fn values(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    cx.reply().array(args.left());
    for key in args.rest() {
        let mut hash = Hash::default();
        if cx.exists(key) {
            let database = cx.database();
            if let Some(slot) = database.find(key) {
                add_value(&mut hash, database, slot);
            }
        }
        cx.reply().simple(&hexadecimal(&hash));
    }
    Ok(())
}

fn add_value(hash: &mut Hash, database: &Database, slot: Slot) {
    match database.view(slot) {
        View::Text(text) => {
            chain(hash, &TEXT.to_be_bytes());
            chain(hash, &text.to_cow());
        }
        View::Zset(zset) => {
            chain(hash, &SORTED_SET.to_be_bytes());
            add_members(hash, zset);
        }
    }
    if database.deadline(slot).is_some() {
        join(hash, b"!!expire!!");
    }
}

fn add_members(hash: &mut Hash, zset: &Zset) {
    for entry in zset.iter() {
        let mut element = Hash::default();
        chain(&mut element, entry.member);
        chain(&mut element, seventeen_digits(entry.score).as_bytes());
        join(hash, &element);
    }
}

/// Exclusive or with the hash of `bytes`: the order of such steps does not matter.
fn join(hash: &mut Hash, bytes: &[u8]) {
    let other: Hash = Sha1::digest(bytes).into();
    hash.iter_mut().zip(other).for_each(|(byte, other)| *byte ^= other);
}

/// Joins, then hashes the result: the order of such steps matters.
fn chain(hash: &mut Hash, bytes: &[u8]) {
    join(hash, bytes);
    *hash = Sha1::digest(*hash).into();
}

fn hexadecimal(hash: &Hash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A double as C's `%.17g` prints it.
fn seventeen_digits(value: f64) -> String {
    let scientific = format!("{value:.16e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return value.to_string() };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..17).contains(&exponent) {
        return without_trailing_zeros(&format!("{value:.*}", (16 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_trailing_zeros(digits), exponent.abs())
}

fn without_trailing_zeros(digits: &str) -> String {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.').to_owned() } else { digits.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::seventeen_digits;

    #[test]
    fn doubles_print_as_c_prints_them() {
        let cases = [
            (0.1, "0.10000000000000001"),
            (1.0, "1"),
            (100.0, "100"),
            (1e17, "1e+17"),
            (1e16, "10000000000000000"),
            (1.5e-5, "1.5e-05"),
            (1e300, "1.0000000000000001e+300"),
            (-0.0, "-0"),
            (f64::INFINITY, "inf"),
        ];
        for (value, printed) in cases {
            assert_eq!(seventeen_digits(value), printed);
        }
    }
}
