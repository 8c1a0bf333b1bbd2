//! Commands within commands, and commands that wait.

use std::collections::BTreeSet;

use super::{Ctx, Halt};
use crate::engine::scripts::Ending;
use crate::engine::{Args, Block, Stored};
use crate::resp::{Reply, Request, Requests};
use crate::value::View;

impl Ctx<'_> {
    /// Runs a request of the same session within this command, and writes its reply here. It passes no gates: whoever
    /// has it run saw to that. It waits for nothing, and nobody is served before the whole command is done.
    ///
    /// False when it is a script that was put aside: [`Ctx::rest_before`] is to be called then, and nothing after it.
    pub fn run(&mut self, request: Request<'_>) -> bool {
        !matches!(self.engine.run_within(self.session, request, self.reply.reborrow()), Ending::Rests)
    }

    /// Whether the client may read any key, beside doing what the words of this command say.
    pub fn may_read_all_keys(&self, args: &Args<'_>) -> bool {
        self.engine.may_read_all_keys(self.session, self.command, args.request())
    }

    /// True when this command runs within another.
    pub fn is_nested(&self) -> bool {
        self.is_nested
    }

    /// True when a script called this command.
    pub fn is_in_script(&self) -> bool {
        self.is_nested && self.engine.scripts.is_any_running()
    }

    /// Has this command wait until one of `keys` comes to hold a `T`, and run again then. Whoever waited for that key
    /// before is served before. At `deadline_ms`, in unix milliseconds, it answers a null array. A command that runs
    /// within another does not wait, but answers what `at_once` writes. To be called last, nothing being answered.
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

    /// Like [`Ctx::block_or`], but runs `request` again, and, if `heeds_loss`, also when one of the keys is deleted or
    /// gets another type.
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

    /// Has this command wait for nothing but the end of its time, at which `answer` is written. A command that runs
    /// within another does not wait. To be called last, nothing being answered.
    pub fn block_until(&mut self, deadline_ms: Option<i64>, answer: fn(&mut Reply<'_>)) {
        if self.is_nested {
            return answer(&mut self.reply);
        }
        let keys = BTreeSet::new();
        let block = Block { keys, is_served_by: |_| false, deadline_ms, at_last: answer, again: None };
        self.block = Some(Box::new(block));
    }

    /// What `key` holds changed so that who waits for it may go on: a key that comes to be needs no word.
    pub fn signal(&mut self, key: &[u8]) {
        if !self.engine.observers.waiting.is_empty() {
            self.engine.observers.waiting.signal(self.database, key);
        }
    }

    /// How the command ended.
    pub(in crate::engine) fn into_ending(self) -> Ending {
        match (self.halt, self.block) {
            (Halt::Rests, _) => Ending::Rests,
            (Halt::CallsHost, _) => Ending::CallsHost,
            (_, Some(block)) => Ending::Waits(block),
            _ => Ending::Answered,
        }
    }

    /// Ends the wait of another session as if its time were over, or with an error. False when it does not wait.
    pub fn unblock(&mut self, number: u64, with_error: bool) -> bool {
        self.engine.sessions.find(number).is_some_and(|id| self.engine.unblock(id, with_error))
    }
}

fn owned(keys: &[&[u8]]) -> BTreeSet<Box<[u8]>> {
    keys.iter().map(|&key| key.into()).collect()
}
