//! Substrings of documents are member sets: equal to the list of all of them.

use std::sync::Arc;

use palmette_core::{
    Budget, Cursor, MemberSet, SubstringRule, SubstringUnit, Vocabulary, VocabularyTrie,
};
use palmette_lexicon::{
    DocumentsError, MAX_DOCUMENT_BYTES, MemberSpelling, SubstringSet, Substrings, SubstringsBuilder,
};
use palmette_testkit::member_sets::{assert_equal_sets, effect};
use palmette_testkit::substrings::all_substrings;
use proptest::prelude::*;

use crate::texts::{naive, nodes, vocabulary};

/// Documents of few characters: blanks and marks, some of several bytes that begin alike, some that
/// JSON escapes.
fn documents() -> impl Strategy<Value = Vec<String>> {
    let few = prop::collection::vec(prop::sample::select("ab ".chars().collect::<Vec<_>>()), 0..14);
    let any =
        prop::sample::select("ab. \n\"\\,é—”。い\u{301}\u{1F986}!".chars().collect::<Vec<_>>());
    let document = prop_oneof![2 => few, 3 => prop::collection::vec(any, 0..9)];
    prop::collection::vec(document.prop_map(String::from_iter), 0..5)
}

fn rule() -> impl Strategy<Value = SubstringRule> {
    let unit = prop::sample::select(SubstringUnit::ALL.to_vec());
    let rule = |(unit, min, more): (_, u32, Option<u32>)| {
        SubstringRule::new(unit, min, more.map(|more| min + more)).expect("bounds of a rule")
    };
    (unit, 1_u32..6, prop::option::weighted(0.6, 0_u32..8)).prop_map(rule)
}

/// Compares members, masks, ends, places and what is no member with the list.
fn check(documents: &[String], rule: SubstringRule, json: bool, vocabulary: &Vocabulary) -> usize {
    let substrings = Arc::new(Substrings::new(documents, rule).expect("short documents"));
    let expected = all_substrings(documents, rule);
    assert_eq!(substrings.len(), expected.len() as u64, "members of {documents:?} by {rule:?}");
    let mut members = Vec::new();
    for (text, &(document, start)) in &expected {
        let member = substrings.find(text).unwrap_or_else(|| panic!("{text:?} of {documents:?}"));
        assert_eq!(substrings.text(member), text);
        let place = substrings.first_place(member);
        assert_eq!((place.document, place.span), (document, start..start + text.len()));
        members.push((member.0, text.clone().into_bytes()));
    }
    for document in documents {
        for (from, _) in document.char_indices() {
            for (to, last) in document.char_indices().filter(|&(to, _)| to >= from) {
                let text = &document[from..to + last.len_utf8()];
                assert_eq!(
                    substrings.find(text).is_some(),
                    expected.contains_key(text),
                    "{text:?}"
                );
            }
        }
    }
    let spelling = if json { MemberSpelling::JsonString } else { MemberSpelling::Raw };
    let set = SubstringSet::new(Arc::clone(&substrings), spelling);
    let trie = VocabularyTrie::new(vocabulary);
    every_token_is_tried(&set, vocabulary, &trie);
    assert_equal_sets(&set, &naive(json, members), &trie, &nodes(&trie), 300)
}

/// A token is in the mask exactly where it can be read byte by byte.
fn every_token_is_tried(set: &SubstringSet, vocabulary: &Vocabulary, trie: &VocabularyTrie) {
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
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn sets_equal_the_list_of_their_members(
        documents in documents(), rule in rule(), json in any::<bool>(), vocabulary in vocabulary(),
    ) {
        check(&documents, rule, json, &vocabulary);
    }

    /// Any substring that a text contains is a member by characters, and none else.
    #[test]
    fn characters_are_what_the_text_contains(document in "[abé]{0,30}", other in "[abé]{1,4}") {
        let substrings = Substrings::new([&document], SubstringUnit::Chars.into()).expect("short");
        prop_assert_eq!(substrings.find(&other).is_some(), document.contains(&other));
    }
}

/// Words that end at characters which begin alike and part within their bytes: the members end in
/// suffixes that are not the first.
#[test]
fn members_end_at_characters_that_part_within() {
    let text = |last: &str| format!("ab{last}x");
    for lasts in [["é", "—"], ["—", "い"], ["“", "”"], ["い", "。"], ["\u{301}", "\u{7ff}"]]
    {
        let documents = lasts.map(text);
        let vocabulary = Vocabulary::new(["a", "ab", "b\"", "b\","].map(Some), []).expect("tokens");
        for json in [false, true] {
            assert!(check(&documents, SubstringRule::default(), json, &vocabulary) > 3);
        }
    }
}

