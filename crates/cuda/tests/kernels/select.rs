//! Selection: whole searches over segments of a catalog against sorting every allowed extension.

use std::collections::BTreeSet;

use palmette_cuda::arguments::{BeamRows, Extension, Filter, Level, Range, Search, Select};
use palmette_cuda::{Architecture, Arguments, Kernel, Region};

use crate::support::{Device, NULL, Random, bytes_of, devices};

const LEVELS: usize = 3;
const CODES: usize = 64;

/// Form of a level's codes.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Masked,
    ByRank,
    Listed,
}

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
    codes: usize,
    /// Codes of the first level that items have.
    first_codes: usize,
    /// Of each segment: a segment has forms of its own.
    forms: [[Form; LEVELS]; 2],
    /// Codes of 32 bits.
    wide: bool,
    width: usize,
    /// Percent of items that the filter keeps; 100: no filter.
    kept: u64,
    /// Every so many kept items one is excluded; 0: none.
    excluded: usize,
    logits: Logits,
    /// Columns of logits before the first code's, and after the last's.
    margins: [usize; 2],
    /// The device alone knows how many rows there are.
    live: bool,
    floor: f32,
    capacity: usize,
}

const NO_FLOOR: f32 = f32::NEG_INFINITY;
const BY_RANK: [Form; LEVELS] = [Form::Masked, Form::ByRank, Form::ByRank];

fn case(name: &'static str, items: [usize; 2], width: usize, kept: u64) -> Case {
    Case {
        name,
        items,
        codes: CODES,
        first_codes: 20,
        forms: [BY_RANK; 2],
        wide: false,
        width,
        kept,
        excluded: 0,
        logits: Logits::Ordinary,
        margins: [0; 2],
        live: false,
        floor: NO_FLOOR,
        capacity: 4096,
    }
}

/// Sorted items of a segment, and which of them the filter keeps.
struct Segment {
    items: Vec<[u16; LEVELS]>,
    is_kept: Vec<bool>,
}

impl Segment {
    fn new(random: &mut Random, case: &Case, len: usize) -> Self {
        let mut items = BTreeSet::new();
        while items.len() < len {
            items.insert(
                [case.first_codes, case.codes, case.codes].map(|end| random.below(end) as u16),
            );
        }
        let is_kept = (0..len).map(|_| random.next() % 100 < case.kept).collect();
        Self { items: items.into_iter().collect(), is_kept }
    }

    /// Ranks that the filter keeps and the request excludes.
    fn excluded(&self, case: &Case) -> Vec<u32> {
        let kept = (0..self.items.len()).filter(|&rank| self.is_kept[rank]);
        kept.step_by(case.excluded.max(1))
            .take(if case.excluded > 0 { usize::MAX } else { 0 })
            .map(|rank| rank as u32)
            .collect()
    }

    /// The distinct prefixes of some codes, each with the rank at which it begins.
    fn prefixes(&self, codes: usize) -> Vec<(Vec<u16>, u32)> {
        let mut prefixes: Vec<(Vec<u16>, u32)> = Vec::new();
        for (rank, item) in self.items.iter().enumerate() {
            if prefixes.last().is_none_or(|last| last.0 != item[..codes]) {
                prefixes.push((item[..codes].to_vec(), rank as u32));
            }
        }
        prefixes
    }

    /// Ranks of the items with a prefix.
    fn ranks(&self, prefix: &[u16]) -> std::ops::Range<usize> {
        let below = |item: &[u16; LEVELS]| item[..prefix.len()] < *prefix;
        let up_to = |item: &[u16; LEVELS]| item[..prefix.len()] <= *prefix;
        self.items.partition_point(below)..self.items.partition_point(up_to)
    }
}

/// Segments in device memory.
struct Tables {
    levels: [Region; LEVELS],
    filters: Region,
    _arrays: Vec<Region>,
}

/// Bits at some places, and how many are set before each word.
fn bit_row(len: usize, places: impl Iterator<Item = usize>) -> (Vec<u32>, Vec<u32>) {
    let mut bits = vec![0u32; len.div_ceil(32)];
    places.for_each(|place| bits[place / 32] |= 1 << (place % 32));
    let mut before = vec![0u32];
    for word in &bits {
        before.push(before.last().unwrap() + word.count_ones());
    }
    (bits, before)
}

