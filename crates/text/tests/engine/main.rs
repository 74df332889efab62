//! Texts of an engine against texts that are written alone: to the token the same, whatever is
//! written beside them.

mod beams;
mod draft_model;
mod items;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use palmette_core::{
    AnyConstraint, CommitError, Constraint, RollbackError, TokenId, Unconstrained,
};
use palmette_grammar::GrammarSource;
use palmette_grammar::frontends::json_schema::JsonSchemaOptions;
use palmette_grammar::frontends::regex::RegexOptions;
use palmette_model::Model;
use palmette_testkit::tiny_model;
use palmette_text::engine::{Engine, EngineError, EngineOptions, SubmitError, TextStream, Update};
use palmette_text::{
    Constrained, FinishReason, LengthRule, TextEnd, TextEvent, TextModel, TextModelOptions,
    TextRequest, TextSequence, TextToken, generate,
};
use palmette_vocabulary::{LoadOptions, load_bytes};
use proptest::prelude::*;

const POSITIONS: usize = 400;

/// Pieces of the vocabulary beside characters.
const MORE: &[&str] = &["true", "false", "null", "\": ", "ab", "\n"];

/// A model of made-up weights over printable characters, a few words, and an end token.
fn model() -> TextModel {
    model_with(&TextModelOptions::default())
}

fn model_with(options: &TextModelOptions) -> TextModel {
    let pieces = tiny_model::pieces(MORE);
    model_of(&pieces, tiny_model::model(pieces.len(), POSITIONS), options)
}

fn model_of(pieces: &[String], model: Model, options: &TextModelOptions) -> TextModel {
    let json = serde_json::to_string(pieces).unwrap();
    let vocabulary = load_bytes("characters", json.as_bytes(), &LoadOptions::default()).unwrap();
    TextModel::from_parts("tiny", Arc::new(model), vocabulary, options).unwrap()
}

/// A text, whole.
#[derive(Debug, PartialEq)]
struct Whole {
    text: String,
    tokens: Vec<TextToken>,
    ended: TextEnd,
}

fn alone(model: &TextModel, request: &TextRequest) -> Whole {
    let (mut text, mut tokens) = (String::new(), Vec::new());
    let ended = generate(model, request, &mut |event| {
        if let TextEvent::Text(piece) = event {
            text += &piece.text;
            tokens.extend(piece.tokens);
        }
        ControlFlow::Continue(())
    });
    Whole { text, tokens, ended: ended.unwrap() }
}

fn together(stream: TextStream) -> Result<Whole, EngineError> {
    let (mut text, mut tokens) = (String::new(), Vec::new());
    for update in stream {
        match update {
            Update::Text(piece) => {
                text += &piece.text;
                tokens.extend(piece.tokens);
            }
            Update::Prompt(_) | Update::Missing => {}
            Update::End(ended, _) => return Ok(Whole { text, tokens, ended }),
            Update::Failed(error) => return Err(error),
        }
    }
    unreachable!("the last update is an end or a failure")
}

/// A request of one of several kinds, all different.
fn request(model: &TextModel, kind: usize, prompt: usize, seed: u64) -> TextRequest {
    let words = "a palm leaf and its ribs, ";
    let prompt: String = words.chars().cycle().take(prompt.max(1)).collect();
    let mut request = TextRequest::new(model.encode_text(&prompt).unwrap(), 40);
    request.sampler.temperature = 1.0;
    request.sampler.seed = seed;
    request.logprobs = (seed.is_multiple_of(3)).then_some(2);
    request.length = [LengthRule::Cut, LengthRule::Promised, LengthRule::Gentle][seed as usize % 3];
    let schema = |text: &str| {
        let (text, options) = (text.to_owned(), JsonSchemaOptions::default());
        Constrained::by(&model.compile(&GrammarSource::JsonSchema { text, options }).unwrap())
    };
    match kind {
        0 => request.sampler.temperature = 0.0,
        1 => request.stop = vec!["a".to_owned(), "}".to_owned()],
        2 => {
            let object = r#"{"type": "object", "properties": {"enabled": {"type": "boolean"}, "n": {"type": "null"}},
                "required": ["enabled", "n"], "additionalProperties": false}"#;
            request.constraint = schema(object);
        }
        3 => request.constraint = schema(r#"{"type": "array", "items": {"type": "string"}}"#),
        4 => {
            let (text, options) = ("always the same text".to_owned(), RegexOptions::default());
            let source = GrammarSource::Regex { text, options };
            request.constraint = Constrained::by(&model.compile(&source).unwrap());
        }
        _ => {
            request.min_tokens = 7;
            request.sampler.repetition_penalty = 1.3;
            request.max_tokens = 120;
        }
    }
    request
}

