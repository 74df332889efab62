//! The draft head against its equations, in f64, one row after another.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use palmette_core::TokenId;
use palmette_model::draft::{
    DraftForm, DraftHead, DraftInput, DraftRun, DraftShape, DraftTransition,
};
use palmette_model::{Model, ModelConfig, Session, SessionOptions};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

const PROMPT: [TokenId; 5] = [TokenId(1), TokenId(7), TokenId(33), TokenId(70), TokenId(8)];

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tied_f32")
}

fn model() -> Arc<Model> {
    Arc::new(Model::load(&fixture()).expect("a committed fixture"))
}

/// Three levels of different sizes, so that none can be taken for another.
fn shape() -> DraftShape {
    DraftShape { levels: vec![(2, 20), (22, 33), (55, 16)] }
}

/// Numbers in [-1, 1), a function of the seed.
fn floats(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| draw()).collect()
}

type Tensors = HashMap<String, (Vec<usize>, Vec<f32>)>;

/// Tensors of every name that some form has.
fn tensors(form: DraftForm, shape: &DraftShape, width: usize) -> Tensors {
    let mut tensors = Tensors::new();
    let mut add = |name: String, shape: Vec<usize>| {
        let values = floats(shape.iter().product(), tensors.len() as u64 + 1);
        let values = values.into_iter().map(|v| v * 0.4).collect();
        tensors.insert(name, (shape, values));
    };
    if form.has_placeholders() {
        add("draft.placeholders".into(), vec![shape.levels.len(), width]);
    }
    for (level, &(_, codes)) in shape.levels.iter().enumerate() {
        let name = |part: &str| format!("draft.levels.{level}.{part}");
        add(name("head.weight"), vec![codes as usize, width]);
        if form.has_transitions() && level + 1 < shape.levels.len() {
            add(name("transition.token.weight"), vec![width, width]);
            add(name("transition.bias"), vec![width]);
            add(name("transition.state.weight"), vec![width, width]);
        }
    }
    tensors
}

fn file(form: &str, tensors: &Tensors) -> Vec<u8> {
    let bytes: HashMap<&String, Vec<u8>> = tensors
        .iter()
        .map(|(name, (_, values))| (name, values.iter().flat_map(|v| v.to_le_bytes()).collect()))
        .collect();
    let views = tensors.iter().map(|(name, (shape, _))| {
        (name, TensorView::new(Dtype::F32, shape.clone(), &bytes[name]).unwrap())
    });
    let metadata = HashMap::from([(DraftHead::FORM_KEY.to_owned(), form.to_owned())]);
    safetensors::serialize(views, Some(metadata)).unwrap()
}

fn load(form: DraftForm, tensors: &Tensors, model: &Model) -> Arc<DraftHead> {
    let bytes = file(&serde_json::to_string(&form).unwrap(), tensors);
    let head = DraftHead::from_bytes(Path::new("draft.safetensors"), bytes, model, shape());
    Arc::new(head.unwrap())
}

fn session(model: &Arc<Model>) -> Session {
    let options = SessionOptions {
        max_prompt_tokens: PROMPT.len() + 3,
        max_beams: 0,
        max_decode_passes: 0,
        threads: 1,
    };
    let mut session = Session::new(model, options).unwrap();
    session.set_prompt(&PROMPT).unwrap();
    session
}

