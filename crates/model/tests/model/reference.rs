//! Logits against Hugging Face `transformers`: fixtures made by `fixtures/make_fixtures.py`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use palmette_core::TokenId;
use palmette_decode::LogitsSource;
use palmette_model::{LoadError, Model, Session, SessionError, SessionOptions};
use serde::Deserialize;

/// Largest difference from the reference that is put down to rounding.
const TOLERANCE: f32 = 1e-4;

#[derive(Deserialize)]
struct Reference {
    prompts: Vec<PromptCase>,
    incremental: IncrementalCase,
}

#[derive(Deserialize)]
pub(crate) struct PromptCase {
    pub(crate) tokens: Vec<u32>,
    pub(crate) positions: Vec<usize>,
    /// `[positions, V]`
    pub(crate) logits: Vec<Vec<f32>>,
}

#[derive(Deserialize)]
pub(crate) struct IncrementalCase {
    prompt: Vec<u32>,
    prompt_logits: Vec<f32>,
    continuations: Vec<Vec<u32>>,
    /// `[beam][i]` is the row after the first `i + 1` tokens of a continuation.
    logits: Vec<Vec<Vec<f32>>>,
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn load(name: &str) -> (Arc<Model>, Reference) {
    let dir = fixture(name);
    let reference = std::fs::read(dir.join("reference.json")).expect("a committed fixture");
    let model = Model::load(&dir).expect("a sound model");
    (Arc::new(model), serde_json::from_slice(&reference).expect("JSON"))
}

fn session(model: &Arc<Model>, threads: usize) -> Session {
    let options =
        SessionOptions { max_prompt_tokens: 64, max_beams: 8, max_decode_passes: 4, threads };
    Session::new(model, options).expect("within the model's positions")
}

pub(crate) fn tokens(ids: &[u32]) -> Vec<TokenId> {
    ids.iter().copied().map(TokenId).collect()
}

#[track_caller]
pub(crate) fn check_close(got: &[f32], want: &[f32], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    let worst = got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst <= TOLERANCE, "{what}: off by {worst}");
}

#[track_caller]
fn check(name: &str) {
    let (model, reference) = load(name);
    let vocab = model.config().vocab_size;
    for threads in [1, 2] {
        let mut session = session(&model, threads);
        for case in &reference.prompts {
            session.set_prompt(&tokens(&case.tokens)).unwrap();
            let all = session.all_prompt_logits().unwrap();
            for (&position, want) in case.positions.iter().zip(&case.logits) {
                let what = format!("{name}, prompt of {}, position {position}", case.tokens.len());
                check_close(&all[position * vocab..][..vocab], want, &what);
            }
            let last = session.prompt_logits().unwrap();
            check_close(last, &all[all.len() - vocab..], &format!("{name}: the last row alone"));
        }
        check_incremental(&mut session, &reference.incremental, name);
    }
}

/// All continuations as beams of one search, forking from the prompt.
#[track_caller]
pub(crate) fn check_incremental(session: &mut Session, case: &IncrementalCase, name: &str) {
    let vocab = session.num_tokens();
    session.set_prompt(&tokens(&case.prompt)).unwrap();
    check_close(session.prompt_logits().unwrap(), &case.prompt_logits, name);
    let beams = case.continuations.len();
    for step in 0..case.continuations[0].len() {
        // Rows in another order at every step, so that a beam's ancestors change slots.
        let place = |beam: usize, step: usize| (beam + step) % beams;
        let (mut parents, mut next) = (vec![0; beams], vec![TokenId(0); beams]);
        for (beam, continuation) in case.continuations.iter().enumerate() {
            let row = place(beam, step);
            parents[row] = if step == 0 { 0 } else { place(beam, step - 1) as u32 };
            next[row] = TokenId(continuation[step]);
        }
        let logits = session.next_logits(&parents, &next).unwrap();
        for (beam, rows) in case.logits.iter().enumerate() {
            let got = &logits[place(beam, step) * vocab..][..vocab];
            check_close(got, &rows[step], &format!("{name}, beam {beam}, step {step}"));
        }
    }
}

#[test]
fn tied_f32() {
    check("tied_f32");
}

#[test]
fn untied_in_shards() {
    check("untied_sharded");
}

#[test]
fn tied_bf16_with_the_older_config_spelling() {
    check("tied_bf16");
}

