//! Safe objects over raw.rs: failures are Errors, objects release their handles and keep their host, and what a machine
//! lends cannot outlive its next call. SPDX-License-Identifier: Apache-2.0
use crate::raw;
use std::ffi::{c_void, CStr, CString};
use std::fmt;
use std::mem::{size_of, zeroed};
use std::os::raw::c_char;
use std::ptr::{null, null_mut};
use std::rc::Rc;

/// A call that failed and changed nothing.
#[derive(Debug)]
pub struct Error {
    pub code: raw::Status,
    pub message: String,
    pub component: String,
    pub subject: String,
}
impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.message)
    }
}
impl std::error::Error for Error {}
pub type Result<T> = std::result::Result<T, Error>;

/// Makes a call that fills an error.
fn checked(call: impl FnOnce(*mut raw::Error) -> raw::Status) -> Result<()> {
    // SAFETY: zeros are a value of each member.
    let mut error: Box<raw::Error> = Box::new(unsafe { zeroed() });
    error.size = size_of::<raw::Error>() as u32;
    let code = call(&mut *error);
    if code == raw::OK {
        return Ok(());
    }
    Err(Error { code, message: text(&error.message), component: text(&error.component), subject: text(&error.subject) })
}
fn text(from: &[c_char]) -> String {
    // SAFETY: all texts of a tn_error end with a NUL.
    unsafe { CStr::from_ptr(from.as_ptr()) }.to_string_lossy().into_owned()
}
fn invalid(message: String, subject: &str) -> Error {
    Error { code: raw::INVALID, message, component: String::new(), subject: subject.to_string() }
}
fn c_text(from: &str) -> Result<CString> {
    CString::new(from).map_err(|_| invalid(format!("the text {:?} has a NUL", from), from))
}

/// A tn_host, which ends with its last object.
struct HostPointer(*mut raw::Host);
impl Drop for HostPointer {
    fn drop(&mut self) {
        // SAFETY: the pointer is that of tn_host_create, and nobody uses it afterwards.
        unsafe { raw::tn_host_release(self.0) }
    }
}

type Release = unsafe extern "C" fn(*mut raw::Host, raw::Handle, *mut raw::Error) -> raw::Status;

/// A handle and its host.
struct Object {
    host: Rc<HostPointer>,
    handle: raw::Handle,
    release: Release,
}
impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: the host lives. A failure would mean a stale handle, of which there is nothing to release.
        unsafe { (self.release)(self.host.0, self.handle, null_mut()) };
    }
}

pub struct Layer(Object);
pub struct Parameters(Object);
pub struct Machine(Object);
pub struct Updater(Object);

/// The value of an attribute.
pub enum Value<'a> {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'a str),
}

/// Attributes as C reads them. `texts` holds what the values point to.
struct Attributes {
    _texts: Vec<CString>,
    values: Vec<raw::NamedValue>,
}
impl Attributes {
    fn new(given: &[(&str, Value)]) -> Result<Attributes> {
        let mut texts = Vec::new();
        let mut keep = |from: &str| -> Result<raw::Text> {
            texts.push(c_text(from)?);
            Ok(texts[texts.len() - 1].as_ptr()) // of the heap: it stays when the list grows
        };
        let mut values = Vec::new();
        for (name, value) in given {
            let (kind, of) = match value {
                Value::Bool(value) => (raw::ATTR_BOOL, raw::ValueOf { i: i64::from(*value) }),
                Value::Int(value) => (raw::ATTR_INT, raw::ValueOf { i: *value }),
                Value::Float(value) => (raw::ATTR_FLOAT, raw::ValueOf { f: *value }),
                Value::Text(value) => (raw::ATTR_STRING, raw::ValueOf { s: keep(value)? }),
            };
            values.push(raw::NamedValue { name: keep(name)?, value: raw::Value { kind, count: 1, of } });
        }
        Ok(Attributes { _texts: texts, values })
    }
}

