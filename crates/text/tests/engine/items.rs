//! Searched items against every item scored whole, alone and beside others.

use std::sync::Arc;

use palmette_core::TokenId;
use palmette_decode::{LogitsSource, log_sum_exp};
use palmette_grammar::frontends::gbnf::GbnfOptions;
use palmette_grammar::{BindError, GrammarConstraint, GrammarSource};
use palmette_model::{Session, SessionOptions};
use palmette_testkit::member_sets::NaiveSet;
use palmette_text::engine::{Engine, EngineOptions, SubmitError};
use palmette_text::{
    Constrained, ItemSearch, RequestMember, ScoredTokens, SearchedItem, TextModel, TextRequest,
};
use proptest::prelude::*;

use crate::{alone, model, request, together};

/// Semantic IDs of two to three codes, which characters spell: none begins another.
fn ids() -> Vec<Vec<TokenId>> {
    let mut ids = Vec::new();
    for first in 20..26 {
        for second in [3, 20, 50, 80] {
            if (first + second) % 3 == 0 {
                ids.push(vec![first, second]);
            } else {
                ids.extend((0..4).map(|third| vec![first, second, 60 + third * first % 17]));
            }
        }
    }
    ids.iter().map(|id| id.iter().copied().map(TokenId).collect()).collect()
}

fn grammar(model: &TextModel, source: &str, ids: &[Vec<TokenId>]) -> GrammarConstraint {
    let source = GrammarSource::Gbnf { text: source.to_owned(), options: GbnfOptions::default() };
    let open = model.compile_open(&source, &Default::default()).unwrap();
    let members = (0..).zip(ids).map(|(at, id)| {
        let spelled = id.iter().flat_map(|token| token.to_spelling());
        (at, spelled.collect::<Vec<u8>>(), Vec::new())
    });
    let set = Arc::new(NaiveSet::spelled(members));
    open.constraint.bind(|_| Ok::<_, BindError>(Arc::clone(&set) as _)).unwrap()
}

const SEARCH: ItemSearch = ItemSearch { beam_width: 200, alternatives: 6 };
const SOURCE: &str = r#"root ::= [ab]{0,3} "!" <catalog:shop.codes> ("," <catalog:shop.codes> [a-z ]{0,9} "."){1,2}"#;

pub(crate) fn item_request(model: &TextModel, prompt: &str, seed: u64) -> TextRequest {
    let mut request = TextRequest::new(model.encode_text(prompt).unwrap(), 60);
    request.sampler.temperature = 1.0;
    request.sampler.seed = seed;
    request.constraint = Constrained::Grammar(grammar(model, SOURCE, &ids()));
    request.search_items(SEARCH)
}

/// Scores of every item after a text, each whole by passes over all of it, best first.
fn scored(model: &TextModel, before: &[TokenId]) -> Vec<ScoredTokens> {
    let options = SessionOptions {
        max_prompt_tokens: before.len() + 8,
        max_beams: 0,
        max_decode_passes: 0,
        threads: 1,
    };
    let mut session = Session::new(&model.engine().model().unwrap(), options).unwrap();
    let mut all: Vec<ScoredTokens> = Vec::new();
    for tokens in ids() {
        let mut score = 0.0;
        for place in 0..tokens.len() {
            session.set_prompt(&[before, &tokens[..place]].concat()).unwrap();
            let logits = session.prompt_logits().unwrap();
            score += logits[tokens[place].index()] - log_sum_exp(logits);
        }
        all.push(ScoredTokens { tokens, score });
    }
    all.sort_by(|a, b| b.score.total_cmp(&a.score));
    all
}

#[test]
fn searched_items_are_the_best_of_all() {
    let model = model();
    for (prompt, seed) in [("a palm", 1), ("leaf", 2), ("and its ribs, a palm leaf", 3)] {
        let request = item_request(&model, prompt, seed);
        let written = alone(&model, &request);
        assert!(written.ended.is_complete);
        let tokens: Vec<TokenId> = written.tokens.iter().map(|token| token.token).collect();
        let searched = &written.ended.searched;
        // After the mark, and after each comma: there an item must follow.
        assert!((2..=3).contains(&searched.len()), "{searched:?}");
        for SearchedItem { place, found } in searched {
            let before = [&request.prompt[..], &tokens[..*place]].concat();
            let expected = scored(&model, &before);
            assert_eq!(found[..], expected[..7]);
            assert!(tokens[*place..].starts_with(&found[0].tokens));
            let of_item = &written.tokens[*place..][..found[0].tokens.len()];
            assert!(of_item.iter().all(|token| !token.is_forced));
        }
        // Without a search, tokens are drawn under the mask, and items exist as well.
        let drawn = alone(&model, &TextRequest { item_search: None, ..request });
        assert!(drawn.ended.is_complete && drawn.ended.searched.is_empty());
    }
}

