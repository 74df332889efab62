//! Draft heads on a device: near the processor's, and bits that depend on the row alone.

use std::path::Path;
use std::sync::Arc;

use palmette_catalog::{BuildOptions, Catalog, Filter, Item};
use palmette_core::TokenId;
use palmette_cuda::{Architecture, CudaEngine, CudaError, DeviceLimits, DeviceWeights, KernelSet};
use palmette_cuda_emulator::Emulator;
use palmette_decode::run_on;
use palmette_model::draft::{
    DraftForm, DraftHead, DraftInput, DraftRun, DraftShape, DraftTensors, DraftTransition,
};
use palmette_model::{
    Engine, Family, ModelConfig, ModelTensors, Reading, ReadingShape, Session, SessionError,
    SessionOptions,
};
use palmette_recommend::{
    Candidates, History, Mode, Recommended, Recommender, Request, Verification, Worker,
};
use serde_json::json;

use crate::meeting::small;
use crate::model::{LIMITS, config, here, weights};
use crate::reading::{bits, relative_error, tokens};
use crate::recommend::format;

/// Levels of different sizes, none of them a multiple of a tile or of a word.
fn shape() -> DraftShape {
    DraftShape { levels: vec![(2, 50), (52, 77), (129, 43)] }
}

fn forms() -> Vec<DraftForm> {
    use DraftInput::{Both, Placeholder, Prompt, State};
    use DraftTransition::{Add, Rnn};
    [(Both, Rnn), (Both, Add), (Placeholder, Rnn), (State, Rnn), (State, Add), (Prompt, Rnn)]
        .map(|(input, transition)| DraftForm { input, transition })
        .to_vec()
}

fn head(config: &ModelConfig, form: DraftForm, shape: DraftShape) -> DraftTensors {
    DraftTensors::random(form, config, shape, 11).expect("a shape of the model")
}

fn upload(
    config: &ModelConfig,
    draft: DraftTensors,
    limits: &DeviceLimits,
    (seed, kernels): (u64, KernelSet),
) -> Option<Result<CudaEngine, CudaError>> {
    let driver = Arc::new(Emulator::new(Architecture::Hopper, seed)?);
    let tensors = ModelTensors::from_bytes(Path::new("weights"), weights(config), config);
    let (tensors, config) = (tensors.expect("sound tensors"), config.clone());
    Some(CudaEngine::with_kernels(driver, config, tensors, Some(draft), limits, kernels))
}

/// The model with a head on an emulated device; none where kernels cannot be emulated.
fn emulated(
    config: &ModelConfig,
    draft: DraftTensors,
    limits: &DeviceLimits,
    seed: u64,
) -> Option<Arc<CudaEngine>> {
    let engine = upload(config, draft, limits, (seed, KernelSet::Hopper))?;
    Some(Arc::new(engine.expect("a model that the kernels compute")))
}

/// Beams of two levels: parents and tokens, some twice, in another order.
fn beams() -> [(Vec<u32>, Vec<TokenId>); 2] {
    let first = [4, 2, 51, 33].map(TokenId);
    let second = [52, 128, 60, 77, 52].map(TokenId);
    [(vec![0; 4], first.to_vec()), (vec![3, 0, 1, 3, 3], second.to_vec())]
}

/// Logits of all levels along the beams.
fn drafted(reading: &mut dyn Reading, prompt: &[TokenId]) -> Vec<f32> {
    reading.set_prompt(prompt).unwrap();
    drafted_again(reading)
}

fn drafted_again(reading: &mut dyn Reading) -> Vec<f32> {
    reading.begin_draft().unwrap();
    let mut all = reading.logits().unwrap().to_vec();
    for (parents, tokens) in beams() {
        reading.next_draft(&parents, &tokens).unwrap();
        all.extend(reading.logits().unwrap());
    }
    all
}

fn open(engine: &Arc<CudaEngine>, prompt: usize, rows: usize) -> Box<dyn Reading> {
    Arc::clone(engine).open(&ReadingShape::of_draft(prompt, rows), 1).unwrap()
}

