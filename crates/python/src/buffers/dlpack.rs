//! Tensors by [DLPack](https://dmlc.github.io/dlpack/latest/): the C structures, as of version 1.3.

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{ffi, intern};

use super::{Array, Element, MAX_DIMS, Owner, Place};

const READ_ONLY: u64 = 1;

#[repr(C)]
#[derive(Clone, Copy)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    num_dims: i32,
    type_code: u8,
    type_bits: u8,
    type_lanes: u16,
    shape: *const i64,
    /// In elements; null for C order.
    strides: *const i64,
    byte_offset: u64,
}

#[repr(C)]
struct ManagedTensor {
    tensor: Tensor,
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedTensor)>,
}

#[repr(C)]
struct ManagedTensorVersioned {
    major: u32,
    minor: u32,
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedTensorVersioned)>,
    flags: u64,
    tensor: Tensor,
}

/// A tensor that was handed over: released when dropped.
pub(super) struct Managed(NonNull<c_void>, ManagedKind);

enum ManagedKind {
    Legacy,
    Versioned,
}

impl Drop for Managed {
    fn drop(&mut self) {
        // Deleters of some libraries touch Python objects without attaching.
        Python::attach(|_| match self.1 {
            // SAFETY: the pointer is that of a tensor that was handed over to us, and nothing else
            // releases it.
            ManagedKind::Legacy => unsafe {
                let tensor = self.0.cast::<ManagedTensor>().as_ptr();
                if let Some(delete) = (*tensor).deleter {
                    delete(tensor);
                }
            },
            // SAFETY: as above.
            ManagedKind::Versioned => unsafe {
                let tensor = self.0.cast::<ManagedTensorVersioned>().as_ptr();
                if let Some(delete) = (*tensor).deleter {
                    delete(tensor);
                }
            },
        });
    }
}

/// The functions of a type of tensors, by which one is described without a Python object in
/// between.
#[repr(C)]
struct ExchangeTable {
    major: u32,
    minor: u32,
    earlier: *const c_void,
    allocator: *const c_void,
    managed_from_object: *const c_void,
    managed_to_object: *const c_void,
    tensor_from_object: Option<unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int>,
    current_stream: *const c_void,
}

const TABLE: &CStr = c"dlpack_exchange_api";
const LEGACY: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";

/// An object's tensor, which lies in this memory; `None` where it does not speak DLPack.
pub(super) fn array(
    object: &Bound<'_, PyAny>,
    name: &str,
    place: Place,
) -> PyResult<Option<Array>> {
    let py = object.py();
    if let Some(table) = table(object)? {
        let mut tensor = MaybeUninit::<Tensor>::uninit();
        // SAFETY: the function is from the table of the object's own type, and writes all of the
        // description, which is valid as long as the object lives, when it returns 0.
        let failed = unsafe { table(object.as_ptr().cast(), tensor.as_mut_ptr()) } != 0;
        if failed {
            return Err(PyErr::fetch(py));
        }
        // SAFETY: it was written.
        let tensor = unsafe { tensor.assume_init() };
        let owner = Owner::Object { _object: object.clone().unbind() };
        return described(&tensor, owner, false, (object, name, place)).map(Some);
    }
    let Some(export) = object.getattr_opt(intern!(py, "__dlpack__"))? else {
        return Ok(None);
    };
    let options = PyDict::new(py);
    if place != Place::Host {
        // Nothing is waited for: what reads and writes it comes onto the caller's stream.
        options.set_item(intern!(py, "stream"), -1)?;
    }
    let versions = options.copy()?;
    versions.set_item(intern!(py, "max_version"), (1, 0))?;
    let capsule = match export.call((), Some(&versions)) {
        // Before DLPack 1.0 the argument was not known.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => export.call((), Some(&options))?,
        capsule => capsule?,
    };
    let (pointer, kind) =
        if let Some(pointer) = take(&capsule, VERSIONED, c"used_dltensor_versioned")? {
            (pointer, ManagedKind::Versioned)
        } else if let Some(pointer) = take(&capsule, LEGACY, c"used_dltensor")? {
            (pointer, ManagedKind::Legacy)
        } else {
            return Err(PyTypeError::new_err(format!("{name}.__dlpack__() gave no tensor")));
        };
    let managed = Managed(pointer, kind);
    // SAFETY: the capsule's name says which structure it holds; its version, where it has one, is
    // checked.
    let (tensor, read_only) = unsafe {
        match managed.1 {
            ManagedKind::Legacy => (pointer.cast::<ManagedTensor>().as_ref().tensor, false),
            ManagedKind::Versioned => {
                let versioned = pointer.cast::<ManagedTensorVersioned>().as_ref();
                if versioned.major != 1 {
                    let (major, minor) = (versioned.major, versioned.minor);
                    return Err(PyTypeError::new_err(format!(
                        "{name} speaks DLPack {major}.{minor}; only 1.x is known here"
                    )));
                }
                (versioned.tensor, versioned.flags & READ_ONLY != 0)
            }
        }
    };
    let owner = Owner::Managed { _tensor: managed };
    described(&tensor, owner, read_only, (object, name, place)).map(Some)
}

