//! Several keys at once.

use super::Ctx;
use crate::resp::Reply;
use crate::value::View;

impl<'c> Ctx<'c> {
    /// What several keys hold, all at once, in their order: counts and notes as [`Ctx::view`] does for each.
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
        // Looking one key up may remove it or another that is due, which would make earlier slots stale: so the
        // overdue ones go first, and the second pass removes nothing.
        let mut looked_up = 0;
        for key in keys {
            looked_up += 1;
            if self.look_up(key).is_some_and(|slot| !fits(&self.database().view(slot))) {
                break;
            }
        }
        let slots: Vec<_> = keys[..looked_up].iter().map(|key| self.engine.live(self.database, key)).collect();
        let database = self.engine.databases.get(self.database);
        (slots.into_iter().map(|slot| slot.map(|slot| database.view(slot))).collect(), &mut self.reply)
    }
}
