//! Commands about keys of any type: existence, deletion, renaming, deadlines, types.
//!
//! Commands about whole databases are here too, since a database consists of keys. An expired key is never returned,
//! even before it is removed.

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

pub(super) use dump::propagate_deletion;
pub(super) use expire::propagate_expiration;

use crate::engine::{Command, Ctx, Error};

/// The rows of this family's commands.
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

/// The database with that number.
///
/// # Errors
/// There is no such database.
pub(super) fn existing_database(cx: &mut Ctx<'_>, number: i32) -> Result<usize, Error> {
    let count = cx.databases().count();
    usize::try_from(number).ok().filter(|&index| index < count).ok_or(Error::DatabaseOutOfRange)
}
