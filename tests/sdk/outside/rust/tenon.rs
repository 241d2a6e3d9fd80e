//! The part of Tenon's plugin interface 0.2 that swish.rs uses, written by hand after tenon/plugin.h and the headers
//! that it includes, with the wrappers that keep panics inside of the plugin.
//! SPDX-License-Identifier: Apache-2.0
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{c_void, CStr, CString};
use std::mem::size_of;
use std::os::raw::c_char;
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe};
use std::ptr::null;
use std::sync::{Mutex, Once};

#[cfg(not(panic = "unwind"))]
compile_error!("a panic must not end the process: -C panic=unwind");

pub const OK: Status = 0;
pub const INVALID: Status = 1;
pub const UNSUPPORTED: Status = 4;
pub const PLUGIN_FAULT: Status = 14;
pub const COMPUTE: u32 = 0;
pub const F32: u32 = 2 | 32 << 8 | 1 << 16;
pub const DENSE: i32 = 0;
pub const FORWARD: i32 = 0;
pub const BACKWARD: i32 = 1;
pub const ATTR_BOOL: i32 = 1;
pub const ATTR_FLOAT: i32 = 3;
pub const REQUEST_NONE: u8 = 0;
pub const REQUEST_ADD: u8 = 2;
pub const KIND_FLOAT: u8 = 0;
pub const EXTENT_FULL: u8 = 3;
pub const OP_INPUT: u16 = 1;
pub const OP_CONSTANT: u16 = 2;
pub const OP_ADD: u16 = 10;
pub const OP_MUL: u16 = 12;
pub const OP_DIV: u16 = 13;
pub const OP_EXP: u16 = 21;

pub type Status = i32;
pub type Text = *const c_char;

/// A table that never changes, and may hold pointers to other such tables.
#[repr(transparent)]
pub struct Table<T>(pub T);
// SAFETY: nobody writes a table after the linker has made it.
unsafe impl<T> Sync for Table<T> {}

// ---- structs, in the order of the headers; members that are not used here are called `unused`

#[repr(C)]
pub struct Abi {
    pub major: u16,
    pub built: u16,
    pub required: u16,
    pub reserved: u16,
}
#[repr(C)]
pub struct Spec {
    pub size: u32,
    pub dtype: u32,
    pub storage: i32,
    pub rank: i32,
    pub dims: *const c_void,
    pub layout: u32,
    pub levels: u32,
    pub outer: *const c_void,
}

