//! Kernels of rows: embedding, norms, heads and the rows whose logits are wanted.

use palmette_cuda::arguments::{EmbedNorm, HeadRows, Heads, Norm};
use palmette_cuda::{Address, Architecture, Kernel, Region};
use palmette_model::kernels::round_to_int8;

use crate::support::{Device, NULL, Random, bits, bytes_of, devices, relative_error, to_f64};

const EPSILON: f32 = 1e-6;

/// `x / sqrt(mean(x²) + ε) · weight`
fn normed(x: &[f64], weight: &[f32]) -> Vec<f64> {
    let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
    let scale = 1.0 / (mean + f64::from(EPSILON)).sqrt();
    x.iter().zip(weight).map(|(x, &weight)| x * scale * f64::from(weight)).collect()
}

/// A row's norm as the kernels compute it, to the bit: a lane sums what it reads, lanes meet in
/// pairs.
fn exactly_normed(x: &[f32], weight: &[f32]) -> Vec<f32> {
    let mut lanes = [0.0_f32; 32];
    for (i, values) in x.chunks(4).enumerate() {
        values.iter().for_each(|x| lanes[i % 32] += x * x);
    }
    for distance in [16, 8, 4, 2, 1] {
        lanes = std::array::from_fn(|lane| lanes[lane] + lanes[lane ^ distance]);
    }
    let scale = 1.0 / (lanes[0] / x.len() as f32 + EPSILON).sqrt();
    x.iter().zip(weight).map(|(x, weight)| x * scale * weight).collect()
}

/// Places of a norm, of which a kernel writes those of one form.
struct NormPlaces {
    is_int8: bool,
    normed: Region,
    integers: Region,
    factors: Region,
}

/// Rows of a norm: bfloat16, or integers and what one of each row stands for.
#[derive(Clone, Debug, PartialEq)]
enum NormOutput {
    Bf16(Vec<u16>),
    Int8(Vec<i8>, Vec<u32>),
}

impl NormPlaces {
    fn new(device: &Device, [rows, width]: [usize; 2], is_int8: bool) -> Self {
        let (normed, integers) = (device.empty(rows * width * 2), device.empty(rows * width));
        Self { is_int8, normed, integers, factors: device.empty(rows * 4) }
    }

    /// Addresses as arguments have them.
    fn addresses(&self) -> [Address; 3] {
        match self.is_int8 {
            true => [NULL, self.integers.address(), self.factors.address()],
            false => [self.normed.address(), NULL, NULL],
        }
    }

    fn get(&self, device: &Device) -> NormOutput {
        if !self.is_int8 {
            return NormOutput::Bf16(device.get(&self.normed));
        }
        let integers = device.get_bytes(&self.integers).into_iter().map(|byte| byte as i8);
        NormOutput::Int8(integers.collect(), device.get(&self.factors))
    }
}

impl NormOutput {
    /// Rows of f32, rounded by the processor.
    fn rounded(rows: &[f32], width: usize) -> Self {
        let (mut all, mut factors, mut integers) = (Vec::new(), Vec::new(), vec![0; width]);
        for row in rows.chunks(width) {
            factors.push(round_to_int8(row, &mut integers).to_bits());
            all.extend_from_slice(&integers);
        }
        Self::Int8(all, factors)
    }

    fn bf16(self) -> Vec<u16> {
        match self {
            Self::Bf16(values) => values,
            Self::Int8(..) => panic!("a norm in 8 bits"),
        }
    }

    /// Bytes of integers and factors, or of values.
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Bf16(values) => bytes_of(values),
            Self::Int8(integers, factors) => {
                let integers = integers.iter().map(|&integer| integer as u8);
                integers.chain(bytes_of(factors)).collect()
            }
        }
    }
}

