//! Selection: whole searches over segments of a catalog against sorting every allowed extension.

use std::collections::BTreeSet;

use palmette_cuda::arguments::{Extension, Filter, Level, Range, Search, Select};
use palmette_cuda::{Architecture, Arguments, Kernel, Region};

use crate::support::{Device, NULL, Random, bytes_of, devices};

const LEVELS: usize = 3;
const CODES: usize = 64;

/// Logits of a case.
#[derive(Clone, Copy, PartialEq)]
enum Logits {
    Ordinary,
    /// Of five values: many ties.
    Few,
    Equal,
}

struct Case {
    name: &'static str,
    items: [usize; 2],
    width: usize,
    /// Percent of items that the filter keeps; 100: no filter.
    kept: u64,
    logits: Logits,
    floor: f32,
    capacity: usize,
}

const NO_FLOOR: f32 = f32::NEG_INFINITY;

fn case(name: &'static str, items: [usize; 2], width: usize, kept: u64) -> Case {
    let logits = Logits::Ordinary;
    Case { name, items, width, kept, logits, floor: NO_FLOOR, capacity: 4096 }
}

/// Sorted items of a segment, and which of them the filter keeps.
struct Segment {
    items: Vec<[u16; LEVELS]>,
    is_kept: Vec<bool>,
}

impl Segment {
    fn new(random: &mut Random, len: usize, kept: u64) -> Self {
        let mut items = BTreeSet::new();
        while items.len() < len {
            items.insert([20, CODES, CODES].map(|end| random.below(end) as u16));
        }
        let is_kept = (0..len).map(|_| random.next() % 100 < kept).collect();
        Self { items: items.into_iter().collect(), is_kept }
    }

    /// Ranks of the items with a prefix.
    fn ranks(&self, prefix: &[u16]) -> std::ops::Range<usize> {
        let below = |item: &[u16; LEVELS]| item[..prefix.len()] < *prefix;
        let up_to = |item: &[u16; LEVELS]| item[..prefix.len()] <= *prefix;
        self.items.partition_point(below)..self.items.partition_point(up_to)
    }
}

/// Segments in device memory: the first level as masks, the others by rank.
struct Tables {
    levels: [Region; LEVELS],
    filters: Region,
    _arrays: Vec<Region>,
}

impl Tables {
    fn new(device: &Device, segments: &[Segment], has_filter: bool) -> Self {
        let (mut arrays, mut levels) = (Vec::new(), [const { Vec::new() }; LEVELS]);
        let mut filters = Vec::new();
        for segment in segments {
            let len = segment.items.len();
            let mut masks = vec![0u32; CODES / 32];
            segment
                .items
                .iter()
                .for_each(|item| masks[item[0] as usize / 32] |= 1 << (item[0] % 32));
            let starts: Vec<u32> =
                (0..=CODES as u16).map(|code| segment.ranks(&[code]).start as u32).collect();
            arrays.extend([device.put(&masks), device.put(&starts)]);
            let [masks, starts] = [2, 1].map(|last| arrays[arrays.len() - last].address());
            levels[0].push(Level { by_rank: NULL, masks, starts });
            for level in 1..LEVELS {
                let codes: Vec<u16> = segment.items.iter().map(|item| item[level]).collect();
                arrays.push(device.put(&codes));
                let by_rank = arrays.last().unwrap().address();
                levels[level].push(Level { by_rank, masks: NULL, starts: NULL });
            }
            let mut bits = vec![0u32; len.div_ceil(32)];
            for rank in (0..len).filter(|&rank| segment.is_kept[rank]) {
                bits[rank / 32] |= 1 << (rank % 32);
            }
            let mut before = vec![0u32];
            for word in &bits {
                before.push(before.last().unwrap() + word.count_ones());
            }
            arrays.extend([device.put(&bits), device.put(&before)]);
            let [bits, before] = [2, 1].map(|last| arrays[arrays.len() - last].address());
            let none = Filter { bits: NULL, before: NULL };
            filters.push(if has_filter { Filter { bits, before } } else { none });
        }
        let levels = levels.map(|levels| device.put_structs(&levels));
        Self { levels, filters: device.put_structs(&filters), _arrays: arrays }
    }
}

struct Beam {
    codes: Vec<u16>,
    score: f32,
    positions: Vec<Range>,
}

/// A search's arrays of one step.
struct Step {
    search: Search,
    logits: Vec<f32>,
    kept: Vec<Region>,
}

