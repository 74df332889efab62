//! Drafting against the plain algorithm: every code of every beam scored alone, all sorted, the
//! best kept.

use std::sync::Arc;

use palmette_catalog::{BuildOptions, Catalog, Item, LevelSpelling, TokenTable};
use palmette_catalog_live::CatalogView;
use palmette_core::TokenId;
use palmette_decode::{log_sum_exp, run_on};
use palmette_model::draft::{DraftForm, DraftHead, DraftInput, DraftRun, DraftTransition};
use palmette_model::{Session, SessionOptions};
use palmette_recommend::{
    LevelFormat, Mode, PromptFields, PromptFormat, RecommendError, Recommended, Recommender,
    Request, Verification, Worker,
};

use crate::prompts;
use crate::shop::{self, NUM_CODES, format, model, request, worker};

const NUM_ITEMS: u32 = 400;

fn recommender(form: DraftForm, format: PromptFormat) -> Arc<Recommender> {
    let model = model();
    let head = DraftHead::random(form, &model, format.draft_shape().unwrap(), 9).unwrap();
    let recommender = Recommender::new(model, shop::catalog(NUM_ITEMS), format).unwrap();
    Arc::new(recommender.with_draft_head(head).unwrap())
}

/// A beam of the plain algorithm.
#[derive(Clone, Debug)]
struct Plain {
    tokens: Vec<TokenId>,
    score: f32,
}

/// The prompt of a request.
fn prompt(recommender: &Recommender, history: &[u64], fields: &PromptFields) -> Vec<TokenId> {
    let mut prompt = Vec::new();
    let view = recommender.view().unwrap();
    recommender.write_prompt(history, &view, fields, &mut prompt).unwrap();
    prompt
}

/// The logits of one level after these tokens, one row at a time.
fn logits(recommender: &Recommender, prompt: &[TokenId], tokens: &[TokenId]) -> Vec<f32> {
    let head = recommender.draft_head().unwrap();
    let max_prompt_tokens = prompt.len() + head.num_placeholders();
    let options =
        SessionOptions { max_prompt_tokens, max_beams: 0, max_decode_passes: 0, threads: 1 };
    let mut session = Session::new(&recommender.engine().model().unwrap(), options).unwrap();
    session.set_prompt(prompt).unwrap();
    let mut run = DraftRun::new(head, 1, 1);
    let mut row = run.begin(&mut session).unwrap().to_vec();
    for &token in tokens {
        row = run.advance(&[0], &[token]).to_vec();
    }
    row
}

/// Beam search by sorting everything: over all tokens of a level, in their order. `allowed` is asked
/// of every extension.
fn plain_search(
    recommender: &Recommender,
    prompt: &[TokenId],
    width: usize,
    allowed: impl Fn(&[u32]) -> bool,
) -> Vec<(Vec<u32>, f32)> {
    let format = recommender.format();
    let mut beams = vec![Plain { tokens: Vec::new(), score: 0.0 }];
    for level in 0..format.levels.len() {
        let first = recommender.draft_head().unwrap().shape.levels[level].0;
        let mut next = Vec::new();
        for (parent, beam) in beams.iter().enumerate() {
            let row = logits(recommender, prompt, &beam.tokens);
            let whole = log_sum_exp(&row);
            for (token, logit) in (first..).map(TokenId).zip(&row) {
                if format.levels[level].tokens.code(token).is_none() {
                    continue;
                }
                let mut tokens = beam.tokens.clone();
                tokens.push(token);
                if allowed(&codes(format, &tokens)) {
                    next.push((parent, Plain { tokens, score: beam.score + (logit - whole) }));
                }
            }
        }
        next.sort_by(|(p, a), (q, b)| {
            b.score.total_cmp(&a.score).then(p.cmp(q)).then(a.tokens.cmp(&b.tokens))
        });
        next.truncate(width);
        beams = next.into_iter().map(|(_, beam)| beam).collect();
    }
    beams.into_iter().map(|beam| (codes(format, &beam.tokens), beam.score)).collect()
}

