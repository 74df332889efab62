//! NumPy's array files: a row of codes an item, named by its number.

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
    let array = Header::read(&mut input)?;
    let mut row = vec![0; array.num_levels * array.element.bytes()];
    for number in 0..array.num_rows {
        input.read_exact(&mut row).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => bad(format!(
                "it says that it has {} rows, and ends in row {number}",
                array.num_rows
            )),
            _ => error.into(),
        })?;
        let (line, id) = (number + 1, number.to_string());
        let elements = row.chunks_exact(array.element.bytes());
        let codes = elements.map(|bytes| array.element.number(bytes));
        sink.codes_from_numbers(line, &id, codes)?;
        sink.push(line, id, Map::new())?;
    }
    match input.fill_buf()?.len() {
        0 => Ok(()),
        _ => Err(bad(format!("bytes follow its {} rows", array.num_rows))),
    }
}

/// Header of an array that can be codes.
#[derive(Debug, PartialEq)]
struct Header {
    element: Element,
    num_rows: u64,
    num_levels: usize,
}

/// A whole number, lowest byte first.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Element {
    is_signed: bool,
    num_bytes: usize,
}

impl Element {
    fn bytes(self) -> usize {
        self.num_bytes
    }

    fn number(self, bytes: &[u8]) -> i128 {
        let is_negative = self.is_signed && bytes[bytes.len() - 1] & 0x80 != 0;
        let mut wide = [if is_negative { 0xff } else { 0 }; 16];
        wide[..bytes.len()].copy_from_slice(bytes);
        i128::from_le_bytes(wide)
    }
}

impl Header {
    fn read(input: &mut impl Read) -> Result<Header, Problem> {
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
        Header::parse(&String::from_utf8_lossy(&text))
    }

    /// Reads `{'descr': '<i8', 'fortran_order': False, 'shape': (3, 4), }`.
    fn parse(text: &str) -> Result<Header, Problem> {
        let value = |key: &str| {
            let (_, rest) = text.split_once(&format!("'{key}':"))?;
            Some(rest.trim_start())
        };
        let damaged = || bad(format!("its header cannot be read: {}", text.trim()));
        let quoted = value("descr").ok_or_else(damaged)?;
        let kind = quoted.strip_prefix('\'').and_then(|rest| rest.split_once('\''));
        let (kind, _) = kind.ok_or_else(|| bad("it holds records; write a plain array".into()))?;
        if !value("fortran_order").ok_or_else(damaged)?.starts_with("False") {
            return Err(bad(
                "it lies column by column; write numpy.ascontiguousarray(codes)".into()
            ));
        }
        let shape = value("shape").and_then(|rest| rest.strip_prefix('(')?.split_once(')'));
        let (shape, _) = shape.ok_or_else(damaged)?;
        let sizes: Option<Vec<u64>> = shape
            .split(',')
            .map(str::trim)
            .filter(|size| !size.is_empty())
            .map(|size| size.parse().ok())
            .collect();
        let &[num_rows, levels] = &sizes.ok_or_else(damaged)?[..] else {
            return Err(bad(format!("its shape is ({shape}); expected (items, levels)")));
        };
        if levels > MAX_LEVELS as u64 {
            return Err(bad(format!(
                "it has {levels} levels; a semantic ID has at most {MAX_LEVELS}"
            )));
        }
        Ok(Header { element: element(kind)?, num_rows, num_levels: levels as usize })
    }
}

fn element(kind: &str) -> Result<Element, Problem> {
    let (order, rest) = kind.split_at_checked(1).unwrap_or_default();
    let (sign, bytes) = rest.split_at_checked(1).unwrap_or_default();
    match (order, sign, bytes) {
        ("<", "i" | "u", "2" | "4" | "8") | ("|", "i" | "u", "1") => {
            Ok(Element { is_signed: sign == "i", num_bytes: bytes.parse().expect("a digit") })
        }
        _ => Err(bad(format!(
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
    fn check(header: &str, expected: Result<(bool, usize, u64, usize), &str>) {
        let parsed = Header::parse(header).map(|header| {
            let Element { is_signed, num_bytes } = header.element;
            (is_signed, num_bytes, header.num_rows, header.num_levels)
        });
        let expected = expected.map_err(|what| format!("as an array of NumPy: {what}"));
        assert_eq!(parsed.map_err(|problem| problem.to_string()), expected);
    }

    #[test]
    fn headers() {
        let header = |kind: &str, order: &str, shape: &str| {
            format!("{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}, }}   \n")
        };
        check(&header("'<i8'", "False", "(3, 4)"), Ok((true, 8, 3, 4)));
        check(&header("'|u1'", "False", "(0, 2)"), Ok((false, 1, 0, 2)));
        check(
            &header("'<f4'", "False", "(3, 4)"),
            Err("its elements are \"<f4\"; write whole numbers: codes.astype(\"int64\")"),
        );
        check(
            &header("'>i8'", "False", "(3, 4)"),
            Err("its elements are \">i8\"; write whole numbers: codes.astype(\"int64\")"),
        );
        check(
            &header("'<i8'", "True", "(3, 4)"),
            Err("it lies column by column; write numpy.ascontiguousarray(codes)"),
        );
        for shape in ["3,", "3, 4, 5", ""] {
            let expected = format!("its shape is ({shape}); expected (items, levels)");
            let shape = format!("({shape})");
            check(&header("'<i8'", "False", &shape), Err(&expected));
        }
        check(
            &header("'<i8'", "False", "(3, 65)"),
            Err("it has 65 levels; a semantic ID has at most 64"),
        );
        check(
            &header("[('a', '<i8')]", "False", "(3,)"),
            Err("it holds records; write a plain array"),
        );
        check("{}", Err("its header cannot be read: {}"));
    }

    #[test]
    fn elements_are_the_numbers_that_were_written() {
        let signed = Element { is_signed: true, num_bytes: 2 };
        assert_eq!(signed.number(&(-3_i16).to_le_bytes()), -3);
        let unsigned = Element { is_signed: false, num_bytes: 8 };
        assert_eq!(unsigned.number(&u64::MAX.to_le_bytes()), i128::from(u64::MAX));
    }
}
