//! Damaged catalogs whose contents nobody checked: wrong sets or errors, and no panics.

use palmette_catalog::{BuildOptions, Catalog, Check, Filter, Item};
use palmette_catalog_members::CatalogFields;
use palmette_core::{MemberSet, MemberSpelling};
use proptest::prelude::*;

use crate::definition::{self, declared};

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn damage_is_an_error_or_another_set(
        attributes in prop::collection::vec(definition::attributes(), 12..30),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
    ) {
        let items: Vec<Item> = (0_u32..).zip(attributes).map(|(number, attributes)| {
            Item { id: format!("a{number}"), codes: vec![number % 3, number % 5], attributes }
        }).collect();
        let options = BuildOptions { columns: declared(), ..BuildOptions::default() };
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("shop.palm");
        Catalog::build(items.into(), &options).expect("sound items").save(&path).expect("saved");
        let mut bytes = std::fs::read(&path).expect("a file");
        // Header and table have a checksum that is always looked at; the description comes last.
        let num_sections = u32::from_le_bytes(bytes[12..16].try_into().expect("four bytes"));
        let first = 64 + 32 * num_sections as usize;
        let description = bytes.windows(10).rposition(|text| text == b"{\"index\":{").expect("JSON");
        for (at, byte) in damage {
            bytes[first + at.index(description - first)] = byte;
        }
        std::fs::write(&path, bytes).expect("written");
        let catalog = Catalog::open_with(&path, Check::Frame).expect("a frame that is whole");
        let fields = CatalogFields::new(catalog.into());
        for field in fields.names() {
            for filter in ["{}", r#"{"exclude": ["a0", "a7"]}"#, r#"{"must": {"exists": "brand"}}"#] {
                let filter = Filter::parse(filter).expect("a filter");
                for spelling in [MemberSpelling::Raw, MemberSpelling::JsonString] {
                    let Ok(set) = fields.set(field, Some(&filter), spelling) else { continue };
                    let mut at = set.start();
                    // Along some member, as far as there is one.
                    for _ in 0..100 {
                        let Some(cursor) = at else { break };
                        set.member(&cursor).iter().for_each(|&member| {
                            set.text(member, &mut Vec::new());
                            set.item(member);
                        });
                        at = (0..=u8::MAX).find_map(|byte| set.advance(&cursor, byte));
                    }
                    let _ = (set.len(), set.num_items(), set.find("ab"), set.nearest("ab", 3));
                }
            }
        }
        prop_assert!(fields.bytes() < 1 << 30);
    }
}
