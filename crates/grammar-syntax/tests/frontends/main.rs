//! Front ends against their definitions and peers: texts that their grammars have and have not, and
//! messages.

mod embedded;
mod gbnf;
mod json_schema;
mod lark_counts;
mod lark_dialect;
mod lark_grammars;
mod naive;
mod parameters;
mod structural_tag;
mod tools;
