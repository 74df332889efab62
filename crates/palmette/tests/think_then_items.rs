//! Texts with items in them, of a model that knows words and semantic IDs: reasoning and then
//! items, lists of items with words between them, titles within words.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use palmette::engine::bindings::{BoundGrammar, BoundSet};
use palmette::engine::catalog::BuildOptions;
use palmette::engine::decode::run_on;
use palmette::engine::live::CatalogView;
use palmette::engine::model::{Model, ModelConfig};
use palmette::engine::recommend::{
    History, Prompts, Recommender, Request, TemplateFile, Think, Worker, code_tokens,
};
use palmette::engine::{catalog, vocabulary};
use palmette::text::{
    Constrained, ItemSearch, TextEnd, TextEvent, TextModel, TextModelOptions, TextRequest, generate,
};
use palmette::{Bindings, GrammarSource, Item, LoadOptions, TokenId};
use serde_json::json;

/// A tokenizer with tokens for `<a_0>` to `<c_10>`, `<think>` and `</think>`.
fn fixtures() -> PathBuf {
    let recommend = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recommend");
    recommend.join("tests/recommend/fixtures/prompts/plain")
}

/// Random weights: what it says means nothing.
fn weights() -> Arc<Model> {
    let config = json!({
        "model_type": "qwen3", "vocab_size": 360, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 512,
        "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": true, "hidden_act": "silu",
    });
    let config = ModelConfig::from_bytes(config.to_string().as_bytes()).unwrap();
    Arc::new(Model::random(config, 7).unwrap())
}

fn shop() -> Arc<catalog::Catalog> {
    let items = (0..40_u32).map(|n| {
        let attributes = json!({"title": format!("tent {}", n % 9), "stock": n % 4});
        Item {
            id: format!("i{n}"),
            codes: vec![n % 7, n % 5, n * n % 6],
            attributes: attributes.as_object().unwrap().clone(),
        }
    });
    let items: Vec<Item> = items.collect();
    Arc::new(catalog::Catalog::build(items.into(), &BuildOptions::default()).unwrap())
}

fn text_model() -> TextModel {
    let options = LoadOptions::default();
    let vocabulary = vocabulary::load_with(fixtures().to_str().unwrap(), &options).unwrap();
    TextModel::from_parts("fixture", weights(), vocabulary, &TextModelOptions::default()).unwrap()
}

fn bound(model: &TextModel, text: &str, filter: &str) -> BoundGrammar {
    let source = GrammarSource::Gbnf { text: text.to_owned(), options: Default::default() };
    let grammar = model.compile_open(&source, &Default::default()).unwrap();
    let view = CatalogView::from(shop());
    let num_tokens = model.vocabulary().vocabulary().num_tokens();
    let tokens = code_tokens(&fixtures(), &view, num_tokens).unwrap();
    let bindings = Bindings::new().catalog("shop", view).code_tokens("shop", tokens);
    bindings.filter("shop", filter).unwrap().bind(&grammar.constraint).unwrap()
}

fn write(model: &TextModel, request: &TextRequest) -> (Vec<TokenId>, TextEnd) {
    let mut tokens = Vec::new();
    let ended = generate(model, request, &mut |event| {
        if let TextEvent::Text(piece) = event {
            tokens.extend(piece.tokens.iter().map(|token| token.token));
        }
        std::ops::ControlFlow::Continue(())
    });
    (tokens, ended.unwrap())
}

