//! Arithmetic on plain f32 slices: what the layers are made of, shared with training.

mod activation;
mod bf16;
mod int8;
mod matrix;
mod norm;
mod panels;
mod reduce;
mod rope;
mod rowwise;
#[cfg(target_arch = "x86_64")]
mod tiles;

pub use activation::{Activation, gelu_tanh, relu, silu, softmax_in_place, swiglu};
pub(crate) use bf16::{BLOCK as BF16_BLOCK, is_fast as bf16_is_fast, multiply_bf16};
pub use int8::{Int8Kernel, Int8Matrix, round_to_int8};
pub use matrix::Values;
pub(crate) use matrix::{HeadMatrix, Matrix, multiply_gated};
pub use norm::{rms_norm, rms_norm_in_place, rms_norm_row};
pub use palmette_decode::exp;
pub use panels::PackedMatrix;
pub(crate) use panels::{Bf16, PANEL, PanelRow, Panels, RowsMut, RowsRef, multiply, multiply_add};
pub use reduce::{dot, max, sum};
pub use rope::RopeTable;
pub(crate) use rowwise::{Heads, Scores, activate_rows, add_normed_rows, rms_norm_rows};
