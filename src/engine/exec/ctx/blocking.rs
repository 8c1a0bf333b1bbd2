//! Running a command within a command, blocking the client, and what SORT, SUBSCRIBE and CLIENT UNBLOCK need.

use std::collections::BTreeSet;

use super::{Ctx, Halt};
use crate::engine::exec::stages::Ending;
use crate::engine::exec::{Stored, acl, blocking, delivery, dispatch};
use crate::engine::spec::Args;
use crate::engine::state::{Block, LateReply};
use crate::resp::{Reply, Request, Requests};
use crate::value::View;

impl Ctx<'_> {
    /// Runs a request of the same session within this command, and writes its reply here. It passes no gates: the
    /// caller has checked it. It does not block, and no blocked client is served before the whole command is done.
    ///
    /// False when it is a script that was suspended: the caller then calls
    /// [`suspend_transaction_at`](crate::engine::exec::scripts::suspend_transaction_at), and nothing after it.
    pub fn run(&mut self, request: Request<'_>) -> bool {
        !matches!(dispatch::run_within(self.engine, self.session, request, self.reply.reborrow()), Ending::Suspended)
    }

    /// True when this command runs within another.
    pub fn is_nested(&self) -> bool {
        self.is_nested
    }

    /// True when a script called this command.
    pub fn is_in_script(&self) -> bool {
        self.is_nested && self.engine.scripts.is_any_running()
    }

    /// Blocks the client. A command within another does not block, nor does one of the page: its reply is what
    /// `at_once` writes. To be called last, before any reply.
    pub fn block(&mut self, block: Block, at_once: impl FnOnce(&mut Reply<'_>)) {
        if may_block(self) {
            self.block = Some(Box::new(block));
        } else {
            at_once(&mut self.reply);
        }
    }

    /// How the command ended: with a reply, blocked, or suspended.
    pub(in crate::engine) fn into_ending(self) -> Ending {
        match (self.halt, self.block) {
            (Halt::Suspended, _) => Ending::Suspended,
            (Halt::CallsHost, _) => Ending::CallsHost,
            (_, Some(block)) => Ending::Blocked(block),
            _ => Ending::Answered,
        }
    }
}

impl Block {
    /// A block until one of `keys` holds a `T`: then the command runs again. Clients that waited for a key earlier are
    /// served earlier. At `deadline_ms`, in Unix milliseconds, the reply is a null array.
    pub fn on<T: Stored>(keys: &[&[u8]], deadline_ms: Option<i64>) -> Block {
        let is_served_by = |view: Option<View<'_>>| view.is_some_and(|view| T::of(view).is_some());
        let (keys, timeout_reply) = (keys.iter().map(|&key| key.into()).collect(), LateReply::NullArray);
        Block { keys, is_served_by, deadline_ms, timeout_reply, again: None }
    }

    /// A block until the timeout, which ends with that reply.
    pub fn until(deadline_ms: Option<i64>, timeout_reply: LateReply) -> Block {
        Block { keys: BTreeSet::new(), is_served_by: |_| false, deadline_ms, timeout_reply, again: None }
    }

    /// This block, but with `request` as the request that is run again; with `unblocks_on_nokey` (Redis's name for it)
    /// also when one of the keys is deleted or gets another type.
    pub fn again(self, request: Requests, unblocks_on_nokey: bool) -> Block {
        let is_served_by: fn(Option<View<'_>>) -> bool = if unblocks_on_nokey { |_| true } else { self.is_served_by };
        Block { again: Some(request), is_served_by, ..self }
    }
}

/// Whether the running command can block its client.
pub fn may_block(cx: &Ctx<'_>) -> bool {
    !cx.is_nested && !cx.session().origin.is_page
}

/// Unblocks another session, as at its timeout or with an error (CLIENT UNBLOCK). False when it is not blocked.
pub fn unblock_client(cx: &mut Ctx<'_>, number: u64, with_error: bool) -> bool {
    cx.engine.sessions.find(number).is_some_and(|id| blocking::unblock(cx.engine, id, with_error))
}

/// Whether the client has the right to read any key, in addition to the rights for this request (SORT).
pub fn may_read_all_keys(cx: &Ctx<'_>, args: &Args<'_>) -> bool {
    acl::may_read_all_keys(cx.engine, cx.session, cx.command, args.request())
}

/// Whether the client has the right to read a key, in addition to the rights for this request.
pub fn may_read(cx: &Ctx<'_>, args: &Args<'_>, key: &[u8]) -> bool {
    acl::may_read(cx.engine, cx.session, cx.command, args.request(), key)
}

/// Replies with a push, which CLIENT REPLY does not silence (SUBSCRIBE).
pub fn push_reply(cx: &mut Ctx<'_>, write: impl FnOnce(&mut Reply<'_>)) {
    if cx.session().wants_reply() {
        return write(&mut cx.reply);
    }
    let mut frame = Vec::new();
    write(&mut Reply::new(&mut frame, cx.reply.protocol()));
    delivery::send(cx.engine, cx.session, frame.into());
}
