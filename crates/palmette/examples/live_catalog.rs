//! A catalog from items to updates: build, save, filter, recommend, and change while requests are
//! answered.
//!
//! `cargo run --release -p palmette --example live_catalog`
#![allow(clippy::print_stdout)] // It shows what it does.

use std::error::Error;
use std::sync::Arc;

use palmette::{Catalog, CatalogView, Filter, Item, LiveCatalog, LiveReader, Recommender, Update};

/// The built-in shop's model, written as files: what `palmette-train` leaves for a shop of one's
/// own.
fn write_model(dir: &std::path::Path) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(dir)?;
    for (name, bytes) in palmette_demo::Demo::model_files() {
        std::fs::write(dir.join(name), bytes)?;
    }
    Ok(())
}

fn item(id: &str, codes: [u32; 4], brand: &str) -> Item {
    let attributes = [("brand".to_owned(), brand.into())].into_iter().collect();
    Item { id: id.to_owned(), codes: codes.into(), attributes }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let shop = Catalog::from_items([
        item("tent", [0, 2, 4, 0], "Fernhollow"),
        item("mat", [0, 2, 0, 0], "Pebbleway"),
        item("stove", [0, 3, 16, 0], "Fernhollow"),
        item("flask", [1, 5, 17, 32], "Wickenfell"),
    ])?;
    shop.save(dir.path().join("shop.palm"))?;
    let shop = Catalog::open(dir.path().join("shop.palm"))?;
    let fernhollow = Filter::parse(r#"{"must": {"match": {"brand": "Fernhollow"}}}"#)?;
    let live = Arc::new(LiveCatalog::create(dir.path().join("live"), &shop)?);
    let shop = CatalogView::from(shop);
    println!("Fernhollow sells {:?}", shop.matching_ids(&fernhollow)?);

    write_model(&dir.path().join("model"))?;
    let model = Recommender::open(dir.path().join("model"), live.clone())?;

    let ids = |answer: &palmette::Answer| -> Vec<String> {
        answer.items.iter().map(|item| item.id.clone()).collect()
    };
    let before = model.recommend(["tent"]).k(3).run()?;
    println!("generation {:?}: {:?}", before.generation, ids(&before));
    assert_eq!(before.items.len(), 3);

    // What a request of now sees can be held; updates do not wait for it.
    let held = model.view()?;
    live.apply(&[
        Update::Delete("mat".into()),
        Update::Upsert(item("lamp", [0, 3, 16, 1], "Fernhollow")),
    ])?;
    // What is gone is never recommended, and still reads as history.
    let after = model.recommend(["tent", "mat", "anvil"]).k(3).run()?;
    println!(
        "generation {:?}: {:?} after {} items; never sold: {:?}",
        after.generation,
        ids(&after),
        after.history_used,
        after.unknown
    );
    assert!(!ids(&after).contains(&"mat".to_owned()) && after.history_used == 2);
    assert_eq!(after.unknown, ["anvil"]);
    assert_eq!(ids(&model.recommend(["tent"]).k(3).at(held).run()?), ids(&before));

    // Other processes read beside the one that writes; what they see is a generation, whole.
    let reader = LiveReader::open(dir.path().join("live"))?;
    let seen = reader.view();
    assert_eq!((seen.generation(), seen.get("mat")), (Some(1), None));
    let beside = Recommender::open(dir.path().join("model"), reader)?;
    assert_eq!(ids(&beside.recommend(["tent", "mat", "anvil"]).k(3).run()?), ids(&after));

    let filtered = model
        .recommend(["tent"])
        .k(10)
        .filter(r#"{"must": {"match": {"brand": "Fernhollow"}}}"#)?
        .run()?;
    println!("of Fernhollow: {:?}", ids(&filtered));
    assert_eq!(filtered.items.len(), 2);
    Ok(())
}
