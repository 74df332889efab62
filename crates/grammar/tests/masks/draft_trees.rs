//! States of draft trees, against each draft walked alone.

use palmette_core::{Constraint, Lengths, TokenId};
use palmette_grammar::{DraftTree, DraftTreeError, GrammarState};
use palmette_testkit::grammar::generate::{over_alphabet, text_grammar, vocabulary};
use proptest::prelude::*;

use crate::ending::{EndingCase, with_bytes};

/// The state behind the tokens from the root to a node, where each of them may follow.
fn walked(
    asked: &mut EndingCase,
    state: &GrammarState,
    tree: &DraftTree,
    node: usize,
    lengths: Option<Lengths>,
) -> Option<GrammarState> {
    let mut path = vec![node];
    while let Some(parent) = tree.parents()[path[path.len() - 1]] {
        path.push(parent);
    }
    let mut ahead = state.clone();
    for (place, &node) in path.iter().rev().enumerate() {
        let EndingCase { constraint, scratch } = asked;
        constraint.commit(&mut ahead, tree.tokens()[node], scratch).ok()?;
        let Some(lengths) = lengths else { continue };
        let is_in_time = match ahead.ended() {
            true => lengths.least <= place,
            false => {
                let after = lengths.after(place + 1)?;
                constraint.has_way(&ahead, after, scratch).unwrap()
            }
        };
        if !is_in_time {
            return None;
        }
    }
    Some(ahead)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_is_its_drafts(
        grammar in text_grammar(),
        tokens in vocabulary(),
        nodes in prop::collection::vec((0..64_usize, 0..64_usize, 0..4_u32), 0..9),
        most in prop::option::of(0..6_usize),
    ) {
        let vocabulary = with_bytes(tokens);
        let Some(mut asked) = EndingCase::new(over_alphabet(&grammar), &vocabulary) else { return Ok(()) };
        let start = asked.constraint.start();
        let num_tokens = asked.constraint.num_tokens();
        let mut chosen: Vec<TokenId> = Vec::new();
        let mut parents: Vec<Option<usize>> = Vec::new();
        for (place, &(token, parent, kind)) in nodes.iter().enumerate() {
            let parent = (parent % (place + 1)).checked_sub(1);
            // Mostly tokens that may follow, now and then any.
            let tree = DraftTree::new(chosen.clone(), parents.clone()).unwrap();
            let before = match parent {
                Some(parent) => walked(&mut asked, &start, &tree, parent, None),
                None => Some(start.clone()),
            };
            let allowed: Vec<TokenId> = before.map_or_else(Vec::new, |before| {
                palmette_core::mask::iter(&asked.mask(&before)).collect()
            });
            chosen.push(match allowed.is_empty() || kind == 0 {
                true => TokenId((token % num_tokens) as u32),
                false => allowed[token % allowed.len()],
            });
            parents.push(parent);
        }
        let tree = DraftTree::new(chosen, parents).unwrap();
        let lengths = most.map(Lengths::within);
        let found = {
            let EndingCase { constraint, scratch } = &mut asked;
            constraint.states_after(&start, &tree, lengths, scratch).unwrap()
        };
        for (node, found) in found.into_iter().enumerate() {
            let expected = walked(&mut asked, &start, &tree, node, lengths);
            prop_assert_eq!(found.is_some(), expected.is_some(), "node {} of {:?}", node, tree);
            if let (Some(found), Some(expected)) = (found, expected) {
                prop_assert_eq!(asked.mask(&found), asked.mask(&expected));
                prop_assert_eq!(found.num_commits(), expected.num_commits());
            }
        }
    }
}

#[test]
fn parents_come_before_their_tokens() {
    let tokens = vec![TokenId(0); 3];
    let tree = |parents: &[Option<usize>]| DraftTree::new(tokens.clone(), parents.to_vec());
    let chain = tree(&[None, Some(0), Some(1)]).unwrap();
    assert_eq!(chain, DraftTree::from_chain(tokens.clone()));
    assert_eq!(chain.depths(), [1, 2, 3]);
    assert_eq!(tree(&[None, None, Some(0)]).unwrap().depths(), [1, 1, 2]);
    let later = DraftTreeError::LaterParent { node: 1, parent: 1 };
    assert_eq!(tree(&[None, Some(1), Some(0)]), Err(later));
    let other = DraftTreeError::OtherLengths { tokens: 3, parents: 1 };
    assert_eq!(tree(&[None]), Err(other));
}
