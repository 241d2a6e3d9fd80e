//! A plugin in Rust, without crates: out = in * sigmoid(beta * in), as a recorded body and as a native kernel of the
//! device cpu in float32.
//!   rustc --edition 2021 --crate-type cdylib -O -C strip=symbols swish.rs -o swish.so && tenon plugins seal swish.so
//! SPDX-License-Identifier: Apache-2.0
mod tenon;

use std::ffi::c_void;
use std::mem::size_of;
use std::ptr::{null, null_mut};
use tenon::*;

/// A text of a table.
macro_rules! text {
    ($text:literal) => {
        concat!($text, "\0").as_ptr() as Text
    };
}
/// What `user` points to: a function of one element with one number, and its derivative.
struct Formula {
    value: fn(f32, f32) -> f32,
    slope: fn(f32, f32) -> f32,
}
static SWISH: Formula = Formula {
    value: |x, beta| x / (1.0 + (-beta * x).exp()),
    slope: |x, beta| {
        let sigmoid = 1.0 / (1.0 + (-beta * x).exp());
        sigmoid * (1.0 + beta * x * (1.0 - sigmoid))
    },
};

// ---- the layer type

unsafe extern "C" fn plan(planner: *const Planner) -> Status {
    let planner = &*planner;
    guarded(planner.errors, || {
        let input = *planner.inputs;
        if (*input).storage != DENSE {
            return Err(Failure::New(INVALID, Some("in"), String::from("must be dense")));
        }
        check((planner.output)(planner.this, 0, input))
    })
}

unsafe extern "C" fn lower(attributes: *const Attributes, builder: *const Builder) -> Status {
    let builder = &*builder;
    guarded(builder.errors, || {
        let number =
            |number: f64| Instruction { op: OP_CONSTANT, kind: KIND_FLOAT, extent: 0, a: 0, b: 0, c: 0, number };
        let call = |op: u16, a: i32, b: i32| Instruction { op, kind: KIND_FLOAT, extent: 0, a, b, c: 0, number: 0.0 };
        let instructions = [
            call(OP_INPUT, 0, 0),
            number(-(*attributes).number("beta")),
            call(OP_MUL, 0, 1),
            call(OP_EXP, 2, 0),
            number(1.0),
            call(OP_ADD, 3, 4),
            call(OP_DIV, 0, 5),
        ];
        let program = Program {
            size: size_of::<Program>() as u32,
            instructions_count: instructions.len() as u32,
            instructions: instructions.as_ptr(),
            inputs_count: 1,
            outputs_count: 1,
            inputs: &ProgramInput { extent: EXTENT_FULL, kind: KIND_FLOAT, reserved: 0 },
            outputs: &ProgramOutput { value: 6, dtype: COMPUTE },
        };
        let input = (builder.input)(builder.this, 0, 0);
        let size = size_of::<Pointwise>() as u32;
        let pointwise = Pointwise { size, leading: 1, program: &program, inputs: &input, gradient: null() };
        let mut output = -1;
        (builder.pointwise)(builder.this, &pointwise, &mut output);
        (builder.output)(builder.this, 0, output);
        check((builder.status)(builder.this))
    })
}

// ---- the kernel

const BLOCK: usize = 1024;

struct Binding {
    formula: &'static Formula,
    beta: f32,
    panics: bool,
    backward: bool,
}

unsafe extern "C" fn supports(site: *const KernelSite, _score: *mut i32) -> Status {
    let site = &*site;
    guarded(site.errors, || match (**site.inputs).dtype {
        F32 => Ok(()),
        _ => Err(Failure::New(UNSUPPORTED, Some("in"), String::from("must be float32"))),
    })
}

unsafe extern "C" fn query(site: *const KernelSite, needs: *mut KernelNeeds) -> Status {
    guarded((*site).errors, || {
        *(*needs).reads_in = 1;
        Ok(())
    })
}

unsafe extern "C" fn prepare(site: *const KernelSite, direction: i32, prepared: *mut Prepared) -> Status {
    let site = &*site;
    guarded(site.errors, || {
        if direction != FORWARD && direction != BACKWARD {
            return Err(Failure::New(UNSUPPORTED, None, String::from("is neither forward nor backward")));
        }
        let attributes = &*site.attributes;
        let binding = Binding {
            formula: &*(site.user as *const Formula),
            beta: attributes.number("beta") as f32,
            panics: attributes.truth("panic"),
            backward: direction == BACKWARD,
        };
        (*prepared).binding = Box::into_raw(Box::new(binding)) as *mut c_void;
        (*prepared).run = Some(run);
        (*prepared).destroy = Some(destroy);
        Ok(())
    })
}

unsafe extern "C" fn destroy(binding: *mut c_void) {
    dropped(|| drop(Box::from_raw(binding as *mut Binding)));
}

/// The floats of an operand, of which each task uses its own block.
#[derive(Clone, Copy)]
struct Floats(*mut f32);
// SAFETY: no two tasks of a call have an element in common.
unsafe impl Sync for Floats {}
impl Floats {
    unsafe fn at(&self, i: usize) -> &mut f32 {
        &mut *self.0.add(i)
    }
}

