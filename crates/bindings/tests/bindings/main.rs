//! Bindings of catalogs to grammars: sets, members of texts, and everything that does not fit.

mod places;
mod scopes;

use std::sync::Arc;

use palmette_bindings::{BindingError, Bindings};
use palmette_catalog::{BuildOptions, Catalog, CodeTokens, Item, LevelTokens};
use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::frontends::gbnf;
use palmette_grammar::{
    Budget, GrammarConstraint, GrammarScratch, PreparedVocabulary, Recognizer, RecognizerLimits,
};
use serde_json::json;

const TOKENS: [&str; 12] = ["P", "1", "2", "3", "P1", "12", ",", "Acme", "Ze", "ta", ":", "x"];

fn shop() -> Catalog {
    let items = [("P1", "Acme", 3), ("P12", "Zeta", 0), ("P2", "Acme", 7), ("P3", "x", 1)];
    let items = items.map(|(id, brand, stock)| {
        let attributes = json!({"brand": brand, "stock": stock}).as_object().unwrap().clone();
        Item { id: id.into(), codes: vec![0, stock], attributes }
    });
    Catalog::build(items.to_vec().into(), &BuildOptions::default()).expect("sound items")
}

fn grammar(source: &str) -> GrammarConstraint {
    let texts = TOKENS.iter().map(Some).chain([None]);
    let vocabulary = Vocabulary::new(texts, [TokenId(TOKENS.len() as u32)]).expect("texts");
    let vocabulary = Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)));
    let grammar = gbnf::parse(source, &Default::default()).expect(source);
    let limits = RecognizerLimits::default();
    let ready = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
    GrammarConstraint::new(Arc::new(ready.expect("sound")), vocabulary)
}

fn first_tokens(constraint: &GrammarConstraint) -> Vec<&'static str> {
    let mut row = vec![0; mask::num_words(constraint.num_tokens())];
    let scratch = &mut GrammarScratch::default();
    constraint.fill_mask(&constraint.start(), scratch, &mut row).expect("small");
    mask::iter(&row).filter_map(|token| TOKENS.get(token.index()).copied()).collect()
}

const SKU_AND_BRAND: &str = r#"root ::= <catalog:shop> ":" <catalog:shop.brand> | <catalog:list>"#;

fn list(bindings: Bindings) -> Bindings {
    bindings.values("list", ["12", "x", "12"]).expect("short")
}

#[test]
fn members_of_a_text_are_named_with_their_items() {
    let grammar = grammar(SKU_AND_BRAND);
    let bound = list(Bindings::new().catalog("shop", shop())).bind(&grammar).expect("it fits");
    assert_eq!(first_tokens(bound.constraint()), ["P", "1", "P1", "12", "x"]);
    let members = bound.members(b"P12:Zeta").expect("small").expect("it begins a text");
    let shown: Vec<_> = members
        .iter()
        .map(|of| (&*of.set, &*of.field, &*of.value, of.item.is_some(), of.span.clone()))
        .collect();
    assert_eq!(shown, [("shop", "id", "P12", true, 0..3), ("shop", "brand", "Zeta", false, 4..8)]);
    let sources = bound.sources();
    assert_eq!(sources.len(), 2);
    assert_eq!((&*sources[0].name, sources[0].num_items, sources[0].eligible), ("list", 2, 2));
    assert_eq!((&*sources[1].name, sources[1].num_items, sources[1].eligible), ("shop", 4, 4));
}

