//! A metric: the relative squared error, the sum of (prediction - label)^2 over that of (label - mean label)^2. Its
//! sums are added over minibatches and devices, so the value does not depend on how the data is split.
//! SPDX-License-Identifier: MIT
use tenon_plugin::*;

struct RelativeError;

/// Whether a value has one number for each sample; ones may follow the samples.
fn is_one_value(shape: &Shape) -> bool {
    !shape.dims().is_empty() && shape.dims()[1..].iter().all(|dim| dim.as_constant() == Some(1))
}

impl Layer for RelativeError {
    const ROLE: i32 = ROLE_METRIC;

    fn plan(plan: &Planning) -> Done {
        for (number, port) in ["prediction", "label"].iter().enumerate() {
            if !is_one_value(&plan.input(number as u32)?) {
                return fail(INVALID, *port, "must be [samples] or [samples, 1]");
            }
        }
        plan.state(4) // values, labels, their squares, squared errors
    }

    fn lower(_given: &Given, body: &Body) -> Done {
        let prediction = body.input(0)?;
        let label = body.view(body.input(1)?, &body.shape(prediction)?)?;
        let p = Program::new();
        let (x, y) = (p.input(FULL), p.input(FULL));
        p.output(y.equal(y).to_float().sum(SCALAR)); // 1 for each value
        p.output(y.sum(SCALAR));
        p.output((y * y).sum(SCALAR));
        p.output(((x - y) * (x - y)).sum(SCALAR));
        for (number, sum) in body.pointwise(&p, &[prediction, label], 1)?.into_iter().enumerate() {
            body.state(number as u32, sum)?;
        }
        Ok(())
    }

    fn finalize(_given: &Given, state: &[f64], results: &Results) -> Done {
        let spread = if state[0] > 0.0 { state[2] - state[1] * state[1] / state[0] } else { 0.0 };
        results.add("my_plugin", if spread > 0.0 { state[3] / spread } else { 0.0 });
        Ok(())
    }
}

layer! {
    METRIC: RelativeError, "example.my_plugin",
    "Relative squared error: 0 is exact, 1 as good as the mean of the labels", 1,
    inputs [("prediction", "[samples] or [samples, 1]", 0), ("label", "as the prediction: what is right", 0)],
    outputs [],
    attributes [],
    parameters []
}
plugin! {
    "example.my_plugin", "0.1.0", "The relative squared error", "MIT",
    layers [METRIC], kernels [], updaters [], readers []
}
