//! Forms and bytes of tables.

use palmette_catalog::{CatalogPlan, PlanOptions};
use palmette_cuda::catalog::{LevelForm, TablePlan};

use LevelForm::{ByPrefix, ByRank, Masked};

fn forms(plan: &TablePlan) -> Vec<LevelForm> {
    plan.levels.iter().map(|level| level.form).collect()
}

/// The distinct prefixes of each level where codes are drawn evenly.
fn prefixes(num_items: u64, codes: &[u32]) -> Vec<u64> {
    let options = PlanOptions {
        num_items,
        codes_per_level: codes.to_vec(),
        dense_levels: None,
        id_bytes: 8,
        attribute_bytes: 0,
    };
    let plan = CatalogPlan::new(&options).expect("within the limits");
    plan.index.levels.iter().map(|level| level.num_prefixes as u64).collect()
}

#[test]
fn twenty_million_items_take_13_bytes_each() {
    let (items, codes) = (20_000_000, [2048; 8]);
    let plan = TablePlan::new(items, &codes, &prefixes(items, &codes)).unwrap();
    assert_eq!(forms(&plan)[..3], [Masked, Masked, ByRank]);
    assert!(forms(&plan)[3..].iter().all(|&form| form == ByRank));
    let bytes = plan.bytes() as f64 / items as f64;
    assert!((12.8..12.9).contains(&bytes), "{bytes} bytes an item");
    let sum: usize = plan.levels.iter().map(|level| level.bytes()).sum();
    assert!((sum..sum + 64 * 4 * 8).contains(&plan.bytes()));
}

#[test]
fn a_level_takes_its_smallest_form() {
    for (items, codes, prefixes, expected) in [
        // Few items of large codebooks: a code each.
        (10, &[2048, 2048, 2048][..], &[9, 10, 10][..], &[ByRank, ByRank, ByRank][..]),
        (100_000, &[256, 256, 256], &[256, 60_000, 99_000], &[Masked, ByRank, ByRank]),
        (1_000_000, &[256, 256, 256], &[256, 65_536, 990_000], &[Masked, Masked, ByRank]),
        // Prefixes with many items each, of codebooks that are used in small part.
        (1_000_000, &[1_000_000; 3], &[50, 2000, 900_000], &[ByPrefix, ByPrefix, ByRank]),
        // Masks end where a level has none.
        (1_000_000, &[4096, 70_000, 8], &[4096, 5000, 9000], &[Masked, ByPrefix, ByPrefix]),
    ] {
        let plan = TablePlan::new(items, codes, prefixes).unwrap();
        assert_eq!(forms(&plan), expected, "{items} items of {codes:?}");
        for (level, &codes) in plan.levels.iter().zip(codes) {
            assert_eq!(level.code_bytes, if codes > 65_536 { 4 } else { 2 });
        }
    }
    assert!(TablePlan::new(u64::MAX, &[2], &[2]).is_none());
}
