//! Checked questions: all that a worker needs, resolved against one view of the catalog.

use std::sync::Arc;

use palmette_catalog::FilterLookUps;
use palmette_catalog_live::ViewItems;
use palmette_document::Faults;

use super::RecommendQuestion;
use super::history::find;
use crate::cursor::Cursor;
use crate::fields::PromptFields;
use crate::free_text::{Explain, Think};
use crate::history_item::HistoryItem;
use crate::mode::Mode;
use crate::named_item::NamedItem;
use crate::request::{Candidates, History, Page, Recommendations, Request};
use crate::rules::Rules;
use crate::view::SpelledView;

/// A question without a fault, about one moment. [`RecommendQuestion::check`] makes it,
/// [`Worker::answer`](crate::Worker::answer) takes it.
#[derive(Clone, Debug)]
pub struct CheckedQuestion {
    /// Question whose history is in `named`, with its open members filled in.
    pub(super) question: RecommendQuestion,
    pub(super) named: Vec<NamedItem>,
    pub(super) view: Arc<SpelledView>,
    pub(super) history: Vec<HistoryItem>,
    /// Places in `named` of items that are unknown.
    pub(super) unknown: Vec<usize>,
    pub(super) beam_width: usize,
    /// Width that is taken where there is not the time for the other.
    pub(super) narrower: Option<usize>,
    pub(super) mode: Mode,
    pub(super) items: Option<ViewItems>,
    pub(super) look_ups: FilterLookUps,
    pub(super) rules: Option<Rules>,
    /// True where the rules were told the moment of the question.
    pub(super) asks_now: bool,
    pub(super) prompt_fields: PromptFields,
    pub(super) think: Option<Think>,
    pub(super) explain: Option<Explain>,
    /// Items that the pages before gave; their question's fingerprint, where it is paged.
    pub(super) cursor: Option<Cursor>,
    /// Numbers of those that the view has.
    pub(super) given: Vec<u64>,
}

/// Key of a question's answer: equal keys have equal answers over one generation of one catalog and
/// one model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AnswerKey(Arc<[u8]>);

impl AnswerKey {
    /// Bytes that it takes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// False: a key has the members of a question.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl CheckedQuestion {
    /// Asks the question about another history, whose own fields of the prompt go before its own.
    /// Filter and rules are not looked at again.
    ///
    /// # Errors
    /// When an item is unknown and the question makes it an error.
    pub fn about(&self, history: Vec<NamedItem>, fields: PromptFields) -> Result<Self, Faults> {
        let (items, unknown) = find(&history, &self.view, self.question.unknown_items)?;
        let mut about = Self { named: history, history: items, unknown, ..self.clone() };
        if !fields.is_empty() {
            let fields = fields.or(&self.prompt_fields);
            (about.question.query, about.question.user) =
                (fields.query.clone(), fields.user.clone());
            about.prompt_fields = fields;
        }
        about.question.cursor = None;
        about.cursor = about.question.first_cursor(&about.named);
        about.given.clear();
        Ok(about)
    }

    /// The question with its defaults filled in; its history is [`history`](Self::history).
    pub fn question(&self) -> &RecommendQuestion {
        &self.question
    }

    /// The moment that it is about.
    pub fn view(&self) -> &Arc<SpelledView> {
        &self.view
    }

    /// The items of the history that the catalog has, had, or could have.
    pub fn history(&self) -> &[HistoryItem] {
        &self.history
    }

    /// The history as it was written.
    pub fn named(&self) -> &[NamedItem] {
        &self.named
    }

    /// The items of the history that the catalog never had.
    pub fn unknown(&self) -> impl ExactSizeIterator<Item = &NamedItem> {
        self.unknown.iter().map(|&place| &self.named[place])
    }

    /// Items that match the filter; `None` without one.
    pub fn items(&self) -> Option<&ViewItems> {
        self.items.as_ref()
    }

    /// Items that match the filter, or all of the view.
    pub fn matching(&self) -> u64 {
        self.items.as_ref().map_or_else(|| self.view.view().num_items(), ViewItems::len)
    }

    /// Rules, at their moment.
    pub fn rules(&self) -> Option<&Rules> {
        self.rules.as_ref()
    }

    /// Look-ups of its filter among compiled ones.
    pub fn look_ups(&self) -> FilterLookUps {
        self.look_ups
    }

    /// True where its rules were told the moment of the question, since they ask for one and name
    /// none.
    pub fn asks_now(&self) -> bool {
        self.asks_now
    }

    /// True where there is a narrower search to fall back on.
    pub fn can_be_narrowed(&self) -> bool {
        self.narrower.is_some()
    }

    /// The key of its answer; `None` where the answer depends on the moment it was asked at, has
    /// the beams of all levels, or is not to be remembered.
    pub fn key(&self) -> Option<AnswerKey> {
        if self.asks_now || self.question.trace || !self.question.remember {
            return None;
        }
        // Of types without maps whose keys are no text: it does not fail.
        let key = serde_json::to_vec(&(&self.question, &self.history)).ok()?;
        Some(AnswerKey(key.into()))
    }

    /// True where the answer is one of several pages.
    pub fn is_paged(&self) -> bool {
        self.cursor.is_some()
    }

    /// Numbers of the items that earlier pages gave and the view has.
    pub fn given(&self) -> &[u64] {
        &self.given
    }

    /// Cursor of the items that come after those of an answer; `None` where the question asks for
    /// none, or there are no more: the answer has fewer items than it might.
    pub fn cursor_after(&self, found: &Recommendations) -> Option<String> {
        let before = self.cursor.as_ref()?;
        if found.items.len() < self.question.k {
            return None;
        }
        let mut cursor = before.clone();
        let k = self.question.k;
        let wanted = self.rules.as_ref().map_or(k, |rules| rules.wanted(k));
        cursor.widest = cursor.widest.max(wanted);
        cursor.given.extend(found.items.iter().map(|item| found.id(item).to_owned()));
        Some(cursor.to_text())
    }

    /// Lends the request that a worker answers: that of the question, or of its narrower search.
    pub fn with_request<T>(&self, narrowed: bool, ask: impl FnOnce(&Request<'_>) -> T) -> T {
        let exclude: Vec<&str> = self.question.exclude.iter().map(|id| id.0.as_str()).collect();
        let narrower = self.narrower.filter(|_| narrowed);
        ask(&Request {
            beam_width: narrower.unwrap_or(self.beam_width),
            widths: self.question.widths.as_deref().filter(|_| narrower.is_none()),
            mode: self.mode,
            items: self.items.as_ref().map_or(Candidates::All, Candidates::Set),
            exclude: &exclude,
            include_seen: !self.question.exclude_seen,
            rules: self.rules.as_ref(),
            trace: self.question.trace,
            fields: Some(&self.prompt_fields),
            think: self.think,
            explain_items: self.explain,
            remember: self.question.remember,
            view: Some(&self.view),
            page: self.cursor.as_ref().map(|of| Page { given: &self.given, widest: of.widest }),
            ..Request::new(History::Items(&self.history), self.question.k)
        })
    }
}
