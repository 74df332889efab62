//! Listed texts as a tree by their beginnings.
//!
//! As a list, each text is followed by itself as long as it agrees with what was read. A tree is
//! followed once, and where what follows several characters is the same, they become one class: ten
//! thousand numbered addresses are one path.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::{CharClass, Regex};

/// Trees that branch more often on the way to a text are left as lists: a nested expression has a
/// limit.
const MAX_BRANCHINGS: usize = 60;

/// The union of `texts`, where `spell` spells one character of a class; `None` where the tree would
/// be too deep.
///
/// Cost: in proportion to the characters of the texts, times the branchings on the way to them.
pub(super) fn enumeration(
    texts: &[Arc<str>],
    spell: &impl Fn(&CharClass) -> Regex,
) -> Option<Regex> {
    let mut texts: Vec<Vec<char>> = texts.iter().map(|text| text.chars().collect()).collect();
    texts.sort_unstable();
    texts.dedup();
    let texts: Vec<&[char]> = texts.iter().map(Vec::as_slice).collect();
    tree(&texts, 0, spell)
}

/// Trie of `texts`, which are sorted, different and not none.
fn tree(
    texts: &[&[char]],
    branchings: usize,
    spell: &impl Fn(&CharClass) -> Regex,
) -> Option<Regex> {
    if branchings > MAX_BRANCHINGS {
        return None;
    }
    let (first, last) = (texts.first()?, texts.last()?);
    let common = first.iter().zip(*last).take_while(|(a, b)| a == b).count();
    let mut parts: Vec<Regex> =
        first[..common].iter().map(|&character| spell(&CharClass::single(character))).collect();
    let ended = usize::from(first.len() == common);
    let mut options = Vec::new();
    options.extend((ended == 1).then_some(Regex::Empty));
    // By what is left after the next character, in the order of the least one: those characters.
    let mut branches: Vec<(Regex, Vec<(char, char)>)> = Vec::new();
    let mut known: HashMap<Regex, usize> = HashMap::new();
    for branch in texts[ended..].chunk_by(|a, b| a[common] == b[common]) {
        let left: Vec<&[char]> = branch.iter().map(|text| &text[common + 1..]).collect();
        let left = tree(&left, branchings + 1, spell)?;
        let next = branch[0][common];
        let at = *known.entry(left).or_insert_with_key(|left| {
            branches.push((left.clone(), Vec::new()));
            branches.len() - 1
        });
        branches[at].1.push((next, next));
    }
    options.extend(
        branches
            .into_iter()
            .map(|(left, next)| Regex::concat([spell(&CharClass::new(next)), left])),
    );
    if !(options.is_empty() || options == [Regex::Empty]) {
        parts.push(Regex::alternate(options));
    }
    Some(join(parts))
}

/// The concatenation of parts, neighbouring texts as one.
fn join(parts: Vec<Regex>) -> Regex {
    let mut joined: Vec<Regex> = Vec::new();
    let mut push = |part: Regex| match (joined.last_mut(), &part) {
        (Some(Regex::Literal(before)), Regex::Literal(text)) => {
            *before = [&**before, text].concat().into();
        }
        _ => joined.push(part),
    };
    for part in parts {
        match part {
            Regex::Concat(inner) => inner.iter().cloned().for_each(&mut push),
            part => push(part),
        }
    }
    Regex::concat(joined)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::matching::matches, *};

    fn plain(class: &CharClass) -> Regex {
        match class.ranges() {
            &[(low, high)] if low == high => Regex::literal(&low.to_string()),
            _ => Regex::Class(class.clone()),
        }
    }

    fn of(texts: &[&str]) -> Option<Regex> {
        let texts: Vec<Arc<str>> = texts.iter().map(|&text| text.into()).collect();
        enumeration(&texts, &plain)
    }

    #[test]
    fn what_ends_alike_is_a_class() {
        let digits: Vec<String> = (0..1000).map(|number| format!("a/{number:03}.txt")).collect();
        let digits: Vec<&str> = digits.iter().map(String::as_str).collect();
        let digit = || Regex::Class(CharClass::new([('0', '9')]));
        let expected = [
            Regex::literal("a/"),
            digit(),
            Regex::concat([digit(), Regex::concat([digit(), Regex::literal(".txt")])]),
        ];
        assert_eq!(of(&digits), Some(Regex::concat(expected)));
    }

    #[test]
    fn what_is_too_deep_stays_a_list() {
        let texts: Vec<String> = (1..100).map(|length| "a".repeat(length)).collect();
        assert_eq!(of(&texts.iter().map(String::as_str).collect::<Vec<_>>()), None);
    }

    proptest! {
        #[test]
        fn the_tree_has_the_texts_and_no_others(
            texts in prop::collection::vec("[ab/]{0,4}", 1..20),
            others in prop::collection::vec("[ab/]{0,5}", 20),
        ) {
            let listed: Vec<&str> = texts.iter().map(String::as_str).collect();
            let tree = of(&listed).expect("not deep");
            for text in texts.iter().chain(&others) {
                prop_assert_eq!(matches(&tree, text), texts.contains(text), "{:?}", text);
            }
        }
    }
}
