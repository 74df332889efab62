//! Items with the same semantic ID.

use std::collections::HashMap;

use crate::error::{TrainError, TrainErrorKind};

/// Treatment of items that got the same codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collisions {
    /// Items share an ID; a catalog lists all of them under it.
    Keep,
    /// All but the one that fits best get another last code: the unused one under the same prefix
    /// that fits best.
    Reassign,
    /// Every ID gets one more code, which counts the items with the codes before it: 0 for most
    /// (TIGER, section 3.1).
    Append,
}

/// Semantic IDs after a decision about collisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Separated {
    /// `[N, levels]`
    pub codes: Vec<u32>,
    /// One more than the tokenizer's where a code was appended.
    pub levels: usize,
    /// Number of items that got another code than their nearest.
    pub moved: usize,
}

/// Carries out `policy` on codes `[N, levels]` of `count` codes a level.
///
/// `fit(item, code)` tells how badly a last code fits an item: its squared distance. Items are
/// served from the one that its own code fits best; equal ones in the order of their rows.
/// Reassigning costs items × codes calls of `fit` for items that collide.
///
/// # Errors
/// When [`Collisions::Reassign`] finds more items under a prefix than a level has codes.
pub fn separate(
    codes: &[u32],
    levels: usize,
    count: usize,
    policy: Collisions,
    fit: impl Fn(usize, u32) -> f32,
) -> Result<Separated, TrainError> {
    let id = |item: usize| &codes[item * levels..][..levels];
    let num_items = codes.len() / levels;
    match policy {
        Collisions::Keep => Ok(Separated { codes: codes.to_vec(), levels, moved: 0 }),
        Collisions::Append => {
            let mut seen: HashMap<&[u32], u32> = HashMap::new();
            let mut longer = Vec::with_capacity(num_items * (levels + 1));
            for item in 0..num_items {
                let before = seen.entry(id(item)).or_default();
                longer.extend_from_slice(id(item));
                longer.push(*before);
                *before += 1;
            }
            Ok(Separated { codes: longer, levels: levels + 1, moved: 0 })
        }
        Collisions::Reassign => {
            let mut siblings: HashMap<&[u32], Vec<usize>> = HashMap::new();
            for item in 0..num_items {
                siblings.entry(&id(item)[..levels - 1]).or_default().push(item);
            }
            let (mut changed, mut moved) = (codes.to_vec(), 0);
            for (prefix, items) in siblings {
                if items.len() > count {
                    let (prefix, items) = (prefix.to_vec(), items.len());
                    return Err(TrainErrorKind::TooManyAlike { prefix, items, codes: count }.into());
                }
                for (item, code) in spread(&items, |item| id(item)[levels - 1], count, &fit) {
                    changed[item * levels + levels - 1] = code;
                    moved += 1;
                }
            }
            Ok(Separated { codes: changed, levels, moved })
        }
    }
}

/// The new last code of each item under one prefix that does not keep its own.
fn spread(
    items: &[usize],
    own: impl Fn(usize) -> u32,
    count: usize,
    fit: &impl Fn(usize, u32) -> f32,
) -> Vec<(usize, u32)> {
    let mut order: Vec<(f32, usize)> = items.iter().map(|&at| (fit(at, own(at)), at)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut taken = vec![false; count];
    let keeps_own =
        |&(_, item): &(f32, usize)| !std::mem::replace(&mut taken[own(item) as usize], true);
    let (_, homeless): (Vec<_>, Vec<_>) = order.into_iter().partition(keeps_own);
    let find = |(_, item): (f32, usize)| {
        let free = (0..count as u32).filter(|&code| !taken[code as usize]);
        let best = free.min_by(|&a, &b| fit(item, a).total_cmp(&fit(item, b)).then(a.cmp(&b)));
        // There are no more items than codes: one is free.
        let code = best.unwrap_or(0);
        taken[code as usize] = true;
        (item, code)
    };
    homeless.into_iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distance on a line: item i of these positions, code c at position c.
    fn distance(positions: &[f32]) -> impl Fn(usize, u32) -> f32 + '_ {
        |item, code| (positions[item] - code as f32).powi(2)
    }

    #[test]
    fn reassigned_to_the_nearest_free_code() {
        let codes = [7, 1, 7, 1, 7, 1, 8, 1];
        let positions = [1.5, 1.125, 0.875, 1.0];
        let found = separate(&codes, 2, 4, Collisions::Reassign, distance(&positions)).unwrap();
        // Items 1 and 2 are equally near to 1: the first keeps it. Item 3 has another prefix.
        assert_eq!(found.codes, [7, 2, 7, 1, 7, 0, 8, 1]);
        assert_eq!((found.levels, found.moved), (2, 2));
    }

    #[test]
    fn all_are_different_or_it_is_an_error() {
        let codes: Vec<u32> = (0..40).flat_map(|item| [item % 4, 3]).collect();
        let positions: Vec<f32> = (0..40).map(|item| item as f32 / 10.0).collect();
        let found = separate(&codes, 2, 10, Collisions::Reassign, distance(&positions)).unwrap();
        let mut ids: Vec<&[u32]> = found.codes.chunks(2).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((ids.len(), found.moved), (40, 36));
        let error = separate(&codes, 2, 9, Collisions::Reassign, distance(&positions));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("10 items") && error.contains("9 codes"), "{error}");
    }

    #[test]
    fn appended_codes_count() {
        let codes = [5, 5, 6, 5];
        let found = separate(&codes, 1, 8, Collisions::Append, |_, _| 0.0).unwrap();
        assert_eq!(found.codes, [5, 0, 5, 1, 6, 0, 5, 2]);
        assert_eq!(separate(&codes, 1, 8, Collisions::Keep, |_, _| 0.0).unwrap().codes, codes);
    }
}