/// Prefixes of suffixes that are as hot as those with tables, and longer than a byte counts.
#[test]
fn repeated_texts_are_indexed_and_asked_quickly() {
    let tokens = ["a", "aa", "aaaa", "aaaaaaaa", "\"", "a\"", "aaaa\",", "b"];
    let trie = VocabularyTrie::new(&Vocabulary::new(tokens.map(Some), []).expect("tokens"));
    let document = "a".repeat(100_000);
    let substrings = Substrings::new([&document, &document], SubstringUnit::Chars.into());
    let substrings = Arc::new(substrings.expect("under the limit"));
    assert_eq!(substrings.len(), 100_000);
    let set = SubstringSet::new(Arc::clone(&substrings), MemberSpelling::JsonString);
    let mut at = set.start().expect("members");
    for read in 0..100_000 {
        if read % 997 == 0 || read > 99_990 {
            let left = 100_000 - read;
            let (tokens, _) = effect(&set, &at, &trie, 0);
            let fits = [1, 2, 4, 8].iter().filter(|&&len| len <= left).count();
            // And `a"`, and a quote where a member has begun.
            assert_eq!(tokens.len(), fits + 1 + usize::from(read > 0), "after {read}");
        }
        at = set.advance(&at, b'a').expect("the document goes on");
    }
    assert_eq!(set.advance(&at, b'a'), None);
    let whole = substrings.find(&document).expect("the whole document");
    assert_eq!(substrings.first_place(whole).document, 0);
    for rule in [
        SubstringRule::new(SubstringUnit::Chars, 5, Some(20)),
        SubstringRule::new(SubstringUnit::Words, 1, Some(20)),
        SubstringRule::new(SubstringUnit::Words, 60_000, None),
    ] {
        let rule = rule.expect("bounds of a rule");
        let words = Substrings::new(["é".repeat(100_000), "a b ".repeat(50_000)], rule);
        words.expect("under the limit");
    }
}

#[test]
fn cursors_of_equal_ranges_are_equal_and_strange_ones_do_not_panic() {
    let substrings = Substrings::new(["ab é", "ab—"], SubstringRule::default()).expect("short");
    let set = SubstringSet::new(substrings.into(), MemberSpelling::JsonString);
    let trie = VocabularyTrie::new(&Vocabulary::new([Some("a")], []).expect("a token"));
    let big = u64::from(u32::MAX);
    for words in [
        vec![],
        vec![1],
        vec![big << 32, 0],
        vec![2 << 32, big],
        vec![2 << 32, 9 << 32],
        vec![1 << 33, u64::MAX],
        vec![1 << 32, 1],
        vec![2 << 32, 3],
    ] {
        let at = Cursor::new(&words);
        set.advance(&at, b'a');
        set.advance(&at, b'"');
        set.member(&at);
        set.forced(&at, &mut Vec::new());
        effect(&set, &at, &trie, 0);
    }
}

#[test]
fn no_members_and_limits() {
    let none: [&str; 0] = [];
    for documents in [&none[..], &["", " "], &["a", "bc"]] {
        let rule = SubstringRule::new(SubstringUnit::Words, 3, None).expect("bounds");
        let set = SubstringSet::new(
            Substrings::new(documents, rule).unwrap().into(),
            MemberSpelling::Raw,
        );
        assert!(set.is_empty() && set.start().is_none());
        assert_eq!(set.substrings().num_documents(), documents.len());
        assert_eq!(set.substrings().find("a"), None);
    }
    let mut builder = SubstringsBuilder::new(SubstringRule::default()).with_max_bytes(10);
    builder.push("abcd").expect("5 of 10");
    builder.push("").expect("6 of 10");
    let error = builder.push("abcd").unwrap_err();
    assert_eq!(error, DocumentsError::TooLarge { number: 2, limit: 10 });
    assert_eq!(
        error.to_string(),
        format!(
            "the documents have more than 10 bytes together, one more counted for each, with \
             document 2; leave some out, or raise the limit, at most to {MAX_DOCUMENT_BYTES}"
        )
    );
    builder.push("abc").expect("10 of 10");
    let made = builder.finish();
    assert_eq!([0, 1, 2].map(|number| made.document(number)), ["abcd", "", "abc"]);
    assert_eq!(made.len(), 2);
}

#[test]
fn a_budget_ends_the_work() {
    let document: String = (0..3000).map(|number| format!("{number} ")).collect();
    let tokens = (0..1000).map(|number| Some(number.to_string()));
    let trie = VocabularyTrie::new(&Vocabulary::new(tokens, []).expect("tokens"));
    let substrings = Substrings::new([document], SubstringRule::default()).expect("short");
    let set = SubstringSet::new(substrings.into(), MemberSpelling::Raw);
    let start = set.start().expect("members");
    let ask = |budget: &mut Budget<'_>| {
        set.effect(&start, &trie, 0, &mut [0; 40], &mut Vec::new(), budget)
    };
    assert!(ask(&mut Budget::new(100)).is_err());
    assert_eq!(ask(&mut Budget::new(1 << 20)), Ok(()));
}