impl Tables {
    fn new(device: &Device, case: &Case, segments: &[Segment]) -> Self {
        let mut arrays = Vec::new();
        let mut put = |region: Region| {
            let address = region.address();
            arrays.push(region);
            address
        };
        let mut codes_of = |codes: &[u16]| {
            let wide: Vec<u32> = codes.iter().map(|&code| u32::from(code)).collect();
            put(if case.wide { device.put(&wide) } else { device.put(codes) })
        };
        let mut levels = [const { Vec::new() }; LEVELS];
        let none = Level {
            codes: NULL,
            masks: NULL,
            starts: NULL,
            begin_bits: NULL,
            begin_counts: NULL,
            wide: i32::from(case.wide),
        };
        for (segment, forms) in segments.iter().zip(case.forms) {
            for level in 0..LEVELS {
                let by_rank: Vec<u16> = segment.items.iter().map(|item| item[level]).collect();
                let prefixes = segment.prefixes(level + 1);
                let listed: Vec<u16> = prefixes.iter().map(|prefix| prefix.0[level]).collect();
                levels[level].push(match forms[level] {
                    Form::ByRank => Level { codes: codes_of(&by_rank), ..none },
                    Form::Listed => Level { codes: codes_of(&listed), ..none },
                    Form::Masked => none,
                });
            }
        }
        for (number, (segment, forms)) in segments.iter().zip(case.forms).enumerate() {
            let len = segment.items.len();
            for (level, form) in forms.into_iter().enumerate() {
                let here = &mut levels[level][number];
                if form == Form::Listed {
                    let prefixes = segment.prefixes(level + 1);
                    let begins = prefixes.iter().map(|prefix| prefix.1 as usize);
                    let mut starts: Vec<u32> = prefixes.iter().map(|prefix| prefix.1).collect();
                    starts.push(len as u32);
                    let (bits, counts) = bit_row(len, begins);
                    here.starts = put(device.put(&starts));
                    here.begin_bits = put(device.put(&bits));
                    here.begin_counts = put(device.put(&counts));
                }
                if form == Form::Masked {
                    let (words, keys) = (case.codes.div_ceil(32), case.codes.pow(level as u32));
                    let mut masks = vec![0u32; words * keys];
                    let mut starts = Vec::new();
                    for key in 0..keys * case.codes {
                        let digit = |at: usize| key / case.codes.pow((level - at) as u32);
                        let prefix: Vec<u16> =
                            (0..=level).map(|at| (digit(at) % case.codes) as u16).collect();
                        let ranks = segment.ranks(&prefix);
                        starts.push(ranks.start as u32);
                        let code = key % case.codes;
                        masks[key / case.codes * words + code / 32] |=
                            u32::from(!ranks.is_empty()) << (code % 32);
                    }
                    starts.push(len as u32);
                    here.masks = put(device.put(&masks));
                    here.starts = put(device.put(&starts));
                }
            }
        }
        let filter = |segment: &Segment| {
            let kept = (0..segment.items.len()).filter(|&rank| segment.is_kept[rank]);
            let (bits, before) = bit_row(segment.items.len(), kept);
            let excluded = segment.excluded(case);
            let has_bits = case.kept < 100;
            Filter {
                bits: if has_bits { put(device.put(&bits)) } else { NULL },
                before: if has_bits { put(device.put(&before)) } else { NULL },
                num_excluded: excluded.len() as i32,
                excluded: if excluded.is_empty() { NULL } else { put(device.put(&excluded)) },
            }
        };
        let filters: Vec<Filter> = segments.iter().map(filter).collect();
        let levels = levels.map(|levels| device.put_structs(&levels));
        Self { levels, filters: device.put_structs(&filters), _arrays: arrays }
    }
}

struct Beam {
    codes: Vec<u16>,
    score: f32,
    positions: Vec<Range>,
}

