//! Times a model of made-up weights: reading a prompt, then a token at a time, of one sequence or
//! of beams.
//!
//! ```text
//! cargo run --release -p palmette-model --example speed -- CONFIG FORMAT THREADS PROMPT TOKENS REPEAT [BEAMS COLUMNS]
//! ```
//!
//! CONFIG is a `config.json`, FORMAT one of f32, bf16, int8, int8-bf16, and bf16+int8: a checkpoint
//! stored as bfloat16 under int8. A colon and a name behind int8 take other instructions for it than the
//! fastest, such as `int8:vnni`. With BEAMS each of the TOKENS is a pass over so many beams, of whose logits
//! COLUMNS are computed.
//!
//! Prints one line of JSON: medians over the repetitions, by the clock and, with one thread on
//! Linux, by the processor time, which says more on a machine that does other things beside; the
//! bytes of the weights; and how fast as many threads read memory, which bounds the time of a
//! token: all weights are read for each. `lab/checks/models/speed.py` asks this.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use palmette_core::TokenId;
use palmette_decode::LogitsSource as _;
use palmette_model::kernels::Int8Kernel;
use palmette_model::{Model, ModelConfig, Session, SessionOptions, WeightFormat};
use serde_json::json;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [config, format, numbers @ ..] = &args[..] else { return Err(USAGE.into()) };
    let numbers: Vec<usize> = numbers.iter().map(|n| n.parse()).collect::<Result<_, _>>()?;
    let (threads, prompt, tokens, repeat, beams, columns) = match numbers[..] {
        [threads, prompt, tokens, repeat] => (threads, prompt, tokens, repeat, 0, 0),
        [threads, prompt, tokens, repeat, beams, columns] => {
            (threads, prompt, tokens, repeat, beams, columns)
        }
        _ => return Err(USAGE.into()),
    };
    if prompt == 0 || tokens == 0 || repeat == 0 {
        return Err("at least one token of a prompt, one after it and one repetition".into());
    }
    let (format, kernel) = match format.split_once(':') {
        Some((format, kernel)) => (format, Some(kernel)),
        None => (format.as_str(), None),
    };
    let stored_as_bf16 = format == "bf16+int8";
    let format = match format {
        "f32" => WeightFormat::F32,
        "bf16" => WeightFormat::Bf16,
        "int8" => WeightFormat::Int8,
        "int8-bf16" => WeightFormat::Int8Bf16,
        "bf16+int8" => WeightFormat::Int8,
        other => return Err(format!("{other} is no format of weights; {USAGE}").into()),
    };
    let kernel = match kernel {
        Some(name) => int8_kernel(name)?,
        None => Int8Kernel::here(),
    };
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    let config = ModelConfig::read(Path::new(config))?;
    let vocab = config.vocab_size as u32;
    let mut model = Model::random(config, 1)?;
    if stored_as_bf16 {
        model = model.with_weights(WeightFormat::Bf16);
    }
    let model = Arc::new(model.with_weights(format).with_int8_kernel(kernel));
    let options = SessionOptions {
        max_prompt_tokens: prompt + if beams == 0 { tokens } else { 0 },
        max_beams: beams.max(1),
        max_decode_passes: if beams == 0 { 0 } else { tokens },
        threads,
    };
    let mut session = Session::new(&model, options)?;
    let text: Vec<TokenId> = (0..prompt as u32).map(|n| TokenId(n * 7919 % vocab)).collect();
    let (mut prefill, mut decode) = (Times::default(), Times::default());
    for _ in 0..repeat {
        session.set_prompt(&text)?;
        let start = Moment::now();
        match beams {
            0 => session.prompt_logits()?,
            _ => session.prompt_logits_of(0..columns)?,
        };
        prefill.push(start);
        let start = Moment::now();
        for n in 0..tokens as u32 {
            if beams == 0 {
                session.append(&[TokenId(n * 104_729 % vocab)])?;
                continue;
            }
            let parents: Vec<u32> =
                (0..beams as u32).map(|b| if n == 0 { 0 } else { b / 2 }).collect();
            let next: Vec<TokenId> = (0..beams as u32).map(|b| TokenId(b * 31 % vocab)).collect();
            session.next_logits_of(&parents, &next, 0..columns)?;
        }
        decode.push(start);
    }
    let report = json!({
        "engine": "palmette",
        "weights": args[1],
        "int8_kernel": kernel.name(),
        "threads": threads,
        "parameters": model.num_parameters(),
        "weight_bytes": model.weight_bytes(),
        "prompt": prompt,
        "tokens": tokens,
        "beams": beams,
        "prefill_tokens_per_s": prefill.speed(prompt, threads),
        "decode_tokens_per_s": decode.speed(tokens, threads),
        "read_gb_per_s": read_speed(threads),
    });
    println!("{report}");
    Ok(())
}

const USAGE: &str = "give CONFIG, f32, bf16, int8, int8-bf16 or bf16+int8, and THREADS PROMPT TOKENS REPEAT [BEAMS COLUMNS]";

fn int8_kernel(name: &str) -> Result<Int8Kernel, String> {
    let names: Vec<&str> = Int8Kernel::all_here().map(Int8Kernel::name).collect();
    let found = Int8Kernel::all_here().find(|kernel| kernel.name() == name);
    found.ok_or_else(|| format!("no int8 products by {name} here, only by {}", names.join(", ")))
}

/// The clock and the thread's processor time, in seconds.
struct Moment {
    clock: Instant,
    processor: Option<f64>,
}

impl Moment {
    fn now() -> Self {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
        let nanoseconds = |text: String| text.split(' ').next()?.parse::<f64>().ok();
        Self { clock: Instant::now(), processor: text.and_then(nanoseconds).map(|n| n / 1e9) }
    }
}

#[derive(Default)]
struct Times {
    clock: Vec<f64>,
    processor: Vec<f64>,
}

impl Times {
    fn push(&mut self, start: Moment) {
        let end = Moment::now();
        self.clock.push((end.clock - start.clock).as_secs_f64());
        if let (Some(end), Some(start)) = (end.processor, start.processor) {
            self.processor.push(end - start);
        }
    }

    /// Tokens a second.
    fn speed(&mut self, tokens: usize, threads: usize) -> serde_json::Value {
        let median = |values: &mut Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).map(|seconds| tokens as f64 / seconds)
        };
        let processor = median(&mut self.processor).filter(|_| threads == 1);
        json!({ "clock": median(&mut self.clock), "processor": processor })
    }
}

/// Billions of bytes a second that so many threads read from memory, the best of five.
fn read_speed(threads: usize) -> f64 {
    let block = 64 << 20;
    // Not 0: pages of zeros are one until they are written.
    let blocks: Vec<Vec<u64>> = (1..=threads as u64).map(|n| vec![n; block / 8]).collect();
    let read = || {
        let start = Instant::now();
        rayon::scope(|scope| {
            for block in &blocks {
                scope.spawn(|_| {
                    let sum = |sum: u64, &value: &u64| sum.wrapping_add(value);
                    std::hint::black_box(block.iter().fold(0, sum));
                });
            }
        });
        (threads * block) as f64 / start.elapsed().as_secs_f64() / 1e9
    };
    (0..5).map(|_| read()).fold(0.0, f64::max)
}
