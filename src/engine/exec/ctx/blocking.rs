//! Running a command within a command, and blocking the client.

use std::collections::BTreeSet;

use crate::engine::exec::ctx::Halt;
use crate::engine::exec::scripts::Ending;
use crate::engine::exec::{Ctx, Stored, blocking, dispatch, rights};
use crate::engine::spec::Args;
use crate::engine::state::Block;
use crate::resp::{Reply, Request, Requests};
use crate::value::View;

impl Ctx<'_> {
    /// Runs a request of the same session within this command, and writes its reply here. It passes no gates: the
    /// caller has checked it. It does not block, and no blocked client is served before the whole command is done.
    ///
    /// False when it is a script that was suspended: the caller then calls [`Ctx::rest_before`], and nothing after it.
    pub fn run(&mut self, request: Request<'_>) -> bool {
        !matches!(dispatch::run_within(self.engine, self.session, request, self.reply.reborrow()), Ending::Rests)
    }

    /// Whether the client has the right to read any key, in addition to the rights for this request.
    pub fn may_read_all_keys(&self, args: &Args<'_>) -> bool {
        rights::may_read_all_keys(self.engine, self.session, self.command, args.request())
    }

    /// True when this command runs within another.
    pub fn is_nested(&self) -> bool {
        self.is_nested
    }

    /// True when a script called this command.
    pub fn is_in_script(&self) -> bool {
        self.is_nested && self.engine.scripts.is_any_running()
    }

    /// Blocks the client until one of `keys` holds a `T`, and then runs this command again. Clients that waited for
    /// that key earlier are served earlier. At `deadline_ms`, in unix milliseconds, the reply is a null array. A
    /// command within another does not block: its reply is what `at_once` writes. To be called last, before any reply.
    pub fn block_or<T: Stored>(
        &mut self,
        keys: &[&[u8]],
        deadline_ms: Option<i64>,
        at_once: impl FnOnce(&mut Reply<'_>),
    ) {
        if self.is_nested {
            return at_once(&mut self.reply);
        }
        let is_served_by = |view: Option<View<'_>>| view.is_some_and(|view| T::of(view).is_some());
        let at_last = |reply: &mut Reply<'_>| reply.null_array();
        let block = Block { keys: owned(keys), is_served_by, deadline_ms, at_last, again: None };
        self.block = Some(Box::new(block));
    }

    /// Like [`Ctx::block_or`], but it is `request` that is run again, and, if `heeds_loss`, also when one of the keys
    /// is deleted or gets another type.
    pub fn block_as<T: Stored>(
        &mut self,
        keys: &[&[u8]],
        deadline_ms: Option<i64>,
        heeds_loss: bool,
        request: Requests,
        at_once: impl FnOnce(&mut Reply<'_>),
    ) {
        self.block_or::<T>(keys, deadline_ms, at_once);
        if let Some(block) = &mut self.block {
            block.again = Some(request);
            if heeds_loss {
                block.is_served_by = |_| true;
            }
        }
    }

    /// Blocks the client until the timeout, at which `answer` writes the reply. A command within another does not
    /// block. To be called last, before any reply.
    pub fn block_until(&mut self, deadline_ms: Option<i64>, answer: fn(&mut Reply<'_>)) {
        if self.is_nested {
            return answer(&mut self.reply);
        }
        let keys = BTreeSet::new();
        let block = Block { keys, is_served_by: |_| false, deadline_ms, at_last: answer, again: None };
        self.block = Some(Box::new(block));
    }

    /// Marks `key` as ready for its blocked clients after its value changed; a new key is marked without this call.
    pub fn signal(&mut self, key: &[u8]) {
        if !self.engine.observers.waiting.is_empty() {
            self.engine.observers.waiting.signal(self.database, key);
        }
    }

    /// How the command ended: with a reply, blocked, or suspended.
    pub(in crate::engine) fn into_ending(self) -> Ending {
        match (self.halt, self.block) {
            (Halt::Rests, _) => Ending::Rests,
            (Halt::CallsHost, _) => Ending::CallsHost,
            (_, Some(block)) => Ending::Waits(block),
            _ => Ending::Answered,
        }
    }

    /// Unblocks another session, as at its timeout or with an error. False when it is not blocked.
    pub fn unblock(&mut self, number: u64, with_error: bool) -> bool {
        self.engine.sessions.find(number).is_some_and(|id| blocking::unblock(self.engine, id, with_error))
    }
}

fn owned(keys: &[&[u8]]) -> BTreeSet<Box<[u8]>> {
    keys.iter().map(|&key| key.into()).collect()
}
