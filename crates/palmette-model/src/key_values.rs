//! Keys and values: of a prompt, once; of the beams' own tokens; and of several sequences, in pages.
//!
//! Letters: G key/value heads, C values a head, T prompt tokens, B beams, P decode passes.

use std::ops::Range;

use crate::attention::HeadShape;
use crate::kernels::{PANEL, PanelRow, Panels};
use crate::plan::{Plan, zeroed};

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

/// The beams' own keys and values, exactly a slot for every beam of every pass, and which of them each beam descends from.
///
/// A beam that forks copies nothing: each row keeps the slots of its ancestors. Source: xGR, arXiv 2512.11529, §5.1,
/// which moves slots in place so that a beam's lie side by side.
#[derive(Debug)]
pub(crate) struct BeamKeyValues {
    /// `[slots, layers, 2, G·C]`, keys before values; those of a pass side by side.
    slots: Vec<f32>,
    /// The first slot of each pass, and one past the last: P + 1.
    first_slots: Vec<usize>,
    /// `[P, B]`: the slot in pass `p` of the ancestor of the beam in row `b`.
    ancestors: Vec<u32>,
    /// `ancestors` before the latest fork.
    previous: Vec<u32>,
    max_beams: usize,
    layers: usize,
    /// G·C
    width: usize,
}

/// The slots of the passes before the current one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EarlierPasses<'a> {
    slots: &'a [f32],
    first_slots: &'a [usize],
    ancestors: &'a [u32],
    max_beams: usize,
    passes: usize,
    slot_width: usize,
}

/// A block of beams' own keys and values in one layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnPart<'a> {
    pub(crate) earlier: EarlierPasses<'a>,
    /// The block's slots of the current pass, `[rows, layers, 2, G·C]`.
    pub(crate) current: &'a [f32],
    /// Row of the block's first beam.
    pub(crate) first_beam: usize,
    pub(crate) layer: usize,
    /// G·C
    pub(crate) width: usize,
}

impl BeamKeyValues {
    /// For a plan whose [`PlannedBytes`](crate::PlannedBytes) could be counted.
    /// `None` where there is not the memory for it.
    pub(crate) fn new(shape: HeadShape, layers: usize, plan: &Plan<'_>) -> Option<Self> {
        let width = shape.key_value_width();
        let max_beams = plan.options.max_beams;
        let mut first_slots: Vec<usize> = zeroed(plan.options.max_decode_passes + 1)?;
        let mut slots = 0;
        for (next, beams) in first_slots[1..].iter_mut().zip(plan.beams()) {
            slots += beams;
            *next = slots;
        }
        let places = plan.options.max_decode_passes * max_beams;
        Some(Self {
            slots: zeroed(slots * layers * 2 * width)?,
            first_slots,
            ancestors: zeroed(places)?,
            previous: zeroed(places)?,
            max_beams,
            layers,
            width,
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        let places = size_of_val(&*self.ancestors) + size_of_val(&*self.previous);
        size_of_val(&*self.slots) + size_of_val(&*self.first_slots) + places
    }

    /// Largest number of beams of a pass, counted from 0.
    pub(crate) fn max_beams_of(&self, pass: usize) -> usize {
        self.first_slots[pass + 1] - self.first_slots[pass]
    }

    /// Values of one slot: all layers' keys and values of a token.
    pub(crate) fn slot_width(&self) -> usize {
        self.layers * 2 * self.width
    }

    /// Makes row `b` a child of row `parents[b]`, `passes` passes after the prompt, and gives each
    /// row its own slot in the pass to come.
    pub(crate) fn fork(&mut self, parents: &[u32], passes: usize) {
        std::mem::swap(&mut self.ancestors, &mut self.previous);
        for pass in 0..passes {
            let row = pass * self.max_beams;
            for (beam, &parent) in parents.iter().enumerate() {
                self.ancestors[row + beam] = self.previous[row + parent as usize];
            }
        }
        for beam in 0..parents.len() {
            self.ancestors[passes * self.max_beams + beam] = beam as u32;
        }
    }

    /// The passes before pass `pass`, counted from 0, and that pass's slots of the first `rows` beams.
    pub(crate) fn split_at_pass(
        &mut self,
        pass: usize,
        rows: usize,
    ) -> (EarlierPasses<'_>, &mut [f32]) {
        let slot_width = self.slot_width();
        let (slots, current) = self.slots.split_at_mut(self.first_slots[pass] * slot_width);
        let earlier = EarlierPasses {
            slots,
            first_slots: &self.first_slots,
            ancestors: &self.ancestors,
            max_beams: self.max_beams,
            passes: pass,
            slot_width,
        };
        (earlier, &mut current[..rows * slot_width])
    }
}

impl<'a> OwnPart<'a> {
    /// Tokens that each beam has of its own, the newest included.
    #[inline(always)]
    pub(crate) fn passes(&self) -> usize {
        self.earlier.passes + 1
    }

    /// The key of a block's row in one pass, `[C]`.
    #[inline(always)]
    pub(crate) fn key(
        &self,
        pass: usize,
        row: usize,
        key_head: usize,
        head_dim: usize,
    ) -> &'a [f32] {
        let start = self.layer * 2 * self.width + key_head * head_dim;
        &self.slot(pass, row)[start..start + head_dim]
    }

    /// The value of a block's row in one pass, `[C]`.
    #[inline(always)]
    pub(crate) fn value(
        &self,
        pass: usize,
        row: usize,
        key_head: usize,
        head_dim: usize,
    ) -> &'a [f32] {
        let start = (self.layer * 2 + 1) * self.width + key_head * head_dim;
        &self.slot(pass, row)[start..start + head_dim]
    }

