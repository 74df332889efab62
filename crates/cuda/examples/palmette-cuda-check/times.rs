//! Times of kernels: medians of replays, operands of random values in turn, so that no cache holds
//! them from one launch to the next.

use std::time::Instant;

use palmette_cuda::arguments::{Arguments, HopperProduct, Norm, Product};
use palmette_cuda::{Address, DeviceError, Kernel, Region, Stream, Tiles, launch};

use crate::Check;
use crate::support::{NULL, Random, Set};

/// Bytes that no cache of a device holds.
const PAST_CACHES: usize = 160 << 20;

impl Check {
    /// Blocks of a kernel that takes any number.
    pub(crate) fn blocks(&self) -> u32 {
        self.device.driver.describe().multiprocessors
    }

    /// Seconds of one of the launches that `launches` makes: their median over replays.
    fn seconds(
        &self,
        count: usize,
        launches: &mut dyn FnMut() -> Result<(), DeviceError>,
    ) -> Result<f64, String> {
        let (driver, on) = (&*self.device.driver, Stream::Compute);
        let mut measured = || -> Result<f64, DeviceError> {
            let graph = driver.capture(on, launches)?;
            let mut times = Vec::new();
            // The first ones warm up.
            for replay in 0..if self.smallest { 2 } else { 35 } {
                let begin = Instant::now();
                driver.replay(on, &graph)?;
                driver.finish(&driver.record(on)?)?;
                if replay >= if self.smallest { 1 } else { 5 } {
                    times.push(begin.elapsed().as_secs_f64() / count as f64);
                }
            }
            times.sort_by(f64::total_cmp);
            Ok(times[times.len() / 2])
        };
        measured().map_err(|error| error.to_string())
    }
}

/// An array of random bf16, and so many of it that no cache holds all.
struct Rotated {
    region: Region,
    bytes: usize,
    count: usize,
}

impl Rotated {
    fn new(check: &Check, values: usize) -> Self {
        let bytes = values * 2;
        let count = if check.smallest { 1 } else { PAST_CACHES.div_ceil(bytes).min(64) };
        // A part that is made once, and repeated at an odd stride.
        let part = Random(values as u64 | 1).bf16((1 << 16) + 17, 0.25);
        let all: Vec<u16> = part.iter().copied().cycle().take(values * count).collect();
        Self { region: check.device.put(&all), bytes, count }
    }

    fn address(&self, at: usize) -> Address {
        self.region.address_at(at % self.count * self.bytes)
    }
}

/// A product as a layer has it.
struct Shape {
    name: &'static str,
    n: usize,
    k: usize,
    runs: usize,
    is_gated: bool,
}

/// Layers of Qwen3-1.7B.
const SHAPES: [Shape; 4] = [
    Shape { name: "qkv", n: 4096, k: 2048, runs: 2, is_gated: false },
    Shape { name: "o", n: 2048, k: 2048, runs: 4, is_gated: false },
    Shape { name: "gate+up", n: 12288, k: 2048, runs: 1, is_gated: true },
    Shape { name: "down", n: 2048, k: 6144, runs: 4, is_gated: false },
];
const SMALLEST: [Shape; 1] = [Shape { name: "smallest", n: 128, k: 256, runs: 2, is_gated: false }];

