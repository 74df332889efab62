//! Products: every ending against f64, the split of a sum, rows alone and among others.

use palmette_cuda::arguments::{Product, RowSums};
use palmette_cuda::{Architecture, Kernel, Region};

use crate::support::{
    Device, NULL, Random, bits, bytes_of, device, devices, relative_error, to_bf16, to_f64,
};

/// Operands of a product, and the product in f64.
struct Case {
    rows: usize,
    n: usize,
    k: usize,
    runs: usize,
    x: Vec<u16>,
    w: Vec<u16>,
    want: Vec<f64>,
}

impl Case {
    fn new(rows: usize, n: usize, k: usize, runs: usize) -> Self {
        let mut random = Random((rows * 31 + n * 7 + k) as u64 + 1000);
        let (x, w) = (random.bf16(rows * k, 1.0), random.bf16(n * k, 1.0));
        let dot = |at: usize| -> f64 {
            let (row, column) = (at / n, at % n);
            (0..k).map(|i| to_f64(x[row * k + i]) * to_f64(w[column * k + i])).sum()
        };
        let want = (0..rows * n).map(dot).collect();
        Self { rows, n, k, runs, x, w, want }
    }

    /// Arguments over the device's copies, which the regions keep.
    fn arguments(&self, device: &Device, out: &Region) -> (Product, [Region; 3]) {
        let kept = [device.put(&[self.rows as i32]), device.put(&self.x), device.put(&self.w)];
        let arguments = Product {
            rows: kept[0].address(),
            x: kept[1].address(),
            w: kept[2].address(),
            out: out.address(),
            windows: NULL,
            statistics: NULL,
            n: self.n as i32,
            k: self.k as i32,
            runs: self.runs as i32,
            split: 0,
            part_rows: self.rows as i32,
            first_tile: 0,
            tiles: 0,
            columns: 0,
            whole: 0,
        };
        (arguments, kept)
    }

    fn sums(&self, device: &Device, grid: u32) -> Vec<f32> {
        let out = device.empty(self.rows * self.n * 4);
        let (arguments, _kept) = self.arguments(device, &out);
        device.run(Kernel::ProductSums, [grid, 1, 1], &arguments);
        device.get(&out)
    }
}

const SHAPES: [(usize, usize, usize, usize); 4] =
    [(1, 128, 256, 1), (37, 200, 512, 2), (130, 72, 256, 4), (5, 258, 320, 5)];

#[test]
fn sums_are_those_of_f64_whole_and_in_parts_under_every_seed() {
    for architecture in [Architecture::Hopper, Architecture::Ampere] {
        for (rows, n, k, runs) in SHAPES {
            let case = Case::new(rows, n, k, runs);
            let mut first: Option<Vec<f32>> = None;
            for device in devices(architecture) {
                let got = case.sums(&device, 2);
                let error = relative_error(got.iter().map(|&got| f64::from(got)), &case.want);
                assert!(error < 2e-6, "{rows} x {n} x {k}: {error}");
                assert_eq!(bits(&got), bits(first.get_or_insert_with(|| got.clone())));

                // A block a run, added in order, as the reader of the parts does.
                let out = device.empty(runs * rows * n * 4);
                let (mut arguments, _kept) = case.arguments(&device, &out);
                arguments.split = 1;
                device.run(Kernel::ProductSums, [3, 1, 1], &arguments);
                let parts: Vec<f32> = device.get(&out);
                let add = |at: usize| {
                    let parts = parts.iter().skip(at).step_by(rows * n);
                    parts.copied().reduce(|total, part| total + part).unwrap()
                };
                let added: Vec<f32> = (0..rows * n).map(add).collect();
                assert_eq!(bits(&added), bits(&got), "parts");
                assert_eq!(device.bank_conflicts(), 0);
            }
        }
    }
}

#[test]
fn a_row_is_the_same_alone_and_among_others() {
    let Some(device) = device(Architecture::Hopper, 1) else { return };
    let case = Case::new(140, 128, 256, 2);
    let all = case.sums(&device, 3);
    for row in [0, 63, 77, 139] {
        let x = case.x[row * case.k..(row + 1) * case.k].to_vec();
        let alone = Case { rows: 1, x, w: case.w.clone(), want: Vec::new(), ..case };
        let got = alone.sums(&device, 1);
        assert_eq!(bits(&got), bits(&all[row * case.n..(row + 1) * case.n]), "row {row}");
    }
}

