//! Searches against a second implementation of everything between a history and its items: the
//! Transformer's forward pass in f64, one token after another over all that came before, and a beam
//! that is a sorted list.

use std::collections::HashSet;
use std::sync::Arc;

use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_model::{Architecture, Model, ModelConfig};
use palmette_recommend::{Candidates, LevelFormat, PromptFormat, Recommender, Request};
use serde_json::{Map, Value, json};

use crate::random::Random;
use crate::shop::{recommend, request};

const LEVELS: u32 = 3;
const NUM_CODES: u32 = 9;
const MAX_HISTORY: usize = 4;
/// Scores nearer than this may change places: the fast path computes in f32.
const TOLERANCE: f64 = 2e-4;

/// A number between -1 and 1.
fn number(draw: &mut Random) -> f32 {
    draw.below(1 << 20) as f32 / (1 << 19) as f32 - 1.0
}

/// A matrix or vector by its name in the checkpoint.
struct Tensors(Vec<(String, Vec<usize>, Vec<f32>)>);

impl Tensors {
    fn random(config: &ModelConfig, draw: &mut Random) -> Self {
        let (d, f) = (config.hidden_size, config.intermediate_size);
        let c = config.head_dim;
        let (q, kv) = (config.num_attention_heads * c, config.num_key_value_heads * c);
        let mut shapes = vec![("model.embed_tokens.weight".to_owned(), vec![config.vocab_size, d])];
        for layer in 0..config.num_hidden_layers {
            for (name, shape) in [
                ("input_layernorm", vec![d]),
                ("self_attn.q_proj", vec![q, d]),
                ("self_attn.k_proj", vec![kv, d]),
                ("self_attn.v_proj", vec![kv, d]),
                ("self_attn.o_proj", vec![d, q]),
                ("self_attn.q_norm", vec![c]),
                ("self_attn.k_norm", vec![c]),
                ("post_attention_layernorm", vec![d]),
                ("mlp.gate_proj", vec![f, d]),
                ("mlp.up_proj", vec![f, d]),
                ("mlp.down_proj", vec![d, f]),
            ] {
                shapes.push((format!("model.layers.{layer}.{name}.weight"), shape));
            }
        }
        shapes.push(("model.norm.weight".to_owned(), vec![d]));
        let tensor = |(name, shape): (String, Vec<usize>)| {
            let is_norm = shape.len() == 1;
            let mut value = || if is_norm { 1.0 + 0.3 * number(draw) } else { 0.5 * number(draw) };
            let count: usize = shape.iter().product();
            let values = (0..count).map(|_| value()).collect();
            (name, shape, values)
        };
        Self(shapes.into_iter().map(tensor).collect())
    }

    fn safetensors(&self) -> Vec<u8> {
        let (mut header, mut data) = (Map::new(), Vec::new());
        for (name, shape, values) in &self.0 {
            let start = data.len();
            data.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            let entry =
                json!({"dtype": "F32", "shape": shape, "data_offsets": [start, data.len()]});
            header.insert(name.clone(), entry);
        }
        let mut header = Value::Object(header).to_string().into_bytes();
        header.resize(header.len().next_multiple_of(8), b' ');
        [&(header.len() as u64).to_le_bytes()[..], &header[..], &data[..]].concat()
    }

    fn get(&self, name: &str) -> Vec<f64> {
        let (_, _, values) = self.0.iter().find(|(other, ..)| other == name).expect(name);
        values.iter().map(|&value| f64::from(value)).collect()
    }

    fn layer(&self, layer: usize, name: &str) -> Vec<f64> {
        self.get(&format!("model.layers.{layer}.{name}.weight"))
    }
}

/// `[rows, x.len()]` times `x`.
fn product(matrix: &[f64], x: &[f64]) -> Vec<f64> {
    matrix.chunks(x.len()).map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum()).collect()
}

fn rms_norm(x: &[f64], weight: &[f64], epsilon: f64) -> Vec<f64> {
    let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
    x.iter().zip(weight).map(|(x, w)| x / (mean + epsilon).sqrt() * w).collect()
}

/// Turns the halves of a head by its position.
fn turned(head: &[f64], position: usize, theta: f64) -> Vec<f64> {
    let half = head.len() / 2;
    let mut turned = head.to_vec();
    for i in 0..half {
        let angle = position as f64 * theta.powf(-2.0 * i as f64 / head.len() as f64);
        let (sin, cos) = angle.sin_cos();
        turned[i] = head[i] * cos - head[i + half] * sin;
        turned[i + half] = head[i + half] * cos + head[i] * sin;
    }
    turned
}

