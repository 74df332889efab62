//! Names and structures of llguidance's C interface, so that a program that links it relinks.
//!
//! Functions, structures and their meaning are those of its published header; grammars, masks and
//! messages are ours. An error stays: after a call that fails, every other of the same constraint
//! or matcher fails with the first message.
//!
//! Otherwise than there: tokens are forced only where the mask has one bit, `slices` and limits of
//! its parser are not read (the limits of compiling are ours), nothing is written to the error
//! stream, and a list of grammars has one. As everywhere here, a null handle is a failure.

mod constraint;
mod grammar;
mod matcher;
mod parallel;
mod stop;
mod texts;
mod tokenizer;

pub use constraint::*;
pub use grammar::*;
pub use matcher::*;
pub use parallel::*;
pub use stop::*;
pub use texts::*;
pub use tokenizer::*;
