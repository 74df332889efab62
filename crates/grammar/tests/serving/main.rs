//! What a server does with constraints: batches, masks by number, limits on work, grammars kept and
//! saved.

mod ahead;
mod batch;
mod cache;
mod folder;
mod forced;
mod ids;
mod memory;
mod random;
mod saved;
mod search;
mod work;

use std::sync::Arc;

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::{
    Budget, Grammar, GrammarConstraint, GrammarScratch, GrammarSource, GrammarState,
    PreparedVocabulary, Recognizer, RecognizerLimits,
};

/// Every byte, some pieces of JSON and of words, and an end.
fn vocabulary() -> Arc<PreparedVocabulary> {
    let pieces =
        ["{\"", "\":", "\", \"", "\"}", "}]", "[[", ", ", "name", "na", "value", "true", "null"];
    let words =
        ["if", "else", "while", " x", "x =", " = ", ";\n", "10", "100", "() {", "ab", "abc"];
    let bytes = (0..=u8::MAX).map(|byte| Some(vec![byte]));
    let longer = pieces.iter().chain(&words).map(|piece| Some(piece.as_bytes().to_vec()));
    let num_tokens = 256 + pieces.len() + words.len();
    let tokens = bytes.chain(longer).chain([None, None]);
    let vocabulary = Vocabulary::new(tokens, [TokenId(num_tokens as u32)]).unwrap();
    Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)))
}

fn recognizer(grammar: Grammar) -> Arc<Recognizer> {
    let limits = RecognizerLimits::default();
    Arc::new(Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited()).unwrap())
}

fn schema_source(text: &str) -> GrammarSource {
    GrammarSource::JsonSchema { text: text.to_owned(), options: Default::default() }
}

fn lark_source(text: &str) -> GrammarSource {
    GrammarSource::Lark { text: text.to_owned(), options: Default::default() }
}

fn schema(text: &str) -> Grammar {
    schema_source(text).parse().unwrap().0
}

fn lark(text: &str) -> Grammar {
    lark_source(text).parse().unwrap().0
}

/// Grammars of several kinds: deterministic, ambiguous, with counts, without a sentence but one, by
/// indentation, of distinct names, and with dead ends that are excluded.
fn sources() -> Vec<GrammarSource> {
    vec![
        schema_source(
            r#"{"type": "object", "properties": {"name": {"type": "string", "maxLength": 5},
            "value": {"type": "array", "items": {"type": "integer"}}}, "required": ["name"]}"#,
        ),
        schema_source("{}"),
        lark_source(
            "start: stmt+\nstmt: \"if\" e \"{\" stmt* \"}\" (\"else\" stmt)? | NAME \"=\" e \";\"\n\
              e: e \"+\" e | NAME | NUM | \"(\" e \")\"\nNAME: /[a-z]+/\nNUM: /[0-9]+/\n%ignore /[ \\n]+/",
        ),
        lark_source("start: \"abcabcabc\""),
        lark_source(
            "start: (NAME \":\" _NEWLINE _INDENT start _DEDENT | NAME _NEWLINE)+\nNAME: /[a-z]+/\n\
              _NEWLINE: /(\\r?\\n[ \\t]*)+/\n%declare _INDENT _DEDENT",
        ),
        schema_source(
            r#"{"type": "object", "additionalProperties": {"enum": [1]}, "minProperties": 2}"#,
        ),
        lark_source(
            "start: (\"if\" NAME \"\\n\" | \"[\" words \"]\" | \"(\" words \")\")+\nwords: WORD (\",\" WORD)*\nNAME: /[a-z]+/\n\
              WORD: /[a-z\\]]+/\n%ignore /[ \\n]+/",
        ),
    ]
}

fn constraints(vocabulary: &Arc<PreparedVocabulary>) -> Vec<GrammarConstraint> {
    let made = sources().into_iter().map(|source| {
        let (grammar, _) = source.parse().unwrap();
        GrammarConstraint::new(recognizer(grammar), Arc::clone(vocabulary))
    });
    made.collect()
}

/// The same masks by the definition.
fn walking(
    constraint: &GrammarConstraint,
    vocabulary: &Arc<PreparedVocabulary>,
) -> GrammarConstraint {
    GrammarConstraint::by_walking(Arc::clone(constraint.recognizer()), Arc::clone(vocabulary))
}

fn filled(constraint: &GrammarConstraint, state: &GrammarState) -> Vec<u32> {
    let mut row = vec![!0; mask::num_words(constraint.num_tokens())];
    constraint.fill_mask(state, &mut GrammarScratch::default(), &mut row).unwrap();
    row
}

/// The states along a walk by numbers that look random, to its end or to `len` tokens.
fn states(constraint: &GrammarConstraint, seed: u64, len: usize) -> Vec<GrammarState> {
    let mut random = seed;
    let mut states = vec![constraint.start()];
    for _ in 0..len {
        let state = states.last().expect("the start");
        let allowed: Vec<TokenId> = mask::iter(&filled(constraint, state)).collect();
        if allowed.is_empty() {
            break;
        }
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let mut next = state.clone();
        constraint
            .commit(
                &mut next,
                allowed[(random >> 33) as usize % allowed.len()],
                &mut GrammarScratch::default(),
            )
            .unwrap();
        states.push(next);
    }
    states
}
