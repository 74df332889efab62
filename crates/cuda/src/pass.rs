//! Description of a pass: rows, work lists and ancestors, built on the host and read by kernels.

use palmette_core::TokenId;

use crate::arguments::{Arguments, AttentionItem, AttentionRequest, PassSizes};
use crate::plan::{ATTENTION_ROWS, PAGE, PassPlaces, Plan, RUN};

/// Rows of a pass: tokens of one prompt, or one more token of each of its beams.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PassRows<'a> {
    /// Tokens from position `first` on, as the last of a prompt or not.
    Prompt { tokens: &'a [TokenId], first: usize },
    /// A token a beam after a prompt of so many tokens.
    Beams { tokens: &'a [TokenId], prompt: usize },
}

/// Slots that the ancestors of each beam have written, pass by pass.
#[derive(Debug, Default)]
pub(crate) struct Ancestors {
    /// `[passes][beams]`
    slots: Vec<Vec<i32>>,
    next_slot: usize,
}

impl Ancestors {
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.next_slot = 0;
    }

    pub(crate) fn passes(&self) -> usize {
        self.slots.len()
    }

    /// Begins a pass whose beams continue these rows; each has a slot of its own there.
    pub(crate) fn fork(&mut self, parents: &[u32]) {
        for of_pass in &mut self.slots {
            *of_pass = parents.iter().map(|&parent| of_pass[parent as usize]).collect();
        }
        let first = self.next_slot as i32;
        self.slots.push((first..first + parents.len() as i32).collect());
        self.next_slot += parents.len();
    }
}

/// A pass as kernels read it, and what the launches need to know of it.
#[derive(Debug)]
pub(crate) struct Pass {
    /// Image of the region.
    pub(crate) bytes: Vec<u8>,
    pub(crate) rows: usize,
    pub(crate) head_rows: usize,
    /// Rows that are merged of runs and own tokens.
    pub(crate) merge_rows: usize,
}

impl Pass {
    pub(crate) fn new(
        plan: &Plan,
        rows: PassRows<'_>,
        ancestors: &Ancestors,
        first_column: usize,
    ) -> Self {
        let places = PassPlaces::of(plan);
        let group = plan.sizes.heads / plan.sizes.key_heads;
        let (PassRows::Prompt { tokens, .. } | PassRows::Beams { tokens, .. }) = rows;
        let num_rows = tokens.len();
        let mut image = Image { bytes: vec![0; places.bytes] };
        let all = || 0..num_rows as i32;
        image.numbers(places.tokens, tokens.iter().map(|token| token.0 as i32));
        image.numbers(places.windows, all().map(|_| first_column as i32));
        image.numbers(places.taken, [num_rows as i32 - 1]);
        image.numbers(places.pages, 0..plan.pages() as i32);
        let (in_pages, runs, head_rows, merge_rows) = match rows {
            PassRows::Prompt { first, .. } => {
                let first = first as i32;
                image.numbers(places.positions, all().map(|row| first + row));
                image.numbers(places.destinations, all().map(|row| first + row));
                image.numbers(places.visible, all().map(|row| first + row + 1));
                (first as usize + num_rows, -1..0, 1, 0)
            }
            PassRows::Beams { prompt, .. } => {
                let passes = ancestors.passes();
                let position = (prompt + passes - 1) as i32;
                image.numbers(places.positions, all().map(|_| position));
                let own = ancestors.slots.last().into_iter().flatten();
                image.numbers(places.destinations, own.map(|slot| !slot));
                image.numbers(places.visible, all().map(|_| prompt as i32));
                image.numbers(places.own_tokens, all().map(|_| passes as i32));
                for (pass, slots) in ancestors.slots.iter().enumerate() {
                    let at = places.ancestors + pass * plan.most_beams() * 4;
                    image.numbers(at, slots.iter().copied());
                }
                (prompt, 0..prompt.div_ceil(RUN) as i32, num_rows, num_rows)
            }
        };
        debug_assert!(in_pages <= plan.pages() * PAGE, "tokens of a prompt have their pages");
        let request = AttentionRequest { first_row: 0, rows: num_rows as i32, first_page: 0 };
        image.structs(places.requests, &[request]);
        let mut items = Vec::new();
        // The longest first: the last tiles of a prompt see the most keys.
        for tile in (0..(num_rows * group).div_ceil(ATTENTION_ROWS)).rev() {
            let first_row = (tile * ATTENTION_ROWS) as i32;
            for key_head in 0..plan.sizes.key_heads as i32 {
                let item = |run| AttentionItem { request: 0, key_head, first_row, run };
                items.extend(runs.clone().map(item));
            }
        }
        image.structs(places.items, &items);
        let sizes = PassSizes {
            rows: num_rows as i32,
            head_rows: head_rows as i32,
            items: items.len() as i32,
            merge_rows: merge_rows as i32,
            first_merge: 0,
        };
        image.structs(places.sizes, &[sizes]);
        Self { bytes: image.bytes, rows: num_rows, head_rows, merge_rows }
    }
}

struct Image {
    bytes: Vec<u8>,
}

impl Image {
    fn numbers(&mut self, at: usize, numbers: impl IntoIterator<Item = i32>) {
        let to = self.bytes[at..].chunks_exact_mut(4);
        to.zip(numbers).for_each(|(to, number)| to.copy_from_slice(&number.to_le_bytes()));
    }

    fn structs<A: Arguments>(&mut self, at: usize, items: &[A]) {
        let to = self.bytes[at..].chunks_exact_mut(A::BYTES);
        to.zip(items).for_each(|(to, item)| item.write(to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_follow_their_beams() {
        let mut ancestors = Ancestors::default();
        ancestors.fork(&[0, 0, 0]);
        ancestors.fork(&[2, 0]);
        ancestors.fork(&[1, 1, 0, 0]);
        assert_eq!(ancestors.slots, [vec![0, 0, 2, 2], vec![4, 4, 3, 3], vec![5, 6, 7, 8]]);
        ancestors.clear();
        ancestors.fork(&[0]);
        assert_eq!(ancestors.slots, [[0]]);
    }
}
