//! The interpreter's memory: counted, and limited where a script could ask for too much.
//!
//! While C code runs, an allocation over the limit fails, and Lua raises "not enough memory" in its own way. While Rust
//! code runs it never fails, since Lua would jump over our frames: [`super::Stack`] asks [`Account::is_over`] before it
//! makes anything large.

use std::alloc::{self, Layout};
use std::cell::Cell;
use std::ffi::c_void;

use super::Context;

/// What Lua says when memory has run out.
pub const OUT_OF_MEMORY: &str = "not enough memory";

/// As C's allocators align.
const ALIGNMENT: usize = 16;

/// Bytes taken, and how many may be.
#[derive(Debug)]
pub(super) struct Account {
    used: Cell<usize>,
    limit: usize,
    /// How many calls deep Rust code runs.
    depth: Cell<u32>,
    /// The next allocation fails.
    refuses_next: Cell<bool>,
}

impl Account {
    pub(super) fn new(limit: usize) -> Account {
        Account { used: Cell::new(0), limit, depth: Cell::new(0), refuses_next: Cell::new(false) }
    }

    pub(super) fn used(&self) -> usize {
        self.used.get()
    }

    pub(super) fn is_over(&self, more: usize) -> bool {
        self.used.get().saturating_add(more) > self.limit
    }

    /// Has the next allocation fail.
    pub(super) fn refuse_next(&self) {
        self.refuses_next.set(true);
    }

    /// Rust code runs until this is dropped.
    pub(super) fn within_rust(&self) -> Within {
        self.depth.set(self.depth.get() + 1);
        Within { depth: &raw const self.depth }
    }

    /// C code runs until this is dropped.
    pub(super) fn within_c(&self) -> WithinC {
        WithinC { depth: &raw const self.depth, before: self.depth.replace(0) }
    }
}

/// Rust code runs. Holds a pointer, not a reference, so that it does not keep `Lua` borrowed.
pub(super) struct Within {
    depth: *const Cell<u32>,
}

impl Drop for Within {
    fn drop(&mut self) {
        // SAFETY: made by `within_rust`, dropped within the same function, which keeps the account alive.
        let depth = unsafe { &*self.depth };
        depth.set(depth.get() - 1);
    }
}

/// C code runs, called by Rust code.
pub(super) struct WithinC {
    depth: *const Cell<u32>,
    before: u32,
}

impl Drop for WithinC {
    fn drop(&mut self) {
        // SAFETY: as for `Within`.
        unsafe { &*self.depth }.set(self.before);
    }
}

/// The allocator that Lua is given.
///
/// # Safety
/// As Lua promises its allocators: `data` is what was registered with it, and `block` is null or came from here with
/// `old` bytes.
pub(super) unsafe extern "C" fn allocate(
    data: *mut c_void,
    block: *mut c_void,
    old: usize,
    wanted: usize,
) -> *mut c_void {
    // SAFETY: `data` is the context, which outlives the state.
    let account = unsafe { &(*data.cast::<Context>()).account };
    let old = if block.is_null() { 0 } else { old };
    if wanted > old && account.depth.get() == 0 && (account.refuses_next.take() || account.is_over(wanted - old)) {
        return std::ptr::null_mut();
    }
    let Ok(layout) = Layout::from_size_align(wanted, ALIGNMENT) else { return std::ptr::null_mut() };
    // SAFETY: `block` came from here with `old` bytes and the same alignment; sizes of zero are never passed on.
    let moved = unsafe {
        match (old, wanted) {
            (0, 0) => return std::ptr::null_mut(),
            (0, _) => alloc::alloc(layout),
            (_, 0) => {
                alloc::dealloc(block.cast(), Layout::from_size_align_unchecked(old, ALIGNMENT));
                account.used.set(account.used.get() - old);
                return std::ptr::null_mut();
            }
            _ => alloc::realloc(block.cast(), Layout::from_size_align_unchecked(old, ALIGNMENT), wanted),
        }
    };
    if moved.is_null() {
        alloc::handle_alloc_error(layout);
    }
    account.used.set(account.used.get() - old + wanted);
    moved.cast()
}
