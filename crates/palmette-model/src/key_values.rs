//! Keys and values of prompts: of one, in one piece; of several sequences, in pages.
//!
//! Letters: G key/value heads, C values a head, T prompt tokens.

use std::ops::Range;

use crate::allocation::zeroed;
use crate::head_shape::HeadShape;
use crate::kernels::{PANEL, PanelRow, Panels};

/// Keys and values of the prompt, laid out as the right sides of products, whatever the number of beams.
#[derive(Debug)]
pub(crate) struct PromptKeyValues {
    /// `[layers, ⌈T / 16⌉, G, C, 16]`: sixteen tokens of a head side by side.
    keys: Vec<PanelRow>,
    /// `[layers, T, G, ⌈C / 16⌉, 16]`
    values: Vec<PanelRow>,
    shape: HeadShape,
    max_tokens: usize,
}

/// One layer's view of [`PromptKeyValues`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct PromptPart<'a> {
    keys: &'a [PanelRow],
    values: &'a [PanelRow],
    shape: HeadShape,
}

impl PromptKeyValues {
    /// `None` where there is not the memory for it.
    pub(crate) fn new(shape: HeadShape, layers: usize, max_tokens: usize) -> Option<Self> {
        Some(Self {
            keys: zeroed(layers * key_rows(&shape, max_tokens))?,
            values: zeroed(layers * value_rows(&shape, max_tokens))?,
            shape,
            max_tokens,
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.keys) + size_of_val(&*self.values)
    }

    /// One layer's keys and values in blocks of `block` tokens, a multiple of [`PANEL`], to be stored into.
    pub(crate) fn blocks_mut(
        &mut self,
        layer: usize,
        block: usize,
    ) -> impl Iterator<Item = (&mut [PanelRow], &mut [PanelRow])> {
        assert!(block.is_multiple_of(PANEL), "blocks of {block} tokens");
        let (keys, values) =
            (key_rows(&self.shape, self.max_tokens), value_rows(&self.shape, self.max_tokens));
        let keys = &mut self.keys[layer * keys..(layer + 1) * keys];
        let values = &mut self.values[layer * values..(layer + 1) * values];
        let (key_block, value_block) =
            (key_rows(&self.shape, block), value_rows(&self.shape, block));
        keys.chunks_mut(key_block).zip(values.chunks_mut(value_block))
    }

    /// One layer's keys and values, to be stored into.
    pub(crate) fn layer_mut(&mut self, layer: usize) -> (&mut [PanelRow], &mut [PanelRow]) {
        let (keys, values) =
            (key_rows(&self.shape, self.max_tokens), value_rows(&self.shape, self.max_tokens));
        let keys = &mut self.keys[layer * keys..(layer + 1) * keys];
        (keys, &mut self.values[layer * values..(layer + 1) * values])
    }

    pub(crate) fn layer(&self, layer: usize) -> PromptPart<'_> {
        let (keys, values) =
            (key_rows(&self.shape, self.max_tokens), value_rows(&self.shape, self.max_tokens));
        PromptPart {
            keys: &self.keys[layer * keys..(layer + 1) * keys],
            values: &self.values[layer * values..(layer + 1) * values],
            shape: self.shape,
        }
    }
}

/// Panel rows of `tokens` keys in one layer.
pub(crate) fn key_rows(shape: &HeadShape, tokens: usize) -> usize {
    tokens.div_ceil(PANEL) * shape.key_value_width()
}

/// Panel rows of `tokens` values in one layer.
pub(crate) fn value_rows(shape: &HeadShape, tokens: usize) -> usize {
    tokens * shape.key_heads * shape.head_dim.div_ceil(PANEL)
}

/// Stores rows of `[2, G, C]`, keys before values, into a block of the caches, from its token `first` on.
pub(crate) fn store_block(
    shape: &HeadShape,
    key_values: &[f32],
    first: usize,
    (keys, values): (&mut [PanelRow], &mut [PanelRow]),
) {
    let (width, c) = (shape.key_value_width(), shape.head_dim);
    let value_panels = c.div_ceil(PANEL);
    for (token, row) in (first..).zip(key_values.chunks_exact(2 * width)) {
        let (key, value) = row.split_at(width);
        let panel = &mut keys[token / PANEL * width..][..width];
        panel.iter_mut().zip(key).for_each(|(places, &key)| places[token % PANEL] = key);
        let rows = &mut values[token * shape.key_heads * value_panels..];
        for (rows, head) in rows.chunks_exact_mut(value_panels).zip(value.chunks_exact(c)) {
            for (places, part) in rows.iter_mut().zip(head.chunks(PANEL)) {
                places[..part.len()].copy_from_slice(part);
            }
        }
    }
}

/// One layer's keys and values of a sequence, in one piece or in several.
pub(crate) trait Pieces<'a>: Copy {
    /// The pieces that hold some tokens, in order, each with the places that they have in it. Where the first token is the first of a
    /// panel, it is so in each piece.
    fn pieces(self, tokens: Range<usize>) -> impl Iterator<Item = (PromptPart<'a>, Range<usize>)>;
}

impl<'a> Pieces<'a> for PromptPart<'a> {
    fn pieces(self, tokens: Range<usize>) -> impl Iterator<Item = (PromptPart<'a>, Range<usize>)> {
        std::iter::once((self, tokens))
    }
}

