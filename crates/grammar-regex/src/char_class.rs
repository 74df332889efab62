//! Sets of characters.

use std::sync::Arc;

const FIRST_SURROGATE: u32 = 0xD800;
const LAST_SURROGATE: u32 = 0xDFFF;

/// A set of characters (Unicode scalar values) as sorted, disjoint, not adjacent, inclusive ranges.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CharClass {
    ranges: Arc<[(char, char)]>,
}

impl CharClass {
    /// The characters of `ranges` (inclusive, in any order, overlapping or not; a range that ends
    /// before it begins is empty).
    pub fn new(ranges: impl IntoIterator<Item = (char, char)>) -> Self {
        let mut ranges: Vec<_> = ranges.into_iter().filter(|(low, high)| low <= high).collect();
        ranges.sort_unstable();
        let mut merged: Vec<(char, char)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if next(last.1).is_none_or(|after| low <= after) => {
                    last.1 = last.1.max(high);
                }
                _ => merged.push((low, high)),
            }
        }
        Self { ranges: merged.into() }
    }

    /// One character.
    pub fn single(only: char) -> Self {
        Self::new([(only, only)])
    }

    /// Every character.
    pub fn any() -> Self {
        Self::new([('\0', char::MAX)])
    }

    /// The ranges: sorted, disjoint, not adjacent.
    pub fn ranges(&self) -> &[(char, char)] {
        &self.ranges
    }

    /// True when no character is in the class.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// True when `asked` is in the class.
    pub fn contains(&self, asked: char) -> bool {
        let at = self.ranges.partition_point(|&(_, high)| high < asked);
        self.ranges.get(at).is_some_and(|&(low, _)| low <= asked)
    }

    /// The characters not in this class.
    pub fn complement(&self) -> Self {
        let mut ranges = Vec::with_capacity(self.ranges.len() + 1);
        let mut from = Some('\0');
        for &(low, high) in &*self.ranges {
            if let (Some(from), Some(before)) = (from, previous(low)) {
                ranges.push((from, before));
            }
            from = next(high);
        }
        ranges.extend(from.map(|from| (from, char::MAX)));
        Self::new(ranges)
    }

    /// The characters in this class or in `other`.
    pub fn union(&self, other: &Self) -> Self {
        Self::new(self.ranges.iter().chain(&*other.ranges).copied())
    }

    /// The characters in both.
    pub fn intersection(&self, other: &Self) -> Self {
        self.complement().union(&other.complement()).complement()
    }

    /// The characters of this class that are not in `other`.
    pub fn difference(&self, other: &Self) -> Self {
        self.intersection(&other.complement())
    }
}

impl std::fmt::Debug for CharClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[")?;
        for &(low, high) in &*self.ranges {
            write!(f, "{}", low.escape_debug())?;
            if low != high {
                write!(f, "-{}", high.escape_debug())?;
            }
        }
        f.write_str("]")
    }
}

/// The character after `of`, past the surrogates.
fn next(of: char) -> Option<char> {
    let after = of as u32 + 1;
    char::from_u32(if after == FIRST_SURROGATE { LAST_SURROGATE + 1 } else { after })
}

/// The character before `of`, past the surrogates.
fn previous(of: char) -> Option<char> {
    let before = (of as u32).checked_sub(1)?;
    char::from_u32(if before == LAST_SURROGATE { FIRST_SURROGATE - 1 } else { before })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_merged_across_the_surrogates() {
        let class = CharClass::new([('\u{E000}', char::MAX), ('\0', '\u{D7FF}')]);
        assert_eq!(class, CharClass::any());
        assert!(class.complement().is_empty());
    }

    #[test]
    fn set_operations_agree_with_membership() {
        let letters = CharClass::new([('a', 'z'), ('A', 'Z')]);
        let vowels = CharClass::new("aeiou".chars().map(|c| (c, c)));
        for c in ('\0'..='\u{17F}').chain(['\u{D7FF}', '\u{E000}', char::MAX]) {
            let (a, b) = (letters.contains(c), vowels.contains(c));
            assert_eq!(letters.union(&vowels).contains(c), a || b, "{c:?}");
            assert_eq!(letters.intersection(&vowels).contains(c), a && b, "{c:?}");
            assert_eq!(letters.difference(&vowels).contains(c), a && !b, "{c:?}");
            assert_eq!(letters.complement().contains(c), !a, "{c:?}");
        }
        assert_eq!(letters.complement().complement(), letters);
    }
}
