//! The pace of work that appends to a buffer: it asks now and then whether it shall go on.

use crate::lua::{Raise, Stack};

/// Counts what is written.
#[derive(Debug, Default)]
pub(crate) struct InterruptCheck {
    written: usize,
}

impl InterruptCheck {
    /// A step more of work that appends to `out`, which memory must allow.
    ///
    /// # Errors
    /// When the script has to end, or memory has run out.
    #[inline]
    pub(crate) fn check(&mut self, stack: &Stack<'_>, out: &[u8]) -> Result<(), Raise> {
        stack.check_memory(out.len())?;
        stack.step(1)?;
        stack.work(out.len().saturating_sub(self.written))?;
        self.written = out.len();
        Ok(())
    }
}
