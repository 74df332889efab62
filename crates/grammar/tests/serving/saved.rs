//! Grammars that were saved against those that were not.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::{
    Budget, GrammarConstraint, GrammarScratch, GrammarSource, GrammarState, MaskBudget,
    PrecomputeLimits, PreparedVocabulary, RecognizerLimits, ReopenError, Reopened, SavedGrammar,
};
use palmette_mapped::{Check, Format, SectionsIn, SectionsOut};
use proptest::prelude::*;

use super::{constraints, filled, sources, vocabulary, walking};

const FORMAT: Format = Format { magic: *b"PALMGRAM", version: 5 };
const NUM_SECTIONS: u32 = 6;

fn reopen(bytes: Vec<u8>, vocabulary: &Arc<PreparedVocabulary>) -> Result<Reopened, ReopenError> {
    let saved = SavedGrammar::from_bytes(bytes.into())?;
    saved.compile(vocabulary, &RecognizerLimits::default(), &mut Budget::new(1 << 30))
}

/// Tokens that are allowed one after another, chosen by numbers that look random.
fn walk(constraint: &GrammarConstraint, seed: u64, len: usize) -> Vec<TokenId> {
    let (mut random, mut state, mut tokens) = (seed, constraint.start(), Vec::new());
    for _ in 0..len {
        let allowed: Vec<TokenId> = mask::iter(&filled(constraint, &state)).collect();
        if allowed.is_empty() {
            break;
        }
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        tokens.push(allowed[(random >> 33) as usize % allowed.len()]);
        constraint
            .commit(&mut state, tokens[tokens.len() - 1], &mut GrammarScratch::default())
            .unwrap();
    }
    tokens
}

fn states(constraint: &GrammarConstraint, tokens: &[TokenId]) -> Vec<GrammarState> {
    let mut states = vec![constraint.start()];
    for &token in tokens {
        let mut next = states[states.len() - 1].clone();
        constraint.commit(&mut next, token, &mut GrammarScratch::default()).unwrap();
        states.push(next);
    }
    states
}

/// Whether the mask of a state is known, without finding out anything.
fn is_known(constraint: &GrammarConstraint, state: &GrammarState) -> bool {
    let mut row = vec![0; mask::num_words(constraint.num_tokens())];
    let nothing = MaskBudget { explore: 0, walk: 0, ..MaskBudget::unlimited() };
    constraint.fill_mask_within(state, &mut GrammarScratch::default(), &mut row, &nothing).is_ok()
}

fn constraints_and_sources(
    vocabulary: &Arc<PreparedVocabulary>,
) -> impl Iterator<Item = (GrammarConstraint, GrammarSource)> {
    constraints(vocabulary).into_iter().zip(sources())
}

#[test]
fn a_reopened_grammar_gives_the_same_masks_knows_what_was_known_and_goes_on() {
    for (constraint, source) in constraints_and_sources(&vocabulary()) {
        let slow = walking(&constraint, &vocabulary());
        let known: Vec<_> = (0..4).map(|seed| walk(&constraint, seed, 12)).collect();
        let new: Vec<_> = (4..8).map(|seed| walk(&slow, seed, 12)).collect();

        // Over a vocabulary that is equal, not the same.
        let other = vocabulary();
        let reopened = reopen(constraint.to_bytes(&source).unwrap(), &other).unwrap();
        let again = reopened.constraint;
        assert_eq!(reopened.nodes.unwrap() > 0, constraint.automaton().is_some());
        for tokens in &known {
            for (before, after) in states(&constraint, tokens).iter().zip(states(&again, tokens)) {
                // The mask after a walk's last token was not asked for.
                if !is_known(&constraint, before) {
                    continue;
                }
                assert!(again.automaton().is_none() || is_known(&again, &after));
                assert_eq!(filled(&again, &after), filled(&slow, before));
            }
        }
        for tokens in &new {
            for (before, after) in states(&constraint, tokens).iter().zip(states(&again, tokens)) {
                assert_eq!(filled(&again, &after), filled(&slow, before));
            }
        }
        // And once more, with what was added since.
        let third = reopen(again.to_bytes(&source).unwrap(), &other).unwrap().constraint;
        for tokens in known.iter().chain(&new) {
            for (before, after) in states(&again, tokens).iter().zip(states(&third, tokens)) {
                assert_eq!(filled(&third, &after), filled(&again, before));
            }
        }
    }
}

