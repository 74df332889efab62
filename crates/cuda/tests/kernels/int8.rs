//! Products in 8 bits: rounded rows and what products leave, against the processor's to the bit.

use palmette_cuda::arguments::{Int8Product, Norm, QuantizeRows};
use palmette_cuda::{Architecture, Kernel, Region};
use palmette_cuda_emulator::{exp2, multiply_bytes};
use palmette_model::kernels::{Int8Matrix, round_to_int8};

use crate::support::{
    Device, NULL, Random, bits, bytes_of, device, devices, relative_error, to_bf16,
};

/// Operands of a product: rows in bfloat16, weights as a file has them.
struct Case {
    rows: usize,
    n: usize,
    k: usize,
    x: Vec<u16>,
    w: Vec<f32>,
}

/// Rows as kernels read them: integers and what they stand for.
struct RoundedRows {
    integers: Region,
    factors: Region,
}

impl Case {
    fn new(rows: usize, n: usize, k: usize) -> Self {
        let mut random = Random((rows * 31 + n * 7 + k) as u64 + 2000);
        let (mut x, w) = (random.bf16(rows * k, 1.0), random.floats(n * k, 0.3));
        // Rows of zeros, of what is too small for an inverse, of very large values, of ties.
        for (row, values) in x.chunks_mut(k).enumerate().skip(1) {
            let scale = match row % 7 {
                1 => 0.0,
                2 => 1e-39,
                3 => 3e38,
                _ => continue,
            };
            for value in values {
                *value = to_bf16(f32::from_bits(u32::from(*value) << 16) * scale);
            }
        }
        if let Some(ties) = x.chunks_mut(k).nth(4) {
            let half = |i: usize| if i == 0 { 127.0 } else { (i % 60) as f32 - 30.5 };
            ties.iter_mut().enumerate().for_each(|(i, value)| *value = to_bf16(half(i)));
        }
        Self { rows, n, k, x, w }
    }

    fn of_row(&self, row: usize) -> Self {
        let x = self.x[row * self.k..][..self.k].to_vec();
        Self { rows: 1, x, w: self.w.clone(), ..*self }
    }

    /// The left side as the processor has it.
    fn x(&self) -> Vec<f32> {
        self.x.iter().map(|&value| f32::from_bits(u32::from(value) << 16)).collect()
    }

    /// Its rows, rounded by the kernel.
    fn rounded(&self, device: &Device, grid: u32) -> RoundedRows {
        let kept = (device.put(&[self.rows as i32]), device.put(&self.x));
        let to = RoundedRows {
            integers: device.empty(self.rows * self.k),
            factors: device.empty(self.rows * 4),
        };
        let arguments = QuantizeRows {
            rows: kept.0.address(),
            x: kept.1.address(),
            integers: to.integers.address(),
            factors: to.factors.address(),
            width: self.k as i32,
        };
        device.run(Kernel::QuantizeRows, [grid, 1, 1], &arguments);
        to
    }

    /// The weights, rounded by the processor.
    fn weights(&self, device: &Device) -> RoundedRows {
        let (mut all, mut factors, mut integers) = (Vec::new(), Vec::new(), vec![0; self.k]);
        for row in self.w.chunks(self.k) {
            factors.push(round_to_int8(row, &mut integers));
            all.extend(integers.iter().map(|&integer| integer as u8));
        }
        RoundedRows { integers: device.put(&all), factors: device.put(&factors) }
    }

    /// Runs a product over both sides.
    fn multiply(
        &self,
        device: &Device,
        kernel: Kernel,
        grid: u32,
        [parts, part_rows]: [usize; 2],
        out: &Region,
    ) -> (RoundedRows, RoundedRows) {
        let (x, w) = (self.rounded(device, grid), self.weights(device));
        let rows = device.put(&[self.rows as i32]);
        let arguments = Int8Product {
            rows: rows.address(),
            x: x.integers.address(),
            w: w.integers.address(),
            x_factors: x.factors.address(),
            w_factors: w.factors.address(),
            out: out.address(),
            n: self.n as i32,
            k: self.k as i32,
            parts: parts as i32,
            part_rows: part_rows as i32,
        };
        device.run(kernel, [grid, 1, 1], &arguments);
        (x, w)
    }

    /// What `norm_rows` makes of the sums: added to a residual stream.
    fn added(&self, device: &Device, grid: u32, parts: usize, old: &[f32]) -> Vec<f32> {
        let part_rows = self.rows + 1;
        let sums = device.empty(parts * part_rows * self.n * 4);
        let (x, w) = self.multiply(device, Kernel::Int8Sums, grid, [parts, part_rows], &sums);
        let kept = (device.put(&[self.rows as i32]), device.put(&vec![1.0_f32; self.n]));
        let (stream, normed) = (device.put(old), device.empty(old.len() * 2));
        let arguments = Norm {
            rows: kept.0.address(),
            sums: sums.address(),
            row_factors: x.factors.address(),
            column_factors: w.factors.address(),
            weight: kept.1.address(),
            x: stream.address(),
            normed: normed.address(),
            integers: NULL,
            factors: NULL,
            width: self.n as i32,
            parts: parts as i32,
            part_rows: part_rows as i32,
            epsilon: 1e-6,
        };
        device.run(Kernel::NormRows, [grid, 1, 1], &arguments);
        device.get(&stream)
    }

