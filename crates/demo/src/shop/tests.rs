//! Promises of every generated shop, and that a seed always gives the same one.

use std::collections::{BTreeMap, BTreeSet};

use super::brands::{BRANDS, brands_of, price_class};
use super::departments::Department;
use super::interests::INTERESTS;
use super::{Shop, ShopItem};

/// More than one, so that what holds is not a lucky draw.
const SEEDS: [u64; 3] = [1, 7, 2026];

#[test]
fn a_seed_gives_the_same_shop_everywhere() {
    let shop = Shop::generate(7);
    assert_eq!(shop.items.len(), 4_034);
    assert_eq!(shop.users.len(), 6_000);
    let num_purchases: usize = shop.users.iter().map(|user| user.history.len()).sum();
    assert_eq!(num_purchases, 78_605);
    assert_eq!(checksum(&shop), 0xbe05_605f_6212_4892);
    assert_ne!(Shop::generate(8), shop);
}

#[test]
fn items_are_well_formed() {
    for shop in SEEDS.map(Shop::generate) {
        assert!((3_600..4_400).contains(&shop.items.len()), "{} items", shop.items.len());
        assert_all_differ(shop.items.iter().map(|item| &item.id));
        assert_all_differ(shop.items.iter().map(|item| &item.title));
        for item in &shop.items {
            let limits = Shop::CODES_PER_LEVEL;
            assert!(item.codes.iter().zip(limits).all(|(&code, limit)| code < limit), "{item:?}");
            assert!(item.price >= 1.0 && item.price < 1_500.0, "{item:?}");
            let cents = item.price * 100.0;
            assert!((cents - cents.round()).abs() < 1e-6, "{item:?}");
            assert!(!item.title.contains(['{', '}']) && !item.title.contains("  "), "{item:?}");

            let department = Department::ALL[item.codes[0] as usize];
            assert_eq!(item.category, department.name());
            let product_type = &department.product_types()[item.codes[1] as usize];
            assert_eq!(item.product_type, product_type.name);
            assert_eq!(item.brand, BRANDS[item.codes[2] as usize].name);
        }
    }
}

#[test]
fn a_few_items_share_an_id_and_are_variants_of_one_product() {
    for shop in SEEDS.map(Shop::generate) {
        let mut first_of_id: BTreeMap<[u32; 4], &ShopItem> = BTreeMap::new();
        let mut num_collisions = 0;
        for item in &shop.items {
            if let Some(first) = first_of_id.get(&item.codes) {
                num_collisions += 1;
                let product = |item: &ShopItem| item.title.split_once(", ").map(|p| p.0.to_owned());
                assert_eq!(product(first), product(item));
            } else {
                first_of_id.insert(item.codes, item);
            }
        }
        let share = f64::from(num_collisions) / shop.items.len() as f64;
        assert!((0.005..0.03).contains(&share), "{share}");
    }
}

#[test]
fn histories_are_well_formed() {
    for shop in SEEDS.map(Shop::generate) {
        assert_all_differ(shop.users.iter().map(|user| &user.id));
        for user in &shop.users {
            assert!((6..=30).contains(&user.history.len()), "{user:?}");
            assert!(user.history.iter().all(|&index| index < shop.items.len()), "{user:?}");
            assert_all_differ(user.history.iter());
        }
    }
}

/// The last purchase says much about the next one, and popularity says little.
#[test]
fn the_next_product_type_follows_from_the_last_one() {
    for shop in SEEDS.map(Shop::generate) {
        let mut followers: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        let mut popularity: BTreeMap<&str, usize> = BTreeMap::new();
        for user in &shop.users {
            for pair in user.history.windows(2) {
                let [last, next] =
                    [pair[0], pair[1]].map(|index| shop.items[index].product_type.as_str());
                *followers.entry(last).or_default().entry(next).or_default() += 1;
                *popularity.entry(next).or_default() += 1;
            }
        }
        let num_steps = popularity.values().sum::<usize>() as f64;
        let by_last = followers.values().map(top_five).sum::<usize>() as f64 / num_steps;
        let by_popularity = top_five(&popularity) as f64 / num_steps;
        assert!(by_last > 0.4, "{by_last}");
        assert!(by_popularity < 0.2, "{by_popularity}");
    }
}