fn product(check: &Check, shape: &Shape, rows: usize, set: Set) -> Result<(), String> {
    let Shape { name, n, k, runs, is_gated } = *shape;
    let device = &check.device;
    let (x, w) = (Rotated::new(check, rows * k), Rotated::new(check, n * k));
    let there = device.put(&[rows as i32]);
    let is_split = rows <= 512 && !is_gated;
    let parts = if is_split { runs } else { 1 };
    let out = device.empty(parts * rows * n * 4);
    let count = x.count.max(w.count);
    let kernel = match (set, is_gated) {
        (Set::Portable, false) => Kernel::ProductSums,
        (Set::Portable, true) => Kernel::ProductSwiglu,
        (Set::Hopper, false) => Kernel::HopperProductSums,
        (Set::Hopper, true) => Kernel::HopperProductSwiglu,
    };
    let mut launches = || {
        for at in 0..count {
            let product = Product {
                rows: there.address(),
                x: x.address(at),
                w: w.address(at),
                out: out.address(),
                windows: NULL,
                statistics: NULL,
                n: n as i32,
                k: k as i32,
                runs: runs as i32,
                split: i32::from(is_split),
                part_rows: rows as i32,
                first_tile: 0,
                tiles: 0,
                columns: 0,
                whole: 0,
            };
            let tiles = |address, rows: usize| {
                let (rows, columns) = (rows as u64, k as u64);
                device.driver.tensor_map(&Tiles { address, rows, columns, box_rows: 128 })
            };
            match set {
                Set::Portable => on(check, kernel, 1, &product)?,
                Set::Hopper => {
                    let x_tiles = tiles(product.x, rows)?;
                    let w_tiles = tiles(product.w, n)?;
                    on(check, kernel, 1, &HopperProduct { x_tiles, w_tiles, product })?;
                }
            }
        }
        Ok(())
    };
    let seconds = check.seconds(count, &mut launches)?;
    let operations = 2.0 * (rows * n * k) as f64;
    let bytes = 2.0 * ((rows + n) * k) as f64;
    println!(
        "product   {:8} {rows:5} rows {name:8} {:8.1} us {:7.1} TFLOP/s {:7.1} GB/s",
        format!("{set:?}"),
        seconds * 1e6,
        operations / seconds / 1e12,
        bytes / seconds / 1e9
    );
    Ok(())
}

/// Launches a kernel over so many blocks a multiprocessor.
fn on<A: Arguments>(
    check: &Check,
    kernel: Kernel,
    blocks: u32,
    arguments: &A,
) -> Result<(), DeviceError> {
    let grid = [check.blocks() * blocks, 1, 1];
    launch(&*check.device.driver, Stream::Compute, kernel, grid, arguments)
}

/// The norm of rows: a reading and a writing of each, bound by memory.
fn norm(check: &Check, rows: usize, width: usize) -> Result<(), String> {
    let device = &check.device;
    let there = device.put(&[rows as i32]);
    let weight = device.put(&vec![1.0_f32; width]);
    let (x, normed) = (device.empty(rows * width * 4), device.empty(rows * width * 2));
    let sums = device.put(&Random(5).floats(rows * width, 0.01));
    let arguments = Norm {
        rows: there.address(),
        sums: sums.address(),
        row_factors: NULL,
        column_factors: NULL,
        weight: weight.address(),
        x: x.address(),
        normed: normed.address(),
        integers: NULL,
        factors: NULL,
        width: width as i32,
        parts: 1,
        part_rows: rows as i32,
        epsilon: 1e-6,
    };
    let count = if check.smallest { 1 } else { 10 };
    let mut launches = || (0..count).try_for_each(|_| on(check, Kernel::NormRows, 4, &arguments));
    let seconds = check.seconds(count, &mut launches)?;
    // Read: rows, sums, rows again; written: rows, their norms.
    let bytes = (rows * width * (4 + 4 + 4 + 4 + 2)) as f64;
    println!(
        "norm      {rows:5} rows of {width} {:8.1} us {:7.1} GB/s",
        seconds * 1e6,
        bytes / seconds / 1e9
    );
    Ok(())
}

pub(crate) fn measure(check: &Check) -> Result<(), String> {
    let (shapes, rows): (&[Shape], &[usize]) =
        if check.smallest { (&SMALLEST, &[5]) } else { (&SHAPES, &[256, 1024, 8000]) };
    for &rows in rows {
        for shape in shapes {
            for set in check.device.sets() {
                product(check, shape, rows, set)?;
            }
        }
    }
    if check.smallest { norm(check, 5, 128) } else { norm(check, 8000, 2048) }
}
