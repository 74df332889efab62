//! Answers kept for equal requests, in a cache of bounded bytes.
//!
//! The key holds everything that an answer depends on, the catalog's generation included, so a hit
//! is exact by construction and nothing is ever invalidated.

use std::sync::Arc;

use palmette_recommend::{AnswerKey, CheckedQuestion, ModeName};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::registry::Target;
use crate::wire::{AnsweredItem, Shortfall};

/// Cache key: who answers, at which generation, and the checked question.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    model: u32,
    /// Catalogs of one name that were loaded one after the other have numbers of their own.
    loading: u64,
    generation: Option<u64>,
    question: AnswerKey,
}

/// The part of an answer that equal requests share.
#[derive(Clone, Debug)]
pub(crate) struct CachedAnswer {
    pub(crate) items: Vec<AnsweredItem>,
    pub(crate) shortfall: Option<Shortfall>,
    pub(crate) used: usize,
    pub(crate) beam_width: usize,
    pub(crate) mode: ModeName,
    pub(crate) missed_at_most: Option<f32>,
    /// Cursor of the items that come next, where it was asked for.
    pub(crate) cursor: Option<Option<String>>,
    pub(crate) thought: Option<String>,
    pub(crate) explanations: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Answers(Option<Cache<Key, Arc<CachedAnswer>, Bytes>>);

impl Key {
    /// `None` where the answer depends on the moment or is not to be kept.
    pub(crate) fn new(target: &Target, question: &CheckedQuestion) -> Option<Self> {
        Some(Self {
            model: target.model.index,
            loading: target.catalog.loading,
            generation: question.view().view().generation(),
            question: question.key()?,
        })
    }
}

impl Answers {
    /// Creates a cache of `bytes` bytes; without any, it caches nothing.
    pub(crate) fn new(bytes: usize) -> Self {
        // Some hundred bytes an answer.
        let items = (bytes / 1024).max(16);
        Self((bytes > 0).then(|| Cache::with_weighter(items, bytes as u64, Bytes)))
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<CachedAnswer>> {
        let found = self.0.as_ref()?.get(key);
        let result = if found.is_some() { "hit" } else { "miss" };
        metrics::counter!("palmette_answer_cache_total", "result" => result).increment(1);
        found
    }

    /// Bytes of the answers that are kept, about.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, Cache::weight)
    }

    pub(crate) fn insert(&self, key: Key, answer: CachedAnswer) {
        if let Some(cache) = &self.0 {
            cache.insert(key, Arc::new(answer));
        }
    }
}

#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<Key, Arc<CachedAnswer>> for Bytes {
    fn weight(&self, key: &Key, answer: &Arc<CachedAnswer>) -> u64 {
        let item = |item: &AnsweredItem| {
            let fields: usize =
                item.fields.iter().map(|(name, value)| name.len() + 64 + value_bytes(value)).sum();
            size_of::<AnsweredItem>() + item.id.len() + 4 * item.codes.len() + fields
        };
        let items: usize = answer.items.iter().map(item).sum();
        let cursor = answer.cursor.iter().flatten();
        let texts = answer.explanations.iter().chain(&answer.thought).chain(cursor);
        let items = items + texts.map(|text| text.len() + size_of::<String>()).sum::<usize>();
        (key.question.len() + size_of::<CachedAnswer>() + 128 + items) as u64
    }
}

fn value_bytes(value: &serde_json::Value) -> usize {
    use serde_json::Value::{Array, Object, String};
    let inside = match value {
        String(text) => text.len(),
        Array(values) => values.iter().map(value_bytes).sum(),
        Object(object) => {
            object.iter().map(|(name, value)| name.len() + 64 + value_bytes(value)).sum()
        }
        _ => 0,
    };
    size_of::<serde_json::Value>() + inside
}
