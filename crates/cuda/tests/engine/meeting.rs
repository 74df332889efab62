//! Requests that share passes and pages: the bits of each alone.

use std::sync::Arc;

use palmette_core::TokenId;
use palmette_cuda::{Architecture, CudaEngine, DeviceLimits, DeviceWeights};
use palmette_model::{DeviceUse, Engine, Family, ModelConfig, Reading, ReadingShape, SessionError};

use crate::model::{LIMITS, config, emulated_within, limits};
use crate::reading::{bits, tokens};

/// A decoder as small as the kernels compute one.
pub(crate) fn small() -> ModelConfig {
    let mut config = config(Family::Qwen3, 64);
    (config.hidden_size, config.intermediate_size) = (64, 64);
    (config.num_attention_heads, config.num_key_value_heads) = (2, 1);
    config
}

const SHAPE: ReadingShape<'_> =
    ReadingShape { max_prompt_tokens: 640, beams: &[3, 2], width: 3, draft_rows: 0 };

/// Prompts of few beginnings: of one token, around the end of a page, of several pages, of two runs.
fn prompts() -> Vec<Vec<TokenId>> {
    let lengths = [1, 63, 64, 65, 128, 20, 40, 70, 129, 20, 9, 66];
    let of = |at: usize| {
        let len = match at {
            17 | 40 => 530 + at,
            _ => lengths[at * 5 % lengths.len()],
        };
        let mut prompt = tokens(len, at as u32 % 4);
        if len > 130 && at.is_multiple_of(3) {
            prompt[len - 10] = TokenId(at as u32);
        }
        prompt
    };
    (0..64).map(of).collect()
}

const TOKENS: [[u32; 3]; 2] = [[3, 70, 199], [8, 8, 0]];
const PARENTS: [&[u32]; 2] = [&[0, 0, 0], &[2, 0]];

fn begin(reading: &mut dyn Reading, pass: usize) {
    match pass {
        0 => reading.begin_prompt(0..200).unwrap(),
        _ => {
            let parents = PARENTS[pass - 1];
            let tokens = TOKENS[pass - 1].map(TokenId);
            reading.begin_next(parents, &tokens[..parents.len()], 0..200).unwrap();
        }
    }
}

fn used(engine: &CudaEngine) -> DeviceUse {
    engine.device_use().unwrap()
}

/// Logits of a prompt and of two passes of beams.
fn alone(engine: &Arc<CudaEngine>, prompt: &[TokenId]) -> Vec<u32> {
    let mut reading = Arc::clone(engine).open(&SHAPE, 1).unwrap();
    reading.set_prompt(prompt).unwrap();
    let mut all = Vec::new();
    for pass in 0..3 {
        begin(&mut *reading, pass);
        all.extend(bits(reading.logits().unwrap()));
    }
    all
}

/// The same of many at a time: each begins its pass before the first is waited for.
fn together(engine: &Arc<CudaEngine>, prompts: &[Vec<TokenId>]) -> Vec<Vec<u32>> {
    let open = |prompt: &Vec<TokenId>| {
        let mut reading = Arc::clone(engine).open(&SHAPE, 1).unwrap();
        reading.set_prompt(prompt).unwrap();
        reading
    };
    let mut readings: Vec<_> = prompts.iter().map(open).collect();
    let mut all = vec![Vec::new(); prompts.len()];
    for pass in 0..3 {
        readings.iter_mut().for_each(|reading| begin(&mut **reading, pass));
        for (all, reading) in all.iter_mut().zip(&mut readings) {
            all.extend(bits(reading.logits().unwrap()));
        }
    }
    all
}

#[test]
fn requests_have_the_bits_of_each_alone() {
    check_together(DeviceWeights::Bf16, &prompts());
}

/// Requests, 18 of the 64: whole pages in common, and one of two runs.
#[test]
fn requests_in_8_bits_have_the_bits_of_each_alone() {
    check_together(DeviceWeights::Int8, &prompts()[..18]);
}

fn check_together(weights: DeviceWeights, prompts: &[Vec<TokenId>]) {
    let config = small();
    let many = DeviceLimits { requests: 64, memory: Some(400 << 20), ..limits(weights) };
    let few = DeviceLimits { batch_rows: 128, keeps_prefixes: false, ..many.clone() };
    // The second time most pages are there.
    let cases = [("many rows", DeviceLimits { batch_rows: 4096, ..many }, 2), ("few rows", few, 1)];
    let one = DeviceLimits { requests: 1, keeps_prefixes: false, ..limits(weights) };
    let Some(one) = emulated_within(&config, Architecture::Hopper, 1, &one) else { return };
    let want: Vec<Vec<u32>> = prompts.iter().map(|prompt| alone(&one, prompt)).collect();
    let DeviceUse { passes, requests, .. } = used(&one);
    let all = prompts.len() as u64;
    assert_eq!((passes, requests), (3 * all, 3 * all));
    let tokens: usize = prompts.iter().map(Vec::len).sum();
    for (seed, (name, limits, rounds)) in cases.iter().enumerate() {
        let Some(engine) = emulated_within(&config, Architecture::Hopper, seed as u64 + 2, limits)
        else {
            return;
        };
        for round in 0..*rounds {
            let before = used(&engine);
            let got = together(&engine, prompts);
            for (at, (got, want)) in got.iter().zip(&want).enumerate() {
                let prompt = prompts[at].len();
                assert_eq!(got, want, "{name}, round {round}, request {at} of {prompt} tokens");
            }
            let passes = used(&engine).passes - before.passes;
            let fewest = (tokens / limits.batch_rows) as u64;
            assert!(passes < all + fewest, "{name}, round {round}: {passes} passes");
        }
        let DeviceUse { used_pages, found_tokens, prompt_rows, .. } = used(&engine);
        assert_eq!(used_pages, 0);
        let found = found_tokens as usize;
        assert_eq!(found + prompt_rows as usize, rounds * tokens);
        let (least, most) = if limits.keeps_prefixes { (tokens / 2, 2 * tokens) } else { (0, 0) };
        assert!((least..=most).contains(&found), "{name}: {found} of {tokens} twice");
    }
}

