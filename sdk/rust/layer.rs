//! Layer types: layers, costs and metrics. SPDX-License-Identifier: MIT
use crate::failure::*;
use crate::program::*;
use crate::tables::*;
use crate::values::*;
use crate::List;
use std::mem::size_of;
use std::ptr::null;

/// A layer type. `layer!` makes its table.
pub trait Layer {
    const ROLE: i32 = ROLE_LAYER;
    /// False if native kernels alone compute the layer.
    const LOWERS: bool = true;
    /// Declares shapes, parameters and, of a metric, the state.
    fn plan(plan: &Planning) -> Done;
    /// Records the body, which the host differentiates.
    fn lower(_given: &Given, _body: &Body) -> Done {
        Ok(())
    }
    /// Of a metric: computes the named values from the sums over a pass.
    fn finalize(_given: &Given, _state: &[f64], _results: &Results) -> Done {
        Ok(())
    }
}

/// The argument of `plan`.
pub struct Planning<'a>(&'a Planner);

impl<'a> Planning<'a> {
    pub fn given(&self) -> Given<'a> {
        // SAFETY: here and below the host's pointers are valid until plan returns.
        Given(unsafe { &*self.0.attributes })
    }
    pub fn input(&self, input: u32) -> Done<Shape<'a>> {
        let spec = if input < self.0.inputs_count { unsafe { *self.0.inputs.add(input as usize) } } else { null() };
        if spec.is_null() {
            return fail(INVALID, "", format!("input {} is not connected", input));
        }
        Ok(Shape(unsafe { &*spec }))
    }
    /// Gives an output the shape of an input, in the compute type.
    pub fn output_like(&self, port: u32, shape: &Shape) -> Done {
        check(unsafe { (self.0.output)(self.0.this, port, &Spec { dtype: COMPUTE, ..*shape.0 }) })
    }
    /// Gives an output these dimensions, in the compute type.
    pub fn output(&self, port: u32, dims: &[Dim]) -> Done {
        check(unsafe { (self.0.output)(self.0.this, port, &spec_of(dims)) })
    }
    /// Declares the next parameter; `suffix` is text! of one that `layer!` lists. `initializer` has the first values.
    pub fn parameter(&self, suffix: Text, sizes: &[i64], initializer: Initializer) -> Done {
        let dims: Vec<Dim> = sizes.iter().map(|size| Dim::constant(*size)).collect();
        let spec = spec_of(&dims);
        let size = size_of::<Parameter>() as u32;
        let parameter = Parameter { size, flags: 0, suffix, spec: &spec, initializer, merge: 0, reserved: 0 };
        match unsafe { (self.0.parameter)(self.0.this, &parameter) } {
            number if number >= 0 => Ok(()),
            _ => Err(Failure::Reported(INVALID)),
        }
    }
    /// The integers at an input are indices below the limit.
    pub fn index_limit(&self, input: u32, limit: i64) -> Done {
        check(unsafe { (self.0.index_limit)(self.0.this, input, limit) })
    }
    /// Of a metric: the number of sums that the host keeps.
    pub fn state(&self, count: u32) -> Done {
        check(unsafe { (self.0.state)(self.0.this, count) })
    }
}
fn spec_of(dims: &[Dim]) -> Spec {
    let (size, rank) = (size_of::<Spec>() as u32, dims.len() as i32);
    Spec { size, dtype: COMPUTE, storage: DENSE, rank, dims: dims.as_ptr(), layout: 0, levels: 0, outer: null() }
}

/// A value of a body.
#[derive(Clone, Copy)]
pub struct BodyValue(Ref);

/// The recorder of `lower`. A failure of one call is that of the layer.
pub struct Body<'a>(&'a Builder);

impl<'a> Body<'a> {
    fn made(&self, value: Ref) -> Done<BodyValue> {
        if value >= 0 {
            return Ok(BodyValue(value));
        }
        // SAFETY: here and below the host's functions are valid until lower returns.
        check(unsafe { (self.0.status)(self.0.this) })?;
        fail(PLUGIN_FAULT, "", "lower asks for a value that is not there")
    }
    /// Whether the machine trains.
    pub fn training(&self) -> bool {
        self.0.training != 0
    }
    pub fn input(&self, port: u32) -> Done<BodyValue> {
        self.made(unsafe { (self.0.input)(self.0.this, port, 0) })
    }
    pub fn parameter(&self, number: u32) -> Done<BodyValue> {
        self.made(unsafe { (self.0.parameter)(self.0.this, number) })
    }
    pub fn shape(&self, value: BodyValue) -> Done<Shape<'a>> {
        let spec = unsafe { (self.0.spec)(self.0.this, value.0) };
        if spec.is_null() {
            fail(PLUGIN_FAULT, "", "a value has no shape")
        } else {
            Ok(Shape(unsafe { &*spec }))
        }
    }
    /// The same elements in another shape.
    pub fn view(&self, value: BodyValue, shape: &Shape) -> Done<BodyValue> {
        self.made(unsafe { (self.0.view)(self.0.this, value.0, shape.0.dims, shape.0.rank) })
    }
    /// alpha times the product of matrices; flags: TRANSPOSE_A, TRANSPOSE_B.
    pub fn gemm(&self, a: BodyValue, b: BodyValue, flags: u32, alpha: f64) -> Done<BodyValue> {
        self.made(unsafe { (self.0.gemm)(self.0.this, a.0, b.0, flags, alpha) })
    }
    /// The rows of a table that the integers name.
    pub fn gather(&self, table: BodyValue, ids: BodyValue) -> Done<BodyValue> {
        self.made(unsafe { (self.0.gather)(self.0.this, table.0, ids.0) })
    }
    /// Applies a program, for which the first `leading` dimensions are rows; returns its outputs.
    pub fn pointwise(&self, program: &Program, inputs: &[BodyValue], leading: i32) -> Done<Vec<BodyValue>> {
        let (inputs_count, outputs_count) = program.counts();
        assert_eq!(inputs.len(), inputs_count, "the inputs of a program");
        let refs: Vec<Ref> = inputs.iter().map(|input| input.0).collect();
        let mut outputs = vec![-1; outputs_count];
        check(program.table(|program| {
            let size = size_of::<Pointwise>() as u32;
            let call = Pointwise { size, leading, program, inputs: refs.as_ptr(), gradient: null() };
            unsafe { (self.0.pointwise)(self.0.this, &call, outputs.as_mut_ptr()) }
        }))?;
        outputs.into_iter().map(|output| self.made(output)).collect()
    }
    pub fn output(&self, port: u32, value: BodyValue) -> Done {
        check(unsafe { (self.0.output)(self.0.this, port, value.0) })
    }
    /// Of a metric: adds a SCALAR to a number of the state.
    pub fn state(&self, number: u32, value: BodyValue) -> Done {
        check(unsafe { (self.0.state)(self.0.this, number, value.0) })
    }
}

