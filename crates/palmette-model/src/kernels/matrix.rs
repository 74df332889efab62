//! Weights as products take them: in full, or rounded to 8 bits.

use super::activation::Activation;
use super::int8::{Int8Matrix, multiply_gated_int8};
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

    /// `out = x · self + bias`, the bias the same in every row.
    pub(crate) fn multiply_biased(&self, out: RowsMut<'_>, x: &mut [f32], bias: Option<&[f32]>) {
        let Some(bias) = bias else { return self.multiply(out, x) };
        let RowsMut { data, stride } = out;
        let rows = x.len() / self.depth();
        for row in data.chunks_mut(stride).take(rows) {
            row[..bias.len()].copy_from_slice(bias);
        }
        self.multiply_add(RowsMut { data, stride }, x);
    }

    /// k
    fn depth(&self) -> usize {
        match self {
            Self::F32(matrix) => matrix.depth(),
            Self::Int8(matrix) => matrix.depth(),
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

/// `out = activation(x · gate) · (x · up)`, element by element.
///
/// # Panics
/// When only one of the two is rounded: of one shape, both are or none.
pub(crate) fn multiply_gated(
    out: RowsMut<'_>,
    x: &mut [f32],
    gate: &Matrix,
    up: &Matrix,
    activation: Activation,
) {
    match (gate, up) {
        (Matrix::F32(gate), Matrix::F32(up)) => {
            panels::multiply_gated(out, rows_of(x, gate), gate.view(), up.view(), activation);
        }
        (Matrix::Int8(gate), Matrix::Int8(up)) => multiply_gated_int8(out, x, gate, up, activation),
        _ => unreachable!("gate and up are rounded together"),
    }
}

fn rows_of<'a>(x: &'a [f32], matrix: &PackedMatrix) -> RowsRef<'a> {
    let depth = matrix.depth();
    RowsRef { data: x, rows: x.len() / depth, stride: depth }
}
