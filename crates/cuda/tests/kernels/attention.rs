//! Attention in stages: prompts and beams against f64, runs in one block and in several, and the
//! bits of Hopper's.

use palmette_cuda::arguments::{
    Attention, AttentionItem, AttentionRequest, HopperAttention, PassSizes,
};
use palmette_cuda::{Architecture, Kernel, Tiles};

use crate::support::{Device, Random, Set, bytes_of, devices, relative_error, to_f64};

/// Rows of a request: its newest tokens, or beams.
#[derive(Clone, Copy)]
struct Request {
    rows: usize,
    tokens: usize,
    is_beams: bool,
    own: usize,
}

/// A pass over several requests.
#[derive(Clone)]
struct Case {
    width: usize,
    heads: usize,
    key_heads: usize,
    requests: Vec<Request>,
    /// By request: its pages.
    pages: Vec<Vec<i32>>,
    queries: Vec<u16>,
    keys: Vec<u16>,
    values: Vec<u16>,
    own: Vec<u16>,
    /// By own token and row.
    ancestors: Vec<i32>,
}

/// How the keys of a request are given to blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Runs {
    /// A block does all runs of a tile; beams cannot, since their own tokens come after.
    OneBlock,
    BlockEach,
}

impl Case {
    fn new(width: usize, heads: usize, key_heads: usize, requests: &[Request]) -> Self {
        let mut random = Random(width as u64 + requests.len() as u64 * 77);
        let rows: usize = requests.iter().map(|request| request.rows).sum();
        let most_own = requests.iter().map(|request| request.own).max().unwrap();
        let num_pages: usize = requests.iter().map(|request| request.tokens.div_ceil(64)).sum();
        let page = key_heads * 64 * width;
        // Keys past a prompt's end may be anything, even NaN; values there are zero.
        let mut keys = vec![0xffff; num_pages * page];
        let mut values = vec![0xffff; num_pages * page];
        let (mut pages, mut next) = (Vec::new(), num_pages);
        for request in requests {
            let own: Vec<i32> = (0..request.tokens.div_ceil(64))
                .map(|_| {
                    next -= 1;
                    next as i32
                })
                .collect();
            for place in 0..own.len() * 64 {
                for head in 0..key_heads {
                    let at = (own[place / 64] as usize * key_heads + head) * 64 * width;
                    let key = random.bf16(width, 2.0);
                    let value = random.bf16(width, 1.0);
                    for i in 0..width {
                        let is_there = place < request.tokens;
                        if is_there {
                            keys[at + place % 64 * width + i] = key[i];
                        }
                        values[at + i * 64 + place % 64] = if is_there { value[i] } else { 0 };
                    }
                }
            }
            pages.push(own);
        }
        let mut ancestors = vec![-1; (most_own * rows).max(1)];
        let mut first_row = 0;
        for request in requests {
            for token in 0..request.own {
                for row in first_row..first_row + request.rows {
                    let slot = token * rows + first_row + random.below(request.rows);
                    ancestors[token * rows + row] = slot as i32;
                }
            }
            first_row += request.rows;
        }
        Self {
            width,
            heads,
            key_heads,
            requests: requests.to_vec(),
            pages,
            queries: random.bf16(rows * heads * width, 2.0),
            keys,
            values,
            own: random.bf16((most_own * rows).max(1) * 2 * key_heads * width, 2.0),
            ancestors,
        }
    }

    fn rows(&self) -> usize {
        self.requests.iter().map(|request| request.rows).sum()
    }

    /// For each row: its request, keys that it sees, own tokens.
    fn row_facts(&self) -> Vec<(usize, usize, usize)> {
        let mut facts = Vec::new();
        for (number, request) in self.requests.iter().enumerate() {
            for row in 0..request.rows {
                let position = request.tokens - request.rows.min(request.tokens) + row;
                let visible = if request.is_beams { request.tokens } else { position + 1 };
                facts.push((number, visible, request.own));
            }
        }
        facts
    }

