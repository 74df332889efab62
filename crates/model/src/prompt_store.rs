//! Store of keys and values of earlier prompts on this processor, in pages of 16 tokens.
//!
//! Sessions of one model read it and fill it: a prompt that begins like an earlier one is read
//! from where they part, which gives the same bits, since a row's bits depend on its tokens alone.
//! So a history with one more event costs that event, and what a template begins with is read once
//! for all users.
//!
//! A page holds all layers of its tokens and is not written again while a prompt can find it.
//! Sessions copy: their own keys and values stay in one piece, so that passes are what they are
//! without a store, and no page is held longer than a copy takes. The [index](Pages) is locked for
//! look-ups alone, each page for its copies alone.
//!
//! PERF: pages of 16 tokens, one panel of keys. Of a prompt that comes back the last 16 tokens at
//! most and what is new are read again; with pages of 64 it would be up to 63 more, at 0.2 ms a row
//! of a model of 10M parameters. There 15 rows, look-ups and copies of 31 pages take 6 ms, the
//! whole prompt 96 (`palmette bench recommend --returning`).

use std::fmt::{self, Debug};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use palmette_core::TokenId;

use crate::config::ModelConfig;
use crate::head_shape::HeadShape;
use crate::kernels::{PANEL, PanelRow};
use crate::key_values::{KeyValues, key_rows, value_rows};
use crate::pages::{PageChain, PageCounts, Pages};

/// Memory that earlier prompts cannot be kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PromptStoreError {
    /// Less than a page.
    #[error(
        "keys and values of prompts are kept {tokens} tokens at a time, which takes {page_bytes} bytes with this model; {bytes} bytes keep \
         nothing: give them more, or none",
        tokens = PromptStore::PAGE_TOKENS
    )]
    TooSmall {
        /// Bytes given.
        bytes: usize,
        /// Bytes of a page.
        page_bytes: usize,
    },
    /// More than there is.
    #[error(
        "{bytes} bytes for keys and values of prompts are more than can be allocated: give them less, or none"
    )]
    NoMemory {
        /// Bytes given.
        bytes: usize,
    },
}

/// Keys and values of earlier prompts, within the bytes that it was given.
///
/// Pages unused for longest give way. All memory is taken when it is made: a server whose store
/// does not fit beside the rest says so at its start, and nothing grows after.
pub(crate) struct PromptStore {
    index: Arc<Pages<{ Self::PAGE_TOKENS }>>,
    pages: Vec<RwLock<KeyValues>>,
    page_bytes: usize,
    /// Tokens of prompts that sessions computed.
    computed: AtomicU64,
}

/// Use of what an engine keeps of prompts, as metrics show it. Counts are from its load on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PromptUse {
    /// Tokens of prompts whose keys and values were there from earlier prompts.
    pub found_tokens: u64,
    /// Tokens of prompts that were computed.
    pub computed_tokens: u64,
    /// Pages that hold earlier prompts.
    pub kept_pages: u64,
    /// Pages in all.
    pub pages: u64,
    /// Pages whose earlier prompts gave way to later ones.
    pub evicted_pages: u64,
    /// Memory of this processor that all pages take; 0 where they lie on a device.
    pub bytes: u64,
}

impl PromptStore {
    /// Tokens of a page.
    pub(crate) const PAGE_TOKENS: usize = PANEL;

    /// Bytes of a page with its bookkeeping.
    pub(crate) fn page_bytes(config: &ModelConfig) -> usize {
        let shape = HeadShape::of(config);
        let rows = key_rows(&shape, Self::PAGE_TOKENS) + value_rows(&shape, Self::PAGE_TOKENS);
        let data = config.num_hidden_layers * rows * size_of::<PanelRow>();
        data + Pages::<{ Self::PAGE_TOKENS }>::BOOK_BYTES + size_of::<RwLock<KeyValues>>()
    }

    /// A store of `bytes` at most.
    ///
    /// # Errors
    /// When not one page fits into them, or there is not the memory.
    pub(crate) fn with_bytes(config: &ModelConfig, bytes: usize) -> Result<Self, PromptStoreError> {
        let page_bytes = Self::page_bytes(config);
        let count = bytes / page_bytes;
        if count == 0 {
            return Err(PromptStoreError::TooSmall { bytes, page_bytes });
        }
        let no_memory = PromptStoreError::NoMemory { bytes };
        // More than pages have numbers for; or, asked for at once and given back, than there is.
        let whole = count * page_bytes;
        u32::try_from(count).map_err(|_| no_memory)?;
        std::hint::black_box(&mut Vec::<u8>::new())
            .try_reserve_exact(whole)
            .map_err(|_| no_memory)?;
        let (shape, layers) = (HeadShape::of(config), config.num_hidden_layers);
        let mut pages = Vec::new();
        pages.try_reserve_exact(count).map_err(|_| no_memory)?;
        for _ in 0..count {
            let page = KeyValues::new(shape, layers, 1, Self::PAGE_TOKENS).ok_or(no_memory)?;
            pages.push(RwLock::new(page));
        }
        let index = Pages::new(count, true);
        Ok(Self { index, pages, page_bytes, computed: AtomicU64::new(0) })
    }

