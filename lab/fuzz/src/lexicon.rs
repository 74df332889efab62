//! Lexicons: files to start from, questions to ask of what was opened, and sets held to their
//! definition.

use std::collections::BTreeSet;
use std::sync::Arc;

use palmette_core::{MemberSet, Vocabulary, VocabularyTrie};
use palmette_lexicon::{
    Lexicon, LexiconSet, MemberSpelling, RankSet, Selection, SubstringRule, SubstringSet,
    SubstringUnit, Substrings,
};
use palmette_testkit::member_sets::{NaiveSet, assert_equal_sets, effect};
use palmette_testkit::substrings::all_substrings;

use crate::random::Random;

/// A small lexicon file: few strings or some lines of them, of few bytes or as long as a byte
/// counts.
pub fn lexicon_file(seed: u64) -> Vec<u8> {
    let random = &mut Random(seed);
    let num_texts = [0, 1, 3, 27, 28, 90][random.below(6)];
    let texts: Vec<Vec<u8>> = (0..num_texts)
        .map(|_| {
            let long = [0, 0, 0, 0, 254, 300][random.below(6)];
            let end = (0..random.below(6)).map(|_| b"ab\"\\\n\xFFc"[random.below(7)]);
            [vec![b'x'; long], end.collect()].concat()
        })
        .collect();
    Lexicon::from_texts(&texts).expect("short texts").to_bytes()
}

/// Asks everything there is to ask of a lexicon that may be damaged.
pub fn ask_lexicon(lexicon: Lexicon) {
    let len = lexicon.len();
    for rank in (0..len.min(60)).chain(len.checked_sub(1)) {
        let text = lexicon.text(rank);
        _ = lexicon.rank(&text);
        _ = lexicon.range(&text[..text.len() / 2]);
    }
    lexicon.for_each(|_, _| {});
    _ = lexicon.to_bytes();
    let tokens = ["a", "ab", "\"", "\\", "xxx", "ba", "\",", "b\",", "\\n", "n"].map(Some);
    let trie = VocabularyTrie::new(&Vocabulary::new(tokens, []).expect("no token ends a text"));
    let lexicon = Arc::new(lexicon);
    let list: Vec<u32> = (0..len as u32).step_by(3).collect();
    for selection in [Selection::All, Selection::List(list.into())] {
        for spelling in [MemberSpelling::Raw, MemberSpelling::JsonString] {
            let set = LexiconSet::new(lexicon.clone(), selection.clone(), spelling);
            let Ok(set) = set else { continue };
            let mut open: Vec<_> = set.start().into_iter().collect();
            for _ in 0..40 {
                let Some(at) = open.pop() else { break };
                effect(&set, &at, &trie, 0);
                set.forced(&at, &mut Vec::new());
                set.member(&at);
                open.extend((0..=u8::MAX).filter_map(|byte| set.advance(&at, byte)));
            }
        }
    }
}

/// Reads texts, tokens and a selection, and compares the set of them with its definition.
pub fn check_member_set(data: &[u8]) {
    let mut bytes = data.iter().copied();
    let Some(options) = bytes.next() else { return };
    let (Some(of), Some(num_texts)) = (bytes.next(), bytes.next()) else { return };
    let spelling = if options & 1 == 0 { MemberSpelling::Raw } else { MemberSpelling::JsonString };
    let texts: Vec<Vec<u8>> = (0..num_texts).map_while(|_| text(&mut bytes)).collect();
    let tokens: Vec<Vec<u8>> = std::iter::from_fn(|| text(&mut bytes)).take(100).collect();
    let texts: BTreeSet<Vec<u8>> = texts
        .into_iter()
        .filter(|text| spelling == MemberSpelling::Raw || std::str::from_utf8(text).is_ok())
        .collect();
    let lexicon = Arc::new(Lexicon::from_texts(texts.iter().rev()).expect("short texts"));
    assert_eq!(lexicon.check(), Ok(()));
    let is_chosen =
        |rank: u32| options & 2 == 0 || (rank.wrapping_mul(0x9E37_79B9) >> 24) as u8 <= of;
    let ranks: Vec<u32> = (0..texts.len() as u32).filter(|&rank| is_chosen(rank)).collect();
    let members: Vec<(u64, Vec<u8>)> =
        (0..).zip(texts.iter().cloned()).filter(|&(rank, _)| is_chosen(rank as u32)).collect();
    let selection = match options >> 1 & 3 {
        0 | 2 => Selection::All,
        1 => {
            let ranks = ranks.iter().copied().map(u64::from);
            Selection::Ranks(Arc::new(RankSet::from_ranks(texts.len() as u64, ranks)))
        }
        _ => Selection::List(ranks.into()),
    };
    let set = LexiconSet::new(lexicon, selection, spelling).expect("a set of these ranks");
    let expected = match spelling {
        MemberSpelling::Raw => NaiveSet::raw(members),
        MemberSpelling::JsonString => NaiveSet::json_strings(members),
    };
    let vocabulary = Vocabulary::new(tokens.into_iter().map(Some), []).expect("short tokens");
    let trie = VocabularyTrie::new(&vocabulary);
    let inner = (1..trie.num_nodes()).filter(|&node| trie.end(node) > node + 1);
    let nodes: Vec<u32> = std::iter::once(0).chain(inner.map(|node| node as u32)).take(3).collect();
    assert_equal_sets(&set, &expected, &trie, &nodes, 60);
}

