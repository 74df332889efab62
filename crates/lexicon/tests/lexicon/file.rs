//! A file gives back the lexicon; a damaged one is an error, or answers something and does not
//! panic.

use palmette_core::{MemberSet, Vocabulary, VocabularyTrie};
use palmette_lexicon::{Check, Lexicon, LexiconSet, MemberSpelling, Selection};
use palmette_testkit::member_sets::effect;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::texts::texts;

/// Asks everything there is to ask.
fn use_all(lexicon: Lexicon) {
    let _ = lexicon.check();
    let len = lexicon.len();
    for rank in (0..len.min(100)).chain(len.checked_sub(1)) {
        let text = lexicon.text(rank);
        let _ = lexicon.rank(&text);
        let _ = lexicon.range(&text[..text.len() / 2]);
    }
    lexicon.for_each(|_, _| {});
    let _ = lexicon.to_bytes();
    let tokens = ["a", "ab", "\"", "\\", "xxx", "ba", "\",", "b\","].map(Some);
    let trie = VocabularyTrie::new(&Vocabulary::new(tokens, []).expect("no token ends a text"));
    let lexicon = std::sync::Arc::new(lexicon);
    let list: Vec<u32> = (0..len as u32).step_by(3).collect();
    for selection in [Selection::All, Selection::List(list.into())] {
        for spelling in [MemberSpelling::Raw, MemberSpelling::JsonString] {
            let Ok(set) = LexiconSet::new(lexicon.clone(), selection.clone(), spelling) else {
                continue;
            };
            let mut open: Vec<_> = set.start().into_iter().collect();
            for _ in 0..50 {
                let Some(at) = open.pop() else { break };
                effect(&set, &at, &trie, 0);
                set.forced(&at, &mut Vec::new());
                set.member(&at);
                open.extend((0..=u8::MAX).filter_map(|byte| set.advance(&at, byte)));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_file_gives_back_the_lexicon(texts in texts(100)) {
        let made = Lexicon::from_texts(&texts).expect("short texts");
        let bytes = made.to_bytes();
        prop_assert_eq!(bytes.len() as u64, made.file_bytes());
        for check in [Check::Frame, Check::Sums, Check::Whole] {
            let opened = Lexicon::from_bytes("a file", bytes.clone(), check).expect("its own file");
            prop_assert!(opened == made);
            prop_assert_eq!(opened.to_bytes(), bytes.clone());
        }
    }

    #[test]
    fn every_changed_byte_is_found(texts in texts(20), by in 1_u8..) {
        let bytes = Lexicon::from_texts(&texts).expect("short texts").to_bytes();
        for at in (0..bytes.len()).step_by(7) {
            let mut changed = bytes.clone();
            changed[at] = changed[at].wrapping_add(by);
            for check in [Check::Sums, Check::Whole] {
                prop_assert!(Lexicon::from_bytes("a file", changed.clone(), check).is_err());
            }
        }
    }

    /// Sums are not looked at: what is damaged says something else, or is refused by a look at
    /// everything.
    #[test]
    fn damage_never_panics(
        texts in texts(80),
        changes in prop::collection::vec((any::<Index>(), any::<u8>()), 1..30),
    ) {
        let made = Lexicon::from_texts(&texts).expect("short texts");
        let mut bytes = made.to_bytes();
        let num_sections = u32::from_le_bytes(bytes[12..16].try_into().expect("4 bytes")) as usize;
        let contents = 64 + 32 * num_sections;
        for (at, byte) in changes {
            let at = contents + at.index(bytes.len() - contents);
            bytes[at] = byte;
        }
        if let Ok(opened) = Lexicon::from_bytes("a file", bytes, Check::Frame) {
            if opened.check().is_ok() {
                prop_assert!(opened == made || opened.to_bytes() != made.to_bytes());
            }
            use_all(opened);
        }
    }
}

/// With the sums made right again, a changed byte of the arrays is found by what they say, or makes
/// other strings that ascend.
#[test]
fn each_changed_byte_is_an_error_or_other_strings() {
    let texts: Vec<String> =
        (0..90).map(|n| format!("{}{}", "x".repeat(n % 7 * 50), n * 37 % 91)).collect();
    let made = Lexicon::from_texts(&texts).expect("short texts");
    let bytes = made.to_bytes();
    let num_sections = u32::from_le_bytes(bytes[12..16].try_into().expect("4 bytes")) as usize;
    let (mut num_errors, mut num_others) = (0, 0);
    for at in 64 + 32 * num_sections..bytes.len() {
        for by in [1, 128] {
            let mut changed = bytes.clone();
            changed[at] = changed[at].wrapping_add(by);
            let Ok(opened) = Lexicon::from_bytes("a file", changed, Check::Frame) else {
                num_errors += 1;
                continue;
            };
            if opened.check().is_err() {
                num_errors += 1;
                use_all(opened);
                continue;
            }
            // Zeros between sections say nothing.
            num_others += 1;
            let mut all: Vec<Vec<u8>> = Vec::new();
            opened.for_each(|_, text| all.push(text.to_vec()));
            assert!(all.is_sorted_by(|a, b| a < b));
            assert!(Lexicon::from_sorted(&all).expect("they ascend") == opened);
        }
    }
    assert!(num_errors > 1000 && num_others > 100, "{num_errors} errors, {num_others} others");
}

#[test]
fn files_are_written_opened_and_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("names.lexicon");
    let made = Lexicon::from_texts(["a", "b"]).expect("short texts");
    made.write(&path).expect("a folder to write to");
    assert!(Lexicon::open(&path).expect("its own file") == made);
    let error = Lexicon::from_bytes("other", b"PALMCAT\0".to_vec(), Check::Whole).unwrap_err();
    let message =
        "other: is not a lexicon file: it does not begin with PALMLEX; build one from texts";
    assert_eq!((error.to_string().as_str(), error.is_io()), (message, false));
    assert!(Lexicon::open(&folder.path().join("none")).unwrap_err().is_io());
}
