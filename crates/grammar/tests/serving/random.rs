//! Whatever a server does between two masks, in any order, with any grammar: the masks stay those
//! of the definition.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::{
    Budget, Grammar, GrammarConstraint, GrammarScratch, GrammarSource, Lexing, MaskBudget,
    PrecomputeLimits, PrecomputeStop, PreparedVocabulary, Recognizer, RecognizerLimits,
    SavedGrammar,
    frontends::{gbnf, json_schema},
};
use palmette_testkit::grammar::generate;
use proptest::prelude::*;

use super::{filled, schema_source, vocabulary, walking};
use palmette_testkit::json::schemas;

/// What may happen between two masks.
#[derive(Clone, Debug)]
enum Event {
    Commit(prop::sample::Index),
    Rollback(usize),
    /// Finds masks out ahead, with so much work.
    Complete(u64),
    /// Saves the grammar with what is known of it, and goes on with the file.
    Reopen,
    /// Asks which tokens are forced.
    Force(usize),
    /// Asks for a mask with too little work to find it out.
    Hurry(u64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        6 => any::<prop::sample::Index>().prop_map(Event::Commit),
        1 => (0..4_usize).prop_map(Event::Rollback),
        1 => prop::sample::select(vec![0, 50, 3000, 30_000]).prop_map(Event::Complete),
        1 => Just(Event::Reopen),
        1 => (0..4_usize).prop_map(Event::Force),
        1 => prop::sample::select(vec![0, 10, 200]).prop_map(Event::Hurry),
    ];
    prop::collection::vec(event, 1..16)
}

/// Few enough that what is known is dropped again and again; or as many as there are where nobody
/// says.
fn mask_bytes() -> impl Strategy<Value = Option<usize>> {
    prop::sample::select(vec![Some(0), Some(2_000), Some(20_000), None, None])
}

