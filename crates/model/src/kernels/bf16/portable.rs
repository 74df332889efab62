//! The definition, executed.

use super::BLOCK;
use crate::kernels::panels::{PANEL, PanelRow, Panels, RowsMut, RowsRef, to_bf16};

/// [`multiply_bf16`](super::multiply_bf16) by plain code.
pub(super) fn multiply(out: RowsMut<'_>, x: RowsRef<'_>, b: Panels<'_>, add: bool) {
    for row in 0..x.rows {
        let x = &x.data[row * x.stride..][..b.depth()];
        for panel in 0..b.num_panels() {
            let columns = b.columns_of(panel);
            let out = &mut out.data[row * out.stride..][columns];
            let mut values = [0.0; PANEL];
            if add {
                values[..out.len()].copy_from_slice(out);
            }
            for start in (0..b.depth()).step_by(BLOCK) {
                let block = block_of(x, b, panel, start);
                for lane in 0..PANEL {
                    values[lane] = normal(normal(values[lane]) + block[lane]);
                }
            }
            out.copy_from_slice(&values[..out.len()]);
        }
    }
}

/// The sums of a block of places from `start` on, of a row and a panel.
fn block_of(x: &[f32], b: Panels<'_>, panel: usize, start: usize) -> PanelRow {
    let (rows, step) = b.rows_of(panel);
    let mut chains = [[0.0; PANEL]; 2];
    for k in start..start + BLOCK {
        let (x, row) = match x.get(k) {
            Some(&x) => (rounded(x), rows[k * step].map(rounded)),
            None => (0.0, [0.0; PANEL]),
        };
        let chain = &mut chains[k % 2];
        for lane in 0..PANEL {
            chain[lane] = normal(x.mul_add(row[lane], chain[lane]));
        }
    }
    let [even, odd] = chains;
    let mut sums = [0.0; PANEL];
    for lane in 0..PANEL {
        sums[lane] = normal(even[lane] + odd[lane]);
    }
    sums
}

/// The nearest bfloat16.
fn rounded(value: f32) -> f32 {
    f32::from_bits(u32::from(to_bf16(normal(value))) << 16)
}

/// The value, or a zero of its sign where it is below the smallest normal number.
fn normal(value: f32) -> f32 {
    if value.abs() < f32::MIN_POSITIVE { 0.0_f32.copysign(value) } else { value }
}