fn codes(format: &PromptFormat, tokens: &[TokenId]) -> Vec<u32> {
    tokens
        .iter()
        .zip(&format.levels)
        .map(|(token, level)| level.tokens.code(*token).unwrap())
        .collect()
}

/// The items of found IDs, but for those in `seen`.
fn items(
    view: &CatalogView,
    found: &[(Vec<u32>, f32)],
    seen: &[u64],
    k: usize,
) -> Vec<Recommended> {
    let numbers = |(codes, score): &(Vec<u32>, f32)| {
        let score = *score;
        view.find_codes(codes).into_iter().map(move |number| Recommended {
            number,
            score,
            boost: 0.0,
            pinned: false,
        })
    };
    let all = found.iter().flat_map(numbers);
    all.filter(|item| !seen.contains(&item.number)).take(k).collect()
}

#[track_caller]
fn check(form: DraftForm, verification: Verification, width: usize, history: &[u64]) -> usize {
    check_of(&recommender(form, format()), &PromptFields::default(), verification, width, history)
}

#[track_caller]
fn check_of(
    recommender: &Arc<Recommender>,
    fields: &PromptFields,
    verification: Verification,
    width: usize,
    history: &[u64],
) -> usize {
    let view = recommender.view().unwrap();
    let (catalog, k) = (view.view(), width);
    let open = |codes: &[u32]| {
        catalog
            .numbers()
            .any(|number| !history.contains(&number) && catalog.codes(number).starts_with(codes))
    };
    let prompt = prompt(recommender, history, fields);
    let found = plain_search(recommender, &prompt, width, |codes| match verification {
        Verification::Masks => open(codes),
        Verification::Keys => codes.len() < 3 || open(codes),
        Verification::None => true,
    });
    let want = items(catalog, &found, history, k);
    let (mode, fields) = (Mode::Draft(verification), Some(fields));
    for threads in [1, 3] {
        let mut worker = Worker::new(Arc::clone(recommender), threads);
        // The second request must not see the first.
        let other = Request { mode, fields, ..request(&[1], k, width) };
        worker.recommend(&other, &mut run_on).unwrap();
        let asked = Request { mode, fields, ..request(history, k, width) };
        let got = worker.recommend(&asked, &mut run_on).unwrap();
        assert_eq!(worker.prompt(), prompt);
        assert_eq!(got.items, want, "{verification:?}, width {width}");
        let generated: Vec<Vec<u32>> =
            worker.generated().map(|tokens| codes(recommender.format(), tokens)).collect();
        assert!(generated.iter().eq(found.iter().map(|(codes, _)| codes)));
    }
    want.len()
}

#[test]
fn drafts_are_those_of_the_plain_algorithm() {
    use Verification::{Keys, Masks, None};
    for verification in [Masks, Keys, None] {
        for (width, history) in [(1, &[][..]), (6, &[3, 90]), (40, &[5, 6, 7, 8])] {
            check(DraftForm::default(), verification, width, history);
        }
    }
    let add = DraftForm { transition: DraftTransition::Add, ..DraftForm::default() };
    check(add, Keys, 20, &[11]);
    for input in [DraftInput::Placeholder, DraftInput::State, DraftInput::Prompt] {
        check(DraftForm { input, ..DraftForm::default() }, Masks, 20, &[11]);
    }
}

