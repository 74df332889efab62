//! Business rules of a request: caps, boosts, tie-breaks, pinned and excluded items, validity,
//! diversity.
//!
//! Rules hold inside the search as filters do: the answer is that of scoring every item that may be
//! recommended, applying the rules and sorting, over all that the beam's width finds. Only
//! [`Diversity`] comes after the search, and the answer says so.

mod attribute_kind;
mod boosts;
mod caps;
mod diversity;
mod error;
mod order;
mod parse;
mod plan;
mod range_maxima;
mod write;

use palmette_catalog_filter::Filter;
pub use palmette_catalog_filter::Moment;

pub(crate) use boosts::{BoostCache, BoostedItems};
pub(crate) use caps::Caps;
pub(crate) use diversity::diversified;
pub use error::RulesError;
pub(crate) use order::{IdMatch, ItemOrder};
pub(crate) use plan::Plan;

/// The most caps of a request.
const MAX_CAPS: usize = 32;
/// The most boosts of a request: each may cost a pass over all items.
const MAX_BOOSTS: usize = 256;
/// The most ids that are pinned, and as many excluded.
const MAX_IDS: usize = 65_536;
/// Limit on results that are ranked again for diversity: time grows with its square.
pub(crate) const MAX_POOL: usize = 4096;

/// Rules that a request's answer keeps to. The default is no rule at all.
///
/// In JSON, [`parse`](Self::parse), it is an object with any of these keys:
///
/// | key | |
/// |---|---|
/// | `"at_most": [{"attribute": "brand", "items": 2}]` | caps on items of one value: [`AtMost`] |
/// | `"at_most_per_semantic_id": 1` | cap on items of one semantic ID |
/// | `"boosts": [{"filter": {…}, "add": 0.5}, {"attribute": "margin", "weight": 0.1}]` | [`Boost`] |
/// | `"tie_break": {"attribute": "price", "order": "ascending"}` | [`TieBreak`] |
/// | `"must_include": ["P0001"]`, `"must_exclude": ["P0002"]` | pinned and excluded items |
/// | `"valid": {"from": "valid_from", "to": "valid_to", "now": "2026-11-25T12:00:00Z"}` | [`Valid`] |
/// | `"diversity": {"lambda": 0.7, "pool": 40}` | [`Diversity`] |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// Caps on items that share a value. All of them hold.
    pub at_most: Vec<AtMost>,
    /// Cap on items that share a semantic ID.
    pub at_most_per_semantic_id: Option<usize>,
    /// Amounts added to scores. An item gets the sum of those that are for it.
    pub boosts: Vec<Boost>,
    /// Order of items of one semantic ID and equal scores; without it, the catalog's.
    pub tie_break: Option<TieBreak>,
    /// Ids of items that are in the answer, at the places that their scores give them. They take
    /// places of the `k`, count for caps before all others, and may be of the history; a filter,
    /// validity or exclusion that refuses one is an error.
    pub must_include: Vec<String>,
    /// Ids of items that are not in the answer; unknown ids exclude nothing.
    pub must_exclude: Vec<String>,
    /// The moment of the request and the attributes that limit items in time.
    pub valid: Option<Valid>,
    /// Second ranking of the results.
    pub diversity: Option<Diversity>,
}

/// Limit on the items of one value of an attribute.
///
/// The answer is what a greedy walk takes: over all items that may be recommended, by score and tie
/// order, each is taken unless a cap is reached, until there are `k`. An item without the attribute
/// is never held back; one with a list counts for each of its values, and is held back by any.
///
/// Once the walk comes to the end of the results that the beam's width has found, it goes on over a
/// new search of the items that are left: those neither taken nor of a value that has all its
/// items.
#[derive(Clone, Debug, PartialEq)]
pub struct AtMost {
    /// The attribute, of any kind but JSON.
    pub attribute: String,
    /// At least 1.
    pub items: usize,
}

/// An amount that is added to the scores of some items. Scores are log-probabilities: adding 0.69
/// doubles an item's probability, a negative amount buries it.
///
/// The search keeps prefixes by score plus the largest boost of an item below, so that a boosted
/// item is found wherever the beam is wide enough for its boosted score.
#[derive(Clone, Debug, PartialEq)]
pub struct Boost {
    /// Items that get it; `None` for all.
    pub filter: Option<Filter>,
    /// Amount of it.
    pub amount: Amount,
}

/// Amount of a boost.
#[derive(Clone, Debug, PartialEq)]
pub enum Amount {
    /// A number.
    Add(f64),
    /// `weight · value + offset` of a number attribute; items without it get nothing.
    Linear {
        /// The attribute.
        attribute: String,
        /// The factor.
        weight: f64,
        /// The summand.
        offset: f64,
    },
}

/// Order of items of one semantic ID where their scores are equal. Items without the attribute come
/// last, equal ones in catalog order.
#[derive(Clone, Debug, PartialEq)]
pub struct TieBreak {
    /// A keyword, number, timestamp or boolean attribute.
    pub attribute: String,
    /// Largest first.
    pub descending: bool,
}

/// Items that may be recommended from one moment to another: those with `from` ≤ `now` < `to`. A
/// missing attribute limits nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Valid {
    /// A timestamp attribute.
    pub from: Option<String>,
    /// A timestamp attribute.
    pub to: Option<String>,
    /// The moment of the request. This library reads no clock.
    pub now: Option<Moment>,
}

/// Maximal marginal relevance (Carbonell, Goldstein, SIGIR 1998) over the best results: the next
/// item is the one of the largest `lambda · score − (1 − lambda) · similarity`, where similarity is
/// that to the most similar item before it, the shared prefix of both semantic IDs as a share of
/// the longer.
///
/// A re-ranking of the first `pool` results that all other rules leave, never of more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Diversity {
    /// From 0, similarity alone, to 1, scores alone.
    pub lambda: f64,
    /// Number of results that are ranked again, at least `k`; four times `k` unless given.
    pub pool: Option<usize>,
}

impl Rules {
    /// True when no rule is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Sets the moment of the rules, where they have none of their own.
    #[must_use]
    pub fn at(mut self, now: Moment) -> Self {
        if let Some(valid) = &mut self.valid {
            valid.now.get_or_insert(now);
        }
        self
    }

    /// Refuses a pool that is smaller than an answer of `k`, or too large.
    pub(crate) fn check_pool(&self, k: usize) -> Result<(), RulesError> {
        let Some(Diversity { pool, .. }) = self.diversity else { return Ok(()) };
        let pool = pool.unwrap_or(k);
        match (k..=MAX_POOL).contains(&pool) {
            true => Ok(()),
            false => Err(RulesError::Pool { pool, k }),
        }
    }

    /// Items that a search is to find for an answer of `k`.
    pub(crate) fn wanted(&self, k: usize) -> usize {
        match self.diversity {
            Some(Diversity { pool, .. }) => {
                pool.unwrap_or(k.saturating_mul(4).min(MAX_POOL)).max(k)
            }
            None => k,
        }
    }
}
