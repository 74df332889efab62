//! Memory of a reading on a device, all of it counted before any is taken.

use crate::arguments::{Arguments, AttentionItem, AttentionRequest, PassSizes};
use crate::selection::Places;
use crate::sizes::{Sizes, runs};
use crate::{Region, RegionPlan};

/// Keys of a page.
pub(crate) const PAGE: usize = 64;
/// Keys of a run: attention sums each from zero.
pub(crate) const RUN: usize = 512;
/// Rows of a tile of attention.
pub(crate) const ATTENTION_ROWS: usize = 128;
/// Columns of a tile of a product.
pub(crate) const TILE: usize = 128;
/// Limit on the rows of a pass over a prompt; longer ones are read in parts. A multiple of a page.
pub(crate) const PROMPT_ROWS: usize = 2048;
/// Limit on the rows whose products are cut into runs that blocks share: more keep a device busy
/// anyway.
const SPLIT_ROWS: usize = 512;

/// Sizes of one reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) sizes: Sizes,
    /// Tokens of the longest prompt.
    pub(crate) prompt: usize,
    /// Limit on the beams of each pass after it.
    pub(crate) beams: Vec<usize>,
    /// Extensions that the widest step keeps.
    pub(crate) width: usize,
}

/// Regions of a reading, in the order of [`Plan::regions`].
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) keys: Region,
    pub(crate) values: Region,
    pub(crate) own: Region,
    /// Residual stream, f32: `[rows, D]`.
    pub(crate) x: Region,
    /// bf16: `[rows, D]`.
    pub(crate) normed: Region,
    /// Partial sums of a product, f32.
    pub(crate) sums: Region,
    /// bf16: `[rows, H C]`.
    pub(crate) queries: Region,
    /// bf16: `[rows, H C]`.
    pub(crate) attended: Region,
    /// bf16: `[rows, F]`.
    pub(crate) inner: Region,
    pub(crate) attention_sums: Region,
    pub(crate) attention_statistics: Region,
    /// Last row of the prompt: residual stream and its norm.
    pub(crate) last_x: Region,
    pub(crate) last_normed: Region,
    pub(crate) logits: Region,
    pub(crate) logit_statistics: Region,
    /// Description of a pass: see [`PassPlaces`].
    pub(crate) pass: Region,
    /// A step of selection.
    pub(crate) selection: Region,
}

impl Plan {
    /// Rows of the largest pass.
    pub(crate) fn rows(&self) -> usize {
        self.prompt.min(PROMPT_ROWS).max(self.most_beams())
    }

    /// Rows of the largest pass after the prompt; 1 where there is none.
    pub(crate) fn most_beams(&self) -> usize {
        self.beams.iter().copied().max().unwrap_or(0).max(1)
    }

    pub(crate) fn pages(&self) -> usize {
        self.prompt.div_ceil(PAGE)
    }

    /// Slots of the beams' own tokens.
    pub(crate) fn slots(&self) -> usize {
        self.beams.iter().sum()
    }

    /// True where blocks share the runs of a product over so many rows.
    pub(crate) fn splits(rows: usize) -> bool {
        rows <= SPLIT_ROWS
    }

    /// Bytes of one layer's pages of keys.
    pub(crate) fn layer_page_bytes(&self) -> usize {
        self.pages() * PAGE * self.sizes.key_width() * 2
    }

    /// Bytes of one layer's slots.
    pub(crate) fn layer_slot_bytes(&self) -> usize {
        self.slots() * 2 * self.sizes.key_width() * 2
    }

