//! The pace of work that appends to a buffer: it calls the interrupt check now and then.

use crate::lua::{Raise, Stack};

/// Counts the bytes that were written.
#[derive(Debug, Default)]
pub(crate) struct InterruptCheck {
    written: usize,
}

impl InterruptCheck {
    /// Counts one more step of work that appends to `out`, and checks that memory allows it.
    ///
    /// # Errors
    /// If the script has to end, or memory has run out.
    #[inline]
    pub(crate) fn check(&mut self, stack: &Stack<'_>, out: &[u8]) -> Result<(), Raise> {
        stack.check_memory(out.len())?;
        stack.step(1)?;
        stack.work(out.len().saturating_sub(self.written))?;
        self.written = out.len();
        Ok(())
    }
}
