//! Masks by number and reference against masks that are filled.

use std::collections::HashMap;

use palmette_core::Constraint;
use palmette_grammar::{GrammarScratch, MaskBudget, MaskId};

use super::{constraints, filled, states, vocabulary, walking};

#[test]
fn equal_ids_are_equal_masks_and_the_other_way_round() {
    let vocabulary = vocabulary();
    for constraint in constraints(&vocabulary) {
        let slow = walking(&constraint, &vocabulary);
        let mut scratch = GrammarScratch::default();
        let mut seen: HashMap<Vec<u32>, MaskId> = HashMap::new();
        for _ in 0..2 {
            for seed in 0..6 {
                for state in states(&constraint, seed, 12) {
                    let expected = filled(&slow, &state);
                    let found = constraint.mask(&state, &mut scratch).unwrap();
                    assert_eq!(found.words(), expected);
                    let id = found.id().expect("it is kept");
                    assert_eq!(*seen.entry(expected).or_insert(id), id);
                    assert_eq!(constraint.mask_of(id), Some(found));
                }
            }
        }
        let listed = constraint.masks(0);
        assert_eq!(listed.len(), seen.len());
        assert_eq!(constraint.dictionary().masks, seen.len());
        for (place, mask) in listed.iter().enumerate() {
            assert_eq!(mask.id().unwrap().index(), place);
            assert_eq!(Some(seen[mask.words()]), mask.id());
        }
        assert_eq!(constraint.masks(seen.len() - 1), listed[seen.len() - 1..]);
        assert_eq!(constraint.clone().masks(0), listed);
    }
}

#[test]
fn a_mask_by_reference_keeps_to_its_limits() {
    let vocabulary = vocabulary();
    let constraint = &constraints(&vocabulary)[1];
    let mut scratch = GrammarScratch::default();
    let start = constraint.start();
    let none = MaskBudget { explore: 3, walk: 3, ..MaskBudget::unlimited() };
    let error = constraint.mask_within(&start, &mut scratch, &none).unwrap_err();
    assert!(error.to_string().contains("3 steps"), "{error}");
    let walk = MaskBudget { explore: 3, ..MaskBudget::unlimited() };
    let walked = constraint.mask_within(&start, &mut scratch, &walk).unwrap();
    assert_eq!(walked, constraint.mask(&start, &mut scratch).unwrap());
}
