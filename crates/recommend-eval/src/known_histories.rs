//! Histories known before questions are asked, without any user's answers.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::histories::UserHistories;
use crate::split::Split;

/// Histories that questions are asked after, one for each user: what floors count, and what items
/// are known by.
///
/// Whole histories are known up to their question. Rows that say the item that came next overlap,
/// and the answer of one is in the history of a later one: they are put together for each user, so
/// that a user counts once, and what a question's own user did after it can be [taken
/// out](Self::own).
#[derive(Clone, Debug)]
pub struct KnownHistories<'a> {
    histories: Vec<Cow<'a, [u64]>>,
    /// History of each question's user, where that may hold the answer.
    own: Vec<Option<u32>>,
    /// Number of histories that have an item.
    counts: HashMap<u64, u32>,
}

impl<'a> KnownHistories<'a> {
    /// Gathers what the questions of a split are asked after. `None` where rows with the item that
    /// came next name no user: which of them give one another's answers away is not known.
    pub fn new(histories: &'a UserHistories, split: Split) -> Option<Self> {
        let questions = histories.questions(split);
        let (histories, own) = match histories.are_questions {
            false => (questions.map(|question| question.history.into()).collect(), Vec::new()),
            true => {
                let users = histories.users.iter().copied().collect::<Option<Vec<u32>>>()?;
                let rows: Vec<&[u64]> = questions.map(|question| question.history).collect();
                // Each row has an answer, and so is a question.
                assert_eq!((rows.len(), users.len()), (histories.items.len(), rows.len()));
                let merged = merged(&rows, &users);
                (merged, users.into_iter().map(Some).collect())
            }
        };
        let mut counts = HashMap::new();
        for history in &histories {
            for item in history.iter().collect::<HashSet<_>>() {
                *counts.entry(*item).or_insert(0) += 1;
            }
        }
        Some(Self { histories, own, counts })
    }

    /// The histories, one for each user.
    pub fn histories(&self) -> impl Iterator<Item = &[u64]> + Clone {
        self.histories.iter().map(|history| &**history)
    }

    /// History of a question's user, by the question's place; empty where it is the question's.
    pub fn own(&self, question: usize) -> &[u64] {
        let user = self.own.get(question).copied().flatten();
        user.map_or(&[], |user| &self.histories[user as usize])
    }

    /// True if a history has an item.
    pub fn has(&self, item: u64) -> bool {
        self.counts.contains_key(&item)
    }

    /// True if a history other than `own` has an item.
    pub fn has_elsewhere(&self, item: u64, own: &[u64]) -> bool {
        let count = self.counts.get(&item).copied().unwrap_or(0);
        count > u32::from(own.contains(&item))
    }
}

