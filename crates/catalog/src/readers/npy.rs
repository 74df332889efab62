//! NumPy's array files: a row of codes an item, named by its number.

use std::fmt;
use std::io::{BufRead, Read};

use serde_json::Map;

use super::error::{Kind, Problem};
use super::{CheckedSink, ItemSink};
use crate::index::MAX_LEVELS;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Longer headers are of no array of codes.
const MAX_HEADER_BYTES: usize = 64 * 1024;

pub(super) fn read<S: ItemSink>(
    mut input: impl BufRead,
    sink: &mut CheckedSink<'_, S>,
) -> Result<(), Problem> {
    if input.fill_buf()?.is_empty() {
        return Ok(());
    }
    let array = Header::read(&mut input, sink.is_packed())?;
    let (num_rows, num_levels) = (array.num_rows, array.num_levels);
    if num_rows > 0 && num_rows < num_levels as u64 {
        sink.note(format!(
            "its shape is ({num_rows}, {num_levels}): {num_rows} items of {num_levels} codes each; {TURNED}"
        ));
    }
    match array.is_fortran {
        false => read_rows(&array, &mut input, sink)?,
        true => read_columns(&array, &mut input, sink)?,
    }
    match input.fill_buf()?.len() {
        0 => Ok(()),
        _ => Err(bad(format!("bytes follow its {num_rows} rows"))),
    }
}

/// Advice for an array whose shape looks turned.
const TURNED: &str = "if they are (levels, items), write codes.T";

/// Pushes rows as they come.
fn read_rows<S: ItemSink>(
    array: &Header,
    input: &mut impl BufRead,
    sink: &mut CheckedSink<'_, S>,
) -> Result<(), Problem> {
    let size = array.element.num_bytes;
    let mut row = vec![0; array.num_levels * size];
    for number in 0..array.num_rows {
        input.read_exact(&mut row).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => array.ends_early(number),
            _ => error.into(),
        })?;
        push(number, row.chunks_exact(size).map(|bytes| array.element.number(bytes)), sink)?;
    }
    Ok(())
}

/// Reads the whole array, which lies column by column, and pushes its rows.
fn read_columns<S: ItemSink>(
    array: &Header,
    input: &mut impl BufRead,
    sink: &mut CheckedSink<'_, S>,
) -> Result<(), Problem> {
    let (size, num_rows) = (array.element.num_bytes, array.num_rows);
    let column_bytes = num_rows.checked_mul(size as u64);
    let bytes = column_bytes.and_then(|bytes| bytes.checked_mul(array.num_levels as u64));
    let bytes = bytes.ok_or_else(|| bad(format!("it says that it has {num_rows} rows")))?;
    let mut columns = Vec::new();
    // What the header says is not yet there: the memory grows with what is read.
    input.by_ref().take(bytes).read_to_end(&mut columns)?;
    if (columns.len() as u64) < bytes {
        return Err(array.ends_early(columns.len() as u64 / (size * array.num_levels) as u64));
    }
    for number in 0..num_rows {
        let element = |level: usize| {
            let start = (level * num_rows as usize + number as usize) * size;
            array.element.number(&columns[start..start + size])
        };
        push(number, (0..array.num_levels).map(element), sink)?;
    }
    Ok(())
}

fn push<S: ItemSink>(
    number: u64,
    codes: impl Iterator<Item = Entry>,
    sink: &mut CheckedSink<'_, S>,
) -> Result<(), Problem> {
    let (line, id) = (number + 1, number.to_string());
    sink.codes_from_numbers(line, &id, codes)?;
    sink.push(line, id, Map::new())
}

/// Header of an array that can be codes.
#[derive(Debug, PartialEq)]
struct Header {
    element: Element,
    is_fortran: bool,
    num_rows: u64,
    num_levels: usize,
}

/// A number in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Element {
    kind: ElementKind,
    is_big_endian: bool,
    num_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ElementKind {
    Unsigned,
    Signed,
    Float,
}

/// A number of an array: a code where it is whole.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Entry {
    Whole(i128),
    Other(f64),
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Whole(number) => fmt::Display::fmt(number, f),
            Entry::Other(number) => fmt::Display::fmt(number, f),
        }
    }
}

impl TryFrom<Entry> for u32 {
    type Error = ();