impl<'a> PromptPart<'a> {
    /// The keys of some tokens at one head, `[C, tokens]`. The first token is the first of a panel, and there is one.
    pub(crate) fn keys(&self, key_head: usize, tokens: Range<usize>) -> Panels<'a> {
        let (width, c) = (self.shape.key_value_width(), self.shape.head_dim);
        debug_assert!(tokens.start.is_multiple_of(PANEL), "{tokens:?}");
        let start = tokens.start / PANEL * width + key_head * c;
        Panels::new(&self.keys[start..], (width, 1), c, tokens.len())
    }

    /// The values of some tokens at one head, `[tokens, C]`. There is one at least.
    pub(crate) fn values(&self, key_head: usize, tokens: Range<usize>) -> Panels<'a> {
        let panels = self.shape.head_dim.div_ceil(PANEL);
        let token = self.shape.key_heads * panels;
        let start = tokens.start * token + key_head * panels;
        Panels::new(&self.values[start..], (1, token), tokens.len(), self.shape.head_dim)
    }
}

/// Tokens of a page of [`PagedKeyValues`], a multiple of [`PANEL`].
pub(crate) const PAGE_TOKENS: usize = 64;

/// Keys and values of several sequences in pages of [`PAGE_TOKENS`] tokens, which sequences take as they grow.
///
/// A page holds all layers of its tokens. Which pages a sequence has, and in which order, its owner keeps.
#[derive(Debug)]
pub(crate) struct PagedKeyValues {
    /// `[pages, layers, PAGE_TOKENS / 16, G, C, 16]`
    keys: Vec<PanelRow>,
    /// `[pages, layers, PAGE_TOKENS, G, ⌈C / 16⌉, 16]`
    values: Vec<PanelRow>,
    shape: HeadShape,
    layers: usize,
}

/// One layer of a sequence's pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PagedPart<'a> {
    all: &'a PagedKeyValues,
    pages: &'a [u32],
    layer: usize,
}

impl PagedKeyValues {
    /// `None` where there is not the memory for it.
    pub(crate) fn new(shape: HeadShape, layers: usize, pages: usize) -> Option<Self> {
        let keys = zeroed(pages * layers * key_rows(&shape, PAGE_TOKENS))?;
        let values = zeroed(pages * layers * value_rows(&shape, PAGE_TOKENS))?;
        Some(Self { keys, values, shape, layers })
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.keys) + size_of_val(&*self.values)
    }

    /// One layer of the sequence that has these pages.
    pub(crate) fn layer<'a>(&'a self, pages: &'a [u32], layer: usize) -> PagedPart<'a> {
        PagedPart { all: self, pages, layer }
    }

    /// The places of one layer of a page among keys and among values.
    fn places(&self, page: u32, layer: usize) -> (Range<usize>, Range<usize>) {
        let (keys, values) =
            (key_rows(&self.shape, PAGE_TOKENS), value_rows(&self.shape, PAGE_TOKENS));
        let number = page as usize * self.layers + layer;
        (number * keys..(number + 1) * keys, number * values..(number + 1) * values)
    }

    /// Stores rows of `[2, G, C]`, keys before values, of the tokens from `first` on.
    pub(crate) fn store(&mut self, pages: &[u32], layer: usize, first: usize, key_values: &[f32]) {
        let width = 2 * self.shape.key_value_width();
        let (mut first, mut left) = (first, key_values);
        while !left.is_empty() {
            let (page, place) = (first / PAGE_TOKENS, first % PAGE_TOKENS);
            let tokens = (PAGE_TOKENS - place).min(left.len() / width);
            let (now, later) = left.split_at(tokens * width);
            let (keys, values) = self.places(pages[page], layer);
            store_block(&self.shape, now, place, (&mut self.keys[keys], &mut self.values[values]));
            (first, left) = (first + tokens, later);
        }
    }

    /// Copies a page.
    pub(crate) fn copy(&mut self, from: u32, to: u32) {
        let (keys, values) = (self.keys.len() / self.pages(), self.values.len() / self.pages());
        let (from, to) = (from as usize, to as usize);
        self.keys.copy_within(from * keys..(from + 1) * keys, to * keys);
        self.values.copy_within(from * values..(from + 1) * values, to * values);
    }

    fn pages(&self) -> usize {
        self.keys.len() / (self.layers * key_rows(&self.shape, PAGE_TOKENS))
    }
}

impl<'a> Pieces<'a> for PagedPart<'a> {
    fn pieces(self, tokens: Range<usize>) -> impl Iterator<Item = (PromptPart<'a>, Range<usize>)> {
        let Self { all, pages, layer } = self;
        (tokens.start / PAGE_TOKENS..tokens.end.div_ceil(PAGE_TOKENS)).map(move |page| {
            let first = page * PAGE_TOKENS;
            let (keys, values) = all.places(pages[page], layer);
            let (keys, values) = (&all.keys[keys], &all.values[values]);
            let part = PromptPart { keys, values, shape: all.shape };
            let end = (tokens.end - first).min(PAGE_TOKENS);
            (part, tokens.start.saturating_sub(first)..end)
        })
    }
}
