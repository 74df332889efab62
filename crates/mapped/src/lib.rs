//! Arrays that own their memory or lie in a mapped file, the checked file that holds them, and sets
//! of ranks.
//!
//! An [`Array`] is a frozen slice of plain numbers; whether it came from a `Vec` or from a file is
//! not seen by its readers. [`SectionsOut`] collects the bytes of arrays and writes them to a file
//! at once, [`SectionsIn`] opens such a file without parsing it and hands the arrays out again.
//! Arrays are often in the order of some ranks; a [`RankSet`] names some of them.
//!
//! ```
//! use palmette_mapped::{Array, Check, Format, SectionsIn, SectionsOut};
//!
//! const FORMAT: Format = Format { magic: *b"EXAMPLE\0", version: 1 };
//! let mut out = SectionsOut::default();
//! let squares = out.add_array(&Array::from(vec![0_u64, 1, 4, 9]));
//!
//! let file = SectionsIn::from_bytes(out.to_bytes(FORMAT).into(), FORMAT, Check::Whole)?;
//! assert_eq!(file.array::<u64>(squares, 4).unwrap()[3], 9);
//! # Ok::<(), palmette_mapped::FormatError>(())
//! ```
#![deny(unsafe_code)]

#[cfg(target_endian = "big")]
compile_error!("arrays are little-endian in files and used as they lie there");

mod array;
mod file;
mod instructions;
mod map;
mod prefetch;
mod rank_set;
mod sections;

pub use array::{Array, Pod};
pub use file::{remove_temporary_files, write_atomically};
pub use instructions::{nth_one, with_bit_instructions};
pub use prefetch::prefetch;
pub use rank_set::{Members, RankSet};
pub use sections::{Check, Format, FormatError, OpenError, SectionsIn, SectionsOut};