#[test]
fn tied_f16() {
    check("tied_f16");
}

/// A prompt and its continuation give what the longer prompt gives, forks and all.
#[test]
fn beams_equal_prompts_of_their_own() {
    let (model, _) = load("untied_sharded");
    let vocab = model.config().vocab_size;
    let prompt: Vec<u32> = (0..70).map(|i| (i * 31 + 5) % vocab as u32).collect();
    let options =
        SessionOptions { max_prompt_tokens: 80, max_beams: 8, max_decode_passes: 4, threads: 1 };
    let mut beams = Session::new(&model, options).unwrap();
    let mut alone = Session::new(&model, options).unwrap();
    beams.set_prompt(&tokens(&prompt)).unwrap();
    beams.prompt_logits().unwrap();
    let mut sequences = vec![Vec::new()];
    for parents in [vec![0, 0, 0, 0, 0], vec![4, 0, 0, 2, 1, 1, 4], vec![6, 6], vec![1, 0, 1]] {
        let next: Vec<u32> =
            (0..parents.len()).map(|b| (b * 17 + sequences[0].len() * 3) as u32 % 90).collect();
        sequences = parents
            .iter()
            .zip(&next)
            .map(|(&parent, &token)| [&sequences[parent as usize][..], &[token]].concat())
            .collect();
        let logits = beams.next_logits(&parents, &tokens(&next)).unwrap().to_vec();
        for (beam, sequence) in sequences.iter().enumerate() {
            alone.set_prompt(&tokens(&[&prompt[..], sequence].concat())).unwrap();
            let want = alone.prompt_logits().unwrap();
            check_close(&logits[beam * vocab..][..vocab], want, &format!("{sequence:?}"));
        }
    }
}

#[test]
fn threads_change_nothing() {
    let (model, _) = load("tied_f32");
    let prompt: Vec<TokenId> = (0..50).map(|i| TokenId(i * 7 % 97)).collect();
    let run = |threads| {
        let mut session = session(&model, threads);
        session.set_prompt(&prompt).unwrap();
        let mut all = session.prompt_logits().unwrap().to_vec();
        let next: Vec<TokenId> = (0..8).map(TokenId).collect();
        all.extend_from_slice(session.next_logits(&[0; 8], &next).unwrap());
        all
    };
    assert_eq!(run(1), run(2));
    assert_eq!(run(1), run(5));
}

#[test]
fn the_prompt_is_read_once_for_several_searches() {
    let (model, _) = load("tied_f32");
    let prompt: Vec<TokenId> = (0..9).map(|i| TokenId(i * 7 % 97)).collect();
    let tokens: Vec<TokenId> = (0..8).map(TokenId).collect();
    let mut session = session(&model, 1);
    session.set_prompt(&prompt).unwrap();
    assert_eq!(session.prompt_logits_again(0..97).unwrap_err(), SessionError::NoPass);
    let first = session.prompt_logits().unwrap().to_vec();
    let next = session.next_logits(&[0; 8], &tokens).unwrap().to_vec();
    for _ in 0..2 {
        session.next_logits(&[3], &tokens[..1]).unwrap();
        assert_eq!(session.prompt_logits_again(0..97).unwrap(), first);
        assert_eq!(session.next_logits(&[0; 8], &tokens).unwrap(), next);
    }
    assert_eq!(session.prompt_logits_again(5..9).unwrap(), &first[5..9]);
    session.set_prompt(&prompt[..4]).unwrap();
    assert_eq!(session.prompt_logits_again(0..97).unwrap_err(), SessionError::NoPass);
}

