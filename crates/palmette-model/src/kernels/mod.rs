//! Arithmetic on plain f32 slices: what the layers are made of, shared with training.

mod matmul;

pub use matmul::{MatMut, MatRef, Write, matmul};