#[test]
fn logits_are_those_of_the_processor_within_bfloat16() {
    for (form, int8) in forms().into_iter().zip([false, true, false, false, false, false]) {
        let config = config(Family::Qwen3, 64);
        let weights = if int8 { DeviceWeights::Int8 } else { DeviceWeights::Bf16 };
        let limits = DeviceLimits { weights, ..LIMITS };
        let tensors = head(&config, form, shape());
        let model = here(&config);
        let there = Arc::new(DraftHead::new(&tensors, &model));
        let Some(device) = emulated(&config, tensors, &limits, 1) else { return };
        assert_eq!(device.draft_head(), Some(&**there));
        let mut reading = open(&device, 90, 5);
        let options = SessionOptions {
            max_prompt_tokens: 90,
            max_beams: 0,
            max_decode_passes: 0,
            threads: 1,
        };
        let mut session = Session::new(&model, options).unwrap();
        for len in [1, 61, 70] {
            let prompt = tokens(len, len as u32);
            let got = drafted(&mut *reading, &prompt);
            session.set_prompt(&prompt).unwrap();
            let mut run = DraftRun::new(&there, 5, 1);
            let mut want = run.begin(&mut session).unwrap().to_vec();
            for (parents, tokens) in beams() {
                want.extend(run.advance(&parents, &tokens));
            }
            let (error, most) = (relative_error(&got, &want), if int8 { 0.05 } else { 0.02 });
            assert!(error < most, "{form:?}, {len} tokens: {error}");
        }
    }
}

/// Bits by seeds, kernels, the rows of a plan, what was read before, and what is found of a prompt.
#[test]
fn bits_depend_on_the_row_alone() {
    let config = config(Family::Qwen3, 64);
    let tensors = || head(&config, DraftForm::default(), shape());
    // Two of the rows that are read lie in a full page.
    let prompt = tokens(127, 5);
    let Some(device) = emulated(&config, tensors(), &LIMITS, 1) else { return };
    let mut reading = open(&device, 140, 5);
    let want = bits(&drafted(&mut *reading, &prompt));
    assert_eq!(bits(&drafted_again(&mut *reading)), want, "again");
    let found = device.device_use().unwrap().found_tokens;
    assert_eq!(bits(&drafted(&mut *reading, &prompt)), want, "found");
    // Not the page whose last rows are read, though all of it was written.
    assert_eq!(device.device_use().unwrap().found_tokens - found, 64);
    drop(reading);
    for (seed, kernels) in [(2, KernelSet::Portable), (3, KernelSet::Hopper)] {
        let other = upload(&config, tensors(), &LIMITS, (seed, kernels)).unwrap().unwrap();
        let mut reading = open(&Arc::new(other), 300, 600);
        drafted(&mut *reading, &prompt[..40]);
        assert_eq!(bits(&drafted(&mut *reading, &prompt)), want, "{kernels:?}, {seed}");
    }
    // The decoder's logits after a draft are those without one, and the other way round.
    let mut reading = open(&device, 140, 5);
    reading.set_prompt(&prompt).unwrap();
    let alone = bits(reading.prompt_logits().unwrap());
    assert_eq!(bits(&drafted_again(&mut *reading)), want, "after the decoder");
    assert_eq!(bits(reading.prompt_logits().unwrap()), alone, "after a draft");
    let plain = bits(reading.append(&tokens(3, 9)).unwrap());
    reading.set_prompt(&[&prompt[..], &tokens(3, 9)].concat()).unwrap();
    assert_eq!(bits(reading.prompt_logits().unwrap()), plain, "text after a draft");
}

