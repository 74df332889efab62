//! Members near a text, against the distances of all members.

use palmette_core::MemberId;
use palmette_lexicon::{Lexicon, LexiconSet, MemberSpelling, NearMember, Selection};
use proptest::prelude::*;

fn set(texts: &[&str]) -> LexiconSet {
    let lexicon = Lexicon::from_texts(texts).expect("short texts");
    LexiconSet::new(lexicon.into(), Selection::All, MemberSpelling::Raw).expect("all strings")
}

fn near(texts: &[&str], text: &str) -> Vec<String> {
    let set = set(texts);
    let text_of = |near: NearMember| set.lexicon().text(near.member.0 as usize);
    let near = set.nearest(text.as_bytes(), 3).into_iter().map(text_of);
    near.map(|text| String::from_utf8(text).expect("UTF-8")).collect()
}

#[test]
fn fewest_edits_come_first_and_then_what_begins_alike() {
    let ids = ["P0074", "P0999", "P9001", "Q1234", ""];
    assert_eq!(near(&ids, "P9999"), ["P0999", "P9001"]);
    assert_eq!(near(&ids, "P0074"), ["P0074", "P0999", "P9001"]);
    assert_eq!(near(&ids, "zzz"), [""; 0]);
    assert_eq!(
        near(&["Acme Tools", "Acme Toys", "Zeta"], "Acme Tols"),
        ["Acme Tools", "Acme Toys"]
    );
    assert_eq!(near(&["a"], ""), [""; 0]);
    assert_eq!(near(&[], "a"), [""; 0]);
}

/// Edits by definition: the least of what removing, adding and replacing leaves.
fn edits(a: &[u8], b: &[u8]) -> usize {
    let (Some((x, rest)), Some((y, other))) = (a.split_first(), b.split_first()) else {
        return a.len().max(b.len());
    };
    let replaced = edits(rest, other) + usize::from(x != y);
    replaced.min(edits(rest, b) + 1).min(edits(a, other) + 1)
}

proptest! {
    #[test]
    fn no_member_is_nearer_than_those_given(
        texts in prop::collection::btree_set("[ab]{0,5}", 0..20),
        selected in any::<u32>(),
        text in "[ab]{1,5}",
    ) {
        let texts: Vec<String> = texts.into_iter().collect();
        let lexicon = Lexicon::from_sorted(&texts).expect("they ascend");
        let ranks = (0..texts.len() as u32).filter(|rank| selected >> rank & 1 == 1);
        let chosen: Vec<u32> = ranks.collect();
        let set = LexiconSet::new(
            lexicon.into(), Selection::List(chosen.clone().into()), MemberSpelling::Raw);
        let set = set.expect("ranks of the lexicon");
        let distance = |rank: u32| edits(texts[rank as usize].as_bytes(), text.as_bytes());
        let mut all: Vec<(usize, u32)> = chosen.iter().map(|&rank| (distance(rank), rank))
            .filter(|&(edits, rank)| edits <= 3.min(text.len() - 1) && !texts[rank as usize].is_empty())
            .collect();
        all.sort_unstable();
        let found = set.nearest(text.as_bytes(), 4);
        for (at, &(edits, rank)) in all.iter().take(4).enumerate() {
            let near = NearMember { member: MemberId(rank.into()), edits: Some(edits as u8) };
            prop_assert_eq!(found[at], near);
        }
        prop_assert!(found.iter().skip(all.len()).all(|near| near.edits.is_none()));
        for (rank, text) in texts.iter().enumerate() {
            let is_member = chosen.contains(&(rank as u32)) && !text.is_empty();
            let expected = is_member.then_some(MemberId(rank as u64));
            prop_assert_eq!(set.find(text.as_bytes()), expected);
        }
    }

    #[test]
    fn ranks_of_texts_are_told(texts in prop::collection::vec("[ab]{0,3}", 0..40)) {
        let mut builder = palmette_lexicon::LexiconBuilder::new();
        texts.iter().for_each(|text| builder.push(text.as_bytes()).expect("short"));
        let (lexicon, ranks) = builder.finish_ranked();
        for (text, &rank) in texts.iter().zip(&ranks) {
            prop_assert_eq!(lexicon.rank(text.as_bytes()), Some(rank as usize));
        }
    }
}
