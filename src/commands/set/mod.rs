//! Sets: members, each once, under a key.
//!
//! The form that a set is kept in, and when it turns into another, can be seen by a client (`OBJECT ENCODING`, the
//! order of SMEMBERS), so results are built in the order and by the steps in which Redis builds them. A set that
//! loses its last member is gone.
//!
//! [`add`], [`remove`], [`pop`] and [`transfer`] change one, [`member`], [`random`] and [`scan`] read, and [`combine`]
//! makes one set of several.

mod add;
mod combine;
mod member;
mod pop;
mod random;
mod remove;
mod scan;
mod transfer;

use crate::engine::Command;
use crate::resp::Reply;
use crate::value::Set;

/// The family's rows.
pub const COMMANDS: &[Command] = &[
    add::SADD,
    member::SCARD,
    combine::SDIFF,
    combine::SDIFFSTORE,
    combine::SINTER,
    combine::SINTERCARD,
    combine::SINTERSTORE,
    member::SISMEMBER,
    member::SMEMBERS,
    member::SMISMEMBER,
    transfer::SMOVE,
    pop::SPOP,
    random::SRANDMEMBER,
    remove::SREM,
    scan::SSCAN,
    combine::SUNION,
    combine::SUNIONSTORE,
];

/// Answers all members.
fn write_members(reply: &mut Reply<'_>, set: Option<&Set>) {
    reply.set(set.map_or(0, Set::len));
    set.into_iter().flat_map(Set::iter).for_each(|member| reply.item(member));
}
