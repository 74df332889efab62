//! Masks that leave a way to the end, against every token tried, and texts that are written by them.

use std::collections::HashSet;
use std::sync::Arc;

use palmette_core::{Constraint, Lengths, TokenId, Vocabulary, mask};
use palmette_grammar::frontends::lark::{self, LarkOptions};
use palmette_grammar::{
    Budget, EndingError, Grammar, GrammarConstraint, GrammarScratch, GrammarState, Lexing,
    MaskBudget, PreparedVocabulary, Recognizer, RecognizerLimits,
};
use palmette_testkit::grammar::generate::{ALPHABET, over_alphabet, text_grammar, vocabulary};
use proptest::prelude::*;

pub(crate) struct EndingCase {
    pub(crate) constraint: GrammarConstraint,
    pub(crate) scratch: GrammarScratch,
}

impl EndingCase {
    pub(crate) fn new(grammar: Grammar, vocabulary: &Arc<PreparedVocabulary>) -> Option<Self> {
        let limits = RecognizerLimits::default();
        let made = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited()).ok()?;
        made.start()?;
        let constraint = GrammarConstraint::new(Arc::new(made), Arc::clone(vocabulary));
        Some(Self { constraint, scratch: GrammarScratch::default() })
    }

    pub(crate) fn mask(&mut self, state: &GrammarState) -> Vec<u32> {
        let mut allowed = vec![0; mask::num_words(self.constraint.num_tokens())];
        self.constraint.fill_mask(state, &mut self.scratch, &mut allowed).unwrap();
        allowed
    }

    fn ending_mask(&mut self, state: &GrammarState, left: usize) -> Result<Vec<u32>, EndingError> {
        self.mask_within(state, Lengths::within(left))
    }

    pub(crate) fn mask_within(
        &mut self,
        state: &GrammarState,
        lengths: Lengths,
    ) -> Result<Vec<u32>, EndingError> {
        let mut allowed = vec![!0; mask::num_words(self.constraint.num_tokens())];
        let work = MaskBudget::unlimited();
        let scratch = &mut self.scratch;
        self.constraint.fill_ending_mask_within(state, lengths, scratch, &mut allowed, &work)?;
        Ok(allowed)
    }

    pub(crate) fn fewest(&mut self, state: &GrammarState) -> Option<usize> {
        self.constraint.fewest_tokens(state, &mut self.scratch).unwrap()
    }

    pub(crate) fn after(&mut self, state: &GrammarState, token: TokenId) -> GrammarState {
        let mut after = state.clone();
        self.constraint.commit(&mut after, token, &mut self.scratch).expect("an allowed token");
        after
    }

    pub(crate) fn is_whole(&mut self, state: &GrammarState) -> bool {
        self.constraint.is_accepting(state, &mut self.scratch).unwrap()
    }

    /// The tokens after which the text goes on, with the tokens to the end after each.
    fn ways(&mut self, state: &GrammarState) -> Vec<(TokenId, Option<usize>)> {
        let mut ways = Vec::new();
        let visit = |token, fewest| ways.push((token, fewest));
        self.constraint.visit_ways(state, &mut self.scratch, visit).unwrap();
        ways.sort_unstable();
        ways
    }

    /// [`ways`](Self::ways), by trying every token.
    fn ways_by_definition(&mut self, state: &GrammarState) -> Vec<(TokenId, Option<usize>)> {
        let mut ways = Vec::new();
        for token in mask::iter(&self.mask(state)).collect::<Vec<_>>() {
            let after = self.after(state, token);
            if !after.ended() {
                ways.push((token, self.fewest(&after)));
            }
        }
        ways
    }

    /// The tokens of a mask after which at most `left` more are needed, and the end tokens.
    fn by_definition(&mut self, state: &GrammarState, left: usize) -> Vec<u32> {
        let mut kept = vec![0; mask::num_words(self.constraint.num_tokens())];
        for token in mask::iter(&self.mask(state)).collect::<Vec<_>>() {
            let after = self.after(state, token);
            let fits = self.fewest(&after).is_some_and(|fewest| left > 0 && fewest < left);
            if after.ended() || fits {
                mask::insert(&mut kept, token);
            }
        }
        kept
    }

    /// The fewest tokens to the end by breadth-first search over masks; `None` where there are more
    /// than `max` states.
    fn fewest_by_search(&mut self, from: &GrammarState, max: usize) -> Option<usize> {
        let (mut level, mut seen) = (vec![from.clone()], HashSet::new());
        for tokens in 0.. {
            if level.is_empty() || seen.len() > max {
                return None;
            }
            let mut next = Vec::new();
            for state in level {
                if self.is_whole(&state) {
                    return Some(tokens);
                }
                for token in mask::iter(&self.mask(&state)).collect::<Vec<_>>() {
                    let after = self.after(&state, token);
                    if seen.insert(format!("{:?}", after.position())) {
                        next.push(after);
                    }
                }
            }
            level = next;
        }
        None
    }
}

