//! The interpreter's allocator: it counts memory, and limits it where a script could allocate too much.
//!
//! While C code runs, an allocation over the limit fails, and Lua raises "not enough memory" in its own way. While
//! Rust code runs it never fails, since Lua would jump over our frames: before it makes anything large,
//! [`super::Stack`] checks that there is memory, within the limit and in the system.
//!
//! Garbage counts towards the limit until it is collected, and Lua's own collector rests until the memory in use has
//! doubled: with large values that is over the limit. So the garbage is collected at once where it could stand in the
//! way: before Rust code reports that memory has run out, between two instructions when much is in use
//! ([`Account::is_collection_due`]), and after a run that leaves much behind.
//!
//! The time of C code between two instructions of a script grows with the bytes that it allocates. So these are
//! counted as work, like the steps of our own functions ([`Account::charge`]): after much work, the hook runs with
//! the next instruction.
//!
//! Scripts make and drop many small values, and the collector frees many of them at once: more of one size than the
//! system's allocator caches. So some freed blocks are kept here, by size, for the next values ([`Spare`]).

use std::alloc::{self, Layout};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::{self, NonNull};

use super::Context;

/// The error message of Lua for memory that has run out.
pub const OUT_OF_MEMORY: &str = "not enough memory";

/// The alignment of C's allocators.
const ALIGNMENT: usize = 16;
/// The most bytes of freed blocks that are kept: about what the scripts between two rounds of the collector free.
/// None in debug builds, so that the address sanitizer detects a use after free.
const SPARE_BYTES: usize = if cfg!(debug_assertions) { 0 } else { 256 << 10 };

/// The memory in use, and its limit.
#[derive(Debug)]
pub(super) struct Account {
    used: Cell<usize>,
    limit: usize,
    /// The nesting depth of running Rust code.
    depth: Cell<u32>,
    /// Whether the next allocation fails.
    refuses_next: Cell<bool>,
    /// The work since the last interrupt check, in bytes.
    work: Cell<usize>,
    /// The bytes in use from which on a run collects its garbage.
    collected_from: Cell<usize>,
    /// The bytes in use from which on the garbage is collected after a run.
    collected_after_run_from: Cell<usize>,
    spare: Spare,
}

/// The part of the limit that is used without a collection of our own.
const UNCOLLECTED_PART: usize = 4;
/// The part of the limit by which the memory in use grows at least between two collections of our own: each goes
/// through all values.
const MIN_GROWTH_PART: usize = 16;

/// The work after which the interrupt check is called: some 50 microseconds.
const WORK_BYTES: usize = 256 << 10;
/// The size from which Rust code, before it makes a value, checks that the system has the memory.
const LARGE_BYTES: usize = 1 << 20;

impl Account {
    pub(super) fn new(limit: usize) -> Account {
        Account {
            used: Cell::new(0),
            limit,
            depth: Cell::new(0),
            refuses_next: Cell::new(false),
            work: Cell::new(0),
            collected_from: Cell::new(limit / UNCOLLECTED_PART),
            collected_after_run_from: Cell::new(limit / UNCOLLECTED_PART),
            spare: Spare::new(SPARE_BYTES),
        }
    }

    /// The bytes allocated and not freed. Blocks that are kept for later do not count, as with any allocator.
    pub(super) fn used(&self) -> usize {
        self.used.get()
    }

    pub(super) fn is_over(&self, more: usize) -> bool {
        self.used.get().saturating_add(more) > self.limit
    }

    /// Whether there is memory for `more` further bytes: within the limit, and in the system.
    #[inline]
    pub(super) fn has_room_for(&self, more: usize) -> bool {
        !self.is_over(more) && (more < LARGE_BYTES || can_be_had(more))
    }

    /// Whether that many bytes could be had if nothing else was in use.
    pub(super) fn is_within_limit(&self, bytes: usize) -> bool {
        bytes <= self.limit
    }

    /// Whether so much is in use that a run collects its garbage now.
    #[inline]
    pub(super) fn is_collection_due(&self) -> bool {
        self.used.get() > self.collected_from.get()
    }

