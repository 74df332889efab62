//! Attention of many beams over one prompt, kept and read in four ways.
//!
//! One layer of random keys and values: 6 query heads, 2 key/value heads of 64 values, the third
//! pass of a search, in which each beam has two tokens of its own. The ways, after xGR (arXiv
//! 2512.11529, sections 3 and 5.2):
//!
//! - `copied`: each beam has keys and values of its own, the prompt's among them;
//! - `paged`: pages of 16 tokens, the prompt's shared, its last one copied for each beam; each beam
//!   reads all its pages;
//! - `tree`: one list of the prompt's tokens and all beams'; a mask
//!   made for the pass says which of them a beam sees;
//! - `staged`: the prompt's keys are read once for all beams, then each beam's own: how
//!   `palmette-model` computes, here by the same products as the others.
//!
//! Products are those of `palmette-train-matmul`, on one thread, so that the ways differ in what is
//! read and written alone. Their outputs are compared. Run with
//!
//! ```text
//! cargo run --release -p palmette-bench --example attention -- [PROMPTS] [BEAMS] [REPEAT]
//! ```
//!
//! Prints a line of JSON for each prompt, width and way: `ms`, the median, and `bytes` of keys and
//! values, and of the mask. `lab/timings/plot_attention.py` draws them.
#![allow(clippy::print_stdout, reason = "a program")]

use std::error::Error;
use std::time::Instant;

use palmette_train_matmul::{MatMut, MatRef, Write, matmul};
use serde_json::json;

const HEADS: usize = 6;
const KEY_HEADS: usize = 2;
/// Query heads of a key head.
const GROUP: usize = HEADS / KEY_HEADS;
const WIDTH: usize = 64;
/// Tokens that each beam has of its own.
const OWN: usize = 2;
const PAGE: usize = 16;

/// Keys and values of a key head, `[tokens, WIDTH]` each.
#[derive(Clone, Default)]
struct Cache {
    keys: Vec<f32>,
    values: Vec<f32>,
}

/// One pass: queries of all beams, the prompt, and the beams' own tokens.
struct Pass {
    beams: usize,
    prompt: usize,
    /// `[beams, GROUP, WIDTH]` of each key head.
    queries: Vec<Vec<f32>>,
    shared: Vec<Cache>,
    /// Own tokens by key head and beam.
    own: Vec<Vec<Cache>>,
    /// `[beams, GROUP, WIDTH]` of each key head.
    out: Vec<Vec<f32>>,
    scores: Vec<f32>,
}

/// Bytes that a way holds between passes.
struct Held {
    keys_and_values: usize,
    mask: usize,
}

impl Cache {
    fn random(tokens: usize, random: &mut u64) -> Self {
        let mut values = || (0..tokens * WIDTH).map(|_| next(random)).collect();
        Self { keys: values(), values: values() }
    }

    fn push(&mut self, other: &Self) {
        self.keys.extend_from_slice(&other.keys);
        self.values.extend_from_slice(&other.values);
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.keys) + size_of_val(&*self.values)
    }

    fn tokens(&self) -> usize {
        self.keys.len() / WIDTH
    }
}

/// A number from −1 to 1.
fn next(state: &mut u64) -> f32 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
}

impl Pass {
    fn random(prompt: usize, beams: usize) -> Self {
        let random = &mut 7;
        let rows = beams * GROUP * WIDTH;
        let of_heads = |random: &mut u64| -> Vec<Vec<f32>> {
            (0..KEY_HEADS).map(|_| (0..rows).map(|_| next(random)).collect()).collect()
        };
        let queries = of_heads(random);
        let shared = (0..KEY_HEADS).map(|_| Cache::random(prompt, random)).collect();
        let mut own = Vec::new();
        for _ in 0..KEY_HEADS {
            own.push((0..beams).map(|_| Cache::random(OWN, random)).collect());
        }
        let scores = vec![0.0; beams * GROUP * (prompt + (beams + 1) * OWN + PAGE)];
        let out = vec![vec![0.0; rows]; KEY_HEADS];
        Self { beams, prompt, queries, shared, own, out, scores }
    }

    /// A cache for each key head and beam.
    fn copies(&self) -> Vec<Vec<Cache>> {
        let of_head = |(shared, own): (&Cache, &Vec<Cache>)| {
            let one = |own: &Cache| {
                let mut all = shared.clone();
                all.push(own);
                all
            };
            own.iter().map(one).collect()
        };
        self.shared.iter().zip(&self.own).map(of_head).collect()
    }

