//! Memory that runs out. The standard library ends the process when an allocation fails, which a plugin must not do. So
//! an allocation that the system refuses comes from a small reserve, and the callback that asked for it fails with
//! OUT_OF_MEMORY once its code returns, which frees the reserve. An allocation for which that is too small, such as a
//! large vector, still ends the process. So what is as large as the data grows by `push`, `extend` and `read_file`, which
//! fail with OUT_OF_MEMORY instead. SPDX-License-Identifier: MIT
use crate::failure::*;
use crate::tables::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};
use std::fs::File;
use std::hint::spin_loop;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const BYTES: usize = 1 << 18;

#[repr(align(64))]
#[allow(dead_code)] // read by pointers alone
struct Bytes([u8; BYTES]);

/// What of the reserve is in use: the first `used` bytes, until none of the `live` allocations is left.
struct InUse {
    used: usize,
    live: usize,
}

struct Reserve {
    locked: AtomicBool,
    in_use: UnsafeCell<InUse>,
    bytes: UnsafeCell<Bytes>,
}
// SAFETY: `locked` guards `in_use`; no two allocations share bytes.
unsafe impl Sync for Reserve {}

static RESERVE: Reserve = Reserve {
    locked: AtomicBool::new(false),
    in_use: UnsafeCell::new(InUse { used: 0, live: 0 }),
    bytes: UnsafeCell::new(Bytes([0; BYTES])),
};

thread_local! {
    /// Whether this thread took memory from the reserve since the last `enough`.
    static SHORT: Cell<bool> = const { Cell::new(false) };
}

impl Reserve {
    fn first(&self) -> *mut u8 {
        self.bytes.get() as *mut u8
    }
    fn has(&self, memory: *mut u8) -> bool {
        (memory as usize).wrapping_sub(self.first() as usize) < BYTES
    }
    fn change<R>(&self, change: impl FnOnce(&mut InUse) -> R) -> R {
        while self.locked.swap(true, Ordering::Acquire) {
            spin_loop();
        }
        // SAFETY: this thread alone has the lock.
        let result = change(unsafe { &mut *self.in_use.get() });
        self.locked.store(false, Ordering::Release);
        result
    }
    fn take(&self, layout: Layout) -> *mut u8 {
        let made = self.change(|it| {
            let begin = (it.used + layout.align() - 1) / layout.align() * layout.align();
            if layout.align() > 64 || begin > BYTES || layout.size() > BYTES - begin {
                return std::ptr::null_mut();
            }
            it.used = begin + layout.size();
            it.live += 1;
            self.first().wrapping_add(begin)
        });
        if !made.is_null() {
            let _ = SHORT.try_with(|short| short.set(true));
        }
        made
    }
    fn give_back(&self) {
        self.change(|it| {
            it.live -= 1;
            if it.live == 0 {
                it.used = 0;
            }
        })
    }
}

/// Fails if an allocation of this thread was refused since the last call.
pub(crate) fn enough() -> Done {
    if SHORT.with(|short| short.replace(false)) {
        fail(OUT_OF_MEMORY, "", "out of memory")
    } else {
        Ok(())
    }
}

/// Makes room for `more` elements.
pub fn reserve<T>(list: &mut Vec<T>, more: usize) -> Done {
    list.try_reserve(more).or_else(|_| fail(OUT_OF_MEMORY, "", "out of memory"))
}
/// Appends an element.
pub fn push<T>(list: &mut Vec<T>, element: T) -> Done {
    reserve(list, 1)?;
    list.push(element);
    Ok(())
}
/// Appends elements.
pub fn extend<T>(list: &mut Vec<T>, elements: impl IntoIterator<Item = T>) -> Done {
    elements.into_iter().try_for_each(|element| push(list, element))
}

/// The bytes of a file. A failure names the file.
pub fn read_file(path: &Path) -> Done<Vec<u8>> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => Failure::New(NOT_FOUND, path.display().to_string(), String::from("cannot be opened")),
        _ => Failure::New(IO, path.display().to_string(), error.to_string()),
    };
    let mut file = File::open(path).map_err(failed)?;
    let (mut bytes, mut end) = (Vec::new(), 0);
    loop {
        if end == bytes.len() {
            let more = bytes.len().max(1 << 16);
            reserve(&mut bytes, more)?;
            bytes.resize(end + more, 0);
        }
        match file.read(&mut bytes[end..]) {
            Ok(0) => break,
            Ok(got) => end += got,
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(error) => return Err(failed(error)),
        }
    }
    bytes.truncate(end);
    Ok(bytes)
}
/// The text of a file in UTF-8. A failure names the file.
pub fn read_text(path: &Path) -> Done<String> {
    String::from_utf8(read_file(path)?).or_else(|_| fail(BAD_DATA, path.display().to_string(), "is not a text"))
}

struct Memory;

#[global_allocator]
static MEMORY: Memory = Memory;

// SAFETY: memory is that of the system, or of the reserve, which takes back its own.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let made = System.alloc(layout);
        if made.is_null() {
            RESERVE.take(layout)
        } else {
            made
        }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if RESERVE.has(memory) {
            RESERVE.give_back()
        } else {
            System.dealloc(memory, layout)
        }
    }
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let moved = if RESERVE.has(memory) { std::ptr::null_mut() } else { System.realloc(memory, layout, bytes) };
        if !moved.is_null() {
            return moved;
        }
        let made = self.alloc(Layout::from_size_align_unchecked(bytes, layout.align()));
        if !made.is_null() {
            std::ptr::copy_nonoverlapping(memory, made, layout.size().min(bytes));
            self.dealloc(memory, layout);
        }
        made
    }
}