    fn run(&self, device: &Device, set: Set, runs: Runs, grid: u32) -> Vec<u16> {
        let (rows, group) = (self.rows(), self.heads / self.key_heads);
        let facts = self.row_facts();
        let mut items = Vec::new();
        let mut requests = Vec::new();
        let (mut first_row, mut first_page) = (0, 0);
        for (number, request) in self.requests.iter().enumerate() {
            requests.push(AttentionRequest {
                first_row: first_row as i32,
                rows: request.rows as i32,
                first_page,
            });
            for key_head in 0..self.key_heads as i32 {
                for tile in (0..request.rows * group).step_by(128) {
                    let item = |run| AttentionItem {
                        request: number as i32,
                        key_head,
                        first_row: tile as i32,
                        run,
                    };
                    match runs {
                        Runs::OneBlock if !request.is_beams => items.push(item(-1)),
                        _ => items.extend((0..request.tokens.div_ceil(512) as i32).map(item)),
                    }
                }
            }
            first_row += request.rows;
            first_page += self.pages[number].len() as i32;
        }
        // Beams come last: they alone are merged where prompts are whole.
        let first_merge = match runs {
            Runs::BlockEach => 0,
            Runs::OneBlock => {
                let prompts = self.requests.iter().filter(|request| !request.is_beams);
                prompts.map(|request| request.rows).sum()
            }
        };
        let sizes = PassSizes {
            rows: rows as i32,
            head_rows: 0,
            items: items.len() as i32,
            merge_rows: (rows - first_merge) as i32,
            first_merge: first_merge as i32,
        };
        let most_runs = self.requests.iter().map(|r| r.tokens.div_ceil(512)).max().unwrap();
        let visible: Vec<i32> = facts.iter().map(|fact| fact.1 as i32).collect();
        let own_tokens: Vec<i32> = facts.iter().map(|fact| fact.2 as i32).collect();
        let lists = [
            device.put_structs(&[sizes]),
            device.put_structs(&items),
            device.put_structs(&requests),
            device.put(&self.pages.concat()),
            device.put(&visible),
            device.put(&own_tokens),
            device.put(&self.ancestors),
        ];
        let arrays = [&self.queries, &self.keys, &self.values, &self.own];
        let arrays = arrays.map(|array| device.put(array));
        let out = device.empty(rows * self.heads * self.width * 2);
        let sums = device.empty(most_runs * rows * self.heads * self.width * 4);
        let statistics = device.empty(most_runs * rows * self.heads * 8);
        let scale = 1.0 / (self.width as f64).sqrt() * std::f64::consts::LOG2_E;
        let arguments = Attention {
            sizes: lists[0].address(),
            items: lists[1].address(),
            requests: lists[2].address(),
            pages: lists[3].address(),
            visible: lists[4].address(),
            own_tokens: lists[5].address(),
            ancestors: lists[6].address(),
            queries: arrays[0].address(),
            keys: arrays[1].address(),
            values: arrays[2].address(),
            own: arrays[3].address(),
            sums: sums.address(),
            statistics: statistics.address(),
            out: out.address(),
            heads: self.heads as i32,
            key_heads: self.key_heads as i32,
            most_rows: rows as i32,
            scale: scale as f32,
        };
        let (attend, hopper, merge) = match self.width {
            64 => (Kernel::PromptAttention64, Kernel::HopperPromptAttention64, Kernel::MergeOwn64),
            _ => {
                (Kernel::PromptAttention128, Kernel::HopperPromptAttention128, Kernel::MergeOwn128)
            }
        };
        match set {
            Set::Portable => device.run(attend, [grid, 1, 1], &arguments),
            Set::Hopper => {
                let (columns, page_rows) = (self.width as u64, 64);
                let values = self.keys.len() as u64;
                let tiles = |tiles: Tiles| device.driver.tensor_map(&tiles).unwrap();
                let key_tiles = tiles(Tiles {
                    address: arguments.keys,
                    rows: values / columns,
                    columns,
                    box_rows: page_rows,
                });
                let value_tiles = tiles(Tiles {
                    address: arguments.values,
                    rows: values / 64,
                    columns: 64,
                    box_rows: self.width as u32,
                });
                let attention = arguments;
                let arguments = HopperAttention { key_tiles, value_tiles, attention };
                device.run(hopper, [grid, 1, 1], &arguments);
            }
        }
        device.run(merge, [grid, 1, 1], &arguments);
        assert_eq!(device.bank_conflicts(), 0);
        device.get(&out)
    }

    /// Attention of a row's head in f64.
    fn want(&self, row: usize, head: usize) -> Vec<f64> {
        let (request, visible, own) = self.row_facts()[row];
        let (width, key_head) = (self.width, head / (self.heads / self.key_heads));
        let query = &self.queries[(row * self.heads + head) * width..][..width];
        let mut seen: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
        for place in 0..visible {
            let page = self.pages[request][place / 64] as usize;
            let at = (page * self.key_heads + key_head) * 64 * width;
            let key = self.keys[at + place % 64 * width..][..width].iter();
            let value = self.values[at + place % 64..].iter().step_by(64).take(width);
            seen.push((key.map(|&k| to_f64(k)).collect(), value.map(|&v| to_f64(v)).collect()));
        }
        for token in 0..own {
            let slot = self.ancestors[token * self.rows() + row] as usize;
            let at = (slot * 2 * self.key_heads + key_head) * width;
            let of = |at: usize| self.own[at..][..width].iter().map(|&v| to_f64(v)).collect();
            seen.push((of(at), of(at + self.key_heads * width)));
        }
        let score = |key: &[f64]| -> f64 {
            let dot: f64 = query.iter().zip(key).map(|(&query, key)| to_f64(query) * key).sum();
            dot / (width as f64).sqrt()
        };
        let scores: Vec<f64> = seen.iter().map(|(key, _)| score(key)).collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
        let total: f64 = weights.iter().sum();
        let value = |i: usize| -> f64 {
            weights.iter().zip(&seen).map(|(weight, (_, value))| weight / total * value[i]).sum()
        };
        (0..width).map(value).collect()
    }
}