    /// The prompt's whole pages and, for each beam, what is left of it with its own tokens.
    fn pages(&self) -> Vec<(Vec<Cache>, Vec<Cache>)> {
        let whole = self.prompt / PAGE * PAGE * WIDTH;
        let of_head = |(shared, own): (&Cache, &Vec<Cache>)| {
            let page = |at: usize| Cache {
                keys: shared.keys[at * PAGE * WIDTH..][..PAGE * WIDTH].to_vec(),
                values: shared.values[at * PAGE * WIDTH..][..PAGE * WIDTH].to_vec(),
            };
            let one = |own: &Cache| {
                let mut last = Cache {
                    keys: shared.keys[whole..].to_vec(),
                    values: shared.values[whole..].to_vec(),
                };
                last.push(own);
                last
            };
            ((0..self.prompt / PAGE).map(page).collect(), own.iter().map(one).collect())
        };
        self.shared.iter().zip(&self.own).map(of_head).collect()
    }

    /// One list of all tokens: the prompt's, then those of the beams.
    fn tree(&self) -> Vec<Cache> {
        let of_head = |(shared, own): (&Cache, &Vec<Cache>)| {
            let mut all = shared.clone();
            own.iter().for_each(|own| all.push(own));
            all
        };
        self.shared.iter().zip(&self.own).map(of_head).collect()
    }

    /// Rows of beams `first..first + count` over caches that lie one after another.
    fn attend(&mut self, head: usize, (first, count): (usize, usize), parts: &[&Cache]) {
        let rows = count * GROUP;
        let tokens: usize = parts.iter().map(|part| part.tokens()).sum();
        let at = first * GROUP * WIDTH;
        let queries = MatRef::row_major(&self.queries[head][at..], rows, WIDTH);
        let mut place = 0;
        for part in parts {
            let keys = MatRef::row_major(&part.keys, part.tokens(), WIDTH).transposed();
            let scores = MatMut::strided(&mut self.scores[place..], rows, part.tokens(), tokens);
            matmul(scores, Write::Replace, (WIDTH as f32).powf(-0.5), queries, keys, 1);
            place += part.tokens();
        }
        self.scores[..rows * tokens].chunks_exact_mut(tokens).for_each(softmax);
        let out = &mut self.out[head][at..][..rows * WIDTH];
        let (mut place, mut write) = (0, Write::Replace);
        for part in parts {
            let weights = MatRef::strided(&self.scores[place..], rows, part.tokens(), tokens);
            let values = MatRef::row_major(&part.values, part.tokens(), WIDTH);
            matmul(MatMut::row_major(out, rows, WIDTH), write, 1.0, weights, values, 1);
            (place, write) = (place + part.tokens(), Write::Add);
        }
    }

    fn by_copies(&mut self, copies: &[Vec<Cache>]) {
        for (head, copies) in copies.iter().enumerate() {
            for (beam, cache) in copies.iter().enumerate() {
                self.attend(head, (beam, 1), &[cache]);
            }
        }
    }

    fn by_pages(&mut self, pages: &[(Vec<Cache>, Vec<Cache>)]) {
        for (head, (whole, last)) in pages.iter().enumerate() {
            for (beam, last) in last.iter().enumerate() {
                let all: Vec<&Cache> = whole.iter().chain([last]).collect();
                self.attend(head, (beam, 1), &all);
            }
        }
    }

    fn by_tree(&mut self, tree: &[Cache], mask: &mut Vec<f32>) {
        let (rows, tokens) = (self.beams * GROUP, self.prompt + self.beams * OWN);
        // A beam sees the prompt and its own.
        mask.clear();
        for beam in 0..self.beams {
            let own = self.prompt + beam * OWN;
            let sees = |at: usize| at < self.prompt || (own..own + OWN).contains(&at);
            mask.extend((0..tokens).map(|at| if sees(at) { 0.0 } else { f32::NEG_INFINITY }));
        }
        for (head, cache) in tree.iter().enumerate() {
            let queries = MatRef::row_major(&self.queries[head], rows, WIDTH);
            let keys = MatRef::row_major(&cache.keys, tokens, WIDTH).transposed();
            let scores = MatMut::row_major(&mut self.scores[..rows * tokens], rows, tokens);
            matmul(scores, Write::Replace, (WIDTH as f32).powf(-0.5), queries, keys, 1);
            let rows_of = self.scores[..rows * tokens].chunks_exact_mut(tokens);
            for (row, scores) in rows_of.enumerate() {
                let mask = &mask[row / GROUP * tokens..][..tokens];
                scores.iter_mut().zip(mask).for_each(|(score, mask)| *score += mask);
                softmax(scores);
            }
            let weights = MatRef::row_major(&self.scores, rows, tokens);
            let values = MatRef::row_major(&cache.values, tokens, WIDTH);
            let out = MatMut::row_major(&mut self.out[head], rows, WIDTH);
            matmul(out, Write::Replace, 1.0, weights, values, 1);
        }
    }

