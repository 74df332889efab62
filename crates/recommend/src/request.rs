//! Requests and their answers.

use std::sync::Arc;

use palmette_catalog_filter::Filter;
use palmette_catalog_live::ViewItems;

use crate::fields::PromptFields;
use crate::free_text::{Explain, Think};
use crate::history_item::HistoryItem;
use crate::mode::Mode;
use crate::passes::TracedBeam;
use crate::recommended::Recommended;
use crate::rules::{Diversity, Rules};
use crate::view::SpelledView;

/// Question to a recommender.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The items of the user's history, oldest first. May be empty.
    pub history: History<'a>,
    /// Number of items to recommend.
    pub k: usize,
    /// Hypotheses kept at each level, unless the recommender has
    /// [widths](crate::Recommender::with_widths) of its own.
    pub beam_width: usize,
    /// A width for each level in their place.
    pub widths: Option<&'a [usize]>,
    /// The kind of search.
    pub mode: Mode,
    /// The items that may be recommended.
    pub items: Candidates<'a>,
    /// Ids of items that may not be recommended. Ids that the catalog does not have exclude
    /// nothing.
    pub exclude: &'a [&'a str],
    /// Permission to recommend items of the history again.
    pub include_seen: bool,
    /// Business rules that the answer keeps to.
    pub rules: Option<&'a Rules>,
    /// Permission to keep the beams of each level, for [`Recommendations::levels`].
    pub trace: bool,
    /// Fields for the placeholders of the model's [template](crate::PromptTemplate).
    pub fields: Option<&'a PromptFields>,
    /// Reasoning that the model writes before the item.
    pub think: Option<Think>,
    /// Text that the model writes after the first items.
    pub explain_items: Option<Explain>,
    /// Permission to keep keys and values of the prompt for later ones that begin alike, and to use
    /// those of earlier ones; the answer is the same.
    pub remember: bool,
    /// The moment to answer for; `None` for now.
    pub view: Option<&'a Arc<SpelledView>>,
    /// The place of the answer among several of the same question; `None` for the only one.
    pub page: Option<Page<'a>>,
}

/// Page of a listing: items after those of earlier pages, with a look at [those that come
/// next](Recommendations::ahead).
#[derive(Clone, Copy, Debug, Default)]
pub struct Page<'a> {
    /// Numbers of the items of earlier pages in the view: they count for caps, and are not
    /// recommended again.
    pub given: &'a [u64],
    /// The most items that an earlier page wanted, which its search was at least as wide as: no
    /// later one is narrower, so that it finds all that was found before.
    pub widest: usize,
}

/// Room and rows of a request before it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Hypotheses kept after each level.
    pub widths: Vec<usize>,
    /// Bytes of caches, logits and masks.
    pub bytes: usize,
}

/// A history, oldest first.
#[derive(Clone, Copy, Debug)]
pub enum History<'a> {
    /// Ids of items. Those that the view does not have, such as items that are no longer there, are
    /// left out, and [reported](Recommendations::unknown).
    Ids(&'a [&'a str]),
    /// Numbers of items in the request's view.
    Numbers(&'a [u64]),
    /// Items by number or by semantic ID, as [`SpelledView::find_item`] finds them.
    Items(&'a [HistoryItem]),
}

/// The items that may be recommended.
#[derive(Clone, Copy, Debug, Default)]
pub enum Candidates<'a> {
    /// Every item of the view.
    #[default]
    All,
    /// Items that match a filter.
    Filter(&'a Filter),
    /// A set of the request's view.
    Set(&'a ViewItems),
}

impl<'a> Request<'a> {
    /// The beam width of a request that says nothing of it.
    pub const DEFAULT_BEAM_WIDTH: usize = 128;

    /// `k` items after a history, of all that have not been seen.
    pub fn new(history: History<'a>, k: usize) -> Self {
        Self {
            history,
            k,
            beam_width: Self::DEFAULT_BEAM_WIDTH,
            widths: None,
            mode: Mode::default(),
            items: Candidates::All,
            exclude: &[],
            include_seen: false,
            rules: None,
            trace: false,
            fields: None,
            think: None,
            explain_items: None,
            remember: true,
            view: None,
            page: None,
        }
    }

    /// The least width of a search, where its beam is narrower.
    pub(crate) fn least_width(&self) -> usize {
        self.wanted().max(self.page.map_or(0, |page| page.widest))
    }

    /// Items of earlier pages.
    pub(crate) fn given(&self) -> &[u64] {
        self.page.map_or(&[], |page| page.given)
    }

    /// Items that a search is to find.
    pub(crate) fn wanted(&self) -> usize {
        self.rules.map_or(self.k, |rules| rules.wanted(self.k))
    }
}

/// A ranking of the results after the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reranked {
    /// The rule.
    pub by: Diversity,
    /// Number of results that were ranked again.
    pub pool: usize,
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct Recommendations {
    /// Best first; among items that share a semantic ID and a score, in the order of the rules'
    /// tie-break, then of the catalog. Fewer than asked for only if no more items may be
    /// recommended.
    pub items: Vec<Recommended>,
    /// The ranking that the items have in place of best first, where the rules ask for one.
    pub reranked: Option<Reranked>,
    /// Searches that were made: 1, unless items are pinned or caps leave too few of what the first
    /// found.
    pub searches: usize,
    /// Bound on the scores of items that belong into the answer and are not in it; `None` where it
    /// is [proven](Self::is_proven). With [diversity](Rules::diversity) it is about the results
    /// that were ranked again.
    pub missed_at_most: Option<f32>,
    /// The mode that they were made by: never [`Mode::Auto`].
    pub mode: Mode,
    /// Number of the most recent items of the history that the model read.
    pub history_used: usize,
    /// Places in the history of ids that the view does not have.
    pub unknown: Vec<usize>,
    /// The beam width that was used: the request's own, or `k` where that is more; of several, the
    /// last level's.
    pub beam_width: usize,
    /// Items that might have been recommended: those of the filter that are valid, neither excluded
    /// nor seen. Without caps and free drafts there are `k` items, or as many as these.
    pub eligible: u64,
    /// Beams that the search kept after each level but the last, best first, where the request asks
    /// for them.
    pub levels: Vec<Vec<TracedBeam>>,
    /// Text that the model wrote before the item, where it was to think.
    pub thought: Option<String>,
    /// Texts that it wrote after each of the first items, in their order, where it was to explain.
    pub explanations: Vec<String>,
    /// Items that come next, best first, as far as the search proved them; empty unless the request
    /// is for a [page](Request::page), and with boosts, diversity, pinned items or a free draft. Caps may
    /// hold some back.
    pub ahead: Vec<Recommended>,
    /// The moment that was answered for: items are numbered in it.
    pub view: Arc<SpelledView>,
}

impl Recommendations {
    /// True where the answer is that of scoring every item that may be recommended, applying the
    /// rules and sorting, ties included: all that the search let go on its way scores no more than
    /// the last item taken.
    ///
    /// Where it is not, an item whose score is at least
    /// [`missed_at_most`](Self::missed_at_most) has its place all the same.
    pub fn is_proven(&self) -> bool {
        self.missed_at_most.is_none()
    }

    /// The id of an item of the answer.
    pub fn id(&self, item: &Recommended) -> &str {
        self.view.view().id(item.number)
    }
}
