//! Failures, and the barrier that no panic passes. SPDX-License-Identifier: MIT
use crate::memory::enough;
use crate::tables::*;
use std::any::Any;
use std::cell::RefCell;
use std::ffi::CString;
use std::mem::size_of;
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe};
use std::ptr::null;
use std::sync::Once;

/// Why a callback fails.
#[derive(Debug)]
pub enum Failure {
    /// The host has reported the reason.
    Reported(Status),
    /// A status, the port, attribute or file at fault or "", and a sentence.
    New(Status, String, String),
}
pub type Done<T = ()> = Result<T, Failure>;

/// Makes a failure: `return fail(INVALID, "in", "must be dense")`.
pub fn fail<T>(code: Status, port: impl Into<String>, message: impl Into<String>) -> Done<T> {
    Err(Failure::New(code, port.into(), message.into()))
}

/// The result of a function of the host, which reports its failures.
pub(crate) fn check(status: Status) -> Done {
    match status {
        OK => Ok(()),
        code => Err(Failure::Reported(code)),
    }
}

thread_local! {
    /// The place of the last panic of this thread.
    static PLACE: RefCell<String> = RefCell::new(String::new());
}

/// Calls `work`. Panics and refused memory become failures; their place and message are not printed but reported.
pub(crate) fn caught<T>(work: impl FnOnce() -> Done<T>) -> Done<T> {
    // The hook is that of this plugin's own copy of the standard library.
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        set_hook(Box::new(|info| {
            let place = info.location().map_or(String::new(), |at| format!(" at {}:{}", at.file(), at.line()));
            PLACE.with(|last| last.replace(place));
        }))
    });
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        fail(PLUGIN_FAULT, "", format!("panic{}: {}", PLACE.with(|last| last.take()), text_of(&*panic)))
    });
    enough().and(done)
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a value of unknown type")
}

/// The body of a callback: calls `work`, reports its failure or panic to `errors`, and returns its status.
///
/// # Safety
/// `errors` is the sink that came with the call.
pub(crate) unsafe fn answered(errors: *const Errors, work: impl FnOnce() -> Done<Status>) -> Status {
    let (code, port, message) = match caught(work) {
        Ok(status) => return status,
        Err(Failure::Reported(code)) => return code,
        Err(Failure::New(code, port, message)) => (code, c_text(&port), c_text(&message)),
    };
    let report = ErrorReport {
        size: size_of::<ErrorReport>() as u32,
        code,
        message: message.as_ptr(),
        port: if port.as_bytes().is_empty() { null() } else { port.as_ptr() },
        expected: null(),
        actual: null(),
    };
    ((*errors).report)((*errors).this, &report);
    code
}

/// Like `answered`, for work that is done or fails.
///
/// # Safety
/// As for `answered`.
pub(crate) unsafe fn guarded(errors: *const Errors, work: impl FnOnce() -> Done) -> Status {
    answered(errors, || work().map(|()| OK))
}

/// The body of a callback without a status.
pub(crate) fn dropped(work: impl FnOnce()) {
    let _ = caught(|| {
        work();
        Ok(())
    });
}

pub(crate) fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}