/// tn_tensor with the members of its DLTensor.
#[repr(C)]
pub struct Tensor {
    pub size: u32,
    pub storage: i32,
    pub layout: u32,
    pub alignment: u32,
    pub flags: u64,
    pub data: *mut c_void,
    pub device_type: i32,
    pub device_id: i32,
    pub ndim: i32,
    pub dtype: u32,
    pub shape: *const i64,
    pub strides: *const i64,
    pub byte_offset: u64,
    pub part: *const c_void,
}
#[repr(C)]
pub union ValueOf {
    pub i: i64,
    pub f: f64,
    pub s: Text,
}
#[repr(C)]
pub struct Value {
    pub kind: i32,
    pub count: u32,
    pub of: ValueOf,
}
#[repr(C)]
pub struct Attribute {
    pub size: u32,
    pub kind: i32,
    pub name: Text,
    pub doc: Text,
    pub flags: u32,
    pub has_range: u32,
    pub initial: Value,
    pub minimum: f64,
    pub maximum: f64,
    pub choices: *const Text,
}
#[repr(C)]
pub struct Attributes {
    pub size: u32,
    pub count: u32,
    pub declared: *const *const Attribute,
    pub values: *const Value,
}
#[repr(C)]
pub struct Instruction {
    pub op: u16,
    pub kind: u8,
    pub extent: u8,
    pub a: i32,
    pub b: i32,
    pub c: i32,
    pub number: f64,
}
#[repr(C)]
pub struct ProgramInput {
    pub extent: u8,
    pub kind: u8,
    pub reserved: u16,
}
#[repr(C)]
pub struct ProgramOutput {
    pub value: i32,
    pub dtype: u32,
}
#[repr(C)]
pub struct Program {
    pub size: u32,
    pub instructions_count: u32,
    pub instructions: *const Instruction,
    pub inputs_count: u32,
    pub outputs_count: u32,
    pub inputs: *const ProgramInput,
    pub outputs: *const ProgramOutput,
}
#[repr(C)]
pub struct ErrorReport {
    pub size: u32,
    pub code: Status,
    pub message: Text,
    pub port: Text,
    pub expected: *const Spec,
    pub actual: *const Spec,
}
#[repr(C)]
pub struct Errors {
    pub size: u32,
    pub reserved: u32,
    pub this: *mut c_void,
    pub report: unsafe extern "C" fn(*mut c_void, *const ErrorReport),
}
pub type Task = unsafe extern "C" fn(*mut c_void, i64, i32);
#[repr(C)]
pub struct Parallel {
    pub size: u32,
    pub workers: i32,
    pub this: *mut c_void,
    pub for_each: unsafe extern "C" fn(*mut c_void, i64, Task, *mut c_void),
    pub unused: usize,
}
#[repr(C)]
pub struct Execution {
    pub size: u32,
    pub reserved: u32,
    pub device: *mut c_void,
    pub stream: *mut c_void,
    pub symbols: *const i64,
    pub random: *const c_void,
    pub parallel: *const Parallel,
    pub errors: *const Errors,
}
#[repr(C)]
pub struct Call {
    pub size: u32,
    pub inputs_count: u32,
    pub outputs_count: u32,
    pub reserved: u32,
    pub inputs: *const *const Tensor,
    pub outputs: *const *mut Tensor,
    pub requests: *const u8,
    pub workspace: *mut c_void,
    pub draw: u64,
}
pub type Run = unsafe extern "C" fn(*mut c_void, *const Execution, *const Call) -> Status;
#[repr(C)]
pub struct Prepared {
    pub size: u32,
    pub traits: u32,
    pub binding: *mut c_void,
    pub workspace_bytes: u64,
    pub run: Option<Run>,
    pub destroy: Option<unsafe extern "C" fn(*mut c_void)>,
}
#[repr(C)]
pub struct Pointwise {
    pub size: u32,
    pub leading: i32,
    pub program: *const Program,
    pub inputs: *const i32,
    pub gradient: *const Program,
}
#[repr(C)]
pub struct Builder {
    pub size: u32,
    pub training: u32,
    pub this: *mut c_void,
    pub errors: *const Errors,
    pub status: unsafe extern "C" fn(*mut c_void) -> Status,
    pub input: unsafe extern "C" fn(*mut c_void, u32, u32) -> i32,
    pub unused: [usize; 4],
    pub pointwise: unsafe extern "C" fn(*mut c_void, *const Pointwise, *mut i32) -> Status,
    pub unused2: [usize; 3],
    pub output: unsafe extern "C" fn(*mut c_void, u32, i32) -> Status,
    pub unused3: [usize; 12],
    pub user: *mut c_void,
}
#[repr(C)]
pub struct Port {
    pub size: u32,
    pub flags: u32,
    pub name: Text,
    pub doc: Text,
}
#[repr(C)]
pub struct Planner {
    pub size: u32,
    pub inputs_count: u32,
    pub this: *mut c_void,
    pub errors: *const Errors,
    pub attributes: *const Attributes,
    pub inputs: *const *const Spec,
    pub output: unsafe extern "C" fn(*mut c_void, u32, *const Spec) -> Status,
    pub unused: [usize; 6],
    pub user: *mut c_void,
}
#[repr(C)]
pub struct LayerDescription {
    pub size: u32,
    pub role: i32,
    pub name: Text,
    pub doc: Text,
    pub inputs_count: u32,
    pub outputs_count: u32,
    pub inputs: *const *const Port,
    pub outputs: *const *const Port,
    pub attributes_count: u32,
    pub parameters_count: u32,
    pub attributes: *const *const Attribute,
    pub parameters: *const Text,
    pub state_version: u32,
    pub reserved: u32,
}
#[repr(C)]
pub struct LayerType {
    pub size: u32,
    pub reserved: u32,
    pub description: *const LayerDescription,
    pub plan: unsafe extern "C" fn(*const Planner) -> Status,
    pub expand: usize,
    pub lower: Option<unsafe extern "C" fn(*const Attributes, *const Builder) -> Status>,
    pub finalize: usize,
    pub extension: usize,
    pub user: *const c_void,
}
#[repr(C)]
pub struct KernelSite {
    pub size: u32,
    pub compute: u32,
    pub attributes: *const Attributes,
    pub inputs_count: u32,
    pub outputs_count: u32,
    pub unused: [u32; 3],
    pub training: u32,
    pub inputs: *const *const Spec,
    pub unused2: [usize; 9],
    pub errors: *const Errors,
    pub user: *const c_void,
    pub state_version: u32,
    pub reserved: u32,
}
#[repr(C)]
pub struct KernelNeeds {
    pub size: u32,
    pub draws: u32,
    pub reads_in: *mut u8,
    pub unused: [usize; 6],
}
#[repr(C)]
pub struct Kernel {
    pub size: u32,
    pub score: i32,
    pub name_of_type: Text,
    pub device: Text,
    pub name: Text,
    pub dtypes_count: u32,
    pub reserved: u32,
    pub dtypes: *const u32,
    pub supports: unsafe extern "C" fn(*const KernelSite, *mut i32) -> Status,
    pub query: unsafe extern "C" fn(*const KernelSite, *mut KernelNeeds) -> Status,
    pub prepare: unsafe extern "C" fn(*const KernelSite, i32, *mut Prepared) -> Status,
    pub fusion: usize,
    pub shared: usize,
    pub user: *const c_void,
    pub attributes: usize,
    pub attributes_count: u32,
    pub state_version: u32,
}
#[repr(C)]
pub struct Plugin {
    pub size: u32,
    pub reserved: u32,
    pub abi: Abi,
    pub id: Text,
    pub version: Text,
    pub doc: Text,
    pub license: Text,
    pub isa: Text,
    pub layers_count: u32,
    pub kernels_count: u32,
    pub layers: *const *const LayerType,
    pub kernels: *const *const Kernel,
    pub unused: [u64; 8],
}