    /// Bytes that it takes once it is full.
    pub(crate) fn bytes(&self) -> usize {
        self.pages.len() * self.page_bytes
    }

    /// Use of it until now.
    pub(crate) fn usage(&self) -> PromptUse {
        let PageCounts { used, kept, all, found_tokens, evicted } = self.index.counts();
        PromptUse {
            found_tokens,
            computed_tokens: self.computed.load(Ordering::Relaxed),
            kept_pages: (used + kept) as u64,
            pages: all as u64,
            evicted_pages: evicted,
            bytes: self.bytes() as u64,
        }
    }

    /// Counts tokens of a prompt that were computed.
    pub(crate) fn count_computed(&self, tokens: usize) {
        self.computed.fetch_add(tokens as u64, Ordering::Relaxed);
    }

    /// Number of a prompt's first tokens that are there, never its last.
    pub(crate) fn known_tokens(&self, prompt: &[TokenId]) -> usize {
        self.index.known_tokens(prompt, 1)
    }

    /// Copies what is there of a prompt into a cache of one page; returns how many of its first
    /// tokens that is. `places` has room for the numbers of its pages.
    pub(crate) fn read(
        &self,
        prompt: &[TokenId],
        cache: &mut KeyValues,
        places: &mut Vec<u32>,
    ) -> usize {
        let mut chain = PageChain::unreserved(&self.index, std::mem::take(places));
        let found = chain.find(prompt);
        for (place, &page) in chain.pages().iter().enumerate() {
            let page = self.pages[page as usize].read().unwrap_or_else(PoisonError::into_inner);
            cache.copy_tokens(place * Self::PAGE_TOKENS, &page, 0, Self::PAGE_TOKENS);
        }
        *places = chain.into_places();
        found
    }

    /// Keeps the full pages of a prompt whose keys and values are in a cache of one page, as far as
    /// there is room beside those that are being copied.
    pub(crate) fn keep(&self, prompt: &[TokenId], cache: &KeyValues, places: &mut Vec<u32>) {
        let mut chain = PageChain::unreserved(&self.index, std::mem::take(places));
        let new = chain.extend(prompt);
        let end = new.end;
        for first in new.step_by(Self::PAGE_TOKENS) {
            let page = chain.pages()[first / Self::PAGE_TOKENS] as usize;
            let mut page = self.pages[page].write().unwrap_or_else(PoisonError::into_inner);
            page.copy_tokens(0, cache, first, Self::PAGE_TOKENS);
        }
        chain.share(prompt, end);
        *places = chain.into_places();
    }

    /// Plants a fault: has a key of each page off by a little.
    #[cfg(test)]
    pub(crate) fn damage(&self) {
        for page in &self.pages {
            let mut page = page.write().unwrap();
            let row = vec![0.25; 2 * page.shape().key_value_width()];
            page.store(crate::key_values::ONLY_PAGE, 0, 3, &row);
        }
    }
}

impl Debug for PromptStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptStore").field("usage", &self.usage()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use crate::plan::SessionOptions;
    use crate::session::Session;

    /// A fault in what is kept is one of the next answer: nothing else is read.
    #[test]
    fn a_planted_fault_is_seen() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tied_f32");
        let model = Model::load(dir.as_ref()).unwrap().with_prompt_memory(1 << 20).unwrap();
        let model = Arc::new(model);
        let prompt: Vec<TokenId> = (0..40).map(|at| TokenId(at * 7 % 97)).collect();
        let options = SessionOptions {
            max_prompt_tokens: 40,
            max_beams: 0,
            max_decode_passes: 0,
            threads: 1,
        };
        let mut session = Session::new(&model, options).unwrap();
        let mut logits = |keeps| {
            session.keep_prompts(keeps);
            session.set_prompt(&prompt).unwrap();
            session.prompt_logits_of(0..97).unwrap().to_vec()
        };
        let right = logits(true);
        assert_eq!(logits(true), right);
        model.prompt_store.as_ref().unwrap().damage();
        assert_ne!(logits(true), right);
        assert_eq!(logits(false), right);
    }
}