#[test]
fn an_item_after_reasoning_is_the_one_that_is_recommended() {
    let template = json!({
        "prompt": "{{ history | join(', ') }}: ", "before_item": "=", "special_tokens": false,
        "think": {"begin": "<think>", "end": "</think>", "then": "\n="},
    });
    let template = TemplateFile::from_json(&template.to_string()).unwrap();
    let view = CatalogView::from(shop());
    let prompts = Prompts::read_with(&fixtures(), template, Some(&view)).unwrap();
    let recommender = Arc::new(Recommender::new(weights(), shop(), prompts).unwrap());
    let mut worker = Worker::new(recommender, 1);
    let asked = Request {
        think: Some(Think::new(6)),
        include_seen: true,
        ..Request::new(History::Ids(&["i4", "i9"]), 40)
    };
    let answer = worker.recommend(&asked, &mut run_on).unwrap();

    let model = text_model();
    let bound = bound(&model, "root ::= <catalog:shop.codes>", "{}");
    let search = ItemSearch { beam_width: 128, alternatives: 127 };
    let mut request = TextRequest::new(worker.prompt().to_vec(), 3).search_items(search);
    request.constraint = Constrained::Grammar(bound.constraint().clone());
    let (tokens, ended) = write(&model, &request);
    let BoundSet::Codes(codes) = &bound.sets()[0] else { panic!("a set of codes") };
    let found = ended.searched[0].found.iter().flat_map(|one| {
        let member = codes.find_tokens(&one.tokens).expect("an item");
        codes.items(member).map(|item| (item, one.score))
    });
    let found: Vec<(u64, f32)> = found.collect();
    assert_eq!(found.len(), 40);
    for ((item, score), recommended) in found.iter().zip(&answer.items) {
        assert_eq!(*item, recommended.number);
        assert!((score - recommended.score).abs() < 1e-4, "{score} {recommended:?}");
    }
    let members = bound.members_of_tokens(&tokens, |_| 1).unwrap().unwrap();
    assert_eq!(members[0].item, Some(answer.items[0].number));
}

/// Reasoning, its mark, then items that are in stock with words after each.
#[test]
fn lists_of_items_with_words_between_are_written() {
    let model = text_model();
    let text = r#"root ::= [a-z ]{0,20} "</think>" (<catalog:shop.codes> words){1,5}
        words ::= [a-z ,]{0,9} "." "#;
    let in_stock = r#"{"range": {"stock": {"gt": 0}}}"#;
    let bound = bound(&model, text, in_stock);
    let matching = CatalogView::from(shop());
    let matching = matching.matching_ids(&palmette::Filter::parse(in_stock).unwrap()).unwrap();
    let prompt = model.encode_prompt("after <a_1><b_2><c_3>: <think>").unwrap();
    let mut num_items = 0;
    for seed in 0..6 {
        let search = ItemSearch { beam_width: 8, alternatives: 2 };
        let mut request = TextRequest::new(prompt.clone(), 150).search_items(search);
        request.constraint = Constrained::Grammar(bound.constraint().clone());
        (request.sampler.temperature, request.sampler.seed) = (1.0, seed);
        let (tokens, ended) = write(&model, &request);
        let members = bound.members_of_tokens(&tokens, |_| 1).unwrap().expect("a text of it");
        assert!(members.iter().all(|member| matching.contains(&member.value)));
        // After the mark an item must come; after words one may.
        assert!(!ended.searched.is_empty() && ended.searched.len() <= members.len());
        assert_eq!(members[0].span, ended.searched[0].place..ended.searched[0].place + 3);
        if ended.is_complete {
            num_items += members.len();
        }
    }
    assert!(num_items > 6, "{num_items}");
}

#[test]
fn titles_stand_within_words() {
    let model = text_model();
    let text = r#"root ::= words ("[" <catalog:shop.title> "]" words){1,2}
        words ::= [a-z ]{0,9}"#;
    let bound = bound(&model, text, r#"{"match": {"stock": 2}}"#);
    let mut request = TextRequest::new(model.encode_prompt("a tent: ").unwrap(), 120);
    request.constraint = Constrained::Grammar(bound.constraint().clone());
    for seed in 0..4 {
        (request.sampler.temperature, request.sampler.seed) = (1.0, seed);
        let (tokens, ended) = write(&model, &request);
        assert!(ended.is_complete && ended.searched.is_empty());
        let members = bound.members_of_tokens(&tokens, |_| 1).unwrap().expect("a text of it");
        assert!(!members.is_empty());
        assert!(members.iter().all(|member| member.value.starts_with("tent ")));
    }
}
