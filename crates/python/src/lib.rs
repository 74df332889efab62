//! Extension module `palmette._palmette`: Python classes over the crates below, one file a class.
//!
//! The package's face is `python/palmette`, whose modules add nothing but names, framework tensors
//! and engines' interfaces. Classes are frozen or hold a lock, long calls release the interpreter,
//! and arrays are read and written in place through buffers.
//!
//! # Invariants
//! - A forked child of a Python program never waits for a thread that it does not have: in
//!   `palmette-python` every call that releases the interpreter goes through `process.rs`, as do
//!   pools and threads. Processors of `transformers` never guess where a text begins
//!   (`python/palmette/transformers/running.py`).
#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "arrays of other libraries; the module says what is checked")]
mod buffers;
mod catalog;
#[cfg(feature = "cuda")]
mod cuda;
mod errors;
mod grammar;
mod interrupt;
mod process;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _palmette {
    use super::*;

    #[pymodule_export]
    use super::buffers::MaskBuffer;
    #[cfg(feature = "command")]
    #[pymodule_export]
    use super::command::run_command;
    #[cfg(feature = "cuda")]
    #[pymodule_export]
    use super::cuda::{CudaDevice, CudaFilters, CudaTables};
    #[pymodule_export]
    use super::errors::{
        DeviceError, Error, GrammarError, LimitExceeded, NotAllowed, SchemaUnsupported,
        TooFewTokens, TooManyTokens, VocabularyError,
    };
    #[pymodule_export]
    use super::grammar::apply::apply_bitmask;
    #[pymodule_export]
    use super::grammar::batch::{fill_masks, fill_masks_with_drafts, fill_masks_with_trees};
    #[pymodule_export]
    use super::grammar::compiled::{CompiledGrammar, Compiler, load};
    #[pymodule_export]
    use super::grammar::follower::Follower;
    #[pymodule_export]
    use super::grammar::mask_numbers::MaskNumbers;
    #[pymodule_export]
    use super::grammar::matcher::Matcher;
    #[pymodule_export]
    use super::grammar::members::{Lexicon, Member, Substrings};
    #[pymodule_export]
    use super::grammar::source::Grammar;
    #[pymodule_export]
    use super::grammar::vocabulary::Vocabulary;

    #[pymodule_init]
    fn prepare(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::errors::prepare(module)?;
        super::process::prepare(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        super::catalog::add(module)
    }
}

#[cfg(feature = "command")]
mod command {
    //! The program `palmette` inside the wheel.

    use std::ffi::OsString;

    use pyo3::prelude::*;

    /// Runs the command line with these arguments, the program's name first; returns the exit
    /// status.
    #[pyfunction]
    pub(crate) fn run_command(py: Python<'_>, args: Vec<OsString>) -> u8 {
        crate::process::detach_in_pool(py, || palmette_cli::run(args))
    }
}
