//! Memory that the allocator keeps for later use.

/// Returns free memory to the system. Loading a board takes a multiple of the memory that keeping
/// it does.
pub(crate) fn give_back() {
    // SAFETY: takes no pointer; it looks after this thread's own memory, and what ended threads
    // have left.
    unsafe { libmimalloc_sys::mi_collect(true) }
}
