//! Whole recommendations by a model of random weights: its layers' time is that of any weights.

use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::Instant;

use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_cuda::{CudaEngine, DeviceLimits, DeviceWeights, KernelSet};
use palmette_decode::run_on;
use palmette_model::{ModelTensors, SharedEngine};
use palmette_recommend::{
    History, LevelFormat, Mode, Normaliser, PromptFormat, Recommender, Request, Worker,
};

use crate::Check;
use crate::laws::shape;
use crate::model::weights;

const LEVELS: u32 = 3;

/// Sizes of the cells: codes of a level, items, items of a history, beams, requests at a time.
struct Sizes {
    codes: u32,
    items: u32,
    history: u32,
    beams: usize,
    at_once: &'static [usize],
    rounds: usize,
}

impl Sizes {
    fn of(check: &Check) -> Self {
        match check.smallest {
            true => {
                Self { codes: 64, items: 90, history: 3, beams: 4, at_once: &[1, 2], rounds: 1 }
            }
            // A prompt of 1,000 tokens.
            false => Self {
                codes: 8192,
                items: 20_000,
                history: 333,
                beams: 256,
                at_once: &[1, 4, 8],
                rounds: 20,
            },
        }
    }

    fn catalog(&self) -> Result<Catalog, String> {
        let item = |n: u32| {
            let mixed = |by: u32| (n.wrapping_mul(by) >> 9) % self.codes;
            let codes = vec![n % 31, mixed(2_654_435_761), mixed(2_246_822_519)];
            Item { id: format!("i{n}"), codes, attributes: Default::default() }
        };
        let items: Vec<Item> = (0..self.items).map(item).collect();
        let codes_per_level = Some(vec![self.codes; LEVELS as usize]);
        let options = BuildOptions { codes_per_level, ..BuildOptions::default() };
        Catalog::build(items.into(), &options).map_err(|error| error.to_string())
    }

    fn format(&self) -> PromptFormat {
        let level = |level: u32| LevelFormat::run("x", 2 + level * self.codes, self.codes);
        PromptFormat {
            bos_token: Some(1),
            pad_token: Some(0),
            levels: (0..LEVELS).map(level).collect(),
            end_tokens: Vec::new(),
            max_history_items: self.history as usize,
            history_step: None,
            witnesses: Vec::new(),
        }
    }
}

pub(crate) fn measure(check: &Check) -> Result<(), String> {
    let (sizes, mut config) = (Sizes::of(check), shape(check));
    config.vocab_size = config.vocab_size.max((2 + LEVELS * sizes.codes) as usize);
    let tensors = ModelTensors::from_bytes(Path::new("weights"), weights(&config), &config);
    let tensors = tensors.map_err(|error| error.to_string())?;
    let usual = DeviceLimits::default();
    let limits = DeviceLimits {
        batch_rows: if check.smallest { 256 } else { usual.batch_rows },
        requests: sizes.at_once.iter().copied().max().unwrap_or(1),
        beams: usual.beams,
        prompt_tokens: Some((LEVELS * sizes.history + 2) as usize),
        memory: check.smallest.then_some(96 << 20),
        // Each round reads its prompts.
        keeps_prefixes: false,
        weights: DeviceWeights::Bf16,
    };
    let driver = Arc::clone(&check.device.driver);
    let set = KernelSet::of_capability(driver.describe().capability);
    let engine = CudaEngine::with_kernels(driver, config, tensors, None, &limits, set);
    let engine = SharedEngine::from(Arc::new(engine.map_err(|error| error.to_string())?));
    let catalog = Arc::new(sizes.catalog()?);
    let recommender = Recommender::new(engine, catalog, sizes.format());
    let recommender = recommender.map_err(|error| error.to_string())?;
    let recommender = recommender.with_normaliser(Normaliser::Level);
    let recommender = Arc::new(recommender.map_err(|error| error.to_string())?);
    for &at_once in sizes.at_once {
        let mut times = Vec::new();
        let begin = Barrier::new(at_once);
        let of_thread = |thread: usize| -> Result<Vec<f64>, String> {
            let mut worker = Worker::new(Arc::clone(&recommender), 1);
            let (mut times, mut failure) = (Vec::new(), None);
            for round in 0..=sizes.rounds {
                let history: Vec<u64> = (0..sizes.history)
                    .map(|at| {
                        let number = at.wrapping_mul(977) + (thread * 131 + round * 17) as u32;
                        u64::from(number % sizes.items)
                    })
                    .collect();
                let asked = Request {
                    beam_width: sizes.beams,
                    mode: Mode::Beam,
                    ..Request::new(History::Numbers(&history), 10.min(sizes.beams))
                };
                begin.wait();
                let began = Instant::now();
                let answer = worker.recommend(&asked, &mut run_on);
                begin.wait();
                // The others wait for this thread, whatever becomes of its answers.
                failure = failure.or(answer.err().map(|error| error.to_string()));
                // The first one warms up.
                if round > 0 {
                    times.push(began.elapsed().as_secs_f64());
                }
            }
            failure.map_or(Ok(times), Err)
        };
        let of_thread = &of_thread;
        std::thread::scope(|scope| -> Result<(), String> {
            let threads: Vec<_> =
                (0..at_once).map(|thread| scope.spawn(move || of_thread(thread))).collect();
            for thread in threads {
                times.extend(thread.join().map_err(|_| "a thread ended by a panic")??);
            }
            Ok(())
        })?;
        times.sort_by(f64::total_cmp);
        println!(
            "cell      prompt {} W {} b{at_once}: {:.2} ms until the last of them, as a median",
            LEVELS * sizes.history + 1,
            sizes.beams,
            times[times.len() / 2] * 1e3
        );
    }
    Ok(())
}