    fn try_from(entry: Entry) -> Result<u32, ()> {
        match entry {
            Entry::Whole(number) => number.try_into().map_err(|_| ()),
            Entry::Other(_) => Err(()),
        }
    }
}

impl Element {
    fn number(self, bytes: &[u8]) -> Entry {
        let mut low_first = [0; 8];
        let low_first = &mut low_first[..bytes.len()];
        low_first.copy_from_slice(bytes);
        if self.is_big_endian {
            low_first.reverse();
        }
        if self.kind == ElementKind::Float {
            let float = match *low_first {
                [a, b, c, d] => f32::from_le_bytes([a, b, c, d]).into(),
                [a, b, c, d, e, f, g, h] => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
                _ => unreachable!("floats of 4 or 8 bytes are taken"),
            };
            // Whole floats beyond this are far from any code.
            let is_whole = float.fract() == 0.0 && float.abs() < 1e18;
            return if is_whole { Entry::Whole(float as i128) } else { Entry::Other(float) };
        }
        let is_negative =
            self.kind == ElementKind::Signed && low_first[low_first.len() - 1] & 0x80 != 0;
        let mut wide = [if is_negative { 0xff } else { 0 }; 16];
        wide[..low_first.len()].copy_from_slice(low_first);
        Entry::Whole(i128::from_le_bytes(wide))
    }
}

impl Header {
    fn read(input: &mut impl Read, is_packed: bool) -> Result<Header, Problem> {
        let mut start = [0; 8];
        input.read_exact(&mut start)?;
        if !start.starts_with(MAGIC) {
            return Err(bad("it does not begin as NumPy's array files do".to_owned()));
        }
        let mut length = [0; 4];
        let length_bytes = if start[6] == 1 { 2 } else { 4 };
        input.read_exact(&mut length[..length_bytes])?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_HEADER_BYTES {
            return Err(bad(format!("its header has {length} bytes")));
        }
        let mut text = vec![0; length];
        input.read_exact(&mut text)?;
        Header::parse(&String::from_utf8_lossy(&text), is_packed)
    }

    /// Reads `{'descr': '<i8', 'fortran_order': False, 'shape': (3, 4), }`; where semantic IDs are
    /// packed, one number each will do.
    fn parse(text: &str, is_packed: bool) -> Result<Header, Problem> {
        let value = |key: &str| {
            let (_, rest) = text.split_once(&format!("'{key}':"))?;
            Some(rest.trim_start())
        };
        let damaged = || bad(format!("its header cannot be read: {}", text.trim()));
        let quoted = value("descr").ok_or_else(damaged)?;
        let kind = quoted.strip_prefix('\'').and_then(|rest| rest.split_once('\''));
        let (kind, _) = kind.ok_or_else(|| bad("it holds records; write a plain array".into()))?;
        let is_fortran = !value("fortran_order").ok_or_else(damaged)?.starts_with("False");
        let shape = value("shape").and_then(|rest| rest.strip_prefix('(')?.split_once(')'));
        let (shape, _) = shape.ok_or_else(damaged)?;
        let sizes: Option<Vec<u64>> = shape
            .split(',')
            .map(str::trim)
            .filter(|size| !size.is_empty())
            .map(|size| size.parse().ok())
            .collect();
        let (num_rows, levels) = match sizes.ok_or_else(damaged)?[..] {
            [num_rows, levels] => (num_rows, levels),
            [num_rows] if is_packed => (num_rows, 1),
            _ => return Err(bad(format!("its shape is ({shape}); expected (items, levels)"))),
        };
        if levels > MAX_LEVELS as u64 {
            return Err(bad(format!(
                "its shape is ({shape}): it has {levels} levels; a semantic ID has at most {MAX_LEVELS}; {TURNED}"
            )));
        }
        let (element, num_levels) = (element(kind)?, levels as usize);
        Ok(Header { element, is_fortran, num_rows, num_levels })
    }

    fn ends_early(&self, row: u64) -> Problem {
        bad(format!("it says that it has {} rows, and ends in row {row}", self.num_rows))
    }
}

