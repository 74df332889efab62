//! Rowwise operations on many rows, compiled for the vectors that the processor has.
//!
//! Each is a loop over a kernel of one row and gives the same bits: wider vectors change neither
//! the order of additions nor what is rounded.

use pulp::{Arch, Simd, WithSimd};

use super::activation::{Activation, Gate, GeluTanh, Relu, Silu, softmax_in_place};
use super::norm::{rms_norm_in_place, rms_norm_row};
use super::rope::RopeTable;

/// [`rms_norm_row`] of every row: `x`, `out`: `[rows, D]`, D the length of `weight`.
pub(crate) fn rms_norm_rows(out: &mut [f32], x: &[f32], weight: &[f32], eps: f32) {
    Arch::new().dispatch(NormRows { out, x, weight, eps });
}

struct NormRows<'a> {
    out: &'a mut [f32],
    x: &'a [f32],
    weight: &'a [f32],
    eps: f32,
}

/// Heads to be normed, where there is a norm, and turned to their row's position.
#[derive(Debug)]
pub(crate) struct Heads<'a> {
    /// Rows `stride` apart, each with `heads` heads of C values at its beginning.
    pub(crate) data: &'a mut [f32],
    pub(crate) stride: usize,
    pub(crate) heads: usize,
    /// C
    pub(crate) head_dim: usize,
    /// `[C]`
    pub(crate) norm: Option<&'a [f32]>,
    pub(crate) eps: f32,
    pub(crate) rope: &'a RopeTable,
    /// Position of the first row.
    pub(crate) position: usize,
    /// Distance of the next row from there: 1 in a prompt, 0 among beams.
    pub(crate) advance: usize,
}

/// Attention scores to be made weights.
#[derive(Debug)]
pub(crate) struct Scores<'a> {
    /// Rows `stride` apart, `width` places each.
    pub(crate) data: &'a mut [f32],
    pub(crate) stride: usize,
    pub(crate) width: usize,
    /// Places that the first row sees; those after them become 0.
    pub(crate) visible: usize,
    /// Number of places that the next row sees more.
    pub(crate) advance: usize,
    /// Number of places that a row sees at most, its last ones. Those before become 0. `usize::MAX`
    /// for all.
    pub(crate) window: usize,
    pub(crate) scale: f32,
}

impl Heads<'_> {
    pub(crate) fn norm_and_turn(self) {
        Arch::new().dispatch(self);
    }
}

impl Scores<'_> {
    /// The softmax of what each row sees, scaled.
    pub(crate) fn softmax(self) {
        Arch::new().dispatch(self);
    }
}

impl WithSimd for NormRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let width = self.weight.len();
        for (out, x) in self.out.chunks_exact_mut(width).zip(self.x.chunks_exact(width)) {
            rms_norm_row(out, x, self.weight, self.eps);
        }
    }
}

impl WithSimd for Heads<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { head_dim, eps, rope, .. } = self;
        match self.norm {
            Some(norm) => self.for_each(head_dim, |head, position| {
                rms_norm_in_place(head, norm, eps);
                rope.rotate(head, position);
            }),
            None => self.for_each(head_dim, |head, position| rope.rotate(head, position)),
        }
    }
}

impl Heads<'_> {
    #[inline(always)]
    fn for_each(self, head_dim: usize, mut work: impl FnMut(&mut [f32], usize)) {
        for (row, data) in self.data.chunks_mut(self.stride).enumerate() {
            let position = self.position + row * self.advance;
            for head in data.chunks_exact_mut(head_dim).take(self.heads) {
                work(head, position);
            }
        }
    }
}

/// `hidden += rms_norm(x)`, row by row, x normed where it lies: `[rows, D]` both, D the length of
/// `weight`.
pub(crate) fn add_normed_rows(hidden: &mut [f32], x: &mut [f32], weight: &[f32], eps: f32) {
    Arch::new().dispatch(AddNormedRows { hidden, x, weight, eps });
}

struct AddNormedRows<'a> {
    hidden: &'a mut [f32],
    x: &'a mut [f32],
    weight: &'a [f32],
    eps: f32,
}

impl WithSimd for AddNormedRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let width = self.weight.len();
        for (hidden, x) in self.hidden.chunks_exact_mut(width).zip(self.x.chunks_exact_mut(width)) {
            rms_norm_in_place(x, self.weight, self.eps);
            hidden.iter_mut().zip(&*x).for_each(|(hidden, x)| *hidden += x);
        }
    }
}

/// Puts every value through a function, where it lies.
pub(crate) fn activate_rows(data: &mut [f32], activation: Activation) {
    let arch = Arch::new();
    match activation {
        Activation::Silu => arch.dispatch(ActivateRows { data, by: Silu }),
        Activation::GeluTanh => arch.dispatch(ActivateRows { data, by: GeluTanh }),
        Activation::Relu => arch.dispatch(ActivateRows { data, by: Relu }),
    }
}

struct ActivateRows<'a, G> {
    data: &'a mut [f32],
    by: G,
}

impl<G: Gate> WithSimd for ActivateRows<'_, G> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        self.data.iter_mut().for_each(|value| *value = self.by.of(*value));
    }
}

impl WithSimd for Scores<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (row, data) in self.data.chunks_mut(self.stride).enumerate() {
            let visible = self.visible + row * self.advance;
            let (seen, after) = data[..self.width].split_at_mut(visible);
            let (before, seen) = seen.split_at_mut(visible.saturating_sub(self.window));
            before.fill(0.0);
            softmax_in_place(seen, self.scale);
            after.fill(0.0);
        }
    }
}