/// The bytes of these structs in 0.2. Their members have no gaps, so equal sizes mean that none is missing.
macro_rules! bytes {
    ($($name:ty: $bytes:literal,)*) => { $(const _: () = assert!(size_of::<$name>() == $bytes);)* };
}
bytes! {
    Abi: 8, Spec: 40, Tensor: 80, Value: 16, Attribute: 72, Attributes: 24, Instruction: 24, ProgramInput: 4,
    ProgramOutput: 8, Program: 40, ErrorReport: 40, Errors: 24, Parallel: 32, Execution: 56, Call: 56, Prepared: 40,
    Pointwise: 32, Builder: 216, Port: 24, Planner: 104, LayerDescription: 80, LayerType: 64, KernelSite: 144,
    KernelNeeds: 64, Kernel: 112, Plugin: 144,
}

// ---- the note

/// Room for the manifest, which `tenon plugins seal` fills in: tenon/plugin.h, TN_RESERVE_NOTE.
#[repr(C, align(4))]
pub struct Note {
    owner_bytes: u32,
    text_bytes: u32,
    kind: u32,
    owner: [u8; 8],
    text: [u8; 4096],
}
impl Note {
    pub const fn reserved() -> Note {
        Note { owner_bytes: 6, text_bytes: 4096, kind: 2, owner: *b"Tenon\0\0\0", text: [0; 4096] }
    }
}

// ---- errors and panics

