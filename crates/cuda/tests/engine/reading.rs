//! Logits of passes: near the processor's, and bits that depend on nothing but the row.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use palmette_core::TokenId;
use palmette_cuda::{Architecture, CudaEngine, CudaError, DeviceWeights, KernelSet};
use palmette_cuda_emulator::Emulator;
use palmette_decode::{BeamOptions, BeamSearch, Pass, log_sum_exp};
use palmette_model::{Engine, Family, ModelTensors, Reading, ReadingShape, SessionError};
use palmette_testkit::SequenceSet;

use crate::model::{FORMS, LIMITS, config, emulated, emulated_of, here, upload, weights};

/// Tokens of a prompt.
pub(crate) fn tokens(len: usize, seed: u32) -> Vec<TokenId> {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        TokenId((state >> 16) % 200)
    };
    (0..len).map(|_| next()).collect()
}

/// Logits of a prompt and of two passes of beams, one after another.
pub(crate) fn logits(reading: &mut dyn Reading, prompt: &[TokenId]) -> Vec<f32> {
    reading.set_prompt(prompt).unwrap();
    let mut all = reading.prompt_logits().unwrap().to_vec();
    all.extend(reading.next_logits(&[0; 5], &tokens(5, 3)).unwrap());
    all.extend(reading.next_logits(&[4, 0, 0, 2], &tokens(4, 8)).unwrap());
    all
}

pub(crate) const SHAPE: ReadingShape<'_> =
    ReadingShape { max_prompt_tokens: 160, beams: &[6, 5], width: 6, draft_rows: 0 };

pub(crate) fn open(
    engine: &Arc<impl Engine + 'static>,
    shape: &ReadingShape<'_>,
) -> Box<dyn Reading> {
    Arc::clone(engine).open(shape, 1).unwrap()
}

pub(crate) fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Root of the summed squares of the differences, relative to the values.
pub(crate) fn relative_error(got: &[f32], want: &[f32]) -> f64 {
    assert_eq!(got.len(), want.len());
    let sum = |of: &mut dyn Iterator<Item = f64>| of.map(|value| value * value).sum::<f64>();
    let error = sum(&mut got.iter().zip(want).map(|(a, b)| f64::from(*a) - f64::from(*b)));
    (error / sum(&mut want.iter().map(|value| f64::from(*value)))).sqrt()
}

#[test]
fn logits_are_those_of_the_processor_within_bfloat16() {
    let cases = [
        // Keys of two runs, for the beams.
        (Family::Qwen3, 64, Architecture::Hopper, &[1, 63, 70, 560][..]),
        (Family::Qwen2, 64, Architecture::Ampere, &[64]),
        (Family::Llama, 128, Architecture::Hopper, &[77]),
    ];
    for (family, head_dim, architecture, lengths) in cases {
        let config = config(family, head_dim);
        let Some(device) = emulated(&config, architecture, 1) else { return };
        let shape = ReadingShape { max_prompt_tokens: 560, ..SHAPE };
        let (mut there, mut here) = (open(&device, &shape), open(&here(&config), &shape));
        for &len in lengths {
            let prompt = tokens(len, len as u32);
            let (got, want) = (logits(&mut *there, &prompt), logits(&mut *here, &prompt));
            let error = relative_error(&got, &want);
            assert!(error < 0.02, "{family:?} {architecture:?}, {len} tokens: {error}");
        }
        assert_eq!(device.num_parameters(), crate::model::here(&config).num_parameters());
    }
}

/// Of the seed that orders streams and threads, of the plan, of the columns that are asked for, of
/// what a reading read before, and of another reading beside it.
#[test]
fn bits_depend_on_the_row_alone() {
    FORMS.into_iter().for_each(check_rows_alone);
}

