//! Strings by rank and ranks by string are those of a sorted set.

use std::collections::BTreeSet;

use palmette_lexicon::{BuildError, Lexicon, LexiconBuilder, MAX_TEXT_BYTES, build_peak_bytes};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::texts::texts;

/// Compares all questions with a sorted set.
#[track_caller]
fn check(lexicon: &Lexicon, expected: &BTreeSet<Vec<u8>>, others: &[Vec<u8>]) {
    assert_eq!(lexicon.check(), Ok(()));
    assert_eq!(lexicon.len(), expected.len());
    assert_eq!(lexicon.text_bytes(), expected.iter().map(|text| text.len() as u64).sum::<u64>());
    let first = expected.iter().position(|text| std::str::from_utf8(text).is_err());
    assert_eq!(lexicon.first_not_utf8(), first);
    for (rank, text) in expected.iter().enumerate() {
        assert_eq!(lexicon.text(rank), *text);
        assert_eq!(lexicon.rank(text), Some(rank));
    }
    let mut all = Vec::new();
    lexicon.for_each(|rank, text| all.push((rank, text.to_vec())));
    assert!(all.into_iter().eq(expected.iter().cloned().enumerate()));
    let mut prefixes: Vec<&[u8]> = others.iter().map(Vec::as_slice).collect();
    for text in expected.iter().take(40) {
        prefixes.extend((0..=text.len().min(600)).map(|len| &text[..len]));
    }
    for prefix in prefixes {
        let starts = expected.iter().enumerate().filter(|(_, text)| text.starts_with(prefix));
        let ranks: Vec<usize> = starts.map(|(rank, _)| rank).collect();
        let range = lexicon.range(prefix);
        assert_eq!(range.clone().collect::<Vec<_>>(), ranks, "{}", prefix.escape_ascii());
        assert_eq!(lexicon.rank(prefix), expected.iter().position(|text| text == prefix));
    }
}

proptest! {
    #[test]
    fn strings_are_those_of_a_sorted_set(given in texts(120), others in texts(10)) {
        let expected: BTreeSet<Vec<u8>> = given.iter().cloned().collect();
        let lexicon = Lexicon::from_texts(&given).expect("short texts");
        check(&lexicon, &expected, &others);
        // The order in which texts come, and whether they are sorted here, does not matter.
        let reversed = Lexicon::from_texts(given.iter().rev()).expect("short texts");
        prop_assert!(reversed == lexicon);
        prop_assert!(Lexicon::from_sorted(&expected).expect("they ascend") == lexicon);
        prop_assert!(lexicon.file_bytes() < build_peak_bytes(given.len() as u64, lexicon.text_bytes()));
    }

    #[test]
    fn texts_out_of_order_are_named(given in texts(30), at in any::<Index>()) {
        let mut sorted: Vec<Vec<u8>> = BTreeSet::from_iter(given).into_iter().collect();
        prop_assume!(!sorted.is_empty());
        let at = at.index(sorted.len());
        sorted.insert(at + 1, sorted[at].clone());
        let error = Lexicon::from_sorted(&sorted).unwrap_err();
        let is_named = matches!(error, BuildError::Disorder { number, .. } if number == at as u64 + 1);
        prop_assert!(is_named, "{}", error);
    }
}

/// Prefixes that end where a byte of their length does, each with branches and longer strings.
#[test]
fn long_shared_prefixes_are_found() {
    let mut texts = BTreeSet::new();
    for len in [253, 254, 255, 256, 257, 300, 511, 512, 65_000] {
        for end in ["", "a", "b", "bc", "\0", "\u{7f}"] {
            texts.insert([&vec![b'x'; len][..], end.as_bytes()].concat());
        }
    }
    let others = [vec![b'x'; 254], vec![b'x'; 66_000], [&vec![b'x'; 255][..], b"q"].concat()];
    check(&Lexicon::from_texts(&texts).expect("none is too long"), &texts, &others);
}

#[test]
fn every_byte_begins_and_ends_strings() {
    let bytes = || 0..=u8::MAX;
    let texts: BTreeSet<Vec<u8>> =
        bytes().flat_map(|a| bytes().step_by(5).map(move |b| vec![a, b, 255 - a])).collect();
    let lexicon = Lexicon::from_texts(&texts).expect("short texts");
    check(&lexicon, &texts, &[vec![0], vec![255], vec![7, 5]]);
}

#[test]
fn no_strings_and_the_empty_one_are_lexicons() {
    let none = Lexicon::from_texts::<&str>([]).expect("nothing is too long");
    assert!(none.is_empty() && none.rank(b"").is_none() && none.range(b"a").is_empty());
    check(&none, &BTreeSet::new(), &[vec![1]]);
    let empty = Lexicon::from_texts([""]).expect("it is short");
    check(&empty, &BTreeSet::from([vec![]]), &[vec![0]]);
}

#[test]
fn the_longest_text_is_taken_and_a_longer_one_refused() {
    let longest = vec![b'y'; MAX_TEXT_BYTES];
    let before = vec![b'y'; MAX_TEXT_BYTES - 1];
    let texts = BTreeSet::from([longest.clone(), before]);
    check(&Lexicon::from_texts(&texts).expect("at the limit"), &texts, &[]);
    let error = Lexicon::from_texts([&b"a"[..], &[&longest[..], b"y"].concat()]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "text 1, \"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\" and so on, has 65537 bytes, over the limit \
         of 65536; shorten it or leave it out"
    );
    let error = Lexicon::from_sorted(["b", "a"]).unwrap_err().to_string();
    assert_eq!(error, "text 1 is \"a\" and does not ascend from the one before; sort the texts");
}

#[test]
fn a_build_shows_its_stages_and_is_called_off() {
    let builder = || {
        let mut builder = LexiconBuilder::with_capacity(2, 2);
        ["a", "b"].iter().for_each(|text| builder.push(text.as_bytes()).expect("short"));
        assert_eq!((builder.len(), builder.is_empty()), (2, false));
        builder
    };
    let mut stages = Vec::new();
    let made = builder().finish_while(|stage| {
        stages.push(stage);
        true
    });
    assert_eq!((made.map(|made| made.len()), stages.len()), (Some(2), 2));
    assert!(builder().finish_while(|stage| stage != stages[1]).is_none());
}