/// Receives the named values of a metric.
pub struct Results<'a>(&'a Finalizer);

impl Results<'_> {
    pub fn add(&self, name: &str, value: f64) {
        // SAFETY: the host copies the name.
        unsafe { (self.0.result)(self.0.this, c_text(name).as_ptr(), value) }
    }
}

// ---- the table

unsafe extern "C" fn plan<T: Layer>(planner: *const Planner) -> Status {
    guarded((*planner).errors, || T::plan(&Planning(&*planner)))
}
unsafe extern "C" fn lower<T: Layer>(given: *const Attributes, builder: *const Builder) -> Status {
    guarded((*builder).errors, || {
        T::lower(&Given(&*given), &Body(&*builder))?;
        check(((*builder).status)((*builder).this))
    })
}
unsafe extern "C" fn finalize<T: Layer>(finalizer: *const Finalizer) -> Status {
    let it = &*finalizer;
    guarded(it.errors, || {
        let state =
            if it.state_count == 0 { &[] } else { std::slice::from_raw_parts(it.state, it.state_count as usize) };
        T::finalize(&Given(&*it.attributes), state, &Results(it))
    })
}

/// The lists of `layer!`.
pub struct Declared {
    pub inputs: List<Port>,
    pub outputs: List<Port>,
    pub attributes: List<Attribute>,
    pub parameters: *const Text,
    pub parameters_count: u32,
}

pub const fn layer_description<T: Layer>(name: Text, doc: Text, version: u32, lists: Declared) -> LayerDescription {
    LayerDescription {
        size: size_of::<LayerDescription>() as u32,
        role: T::ROLE,
        r#type: name,
        doc,
        inputs_count: lists.inputs.count,
        outputs_count: lists.outputs.count,
        inputs: lists.inputs.items,
        outputs: lists.outputs.items,
        attributes_count: lists.attributes.count,
        parameters_count: lists.parameters_count,
        attributes: lists.attributes.items,
        parameters: lists.parameters,
        state_version: version,
        reserved: 0,
    }
}
pub const fn layer_type<T: Layer>(description: &'static LayerDescription) -> LayerType {
    LayerType {
        size: size_of::<LayerType>() as u32,
        reserved: 0,
        description,
        plan: plan::<T>,
        expand: null(),
        lower: if T::LOWERS { Some(lower::<T>) } else { None },
        finalize: if T::ROLE == ROLE_METRIC { Some(finalize::<T>) } else { None },
        extension: null(),
        user: null(),
    }
}

/// Makes the static table of a layer type; the number is its state version:
///
///   layer! { LAYER: Swish, "vendor.swish", "the formula", 1,
///       inputs [("in", "[samples, ...]", 0)], outputs [("out", "as in", 0)],
///       attributes [Attribute::float(text!("beta"), text!("steepness"), 1.0)], parameters ["weight"] }
#[macro_export]
macro_rules! layer {
    ($table:ident: $type:ty, $name:literal, $doc:expr, $version:literal,
     inputs [$(($in:literal, $in_doc:literal, $in_flags:expr)),*],
     outputs [$(($out:literal, $out_doc:literal, $out_flags:expr)),*], attributes [$($attribute:expr),* $(,)?],
     parameters [$($parameter:literal),*]) => {
        static $table: $crate::Table<$crate::LayerType> = $crate::Table({
            const COUNT: usize = {
                let names: &[&str] = &[$($parameter),*];
                names.len()
            };
            static PARAMETERS: $crate::Table<[$crate::Text; COUNT]> = $crate::Table([$($crate::text!($parameter)),*]);
            type Description = $crate::Table<$crate::LayerDescription>;
            static DESCRIPTION: Description = $crate::Table($crate::layer_description::<$type>(
                $crate::text!($name),
                $crate::text!($doc),
                $version,
                $crate::Declared {
                    inputs: $crate::list!($crate::Port;
                        $($crate::Port::new($crate::text!($in), $crate::text!($in_doc), $in_flags)),*),
                    outputs: $crate::list!($crate::Port;
                        $($crate::Port::new($crate::text!($out), $crate::text!($out_doc), $out_flags)),*),
                    attributes: $crate::list!($crate::Attribute; $($attribute),*),
                    parameters: &PARAMETERS.0 as *const [$crate::Text; COUNT] as *const $crate::Text,
                    parameters_count: COUNT as u32,
                },
            ));
            $crate::layer_type::<$type>(&DESCRIPTION.0)
        });
    };
}