    /// The same by the processor.
    fn added_here(&self, old: &[f32]) -> Vec<f32> {
        let mut out = old.to_vec();
        let matrix = Int8Matrix::transposed(&self.w, self.k).unwrap();
        matrix.multiply_add(&mut out, &mut self.x());
        out
    }

    fn gated(&self, device: &Device, grid: u32) -> Vec<u16> {
        let out = device.empty(self.rows * self.n);
        self.multiply(device, Kernel::Int8Swiglu, grid, [1, 0], &out);
        device.get(&out)
    }
}

/// Parts of whole tiles and of halves, tiles of rows and of columns that end early.
const SHAPES: [(usize, usize, usize, usize); 5] =
    [(1, 128, 256, 1), (37, 200, 512, 2), (130, 72, 256, 4), (5, 260, 320, 5), (9, 132, 64, 1)];

/// Tables of the PTX manual, "Matrix Fragments for mma.m16n8k32", of 8 bits: place and lane to row
/// and column.
#[test]
fn fragments_of_bytes_are_those_of_the_manual() {
    if device(Architecture::Hopper, 1).is_none() {
        return;
    }
    let mut random = Random(5);
    let (mut a, mut b) = ([[0; 4]; 32], [[0; 2]; 32]);
    a.as_flattened_mut().iter_mut().for_each(|word| *word = random.next() as u32);
    b.as_flattened_mut().iter_mut().for_each(|word| *word = random.next() as u32);
    let mut d: [[i32; 4]; 32] =
        std::array::from_fn(|_| std::array::from_fn(|_| random.below(1000) as i32 - 500));
    let (mut left, mut right, mut want) = ([[0; 32]; 16], [[0; 8]; 32], [[0; 8]; 16]);
    let of_byte = |words: &[u32], i: usize| i32::from((words[i / 4] >> (i % 4 * 8)) as i8);
    for lane in 0..32 {
        let (group, place) = (lane / 4, lane % 4);
        for i in 0..16 {
            let row = if i < 4 || (8..12).contains(&i) { group } else { group + 8 };
            let column = place * 4 + (i & 3) + if i < 8 { 0 } else { 16 };
            left[row][column] = of_byte(&a[lane], i);
        }
        for i in 0..8 {
            let row = place * 4 + (i & 3) + if i < 4 { 0 } else { 16 };
            right[row][group] = of_byte(&b[lane], i);
        }
    }
    let of_sum = |lane: usize, i: usize| {
        let row = if i < 2 { lane / 4 } else { lane / 4 + 8 };
        (row, lane % 4 * 2 + (i & 1))
    };
    for lane in 0..32 {
        for i in 0..4 {
            let (row, column) = of_sum(lane, i);
            let sum: i32 = (0..32).map(|k| left[row][k] * right[k][column]).sum();
            want[row][column] = d[lane][i] + sum;
        }
    }
    multiply_bytes(&a, &b, &mut d).unwrap();
    for (lane, sums) in d.iter().enumerate() {
        for (i, &sum) in sums.iter().enumerate() {
            let (row, column) = of_sum(lane, i);
            assert_eq!(sum, want[row][column], "lane {lane}, sum {i}");
        }
    }
}

#[test]
fn rows_are_rounded_as_the_processor_rounds_them() {
    for (grid, device) in [1, 2, 5].into_iter().zip(devices(Architecture::Hopper)) {
        for (rows, n, k, _) in SHAPES {
            let case = Case::new(rows, n, k);
            let RoundedRows { integers, factors } = case.rounded(&device, grid);
            let (got, factors) = (device.get_bytes(&integers), device.get::<f32>(&factors));
            let (mut want, x) = (vec![0; k], case.x());
            for (row, x) in x.chunks(k).enumerate() {
                let factor = round_to_int8(x, &mut want);
                assert_eq!(factors[row].to_bits(), factor.to_bits(), "row {row} of {rows} x {k}");
                let got: Vec<i8> = got[row * k..][..k].iter().map(|&byte| byte as i8).collect();
                assert_eq!(got, want, "row {row} of {rows} x {k}");
            }
        }
    }
}

/// Rows that hold no numbers have no factor that is one.
#[test]
fn rows_without_numbers_stay_so() {
    let Some(device) = device(Architecture::Ampere, 1) else { return };
    for bad in [f32::NAN, f32::INFINITY] {
        let mut case = Case::new(3, 64, 64);
        case.x[64 + 7] = (bad.to_bits() >> 16) as u16;
        let got = case.added(&device, 1, 1, &vec![0.0; 3 * 64]);
        let (others, row) = ([&got[..64], &got[128..]].concat(), &got[64..128]);
        assert!(row.iter().all(|value| !value.is_finite()), "{bad}: {row:?}");
        assert!(others.iter().all(|value| value.is_finite()), "{bad}");
    }
}