fn check_rows_alone(weights: DeviceWeights) {
    let config = config(Family::Qwen3, 64);
    let emulated = |seed| emulated_of(weights, &config, Architecture::Hopper, seed);
    let Some(device) = emulated(1) else { return };
    let prompt = tokens(100, 5);
    let want = bits(&logits(&mut *open(&device, &SHAPE), &prompt));
    for seed in [2, 3] {
        let Some(other) = emulated(seed) else { return };
        assert_eq!(bits(&logits(&mut *open(&other, &SHAPE), &prompt)), want, "seed {seed}");
    }
    let beams = [40, 9, 2];
    let wide = ReadingShape::new(700, &beams, 40);
    let (mut first, mut second) = (open(&device, &wide), open(&device, &SHAPE));
    logits(&mut *first, &tokens(140, 9));
    assert_eq!(bits(&logits(&mut *first, &prompt)), want, "another plan, after another prompt");

    first.set_prompt(&prompt).unwrap();
    second.set_prompt(&tokens(77, 2)).unwrap();
    first.begin_prompt(0..200).unwrap();
    second.begin_prompt(30..170).unwrap();
    let mut got = bits(first.logits().unwrap());
    first.begin_next(&[0; 5], &tokens(5, 3), 0..200).unwrap();
    second.begin_next(&[0; 6], &tokens(6, 1), 0..200).unwrap();
    got.extend(bits(first.logits().unwrap()));
    second.logits().unwrap();
    first.begin_next(&[4, 0, 0, 2], &tokens(4, 8), 0..200).unwrap();
    got.extend(bits(first.logits().unwrap()));
    assert_eq!(got, want, "beside another reading");

    for columns in [0..200, 3..4, 64..192, 130..131] {
        first.begin_prompt(columns.clone()).unwrap();
        assert_eq!(bits(first.logits().unwrap()), want[columns.clone()], "{columns:?}");
        first.begin_next(&[0; 5], &tokens(5, 3), columns.clone()).unwrap();
        let rows = want[200..1200].chunks(200);
        let of_columns: Vec<u32> =
            rows.flat_map(|row| row[columns.clone()].iter().copied()).collect();
        assert_eq!(bits(first.logits().unwrap()), of_columns, "{columns:?}");
    }
}

/// Of heads of both widths, prompts and beams of several runs.
#[test]
fn portable_kernels_and_hoppers_have_the_same_bits() {
    for (family, head_dim) in [(Family::Qwen3, 64), (Family::Llama, 128)] {
        let config = config(family, head_dim);
        let mut first: Option<Vec<u32>> = None;
        for kernels in [KernelSet::Portable, KernelSet::Hopper] {
            let Some(driver) = Emulator::new(Architecture::Hopper, 5) else { return };
            let tensors = ModelTensors::from_bytes(Path::new("weights"), weights(&config), &config);
            let (driver, tensors) = (Arc::new(driver), tensors.unwrap());
            let engine =
                CudaEngine::with_kernels(driver, config.clone(), tensors, None, &LIMITS, kernels);
            let shape = ReadingShape { max_prompt_tokens: 560, ..SHAPE };
            let mut reading = open(&Arc::new(engine.unwrap()), &shape);
            let got = [70, 560].map(|len| bits(&logits(&mut *reading, &tokens(len, 5)))).concat();
            assert!(*first.get_or_insert_with(|| got.clone()) == got, "{kernels:?}");
        }
    }
}

/// A prompt that is read in parts, or grows, gives the bits of one that is read at once.
#[test]
fn parts_of_a_prompt_change_no_bit() {
    FORMS.into_iter().for_each(check_parts);
}

fn check_parts(weights: DeviceWeights) {
    let config = config(Family::Qwen3, 64);
    let Some(device) = emulated_of(weights, &config, Architecture::Hopper, 4) else { return };
    let shape = ReadingShape::new(2300, &[2], 2);
    let prompt = tokens(150, 6);
    let mut reading = open(&device, &shape);
    reading.set_prompt(&prompt).unwrap();
    let want = bits(reading.prompt_logits().unwrap());
    let next = bits(reading.next_logits(&[0, 0], &tokens(2, 4)).unwrap());
    for cut in [1, 63, 64, 90, 149] {
        reading.set_prompt(&prompt[..cut]).unwrap();
        reading.prompt_logits().unwrap();
        let grown = bits(reading.append(&prompt[cut..]).unwrap());
        assert_eq!(grown, want, "after {cut} tokens");
        assert_eq!(bits(reading.next_logits(&[0, 0], &tokens(2, 4)).unwrap()), next);
    }
}

