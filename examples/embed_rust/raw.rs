//! The part of tenon/tenon.h that this application uses, written by hand after the headers, in their order. Members
//! that are not used here keep their names, so that `..zeroed` of an options struct means "not given", as in C.
//! SPDX-License-Identifier: Apache-2.0
#![allow(dead_code)]
use std::mem::size_of;
use std::os::raw::{c_char, c_void};

pub type Status = i32;
pub const OK: Status = 0;
pub const INVALID: Status = 1;
pub const MISUSE: Status = 2;
pub const NOT_FOUND: Status = 3;

pub type Dtype = u32;
pub const I64: Dtype = 64 << 8 | 1 << 16;
pub const F32: Dtype = 2 | 32 << 8 | 1 << 16;

pub const ATTR_BOOL: i32 = 1;
pub const ATTR_INT: i32 = 2;
pub const ATTR_FLOAT: i32 = 3;
pub const ATTR_STRING: i32 = 4;

pub type Text = *const c_char;

/// tn_host, which only the library knows.
pub enum Host {}

#[repr(C)]
pub struct Error {
    pub size: u32,
    pub code: Status,
    pub message: [c_char; 4088],
    pub component: [c_char; 256],
    pub subject: [c_char; 1024],
}

/// tn_layer, tn_parameters, tn_machine and tn_updater, which are alike.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Handle {
    pub index: u32,
    pub generation: u32,
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
pub struct NamedValue {
    pub name: Text,
    pub value: Value,
}

#[repr(C)]
pub struct Array {
    pub dtype: Dtype,
    pub rank: i32,
    pub shape: [i64; 8],
    pub data: *mut c_void,
    pub storage: i32,
    pub levels: u32,
    pub offsets: [*const i64; 2],
    pub ids: *const i64,
    pub samples: i64,
    pub device_type: i32,
    pub device_id: i32,
    pub strides: *const i64,
    pub reserved: [*mut c_void; 2],
}

#[repr(C)]
pub struct DataOptions {
    pub size: u32,
    pub dtype: Dtype,
    pub name: Text,
    pub shape: *const i64,
    pub rank: i32,
    pub reserved: i32,
    pub index_limit: i64,
    pub scale: f64,
    pub offset: f64,
    pub storage: i32,
    pub levels: u32,
    pub sequence: Text,
}
#[repr(C)]
pub struct LayerOptions {
    pub size: u32,
    pub inputs_count: u32,
    pub kind: Text, // `type` is a word of Rust
    pub name: Text,
    pub inputs: *const Handle,
    pub attributes: *const NamedValue,
    pub attributes_count: u32,
    pub reserved: u32,
    pub like: Handle,
}
#[repr(C)]
pub struct MachineOptions {
    pub size: u32,
    pub compute: Dtype,
    pub max_samples: i64,
    pub training: u32,
    pub keep_all: u32,
    pub device: Text,
    pub seed: u64,
    pub immutable_parameters: *const Text,
    pub immutable_parameters_count: u32,
    pub reserved: u32,
    pub max_rows: i64,
}
#[repr(C)]
pub struct Feed {
    pub name: Text,
    pub values: Array,
}

// A struct of another size than in C on x86-64 does not compile.
const _: () = assert!(size_of::<Error>() == 5376 && size_of::<Handle>() == 8);
const _: () = assert!(size_of::<NamedValue>() == 24 && size_of::<Array>() == 152 && size_of::<Feed>() == 160);
const _: () = assert!(size_of::<DataOptions>() == 72 && size_of::<LayerOptions>() == 56);
const _: () = assert!(size_of::<MachineOptions>() == 64);

#[link(name = "tenon")]
extern "C" {
    pub fn tn_version() -> Text;
    pub fn tn_host_create(options: *const c_void, host: *mut *mut Host, error: *mut Error) -> Status;
    pub fn tn_host_release(host: *mut Host);
    pub fn tn_data_create(host: *mut Host, options: *const DataOptions, layer: *mut Handle, error: *mut Error)
        -> Status;
    pub fn tn_layer_create(host: *mut Host, options: *const LayerOptions, layer: *mut Handle, error: *mut Error)
        -> Status;
    pub fn tn_layer_release(host: *mut Host, layer: Handle, error: *mut Error) -> Status;
    pub fn tn_parameters_create(
        host: *mut Host, outputs: *const Handle, outputs_count: u32, seed: u64, parameters: *mut Handle,
        error: *mut Error,
    ) -> Status;
    pub fn tn_parameters_release(host: *mut Host, parameters: Handle, error: *mut Error) -> Status;
    pub fn tn_model_save(
        host: *mut Host, parameters: Handle, outputs: *const Handle, outputs_count: u32, path: Text, error: *mut Error,
    ) -> Status;
    pub fn tn_model_load(
        host: *mut Host, path: Text, outputs: *mut Handle, outputs_count: *mut u32, parameters: *mut Handle,
        error: *mut Error,
    ) -> Status;
    pub fn tn_machine_create(
        host: *mut Host, parameters: Handle, outputs: *const Handle, outputs_count: u32,
        options: *const MachineOptions, machine: *mut Handle, error: *mut Error,
    ) -> Status;
    pub fn tn_machine_forward(
        host: *mut Host, machine: Handle, feeds: *const Feed, feeds_count: u32, error: *mut Error,
    ) -> Status;
    pub fn tn_machine_backward(host: *mut Host, machine: Handle, error: *mut Error) -> Status;
    pub fn tn_machine_output(
        host: *mut Host, machine: Handle, layer: Handle, values: *mut Array, error: *mut Error,
    ) -> Status;
    pub fn tn_machine_cost(host: *mut Host, machine: Handle, cost: *mut f64, error: *mut Error) -> Status;
    pub fn tn_machine_release(host: *mut Host, machine: Handle, error: *mut Error) -> Status;
    pub fn tn_updater_create(
        host: *mut Host, kind: Text, attributes: *const NamedValue, attributes_count: u32, updater: *mut Handle,
        error: *mut Error,
    ) -> Status;
    pub fn tn_updater_update(host: *mut Host, updater: Handle, machine: Handle, error: *mut Error) -> Status;
    pub fn tn_updater_release(host: *mut Host, updater: Handle, error: *mut Error) -> Status;
}
