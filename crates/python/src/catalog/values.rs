//! JSON values as Python objects, and back.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde_json::{Map, Number, Value};

/// Nesting of what is converted, as of JSON text that is read.
const MAX_DEPTH: usize = 64;

/// The object of a value.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => integer.into_pyobject(py)?.into_any(),
            (None, Some(integer)) => integer.into_pyobject(py)?.into_any(),
            (None, None) => PyFloat::new(py, number.as_f64().unwrap_or(f64::NAN)).into_any(),
        },
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Array(values) => {
            let list = PyList::empty(py);
            values.iter().try_for_each(|value| list.append(to_python(py, value)?))?;
            list.into_any()
        }
        Value::Object(object) => object_to_python(py, object)?.into_any(),
    })
}

/// The `dict` of an object.
pub(crate) fn object_to_python<'py>(
    py: Python<'py>,
    object: &Map<String, Value>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    object.iter().try_for_each(|(name, value)| dict.set_item(name, to_python(py, value)?))?;
    Ok(dict)
}

/// The value of an object: what `json.dumps` takes, dates and times as RFC 3339 text, scalars and
/// arrays of NumPy.
pub(crate) fn to_json(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    to_json_within(object, MAX_DEPTH)
}

/// The object of a `dict`.
pub(crate) fn dict_to_json(dict: &Bound<'_, PyDict>) -> PyResult<Map<String, Value>> {
    dict_within(dict, MAX_DEPTH)
}

fn to_json_within(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(PyValueError::new_err(format!("values nest deeper than {MAX_DEPTH}")));
    };
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::String(text.to_cow()?.into_owned()));
    }
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(Value::Bool(value.is_true()));
    }
    if object.is_instance_of::<PyInt>() {
        return integer(object);
    }
    if let Ok(float) = object.cast::<PyFloat>() {
        return finite(float.value());
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        return dict_within(dict, depth).map(Value::Object);
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let values = object.try_iter()?.map(|value| to_json_within(&value?, depth));
        return values.collect::<PyResult<_>>().map(Value::Array);
    }
    if is_missing(object)? {
        return Ok(Value::Null);
    }
    if is_instant(object)? {
        return instant(object).map(Value::String);
    }
    // Scalars and arrays of NumPy, which a few types of theirs give back as they are.
    if object.hasattr("tolist")? {
        let listed = listed(object)?;
        if !listed.get_type().is(object.get_type()) {
            return to_json_within(&listed, depth);
        }
    }
    let kind = object.get_type().name()?.to_string();
    Err(PyTypeError::new_err(format!("{kind} is no value that JSON has: {}", object.repr()?)))
}

/// True of objects whose type is of this module, or of one within it.
pub(crate) fn is_of_module(object: &Bound<'_, PyAny>, name: &str) -> bool {
    let module = object.get_type().module();
    let is_it = |module: &str| {
        module.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    module.is_ok_and(|module| module.to_cow().is_ok_and(|module| is_it(&module)))
}

/// An array, or a scalar, of NumPy as Python's own objects. Of its times `tolist` makes bare
/// numbers where they count nanoseconds: they are made dates and times of Python first.
///
/// # Errors
/// `TypeError` for lengths of time, which JSON does not have.
pub(crate) fn listed<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let kind = match is_of_module(object, "numpy") {
        true => object.getattr("dtype")?.getattr("kind")?.extract::<String>()?,
        false => String::new(),
    };
    match &*kind {
        "M" => object.call_method1("astype", ("datetime64[us]",))?.call_method0("tolist"),
        "m" => Err(PyTypeError::new_err(
            "timedelta64 is no value that JSON has; give numbers, of seconds or whatever unit",
        )),
        _ => object.call_method0("tolist"),
    }
}

fn dict_within(dict: &Bound<'_, PyDict>, depth: usize) -> PyResult<Map<String, Value>> {
    let entry = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let Ok(name) = name.extract::<String>() else {
            let message = format!("names of JSON objects are text, not {}", name.repr()?);
            return Err(PyTypeError::new_err(message));
        };
        Ok((name, to_json_within(&value, depth)?))
    };
    dict.iter().map(entry).collect()
}

fn integer(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(integer) = object.extract::<i64>() {
        return Ok(integer.into());
    }
    match object.extract::<u64>() {
        Ok(integer) => Ok(integer.into()),
        Err(_) => {
            let message =
                format!("{} has more than 64 bits; give it as text or float", object.str()?);
            Err(PyValueError::new_err(message))
        }
    }
}

fn finite(value: f64) -> PyResult<Value> {
    Number::from_f64(value).map(Value::Number).ok_or_else(|| {
        PyValueError::new_err(format!("{value} is no value that JSON has; a missing value is None"))
    })
}

/// True for what pandas has in place of a value that is missing: `NA`, and `NaT`, which looks like
/// a time.
fn is_missing(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let name = object.get_type().name()?;
    Ok(matches!(&*name.to_cow()?, "NAType" | "NaTType"))
}

/// True when an object is a date or a time with its date.
pub(crate) fn is_instant(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.hasattr("isoformat")? && object.hasattr("year")?)
}

/// RFC 3339 text of a date or a time, in UTC where it has no zone.
fn instant(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let text: String = object.call_method0("isoformat")?.extract()?;
    if !text.contains('T') {
        return Ok(format!("{text}T00:00:00Z"));
    }
    let has_zone = object.hasattr("tzinfo")? && !object.getattr("tzinfo")?.is_none();
    Ok(if has_zone { text } else { format!("{text}Z") })
}