/// The vocabulary with its bytes as tokens, and an end.
pub(crate) fn with_bytes(tokens: Vec<Vec<u8>>) -> Arc<PreparedVocabulary> {
    let bytes = ALPHABET.iter().collect::<String>().into_bytes().into_iter().map(|byte| vec![byte]);
    with_end(tokens.into_iter().chain(bytes))
}

/// The vocabulary of these tokens and an end.
pub(crate) fn with_end(tokens: impl IntoIterator<Item = Vec<u8>>) -> Arc<PreparedVocabulary> {
    let texts: Vec<_> = tokens.into_iter().map(Some).chain([None]).collect();
    let end = TokenId(texts.len() as u32 - 1);
    Arc::new(PreparedVocabulary::new(Arc::new(Vocabulary::new(texts, [end]).expect("texts"))))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// Along a text that is written by an adversary, who always takes the token after which the
    /// most is needed: masks are those of the definition, fewer tokens allow fewer, and the text
    /// is whole in time.
    #[test]
    fn texts_end_within_their_tokens(
        grammar in text_grammar(),
        tokens in vocabulary(),
        more in 0..5_usize,
        choices in prop::collection::vec(0..16_usize, 40),
    ) {
        let vocabulary = with_bytes(tokens);
        let Some(mut asked) = EndingCase::new(over_alphabet(&grammar), &vocabulary) else { return Ok(()) };
        let mut state = asked.constraint.start();
        let Some(fewest) = asked.fewest(&state) else { return Ok(()) };
        if fewest > 20 {
            return Ok(());
        }
        if let Some(true_fewest) = asked.fewest_by_search(&state, 300) {
            prop_assert!(true_fewest <= fewest);
        }
        if fewest > 0 {
            let error = asked.ending_mask(&state, fewest - 1).expect_err("too few");
            let EndingError::TooFew { needed, left } = error else { panic!("{error}") };
            prop_assert_eq!((needed, left), (fewest, fewest - 1));
        }
        // All that may follow, but tokens after which nothing completes the text: where the longest
        // lexemes count, those are not found ahead.
        let all = asked.by_definition(&state, usize::MAX);
        prop_assert_eq!(asked.ending_mask(&state, usize::MAX).unwrap(), all.clone());
        if grammar.lexing() != Lexing::Longest {
            prop_assert_eq!(all, asked.mask(&state));
        }
        let mut left = fewest + more;
        let mut choices = choices.into_iter();
        loop {
            let allowed = asked.ending_mask(&state, left).unwrap();
            prop_assert_eq!(&allowed, &asked.by_definition(&state, left), "{:?} left {}", grammar, left);
            prop_assert_eq!(asked.ways(&state), asked.ways_by_definition(&state));
            let fewer = asked.ending_mask(&state, left.saturating_sub(1));
            if let Ok(fewer) = fewer {
                prop_assert!(fewer.iter().zip(&allowed).all(|(fewer, more)| fewer & !more == 0));
            }
            let way = asked.constraint.shortest_completion(&state, &mut asked.scratch, &MaskBudget::unlimited()).unwrap();
            let way = way.expect("a way within the tokens");
            prop_assert!(way.tokens.len() <= left);
            let mut end = state.clone();
            way.tokens.iter().for_each(|&token| end = asked.after(&end, token));
            prop_assert!(asked.is_whole(&end));
            if asked.is_whole(&state) && left == 0 {
                break;
            }
            let texts: Vec<TokenId> = mask::iter(&allowed).collect();
            let mut longest = Vec::new();
            for token in texts {
                let after = asked.after(&state, token);
                longest.push((if after.ended() { None } else { asked.fewest(&after) }, token));
            }
            longest.sort_by(|a, b| b.cmp(a));
            let choice = choices.next().unwrap_or(0);
            let (fewest, token) = longest[if choice < 12 { 0 } else { choice % longest.len() }];
            if fewest.is_none() {
                break;
            }
            (state, left) = (asked.after(&state, token), left - 1);
        }
    }
}