/// A text: its length, or about as many of a byte as a byte counts, and more bytes.
fn text(bytes: &mut impl Iterator<Item = u8>) -> Option<Vec<u8>> {
    let control = bytes.next()?;
    if control < 0xF0 {
        return Some(bytes.take(usize::from(control % 16)).collect());
    }
    let long = 248 + usize::from(control & 15);
    let byte = bytes.next()?;
    let mut text = vec![byte; long];
    text.extend(bytes.take(2));
    Some(text)
}

/// Reads a rule, documents of few characters and tokens, and compares the substrings with all that
/// there are, and their set with its definition.
pub fn check_substrings(data: &[u8]) {
    const CHARS: &[char] =
        &['a', 'b', ' ', '.', '\n', '"', '\\', ',', 'é', '—', '”', '。', 'い', '\u{301}', '🦆', '!'];
    let mut bytes = data.iter().copied();
    let (Some(options), Some(low), Some(more)) = (bytes.next(), bytes.next(), bytes.next()) else {
        return;
    };
    let unit = SubstringUnit::ALL[usize::from(options % 3)];
    let min = u32::from(low % 7) + 1;
    let max = (more < 200).then(|| min + u32::from(more % 11));
    let rule = SubstringRule::new(unit, min, max).expect("bounds of a rule");
    let num_documents = usize::from(options >> 2 & 3);
    let document = |bytes: &mut dyn Iterator<Item = u8>| -> Option<String> {
        let len = usize::from(bytes.next()? % 24);
        Some(bytes.take(len).map(|byte| CHARS[usize::from(byte) % CHARS.len()]).collect())
    };
    let documents: Vec<String> =
        (0..num_documents).map_while(|_| document(&mut bytes)).collect();
    let tokens: Vec<Vec<u8>> = std::iter::from_fn(|| text(&mut bytes)).take(60).collect();
    let substrings = Arc::new(Substrings::new(&documents, rule).expect("short documents"));
    let expected = all_substrings(&documents, rule);
    assert_eq!(substrings.len(), expected.len() as u64);
    let member = |(text, &(document, start)): (&String, &(usize, usize))| {
        let member = substrings.find(text).expect("a substring");
        let place = substrings.first_place(member);
        assert_eq!((place.document, place.span), (document, start..start + text.len()));
        (member.0, text.clone().into_bytes())
    };
    let members: Vec<(u64, Vec<u8>)> = expected.iter().map(member).collect();
    let json = options & 16 != 0;
    let spelling = if json { MemberSpelling::JsonString } else { MemberSpelling::Raw };
    let expected = if json { NaiveSet::json_strings(members) } else { NaiveSet::raw(members) };
    let set = SubstringSet::new(substrings, spelling);
    let vocabulary = Vocabulary::new(tokens.into_iter().map(Some), []).expect("short tokens");
    let trie = VocabularyTrie::new(&vocabulary);
    let inner = (1..trie.num_nodes()).filter(|&node| trie.end(node) > node + 1);
    let nodes: Vec<u32> = std::iter::once(0).chain(inner.map(|node| node as u32)).take(3).collect();
    assert_equal_sets(&set, &expected, &trie, &nodes, 60);
}