#[test]
fn products_have_the_processors_bits_whole_and_in_parts_under_every_seed() {
    for (rows, n, k, parts) in SHAPES {
        let case = Case::new(rows, n, k);
        let old = Random(3).floats(rows * n, 1.0);
        let want = bits(&case.added_here(&old));
        for (grid, device) in [1, 3, 2].into_iter().zip(devices(Architecture::Hopper)) {
            for parts in [1, parts] {
                let got = case.added(&device, grid, parts, &old);
                assert!(bits(&got) == want, "{rows} x {n} x {k} in {parts}");
            }
            assert_eq!(device.bank_conflicts(), 0);
        }
    }
}

/// Integers at their ends, over the deepest sums.
#[test]
fn the_largest_sums_are_exact() {
    let Some(device) = device(Architecture::Hopper, 2) else { return };
    let k = Int8Matrix::MAX_DEPTH / 64 * 64;
    let sign = |at: usize, by: usize| if (at / by).is_multiple_of(2) { 1.0 } else { -1.0 };
    let x = (0..2 * k).map(|at| to_bf16(sign(at, k))).collect();
    let w = (0..4 * k).map(|at| sign(at, k)).collect();
    let case = Case { rows: 2, n: 4, k, x, w };
    let want = case.added_here(&[0.0; 8]);
    assert!(want[0] > 60_000.0, "{want:?}");
    assert_eq!(bits(&case.added(&device, 1, 1, &[0.0; 8])), bits(&want));
}

#[test]
fn a_row_is_the_same_alone_and_among_others() {
    let Some(device) = device(Architecture::Hopper, 1) else { return };
    let case = Case::new(140, 128, 256);
    let old = Random(8).floats(140 * 128, 1.0);
    let (all, gated) = (case.added(&device, 3, 2, &old), case.gated(&device, 3));
    for row in [0, 63, 77, 139] {
        let alone = case.of_row(row);
        let got = alone.added(&device, 1, 1, &old[row * 128..][..128]);
        assert_eq!(bits(&got), bits(&all[row * 128..][..128]), "row {row}");
        assert_eq!(alone.gated(&device, 1), gated[row * 64..][..64], "row {row}");
    }
}

/// `gate · sigmoid(gate) · up` of the processor's products, to the bit by the kernels' exponential.
#[test]
fn gated_products_are_made_of_the_processors() {
    for (grid, device) in [1, 2, 3].into_iter().zip(devices(Architecture::Hopper)) {
        // Gates far below zero too, where e^-x would pass the largest number.
        for (rows, n, k, scale) in [(37, 136, 256, 1.0), (6, 264, 320, 40.0)] {
            let mut case = Case::new(rows, n, k);
            case.w.iter_mut().for_each(|weight| *weight *= scale);
            let products = case.added_here(&vec![0.0; rows * n]);
            let silu = |x: f32| x / (1.0 + exp2((-x * std::f32::consts::LOG2_E).min(126.0)));
            let want: Vec<u16> =
                products.chunks(2).map(|pair| to_bf16(silu(pair[0]) * pair[1])).collect();
            let is_finite = |value: &u16| value & 0x7f80 != 0x7f80;
            let got = case.gated(&device, grid);
            let differs = |(got, want): (&u16, &u16)| got != want && is_finite(want);
            assert_eq!(got.len(), want.len());
            assert_eq!(got.iter().zip(&want).position(differs), None, "{rows} x {n} x {k}");
            assert!(scale == 1.0 || products.iter().any(|&gate| gate < -100.0));
            // And in f64, of rows of ordinary numbers.
            let row = &products[..n];
            let exact = |pair: &[f32]| {
                let (gate, up) = (f64::from(pair[0]), f64::from(pair[1]));
                gate / (1.0 + (-gate).exp()) * up
            };
            let exact: Vec<f64> = row.chunks(2).map(exact).collect();
            let got = got[..n / 2].iter().map(|&value| crate::support::to_f64(value));
            let error = relative_error(got, &exact);
            assert!(error < 3e-3, "{error}");
        }
    }
}

/// Results whose bits are kept, with their names.
pub(crate) fn golden(device: &Device) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for (rows, n, k, parts) in SHAPES {
        let case = Case::new(rows, n, k);
        let name = |what: &str| format!("{what} {rows} x {n} x {k} in {parts}");
        let RoundedRows { integers, factors } = case.rounded(device, 2);
        all.push((name("quantize_rows"), device.get_bytes(&integers)));
        all.push((name("quantize_rows factors"), device.get_bytes(&factors)));
        for parts in [1, parts] {
            let out = device.empty(parts * rows * n * 4);
            case.multiply(device, Kernel::Int8Sums, 2, [parts, rows], &out);
            let kind = if parts == 1 { "int8_sums" } else { "int8_sums by parts" };
            all.push((name(kind), device.get_bytes(&out)));
        }
        all.push((name("int8_swiglu"), bytes_of(&case.gated(device, 2))));
        let old = Random(3).floats(rows * n, 1.0);
        all.push((name("norm_rows of int8_sums"), bytes_of(&case.added(device, 2, parts, &old))));
    }
    all
}