/// Log-probabilities of the token after `tokens`, the whole sequence anew.
fn log_probabilities(config: &ModelConfig, tensors: &Tensors, tokens: &[usize]) -> Vec<f64> {
    let (d, c) = (config.hidden_size, config.head_dim);
    let epsilon = f64::from(config.rms_norm_eps);
    let embeddings = tensors.get("model.embed_tokens.weight");
    let mut rows: Vec<Vec<f64>> =
        tokens.iter().map(|token| embeddings[token * d..][..d].to_vec()).collect();
    let group = config.num_attention_heads / config.num_key_value_heads;
    for layer in 0..config.num_hidden_layers {
        let weight = |name: &str| tensors.layer(layer, name);
        let heads = |row: &[f64], position: usize, name: &str, norm: Option<&str>| {
            let row = rms_norm(row, &weight("input_layernorm"), epsilon);
            let all = product(&weight(&format!("self_attn.{name}_proj")), &row);
            let head = |head: &[f64]| match norm {
                Some(norm) => {
                    let head = rms_norm(head, &weight(&format!("self_attn.{norm}_norm")), epsilon);
                    turned(&head, position, config.rope_theta)
                }
                None => head.to_vec(),
            };
            all.chunks(c).map(head).collect::<Vec<Vec<f64>>>()
        };
        let all = |name: &str, norm| -> Vec<Vec<Vec<f64>>> {
            rows.iter().enumerate().map(|(at, row)| heads(row, at, name, norm)).collect()
        };
        let (queries, keys, values) = (all("q", Some("q")), all("k", Some("k")), all("v", None));
        for (at, row) in rows.iter_mut().enumerate() {
            let mut attended = Vec::new();
            for (head, query) in queries[at].iter().enumerate() {
                let of = head / group;
                let dot = |key: &[f64]| query.iter().zip(key).map(|(q, k)| q * k).sum::<f64>();
                let scores: Vec<f64> = keys[..=at]
                    .iter()
                    .map(|key| (dot(&key[of]) / (c as f64).sqrt()).exp())
                    .collect();
                let total: f64 = scores.iter().sum();
                attended.extend((0..c).map(|i| {
                    let weighted =
                        scores.iter().zip(&values).map(|(score, value)| score * value[of][i]);
                    weighted.sum::<f64>() / total
                }));
            }
            let added = product(&weight("self_attn.o_proj"), &attended);
            row.iter_mut().zip(added).for_each(|(x, added)| *x += added);
            let normed = rms_norm(row, &weight("post_attention_layernorm"), epsilon);
            let gate = product(&weight("mlp.gate_proj"), &normed);
            let up = product(&weight("mlp.up_proj"), &normed);
            let inner: Vec<f64> =
                gate.iter().zip(up).map(|(gate, up)| gate / (1.0 + (-gate).exp()) * up).collect();
            let added = product(&weight("mlp.down_proj"), &inner);
            row.iter_mut().zip(added).for_each(|(x, added)| *x += added);
        }
    }
    let last = rms_norm(rows.last().expect("a token"), &tensors.get("model.norm.weight"), epsilon);
    let logits = product(&embeddings, &last);
    let total: f64 = logits.iter().map(|logit| logit.exp()).sum();
    logits.iter().map(|logit| logit - total.ln()).collect()
}

fn token(level: usize, code: u32) -> usize {
    2 + level * NUM_CODES as usize + code as usize
}

/// What a beam search finds over items that are given by their codes: codes and scores, best first.
/// `None` where a choice was so close that rounding may decide it.
fn beam_search(
    config: &ModelConfig,
    tensors: &Tensors,
    prompt: &[usize],
    items: &HashSet<Vec<u32>>,
    width: usize,
) -> Option<Vec<(Vec<u32>, f64)>> {
    let mut beam: Vec<(Vec<u32>, f64)> = vec![(Vec::new(), 0.0)];
    for level in 0..LEVELS as usize {
        let mut extended = Vec::new();
        for (codes, score) in &beam {
            let mut tokens = prompt.to_vec();
            tokens.extend(codes.iter().enumerate().map(|(level, &code)| token(level, code)));
            let next = log_probabilities(config, tensors, &tokens);
            for code in 0..NUM_CODES {
                let longer = [&codes[..], &[code]].concat();
                if items.iter().any(|item| item.starts_with(&longer)) {
                    extended.push((longer, score + next[token(level, code)]));
                }
            }
        }
        extended.sort_by(|a, b| b.1.total_cmp(&a.1));
        if extended.len() > width && extended[width - 1].1 - extended[width].1 < TOLERANCE {
            return None;
        }
        extended.truncate(width);
        beam = extended;
    }
    Some(beam)
}

/// A random model, catalog and recommender.
struct Case {
    config: ModelConfig,
    tensors: Tensors,
    recommender: Arc<Recommender>,
}

