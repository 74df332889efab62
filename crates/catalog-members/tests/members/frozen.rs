//! Fields of frozen catalogs.

use std::collections::BTreeMap;

use palmette_catalog::{BuildOptions, Catalog, Filter, Item};
use palmette_catalog_live::CatalogView;
use palmette_catalog_members::CatalogFields;
use palmette_core::{MemberSet, MemberSpelling};
use proptest::prelude::*;
use serde_json::json;

use crate::definition::{self, declared};

fn catalog(items: Vec<Item>) -> Catalog {
    let options = BuildOptions { columns: declared(), ..BuildOptions::default() };
    Catalog::build(items.into(), &options).expect("sound items")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn sets_of_fields_are_the_values_that_items_have(
        items in prop::collection::vec(definition::item(), 0..24)
    ) {
        let by_id: BTreeMap<String, Item> =
            items.into_iter().map(|item| (item.id.clone(), item)).collect();
        let catalog = catalog(by_id.into_values().collect());
        let view = CatalogView::from(catalog);
        definition::check(&view);
        // What was kept answers likewise.
        definition::check(&view);
        prop_assert!(view.num_items() == 0 || CatalogFields::new(view).bytes() > 0);
    }
}

/// Many items and values, so that sets are of ranks and not lists.
#[test]
fn sets_of_many_values_are_sets_of_ranks() {
    let item = |number: u32| {
        let attributes = json!({"title": format!("title {number}"), "tags": [format!("t{}", number % 3000)],
            "price": number % 2500, "half": number % 2});
        let codes = vec![number % 7, number % 11];
        Item {
            id: format!("P{number:05}"),
            codes,
            attributes: attributes.as_object().expect("one").clone(),
        }
    };
    let fields = CatalogFields::new(catalog((0..9000).map(item).collect()).into());
    let odd = Filter::parse(r#"{"match": {"half": 1}}"#).expect("a filter");
    for (field, num_all, num_odd) in
        [("id", 9000, 4500), ("title", 9000, 4500), ("tags", 3000, 1500), ("price", 2500, 1250)]
    {
        let all = fields.set(field, None, MemberSpelling::JsonString).expect("a field");
        let set = fields.set(field, Some(&odd), MemberSpelling::JsonString).expect("a field");
        assert_eq!((all.len(), set.len(), set.num_items()), (num_all, num_odd, 4500), "{field}");
    }
    // A value is gone when the last item that has it is.
    let some = Filter::parse(r#"{"exclude": ["P00001", "P03001", "P06001", "P00002"]}"#);
    let some = some.expect("a filter");
    for (field, num) in [("id", 8996), ("title", 8996), ("tags", 2999), ("price", 2500)] {
        let set = fields.set(field, Some(&some), MemberSpelling::Raw).expect("a field");
        assert_eq!((set.len(), set.num_items()), (num, 8996), "{field}");
    }
    let ids = fields.set("id", Some(&odd), MemberSpelling::Raw).expect("a field");
    assert!(ids.find("P00007").is_some() && ids.find("P00008").is_none());
    assert_eq!(ids.nearest("P0007", 2), ["P00007", "P00017"]);
}

#[test]
fn what_cannot_be_had_is_told_with_a_way_out() {
    let item = |id: &str, attributes: serde_json::Value| Item {
        id: id.into(),
        codes: vec![1],
        attributes: attributes.as_object().expect("one").clone(),
    };
    let items = vec![
        item("a", json!({"color": "red", "size": 3, "long": "x".repeat(1 << 17)})),
        item("b", json!({"variants": [{"color": "red"}]})),
    ];
    let fields = CatalogFields::new(catalog(items).into());
    let error = |field: &str, filter: Option<&str>| {
        let filter = filter.map(|filter| Filter::parse(filter).expect("a filter"));
        fields.set(field, filter.as_ref(), MemberSpelling::Raw).unwrap_err()
    };
    let unknown = error("colour", None);
    assert!(unknown.is_unknown_field() && unknown.filter().is_none());
    assert_eq!(unknown.to_string(), r#"field "colour" is not there; the nearest is "color""#);
    assert_eq!(
        error("weight", None).to_string(),
        r#"field "weight" is not there; there are id, added, ean, color, size, long, variants"#
    );
    assert_eq!(
        error("variants", None).to_string(),
        "field \"variants\" has the value [{\"color\":\"red\"}], of item b: members are texts, numbers, \
         true, false, times, or lists of texts"
    );
    let long = error("long", None).to_string();
    assert!(long.starts_with("field \"long\" cannot be indexed: item a: text 0, "), "{long}");
    let filter = error("color", Some(r#"{"match": {"colr": "red"}}"#));
    assert!(filter.filter().is_some_and(|error| error.is_unknown_column()), "{filter}");
}
