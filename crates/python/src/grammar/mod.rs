//! Grammars: vocabularies, sources, compiled grammars, positions in texts, and batches of them.

pub(crate) mod apply;
pub(crate) mod batch;
pub(crate) mod compiled;
pub(crate) mod draft_trees;
pub(crate) mod follower;
pub(crate) mod mask_numbers;
pub(crate) mod matcher;
pub(crate) mod members;
pub(crate) mod source;
pub(crate) mod steps;
pub(crate) mod vocabulary;
