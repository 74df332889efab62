//! Emulation of a CUDA device on a CPU, for tests of kernels and of the host code above them.
//!
//! [`Emulator`] is a `Driver` of `palmette-cuda`. The kernels are compiled as they stand, over a
//! model of the instructions that they use (`native/emulator.h`, which says what is not modelled).
//! Their arithmetic has the bits of the architecture that is asked for.
//!
//! The model of the matrix units is that of arXiv 2511.10909.

#![deny(unsafe_code)]

pub mod decoder;
mod emulator;
#[cfg_attr(not(emulated), path = "absent.rs")]
mod native;
mod streams;

pub use emulator::Emulator;
pub use native::{exp2, kernels, layouts, log, multiply_bytes, step, trial};
