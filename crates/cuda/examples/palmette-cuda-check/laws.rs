//! Laws over whole models: bits of the emulation, of rows alone and among others, of both sets.

use std::path::Path;
use std::sync::Arc;

use palmette_core::TokenId;
use palmette_cuda::{CudaEngine, DeviceLimits, DeviceWeights, Driver, KernelSet};
use palmette_cuda_emulator::Emulator;
use palmette_model::{
    Engine, Family, ModelConfig, ModelTensors, Reading, ReadingShape, SequencesError,
    SequencesOptions, Stretch,
};

use crate::model::{config, here, weights};
use crate::{Check, SEED};

/// Numbers of tokens that are the same everywhere.
fn tokens(len: usize, seed: u32, vocab: usize) -> Vec<TokenId> {
    let mut state = seed.wrapping_mul(7) | 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        TokenId((state >> 8) % vocab as u32)
    };
    (0..len).map(|_| next()).collect()
}

/// The sets of kernels that a device has.
fn sets(driver: &dyn Driver) -> Vec<KernelSet> {
    match KernelSet::of_capability(driver.describe().capability) {
        KernelSet::Portable => vec![KernelSet::Portable],
        KernelSet::Hopper => vec![KernelSet::Portable, KernelSet::Hopper],
    }
}

/// A model whose logits are asked for: its weights, and the columns of them.
struct Case {
    config: ModelConfig,
    weights: Vec<u8>,
    prompts: Vec<Vec<TokenId>>,
    beams: usize,
    limits: DeviceLimits,
}

impl Case {
    fn engine(&self, driver: Arc<dyn Driver>, set: KernelSet) -> Result<Arc<CudaEngine>, String> {
        let bytes = self.weights.clone();
        let tensors = ModelTensors::from_bytes(Path::new("weights"), bytes, &self.config);
        let tensors = tensors.map_err(|error| error.to_string())?;
        let config = self.config.clone();
        let engine = CudaEngine::with_kernels(driver, config, tensors, None, &self.limits, set);
        engine.map(Arc::new).map_err(|error| error.to_string())
    }

    fn shape<'a>(&self, beams: &'a [usize; 1]) -> ReadingShape<'a> {
        let longest = self.prompts.iter().map(Vec::len).max().unwrap_or(1);
        ReadingShape::new(longest, beams, beams[0])
    }

    /// Columns of the logits: as many as a level has.
    fn columns(&self) -> usize {
        self.config.vocab_size.min(512)
    }

    /// Begins the prompt, or the pass of beams after it.
    fn begin(&self, reading: &mut dyn Reading, pass: usize) -> Result<(), String> {
        let columns = 0..self.columns();
        let begun = match pass {
            0 => reading.begin_prompt(columns),
            _ => {
                let next = tokens(self.beams, 3, self.config.vocab_size);
                reading.begin_next(&vec![0; self.beams], &next, columns)
            }
        };
        begun.map_err(|error| error.to_string())
    }

    /// Logits of every prompt and of its beams: so many requests at a time.
    fn logits(&self, engine: &Arc<CudaEngine>, at_once: usize) -> Result<Vec<Vec<u32>>, String> {
        let beams = [self.beams];
        let mut all = Vec::new();
        for prompts in self.prompts.chunks(at_once) {
            let open = |prompt: &Vec<TokenId>| {
                let mut reading = Arc::clone(engine).open(&self.shape(&beams), 1)?;
                reading.set_prompt(prompt)?;
                Ok::<_, palmette_model::SessionError>(reading)
            };
            let readings: Result<Vec<_>, _> = prompts.iter().map(open).collect();
            let mut readings = readings.map_err(|error| error.to_string())?;
            let mut of_chunk = vec![Vec::new(); prompts.len()];
            for pass in 0..2 {
                for reading in &mut readings {
                    self.begin(&mut **reading, pass)?;
                }
                for (bits, reading) in of_chunk.iter_mut().zip(&mut readings) {
                    let logits = reading.logits().map_err(|error| error.to_string())?;
                    bits.extend(logits.iter().map(|logit| logit.to_bits()));
                }
            }
            all.extend(of_chunk);
        }
        Ok(all)
    }

    /// Logits after every prompt as a text has them: all grow side by side, in two parts.
    fn texts(&self, engine: &Arc<CudaEngine>) -> Result<Vec<Vec<u32>>, String> {
        let told = |error: SequencesError| error.to_string();
        let page = SequencesOptions::PAGE_TOKENS;
        let tokens = self.prompts.iter().map(|prompt| prompt.len().next_multiple_of(page)).sum();
        let options = SequencesOptions {
            max_sequences: self.prompts.len(),
            max_tokens: tokens,
            max_rows: tokens,
            threads: 1,
        };
        let mut store = Arc::clone(engine).open_sequences(options).map_err(told)?;
        let ids: Result<Vec<_>, _> = self.prompts.iter().map(|_| store.add()).collect();
        let ids = ids.map_err(told)?;
        for is_end in [false, true] {
            let parts = ids.iter().zip(&self.prompts).map(|(&sequence, prompt)| {
                let (begin, end) = prompt.split_at(prompt.len() / 2);
                let tokens = if is_end { end } else { begin };
                Stretch { sequence, tokens, wants_logits: is_end }
            });
            let parts: Vec<_> = parts.filter(|part| !part.tokens.is_empty()).collect();
            store.pass(&parts).map_err(told)?;
        }
        let bits = |at: usize| {
            let logits = store.logits(at).unwrap_or_default().iter().take(self.columns());
            logits.map(|logit| logit.to_bits()).collect()
        };
        Ok((0..ids.len()).map(bits).collect())
    }
}

