//! Items, and vectors of items, from Parquet and Arrow files.
//!
//! [`read_into`] pushes the rows of one file (and [`read_batches_into`] those of batches in
//! memory), in order, into an [`ItemSink`](palmette_catalog::readers::ItemSink), as the text
//! readers of `palmette-catalog` do; [`TableFormat::detect`] tells by its first bytes what a file
//! is.
//!
//! The columns:
//!
//! | Column | Types | Meaning |
//! |---|---|---|
//! | `item_id` (or `id`) | text, integers | the item's ID; never null |
//! | `codes` (or `semantic_id`, or `sid`) | list of integers, list of texts, text | the semantic ID, spelled as in the text formats |
//! | or `code_0`, `code_1`, … | integers | one code a level, none null; shorter IDs come as lists |
//! | any other | see below | an attribute; null leaves it out |
//!
//! Text may be large, a view or in a dictionary; a list large or of fixed size. How attributes
//! become JSON:
//!
//! - text, booleans and integers as they are; lists as arrays, in which a null stays; structs as
//!   objects, without fields that are null;
//! - floats as numbers, 32-bit ones as their shortest decimal (19.99, not 19.989999771118164); NaN
//!   and infinities are an error, since neither is a value nor says that there is none, unless
//!   the options name them as missing values;
//! - decimals as numbers where at most 15 digits, or an integer of 64 bits, say them exactly; else
//!   an error;
//! - timestamps and dates as RFC 3339 text in UTC, `2026-05-01T12:00:00Z`; without a zone they are
//!   taken as UTC, and a date is its midnight. These columns are told to the sink beforehand.
//!
//! Other types (binary, times of day, durations, intervals, maps, unions) are an error that names
//! the column, unless the caller names the attributes to read and leaves it out.
//!
//! [`read_vectors`] reads a column of embeddings instead, one vector an item; [`TableRows`] the
//! rows of any table, all or a run of them, as JSON objects. [`answer_batch`] makes rows of
//! recommendations, and `AnswerWriter` writes them.
//!
//! Only the columns in use are read, and one batch of rows is in memory at a time: 8,192 rows of
//! Parquet, of Arrow as many as its writer put together, and its dictionaries.
//!
//! Files are not trusted: a damaged one is an error, whatever its bytes. A batch of Arrow may
//! unpack to [`MAX_UNPACKED_BYTES`] at most; pages of Parquet state sizes below 2 GiB, but a list
//! may be as long as its file says. The libraries below panic on some damage; such a panic is
//! caught and returned as an error (its message still reaches the panic hook, by default stderr),
//! so `panic = "abort"` would let a damaged file end the process.
//!
//! Without the feature `parquet` a Parquet file is an error that says so, and answers are not
//! written to files.
//!
//! ```
//! # #[cfg(feature = "parquet")] {
//! use std::sync::Arc;
//!
//! use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt16Array};
//! use palmette_catalog::readers::SourceItems;
//! use palmette_catalog_arrow::{TableFormat, read_into};
//!
//! let columns: [(&str, ArrayRef); 3] = [
//!     ("item_id", Arc::new(StringArray::from(vec!["lamp", "tent"]))),
//!     ("code_0", Arc::new(UInt16Array::from(vec![3, 0]))),
//!     ("code_1", Arc::new(UInt16Array::from(vec![1, 7]))),
//! ];
//! let batch = RecordBatch::try_from_iter(columns)?;
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("items.parquet");
//! let file = std::fs::File::create(&path)?;
//! let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None)?;
//! writer.write(&batch)?;
//! writer.close()?;
//!
//! let format = TableFormat::detect(&std::fs::read(&path)?).expect("a table");
//! let mut items = SourceItems::default();
//! let summary = read_into(&path, format, None, &mut items, &mut |_rows, _of| ())?;
//! assert_eq!((format, summary.num_items), (TableFormat::Parquet, 2));
//! assert_eq!(items.items[0].codes, [3, 1]);
//! assert_eq!(items.items[1].codes, [0, 7]);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(feature = "parquet")]
mod answer_writer;
mod answers;
mod arrow_file;
mod batches;
mod codes;
mod error;
mod format;
mod frames;
mod guard;
mod instants;
mod layout;
#[cfg(feature = "parquet")]
mod parquet_file;
mod read;
mod row_objects;
mod rows;
mod scalars;
mod table;
mod values;
mod vectors;

#[cfg(feature = "parquet")]
pub use answer_writer::{AnswerWriter, WriteError};
pub use answers::{answer_batch, answer_schema};
pub use batches::{read_batch_rows, read_batches_into, time_columns};
pub use error::TableError;
pub use format::{TableFormat, UnknownTableFormat};
pub use frames::MAX_UNPACKED_BYTES;
pub use read::{read_file_into, read_into};
pub use row_objects::{TableRow, TableRows};
pub use vectors::read_vectors;
