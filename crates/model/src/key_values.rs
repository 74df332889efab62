//! Store of keys and values of prompts and sequences, in pages.
//!
//! Letters: G key/value heads, C values a head.

use std::ops::Range;

use crate::allocation::zeroed;
use crate::head_shape::HeadShape;
use crate::kernels::{PANEL, PanelRow, Panels};

/// Keys and values of tokens in pages, laid out as the right sides of products.
///
/// A page holds all layers of its tokens, of one sequence. Which pages a sequence has, and in which
/// order, its owner keeps: a [session](crate::Session) has one page, as long as its prompts may be;
/// [sequences](crate::Sequences) take short ones as they grow.
#[derive(Debug)]
pub(crate) struct KeyValues {
    /// `[pages, layers, ⌈page_tokens / 16⌉, G, C, 16]`: sixteen tokens of a head side by side.
    keys: Vec<PanelRow>,
    /// `[pages, layers, page_tokens, G, ⌈C / 16⌉, 16]`
    values: Vec<PanelRow>,
    shape: HeadShape,
    layers: usize,
    /// A multiple of [`PANEL`], unless there is one page.
    page_tokens: usize,
}

/// The page of a store that has one.
pub(crate) const ONLY_PAGE: &[u32] = &[0];

/// One layer of a sequence's pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SequencePart<'a> {
    all: &'a KeyValues,
    pages: &'a [u32],
    layer: usize,
}

/// One layer of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    keys: &'a [PanelRow],
    values: &'a [PanelRow],
    shape: HeadShape,
}

impl KeyValues {
    /// `None` where there is not the memory for it.
    ///
    /// # Panics
    /// When there are several pages whose tokens are not whole panels.
    pub(crate) fn new(
        shape: HeadShape,
        layers: usize,
        pages: usize,
        page_tokens: usize,
    ) -> Option<Self> {
        assert!(pages < 2 || page_tokens.is_multiple_of(PANEL), "pages of {page_tokens} tokens");
        let keys = zeroed(pages * layers * key_rows(&shape, page_tokens))?;
        let values = zeroed(pages * layers * value_rows(&shape, page_tokens))?;
        Some(Self { keys, values, shape, layers, page_tokens })
    }

    #[cfg(test)]
    pub(crate) fn shape(&self) -> HeadShape {
        self.shape
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.keys) + size_of_val(&*self.values)
    }

    /// One layer of the sequence that has these pages.
    pub(crate) fn layer<'a>(&'a self, pages: &'a [u32], layer: usize) -> SequencePart<'a> {
        SequencePart { all: self, pages, layer }
    }

    /// The places of one layer of a page among keys and among values.
    fn places(&self, page: u32, layer: usize) -> (Range<usize>, Range<usize>) {
        let keys = key_rows(&self.shape, self.page_tokens);
        let values = value_rows(&self.shape, self.page_tokens);
        let number = page as usize * self.layers + layer;
        (number * keys..(number + 1) * keys, number * values..(number + 1) * values)
    }

    /// One layer of a page from the token `first` on, in blocks of `block` tokens, both multiples
    /// of [`PANEL`], for threads to [store](store_block) into.
    pub(crate) fn blocks_mut(
        &mut self,
        page: u32,
        layer: usize,
        first: usize,
        block: usize,
    ) -> impl Iterator<Item = (&mut [PanelRow], &mut [PanelRow])> {
        assert!(first.is_multiple_of(PANEL), "blocks from token {first} on");
        assert!(block.is_multiple_of(PANEL), "blocks of {block} tokens");
        let (keys, values) = self.places(page, layer);
        let keys = keys.start + key_rows(&self.shape, first)..keys.end;
        let values = values.start + value_rows(&self.shape, first)..values.end;
        let (key_block, value_block) =
            (key_rows(&self.shape, block), value_rows(&self.shape, block));
        self.keys[keys].chunks_mut(key_block).zip(self.values[values].chunks_mut(value_block))
    }

    /// Stores rows of `[2, G, C]`, keys before values, of the tokens from `first` on.
    pub(crate) fn store(&mut self, pages: &[u32], layer: usize, first: usize, key_values: &[f32]) {
        let width = 2 * self.shape.key_value_width();
        let (mut first, mut left) = (first, key_values);
        while !left.is_empty() {
            let (page, place) = (first / self.page_tokens, first % self.page_tokens);
            let tokens = (self.page_tokens - place).min(left.len() / width);
            let (now, later) = left.split_at(tokens * width);
            let (keys, values) = self.places(pages[page], layer);
            store_block(&self.shape, now, place, (&mut self.keys[keys], &mut self.values[values]));
            (first, left) = (first + tokens, later);
        }
    }

    /// Copies tokens of all layers out of another store, where both are of one page; they begin at
    /// panels and fill them.
    ///
    /// # Panics
    /// When the tokens are not in both, or the models are of other shapes.
    pub(crate) fn copy_tokens(&mut self, to: usize, from: &Self, first: usize, tokens: usize) {
        debug_assert!([to, first, tokens].iter().all(|places| places.is_multiple_of(PANEL)));
        let at = |rows: fn(&HeadShape, usize) -> usize, base: usize, token: usize| {
            let start = base + rows(&self.shape, token);
            start..start + rows(&self.shape, tokens)
        };
        for layer in 0..self.layers {
            let own = self.places(ONLY_PAGE[0], layer);
            let others = from.places(ONLY_PAGE[0], layer);
            let (key_to, key_from) =
                (at(key_rows, own.0.start, to), at(key_rows, others.0.start, first));
            let (value_to, value_from) =
                (at(value_rows, own.1.start, to), at(value_rows, others.1.start, first));
            self.keys[key_to].copy_from_slice(&from.keys[key_from]);
            self.values[value_to].copy_from_slice(&from.values[value_from]);
        }
    }

    /// Copies a page.
    pub(crate) fn copy(&mut self, from: u32, to: u32) {
        let keys = self.layers * key_rows(&self.shape, self.page_tokens);
        let values = self.layers * value_rows(&self.shape, self.page_tokens);
        let (from, to) = (from as usize, to as usize);
        self.keys.copy_within(from * keys..(from + 1) * keys, to * keys);
        self.values.copy_within(from * values..(from + 1) * values, to * values);
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

/// Stores rows of `[2, G, C]`, keys before values, into a block of the caches, from its token
/// `first` on.
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

impl<'a> SequencePart<'a> {
    /// The pieces that hold some tokens, in order, each with the places that they have in it. Where
    /// the first token is the first of a panel, it is so in each piece.
    pub(crate) fn pieces(
        self,
        tokens: Range<usize>,
    ) -> impl Iterator<Item = (Piece<'a>, Range<usize>)> {
        let Self { all, pages, layer } = self;
        let page_tokens = all.page_tokens;
        (tokens.start / page_tokens..tokens.end.div_ceil(page_tokens)).map(move |page| {
            let first = page * page_tokens;
            let (keys, values) = all.places(pages[page], layer);
            let (keys, values) = (&all.keys[keys], &all.values[values]);
            let piece = Piece { keys, values, shape: all.shape };
            let end = (tokens.end - first).min(page_tokens);
            (piece, tokens.start.saturating_sub(first)..end)
        })
    }
}

impl<'a> Piece<'a> {
    /// The keys of some tokens at one head, `[C, tokens]`. The first token is the first of a panel,
    /// and there is one.
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
