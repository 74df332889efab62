//! Levels over arrays of a caller: the searches that they are described as, and the beams written.

use palmette_cuda::arguments::{Arguments, CallerLevel, Extension, Search, array_bytes};
use palmette_cuda::{Address, Architecture, Kernel, Region};

use crate::support::{Device, NULL, Random, bytes_of, devices};

const SEGMENTS: usize = 3;
const CODES: usize = 70;
const COLUMNS: usize = 90;
const BINS: usize = 4096;
const SORTED: usize = 4096;

#[derive(Clone, Copy)]
struct Case {
    requests: usize,
    rows: usize,
    width: usize,
    level: usize,
    own_filters: bool,
    is_normalised: bool,
}

const CASES: [Case; 4] = [
    Case { requests: 3, rows: 1, width: 5, level: 0, own_filters: false, is_normalised: true },
    Case { requests: 2, rows: 7, width: 300, level: 2, own_filters: true, is_normalised: false },
    Case { requests: 300, rows: 2, width: 3, level: 1, own_filters: true, is_normalised: true },
    Case { requests: 1, rows: 40, width: 9, level: 3, own_filters: false, is_normalised: false },
];

/// Numbers of beams of each request that were found: some, none, all.
fn found(case: &Case, request: usize) -> usize {
    [case.width / 2, 0, case.width][request % 3]
}

impl Case {
    /// A level whose arrays are only named, each far from the others.
    fn level(&self) -> CallerLevel {
        let at = |number: u64| Address(number << 32);
        CallerLevel {
            searches: at(1),
            logits: at(2),
            scores: at(3),
            positions: at(4),
            levels: at(5),
            filters: at(6),
            found: if self.level == 0 { NULL } else { at(7) },
            tokens: at(8),
            masks: at(9),
            normalisers: at(10),
            histogram: at(11),
            state: at(12),
            candidates: at(13),
            best: at(14),
            next: at(15),
            next_scores: at(16),
            next_tokens: at(17),
            parents: at(18),
            requests: self.requests as i32,
            rows: self.rows as i32,
            segments: SEGMENTS as i32,
            codes: CODES as i32,
            columns: COLUMNS as i32,
            width: self.width as i32,
            level: self.level as i32,
            first: 11,
            own_filters: i32::from(self.own_filters),
            normalised: i32::from(self.is_normalised),
            floor: -5.5,
        }
    }

    /// The search of a request by the shapes of its arrays.
    fn search(&self, level: &CallerLevel, request: usize) -> Search {
        let of = |array: Address, elements: usize, bytes: usize| {
            Address(array.0 + (request * elements * bytes) as u64)
        };
        let before = if self.level == 0 { 0 } else { self.rows };
        let live = Address(level.found.0 + (request * 16 + 8) as u64);
        Search {
            logits: of(level.logits, self.rows * COLUMNS, 4),
            scores: of(level.scores, before, 4),
            positions: of(level.positions, before * SEGMENTS, 12),
            levels: level.levels,
            filters: of(level.filters, if self.own_filters { SEGMENTS } else { 0 }, 32),
            live: if self.level == 0 { NULL } else { live },
            masks: of(level.masks, self.rows * CODES.div_ceil(32), 4),
            normalisers: of(level.normalisers, self.rows, 4),
            histogram: of(level.histogram, BINS, 4),
            state: of(level.state, 4, 4),
            candidates: of(level.candidates, SORTED, 8),
            best: of(level.best, self.width, 12),
            next: of(level.next, self.width * SEGMENTS, 12),
            next_scores: NULL,
            rows: level.rows,
            segments: level.segments,
            codes: level.codes,
            columns: level.columns,
            first: level.first,
            width: level.width,
            capacity: SORTED as i32,
            normalised: level.normalised,
            floor: level.floor,
        }
    }

    /// The searches as the kernel describes them, and normalisers that were 1 before.
    fn described(&self, device: &Device) -> (Vec<u8>, Vec<f32>) {
        let level = self.level();
        let searches = device.put(&vec![0u8; self.requests * Search::BYTES]);
        let normalisers = device.put(&vec![1.0f32; self.requests * self.rows]);
        let named = CallerLevel {
            searches: searches.address(),
            normalisers: normalisers.address(),
            ..level
        };
        device.run(Kernel::BeginLevel, [2, 1, 1], &named);
        (device.get(&searches), device.get(&normalisers))
    }

