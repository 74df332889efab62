//! Weights as products take them: in full, as bfloat16, or rounded to 8 bits.

use std::ops::Range;

use super::activation::Activation;
use super::int8::{Int8Kernel, Int8Matrix, multiply_gated_int8};
use super::panels::{self, Bf16, PackedMatrix, RowsMut, RowsRef, Stored};

/// Values as a file has them, row-major.
#[derive(Clone, Debug)]
pub enum Values {
    /// Stored so, or as float16.
    F32(Vec<f32>),
    /// The bits of bfloat16: the upper half of the f32 of the same value.
    Bf16(Vec<u16>),
}

/// A matrix `[k, n]` of weights.
///
/// Products take left sides `[rows, k]`, rows side by side, and may leave anything in them. Those
/// of [`Bf16`](Self::Bf16) are to the bit those of [`F32`](Self::F32) with the same values.
#[derive(Clone, Debug)]
pub(crate) enum Matrix {
    F32(PackedMatrix),
    Bf16(PackedMatrix<Bf16>),
    Int8(Int8Matrix),
}

impl From<Vec<f32>> for Values {
    fn from(values: Vec<f32>) -> Self {
        Self::F32(values)
    }
}

impl Values {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::Bf16(values) => values.len(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::F32(values) => size_of_val(&**values),
            Self::Bf16(values) => size_of_val(&**values),
        }
    }

    /// All of them as f32.
    pub fn into_f32(self) -> Vec<f32> {
        match self {
            Self::F32(values) => values,
            Self::Bf16(values) => values.into_iter().map(Stored::value).collect(),
        }
    }

    /// Leaves out those from `len` on.
    pub(crate) fn truncate(&mut self, len: usize) {
        match self {
            Self::F32(values) => {
                values.truncate(len);
                values.shrink_to_fit();
            }
            Self::Bf16(values) => {
                values.truncate(len);
                values.shrink_to_fit();
            }
        }
    }

    /// The first that is NaN or infinite, and its place.
    pub(crate) fn first_not_finite(&self) -> Option<(usize, f32)> {
        match self {
            Self::F32(values) => first_not_finite(values),
            Self::Bf16(values) => first_not_finite(values),
        }
    }

    /// Copies those from `start` on to `out`, as f32.
    pub(crate) fn copy_to(&self, start: usize, out: &mut [f32]) {
        match self {
            Self::F32(values) => out.copy_from_slice(&values[start..][..out.len()]),
            Self::Bf16(values) => {
                let values = &values[start..][..out.len()];
                out.iter_mut().zip(values).for_each(|(out, value)| *out = value.value());
            }
        }
    }

    /// These, followed by others; as bfloat16 only where both are.
    pub(crate) fn followed_by(self, other: Self) -> Self {
        match (self, other) {
            (Self::Bf16(mut all), Self::Bf16(more)) => {
                all.extend(more);
                Self::Bf16(all)
            }
            (one, other) => {
                let mut all = one.into_f32();
                all.extend(other.into_f32());
                Self::F32(all)
            }
        }
    }

    /// Rounded to the nearest bfloat16, of two to the even one.
    pub(crate) fn to_bf16(&self) -> Self {
        Self::Bf16(self.clone().into_bf16())
    }

    /// Bits of all of them as bfloat16, rounded to nearest, of two to the even one.
    pub fn into_bf16(self) -> Vec<u16> {
        match self {
            Self::F32(values) => values.into_iter().map(panels::to_bf16).collect(),
            Self::Bf16(values) => values,
        }
    }
}

fn first_not_finite<W: Stored>(values: &[W]) -> Option<(usize, f32)> {
    // PERF: by chunks, each looked at whole: a search that may end at any value is not vectorised.
    const CHUNK: usize = 64;
    let bad = |chunk: &[W]| chunk.iter().fold(false, |bad, value| bad | !value.value().is_finite());
    let start = values.chunks(CHUNK).position(bad)? * CHUNK;
    let mut rest = (start..).zip(&values[start..]).map(|(place, value)| (place, value.value()));
    rest.find(|(_, value)| !value.is_finite())
}

impl Matrix {
    /// Packs the transpose of a row-major matrix: `rows` is `[n, k]`, as weights are stored, and
    /// `k` is `depth`.
    pub(crate) fn transposed(rows: &Values, depth: usize) -> Self {
        match rows {
            Values::F32(rows) => Self::F32(PackedMatrix::transposed(rows, depth)),
            Values::Bf16(rows) => Self::Bf16(PackedMatrix::packed(rows, depth)),
        }
    }

    /// Rounds the weights to 8 bits, where that is possible.
    pub(crate) fn round_to_int8(&mut self) {
        let rounded = match self {
            Self::F32(matrix) => Int8Matrix::rounded(matrix),
            Self::Bf16(matrix) => Int8Matrix::rounded(matrix),
            Self::Int8(_) => None,
        };
        if let Some(rounded) = rounded {
            *self = Self::Int8(rounded);
        }
    }

