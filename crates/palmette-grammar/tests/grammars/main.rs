//! Grammars as texts, and what reads by them: front ends, regular expressions, lexer, parser, analysis.

mod analysis;
mod dead_ends;
mod embedded;
mod gbnf;
mod indentation;
mod lark_counts;
mod lark_dialect;
mod lark_grammars;
mod legality;
mod lexing;
#[path = "../../examples/streamline/long_steps/mod.rs"]
mod long_steps;
mod naive;
mod parser;
mod peer_regex;
mod python_table;
mod regex_oracle;
mod structural_tag;