fn options() -> EngineOptions {
    EngineOptions { max_texts: 4, max_tokens: 2000, max_waiting: 100, ..EngineOptions::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Whatever the room: places, pages that force texts to give theirs up, rows for prompts,
    /// threads for masks.
    #[test]
    fn texts_together_are_those_written_alone(
        asked in prop::collection::vec((0_usize..6, 1_usize..200, 0_u64..1000), 1..14),
        max_texts in 1_usize..6, max_tokens in 384_usize..1200, prompt_rows in 1_usize..40, mask_threads in 1_usize..3,
        draft_tokens in 0_usize..10,
    ) {
        let model = model();
        let options =
            EngineOptions { max_texts, max_tokens, prompt_rows, mask_threads, draft_tokens, max_waiting: 100 };
        let engine = Engine::start(model.clone(), options).unwrap();
        let requests: Vec<TextRequest> =
            asked.iter().map(|&(kind, prompt, seed)| request(&model, kind, prompt, seed)).collect();
        let streams: Vec<TextStream> =
            requests.iter().map(|request| engine.submit(request).unwrap()).collect();
        for (request, stream) in requests.iter().zip(streams) {
            prop_assert_eq!(together(stream).unwrap(), alone(&model, request));
        }
        // Ends are told before they are counted.
        wait_until("the last count", || engine.statistics().ended == requests.len() as u64);
        prop_assert_eq!(engine.statistics().waiting, 0);
    }
}

/// Texts that quote take fewer passes by drafts, and are the same.
#[test]
fn drafts_that_come_true_spare_passes() {
    let model = model();
    let quoting = |seed| {
        let mut request = request(&model, 0, 40, seed);
        // The likeliest tokens soon go round, so that what is guessed comes true mostly. No token is
        // forced: how many of these a pass reads depends on when their mask is there.
        request.ignores_ends = true;
        (request.max_tokens, request.min_tokens) = (150, 150);
        request
    };
    let mut passes = Vec::new();
    for draft_tokens in [0, 3, 8] {
        let engine =
            Engine::start(model.clone(), EngineOptions { draft_tokens, ..options() }).unwrap();
        let requests = [1, 2, 3].map(quoting);
        for request in &requests {
            let written = together(engine.submit(request).unwrap()).unwrap();
            assert_eq!(written, alone(&model, request));
        }
        wait_until("the last count", || engine.statistics().ended == 3);
        let counted = engine.statistics();
        assert_eq!(counted.drafted_tokens > 0, draft_tokens > 0, "{counted:?}");
        assert!(counted.draft_hits <= counted.drafted_tokens, "{counted:?}");
        passes.push(counted.passes);
    }
    assert!(passes[2] < passes[0], "{passes:?}");
}

/// Two long texts in pages for one and a half: the younger gives its pages up and is read again.
#[test]
fn texts_that_give_their_pages_up_become_the_same() {
    let model = model();
    let options = EngineOptions { max_texts: 2, max_tokens: 384, ..options() };
    let engine = Engine::start(model.clone(), options).unwrap();
    let requests = [5, 6].map(|seed| {
        let mut request = request(&model, 5, 120, seed);
        (request.max_tokens, request.min_tokens) = (200, 200);
        request.prompt[0] = TokenId(seed as u32);
        request
    });
    let streams = requests.each_ref().map(|request| engine.submit(request).unwrap());
    for (request, stream) in requests.iter().zip(streams) {
        assert_eq!(together(stream).unwrap(), alone(&model, request));
    }
    assert!(engine.statistics().preempted > 0, "{:?}", engine.statistics());
}

/// Answers to one request, and a next turn, read their common beginning once.
#[test]
fn beginnings_are_shared() {
    let model = model();
    let engine = Engine::start(model.clone(), options()).unwrap();
    let requests: Vec<TextRequest> = (0..3).map(|seed| request(&model, 0, 150, seed)).collect();
    let streams: Vec<TextStream> =
        requests.iter().map(|request| engine.submit(request).unwrap()).collect();
    for (request, stream) in requests.iter().zip(streams) {
        assert_eq!(together(stream).unwrap(), alone(&model, request));
    }
    let shared = engine.statistics().shared_tokens;
    assert_eq!(shared, 2 * 128, "two of three begin with the first's whole pages");
    let mut next = request(&model, 1, 190, 9);
    assert_eq!(next.prompt[..150], requests[0].prompt[..]);
    assert_eq!(together(engine.submit(&next).unwrap()).unwrap(), alone(&model, &next));
    assert_eq!(engine.statistics().shared_tokens - shared, 128);
    // Another beginning shares nothing.
    next.prompt[0] = TokenId(50);
    assert_eq!(together(engine.submit(&next).unwrap()).unwrap(), alone(&model, &next));
    assert_eq!(engine.statistics().shared_tokens - shared, 128);
}

/// A text that never ends by itself.
fn endless(model: &TextModel) -> TextRequest {
    let mut request = request(model, 5, 10, 1);
    (request.max_tokens, request.min_tokens) = (300, 300);
    request
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{what} did not come");
}

#[test]
fn texts_that_nobody_wants_make_room() {
    let model = model();
    let options = EngineOptions { max_texts: 1, max_waiting: 2, ..options() };
    let engine = Engine::start(model.clone(), options).unwrap();
    let constraint = Arc::new(Holding::default());
    let mut held = endless(&model);
    held.constraint = Constrained::By(Arc::clone(&constraint) as Arc<dyn AnyConstraint>);
    let first = engine.submit(&held).unwrap();
    wait_until("the first mask", || constraint.asked.load(Ordering::Relaxed) > 0);
    let waits =
        [engine.submit(&endless(&model)).unwrap(), engine.submit(&endless(&model)).unwrap()];
    let full = engine.submit(&endless(&model)).unwrap_err();
    assert_eq!(full, SubmitError::Full { waiting: 2 });
    // One that waits and is not wanted any more holds no place.
    let [gone, kept] = waits;
    drop(gone);
    let last = engine.submit(&request(&model, 0, 3, 0)).unwrap();
    drop((first, kept));
    constraint.goes.store(true, Ordering::Relaxed);
    together(last).unwrap();
    wait_until("the counts", || {
        let statistics = engine.statistics();
        (statistics.cancelled, statistics.writing) == (2, 0)
    });
    assert_eq!((engine.statistics().ended, engine.statistics().refused), (1, 1));
}

/// A text whose mask takes long stands still alone; one whose constraint panics, or exceeds a
/// limit, ends alone.
#[test]
fn texts_do_not_wait_for_each_others_masks_or_end_with_each_other() {
    let model = model();
    let options = EngineOptions { mask_threads: 2, ..options() };
    let engine = Engine::start(model.clone(), options).unwrap();
    let constraint = Arc::new(Holding::default());
    let mut held = request(&model, 5, 10, 4);
    held.constraint = Constrained::By(Arc::clone(&constraint) as Arc<dyn AnyConstraint>);
    let stands = engine.submit(&held).unwrap();
    wait_until("the first mask", || constraint.asked.load(Ordering::Relaxed) > 0);
    let panics = Arc::new(Holding { panics: true, ..Holding::default() });
    let mut broken = request(&model, 5, 10, 4);
    broken.constraint = Constrained::By(panics);
    let broken = engine.submit(&broken).unwrap();
    let other = request(&model, 3, 50, 8);
    let whole = together(engine.submit(&other).unwrap()).unwrap();
    assert_eq!(whole, alone(&model, &other));
    assert!(matches!(together(broken), Err(EngineError::Panicked)));
    constraint.goes.store(true, Ordering::Relaxed);
    let whole = together(stands).unwrap();
    held.constraint = Constrained::By(constraint);
    assert_eq!(whole, alone(&model, &held));
}

/// Sixty kinds of arrays at once, each of strings of which one place from the end is told:
/// exploring takes a million steps.
fn hostile(model: &TextModel) -> TextRequest {
    let item =
        |place: usize| format!(r#"{{"type": "string", "pattern": "^[ab]*a[ab]{{{place}}}$"}}"#);
    let arrays: Vec<String> =
        (0..60).map(|place| format!(r#"{{"type": "array", "items": {}}}"#, item(place))).collect();
    let text = format!(r#"{{"anyOf": [{}]}}"#, arrays.join(", "));
    let source = GrammarSource::JsonSchema { text, options: JsonSchemaOptions::default() };
    let mut request = request(model, 5, 10, 3);
    request.constraint = Constrained::by(&model.compile(&source).unwrap());
    request
}

#[test]
fn a_mask_beyond_its_budget_ends_its_own_text_by_name() {
    // A walk over this vocabulary takes more, too.
    let model = model_with(&TextModelOptions { mask_steps: 100, ..Default::default() });
    let engine = Engine::start(model.clone(), options()).unwrap();
    let refused = engine.submit(&hostile(&model)).unwrap();
    let beside = [request(&model, 4, 20, 1), request(&model, 5, 30, 2)];
    let streams = beside.each_ref().map(|request| engine.submit(request).unwrap());
    let error = together(refused).unwrap_err().to_string();
    assert!(error.contains("budget of 100 steps (mask_steps)"), "{error}");
    for (request, stream) in beside.iter().zip(streams) {
        assert_eq!(together(stream).unwrap(), alone(&model, request));
    }
    let single = generate(&model, &hostile(&model), &mut |_| ControlFlow::Continue(()));
    assert_eq!(single.unwrap_err().to_string(), error);
    // With the usual budget it is a text like others.
    let model = self::model();
    assert!(alone(&model, &hostile(&model)).text.starts_with('['));
}

#[test]
fn a_mask_that_is_called_off_fails() {
    let model = model();
    let mut text = TextSequence::new(&model, &hostile(&model)).unwrap();
    text.is_called_off().store(true, Ordering::Relaxed);
    let error = text.settle(&mut |_| ControlFlow::Continue(())).unwrap_err().to_string();
    assert!(error.contains("cancelled"), "{error}");
}

#[test]
fn what_cannot_be_written_is_refused_at_once() {
    let model = model();
    let options = EngineOptions { max_tokens: 64, ..options() };
    let engine = Engine::start(model.clone(), options).unwrap();
    let too_long = engine.submit(&request(&model, 5, 60, 0)).unwrap_err();
    assert_eq!(too_long, SubmitError::TooLong { tokens: 180, max: 64 });
    let none = TextRequest::new(Vec::new(), 1);
    assert!(matches!(engine.submit(&none), Err(SubmitError::Request(_))));
    let mut stream = engine.submit(&request(&model, 0, 3, 0)).unwrap();
    engine.close();
    assert_eq!(engine.submit(&request(&model, 0, 3, 0)).unwrap_err(), SubmitError::Closed);
    // What was taken is written to its end.
    assert!(stream.by_ref().any(|update| matches!(update, Update::End(..))));
    assert!(stream.next().is_none());
    for options in
        [EngineOptions { max_texts: 0, ..options }, EngineOptions { mask_threads: 0, ..options }]
    {
        let error = Engine::start(model.clone(), options).unwrap_err().to_string();
        assert!(error.contains("is 0"), "{error}");
    }
}

#[test]
fn an_engine_that_ends_says_so_to_those_who_wait() {
    let model = model();
    let engine = Engine::start(model.clone(), options()).unwrap();
    let streams: Vec<TextStream> =
        (0..6).map(|_| engine.submit(&endless(&model)).unwrap()).collect();
    drop(engine);
    for stream in streams {
        match together(stream) {
            Err(EngineError::Closed) => {}
            Ok(whole) => assert_eq!(whole.ended.reason, FinishReason::Length),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Any text of the tiny vocabulary, whose masks wait until they may go, or panic.
#[derive(Debug, Default)]
struct Holding {
    asked: AtomicUsize,
    goes: AtomicBool,
    panics: bool,
}

impl Holding {
    fn any() -> Unconstrained {
        Unconstrained::new(102, 1000)
    }
}

impl Constraint for Holding {
    type State = <Unconstrained as Constraint>::State;
    type Scratch = <Unconstrained as Constraint>::Scratch;
    type Error = <Unconstrained as Constraint>::Error;

    fn num_tokens(&self) -> usize {
        102
    }

    fn start(&self) -> Self::State {
        Self::any().start()
    }

    fn fill_mask(
        &self,
        state: &Self::State,
        scratch: &mut Self::Scratch,
        mask: &mut [u32],
    ) -> Result<(), Self::Error> {
        assert!(!self.panics, "as it was told");
        self.asked.fetch_add(1, Ordering::Relaxed);
        while !self.goes.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Self::any().fill_mask(state, scratch, mask)
    }

    fn successors(
        &self,
        state: &Self::State,
        scratch: &mut Self::Scratch,
        visit: impl FnMut(TokenId, Self::State),
    ) -> Result<(), Self::Error> {
        Self::any().successors(state, scratch, visit)
    }

    fn commit(
        &self,
        state: &mut Self::State,
        token: TokenId,
        scratch: &mut Self::Scratch,
    ) -> Result<(), CommitError<Self::Error>> {
        Self::any().commit(state, token, scratch)
    }

    fn rollback(&self, state: &mut Self::State, num_tokens: usize) -> Result<(), RollbackError> {
        Self::any().rollback(state, num_tokens)
    }

    fn is_accepting(
        &self,
        state: &Self::State,
        scratch: &mut Self::Scratch,
    ) -> Result<bool, Self::Error> {
        Self::any().is_accepting(state, scratch)
    }
}