/// A head says codes by whatever tokens, and nothing of what ends an item.
#[test]
fn drafts_of_tokens_in_any_order_and_with_an_end() {
    use Verification::{Keys, Masks, None};
    // The levels' tokens by turns: between two of one are those of the others.
    let by_turns = |l: u32| {
        let tokens = (0..NUM_CODES).map(|code| Some(2 + 3 * code + l));
        LevelFormat { prefix: "x".into(), tokens: TokenTable::new(tokens).into() }
    };
    let by_turns = PromptFormat { levels: (0..3).map(by_turns).collect(), ..shop::text_format() };
    assert_eq!(by_turns.draft_shape().unwrap().levels, [(2, 88), (3, 88), (4, 88)]);
    let fields = PromptFields::default();
    for format in [shop::text_format(), by_turns] {
        let recommender = recommender(DraftForm::default(), format);
        for verification in [Masks, Keys, None] {
            for (width, history) in [(1, &[][..]), (6, &[3, 90]), (40, &[5, 6, 7, 8])] {
                let found = check_of(&recommender, &fields, verification, width, history);
                assert!(found == width || verification != Masks, "{found} of {width}");
            }
        }
    }
    let recommender = recommender(DraftForm::default(), shop::text_format());
    // The decoder says it.
    let by = |mode| Request { mode, ..request(&[3], 3, 20) };
    let mut worker = worker(&recommender);
    let drafted = worker.recommend(&by(Mode::Draft(Masks)), &mut run_on).unwrap();
    let written = worker.recommend(&by(Mode::Beam), &mut run_on).unwrap();
    assert_ne!(drafted.items, written.items);
    assert_eq!(
        worker.recommend(&by(Mode::Draft(Masks)), &mut run_on).unwrap().items,
        drafted.items
    );
}

#[test]
fn drafts_after_a_templates_prompt_with_a_query() {
    let file = prompts::cases();
    let catalog = prompts::catalog(prompts::items(&file), Some(["a", "b", "c"]));
    let template = serde_json::json!({
        "messages": [{"role": "user", "content": "{{ query }} for {{ user.age }}, after {{ history | join(', ') }}"}],
        "before_item": "<|sid_begin|>", "end": "<|sid_end|>", "max_history_items": 3,
    });
    let dir = prompts::directory("plain", &template);
    let read = prompts::read(dir.path(), &catalog).unwrap();
    assert!(matches!(read.format().levels[1].tokens, LevelSpelling::Table(_)), "any order");
    let model = prompts::model();
    let shape = read.format().draft_shape().unwrap();
    let head = DraftHead::random(DraftForm::default(), &model, shape, 9).unwrap();
    let recommender = Recommender::new(model, catalog, read).unwrap();
    let recommender = Arc::new(recommender.with_draft_head(head).unwrap());
    let fields = |query: &str| PromptFields {
        query: Some(query.to_owned()),
        user: [("age".to_owned(), 31.into())].into_iter().collect(),
    };
    for verification in [Verification::Masks, Verification::Keys, Verification::None] {
        for (width, history) in [(1, &[][..]), (9, &[3, 1, 4, 2])] {
            check_of(&recommender, &fields("a tent"), verification, width, history);
        }
    }
    let answer = |query: &str| {
        let (fields, mode) = (fields(query), Mode::Draft(Verification::Masks));
        let asked = Request { mode, fields: Some(&fields), ..request(&[3], 5, 20) };
        shop::recommend(&recommender, &asked).items
    };
    assert_eq!(answer("a tent"), answer("a tent"));
    assert_ne!(answer("a tent"), answer("a stove"), "the head reads the query");
    let asked = Request { mode: Mode::Draft(Verification::Masks), ..request(&[3], 5, 20) };
    let error = worker(&recommender).recommend(&asked, &mut run_on).unwrap_err();
    assert!(error.to_string().contains("query"), "{error}");
}

#[test]
fn masks_find_as_many_as_there_are_and_keys_fewer() {
    let form = DraftForm::default();
    assert_eq!(check(form, Verification::Masks, 50, &[2]), 50);
    let by_keys = check(form, Verification::Keys, 50, &[2]);
    assert!((1..50).contains(&by_keys), "{by_keys}");
}