#[test]
fn users_stay_in_their_price_class() {
    for shop in SEEDS.map(Shop::generate) {
        let (mut num_own, mut num_all) = (0, 0);
        for user in &shop.users {
            let mut by_class = [0; 3];
            for &index in &user.history {
                by_class[price_class(shop.items[index].codes[2] as usize) as usize] += 1;
            }
            num_own += by_class.into_iter().max().unwrap_or(0);
            num_all += user.history.len();
        }
        let share = num_own as f64 / num_all as f64;
        assert!(share > 0.85, "{share}");
    }
}

#[test]
fn sample_histories_keep_to_one_price_class_and_differ() {
    for shop in SEEDS.map(Shop::generate) {
        let samples = shop.sample_histories();
        assert_eq!(samples.len(), 5);
        for history in &samples {
            assert!((4..=6).contains(&history.len()));
            assert_all_differ(history.iter());
            let classes = history.iter().map(|&index| shop.items[index].codes[2] / 16);
            assert_eq!(classes.collect::<BTreeSet<_>>().len(), 1);
        }
    }
}

/// A hole in the tables would make a shelf empty or a product impossible to want.
#[test]
fn the_tables_fit_together() {
    let types = || Department::ALL.into_iter().flat_map(Department::product_types);
    assert_all_differ(types().map(|product_type| product_type.name));
    let wanted: BTreeSet<&str> = INTERESTS
        .iter()
        .flat_map(|interest| interest.sequences.iter())
        .flat_map(|s| s.iter())
        .copied()
        .collect();
    let sold: BTreeSet<&str> = types().map(|product_type| product_type.name).collect();
    assert_eq!(wanted, sold);

    assert_all_differ(BRANDS.iter().map(|brand| brand.name));
    for (index, department) in Department::ALL.into_iter().enumerate() {
        assert_eq!(department as usize, index);
        let classes: Vec<_> = brands_of(department).map(|brand| price_class(brand) as u8).collect();
        for class in 0..3 {
            let num_brands = classes.iter().filter(|&&other| other == class).count();
            assert!(num_brands >= 2, "{department:?} has {num_brands} brands of class {class}");
        }
    }
    for interest in INTERESTS {
        for name in interest.near {
            let is_other = |other: &&super::interests::Interest| other.name == *name;
            let near = INTERESTS.iter().find(is_other);
            assert!(near.is_some_and(|near| near.name != interest.name), "{name:?}");
        }
    }
    assert!(types().all(|product_type| product_type.forms.len() <= 4));
}

fn top_five(counts: &BTreeMap<&str, usize>) -> usize {
    let mut counts: Vec<usize> = counts.values().copied().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts.iter().take(5).sum()
}

#[track_caller]
fn assert_all_differ<T: Ord + std::fmt::Debug>(values: impl Iterator<Item = T>) {
    let mut seen = BTreeSet::new();
    for value in values {
        let text = format!("{value:?}");
        assert!(seen.insert(value), "{text} occurs twice");
    }
}

/// FNV-1a over everything a user can see of the shop.
fn checksum(shop: &Shop) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for &byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    for item in &shop.items {
        add(item.title.as_bytes());
        add(&((item.price * 100.0).round() as u32).to_le_bytes());
        for number in item.codes.into_iter().chain([item.stock, item.age_days]) {
            add(&number.to_le_bytes());
        }
    }
    for &index in shop.users.iter().flat_map(|user| &user.history) {
        add(&(index as u32).to_le_bytes());
    }
    hash
}
