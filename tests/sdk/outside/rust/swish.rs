//! A plugin in Rust with the binding of the SDK: out = in * sigmoid(beta * in), as a recorded body and as a native kernel
//! of the device cpu in float32. It panics on request. SPDX-License-Identifier: Apache-2.0
use tenon_plugin::*;

const BLOCK: usize = 1024;
const IN_KERNEL: i64 = 1;
const IN_PLAN: i64 = 2;

struct Swish;

impl Layer for Swish {
    fn plan(plan: &Planning) -> Done {
        let input = plan.input(0)?;
        if plan.given().integer("panic") == IN_PLAN {
            panic!("the attribute \"panic\" asks for it");
        }
        if input.storage() != DENSE {
            return fail(INVALID, "in", "must be dense");
        }
        plan.output_like(0, &input)
    }

    fn lower(given: &Given, body: &Body) -> Done {
        let p = Program::new();
        let x = p.input(FULL);
        p.output(x / (1.0 + (-given.number("beta") * x).exp()));
        body.output(0, body.pointwise(&p, &[body.input(0)?], 1)?[0])
    }
}

struct SwishKernel {
    beta: f32,
    panics: bool,
    backward: bool,
}

impl Kernel for SwishKernel {
    fn supports(site: &Site) -> Done {
        let options = site.options(text!("org.example.outside.swish"));
        if !options.map_or(true, |given| given.truth("kernel")) {
            return fail(UNSUPPORTED, "", "a deployer has turned it off");
        }
        match site.input(0).map(|input| input.dtype()) {
            Some(F32) => Ok(()),
            _ => fail(UNSUPPORTED, "in", "must be float32"),
        }
    }

    fn query(_site: &Site, needs: &mut Needs) -> Done {
        needs.read_input(0);
        Ok(())
    }

    fn prepare(site: &Site, direction: i32) -> Done<SwishKernel> {
        let given = site.given();
        let beta = given.number("beta") as f32;
        Ok(SwishKernel { beta, panics: given.integer("panic") == IN_KERNEL, backward: direction == BACKWARD })
    }

    /// Forward: in; out. Backward: in, out (absent), gradient of out; gradient of in.
    fn run(&self, operands: &Operands) -> Done {
        let input: &[f32] = operands.expect(0)?;
        let gradient: &[f32] = if self.backward { operands.expect(2)? } else { &[] };
        operands.chunks(0, BLOCK, &|block, to: &mut [f32]| {
            if self.panics {
                panic!("the attribute \"panic\" asks for it, at {} elements", input.len());
            }
            for (i, value) in to.iter_mut().enumerate() {
                let x = input[block * BLOCK + i];
                let sigmoid = 1.0 / (1.0 + (-self.beta * x).exp());
                *value = match self.backward {
                    true => gradient[block * BLOCK + i] * sigmoid * (1.0 + self.beta * x * (1.0 - sigmoid)),
                    false => x * sigmoid,
                };
            }
            Ok(())
        })
    }
}

layer! {
    LAYER: Swish, "outside.swish", "out = in * sigmoid(beta * in)", 1,
    inputs [("in", "[samples, ...]", 0)],
    outputs [("out", "as in", 0)],
    attributes [
        Attribute::float(text!("beta"), text!("steepness; 0 gives in / 2"), 1.0),
        Attribute::int(text!("panic"), text!("what panics: 1 the kernel, 2 plan"), 0).at_least(0.0).at_most(2.0),
    ],
    parameters []
}
kernel! { KERNEL: SwishKernel, "outside.swish", "cpu", "outside_swish", 10, [F32] }
plugin! {
    "org.example.outside.swish", "1.0.0", "The activation swish, in Rust", "Apache-2.0",
    layers [LAYER], kernels [KERNEL], updaters [], readers [],
    options [Attribute::truth(text!("kernel"), text!("whether the native kernel is offered"), true)]
}
