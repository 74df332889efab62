//! A limit that is exceeded halfway is an error of that call, never a shorter answer.

use std::num::NonZeroUsize;

use palmette::engine::core::mask;
use palmette::engine::grammar::{BatchFiller, BatchRow, MaskBudget};
use palmette::{
    BeamOptions, BeamSearch, CacheLimits, CompiledGrammar, DecodeError, HostBackend, TokenId,
    Vocabulary,
};
use palmette_testkit::logits::TableLogits;

/// Tokens `a`, `b`, `x`, and an end.
const NUM_TOKENS: usize = 4;
const END: TokenId = TokenId(3);

/// A pattern whose automaton doubles with every letter that is read, and a lexer that may not grow
/// so far.
fn grammar(max_states: usize) -> CompiledGrammar {
    let tokens = [Some("a"), Some("b"), Some("x"), None];
    let tokens = Vocabulary::from_tokens(tokens, [END]).unwrap();
    let mut limits = CacheLimits::default();
    limits.recognizer.lexer.max_states = max_states;
    tokens.with_limits(limits).regex("xx(a|b)*a(a|b){12}").unwrap()
}

#[test]
fn a_matcher_loop_ends_with_an_error_and_goes_on_from_there() {
    let mut matcher = grammar(40).matcher();
    let mut written = 0_u32;
    let error = loop {
        let allowed = match matcher.mask() {
            Ok(allowed) => allowed.expect("the text is not whole where the limit is met"),
            Err(error) => break error,
        };
        // Which letter: bits of a number that soon has all patterns.
        let letter = TokenId((written.wrapping_mul(0x9E37_79B9) >> 20) & 1);
        let token = if allowed.contains(letter) { letter } else { TokenId(2) };
        let before = matcher.clone();
        if let Err(error) = matcher.commit(token) {
            assert_eq!(matcher.state(), before.state(), "a failed commit leaves the matcher");
            break error;
        }
        written += 1;
        assert!(written < 10_000, "40 states hold no text of this length");
    };
    assert!(written > 2, "the limit is met halfway, after {written} tokens");
    assert!(!error.is_refusal());
    assert!(error.to_string().contains("max_states = 40"), "{error}");
    matcher.rollback(written as usize).unwrap();
    assert_eq!(matcher.mask().unwrap().unwrap().iter().collect::<Vec<_>>(), [TokenId(2)]);

    let mut row = [u32::MAX; 3];
    matcher.fill_mask(&mut row).unwrap();
    assert_eq!(row, [0b100, 0, 0]);
    let short = matcher.fill_mask(&mut []).unwrap_err().to_string();
    assert!(short.contains("needs 1 words of 32 bits, the row has 0"), "{short}");
}

#[test]
fn a_search_ends_with_an_error_and_not_with_fewer_results() {
    let logits = TableLogits { seed: 3, num_tokens: NUM_TOKENS, grades: 1000 };
    let run = |max_states| {
        let grammar = grammar(max_states);
        let width = NonZeroUsize::new(16).unwrap();
        let mut search = BeamSearch::new(BeamOptions { width, max_tokens: 17 });
        let backend = &mut HostBackend::new(logits.source());
        // Texts longer than the search was planned for come after the first results.
        search.run(grammar.constraint(), backend).map(|()| search.results().len())
    };
    let error = run(40).unwrap_err();
    let DecodeError::Constraint { step, why } = &error else { panic!("{error}") };
    assert!((3..16).contains(step) && why.contains("max_states = 40"), "{error}");
    assert!(matches!(run(1 << 20), Err(DecodeError::TooLong { max_tokens: 17 })));
}

#[test]
fn a_row_of_a_batch_fails_by_itself() {
    let (narrow, wide) = (grammar(40), grammar(1 << 20));
    let letter = |place: u32| b"ab"[((place.wrapping_mul(0x9E37_79B9) >> 20) & 1) as usize];
    let text: Vec<u8> = b"xx".iter().copied().chain((0..200).map(letter)).collect();
    let mut filler = BatchFiller::new(NonZeroUsize::new(2).unwrap()).unwrap();
    let (mut good, mut bad) = (wide.matcher(), narrow.matcher());
    let mut failed_at = None;
    for (length, &byte) in text.iter().enumerate() {
        let rows = [
            BatchRow::new(wide.constraint(), good.state()),
            BatchRow::new(narrow.constraint(), bad.state()),
            BatchRow::new(wide.constraint(), good.state()),
        ];
        let mut masks = [u32::MAX; 3];
        let failed = filler.fill(&rows, 1, &mut masks, &MaskBudget::unlimited());
        let mut alone = vec![0; mask::num_words(NUM_TOKENS)];
        good.fill_mask(&mut alone).unwrap();
        assert_eq!((masks[0], masks[2]), (alone[0], alone[0]), "neighbours are not affected");
        match &failed[..] {
            [] => assert_eq!(masks[1], alone[0]),
            [error] => {
                assert_eq!((error.row, masks[1]), (1, 0), "{error}");
                assert!(error.to_string().contains("max_states = 40"), "{error}");
                failed_at = Some(length);
                break;
            }
            more => panic!("{more:?}"),
        }
        good.commit_bytes(&[byte]).unwrap();
        if let Err(error) = bad.commit_bytes(&[byte]) {
            assert!(error.to_string().contains("max_states = 40"), "{error}");
            failed_at = Some(length);
            break;
        }
    }
    assert!(failed_at.is_some_and(|length| length > 2), "{failed_at:?}");
}

#[test]
fn terminals_that_nothing_can_follow_are_warned_of() {
    let tokens =
        palmette::Vocabulary::from_tokens([Some("x"), Some("!"), None], [palmette::TokenId(2)])
            .unwrap();
    let grammar = tokens.lark("start: NAME \"x\" | \"!\"\nNAME: /[a-z]+/\n").unwrap();
    let warnings: Vec<String> = grammar.warnings().collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("line 2, column 1: no text has NAME where "), "{warnings:?}");
    let allowed = grammar.matcher().mask().unwrap().unwrap();
    assert_eq!(allowed.iter().collect::<Vec<_>>(), [palmette::TokenId(1)]);
    assert_eq!(tokens.lark("start: \"x\"").unwrap().warnings().len(), 0);
}
