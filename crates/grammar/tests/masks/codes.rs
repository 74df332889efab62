//! Semantic IDs as members: masks against those of a grammar that lists them, token by token.

use std::collections::BTreeSet;
use std::sync::Arc;

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::frontends::gbnf::{self, GbnfOptions};
use palmette_grammar::frontends::json_schema::{self, JsonSchemaOptions};
use palmette_grammar::frontends::lark::{self, LarkOptions};
use palmette_grammar::{
    BindError, Budget, Grammar, GrammarConstraint, GrammarScratch, MaskBudget, PreparedVocabulary,
    Recognizer, RecognizerLimits, SlotKind,
};
use palmette_testkit::laws;
use palmette_testkit::member_sets::NaiveSet;
use proptest::prelude::*;

/// Semantic IDs as tokens.
type Ids = BTreeSet<Vec<u32>>;

const GRAMMARS: [&str; 7] = [
    r#"root ::= <catalog:s.codes>"#,
    r#"root ::= "(" <catalog:s.codes> ")" "#,
    r#"root ::= <catalog:s.codes> <catalog:t.codes>"#,
    r#"root ::= ([a-c]* <catalog:s.codes>){1,3} [a-c]*"#,
    r#"root ::= <catalog:s.codes> ("," <catalog:s.codes>)* | <catalog:t.codes> "." "#,
    r#"root ::= x "!" x ::= <catalog:s.codes> | x <catalog:t.codes> | "(" x ")""#,
    r#"root ::= (<catalog:s.codes> | <[300]> | [ab]){1,4}"#,
];

/// Texts, among them two that spell codes too, then special tokens; the last one ends.
fn vocabulary() -> Arc<PreparedVocabulary> {
    let texts = ["a", "b", "ab", "(", ")", ",", ".", "!", "a,", "b)", "(a", "ca", "x", "xa"];
    let special = std::iter::repeat_n(None, 310 - texts.len());
    let tokens = texts.into_iter().map(Some).chain(special);
    let vocabulary = Vocabulary::new(tokens, [TokenId(309)]).expect("texts");
    Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)))
}

fn read(source: &str) -> Grammar {
    gbnf::parse(source, &GbnfOptions::default()).unwrap_or_else(|error| panic!("{source}: {error}"))
}

fn ready(grammar: Grammar, vocabulary: &PreparedVocabulary) -> Arc<Recognizer> {
    let grammar = grammar.with_tokens_of(vocabulary.vocabulary()).expect("tokens by number");
    let limits = RecognizerLimits::default();
    let recognizer = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
    Arc::new(recognizer.expect("sound"))
}

fn naive(ids: &Ids) -> Arc<NaiveSet> {
    let members = ids.iter().zip(0..).map(|(id, at)| {
        let spelled = id.iter().flat_map(|&token| TokenId(token).to_spelling());
        (at, spelled.collect::<Vec<u8>>(), format!("{id:?}").into_bytes())
    });
    Arc::new(NaiveSet::spelled(members))
}

fn bind(open: &GrammarConstraint, s: &Ids, t: &Ids) -> Result<GrammarConstraint, BindError> {
    open.bind(|slot| {
        assert_eq!(slot.kind, SlotKind::Codes);
        Ok(naive(if slot.name == "s" { s } else { t }))
    })
}

/// The grammar with the tokens of the IDs in place of the sets.
fn listed(source: &str, s: &Ids, t: &Ids) -> Grammar {
    let list = |ids: &Ids| {
        let id = |id: &Vec<u32>| id.iter().map(|token| format!("<[{token}]>")).collect::<Vec<_>>();
        let ids: Vec<String> = ids.iter().map(|one| id(one).join(" ")).collect();
        match ids.is_empty() {
            true => "nothing".to_owned(),
            false => format!("({})", ids.join(" | ")),
        }
    };
    let source = source.replace("<catalog:s.codes>", &list(s));
    let source = source.replace("<catalog:t.codes>", &list(t));
    read(&format!("{source}\nnothing ::= nothing \"x\"\n"))
}