#[test]
fn tokens_by_number_are_on_the_way_end_tokens_among_them() {
    let vocabulary = with_bytes(vec![b"ab".to_vec()]);
    let end = vocabulary.vocabulary().ends()[0];
    let source = format!("start: \"ab\" <[{}]> \"b\" <[1]> \"a\"?", end.0);
    let grammar = lark::parse(&source, &LarkOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let mut asked = EndingCase::new(grammar, &vocabulary).expect("a language");
    let start = asked.constraint.start();
    let work = MaskBudget::unlimited();
    let way = asked.constraint.shortest_completion(&start, &mut asked.scratch, &work).unwrap();
    let tokens = way.expect("a way").tokens;
    assert_eq!((tokens.len(), tokens[1], tokens[3]), (4, end, TokenId(1)));
    let mut state = start;
    for (place, token) in tokens.into_iter().enumerate() {
        assert_eq!(asked.fewest(&state), Some(4 - place));
        let allowed = asked.ending_mask(&state, 4 - place).expect("enough");
        assert_eq!(allowed, asked.by_definition(&state, 4 - place));
        assert!(mask::contains(&allowed, token));
        assert_eq!(asked.ways(&state), asked.ways_by_definition(&state));
        state = asked.after(&state, token);
    }
    assert!(asked.is_whole(&state));
}

/// Expression of a Lark rule whose tokens may be read as text and by number.
fn mixed_expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        3 => "[ab]{1,2}".prop_map(|text| format!("\"{text}\"")),
        3 => (0..4_u32).prop_map(|token| format!("<[{token}]>")),
        3 => prop::sample::select(vec!["/a{1,2}/", "/[ab]{2}/", "/b+/", "/a*b/"]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 10, 3, |inner| {
        prop_oneof![
            4 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| parts.join(" ")),
            3 => prop::collection::vec(inner.clone(), 2..4)
                .prop_map(|parts| format!("({})", parts.join(" | "))),
            1 => inner.clone().prop_map(|part| format!("({part})+")),
            1 => inner.prop_map(|part| format!("({part})?")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    /// A token that is read as text and by number leads to both: texts end in time all the same.
    #[test]
    fn tokens_of_two_readings_leave_a_way(
        expression in mixed_expression(),
        more in 0..3_usize,
        choices in prop::collection::vec(0..64_usize, 16),
        others in prop::sample::select(vec![["ab", "ba"], ["aa", "bb"], ["c", "d"]]),
    ) {
        let texts: Vec<_> = ["a", "b", others[0], others[1]].map(|text| text.as_bytes().to_vec()).into();
        let end = TokenId(4);
        let vocabulary = Vocabulary::new(texts.into_iter().map(Some).chain([None]), [end]).unwrap();
        let vocabulary = Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)));
        let options = LarkOptions { lexing: Some(Lexing::Any), ..LarkOptions::default() };
        let source = format!("start: {expression}");
        let grammar = lark::parse(&source, &options).unwrap_or_else(|e| panic!("{source}: {e}"));
        let Some(mut asked) = EndingCase::new(grammar, &vocabulary) else { return Ok(()) };
        let mut state = asked.constraint.start();
        let fewest = asked.fewest(&state).expect("a short text");
        if let Some(true_fewest) = asked.fewest_by_search(&state, 300) {
            prop_assert!(true_fewest <= fewest);
        }
        let mut left = fewest + more;
        for choice in choices {
            let allowed = match asked.ending_mask(&state, left) {
                Ok(allowed) => allowed,
                Err(error) => panic!("{source} with {left} left: {error}"),
            };
            let tokens: Vec<TokenId> = mask::iter(&allowed).collect();
            prop_assert!(!tokens.is_empty(), "{source} with {left} left");
            let token = tokens[choice % tokens.len()];
            if token == end {
                return Ok(());
            }
            prop_assert!(left > 0, "{source}");
            (state, left) = (asked.after(&state, token), left - 1);
        }
    }
}

/// Masks of grammars that take turns on a thread are found once: then they take no steps.
#[test]
fn texts_that_take_turns_are_remembered() {
    let vocabulary = with_bytes(vec![b"ab".to_vec(), b"ba".to_vec()]);
    let mut scratch = GrammarScratch::default();
    let constraints: Vec<GrammarConstraint> = (2..6)
        .map(|count| {
            let source = format!("start: /[ab]/~{count}");
            let grammar = lark::parse(&source, &LarkOptions::default());
            let case = EndingCase::new(grammar.unwrap_or_else(|e| panic!("{e}")), &vocabulary);
            case.expect("a language").constraint
        })
        .collect();
    let mut allowed = vec![0; mask::num_words(constraints[0].num_tokens())];
    for steps in [u64::MAX, 0] {
        let work = MaskBudget::of_steps(steps, None);
        for (constraint, left) in constraints.iter().zip(2..6) {
            let start = constraint.start();
            let filled = constraint.fill_ending_mask_within(
                &start,
                Lengths::within(left),
                &mut scratch,
                &mut allowed,
                &work,
            );
            filled.unwrap_or_else(|error| panic!("{steps} steps: {error}"));
        }
    }
}