    /// Whether a run that has ended has left so much that the garbage is collected now. The next run begins with the
    /// same threshold: that of this one depended on its own values.
    #[inline]
    pub(super) fn is_collection_due_after_run(&self) -> bool {
        self.collected_from.set(self.collected_after_run_from.get());
        self.used.get() > self.collected_after_run_from.get()
    }

    /// Sets when a run collects its garbage again, now that there is none: when the memory in use has doubled, or half
    /// of the free memory is used.
    pub(super) fn schedule_collection(&self) {
        let used = self.used.get();
        let growth = used.min(self.limit.saturating_sub(used) / 2).max(self.limit / MIN_GROWTH_PART);
        self.collected_from.set(used.saturating_add(growth).max(self.limit / UNCOLLECTED_PART));
    }

    /// Sets the same for the end of each run: what is in use now stays between the runs.
    pub(super) fn schedule_collection_after_run(&self) {
        self.schedule_collection();
        self.collected_after_run_from.set(self.collected_from.get());
    }

    /// Counts work. True if the interrupt check is due.
    #[inline]
    pub(super) fn charge(&self, bytes: usize) -> bool {
        self.work.set(self.work.get().saturating_add(bytes));
        self.is_due()
    }

    /// Whether there was much work since the last interrupt check.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.work.get() >= WORK_BYTES
    }

    /// Resets the work: the interrupt check is called now.
    pub(super) fn reset_work(&self) {
        self.work.set(0);
    }

    /// Whether C code is running.
    fn is_within_c(&self) -> bool {
        self.depth.get() == 0
    }

    /// Makes the next allocation fail.
    pub(super) fn refuse_next(&self) {
        self.refuses_next.set(true);
    }

    /// Marks Rust code as running until the result is dropped.
    pub(super) fn within_rust(&self) -> Within {
        self.depth.set(self.depth.get() + 1);
        Within { depth: &raw const self.depth }
    }

    /// Marks C code as running until the result is dropped.
    pub(super) fn within_c(&self) -> WithinC {
        WithinC { depth: &raw const self.depth, before: self.depth.replace(0) }
    }
}

/// Marks Rust code as running. It holds a pointer, not a reference, so that it does not keep `Lua` borrowed.
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

/// Marks C code as running, called by Rust code.
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

/// Freed blocks, in a list for each size. A block of a list begins with the address of the next one.
#[derive(Debug)]
struct Spare {
    lists: [Cell<Option<NonNull<Link>>>; SIZES],
    bytes: Cell<usize>,
    most_bytes: usize,
}

/// The beginning of a freed block.
#[derive(Debug)]
struct Link {
    next: Option<NonNull<Link>>,
}

/// The number of block sizes that are kept.
const SIZES: usize = 16;

impl Spare {
    fn new(most_bytes: usize) -> Spare {
        Spare { lists: [const { Cell::new(None) }; SIZES], bytes: Cell::new(0), most_bytes }
    }

    /// Takes a block of that size.
    fn take(&self, size: Size) -> Option<NonNull<u8>> {
        let list = &self.lists[size.0];
        let block = list.get()?;
        // SAFETY: a block of the list is ours, and begins with the link that `keep` wrote.
        list.set(unsafe { block.read() }.next);
        self.bytes.set(self.bytes.get() - size.bytes());
        Some(block.cast())
    }

    /// Keeps a block; false if there are enough.
    ///
    /// # Safety
    /// The block has that size, came from [`alloc::alloc`] and is no longer in use.
    unsafe fn keep(&self, block: NonNull<u8>, size: Size) -> bool {
        let bytes = self.bytes.get() + size.bytes();
        if bytes > self.most_bytes {
            return false;
        }
        let (list, block) = (&self.lists[size.0], block.cast::<Link>());
        // SAFETY: the caller's promise; every size holds a link, and blocks are aligned for one.
        unsafe { block.write(Link { next: list.get() }) };
        list.set(Some(block));
        self.bytes.set(bytes);
        true
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        for size in (0..SIZES).map(Size) {
            while let Some(block) = self.take(size) {
                // SAFETY: it came from `alloc::alloc` with this layout.
                unsafe { alloc::dealloc(block.as_ptr(), layout(size.bytes())) };
            }
        }
    }
}

/// The size class of a small block: the size to which the system's allocator would round it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size(usize);