impl Case {
    fn columns(&self) -> usize {
        self.margins[0] + self.codes + self.margins[1]
    }
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
        let columns = case.columns();
        let mut logits: Vec<f32> = (0..rows * columns)
            .map(|_| match case.logits {
                Logits::Ordinary => random.uniform() * 4.0,
                Logits::Few => random.below(5) as f32,
                Logits::Equal => 1.0,
            })
            .collect();
        if case.logits == Logits::Ordinary {
            logits[random.below(rows * columns)] = f32::NEG_INFINITY;
        }
        let scores: Vec<f32> = beams.iter().map(|beam| beam.score).collect();
        let positions: Vec<Range> = beams.iter().flat_map(|beam| beam.positions.clone()).collect();
        let segments = beams[0].positions.len();
        let kept = vec![
            device.put(&logits),
            device.put(&scores),
            device.put_structs(&positions),
            device.empty(rows * case.codes.div_ceil(32) * 4),
            device.empty(rows * 4),
            device.empty(4096 * 4),
            device.empty(4 * 4),
            device.empty(case.capacity * 8),
            device.empty(case.width * Extension::BYTES),
            device.empty(case.width * segments * Range::BYTES),
            device.empty(case.width * 4),
            device.put(&[rows as u32]),
        ];
        let at = |array: usize| kept[array].address();
        let search = Search {
            logits: at(0),
            scores: at(1),
            positions: at(2),
            levels: tables.levels[level].address(),
            filters: tables.filters.address(),
            live: if case.live { at(11) } else { NULL },
            masks: at(3),
            normalisers: at(4),
            histogram: at(5),
            state: at(6),
            candidates: at(7),
            best: at(8),
            next: at(9),
            next_scores: at(10),
            rows: (rows + if case.live { 3 } else { 0 }) as i32,
            segments: segments as i32,
            codes: case.codes as i32,
            columns: columns as i32,
            first: case.margins[0] as i32,
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
    let excluded: Vec<Vec<u32>> = segments.iter().map(|segment| segment.excluded(case)).collect();
    for (parent, beam) in beams.iter().enumerate() {
        let logits = &step.logits[parent * case.columns()..][..case.columns()];
        let sum: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
        assert!((f64::from(normalisers[parent]) - sum.ln()).abs() < 1e-5, "{}", case.name);
        let logits = &logits[case.margins[0]..];
        for code in 0..case.codes as u16 {
            let prefix = [&*beam.codes, &[code]].concat();
            let is_allowed = segments.iter().zip(&excluded).any(|(segment, excluded)| {
                segment.ranks(&prefix).any(|rank| {
                    (case.kept == 100 || segment.is_kept[rank])
                        && !excluded.contains(&(rank as u32))
                })
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
        .map(|case| case.items.map(|len| Segment::new(&mut random, case, len)))
        .collect();
    let tables: Vec<Tables> = (cases.iter().zip(&segments))
        .map(|(case, segments)| Tables::new(device, case, segments))
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
            (Kernel::ClearStep, grid),
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
            let next_scores: Vec<u32> = device.get(&step.kept[10]);
            bytes.extend(bytes_of(&normalisers));
            bytes.extend(bytes_of(&got[..want.len() * 3]));
            let mut children = Vec::new();
            for (i, &(total, parent, code)) in want.iter().enumerate() {
                let expected = [total.to_bits(), parent as u32, u32::from(code)];
                assert_eq!(got[i * 3..i * 3 + 3], expected, "{place}, extension {i}");
                assert_eq!(next_scores[i], total.to_bits(), "{place}, extension {i}");
                let codes = [&*beams[at][parent].codes, &[code]].concat();
                let ranges = segments[at].iter().enumerate().map(|(number, segment)| {
                    let range = &next[(i * 2 + number) * 3..][..3];
                    // Empty where every item of it is filtered.
                    let excluded = segment.excluded(case);
                    let ranks = segment.ranks(&codes);
                    let is_allowed = ranks.clone().any(|rank| {
                        (case.kept == 100 || segment.is_kept[rank])
                            && !excluded.contains(&(rank as u32))
                    });
                    let got = range[0] as usize..range[1] as usize;
                    assert_eq!(got, if is_allowed { ranks } else { 0..0 }, "{place}");
                    Range { begin: range[0], end: range[1], key: range[2] }
                });
                children.push(Beam { score: total, positions: ranges.collect(), codes });
            }
            beams[at] = children;
        }
    }
    bytes
}

fn cases() -> Vec<Case> {
    const LISTED: [Form; LEVELS] = [Form::Listed; LEVELS];
    vec![
        case("one segment", [3000, 0], 50, 100),
        case("two segments", [2000, 700], 64, 100),
        case("filter of 5%", [4000, 300], 40, 5),
        case("few items", [30, 5], 50, 60),
        Case { logits: Logits::Few, ..case("ties", [2500, 400], 33, 80) },
        // More candidates than there is room for.
        Case { logits: Logits::Equal, capacity: 64, ..case("all equal", [3000, 100], 48, 100) },
        Case { floor: -6.0, ..case("floor", [3000, 0], 64, 100) },
        case("nothing allowed", [500, 20], 16, 0),
        Case { forms: [LISTED; 2], ..case("listed levels", [2500, 600], 40, 100) },
        Case {
            forms: [LISTED, [Form::Masked, Form::Masked, Form::Listed]],
            wide: true,
            live: true,
            ..case("listed levels and a filter", [2500, 900], 40, 20)
        },
        Case {
            forms: [[Form::Masked, Form::Masked, Form::ByRank], [Form::ByRank; LEVELS]],
            codes: 45,
            margins: [9, 30],
            excluded: 3,
            ..case("exclusions and no filter", [1500, 500], 30, 100)
        },
        Case {
            forms: [[Form::Masked, Form::Masked, Form::Listed], BY_RANK],
            excluded: 2,
            wide: true,
            live: true,
            margins: [1, 0],
            ..case("exclusions and a filter", [2500, 100], 30, 40)
        },
        Case { excluded: 1, ..case("everything excluded", [400, 30], 20, 50) },
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

/// Ranges over 16,384 ranks or listed prefixes, and masks of more than 1,024 codes, are cut among
/// blocks; more than 256 ranges are looked at in turns.
#[test]
fn large_ranges_and_many_are_cut_among_blocks() {
    const WIDE: [Form; LEVELS] = [Form::Masked, Form::ByRank, Form::Listed];
    let (all, listed) = (40_000, [[Form::Listed; LEVELS]; 2]);
    let cases = [
        Case { forms: [[Form::ByRank; LEVELS]; 2], ..case("by rank", [40_000, 40], 20, 100) },
        Case { forms: listed, codes: all, first_codes: all, ..case("listed", [all, 20], 8, 50) },
        Case {
            forms: [WIDE; 2],
            codes: 2100,
            first_codes: 2100,
            excluded: 5,
            ..case("masked", [900, 300], 8, 70)
        },
        case("many", [2000, 700], 150, 100),
    ];
    for (grid, device) in [1, 5].into_iter().zip(devices(Architecture::Hopper)) {
        search(&device, &cases, grid);
    }
}

#[test]
fn normalisers_that_are_given_are_taken_and_bad_ones_counted() {
    let Some(device) = devices(Architecture::Hopper).pop() else { return };
    let mut random = Random(8);
    let case = case("given", [400, 0], 20, 100);
    let segments = case.items.map(|len| Segment::new(&mut random, &case, len));
    let tables = Tables::new(&device, &case, &segments);
    let beam = |score| Beam {
        codes: Vec::new(),
        score,
        positions: vec![Range { begin: 0, end: 400, key: 0 }, Range { begin: 0, end: 0, key: 0 }],
    };
    let mut step = Step::new(&device, &case, &tables, 0, &[beam(0.0), beam(-0.5)], &mut random);
    let normalisers = device.put(&[2.5f32, f32::NAN]);
    (step.search.normalisers, step.search.normalised) = (normalisers.address(), 1);
    let searches = device.put_structs(&[step.search]);
    let arguments = Select { searches: searches.address() };
    for kernel in [
        Kernel::ClearStep,
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

/// Tokens and slots of a pass over what a step found, and over row 0 where it found fewer.
#[test]
fn beams_continue_the_rows_that_a_step_found() {
    const MOST: usize = 700;
    const PASS: usize = 900;
    for (grid, device) in [1, 3, 2].into_iter().zip(devices(Architecture::Hopper)) {
        let mut random = Random(u64::from(grid) + 4);
        for (rows, count, passes) in [(600, 600, 1), (700, 300, 2), (5, 5, 4), (40, 0, 3)] {
            let before: Vec<i32> = (0..(passes - 1) * MOST).map(|at| at as i32 * 3 + 1).collect();
            let extension = |_| Extension {
                score: random.uniform(),
                parent: random.below(MOST) as u32,
                code: random.below(8192) as u32,
            };
            let found: Vec<Extension> = (0..count).map(extension).collect();
            let regions = [
                device.put_structs(&found),
                device.put(&[count as u32]),
                device.put(&before),
                device.put(&vec![-1; passes * MOST]),
                device.put(&vec![-1; rows]),
                device.put(&vec![-1; passes * PASS]),
            ];
            let at = |region: usize| regions[region].address();
            let arguments = BeamRows {
                extensions: at(0),
                count: at(1),
                ancestors: at(2),
                next_ancestors: at(3),
                tokens: at(4),
                pass_ancestors: at(5),
                rows: rows as i32,
                passes: passes as i32,
                most_rows: MOST as i32,
                pass_rows: PASS as i32,
                first_token: 7000,
                first_slot: 50_000,
            };
            device.run(Kernel::ContinueBeams, [grid, 1, 1], &arguments);
            let none = Extension { score: 0.0, parent: 0, code: 0 };
            let of = |row: usize| found.get(row).copied().unwrap_or(none);
            let tokens: Vec<i32> = device.get(&regions[4]);
            assert!((0..rows).all(|row| tokens[row] == 7000 + of(row).code as i32));
            let (next, pass): (Vec<i32>, Vec<i32>) =
                (device.get(&regions[3]), device.get(&regions[5]));
            for number in 0..passes {
                let slot = |row: usize| match number + 1 < passes {
                    true => before[number * MOST + of(row).parent as usize],
                    false => 50_000 + row as i32,
                };
                let want: Vec<i32> = (0..rows).map(slot).collect();
                assert_eq!(next[number * MOST..][..rows], want, "{rows} rows, pass {number}");
                assert_eq!(pass[number * PASS..][..rows], want, "{rows} rows, pass {number}");
                // Rows of other requests stay.
                assert!(pass[number * PASS..][rows..PASS].iter().all(|&slot| slot == -1));
            }
        }
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