#[test]
fn the_file_of_a_completed_grammar_is_complete() {
    let vocabulary = vocabulary();
    for (constraint, source) in constraints_and_sources(&vocabulary) {
        let limits = PrecomputeLimits::default();
        let done = constraint.precompute(&limits, &AtomicBool::new(false)).unwrap();
        let again = reopen(constraint.to_bytes(&source).unwrap(), &vocabulary).unwrap().constraint;
        // Stacks that were not visited too, of which others told the masks; and once more.
        let third = reopen(again.to_bytes(&source).unwrap(), &vocabulary).unwrap().constraint;
        let slow = walking(&constraint, &vocabulary);
        for tokens in (0..20).map(|seed| walk(&slow, seed, 12)) {
            let all = [&constraint, &again, &third].map(|constraint| states(constraint, &tokens));
            for (at, state) in all[0].iter().enumerate() {
                if is_known(&constraint, state) {
                    for (constraint, states) in [(&again, &all[1]), (&third, &all[2])] {
                        assert!(
                            constraint.automaton().is_none() || is_known(constraint, &states[at])
                        );
                        assert_eq!(filled(constraint, &states[at]), filled(&slow, state));
                    }
                }
            }
        }
        // There is nothing left to be found out.
        assert_eq!(again.precompute(&limits, &AtomicBool::new(false)).unwrap(), done);
    }
}

#[test]
fn files_are_written_whole_and_opened_by_path() {
    let (folder, vocabulary) = (tempfile::tempdir().unwrap(), vocabulary());
    let path = folder.path().join("grammar.pmg");
    let (constraint, source) = &constraints_and_sources(&vocabulary).next().unwrap();
    constraint.save(source, &path).unwrap();
    walk(constraint, 1, 10);
    constraint.save(source, &path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), constraint.to_bytes(source).unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let saved = SavedGrammar::open(&path).unwrap();
    assert_eq!(saved.vocabulary(), vocabulary.fingerprint());
    assert_eq!(saved.source(), source);
    let error = SavedGrammar::open(&folder.path().join("other.pmg")).unwrap_err();
    assert!(matches!(error, ReopenError::Open(_)), "{error}");
}

#[test]
fn another_vocabulary_or_a_damaged_file_is_an_error() {
    let vocabulary = vocabulary();
    let (constraint, source) = &constraints_and_sources(&vocabulary).next().unwrap();
    walk(constraint, 1, 5);
    let bytes = constraint.to_bytes(source).unwrap();
    let small = Vocabulary::new([Some("{"), Some("}"), None], [TokenId(2)]).unwrap();
    let small = Arc::new(PreparedVocabulary::new(Arc::new(small)));
    let error = reopen(bytes.clone(), &small).unwrap_err();
    assert!(error.to_string().contains("another vocabulary: that of 282 tokens"), "{error}");
    for at in (0..bytes.len()).step_by(97) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x20;
        let error = reopen(damaged, &vocabulary).unwrap_err();
        assert!(matches!(error, ReopenError::Open(_)), "byte {at}: {error}");
        assert!(reopen(bytes[..at].to_vec(), &vocabulary).is_err(), "cut to {at}");
    }
    let limits = RecognizerLimits::default();
    let saved = SavedGrammar::from_bytes(bytes.into()).unwrap();
    let error = saved.compile(&vocabulary, &limits, &mut Budget::new(5)).unwrap_err();
    assert!(error.to_string().contains("5 steps"), "{error}");
}

