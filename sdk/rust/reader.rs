//! Readers of dense samples whose number is known. SPDX-License-Identifier: MIT
use crate::failure::*;
use crate::memory::enough;
use crate::tables::*;
use crate::values::*;
use crate::List;
use std::ffi::{c_void, CStr, CString, OsStr};
use std::mem::size_of;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null;

/// A reader type; an object has opened its data. `reader!` makes its table. Positions, seeking and shuffling follow
/// from `samples` and `read`.
pub trait Reader: Sized + Send {
    fn open(open: &Opening) -> Done<Self>;
    /// Called once, after `open`.
    fn slots(&self) -> Vec<Slot>;
    /// The number of samples of this shard.
    fn samples(&self) -> usize;
    /// Writes every slot of sample `index` of this shard.
    fn read(&mut self, index: usize, to: &mut Sample) -> Done;
}

/// A slot of dense values.
pub struct Slot {
    pub name: &'static str,
    pub dtype: u32,
    /// Of one sample; empty: one number.
    pub shape: Vec<i64>,
    /// Integers are in [0, index_limit); -1 if unknown.
    pub index_limit: i64,
}

/// The argument of `open`.
pub struct Opening<'a>(&'a ReaderOpen);

impl<'a> Opening<'a> {
    pub fn given(&self) -> Given<'a> {
        // SAFETY: here and below the host's pointers are valid until open returns.
        Given(unsafe { &*self.0.attributes })
    }
    /// The options of this plugin, whose id is given; None on a host that has none.
    pub fn options(&self, id: Text) -> Option<Given<'a>> {
        unsafe { options_of(self.0.services, id) }
    }
    /// Whether sample `number` of the data belongs to this shard.
    pub fn has(&self, number: usize) -> bool {
        number % self.0.shards as usize == self.0.shard as usize
    }
    /// The path, if it is relative within the folder of the job.
    pub fn path(&self, name: &str) -> PathBuf {
        if self.0.directory.is_null() {
            return PathBuf::from(name);
        }
        Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(self.0.directory) }.to_bytes())).join(name)
    }
}

/// The memory of one sample.
pub struct Sample<'a> {
    slots: &'a [SlotTable],
    buffers: &'a ReaderBuffers,
    number: usize,
    written: &'a mut [bool],
}

impl Sample<'_> {
    /// The elements of a slot.
    pub fn dense<T: Element>(&mut self, slot: usize) -> &mut [T] {
        let of = &self.slots[slot];
        assert_eq!(of.dtype, T::DTYPE, "slot {} has another element type", slot);
        self.written[slot] = true;
        let count = shape(of).iter().product::<i64>() as usize;
        // SAFETY: the host's buffer has room for `capacity` samples, and `number` is below it.
        unsafe {
            let first = *self.buffers.data.add(slot) as *mut T;
            if count == 0 {
                &mut []
            } else {
                std::slice::from_raw_parts_mut(first.add(self.number * count), count)
            }
        }
    }
}
fn shape(of: &SlotTable) -> &[i64] {
    // SAFETY: `Instance::new` set shape and rank.
    if of.rank == 0 {
        &[]
    } else {
        unsafe { std::slice::from_raw_parts(of.shape, of.rank as usize) }
    }
}

/// An object with what the C table needs of it. The pointers lead into the vectors beside them, which do not change.
struct Instance<T> {
    reader: T,
    errors: *const Errors,
    samples: usize,
    position: usize,
    slots: Vec<SlotTable>,
    written: Vec<bool>, // of the current sample
    names: Vec<CString>,
    _shapes: Vec<Vec<i64>>,
    _pointers: Vec<*const SlotTable>,
    schema: ReaderSchema,
}

impl<T: Reader> Instance<T> {
    fn new(open: &ReaderOpen) -> Done<Box<Instance<T>>> {
        let reader = T::open(&Opening(open))?;
        let described = reader.slots();
        let names: Vec<CString> = described.iter().map(|slot| c_text(slot.name)).collect();
        let shapes: Vec<Vec<i64>> = described.iter().map(|slot| slot.shape.clone()).collect();
        let table = |(i, slot): (usize, &Slot)| SlotTable {
            size: size_of::<SlotTable>() as u32,
            dtype: slot.dtype,
            name: names[i].as_ptr(),
            storage: DENSE,
            rank: slot.shape.len() as i32,
            shape: shapes[i].as_ptr(),
            index_limit: slot.index_limit,
            levels: 0,
            reserved: 0,
            names: null(),
        };
        let slots: Vec<SlotTable> = described.iter().enumerate().map(table).collect();
        let pointers: Vec<*const SlotTable> = slots.iter().map(|slot| slot as *const SlotTable).collect();
        let size = size_of::<ReaderSchema>() as u32;
        let schema = ReaderSchema { size, slots_count: slots.len() as u32, slots: pointers.as_ptr() };
        let samples = reader.samples();
        Ok(Box::new(Instance {
            reader,
            errors: open.errors,
            samples,
            position: 0,
            written: vec![false; slots.len()],
            slots,
            names,
            _shapes: shapes,
            _pointers: pointers,
            schema,
        }))
    }
    fn read(&mut self, index: usize, buffers: &ReaderBuffers, number: usize) -> Done {
        self.written.fill(false);
        self.reader.read(index, &mut Sample { slots: &self.slots, buffers, number, written: &mut self.written })?;
        match self.written.iter().position(|written| !written) {
            Some(slot) => fail(PLUGIN_FAULT, self.names[slot].to_string_lossy(), "is not written for every sample"),
            None => Ok(()),
        }
    }
    /// Reads until the buffers are full. After a failure the samples before it are returned first; the call after that
    /// fails again, and the next one skips a damaged record.
    fn next(&mut self, buffers: &ReaderBuffers, count: &mut i64) -> Done<Status> {
        if self.position == self.samples {
            self.position = 0;
            return Ok(END);
        }
        if buffers.capacity < 1 {
            return Ok(NEED_CAPACITY);
        }
        while *count < buffers.capacity && self.position < self.samples {
            match self.read(self.position, buffers, *count as usize) {
                Ok(()) => (),
                Err(_) if *count > 0 => break,
                Err(failure) => {
                    if matches!(failure, Failure::New(BAD_DATA, ..)) {
                        self.position += 1;
                    }
                    return Err(failure);
                }
            }
            *count += 1;
            self.position += 1;
        }
        Ok(OK)
    }
}

