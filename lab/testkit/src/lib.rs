//! Oracles, generators and law checks: the slow, obvious versions that the fast ones are held to.
//!
//! - [`SequenceSet`]: a constraint as its definition, a plain set of sequences.
//! - [`laws::check`]: the laws of `Constraint`, on random walks.
//! - [`logits::TableLogits`]: logits as a pure function of the prefix, with many ties on request.
//! - [`search`]: exhaustive search and naive beam search.
//! - [`beam_slots`]: the keys and values of beams that fork, copied and moved in place.
//! - [`member_sets`]: sets of texts as their definition, and a comparison with it along all texts.
//! - [`substrings`]: all substrings of documents by a rule, every pair of places tried.
//! - [`data`]: published data sets, where they are at hand.
//! - [`disk`]: a small disk that is filled and freed.
//! - [`allocations`]: an allocator that counts, for what must not allocate.
//! - [`lexing`]: what regular expressions match and how texts are cut into lexemes, as defined.
//! - [`generate`]: proptest strategies for sets of semantic IDs.
//! - [`json`]: random JSON Schemas and values, and JSON as Python writes it.
//! - [`tiny_model`]: a language model of made-up weights.
//! - [`grammar`]: sentences of grammars and what may follow, by definition; random grammars.
#![deny(unsafe_code)]

pub mod allocations;
pub mod beam_slots;
pub mod data;
pub mod disk;
pub mod generate;
pub mod grammar;
pub mod json;
pub mod laws;
pub mod lexing;
pub mod logits;
pub mod member_sets;
pub mod naive_items;
pub mod search;
mod sequence_set;
pub mod substrings;
pub mod tiny_model;

pub use sequence_set::SequenceSet;