type Describe = unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int;

/// The function of an object's type that describes it, where the type has a table of the version
/// that is known.
fn table(object: &Bound<'_, PyAny>) -> PyResult<Option<Describe>> {
    let attribute = intern!(object.py(), "__dlpack_c_exchange_api__");
    let Some(capsule) = object.get_type().getattr_opt(attribute)? else { return Ok(None) };
    // SAFETY: the pointer is that of a live object; it is asked for the name first.
    let table = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), TABLE.as_ptr()) != 1 {
            return Ok(None);
        }
        ffi::PyCapsule_GetPointer(capsule.as_ptr(), TABLE.as_ptr()).cast::<ExchangeTable>()
    };
    // SAFETY: a capsule of this name holds a table, which lives as long as the process; the layout
    // of what is read has been the same since the table exists, in versions 1.x.
    unsafe {
        let Some(table) = table.as_ref() else { return Ok(None) };
        Ok(table.tensor_from_object.filter(|_| table.major == 1))
    }
}

/// Takes the tensor out of a capsule of a name, which is then renamed so that its destructor does
/// nothing.
fn take(
    capsule: &Bound<'_, PyAny>,
    name: &'static CStr,
    used: &'static CStr,
) -> PyResult<Option<NonNull<c_void>>> {
    // SAFETY: the pointer is that of a live object, which is asked for the name first; names are
    // static.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) != 1 {
            return Ok(None);
        }
        let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr());
        if ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) != 0 {
            return Err(PyErr::fetch(capsule.py()));
        }
        Ok(NonNull::new(pointer))
    }
}

fn described(
    tensor: &Tensor,
    owner: Owner,
    read_only: bool,
    (object, name, place): (&Bound<'_, PyAny>, &str, Place),
) -> PyResult<Array> {
    if !place.has(tensor.device_type, tensor.device_id) {
        let device = match object.getattr("device").and_then(|device| device.str()) {
            Ok(device) => device.to_string(),
            Err(_) => format!("device {}:{}", tensor.device_type, tensor.device_id),
        };
        return Err(PyValueError::new_err(format!("{name} is on {device}; {}", place.rule())));
    }
    let num_dims = usize::try_from(tensor.num_dims).unwrap_or(usize::MAX);
    if num_dims > MAX_DIMS {
        return Err(PyValueError::new_err(format!(
            "{name} has {num_dims} dimensions; give a tensor of one or two"
        )));
    }
    let bits = usize::from(tensor.type_bits);
    let (size, whole) = (bits / 8, bits.is_multiple_of(8) && tensor.type_lanes == 1);
    let element = match tensor.type_code {
        _ if !whole || size == 0 => Element::Other,
        0 => Element::Signed(size),
        1 => Element::Unsigned(size),
        2 => Element::Float(size),
        4 if size == 2 => Element::BFloat16,
        6 => Element::Bool,
        _ => Element::Other,
    };
    let (mut shape, mut strides) = ([0; MAX_DIMS], [0; MAX_DIMS]);
    let mut in_order = size as isize;
    for dim in (0..num_dims).rev() {
        // SAFETY: the description has a length for each dimension, and a stride unless there are
        // none.
        let (length, stride) = unsafe {
            let length = *tensor.shape.add(dim);
            let given = (!tensor.strides.is_null()).then(|| *tensor.strides.add(dim));
            (length, given)
        };
        shape[dim] = usize::try_from(length).unwrap_or(0);
        strides[dim] = stride.map_or(in_order, |stride| stride as isize * size as isize);
        in_order *= shape[dim] as isize;
    }
    let data = NonNull::new(tensor.data.cast::<u8>());
    let data = match data {
        // Within the same allocation, which may be a device's.
        Some(data) => NonNull::new(data.as_ptr().wrapping_add(tensor.byte_offset as usize))
            .unwrap_or(NonNull::dangling()),
        None => NonNull::dangling(),
    };
    // Without data there are no elements.
    if tensor.data.is_null() && shape[..num_dims].iter().all(|&length| length > 0) {
        return Err(PyValueError::new_err(format!("{name} has no memory; give a real tensor")));
    }
    Ok(Array { data, num_dims, shape, strides, element, read_only, _owner: owner })
}
