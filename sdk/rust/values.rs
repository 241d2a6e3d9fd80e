//! Attributes, shapes and elements. SPDX-License-Identifier: MIT
use crate::failure::*;
use crate::tables::*;
use std::ffi::CStr;
use std::mem::size_of;
use std::ptr::null;

// ---- declarations, in static tables; texts come from text!

impl Attribute {
    const fn new(kind: i32, name: Text, doc: Text, initial: Value) -> Attribute {
        let size = size_of::<Attribute>() as u32;
        Attribute {
            size,
            kind,
            name,
            doc,
            flags: 0,
            has_range: 0,
            initial,
            minimum: 0.0,
            maximum: 0.0,
            choices: null(),
        }
    }
    const fn absent() -> Value {
        Value { kind: 0, count: 0, r#as: ValueOf { i: 0 } }
    }
    pub const fn float(name: Text, doc: Text, initial: f64) -> Attribute {
        Attribute::new(ATTR_FLOAT, name, doc, Value { kind: ATTR_FLOAT, count: 1, r#as: ValueOf { f: initial } })
    }
    pub const fn int(name: Text, doc: Text, initial: i64) -> Attribute {
        Attribute::new(ATTR_INT, name, doc, Value { kind: ATTR_INT, count: 1, r#as: ValueOf { i: initial } })
    }
    pub const fn truth(name: Text, doc: Text, initial: bool) -> Attribute {
        let value = ValueOf { i: initial as i64 };
        Attribute::new(ATTR_BOOL, name, doc, Value { kind: ATTR_BOOL, count: 1, r#as: value })
    }
    /// A text without a default, which may be absent unless `required`.
    pub const fn string(name: Text, doc: Text) -> Attribute {
        Attribute::new(ATTR_STRING, name, doc, Attribute::absent())
    }
    /// A list of texts without a default.
    pub const fn strings(name: Text, doc: Text) -> Attribute {
        Attribute::new(ATTR_STRINGS, name, doc, Attribute::absent())
    }
    pub const fn required(mut self) -> Attribute {
        self.flags |= ATTR_REQUIRED;
        self
    }
    /// Bounds are inclusive.
    pub const fn at_least(mut self, minimum: f64) -> Attribute {
        self.has_range |= 1;
        self.minimum = minimum;
        self
    }
    pub const fn at_most(mut self, maximum: f64) -> Attribute {
        self.has_range |= 2;
        self.maximum = maximum;
        self
    }
}
impl Port {
    pub const fn new(name: Text, doc: Text, flags: u32) -> Port {
        Port { size: size_of::<Port>() as u32, flags, name, doc }
    }
}

// ---- what the host passes

/// The options of the plugin with this id on the host of these services, None if that has none.
///
/// # Safety
/// `services` and `id` are valid for 'a.
pub(crate) unsafe fn options_of<'a>(services: *const Services, id: Text) -> Option<Given<'a>> {
    let services = &*services;
    let table = (services.extension)(services.this, crate::text!("tenon.options/1")) as *const Options;
    let table = table.as_ref()?;
    (table.of)(table.this, id).as_ref().map(Given)
}

/// The checked values of attributes. Reading one that is not declared with this kind panics.
pub struct Given<'a>(pub(crate) &'a Attributes);

impl<'a> Given<'a> {
    fn find(&self, name: &str, kind: i32) -> Option<&'a Value> {
        for i in 0..self.0.count as usize {
            // SAFETY: the host's lists have `count` entries, which live as long as the attributes.
            let (declared, value) = unsafe { (&**self.0.declared.add(i), &*self.0.values.add(i)) };
            if unsafe { CStr::from_ptr(declared.name) }.to_bytes() != name.as_bytes() {
                continue;
            }
            assert_eq!(declared.kind, kind, "the attribute \"{}\" is of another kind", name);
            return if value.kind == 0 { None } else { Some(value) };
        }
        panic!("the attribute \"{}\" is not declared", name)
    }
    fn there(&self, name: &str, kind: i32) -> &'a Value {
        self.find(name, kind).unwrap_or_else(|| panic!("the attribute \"{}\" is absent", name))
    }
    pub fn number(&self, name: &str) -> f64 {
        // SAFETY: here and below the kind states which member of the union is set.
        unsafe { self.there(name, ATTR_FLOAT).r#as.f }
    }
    pub fn integer(&self, name: &str) -> i64 {
        unsafe { self.there(name, ATTR_INT).r#as.i }
    }
    pub fn truth(&self, name: &str) -> bool {
        unsafe { self.there(name, ATTR_BOOL).r#as.i != 0 }
    }
    /// None if the attribute is absent.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.find(name, ATTR_STRING).map(|value| string(unsafe { value.r#as.s }))
    }
    pub fn texts(&self, name: &str) -> Vec<&'a str> {
        let value = match self.find(name, ATTR_STRINGS) {
            Some(value) => value,
            None => return Vec::new(),
        };
        (0..value.count as usize).map(|i| string(unsafe { *value.r#as.strings.add(i) })).collect()
    }
}

/// A text of the host. Texts of the interface are UTF-8.
fn string<'a>(text: Text) -> &'a str {
    // SAFETY: the caller has it from a table of the host.
    unsafe { CStr::from_ptr(text) }.to_str().expect("a text that is not UTF-8")
}

impl Dim {
    pub const fn constant(size: i64) -> Dim {
        Dim { coefficient: 0, offset: size, bound: size, symbol: SYMBOL_NONE, reserved: 0 }
    }
    /// The size, if it is the same for every minibatch.
    pub fn as_constant(&self) -> Option<i64> {
        (self.symbol == SYMBOL_NONE).then(|| self.offset)
    }
}

/// Shape and element type of a value before it has memory.
pub struct Shape<'a>(pub(crate) &'a Spec);

impl<'a> Shape<'a> {
    pub fn dims(&self) -> &'a [Dim] {
        // SAFETY: a spec of the host has `rank` dimensions.
        if self.0.rank == 0 {
            &[]
        } else {
            unsafe { std::slice::from_raw_parts(self.0.dims, self.0.rank as usize) }
        }
    }
    pub fn dtype(&self) -> u32 {
        self.0.dtype
    }
    pub fn storage(&self) -> i32 {
        self.0.storage
    }
}

/// A type of elements.
///
/// # Safety
/// `DTYPE` is the element type of values with this layout, all of whose bits are valid.
pub unsafe trait Element: Copy {
    const DTYPE: u32;
}
// SAFETY: these are the types that the numbers stand for.
unsafe impl Element for f32 {
    const DTYPE: u32 = F32;
}
unsafe impl Element for f64 {
    const DTYPE: u32 = F64;
}
unsafe impl Element for i32 {
    const DTYPE: u32 = I32;
}
unsafe impl Element for i64 {
    const DTYPE: u32 = I64;
}
unsafe impl Element for u8 {
    const DTYPE: u32 = U8;
}

impl Tensor {
    pub fn shape(&self) -> &[i64] {
        // SAFETY: a tensor of the host has `ndim` sizes.
        if self.dl.ndim == 0 {
            &[]
        } else {
            unsafe { std::slice::from_raw_parts(self.dl.shape, self.dl.ndim as usize) }
        }
    }
    pub fn dtype(&self) -> u32 {
        let of = self.dl.dtype;
        of.code as u32 | (of.bits as u32) << 8 | (of.lanes as u32) << 16
    }
    /// The first element and the number of elements, which must be of this type.
    pub(crate) fn elements<T: Element>(&self) -> Done<(*mut T, usize)> {
        if self.dtype() != T::DTYPE {
            return fail(
                PLUGIN_FAULT,
                "",
                format!("a tensor of the element type {:#x} is used as {:#x}", self.dtype(), T::DTYPE),
            );
        }
        let count = self.shape().iter().product::<i64>() as usize;
        // SAFETY: the offset lies within the memory of the tensor.
        Ok((unsafe { (self.dl.data as *mut u8).add(self.dl.byte_offset as usize) } as *mut T, count))
    }
}
