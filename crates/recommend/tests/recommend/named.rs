//! Histories by id and by semantic ID.

use std::sync::Arc;

use palmette_catalog_live::CatalogView;
use palmette_decode::run_on;
use palmette_recommend::{History, HistoryItem, NamedItem, Recommender, Request, Witness};

use crate::shop::{catalog, format, model, named, recommend, request, worker};

fn recommender() -> Arc<Recommender> {
    Arc::new(Recommender::new(model(), catalog(200), format()).unwrap())
}

#[test]
fn a_semantic_id_reads_as_its_item() {
    let recommender = recommender();
    let view = recommender.view().unwrap();
    for number in [0_u64, 57, 199] {
        let id = view.view().id(number).to_owned();
        let codes = view.view().codes(number);
        let texts: Vec<String> = codes.iter().map(u32::to_string).collect();
        let tags: Vec<String> = codes.iter().map(|code| format!("<x_{code}>")).collect();
        assert_eq!(view.find_item(&id.into()), Ok(HistoryItem::Number(number)));
        let by_codes = HistoryItem::Codes(codes.clone());
        assert_eq!(view.find_item(&NamedItem::Codes(codes)), Ok(by_codes.clone()));
        assert_eq!(view.find_item(&texts.join("-").into()), Ok(by_codes.clone()));
        assert_eq!(view.find_item(&tags.concat().into()), Ok(by_codes.clone()));

        let (items, history) = ([by_codes], [number]);
        let asked = Request { include_seen: true, ..Request::new(History::Items(&items), 20) };
        let as_number = Request { include_seen: true, ..request(&history, 20, 128) };
        let answer = recommend(&recommender, &asked);
        assert_eq!(named(&answer), named(&recommend(&recommender, &as_number)));
        assert_eq!(answer.history_used, 1);
    }
}

/// Which of the items that share a semantic ID was meant is not known, so none comes again.
#[test]
fn all_items_of_a_semantic_id_are_seen() {
    let recommender = recommender();
    let view = recommender.view().unwrap();
    let codes = view.view().codes(view.view().find("i8").unwrap());
    assert_eq!(view.view().find_codes(&codes).len(), 2, "i8 and i9 share it");
    let items = [HistoryItem::Codes(codes)];
    let answer = recommend(&recommender, &Request::new(History::Items(&items), 200));
    let found: Vec<(String, u32)> = named(&answer);
    assert_eq!(found.len(), 198);
    assert!(found.iter().all(|(id, _)| id != "i8" && id != "i9"));
}

#[test]
fn an_item_that_has_gone_is_read_by_its_codes() {
    let recommender = recommender();
    let view = recommender.view().unwrap();
    let gone = vec![29, 29, 29];
    assert!(view.view().find_codes(&gone).is_empty());
    let items = [view.find_item(&NamedItem::Codes(gone)).unwrap()];
    let mut worker = worker(&recommender);
    let with = worker.recommend(&Request::new(History::Items(&items), 5), &mut run_on).unwrap();
    assert_eq!((with.history_used, worker.prompt_tokens()), (1, 4));
    let without = recommend(&recommender, &request(&[], 5, 128));
    assert_ne!(named(&with), named(&without), "the model read it");
}

#[test]
fn what_cannot_be_read_is_named() {
    let view = recommender().view().unwrap();
    let refused = |item: NamedItem, words: &[&str]| {
        let message = view.find_item(&item).unwrap_err().to_string();
        for word in words {
            assert!(message.contains(word), "{message} lacks {word}");
        }
    };
    refused("i200".into(), &["\"i200\" is not in the catalog of 200 items", "look like"]);
    refused("3".into(), &["\"3\" is not in the catalog"]);
    refused("3-1".into(), &["\"3-1\"", "it has 2 codes", "have 3"]);
    refused("3-1-30".into(), &["code 30 at level 2", "0 to 29"]);
    refused("<x_3><y_1><x_2>".into(), &["level 1 is spelled <y_…>", "<x_…>"]);
    refused(NamedItem::Codes(vec![1, 2, 3, 4]), &["1-2-3-4", "it has 4 codes"]);
    refused(NamedItem::Codes(vec![u32::MAX, 0, 0]), &["code 4294967295 at level 0"]);
}

/// A model names items of its shop: a catalog file that has none of them is another shop's.
#[test]
fn a_catalog_of_another_shop_is_told() {
    let view = CatalogView::from(Arc::new(catalog(200)));
    let told = |witnesses: &[&str]| {
        let witness = |id: &&str| Witness { id: (*id).to_owned(), codes: vec![0, 0, 0] };
        let mut format = format();
        format.witnesses = witnesses.iter().map(witness).collect();
        format.check_shop(&view).err().map(|error| error.to_string())
    };
    assert_eq!(told(&["i3", "gone"]), None);
    assert_eq!(told(&[]), None);
    let message = told(&["P1", "P2"]).unwrap();
    assert!(message.contains("none of the 2 items") && message.contains("\"P1\""), "{message}");
}