impl Case {
    fn new(draw: &mut Random) -> Self {
        let level = |l: u32| LevelFormat::run("x", 2 + l * NUM_CODES, NUM_CODES);
        let format = PromptFormat {
            bos_token: Some(1),
            pad_token: Some(0),
            levels: (0..LEVELS).map(level).collect(),
            end_tokens: Vec::new(),
            max_history_items: MAX_HISTORY,
            history_step: None,
            witnesses: Vec::new(),
        };
        let kv_heads = 1 + draw.below(2) as usize;
        let config = ModelConfig {
            vocab_size: format.vocab_size(),
            hidden_size: 8 + 4 * draw.below(3) as usize,
            intermediate_size: 12 + 4 * draw.below(3) as usize,
            num_hidden_layers: 1 + draw.below(3) as usize,
            num_attention_heads: kv_heads * (1 + draw.below(2) as usize),
            num_key_value_heads: kv_heads,
            head_dim: 4 + 4 * draw.below(2) as usize,
            max_position_embeddings: 32,
            rms_norm_eps: 1e-6,
            rope_theta: 10_000.0,
            tie_word_embeddings: true,
            architecture: Architecture::default(),
        };
        let tensors = Tensors::random(&config, draw);
        let model = Model::from_bytes(config.clone(), tensors.safetensors()).unwrap();
        let mut ids = HashSet::new();
        while ids.len() < 40 {
            ids.insert(
                (0..LEVELS).map(|_| draw.below(NUM_CODES.into()) as u32).collect::<Vec<_>>(),
            );
        }
        let mut ids: Vec<Vec<u32>> = ids.into_iter().collect();
        ids.sort();
        let item = |(n, codes): (usize, Vec<u32>)| Item {
            id: format!("i{n}"),
            codes,
            attributes: Map::new(),
        };
        let items: Vec<Item> = ids.into_iter().enumerate().map(item).collect();
        let codes_per_level = Some(vec![NUM_CODES; LEVELS as usize]);
        let options = BuildOptions { codes_per_level, ..BuildOptions::default() };
        let catalog = Catalog::build(items.into(), &options).unwrap();
        let recommender = Arc::new(Recommender::new(model, Arc::new(catalog), format).unwrap());
        Self { config, tensors, recommender }
    }

    /// One random question, answered both ways; true where the choice was clear.
    fn check(&self, draw: &mut Random) -> bool {
        let view = self.recommender.view().unwrap();
        let catalog = view.view();
        let history: Vec<u64> = (0..draw.below(7)).map(|_| draw.below(40)).collect();
        let may_be: Vec<u64> = match draw.below(3) {
            0 => (0..40).filter(|_| draw.below(3) > 0).collect(),
            _ => (0..40).collect(),
        };
        let include_seen = draw.below(2) == 0;
        let width = [3, 7, 64][draw.below(3) as usize];
        let is_allowed = |item: &&u64| include_seen || !history.contains(item);
        let allowed: HashSet<Vec<u32>> =
            may_be.iter().filter(is_allowed).map(|&item| catalog.codes(item)).collect();
        let mut prompt = vec![1];
        for &item in &history[history.len().saturating_sub(MAX_HISTORY)..] {
            let codes = catalog.codes(item);
            prompt.extend(codes.iter().enumerate().map(|(level, &code)| token(level, code)));
        }
        let found = beam_search(&self.config, &self.tensors, &prompt, &allowed, width);
        let Some(found) = found else { return false };
        let k = width.min(found.len());
        let set = catalog.choose(may_be.iter().copied());
        let asked =
            Request { items: Candidates::Set(&set), include_seen, ..request(&history, k, width) };
        let answer = recommend(&self.recommender, &asked);
        assert_eq!(answer.items.len(), k);
        for (place, item) in answer.items.iter().enumerate() {
            let codes = catalog.codes(item.number);
            let score = f64::from(item.score);
            let want = found.iter().find(|(other, _)| *other == codes);
            let (_, want) = want.unwrap_or_else(|| panic!("{codes:?} is not found by definition"));
            assert!((want - score).abs() < TOLERANCE, "{codes:?}: {score} for {want}");
            // Neighbours in the order may change places where they are that close.
            assert!((found[place].1 - score).abs() < TOLERANCE, "place {place}: {score}");
        }
        true
    }
}

#[test]
fn random_searches_equal_those_of_a_naive_forward_pass() {
    let mut draw = Random(20);
    let mut clear = 0;
    for _ in 0..12 {
        let case = Case::new(&mut draw);
        clear += (0..12).filter(|_| case.check(&mut draw)).count();
    }
    assert!(clear > 120, "{clear} of 144 searches could be compared");
}
