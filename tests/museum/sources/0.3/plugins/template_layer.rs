//! A layer: out = in * sigmoid(beta * in), after P. Ramachandran, B. Zoph, Q. V. Le, "Searching for activation
//! functions", 2017. The formula is written once; the host derives the gradient, fuses it with its neighbours and runs
//! it on any device. SPDX-License-Identifier: MIT
use tenon_plugin::*;

struct Swish;

impl Layer for Swish {
    fn plan(plan: &Planning) -> Done {
        plan.output_like(0, &plan.input(0)?)
    }

    fn lower(given: &Given, body: &Body) -> Done {
        let p = Program::new();
        let x = p.input(FULL);
        p.output(x / (1.0 + (-given.number("beta") * x).exp()));
        body.output(0, body.pointwise(&p, &[body.input(0)?], 1)?[0])
    }
}

layer! {
    LAYER: Swish, "example.my_plugin", "out = in * sigmoid(beta * in)", 1,
    inputs [("in", "[samples, ...]", 0)],
    outputs [("out", "as in", 0)],
    attributes [Attribute::float(text!("beta"), text!("steepness; 0 gives in / 2"), 1.0)],
    parameters []
}
plugin! {
    "example.my_plugin", "0.1.0", "The activation swish", "MIT",
    layers [LAYER], kernels [], updaters [], readers []
}
