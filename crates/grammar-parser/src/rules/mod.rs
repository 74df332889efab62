//! Rules as graphs: reduction to those that sentences use, left corners, strongly connected
//! components.
//!
//! The parser's tables and the analysis of a grammar both begin here.

mod graph;
mod interchange;
mod left_corners;
mod reduce;
mod rule_list;

pub(crate) use graph::Graph;
pub use interchange::merge_interchangeable;
pub(crate) use left_corners::LeftCorners;
pub use reduce::{reduce, used_terminals};
pub(crate) use rule_list::{ByHead, ListedRule, RuleList, is, nonterminals};
