//! Masks of the engines against those of the definition, over a grammar and a vocabulary from
//! bytes.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::{
    Budget, GrammarConstraint, GrammarScratch, GrammarSource, MaskBudget, PrecomputeLimits,
    PreparedVocabulary, Recognizer, RecognizerLimits, SavedGrammar,
};

/// Bound on the steps of each part.
const STEPS: u64 = 2_000_000;

/// Steps of precomputing: enough for some masks of any grammar.
const PRECOMPUTE_STEPS: u64 = 20_000;

/// Memory for masks that holds few of them, so that some push out others.
const LITTLE_MEMORY: usize = 20_000;

/// Parts of an input: the source of a grammar, the tokens, and what chooses among those that are
/// allowed.
const BETWEEN_PARTS: u8 = 0xFF;
const BETWEEN_TOKENS: u8 = 0xFE;

/// Follows a text of the grammar by tokens that the input chooses: at each the mask of the engine
/// is that of a walk. So are the masks of the grammar's file, those of a constraint that has
/// precomputed, and those of one with little memory. Where a limit is in the way, nothing is
/// compared.
pub fn check_masks(data: &[u8]) {
    let mut parts = data.splitn(3, |&byte| byte == BETWEEN_PARTS);
    let Some(Ok(source)) = parts.next().map(std::str::from_utf8) else { return };
    let tokens = parts.next().unwrap_or(b"a\xFEb\xFEab");
    let choices = parts.next().unwrap_or(b"abc");
    let source = source_of(source);
    let Ok((grammar, _)) = source.parse_with_budget(&mut Budget::new(STEPS)) else { return };
    let mut limits = RecognizerLimits::default();
    limits.lexer.max_states = 2_000;
    limits.lexer.max_expressions = 20_000;
    limits.lexer.max_visited = 2_000;
    limits.parser.tables.max_states = 2_000;
    limits.parser.tables.max_items = 50_000;
    let recognizer = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::new(STEPS));
    let Ok(recognizer) = recognizer else { return };

    let texts = tokens.split(|&byte| byte == BETWEEN_TOKENS).filter(|text| !text.is_empty());
    let texts: Vec<Option<&[u8]>> = texts.take(64).map(Some).chain([None]).collect();
    let end = TokenId(texts.len() as u32 - 1);
    let vocabulary = Vocabulary::new(texts, [end]).expect("the end has no text");
    let vocabulary = Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)));
    let recognizer = Arc::new(recognizer);
    let walked = GrammarConstraint::by_walking(Arc::clone(&recognizer), Arc::clone(&vocabulary));
    let read = GrammarConstraint::new(recognizer, Arc::clone(&vocabulary));
    follow(&read, &walked, choices);

    follow(&read.clone().with_mask_bytes(LITTLE_MEMORY), &walked, choices);
    let precomputed = read.clone().with_mask_bytes(64 << 20);
    let precompute = PrecomputeLimits { steps: PRECOMPUTE_STEPS, ..PrecomputeLimits::default() };
    if precomputed.precompute(&precompute, &AtomicBool::new(false)).is_ok() {
        follow(&precomputed, &walked, choices);
    }
    // A grammar may be larger than files may hold.
    let Ok(bytes) = read.to_bytes(&source) else { return };
    let saved = SavedGrammar::from_bytes(bytes.into()).expect("it was saved just now");
    if let Ok(reopened) = saved.compile(&vocabulary, &limits, &mut Budget::new(STEPS)) {
        follow(&reopened.constraint, &walked, choices);
    }
}

/// The grammar in the notation that it looks like: a JSON Schema begins with a brace, GBNF defines
/// by `::=`, the rest is Lark.
fn source_of(text: &str) -> GrammarSource {
    let text = text.to_owned();
    if text.starts_with('{') {
        GrammarSource::JsonSchema { text, options: Default::default() }
    } else if text.contains("::=") {
        GrammarSource::Gbnf { text, options: Default::default() }
    } else {
        GrammarSource::Lark { text, options: Default::default() }
    }
}

fn follow(read: &GrammarConstraint, walked: &GrammarConstraint, choices: &[u8]) {
    let mut scratch = GrammarScratch::default();
    let (mut state, mut expected_state) = (read.start(), walked.start());
    let mut row = vec![!0; mask::num_words(read.num_tokens())];
    let mut expected = row.clone();
    let work = MaskBudget { explore: STEPS, walk: STEPS, cancelled: None };
    for &choice in choices.iter().take(24) {
        let masks = [
            read.fill_mask_within(&state, &mut scratch, &mut row, &work),
            walked.fill_mask_within(&expected_state, &mut scratch, &mut expected, &work),
        ];
        if masks.iter().any(Result::is_err) {
            return;
        }
        assert_eq!(row, expected, "the definition says otherwise");
        let allowed: Vec<TokenId> = mask::iter(&row).collect();
        let Some(&token) = allowed.get(usize::from(choice) % allowed.len().max(1)) else { return };
        if read.commit(&mut state, token, &mut scratch).is_err()
            || walked.commit(&mut expected_state, token, &mut scratch).is_err()
        {
            return;
        }
    }
}