#[test]
fn what_cannot_be_drafted_is_an_error() {
    let by = |verification| Request { mode: Mode::Draft(verification), ..request(&[], 3, 3) };
    let new = || Recommender::new(model(), shop::catalog(NUM_ITEMS), format()).unwrap();
    let plain = Arc::new(new());
    let error = worker(&plain).recommend(&by(Verification::Masks), &mut run_on).unwrap_err();
    assert!(matches!(error, RecommendError::NoDraftHead), "{error}");
    let mut shape = format().draft_shape().unwrap();
    shape.levels[1].1 -= 1;
    let head = DraftHead::random(DraftForm::default(), &model(), shape, 1).unwrap();
    let error = new().with_draft_head(head).unwrap_err();
    assert!(error.to_string().contains("(32, 29)"), "{error}");
    let mut scattered = format();
    scattered.levels[1].tokens = TokenTable::new([Some(32), Some(64)]).into();
    let error = scattered.draft_shape().unwrap_err();
    assert!(error.to_string().contains("the 2 codes of level 1 have tokens among 33"), "{error}");
    assert!(error.to_string().contains("--mode beam"), "{error}");
    let item =
        |id: &str, codes: Vec<u32>| Item { id: id.into(), codes, attributes: Default::default() };
    let items = vec![item("long", vec![1, 2, 3]), item("short", vec![1, 2])];
    let short = || Catalog::build(items.clone().into(), &BuildOptions::default()).unwrap();
    // A shorter ID would have a score of fewer terms.
    let error = Recommender::new(model(), short(), format()).unwrap_err();
    assert!(error.to_string().contains("\"short\" has 2 codes"), "{error}");
    // A token that ends items makes up for it, and a head says none.
    let format = shop::text_format();
    let head = format.draft_shape().unwrap();
    let head = DraftHead::random(DraftForm::default(), &model(), head, 1).unwrap();
    let ended = Recommender::new(model(), short(), format).unwrap();
    let ended = Arc::new(ended.with_draft_head(head).unwrap());
    let asked = |mode| Request { mode, ..request(&[], 2, 3) };
    assert_eq!(shop::recommend(&ended, &asked(Mode::Beam)).items.len(), 2);
    let mode = Mode::Draft(Verification::Masks);
    let error = worker(&ended).recommend(&asked(mode), &mut run_on).unwrap_err();
    assert!(matches!(error, RecommendError::ShorterDraft { codes: 2, levels: 3, .. }), "{error}");
    assert!(error.to_string().contains("--mode beam"), "{error}");
}

/// A free search is bounded too: codes that no item has take places, and what they displace is
/// within the bound.
#[test]
fn a_draft_tells_what_it_may_miss() {
    let recommender = recommender(DraftForm::default(), format());
    let (mut proven, mut missing) = (0, 0);
    for history in [&[][..], &[3], &[59, 0, 17], &[5, 6, 7, 8]] {
        let ask = |verification, k, width| {
            let mode = Mode::Draft(verification);
            let asked = Request { mode, ..request(history, k, width) };
            worker(&recommender).recommend(&asked, &mut run_on).unwrap()
        };
        let all = ask(Verification::Masks, 400, 400);
        assert!(all.is_proven());
        for verification in [Verification::Masks, Verification::Keys, Verification::None] {
            for (k, width) in [(1, 1), (1, 30), (3, 30), (10, 30), (10, 400), (30, 400)] {
                let answer = ask(verification, k, width);
                let expected = &all.items[..k];
                if answer.is_proven() {
                    assert_eq!(answer.items, expected, "{verification:?} {k} {width}");
                    proven += 1;
                }
                for item in expected.iter().filter(|item| !answer.items.contains(item)) {
                    let bound = answer.missed_at_most.expect("it is not proven");
                    assert!(item.score <= bound, "{verification:?} {k} {width}: {item:?} {bound}");
                    missing += 1;
                }
            }
        }
    }
    assert!(proven > 10 && missing > 10, "{proven} proven, {missing} missing");
}
