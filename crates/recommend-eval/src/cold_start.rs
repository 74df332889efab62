//! Items that a model has never seen: which they are, and how often they are found.
//!
//! The procedure of STATIC (arXiv 2602.22647, §6): the newest items are held out, histories that
//! have one are not trained on, and the users whose held-out item is one are asked. We differ in
//! that histories have no times, so that an item's age is its place in the order of first
//! appearances.

use crate::histories::UserHistories;
use crate::split::{Question, Split};

/// The newest items of histories, which a cold start keeps from training.
///
/// An item appears at the first user who has it, users in the order of the file and the items of
/// each oldest first. Of the items that appear, the last are the newest; one that no history has is
/// not counted, since nothing could be asked about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColdStart {
    /// Per number of the view.
    is_cold: Vec<bool>,
    num_items: usize,
    num_appearing: usize,
}

/// A share of items that cannot be held out.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the share of newest items is {share}: {reason}")]
pub struct ColdStartError {
    share: f64,
    reason: String,
}

impl ColdStart {
    /// Holds out the newest `share` of the items of `histories`, rounded to whole items.
    ///
    /// `num_numbers` is that of the histories' view: one past the largest number of an item.
    ///
    /// # Errors
    /// When the share is not between 0 and 1, or comes to no item or to all of them.
    pub fn newest(
        histories: &UserHistories,
        num_numbers: u64,
        share: f64,
    ) -> Result<Self, ColdStartError> {
        let error = |reason: &str| ColdStartError { share, reason: reason.to_owned() };
        if !(share > 0.0 && share < 1.0) {
            return Err(error("it must lie between 0 and 1, such as 0.05"));
        }
        let mut has_appeared = vec![false; num_numbers as usize];
        let mut by_appearance = Vec::new();
        for &item in histories.items.iter().flatten() {
            if !std::mem::replace(&mut has_appeared[item as usize], true) {
                by_appearance.push(item);
            }
        }
        let appearing = by_appearance.len();
        let cold = (share * appearing as f64).round() as usize;
        if cold == 0 || cold == appearing {
            let reason = format!(
                "that is {cold} of the {appearing} items that histories have; there must be an \
                 item to hold out and one to train on"
            );
            return Err(error(&reason));
        }
        let mut is_cold = vec![false; num_numbers as usize];
        by_appearance[appearing - cold..].iter().for_each(|&item| is_cold[item as usize] = true);
        Ok(Self { is_cold, num_items: cold, num_appearing: appearing })
    }

    /// Number of items that are held out.
    pub fn num_items(&self) -> usize {
        self.num_items
    }

    /// Number of items that histories have, those that are held out included.
    pub fn num_appearing(&self) -> usize {
        self.num_appearing
    }

    /// True for the number of a held-out item.
    ///
    /// # Panics
    /// When the view has no such number.
    pub fn contains(&self, number: u64) -> bool {
        self.is_cold[number as usize]
    }

    /// The numbers of the items that are held out, ascending.
    pub fn items(&self) -> impl Iterator<Item = u64> + '_ {
        (0..).zip(&self.is_cold).filter(|&(_, &is_cold)| is_cold).map(|(number, _)| number)
    }

    /// True if none of `items` is held out. Such items may be trained on, or choose a model.
    pub fn is_without(&self, items: &[u64]) -> bool {
        !items.iter().any(|&item| self.contains(item))
    }

    /// The questions whose answer is held out.
    pub fn questions<'a>(&self, histories: &'a UserHistories, split: Split) -> Vec<Question<'a>> {
        histories.questions(split).filter(|question| self.contains(question.target)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histories(items: &[&[u64]]) -> UserHistories {
        UserHistories {
            items: items.iter().map(|items| items.to_vec()).collect(),
            ..UserHistories::default()
        }
    }

    #[test]
    fn the_newest_appear_last() {
        // In order of first appearance: 7, 3, 1, 0, 5; 2, 4 and 6 never.
        let histories = histories(&[&[7, 3, 7], &[1, 3], &[0, 5, 1], &[3, 1, 5], &[7, 3, 0]]);
        let newest = |share: f64| ColdStart::newest(&histories, 8, share);
        let cold = newest(0.4).unwrap();
        assert_eq!((cold.num_items(), cold.num_appearing()), (2, 5));
        assert_eq!(cold.items().collect::<Vec<_>>(), [0, 5]);
        assert!(cold.contains(5) && !cold.contains(2) && !cold.contains(1));
        assert!(cold.is_without(&[7, 3, 1]) && !cold.is_without(&[1, 5]) && cold.is_without(&[]));
        let asked = [Question::new(&[3, 1], 5), Question::new(&[7, 3], 0)];
        assert_eq!(cold.questions(&histories, Split::Test), asked);
        let asked = [Question::new(&[0], 5)];
        assert_eq!(cold.questions(&histories, Split::Validation), asked);
        // Rounded: 0.3 of 5 are 1.5, so 2; 0.29 of 5 are 1.45, so 1.
        assert_eq!(newest(0.3).unwrap(), cold);
        assert_eq!(newest(0.29).unwrap().items().collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn shares_that_cannot_be() {
        let histories = histories(&[&[0, 1, 2]]);
        for (share, word) in [
            (0.0, "between 0 and 1"),
            (1.0, "between 0 and 1"),
            (f64::NAN, "between 0 and 1"),
            (0.1, "that is 0 of the 3 items"),
            (0.9, "that is 3 of the 3 items"),
        ] {
            let message = ColdStart::newest(&histories, 4, share).unwrap_err().to_string();
            assert!(message.contains(word) && message.contains(&share.to_string()), "{message}");
        }
    }
}
