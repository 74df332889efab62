//! Slots of beams' keys and values at forks: copied by definition, and moved in place.
//!
//! Source: xGR, arXiv 2512.11529, §5.1. The engine does neither: its rows remember the slots of
//! their ancestors. This is what it is compared with.

/// Row `b` becomes what row `parents[b]` was; `slots` has rows of `width` values. Rows from
/// `parents.len()` on are dropped.
///
/// # Panics
/// When a parent is not a row.
pub fn copied<T: Copy>(slots: &[T], width: usize, parents: &[u32]) -> Vec<T> {
    let row = |&parent: &u32| &slots[parent as usize * width..][..width];
    parents.iter().flat_map(row).copied().collect()
}

/// Does what [`copied`] does, without other memory: first the rows that move towards the beginning,
/// the first of them first, then those that move towards the end, the last of them first.
///
/// That no row is written before it was read needs parents that ascend: children of one beam side
/// by side, in the beams' order. Where they do not, two beams that change places would need a third
/// place.
///
/// # Errors
/// The first row whose parent is before the parent of the row before it; nothing is moved then.
///
/// # Panics
/// When a parent is not a row, or there are fewer rows than parents.
pub fn permuted_in_place<T: Copy>(
    slots: &mut [T],
    width: usize,
    parents: &[u32],
) -> Result<(), usize> {
    if let Some(at) = parents.windows(2).position(|pair| pair[1] < pair[0]) {
        return Err(at + 1);
    }
    let mut move_row = |row: usize, parent: usize| {
        slots.copy_within(parent * width..(parent + 1) * width, row * width);
    };
    let moves = || parents.iter().map(|&parent| parent as usize).enumerate();
    moves().filter(|(row, parent)| row < parent).for_each(|(row, parent)| move_row(row, parent));
    moves()
        .rev()
        .filter(|(row, parent)| row > parent)
        .for_each(|(row, parent)| move_row(row, parent));
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_moved_in_place_equal_copies(
            rows in 1_usize..40,
            width in 1_usize..4,
            picks in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
        ) {
            let mut parents: Vec<u32> = picks.iter().take(rows).map(|pick| pick.index(rows) as u32).collect();
            parents.sort_unstable();
            let mut slots: Vec<u32> = (0..(rows * width) as u32).collect();
            let expected = copied(&slots, width, &parents);
            prop_assert_eq!(permuted_in_place(&mut slots, width, &parents), Ok(()));
            prop_assert_eq!(&slots[..expected.len()], &expected);
        }

        #[test]
        fn beams_in_another_order_are_refused(picks in prop::collection::vec(0_u32..20, 1..20)) {
            let before: Vec<u32> = (100..120).collect();
            let mut slots = before.clone();
            match permuted_in_place(&mut slots, 1, &picks) {
                Ok(()) => prop_assert!(picks.is_sorted()),
                Err(at) => {
                    prop_assert!(picks[..at].is_sorted() && picks[at] < picks[at - 1]);
                    prop_assert_eq!(slots, before);
                }
            }
        }
    }

    #[test]
    fn two_beams_that_change_places_need_a_third_place() {
        assert_eq!(permuted_in_place(&mut [1, 2], 1, &[1, 0]), Err(1));
        assert_eq!(copied(&[1, 2], 1, &[1, 0]), [2, 1]);
    }
}