impl Step {
    fn new(
        device: &Device,
        case: &Case,
        tables: &Tables,
        level: usize,
        beams: &[Beam],
        random: &mut Random,
    ) -> Self {
        let rows = beams.len();
        let mut logits: Vec<f32> = (0..rows * CODES)
            .map(|_| match case.logits {
                Logits::Ordinary => random.uniform() * 4.0,
                Logits::Few => random.below(5) as f32,
                Logits::Equal => 1.0,
            })
            .collect();
        if case.logits == Logits::Ordinary {
            logits[random.below(rows * CODES)] = f32::NEG_INFINITY;
        }
        let scores: Vec<f32> = beams.iter().map(|beam| beam.score).collect();
        let positions: Vec<Range> = beams.iter().flat_map(|beam| beam.positions.clone()).collect();
        let segments = beams[0].positions.len();
        let kept = vec![
            device.put(&logits),
            device.put(&scores),
            device.put_structs(&positions),
            device.put(&vec![0u32; rows * CODES / 32]),
            device.empty(rows * 4),
            device.put(&vec![0u32; 4096]),
            device.put(&[0u32; 4]),
            device.empty(case.capacity * 8),
            device.empty(case.width * Extension::BYTES),
            device.empty(case.width * segments * Range::BYTES),
        ];
        let at = |array: usize| kept[array].address();
        let search = Search {
            logits: at(0),
            scores: at(1),
            positions: at(2),
            levels: tables.levels[level].address(),
            filters: tables.filters.address(),
            masks: at(3),
            normalisers: at(4),
            histogram: at(5),
            state: at(6),
            candidates: at(7),
            best: at(8),
            next: at(9),
            rows: rows as i32,
            segments: segments as i32,
            codes: CODES as i32,
            width: case.width as i32,
            capacity: case.capacity as i32,
            normalised: 0,
            floor: case.floor,
        };
        Self { search, logits, kept }
    }
}

