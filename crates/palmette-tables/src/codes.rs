//! Columns of semantic IDs.

use std::ops::Range;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use crate::error::Kind;
use crate::scalars::{Integers, Texts, integers, texts};

/// One column with whole semantic IDs.
pub(crate) enum CodesColumn<'a> {
    Text(Texts<'a>),
    Lists(Ranges<'a>, Elements<'a>),
}

/// Where the elements of a row's list are among those of all rows.
pub(crate) type Ranges<'a> = Box<dyn Fn(usize) -> Range<usize> + 'a>;

/// The codes in all lists.
pub(crate) struct Elements<'a> {
    pub(crate) nulls: Option<NullBuffer>,
    pub(crate) codes: ElementCodes<'a>,
}

pub(crate) enum ElementCodes<'a> {
    Integers(Integers<'a>),
    Texts(Texts<'a>),
}

pub(crate) fn codes_column(array: &dyn Array) -> Result<CodesColumn<'_>, Kind> {
    if let Some(texts) = texts(array) {
        return Ok(CodesColumn::Text(texts));
    }
    let unusable = || Kind::CodesType(array.data_type().clone());
    let (ranges, elements) = lists(array).ok_or_else(unusable)?;
    let codes = integers(elements)
        .map(ElementCodes::Integers)
        .or_else(|| texts(elements).map(ElementCodes::Texts))
        .ok_or_else(unusable)?;
    Ok(CodesColumn::Lists(ranges, Elements { nulls: elements.logical_nulls(), codes }))
}

/// The codes of one level.
pub(crate) fn code_column(array: &dyn Array) -> Result<Integers<'_>, Kind> {
    integers(array).ok_or_else(|| Kind::CodeType(array.data_type().clone()))
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
