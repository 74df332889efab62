//! Helpers of the layers' tests: comparisons, and the definitions in plain f64 loops.

use palmette_model::{Architecture, ModelConfig};

/// Two layers, four query heads on two key/value heads.
pub(crate) fn tiny_config(tied: bool) -> ModelConfig {
    ModelConfig {
        vocab_size: 11,
        hidden_size: 6,
        intermediate_size: 7,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: 4,
        max_position_embeddings: 16,
        rms_norm_eps: 1e-5,
        rope_theta: 50.0,
        tie_word_embeddings: tied,
        architecture: Architecture::default(),
    }
}

/// Numbers in [-1, 1), a function of the seed.
pub(crate) fn floats(count: usize, seed: u64) -> Vec<f32> {
    let draw = |i: usize| super::dropout::mix(seed << 32 | i as u64) >> 40;
    (0..count).map(|i| draw(i) as f32 / (1 << 23) as f32 - 1.0).collect()
}

pub(crate) fn to_f64(values: &[f32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}

/// A scalar function of a layer's output, whose gradient is `weights`.
pub(crate) fn weighted_sum(values: &[f64], weights: &[f32]) -> f64 {
    values.iter().zip(weights).map(|(v, &w)| v * f64::from(w)).sum()
}

#[track_caller]
pub(crate) fn assert_close(name: &str, found: &[f32], wanted: &[f64]) {
    assert_eq!(found.len(), wanted.len(), "{name}: lengths");
    let size = wanted.iter().fold(0.0_f64, |size, w| size.max(w.abs()));
    for (i, (&found, &wanted)) in found.iter().zip(wanted).enumerate() {
        let error = (f64::from(found) - wanted).abs();
        assert!(error <= 1e-5 * size.max(1e-3), "{name}[{i}] is {found}, not {wanted}");
    }
}

/// Compares every element of a gradient with central differences of `f`, which is computed in f64:
/// the differences carry about nine digits, so what is measured is the f32 gradient's own error.
#[track_caller]
pub(crate) fn check_gradient(
    name: &str,
    gradient: &[f32],
    x: &[f64],
    mut f: impl FnMut(&[f64]) -> f64,
) {
    const STEP: f64 = 1e-5;
    assert_eq!(gradient.len(), x.len(), "{name}: lengths");
    let mut moved = x.to_vec();
    let mut wanted = Vec::with_capacity(x.len());
    for i in 0..x.len() {
        moved[i] = x[i] + STEP;
        let above = f(&moved);
        moved[i] = x[i] - STEP;
        let below = f(&moved);
        moved[i] = x[i];
        wanted.push((above - below) / (2.0 * STEP));
    }
    let size = wanted.iter().fold(0.0_f64, |size, w| size.max(w.abs()));
    assert!(size > 1e-6, "{name}: a gradient of zeros checks nothing");
    for (i, (&found, &wanted)) in gradient.iter().zip(&wanted).enumerate() {
        let error = (f64::from(found) - wanted).abs();
        let allowed = 1e-3 * wanted.abs() + 2e-5 * size;
        assert!(error <= allowed, "{name}[{i}] is {found}, not {wanted}; the largest is {size}");
    }
}

/// The definitions, executed: f64, one value after another, no buffers shared with the layers.
pub(crate) mod reference {
    use crate::network::attention::Heads;
    use palmette_model::draft::{DraftInput, DraftTransition};

    use crate::network::batch::{BatchView, Branch, NO_TARGET};
    use crate::network::dropout::{Dropout, Site};
    use crate::network::model::Objective;
    use crate::params::Layout;

    pub(crate) fn rms_norm(x: &[f64], w: &[f64], eps: f64) -> Vec<f64> {
        let mut y = Vec::new();
        for row in x.chunks(w.len()) {
            let mean_square = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
            y.extend(row.iter().zip(w).map(|(x, w)| x / (mean_square + eps).sqrt() * w));
        }
        y
    }

    pub(crate) fn rope(head: &[f64], position: usize, theta: f64) -> Vec<f64> {
        let (dim, half) = (head.len(), head.len() / 2);
        let turned = |i: usize| {
            let angle = position as f64 * theta.powf(-2.0 * (i % half) as f64 / dim as f64);
            let rotated_half = if i < half { -head[i + half] } else { head[i - half] };
            head[i] * angle.cos() + rotated_half * angle.sin()
        };
        (0..dim).map(turned).collect()
    }

    pub(crate) fn swiglu(gate_up: &[f64], inner: usize) -> Vec<f64> {
        let mut y = Vec::new();
        for row in gate_up.chunks(2 * inner) {
            y.extend((0..inner).map(|j| row[j] / (1.0 + (-row[j]).exp()) * row[inner + j]));
        }
        y
    }

    pub(crate) fn cross_entropy(logits: &[f64], target: usize, smoothing: f64) -> f64 {
        let log_sum = logits.iter().map(|x| x.exp()).sum::<f64>().ln();
        let share = smoothing / logits.len() as f64;
        let wanted = |i: usize| if i == target { 1.0 - smoothing + share } else { share };
        logits.iter().enumerate().map(|(i, x)| wanted(i) * (log_sum - x)).sum()
    }

    /// Shapes as in the layer; the columns of `projected` that are not values are not looked at.
    pub(crate) fn attention(
        queries_keys: &[f64],
        projected: &[f64],
        heads: Heads,
        batch: BatchView<'_>,
        dropout: Dropout,
        layer: usize,
    ) -> Vec<f64> {
        let Heads { query, key_value, dim } = heads;
        let qk = |row: usize, head: usize| {
            &queries_keys[(row * (query + key_value) + head) * dim..][..dim]
        };
        let value = |row: usize, head: usize| {
            &projected[(row * (query + 2 * key_value) + query + key_value + head) * dim..][..dim]
        };
        let mut y = Vec::new();
        for (sequence, at) in batch.sequences() {
            let stream = dropout.stream(Site::Attention(layer), sequence);
            let length = at.len();
            for i in 0..length {
                for head in 0..query {
                    let group = head * key_value / query;
                    let q = qk(at.start + i, head);
                    let score = |j: usize| {
                        let k = qk(at.start + j, query + group);
                        (q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>() / (dim as f64).sqrt())
                            .exp()
                    };
                    let seen = batch.seen()[at.start + i];
                    let sees = |j: usize| j < seen.prefix as usize || j >= seen.own as usize;
                    let score = |j: usize| if sees(j) { score(j) } else { 0.0 };
                    let scores: Vec<f64> = (0..=i).map(score).collect();
                    let sum: f64 = scores.iter().sum();
                    for c in 0..dim {
                        let term = |j: usize| {
                            let element = (head * length + i) * length + j;
                            let kept = f64::from(stream.factor(element as u32));
                            scores[j] / sum * kept * value(at.start + j, group)[c]
                        };
                        y.push((0..=i).map(term).sum());
                    }
                }
            }
        }
        y
    }

    fn linear(x: &[f64], w: &[f64], inputs: usize) -> Vec<f64> {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        x.chunks(inputs).flat_map(|x| w.chunks(inputs).map(move |w| dot(x, w))).collect()
    }

    /// The mean loss of a batch over `objective.num_targets`.
    pub(crate) fn mean_loss(
        layout: &Layout,
        weights: &[f64],
        batch: BatchView<'_>,
        objective: Objective,
    ) -> f64 {
        let config = layout.config();
        let (width, dim, eps) =
            (config.hidden_size, config.head_dim, f64::from(config.rms_norm_eps));
        let heads = Heads::new(config);
        let get = |name: &str| {
            let tensor = layout.tensors().iter().find(|tensor| tensor.name == name).unwrap();
            &weights[tensor.range()]
        };
        let drop = |values: &mut [f64], site: Site| {
            for (sequence, at) in batch.sequences() {
                let stream = objective.dropout.stream(site, sequence);
                let values = &mut values[at.start * width..at.end * width];
                values
                    .iter_mut()
                    .enumerate()
                    .for_each(|(i, v)| *v *= f64::from(stream.factor(i as u32)));
            }
        };
        let embedding = get("model.embed_tokens.weight");
        let rows = batch.tokens.iter().map(|&token| token as usize);
        let row_of = |token: usize| match token.checked_sub(config.vocab_size) {
            None => embedding[token * width..][..width].to_vec(),
            Some(level) => get("draft.placeholders")[level * width..][..width].to_vec(),
        };
        let mut stream: Vec<f64> = rows.flat_map(row_of).collect();
        drop(&mut stream, Site::Embedding);
        for layer in 0..config.num_hidden_layers {
            let in_layer = |name: &str| get(&format!("model.layers.{layer}.{name}"));
            let get = |name: &str| in_layer(&format!("{name}.weight"));
            let normed = rms_norm(&stream, get("input_layernorm"), eps);
            let projected = |part: &str| {
                let mut rows = linear(&normed, get(&format!("self_attn.{part}_proj")), width);
                if config.architecture.query_key_value_biases {
                    let bias = in_layer(&format!("self_attn.{part}_proj.bias"));
                    let rows = rows.chunks_mut(bias.len());
                    rows.for_each(|row| row.iter_mut().zip(bias).for_each(|(x, b)| *x += b));
                }
                match part != "v" && config.architecture.query_key_norms {
                    true => rms_norm(&rows, get(&format!("self_attn.{part}_norm")), eps),
                    false => rows,
                }
            };
            let [q, k, v] = ["q", "k", "v"].map(projected);
            let (mut queries_keys, mut projected) = (Vec::new(), Vec::new());
            for (_, at) in batch.sequences() {
                for (place, row) in at.enumerate() {
                    let position = batch.seen()[row].position(place);
                    for (x, count) in [(&q, heads.query), (&k, heads.key_value)] {
                        for head in x[row * count * dim..][..count * dim].chunks(dim) {
                            queries_keys.extend(rope(head, position, config.rope_theta));
                        }
                    }
                    projected.extend(vec![f64::NAN; heads.queries_keys_width()]);
                    let value_width = heads.key_value * dim;
                    projected.extend(&v[row * value_width..][..value_width]);
                }
            }
            let attended =
                attention(&queries_keys, &projected, heads, batch, objective.dropout, layer);
            let mut branch = linear(&attended, get("self_attn.o_proj"), heads.output_width());
            drop(&mut branch, Site::AttentionBranch(layer));
            stream.iter_mut().zip(&branch).for_each(|(s, b)| *s += b);
            let normed = rms_norm(&stream, get("post_attention_layernorm"), eps);
            let gate = linear(&normed, get("mlp.gate_proj"), width);
            let up = linear(&normed, get("mlp.up_proj"), width);
            let inner = config.intermediate_size;
            let rows = gate.chunks(inner).zip(up.chunks(inner));
            let gate_up: Vec<f64> = rows.flat_map(|(gate, up)| [gate, up].concat()).collect();
            let mut branch = linear(&swiglu(&gate_up, inner), get("mlp.down_proj"), inner);
            drop(&mut branch, Site::FeedForwardBranch(layer));
            stream.iter_mut().zip(&branch).for_each(|(s, b)| *s += b);
        }
        let normed = rms_norm(&stream, get("model.norm.weight"), eps);
        let head = if config.tie_word_embeddings { embedding } else { get("lm_head.weight") };
        let logits = linear(&normed, head, width);
        let smoothing = f64::from(objective.label_smoothing);
        let with_target = batch.targets.iter().enumerate().filter(|(_, t)| **t != NO_TARGET);
        let losses = with_target.map(|(row, &target)| {
            let row = &logits[row * config.vocab_size..][..config.vocab_size];
            cross_entropy(row, target as usize, smoothing)
        });
        let next_token = losses.sum::<f64>() / objective.num_targets as f64;
        let weighted = f64::from(objective.next_token_weight) * next_token;
        if batch.num_branches() == 0 {
            return weighted;
        }
        let drafted =
            batch.branches().map(|branch| draft_loss(layout, weights, &normed, branch, smoothing));
        weighted + drafted.sum::<f64>() / objective.num_draft_targets as f64
    }

    /// The loss of one branch: equations 1 to 3 and 6 of NEZHA, one level after another.
    fn draft_loss(
        layout: &Layout,
        weights: &[f64],
        normed: &[f64],
        branch: Branch<'_>,
        smoothing: f64,
    ) -> f64 {
        let (draft, width) = (layout.draft.as_ref().unwrap(), layout.config().hidden_size);
        let hidden = |row: usize| &normed[row * width..][..width];
        let get = |level: usize, name: &str| {
            let name = format!("draft.levels.{level}.{name}");
            let tensor = layout.tensors().iter().find(|tensor| tensor.name == name).unwrap();
            &weights[tensor.range()]
        };
        let embedding = &weights[layout.embedding.clone()];
        let mut state = hidden(branch.after).to_vec();
        let mut loss = 0.0;
        for (level, &token) in branch.targets.iter().enumerate() {
            let zeros = vec![0.0; width];
            let (placeholder, known) = match draft.form.input {
                DraftInput::Both => (hidden(branch.placeholders + level), &state),
                DraftInput::Placeholder => (hidden(branch.placeholders + level), &zeros),
                DraftInput::State => (&zeros[..], &state),
                DraftInput::Prompt => (hidden(branch.after), &zeros),
            };
            let x: Vec<f64> = placeholder.iter().zip(known).map(|(h, s)| h + s).collect();
            let logits = linear(&x, get(level, "head.weight"), width);
            let code = token - draft.levels[level].first_token;
            loss += cross_entropy(&logits, code as usize, smoothing);
            let last = level + 1 == branch.targets.len();
            if last || !draft.form.has_state() {
                continue;
            }
            let e = &embedding[token as usize * width..][..width];
            state = match draft.form.transition {
                DraftTransition::Add => state.iter().zip(e).map(|(s, e)| s + e).collect(),
                DraftTransition::Rnn => {
                    let moved = linear(&state, get(level, "transition.state.weight"), width);
                    let chosen = linear(e, get(level, "transition.token.weight"), width);
                    let bias = get(level, "transition.bias");
                    (0..width).map(|i| (moved[i] + chosen[i] + bias[i]).tanh()).collect()
                }
            };
        }
        loss
    }
}