#[test]
fn what_was_not_planned_is_refused() {
    let (model, _) = load("tied_f32");
    let mut session = session(&model, 1);
    assert_eq!(session.prompt_logits().unwrap_err(), SessionError::NoPrompt);
    assert_eq!(session.set_prompt(&[]).unwrap_err(), SessionError::EmptyPrompt);
    let error = session.set_prompt(&[TokenId(1); 65]).unwrap_err();
    assert_eq!(error, SessionError::PromptTooLong { tokens: 65, max: 64 });
    let error = session.set_prompt(&[TokenId(97)]).unwrap_err();
    assert_eq!(error, SessionError::UnknownToken { token: TokenId(97), vocab_size: 97 });

    session.set_prompt(&[TokenId(1)]).unwrap();
    session.prompt_logits().unwrap();
    let error = session.next_logits(&[1], &[TokenId(1)]).unwrap_err();
    assert_eq!(error, SessionError::UnknownParent { parent: 1, rows: 1 });
    let error = session.next_logits(&[0; 9], &[TokenId(1); 9]).unwrap_err();
    assert_eq!(error, SessionError::TooManyBeams { beams: 9, max: 8 });
    for _ in 0..4 {
        session.next_logits(&[0], &[TokenId(1)]).unwrap();
    }
    let error = session.next_logits(&[0], &[TokenId(1)]).unwrap_err();
    assert_eq!(error, SessionError::TooManyPasses { pass: 5, max: 4 });

    let options =
        SessionOptions { max_prompt_tokens: 126, max_beams: 1, max_decode_passes: 3, threads: 1 };
    let error = Session::new(&model, options).unwrap_err();
    assert_eq!(error, SessionError::TooManyPositions { prompt: 126, passes: 3, max: 128 });
}

#[test]
fn a_plan_may_be_filled_to_the_last_position() {
    let (model, _) = load("tied_f32");
    let options =
        SessionOptions { max_prompt_tokens: 126, max_beams: 2, max_decode_passes: 2, threads: 1 };
    let mut session = Session::new(&model, options).unwrap();
    session.set_prompt(&[TokenId(5); 126]).unwrap();
    session.prompt_logits().unwrap();
    for parents in [[0, 0], [1, 0]] {
        let logits = session.next_logits(&parents, &tokens(&[1, 2])).unwrap();
        assert!(logits.iter().all(|logit| logit.is_finite()));
    }
}

#[test]
fn a_pass_without_beams_gives_no_logits() {
    let (model, _) = load("tied_f32");
    let mut session = session(&model, 1);
    session.set_prompt(&[TokenId(1)]).unwrap();
    session.prompt_logits().unwrap();
    assert!(session.next_logits(&[], &[]).unwrap().is_empty());
    // No row is left to continue.
    let error = session.next_logits(&[0], &[TokenId(1)]).unwrap_err();
    assert_eq!(error, SessionError::UnknownParent { parent: 0, rows: 0 });
    assert_eq!(session.prompt_logits().unwrap().len(), 97);
}

#[test]
fn a_plan_beyond_memory_is_an_error_with_its_bytes() {
    let (model, _) = load("tied_f32");
    let options = |max_beams| SessionOptions {
        max_prompt_tokens: 64,
        max_beams,
        max_decode_passes: 4,
        threads: 1,
    };
    // More than 47 bits of addresses, which is what a program has.
    let many = options(1 << 40);
    let bytes = Session::planned_bytes(model.config(), &many).unwrap().total();
    let error = Session::new(&model, many).unwrap_err();
    let want = SessionError::PlanTooLarge { prompt: 64, beams: 1 << 40, bytes: Some(bytes) };
    assert_eq!(error, want);
    let message = error.to_string();
    assert!(message.contains(&format!("{bytes} bytes")), "{message}");
    assert!(message.contains("smaller beam width or a shorter prompt"), "{message}");

    for beams in [usize::MAX, usize::MAX / 97 / 4, 1 << 60] {
        let error = Session::new(&model, options(beams)).unwrap_err();
        assert_eq!(error, SessionError::PlanTooLarge { prompt: 64, beams, bytes: None });
    }
    let options = SessionOptions { max_decode_passes: usize::MAX, ..options(1) };
    let error = Session::new(&model, options).unwrap_err();
    assert_eq!(error, SessionError::TooManyPositions { prompt: 64, passes: usize::MAX, max: 128 });
}

/// Copies a fixture, lets `change` at it, and loads the copy.
fn load_changed(name: &str, change: impl Fn(&Path)) -> Result<Arc<Model>, LoadError> {
    let dir = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(fixture(name)).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), dir.path().join(entry.file_name())).unwrap();
    }
    change(dir.path());
    Model::load(dir.path()).map(Arc::new)
}

/// What loading says of a copy that is unsound.
fn load_damaged(name: &str, damage: impl Fn(&Path)) -> String {
    load_changed(name, damage).unwrap_err().to_string()
}

fn edit_config(dir: &Path, field: &str, value: serde_json::Value) {
    let path = dir.join("config.json");
    let mut config: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    config[field] = value;
    std::fs::write(path, config.to_string()).unwrap();
}