/// Forward: in; out. Backward: in, out (null), gradient of out; gradient of in.
unsafe extern "C" fn run(binding: *mut c_void, execution: *const Execution, call: *const Call) -> Status {
    let (execution, call) = (&*execution, &*call);
    guarded(execution.errors, || {
        let binding = &*(binding as *const Binding);
        let request = *call.requests;
        if request == REQUEST_NONE {
            return Ok(());
        }
        let input = &**call.inputs;
        let (count, x, to) = (input.count(), Floats(input.floats()), Floats((**call.outputs).floats()));
        let gradient = Floats(if binding.backward { (**call.inputs.add(2)).floats() } else { null_mut() });
        let blocks = (count + BLOCK - 1) / BLOCK;
        for_each(execution, blocks as i64, &|block| {
            if binding.panics {
                panic!("the attribute \"panic\" asks for it, at {} elements", count);
            }
            let begin = block as usize * BLOCK;
            for i in begin..count.min(begin + BLOCK) {
                let value = match binding.backward {
                    true => *gradient.at(i) * (binding.formula.slope)(*x.at(i), binding.beta),
                    false => (binding.formula.value)(*x.at(i), binding.beta),
                };
                *to.at(i) = if request == REQUEST_ADD { *to.at(i) + value } else { value };
            }
        })
    })
}

// ---- the tables

static BETA: Table<Attribute> = Table(Attribute {
    size: size_of::<Attribute>() as u32,
    kind: ATTR_FLOAT,
    name: text!("beta"),
    doc: text!("steepness; 0 gives in / 2"),
    flags: 0,
    has_range: 0,
    initial: Value { kind: ATTR_FLOAT, count: 1, of: ValueOf { f: 1.0 } },
    minimum: 0.0,
    maximum: 0.0,
    choices: null(),
});
static PANIC: Table<Attribute> = Table(Attribute {
    size: size_of::<Attribute>() as u32,
    kind: ATTR_BOOL,
    name: text!("panic"),
    doc: text!("whether the kernel panics instead of computing"),
    flags: 0,
    has_range: 0,
    initial: Value { kind: ATTR_BOOL, count: 1, of: ValueOf { i: 0 } },
    minimum: 0.0,
    maximum: 0.0,
    choices: null(),
});
static IN: Table<Port> =
    Table(Port { size: size_of::<Port>() as u32, flags: 0, name: text!("in"), doc: text!("[samples, ...]") });
static OUT: Table<Port> =
    Table(Port { size: size_of::<Port>() as u32, flags: 0, name: text!("out"), doc: text!("as in") });
static ATTRIBUTES: Table<[*const Attribute; 2]> = Table([&BETA.0, &PANIC.0]);
static INPUTS: Table<[*const Port; 1]> = Table([&IN.0]);
static OUTPUTS: Table<[*const Port; 1]> = Table([&OUT.0]);
static DESCRIPTION: Table<LayerDescription> = Table(LayerDescription {
    size: size_of::<LayerDescription>() as u32,
    role: 0,
    name: text!("outside.swish"),
    doc: text!("out = in * sigmoid(beta * in)"),
    inputs_count: 1,
    outputs_count: 1,
    inputs: &INPUTS.0[0],
    outputs: &OUTPUTS.0[0],
    attributes_count: 2,
    parameters_count: 0,
    attributes: &ATTRIBUTES.0[0],
    parameters: null(),
    state_version: 1,
    reserved: 0,
});
static LAYER: Table<LayerType> = Table(LayerType {
    size: size_of::<LayerType>() as u32,
    reserved: 0,
    description: &DESCRIPTION.0,
    plan,
    expand: 0,
    lower: Some(lower),
    finalize: 0,
    extension: 0,
    user: &SWISH as *const Formula as *const c_void,
});
static KERNEL: Table<Kernel> = Table(Kernel {
    size: size_of::<Kernel>() as u32,
    score: 10,
    name_of_type: text!("outside.swish"),
    device: text!("cpu"),
    name: text!("outside_swish"),
    dtypes_count: 1,
    reserved: 0,
    dtypes: &F32,
    supports,
    query,
    prepare,
    fusion: 0,
    shared: 0,
    user: &SWISH as *const Formula as *const c_void,
    attributes: 0,
    attributes_count: 0,
    state_version: 1,
});
static LAYERS: Table<[*const LayerType; 1]> = Table([&LAYER.0]);
static KERNELS: Table<[*const Kernel; 1]> = Table([&KERNEL.0]);
static PLUGIN: Table<Plugin> = Table(Plugin {
    size: size_of::<Plugin>() as u32,
    reserved: 0,
    abi: Abi { major: 0, built: 3, required: 2, reserved: 0 },
    id: text!("org.example.outside.swish"),
    version: text!("1.0.0"),
    doc: text!("The activation swish, in Rust"),
    license: text!("Apache-2.0"),
    isa: text!(""),
    layers_count: 1,
    kernels_count: 1,
    layers: &LAYERS.0[0],
    kernels: &KERNELS.0[0],
    unused: [0; 8],
});

#[used]
#[link_section = ".note.tenon"]
static NOTE: Note = Note::reserved();

#[no_mangle]
pub extern "C" fn tenon_plugin() -> *const Plugin {
    &PLUGIN.0
}