/// A narrow search finds what a narrow beam search of the items alone finds, and its results are no
/// better than the best.
#[test]
fn narrow_searches_write_items_that_exist() {
    let model = model();
    for beam_width in [1, 2, 5] {
        let search = ItemSearch { beam_width, alternatives: beam_width - 1 };
        let request = item_request(&model, "a palm leaf", 7).search_items(search);
        let written = alone(&model, &request);
        let tokens: Vec<TokenId> = written.tokens.iter().map(|token| token.token).collect();
        for SearchedItem { place, found } in &written.ended.searched {
            let before = [&request.prompt[..], &tokens[..*place]].concat();
            let all = scored(&model, &before);
            assert!(found.len() <= beam_width && found.iter().all(|one| all.contains(one)));
            assert!(found.is_sorted_by(|a, b| a.score >= b.score));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Whatever is written beside them, and however few pages there are.
    #[test]
    fn items_searched_together_are_those_searched_alone(
        asked in prop::collection::vec((any::<bool>(), 0_usize..6, 1_usize..150, 0_u64..1000), 1..9),
        max_texts in 1_usize..5, max_tokens in 512_usize..900, prompt_rows in 1_usize..40, draft_tokens in 0_usize..6,
    ) {
        let model = model();
        let options = EngineOptions { max_texts, max_tokens, prompt_rows, draft_tokens, max_waiting: 100, mask_threads: 2 };
        let engine = Engine::start(model.clone(), options).unwrap();
        let requests: Vec<TextRequest> = asked.iter().map(|&(has_items, kind, prompt, seed)| match has_items {
            true => item_request(&model, &"a palm leaf ".repeat(1 + prompt / 12), seed),
            false => request(&model, kind, prompt, seed),
        }).collect();
        let streams: Vec<_> = requests.iter().map(|request| engine.submit(request).unwrap()).collect();
        for (request, stream) in requests.iter().zip(streams) {
            prop_assert_eq!(together(stream).unwrap(), alone(&model, request));
        }
    }
}

#[test]
fn searches_that_cannot_be_are_refused() {
    let model = model();
    let request = item_request(&model, "a palm", 1);
    let with = |beam_width, alternatives| {
        let search = ItemSearch { beam_width, alternatives };
        request.clone().search_items(search)
    };
    let scored = TextRequest { logprobs: Some(1), ..request.clone() };
    for (request, words) in [
        (with(0, 0), "beam_width of item_search is 0; it must be at least 1 and at most 1024"),
        (with(1025, 0), "at most 1024"),
        (with(4, 4), "4 alternatives beside the item and keeps 4 beams"),
        (scored, "leave out logprobs or item_search"),
    ] {
        let error = request.check(&model).unwrap_err();
        assert_eq!(error.member(), RequestMember::ItemSearch);
        assert!(error.to_string().contains(words), "{error}");
    }
    assert_eq!(request.check(&model), Ok(()));
    let options = EngineOptions { max_tokens: 192, ..EngineOptions::default() };
    let engine = Engine::start(model.clone(), options).unwrap();
    let long = TextRequest { max_tokens: 100, ..request };
    let refused = engine.submit(&long).err();
    assert_eq!(refused, Some(SubmitError::TooLong { tokens: 106, max: 64 }));
}

/// An item that is cut off by the limit of tokens is drawn: there is no whole one to search.
#[test]
fn what_cannot_be_whole_is_not_searched() {
    let model = model();
    let source = r#"root ::= "a" <catalog:shop.codes>"#;
    let mut request = item_request(&model, "a palm", 1);
    request.constraint = Constrained::Grammar(grammar(&model, source, &ids()));
    request.max_tokens = 3;
    let written = alone(&model, &request);
    assert!(written.ended.searched.is_empty());
    request.max_tokens = 4;
    let written = alone(&model, &request);
    assert_eq!(written.ended.searched.len(), 1);
    assert!(written.ended.is_complete);
}
