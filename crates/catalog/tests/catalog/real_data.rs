//! Published semantic IDs: every mask of every reachable state against the definition.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use palmette_catalog::readers::{Format, read_items};
use palmette_catalog::{BuildOptions, Catalog, CatalogConstraint, Check, CodeTokens, LevelTokens};
use palmette_core::{Constraint, TokenId, TokenMask};
use palmette_testkit::data::unpacked;
use palmette_testkit::laws;

const LEVEL_TOKENS: u32 = 256;

/// Compares masks, acceptance, membership and items with a sorted list of the file's IDs.
fn check(index: &Path) {
    let source = read_items(index, Format::IndexJson).unwrap();
    let items = source.items.clone();
    let levels = items.iter().map(|item| item.codes.len()).max().unwrap();
    let num_tokens = 2 + levels * LEVEL_TOKENS as usize;
    let tokens: Vec<LevelTokens> = (0..levels as u32)
        .map(|l| LevelTokens { first_token: 2 + l * LEVEL_TOKENS, num_codes: LEVEL_TOKENS })
        .collect();
    let catalog = Arc::new(Catalog::build(source, &BuildOptions::default()).unwrap());
    let tokens = CodeTokens::new(tokens, num_tokens).unwrap();
    let constraint = CatalogConstraint::new(Arc::clone(&catalog), tokens.clone()).unwrap();
    laws::check(&constraint, 1, 3, levels + 1);

    let ids: BTreeSet<&[u32]> = items.iter().map(|item| item.codes.as_slice()).collect();
    let mut open = vec![(constraint.start(), Vec::new())];
    let mut mask = TokenMask::new(num_tokens);
    let mut states = 0;
    while let Some((state, prefix)) = open.pop() {
        states += 1;
        let below = ids.range(prefix.as_slice()..).take_while(|id| id.starts_with(&prefix));
        let codes: BTreeSet<u32> = below.filter_map(|id| id.get(prefix.len()).copied()).collect();
        let want: Vec<TokenId> =
            codes.iter().map(|&code| tokens.token(prefix.len(), code).unwrap()).collect();
        let Ok(()) = constraint.fill_mask(&state, &mut (), mask.as_words_mut());
        assert_eq!(mask.iter().collect::<Vec<_>>(), want, "after {prefix:?}");
        assert_eq!(constraint.is_accepting(&state, &mut ()), Ok(ids.contains(prefix.as_slice())));
        for code in codes {
            let mut next = state;
            let token = tokens.token(prefix.len(), code).unwrap();
            constraint.commit(&mut next, token, &mut ()).unwrap();
            open.push((next, [prefix.as_slice(), &[code]].concat()));
        }
    }
    assert!(states > ids.len());
    for item in &items {
        let same = items.iter().filter(|other| other.codes == item.codes).map(|other| &other.id);
        let found = catalog.find(&item.codes).map(|rank| catalog.id(rank));
        assert!(found.eq(same), "the items of {:?}, in the file's order", item.codes);
        assert_eq!(catalog.codes(catalog.rank_of(&item.id).unwrap()), item.codes);
    }
    let read = Catalog::from_bytes("copy", catalog.to_bytes(), Check::Whole).unwrap();
    assert_eq!(read, *catalog);
}

#[test]
fn scientific() {
    let Some(data) = unpacked("scientific", "scientific") else { return };
    for index in ["rqvae_native", "rqvae_zcr", "mql4grec"] {
        check(&data.path().join(format!("data/Scientific/indexes/{index}/Scientific.index.json")));
    }
}

#[test]
fn minionerec() {
    let Some(data) = unpacked("minionerec", "minionerec") else { return };
    check(&data.path().join("minionerec/Industrial_and_Scientific.index.json"));
}