    /// Bests, tokens before, and states.
    fn beams(&self) -> (Vec<Extension>, Vec<u64>, Vec<u32>) {
        let mut random = Random(17);
        let mut best = || Extension {
            score: random.uniform(),
            parent: random.below(self.rows) as u32,
            code: random.below(CODES) as u32,
        };
        let best = (0..self.requests * self.width).map(|_| best()).collect();
        let tokens = (0..self.requests * self.rows * self.level).map(|_| random.next()).collect();
        let states = (0..self.requests).flat_map(|request| [9, 9, found(self, request) as u32, 9]);
        (best, tokens, states.collect())
    }

    /// Scores, tokens and parents as the kernel writes them.
    fn written(&self, device: &Device) -> [Vec<u8>; 3] {
        let (best, tokens, states) = self.beams();
        let beams = self.requests * self.width;
        let next: [Region; 3] =
            [4, 8 * (self.level + 1), 8].map(|bytes| device.empty(beams * bytes));
        let (best, states) = (device.put_structs(&best), device.put(&states));
        let tokens = device.put(&tokens);
        let level = CallerLevel {
            best: best.address(),
            state: states.address(),
            tokens: tokens.address(),
            next_scores: next[0].address(),
            next_tokens: next[1].address(),
            parents: next[2].address(),
            ..self.level()
        };
        device.run(Kernel::WriteBeams, [2, self.requests as u32, 1], &level);
        next.map(|region| device.get_bytes(&region))
    }

    /// Scores, tokens and parents by the definition.
    fn wanted(&self) -> [Vec<u8>; 3] {
        let (best, before, _) = self.beams();
        let (mut scores, mut tokens, mut parents) = (Vec::new(), Vec::new(), Vec::new());
        for (place, extension) in best.iter().enumerate() {
            let (request, beam) = (place / self.width, place % self.width);
            if beam >= found(self, request) {
                scores.push(f32::NEG_INFINITY);
                tokens.extend(vec![0u64; self.level + 1]);
                parents.push(0u64);
                continue;
            }
            let row = (request * self.rows + extension.parent as usize) * self.level;
            scores.push(extension.score);
            tokens.extend(&before[row..row + self.level]);
            tokens.push(u64::from(extension.code + 11));
            parents.push(u64::from(extension.parent));
        }
        [bytes_of(&scores), bytes_of(&tokens), bytes_of(&parents)]
    }
}

#[test]
fn levels_of_a_caller_are_searches_over_parts_of_its_arrays() {
    for device in devices(Architecture::Hopper) {
        for case in CASES {
            let level = case.level();
            let searches: Vec<Search> =
                (0..case.requests).map(|request| case.search(&level, request)).collect();
            let (got, normalisers) = case.described(&device);
            let want = array_bytes(&searches);
            // The one array that is written has another address.
            let at = Search::FIELDS.iter().find(|field| field.name == "normalisers").unwrap();
            for (request, (got, want)) in
                got.chunks(Search::BYTES).zip(want.chunks(Search::BYTES)).enumerate()
            {
                for field in Search::FIELDS.iter().filter(|field| field.name != at.name) {
                    let bytes = field.offset..field.offset + field.bytes;
                    assert_eq!(
                        got[bytes.clone()],
                        want[bytes],
                        "{} of request {request} of {}",
                        field.name,
                        case.requests
                    );
                }
            }
            let of = |bytes: &[u8]| u64::from_le_bytes(bytes[..8].try_into().unwrap());
            let places = got.chunks(Search::BYTES).map(|search| of(&search[at.offset..]));
            let places: Vec<u64> = places.collect();
            let stride = (case.rows * 4) as u64;
            assert!(places.windows(2).all(|two| two[1] == two[0] + stride));
            let kept = if case.is_normalised { 0.0 } else { 1.0 };
            assert!(normalisers.iter().all(|&value| value == kept));
        }
    }
}

#[test]
fn beams_are_written_with_the_tokens_up_to_them() {
    for device in devices(Architecture::Hopper) {
        for case in CASES {
            assert!(case.written(&device) == case.wanted(), "{} requests", case.requests);
        }
    }
}

/// Results whose bits are kept, with their names.
pub(crate) fn golden(device: &Device) -> Vec<(String, Vec<u8>)> {
    let named = |case: &Case| {
        let [scores, tokens, parents] = case.written(device);
        let bytes = [scores, tokens, parents].concat();
        (format!("write_beams {} x {}", case.requests, case.width), bytes)
    };
    CASES[1..3].iter().map(named).collect()
}
