//! A list of items as a text: semantic IDs under a grammar, each found by a beam search.
//!
//! `cargo run --release -p palmette --example listed_items`
#![allow(clippy::print_stdout)] // It shows what it does.

use std::collections::BTreeMap;
use std::error::Error;
use std::ops::ControlFlow;

use palmette::engine::bindings::BoundSet;
use palmette::engine::decode::run_on;
use palmette::engine::recommend::{History, Request, Worker};
use palmette::engine::vocabulary::load_bytes;
use palmette::text::{
    Constrained, ItemSearch, TextEnd, TextEvent, TextModel, TextModelOptions, TextRequest, generate,
};
use palmette::{Bindings, Filter, GrammarSource, LoadOptions, TokenId};
use palmette_demo::Demo;

/// The tokens that a model writes, and the end.
fn write(
    model: &TextModel,
    request: &TextRequest,
) -> Result<(Vec<TokenId>, TextEnd), Box<dyn Error>> {
    let mut tokens = Vec::new();
    let ended = generate(model, request, &mut |event| {
        if let TextEvent::Text(piece) = event {
            tokens.extend(piece.tokens.iter().map(|token| token.token));
        }
        ControlFlow::Continue(())
    })?;
    Ok((tokens, ended))
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let demo = Demo::load()?;
    let (recommender, shop) = (demo.recommender(), demo.view().view());
    let format = recommender.format();

    // The model of the demonstration knows semantic IDs and no words: a token for each code.
    let mut names = vec!["</s>".to_owned(), "<s>".to_owned()];
    for level in &format.levels {
        names.extend((0..level.num_codes()).map(|code| format!("<{}_{code}>", level.prefix)));
    }
    let names = serde_json::to_vec(&names)?;
    let vocabulary = load_bytes("demo", &names, &LoadOptions::default())?;
    let model = recommender.engine().model().ok_or("a model of this processor")?;
    let options = TextModelOptions::default();
    let model = TextModel::from_parts("demo", model, vocabulary, &options)?;
    let num_tokens = model.vocabulary().vocabulary().num_tokens();

    // The grammar names a shop and knows none of its items; a request says which may be written.
    let text = "root ::= <catalog:shop.codes>{3}".to_owned();
    let source = GrammarSource::Gbnf { text, options: Default::default() };
    let grammar = model.compile_open(&source, &Default::default())?;
    let bind = |filter: &str| {
        let bindings = Bindings::new().catalog("shop", shop.clone()).filter("shop", filter)?;
        let bindings = bindings.code_tokens("shop", format.code_tokens(num_tokens)?);
        Ok::<_, Box<dyn Error>>(bindings.bind(&grammar.constraint)?)
    };
    let bound = bind("{}")?;

    let history = demo.sample_histories().swap_remove(0);
    let mut prompt = Vec::new();
    let codes: Vec<Vec<u32>> = history.iter().map(|&item| shop.codes(item)).collect();
    format.write_prompt(&codes, &mut prompt);
    let search = ItemSearch { beam_width: 128, alternatives: 4 };
    let mut request = TextRequest::new(prompt, 12).search_items(search);
    request.constraint = Constrained::Grammar(bound.constraint().clone());
    let (tokens, ended) = write(&model, &request)?;
    assert!(ended.is_complete);
    let members = bound.members_of_tokens(&tokens, |_| 1)?.ok_or("a text of the grammar")?;
    let BoundSet::Codes(items) = &bound.sets()[0] else { return Err("a set of codes".into()) };
    for (member, searched) in members.iter().zip(&ended.searched) {
        println!("{}, item {:?}, and others beside it", member.value, member.item);
        for found in &searched.found {
            let ids = items.find_tokens(&found.tokens).map(|of| items.items(of));
            let ids: Vec<&str> = ids.into_iter().flatten().map(|item| shop.id(item)).collect();
            println!("  {:.3} {}", found.score, ids.join(", "));
        }
    }
    assert_eq!((members.len(), ended.searched.len()), (3, 3));

    // The first is what recommending finds after the same prompt, with the same others beside it.
    let asked = Request { include_seen: true, ..Request::new(History::Numbers(&history), 40) };
    let asked = Request { beam_width: 128, ..asked };
    let best = Worker::new(recommender.clone(), 1).recommend(&asked, &mut run_on)?.items;
    let mut scores = BTreeMap::<Vec<TokenId>, f32>::new();
    for item in &best {
        let codes = shop.codes(item.number);
        let token = |(level, &code): (usize, &u32)| format.levels[level].tokens.token(code);
        let spelled: Option<Vec<TokenId>> = codes.iter().enumerate().map(token).collect();
        scores.entry(spelled.ok_or("a token a code")?).or_insert(item.score);
    }
    assert_eq!(members[0].item, Some(best[0].number));
    for found in &ended.searched[0].found {
        assert!((scores[&found.tokens] - found.score).abs() < 1e-3, "{found:?}");
    }

    // Of other items, others: the same grammar, not compiled again.
    let brand = r#"{"match": {"brand": "Fernhollow"}}"#;
    let of_brand = bind(brand)?;
    request.constraint = Constrained::Grammar(of_brand.constraint().clone());
    let (tokens, _) = write(&model, &request)?;
    let matching = shop.matching_ids(&Filter::parse(brand)?)?;
    let members = of_brand.members_of_tokens(&tokens, |_| 1)?.ok_or("a text of the grammar")?;
    assert!(members.len() == 3 && members.iter().all(|of| matching.contains(&of.value)));
    Ok(())
}