    /// Regions of every byte on the device; `None` where they cannot be counted.
    pub(crate) fn regions(&self) -> Option<Vec<RegionPlan>> {
        let s = &self.sizes;
        let product = |factors: &[usize]| {
            factors.iter().try_fold(1_usize, |all, &factor| all.checked_mul(factor))
        };
        let (rows, beams) = (self.rows(), self.most_beams());
        // Of few rows each run has a part of its own.
        let parts = |n: usize, k: usize| {
            let few = rows.min(SPLIT_ROWS).checked_mul(runs(n, k))?.max(rows);
            product(&[few, n, 4])
        };
        let widest = [
            parts(s.qkv_width(), s.hidden)?,
            parts(s.hidden, s.query_width())?,
            parts(s.hidden, s.inner)?,
        ];
        let pages = product(&[s.layers, self.pages(), PAGE, s.key_width(), 2])?;
        let of_runs = product(&[self.prompt.div_ceil(RUN), beams, s.heads])?;
        let tiles = s.vocab.div_ceil(TILE) + 1;
        let plans = [
            ("prompt keys", pages),
            ("prompt values", pages),
            ("own keys and values", product(&[s.layers, self.slots(), 2, s.key_width(), 2])?),
            ("residual stream", product(&[rows, s.hidden, 4])?),
            ("normed rows", product(&[rows, s.hidden, 2])?),
            ("sums of products", widest.into_iter().max().unwrap_or(0)),
            ("queries", product(&[rows, s.query_width(), 2])?),
            ("attended", product(&[rows, s.query_width(), 2])?),
            ("feed-forward rows", product(&[rows, s.inner, 2])?),
            ("sums of attention", product(&[of_runs, s.head_width, 4])?),
            ("statistics of attention", product(&[of_runs, 8])?),
            ("last row", product(&[s.hidden, 4])?),
            ("last normed row", product(&[s.hidden, 2])?),
            ("logits", product(&[beams, s.vocab, 4])?),
            ("statistics of logits", product(&[beams, tiles, 8])?),
            ("pass", PassPlaces::of(self).bytes),
            ("selection", Places::new(beams, s.vocab, self.width).bytes()),
        ];
        // A region of nothing has no address of its own.
        Some(plans.map(|(name, bytes)| RegionPlan { name, bytes: bytes.max(16) }).to_vec())
    }
}

impl Memory {
    /// Names the regions that a driver took for a plan.
    pub(crate) fn new(regions: Vec<Region>) -> Option<Self> {
        let mut regions = regions.into_iter();
        let mut next = || regions.next();
        Some(Self {
            keys: next()?,
            values: next()?,
            own: next()?,
            x: next()?,
            normed: next()?,
            sums: next()?,
            queries: next()?,
            attended: next()?,
            inner: next()?,
            attention_sums: next()?,
            attention_statistics: next()?,
            last_x: next()?,
            last_normed: next()?,
            logits: next()?,
            logit_statistics: next()?,
            pass: next()?,
            selection: next()?,
        })
    }
}

/// Places of a pass's description within its region, for the largest pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PassPlaces {
    pub(crate) sizes: usize,
    /// i32 each: `[rows]`.
    pub(crate) tokens: usize,
    pub(crate) positions: usize,
    pub(crate) destinations: usize,
    pub(crate) visible: usize,
    pub(crate) own_tokens: usize,
    /// i32: first column of each row's logits.
    pub(crate) windows: usize,
    /// i32: the row whose logits are wanted of a prompt's.
    pub(crate) taken: usize,
    /// i32: `[passes, most beams]`.
    pub(crate) ancestors: usize,
    pub(crate) requests: usize,
    /// i32: `[pages]`.
    pub(crate) pages: usize,
    pub(crate) items: usize,
    pub(crate) bytes: usize,
}

impl PassPlaces {
    pub(crate) fn of(plan: &Plan) -> Self {
        let (rows, sizes) = (plan.rows(), &plan.sizes);
        let mut end = 0;
        let mut take = |bytes: usize| {
            let at = end;
            end = (end + bytes).next_multiple_of(64);
            at
        };
        let group = sizes.heads / sizes.key_heads;
        let tiles = (rows * group).div_ceil(ATTENTION_ROWS) * sizes.key_heads;
        let of_beams = (plan.most_beams() * group).div_ceil(ATTENTION_ROWS) * sizes.key_heads;
        let items = tiles.max(of_beams * plan.prompt.div_ceil(RUN));
        Self {
            sizes: take(PassSizes::BYTES),
            tokens: take(rows * 4),
            positions: take(rows * 4),
            destinations: take(rows * 4),
            visible: take(rows * 4),
            own_tokens: take(rows * 4),
            windows: take(rows * 4),
            taken: take(4),
            ancestors: take(plan.beams.len() * plan.most_beams() * 4),
            requests: take(AttentionRequest::BYTES),
            pages: take(plan.pages() * 4),
            items: take(items * AttentionItem::BYTES),
            bytes: end,
        }
    }
}
