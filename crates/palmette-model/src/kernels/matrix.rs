//! Weights as products take them: in full, or rounded to 8 bits.

use super::int8::{Int8Matrix, multiply_swiglu_int8};
use super::panels::{self, PackedMatrix, RowsMut, RowsRef};

/// A matrix `[k, n]` of weights.
///
/// Products take left sides `[rows, k]`, rows side by side, and may leave anything in them.
#[derive(Clone, Debug)]
pub(crate) enum Matrix {
    F32(PackedMatrix),
    Int8(Int8Matrix),
}

impl Matrix {
    /// Rounds the weights to 8 bits, where that is possible.
    pub(crate) fn round(&mut self) {
        if let Self::F32(matrix) = self
            && let Some(rounded) = Int8Matrix::rounded(matrix)
        {
            *self = Self::Int8(rounded);
        }
    }

    /// Values of the matrix.
    pub(crate) fn num_values(&self) -> usize {
        match self {
            Self::F32(matrix) => matrix.num_values(),
            Self::Int8(matrix) => matrix.num_values(),
        }
    }

    /// Bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::F32(matrix) => matrix.bytes(),
            Self::Int8(matrix) => matrix.bytes(),
        }
    }

    /// `out = x · self`
    pub(crate) fn multiply(&self, out: RowsMut<'_>, x: &mut [f32]) {
        match self {
            Self::F32(matrix) => panels::multiply(out, rows_of(x, matrix), matrix.view()),
            Self::Int8(matrix) => matrix.multiply(out, x, false),
        }
    }

    /// `out += x · self`
    pub(crate) fn multiply_add(&self, out: RowsMut<'_>, x: &mut [f32]) {
        match self {
            Self::F32(matrix) => panels::multiply_add(out, rows_of(x, matrix), matrix.view()),
            Self::Int8(matrix) => matrix.multiply(out, x, true),
        }
    }
}

/// `out = silu(x · gate) · (x · up)`, element by element.
///
/// # Panics
/// When only one of the two is rounded: of one shape, both are or none.
pub(crate) fn multiply_swiglu(out: RowsMut<'_>, x: &mut [f32], gate: &Matrix, up: &Matrix) {
    match (gate, up) {
        (Matrix::F32(gate), Matrix::F32(up)) => {
            panels::multiply_swiglu(out, rows_of(x, gate), gate.view(), up.view());
        }
        (Matrix::Int8(gate), Matrix::Int8(up)) => multiply_swiglu_int8(out, x, gate, up),
        _ => unreachable!("gate and up are rounded together"),
    }
}

fn rows_of<'a>(x: &'a [f32], matrix: &PackedMatrix) -> RowsRef<'a> {
    let depth = matrix.depth();
    RowsRef { data: x, rows: x.len() / depth, stride: depth }
}