/// One data layer's minibatch: `shape` is [samples, shape of a sample...].
pub enum Feed<'a> {
    Floats(&'a str, &'a [i64], &'a [f32]),
    Integers(&'a str, &'a [i64], &'a [i64]),
}

pub struct Host(Rc<HostPointer>);

impl Host {
    /// A host with all cores and the plugins beside the library.
    pub fn new() -> Result<Host> {
        let mut host = null_mut();
        // SAFETY: all pointers are valid or, as allowed, null; likewise below.
        checked(|error| unsafe { raw::tn_host_create(null(), &mut host, error) })?;
        Ok(Host(Rc::new(HostPointer(host))))
    }

    fn object(&self, release: Release, make: impl FnOnce(*mut raw::Handle, *mut raw::Error) -> raw::Status)
        -> Result<Object> {
        let mut handle = raw::Handle::default();
        checked(|error| make(&mut handle, error))?;
        Ok(Object { host: self.0.clone(), handle, release })
    }

    /// A data layer of floats of `shape`, the shape of one sample.
    pub fn floats(&self, name: &str, shape: &[i64]) -> Result<Layer> {
        self.data(name, raw::F32, shape, -1)
    }
    /// A data layer of one integer in [0, limit).
    pub fn class(&self, name: &str, limit: i64) -> Result<Layer> {
        self.data(name, raw::I64, &[], limit)
    }
    fn data(&self, name: &str, dtype: raw::Dtype, shape: &[i64], index_limit: i64) -> Result<Layer> {
        let name = c_text(name)?;
        // SAFETY: zeros mean "not given" in every options struct; likewise below.
        let mut options: raw::DataOptions = unsafe { zeroed() };
        options.size = size_of::<raw::DataOptions>() as u32;
        options.dtype = dtype;
        options.name = name.as_ptr();
        options.shape = shape.as_ptr();
        options.rank = shape.len() as i32;
        options.index_limit = index_limit;
        let make = |layer, error| unsafe { raw::tn_data_create(self.0 .0, &options, layer, error) };
        Ok(Layer(self.object(raw::tn_layer_release, make)?))
    }

    pub fn layer(&self, kind: &str, name: &str, inputs: &[&Layer], attributes: &[(&str, Value)]) -> Result<Layer> {
        let (kind, name, inputs) = (c_text(kind)?, c_text(name)?, handles(inputs));
        let attributes = Attributes::new(attributes)?;
        let mut options: raw::LayerOptions = unsafe { zeroed() };
        options.size = size_of::<raw::LayerOptions>() as u32;
        options.kind = kind.as_ptr();
        options.name = name.as_ptr();
        options.inputs = inputs.as_ptr();
        options.inputs_count = inputs.len() as u32;
        options.attributes = attributes.values.as_ptr();
        options.attributes_count = attributes.values.len() as u32;
        let make = |layer, error| unsafe { raw::tn_layer_create(self.0 .0, &options, layer, error) };
        Ok(Layer(self.object(raw::tn_layer_release, make)?))
    }

    /// The parameters of these outputs, with first values.
    pub fn parameters(&self, outputs: &[&Layer], seed: u64) -> Result<Parameters> {
        let outputs = handles(outputs);
        let (list, count) = (outputs.as_ptr(), outputs.len() as u32);
        let make = |made, error| unsafe { raw::tn_parameters_create(self.0 .0, list, count, seed, made, error) };
        Ok(Parameters(self.object(raw::tn_parameters_release, make)?))
    }

    /// A machine for minibatches of at most `max_samples`.
    pub fn machine(&self, of: &Parameters, outputs: &[&Layer], max_samples: i64, training: bool) -> Result<Machine> {
        let outputs = handles(outputs);
        let (list, count) = (outputs.as_ptr(), outputs.len() as u32);
        let mut options: raw::MachineOptions = unsafe { zeroed() };
        options.size = size_of::<raw::MachineOptions>() as u32;
        options.max_samples = max_samples;
        options.training = u32::from(training);
        let make = |made, error| unsafe {
            raw::tn_machine_create(self.0 .0, of.0.handle, list, count, &options, made, error)
        };
        Ok(Machine(self.object(raw::tn_machine_release, make)?))
    }

    pub fn updater(&self, kind: &str, attributes: &[(&str, Value)]) -> Result<Updater> {
        let (kind, attributes) = (c_text(kind)?, Attributes::new(attributes)?);
        let make = |made, error| unsafe {
            raw::tn_updater_create(
                self.0 .0, kind.as_ptr(), attributes.values.as_ptr(), attributes.values.len() as u32, made, error,
            )
        };
        Ok(Updater(self.object(raw::tn_updater_release, make)?))
    }

    /// The parameters and the outputs of a model file.
    pub fn load(&self, path: &str) -> Result<(Parameters, Vec<Layer>)> {
        const MOST: usize = 16;
        let path = c_text(path)?;
        let mut outputs = [raw::Handle::default(); MOST];
        let mut count = MOST as u32;
        let make = |made, error| unsafe {
            raw::tn_model_load(self.0 .0, path.as_ptr(), outputs.as_mut_ptr(), &mut count, made, error)
        };
        let parameters = Parameters(self.object(raw::tn_parameters_release, make)?);
        let layer = |handle: &raw::Handle| {
            Layer(Object { host: self.0.clone(), handle: *handle, release: raw::tn_layer_release })
        };
        Ok((parameters, outputs[..count as usize].iter().map(layer).collect()))
    }
}

fn handles(layers: &[&Layer]) -> Vec<raw::Handle> {
    layers.iter().map(|layer| layer.0.handle).collect()
}

impl Parameters {
    /// Writes the model of these outputs.
    pub fn save(&self, outputs: &[&Layer], path: &str) -> Result<()> {
        let (path, outputs) = (c_text(path)?, handles(outputs));
        let (list, count) = (outputs.as_ptr(), outputs.len() as u32);
        let Object { host, handle, .. } = &self.0;
        checked(|error| unsafe { raw::tn_model_save(host.0, *handle, list, count, path.as_ptr(), error) })
    }
}

impl Machine {
    /// Runs the model on a minibatch, which is copied.
    pub fn forward(&mut self, feeds: &[Feed]) -> Result<()> {
        let mut names = Vec::new();
        let mut list = Vec::new();
        for feed in feeds {
            let (name, dtype, shape, data, count) = match feed {
                Feed::Floats(name, shape, data) => (name, raw::F32, shape, data.as_ptr() as *mut c_void, data.len()),
                Feed::Integers(name, shape, data) => (name, raw::I64, shape, data.as_ptr() as *mut c_void, data.len()),
            };
            if shape.len() > 8 || shape.iter().product::<i64>() != count as i64 {
                return Err(invalid(format!("feed {:?}: {} numbers are not of shape {:?}", name, count, shape), name));
            }
            names.push(c_text(name)?);
            let mut values: raw::Array = unsafe { zeroed() };
            values.dtype = dtype;
            values.rank = shape.len() as i32;
            values.shape[..shape.len()].copy_from_slice(shape);
            values.data = data;
            list.push(raw::Feed { name: names[names.len() - 1].as_ptr(), values });
        }
        let Object { host, handle, .. } = &self.0;
        checked(|error| unsafe { raw::tn_machine_forward(host.0, *handle, list.as_ptr(), list.len() as u32, error) })
    }

    /// Adds the gradients of the last forward.
    pub fn backward(&mut self) -> Result<()> {
        checked(|error| unsafe { raw::tn_machine_backward(self.0.host.0, self.0.handle, error) })
    }

    /// The mean cost of the last forward.
    pub fn cost(&self) -> Result<f64> {
        let mut cost = 0.0;
        checked(|error| unsafe { raw::tn_machine_cost(self.0.host.0, self.0.handle, &mut cost, error) })?;
        Ok(cost)
    }

    /// A layer's floats of the last forward, row after row. C lends them until the next call on this machine; here the
    /// machine is borrowed as long as they are in use.
    pub fn output(&mut self, layer: &Layer) -> Result<&[f32]> {
        let mut array: raw::Array = unsafe { zeroed() };
        let Object { host, handle, .. } = &self.0;
        checked(|error| unsafe { raw::tn_machine_output(host.0, *handle, layer.0.handle, &mut array, error) })?;
        if array.dtype != raw::F32 {
            return Err(invalid("the output is not of 32-bit floats".to_string(), "layer"));
        }
        let count = array.shape[..array.rank as usize].iter().product::<i64>() as usize;
        if count == 0 {
            return Ok(&[]);
        }
        // SAFETY: the array has as many floats, contiguous, until the next call on the machine, which `self` excludes.
        Ok(unsafe { std::slice::from_raw_parts(array.data as *const f32, count) })
    }
}

impl Updater {
    /// Updates the parameters of the machine from its gradients.
    pub fn update(&mut self, machine: &mut Machine) -> Result<()> {
        let Object { host, handle, .. } = &self.0;
        checked(|error| unsafe { raw::tn_updater_update(host.0, *handle, machine.0.handle, error) })
    }
}

/// The library's version, such as "0.1.0".
pub fn version() -> String {
    // SAFETY: a constant text.
    unsafe { CStr::from_ptr(raw::tn_version()) }.to_string_lossy().into_owned()
}