impl Size {
    const MIN_BYTES: usize = 24;
    const STEP_BYTES: usize = 16;

    /// The size class of `bytes`; `None` if they are none, or too many to be kept.
    fn of(bytes: usize) -> Option<Size> {
        let steps = bytes.saturating_sub(Size::MIN_BYTES).div_ceil(Size::STEP_BYTES);
        (bytes > 0 && steps < SIZES).then_some(Size(steps))
    }

    fn bytes(self) -> usize {
        Size::MIN_BYTES + self.0 * Size::STEP_BYTES
    }
}

/// The layout of a block that has `bytes` for Lua.
fn layout(bytes: usize) -> Layout {
    let whole = Size::of(bytes).map_or(bytes, Size::bytes);
    Layout::from_size_align(whole, ALIGNMENT).expect("Lua asks for no more than fits the address space")
}

/// The allocator function of the Lua state.
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
    let context = unsafe { &*data.cast::<Context>() };
    let account = &context.account;
    // SAFETY: the caller's promise.
    let block = unsafe { account.change(NonNull::new(block.cast()), old, wanted) };
    if account.is_due() && account.is_within_c() {
        context.interrupt();
    }
    block.map_or(ptr::null_mut(), |block| block.as_ptr().cast())
}

/// Whether the system can allocate that many bytes.
#[cold]
fn can_be_had(bytes: usize) -> bool {
    Vec::<u8>::new().try_reserve_exact(bytes).is_ok()
}

impl Account {
    /// Allocates, resizes or frees a block, so that it has `wanted` bytes; `None` if there is no block afterwards.
    ///
    /// # Safety
    /// The block came from here with `old` bytes.
    unsafe fn change(&self, block: Option<NonNull<u8>>, old: usize, wanted: usize) -> Option<NonNull<u8>> {
        let old = if block.is_some() { old } else { 0 };
        let may_fail = wanted > old && self.is_within_c();
        if may_fail && self.refuses_next.take() {
            return None;
        }
        if may_fail && self.is_over(wanted - old) {
            // The run may catch the error: it goes on without its garbage.
            self.collected_from.set(0);
            return None;
        }
        if wanted > isize::MAX as usize - ALIGNMENT {
            return None;
        }
        let changed = match block {
            None if wanted == 0 => return None,
            None => self.make(wanted, may_fail)?,
            Some(block) if wanted == 0 => {
                // SAFETY: the caller's promise.
                unsafe { self.drop_block(block, old) };
                self.used.set(self.used.get() - old);
                return None;
            }
            // SAFETY: as above.
            Some(block) => unsafe { self.resize(block, old, wanted, may_fail)? },
        };
        self.used.set(self.used.get() - old + wanted);
        self.work.set(self.work.get().saturating_add(wanted));
        Some(changed)
    }

    /// Allocates a block; `None` only if `may_fail`.
    fn make(&self, wanted: usize, may_fail: bool) -> Option<NonNull<u8>> {
        if let Some(block) = Size::of(wanted).and_then(|size| self.spare.take(size)) {
            return Some(block);
        }
        let layout = layout(wanted);
        // SAFETY: a layout of something is never empty.
        checked(unsafe { alloc::alloc(layout) }, layout, may_fail)
    }

    /// Frees a block, or keeps it for later.
    ///
    /// # Safety
    /// The block came from here with `old` bytes.
    unsafe fn drop_block(&self, block: NonNull<u8>, old: usize) {
        // SAFETY: the caller's promise; it was made with this layout.
        unsafe {
            if !Size::of(old).is_some_and(|size| self.spare.keep(block, size)) {
                alloc::dealloc(block.as_ptr(), layout(old));
            }
        }
    }

    /// Resizes a block.
    ///
    /// # Safety
    /// The block came from here with `old` bytes.
    unsafe fn resize(&self, block: NonNull<u8>, old: usize, wanted: usize, may_fail: bool) -> Option<NonNull<u8>> {
        match (Size::of(old), Size::of(wanted)) {
            (Some(before), Some(after)) if before == after => Some(block),
            (None, None) => {
                let wanted_layout = layout(wanted);
                // SAFETY: the caller's promise; both are too large to be kept, so these are their layouts.
                checked(unsafe { alloc::realloc(block.as_ptr(), layout(old), wanted) }, wanted_layout, may_fail)
            }
            _ => {
                let moved = self.make(wanted, may_fail)?;
                // SAFETY: both blocks have as many bytes, and they are not the same.
                unsafe {
                    ptr::copy_nonoverlapping(block.as_ptr(), moved.as_ptr(), old.min(wanted));
                    self.drop_block(block, old);
                }
                Some(moved)
            }
        }
    }
}