/// The request's filter and the grammar's both count, and so do several of one request.
#[test]
fn filters_are_joined() {
    let grammar = grammar(r#"root ::= <catalog:shop>"#);
    let stock = Bindings::new().catalog("shop", shop());
    let stock = stock.filter("shop", r#"{"range": {"stock": {"gt": 0}}}"#).expect("a filter");
    let bound = stock.bind(&grammar).expect("it fits");
    assert_eq!(bound.sources()[0].eligible, 3);
    assert!(bound.members(b"P12").expect("small").is_none());
    let acme = stock.filter("shop", r#"{"match": {"brand": "Acme"}}"#).expect("a filter");
    let bound = acme.bind(&grammar).expect("it fits");
    assert_eq!(bound.sources()[0].eligible, 2);
    assert!(bound.members(b"P3").expect("small").is_none());
}

#[test]
fn what_does_not_fit_says_what_to_do() {
    let source = grammar(SKU_AND_BRAND);
    let bind =
        |bindings: Bindings| bindings.bind(&source).expect_err("it does not fit").to_string();
    assert_eq!(
        bind(Bindings::new()),
        "the grammar names the catalog shop, which is not bound; nothing is bound"
    );
    let near = list(Bindings::new().catalog("shpo", shop()));
    assert_eq!(
        bind(near),
        "the grammar names the catalog shop, which is not bound; the nearest that is bound is shpo"
    );
    let more = list(Bindings::new().catalog("shop", shop()).catalog("shops", shop()));
    assert_eq!(
        bind(more),
        "shops is bound, and the grammar names no such catalog; the nearest that it names is shop"
    );
    let fields = grammar("root ::= <catalog:shop.brnad>");
    let error = Bindings::new().catalog("shop", shop()).bind(&fields).expect_err("no such field");
    assert_eq!(
        error.to_string(),
        r#"shop.brnad: field "brnad" is not there; the nearest is "brand""#
    );
    let plain = grammar(r#"root ::= "x""#);
    let error = Bindings::new().catalog("shop", shop()).bind(&plain).expect_err("no slot");
    assert!(error.to_string().ends_with("it names none: leave it out"), "{error}");
    assert!(Bindings::new().bind(&plain).is_ok());
    let error = Bindings::new().filter("shop", "{}").expect_err("nothing to filter");
    assert!(matches!(error, BindingError::Unfiltered { .. }), "{error}");
    let error = Bindings::new().catalog("shop", shop()).filter("shop", "{]").expect_err("no JSON");
    assert!(error.to_string().starts_with("filter of shop: "), "{error}");
    let long = Bindings::new().values("list", ["x".repeat(1 << 17)]).expect_err("too long");
    assert!(long.to_string().starts_with("values of list: "), "{long}");
}

#[test]
fn quotes_of_documents_are_named_with_their_places() {
    let grammar = grammar(r#"root ::= <substring:doc.words> "," <catalog:shop>"#);
    let bindings = Bindings::new().catalog("shop", shop());
    let bound = bindings.clone().documents("doc", ["x 12", "P1 Acme, x"]).bind(&grammar);
    let bound = bound.expect("it fits");
    let members = bound.members(b"P1 Acme,P3").expect("small").expect("it begins a text");
    let place = members[0].place.as_ref().expect("a quote");
    assert_eq!((place.document, place.span.clone()), (1, 0..7));
    assert_eq!((&*members[0].set, &*members[0].field, &*members[1].value), ("doc", "words", "P3"));
    assert!(bound.members(b"Zeta").expect("small").is_none());
    let listed = bindings.clone().values("doc", ["x"]).expect("short");
    let error = listed.bind(&grammar).expect_err("a list").to_string();
    assert_eq!(error, "the grammar names doc as documents, and a catalog is bound; bind documents");
    let error = bindings.documents("doc", ["", ""]).bind(&grammar).expect_err("nothing to quote");
    let why = "doc: none of its 2 documents has words of at least 1 characters";
    assert_eq!(
        error.to_string(),
        format!("no text is left, since the grammar needs a member: {why}")
    );
}

/// A set without members takes its alternatives with it; where no text is left, the error counts.
#[test]
fn empty_sets_leave_alternatives_out() {
    let none = |source: &str| {
        let grammar = grammar(source);
        let bindings = Bindings::new().catalog("shop", shop());
        let bindings =
            bindings.filter("shop", r#"{"match": {"brand": "nobody"}}"#).expect("a filter");
        (grammar, bindings)
    };
    let (source, bindings) = none(SKU_AND_BRAND);
    let bound = list(bindings.clone()).bind(&source).expect("the list is left");
    assert_eq!(first_tokens(bound.constraint()), ["1", "12", "x"]);
    // Bound again it is the same grammar, not compiled anew.
    let again = list(bindings).bind(&source).expect("the list is left");
    assert!(Arc::ptr_eq(again.constraint().recognizer(), bound.constraint().recognizer()));
    let (source, bindings) = none("root ::= <catalog:shop>");
    let error = bindings.bind(&source).expect_err("no text is left").to_string();
    assert_eq!(error, "no text is left, since the grammar needs a member: shop: 0 of 4 match");
}

/// Level 0 has one code, of token `P1`; the codes of level 1 are the first eight tokens.
fn code_tokens(num_tokens: usize) -> CodeTokens {
    let level = |first_token, num_codes| LevelTokens { first_token, num_codes };
    CodeTokens::new(vec![level(4, 1), level(0, 8)], num_tokens).expect("tokens")
}

#[test]
fn items_are_written_as_semantic_ids_in_tokens_of_the_model() {
    let grammar = grammar(r#"root ::= "x" <catalog:shop.codes> ("," <catalog:shop.codes>)*"#);
    let in_stock = Bindings::new().catalog("shop", shop());
    let in_stock = in_stock.filter("shop", r#"{"range": {"stock": {"gt": 0}}}"#).expect("a filter");
    let unspelled = in_stock.bind(&grammar).expect_err("no tokens").to_string();
    assert!(unspelled.contains("no tokens spell the codes of shop"), "{unspelled}");
    let other = in_stock.clone().code_tokens("shop", code_tokens(99));
    let other = other.bind(&grammar).expect_err("another vocabulary").to_string();
    assert!(other.contains("are of 99, and the grammar's vocabulary has 13"), "{other}");

    let bound = in_stock.code_tokens("shop", code_tokens(13)).bind(&grammar).expect("it fits");
    let source = &bound.sources()[0];
    assert_eq!((source.num_items, source.eligible), (4, 3));
    let (mut state, scratch) = (bound.constraint().start(), &mut GrammarScratch::default());
    let allowed = [vec![11], vec![4], vec![1, 3, 7], vec![6, 12], vec![4], vec![1, 3, 7]];
    let tokens = [11, 4, 3, 6, 4, 7].map(TokenId);
    for (token, expected) in tokens.into_iter().zip(allowed) {
        let mut row = vec![0; mask::num_words(13)];
        bound.constraint().fill_mask(&state, scratch, &mut row).expect("small");
        assert_eq!(mask::iter(&row).map(|token| token.0).collect::<Vec<_>>(), expected);
        bound.constraint().commit(&mut state, token, scratch).expect("allowed");
    }
    // `x` and `,` are a byte each, and tokens that are read as numbers none.
    let num_bytes = |token: TokenId| usize::from([6, 11].contains(&token.0));
    let members = bound.members_of_tokens(&tokens, num_bytes).expect("small").expect("it fits");
    let shown: Vec<_> =
        members.iter().map(|of| (&*of.field, &*of.value, of.item, of.span.clone())).collect();
    assert_eq!(shown, [("codes", "P1", Some(2), 1..1), ("codes", "P2", Some(3), 2..2)]);
    assert!(bound.members_of_tokens(&[11, 0].map(TokenId), num_bytes).unwrap().is_none());
    let values = Bindings::new().values("shop", ["a"]).expect("short");
    let values = values.code_tokens("shop", code_tokens(13)).bind(&grammar).expect_err("no codes");
    assert!(values.to_string().contains("no semantic IDs"), "{values}");
}