fn prompt(rows: usize, tokens: usize) -> Request {
    Request { rows, tokens, is_beams: false, own: 0 }
}

fn beams(rows: usize, tokens: usize, own: usize) -> Request {
    Request { rows, tokens, is_beams: true, own }
}

#[track_caller]
fn check(case: &Case) {
    let mut first: Option<Vec<u16>> = None;
    for (grid, device) in [3, 1, 2].into_iter().zip(devices(Architecture::Hopper)) {
        for (set, runs) in [
            (Set::Portable, Runs::OneBlock),
            (Set::Portable, Runs::BlockEach),
            (Set::Hopper, Runs::OneBlock),
            (Set::Hopper, Runs::BlockEach),
        ] {
            let got = case.run(&device, set, runs, grid);
            if first.is_none() {
                let rows = 0..case.rows();
                let want = rows.flat_map(|row| (0..case.heads).map(move |head| (row, head)));
                let want: Vec<f64> = want.flat_map(|(row, head)| case.want(row, head)).collect();
                let error = relative_error(got.iter().map(|&value| to_f64(value)), &want);
                assert!(error < 6e-3, "{error}");
            }
            assert!(
                *first.get_or_insert_with(|| got.clone()) == got,
                "{set:?}, {runs:?}: other bits"
            );
        }
    }
}

#[test]
fn prompts_see_what_is_before_them() {
    check(&Case::new(128, 4, 2, &[prompt(70, 70), prompt(3, 130), prompt(1, 1)]));
}

#[test]
fn beams_see_the_prompt_and_their_ancestors() {
    check(&Case::new(128, 4, 2, &[beams(3, 64, 1), beams(65, 65, 2), beams(1, 1, 3)]));
}

#[test]
fn narrow_heads_of_uneven_groups_and_prompts_of_several_runs() {
    // A tile on both sides of a run: its first rows do not see the second at all. The second run of the
    // other prompt has the larger score for many rows.
    check(&Case::new(64, 3, 1, &[prompt(40, 530), prompt(5, 900), beams(7, 600, 1)]));
}

#[test]
fn a_row_is_the_same_without_its_neighbours() {
    let case = Case::new(64, 2, 1, &[prompt(20, 90), beams(30, 70, 2)]);
    let Some(device) = devices(Architecture::Hopper).pop() else { return };
    let all = case.run(&device, Set::Portable, Runs::BlockEach, 2);
    let row_size = case.heads * case.width;

    // The prompt's last 7 rows, in a tile of their own and without the beams.
    let mut part = case.clone();
    part.requests = vec![prompt(7, 90)];
    part.pages.truncate(1);
    part.queries = case.queries[13 * row_size..20 * row_size].to_vec();
    part.ancestors = vec![-1];
    for set in Set::ALL {
        for runs in [Runs::OneBlock, Runs::BlockEach] {
            let got = part.run(&device, set, runs, 1);
            assert!(got == all[13 * row_size..20 * row_size], "{set:?}, {runs:?}");
        }
    }
    // The beams without their first.
    let mut part = case.clone();
    part.requests = vec![beams(29, 70, 2)];
    part.pages.remove(0);
    part.queries = case.queries[21 * row_size..].to_vec();
    part.ancestors = case.ancestors.chunks(50).flat_map(|row| row[21..].to_vec()).collect();
    for set in Set::ALL {
        let got = part.run(&device, set, Runs::BlockEach, 1);
        assert!(got == all[21 * row_size..], "{set:?}");
    }
}

/// Results whose bits are kept, with their names.
pub(crate) fn golden(device: &Device) -> Vec<(String, Vec<u8>)> {
    let cases: [(&str, Case); 3] = [
        ("prompts", Case::new(128, 4, 2, &[prompt(70, 70), prompt(3, 130), prompt(1, 1)])),
        ("beams", Case::new(128, 4, 2, &[beams(3, 64, 1), beams(65, 65, 2), beams(1, 1, 3)])),
        ("runs", Case::new(64, 3, 1, &[prompt(40, 530), prompt(5, 900), beams(7, 600, 1)])),
    ];
    let mut all = Vec::new();
    for set in device.sets() {
        for (name, case) in &cases {
            let out = case.run(device, set, Runs::BlockEach, 2);
            all.push((set.name_of(&format!("attention {name}")), bytes_of(&out)));
        }
    }
    all
}
