//! Histories as published, where they are present: `PALMETTE_DATA` or `shared/data` beside the
//! repository.

use std::path::Path;
use std::sync::Arc;

use palmette_catalog::readers::{Format, read_items};
use palmette_catalog::{BuildOptions, Catalog};
use palmette_catalog_live::CatalogView;
use palmette_recommend_eval::{Histories, Split, UnknownItems, UserHistories};
use palmette_testkit::data::unpacked;

fn view(index: &Path) -> CatalogView {
    let items = read_items(index, Format::IndexJson).unwrap();
    Arc::new(Catalog::build(items, &BuildOptions::default()).unwrap()).into()
}

fn bound(path: &Path, view: &CatalogView) -> UserHistories {
    Histories::read(path).unwrap().bind(path, view, UnknownItems::Error).unwrap()
}

#[test]
fn rows_of_minionerec_by_id_and_by_semantic_id() {
    let Some(dir) = unpacked("rows_of_minionerec_by_id_and_by_semantic_id", "minionerec") else {
        return;
    };
    let dir = dir.path().join("minionerec");
    for (name, rows) in [
        ("Industrial_and_Scientific.test", 4533),
        ("Industrial_and_Scientific.valid", 4532),
        ("Office_Products.test", 4866),
    ] {
        let index = name.rsplit_once('.').unwrap().0;
        let view = view(&dir.join(format!("{index}.index.json")));
        let path = dir.join(format!("{name}.csv"));
        let by_id = bound(&path, &view);
        assert!(by_id.are_questions);
        assert_eq!(by_id.questions(Split::Test).count(), rows, "{name}");
        // Without the columns of ids, those of semantic IDs are read.
        let text = std::fs::read_to_string(&path).unwrap();
        let (header, rest) = text.split_once('\n').unwrap();
        let header = header.replace("history_item_id,item_id", "a,b");
        let codes = dir.join("codes.csv");
        std::fs::write(&codes, format!("{header}\n{rest}")).unwrap();
        let by_codes = bound(&codes, &view);
        for (by_id, by_codes) in by_id.items.iter().zip(&by_codes.items) {
            let codes = |items: &[u64]| -> Vec<Vec<u32>> {
                items.iter().map(|&item| view.codes(item)).collect()
            };
            assert_eq!(codes(by_id), codes(by_codes), "{name}");
        }
    }
}

#[test]
fn one_data_set_in_four_formats() {
    let Some(dir) = unpacked("one_data_set_in_four_formats", "scientific") else { return };
    let find = |name: &str| {
        let all = walk(dir.path());
        all.into_iter().find(|path| path.ends_with(name)).expect(name)
    };
    let view = view(&find("rqvae_zcr/Scientific.index.json"));
    let histories = Histories::read(&find("Scientific.inter.json")).unwrap();
    let items: usize = histories.records().iter().map(|record| record.items.len()).sum();
    assert_eq!((histories.records().len(), items), (8317, 58_492));
    let (mut sequential, mut lines) = (String::new(), String::new());
    let mut inter = "user_id:token\titem_id:token\ttimestamp:float\n".to_owned();
    for record in histories.records() {
        let user = record.user.as_ref().unwrap();
        let ids: Vec<String> =
            record.items.iter().map(|item| item.to_string().trim_matches('"').to_owned()).collect();
        sequential += &format!("{user} {}\n", ids.join(" "));
        lines += &format!("{{\"user_id\": {user:?}, \"history\": {ids:?}}}\n");
        for (time, id) in ids.iter().enumerate().rev() {
            inter += &format!("{user}\t{id}\t{time}\n");
        }
    }
    let path = Path::new("Scientific.inter.json");
    let expected = histories.bind(path, &view, UnknownItems::Error).unwrap();
    for (name, text) in [("s.txt", sequential), ("s.jsonl", lines), ("s.inter", inter)] {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        assert_eq!(bound(&path, &view), expected, "{name}");
    }
}

fn walk(dir: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