// ---- the table

unsafe fn of<'a, T>(instance: *mut c_void) -> &'a mut Instance<T> {
    &mut *(instance as *mut Instance<T>)
}
unsafe extern "C" fn open<T: Reader>(open: *const ReaderOpen, instance: *mut *mut c_void) -> Status {
    guarded((*open).errors, || {
        let made = Instance::<T>::new(&*open)?;
        enough()?;
        *instance = Box::into_raw(made) as *mut c_void;
        Ok(())
    })
}
unsafe extern "C" fn close<T: Reader>(instance: *mut c_void) {
    dropped(|| drop(Box::from_raw(instance as *mut Instance<T>)));
}
unsafe extern "C" fn schema<T: Reader>(instance: *mut c_void) -> *const ReaderSchema {
    &of::<T>(instance).schema
}
unsafe extern "C" fn samples<T: Reader>(instance: *mut c_void) -> i64 {
    of::<T>(instance).samples as i64
}
unsafe extern "C" fn read_at<T: Reader>(
    instance: *mut c_void,
    indices: *const i64,
    count: i64,
    buffers: *const ReaderBuffers,
) -> Status {
    let it = of::<T>(instance);
    answered(it.errors, || {
        if count > (*buffers).capacity {
            return Ok(NEED_CAPACITY);
        }
        for i in 0..count as usize {
            it.read(*indices.add(i) as usize, &*buffers, i)?;
        }
        Ok(OK)
    })
}
unsafe extern "C" fn next<T: Reader>(instance: *mut c_void, buffers: *const ReaderBuffers, count: *mut i64) -> Status {
    let it = of::<T>(instance);
    *count = 0;
    answered(it.errors, || it.next(&*buffers, &mut *count))
}
unsafe extern "C" fn position<T: Reader>(instance: *mut c_void) -> i64 {
    of::<T>(instance).position as i64
}
unsafe extern "C" fn seek<T: Reader>(instance: *mut c_void, position: i64) -> Status {
    let it = of::<T>(instance);
    guarded(it.errors, || {
        if position < 0 || position as usize > it.samples {
            return fail(INVALID, "position", format!("{} is not between 0 and {}", position, it.samples));
        }
        it.position = position as usize;
        Ok(())
    })
}

pub const fn reader_description(name: Text, doc: Text, attributes: List<Attribute>) -> ReaderDescription {
    ReaderDescription {
        size: size_of::<ReaderDescription>() as u32,
        attributes_count: attributes.count,
        r#type: name,
        doc,
        attributes: attributes.items,
        traits: 0,
        reserved: 0,
    }
}
pub const fn reader_type<T: Reader>(description: &'static ReaderDescription) -> ReaderType {
    ReaderType {
        size: size_of::<ReaderType>() as u32,
        reserved: 0,
        description,
        open: open::<T>,
        close: close::<T>,
        schema: schema::<T>,
        samples: samples::<T>,
        read_at: read_at::<T>,
        next: next::<T>,
        position: position::<T>,
        seek: seek::<T>,
        extension: null(),
        user: null(),
    }
}

/// Makes the static table of a reader type:
///
///   reader! { READER: Lines, "vendor.lines", "what it reads",
///       attributes [Attribute::string(text!("file"), text!("the file to read")).required()] }
#[macro_export]
macro_rules! reader {
    ($table:ident: $type:ty, $name:literal, $doc:expr, attributes [$($attribute:expr),* $(,)?]) => {
        static $table: $crate::Table<$crate::ReaderType> = $crate::Table({
            static DESCRIPTION: $crate::Table<$crate::ReaderDescription> = $crate::Table($crate::reader_description(
                $crate::text!($name),
                $crate::text!($doc),
                $crate::list!($crate::Attribute; $($attribute),*),
            ));
            $crate::reader_type::<$type>(&DESCRIPTION.0)
        });
    };
}