#[test]
fn what_a_reading_cannot_take_is_an_error_by_name() {
    let config = config(Family::Qwen3, 64);
    let Some(device) = emulated(&config, Architecture::Hopper, 1) else { return };
    let mut reading = open(&device, &SHAPE);
    assert_eq!(reading.begin_prompt(0..9), Err(SessionError::NoPrompt));
    assert_eq!(reading.set_prompt(&[]), Err(SessionError::EmptyPrompt));
    let long = SessionError::PromptTooLong { tokens: 161, max: 160 };
    assert_eq!(reading.set_prompt(&tokens(161, 1)), Err(long));
    let unknown = SessionError::UnknownToken { token: TokenId(200), vocab_size: 200 };
    assert_eq!(reading.set_prompt(&[TokenId(200)]), Err(unknown));
    reading.set_prompt(&tokens(9, 1)).unwrap();
    assert!(!reading.has_read_prompt());
    let columns = SessionError::UnknownColumns { start: 9, end: 201, vocab_size: 200 };
    assert_eq!(reading.begin_prompt(9..201), Err(columns));
    reading.begin_prompt(0..200).unwrap();
    assert!(reading.has_read_prompt());
    let parent = SessionError::UnknownParent { parent: 1, rows: 1 };
    assert_eq!(reading.begin_next(&[1], &tokens(1, 1), 0..200), Err(parent));
    let beams = SessionError::TooManyBeams { beams: 7, max: 6 };
    assert_eq!(reading.begin_next(&[0; 7], &tokens(7, 1), 0..200), Err(beams));
    for _ in 0..2 {
        reading.begin_next(&[0], &tokens(1, 1), 0..200).unwrap();
    }
    let passes = SessionError::TooManyPasses { pass: 3, max: 2 };
    assert_eq!(reading.begin_next(&[0], &tokens(1, 1), 0..200), Err(passes));
    let shape = ReadingShape::new(2400, &[1], 1);
    let error = Arc::clone(&device).open(&shape, 1).unwrap_err();
    assert!(matches!(error, SessionError::TooManyPositions { .. }), "{error}");
    let beams = [usize::MAX / 3];
    let shape = ReadingShape::new(10, &beams, 1);
    assert!(device.planned_bytes(&shape, 1).is_err());
}

#[test]
fn models_that_the_kernels_do_not_compute_are_refused_by_name() {
    for (family, head_dim, change, words) in [
        (Family::Gemma3, 64, 0, "gemma3_text with norms after attention"),
        (Family::Qwen3, 32, 0, "qwen3 with heads of width 32"),
        (Family::Qwen3, 64, 32, "`intermediate_size` 160, which is no multiple of 64"),
    ] {
        let mut config = config(family, head_dim);
        config.intermediate_size -= change;
        let Some(driver) = Emulator::new(Architecture::Ampere, 1) else { return };
        let error = upload(Arc::new(driver), &config, &LIMITS).unwrap_err();
        assert!(matches!(error, CudaError::Unsupported { .. } | CudaError::Load(_)), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// What a device chooses is what a sort of its logits chooses, whether kernels or the host do it.
#[test]
fn chosen_extensions_are_those_of_a_sort() {
    let config = config(Family::Qwen3, 64);
    let Some(device) = emulated(&config, Architecture::Hopper, 2) else { return };
    // Sequences of three tokens of 64 columns each, a part of which exists.
    let sequences: Vec<[u32; 3]> =
        (0..700_u32).map(|n| [n % 40, 64 + n * 7 % 64, 128 + n * 31 / 3 % 64]).collect();
    let set = SequenceSet::new(200, sequences);
    for (floor, columns_of) in [
        (f32::NEG_INFINITY, [0..64, 64..128, 128..192]),
        (-9.0, [0..64, 64..128, 128..192]),
        // No whole words of a mask.
        (f32::NEG_INFINITY, [0..61, 64..135, 120..200]),
    ] {
        let mut reading = open(&device, &ReadingShape { beams: &[20, 20], width: 20, ..SHAPE });
        reading.set_prompt(&tokens(30, 3)).unwrap();
        let options = BeamOptions { width: NonZeroUsize::new(20).unwrap(), max_tokens: 3 };
        let mut search = BeamSearch::new(options);
        search.start_above(floor, &set).unwrap();
        let mut best = Vec::new();
        while search.is_live() {
            let step = search.step();
            let columns = columns_of[step.pass.index].clone();
            match step.pass.index {
                0 => reading.begin_prompt(columns.clone()).unwrap(),
                _ => {
                    let Pass { parents, tokens, .. } = step.pass;
                    reading.begin_next(parents, tokens, columns.clone()).unwrap();
                }
            }
            reading.select(&step, &mut best).unwrap();
            let logits = reading.logits().unwrap().to_vec();
            let mut sorted = Vec::new();
            for (row, logits) in logits.chunks(columns.len()).enumerate() {
                let normaliser = log_sum_exp(logits);
                sorted.extend(step.masks.allowed(row).map(|token| {
                    let logit = logits[token.index() - columns.start];
                    (step.pass.scores[row] + (logit - normaliser), row as u32, token)
                }));
            }
            sorted.retain(|of| of.0 >= floor);
            sorted.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
            sorted.truncate(20);
            assert_eq!(best.len(), sorted.len());
            for (got, want) in best.iter().zip(&sorted) {
                assert!((got.score - want.0).abs() < 1e-5, "{got:?}, {want:?}");
                assert_eq!((got.parent, got.token), (want.1, want.2), "{got:?}, {want:?}");
            }
            search.expand(&set, &best).unwrap();
        }
        assert!(search.results().len() > 0);
    }
}
