//! Texts by a model on a device: those of the processor where likelihoods are apart, under grammars,
//! and to the token the same whatever is written beside them.

use std::ops::ControlFlow;
use std::sync::Arc;

use palmette_core::TokenId;
use palmette_cuda::{Architecture, CudaEngine, DeviceLimits};
use palmette_cuda_emulator::Emulator;
use palmette_grammar::frontends::gbnf::GbnfOptions;
use palmette_grammar::{BindError, GrammarSource};
use palmette_model::{Engine as _, SharedEngine};
use palmette_testkit::member_sets::NaiveSet;
use palmette_testkit::tiny_model;
use palmette_text::engine::{Engine, EngineError, EngineOptions, TextStream, Update};
use palmette_text::{
    Constrained, ItemSearch, TextEnd, TextEvent, TextModel, TextModelOptions, TextRequest,
    TextToken, generate,
};
use palmette_vocabulary::{LoadOptions, load_bytes};

use crate::meeting::small;
use crate::model::{LIMITS, here, upload};

/// Log-probabilities nearer than this may change places: the device computes in bfloat16.
const TOLERANCE: f32 = 0.2;

fn pieces() -> Vec<String> {
    tiny_model::pieces(&["true", "false", "null", "\": ", "ab", "\n"])
}

/// A model over printable characters, a few words, and an end token.
fn text_model(engine: impl Into<SharedEngine>) -> TextModel {
    let json = serde_json::to_string(&pieces()).unwrap();
    let vocabulary = load_bytes("characters", json.as_bytes(), &LoadOptions::default()).unwrap();
    TextModel::from_parts("tiny", engine, vocabulary, &TextModelOptions::default()).unwrap()
}

/// The model on an emulated device, and on the processor.
struct DevicePair {
    driver: Arc<Emulator>,
    engine: Arc<CudaEngine>,
    there: TextModel,
    here: TextModel,
}

fn both(limits: &DeviceLimits, seed: u64) -> Option<DevicePair> {
    let mut config = small();
    config.vocab_size = pieces().len();
    let Some(driver) = Emulator::new(Architecture::Hopper, seed) else {
        eprintln!("SKIPPED: kernels are emulated on Linux on x86-64, by a C++20 compiler");
        return None;
    };
    let driver = Arc::new(driver);
    let engine = Arc::new(upload(Arc::clone(&driver), &config, limits).unwrap());
    let there = text_model(Arc::clone(&engine));
    Some(DevicePair { driver, engine, there, here: text_model(here(&config)) })
}

const TEXTS: DeviceLimits = DeviceLimits { requests: 8, beams: 0, ..LIMITS };

/// A request of one of several kinds, all different.
fn request(model: &TextModel, kind: usize, prompt: usize, seed: u64) -> TextRequest {
    let words = "a palm leaf and its ribs, ";
    let prompt: String = words.chars().cycle().skip(seed as usize % 2).take(prompt).collect();
    let mut request = TextRequest::new(model.encode_text(&prompt).unwrap(), 24);
    request.sampler.temperature = [0.0, 1.0][seed as usize % 2];
    request.sampler.seed = seed;
    request.logprobs = Some(2);
    match kind {
        0 => {}
        1 => {
            let text =
                r#"root ::= "{\"enabled\": " ("true" | "false") ", \"name\": \"" [a-c]{3,9} "\"}""#;
            let options = GbnfOptions::default();
            let source = GrammarSource::Gbnf { text: text.to_owned(), options };
            request.constraint = Constrained::by(&model.compile(&source).unwrap());
            request.max_tokens = 48;
        }
        _ => {
            let text = r#"root ::= [ab]{0,3} "!" <catalog:shop.codes> "," <catalog:shop.codes>"#;
            let options = GbnfOptions::default();
            let source = GrammarSource::Gbnf { text: text.to_owned(), options };
            let open = model.compile_open(&source, &Default::default()).unwrap();
            let members = (0..40_u32).map(|at| {
                let codes = [20 + at % 5, 3 + at * 7 % 80, 60 + at % 3];
                let spelled = codes.iter().flat_map(|&code| TokenId(code).to_spelling());
                (u64::from(at), spelled.collect::<Vec<u8>>(), Vec::new())
            });
            let set = Arc::new(NaiveSet::spelled(members));
            let bound = open.constraint.bind(|_| Ok::<_, BindError>(Arc::clone(&set) as _));
            request.constraint = Constrained::Grammar(bound.unwrap());
            (request.max_tokens, request.logprobs) = (40, None);
            return request.search_items(ItemSearch { beam_width: 6, alternatives: 3 });
        }
    }
    request
}