fn element(kind: &str) -> Result<Element, Problem> {
    let (order, rest) = kind.split_at_checked(1).unwrap_or_default();
    let (sort, bytes) = rest.split_at_checked(1).unwrap_or_default();
    let found = match (order, sort, bytes) {
        ("<" | ">", "i", "2" | "4" | "8") | ("|", "i", "1") => Some(ElementKind::Signed),
        ("<" | ">", "u", "2" | "4" | "8") | ("|", "u", "1") => Some(ElementKind::Unsigned),
        ("<" | ">", "f", "4" | "8") => Some(ElementKind::Float),
        _ => None,
    };
    match found {
        Some(kind) => {
            let num_bytes = bytes.parse().expect("a digit");
            Ok(Element { kind, is_big_endian: order == ">", num_bytes })
        }
        None => Err(bad(format!(
            "its elements are {kind:?}; write whole numbers: codes.astype(\"int64\")"
        ))),
    }
}

fn bad(what: String) -> Problem {
    Problem::whole(Kind::Npy(format!("as an array of NumPy: {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(header: &str, expected: Result<(&str, bool, u64, usize), &str>) {
        let parsed = Header::parse(header, false).map(|header| {
            let Element { kind, is_big_endian, num_bytes } = header.element;
            let order = if is_big_endian { ">" } else { "<" };
            (
                format!("{order}{kind:?}{num_bytes}"),
                header.is_fortran,
                header.num_rows,
                header.num_levels,
            )
        });
        let expected = expected
            .map(|(element, is_fortran, rows, levels)| {
                (element.to_owned(), is_fortran, rows, levels)
            })
            .map_err(|what| format!("as an array of NumPy: {what}"));
        assert_eq!(parsed.map_err(|problem| problem.to_string()), expected);
    }

    #[test]
    fn headers() {
        let header = |kind: &str, order: &str, shape: &str| {
            format!("{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}, }}   \n")
        };
        check(&header("'<i8'", "False", "(3, 4)"), Ok(("<Signed8", false, 3, 4)));
        check(&header("'|u1'", "False", "(0, 2)"), Ok(("<Unsigned1", false, 0, 2)));
        check(&header("'<f4'", "False", "(3, 4)"), Ok(("<Float4", false, 3, 4)));
        check(&header("'>i8'", "True", "(3, 4)"), Ok((">Signed8", true, 3, 4)));
        for kind in ["<f2", "<c8", "|O", "<i3", "|b1"] {
            let expected =
                format!("its elements are {kind:?}; write whole numbers: codes.astype(\"int64\")");
            check(&header(&format!("'{kind}'"), "False", "(3, 4)"), Err(&expected));
        }
        for shape in ["3,", "3, 4, 5", ""] {
            let expected = format!("its shape is ({shape}); expected (items, levels)");
            let shape = format!("({shape})");
            check(&header("'<i8'", "False", &shape), Err(&expected));
        }
        check(
            &header("'<i8'", "False", "(3, 65)"),
            Err(
                "its shape is (3, 65): it has 65 levels; a semantic ID has at most 64; if they are \
                 (levels, items), write codes.T",
            ),
        );
        check(
            &header("[('a', '<i8')]", "False", "(3,)"),
            Err("it holds records; write a plain array"),
        );
        check("{}", Err("its header cannot be read: {}"));
        let packed = Header::parse(&header("'<i8'", "False", "(3,)"), true).unwrap();
        assert_eq!((packed.num_rows, packed.num_levels), (3, 1));
    }

    #[test]
    fn elements_are_the_numbers_that_were_written() {
        let element = |kind, is_big_endian, num_bytes| Element { kind, is_big_endian, num_bytes };
        let signed = element(ElementKind::Signed, false, 2);
        assert_eq!(signed.number(&(-3_i16).to_le_bytes()), Entry::Whole(-3));
        let swapped = element(ElementKind::Signed, true, 4);
        assert_eq!(swapped.number(&(-70_000_i32).to_be_bytes()), Entry::Whole(-70_000));
        let unsigned = element(ElementKind::Unsigned, false, 8);
        assert_eq!(unsigned.number(&u64::MAX.to_le_bytes()), Entry::Whole(u64::MAX.into()));
        let float = element(ElementKind::Float, true, 4);
        assert_eq!(float.number(&7.0_f32.to_be_bytes()), Entry::Whole(7));
        let double = element(ElementKind::Float, false, 8);
        assert_eq!(double.number(&0.5_f64.to_le_bytes()), Entry::Other(0.5));
        assert_eq!(u32::try_from(double.number(&f64::NAN.to_le_bytes())), Err(()));
    }
}