#[test]
fn endings_add_round_and_gate_the_sums() {
    for device in devices(Architecture::Hopper) {
        let case = Case::new(37, 136, 256, 2);
        let sums = case.sums(&device, 2);

        let old = Random(9).floats(sums.len(), 10.0);
        let out = device.put(&old);
        let (arguments, _kept) = case.arguments(&device, &out);
        device.run(Kernel::ProductAdd, [2, 1, 1], &arguments);
        let want: Vec<f32> = old.iter().zip(&sums).map(|(old, sum)| old + sum).collect();
        assert_eq!(bits(&device.get(&out)), bits(&want));

        let out = device.empty(sums.len() * 2);
        let (arguments, _kept) = case.arguments(&device, &out);
        device.run(Kernel::ProductBf16, [2, 1, 1], &arguments);
        let want: Vec<u16> = sums.iter().map(|&sum| to_bf16(sum)).collect();
        assert_eq!(device.get::<u16>(&out), want);

        let out = device.empty(sums.len());
        let (arguments, _kept) = case.arguments(&device, &out);
        device.run(Kernel::ProductSwiglu, [2, 1, 1], &arguments);
        let gate = |pair: &[f32]| {
            let (gate, up) = (f64::from(pair[0]), f64::from(pair[1]));
            gate / (1.0 + (-gate).exp()) * up
        };
        let want: Vec<f64> = sums.chunks(2).map(gate).collect();
        let error = relative_error(device.get::<u16>(&out).into_iter().map(to_f64), &want);
        assert!(error < 3e-3, "{error}");
        // Gates far below zero, where e^-x would pass the largest number.
        let far: Vec<u16> = case.x.iter().map(|&x| to_bf16(to_f64(x) as f32 * 64.0)).collect();
        let far = Case { x: far, ..case };
        let sums = far.sums(&device, 2);
        assert!(sums.iter().any(|&sum| sum < -200.0));
        let want: Vec<f64> = sums.chunks(2).map(gate).collect();
        let out = device.empty(sums.len());
        let (arguments, _kept) = far.arguments(&device, &out);
        device.run(Kernel::ProductSwiglu, [2, 1, 1], &arguments);
        for (got, want) in device.get::<u16>(&out).into_iter().map(to_f64).zip(want) {
            assert!((got - want).abs() <= 4e-3 * want.abs() + 1e-30, "{got}, not {want}");
        }
    }
}

#[test]
fn logits_are_those_of_each_rows_window_and_normalise_to_one() {
    // Rows of three levels: two windows that begin within tiles, and one at the end.
    let (rows, n, k, columns) = (21, 300, 128, 96);
    let case = Case::new(rows, n, k, 1);
    let windows: Vec<i32> = (0..rows).map(|row| [64, 130, 204][row % 3]).collect();
    for whole in [true, false] {
        let mut first: Option<(Vec<f32>, Vec<f32>)> = None;
        for device in devices(Architecture::Hopper) {
            let sums = case.sums(&device, 1);
            let tiles = n.div_ceil(128);
            let (out, statistics) =
                (device.empty(rows * columns * 4), device.empty(rows * tiles * 8));
            let windows_there = device.put(&windows);
            let (mut arguments, kept) = case.arguments(&device, &out);
            arguments.windows = windows_there.address();
            arguments.statistics = statistics.address();
            (arguments.tiles, arguments.columns) = (tiles as i32, columns as i32);
            arguments.whole = i32::from(whole);
            device.run(Kernel::ProductLogits, [2, 1, 1], &arguments);
            let logits: Vec<f32> = device.get(&out);
            let normalisers = device.empty(rows * 4);
            device.run(
                Kernel::RowSums,
                [4, 1, 1],
                &RowSums {
                    rows: kept[0].address(),
                    statistics: statistics.address(),
                    normalisers: normalisers.address(),
                    tiles: tiles as i32,
                },
            );
            let normalisers: Vec<f32> = device.get(&normalisers);
            for row in 0..rows {
                let window = windows[row] as usize;
                let want = &sums[row * n + window..][..columns];
                assert_eq!(bits(&logits[row * columns..][..columns]), bits(want), "row {row}");
                let counted = if whole { &sums[row * n..][..n] } else { want };
                let sum: f64 = counted.iter().map(|&logit| f64::from(logit).exp()).sum();
                let difference = f64::from(normalisers[row]) - sum.ln();
                assert!(difference.abs() < 1e-5, "row {row}: {difference}");
            }
            let got = (logits, normalisers);
            let first = first.get_or_insert_with(|| got.clone());
            assert_eq!((bits(&got.0), bits(&got.1)), (bits(&first.0), bits(&first.1)));
        }
    }
}

#[test]
fn normalisers_are_over_all_tiles_of_a_row() {
    let (rows, tiles) = (5, 700);
    let mut random = Random(31);
    let mut first: Option<Vec<u32>> = None;
    let statistics: Vec<f32> =
        (0..rows * tiles).flat_map(|_| [random.uniform() * 20.0, 1.0 + random.uniform()]).collect();
    for (grid, device) in [1, 2, 5].into_iter().zip(devices(Architecture::Hopper)) {
        let kept = (device.put(&[rows as i32]), device.put(&statistics));
        let normalisers = device.empty(rows * 4);
        let arguments = RowSums {
            rows: kept.0.address(),
            statistics: kept.1.address(),
            normalisers: normalisers.address(),
            tiles: tiles as i32,
        };
        device.run(Kernel::RowSums, [grid, 1, 1], &arguments);
        let got: Vec<f32> = device.get(&normalisers);
        for (got, row) in got.iter().zip(statistics.chunks(tiles * 2)) {
            let power = |tile: &[f32]| f64::from(tile[1]) * f64::from(tile[0]).exp();
            let want = row.chunks(2).map(power).sum::<f64>().ln();
            assert!((f64::from(*got) - want).abs() < 1e-5, "{got}, not {want}");
        }
        let got = bits(&got);
        assert!(*first.get_or_insert_with(|| got.clone()) == got, "seeds differ");
    }
}

/// Results whose bits are kept, with their names.
pub(crate) fn golden(device: &Device) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for (rows, n, k, runs) in SHAPES {
        let case = Case::new(rows, n, k, runs);
        let name = format!("{rows} x {n} x {k} in {runs}");
        all.push((format!("product_sums {name}"), bytes_of(&case.sums(device, 2))));
        let out = device.empty(rows * n);
        let (arguments, _kept) = case.arguments(device, &out);
        device.run(Kernel::ProductSwiglu, [2, 1, 1], &arguments);
        all.push((format!("product_swiglu {name}"), device.get_bytes(&out)));
    }
    all
}
