//! Formats by their names and first bytes, arrays, and what is no text.

use std::path::Path;

use palmette_catalog::readers::{Format, parse_items};

use super::{show, text_formats, usual};

/// An array as `numpy.save` writes it.
fn npy(kind: &str, shape: &str, elements: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}\n");
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00".as_slice(), &length, header.as_bytes(), elements].concat()
}

#[test]
fn arrays_of_numpy() {
    let check = |bytes: Vec<u8>, expected: &str| {
        assert_eq!(show(parse_items("in", bytes.as_slice(), Format::Npy)), expected);
    };
    check(npy("|u1", "2, 3", &[1, 2, 255, 4, 5, 6]), "1: 0 [1, 2, 255] {}\n2: 1 [4, 5, 6] {}\n");
    check(npy("<i2", "1, 2", &[1, 1, 0, 0]), "1: 0 [257, 0] {}\n");
    check(
        npy("<i2", "1, 2", &[1, 1, 255, 255]),
        ", line 1: item \"0\": code -1 at level 1: expected a whole number from 0 to 2147483647 or \
         <letter_number>",
    );
    check(
        npy("|u1", "2, 2", &[1, 2, 3]),
        ": as an array of NumPy: it says that it has 2 rows, and ends in row 1",
    );
    check(npy("|u1", "1, 2", &[1, 2, 3]), ": as an array of NumPy: bytes follow its 1 rows");
    check(
        b"some codes".to_vec(),
        ": as an array of NumPy: it does not begin as NumPy's array files do",
    );
}

#[test]
fn bytes_that_are_not_utf8() {
    let check = |format, input: &[u8], line: u64, what: &str| {
        let found = show(parse_items("in", input, format));
        assert_eq!(found, format!(", line {line}: not {what}"));
    };
    const LATIN: &str = "UTF-8: the byte 0xe9, which is é in Latin-1; convert it: iconv -f LATIN1 -t \
        UTF-8 OLD > NEW";
    check(
        Format::IndexJson,
        b"{\"0\": [1],\n\"\x93\": [2]}",
        2,
        "UTF-8: the byte 0x93, as in Windows-1252; convert it: iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW",
    );
    check(Format::InfoText, b"<a_1>\tt\t0\n<a_1>\t\xe9t\xe9\t1\n", 2, LATIN);
    check(Format::JsonLines, b"\n\n{\"id\": \"\xe9\"}", 3, LATIN);
    check(Format::Csv, b"id,codes,t\n0,1,\"a\n\xe9\"\n", 3, LATIN);
    check(
        Format::Csv,
        b"id,codes,t\n0,1,\xc4\xe3\n",
        2,
        "UTF-8: the bytes 0xc4 0xe3, as in GB18030, Big5, Shift JIS, EUC-KR or Latin-1; convert it: \
         iconv -f GB18030 (or the one it is) -t UTF-8 OLD > NEW",
    );
    check(
        Format::Csv,
        b"id,codes,t\n0,1,\xe2\x82",
        2,
        "UTF-8: the text ends within a character; it was cut off",
    );
    for (name, bytes) in [
        ("UTF-16LE", &b"\xff\xfei\0d\0"[..]),
        ("UTF-16LE", b"{\0\"\0i\0"),
        ("UTF-16BE", b"\xfe\xff\0i"),
        ("UTF-16BE", b"\0{\0\"\0i"),
        ("UTF-32LE", b"\xff\xfe\0\0i\0\0\0"),
    ] {
        let what = format!("UTF-8 but {name}; convert it: iconv -f {name} -t UTF-8 OLD > NEW");
        for format in text_formats() {
            check(format, bytes, 1, &what);
        }
    }
    check(
        Format::JsonLines,
        b"\x80\x04\x95",
        1,
        "text but a Python pickle; write it as JSON, or an array with numpy.save",
    );
}

#[test]
fn formats_by_their_first_bytes() {
    for (head, format) in [
        ("{\"item_id\": \"x\", \"codes\": [1]}\n{", Some(Format::JsonLines)),
        ("\u{feff}{\"id\": 7, \"sid\": \"<a_1>\"}", Some(Format::JsonLines)),
        ("{\"id\": [7], \"sid\": [1]}", Some(Format::IndexJson)),
        ("{\"x\": [1, 2],\n", Some(Format::IndexJson)),
        ("\n[{", Some(Format::JsonLines)),
        ("<a_1><b_2>\tTitle\t7\n", Some(Format::InfoText)),
        ("12-3\t\t7", Some(Format::InfoText)),
        ("id,codes\n", Some(Format::Csv)),
        ("\"id\",\"code_0\"\r\n", Some(Format::Csv)),
        ("title\tid\tcodes\n", Some(Format::Tsv)),
        ("id;codes\n", None),
        ("1 2 3\n", None),
        ("", None),
    ] {
        assert_eq!(Format::detect(head.as_bytes(), &usual()), format, "{head:?}");
    }
    assert_eq!(Format::detect(&npy("|u1", "0, 1", b""), &usual()), Some(Format::Npy));
}

#[test]
fn format_names() {
    for format in Format::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    assert_eq!(
        "xml".parse::<Format>().unwrap_err().to_string(),
        "unknown format \"xml\"; the formats are index-json, inverse-json, info-text, jsonl, csv, tsv, npy"
    );
    for (path, format) in [
        ("d/a.index.json", Some(Format::IndexJson)),
        ("a.txt", Some(Format::InfoText)),
        ("a.TSV", Some(Format::InfoText)),
        ("a.jsonl", Some(Format::JsonLines)),
        ("A.JSONL", Some(Format::JsonLines)),
        ("a.ndjson", Some(Format::JsonLines)),
        ("a.csv", Some(Format::Csv)),
        ("a.npy", Some(Format::Npy)),
        ("a.parquet", None),
        ("json", None),
    ] {
        assert_eq!(Format::from_path(Path::new(path)), format, "{path}");
    }
}
