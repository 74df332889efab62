//! Prefixes of a view: the items with one, and the codes that may follow it.

use palmette_catalog::CatalogState;

use crate::view::CatalogView;

/// A beginning of semantic IDs, over all segments of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Items that begin with it.
    pub num_items: u64,
    /// Numbers of the items whose whole semantic ID it is, in the order in which they are
    /// recommended.
    pub items: Vec<u64>,
    /// Codes that follow it, ascending.
    pub children: Vec<Child>,
}

/// A code that follows a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    /// The code.
    pub code: u32,
    /// Items that begin with the prefix and the code.
    pub num_items: u64,
    /// The number of the first of them.
    pub first: u64,
}

impl CatalogView {
    /// The items below a prefix. Cost: a look at each item below it that may have been deleted.
    pub fn prefix(&self, codes: &[u32]) -> Prefix {
        let mut found =
            Prefix { num_items: 0, items: self.find_codes(codes), children: Vec::new() };
        let mut before = 0;
        for (catalog, live) in self.parts() {
            let (first, num_items) = (before, catalog.num_items());
            before += num_items;
            // Numbers of the items that are there of a range of ranks: how many, and the first.
            let numbers = |state: &CatalogState| -> Option<(u64, u64)> {
                let ranks = state.ranks();
                match live {
                    None => {
                        (!ranks.is_empty()).then(|| (ranks.end - ranks.start, first + ranks.start))
                    }
                    Some(live) => {
                        let mut live = ranks.filter(|&rank| live.ranks().contains(rank));
                        live.next().map(|rank| (live.count() as u64 + 1, first + rank))
                    }
                }
            };
            let start = Some(catalog.start());
            let state = codes
                .iter()
                .fold(start, |state, &code| state.and_then(|at| catalog.child(&at, code)));
            let Some(state) = state else { continue };
            found.num_items += numbers(&state).map_or(0, |(count, _)| count);
            for (code, child) in catalog.children(&state) {
                if let Some((num_items, first)) = numbers(&child) {
                    found.add(Child { code, num_items, first });
                }
            }
        }
        found.children.sort_by_key(|child| child.code);
        found
    }
}

impl Prefix {
    /// Adds a child of a later segment.
    fn add(&mut self, child: Child) {
        match self.children.iter_mut().find(|other| other.code == child.code) {
            Some(other) => other.num_items += child.num_items,
            None => self.children.push(child),
        }
    }
}