    #[inline(always)]
    fn slot(&self, pass: usize, row: usize) -> &'a [f32] {
        let EarlierPasses { slots, first_slots, ancestors, max_beams, passes, slot_width } =
            self.earlier;
        if pass == passes {
            return &self.current[row * slot_width..][..slot_width];
        }
        let ancestor = ancestors[pass * max_beams + self.first_beam + row] as usize;
        &slots[(first_slots[pass] + ancestor) * slot_width..][..slot_width]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SHAPE: HeadShape = HeadShape { heads: 2, key_heads: 2, head_dim: 3, scale: 1.0 };
    const LAYERS: usize = 2;

    /// Every beam with a copy of all its tokens' slots: what forking means.
    type Copies = Vec<Vec<Vec<f32>>>;

    proptest! {
        #[test]
        fn slots_of_ancestors_equal_copies(
            widths in prop::collection::vec(1_usize..7, 4),
            passes in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 1..7), 1..5),
        ) {
            let widths = &widths[..passes.len()];
            let mut beams =
                BeamKeyValues::new(SHAPE, LAYERS, &Plan::of_passes(1, widths, 1)).unwrap();
            let slots = beams.slots.len() / beams.slot_width();
            prop_assert_eq!(slots, widths.iter().sum::<usize>());
            let (mut copies, mut written): (Copies, f32) = (vec![Vec::new()], 0.0);
            for (pass, picks) in passes.iter().enumerate() {
                let parents: Vec<u32> =
                    picks.iter().take(widths[pass]).map(|p| p.index(copies.len()) as u32).collect();
                copies = parents.iter().map(|&parent| copies[parent as usize].clone()).collect();
                prop_assert_eq!(beams.max_beams_of(pass), widths[pass]);
                beams.fork(&parents, pass);
                let slot_width = beams.slot_width();
                let (earlier, current) = beams.split_at_pass(pass, parents.len());
                for (slot, copy) in current.chunks_exact_mut(slot_width).zip(&mut copies) {
                    slot.iter_mut().for_each(|value| { written += 1.0; *value = written; });
                    copy.push(slot.to_vec());
                }
                let width = SHAPE.key_value_width();
                for layer in 0..LAYERS {
                    let own = OwnPart { earlier, current, first_beam: 0, layer, width };
                    for (row, copy) in copies.iter().enumerate() {
                        prop_assert_eq!(own.passes(), copy.len());
                        for (pass, slot) in copy.iter().enumerate() {
                            for head in 0..SHAPE.key_heads {
                                let (c, at) = (SHAPE.head_dim, layer * 2 * width + head * SHAPE.head_dim);
                                prop_assert_eq!(own.key(pass, row, head, c), &slot[at..at + c]);
                                let at = at + width;
                                prop_assert_eq!(own.value(pass, row, head, c), &slot[at..at + c]);
                            }
                        }
                    }
                }
            }
        }
    }
}