/// A text, whole.
#[derive(Debug, PartialEq)]
struct WholeText {
    text: String,
    tokens: Vec<TextToken>,
    ended: TextEnd,
}

fn alone(model: &TextModel, request: &TextRequest) -> WholeText {
    let (mut text, mut tokens) = (String::new(), Vec::new());
    let ended = generate(model, request, &mut |event| {
        if let TextEvent::Text(piece) = event {
            text += &piece.text;
            tokens.extend(piece.tokens);
        }
        ControlFlow::Continue(())
    });
    WholeText { text, tokens, ended: ended.unwrap() }
}

fn together(stream: TextStream) -> Result<WholeText, EngineError> {
    let (mut text, mut tokens) = (String::new(), Vec::new());
    for update in stream {
        match update {
            Update::Text(piece) => {
                text += &piece.text;
                tokens.extend(piece.tokens);
            }
            Update::Prompt(_) | Update::Missing => {}
            Update::End(ended, _) => return Ok(WholeText { text, tokens, ended }),
            Update::Failed(error) => return Err(error),
        }
    }
    unreachable!("the last update is an end or a failure")
}

/// The likeliest texts, token by token, up to the first place at which the processor has two that
/// are nearer than bfloat16's rounding.
#[test]
fn texts_are_those_of_the_processor_where_likelihoods_are_apart() {
    let Some(DevicePair { there, here, .. }) = both(&TEXTS, 1) else { return };
    let mut same = 0;
    for (kind, prompt) in [(0, 1), (0, 70), (0, 130), (1, 9), (1, 64)] {
        let [got, want] =
            [&there, &here].map(|model| alone(model, &request(model, kind, prompt, 2)));
        let apart = got.tokens.iter().zip(&want.tokens).position(|(a, b)| a.token != b.token);
        let compared = apart.unwrap_or(want.tokens.len());
        for (got, want) in got.tokens.iter().zip(&want.tokens).take(compared) {
            let [got, want] = [got, want].map(|of| of.logprobs.as_ref().unwrap().token);
            assert!((got - want).abs() < TOLERANCE, "{got} and {want}");
        }
        if let Some(place) = apart {
            let top = &want.tokens[place].logprobs.as_ref().unwrap().top;
            assert!(top[0].1 - top[1].1 < TOLERANCE, "{kind}, {prompt}: {top:?} at {place}");
        }
        assert!(got.ended.is_complete, "{kind}, {prompt}: {:?}", got.text);
        assert!(kind == 0 || got.text.starts_with(r#"{"enabled": "#), "{:?}", got.text);
        same += compared;
    }
    assert!(same > 30, "{same} tokens");
}

/// Free texts, schemas and searched items at once, in pages that force some to be read again.
#[test]
fn texts_together_are_those_written_alone() {
    let Some(DevicePair { engine, there, .. }) = both(&TEXTS, 2) else { return };
    let asked = [(0, 130), (1, 1), (2, 70), (0, 129), (1, 63), (0, 130)];
    let requests: Vec<TextRequest> = (0..)
        .zip(asked)
        .map(|(seed, (kind, prompt))| request(&there, kind, prompt, seed))
        .collect();
    let want: Vec<WholeText> = requests.iter().map(|request| alone(&there, request)).collect();
    for max_tokens in [384, 2000] {
        let (max_texts, max_waiting) = (3, 100);
        let options =
            EngineOptions { max_texts, max_tokens, max_waiting, ..EngineOptions::default() };
        let texts = Engine::start(there.clone(), options).unwrap();
        let before = engine.device_use().unwrap();
        let streams: Vec<TextStream> =
            requests.iter().map(|request| texts.submit(request).unwrap()).collect();
        for ((stream, want), (kind, prompt)) in streams.into_iter().zip(&want).zip(asked) {
            assert_eq!(&together(stream).unwrap(), want, "{kind}, {prompt}");
        }
        assert_eq!(texts.statistics().preempted > 0, max_tokens < 400, "{:?}", texts.statistics());
        let after = engine.device_use().unwrap();
        let (passes, requests) = (after.passes - before.passes, after.requests - before.requests);
        assert!(passes < requests * 4 / 5, "{passes} passes of {requests} sequences");
    }
    assert_eq!(engine.device_use().unwrap().used_pages, 0);
}

#[test]
fn likelihoods_of_prompts_are_those_of_the_processor() {
    let Some(DevicePair { there, here, .. }) = both(&TEXTS, 3) else { return };
    let [got, want] = [&there, &here].map(|model| {
        let mut request = request(model, 0, 140, 1);
        (request.max_tokens, request.prompt_logprobs) = (1, Some(1));
        let texts = Engine::start(model.clone(), EngineOptions::default()).unwrap();
        let first = texts.submit(&request).unwrap().next();
        let Some(Update::Prompt(found)) = first else { panic!("{first:?}") };
        found
    });
    assert_eq!((got.len(), want.len()), (139, 139));
    for (got, want) in got.iter().zip(&want) {
        assert!((got.token - want.token).abs() < TOLERANCE, "{got:?} and {want:?}");
    }
}

/// A draft model of one side guesses for the model of the other. Its device's failure is none of
/// the texts.
#[test]
fn draft_models_are_of_either_side() {
    let Some(DevicePair { driver, there, here, .. }) = both(&TEXTS, 5) else { return };
    let options = EngineOptions { max_texts: 3, ..EngineOptions::default() };
    let written = |(model, draft_model): (&TextModel, &TextModel), fails: bool| {
        let engine =
            Engine::start_with_draft_model(model.clone(), Some(draft_model.clone()), options)
                .unwrap();
        if fails {
            driver.fail("kernel 7 went out of its memory");
        }
        let requests = [0, 1].map(|kind| request(model, kind, 70, 3));
        for request in &requests {
            let stream = engine.submit(request).unwrap();
            assert_eq!(together(stream).unwrap(), alone(model, request));
        }
        engine.statistics()
    };
    for models in [(&there, &here), (&here, &there)] {
        let counted = written(models, false);
        assert!(counted.draft_passes > 0 && counted.draft_hits > 0, "{counted:?}");
    }
    let counted = written((&here, &there), true);
    assert_eq!(counted.draft_passes, 0, "{counted:?}");
}

/// Texts end by the device's failure, by name, and those that come later too.
#[test]
fn a_device_that_fails_ends_its_texts_by_name() {
    let Some(DevicePair { driver, engine, there, .. }) = both(&TEXTS, 4) else { return };
    let texts = Engine::start(there.clone(), EngineOptions::default()).unwrap();
    let request = request(&there, 0, 70, 1);
    together(texts.submit(&request).unwrap()).unwrap();
    driver.fail("kernel 7 went out of its memory");
    for _ in 0..2 {
        let error = together(texts.submit(&request).unwrap()).unwrap_err();
        assert!(matches!(error, EngineError::Sequences(_)), "{error:?}");
        assert!(error.to_string().contains("kernel 7 went out of its memory"), "{error}");
    }
    assert!(engine.failure().unwrap().contains("kernel 7"));
}
