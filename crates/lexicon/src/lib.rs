//! Sorted strings as ranks: prefixes as ranges, and the tokens by which a member of a set of
//! strings goes on.
//!
//! A [`Lexicon`] holds sorted distinct byte strings as arrays: a string is its *rank*, a prefix is
//! a *range of ranks*, and neither pointers nor blocks are needed to go from a prefix to the next.
//! It is what a catalog's index is for semantic IDs, over bytes: titles, ids, names, ten million of
//! them and more, mapped from a file.
//!
//! A [`LexiconSet`] is some of the strings (all, a filter's, a short list) in a [`MemberSpelling`],
//! raw or as JSON strings. It is a [`MemberSet`](palmette_core::MemberSet): a grammar that names it
//! asks it for the tokens by which members go on, and never compiles or sees a string.
//!
//! [`Substrings`] are the same over the suffixes of documents: what a text says, word by word, is a
//! member, and each member knows where it stands. A [`SubstringSet`] is their member set.
//!
//! | word | here |
//! |---|---|
//! | string, rank | one of the sorted texts, and its place among them |
//! | prefix | bytes that strings begin with: a range of ranks and a depth |
//! | shared | the number of bytes that a string begins with as the one before it does (LCP) |
//! | branch, rest, tail | the byte after the shared ones, the bytes after that, both |
//! | child | the range of a prefix that is a byte longer |
//! | member, spelling | a string of a set, or the part of a suffix, and what is written of it |
//! | chosen | ranks that are members |
//! | table | what a prefix of many strings does to all tokens, with the ranks that do |
//!
//! The order of things: `sort` and `build` make the `arrays`; `join` descends them and the
//! vocabulary's trie at once; `tables` keeps what that met for prefixes of many strings; `members`
//! answers grammars, for any strings that are an implicit trie: those of a `set`, or `substrings`.
//!
//! ```
//! use palmette_core::{Budget, MemberSet, TokenId, TokenMask, Vocabulary, VocabularyTrie};
//! use palmette_lexicon::{Lexicon, LexiconSet, Selection, MemberSpelling};
//!
//! let lexicon = Lexicon::from_texts(["tea", "tent", "lamp"])?;
//! let set = LexiconSet::new(lexicon.into(), Selection::All, MemberSpelling::JsonString)?;
//!
//! let tokens = ["t", "te", "ten", "x", "a\",", "lamp\""];
//! let trie = VocabularyTrie::new(&Vocabulary::new(tokens.map(Some), [])?);
//! let mut mask = TokenMask::new(tokens.len());
//! let (mut ends, mut budget) = (Vec::new(), Budget::new(1000));
//! let start = set.start().expect("there are members");
//! set.effect(&start, &trie, 0, mask.as_words_mut(), &mut ends, &mut budget)?;
//! assert_eq!(mask.iter().collect::<Vec<_>>(), [0, 1, 2, 5].map(TokenId));
//!
//! let at = b"te".iter().try_fold(start, |at, &byte| set.advance(&at, byte)).expect("two go on");
//! set.effect(&at, &trie, 0, mask.as_words_mut(), &mut ends, &mut budget)?;
//! // After `a"` a member has ended, and the token `a",` goes on: its comma is not the set's business.
//! assert_eq!(ends.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Limits
//!
//! 2³² − 1 strings, 64 KiB a string; 4 MiB of documents unless a builder is given another limit:
//! beyond them there is an error that says so.
#![forbid(unsafe_code)]

mod arrays;
mod build;
mod cursor;
mod escapes;
mod file;
mod forced;
mod join;
mod lexicon;
mod members;
mod nearest;
mod selection;
mod set;
mod sort;
mod substrings;
mod tables;

pub use build::{
    BuildError, BuildStage, LexiconBuilder, MAX_TEXT_BYTES, MAX_TEXTS, build_peak_bytes,
};
pub use file::{FileError, LexiconMeta};
pub use lexicon::Lexicon;
pub use nearest::NearMember;
pub use palmette_core::{MemberSpelling, SubstringRule, SubstringUnit};
pub use palmette_mapped::{Check, RankSet};
pub use selection::Selection;
pub use set::{LexiconSet, SetError};
pub use substrings::{
    DEFAULT_DOCUMENT_BYTES, DocumentPlace, DocumentsError, MAX_DOCUMENT_BYTES, SubstringSet,
    Substrings, SubstringsBuilder,
};
