//! Texts with a draft model against texts that are written alone: to the token and the bit the
//! same, whatever it guesses.

use palmette_text::engine::{EngineStatistics, StartError};

use super::items::item_request;
use super::*;

/// A draft model of the model's tokens, with weights of this seed; seed 3 has the model's own.
fn draft_model(seed: u64, positions: usize) -> TextModel {
    let pieces = tiny_model::pieces(MORE);
    model_of(&pieces, tiny_model::seeded(pieces.len(), positions, seed), &Default::default())
}

fn start(draft_model: Option<TextModel>, options: EngineOptions) -> Engine {
    Engine::start_with_draft_model(model(), draft_model, options).unwrap()
}

/// Writes requests side by side, compares them with those written alone, and counts.
#[track_caller]
fn counted(engine: &Engine, requests: &[TextRequest]) -> EngineStatistics {
    let model = model();
    let streams: Vec<TextStream> =
        requests.iter().map(|request| engine.submit(request).unwrap()).collect();
    for (request, stream) in requests.iter().zip(streams) {
        assert_eq!(together(stream).unwrap(), alone(&model, request));
    }
    wait_until("the last count", || engine.statistics().ended == requests.len() as u64);
    let counted = engine.statistics();
    assert!(counted.draft_hits <= counted.drafted_tokens, "{counted:?}");
    counted
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Tokens, words and scores, whatever the draft model guesses: itself, or weights of its own,
    /// as many positions or fewer; pages that make texts give theirs up, items that are searched.
    #[test]
    fn texts_with_a_draft_model_are_those_written_alone(
        asked in prop::collection::vec((0_usize..9, 1_usize..200, 0_u64..1000), 1..12),
        max_texts in 1_usize..6, max_tokens in 448_usize..1200, prompt_rows in 1_usize..40,
        mask_threads in 1_usize..3, draft_tokens in 1_usize..10, seed in 2_u64..5,
        positions in prop::sample::select(vec![POSITIONS, 150, 40]),
    ) {
        let model = model();
        let options =
            EngineOptions { max_texts, max_tokens, prompt_rows, mask_threads, draft_tokens, max_waiting: 100 };
        let engine = start(Some(draft_model(seed, positions)), options);
        let requests: Vec<TextRequest> = asked
            .iter()
            .map(|&(kind, prompt, seed)| match kind {
                6 => item_request(&model, &"a palm leaf ".repeat(1 + prompt / 12), seed),
                7 => free(&model, prompt, seed),
                8 => choices(&model, prompt, seed),
                kind => request(&model, kind, prompt, seed),
            })
            .collect();
        counted(&engine, &requests);
    }
}

/// A text of the likeliest tokens that goes to its end, with scores.
fn free(model: &TextModel, prompt: usize, seed: u64) -> TextRequest {
    let mut request = request(model, 0, prompt, seed);
    (request.max_tokens, request.ignores_ends) = (150, true);
    (request.logprobs, request.length) = (Some(1), LengthRule::Cut);
    request.prompt.insert(0, TokenId(seed as u32 % 90));
    request
}

/// A text of thirty choices among three characters each, no character at two of them: there is
/// nothing to look up.
fn choices(model: &TextModel, prompt: usize, seed: u64) -> TextRequest {
    let characters: Vec<u8> = (33..127).collect();
    let three =
        |three: &[u8]| format!("[\\x{:02x}\\x{:02x}\\x{:02x}]", three[0], three[1], three[2]);
    let text: String = characters.chunks_exact(3).take(30).map(three).collect();
    let options = RegexOptions::default();
    let mut asked = free(model, prompt, seed);
    asked.constraint =
        Constrained::by(&model.compile(&GrammarSource::Regex { text, options }).unwrap());
    asked.ignores_ends = false;
    asked
}

