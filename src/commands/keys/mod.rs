//! Keys, whatever they hold: is it there, remove it, rename it, how long does it live, what is it.
//!
//! Commands about whole databases are here too, since a database is its keys. A key whose deadline has passed is never
//! answered, even before it is removed.

mod databases;
mod dump;
mod expire;
mod list;
mod migrate;
mod object;
mod presence;
mod remove;
mod sort;
mod transfer;
mod ttl;

use crate::engine::{Command, Ctx, Error};

/// The family's rows.
pub const COMMANDS: &[Command] = &[
    transfer::COPY,
    databases::DBSIZE,
    remove::DEL,
    dump::DUMP,
    presence::EXISTS,
    expire::EXPIRE,
    expire::EXPIREAT,
    ttl::EXPIRETIME,
    databases::FLUSHALL,
    databases::FLUSHDB,
    list::KEYS,
    migrate::MIGRATE,
    transfer::MOVE,
    object::OBJECT,
    ttl::PERSIST,
    expire::PEXPIRE,
    expire::PEXPIREAT,
    ttl::PEXPIRETIME,
    ttl::PTTL,
    list::RANDOMKEY,
    transfer::RENAME,
    transfer::RENAMENX,
    dump::RESTORE,
    dump::RESTORE_ASKING,
    list::SCAN,
    sort::SORT,
    sort::SORT_RO,
    databases::SWAPDB,
    presence::TOUCH,
    ttl::TTL,
    presence::TYPE,
    remove::UNLINK,
];

/// The database of that number.
///
/// # Errors
/// There is none.
pub(super) fn existing_database(cx: &mut Ctx<'_>, number: i32) -> Result<usize, Error> {
    let count = cx.databases().count();
    usize::try_from(number).ok().filter(|&index| index < count).ok_or(Error::DatabaseOutOfRange)
}