/// The decoder's embeddings, `[V, D]`, as the file has them.
fn embeddings() -> Vec<f64> {
    let bytes = std::fs::read(fixture().join("model.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let data = file.tensor("model.embed_tokens.weight").unwrap();
    let values = data.data().chunks_exact(4);
    values.map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect()
}

fn product(matrix: &[f32], x: &[f64]) -> Vec<f64> {
    let row = |row: &[f32]| row.iter().zip(x).map(|(w, x)| f64::from(*w) * x).sum();
    matrix.chunks_exact(x.len()).map(row).collect()
}

/// The logits of a level after these tokens, by the equations.
fn oracle(form: DraftForm, tensors: &Tensors, hidden: &[f32], tokens: &[TokenId]) -> Vec<f64> {
    let width = tensors["draft.levels.0.head.weight"].0[1];
    let hidden = |place: usize| -> Vec<f64> {
        hidden[place * width..][..width].iter().copied().map(f64::from).collect()
    };
    let embeddings = embeddings();
    let mut state = hidden(0);
    for (level, token) in tokens.iter().enumerate() {
        let e = &embeddings[token.index() * width..][..width];
        state = match form.transition {
            DraftTransition::Add => state.iter().zip(e).map(|(s, e)| s + e).collect(),
            DraftTransition::Rnn if form.has_state() => {
                let get = |part: &str| &tensors[&format!("draft.levels.{level}.{part}")].1;
                let moved = product(get("transition.state.weight"), &state);
                let chosen = product(get("transition.token.weight"), e);
                let bias = get("transition.bias");
                (0..width).map(|i| (moved[i] + chosen[i] + f64::from(bias[i])).tanh()).collect()
            }
            DraftTransition::Rnn => state,
        };
    }
    let level = tokens.len();
    let x: Vec<f64> = match form.input {
        DraftInput::Both => hidden(level + 1).iter().zip(&state).map(|(h, s)| h + s).collect(),
        DraftInput::Placeholder => hidden(level + 1),
        DraftInput::State => state,
        DraftInput::Prompt => hidden(0),
    };
    product(&tensors[&format!("draft.levels.{level}.head.weight")].1, &x)
}

fn forms() -> Vec<DraftForm> {
    use DraftInput::{Both, Placeholder, Prompt, State};
    use DraftTransition::{Add, Rnn};
    [(Both, Rnn), (Both, Add), (Placeholder, Rnn), (State, Rnn), (State, Add), (Prompt, Rnn)]
        .map(|(input, transition)| DraftForm { input, transition })
        .to_vec()
}

#[track_caller]
fn check_close(found: &[f32], wanted: &[f64]) {
    assert_eq!(found.len(), wanted.len());
    for (place, (&found, wanted)) in found.iter().zip(wanted).enumerate() {
        let error = (f64::from(found) - wanted).abs();
        assert!(error < 1e-4, "{place}: {found}, not {wanted}");
    }
}

#[test]
fn every_form_is_its_equations() {
    let model = model();
    for form in forms() {
        let tensors = tensors(form, &shape(), model.config().hidden_size);
        let head = load(form, &tensors, &model);
        let mut session = session(&model);
        let mut hidden = vec![0.0; (1 + head.num_placeholders()) * model.config().hidden_size];
        session.draft_states(&head, &mut hidden).unwrap();
        let mut run = DraftRun::new(&head, 5, 1);
        check_close(run.begin(&mut session).unwrap(), &oracle(form, &tensors, &hidden, &[]));
        let first = [4, 2, 21].map(TokenId);
        let logits = run.advance(&[0, 0, 0], &first).to_vec();
        let rows = logits.chunks_exact(33);
        for (row, &token) in rows.zip(&first) {
            check_close(row, &oracle(form, &tensors, &hidden, &[token]));
        }
        // Beams that fork, change places and die.
        let (parents, second) = ([2, 0, 2, 2, 0], [22, 54, 30, 41, 22].map(TokenId));
        let logits = run.advance(&parents, &second).to_vec();
        for ((row, &parent), &token) in logits.chunks_exact(16).zip(&parents).zip(&second) {
            let tokens = [first[parent as usize], token];
            check_close(row, &oracle(form, &tensors, &hidden, &tokens));
        }
    }
}

/// With tokens' embeddings for placeholders and the decoder's head for the head's, a head of
/// placeholders alone says what the decoder says along those tokens: the states are those of one
/// pass.
#[test]
fn placeholders_are_rows_of_the_prompt() {
    let model = model();
    let (d, embeddings) = (model.config().hidden_size, embeddings());
    let rows = |tokens: std::ops::Range<usize>| -> Vec<f32> {
        embeddings[tokens.start * d..tokens.end * d].iter().map(|&v| v as f32).collect()
    };
    let form = DraftForm { input: DraftInput::Placeholder, ..DraftForm::default() };
    let mut tensors = tensors(form, &shape(), d);
    let after = [TokenId(9), TokenId(40), TokenId(60)];
    let placeholders = after.iter().flat_map(|token| rows(token.index()..token.index() + 1));
    tensors.get_mut("draft.placeholders").unwrap().1 = placeholders.collect();
    for (level, &(first, codes)) in shape().levels.iter().enumerate() {
        let head = tensors.get_mut(&format!("draft.levels.{level}.head.weight")).unwrap();
        head.1 = rows(first as usize..(first + codes) as usize);
    }
    let head = load(form, &tensors, &model);
    let mut session = session(&model);
    let mut run = DraftRun::new(&head, 1, 1);
    let mut found = run.begin(&mut session).unwrap().to_vec();
    found.extend(run.advance(&[0], &[TokenId(2)]));
    found.extend(run.advance(&[0], &[TokenId(22)]));
    session.set_prompt(&[&PROMPT[..], &after].concat()).unwrap();
    let all = session.all_prompt_logits().unwrap();
    let mut wanted = Vec::new();
    for (level, &(first, codes)) in shape().levels.iter().enumerate() {
        let row = &all[(PROMPT.len() + level) * model.config().vocab_size..];
        wanted.extend_from_slice(&row[first as usize..(first + codes) as usize]);
    }
    assert_eq!(found, wanted);
}

#[test]
fn rows_do_not_depend_on_neighbours_or_threads() {
    // Wide enough that the rows are worth several threads.
    let config = ModelConfig { hidden_size: 128, ..model().config().clone() };
    let model = Arc::new(Model::random(config, 3).unwrap());
    let form = DraftForm::default();
    let head = Arc::new(DraftHead::random(form, &model, shape(), 4).unwrap());
    let rows = 700;
    let tokens: Vec<TokenId> = (0..rows).map(|row| TokenId(2 + row % 20)).collect();
    let all = |threads: usize| {
        let mut session = session(&model);
        let mut run = DraftRun::new(&head, rows as usize, threads);
        run.begin(&mut session).unwrap();
        run.advance(&vec![0; rows as usize], &tokens).to_vec()
    };
    let one = all(1);
    assert_eq!(one, all(4));
    let mut session = session(&model);
    let mut run = DraftRun::new(&head, 1, 1);
    for row in [0, 191, 192, 699] {
        run.begin(&mut session).unwrap();
        let alone = run.advance(&[0], &[tokens[row]]);
        assert_eq!(alone, &one[row * 33..][..33], "row {row}");
    }
}

#[track_caller]
fn check_refused(form: &str, change: impl Fn(&mut Tensors), part: &str) {
    let model = model();
    let mut tensors = tensors(DraftForm::default(), &shape(), model.config().hidden_size);
    change(&mut tensors);
    let bytes = file(form, &tensors);
    let name = Path::new("draft.safetensors");
    let error = DraftHead::from_bytes(name, bytes, &model, shape()).unwrap_err().to_string();
    assert!(error.contains(part) && error.contains("draft.safetensors"), "{error}");
}

#[test]
fn files_of_other_heads_are_refused() {
    let both = r#"{"input": "both", "transition": "rnn"}"#;
    check_refused(r#"{"input": "all"}"#, |_| {}, "input");
    check_refused(
        both,
        |t| drop(t.remove("draft.placeholders")),
        "lacks the tensor draft.placeholders",
    );
    let state = r#"{"input": "state", "transition": "rnn"}"#;
    check_refused(state, |_| {}, "holds the tensor draft.placeholders");
    check_refused(
        both,
        |t| t.get_mut("draft.levels.1.head.weight").unwrap().0.reverse(),
        "draft.levels.1.head.weight",
    );
    let error = DraftHead::from_bytes(Path::new("x"), vec![1, 2], &model(), shape()).unwrap_err();
    assert!(error.to_string().contains("no safetensors file"), "{error}");
    let past = DraftShape { levels: vec![(2, u32::MAX)] };
    let error = DraftHead::random(DraftForm::default(), &model(), past, 1).unwrap_err();
    assert!(error.to_string().contains("level 0"), "{error}");
}