#[test]
fn nodes_of_other_parser_tables_are_left_out() {
    let vocabulary = vocabulary();
    let (constraint, source) = &constraints_and_sources(&vocabulary).next().unwrap();
    let tokens = walk(constraint, 1, 8);
    let changed = change(&constraint.to_bytes(source).unwrap(), NUM_SECTIONS - 1, |document| {
        let mut description: serde_json::Value = serde_json::from_slice(document).unwrap();
        description["tables"] = 1.into();
        *document = description.to_string().into_bytes();
    });
    let reopened = reopen(changed, &vocabulary).unwrap();
    assert_eq!(reopened.nodes, None);
    assert_eq!(reopened.constraint.automaton().unwrap().nodes, 0);
    for (before, after) in
        states(constraint, &tokens).iter().zip(states(&reopened.constraint, &tokens))
    {
        assert_eq!(filled(&reopened.constraint, &after), filled(constraint, before));
    }
}

#[test]
fn another_source_is_not_written_and_another_version_not_read() {
    let vocabulary = vocabulary();
    let all: Vec<_> = constraints_and_sources(&vocabulary).collect();
    let error = all[0].0.to_bytes(&all[1].1).unwrap_err();
    assert!(error.to_string().contains("does not give this grammar"), "{error}");
    // Within greater limits than a file's reader has.
    let GrammarSource::JsonSchema { text, mut options } = all[0].1.clone() else { unreachable!() };
    options.limits.max_rules += 1;
    all[0].0.to_bytes(&GrammarSource::JsonSchema { text, options }).unwrap();
    let earlier = SectionsOut::default().to_bytes(Format { version: 4, ..FORMAT });
    let error = reopen(earlier, &vocabulary).unwrap_err();
    assert!(
        error.to_string().contains("has format version 4; this program reads version 5"),
        "{error}"
    );
}

/// The same file, with right checksums, but for what is done to the bytes of a section.
fn change(bytes: &[u8], section: u32, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let file = SectionsIn::from_bytes(bytes.to_vec().into(), FORMAT, Check::Whole).unwrap();
    let (mut out, mut change) = (SectionsOut::default(), Some(change));
    for number in 0..NUM_SECTIONS {
        let mut bytes = file.section(number).unwrap().to_vec();
        if number == section {
            change.take().expect("one section")(&mut bytes);
        }
        out.add(bytes.into());
    }
    out.to_bytes(FORMAT)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Checksums are right, numbers are not: an error, or a grammar that answers.
    #[test]
    fn a_hostile_file_is_an_error_or_answers(
        grammar in 0..6_usize,
        section in 0..NUM_SECTIONS,
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![0..20_u32, any::<u32>()]), 1..5),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let vocabulary = vocabulary();
        let (constraint, source) = &constraints_and_sources(&vocabulary).nth(grammar).unwrap();
        walk(constraint, 3, 8);
        let bytes = change(&constraint.to_bytes(source).unwrap(), section, |bytes| {
            for (at, number) in changes {
                if bytes.len() >= 4 {
                    let at = at.index(bytes.len() / 4) * 4;
                    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
                }
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len() + 1));
            }
        });
        match reopen(bytes, &vocabulary) {
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok(Reopened { constraint, .. }) => {
                let (mut state, mut scratch) = (constraint.start(), GrammarScratch::default());
                let mut row = vec![0; mask::num_words(constraint.num_tokens())];
                let work = MaskBudget { explore: 100_000, walk: 100_000, cancelled: None };
                for _ in 0..4 {
                    if constraint.fill_mask_within(&state, &mut scratch, &mut row, &work).is_err() {
                        break;
                    }
                    // Its masks may allow what the grammar does not.
                    let moved = mask::iter(&row).find(|&token| constraint.commit(&mut state, token, &mut scratch).is_ok());
                    if moved.is_none() {
                        break;
                    }
                }
            }
        }
    }
}
