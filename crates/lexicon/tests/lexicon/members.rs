//! Sets of a lexicon are member sets: equal to their definition along all texts.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use palmette_core::{Budget, Cursor, Interrupted, MemberSet, Vocabulary, VocabularyTrie};
use palmette_lexicon::{Lexicon, LexiconSet, MemberSpelling, RankSet, Selection, SetError};
use palmette_testkit::member_sets::{assert_equal_sets, effect};
use proptest::prelude::*;

use crate::texts::{TestSelection, chosen, lexicon, naive, nodes, texts, utf8_texts, vocabulary};

fn check(
    texts: &[Vec<u8>],
    chosen: &TestSelection,
    spelling: MemberSpelling,
    vocabulary: &Vocabulary,
) -> usize {
    let distinct: BTreeSet<Vec<u8>> = texts.iter().cloned().collect();
    let selection = chosen.selection(distinct.len());
    let set = LexiconSet::new(lexicon(texts), selection, spelling).expect("a set of these ranks");
    let expected = naive(spelling == MemberSpelling::JsonString, chosen.members(&distinct));
    let trie = VocabularyTrie::new(vocabulary);
    every_token_is_tried(&set, vocabulary, &trie);
    assert_equal_sets(&set, &expected, &trie, &nodes(&trie), 400)
}

/// A token is in the mask exactly where it can be read byte by byte.
fn every_token_is_tried(set: &LexiconSet, vocabulary: &Vocabulary, trie: &VocabularyTrie) {
    let Some(start) = set.start() else { return };
    let (tokens, _) = effect(set, &start, trie, 0);
    let is_read = |text: &[u8]| {
        text.iter().try_fold(start.clone(), |at, &byte| set.advance(&at, byte)).is_some()
    };
    let tried: Vec<_> =
        vocabulary.texts().filter(|(_, text)| is_read(text)).map(|(token, _)| token).collect();
    assert_eq!(tokens, tried);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn raw_sets_equal_their_definition(
        texts in texts(40), chosen in chosen(), vocabulary in vocabulary(),
    ) {
        check(&texts, &chosen, MemberSpelling::Raw, &vocabulary);
    }

    #[test]
    fn json_sets_equal_their_definition(
        texts in utf8_texts(40), chosen in chosen(), vocabulary in vocabulary(),
    ) {
        check(&texts, &chosen, MemberSpelling::JsonString, &vocabulary);
    }
}

/// Every control character after the same prefix, so that escapes in progress stand for many.
#[test]
fn escapes_in_progress_stand_for_all_they_may_become() {
    let texts: Vec<Vec<u8>> =
        (0..0x30_u8).chain([b'"', b'\\', b'z']).map(|byte| vec![b'a', byte, b'b']).collect();
    let tokens =
        ["a\\", "\\u00", "01", "1f", "0b", "\\n", "\\\"", "b\"", "b\",", "1fb\"}", "u001", "\\"];
    let vocabulary = Vocabulary::new(tokens.map(Some), []).expect("no token ends a text");
    for (kind, of) in [(0, 1), (1, 2), (1, 7), (2, 3)] {
        let chosen = TestSelection { kind, of, seed: 3 };
        assert!(check(&texts, &chosen, MemberSpelling::JsonString, &vocabulary) > 30);
    }
}

#[test]
fn what_makes_no_set_is_refused_with_the_way_out() {
    let texts = lexicon(&[b"a".to_vec(), b"b\xFF".to_vec()]);
    let set = |selection, spelling| LexiconSet::new(Arc::clone(&texts), selection, spelling);
    let error = set(Selection::All, MemberSpelling::JsonString).unwrap_err();
    assert_eq!(
        error.to_string(),
        "string 1 of the lexicon, \"b\u{fffd}\" with other bytes, is not UTF-8 and cannot be written in JSON; \
         leave it out of the lexicon"
    );
    let other = Selection::Ranks(Arc::new(RankSet::full(3)));
    assert_eq!(
        set(other, MemberSpelling::Raw).unwrap_err(),
        SetError::OtherRanks { num_ranks: 3, len: 2 }
    );
    for list in [[1, 0], [1, 1], [0, 2]] {
        let list = Selection::List(list.into());
        assert_eq!(set(list, MemberSpelling::Raw).unwrap_err(), SetError::BadList { len: 2 });
    }
}

/// Cursors of other sets are answered somehow.
#[test]
fn strange_cursors_do_not_panic() {
    let set = LexiconSet::new(
        lexicon(&[b"ab".to_vec(), b"ac".to_vec()]),
        Selection::All,
        MemberSpelling::JsonString,
    );
    let (set, trie) =
        (set.expect("UTF-8"), VocabularyTrie::new(&Vocabulary::new([Some("a")], []).unwrap()));
    let big = u64::from(u32::MAX);
    for words in [
        vec![],
        vec![1],
        vec![big << 32, 0],
        vec![2 << 32, big],
        vec![2 << 32, 9 << 32],
        vec![1 << 33, u64::MAX],
    ] {
        let at = Cursor::new(&words);
        set.advance(&at, b'a');
        set.member(&at);
        set.forced(&at, &mut Vec::new());
        effect(&set, &at, &trie, 0);
    }
}

#[test]
fn a_budget_ends_the_work() {
    let texts: Vec<Vec<u8>> = (0..5000_u32).map(|n| n.to_string().into_bytes()).collect();
    let tokens = (0..1000).map(|n| Some(n.to_string()));
    let trie = VocabularyTrie::new(&Vocabulary::new(tokens, []).expect("no token ends a text"));
    let lexicon = Arc::new(Lexicon::from_texts(&texts).expect("short texts"));
    let set = LexiconSet::new(lexicon, Selection::All, MemberSpelling::Raw).expect("all strings");
    let start = set.start().expect("there are members");
    let ask = |budget: &mut Budget<'_>| {
        set.effect(&start, &trie, 0, &mut [0; 40], &mut Vec::new(), budget)
    };
    assert_eq!(ask(&mut Budget::new(100)), Err(Interrupted::OutOfBudget { limit: 100 }));
    assert_eq!(set.lexicon().table_bytes(), 0, "a table that was not finished is not kept");
    let flag = AtomicBool::new(true);
    assert_eq!(ask(&mut Budget::cancellable(1 << 30, &flag)), Err(Interrupted::Cancelled));
    assert_eq!(ask(&mut Budget::new(1 << 20)), Ok(()));
    assert!(set.lexicon().table_bytes() > 0);
}
