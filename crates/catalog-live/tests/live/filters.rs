//! Look-ups of compiled filters, counted.

use palmette_catalog::{Filter, FilterLookUps};
use palmette_catalog_live::{CatalogView, LiveCatalog, LiveOptions, MergePolicy, Update};

use crate::same::item;

#[test]
fn a_segment_is_asked_once_a_filter_and_compiles_it_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let options =
        LiveOptions { memory_items: 2, merging: MergePolicy::Never, ..LiveOptions::default() };
    let live = LiveCatalog::create_with(dir.path(), None, None, options).expect("new");
    let price = |n: u32| Update::Upsert(item(n, &[n % 4], None, Some(f64::from(n))));
    let cheap = Filter::parse(r#"{"range": {"price": {"lt": 3}}}"#).expect("a filter");
    let asked = |filter: &Filter| {
        let mut look_ups = FilterLookUps::default();
        let view = CatalogView::from(live.snapshot());
        let items = view.look_up_filter(filter, &mut look_ups).expect("it is known");
        assert_eq!(items.len(), view.filter(filter).expect("it is known").len());
        (look_ups.hits, look_ups.misses)
    };
    for batch in [[0, 1], [2, 3], [4, 5]] {
        live.apply(&batch.map(price)).expect("sound");
    }
    assert_eq!(live.snapshot().segments().len(), 3);
    assert_eq!(asked(&cheap), (0, 3));
    assert_eq!(asked(&cheap), (3, 0));
    // What is cleared is taken out of the kept sets; a new segment compiles its own.
    live.apply(&[Update::Delete("item1".into()), price(6)]).expect("sound");
    let (hits, misses) = asked(&cheap);
    assert_eq!((hits, misses), (3, live.snapshot().segments().len() as u64 - 3));
    let excluding = Filter::parse(r#"{"range": {"price": {"lt": 3}}}"#).expect("a filter");
    assert_eq!(asked(&excluding).1, 0, "a filter is known by its meaning");
}