fn to_f64s(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

/// Tokens and what they become.
struct Embedding {
    width: usize,
    table: Vec<u16>,
    weight: Vec<f32>,
    tokens: Vec<i32>,
}

const FACTOR: f32 = 1.5;

impl Embedding {
    fn new(width: usize) -> Self {
        let (vocabulary, rows) = (9, 13);
        let mut random = Random(width as u64);
        let table = random.bf16(vocabulary * width, 2.0);
        let weight = random.floats(width, 1.0);
        let tokens = (0..rows).map(|_| random.below(vocabulary) as i32).collect();
        Self { width, table, weight, tokens }
    }

    fn run(&self, device: &Device, grid: u32, is_int8: bool) -> (Vec<f32>, NormOutput) {
        let (width, rows) = (self.width, self.tokens.len());
        let lists = [device.put(&[rows as i32]), device.put(&self.tokens)];
        let arrays = [device.put(&self.table), device.put(&self.weight)];
        let x = device.empty(rows * width * 4);
        let out = NormPlaces::new(device, [rows, width], is_int8);
        let [normed, integers, factors] = out.addresses();
        let arguments = EmbedNorm {
            rows: lists[0].address(),
            tokens: lists[1].address(),
            table: arrays[0].address(),
            weight: arrays[1].address(),
            x: x.address(),
            normed,
            integers,
            factors,
            width: width as i32,
            factor: FACTOR,
            epsilon: EPSILON,
        };
        device.run(Kernel::EmbedNorm, [grid, 1, 1], &arguments);
        (device.get(&x), out.get(device))
    }
}

#[test]
fn tokens_become_rows_and_their_norms() {
    for width in [260, 64] {
        let case = Embedding::new(width);
        for (grid, device) in (1..).zip(devices(Architecture::Hopper)) {
            let (x, out) = case.run(&device, grid, false);
            let (out, mut exact) = (out.bf16(), Vec::new());
            for (row, &token) in case.tokens.iter().enumerate() {
                let from = &case.table[token as usize * width..][..width];
                let want: Vec<f32> = from.iter().map(|&v| to_f64(v) as f32 * FACTOR).collect();
                let got = &x[row * width..][..width];
                assert_eq!(bits(got), bits(&want));
                let got = out[row * width..][..width].iter().map(|&value| to_f64(value));
                let error = relative_error(got, &normed(&to_f64s(&want), &case.weight));
                assert!(error < 3e-3, "{error}");
                exact.extend(exactly_normed(&want, &case.weight));
            }
            let rounded = case.run(&device, grid, true);
            assert_eq!(bits(&rounded.0), bits(&x));
            assert_eq!(rounded.1, NormOutput::rounded(&exact, width), "in 8 bits");
        }
    }
}

/// Rows and sums of products that are added to them.
struct Sums {
    width: usize,
    part_rows: usize,
    parts: i32,
    weight: Vec<f32>,
}

impl Sums {
    /// The residual stream and its norm.
    fn run(
        &self,
        device: &Device,
        grid: u32,
        [old, sums]: [&[f32]; 2],
        is_int8: bool,
    ) -> (Vec<f32>, NormOutput) {
        let rows = old.len() / self.width;
        let kept = (device.put(&[rows as i32]), device.put(sums), device.put(&self.weight));
        let (x, out) = (device.put(old), NormPlaces::new(device, [rows, self.width], is_int8));
        let [normed, integers, factors] = out.addresses();
        let arguments = Norm {
            rows: kept.0.address(),
            sums: kept.1.address(),
            row_factors: NULL,
            column_factors: NULL,
            weight: kept.2.address(),
            x: x.address(),
            normed,
            integers,
            factors,
            width: self.width as i32,
            parts: self.parts,
            part_rows: self.part_rows as i32,
            epsilon: EPSILON,
        };
        device.run(Kernel::NormRows, [grid, 1, 1], &arguments);
        (device.get(&x), out.get(device))
    }
}

#[test]
fn norms_add_the_whole_total_and_are_the_same_alone() {
    let (width, rows, part_rows) = (196, 11, 12);
    let mut random = Random(4);
    let weight = random.floats(width, 1.0);
    for parts in [0, 1, 3] {
        let case = Sums { width, part_rows, parts, weight: weight.clone() };
        let mut old = random.floats(rows * width, 2.0);
        let mut sums = random.floats(3 * part_rows * width, 1.0);
        // A row of zeros, which has no factor.
        old[2 * width..3 * width].fill(0.0);
        for part in sums.chunks_mut(part_rows * width) {
            part[2 * width..3 * width].fill(0.0);
        }
        let mut first: Option<(Vec<f32>, Vec<u16>)> = None;
        for (grid, device) in (1..).zip(devices(Architecture::Hopper)) {
            let (x, out) = case.run(&device, grid, [&old, &sums], false);
            let out = out.bf16();
            let want = |at: usize| {
                let part = |part: usize| sums[part * part_rows * width + at];
                let total = (0..parts as usize).map(part).reduce(|total, part| total + part);
                total.map_or(old[at], |total| old[at] + total)
            };
            let want: Vec<f32> = (0..rows * width).map(want).collect();
            assert_eq!(bits(&x), bits(&want));
            let exact = want.chunks(width).flat_map(|row| exactly_normed(row, &weight));
            let exact = NormOutput::rounded(&exact.collect::<Vec<_>>(), width);
            let rounded = case.run(&device, grid, [&old, &sums], true);
            assert_eq!(bits(&rounded.0), bits(&x));
            assert_eq!(rounded.1, exact, "in 8 bits");
            let want: Vec<f64> =
                want.chunks(width).flat_map(|row| normed(&to_f64s(row), &weight)).collect();
            let error = relative_error(out.iter().map(|&value| to_f64(value)), &want);
            assert!(error < 3e-3, "{error}");

            let of_row = [&old[7 * width..8 * width], &sums[7 * width..]];
            let (x1, out1) = case.run(&device, grid, of_row, false);
            assert_eq!(bits(&x1), bits(&x[7 * width..8 * width]));
            assert_eq!(out1.bf16(), out[7 * width..8 * width]);
            let got = (x, out);
            assert!(*first.get_or_insert_with(|| got.clone()) == got, "seeds differ");
        }
    }
}

/// Rows of a pass and what their heads are made of.
struct HeadsCase {
    width: usize,
    heads: usize,
    key_heads: usize,
    rows: usize,
    parts: usize,
    sums: Vec<f32>,
    /// Sums of 8-bit integers in their place, factors of rows and of columns.
    integers: Option<(Vec<i32>, [Vec<f32>; 2])>,
    bias: Option<Vec<f32>>,
    norms: Option<[Vec<f32>; 2]>,
    cosines: Vec<f32>,
    sines: Vec<f32>,
    positions: Vec<i32>,
    destinations: Vec<i32>,
}

const POSITIONS: usize = 40;
const PAGES: usize = 3;
const SLOTS: usize = 9;
/// A place that nothing was written to.
const UNTOUCHED: u16 = 0xffff;

impl HeadsCase {
    fn new(width: usize, has_norms: bool) -> Self {
        let (heads, key_heads, parts) = (4, 2, 2);
        // Eight tokens that fill 16 bytes of each column, eight at an odd place, eight of several
        // pages, then beams.
        let mut destinations: Vec<i32> = (0..8).map(|i| 2 * 64 + 8 + i).collect();
        destinations.extend((0..8).map(|i| 2 * 64 + 19 + i));
        destinations.extend([72, 73, 74, 5, 6, 7, 94, 95]);
        destinations.extend([3, 0, 8].map(|slot: i32| !slot));
        let rows = destinations.len();
        let mut random = Random(width as u64 + 2);
        let all = (heads + 2 * key_heads) * width;
        Self {
            width,
            heads,
            key_heads,
            rows,
            parts,
            sums: random.floats(parts * rows * all, 1.0),
            integers: None,
            bias: (!has_norms).then(|| random.floats(all, 0.5)),
            norms: has_norms.then(|| [random.floats(width, 1.0), random.floats(width, 1.0)]),
            cosines: random.floats(POSITIONS * width / 2, 1.0),
            sines: random.floats(POSITIONS * width / 2, 1.0),
            positions: (0..rows).map(|_| random.below(POSITIONS) as i32).collect(),
            destinations,
        }
    }

    fn all(&self) -> usize {
        self.heads + 2 * self.key_heads
    }

    /// Queries, keys, values and own tokens.
    fn run(&self, device: &Device, grid: u32) -> [Vec<u16>; 4] {
        let put = |values: &Option<Vec<f32>>| values.as_ref().map(|values| device.put(values));
        let norms = self.norms.clone().map(|norms| norms.map(|norm| device.put(&norm)));
        let (mut sums, mut factors) = (device.put(&self.sums), None);
        if let Some((integers, of)) = &self.integers {
            (sums, factors) =
                (device.put(integers), Some(of.clone().map(|factors| device.put(&factors))));
        }
        let factor = |at: usize| factors.as_ref().map_or(NULL, |of| of[at].address());
        let bias = put(&self.bias);
        let angles = [device.put(&self.cosines), device.put(&self.sines)];
        let lists = [
            device.put(&[self.rows as i32]),
            device.put(&self.positions),
            device.put(&self.destinations),
        ];
        let page = self.key_heads * 64 * self.width;
        let out = [
            device.empty(self.rows * self.heads * self.width * 2),
            device.empty(PAGES * page * 2),
            device.empty(PAGES * page * 2),
            device.empty(SLOTS * 2 * self.key_heads * self.width * 2),
        ];
        let norm = |at: usize| norms.as_ref().map_or(NULL, |norms| norms[at].address());
        let arguments = Heads {
            rows: lists[0].address(),
            sums: sums.address(),
            row_factors: factor(0),
            column_factors: factor(1),
            bias: bias.as_ref().map_or(NULL, |bias| bias.address()),
            query_norm: norm(0),
            key_norm: norm(1),
            cosines: angles[0].address(),
            sines: angles[1].address(),
            positions: lists[1].address(),
            destinations: lists[2].address(),
            queries: out[0].address(),
            keys: out[1].address(),
            values: out[2].address(),
            own: out[3].address(),
            parts: self.parts as i32,
            part_rows: self.rows as i32,
            heads: self.heads as i32,
            key_heads: self.key_heads as i32,
            epsilon: EPSILON,
        };
        let kernel = if self.width == 64 { Kernel::Heads64 } else { Kernel::Heads128 };
        device.run(kernel, [grid, 1, 1], &arguments);
        out.map(|region| device.get(&region))
    }

    /// A head of a row in f64.
    fn want(&self, row: usize, head: usize) -> Vec<f64> {
        let (width, all) = (self.width, self.all());
        let value = |i: usize| {
            let column = head * width + i;
            let sums = |part: usize| self.sums[(part * self.rows + row) * all * width + column];
            let total: f64 = (0..self.parts).map(|part| f64::from(sums(part))).sum();
            total + self.bias.as_ref().map_or(0.0, |bias| f64::from(bias[column]))
        };
        let mut head_values: Vec<f64> = (0..width).map(value).collect();
        if head >= self.heads + self.key_heads {
            return head_values;
        }
        if let Some(norms) = &self.norms {
            head_values = normed(&head_values, &norms[usize::from(head >= self.heads)]);
        }
        let half = width / 2;
        let angles = self.positions[row] as usize * half;
        let turned = |i: usize| {
            let (cosine, sine) = (self.cosines[angles + i % half], self.sines[angles + i % half]);
            let (cosine, sine) = (f64::from(cosine), f64::from(sine));
            match i < half {
                true => head_values[i] * cosine - head_values[i + half] * sine,
                false => head_values[i] * cosine + head_values[i - half] * sine,
            }
        };
        (0..width).map(turned).collect()
    }
}

#[test]
fn heads_are_normed_turned_and_stored_in_pages_and_slots() {
    for (width, has_norms) in [(64, false), (128, true)] {
        let case = HeadsCase::new(width, has_norms);
        let HeadsCase { heads, key_heads, rows, parts, .. } = case;
        let all = case.all() * width;
        let mut first: Option<[Vec<u16>; 4]> = None;
        for (grid, device) in [1, 3, 7].into_iter().zip(devices(Architecture::Hopper)) {
            let got = case.run(&device, grid);
            let [queries, keys, values, own] = &got;
            let mut touched = [0, 0, 0];
            let check = |got: &mut dyn Iterator<Item = u16>, row: usize, head: usize| {
                let want = case.want(row, head);
                let error = relative_error(got.map(to_f64), &want);
                assert!(error < 4e-3, "row {row}, head {head}: {error}");
            };
            for row in 0..rows {
                for head in 0..heads {
                    let at = (row * heads + head) * width;
                    check(&mut queries[at..][..width].iter().copied(), row, head);
                }
                let destination = case.destinations[row];
                for head in 0..key_heads {
                    let (key, value) = (heads + head, heads + key_heads + head);
                    if destination < 0 {
                        let slot = !destination as usize * 2 * key_heads;
                        let key_at = (slot + head) * width;
                        let value_at = (slot + key_heads + head) * width;
                        check(&mut own[key_at..][..width].iter().copied(), row, key);
                        check(&mut own[value_at..][..width].iter().copied(), row, value);
                        touched[2] += 2 * width;
                        continue;
                    }
                    let (page, place) = (destination as usize / 64, destination as usize % 64);
                    let at = (page * key_heads + head) * 64 * width;
                    let key_values = keys[at + place * width..][..width].iter();
                    check(&mut key_values.copied(), row, key);
                    let column = values[at + place..].iter().step_by(64).take(width);
                    check(&mut column.copied(), row, value);
                    touched[0] += width;
                    touched[1] += width;
                }
            }
            for (stored, touched) in [keys, values, own].into_iter().zip(touched) {
                let written = stored.iter().filter(|&&value| value != UNTOUCHED).count();
                assert_eq!(written, touched, "nothing else is written");
            }
            // A row alone, where no eight rows stand side by side.
            for row in [3, 19, 25] {
                let pick = |part: usize| {
                    case.sums[(part * rows + row) * all..(part * rows + row + 1) * all].to_vec()
                };
                let alone = HeadsCase {
                    rows: 1,
                    sums: (0..parts).flat_map(pick).collect(),
                    positions: vec![case.positions[row]],
                    destinations: vec![case.destinations[row]],
                    bias: case.bias.clone(),
                    integers: None,
                    norms: case.norms.clone(),
                    cosines: case.cosines.clone(),
                    sines: case.sines.clone(),
                    ..case
                };
                let [alone_queries, alone_keys, alone_values, alone_own] = alone.run(&device, 1);
                let size = heads * width;
                assert_eq!(alone_queries, queries[row * size..(row + 1) * size], "row {row}");
                for (alone, all) in [(alone_keys, keys), (alone_values, values), (alone_own, own)] {
                    let same = |(alone, all): (&u16, &u16)| *alone == UNTOUCHED || alone == all;
                    assert!(alone.iter().zip(all).all(same), "row {row}");
                }
            }
            assert!(*first.get_or_insert_with(|| got.clone()) == got, "seeds differ");
        }
    }
}

/// Sums of integers are added before they are scaled, which parts do not change.
#[test]
fn heads_of_integers_are_those_of_what_they_stand_for() {
    for (width, has_norms) in [(64, false), (128, true)] {
        let mut case = HeadsCase::new(width, has_norms);
        let (all, rows, parts) = (case.all() * width, case.rows, 3);
        let mut random = Random(width as u64);
        let factors = [random.floats(rows, 0.01), random.floats(all, 0.01)];
        let integers: Vec<i32> =
            (0..parts * rows * all).map(|_| random.below(1 << 24) as i32 - (1 << 23)).collect();
        let sum =
            |at: usize| -> i32 { integers.iter().skip(at).step_by(rows * all).copied().sum() };
        let scaled = |at: usize| sum(at) as f32 * (factors[0][at / all] * factors[1][at % all]);
        case.sums = (0..rows * all).map(scaled).collect();
        case.parts = 1;
        for (grid, device) in [1, 3, 7].into_iter().zip(devices(Architecture::Hopper)) {
            case.integers = None;
            let want = case.run(&device, grid);
            case.integers = Some((integers.clone(), factors.clone()));
            case.parts = parts;
            assert!(case.run(&device, grid) == want, "heads of {width}");
            case.parts = 1;
        }
    }
}

/// Rows, of which some are taken.
struct HeadCase {
    width: usize,
    heads_width: usize,
    taken: [usize; 4],
    x: Vec<f32>,
    heads: Vec<u16>,
}

impl HeadCase {
    fn new() -> Self {
        let (width, heads_width, all) = (132, 72, 9);
        let mut random = Random(6);
        let (x, heads) = (random.floats(all * width, 1.0), random.bf16(all * heads_width, 1.0));
        Self { width, heads_width, taken: [8, 0, 3, 3], x, heads }
    }

    fn run(&self, device: &Device, grid: u32) -> (Vec<f32>, Vec<u16>) {
        let Self { width, heads_width, taken, x, heads } = self;
        let kept = (device.put(&[taken.len() as i32]), device.put(&taken.map(|row| row as i32)));
        let from = (device.put(x), device.put(heads));
        let to =
            (device.empty(taken.len() * width * 4), device.empty(taken.len() * heads_width * 2));
        let arguments = HeadRows {
            rows: kept.0.address(),
            taken: kept.1.address(),
            x: from.0.address(),
            heads: from.1.address(),
            taken_x: to.0.address(),
            taken_heads: to.1.address(),
            width: *width as i32,
            heads_width: *heads_width as i32,
        };
        device.run(Kernel::HeadRows, [grid, 1, 1], &arguments);
        (device.get(&to.0), device.get(&to.1))
    }
}

#[test]
fn rows_whose_logits_are_wanted_stand_side_by_side() {
    let case = HeadCase::new();
    for device in devices(Architecture::Hopper) {
        let (x, heads) = case.run(&device, 2);
        let of_rows = |width: usize| case.taken.map(|row| row * width..(row + 1) * width);
        let want: Vec<f32> = of_rows(case.width).map(|at| case.x[at].to_vec()).concat();
        assert_eq!(bits(&x), bits(&want));
        let want: Vec<u16> = of_rows(case.heads_width).map(|at| case.heads[at].to_vec()).concat();
        assert_eq!(heads, want);
    }
}

/// Results whose bits are kept, with their names.
pub(crate) fn golden(device: &Device) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for width in [260, 64] {
        let (x, normed) = Embedding::new(width).run(device, 2, false);
        all.push((format!("embed_norm width {width}"), bytes_of(&x)));
        all.push((format!("embed_norm width {width} normed"), normed.bytes()));
        let (_, rounded) = Embedding::new(width).run(device, 2, true);
        all.push((format!("embed_norm width {width} in 8 bits"), rounded.bytes()));
    }
    for (width, has_norms) in [(64, false), (128, true)] {
        let stored = HeadsCase::new(width, has_norms).run(device, 3);
        for (name, stored) in ["queries", "keys", "values", "own"].into_iter().zip(&stored) {
            all.push((format!("heads_{width} {name}"), bytes_of(stored)));
        }
    }
    let mut random = Random(4);
    let weight = random.floats(196, 1.0);
    let (old, sums) = (random.floats(11 * 196, 2.0), random.floats(3 * 12 * 196, 1.0));
    for parts in [1, 3] {
        let case = Sums { width: 196, part_rows: 12, parts, weight: weight.clone() };
        let (x, normed) = case.run(device, 2, [&old, &sums], false);
        all.push((format!("norm_rows of {parts}"), bytes_of(&x)));
        all.push((format!("norm_rows of {parts} normed"), normed.bytes()));
        let (_, rounded) = case.run(device, 2, [&old, &sums], true);
        all.push((format!("norm_rows of {parts} in 8 bits"), rounded.bytes()));
    }
    let (x, heads) = HeadCase::new().run(device, 2);
    all.push(("head_rows x".to_owned(), bytes_of(&x)));
    all.push(("head_rows heads".to_owned(), bytes_of(&heads)));
    all
}
