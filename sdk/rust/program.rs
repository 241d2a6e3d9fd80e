//! Pointwise programs written as formulas: nothing is computed, each operator records an instruction of
//! tenon/program.h. SPDX-License-Identifier: MIT
use crate::tables::*;
use std::cell::RefCell;
use std::mem::size_of;
use std::ops::{Add, Div, Mul, Neg, Sub};

#[derive(Default)]
struct Recorded {
    instructions: Vec<Instruction>,
    inputs: Vec<ProgramInput>,
    outputs: Vec<ProgramOutput>,
}

/// The instructions so far.
#[derive(Default)]
pub struct Program(RefCell<Recorded>);

/// A float value of a program.
#[derive(Clone, Copy)]
pub struct Float<'p> {
    program: &'p Program,
    number: i32,
}
/// A truth value of a program.
#[derive(Clone, Copy)]
pub struct Logical<'p> {
    program: &'p Program,
    number: i32,
}

impl Program {
    pub fn new() -> Program {
        Program::default()
    }
    fn append(&self, op: u16, kind: u8, extent: u8, operands: [i32; 3], number: f64) -> i32 {
        let [a, b, c] = operands;
        let mut to = self.0.borrow_mut();
        to.instructions.push(Instruction { op, kind, extent, a, b, c, number });
        to.instructions.len() as i32 - 1
    }
    fn float(&self, op: u16, extent: u8, operands: [i32; 3]) -> Float<'_> {
        Float { program: self, number: self.append(op, KIND_FLOAT, extent, operands, 0.0) }
    }
    /// The next input, of an extent such as FULL.
    pub fn input(&self, extent: u8) -> Float<'_> {
        let mut to = self.0.borrow_mut();
        to.inputs.push(ProgramInput { extent, kind: KIND_FLOAT, reserved: 0 });
        let number = to.inputs.len() as i32 - 1;
        drop(to);
        self.float(OP_INPUT, extent, [number, -1, -1])
    }
    pub fn constant(&self, number: f64) -> Float<'_> {
        Float { program: self, number: self.append(OP_CONSTANT, KIND_FLOAT, SCALAR, [-1; 3], number) }
    }
    /// Makes the value the next output, in the compute type.
    pub fn output(&self, value: Float) {
        self.0
            .borrow_mut()
            .outputs
            .push(ProgramOutput { value: self.own(value.program, value.number), dtype: COMPUTE });
    }
    pub(crate) fn counts(&self) -> (usize, usize) {
        let of = self.0.borrow();
        (of.inputs.len(), of.outputs.len())
    }
    /// Gives input i the number order[i].
    pub(crate) fn renumber(&self, order: &[i32]) {
        let mut of = self.0.borrow_mut();
        for each in of.instructions.iter_mut().filter(|each| each.op == OP_INPUT) {
            each.a = order[each.a as usize];
        }
        let inputs = of.inputs.clone();
        for (input, number) in inputs.iter().zip(order) {
            of.inputs[*number as usize] = *input;
        }
    }
    /// Calls `use_it` with the table for C.
    pub(crate) fn table<R>(&self, use_it: impl FnOnce(&ProgramTable) -> R) -> R {
        let of = self.0.borrow();
        use_it(&ProgramTable {
            size: size_of::<ProgramTable>() as u32,
            instructions_count: of.instructions.len() as u32,
            instructions: of.instructions.as_ptr(),
            inputs_count: of.inputs.len() as u32,
            outputs_count: of.outputs.len() as u32,
            inputs: of.inputs.as_ptr(),
            outputs: of.outputs.as_ptr(),
        })
    }
    fn own(&self, program: &Program, number: i32) -> i32 {
        assert!(std::ptr::eq(self, program), "an expression joins values of two programs");
        number
    }
}

impl<'p> Float<'p> {
    fn unary(self, op: u16) -> Float<'p> {
        self.program.float(op, 0, [self.number, -1, -1])
    }
    fn binary(self, op: u16, other: Float<'p>) -> Float<'p> {
        self.program.float(op, 0, [self.number, self.program.own(other.program, other.number), -1])
    }
    fn compare(self, op: u16, other: Float<'p>) -> Logical<'p> {
        let operands = [self.number, self.program.own(other.program, other.number), -1];
        Logical { program: self.program, number: self.program.append(op, KIND_LOGICAL, 0, operands, 0.0) }
    }
    pub fn abs(self) -> Float<'p> {
        self.unary(OP_ABS)
    }
    pub fn sqrt(self) -> Float<'p> {
        self.unary(OP_SQRT)
    }
    pub fn exp(self) -> Float<'p> {
        self.unary(OP_EXP)
    }
    pub fn ln(self) -> Float<'p> {
        self.unary(OP_LOG)
    }
    pub fn tanh(self) -> Float<'p> {
        self.unary(OP_TANH)
    }
    /// -1, 0 or 1.
    pub fn sign(self) -> Float<'p> {
        self.unary(OP_SIGN)
    }
    pub fn powf(self, exponent: Float<'p>) -> Float<'p> {
        self.binary(OP_POW, exponent)
    }
    pub fn min(self, other: Float<'p>) -> Float<'p> {
        self.binary(OP_MIN, other)
    }
    pub fn max(self, other: Float<'p>) -> Float<'p> {
        self.binary(OP_MAX, other)
    }
    pub fn equal(self, other: Float<'p>) -> Logical<'p> {
        self.compare(OP_EQUAL, other)
    }
    pub fn less(self, other: Float<'p>) -> Logical<'p> {
        self.compare(OP_LESS, other)
    }
    /// The sum to a smaller extent: SCALAR of all, PER_ROW of each row, PER_COLUMN of each column.
    pub fn sum(self, extent: u8) -> Float<'p> {
        self.program.float(OP_REDUCE_SUM, extent, [self.number, -1, -1])
    }
    pub fn maximum(self, extent: u8) -> Float<'p> {
        self.program.float(OP_REDUCE_MAX, extent, [self.number, -1, -1])
    }
}
impl<'p> Logical<'p> {
    /// 1 or 0.
    pub fn to_float(self) -> Float<'p> {
        self.program.float(OP_CAST, 0, [self.number, -1, -1])
    }
    pub fn select(self, yes: Float<'p>, no: Float<'p>) -> Float<'p> {
        let of = self.program;
        of.float(OP_SELECT, 0, [self.number, of.own(yes.program, yes.number), of.own(no.program, no.number)])
    }
}

/// The operators of two values, and of a value and a number.
macro_rules! operators {
    ($($trait:ident $method:ident $op:ident,)*) => { $(
        impl<'p> $trait for Float<'p> {
            type Output = Float<'p>;
            fn $method(self, other: Float<'p>) -> Float<'p> {
                self.binary($op, other)
            }
        }
        impl<'p> $trait<f64> for Float<'p> {
            type Output = Float<'p>;
            fn $method(self, other: f64) -> Float<'p> {
                self.binary($op, self.program.constant(other))
            }
        }
        impl<'p> $trait<Float<'p>> for f64 {
            type Output = Float<'p>;
            fn $method(self, other: Float<'p>) -> Float<'p> {
                other.program.constant(self).binary($op, other)
            }
        }
    )* };
}
operators! { Add add OP_ADD, Sub sub OP_SUB, Mul mul OP_MUL, Div div OP_DIV, }

impl<'p> Neg for Float<'p> {
    type Output = Float<'p>;
    fn neg(self) -> Float<'p> {
        self.unary(OP_NEG)
    }
}
