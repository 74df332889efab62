//! Lexicons as catalogs of ids alone.

use std::sync::Arc;

use palmette_catalog::Filter;
use palmette_catalog_members::CatalogFields;
use palmette_core::{MemberSet, MemberSpelling};
use palmette_lexicon::Lexicon;

#[test]
fn a_lexicon_has_the_one_field_id() {
    let lexicon = Arc::new(Lexicon::from_texts(["Acme", "Zeta", "", "Acorn"]).expect("short"));
    let fields = CatalogFields::from_lexicon(lexicon);
    assert_eq!((fields.names(), fields.view().is_none()), (vec!["id"], true));
    let all = fields.set("id", None, MemberSpelling::JsonString).expect("the field");
    assert_eq!((all.len(), all.num_items()), (3, 3));
    assert_eq!(all.item(all.find("Acorn").expect("a member")), Some(2));

    let some =
        Filter::parse(r#"{"must": {"ids": ["Acme", "Zeta", "other"]}, "exclude": ["Zeta"]}"#);
    let some = fields.set("id", Some(&some.expect("a filter")), MemberSpelling::Raw);
    let some = some.expect("the field");
    assert_eq!((some.len(), some.find("Acme").is_some(), some.find("Zeta")), (1, true, None));

    let error = |field: &str, filter: &str| {
        let filter = Filter::parse(filter).expect("a filter");
        fields.set(field, Some(&filter), MemberSpelling::Raw).unwrap_err().to_string()
    };
    assert_eq!(error("name", "{}"), r#"field "name" is not there; the only one is "id""#);
    assert_eq!(
        error("id", r#"{"match": {"brand": "Acme"}}"#),
        r#"no item has the attribute "brand"; there are none"#
    );
}

#[test]
fn bytes_that_are_no_text_are_written_raw_alone() {
    let lexicon = Arc::new(Lexicon::from_texts([&b"a\xFF"[..], b"b"]).expect("short"));
    let fields = CatalogFields::from_lexicon(lexicon);
    assert_eq!(fields.set("id", None, MemberSpelling::Raw).expect("the field").len(), 2);
    let error = fields.set("id", None, MemberSpelling::JsonString).unwrap_err().to_string();
    assert!(error.contains("is not UTF-8"), "{error}");
}
