//! Answers kept for equal requests, in a cache of bounded bytes.
//!
//! The key holds everything that an answer depends on, the catalog's generation included, so a hit is exact by construction and
//! nothing is ever invalidated.

use std::sync::Arc;

use palmette_recommend::HistoryItem;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::api::recommend::write_history;
use crate::registry::Target;
use crate::wire::{AnsweredItem, ModeName, RecommendBody, Shortfall};

/// Cache key: everything an answer depends on, written one after the other with its length.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key(Arc<[u8]>);

/// The part of an answer that equal requests share.
#[derive(Clone, Debug)]
pub(crate) struct CachedAnswer {
    pub(crate) items: Vec<AnsweredItem>,
    pub(crate) shortfall: Option<Shortfall>,
    pub(crate) used: usize,
    pub(crate) beam_width: usize,
    pub(crate) mode: ModeName,
    pub(crate) thought: Option<String>,
    pub(crate) explanations: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Answers(Option<Cache<Key, Arc<CachedAnswer>, Bytes>>);

impl Key {
    pub(crate) fn new(
        target: &Target,
        generation: Option<u64>,
        history: &[HistoryItem],
        asked: &RecommendBody,
        beam_width: usize,
    ) -> Self {
        let mut key = Vec::with_capacity(256);
        key.extend(target.model.index.to_le_bytes());
        key.extend(target.catalog.loading.to_le_bytes());
        key.extend(generation.unwrap_or(u64::MAX).to_le_bytes());
        key.extend((history.len() as u64).to_le_bytes());
        write_history(history, &mut key);
        let min_width = asked.min_beam_width.unwrap_or(0);
        key.extend(
            [asked.k, beam_width, min_width]
                .map(|n| n as u64)
                .into_iter()
                .flat_map(u64::to_le_bytes),
        );
        key.extend([asked.mode as u8, u8::from(asked.exclude_seen)]);
        let widths = asked.widths.as_deref().unwrap_or_default();
        key.extend((widths.len() as u64).to_le_bytes());
        key.extend(widths.iter().flat_map(|&width| (width as u64).to_le_bytes()));
        let mut text = |text: &str| {
            key.extend((text.len() as u64).to_le_bytes());
            key.extend(text.as_bytes());
        };
        text(asked.filter.as_ref().map_or("", |filter| filter.get()));
        text(asked.rules.as_ref().map_or("", |rules| rules.get()));
        text(asked.query.as_deref().unwrap_or_default());
        text(if asked.query.is_some() { "query" } else { "" });
        text(&serde_json::to_string(&asked.user).unwrap_or_default());
        text(&asked.think_tokens.unwrap_or(0).to_string());
        let explained = asked.explain_items.map_or((0, 0), |of| (of.items, of.max_tokens));
        text(&format!("{explained:?}"));
        for list in [&asked.exclude, &asked.fields] {
            text(&list.len().to_string());
            list.iter().for_each(|one| text(one));
        }
        Self(key.into())
    }
}

impl Answers {
    /// A cache of so many bytes; of none where they are 0.
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
        let texts = answer.explanations.iter().chain(&answer.thought);
        let items = items + texts.map(|text| text.len() + size_of::<String>()).sum::<usize>();
        (key.0.len() + size_of::<CachedAnswer>() + 128 + items) as u64
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