    fn by_stages(&mut self) {
        let (rows, tokens) = (self.beams * GROUP, self.prompt + OWN);
        for head in 0..KEY_HEADS {
            let shared = &self.shared[head];
            let queries = MatRef::row_major(&self.queries[head], rows, WIDTH);
            let keys = MatRef::row_major(&shared.keys, self.prompt, WIDTH).transposed();
            let scores = MatMut::strided(&mut self.scores, rows, self.prompt, tokens);
            matmul(scores, Write::Replace, (WIDTH as f32).powf(-0.5), queries, keys, 1);
            for row in 0..rows {
                let query = &self.queries[head][row * WIDTH..][..WIDTH];
                let own = &self.own[head][row / GROUP];
                let scores = &mut self.scores[row * tokens..][..tokens];
                for (score, key) in
                    scores[self.prompt..].iter_mut().zip(own.keys.chunks_exact(WIDTH))
                {
                    let product: f32 = query.iter().zip(key).map(|(q, k)| q * k).sum();
                    *score = product * (WIDTH as f32).powf(-0.5);
                }
                softmax(scores);
            }
            let weights = MatRef::strided(&self.scores, rows, self.prompt, tokens);
            let values = MatRef::row_major(&shared.values, self.prompt, WIDTH);
            let out = MatMut::row_major(&mut self.out[head], rows, WIDTH);
            matmul(out, Write::Replace, 1.0, weights, values, 1);
            for row in 0..rows {
                let own = &self.own[head][row / GROUP];
                let weights = &self.scores[row * tokens + self.prompt..][..OWN];
                let out = &mut self.out[head][row * WIDTH..][..WIDTH];
                for (weight, value) in weights.iter().zip(own.values.chunks_exact(WIDTH)) {
                    out.iter_mut().zip(value).for_each(|(out, value)| *out += weight * value);
                }
            }
        }
    }
}

fn softmax(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for score in &mut *scores {
        *score = (*score - most).exp();
        sum += *score;
    }
    scores.iter_mut().for_each(|score| *score /= sum);
}

/// The median time of a way in milliseconds.
fn timed(repeat: usize, mut way: impl FnMut()) -> f64 {
    way();
    let mut times: Vec<f64> = (0..repeat)
        .map(|_| {
            let began = Instant::now();
            way();
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn numbers(text: Option<String>, otherwise: &[usize]) -> Result<Vec<usize>, Box<dyn Error>> {
    let Some(text) = text else { return Ok(otherwise.to_vec()) };
    Ok(text.split(',').map(str::parse).collect::<Result<_, _>>()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let prompts = numbers(arguments.next(), &[64, 256, 512, 1024])?;
    let beams = numbers(arguments.next(), &[1, 8, 32, 128, 256, 512])?;
    let repeat = numbers(arguments.next(), &[9])?[0].max(1);
    for &prompt in &prompts {
        for &beams in &beams {
            if prompt == 0 || beams == 0 {
                return Err("a prompt and a beam have one token at least".into());
            }
            let mut pass = Pass::random(prompt, beams);
            pass.by_stages();
            let staged = pass.out.clone();
            let report = |pass: &Pass, way: &str, ms: f64, held: &Held| {
                let pairs = pass.out.iter().flatten().zip(staged.iter().flatten());
                let apart = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(apart < 1e-4, "{way} differs by {apart}");
                let Held { keys_and_values, mask } = held;
                let line = json!({
                    "prompt": prompt, "beams": beams, "way": way, "ms": ms,
                    "bytes": keys_and_values, "mask_bytes": mask,
                });
                println!("{line}");
            };
            let sum = |caches: &[Cache]| caches.iter().map(Cache::bytes).sum::<usize>();
            let own: usize = pass.own.iter().map(|own| sum(own)).sum();

            let copies = pass.copies();
            let bytes = copies.iter().map(|copies| sum(copies)).sum();
            let ms = timed(repeat, || pass.by_copies(&copies));
            report(&pass, "copied", ms, &Held { keys_and_values: bytes, mask: 0 });
            drop(copies);

            let pages = pass.pages();
            // The page of a beam is whole, whatever is in it.
            let page = 2 * PAGE * WIDTH * size_of::<f32>();
            let of_head = |(whole, last): &(Vec<Cache>, Vec<Cache>)| {
                sum(whole)
                    + last.iter().map(|last| last.tokens().div_ceil(PAGE) * page).sum::<usize>()
            };
            let bytes = pages.iter().map(of_head).sum();
            let ms = timed(repeat, || pass.by_pages(&pages));
            report(&pass, "paged", ms, &Held { keys_and_values: bytes, mask: 0 });
            drop(pages);

            let (tree, mut mask) = (pass.tree(), Vec::new());
            let bytes = sum(&tree);
            let ms = timed(repeat, || pass.by_tree(&tree, &mut mask));
            let mask = size_of_val(&*mask);
            report(&pass, "tree", ms, &Held { keys_and_values: bytes, mask });
            drop(tree);

            let bytes = sum(&pass.shared) + own;
            let ms = timed(repeat, || pass.by_stages());
            report(&pass, "staged", ms, &Held { keys_and_values: bytes, mask: 0 });
        }
    }
    Ok(())
}