/// The model as its own draft model guesses what comes: few passes are left, for one text and for
/// several.
#[test]
fn a_draft_model_that_guesses_right_spares_passes() {
    let model = model();
    let options = EngineOptions { prompt_rows: 400, ..options() };
    for count in [1, 4] {
        let requests: Vec<TextRequest> =
            (0..count).map(|seed| choices(&model, 5 + 40 * seed, seed as u64)).collect();
        let without = counted(&start(None, options), &requests);
        let with = counted(&start(Some(draft_model(3, POSITIONS)), options), &requests);
        assert!(3 * with.passes < 2 * without.passes, "{} of {}", with.passes, without.passes);
        // But for what was looked up in vain, all guesses come true.
        let in_vain = without.drafted_tokens - without.draft_hits;
        assert!(with.drafted_tokens - with.draft_hits <= in_vain, "{with:?} {without:?}");
        assert!(with.draft_passes > 0 && with.draft_seconds > 0.0, "{with:?}");
        assert_eq!((without.draft_passes, without.draft_seconds), (0, 0.0));
    }
}

/// Drawn texts take fewer passes as well, where the likeliest token is mostly the one that is
/// drawn.
#[test]
fn drawn_texts_take_fewer_passes_too() {
    let model = model();
    let requests = [1, 2, 3].map(|seed| {
        let mut asked = choices(&model, 30, seed);
        (asked.sampler.temperature, asked.sampler.seed) = (0.3, seed);
        asked
    });
    let without = counted(&start(None, options()), &requests);
    let with = counted(&start(Some(draft_model(3, POSITIONS)), options()), &requests);
    assert!(with.passes < without.passes, "{} of {}", with.passes, without.passes);
    assert!(with.draft_hits > 0, "{with:?}");
}

/// Guesses of other weights come true seldom, and pause.
#[test]
fn a_draft_model_that_guesses_wrong_is_asked_seldom() {
    let model = model();
    let requests = [1, 2].map(|seed| choices(&model, 30, seed));
    let right = counted(&start(Some(draft_model(3, POSITIONS)), options()), &requests);
    let wrong = counted(&start(Some(draft_model(4, POSITIONS)), options()), &requests);
    assert!(wrong.drafted_tokens > 0 && wrong.draft_hits < wrong.drafted_tokens, "{wrong:?}");
    assert!(wrong.draft_hits < right.draft_hits, "{wrong:?} {right:?}");
    assert!(wrong.passes > right.passes, "{} and {}", wrong.passes, right.passes);
}

/// A draft model of fewer positions guesses as far as these go.
#[test]
fn texts_grow_longer_than_a_draft_model_reads() {
    let model = model();
    let requests = [choices(&model, 59, 1)];
    let passes = [None, Some(75), Some(POSITIONS)].map(|positions| {
        let draft_model = positions.map(|positions| draft_model(3, positions));
        counted(&start(draft_model, options()), &requests).passes
    });
    assert!(passes[2] < passes[1] && passes[1] < passes[0], "{passes:?}");
}

/// Memory of both is planned, and told.
#[test]
fn a_draft_model_s_memory_is_planned() {
    let (without, with) = (start(None, options()), start(Some(draft_model(4, 150)), options()));
    assert!(with.planned_bytes() > without.planned_bytes());
    assert_eq!(with.max_positions(), without.max_positions());
    assert!(without.draft_model().is_none());
    assert_eq!(with.draft_model().map(TextModel::name), Some("tiny"));
}

#[test]
fn draft_models_that_cannot_be_are_refused_by_name() {
    let refused = |pieces: &[String], options| {
        let other = model_of(pieces, tiny_model::seeded(pieces.len(), 50, 3), &Default::default());
        Engine::start_with_draft_model(model(), Some(other), options).unwrap_err()
    };
    let same = tiny_model::pieces(MORE);
    let mut other = same.clone();
    other[96] = "fa\nlse".to_owned();
    let shorter = tiny_model::pieces(&MORE[..5]);
    let longer = [&same[..], &["more".to_owned()]].concat();
    for (pieces, words) in [
        (
            &other,
            r#"the draft model tiny has other tokens than tiny: token 96 is "fa\nlse" there and "false" here"#,
        ),
        (&shorter, r#"token 100 is the special token </s> there and "\n" here"#),
        (&longer, r#"token 102 is "more" there and none here"#),
    ] {
        let error = refused(pieces, options());
        assert!(matches!(error, StartError::VocabularyMismatch(_)), "{error:?}");
        assert!(error.to_string().contains(words), "{error}");
    }
    let error = refused(&same, EngineOptions { draft_tokens: 0, ..options() }).to_string();
    assert!(error.contains("draft_tokens is 0"), "{error}");
}
