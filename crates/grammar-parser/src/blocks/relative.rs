//! Relative depths: open blocks and a line's beginning, as far as tokens tell them apart.
//!
//! A line opens or closes blocks by how its depth compares with theirs. Within tokens lines have
//! few depths, those of the blanks that some token has between a line break and what comes then; so
//! most blocks compare alike with all of them, and `[1, 2]` stands for `[4, 8]`.
//!
//! The least that compares alike stands for all others: depths up to the largest of a line
//! within a token stay as they are, and so do distances from the depth of the line in progress up
//! to the blanks that a token adds to it. Of others the order is kept.

use super::{Blocks, Indentation, Line};

/// Bounds of what a token does to blocks and lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelativeDepths {
    /// Largest depth of a line that begins and goes on within a token.
    pub within: u32,
    /// Largest depth that a token adds to the line in progress before it goes on.
    pub added: u32,
    /// Largest number of brackets that a token closes.
    pub brackets: u32,
}

/// Run of blanks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Blanks {
    /// Spaces.
    pub spaces: u32,
    /// Tabs.
    pub tabs: u32,
}

impl Blanks {
    /// Width that counts as depth.
    pub fn width(self, of: &Indentation) -> u32 {
        self.spaces.saturating_add(self.tabs.saturating_mul(of.tab_width))
    }
}

/// Depths of lines in tokens beyond this are not made relative: sums of them have to be depths.
const LARGE: u32 = 1 << 24;

impl RelativeDepths {
    /// Blocks and line that stand for all that no token tells from these.
    pub fn of(&self, blocks: &Blocks, line: Line) -> (Blocks, Line) {
        let Self { within, added, brackets } = *self;
        if within.max(added) > LARGE || line.is_of_token() {
            return (blocks.clone(), line);
        }
        let open = blocks.depths();
        let begun = line.depth();
        let num_before = begun.map_or(open.len(), |begun| open.partition_point(|&at| at < begun));
        let (before, after) = open.split_at(num_before);
        let mut depths = Vec::with_capacity(open.len());
        // Those that are not told apart but by their order come after this.
        let mut last = within;
        let in_order = |depth: u32, last: &mut u32| {
            if depth > within {
                *last += 1;
                *last
            } else {
                depth
            }
        };
        depths.extend(before.iter().map(|&depth| in_order(depth, &mut last)));
        let placed = begun.map(|begun| (begun, in_order(begun, &mut last)));
        last = last.max(placed.map_or(0, |(_, place)| place + added));
        depths.extend(after.iter().map(|&depth| match placed {
            Some((begun, place)) if depth - begun <= added => place + (depth - begun),
            _ => in_order(depth, &mut last),
        }));
        let depths = (!depths.is_empty()).then(|| depths.into());
        let relative = Blocks { depths, ..blocks.within(brackets, false) };
        (relative, placed.map_or(line, |(_, place)| line.at(place)))
    }
}

impl Blocks {
    /// Blocks as far as they matter while at most so many brackets are closed, and where depths do
    /// not matter, without them.
    #[must_use]
    pub fn within(&self, num_closed: u32, depths_matter: bool) -> Self {
        let depths = self.depths.clone().filter(|_| depths_matter);
        Self { depths, brackets: self.brackets.min(num_closed.saturating_add(1)) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Marks and blocks once a line of this depth begins, as what a token does has them: the blocks
    /// that it closes, and whether it opens one.
    fn begins(blocks: &Blocks, depth: u32) -> Option<(usize, super::super::Marks)> {
        let (after, marks) = blocks.clone().begin_line(depth)?;
        Some((after.depths().len(), marks))
    }

    proptest! {
        #[test]
        fn what_stands_for_others_compares_alike(
            steps in prop::collection::vec(1_u32..12, 0..6),
            begun in prop::option::of(0_u32..40),
            (within, added, most) in (0_u32..6, 0_u32..10, 0_u32..4),
            brackets in 0_u32..9,
        ) {
            let depths: Vec<u32> = steps
                .iter()
                .scan(0, |at, step| {
                    *at += step;
                    Some(*at)
                })
                .collect();
            let depths = (!depths.is_empty()).then(|| depths.into());
            let blocks = Blocks { depths, brackets };
            let line = begun.map_or(Line::OTHER, |begun| Line::OTHER.at(begun));
            let bounds = RelativeDepths { within, added, brackets: most };
            let (relative, moved) = bounds.of(&blocks, line);
            prop_assert!(relative.depths().is_sorted_by(|a, b| a < b), "{:?}", relative);
            for depth in 0..=within {
                prop_assert_eq!(begins(&blocks, depth), begins(&relative, depth));
            }
            prop_assert_eq!(begun.is_some(), moved.depth().is_some());
            if let Some((begun, moved)) = begun.zip(moved.depth()) {
                for more in 0..=added {
                    prop_assert_eq!(begins(&blocks, begun + more), begins(&relative, moved + more));
                }
            }
            for closed in 0..=most {
                let is_inside = |all: u32| all.saturating_sub(closed) > 0;
                prop_assert_eq!(is_inside(blocks.brackets), is_inside(relative.brackets));
            }
            // They stand for themselves, so that there is one of a kind.
            prop_assert_eq!(bounds.of(&relative, moved), (relative.clone(), moved));
        }
    }

    #[test]
    fn blocks_of_four_blanks_are_those_of_two() {
        let bounds = RelativeDepths { within: 0, added: 8, brackets: 3 };
        let of = |depths: &[u32], begun| {
            let blocks = Blocks { depths: Some(depths.into()), brackets: 0 };
            bounds.of(&blocks, begun)
        };
        assert_eq!(of(&[4, 8], Line::OTHER), of(&[2, 5], Line::OTHER));
        assert_eq!(of(&[4, 8], Line::OTHER.at(4)), of(&[2, 6], Line::OTHER.at(2)));
        assert_ne!(of(&[4, 8], Line::OTHER.at(4)), of(&[2, 4], Line::OTHER.at(2)));
        assert_eq!(of(&[4], Line::OTHER.at(12)), of(&[3], Line::OTHER.at(5)));
    }
}
