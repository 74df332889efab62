//! Extension module `palmette._palmette`: Python classes over the crates below, one file a class.
//!
//! The package's face is `python/palmette`, whose modules add nothing but names, framework tensors and engines' interfaces.
//! Classes are frozen or hold a lock, long calls release the interpreter, and arrays are read and written in place
//! through buffers.

mod catalog;
mod errors;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _palmette {
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("Error", module.py().get_type::<errors::Error>())?;
        catalog::add(module)
    }

    #[cfg(feature = "command")]
    #[pymodule_export]
    use super::command::run_command;
}

#[cfg(feature = "command")]
mod command {
    //! The program `palmette` inside the wheel.

    use std::ffi::OsString;

    use pyo3::prelude::*;

    /// Runs the command line with these arguments, the program's name first; returns the exit status.
    #[pyfunction]
    pub(crate) fn run_command(py: Python<'_>, args: Vec<OsString>) -> u8 {
        py.detach(|| palmette_cli::run(args))
    }
}
