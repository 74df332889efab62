//! Masks of the automaton against those of the definition, over a grammar and a vocabulary from bytes.

use std::sync::Arc;

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::{
    Budget, GrammarConstraint, GrammarScratch, GrammarSource, MaskBudget, PreparedVocabulary, Recognizer,
    RecognizerLimits, SavedGrammar,
};

/// As many steps as anything may take.
const STEPS: u64 = 2_000_000;

/// Parts of an input: a grammar in GBNF, the tokens, and what chooses among those that are allowed.
const BETWEEN_PARTS: u8 = 0xFF;
const BETWEEN_TOKENS: u8 = 0xFE;

/// Follows a text of the grammar by tokens that the input chooses: at each the mask of the automaton is that of a walk, and so is that of
/// the grammar's file. Where a limit is in the way, nothing is compared.
pub fn check_masks(data: &[u8]) {
    let mut parts = data.splitn(3, |&byte| byte == BETWEEN_PARTS);
    let Some(Ok(source)) = parts.next().map(std::str::from_utf8) else { return };
    let tokens = parts.next().unwrap_or(b"a\xFEb\xFEab");
    let choices = parts.next().unwrap_or(b"abc");
    let source = GrammarSource::Gbnf { text: source.to_owned(), options: Default::default() };
    let Ok((grammar, _)) = source.parse() else { return };
    let mut limits = RecognizerLimits::default();
    limits.lexer.max_states = 2_000;
    limits.lexer.max_expressions = 20_000;
    limits.lexer.max_visited = 2_000;
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
    let bytes = read.to_bytes(&source).expect("its own source");
    let saved = SavedGrammar::from_bytes(bytes.into()).expect("it was saved just now");
    if let Ok(reopened) = saved.compile(&vocabulary, &limits, &mut Budget::new(STEPS)) {
        follow(&reopened.constraint, &walked, choices);
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
