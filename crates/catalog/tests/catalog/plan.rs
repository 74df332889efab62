//! Plans against catalogs that are built.

use palmette_catalog::index::{CodeRows, Index, IndexOptions};
use palmette_catalog::{CatalogPlan, PlanOptions};

/// A generator that is the same everywhere; its upper bits are the random ones.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        const STEP: u64 = 6_364_136_223_846_793_005;
        self.0 = self.0.wrapping_mul(STEP).wrapping_add(1_442_695_040_888_963_407);
        (((self.0 >> 32) * u64::from(bound)) >> 32) as u32
    }
}

#[track_caller]
fn check(num_items: u64, sizes: &[u32], dense_levels: Option<usize>) {
    let plan = CatalogPlan::new(&PlanOptions {
        num_items,
        codes_per_level: sizes.to_vec(),
        dense_levels,
        id_bytes: 0,
        attribute_bytes: 0,
    })
    .unwrap();
    let mut random = Random(num_items);
    let mut rows = CodeRows::new();
    for _ in 0..num_items {
        let id: Vec<u32> = sizes.iter().map(|&size| random.below(size)).collect();
        rows.push(&id).unwrap();
    }
    let codes_per_level = Some(sizes.to_vec());
    let index =
        Index::build(rows, &IndexOptions { dense_levels, codes_per_level, ..Default::default() })
            .unwrap();
    assert_eq!(index.num_dense_levels(), plan.index.dense_levels);
    for (level, planned) in plan.index.levels.iter().enumerate() {
        let shape = index.level_shape(level);
        assert_eq!(shape.form, planned.form, "level {level} of {sizes:?}");
        let (built, planned) = (shape.bytes as f64, planned.bytes as f64);
        assert!(
            (built - planned).abs() <= planned * 0.02 + 64.0,
            "level {level}: {built} bytes, planned {planned}"
        );
    }
    let (built, planned) = (index.bytes() as f64, plan.index.bytes as f64);
    assert!((built - planned).abs() <= planned * 0.01 + 64.0, "{built} bytes, planned {planned}");
    assert!(index.bytes() as u64 <= plan.index.most_bytes);
}

#[test]
fn plans_are_what_builds_take() {
    check(100_000, &[2048; 8], None);
    check(100_000, &[2048; 8], Some(2));
    check(100_000, &[256; 4], None);
    check(200_000, &[64; 5], Some(0));
    check(50_000, &[1000, 10, 10, 10_000], None);
    check(1, &[7, 9], None);
}

#[test]
fn what_no_catalog_holds_is_named() {
    let check = |num_items, sizes: Vec<u32>, dense_levels, message: &str| {
        let options = PlanOptions {
            num_items,
            codes_per_level: sizes,
            dense_levels,
            id_bytes: 0,
            attribute_bytes: 0,
        };
        assert_eq!(CatalogPlan::new(&options).unwrap_err().to_string(), message);
    };
    check(
        1 << 32,
        vec![4],
        None,
        "4294967296 items are more than the 4294967294 that one catalog holds",
    );
    check(1, vec![], None, "0 levels; a semantic ID has 1 to 64 codes");
    check(1, vec![4, 0], None, "a codebook has size 0; sizes go from 1 to 2147483648");
    check(
        1,
        vec![4, 4],
        Some(3),
        "3 dense levels are asked for, but the shortest semantic ID has 2 codes; ask for at most 2",
    );
    check(
        1,
        vec![65536; 4],
        Some(2),
        "2 dense levels would have a table entry for each of 4.3e9 prefixes, over the limit of \
         4294967295; ask for fewer",
    );
}