    /// Has products with weights in 8 bits computed by another kernel.
    pub(crate) fn set_int8_kernel(&mut self, kernel: Int8Kernel) {
        if let Self::Int8(matrix) = self {
            matrix.set_kernel(kernel);
        }
    }

    /// Rounds weights that are kept in full to bfloat16.
    pub(crate) fn round_to_bf16(&mut self) {
        if let Self::F32(matrix) = self {
            *self = Self::Bf16(matrix.to_bf16());
        }
    }

    /// Keeps both in full where only one is bfloat16: [`multiply_gated`] takes two of a kind.
    pub(crate) fn keep_alike(one: &mut Self, other: &mut Self) {
        let full = |matrix: &mut Self| {
            if let Self::Bf16(narrow) = matrix {
                *matrix = Self::F32(narrow.to_f32());
            }
        };
        match (&one, &other) {
            (Self::Bf16(_), Self::F32(_)) => full(one),
            (Self::F32(_), Self::Bf16(_)) => full(other),
            _ => {}
        }
    }

    /// Values of the matrix.
    pub(crate) fn num_values(&self) -> usize {
        match self {
            Self::F32(matrix) => matrix.num_values(),
            Self::Bf16(matrix) => matrix.num_values(),
            Self::Int8(matrix) => matrix.num_values(),
        }
    }

    /// Bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::F32(matrix) => matrix.bytes(),
            Self::Bf16(matrix) => matrix.bytes(),
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
            Self::Bf16(matrix) => matrix.depth(),
            Self::Int8(matrix) => matrix.depth(),
        }
    }

    /// `out = x · self`
    pub(crate) fn multiply(&self, out: RowsMut<'_>, x: &mut [f32]) {
        match self {
            Self::F32(matrix) => panels::multiply(out, rows_of(x, matrix), matrix.view()),
            Self::Bf16(matrix) => panels::multiply(out, rows_of(x, matrix), matrix.view()),
            Self::Int8(matrix) => matrix.multiply(out, x, false),
        }
    }

    /// `out += x · self`
    pub(crate) fn multiply_add(&self, out: RowsMut<'_>, x: &mut [f32]) {
        match self {
            Self::F32(matrix) => panels::multiply_add(out, rows_of(x, matrix), matrix.view()),
            Self::Bf16(matrix) => panels::multiply_add(out, rows_of(x, matrix), matrix.view()),
            Self::Int8(matrix) => matrix.multiply(out, x, true),
        }
    }
}

/// The output head: a matrix `[D, V]` whose columns are embeddings too where the model is tied.
/// Never rounded to 8 bits.
#[derive(Clone, Debug)]
pub(crate) enum HeadMatrix {
    F32(PackedMatrix),
    Bf16(PackedMatrix<Bf16>),
}

impl HeadMatrix {
    /// Packs the transpose of rows, see [`Matrix::transposed`].
    pub(crate) fn transposed(rows: &Values, depth: usize) -> Self {
        match rows {
            Values::F32(rows) => Self::F32(PackedMatrix::transposed(rows, depth)),
            Values::Bf16(rows) => Self::Bf16(PackedMatrix::packed(rows, depth)),
        }
    }

    /// Rounds weights that are kept in full to bfloat16.
    pub(crate) fn round_to_bf16(&mut self) {
        if let Self::F32(matrix) = self {
            *self = Self::Bf16(matrix.to_bf16());
        }
    }

    /// Values of the matrix.
    pub(crate) fn num_values(&self) -> usize {
        match self {
            Self::F32(matrix) => matrix.num_values(),
            Self::Bf16(matrix) => matrix.num_values(),
        }
    }

    /// Bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::F32(matrix) => matrix.bytes(),
            Self::Bf16(matrix) => matrix.bytes(),
        }
    }

    /// Copies one column to `out`, `[D]`.
    pub(crate) fn copy_column(&self, column: usize, out: &mut [f32]) {
        match self {
            Self::F32(matrix) => matrix.copy_column(column, out),
            Self::Bf16(matrix) => matrix.copy_column(column, out),
        }
    }

    /// `out = x · self`, some of the columns.
    pub(crate) fn multiply_columns(&self, out: RowsMut<'_>, x: RowsRef<'_>, columns: Range<usize>) {
        match self {
            Self::F32(matrix) => panels::multiply(out, x, matrix.columns(columns)),
            Self::Bf16(matrix) => panels::multiply(out, x, matrix.columns(columns)),
        }
    }
}

/// `out = activation(x · gate) · (x · up)`, element by element.
///
/// # Panics
/// When the two are kept in different ways: whoever rounds one rounds the other.
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
        (Matrix::Bf16(gate), Matrix::Bf16(up)) => {
            panels::multiply_gated(out, rows_of(x, gate), gate.view(), up.view(), activation);
        }
        (Matrix::Int8(gate), Matrix::Int8(up)) => multiply_gated_int8(out, x, gate, up, activation),
        _ => unreachable!("gate and up are kept in one way"),
    }
}

fn rows_of<'a, W: Stored>(x: &'a [f32], matrix: &PackedMatrix<W>) -> RowsRef<'a> {
    let depth = matrix.depth();
    RowsRef { data: x, rows: x.len() / depth, stride: depth }
}
