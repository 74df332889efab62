//! Shared parts of the fuzz targets. They are files to start from, changes that keep checksums
//! right, and questions to ask of what was opened.

mod ask;
mod compiled;
mod expressions;
mod laws;
mod lexicon;
mod live;
mod masks;
mod mutate;
mod random;
mod start;
mod vocabularies;

pub use ask::ask_everything;
pub use compiled::{ask_compiled, compiled_grammar_file};
pub use expressions::{has_look, matches_empty};
pub use laws::check_laws;
pub use lexicon::{ask_lexicon, check_member_set, check_substrings, lexicon_file};
pub use live::{LiveDirectory, ask_live};
pub use masks::check_masks;
pub use mutate::mutate_sections;
pub use start::{catalog_file, columns, row_id};
pub use vocabularies::check_vocabularies;

use palmette_mapped::Format;

/// The format of catalog files, as `palmette-catalog` writes it.
pub const CATALOG: Format = Format { magic: *b"PALMCAT\0", version: 2 };

/// The format of lexicon files, as `palmette-lexicon` writes it.
pub const LEXICON: Format = Format { magic: *b"PALMLEX\0", version: 1 };

/// The format of compiled grammars, as `palmette-grammar` writes it.
pub const COMPILED_GRAMMAR: Format = Format { magic: *b"PALMGRAM", version: 5 };
