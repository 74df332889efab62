//! Published titles under a real vocabulary: where they are not at hand, said and skipped.

use std::collections::BTreeSet;

use palmette_core::{MemberSet, VocabularyTrie};
use palmette_lexicon::{LexiconSet, MemberSpelling};
use palmette_testkit::data;
use palmette_testkit::member_sets::effect;

use crate::texts::{TestSelection, lexicon, naive};

#[test]
fn published_titles_under_a_published_vocabulary() {
    let Some(folder) = data::unpacked("published_titles", "scientific") else { return };
    let mut titles: Vec<Vec<u8>> = Vec::new();
    for path in files(folder.path()) {
        if path.ends_with("Scientific.item.json") {
            let text = std::fs::read_to_string(&path).expect("a readable file");
            let items: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            let items = items.as_object().expect("items by number");
            titles.extend(items.values().filter_map(|item| Some(item["title"].as_str()?.into())));
        }
    }
    let distinct: BTreeSet<Vec<u8>> = titles.iter().cloned().collect();
    assert!(distinct.len() > 3000, "{} titles", distinct.len());
    let made = lexicon(&titles);
    assert_eq!(made.check(), Ok(()));
    assert!(made.bytes() < made.text_bytes() as usize * 9 / 10);

    let vocabulary = palmette_vocabulary::load("o200k_base").expect("it is built in").vocabulary;
    let trie = VocabularyTrie::new(&vocabulary);
    for (kind, of) in [(0, 1), (1, 100), (1, 3)] {
        let chosen = TestSelection { kind, of, seed: 5 };
        let set = LexiconSet::new(
            made.clone(),
            chosen.selection(distinct.len()),
            MemberSpelling::JsonString,
        );
        let (set, expected) = (set.expect("UTF-8"), naive(true, chosen.members(&distinct)));
        let members = chosen.members(&distinct);
        // Along some titles, token by token as far as the longest goes.
        for (_, title) in members.iter().step_by(members.len() / 12 + 1) {
            let mut spelled = Vec::new();
            MemberSpelling::JsonString.append(title, &mut spelled);
            let (mut at, mut same) =
                (set.start().expect("members"), expected.start().expect("members"));
            for (read, &byte) in spelled.iter().enumerate() {
                if read < 3 || read % 5 == 0 {
                    assert_eq!(effect(&set, &at, &trie, 0), effect(&expected, &same, &trie, 0));
                }
                at = set.advance(&at, byte).expect("a title goes on");
                same = expected.advance(&same, byte).expect("a title goes on");
            }
            assert!(set.member(&at).is_some());
        }
    }
}

fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}
