//! Beam search over catalogs against the definitions: order and scores, to the bit.

use std::num::NonZeroUsize;
use std::sync::Arc;

use palmette_catalog::{BuildOptions, Catalog, CatalogConstraint, CodeTokens, Item, LevelTokens};
use palmette_decode::{BeamOptions, BeamSearch, HostBackend};
use palmette_testkit::SequenceSet;
use palmette_testkit::logits::TableLogits;
use palmette_testkit::search::{Scored, exhaustive, naive_beam_search};
use proptest::prelude::*;

const NUM_TOKENS: usize = 40;
const LEVELS: u32 = 4;
const NUM_CODES: u32 = 8;

fn catalog(ids: &[Vec<u32>]) -> CatalogConstraint {
    let item = |(n, codes): (usize, &Vec<u32>)| Item {
        id: n.to_string(),
        codes: codes.clone(),
        attributes: Default::default(),
    };
    let items: Vec<Item> = ids.iter().enumerate().map(item).collect();
    let catalog = Catalog::build(items.into(), &BuildOptions::default()).expect("sound items");
    let level = |l| LevelTokens { first_token: 4 + l * NUM_CODES, num_codes: NUM_CODES };
    let tokens = CodeTokens::new((0..LEVELS).map(level).collect(), NUM_TOKENS).expect("in range");
    CatalogConstraint::new(Arc::new(catalog), tokens).expect("they fit together")
}

/// The same set as plain token sequences; collisions are one sequence.
fn plain(ids: &[Vec<u32>]) -> SequenceSet {
    let token = |(l, &code): (usize, &u32)| 4 + l as u32 * NUM_CODES + code;
    SequenceSet::new(
        NUM_TOKENS,
        ids.iter().map(|id| id.iter().enumerate().map(token).collect::<Vec<_>>()),
    )
}

fn beam_search(constraint: &CatalogConstraint, logits: &TableLogits, width: usize) -> Vec<Scored> {
    let width = NonZeroUsize::new(width).expect("positive");
    let mut search = BeamSearch::new(BeamOptions { width, max_tokens: LEVELS as usize });
    let mut backend = HostBackend::new(logits.source());
    search.run(constraint, &mut backend).expect("tables have distributions");
    search.results().map(|h| Scored { tokens: h.tokens.to_vec(), score: h.score }).collect()
}

/// None, one, few or many semantic IDs, of one length or several, with collisions.
fn ids() -> impl Strategy<Value = Vec<Vec<u32>>> {
    let fixed = prop::collection::vec(0..NUM_CODES, LEVELS as usize);
    let ragged = prop::collection::vec(0..NUM_CODES, 1..=LEVELS as usize);
    prop_oneof![
        prop::collection::vec(fixed.clone(), 0..=1),
        prop::collection::vec(fixed, 0..80),
        prop::collection::vec(ragged, 0..80),
    ]
}

proptest! {
    #[test]
    fn equals_naive_beam_search(
        ids in ids(),
        seed: u64,
        grades in prop_oneof![2_u32..6, 1000_u32..2000],
        width in prop_oneof![1_usize..8, 30_usize..120],
    ) {
        let logits = TableLogits { seed, num_tokens: NUM_TOKENS, grades };
        prop_assert_eq!(
            beam_search(&catalog(&ids), &logits, width),
            naive_beam_search(&plain(&ids), &logits, width)
        );
    }

    #[test]
    fn equals_scoring_every_item_when_as_wide_as_the_catalog(ids in ids(), seed: u64) {
        let logits = TableLogits { seed, num_tokens: NUM_TOKENS, grades: 64 };
        prop_assert_eq!(
            beam_search(&catalog(&ids), &logits, ids.len().max(1)),
            exhaustive(&plain(&ids), &logits)
        );
    }
}
