//! Max–min fair shares of a pass's rows.

/// Divides `rows` among those who want some: nobody gets more than is wanted, and what one leaves
/// is divided among the others. Where there are fewer rows than wants, the first get one each.
///
/// So a short prompt is read in its first pass, however long the one before it is, and no want
/// waits for ever: everyone with a want gets a share as long as there are as many rows as wants.
pub(super) fn shares(mut rows: usize, wants: &[usize]) -> Vec<usize> {
    let mut given = vec![0; wants.len()];
    // The least wants first: what they leave is known when the larger ones are given theirs.
    let mut order: Vec<usize> = (0..wants.len()).filter(|&place| wants[place] > 0).collect();
    order.sort_by_key(|&place| (wants[place], place));
    if rows < order.len() {
        order.sort_unstable();
        order.truncate(rows);
        order.sort_by_key(|&place| (wants[place], place));
    }
    for (done, &place) in order.iter().enumerate() {
        let left = order.len() - done;
        given[place] = wants[place].min(rows / left);
        rows -= given[place];
    }
    given
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_one_leaves_the_others_get() {
        assert_eq!(shares(32, &[1000, 5]), [27, 5]);
        assert_eq!(shares(32, &[1000, 1000, 1000]), [10, 11, 11]);
        assert!(shares(32, &[]).is_empty());
        assert_eq!(shares(2, &[9, 0, 9, 9]), [1, 0, 1, 0]);
        assert_eq!(shares(8, &[3, 4]), [3, 4]);
    }

    proptest! {
        /// The definition of max–min fairness: rows are used up as far as they are wanted, and who
        /// got less than it wanted got no less than anyone, but for the one row that does not
        /// divide.
        #[test]
        fn shares_are_fair(rows in 0_usize..300, wants in prop::collection::vec(0_usize..200, 0..9)) {
            let given = shares(rows, &wants);
            prop_assert_eq!(given.iter().sum::<usize>(), rows.min(wants.iter().sum()));
            for (place, (&got, &want)) in given.iter().zip(&wants).enumerate() {
                prop_assert!(got <= want);
                if got < want {
                    prop_assert!(given.iter().all(|&other| other <= got + 1), "{place} of {given:?}");
                }
            }
        }
    }
}
