//! Files of compiled grammars from which the fuzzer starts, and questions to ask of one.

use std::sync::Arc;

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::{
    Budget, GrammarConstraint, GrammarScratch, GrammarSource, MaskBudget, PreparedVocabulary, Recognizer,
    RecognizerLimits, SavedGrammar,
};

use crate::random::Random;

/// Largest number of steps that anything may take.
const STEPS: u64 = 2_000_000;

/// A small file: of a schema, a grammar with an ignored terminal and lookarounds, or one by
/// indentation; with some masks.
pub fn compiled_grammar_file(seed: u64) -> Vec<u8> {
    let random = &mut Random(seed);
    let source = match random.below(4) {
        0 => schema(
            r#"{"properties": {"a": {"type": "string", "maxLength": 9}}, "required": ["a"]}"#,
        ),
        1 => schema(r#"{"items": {"enum": ["ab", 10, null]}, "minItems": 2}"#),
        2 => lark("start: e\ne: e \"+\" e | A\nA: /[a-b]+(?!1)/ | /\"(.*?)\"/\n%ignore \" \""),
        _ => lark(
            "start: (A _NEWLINE [_INDENT start _DEDENT])+\nA: /[a-z]+/\n_NEWLINE: /\\n */\n\
                   %declare _INDENT _DEDENT",
        ),
    };
    let limits = RecognizerLimits::default();
    let (grammar, _) = source.parse().expect("a grammar");
    let recognizer = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::new(STEPS));
    let constraint =
        GrammarConstraint::new(Arc::new(recognizer.expect("a small grammar")), vocabulary());
    for _ in 0..random.below(4) {
        walk(&constraint, random);
    }
    constraint.to_bytes(&source).expect("its own source")
}

/// Opens a file, and asks for masks along a walk: they may be wrong, but there are answers or
/// errors.
pub fn ask_compiled(data: &[u8]) {
    let Ok(saved) = SavedGrammar::from_bytes(data.to_vec().into()) else { return };
    let mut limits = RecognizerLimits::default();
    limits.lexer.max_states = 2_000;
    limits.lexer.max_expressions = 20_000;
    limits.lexer.max_visited = 2_000;
    limits.parser.tables.max_states = 2_000;
    limits.parser.tables.max_items = 50_000;
    if let Ok(reopened) = saved.compile(&vocabulary(), &limits, &mut Budget::new(STEPS)) {
        walk(&reopened.constraint, &mut Random(data.len() as u64));
        let again = reopened.constraint.to_bytes(saved.source()).expect("its own source");
        assert!(SavedGrammar::from_bytes(again.into()).is_ok(), "its own file");
    }
}

fn walk(constraint: &GrammarConstraint, random: &mut Random) {
    let (mut state, mut scratch) = (constraint.start(), GrammarScratch::default());
    let mut row = vec![0; mask::num_words(constraint.num_tokens())];
    let work = MaskBudget { explore: STEPS, walk: STEPS, cancelled: None };
    for _ in 0..8 {
        if constraint.fill_mask_within(&state, &mut scratch, &mut row, &work).is_err() {
            return;
        }
        let allowed: Vec<TokenId> = mask::iter(&row).collect();
        let moved = (0..4).any(|_| {
            let token = allowed.get(random.below(allowed.len()));
            token.is_some_and(|&token| constraint.commit(&mut state, token, &mut scratch).is_ok())
        });
        if !moved {
            return;
        }
    }
}

/// Characters, a few longer tokens, and an end: the fingerprint in a file is that of this one.
fn vocabulary() -> Arc<PreparedVocabulary> {
    let longer = ["{\"a\"", "\": \"", "ab", "10", "null", "\", ", "\n  ", "aa+b"];
    let characters = "abcnul01\"{}[]:,+ \n\\é".chars().map(|character| Some(character.to_string()));
    let tokens: Vec<Option<String>> =
        characters.chain(longer.map(|text| Some(text.to_owned()))).chain([None]).collect();
    let end = TokenId(tokens.len() as u32 - 1);
    let vocabulary = Vocabulary::new(tokens, [end]).expect("a small vocabulary");
    Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)))
}

fn schema(text: &str) -> GrammarSource {
    GrammarSource::JsonSchema { text: text.to_owned(), options: Default::default() }
}

fn lark(text: &str) -> GrammarSource {
    GrammarSource::Lark { text: text.to_owned(), options: Default::default() }
}
