//! Tables of hot prefixes answer as joins do, for every selection, and stay within their bytes.

use std::collections::BTreeSet;

use palmette_core::{Budget, MemberSet, Vocabulary, VocabularyTrie};
use palmette_lexicon::{LexiconSet, MemberSpelling};
use palmette_testkit::member_sets::{assert_equal_sets, effect};

use crate::texts::{TestSelection, lexicon, naive, nodes};

/// Texts of which many share short prefixes, some with bytes that JSON escapes.
fn texts(count: u32) -> Vec<Vec<u8>> {
    let letters = ["a", "b", "ab", "\"", "\n", "\u{1}", "é", "\\", ", ", "c"];
    let text = |number: u32| {
        let mut rest = number.wrapping_mul(0x9E37_79B9);
        let mut text = String::new();
        for _ in 0..7 {
            text += letters[(rest % 10) as usize];
            rest /= 10;
        }
        text.into_bytes()
    };
    (0..count).map(text).collect()
}

/// Tokens that are runs of letters as they are spelled, several of them alike.
fn vocabulary() -> Vocabulary {
    let letters = [
        "a", "b", "ab", "\\\"", "\\n", "\\u0001", "é", "\\\\", ", ", "c", "\"", "\n", "\\u00", "\\",
    ];
    let mut tokens: Vec<String> = letters.map(str::to_owned).to_vec();
    for one in letters {
        tokens.extend(letters.iter().map(|other| format!("{one}{other}")));
        tokens.extend(letters.iter().map(|other| format!("{one}a{other}")));
    }
    Vocabulary::new(tokens.into_iter().map(Some), []).expect("no token ends a text")
}

#[test]
fn tables_answer_as_the_definition_does() {
    let texts = texts(30_000);
    let distinct: BTreeSet<Vec<u8>> = texts.iter().cloned().collect();
    let trie = VocabularyTrie::new(&vocabulary());
    for spelling in [MemberSpelling::Raw, MemberSpelling::JsonString] {
        let lexicon = lexicon(&texts);
        // All kinds of selections share the tables, whoever makes them.
        for (kind, of) in [(1, 2), (0, 1), (1, 30), (1, 1000), (2, 3), (2, 1_000_000)] {
            let chosen = TestSelection { kind, of, seed: 9 };
            let set = LexiconSet::new(lexicon.clone(), chosen.selection(distinct.len()), spelling);
            let set = set.expect("a set of these ranks");
            let expected = naive(spelling == MemberSpelling::JsonString, chosen.members(&distinct));
            assert_equal_sets(&set, &expected, &trie, &nodes(&trie), 60);
        }
        assert!(lexicon.table_bytes() > 0);
    }
}

#[test]
fn tables_of_other_vocabularies_and_nodes_are_others() {
    let lexicon = lexicon(&texts(10_000));
    let set = LexiconSet::new(
        lexicon,
        TestSelection { kind: 0, of: 1, seed: 0 }.selection(0),
        MemberSpelling::Raw,
    );
    let (set, vocabulary) = (set.expect("all strings"), vocabulary());
    let few = Vocabulary::new([Some("ab"), Some("a")], []).expect("no token ends a text");
    let start = set.start().expect("there are members");
    for _ in 0..2 {
        let [all, two] = [&vocabulary, &few].map(|vocabulary| {
            let trie = VocabularyTrie::new(vocabulary);
            effect(&set, &start, &trie, 0).0.len()
        });
        assert!(two == 2 && all > 20);
        let trie = VocabularyTrie::new(&vocabulary);
        let node = trie.find(b"a").expect("a token begins so") as u32;
        assert!(effect(&set, &start, &trie, node).0.len() < all);
    }
}

#[test]
fn tables_are_prepared_up_to_their_share() {
    let texts = texts(60_000);
    let trie = VocabularyTrie::new(&vocabulary());
    let lexicon = lexicon(&texts);
    let budget = &mut Budget::unlimited();
    lexicon.prepare_tables(&trie, 0, MemberSpelling::JsonString, 1, budget).expect("no limit");
    let made = lexicon.table_bytes();
    assert!(made > 10_000 && made <= (lexicon.bytes() / 4).max(1 << 20));
    // What was made is found again.
    let set = LexiconSet::new(
        lexicon.clone(),
        TestSelection { kind: 0, of: 1, seed: 0 }.selection(0),
        MemberSpelling::JsonString,
    );
    let set = set.expect("UTF-8");
    effect(&set, &set.start().expect("there are members"), &trie, 0);
    assert_eq!(lexicon.table_bytes(), made);
    // Many vocabularies: the tables of the last are kept.
    for _ in 0..400 {
        let trie = VocabularyTrie::new(&vocabulary());
        effect(&set, &set.start().expect("there are members"), &trie, 0);
        assert!(lexicon.table_bytes() <= (lexicon.bytes() / 4).max(1 << 20));
    }
}
