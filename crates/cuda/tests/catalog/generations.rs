//! Generations on a device: what a refresh uploads, what requests hold, and filters that are kept.

use std::sync::Arc;

use palmette_catalog::{Filter, Item};
use palmette_catalog_live::{CatalogView, Update};
use palmette_cuda::catalog::{CatalogError, CatalogMemory, DeviceCatalog, DeviceSearch};
use palmette_cuda::{Driver, Stream};
use serde_json::json;

use crate::support::{
    Batch, LogitsThere, Random, Tables, drivers, frozen, item, items, live, searched_here,
};

const CODES: [u32; 2] = [40, 40];

fn catalog(driver: &Arc<dyn Driver>, max_filter_bytes: usize) -> DeviceCatalog {
    DeviceCatalog::new(Arc::clone(driver), CODES.to_vec(), max_filter_bytes)
}

/// Numbers of all items that a search of a view finds on the device, in order; the processor's are
/// the same.
fn found(driver: &Arc<dyn Driver>, catalog: &DeviceCatalog, view: &CatalogView) -> Vec<u64> {
    let snapshot = catalog.snapshot(view).unwrap();
    let request = catalog.request(&snapshot, None, [], vec![40, 300], f32::NEG_INFINITY).unwrap();
    let tables = Tables::new(&mut Random(11), &CODES, 300, 3);
    let logits = [LogitsThere::new(&**driver, &tables)];
    let mut search = DeviceSearch::new(Arc::clone(driver), Stream::Selection);
    search.run(vec![request.clone()], &mut Batch(&logits)).unwrap();
    let found = search.finish().unwrap().pop().unwrap().unwrap();
    let got: Vec<u64> = found.iter().flat_map(|of| request.items(of)).collect();
    let here = searched_here(view, None, &tables, &[40, 300], f32::NEG_INFINITY);
    assert_eq!(got, here.into_iter().flat_map(|of| of.2).collect::<Vec<_>>());
    got
}

fn upserts(random: &mut Random, segment: usize, len: usize) -> Vec<Update> {
    let mut items = items(random, len, &CODES);
    items.iter_mut().for_each(|item| item.id = format!("{segment}-{}", item.id));
    items.into_iter().map(Update::Upsert).collect()
}

#[test]
fn a_refresh_uploads_what_is_new_and_requests_keep_their_generation() {
    let Some(driver) = drivers().pop() else { return };
    let mut random = Random(3);
    let (live, _folder) = live(&[upserts(&mut random, 0, 900), upserts(&mut random, 1, 30)]);
    let catalog = catalog(&driver, 1 << 20);
    assert_eq!(catalog.memory(), CatalogMemory { max_filter_bytes: 1 << 20, ..Default::default() });
    let old = live.view();
    let before = found(&driver, &catalog, &old);
    let first = catalog.newest().unwrap();
    assert!(Arc::ptr_eq(&first, &catalog.snapshot(&old).unwrap()), "it is there");

    live.apply(&upserts(&mut random, 2, 20)).unwrap();
    live.apply(&[Update::Delete("0-i7".into()), Update::Delete("0-i8".into())]).unwrap();
    let new = live.view();
    let after = found(&driver, &catalog, &new);
    assert_ne!(after, before);
    let second = catalog.newest().unwrap();
    assert_eq!(second.view().generation(), new.generation());
    // Tables of segments that both have are the same memory.
    let shared = first.shared_segments(&second);
    assert!(shared >= 2, "{shared} of {}", second.num_segments());

    // A request of the older view finds what it found, and the newest generation stays.
    assert_eq!(found(&driver, &catalog, &old), before);
    assert!(Arc::ptr_eq(&second, &catalog.newest().unwrap()));
    assert_eq!(first.view().generation(), old.generation());
    let memory = catalog.memory();
    assert_eq!(memory.items, new.num_numbers());
    assert!(memory.table_bytes > 0 && memory.table_bytes == second.bytes());
}

#[test]
fn filters_are_kept_by_their_sets_up_to_a_bound() {
    let Some(driver) = drivers().pop() else { return };
    let brands = |number: usize| {
        let attributes = json!({"brand": format!("b{}", number % 20)});
        let attributes = attributes.as_object().unwrap().clone();
        Item { attributes, ..item(number, &[number as u32 % 40, number as u32 * 7 % 40]) }
    };
    let view = frozen((0..1000).map(brands).collect(), &CODES);
    // 32 words and 33 counts a filter: ten of them.
    let (row, widths) = ((32 + 33) * 4, vec![10, 10]);
    let catalog = catalog(&driver, 10 * row);
    let snapshot = catalog.snapshot(&view).unwrap();
    let filter = |brand: usize| {
        let brand = json!({"match": {"brand": format!("b{brand}")}});
        view.filter(&Filter::from_value(&brand).unwrap()).unwrap()
    };
    let ask = |brand: usize| {
        let items = filter(brand);
        catalog.request(&snapshot, Some(&items), [], widths.clone(), 0.0).unwrap()
    };
    for _ in 0..2 {
        (0..10).for_each(|brand| _ = ask(brand));
        let memory = catalog.memory();
        assert_eq!((memory.filters, memory.filter_bytes), (10, 10 * row));
    }
    // The set of the cache is asked for again: nothing is uploaded.
    assert!(ask(4).has_filters_of(&ask(4)));
    let held = ask(3);
    (10..20).for_each(|brand| _ = ask(brand));
    let memory = catalog.memory();
    assert_eq!((memory.filters, memory.filter_bytes), (10, 10 * row));
    assert!(!held.has_filters_of(&ask(3)), "it went, and its request kept it");
    // Sets that nobody has go first.
    drop(held);
    view.clear_filters();
    ask(1);
    assert_eq!(catalog.memory().filters, 1);
    // All items need no filter.
    let all = view.all_items();
    catalog.request(&snapshot, Some(&all), [], widths, 0.0).unwrap();
    assert_eq!(catalog.memory().filters, 1);
}

#[test]
fn catalogs_that_kernels_do_not_search_are_refused_by_name() {
    let Some(driver) = drivers().pop() else { return };
    let catalog = catalog(&driver, 1 << 20);
    let view = |items: &[(&str, &[u32])]| {
        let of = |&(id, codes): &(&str, &[u32])| Item { id: id.into(), ..item(0, codes) };
        let catalog = palmette_catalog::Catalog::build(
            items.iter().map(of).collect::<Vec<_>>().into(),
            &palmette_catalog::BuildOptions::default(),
        );
        CatalogView::from(catalog.unwrap())
    };
    let refused = |items: &[(&str, &[u32])]| catalog.snapshot(&view(items)).unwrap_err();
    let error = refused(&[("lamp", &[1, 2]), ("tent", &[1])]);
    assert!(error.to_string().starts_with("item \"tent\" has 1 codes of 2"), "{error}");
    assert!(matches!(refused(&[("lamp", &[1])]), CatalogError::ShorterItem { .. }));
    assert!(matches!(refused(&[("lamp", &[1, 2, 3])]), CatalogError::OtherLevels { .. }));
    let error = refused(&[("lamp", &[1, 40])]);
    assert_eq!(error.to_string(), "code 40 at level 1, which has 40 codes");
    assert!(catalog.newest().is_none());
    // No item at all is a catalog in which nothing is found.
    assert!(found(&driver, &catalog, &view(&[])).is_empty());
}