fn filled(
    constraint: &GrammarConstraint,
    state: &palmette_grammar::GrammarState,
    scratch: &mut GrammarScratch,
) -> Vec<u32> {
    let mut row = vec![!0; mask::num_words(constraint.num_tokens())];
    // The engine alone, which may not walk instead.
    let work = MaskBudget { walk: 0, ..MaskBudget::unlimited() };
    constraint.fill_mask_within(state, scratch, &mut row, &work).expect("small");
    row
}

/// IDs of one to three tokens, some with text, of which some are prefixes of others.
fn ids() -> impl Strategy<Value = Ids> {
    let token = prop::sample::select(vec![12_u32, 13, 20, 255, 256, 300]);
    prop::collection::btree_set(prop::collection::vec(token, 1..4), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn masks_are_those_of_the_listed_tokens(
        which in 0..GRAMMARS.len(),
        s in ids(),
        t in ids(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 9),
    ) {
        let vocabulary = vocabulary();
        let open = read(GRAMMARS[which]);
        let slow = GrammarConstraint::by_walking(ready(open.clone(), &vocabulary), Arc::clone(&vocabulary));
        let open = GrammarConstraint::new(ready(open, &vocabulary), Arc::clone(&vocabulary));
        let listed = ready(listed(GRAMMARS[which], &s, &t), &vocabulary);
        let listed = GrammarConstraint::new(listed, Arc::clone(&vocabulary));
        let Ok(bound) = bind(&open, &s, &t) else {
            prop_assert!(listed.recognizer().start().is_none());
            return Ok(());
        };
        let slow = bind(&slow, &s, &t).expect("it was bound");
        let (mut one, mut other, mut slowly) = (bound.start(), listed.start(), slow.start());
        let (scratch, theirs, slow_scratch) =
            (&mut GrammarScratch::default(), &mut GrammarScratch::default(), &mut GrammarScratch::default());
        let mut tokens = Vec::new();
        for choice in choices {
            let found = filled(&bound, &one, scratch);
            let shown = |row: &[u32]| mask::iter(row).map(|token| token.0).collect::<Vec<_>>();
            prop_assert_eq!(shown(&found), shown(&filled(&listed, &other, theirs)), "after {:?}", &tokens);
            let mut walked = vec![0; found.len()];
            slow.fill_mask(&slowly, slow_scratch, &mut walked).expect("small");
            prop_assert_eq!(shown(&found), shown(&walked), "after {:?}", &tokens);
            let allowed: Vec<TokenId> = mask::iter(&found).filter(|token| token.0 != 309).collect();
            if allowed.is_empty() {
                break;
            }
            let token = allowed[choice.index(allowed.len())];
            bound.commit(&mut one, token, scratch).expect("allowed");
            slow.commit(&mut slowly, token, slow_scratch).expect("allowed");
            listed.commit(&mut other, token, theirs).expect("allowed");
            tokens.push(token);
            // Counting each token as one byte, members are IDs of their sets at their places.
            let members = bound.members_of_tokens(&tokens, |_| 1, scratch).expect("small").expect("live");
            for member in &members {
                let set = if bound.slots()[member.slot.index()].name == "s" { &s } else { &t };
                let written: Vec<u32> = tokens[member.span.clone()].iter().map(|token| token.0).collect();
                prop_assert_eq!(set.iter().position(|id| *id == written), Some(member.member.0 as usize));
            }
        }
    }
}

/// Beside free text of a real vocabulary an ID may begin after every token, and within none.
#[test]
fn free_text_of_a_real_vocabulary_may_hold_ids() {
    let vocabulary = palmette_vocabulary::load("r50k_base").expect("it is built in").vocabulary;
    let vocabulary = Arc::new(PreparedVocabulary::new(vocabulary));
    let grammar = read("root ::= (text <catalog:s.codes>){1,2} text\ntext ::= [^\\x00]*");
    let open = GrammarConstraint::new(ready(grammar, &vocabulary), Arc::clone(&vocabulary));
    let ids: Ids = [vec![40_000, 17], vec![40_000, 300, 5], vec![9]].into();
    let bound = bind(&open, &ids, &ids).expect("members");
    let scratch = &mut GrammarScratch::default();
    let after = |tokens: &[u32], scratch: &mut GrammarScratch| {
        let mut state = bound.start();
        for &token in tokens {
            bound.commit(&mut state, TokenId(token), scratch).expect("allowed");
        }
        mask::iter(&filled(&bound, &state, scratch)).map(|token| token.0).collect::<Vec<_>>()
    };
    let (start, text) = (after(&[], scratch), after(&[318, 257], scratch));
    assert_eq!(start, text);
    assert!(start.len() > 49_000 && start.binary_search(&40_000).is_ok());
    // 40,000 is text as well, so what it may begin is not all that follows.
    let begun = after(&[318, 40_000], scratch);
    assert_eq!(begun, start);
    let written = [318, 40_000, 17, 257, 9].map(TokenId);
    let members = bound.members_of_tokens(&written, |_| 1, scratch).expect("small").expect("live");
    assert!(members.iter().all(|member| member.span.len() < 3), "{members:?}");
}

#[test]
fn codes_in_json_strings_are_refused_and_no_forced_text() {
    let schema = r#"{"type": "string", "x-catalog": "shop.codes"}"#;
    let error = json_schema::parse(schema, &JsonSchemaOptions::default()).expect_err("no string");
    let error = error.to_string();
    assert!(error.contains("no JSON string holds") && error.contains("shop.id"), "{error}");
    let vocabulary = vocabulary();
    let ids: Ids = [vec![20, 255]].into();
    let open = ready(read(r#"root ::= "(" <catalog:s.codes> ")""#), &vocabulary);
    let bound = bind(&GrammarConstraint::new(open, vocabulary), &ids, &ids).expect("members");
    let (mut state, scratch) = (bound.start(), &mut GrammarScratch::default());
    assert_eq!(bound.forced_bytes(&state, 10, scratch).expect("small"), b"(");
    let forced = bound.forced_tokens(&state, 10, scratch).expect("small");
    assert_eq!(forced, [3, 20, 255, 4, 309].map(TokenId));
    bound.commit(&mut state, TokenId(3), scratch).expect("allowed");
    assert_eq!(bound.forced_bytes(&state, 10, scratch).expect("small"), b"");
    laws::check(&bound, 1, 4, 6);
}

/// In a distinct scope a search goes through the items that were not named before, and no others.
#[test]
fn searches_leave_out_what_was_named_before() {
    let vocabulary = vocabulary();
    let source = "start: list\nlist[distinct=s]: \"(\" item (\",\" item)* \")\"\n\
                  item: %catalog {\"name\": \"s\", \"field\": \"codes\"}\n";
    let grammar = lark::parse(source, &LarkOptions::default()).expect("a grammar");
    let open = GrammarConstraint::new(ready(grammar, &vocabulary), vocabulary);
    let mut left: Ids = [vec![20, 255], vec![20, 256], vec![255, 20], vec![300, 12]].into();
    let bound = bind(&open, &left, &left).expect("members");
    let (mut state, scratch) = (bound.start(), &mut GrammarScratch::default());
    let order = [[20, 256], [300, 12], [20, 255]];
    for (before, id) in [3, 5, 5].into_iter().zip(order) {
        bound.commit(&mut state, TokenId(before), scratch).expect("allowed");
        let row = filled(&bound, &state, scratch);
        let part = bound.next_part(&state, scratch, &row).expect("small").expect("an item comes");
        let (mut found, mut paths) = (Ids::new(), vec![(part.constraint.start(), Vec::new())]);
        let mut memory = Default::default();
        while let Some((at, tokens)) = paths.pop() {
            if part.constraint.is_accepting(&at, &mut memory).expect("no limits") {
                found.insert(tokens.clone());
            }
            let more = |token: TokenId, next| {
                paths.push((next, [&tokens[..], &[token.0]].concat()));
            };
            part.constraint.successors(&at, &mut memory, more).expect("no limits");
        }
        assert_eq!(found, left);
        for token in id {
            bound.commit(&mut state, TokenId(token), scratch).expect("allowed");
        }
        left.remove(&id[..]);
    }
}
