//! Updaters. SPDX-License-Identifier: MIT
use crate::failure::*;
use crate::program::*;
use crate::tables::*;
use crate::values::*;
use crate::List;
use std::cell::RefCell;
use std::mem::size_of;
use std::ptr::null;

/// An updater type: a formula over one element of a parameter. `updater!` makes its table.
pub trait Updater {
    /// Returns the next values of the parameter and of the states, which it declares by `update.state`.
    fn record<'p>(given: &Given, update: &'p Recorder) -> Done<Next<'p>>;
}

/// The results of an updater's formula, the states in the order of their declaration.
pub struct Next<'p> {
    pub parameter: Float<'p>,
    pub states: Vec<Float<'p>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Input {
    Parameter,
    Gradient,
    State(usize),
    Scalar(i32),
}

/// The inputs of the formula. Each is asked for once, in any order.
pub struct Recorder<'a> {
    to: &'a UpdateRecorder,
    program: Program,
    inputs: RefCell<Vec<Input>>,
}

impl Recorder<'_> {
    fn input(&self, input: Input, extent: u8) -> Float<'_> {
        assert!(!self.inputs.borrow().contains(&input), "an input of an updater is asked for twice");
        self.inputs.borrow_mut().push(input);
        self.program.input(extent)
    }
    pub fn parameter(&self) -> Float<'_> {
        self.input(Input::Parameter, FULL)
    }
    pub fn gradient(&self) -> Float<'_> {
        self.input(Input::Gradient, FULL)
    }
    /// Declares the next state, a number for each element, which the host keeps, and returns its current value; `name`
    /// comes from text!.
    pub fn state(&self, name: Text, initial: f64) -> Done<Float<'_>> {
        let size = size_of::<StateTable>() as u32;
        let state = StateTable { size, extent: FULL, reserved: [0; 3], dtype: F32, reserved2: 0, name, initial };
        // SAFETY: the host copies the declaration.
        let number = unsafe { (self.to.state)(self.to.this, &state) };
        if number < 0 {
            Err(Failure::Reported(INVALID))
        } else {
            Ok(self.input(Input::State(number as usize), FULL))
        }
    }
    /// The learning rate after the schedule.
    pub fn learning_rate(&self) -> Float<'_> {
        self.input(Input::Scalar(SCALAR_LEARNING_RATE), SCALAR)
    }
    /// The number of this update, from 1.
    pub fn step(&self) -> Float<'_> {
        self.input(Input::Scalar(SCALAR_STEP), SCALAR)
    }
    /// Of this parameter: the factor of its learning rate.
    pub fn rate_multiplier(&self) -> Float<'_> {
        self.input(Input::Scalar(SCALAR_RATE_MULTIPLIER), SCALAR)
    }
    /// Of this parameter: the factor of its weight decay.
    pub fn decay_multiplier(&self) -> Float<'_> {
        self.input(Input::Scalar(SCALAR_DECAY_MULTIPLIER), SCALAR)
    }

    fn finish(&self, next: Next) -> Done {
        if !self.inputs.borrow().contains(&Input::Parameter) {
            self.parameter();
        }
        if !self.inputs.borrow().contains(&Input::Gradient) {
            self.gradient();
        }
        self.program.output(next.parameter);
        for state in next.states {
            self.program.output(state);
        }
        // The host's order: parameter, gradient, states, scalars.
        let inputs = self.inputs.borrow();
        let states = inputs.iter().filter(|input| matches!(input, Input::State(_))).count();
        let mut scalars = Vec::new();
        let order: Vec<i32> = inputs
            .iter()
            .map(|input| match input {
                Input::Parameter => 0,
                Input::Gradient => 1,
                Input::State(number) => 2 + *number as i32,
                Input::Scalar(which) => {
                    scalars.push(*which);
                    (1 + states + scalars.len()) as i32
                }
            })
            .collect();
        self.program.renumber(&order);
        check(self.program.table(|program| {
            let update = Update {
                size: size_of::<Update>() as u32,
                grain: GRAIN_ELEMENT,
                program,
                scalars: scalars.as_ptr(),
                scalars_count: scalars.len() as u32,
                reserved: 0,
            };
            // SAFETY: the host copies the program.
            unsafe { (self.to.program)(self.to.this, &update) }
        }))
    }
}

// ---- the table

unsafe extern "C" fn record<T: Updater>(recorder: *const UpdateRecorder) -> Status {
    guarded((*recorder).errors, || {
        let wrapped = Recorder { to: &*recorder, program: Program::new(), inputs: RefCell::new(Vec::new()) };
        wrapped.finish(T::record(&Given(&*(*recorder).attributes), &wrapped)?)
    })
}

pub const fn updater_description(
    name: Text,
    doc: Text,
    version: u32,
    attributes: List<Attribute>,
) -> UpdaterDescription {
    UpdaterDescription {
        size: size_of::<UpdaterDescription>() as u32,
        attributes_count: attributes.count,
        r#type: name,
        doc,
        attributes: attributes.items,
        state_version: version,
        reserved: 0,
    }
}
pub const fn updater_type<T: Updater>(description: &'static UpdaterDescription) -> UpdaterType {
    let size = size_of::<UpdaterType>() as u32;
    UpdaterType { size, reserved: 0, description, record: record::<T>, extension: null(), user: null() }
}

/// Makes the static table of an updater type; the number is the version of its states:
///
///   updater! { UPDATER: Descent, "vendor.descent", "the formula", 1,
///       attributes [Attribute::float(text!("learning_rate"), text!("step size"), 0.01)] }
#[macro_export]
macro_rules! updater {
    ($table:ident: $type:ty, $name:literal, $doc:expr, $version:literal, attributes [$($attribute:expr),* $(,)?]) => {
        static $table: $crate::Table<$crate::UpdaterType> = $crate::Table({
            static DESCRIPTION: $crate::Table<$crate::UpdaterDescription> = $crate::Table($crate::updater_description(
                $crate::text!($name),
                $crate::text!($doc),
                $version,
                $crate::list!($crate::Attribute; $($attribute),*),
            ));
            $crate::updater_type::<$type>(&DESCRIPTION.0)
        });
    };
}
