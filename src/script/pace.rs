//! The pace of work that may take long: it asks now and then whether it shall go on.

use crate::lua::{Raise, Stack};

/// Steps between two questions; a step is some nanoseconds.
const STEPS: usize = 10_000;

/// Counts steps.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    steps: usize,
}

impl Pace {
    /// So many steps more.
    ///
    /// # Errors
    /// When the script has to end.
    #[inline]
    pub(crate) fn step(&mut self, stack: &Stack<'_>, count: usize) -> Result<(), Raise> {
        self.steps = self.steps.saturating_add(count);
        if self.steps < STEPS { Ok(()) } else { self.ask(stack) }
    }

    /// A step more of work that appends to `out`, which memory must allow.
    ///
    /// # Errors
    /// When the script has to end, or memory has run out.
    #[inline]
    pub(crate) fn written(&mut self, stack: &Stack<'_>, out: &[u8]) -> Result<(), Raise> {
        stack.afford(out.len())?;
        self.step(stack, 1)
    }

    #[cold]
    fn ask(&mut self, stack: &Stack<'_>) -> Result<(), Raise> {
        self.steps = 0;
        stack.pulse()
    }
}
