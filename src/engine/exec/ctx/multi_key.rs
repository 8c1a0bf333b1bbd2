//! Reading several keys at once.

use crate::engine::exec::{Ctx, access};
use crate::resp::Reply;
use crate::value::View;

impl<'c> Ctx<'c> {
    /// The values of several keys, in their order; counts and records each access as [`Ctx::view`] does.
    pub fn views(&mut self, keys: &[&[u8]]) -> (Vec<Option<View<'_>>>, &mut Reply<'c>) {
        self.views_while(keys, |_| true)
    }

    /// Like [`Ctx::views`], up to the first value that does not fit, which is the last one returned: keys behind it
    /// are not looked up.
    pub fn views_while(
        &mut self,
        keys: &[&[u8]],
        fits: fn(&View<'_>) -> bool,
    ) -> (Vec<Option<View<'_>>>, &mut Reply<'c>) {
        // Looking a key up may delete an expired one, which would make earlier slots stale: so the first pass deletes
        // the expired ones, and the second pass deletes nothing.
        let mut looked_up = 0;
        for key in keys {
            looked_up += 1;
            if self.look_up(key).is_some_and(|slot| !fits(&self.database().view(slot))) {
                break;
            }
        }
        let slots: Vec<_> = keys[..looked_up].iter().map(|key| access::live(self.engine, self.database, key)).collect();
        let database = self.engine.databases.get(self.database);
        (slots.into_iter().map(|slot| slot.map(|slot| database.view(slot))).collect(), &mut self.reply)
    }
}