/// Number of requests whose bits are equal.
#[track_caller]
fn equal(got: &[Vec<u32>], want: &[Vec<u32>], what: &str) -> Result<usize, String> {
    match got.iter().zip(want).position(|(got, want)| got != want) {
        None => Ok(got.len()),
        Some(at) => {
            let differing = got[at].iter().zip(&want[at]).filter(|(got, want)| got != want);
            Err(format!("{what}: request {at} has {} other logits", differing.count()))
        }
    }
}

/// The small model of the tests: the bits of its emulation, near the processor's.
fn small_model(check: &Check) -> Result<(), String> {
    let config = config(Family::Qwen3, 64);
    let prompts = vec![tokens(70, 1, config.vocab_size), tokens(9, 2, config.vocab_size)];
    let limits = DeviceLimits {
        batch_rows: 700,
        requests: 2,
        beams: 512,
        prompt_tokens: None,
        memory: Some(48 << 20),
        keeps_prefixes: false,
        weights: DeviceWeights::Bf16,
    };
    let case = Case { weights: weights(&config), config, prompts, beams: 5, limits };
    let mut first: Option<Vec<Vec<u32>>> = None;
    for set in sets(&*check.device.driver) {
        let engine = case.engine(Arc::clone(&check.device.driver), set)?;
        let got = case.logits(&engine, 1)?;
        equal(&got, first.get_or_insert_with(|| got.clone()), "sets of kernels")?;
    }
    let got = first.unwrap_or_default();
    let emulation = match (check.is_emulated, Emulator::new(check.architecture, SEED)) {
        (true, _) => "the emulation itself",
        (false, None) => "SKIPPED: the emulation is not built in",
        (false, Some(emulator)) => {
            let engine = case.engine(Arc::new(emulator), KernelSet::Portable)?;
            equal(&got, &case.logits(&engine, 1)?, "small model against its emulation")?;
            "equal bits"
        }
    };
    let mut session = here(&case.config).open(&case.shape(&[case.beams]), 1);
    let session = session.as_mut().map_err(|error| error.to_string())?;
    let (mut largest, columns) = (0.0_f32, 0..case.config.vocab_size);
    for (prompt, got) in case.prompts.iter().zip(&got) {
        let begun = session.set_prompt(prompt).and_then(|()| session.begin_prompt(columns.clone()));
        begun.map_err(|error| error.to_string())?;
        let want = session.logits().map_err(|error| error.to_string())?;
        for (got, want) in got.iter().zip(want) {
            largest = largest.max((f32::from_bits(*got) - want).abs());
        }
    }
    println!("laws      small model: {emulation}; against f32 on the processor at most {largest}");
    if largest.is_nan() || largest > 0.3 {
        return Err(format!("logits are {largest} from the processor's"));
    }
    Ok(())
}

/// The shape of Qwen3-1.7B; a small one where that is too much.
pub(crate) fn shape(check: &Check) -> ModelConfig {
    let mut config = config(Family::Qwen3, 128);
    if !check.smallest {
        config.vocab_size = 151_936;
        (config.hidden_size, config.intermediate_size) = (2048, 6144);
        (config.num_hidden_layers, config.num_attention_heads) = (28, 16);
        config.num_key_value_heads = 8;
    }
    config
}

/// A model of that shape and of random weights.
fn shaped_model(check: &Check) -> Result<(), String> {
    let config = shape(check);
    let (requests, longest) = if check.smallest { (3, 90) } else { (64, 1100) };
    let prompt = |at: usize| tokens(1 + at * 67 % longest, at as u32 % 5, config.vocab_size);
    let prompts = (0..requests).map(prompt).collect();
    let limits = DeviceLimits {
        batch_rows: if check.smallest { 256 } else { 8192 },
        requests,
        beams: 512,
        prompt_tokens: Some(longest + 1),
        memory: check.smallest.then_some(64 << 20),
        keeps_prefixes: false,
        weights: DeviceWeights::Bf16,
    };
    let beams = if check.smallest { 3 } else { 16 };
    let mut case = Case { weights: weights(&config), config, prompts, beams, limits };
    let mut first: Option<Vec<Vec<u32>>> = None;
    let driver = || Arc::clone(&check.device.driver);
    for set in sets(&*check.device.driver) {
        let engine = case.engine(driver(), set)?;
        let alone = case.logits(&engine, 1)?;
        let together = equal(&case.logits(&engine, requests)?, &alone, "among others")?;
        let sets = equal(&alone, first.get_or_insert_with(|| alone.clone()), "sets of kernels")?;
        println!("laws      {set:?}: alone = together {together}, = portable {sets}");
    }
    let want = first.unwrap_or_default();
    case.limits.batch_rows = 128;
    let set = KernelSet::of_capability(check.device.driver.describe().capability);
    let chunks = equal(&case.logits(&case.engine(driver(), set)?, requests)?, &want, "chunks")?;
    (case.limits.batch_rows, case.limits.keeps_prefixes) = (4096, true);
    if check.smallest {
        case.limits.batch_rows = 256;
    }
    let engine = case.engine(driver(), set)?;
    case.logits(&engine, requests)?;
    let hits = equal(&case.logits(&engine, 1)?, &want, "prefixes that were kept")?;
    let columns = case.columns();
    let of_prompts: Vec<Vec<u32>> = want.iter().map(|bits| bits[..columns].to_vec()).collect();
    let texts = equal(&case.texts(&engine)?, &of_prompts, "texts")?;
    println!("laws      chunks {chunks}, prefixes {hits}, texts {texts} of {requests} equal");
    Ok(())
}

pub(crate) fn check(check: &Check) -> Result<(), String> {
    small_model(check)?;
    shaped_model(check)
}
