//! Columns of semantic IDs.

use std::fmt;
use std::ops::Range;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use crate::error::Kind;
use crate::scalars::{Integers, Texts, floats, integers, texts};

/// One column with whole semantic IDs.
pub(crate) enum CodesColumn<'a> {
    Text(Texts<'a>),
    /// One number that packs all codes.
    Packed(Integers<'a>),
    Lists(Ranges<'a>, Elements<'a>),
}

/// Maps a row to the range of its list's elements among those of all rows.
pub(crate) type Ranges<'a> = Box<dyn Fn(usize) -> Range<usize> + 'a>;

/// The codes in all lists.
pub(crate) struct Elements<'a> {
    pub(crate) nulls: Option<NullBuffer>,
    pub(crate) codes: ElementCodes<'a>,
}

pub(crate) enum ElementCodes<'a> {
    Numbers(Numbers<'a>),
    Texts(Texts<'a>),
}

/// Numbers of any type, by row.
pub(crate) type Numbers<'a> = Box<dyn Fn(usize) -> AnyNumber + 'a>;

/// A number that is a code if it is whole, as floats are that held nulls before they were written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AnyNumber {
    Integer(i128),
    Float(f64),
}

impl TryFrom<AnyNumber> for u32 {
    type Error = ();

    fn try_from(number: AnyNumber) -> Result<u32, ()> {
        match number {
            AnyNumber::Integer(number) => u32::try_from(number).map_err(drop),
            AnyNumber::Float(number) => {
                let is_code =
                    number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
                is_code.then_some(number as u32).ok_or(())
            }
        }
    }
}

impl fmt::Display for AnyNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyNumber::Integer(number) => number.fmt(f),
            AnyNumber::Float(number) => number.fmt(f),
        }
    }
}

fn numbers(array: &dyn Array) -> Option<Numbers<'_>> {
    if let Some(integers) = integers(array) {
        return Some(Box::new(move |row| AnyNumber::Integer(integers(row))));
    }
    let floats = floats(array)?;
    Some(Box::new(move |row| AnyNumber::Float(floats(row))))
}

pub(crate) fn codes_column(array: &dyn Array) -> Result<CodesColumn<'_>, Kind> {
    if let Some(texts) = texts(array) {
        return Ok(CodesColumn::Text(texts));
    }
    if let Some(numbers) = integers(array) {
        return Ok(CodesColumn::Packed(numbers));
    }
    let unusable = || Kind::CodesType(array.data_type().clone());
    let (ranges, elements) = lists(array).ok_or_else(unusable)?;
    let codes = numbers(elements)
        .map(ElementCodes::Numbers)
        .or_else(|| texts(elements).map(ElementCodes::Texts))
        .ok_or_else(unusable)?;
    Ok(CodesColumn::Lists(ranges, Elements { nulls: elements.logical_nulls(), codes }))
}

/// The codes of one level.
pub(crate) fn code_column(array: &dyn Array) -> Result<Numbers<'_>, Kind> {
    numbers(array).ok_or_else(|| Kind::CodeType(array.data_type().clone()))
}

/// The lists of a column and their elements; `None` for a column that is not of lists.
pub(crate) fn lists(array: &dyn Array) -> Option<(Ranges<'_>, &dyn Array)> {
    Some(match array.data_type() {
        DataType::List(_) => {
            let array = array.as_list::<i32>();
            let offsets = array.value_offsets();
            let range = |row| offsets[row] as usize..offsets[row + 1] as usize;
            (Box::new(range), &**array.values())
        }
        DataType::LargeList(_) => {
            let array = array.as_list::<i64>();
            let offsets = array.value_offsets();
            let range = |row| offsets[row] as usize..offsets[row + 1] as usize;
            (Box::new(range), &**array.values())
        }
        DataType::FixedSizeList(..) => {
            let array = array.as_fixed_size_list();
            let length = array.value_length() as usize;
            let range = move |row| row * length..(row + 1) * length;
            (Box::new(range), &**array.values())
        }
        _ => return None,
    })
}