fn check(
    (grammar, source): (Grammar, Option<&GrammarSource>),
    vocabulary: &Arc<PreparedVocabulary>,
    mask_bytes: Option<usize>,
    events: &[Event],
) -> Result<(), TestCaseError> {
    let limits = RecognizerLimits::default();
    let recognizer = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
    let recognizer = Arc::new(recognizer.expect("a small grammar"));
    let bounded = |constraint: GrammarConstraint| match mask_bytes {
        Some(bytes) => constraint.with_mask_bytes(bytes),
        None => constraint,
    };
    let mut fast = bounded(GrammarConstraint::new(recognizer, Arc::clone(vocabulary)));
    let slow = walking(&fast, vocabulary);
    let mut scratch = GrammarScratch::default();
    let mut tokens: Vec<TokenId> = Vec::new();
    let (mut state, mut expected) = (fast.start(), slow.start());
    for event in events {
        match event {
            Event::Commit(choice) => {
                let row = filled(&slow, &expected);
                prop_assert_eq!(&filled(&fast, &state), &row, "after {:?}", tokens);
                let allowed: Vec<TokenId> = mask::iter(&row).collect();
                if !allowed.is_empty() {
                    let token = *choice.get(&allowed);
                    fast.commit(&mut state, token, &mut scratch).expect("in the mask");
                    slow.commit(&mut expected, token, &mut scratch).expect("in the mask");
                    tokens.push(token);
                }
            }
            Event::Rollback(count) => {
                let count = (*count).min(tokens.len());
                fast.rollback(&mut state, count).expect("so many were committed");
                slow.rollback(&mut expected, count).expect("so many were committed");
                tokens.truncate(tokens.len() - count);
            }
            Event::Complete(steps) => {
                let limits = PrecomputeLimits { steps: *steps, ..PrecomputeLimits::default() };
                fast.precompute(&limits, &AtomicBool::new(false)).expect("no limit of the grammar");
            }
            Event::Reopen => {
                let Some(source) = source else { continue };
                let bytes = fast.to_bytes(source).expect("its own source");
                let saved = SavedGrammar::from_bytes(bytes.into()).expect("it was saved just now");
                let reopened = saved.compile(vocabulary, &limits, &mut Budget::unlimited());
                fast = bounded(reopened.expect("the same vocabulary").constraint);
                state = fast.start();
                for &token in &tokens {
                    fast.commit(&mut state, token, &mut scratch).expect("it was allowed");
                }
            }
            Event::Force(limit) => {
                let forced = fast.forced_tokens(&state, *limit, &mut scratch).expect("no limit");
                let mut at = expected.clone();
                for place in 0..*limit {
                    let row = filled(&slow, &at);
                    let mut allowed = mask::iter(&row);
                    let only = allowed.next().filter(|_| allowed.next().is_none());
                    prop_assert_eq!(forced.get(place), only.as_ref(), "after {:?}", tokens);
                    let Some(only) = only else { break };
                    slow.commit(&mut at, only, &mut scratch).expect("in the mask");
                }
            }
            Event::Hurry(steps) => {
                let work = MaskBudget { explore: *steps, walk: *steps, ..MaskBudget::unlimited() };
                let mut row = vec![!0; mask::num_words(fast.num_tokens())];
                if fast.fill_mask_within(&state, &mut scratch, &mut row, &work).is_ok() {
                    prop_assert_eq!(row, filled(&slow, &expected), "after {:?}", tokens);
                }
            }
        }
    }
    prop_assert_eq!(filled(&fast, &state), filled(&slow, &expected), "after {:?}", tokens);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn masks_of_random_grammars_stay_those_of_a_walk(
        grammar in generate::text_grammar(),
        texts in generate::vocabulary(),
        mask_bytes in mask_bytes(),
        events in events(),
    ) {
        let end = TokenId(texts.len() as u32);
        let vocabulary = Vocabulary::new(texts.iter().map(Some).chain([None]), [end]).unwrap();
        let vocabulary = Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)));
        check((generate::over_alphabet(&grammar), None), &vocabulary, mask_bytes, &events)?;
    }

    #[test]
    fn masks_of_random_schemas_stay_those_of_a_walk(
        schema in schemas(),
        mask_bytes in mask_bytes(),
        events in events(),
    ) {
        let source = schema_source(&schema.to_string());
        // Nothing is valid for some, and some cannot be expressed: that is another test's matter.
        if let Ok((grammar, _)) = source.parse() {
            check((grammar, Some(&source)), &VOCABULARY, mask_bytes, &events)?;
        }
    }
}

/// All grammars share what is known of pieces, as in a server.
static VOCABULARY: LazyLock<Arc<PreparedVocabulary>> = LazyLock::new(vocabulary);

/// Follows random texts after a completion: no more than so much work is left for any mask where it
/// got to its end, and masks are a walk's. Memory alone may end it before: some small schemas over
/// numbers have very many lexemes in progress.
fn check_complete(
    grammar: Grammar,
    vocabulary: &Arc<PreparedVocabulary>,
    walks: &[Vec<prop::sample::Index>],
    work: u64,
) -> Result<(), TestCaseError> {
    let limits = RecognizerLimits::default();
    let recognizer = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
    let recognizer = Arc::new(recognizer.expect("a small grammar"));
    let constraint = GrammarConstraint::new(recognizer, Arc::clone(vocabulary));
    let slow = walking(&constraint, vocabulary);
    // Some schemas would take minutes to find out about, and little memory.
    let limits = PrecomputeLimits { steps: 2_000_000, ..PrecomputeLimits::default() };
    let done = constraint.precompute(&limits, &AtomicBool::new(false)).expect("small");
    let to_its_end = done.stopped.is_none();
    match done.stopped {
        None => prop_assert_eq!(done.open, 0),
        Some(PrecomputeStop::Bytes) => {
            let bytes = constraint.bytes();
            prop_assert!(bytes > limits.bytes / 4, "stopped for memory at {bytes} bytes");
        }
        Some(stopped) => prop_assert_eq!(stopped, PrecomputeStop::Steps),
    }
    let explore = if done.is_complete { 0 } else { work };
    let little = MaskBudget { explore, walk: 0, ..MaskBudget::unlimited() };
    let mut scratch = GrammarScratch::default();
    for walk in walks {
        let (mut state, mut text) = (constraint.start(), Vec::new());
        for index in walk {
            let expected = filled(&slow, &state);
            let mut row = vec![!0; expected.len()];
            // Digits and blanks are counted, and counts followed until they look alike for the
            // longest token.
            let count = |of: fn(&u8) -> bool| text.iter().filter(|&byte| of(byte)).count();
            let is_short = count(u8::is_ascii_digit) <= 4 && count(u8::is_ascii_whitespace) <= 1;
            if done.is_complete || to_its_end && is_short {
                let known = constraint.fill_mask_within(&state, &mut scratch, &mut row, &little);
                prop_assert!(
                    known.is_ok(),
                    "{known:?} after {:?}",
                    text.escape_ascii().to_string()
                );
                prop_assert_eq!(&row, &expected);
            }
            prop_assert_eq!(&filled(&constraint, &state), &expected);
            let allowed: Vec<TokenId> = mask::iter(&expected).collect();
            if allowed.is_empty() {
                break;
            }
            let token = *index.get(&allowed);
            text.extend_from_slice(vocabulary.vocabulary().text(token));
            constraint.commit(&mut state, token, &mut scratch).expect("it is allowed");
        }
    }
    Ok(())
}