/// Drafts and searches of the decoder share passes, whose parts end between the rows that a head
/// reads.
#[test]
fn requests_have_the_bits_of_each_alone() {
    let config = small();
    let tensors = || head(&config, DraftForm::default(), shape());
    let limits = DeviceLimits { requests: 8, batch_rows: 4096, ..LIMITS };
    let few = DeviceLimits { batch_rows: 128, keeps_prefixes: false, ..limits.clone() };
    let lengths = [1, 63, 126, 127, 190, 254, 20, 127];
    let prompts = lengths.map(|len| tokens(len, len as u32 % 3));
    let Some(one) = emulated(&config, tensors(), &limits, 1) else { return };
    let mut reading = open(&one, 300, 5);
    let want = prompts.each_ref().map(|prompt| bits(&drafted(&mut *reading, prompt)));
    for (seed, limits) in [(2, &limits), (3, &few)] {
        let engine = emulated(&config, tensors(), limits, seed).unwrap();
        let mut readings: Vec<_> = prompts.iter().map(|_| open(&engine, 300, 5)).collect();
        let beside = ReadingShape::new(200, &[3], 3);
        let mut beside = Arc::clone(&engine).open(&beside, 1).unwrap();
        beside.set_prompt(&tokens(150, 4)).unwrap();
        let before = engine.device_use().unwrap().passes;
        for (reading, prompt) in readings.iter_mut().zip(&prompts) {
            reading.set_prompt(prompt).unwrap();
            reading.begin_draft().unwrap();
        }
        beside.begin_prompt(0..200).unwrap();
        let mut got: Vec<Vec<u32>> =
            readings.iter_mut().map(|reading| bits(reading.logits().unwrap())).collect();
        beside.begin_next(&[0, 0, 0], &tokens(3, 2), 0..200).unwrap();
        for (parents, tokens) in beams() {
            for reading in &mut readings {
                reading.next_draft(&parents, &tokens).unwrap();
            }
            for (got, reading) in got.iter_mut().zip(&mut readings) {
                got.extend(bits(reading.logits().unwrap()));
            }
        }
        beside.logits().unwrap();
        for (at, (got, want)) in got.iter().zip(&want).enumerate() {
            assert_eq!(got, want, "{limits:?}, {} tokens", lengths[at]);
        }
        assert!(engine.device_use().unwrap().passes - before <= 14);
    }
}

#[test]
fn what_a_draft_cannot_take_is_an_error_by_name() {
    let config = small();
    let tensors = || head(&config, DraftForm::default(), shape());
    let Some(device) = emulated(&config, tensors(), &LIMITS, 1) else { return };
    let mut reading = open(&device, 20, 4);
    assert_eq!(reading.begin_draft(), Err(SessionError::NoPrompt));
    reading.set_prompt(&tokens(18, 1)).unwrap();
    let long = SessionError::PromptTooLong { tokens: 21, max: 20 };
    assert_eq!(reading.begin_draft(), Err(long));
    reading.set_prompt(&tokens(17, 1)).unwrap();
    reading.begin_draft().unwrap();
    assert_eq!(reading.append(&tokens(1, 1)).unwrap_err(), SessionError::NoPass);
    let many = SessionError::TooManyBeams { beams: 5, max: 4 };
    assert_eq!(reading.next_draft(&[0; 5], &[TokenId(2); 5]), Err(many));
    let parent = SessionError::UnknownParent { parent: 1, rows: 1 };
    assert_eq!(reading.next_draft(&[1], &[TokenId(2)]), Err(parent));
    let error = reading.next_draft(&[0], &[TokenId(52)]).unwrap_err().to_string();
    assert_eq!(error, "token 52 is no code of its level, whose tokens are 2 to 51");
    reading.next_draft(&[0], &[TokenId(2)]).unwrap();
    reading.next_draft(&[0], &[TokenId(52)]).unwrap();
    let passes = SessionError::TooManyPasses { pass: 3, max: 2 };
    assert_eq!(reading.next_draft(&[0], &[TokenId(130)]), Err(passes));
    // A reading without a draft's memory, and an engine without a head.
    let mut plain = Arc::clone(&device).open(&ReadingShape::new(20, &[1], 1), 1).unwrap();
    plain.set_prompt(&tokens(2, 1)).unwrap();
    assert_eq!(plain.begin_draft(), Err(SessionError::NoDraftHere));
    let headless = crate::model::emulated(&config, Architecture::Hopper, 1).unwrap();
    let error = headless.open(&ReadingShape::of_draft(20, 4), 1).unwrap_err();
    assert_eq!(error, SessionError::NoDraftHere);

    let little = DeviceLimits { memory: Some(1 << 20), ..LIMITS };
    let error = upload(&config, tensors(), &little, (1, KernelSet::Portable)).unwrap();
    let error = error.unwrap_err().to_string();
    assert!(
        ["draft head", "drafts, beyond those"].iter().all(|row| error.contains(row)),
        "{error}"
    );
    let mut scaled = config.clone();
    scaled.architecture.embedding_scale = 2.0;
    let error = upload(&scaled, tensors(), &LIMITS, (1, KernelSet::Portable)).unwrap();
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("qwen3 with a draft head (of input both) over"), "{error}");
}

