//! Documents from a seed, and what their substrings cost.

use std::sync::Arc;

use palmette_core::{
    Cursor, MemberSet, SubstringRule, SubstringUnit, Vocabulary, VocabularyTrie, mask,
};
use palmette_lexicon::{MemberSpelling, SubstringSet, Substrings};

use crate::measure::{fill, prefixes, report, timed};
use crate::strings::Random;

/// Random substrings whose tokens are gone along.
const NUM_WALKS: usize = 2_000;
/// Tokens of a walk at most.
const NUM_STEPS: usize = 40;

/// Prints, for each unit: the time until a document is ready, bytes, and masks along random
/// substrings.
pub(crate) fn measure(
    bytes: usize,
    words: &[String],
    trie: &VocabularyTrie,
    vocabulary: &Vocabulary,
) {
    let document = document(bytes, words);
    let mut row = vec![0; mask::num_words(vocabulary.num_tokens())];
    // What is made once for a vocabulary.
    trie.child_lists();
    for unit in SubstringUnit::ALL {
        let make = || Substrings::new([&document], SubstringRule::from(unit)).expect("a document");
        let ready: Vec<f64> = (0..9).map(|_| timed(make).1).collect();
        let substrings = Arc::new(make());
        let set = SubstringSet::new(Arc::clone(&substrings), MemberSpelling::JsonString);
        println!(
            "{}: {} members, {:.2} bytes a byte",
            unit.name(),
            set.len(),
            substrings.bytes() as f64 / document.len() as f64
        );
        report("ready", ready);
        let start = set.start().expect("there are members");
        report("first mask of the root", vec![timed(|| fill(&set, &start, trie, &mut row)).1]);
        for run in ["mask", "mask, again"] {
            walks(run, &set, &document, trie, &mut row);
        }
        println!("  tables {:.2} MB", substrings.table_bytes() as f64 / 1e6);
    }
}

/// Masks along the tokens of substrings: mostly the longest token that fits, sometimes another.
fn walks(run: &str, set: &SubstringSet, document: &str, trie: &VocabularyTrie, row: &mut [u32]) {
    let mut random = Random(3);
    let (mut masks, mut commits) = (Vec::new(), Vec::new());
    let start = set.start().expect("there are members");
    let read_all = |at: &Cursor, bytes: &[u8]| {
        bytes.iter().try_fold(at.clone(), |at, &byte| set.advance(&at, byte))
    };
    for _ in 0..NUM_WALKS {
        // A place where a member begins.
        let mut rest = loop {
            let rest = &document.as_bytes()[random.below(document.len() - 100)..];
            if read_all(&start, &rest[..20]).is_some() {
                break rest;
            }
        };
        let mut at = start.clone();
        for _ in 0..NUM_STEPS {
            masks.push(timed(|| fill(set, &at, trie, row)).1);
            let tokens: Vec<usize> = prefixes(trie, &rest[..rest.len().min(40)]).collect();
            let Some(&longest) = tokens.last() else { break };
            let one = tokens[random.below(tokens.len())];
            let (token, after) = rest.split_at(if random.below(4) > 0 { longest } else { one });
            let (next, ns) = timed(|| read_all(&at, token));
            // Line breaks are escaped in JSON; the walk ends with its paragraph.
            let Some(next) = next else { break };
            commits.push(ns);
            (at, rest) = (next, after);
        }
    }
    report(run, masks);
    report("cursor after a token", commits);
}

/// Sentences of words as they are used, in paragraphs.
fn document(bytes: usize, words: &[String]) -> String {
    let mut random = Random(7);
    let mut text = String::new();
    while text.len() < bytes {
        for number in 0..5 + random.below(20) {
            let word = &words[random.skewed(words.len())];
            let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
            match number {
                0 => text.extend(first.chars().flat_map(char::to_uppercase)),
                _ => text.push_str(first),
            }
            text.push_str(rest);
            text.push_str(if random.below(12) == 0 { ", " } else { " " });
        }
        text.truncate(text.trim_end_matches([' ', ',']).len());
        text.push_str(if random.below(8) == 0 { ".\n\n" } else { ". " });
    }
    let cut = (0..=bytes).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    text.truncate(cut);
    text
}