/// The rows of each user as one history: the longest, after the items that only others have.
fn merged<'a>(rows: &[&'a [u64]], users: &[u32]) -> Vec<Cow<'a, [u64]>> {
    let num_users = users.iter().max().map_or(0, |&most| most as usize + 1);
    let mut of_user: Vec<Vec<&'a [u64]>> = vec![Vec::new(); num_users];
    for (row, &user) in rows.iter().zip(users) {
        of_user[user as usize].push(row);
    }
    let merge = |rows: Vec<&'a [u64]>| -> Cow<'a, [u64]> {
        let Some((at, longest)) = rows.iter().enumerate().max_by_key(|(_, row)| row.len()) else {
            return Cow::default();
        };
        let mut seen: HashSet<u64> = longest.iter().copied().collect();
        let others = rows.iter().enumerate().filter(|&(other, _)| other != at);
        let mut items: Vec<u64> = others
            .flat_map(|(_, row)| row.iter().copied())
            .filter(|&item| seen.insert(item))
            .collect();
        if items.is_empty() {
            return Cow::Borrowed(*longest);
        }
        items.extend_from_slice(longest);
        items.into()
    };
    of_user.into_iter().map(merge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floors::{Floor, ItemItem, Popularity};

    fn rows(of: &[(Option<u32>, &[u64])]) -> UserHistories {
        UserHistories {
            items: of.iter().map(|(_, row)| row.to_vec()).collect(),
            users: of.iter().map(|(user, _)| *user).collect(),
            are_questions: true,
            ..UserHistories::default()
        }
    }

    #[test]
    fn rows_of_one_user_are_one_history() {
        let rows = rows(&[
            (Some(0), &[1, 2, 3]),
            (Some(1), &[7, 8]),
            (Some(0), &[1, 2, 3, 4]),
            // A window that has lost its beginning, and an item that was bought again.
            (Some(0), &[3, 4, 3, 5, 6]),
        ]);
        let known = KnownHistories::new(&rows, Split::Test).unwrap();
        let all: Vec<&[u64]> = known.histories().collect();
        assert_eq!(all, [&[1, 2, 3, 4, 3, 5][..], &[7]]);
        assert_eq!((known.own(0), known.own(1)), (all[0], all[1]));
        // The answer of the first row is known of its own user alone; 8 and 6 came last.
        assert!(known.has(3) && !known.has_elsewhere(3, known.own(0)));
        assert!(known.has_elsewhere(7, known.own(0)) && !known.has(8) && !known.has(6));
    }

    #[test]
    fn rows_without_users_are_not_known() {
        let rows = rows(&[(Some(0), &[1, 2]), (None, &[1, 2, 3])]);
        assert!(KnownHistories::new(&rows, Split::Test).is_none());
    }

    #[test]
    fn whole_histories_are_known_up_to_their_question() {
        let items = vec![vec![1, 2, 3], vec![4, 5], vec![6, 7, 8, 9]];
        let histories = UserHistories { items, users: vec![None; 3], ..UserHistories::default() };
        let known = KnownHistories::new(&histories, Split::Test).unwrap();
        assert_eq!(known.histories().collect::<Vec<_>>(), [&[1, 2][..], &[6, 7, 8]]);
        assert!(known.own(0).is_empty() && known.own(1).is_empty());
    }

    /// Windows over histories of a small random shop: each answer is what counting anew gives, with
    /// the others' rows whole and of the user's own only what came before.
    #[test]
    fn floors_answer_as_if_they_had_counted_what_came_before() {
        const NUM_ITEMS: u64 = 12;
        let mut state = 7_u64;
        let mut draw = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let whole: Vec<Vec<u64>> =
            (0..9).map(|_| (0..3 + draw(6)).map(|_| draw(NUM_ITEMS)).collect()).collect();
        let mut of_rows: Vec<(Option<u32>, &[u64])> = Vec::new();
        for (user, history) in (0..).zip(&whole) {
            of_rows.extend((2..=history.len()).map(|end| (Some(user), &history[..end])));
        }
        let rows = rows(&of_rows);
        let known = KnownHistories::new(&rows, Split::Test).unwrap();
        let popularity = Popularity::fit(known.histories(), 0..NUM_ITEMS);
        let item_item = ItemItem::fit(known.histories(), NUM_ITEMS);
        let mut differ = 0;
        for (place, question) in rows.questions(Split::Test).enumerate() {
            let user = rows.users[place].unwrap() as usize;
            let before: Vec<&[u64]> = whole
                .iter()
                .enumerate()
                .map(|(other, history)| match other == user {
                    true => question.history,
                    false => &history[..history.len() - 1],
                })
                .collect();
            let slow_popularity = Popularity::fit(before.iter().copied(), 0..NUM_ITEMS);
            let slow_item_item = ItemItem::fit(before.iter().copied(), NUM_ITEMS);
            for (k, include_seen) in [(3, false), (NUM_ITEMS as usize, false), (5, true)] {
                let (history, own) = (question.history, known.own(place));
                let slow = slow_item_item.recommend(history, &[], k, include_seen);
                differ += usize::from(slow != item_item.recommend(history, &[], k, include_seen));
                assert_eq!(item_item.recommend(history, own, k, include_seen), slow, "{place}");
                let slow = slow_popularity.recommend(history, &[], k, include_seen);
                assert_eq!(popularity.recommend(history, own, k, include_seen), slow, "{place}");
            }
        }
        assert!(differ > 0, "a comparison that never differs shows nothing");
    }
}
