//! An updater: descent along the sign of a momentum, after J. Bernstein, Y. Wang, K. Azizzadenesheli, A. Anandkumar,
//! "signSGD: compressed optimisation for non-convex problems", 2018, algorithm 2 ("Signum").
//! SPDX-License-Identifier: MIT
use tenon_plugin::*;

struct Signum;

impl Updater for Signum {
    fn record<'p>(given: &Given, update: &'p Recorder) -> Done<Next<'p>> {
        let (momentum, decay) = (given.number("momentum"), given.number("weight_decay"));
        let p = update.parameter();
        let m = update.state(text!("m"), 0.0)?;
        let next = momentum * m + (1.0 - momentum) * update.gradient();
        let step = next.sign() + decay * update.decay_multiplier() * p;
        let parameter = p - update.learning_rate() * update.rate_multiplier() * step;
        Ok(Next { parameter, states: vec![next] })
    }
}

updater! {
    UPDATER: Signum, "example.my_plugin",
    "m = momentum * m + (1 - momentum) * g; p = p - learning_rate * (sign(m) + weight_decay * p)", 1,
    attributes [
        Attribute::float(text!("learning_rate"), text!("step size"), 1e-3).at_least(0.0),
        Attribute::float(text!("momentum"), text!("share of m that is kept"), 0.9).at_least(0.0).at_most(1.0),
        Attribute::float(text!("weight_decay"), text!("pull towards 0"), 0.0).at_least(0.0),
    ]
}
plugin! {
    "example.my_plugin", "0.1.0", "Descent along the sign of a momentum", "MIT",
    layers [], kernels [], updaters [UPDATER], readers []
}
