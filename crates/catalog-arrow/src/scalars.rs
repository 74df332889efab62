//! Columns of texts and of integers, whatever their width and encoding.
//!
//! Everything here reads rows that are not null; callers ask for nulls first.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, downcast_dictionary_array, downcast_integer_array};
use arrow_schema::DataType;

use crate::error::Kind;

pub(crate) type Texts<'a> = Box<dyn Fn(usize) -> &'a str + 'a>;
pub(crate) type Integers<'a> = Box<dyn Fn(usize) -> i128 + 'a>;

/// `None` for a column that is not text.
pub(crate) fn texts(array: &dyn Array) -> Option<Texts<'_>> {
    Some(match array.data_type() {
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            Box::new(|row| array.value(row))
        }
        DataType::LargeUtf8 => {
            let array = array.as_string::<i64>();
            Box::new(|row| array.value(row))
        }
        DataType::Utf8View => {
            let array = array.as_string_view();
            Box::new(|row| array.value(row))
        }
        DataType::Dictionary(..) => {
            let entries = texts(dictionary_values(array))?;
            let keys = dictionary_keys(array);
            Box::new(move |row| entries(keys(row)))
        }
        _ => return None,
    })
}

/// `None` for a column that is not of integers.
pub(crate) fn integers(array: &dyn Array) -> Option<Integers<'_>> {
    if let DataType::Dictionary(..) = array.data_type() {
        let entries = integers(dictionary_values(array))?;
        let keys = dictionary_keys(array);
        return Some(Box::new(move |row| entries(keys(row))));
    }
    downcast_integer_array! {
        array => Some(Box::new(|row| i128::from(array.value(row)))),
        _ => None
    }
}

/// `None` for a column that is not of floats.
pub(crate) fn floats(array: &dyn Array) -> Option<Box<dyn Fn(usize) -> f64 + '_>> {
    Some(match array.data_type() {
        DataType::Float16 => {
            let array = array.as_primitive::<Float16Type>();
            Box::new(|at| f64::from(array.value(at)))
        }
        DataType::Float32 => {
            let array = array.as_primitive::<Float32Type>();
            Box::new(|at| f64::from(array.value(at)))
        }
        DataType::Float64 => {
            let array = array.as_primitive::<Float64Type>();
            Box::new(|at| array.value(at))
        }
        _ => return None,
    })
}

/// The item IDs of a column.
pub(crate) fn ids(array: &dyn Array) -> Result<Box<dyn Fn(usize) -> String + '_>, Kind> {
    if let Some(texts) = texts(array) {
        return Ok(Box::new(move |row| texts(row).to_owned()));
    }
    match integers(array) {
        Some(integers) => Ok(Box::new(move |row| integers(row).to_string())),
        None => Err(Kind::IdType(array.data_type().clone())),
    }
}

/// The entries of a column that is a dictionary.
pub(crate) fn dictionary_values(array: &dyn Array) -> &dyn Array {
    &**array.as_any_dictionary().values()
}

/// The place among the entries of each row of a column that is a dictionary.
pub(crate) fn dictionary_keys(array: &dyn Array) -> Box<dyn Fn(usize) -> usize + '_> {
    downcast_dictionary_array! {
        array => {
            use arrow_buffer::ArrowNativeType;
            let keys = array.keys();
            Box::new(|row| keys.value(row).as_usize())
        },
        _ => unreachable!("callers have matched on the type")
    }
}
