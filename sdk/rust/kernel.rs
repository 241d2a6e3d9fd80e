//! Native kernels. SPDX-License-Identifier: MIT
use crate::failure::*;
use crate::memory::enough;
use crate::tables::*;
use crate::values::*;
use std::ffi::c_void;
use std::mem::size_of;
use std::ptr::null;
use std::sync::Mutex;

/// A native kernel; an object is one prepared call. `kernel!` makes its table.
pub trait Kernel: Sized + Send + Sync {
    /// A failure with UNSUPPORTED passes the kernel over.
    fn supports(_site: &Site) -> Done {
        Ok(())
    }
    /// States what backward reads; by default the gradients of the outputs alone.
    fn query(_site: &Site, _needs: &mut Needs) -> Done {
        Ok(())
    }
    /// `direction`: FORWARD or BACKWARD.
    fn prepare(site: &Site, direction: i32) -> Done<Self>;
    /// The operands are in the order of tenon/kernel.h. Must not allocate.
    fn run(&self, operands: &Operands) -> Done;
}

/// A layer as planned.
pub struct Site<'a>(&'a KernelSite);

impl<'a> Site<'a> {
    pub fn given(&self) -> Given<'a> {
        // SAFETY: here and below the host's pointers are valid until the callback returns.
        Given(unsafe { &*self.0.attributes })
    }
    /// The options of this plugin, whose id is given; None on a host that has none.
    pub fn options(&self, id: Text) -> Option<Given<'a>> {
        unsafe { options_of(self.0.services, id) }
    }
    /// The float type of the machine.
    pub fn compute(&self) -> u32 {
        self.0.compute
    }
    /// How exactly products are to be computed at least, TN_PRECISION_* of tenon/device.h. Since 0.4; on older hosts 0,
    /// that is as the types of the operands ask.
    pub fn precision(&self) -> u32 {
        if self.0.size as usize >= size_of::<KernelSite>() { self.0.precision } else { 0 }
    }
    /// None for an optional input that is absent.
    pub fn input(&self, input: u32) -> Option<Shape<'a>> {
        assert!(input < self.0.inputs_count, "the layer has no input {}", input);
        unsafe { (*self.0.inputs.add(input as usize)).as_ref() }.map(Shape)
    }
}

/// The requirements of a kernel.
pub struct Needs<'a> {
    site: &'a KernelSite,
    needs: &'a mut KernelNeeds,
}

impl Needs<'_> {
    /// Backward reads an input.
    pub fn read_input(&mut self, input: u32) {
        assert!(input < self.site.inputs_count, "the layer has no input {}", input);
        // SAFETY: here and below the host's lists have the counts of the site.
        unsafe { *self.needs.reads_in.add(input as usize) = 1 }
    }
    /// Backward reads a parameter.
    pub fn read_parameter(&mut self, parameter: u32) {
        assert!(parameter < self.site.parameters_count, "the layer has no parameter {}", parameter);
        unsafe { *self.needs.reads_in.add((self.site.inputs_count + parameter) as usize) = 1 }
    }
    /// Backward reads an output.
    pub fn read_output(&mut self, output: u32) {
        assert!(output < self.site.outputs_count, "the layer has no output {}", output);
        unsafe { *self.needs.reads_out.add(output as usize) = 1 }
    }
}

/// The operands of a run, and the host's threads.
pub struct Operands<'a> {
    execution: &'a Execution,
    call: &'a Call,
}

impl<'a> Operands<'a> {
    /// None if the operand is absent.
    pub fn input<T: Element>(&self, number: u32) -> Done<Option<&'a [T]>> {
        assert!(number < self.call.inputs_count, "the call has no input {}", number);
        // SAFETY: here and below tensors of the host are valid during the run; outputs share no memory with inputs,
        // since `Needs` does not allow it.
        let tensor = match unsafe { (*self.call.inputs.add(number as usize)).as_ref() } {
            Some(tensor) => tensor,
            None => return Ok(None),
        };
        let (first, count) = tensor.elements::<T>()?;
        Ok(Some(if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(first, count) } }))
    }
    /// An input that is there.
    pub fn expect<T: Element>(&self, number: u32) -> Done<&'a [T]> {
        Ok(self.input(number)?.unwrap_or_else(|| panic!("input {} of the call is absent", number)))
    }
    /// The sizes of an output; None if nobody reads it, so that it is not computed.
    pub fn output_shape(&self, number: u32) -> Option<&'a [i64]> {
        assert!(number < self.call.outputs_count, "the call has no output {}", number);
        let wanted = unsafe { *self.call.requests.add(number as usize) } != REQUEST_NONE;
        unsafe { (*self.call.outputs.add(number as usize)).as_ref() }.filter(|_| wanted).map(Tensor::shape)
    }
    /// Whether the run adds to the values of an output, which is a gradient of a parameter, instead of replacing them.
    pub fn adds(&self, number: u32) -> bool {
        assert!(number < self.call.outputs_count, "the call has no output {}", number);
        unsafe { *self.call.requests.add(number as usize) == REQUEST_ADD }
    }
    /// Calls body(i, chunk i) on the host's threads for each chunk of `size` elements of an output; the last one may be
    /// shorter. A failure or panic of one is that of the run.
    pub fn chunks<T: Element>(
        &self,
        number: u32,
        size: usize,
        body: &(dyn Fn(usize, &mut [T]) -> Done + Sync),
    ) -> Done {
        if self.output_shape(number).is_none() {
            return Ok(());
        }
        let (first, count) = unsafe { &**self.call.outputs.add(number as usize) }.elements::<T>()?;
        let to = Chunks { first, count, size: size.max(1), body, failed: Mutex::new(None) };
        let chunks = (count + to.size - 1) / to.size;
        let parallel = unsafe { &*self.execution.parallel };
        unsafe {
            (parallel.for_each)(parallel.this, chunks as i64, chunk::<T>, &to as *const Chunks<T> as *mut c_void)
        };
        to.failed.into_inner().unwrap_or(None).map_or(Ok(()), Err)
    }
}

