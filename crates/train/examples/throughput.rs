//! Training speed: tokens and floating-point operations per second of whole steps.
//!
//! The model has 4 layers of width 128 (4 heads of 32, feed-forward 384) over 1026 tokens; a step
//! reads 64 random sequences of 16 to 48 tokens. An operation count of 6 · weights · tokens is
//! used, which leaves attention's products out. Run with `cargo run --release -p palmette-train --example
//! throughput -- [threads] [dropout] [steps]`.
#![allow(clippy::print_stdout)] // A measurement prints its result.

use std::time::Instant;

use palmette_model::{Architecture, ModelConfig};
use palmette_train::{Duration, TrainOptions, Trainer, VecDataset};

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let threads = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let dropout = arguments.next().map_or(Ok(0.1), |text| text.parse())?;
    let steps: u64 = arguments.next().map_or(Ok(50), |text| text.parse())?;
    let config = ModelConfig {
        vocab_size: 1026,
        hidden_size: 128,
        intermediate_size: 384,
        num_hidden_layers: 4,
        num_attention_heads: 4,
        num_key_value_heads: 4,
        head_dim: 32,
        max_position_embeddings: 64,
        rms_norm_eps: 1e-6,
        rope_theta: 10_000.0,
        tie_word_embeddings: true,
        architecture: Architecture::default(),
    };
    let options = TrainOptions {
        duration: Duration::Steps(steps),
        threads,
        dropout,
        ..TrainOptions::default()
    };
    let data = VecDataset::next_token(&sequences(2_000, config.vocab_size as u32));
    let mut trainer = Trainer::new(&config, options, data)?;
    let num_weights = trainer.params().values().len();
    for _ in 0..5 {
        trainer.step()?;
    }
    let (start, mut tokens) = (Instant::now(), 0);
    for _ in 0..steps {
        tokens += trainer.step()?.tokens;
    }
    let seconds = start.elapsed().as_secs_f64();
    let operations = 6.0 * num_weights as f64 * tokens as f64;
    println!(
        "{num_weights} weights, {:.1} ms/step, {:.0} tokens/s, {:.1} GFLOP/s",
        1e3 * seconds / steps as f64,
        tokens as f64 / seconds,
        operations / seconds / 1e9
    );
    Ok(())
}

/// Random tokens in sequences of 17 to 49, of which 16 to 48 are read.
fn sequences(count: usize, vocab: u32) -> Vec<Vec<u32>> {
    let mut state = 1_u64;
    let mut draw = |bound: u32| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % u64::from(bound)) as u32
    };
    (0..count).map(|_| (0..17 + draw(33)).map(|_| draw(vocab)).collect()).collect()
}