/// One step of the search by definition: normalisers are the device's, which are checked apart.
fn best(
    case: &Case,
    segments: &[Segment],
    beams: &[Beam],
    step: &Step,
    normalisers: &[f32],
) -> Vec<(f32, usize, u16)> {
    let mut all = Vec::new();
    for (parent, beam) in beams.iter().enumerate() {
        let logits = &step.logits[parent * CODES..][..CODES];
        let sum: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
        assert!((f64::from(normalisers[parent]) - sum.ln()).abs() < 1e-5, "{}", case.name);
        for code in 0..CODES as u16 {
            let prefix = [&*beam.codes, &[code]].concat();
            let is_allowed = segments.iter().any(|segment| {
                let mut ranks = segment.ranks(&prefix);
                ranks.any(|rank| case.kept == 100 || segment.is_kept[rank])
            });
            let total = (beam.score + (logits[code as usize] - normalisers[parent])) + 0.0;
            if is_allowed && total >= case.floor {
                all.push((total, parent, code));
            }
        }
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    all.truncate(case.width);
    all
}

/// Runs searches side by side, one a case, and compares every step of each with its definition.
fn search(device: &Device, cases: &[Case], grid: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut random = Random(2024);
    let segments: Vec<[Segment; 2]> = cases
        .iter()
        .map(|case| case.items.map(|len| Segment::new(&mut random, len, case.kept)))
        .collect();
    let tables: Vec<Tables> = (cases.iter().zip(&segments))
        .map(|(case, segments)| Tables::new(device, segments, case.kept < 100))
        .collect();
    let root = |segments: &[Segment; 2]| {
        let whole = |segment: &Segment| Range { begin: 0, end: segment.items.len() as u32, key: 0 };
        vec![Beam {
            codes: Vec::new(),
            score: 0.0,
            positions: segments.iter().map(whole).collect(),
        }]
    };
    let mut beams: Vec<Vec<Beam>> = segments.iter().map(root).collect();
    for level in 0..LEVELS {
        let live: Vec<usize> = (0..cases.len()).filter(|&at| !beams[at].is_empty()).collect();
        let steps: Vec<Step> = live
            .iter()
            .map(|&at| Step::new(device, &cases[at], &tables[at], level, &beams[at], &mut random))
            .collect();
        let searches: Vec<Search> = steps.iter().map(|step| step.search).collect();
        let searches = device.put_structs(&searches);
        let arguments = Select { searches: searches.address() };
        for (kernel, blocks) in [
            (Kernel::AllowedCodes, grid),
            (Kernel::RowScores, grid),
            (Kernel::PickBin, 1),
            (Kernel::KeepCandidates, grid),
            (Kernel::SortBest, 1),
            (Kernel::Advance, grid),
        ] {
            device.run(kernel, [blocks, live.len() as u32, 1], &arguments);
        }
        for (&at, step) in live.iter().zip(&steps) {
            let (case, place) = (&cases[at], format!("{}, level {level}", cases[at].name));
            let state: Vec<u32> = device.get(&step.kept[6]);
            let normalisers: Vec<f32> = device.get(&step.kept[4]);
            let want = best(case, &segments[at], &beams[at], step, &normalisers);
            assert_eq!((state[2] as usize, state[3]), (want.len(), 0), "{place}");
            let got: Vec<u32> = device.get(&step.kept[8]);
            let next: Vec<u32> = device.get(&step.kept[9]);
            bytes.extend(bytes_of(&normalisers));
            bytes.extend(bytes_of(&got[..want.len() * 3]));
            let mut children = Vec::new();
            for (i, &(total, parent, code)) in want.iter().enumerate() {
                let expected = [total.to_bits(), parent as u32, u32::from(code)];
                assert_eq!(got[i * 3..i * 3 + 3], expected, "{place}, extension {i}");
                let codes = [&*beams[at][parent].codes, &[code]].concat();
                let ranges = segments[at].iter().enumerate().map(|(number, segment)| {
                    let range = &next[(i * 2 + number) * 3..][..3];
                    let ranks = segment.ranks(&codes);
                    let got = range[0] as usize..range[1] as usize;
                    assert!(got == ranks || got.is_empty() && ranks.is_empty(), "{place}: {got:?}");
                    Range { begin: range[0], end: range[1], key: range[2] }
                });
                children.push(Beam { score: total, positions: ranges.collect(), codes });
            }
            beams[at] = children;
        }
    }
    bytes
}

fn cases() -> [Case; 8] {
    [
        case("one segment", [3000, 0], 50, 100),
        case("two segments", [2000, 700], 64, 100),
        case("filter of 5%", [4000, 300], 40, 5),
        case("few items", [30, 5], 50, 60),
        Case { logits: Logits::Few, ..case("ties", [2500, 400], 33, 80) },
        // More candidates than there is room for.
        Case { logits: Logits::Equal, capacity: 64, ..case("all equal", [3000, 100], 48, 100) },
        Case { floor: -6.0, ..case("floor", [3000, 0], 64, 100) },
        case("nothing allowed", [500, 20], 16, 0),
    ]
}

#[test]
fn the_best_extensions_are_those_of_a_sort_side_by_side_with_other_searches() {
    let cases = cases();
    for (grid, device) in [1, 3, 2].into_iter().zip(devices(Architecture::Hopper)) {
        search(&device, &cases, grid);
        for alone in &cases {
            search(&device, std::slice::from_ref(alone), grid);
        }
    }
}

#[test]
fn normalisers_that_are_given_are_taken_and_bad_ones_counted() {
    let Some(device) = devices(Architecture::Hopper).pop() else { return };
    let mut random = Random(8);
    let segments = [Segment::new(&mut random, 400, 100), Segment::new(&mut random, 0, 100)];
    let tables = Tables::new(&device, &segments, false);
    let beam = |score| Beam {
        codes: Vec::new(),
        score,
        positions: vec![Range { begin: 0, end: 400, key: 0 }, Range { begin: 0, end: 0, key: 0 }],
    };
    let case = case("given", [400, 0], 20, 100);
    let mut step = Step::new(&device, &case, &tables, 0, &[beam(0.0), beam(-0.5)], &mut random);
    let normalisers = device.put(&[2.5f32, f32::NAN]);
    (step.search.normalisers, step.search.normalised) = (normalisers.address(), 1);
    let searches = device.put_structs(&[step.search]);
    let arguments = Select { searches: searches.address() };
    for kernel in [
        Kernel::AllowedCodes,
        Kernel::RowScores,
        Kernel::PickBin,
        Kernel::KeepCandidates,
        Kernel::SortBest,
    ] {
        device.run(kernel, [1, 1, 1], &arguments);
    }
    let state: Vec<u32> = device.get(&step.kept[6]);
    // A NaN is above no floor, so nothing of the bad row is found.
    assert_eq!(state[2..], [20.min(distinct(&segments[0])), 1]);
    let best: Vec<u32> = device.get(&step.kept[8]);
    for found in best.chunks(3).take(state[2] as usize) {
        let logit = step.logits[found[2] as usize];
        assert_eq!((f32::from_bits(found[0]), found[1]), (logit - 2.5, 0));
    }
}

/// First codes of a segment.
fn distinct(segment: &Segment) -> u32 {
    segment.items.iter().map(|item| item[0]).collect::<BTreeSet<_>>().len() as u32
}

/// Results whose bits are kept, with their names.
pub(crate) fn golden(device: &Device) -> Vec<(String, Vec<u8>)> {
    let search = |case: &Case| {
        let bytes = search(device, std::slice::from_ref(case), 2);
        (format!("select {}", case.name), bytes)
    };
    cases().iter().map(search).collect()
}
