//! Listings: pages of one question, each after the items that those before it gave.
//!
//! A page is the answer to its question without the items that were given, which count for caps
//! where they are: pages never repeat an item and never skip one, and as long as they are proven
//! they are the parts of one larger answer. What a search proves behind a page is
//! [kept](crate::pages) for the next; an exact beam search of the same width that may return fewer
//! items finds all others again, so that a page comes out the same where nothing was kept.

use std::sync::Arc;

use crate::error::RecommendError;
use crate::pages::{Ahead, PageKey};
use crate::question::CheckedQuestion;
use crate::recommended::Recommended;
use crate::recommender::Recommender;
use crate::request::{Recommendations, Request};
use crate::rules::{Caps, Rules};

impl Recommender {
    /// Answers a question: by what is kept for its page, or by a search.
    pub(crate) fn answer(
        &self,
        question: &CheckedQuestion,
        narrowed: bool,
        search: impl FnOnce(&Request<'_>) -> Result<Recommendations, RecommendError>,
    ) -> Result<Recommendations, RecommendError> {
        if let Some(kept) = self.kept_page(question) {
            return Ok(kept);
        }
        let found = question.with_request(narrowed, search)?;
        if !narrowed {
            self.keep(question, &found);
        }
        Ok(found)
    }

    /// The page that a question asks for, where the page before left its items: proven, and without
    /// work of the model.
    pub fn kept_page(&self, question: &CheckedQuestion) -> Option<Recommendations> {
        let kept = self.pages().get(&key(question, question.question().cursor.as_deref()?)?)?;
        let (view, k) = (question.view().view(), question.question().k);
        let none = Rules::default();
        let mut caps = Caps::new(question.rules().unwrap_or(&none), view).ok()?;
        let mut is_free = |number: u64| caps.as_mut().is_none_or(|caps| caps.count(number).is_ok());
        question.given().iter().for_each(|&number| _ = is_free(number));
        let mut ahead = kept.items.iter().copied();
        let items: Vec<Recommended> =
            ahead.by_ref().filter(|item| is_free(item.number)).take(k).collect();
        if items.len() < k {
            return None;
        }
        let found = Recommendations {
            items,
            reranked: None,
            searches: 0,
            missed_at_most: None,
            mode: kept.mode,
            history_used: kept.history_used,
            unknown: Vec::new(),
            beam_width: kept.beam_width,
            eligible: kept.eligible,
            levels: Vec::new(),
            thought: None,
            explanations: Vec::new(),
            ahead: ahead.collect(),
            view: Arc::clone(question.view()),
        };
        self.keep(question, &found);
        Some(found)
    }

    /// Keeps what is ahead of an answer for who asks for the next page.
    fn keep(&self, question: &CheckedQuestion, found: &Recommendations) {
        if found.ahead.is_empty() {
            return;
        }
        let next = question.cursor_after(found);
        let Some(key) = next.as_deref().and_then(|cursor| key(question, cursor)) else { return };
        let ahead = Ahead {
            items: found.ahead.clone(),
            eligible: found.eligible.saturating_sub(found.items.len() as u64),
            mode: found.mode,
            history_used: found.history_used,
            beam_width: found.beam_width,
        };
        self.pages().insert(key, ahead);
    }
}

/// The key of a page; `None` where it depends on its moment, is more than items, or is not to be
/// remembered.
fn key(question: &CheckedQuestion, cursor: &str) -> Option<PageKey> {
    let asked = question.question();
    let is_plain = asked.think_tokens.is_none() && asked.explain_items.is_none();
    let generation = question.view().view().generation();
    (is_plain && asked.remember && !asked.trace && !question.asks_now())
        .then(|| PageKey { generation, cursor: cursor.into() })
}
