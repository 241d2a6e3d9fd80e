//! The structs and numbers of the plugin interface 0.4 that plugins in Rust use, after tenon/plugin.h and the headers
//! that it includes, which state the meaning of each member. `layouts` and `numbers` list them for the test that
//! compares them with the C headers. SPDX-License-Identifier: MIT
use std::ffi::c_void;
use std::os::raw::c_char;

pub type Status = i32;
pub type Text = *const c_char;
pub type Ref = i32;

/// A table that never changes, and may hold pointers to other such tables.
#[repr(transparent)]
pub struct Table<T>(pub T);
// SAFETY: nobody writes a table after the linker has made it.
unsafe impl<T> Sync for Table<T> {}

/// The name of a struct in C, its bytes, and the names and offsets of its members.
pub type Layout = (&'static str, usize, Vec<(&'static str, usize)>);

/// Declares structs with the layout of C. `this` and `r#type` stand for the members `self` and `type`.
macro_rules! structs {
    ($($(#[$doc:meta])* $name:ident = $c:literal { $($member:ident: $type:ty,)* })*) => {
        $($(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub struct $name { $(pub $member: $type,)* })*

        /// The layout of each struct above.
        pub fn layouts() -> Vec<Layout> {
            vec![$({
                let whole = std::mem::MaybeUninit::<$name>::uninit();
                let begin = whole.as_ptr();
                // SAFETY: addr_of makes addresses within the struct without reading it.
                let members = unsafe {
                    vec![$((stringify!($member), std::ptr::addr_of!((*begin).$member) as usize - begin as usize),)*]
                };
                ($c, std::mem::size_of::<$name>(), members)
            },)*]
        }
    };
}
/// Declares numbers of the C headers.
macro_rules! numbers {
    ($($name:ident: $type:ty = $value:expr, $c:literal;)*) => {
        $(pub const $name: $type = $value;)*

        /// The name in C and the value of each number above.
        pub fn numbers() -> Vec<(&'static str, i64)> {
            vec![$(($c, $name as i64),)*]
        }
    };
}

numbers! {
    ABI_MAJOR: u16 = 0, "TN_ABI_MAJOR";
    ABI_MINOR: u16 = 4, "TN_ABI_MINOR";
    OK: Status = 0, "TN_OK";
    INVALID: Status = 1, "TN_INVALID";
    MISUSE: Status = 2, "TN_MISUSE";
    NOT_FOUND: Status = 3, "TN_NOT_FOUND";
    UNSUPPORTED: Status = 4, "TN_UNSUPPORTED";
    BAD_DATA: Status = 5, "TN_BAD_DATA";
    OUT_OF_MEMORY: Status = 7, "TN_OUT_OF_MEMORY";
    IO: Status = 8, "TN_IO";
    NEED_CAPACITY: Status = 10, "TN_NEED_CAPACITY";
    END: Status = 11, "TN_END";
    PLUGIN_FAULT: Status = 14, "TN_PLUGIN_FAULT";
    COMPUTE: u32 = 0, "TN_COMPUTE";
    I64: u32 = 64 << 8 | 1 << 16, "TN_I64";
    I32: u32 = 32 << 8 | 1 << 16, "TN_I32";
    U8: u32 = 1 | 8 << 8 | 1 << 16, "TN_U8";
    F32: u32 = 2 | 32 << 8 | 1 << 16, "TN_F32";
    F64: u32 = 2 | 64 << 8 | 1 << 16, "TN_F64";
    DENSE: i32 = 0, "TN_DENSE";
    RAGGED: i32 = 2, "TN_RAGGED";
    CSR: i32 = 3, "TN_CSR";
    SYMBOL_NONE: i32 = 0, "TN_SYMBOL_NONE";
    SYMBOL_SAMPLES: i32 = 1, "TN_SYMBOL_SAMPLES";
    UNBOUNDED: i64 = -1, "TN_UNBOUNDED";
    ATTR_BOOL: i32 = 1, "TN_ATTR_BOOL";
    ATTR_INT: i32 = 2, "TN_ATTR_INT";
    ATTR_FLOAT: i32 = 3, "TN_ATTR_FLOAT";
    ATTR_STRING: i32 = 4, "TN_ATTR_STRING";
    ATTR_STRINGS: i32 = 7, "TN_ATTR_STRINGS";
    ATTR_REQUIRED: u32 = 1, "TN_ATTR_REQUIRED";
    SCALAR: u8 = 0, "TN_SCALAR";
    PER_COLUMN: u8 = 1, "TN_PER_COLUMN";
    PER_ROW: u8 = 2, "TN_PER_ROW";
    FULL: u8 = 3, "TN_FULL";
    KIND_FLOAT: u8 = 0, "TN_FLOAT";
    KIND_INT: u8 = 1, "TN_INT";
    KIND_LOGICAL: u8 = 2, "TN_LOGICAL";
    OP_INPUT: u16 = 1, "TN_OP_INPUT";
    OP_CONSTANT: u16 = 2, "TN_OP_CONSTANT";
    OP_CAST: u16 = 5, "TN_OP_CAST";
    OP_ADD: u16 = 10, "TN_OP_ADD";
    OP_SUB: u16 = 11, "TN_OP_SUB";
    OP_MUL: u16 = 12, "TN_OP_MUL";
    OP_DIV: u16 = 13, "TN_OP_DIV";
    OP_MIN: u16 = 14, "TN_OP_MIN";
    OP_MAX: u16 = 15, "TN_OP_MAX";
    OP_NEG: u16 = 16, "TN_OP_NEG";
    OP_ABS: u16 = 17, "TN_OP_ABS";
    OP_SQRT: u16 = 20, "TN_OP_SQRT";
    OP_EXP: u16 = 21, "TN_OP_EXP";
    OP_LOG: u16 = 23, "TN_OP_LOG";
    OP_TANH: u16 = 25, "TN_OP_TANH";
    OP_POW: u16 = 29, "TN_OP_POW";
    OP_EQUAL: u16 = 30, "TN_OP_EQUAL";
    OP_LESS: u16 = 31, "TN_OP_LESS";
    OP_SELECT: u16 = 36, "TN_OP_SELECT";
    OP_REDUCE_SUM: u16 = 40, "TN_OP_REDUCE_SUM";
    OP_REDUCE_MAX: u16 = 41, "TN_OP_REDUCE_MAX";
    OP_SIGN: u16 = 50, "TN_OP_SIGN";
    PORT_INTEGER: u32 = 4, "TN_PORT_INTEGER";
    ROLE_LAYER: i32 = 0, "TN_ROLE_LAYER";
    ROLE_COST: i32 = 1, "TN_ROLE_COST";
    ROLE_METRIC: i32 = 2, "TN_ROLE_METRIC";
    INIT_CONSTANT: i32 = 0, "TN_INIT_CONSTANT";
    INIT_UNIFORM: i32 = 1, "TN_INIT_UNIFORM";
    INIT_NORMAL: i32 = 2, "TN_INIT_NORMAL";
    TRANSPOSE_A: u32 = 1, "TN_TRANSPOSE_A";
    TRANSPOSE_B: u32 = 2, "TN_TRANSPOSE_B";
    FORWARD: i32 = 0, "TN_FORWARD";
    BACKWARD: i32 = 1, "TN_BACKWARD";
    REQUEST_NONE: u8 = 0, "TN_REQUEST_NONE";
    REQUEST_WRITE: u8 = 1, "TN_REQUEST_WRITE";
    REQUEST_ADD: u8 = 2, "TN_REQUEST_ADD";
    GRAIN_ELEMENT: i32 = 0, "TN_GRAIN_ELEMENT";
    SCALAR_LEARNING_RATE: i32 = 0, "TN_SCALAR_LEARNING_RATE";
    SCALAR_STEP: i32 = 1, "TN_SCALAR_STEP";
    SCALAR_RATE_MULTIPLIER: i32 = 2, "TN_SCALAR_RATE_MULTIPLIER";
    SCALAR_DECAY_MULTIPLIER: i32 = 3, "TN_SCALAR_DECAY_MULTIPLIER";
    NOTE_RESERVED: u32 = 2, "TN_NOTE_RESERVED";
}

/// Of functions that this binding never calls or offers.
pub type Unused = *const c_void;
pub type Task = unsafe extern "C" fn(*mut c_void, i64, i32);
pub type Run = unsafe extern "C" fn(*mut c_void, *const Execution, *const Call) -> Status;
pub type Plan = unsafe extern "C" fn(*const Planner) -> Status;
pub type Lower = unsafe extern "C" fn(*const Attributes, *const Builder) -> Status;
pub type Finalize = unsafe extern "C" fn(*const Finalizer) -> Status;
type RefOf<A> = unsafe extern "C" fn(*mut c_void, A) -> Ref;
type StatusOf<A, B> = unsafe extern "C" fn(*mut c_void, A, B) -> Status;

#[repr(C)]
#[derive(Clone, Copy)]
pub union ValueOf {
    pub i: i64,
    pub f: f64,
    pub s: Text,
    pub strings: *const Text,
}

structs! {
    Abi = "tn_abi" { major: u16, built: u16, required: u16, reserved: u16, }
    Dim = "tn_dim" { coefficient: i64, offset: i64, bound: i64, symbol: i32, reserved: i32, }
    Spec = "tn_spec" {
        size: u32, dtype: u32, storage: i32, rank: i32, dims: *const Dim, layout: u32, levels: u32, outer: *const Dim,
    }
    Device = "DLDevice" { device_type: i32, device_id: i32, }
    ElementType = "DLDataType" { code: u8, bits: u8, lanes: u16, }
    DlTensor = "DLTensor" {
        data: *mut c_void, device: Device, ndim: i32, dtype: ElementType, shape: *const i64, strides: *const i64,
        byte_offset: u64,
    }
    Tensor = "tn_tensor" {
        size: u32, storage: i32, layout: u32, alignment: u32, flags: u64, dl: DlTensor, part: *const c_void,
    }
    Value = "tn_value" { kind: i32, count: u32, r#as: ValueOf, }
    Attribute = "tn_attribute" {
        size: u32, kind: i32, name: Text, doc: Text, flags: u32, has_range: u32, initial: Value, minimum: f64,
        maximum: f64, choices: *const Text,
    }
    Attributes = "tn_attributes" { size: u32, count: u32, declared: *const *const Attribute, values: *const Value, }
    Services = "tn_services" {
        size: u32, abi_major: u16, abi_minor: u16, this: *mut c_void,
        extension: unsafe extern "C" fn(*mut c_void, Text) -> *const c_void,
    }
    Options = "tn_options" {
        size: u32, reserved: u32, this: *mut c_void,
        of: unsafe extern "C" fn(*mut c_void, Text) -> *const Attributes,
    }
    Instruction = "tn_instruction" { op: u16, kind: u8, extent: u8, a: i32, b: i32, c: i32, number: f64, }
    ProgramInput = "tn_program_input" { extent: u8, kind: u8, reserved: u16, }
    ProgramOutput = "tn_program_output" { value: i32, dtype: u32, }
    ProgramTable = "tn_program" {
        size: u32, instructions_count: u32, instructions: *const Instruction, inputs_count: u32, outputs_count: u32,
        inputs: *const ProgramInput, outputs: *const ProgramOutput,
    }
    ErrorReport = "tn_error_report" {
        size: u32, code: Status, message: Text, port: Text, expected: *const Spec, actual: *const Spec,
    }
    Errors = "tn_errors" {
        size: u32, reserved: u32, this: *mut c_void, report: unsafe extern "C" fn(*mut c_void, *const ErrorReport),
    }
    Parallel = "tn_parallel" {
        size: u32, workers: i32, this: *mut c_void,
        for_each: unsafe extern "C" fn(*mut c_void, i64, Task, *mut c_void), phases: Unused,
    }
    Random = "tn_random" { seed: u64, step: u64, }
    Execution = "tn_execution" {
        size: u32, reserved: u32, device: *mut c_void, stream: *mut c_void, symbols: *const i64, random: *const Random,
        parallel: *const Parallel, errors: *const Errors, host_symbols: *const i64,
    }
    Call = "tn_call" {
        size: u32, inputs_count: u32, outputs_count: u32, reserved: u32, inputs: *const *const Tensor,
        outputs: *const *mut Tensor, requests: *const u8, workspace: *mut c_void, draw: u64,
    }
    Prepared = "tn_prepared" {
        size: u32, traits: u32, binding: *mut c_void, workspace_bytes: u64, run: Option<Run>,
        destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    }
    Pointwise = "tn_pointwise" {
        size: u32, leading: i32, program: *const ProgramTable, inputs: *const Ref, gradient: *const ProgramTable,
    }
    Builder = "tn_builder" {
        size: u32, training: u32, this: *mut c_void, errors: *const Errors,
        status: unsafe extern "C" fn(*mut c_void) -> Status,
        input: unsafe extern "C" fn(*mut c_void, u32, u32) -> Ref, parameter: RefOf<u32>, buffer: RefOf<u32>,
        spec: unsafe extern "C" fn(*mut c_void, Ref) -> *const Spec,
        gemm: unsafe extern "C" fn(*mut c_void, Ref, Ref, u32, f64) -> Ref,
        pointwise: StatusOf<*const Pointwise, *mut Ref>, gather: unsafe extern "C" fn(*mut c_void, Ref, Ref) -> Ref,
        scatter_add: Unused, view: unsafe extern "C" fn(*mut c_void, Ref, *const Dim, i32) -> Ref,
        output: StatusOf<u32, Ref>, buffer_next: StatusOf<u32, Ref>, state: StatusOf<u32, Ref>, concat: Unused,
        slice: Unused, pad: Unused, transpose: Unused, segment: Unused, weights: Unused, rows: Unused,
        carried: Unused, carried_next: Unused, constant: Unused, user: *mut c_void, argsort: Unused,
        prefix_sum: Unused, conv: Unused, pool: Unused, resize: Unused, scan_begin: Unused, scan_input: Unused,
        scan_memory: Unused, scan_next: Unused, scan_end: Unused, scan_last: Unused, scan_output: Unused,
    }
    Port = "tn_port" { size: u32, flags: u32, name: Text, doc: Text, }
    Initializer = "tn_initializer" { kind: i32, reserved: i32, a: f64, b: f64, }
    Parameter = "tn_parameter" {
        size: u32, flags: u32, suffix: Text, spec: *const Spec, initializer: Initializer, merge: i32, reserved: u32,
    }
    Planner = "tn_planner" {
        size: u32, inputs_count: u32, this: *mut c_void, errors: *const Errors, attributes: *const Attributes,
        inputs: *const *const Spec, output: StatusOf<u32, *const Spec>, parameter: RefOf<*const Parameter>,
        buffer: RefOf<*const Parameter>, index_limit: StatusOf<u32, i64>,
        state: unsafe extern "C" fn(*mut c_void, u32) -> Status, rows: Unused, carried: Unused, user: *mut c_void,
        index_exempt: Unused,
    }
    LayerDescription = "tn_layer_description" {
        size: u32, role: i32, r#type: Text, doc: Text, inputs_count: u32, outputs_count: u32,
        inputs: *const *const Port, outputs: *const *const Port, attributes_count: u32, parameters_count: u32,
        attributes: *const *const Attribute, parameters: *const Text, state_version: u32, reserved: u32,
    }
    Finalizer = "tn_finalizer" {
        size: u32, state_count: u32, attributes: *const Attributes, state: *const f64, errors: *const Errors,
        result: unsafe extern "C" fn(*mut c_void, Text, f64), this: *mut c_void, user: *mut c_void,
    }
    LayerType = "tn_layer_type" {
        size: u32, reserved: u32, description: *const LayerDescription, plan: Plan, expand: Unused,
        lower: Option<Lower>, finalize: Option<Finalize>, extension: Unused, user: *const c_void,
    }
    KernelSite = "tn_kernel_site" {
        size: u32, compute: u32, attributes: *const Attributes, inputs_count: u32, outputs_count: u32,
        parameters_count: u32, buffers_count: u32, carried_count: u32, training: u32, inputs: *const *const Spec,
        outputs: *const *const Spec, parameters: *const *const Spec, buffers: *const *const Spec,
        carried: *const *const Spec, gradients: *const u8, fusion: Unused, device: Unused, shared: *mut c_void,
        services: *const Services, errors: *const Errors, user: *const c_void, state_version: u32, reserved: u32,
        precision: u32, reserved2: u32,
    }
    KernelNeeds = "tn_kernel_needs" {
        size: u32, draws: u32, reads_in: *mut u8, reads_out: *mut u8, in_place: *mut i32, backward_in_place: *mut i32,
        this: *mut c_void, saved: Unused, rows: Unused,
    }
    KernelTable = "tn_kernel" {
        size: u32, score: i32, r#type: Text, device: Text, name: Text, dtypes_count: u32, reserved: u32,
        dtypes: *const u32, supports: unsafe extern "C" fn(*const KernelSite, *mut i32) -> Status,
        query: unsafe extern "C" fn(*const KernelSite, *mut KernelNeeds) -> Status,
        prepare: unsafe extern "C" fn(*const KernelSite, i32, *mut Prepared) -> Status, fusion: Unused,
        shared: Unused, user: *const c_void, attributes: *const Text, attributes_count: u32, state_version: u32,
        inputs_known: u32, outputs_known: u32, parameters_known: u32, reserved2: u32,
    }
    StateTable = "tn_state" {
        size: u32, extent: u8, reserved: [u8; 3], dtype: u32, reserved2: u32, name: Text, initial: f64,
    }
    Update = "tn_update" {
        size: u32, grain: i32, program: *const ProgramTable, scalars: *const i32, scalars_count: u32, reserved: u32,
    }
    UpdateRecorder = "tn_update_recorder" {
        size: u32, reserved: u32, this: *mut c_void, errors: *const Errors, attributes: *const Attributes,
        state: RefOf<*const StateTable>, program: unsafe extern "C" fn(*mut c_void, *const Update) -> Status,
        user: *mut c_void,
    }
    UpdaterDescription = "tn_updater_description" {
        size: u32, attributes_count: u32, r#type: Text, doc: Text, attributes: *const *const Attribute,
        state_version: u32, reserved: u32,
    }
    UpdaterType = "tn_updater_type" {
        size: u32, reserved: u32, description: *const UpdaterDescription,
        record: unsafe extern "C" fn(*const UpdateRecorder) -> Status, extension: Unused, user: *const c_void,
    }
    SlotTable = "tn_slot" {
        size: u32, dtype: u32, name: Text, storage: i32, rank: i32, shape: *const i64, index_limit: i64, levels: u32,
        reserved: u32, names: Unused,
    }
    ReaderSchema = "tn_reader_schema" { size: u32, slots_count: u32, slots: *const *const SlotTable, }
    ReaderOpen = "tn_reader_open" {
        size: u32, shard: u32, shards: u32, flags: u32, services: *const Services, errors: *const Errors,
        attributes: *const Attributes, directory: Text, cancel: *const i32, names: Unused, names_count: u32,
        names_reserved: u32, seed: u64, user: *const c_void, needed: Unused, needed_count: u32, needed_reserved: u32,
    }
    ReaderBuffers = "tn_reader_buffers" { size: u32, slots_count: u32, capacity: i64, data: *const *mut c_void, }
    ReaderDescription = "tn_reader_description" {
        size: u32, attributes_count: u32, r#type: Text, doc: Text, attributes: *const *const Attribute, traits: u32,
        reserved: u32,
    }
    ReaderType = "tn_reader_type" {
        size: u32, reserved: u32, description: *const ReaderDescription,
        open: unsafe extern "C" fn(*const ReaderOpen, *mut *mut c_void) -> Status,
        close: unsafe extern "C" fn(*mut c_void), schema: unsafe extern "C" fn(*mut c_void) -> *const ReaderSchema,
        samples: unsafe extern "C" fn(*mut c_void) -> i64,
        read_at: unsafe extern "C" fn(*mut c_void, *const i64, i64, *const ReaderBuffers) -> Status,
        next: unsafe extern "C" fn(*mut c_void, *const ReaderBuffers, *mut i64) -> Status,
        position: unsafe extern "C" fn(*mut c_void) -> i64,
        seek: unsafe extern "C" fn(*mut c_void, i64) -> Status, extension: Unused, user: *const c_void,
    }
    Plugin = "tn_plugin" {
        size: u32, reserved: u32, abi: Abi, id: Text, version: Text, doc: Text, license: Text, isa: Text,
        layers_count: u32, kernels_count: u32, layers: *const *const LayerType, kernels: *const *const KernelTable,
        updaters_count: u32, readers_count: u32, updaters: *const *const UpdaterType,
        readers: *const *const ReaderType, devices_count: u32, libraries_count: u32, devices: Unused,
        libraries: Unused, providers_count: u32, reserved2: u32, providers: Unused, options_count: u32, reserved3: u32,
        options: *const *const Attribute, requirements_count: u32, reserved4: u32, requirements: Unused,
        comms_count: u32, arithmetic: u32, comms: Unused,
    }
}