/// Threads with requests of their own, some of which end early, while pages are few.
#[test]
fn requests_of_many_threads_have_the_bits_of_each_alone() {
    let config = small();
    let one = DeviceLimits { requests: 1, keeps_prefixes: false, ..LIMITS };
    let Some(one) = emulated_within(&config, Architecture::Ampere, 1, &one) else { return };
    let prompts: Vec<_> = prompts().into_iter().filter(|of| of.len() < 140).take(24).collect();
    let want: Vec<Vec<u32>> = prompts.iter().map(|prompt| alone(&one, prompt)).collect();
    // Room for the pages of four readings and a few more.
    let probe = DeviceLimits { requests: 4, prompt_tokens: Some(640), batch_rows: 128, ..LIMITS };
    let Some(engine) = emulated_within(&config, Architecture::Ampere, 5, &probe) else { return };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (engine, prompts, want) = (&engine, &prompts, &want);
            scope.spawn(move || {
                let mut reading = Arc::clone(engine).open(&SHAPE, 1).unwrap();
                for step in 0..12 {
                    let at = (step * 7 + thread * 5) % prompts.len();
                    reading.set_prompt(&prompts[at]).unwrap();
                    let mut got = Vec::new();
                    // Some stop before their end, or do not wait for what they began.
                    let passes = 1 + (step + thread) % 3;
                    for pass in 0..passes {
                        begin(&mut *reading, pass);
                        if step % 5 != 4 || pass + 1 < passes {
                            got.extend(bits(reading.logits().unwrap()));
                        }
                    }
                    assert_eq!(got, want[at][..got.len()], "request {at}");
                }
            });
        }
    });
    assert_eq!(used(&engine).used_pages, 0);
}

/// A prompt that is not to be kept neither finds pages nor leaves any, and has the same bits.
#[test]
fn prompts_are_not_kept_where_they_are_not_to_be() {
    let limits = DeviceLimits { keeps_prefixes: true, ..LIMITS };
    let Some(engine) = emulated_within(&small(), Architecture::Hopper, 1, &limits) else { return };
    let prompt: Vec<_> = prompts().into_iter().find(|of| of.len() == 129).unwrap();
    let mut reading = Arc::clone(&engine).open(&SHAPE, 1).unwrap();
    let mut read = |keeps| {
        reading.keep_prompts(keeps);
        let known = engine.known_prompt_tokens(&prompt);
        reading.set_prompt(&prompt).unwrap();
        begin(&mut *reading, 0);
        (known, bits(reading.logits().unwrap()), engine.prompt_use().unwrap())
    };
    let [first, second] = [read(false), read(false)];
    assert_eq!((first.0, second.0, second.2.found_tokens, second.2.kept_pages), (0, 0, 0, 3));
    let [kept, found] = [read(true), read(true)];
    assert_eq!((kept.0, kept.2.found_tokens), (0, 0));
    assert_eq!((found.0, found.2.found_tokens), (128, 128));
    assert!([second.1, kept.1, found.1].iter().all(|bits| *bits == first.1));
}

#[test]
fn what_does_not_fit_beside_other_requests_is_an_error_by_name() {
    let config = small();
    let limits = DeviceLimits { requests: 2, prompt_tokens: Some(640), ..LIMITS };
    let Some(engine) = emulated_within(&config, Architecture::Hopper, 1, &limits) else { return };
    let opened = |shape: &ReadingShape<'_>| Arc::clone(&engine).open(shape, 1);
    let long = ReadingShape { max_prompt_tokens: 641, ..SHAPE };
    let error = opened(&long).unwrap_err();
    assert_eq!(error, SessionError::PromptTooLong { tokens: 641, max: 640 });
    let error = opened(&ReadingShape { beams: &[1; 33], ..SHAPE }).unwrap_err();
    assert_eq!(error, SessionError::TooManyPasses { pass: 33, max: 32 });

    let beams = [500; 4];
    let wide = ReadingShape::new(64, &beams, 500);
    let first = opened(&wide).unwrap();
    let second = opened(&wide).unwrap();
    let error = opened(&wide).unwrap_err().to_string();
    assert!(error.starts_with("beams need 2000 slots side by side"), "{error}");
    drop((first, second));
    opened(&wide).unwrap();

    let all = used(&engine).pages as usize;
    let readings: Vec<_> = (0..all / 10).map(|_| opened(&SHAPE).unwrap()).collect();
    let error = opened(&SHAPE).unwrap_err().to_string();
    let left = all % 10;
    let want =
        format!("a prompt needs 10 pages of 64 tokens, and other requests leave {left} of {all}");
    assert!(error.starts_with(&want), "{error}");
    drop(readings);

    let little = DeviceLimits { memory: Some(1 << 20), ..limits };
    let driver = palmette_cuda_emulator::Emulator::new(Architecture::Hopper, 1).unwrap();
    let error = crate::model::upload(Arc::new(driver), &config, &little).unwrap_err().to_string();
    assert!(error.contains("1048576 are free"), "{error}");
    let rows = ["weights", "keys of prompts", "whole searches of catalogs", "none is given yet"];
    assert!(rows.iter().all(|row| error.contains(row)), "{error}");
}