struct Chunks<'a, T> {
    first: *mut T,
    count: usize,
    size: usize,
    body: &'a (dyn Fn(usize, &mut [T]) -> Done + Sync),
    failed: Mutex<Option<Failure>>,
}

unsafe extern "C" fn chunk<T: Element>(argument: *mut c_void, index: i64, _worker: i32) {
    let to = &*(argument as *const Chunks<T>);
    let begin = index as usize * to.size;
    // SAFETY: no two tasks have an element in common.
    let elements = std::slice::from_raw_parts_mut(to.first.add(begin), to.size.min(to.count - begin));
    if let Err(failure) = caught(|| (to.body)(index as usize, elements)) {
        if let Ok(mut first) = to.failed.lock() {
            first.get_or_insert(failure);
        }
    }
}

// ---- the table

unsafe extern "C" fn supports<T: Kernel>(site: *const KernelSite, _score: *mut i32) -> Status {
    guarded((*site).errors, || T::supports(&Site(&*site)))
}
unsafe extern "C" fn query<T: Kernel>(site: *const KernelSite, needs: *mut KernelNeeds) -> Status {
    guarded((*site).errors, || T::query(&Site(&*site), &mut Needs { site: &*site, needs: &mut *needs }))
}
unsafe extern "C" fn prepare<T: Kernel>(site: *const KernelSite, direction: i32, prepared: *mut Prepared) -> Status {
    guarded((*site).errors, || {
        if direction != FORWARD && direction != BACKWARD {
            return fail(UNSUPPORTED, "", "is neither forward nor backward");
        }
        let made = Box::new(T::prepare(&Site(&*site), direction)?);
        enough()?;
        (*prepared).binding = Box::into_raw(made) as *mut c_void;
        (*prepared).run = Some(run::<T>);
        (*prepared).destroy = Some(destroy::<T>);
        Ok(())
    })
}
unsafe extern "C" fn run<T: Kernel>(binding: *mut c_void, execution: *const Execution, call: *const Call) -> Status {
    let operands = Operands { execution: &*execution, call: &*call };
    guarded(operands.execution.errors, || (*(binding as *const T)).run(&operands))
}
unsafe extern "C" fn destroy<T: Kernel>(binding: *mut c_void) {
    dropped(|| drop(Box::from_raw(binding as *mut T)));
}

pub const fn kernel_table<T: Kernel>(names: [Text; 3], score: i32, dtypes: &'static [u32]) -> KernelTable {
    KernelTable {
        size: size_of::<KernelTable>() as u32,
        score,
        r#type: names[0],
        device: names[1],
        name: names[2],
        dtypes_count: dtypes.len() as u32,
        reserved: 0,
        dtypes: dtypes.as_ptr(),
        supports: supports::<T>,
        query: query::<T>,
        prepare: prepare::<T>,
        fusion: null(),
        shared: null(),
        user: null(),
        attributes: null(),
        attributes_count: 0,
        state_version: 1,
        inputs_known: 0,
        outputs_known: 0,
        parameters_known: 0,
        reserved2: 0,
    }
}

/// Makes the static table of a kernel for a layer type of the same plugin: the type, the device, the name that `plan`
/// shows, the score (the recorded body has 0), and the compute types.
///
///   kernel! { KERNEL: Smooth, "vendor.smooth", "cpu", "smooth", 10, [F32, F64] }
#[macro_export]
macro_rules! kernel {
    ($table:ident: $type:ty, $layer:literal, $device:literal, $name:literal, $score:literal, [$($dtype:expr),+]) => {
        static $table: $crate::Table<$crate::KernelTable> = $crate::Table($crate::kernel_table::<$type>(
            [$crate::text!($layer), $crate::text!($device), $crate::text!($name)],
            $score,
            &[$($dtype),+],
        ));
    };
}
