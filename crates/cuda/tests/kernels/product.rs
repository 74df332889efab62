//! Products: every ending against f64, the split of a sum, rows alone and among others, and the bits
//! of Hopper's.

use palmette_cuda::arguments::{HopperProduct, Product, RowSums};
use palmette_cuda::{Address, Architecture, Kernel, Region, Tiles};

use crate::support::{
    Device, NULL, Random, Set, bits, bytes_of, device, devices, relative_error, to_bf16, to_f64,
};

/// Operands of a product, and the product in f64.
pub(crate) struct Case {
    pub(crate) rows: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) runs: usize,
    pub(crate) x: Vec<u16>,
    pub(crate) w: Vec<u16>,
    want: Vec<f64>,
}

impl Case {
    /// Operands without the product in f64.
    pub(crate) fn unasked(rows: usize, n: usize, k: usize, runs: usize) -> Self {
        let mut random = Random((rows * 31 + n * 7 + k) as u64 + 1000);
        let (x, w) = (random.bf16(rows * k, 1.0), random.bf16(n * k, 1.0));
        Self { rows, n, k, runs, x, w, want: Vec::new() }
    }

    fn new(rows: usize, n: usize, k: usize, runs: usize) -> Self {
        let Self { x, w, .. } = Self::unasked(rows, n, k, runs);
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

    /// Runs a product, portable or Hopper's, with arguments that `change` has changed.
    pub(crate) fn run(
        &self,
        device: &Device,
        (portable, hopper): (Kernel, Kernel),
        set: Set,
        grid: u32,
        out: &Region,
        change: impl FnOnce(&mut Product),
    ) {
        let (mut product, _kept) = self.arguments(device, out);
        change(&mut product);
        let grid = [grid, 1, 1];
        match set {
            Set::Portable => device.run(portable, grid, &product),
            Set::Hopper => {
                let tiles = |address: Address, rows: usize| {
                    let (rows, columns) = (rows as u64, self.k as u64);
                    let tiles = Tiles { address, rows, columns, box_rows: 128 };
                    device.driver.tensor_map(&tiles).unwrap()
                };
                let x_tiles = tiles(product.x, self.rows);
                let w_tiles = tiles(product.w, self.n);
                device.run(hopper, grid, &HopperProduct { x_tiles, w_tiles, product });
            }
        }
    }

    fn sums(&self, device: &Device, grid: u32) -> Vec<f32> {
        let out = device.empty(self.rows * self.n * 4);
        let (arguments, _kept) = self.arguments(device, &out);
        device.run(Kernel::ProductSums, [grid, 1, 1], &arguments);
        device.get(&out)
    }
}

pub(crate) const SUMS: (Kernel, Kernel) = (Kernel::ProductSums, Kernel::HopperProductSums);
const ADD: (Kernel, Kernel) = (Kernel::ProductAdd, Kernel::HopperProductAdd);
const BF16: (Kernel, Kernel) = (Kernel::ProductBf16, Kernel::HopperProductBf16);
const SWIGLU: (Kernel, Kernel) = (Kernel::ProductSwiglu, Kernel::HopperProductSwiglu);
const LOGITS: (Kernel, Kernel) = (Kernel::ProductLogits, Kernel::HopperProductLogits);

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

/// Maxima and sums of 5 rows of so many tiles.
fn many_statistics() -> (usize, Vec<f32>) {
    let (rows, tiles) = (5, 700);
    let mut random = Random(31);
    let statistics =
        (0..rows * tiles).flat_map(|_| [random.uniform() * 20.0, 1.0 + random.uniform()]);
    (tiles, statistics.collect())
}

fn normalisers(device: &Device, grid: u32, tiles: usize, statistics: &[f32]) -> Vec<f32> {
    let rows = statistics.len() / tiles / 2;
    let kept = (device.put(&[rows as i32]), device.put(statistics));
    let normalisers = device.empty(rows * 4);
    let arguments = RowSums {
        rows: kept.0.address(),
        statistics: kept.1.address(),
        normalisers: normalisers.address(),
        tiles: tiles as i32,
    };
    device.run(Kernel::RowSums, [grid, 1, 1], &arguments);
    device.get(&normalisers)
}

#[test]
fn normalisers_are_over_all_tiles_of_a_row() {
    let (tiles, statistics) = many_statistics();
    let mut first: Option<Vec<u32>> = None;
    for (grid, device) in [1, 2, 5].into_iter().zip(devices(Architecture::Hopper)) {
        let got = normalisers(&device, grid, tiles, &statistics);
        for (got, row) in got.iter().zip(statistics.chunks(tiles * 2)) {
            let power = |tile: &[f32]| f64::from(tile[1]) * f64::from(tile[0]).exp();
            let want = row.chunks(2).map(power).sum::<f64>().ln();
            assert!((f64::from(*got) - want).abs() < 1e-5, "{got}, not {want}");
        }
        let got = bits(&got);
        assert!(*first.get_or_insert_with(|| got.clone()) == got, "seeds differ");
    }
}

/// Bits of every ending over a shape: sums whole and by parts, added, rounded, gated, logits with
/// their statistics.
fn endings(case: &Case, device: &Device, set: Set, grid: u32) -> Vec<(String, Vec<u8>)> {
    let (rows, n) = (case.rows, case.n);
    let run = |kernels, out: Region, change: &dyn Fn(&mut Product)| {
        case.run(device, kernels, set, grid, &out, change);
        device.get_bytes(&out)
    };
    let parts = device.empty(case.runs * rows * n * 4);
    let old = device.put(&Random(9).floats(rows * n, 10.0));
    let mut all = vec![
        ("sums".to_owned(), run(SUMS, device.empty(rows * n * 4), &|_| {})),
        ("sums by parts".to_owned(), run(SUMS, parts, &|product| product.split = 1)),
        ("add".to_owned(), run(ADD, old, &|_| {})),
        ("bf16".to_owned(), run(BF16, device.empty(rows * n * 2), &|_| {})),
        ("swiglu".to_owned(), run(SWIGLU, device.empty(rows * n), &|_| {})),
    ];
    // Windows that begin within tiles, of the tiles from the second on where there is one.
    let first_tile = usize::from(n > 128);
    let (tiles, columns) = (n.div_ceil(128) - first_tile, (n - first_tile * 128).min(60));
    let first =
        |row: usize| (first_tile * 128 + row % 3 * ((n - first_tile * 128 - columns) / 2)) as i32;
    let windows = device.put(&(0..rows).map(first).collect::<Vec<_>>());
    for whole in [0, 1] {
        let statistics = device.empty(rows * tiles * 8);
        let logits = run(LOGITS, device.empty(rows * columns * 4), &|product| {
            (product.windows, product.statistics) = (windows.address(), statistics.address());
            (product.first_tile, product.tiles) = (first_tile as i32, tiles as i32);
            (product.columns, product.whole) = (columns as i32, whole);
        });
        all.push((format!("logits {whole}"), logits));
        all.push((format!("statistics {whole}"), device.get_bytes(&statistics)));
    }
    all
}

#[test]
fn hoppers_products_have_the_bits_of_the_portable_ones() {
    let mut random = Random(2026);
    let mut any = || {
        let runs = [1, 2, 3][random.below(3)];
        let k = runs * 64 * (1 + random.below(4));
        (1 + random.below(200), 2 + 2 * random.below(150), k, runs)
    };
    let shapes = [(64, 256, 576, 1), (65, 130, 1024, 4), any(), any(), any(), any()];
    for (rows, n, k, runs) in SHAPES.into_iter().chain(shapes) {
        let case = Case::unasked(rows, n, k, runs);
        let mut sums: Option<Vec<u8>> = None;
        for (grid, device) in [1, 3, 2].into_iter().zip(devices(Architecture::Hopper)) {
            // All endings once, and the longest way of a stage under each seed.
            let sums = sums.get_or_insert_with(|| {
                let portable = endings(&case, &device, Set::Portable, grid);
                let hopper = endings(&case, &device, Set::Hopper, grid);
                for ((name, portable), (_, hopper)) in portable.iter().zip(&hopper) {
                    assert!(portable == hopper, "{name} of {rows} x {n} x {k} in {runs}");
                }
                portable[0].1.clone()
            });
            let out = device.empty(rows * n * 4);
            case.run(&device, SUMS, Set::Hopper, grid, &out, |_| {});
            assert!(device.get_bytes(&out) == *sums, "{rows} x {n} x {k} in {runs}");
        }
    }
}

#[test]
fn a_row_of_hoppers_product_is_the_same_alone_and_among_others() {
    let Some(device) = device(Architecture::Hopper, 1) else { return };
    let case = Case::unasked(140, 128, 256, 2);
    let sums = |case: &Case, grid| {
        let out = device.empty(case.rows * case.n * 4);
        case.run(&device, SUMS, Set::Hopper, grid, &out, |_| {});
        device.get_bytes(&out)
    };
    let all = sums(&case, 3);
    for row in [0, 63, 64, 139] {
        let x = case.x[row * case.k..(row + 1) * case.k].to_vec();
        let alone = Case { rows: 1, x, w: case.w.clone(), want: Vec::new(), ..case };
        assert!(sums(&alone, 1) == all[row * case.n * 4..(row + 1) * case.n * 4], "row {row}");
    }
}

/// Results whose bits are kept, with their names.
pub(crate) fn golden(device: &Device) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for set in device.sets() {
        for (rows, n, k, runs) in SHAPES {
            let case = Case::unasked(rows, n, k, runs);
            for (ending, bytes) in endings(&case, device, set, 2) {
                let name = format!("product_{ending} {rows} x {n} x {k} in {runs}");
                all.push((set.name_of(&name), bytes));
            }
        }
    }
    let (tiles, statistics) = many_statistics();
    let normalisers = normalisers(device, 2, tiles, &statistics);
    all.push((format!("row_sums of {tiles} tiles"), bytes_of(&normalisers)));
    all
}
