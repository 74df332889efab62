//! Masks by every engine against one another and the definition, and what bounds the work for them.

mod blocks;
mod budget;
mod codes;
mod constraint;
mod corpus;
mod distinct_names;
mod draft_trees;
mod ending;
mod engines;
mod hostile;
mod language_masks;
mod listed_sets;
mod long_ways;
mod looking_back;
mod members;
mod real_terminals;
mod residuals;
mod scopes;
mod substrings;
mod token_limits;
mod token_terminals;
mod tool_calls;
