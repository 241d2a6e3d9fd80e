//! A layer with native kernels: exponential smoothing along the last dimension,
//!   out[j] = decay * out[j - 1] + (1 - decay) * in[j],  with out[-1] = 0,
//! which no recorded program can express, since each element needs the one before it. SPDX-License-Identifier: MIT
use std::ops::{Add, Mul};
use tenon_plugin::*;

struct Smoothing;

impl Layer for Smoothing {
    const LOWERS: bool = false; // computed by the kernel alone

    fn plan(plan: &Planning) -> Done {
        let input = plan.input(0)?;
        let dims = input.dims();
        if dims.len() < 2 || dims[dims.len() - 1].as_constant().is_none() {
            return fail(INVALID, "in", "must be [samples, ..., elements]");
        }
        plan.output_like(0, &input)
    }
}

/// A prepared call.
struct SmoothingKernel {
    decay: f64,
    backward: bool,
    double: bool,
}

impl Kernel for SmoothingKernel {
    fn supports(site: &Site) -> Done {
        match site.input(0).map(|input| input.dtype()) {
            Some(dtype) if dtype == site.compute() || dtype == COMPUTE => Ok(()),
            _ => fail(UNSUPPORTED, "in", "must have the float type of the machine"),
        }
    }

    fn prepare(site: &Site, direction: i32) -> Done<SmoothingKernel> {
        let decay = site.given().number("decay");
        Ok(SmoothingKernel { decay, backward: direction == BACKWARD, double: site.compute() == F64 })
    }

    fn run(&self, operands: &Operands) -> Done {
        if self.double {
            self.rows(operands, self.decay, 1.0 - self.decay)
        } else {
            self.rows(operands, self.decay as f32, (1.0 - self.decay) as f32)
        }
    }
}

impl SmoothingKernel {
    /// Forward: inputs in; outputs out. Backward: inputs in and out, both absent here, gradient of out; outputs
    /// gradient of in. The tasks of the host's threads compute one row each.
    fn rows<T>(&self, operands: &Operands, keep: T, take: T) -> Done
    where
        T: Element + Default + Send + Sync + Add<Output = T> + Mul<Output = T>,
    {
        let columns = match operands.output_shape(0) {
            Some(shape) => shape[shape.len() - 1] as usize,
            None => return Ok(()),
        };
        let from: &[T] = operands.expect(if self.backward { 2 } else { 0 })?;
        operands.chunks(0, columns, &|row, to: &mut [T]| {
            let from = &from[row * columns..(row + 1) * columns];
            let mut sum = T::default();
            if self.backward {
                // From the end: the gradient of out[j] reaches in[j] and all before it.
                for j in (0..columns).rev() {
                    sum = from[j] + keep * sum;
                    to[j] = take * sum;
                }
            } else {
                for j in 0..columns {
                    sum = keep * sum + take * from[j];
                    to[j] = sum;
                }
            }
            Ok(())
        })
    }
}

layer! {
    LAYER: Smoothing, "example.my_plugin",
    "Exponential smoothing: out[j] = decay * out[j - 1] + (1 - decay) * in[j] along the last dimension", 1,
    inputs [("in", "[samples, ..., elements]", 0)],
    outputs [("out", "as in", 0)],
    attributes [
        Attribute::float(text!("decay"), text!("share of the element before"), 0.5).at_least(0.0).at_most(1.0),
    ],
    parameters []
}
kernel! { KERNEL: SmoothingKernel, "example.my_plugin", "cpu", "my_plugin", 10, [F32, F64] }
plugin! {
    "example.my_plugin", "0.1.0", "Exponential smoothing", "MIT",
    layers [LAYER], kernels [KERNEL], updaters [], readers []
}