/// Checks a block from the system. If that may not fail, the process ends without it.
fn checked(block: *mut u8, layout: Layout, may_fail: bool) -> Option<NonNull<u8>> {
    let block = NonNull::new(block);
    if block.is_none() && !may_fail {
        alloc::handle_alloc_error(layout);
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(spare_bytes: usize) -> Account {
        Account { spare: Spare::new(spare_bytes), ..Account::new(1 << 20) }
    }

    #[test]
    fn a_block_fits_into_its_size_class() {
        for bytes in 1..=Size(SIZES - 1).bytes() {
            let size = Size::of(bytes).expect("it is small");
            assert!(size.bytes() >= bytes && size.bytes() < bytes + Size::MIN_BYTES, "{bytes} bytes");
        }
        assert_eq!((Size::of(0), Size::of(Size(SIZES - 1).bytes() + 1)), (None, None));
    }

    #[test]
    fn a_freed_block_is_used_again_for_the_same_size() {
        let account = account(64);
        // SAFETY: each block is freed once, with the size it was allocated with.
        unsafe {
            let first = account.change(None, 0, 30).expect("there is memory");
            assert_eq!(account.change(Some(first), 30, 0), None);
            assert_eq!((account.used(), account.spare.bytes.get()), (0, 40));
            let second = account.change(None, 0, 40);
            assert_eq!((second, account.used(), account.spare.bytes.get()), (Some(first), 40, 0));
            account.change(second, 40, 0);
        }
    }

    #[test]
    fn spare_blocks_stay_within_their_limit() {
        let account = account(64);
        // SAFETY: as above.
        unsafe {
            let blocks: Vec<_> = (0..5).map(|_| account.change(None, 0, 24)).collect();
            blocks.into_iter().for_each(|block| assert_eq!(account.change(block, 24, 0), None));
        }
        assert_eq!(account.spare.bytes.get(), 48);
    }

    #[test]
    fn a_block_keeps_its_bytes_when_it_grows_and_shrinks() {
        let account = account(1 << 10);
        // SAFETY: as above; as many bytes are written and read as the block has.
        unsafe {
            let (mut block, mut bytes) = (account.change(None, 0, 8), 8);
            block.expect("there is memory").as_ptr().copy_from(b"as it is".as_ptr(), 8);
            for wanted in [20, 25, 200, 400, 5_000, 100, 9, 8] {
                block = account.change(block, bytes, wanted);
                bytes = wanted;
                let start = block.expect("there is memory").as_ptr();
                assert_eq!(std::slice::from_raw_parts(start, 8), b"as it is", "{wanted} bytes");
            }
            account.change(block, bytes, 0);
        }
    }

    /// A collection goes through all values, so one after each run would make every script slow.
    #[test]
    fn what_stays_between_runs_is_not_collected_after_each() {
        let account = account(0);
        // SAFETY: as above.
        unsafe {
            let block = account.change(None, 0, 300 << 10);
            assert!(account.is_collection_due_after_run());
            account.schedule_collection_after_run();
            assert!(!account.is_collection_due_after_run());
            let block = account.change(block, 300 << 10, 650 << 10);
            assert!(account.is_collection_due_after_run());
            account.change(block, 650 << 10, 0);
        }
    }

    #[test]
    fn allocations_over_the_limit_fail_unless_rust_code_runs() {
        let account = account(0);
        // SAFETY: as above.
        unsafe {
            assert_eq!(account.change(None, 0, 2 << 20), None);
            let within = account.within_rust();
            let block = account.change(None, 0, 2 << 20);
            drop(within);
            assert!(block.is_some() && account.used() == 2 << 20);
            account.change(block, 2 << 20, 0);
        }
        assert_eq!(account.used(), 0);
    }
}