const CODES: u32 = 60;
/// Scores nearer than this may change places: the device computes in bfloat16.
const TOLERANCE: f32 = 0.15;

fn catalog() -> Catalog {
    let item = |n: u32| {
        let codes = vec![n % 11, n * 13 % CODES, n * 29 % CODES];
        let attributes = json!({"stock": n % 5});
        Item { id: format!("i{n}"), codes, attributes: attributes.as_object().unwrap().clone() }
    };
    let codes_per_level = Some(vec![CODES; 3]);
    let options = BuildOptions { codes_per_level, ..BuildOptions::default() };
    Catalog::build((0..300).map(item).collect::<Vec<_>>().into(), &options).expect("sound items")
}

fn before(items: &[Recommended]) -> Vec<u64> {
    let mut numbers: Vec<u64> = items.iter().map(|item| item.number).collect();
    numbers.sort_unstable();
    numbers
}

/// Whole searches on the device, level by level, under boosts and with a verifier.
#[test]
fn items_are_those_of_the_processor_where_scores_are_apart() {
    let config = config(Family::Qwen3, 64);
    let tensors = head(&config, DraftForm::default(), format(CODES).draft_shape().unwrap());
    let model = here(&config);
    let there = DraftHead::new(&tensors, &model);
    let Some(device) = emulated(&config, tensors, &LIMITS, 1) else { return };
    let recommender = |of: Recommender| Worker::new(Arc::new(of), 1);
    let catalog = Arc::new(catalog());
    let here = Recommender::new(model, Arc::clone(&catalog), format(CODES)).unwrap();
    let mut here = recommender(here.with_draft_head(there).unwrap());
    let mut on =
        recommender(Recommender::new(Arc::clone(&device), catalog, format(CODES)).unwrap());
    let stock = Filter::from_value(&json!({"range": {"stock": {"gt": 2}}})).unwrap();
    for (history, verification, items) in [
        (&[3_u64, 77, 204][..], Verification::Masks, Candidates::All),
        (&[9; 25], Verification::Masks, Candidates::Filter(&stock)),
        (&[1], Verification::Keys, Candidates::All),
        (&[1], Verification::None, Candidates::All),
    ] {
        let asked = Request {
            beam_width: 20,
            mode: Mode::Draft(verification),
            items,
            ..Request::new(History::Numbers(history), 6)
        };
        let searches = device.catalog_counts().searches;
        let got = on.recommend(&asked, &mut run_on).unwrap();
        let rows = on.rows_of_passes().to_vec();
        let is_whole = device.catalog_counts().searches > searches;
        assert_eq!(is_whole, verification == Verification::Masks);
        let want = here.recommend(&asked, &mut run_on).unwrap();
        assert_eq!(rows, here.rows_of_passes());
        assert_eq!(got.eligible, want.eligible);
        if verification == Verification::Masks {
            assert_eq!((got.items.len(), want.items.len()), (6, 6));
            let traced = Request { trace: true, ..asked };
            let by_levels = on.recommend(&traced, &mut run_on).unwrap();
            let of = |items: &[Recommended]| -> Vec<u64> {
                items.iter().map(|item| item.number).collect()
            };
            assert_eq!(of(&by_levels.items), of(&got.items), "level by level");
        }
        for (place, (got, want)) in got.items.iter().zip(&want.items).enumerate() {
            assert!((got.score - want.score).abs() < TOLERANCE, "{place}: {got:?}, {want:?}");
        }
        for (place, pair) in want.items.windows(2).enumerate() {
            if pair[0].score - pair[1].score > 2.0 * TOLERANCE {
                let first = [&got.items, &want.items].map(|items| before(&items[..=place]));
                assert_eq!(first[0], first[1], "the first {}", place + 1);
            }
        }
    }
}
