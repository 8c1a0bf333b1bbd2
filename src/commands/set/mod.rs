//! Sets: distinct members under a key.
//!
//! Clients can see the encoding of a set and when it changes (`OBJECT ENCODING`, the order of SMEMBERS), so results are
//! built in the order and by the steps of Redis. A set that loses its last member is deleted.
//!
//! [`add`], [`remove`], [`pop`] and [`transfer`] change a set, [`member`], [`random`] and [`scan`] read it, and
//! [`combine`] combines several sets.

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

/// The rows of this family's commands.
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

/// Replies with all members.
fn write_members(reply: &mut Reply<'_>, set: Option<&Set>) {
    reply.set(set.map_or(0, Set::len));
    set.into_iter().flat_map(Set::iter).for_each(|member| reply.item(member));
}
