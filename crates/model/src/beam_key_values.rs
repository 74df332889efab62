//! Keys and values of the beams' own tokens: a slot for every beam of every pass, found by
//! ancestors.
//!
//! Letters: G key/value heads, C values a head, B beams, P decode passes.

use crate::allocation::zeroed;
use crate::head_shape::HeadShape;

/// The beams' own keys and values, exactly a slot for every beam of every pass, and which of them
/// each beam descends from.
///
/// A beam that forks copies nothing: each row keeps the slots of its ancestors. Source: xGR, arXiv
/// 2512.11529, §5.1, which moves slots in place so that a beam's lie side by side.
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
    /// A slot for each beam of each pass, whose most beams are `beams`; `max_beams` is the largest
    /// of them.
    ///
    /// `None` where there is not the memory for it; the bytes of a
    /// [`PlannedBytes`](crate::PlannedBytes) could be counted.
    pub(crate) fn new(
        shape: HeadShape,
        layers: usize,
        max_beams: usize,
        beams: impl ExactSizeIterator<Item = usize>,
    ) -> Option<Self> {
        let width = shape.key_value_width();
        let places = beams.len() * max_beams;
        let mut first_slots: Vec<usize> = zeroed(beams.len() + 1)?;
        let mut slots = 0;
        for (next, beams) in first_slots[1..].iter_mut().zip(beams) {
            slots += beams;
            *next = slots;
        }
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

    /// The passes before pass `pass`, counted from 0, and that pass's slots of the first `rows`
    /// beams.
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

    const SHAPE: HeadShape =
        HeadShape { heads: 2, key_heads: 2, head_dim: 3, scale: 1.0, is_bf16: false };
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
            let most = widths.iter().copied().max().unwrap();
            let mut beams =
                BeamKeyValues::new(SHAPE, LAYERS, most, widths.iter().copied()).unwrap();
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