fn walks() -> impl Strategy<Value = Vec<Vec<prop::sample::Index>>> {
    prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 1..20), 1..6)
}

proptest! {
    // A case takes seconds where memory ends the completion: shrinking one that fails is cut short.
    #![proptest_config(ProptestConfig { max_shrink_iters: 40, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn nothing_is_left_to_be_found_out_after_a_completion(schema in schemas(), walks in walks()) {
        let options = json_schema::JsonSchemaOptions::default();
        if let Ok(grammar) = json_schema::parse(&schema.to_string(), &options) {
            check_complete(grammar, &vocabulary(), &walks, 0)?;
        }
    }

    /// Stacks are all known where lexemes begin by the parser's contexts.
    #[test]
    fn nothing_at_all_is_left_of_contextual_grammars(
        grammar in generate::text_grammar(),
        texts in generate::vocabulary(),
        walks in walks(),
    ) {
        let grammar = generate::over_alphabet(&grammar);
        if grammar.lexing() == Lexing::Contextual {
            let end = TokenId(texts.len() as u32);
            let vocabulary = Vocabulary::new(texts.iter().map(Some).chain([None]), [end]).unwrap();
            let vocabulary = Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)));
            check_complete(grammar, &vocabulary, &walks, u64::MAX)?;
        }
    }

    /// Where stacks part, what their states say is known, but is to be put together.
    #[test]
    fn little_is_left_of_other_grammars(
        grammar in prop::sample::select(vec![
            "root ::= e\ne ::= e \"+\" e | [0-9]+ | \"(\" e \")\"",
            "root ::= \"[\" root \"]\" | \"(\" root \")\" | \"{\" root \"}\" | \"\"",
            "root ::= (k \":\" [^,]* \",\")*\nk ::= \"ab\" | \"abc\" | [a-c]+",
        ]),
        walks in walks(),
    ) {
        let grammar = gbnf::parse(grammar, &gbnf::GbnfOptions::default()).expect("a grammar");
        check_complete(grammar, &vocabulary(), &walks, 64)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2))]

    /// One that takes more than the memory which a completion has.
    #[test]
    fn masks_stay_right_where_memory_ends_a_completion(walks in walks()) {
        let schema = serde_json::json!({
            "prefixItems": [{
                "properties": { "a": { "enum": [[-0.25, "a"]] } },
                "required": ["b"],
                "additionalProperties": { "minLength": 0, "maxLength": 0 },
            }],
            "items": {
                "if": { "type": "number", "exclusiveMaximum": -2 },
                "then": { "multipleOf": 2.0 },
                "contains": true,
                "minContains": 0,
                "unevaluatedItems": false,
            },
        });
        let grammar = json_schema::parse(&schema.to_string(), &Default::default()).expect("small");
        check_complete(grammar, &vocabulary(), &walks, 0)?;
    }
}
