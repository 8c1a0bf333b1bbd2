//! An allocator that counts: the system's, and for each thread how much it holds and has held at most.
//!
//! A test crate that wants it makes it its global allocator. In all others every count stays 0.

#![expect(unsafe_code, reason = "an allocator that counts is one; it hands every call on as it is")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The allocator.
pub struct Counting;

thread_local! {
    /// The bytes that this thread allocated minus those that it freed, which another may have allocated.
    static HELD: Cell<isize> = const { Cell::new(0) };
    /// The most bytes that were held since the peak was last reset.
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// Does something; returns its result, and the most bytes by which it raised what this thread holds.
pub fn peak_of<R>(act: impl FnOnce() -> R) -> (R, usize) {
    let (before, outer) = (HELD.get(), PEAK.get());
    PEAK.set(before);
    let result = act();
    let peak = PEAK.get();
    PEAK.set(peak.max(outer));
    (result, (peak - before).unsigned_abs())
}

fn count(change: isize) {
    let held = HELD.get() + change;
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
}

// SAFETY: every call is the system allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks are there for a moment, unless the system can extend the first, which is not counted on.
        count(size.cast_signed());
        count(-layout.size().cast_signed());
        // SAFETY: the caller's promise.
        unsafe { System.realloc(place, layout, size) }
    }
}
