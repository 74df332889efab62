//! Decoder-only Transformer inference on the CPU.
#![deny(unsafe_code)]

mod config;
mod error;
pub mod kernels;

pub use config::ModelConfig;
pub use error::LoadError;
