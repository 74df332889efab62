//! What can be told of a grammar without parsing.

pub(crate) mod graph;
pub(crate) mod left_corners;
pub(crate) mod rule_list;
