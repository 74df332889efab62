//! Signatures of what is given for UTF-8 text and is none.

use std::fmt;

/// Encodings and containers of bytes that are no UTF-8, as far as they show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Text in UTF-16 or UTF-32.
    Wide(&'static str),
    /// A file of another kind, and the way out.
    Binary { what: &'static str, way_out: &'static str },
    /// A byte above 127 among ASCII ones: text with one byte a character.
    SingleByte(u8),
    /// Several bytes above 127 in a row.
    MultiByte([u8; 2]),
    /// The first bytes of a character, and no more.
    CutOff,
}

/// First bytes that no text has, the kind of file that begins with them, and the way out.
const SIGNATURES: [(&[u8], &str, &str); 12] = [
    (b"\x1f\x8b", "compressed with gzip", "name it .gz, or decompress it"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "decompress it: zstd -d"),
    (b"BZh91AY&SY", "compressed with bzip2", "decompress it: bzip2 -d"),
    (b"\xfd7zXZ\0", "compressed with xz", "decompress it: xz -d"),
    (
        b"PK\x03\x04",
        "a zip archive, as of PyTorch (.pt), NumPy (.npz) and Excel",
        "write codes with numpy.save(\"codes.npy\", codes), or a table as CSV or Parquet",
    ),
    (b"\x80\x02", PICKLE, PICKLE_WAY_OUT),
    (b"\x80\x03", PICKLE, PICKLE_WAY_OUT),
    (b"\x80\x04", PICKLE, PICKLE_WAY_OUT),
    (b"\x80\x05", PICKLE, PICKLE_WAY_OUT),
    (b"\x93NUMPY", "an array of NumPy", "name it .npy, or say the format npy"),
    (b"\x89HDF", "an HDF5 file", "write it as Parquet or CSV"),
    (b"SQLite format 3\0", "an SQLite database", "write the table as CSV or Parquet"),
];
const PICKLE: &str = "a Python pickle";
const PICKLE_WAY_OUT: &str = "write it as JSON, or an array with numpy.save";

impl Encoding {
    /// Encoding or container of an input that begins so; `None` for what may be UTF-8.
    pub(super) fn of_head(head: &[u8]) -> Option<Encoding> {
        let wide = match head {
            [0xff, 0xfe, 0, 0, ..] => Some("UTF-32LE"),
            [0, 0, 0xfe, 0xff, ..] => Some("UTF-32BE"),
            [0xff, 0xfe, ..] | [1..=127, 0, 1..=127, 0, ..] => Some("UTF-16LE"),
            [0xfe, 0xff, ..] | [0, 1..=127, 0, 1..=127, ..] => Some("UTF-16BE"),
            _ => None,
        };
        let signature = SIGNATURES.iter().find(|(signature, ..)| head.starts_with(signature));
        wide.map(Encoding::Wide)
            .or_else(|| signature.map(|&(_, what, way_out)| Encoding::Binary { what, way_out }))
    }

    /// Encoding of a text that continues with these bytes, no character of UTF-8.
    pub(super) fn of_broken(bytes: &[u8]) -> Encoding {
        match std::str::from_utf8(bytes) {
            Err(error) if error.error_len().is_none() && error.valid_up_to() == 0 => {
                Encoding::CutOff
            }
            _ => match *bytes {
                [first, second @ 0x80..=0xff, ..] => Encoding::MultiByte([first, second]),
                [first, ..] => Encoding::SingleByte(first),
                [] => Encoding::CutOff,
            },
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let convert = |f: &mut fmt::Formatter<'_>, from: &str| {
            write!(f, "; convert it: iconv -f {from} -t UTF-8 OLD > NEW")
        };
        match *self {
            Encoding::Wide(name) => {
                write!(f, "not UTF-8 but {name}")?;
                convert(f, name)
            }
            Encoding::Binary { what, way_out } => write!(f, "not text but {what}; {way_out}"),
            Encoding::SingleByte(byte @ 0xa0..) => {
                let shown = char::from(byte);
                write!(f, "not UTF-8: the byte 0x{byte:02x}, which is {shown} in Latin-1")?;
                convert(f, "LATIN1")
            }
            Encoding::SingleByte(byte) => {
                write!(f, "not UTF-8: the byte 0x{byte:02x}, as in Windows-1252")?;
                convert(f, "WINDOWS-1252")
            }
            Encoding::MultiByte([a, b]) => {
                write!(
                    f,
                    "not UTF-8: the bytes 0x{a:02x} 0x{b:02x}, as in GB18030, Big5, Shift JIS, \
                     EUC-KR or Latin-1"
                )?;
                convert(f, "GB18030 (or the one it is)")
            }
            Encoding::CutOff => {
                f.write_str("not UTF-8: the text ends within a character; it was cut off")
            }
        }
    }
}
