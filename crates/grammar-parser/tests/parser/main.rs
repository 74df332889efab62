//! Grammars without tokens: analysis, lexing, LR and GLR parsing, dead ends and messages, each
//! against its definition.

mod analysis;
mod completion;
mod dead_ends;
mod expected;
mod glr;
mod lexing;
mod peer_regex;