/// Why a callback fails.
pub enum Failure {
    /// The host has reported the reason.
    Reported(Status),
    /// A status, the port or attribute at fault, and a sentence.
    New(Status, Option<&'static str>, String),
}

/// The result of a function of the host, which reports its failures.
pub fn check(status: Status) -> Result<(), Failure> {
    match status {
        OK => Ok(()),
        code => Err(Failure::Reported(code)),
    }
}

thread_local! {
    /// The place of the last panic of this thread.
    static PLACE: RefCell<String> = RefCell::new(String::new());
}

/// Calls `work`. Panics become failures; their place and message are not printed but reported.
fn caught<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // The hook is that of this plugin's own copy of the library.
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        set_hook(Box::new(|info| {
            let place = info.location().map_or(String::new(), |at| format!(" at {}:{}", at.file(), at.line()));
            PLACE.with(|last| last.replace(place));
        }))
    });
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let message = format!("panic{}: {}", PLACE.with(|last| last.take()), text_of(&*panic));
        Err(Failure::New(PLUGIN_FAULT, None, message))
    })
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a value of unknown type")
}

/// The body of a callback: calls `work`, reports its failure or panic to `errors`, and returns the status.
///
/// # Safety
/// `errors` is the sink that came with the call.
pub unsafe fn guarded(errors: *const Errors, work: impl FnOnce() -> Result<(), Failure>) -> Status {
    let (code, port, message) = match caught(work) {
        Ok(()) => return OK,
        Err(Failure::Reported(code)) => return code,
        Err(Failure::New(code, port, message)) => (code, port.map(c_text), c_text(&message)),
    };
    let report = ErrorReport {
        size: size_of::<ErrorReport>() as u32,
        code,
        message: message.as_ptr(),
        port: port.as_ref().map_or(null(), |port| port.as_ptr()),
        expected: null(),
        actual: null(),
    };
    ((*errors).report)((*errors).this, &report);
    code
}

/// The body of a callback without a status.
pub fn dropped(work: impl FnOnce()) {
    let _ = caught(|| {
        work();
        Ok(())
    });
}

fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

// ---- threads

struct Work<'a> {
    body: &'a (dyn Fn(i64) + Sync),
    failed: Mutex<Option<Failure>>,
}

unsafe extern "C" fn task(argument: *mut c_void, index: i64, _worker: i32) {
    let work = &*(argument as *const Work);
    let done = caught(|| {
        (work.body)(index);
        Ok(())
    });
    if let (Err(failure), Ok(mut first)) = (done, work.failed.lock()) {
        first.get_or_insert(failure);
    }
}

/// Calls body(index) for each index in [0, count) on the host's threads. A panic of one becomes the failure of all.
///
/// # Safety
/// `execution` is that of the running call.
pub unsafe fn for_each(execution: &Execution, count: i64, body: &(dyn Fn(i64) + Sync)) -> Result<(), Failure> {
    let work = Work { body, failed: Mutex::new(None) };
    let parallel = &*execution.parallel;
    (parallel.for_each)(parallel.this, count, task, &work as *const Work as *mut c_void);
    work.failed.into_inner().unwrap_or(None).map_or(Ok(()), Err)
}

// ---- attributes and tensors

impl Attributes {
    /// The value of an attribute, if it is declared.
    unsafe fn find(&self, name: &str) -> Option<&Value> {
        let is_called = |i: &usize| CStr::from_ptr((**self.declared.add(*i)).name).to_bytes() == name.as_bytes();
        (0..self.count as usize).find(is_called).map(|i| &*self.values.add(i))
    }
    /// # Safety
    /// `name` is declared as ATTR_FLOAT, with a default.
    pub unsafe fn number(&self, name: &str) -> f64 {
        self.find(name).expect("an undeclared attribute").of.f
    }
    /// # Safety
    /// `name` is declared as ATTR_BOOL, with a default.
    pub unsafe fn truth(&self, name: &str) -> bool {
        self.find(name).expect("an undeclared attribute").of.i != 0
    }
}

impl Tensor {
    /// The elements of the tensor.
    pub unsafe fn count(&self) -> usize {
        (0..self.ndim as usize).map(|i| *self.shape.add(i) as usize).product()
    }
    /// The first float of the tensor.
    pub unsafe fn floats(&self) -> *mut f32 {
        (self.data as *mut u8).add(self.byte_offset as usize) as *mut f32
    }
}