#[test]
fn damaged_models_are_named() {
    let gone = load_damaged("tied_f32", |dir| {
        std::fs::remove_file(dir.join("model.safetensors")).unwrap();
    });
    assert!(gone.contains("model.safetensors") && gone.contains("cannot be read"), "{gone}");

    let cut = load_damaged("tied_f32", |dir| {
        let path = dir.join("model.safetensors");
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 100]).unwrap();
    });
    assert!(cut.contains("is no safetensors file"), "{cut}");

    let shape = load_damaged("tied_f32", |dir| edit_config(dir, "intermediate_size", 40.into()));
    assert!(
        shape.contains("mlp.gate_proj.weight is [48, 32]; the configuration makes it [40, 32]"),
        "{shape}"
    );

    // Of the two spellings of a configuration the one that lists no layers.
    let fewer = load_damaged("tied_bf16", |dir| edit_config(dir, "num_hidden_layers", 1.into()));
    assert!(fewer.contains("which this architecture lacks"), "{fewer}");

    let more = load_damaged("tied_bf16", |dir| edit_config(dir, "num_hidden_layers", 3.into()));
    assert!(more.contains("lacks the tensor model.layers.2."), "{more}");

    let untied =
        load_damaged("tied_f32", |dir| edit_config(dir, "tie_word_embeddings", false.into()));
    assert!(untied.contains("lacks the tensor lm_head.weight"), "{untied}");

    let shard = load_damaged("untied_sharded", |dir| {
        let shards = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let shard = shards.filter(|p| p.extension().is_some_and(|e| e == "safetensors")).min();
        std::fs::remove_file(shard.unwrap()).unwrap();
    });
    assert!(shard.contains("cannot be read"), "{shard}");
}

/// A directory of a few kilobytes that claims gigabytes costs no more than it holds.
#[test]
fn huge_sizes_are_not_believed() {
    let huge = 1_u64 << 31;
    let change = |field: &'static str| {
        load_changed("tied_bf16", move |dir| edit_config(dir, field, huge.into()))
    };
    for (field, word) in [
        ("num_hidden_layers", "lacks the tensor model.layers.2."),
        ("vocab_size", "the configuration makes it [2147483648, 32]"),
        ("hidden_size", "the configuration makes it [97, 2147483648]"),
        ("intermediate_size", "the configuration makes it [2147483648, 32]"),
        ("num_attention_heads", "the configuration makes it [34359738368, 32]"),
        ("num_key_value_heads", "which is not a multiple of"),
        ("head_dim", "the configuration makes it [8589934592, 32]"),
    ] {
        let reason = change(field).unwrap_err().to_string();
        assert!(reason.contains(word), "{field}: {reason}");
    }
    let overflow = load_damaged("tied_bf16", |dir| {
        for field in ["num_attention_heads", "head_dim"] {
            edit_config(dir, field, huge.into());
        }
    });
    assert!(
        overflow.contains("`num_attention_heads` (2147483648) × `head_dim` (2147483648)"),
        "{overflow}"
    );

    // Positions take memory where they are planned, and only there.
    let (model, same) = (change("max_position_embeddings").unwrap(), load("tied_bf16").0);
    let logits = |model: &Arc<Model>| {
        let mut session = session(model, 1);
        session.set_prompt(&tokens(&[3, 1, 4, 1, 5])).unwrap();
        session.prompt_logits().unwrap().to_vec()
    };
    assert_eq!(logits(&model), logits(&same));
    let options = SessionOptions {
        max_prompt_tokens: huge as usize,
        max_beams: 1 << 16,
        max_decode_passes: 0,
        threads: 1,
    };
    assert!(matches!(
        Session::new(&model, options).unwrap_err(),
        SessionError::PlanTooLarge { bytes: Some(_), .. }
    ));
}

#[test]
fn a_checked_configuration_is_asked_for() {
    let dir = fixture("tied_f32");
    let mut config = load("tied_f32").0.config().clone();
    config.hidden_size = 0;
    let bytes = std::fs::read(dir.join("model.safetensors")).unwrap();
    let reason = Model::from_bytes(config, bytes).unwrap_err().to_string();
    assert!(reason.contains("`hidden_size` is 0; it must be at least 1"), "{reason}");
}
