//! Memory of an engine on a device, all of it counted before any is taken.
//!
//! Weights, pages, slots and activations are the engine's, shared by the requests that compute
//! together; logits and selection are each reading's own, since they outlive the pass.

use palmette_model::draft::DraftOutline;

use crate::arguments::{Arguments, AttentionItem, AttentionRequest, Extension, PassSizes};
use crate::catalog::SearchSizes;
use crate::selection::{Places, SORTED};
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
/// Limit on a prompt's rows of a pass where others wait. A multiple of a page.
pub(crate) const CHUNK_ROWS: usize = 2048;
/// Limit on the rows whose products are cut into runs that blocks share: more keep a device busy
/// anyway.
pub(crate) const SPLIT_ROWS: usize = 512;
/// Limit on the passes after a prompt.
pub(crate) const MOST_PASSES: usize = 32;
/// Bytes of the sums of beams' attention, where the longest prompts make no more necessary.
const ATTENTION_SUMS: usize = 512 << 20;
/// Limit on the beams of a pass, of all requests.
const MOST_BEAMS: usize = 4096;
/// Passes of beams whose slots are counted on for each request where pages take the rest of a
/// device.
const REQUEST_PASSES: usize = 4;
/// Segments of a live catalog, and items that a request excludes, that are counted on for each.
const REQUEST_SEGMENTS: usize = 8;
const REQUEST_EXCLUDED: usize = 1024;

/// Form of the layers' matrices on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceWeights {
    /// bfloat16, whatever the files have.
    #[default]
    Bf16,
    /// 8 bits with a factor a row, as [`WeightFormat::Int8`](palmette_model::WeightFormat::Int8)
    /// rounds them; embeddings and head in bfloat16.
    Int8,
}

/// Limits of an engine on a device: of its passes, its requests and its memory, and the form of
/// its weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Rows of the largest pass.
    pub batch_rows: usize,
    /// Requests that compute together.
    pub requests: usize,
    /// Beams of a request that memory is kept for, where it is: none for texts.
    pub beams: usize,
    /// Tokens of the longest prompt; none is the model's limit.
    pub prompt_tokens: Option<usize>,
    /// Bytes of device memory to take; none is nine tenths of what is free.
    pub memory: Option<u64>,
    /// True where the keys and values of prompts are kept for later ones that begin alike.
    pub keeps_prefixes: bool,
    /// Form of the layers' matrices.
    pub weights: DeviceWeights,
}

impl Default for DeviceLimits {
    fn default() -> Self {
        Self {
            batch_rows: 8192,
            requests: 16,
            beams: 512,
            prompt_tokens: None,
            memory: None,
            keeps_prefixes: true,
            weights: DeviceWeights::Bf16,
        }
    }
}

/// Sizes of what requests share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) sizes: Sizes,
    /// Rows of the largest pass.
    pub(crate) rows: usize,
    /// Rows of a pass whose attention is merged of runs: beams, and short parts of long prompts.
    pub(crate) merged: usize,
    pub(crate) requests: usize,
    /// Beams of a request whose logits and slots are counted on.
    pub(crate) beams: usize,
    /// Tokens of the longest prompt.
    pub(crate) prompt: usize,
    pub(crate) pages: usize,
    /// Slots of the beams' own tokens.
    pub(crate) slots: usize,
    pub(crate) weights: DeviceWeights,
    /// Sizes of drafts, where there is a head.
    pub(crate) draft: Option<DraftSizes>,
}

/// Regions that requests share, in the order of [`Plan::regions`].
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) keys: Region,
    pub(crate) values: Region,
    pub(crate) own: Region,
    /// Residual stream, f32: `[rows, D]`.
    pub(crate) x: Region,
    /// bf16: `[rows, D]`; nothing where products are in 8 bits.
    pub(crate) normed: Region,
    /// Partial sums of a product, f32.
    pub(crate) sums: Region,
    /// bf16: `[rows, H C]`.
    pub(crate) queries: Region,
    /// bf16: `[rows, H C]`.
    pub(crate) attended: Region,
    /// bf16: `[rows, F]`.
    pub(crate) inner: Region,
    /// Rows of a product in 8 bits: `[rows, widest of D, H C and F]`, and a factor a row, f32.
    pub(crate) integers: Region,
    pub(crate) factors: Region,
    pub(crate) attention_sums: Region,
    pub(crate) attention_statistics: Region,
    /// Rows whose logits are wanted: residual stream, attention, norm.
    pub(crate) head_x: Region,
    pub(crate) head_attended: Region,
    pub(crate) head_normed: Region,
    /// Description of a pass: see [`PassPlaces`].
    pub(crate) pass: Region,
}

impl Plan {
    /// A plan without pages, of which there will be as many as memory is left for.
    pub(crate) fn new(
        sizes: Sizes,
        limits: &DeviceLimits,
        positions: usize,
        draft: Option<DraftSizes>,
    ) -> Self {
        let prompt = limits.prompt_tokens.unwrap_or(positions).clamp(1, positions);
        let rows = limits.batch_rows.max(2 * PAGE);
        let requests = limits.requests.max(1);
        let of_row = prompt.div_ceil(RUN) * sizes.heads * (sizes.head_width + 2) * 4;
        // Beams leave a page of rows to prompts, so that each pass reads some of one that waits.
        let merged = (ATTENTION_SUMS / of_row).clamp(SPLIT_ROWS, MOST_BEAMS).min(rows - PAGE);
        let beams = limits.beams.min(merged);
        let slots = requests * beams * REQUEST_PASSES;
        let weights = limits.weights;
        let pages = 0;
        Self { sizes, rows, merged, requests, beams, prompt, pages, slots, weights, draft }
    }

    /// True where blocks share the runs of a product over so many rows.
    pub(crate) fn splits(rows: usize) -> bool {
        rows <= SPLIT_ROWS
    }

    /// Limit on the rows whose hidden states are wanted, for logits or to be kept.
    pub(crate) fn head_rows(&self) -> usize {
        self.merged + self.requests * self.kept_rows()
    }

    /// Limit on a prompt's last rows that are kept for its reading.
    pub(crate) fn kept_rows(&self) -> usize {
        self.draft.map_or(1, |draft| draft.hidden)
    }

    /// Pages of the longest prompt.
    pub(crate) fn prompt_pages(&self) -> usize {
        self.prompt.div_ceil(PAGE)
    }

    /// Bytes of a page in all layers: keys and values.
    pub(crate) fn page_bytes(&self) -> usize {
        2 * self.sizes.layers * PAGE * self.sizes.key_width() * 2
    }

    /// Bytes of a slot in all layers.
    pub(crate) fn slot_bytes(&self) -> usize {
        self.sizes.layers * 2 * self.sizes.key_width() * 2
    }

    /// Bytes of one layer's pages of keys.
    pub(crate) fn layer_page_bytes(&self) -> usize {
        self.pages * PAGE * self.sizes.key_width() * 2
    }

    /// Bytes of one layer's slots.
    pub(crate) fn layer_slot_bytes(&self) -> usize {
        self.slots * 2 * self.sizes.key_width() * 2
    }

    /// Memory that a request takes at most that is planned for by default.
    pub(crate) fn usual_reading(&self) -> ReadingPlan {
        ReadingPlan::new(&self.sizes, self.beams, self.beams, REQUEST_PASSES)
    }

    /// Memory of a request that drafts, likewise.
    fn usual_draft(&self) -> Option<ReadingPlan> {
        Some(ReadingPlan::of_draft(&self.sizes, self.beams, self.draft?))
    }

    /// Memory of as many such requests as compute together, which each takes when it begins; `None`
    /// where it cannot be counted.
    pub(crate) fn readings(&self) -> Option<Vec<RegionPlan>> {
        let (usual, draft) = (self.usual_reading(), self.usual_draft());
        let of_all = |bytes: usize| bytes.checked_mul(self.requests);
        let (steps, searches) = (usual.region_bytes()?, usual.search_bytes());
        let mut plans = vec![
            region_plan(("logits and selection", of_all(steps)?)),
            region_plan(("whole searches of catalogs", of_all(searches)?)),
        ];
        if let Some(draft) = draft {
            // A request drafts, or has passes of beams.
            let of_draft = draft.bytes()?.saturating_sub(steps.checked_add(searches)?);
            plans.push(region_plan(("drafts, beyond those", of_all(of_draft)?)));
        }
        Some(plans)
    }

    /// Regions of every byte that requests share; `None` where they cannot be counted.
    pub(crate) fn regions(&self) -> Option<Vec<RegionPlan>> {
        let (s, rows, heads) = (&self.sizes, self.rows, self.head_rows());
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
        let pages = product(&[s.layers, self.pages, PAGE, s.key_width(), 2])?;
        let widest_row = s.hidden.max(s.query_width()).max(s.inner);
        let (normed, integers, factors) = match self.weights {
            DeviceWeights::Bf16 => (product(&[rows, s.hidden, 2])?, 0, 0),
            DeviceWeights::Int8 => (0, product(&[rows, widest_row])?, product(&[rows, 4])?),
        };
        let of_runs = product(&[self.prompt.div_ceil(RUN), self.merged, s.heads])?;
        let plans = [
            ("keys of prompts", pages),
            ("values of prompts", pages),
            ("keys and values of beams", product(&[s.layers, self.slots, 2, s.key_width(), 2])?),
            ("residual stream", product(&[rows, s.hidden, 4])?),
            ("normed rows", normed),
            ("sums of products", widest.into_iter().max().unwrap_or(0)),
            ("queries", product(&[rows, s.query_width(), 2])?),
            ("attended rows", product(&[rows, s.query_width(), 2])?),
            ("feed-forward rows", product(&[rows, s.inner, 2])?),
            ("rows in 8 bits", integers),
            ("factors of rows in 8 bits", factors),
            ("sums of attention", product(&[of_runs, s.head_width, 4])?),
            ("statistics of attention", product(&[of_runs, 8])?),
            ("residual stream of the last layer", product(&[heads, s.hidden, 4])?),
            ("attended rows of the last layer", product(&[heads, s.query_width(), 2])?),
            ("normed rows of the last layer", product(&[heads, s.hidden, 2])?),
            (
                "description of a pass",
                Layout::ALL.map(|of| self.places(of).bytes).into_iter().max()?,
            ),
        ];
        Some(plans.map(region_plan).to_vec())
    }

    /// Places of a description in one of its layouts.
    pub(crate) fn places(&self, layout: Layout) -> PassPlaces {
        PassPlaces::of(self, layout)
    }
}

fn product(factors: &[usize]) -> Option<usize> {
    factors.iter().try_fold(1_usize, |all, &factor| all.checked_mul(factor))
}

/// Bytes of two tables of the beams' ancestors in all passes.
pub(crate) fn ancestor_bytes(passes: usize, rows: usize) -> usize {
    2 * passes * rows * 4
}

/// A region of nothing has no address of its own.
fn region_plan((name, bytes): (&'static str, usize)) -> RegionPlan {
    RegionPlan { name, bytes: bytes.max(16) }
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
            integers: next()?,
            factors: next()?,
            attention_sums: next()?,
            attention_statistics: next()?,
            head_x: next()?,
            head_attended: next()?,
            head_normed: next()?,
            pass: next()?,
        })
    }

    /// The regions, each of them.
    pub(crate) fn all(&self) -> [&Region; 17] {
        [
            &self.keys,
            &self.values,
            &self.own,
            &self.x,
            &self.normed,
            &self.sums,
            &self.queries,
            &self.attended,
            &self.inner,
            &self.integers,
            &self.factors,
            &self.attention_sums,
            &self.attention_statistics,
            &self.head_x,
            &self.head_attended,
            &self.head_normed,
            &self.pass,
        ]
    }
}

/// Sizes of a reading's own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadingPlan {
    hidden: usize,
    vocab: usize,
    /// Limit on the beams of a pass, at least 1.
    beams: usize,
    /// Extensions that the widest step keeps; none where nothing is chosen.
    width: usize,
    /// Passes after the prompt.
    passes: usize,
    draft: Option<DraftPlan>,
}

/// Sizes of a draft head that its readings' memory depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DraftSizes {
    /// Hidden states that it reads.
    pub(crate) hidden: usize,
    pub(crate) levels: usize,
    /// Codes of the largest level.
    pub(crate) codes: usize,
    /// True if products move the states.
    pub(crate) has_products: bool,
}

/// Sizes of a reading's drafts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DraftPlan {
    of: DraftSizes,
    /// Rows of a level.
    pub(crate) rows: usize,
}

/// Places of a reading's drafts within their region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DraftPlaces {
    /// i32: numbers of the rows of levels, in turn: `[2]`.
    pub(crate) counts: usize,
    /// Extensions that the rows are, `[rows]`.
    pub(crate) extensions: usize,
    /// End of what is sent, which begins at `counts`.
    pub(crate) sent: usize,
    /// i32: first columns of the rows' logits, 0 each: `[rows]`.
    pub(crate) windows: usize,
    /// bf16: states of two levels, in turn, and what logits are made from, `[rows, D]` each.
    pub(crate) states: [usize; 2],
    pub(crate) inputs: usize,
    /// Partial sums of moved states, f32: `[parts, part rows, D]`.
    pub(crate) sums: usize,
    pub(crate) part_rows: usize,
    pub(crate) bytes: usize,
}

impl DraftSizes {
    pub(crate) fn of(head: &DraftOutline) -> Self {
        let (levels, codes) = (head.shape.levels.len(), head.shape.levels.iter().map(|of| of.1));
        Self {
            hidden: head.num_hidden(),
            levels,
            codes: codes.max().unwrap_or(0) as usize,
            has_products: head.has_transition(0),
        }
    }
}

impl DraftPlan {
    /// Places for states of width `hidden`; `None` where they cannot be counted.
    pub(crate) fn places(&self, hidden: usize) -> Option<DraftPlaces> {
        let mut end = 0_usize;
        let mut take = |factors: &[usize]| {
            let at = end;
            end = end.checked_add(product(factors)?)?.checked_next_multiple_of(256)?;
            Some(at)
        };
        let part_rows = self.rows.min(SPLIT_ROWS);
        // Of few rows each run has a part of its own.
        let few = product(&[part_rows, runs(hidden, hidden)])?;
        let summed = if self.of.has_products { few.max(self.rows) } else { 0 };
        Some(DraftPlaces {
            counts: take(&[2, 4])?,
            extensions: take(&[self.rows, Extension::BYTES])?,
            sent: take(&[0])?,
            windows: take(&[self.rows, 4])?,
            states: [take(&[self.rows, hidden, 2])?, take(&[self.rows, hidden, 2])?],
            inputs: take(&[self.rows, hidden, 2])?,
            sums: take(&[summed, hidden, 4])?,
            part_rows,
            bytes: take(&[0])?,
        })
    }
}

/// Regions of a reading, in the order of [`ReadingPlan::regions`].
#[derive(Clone, Debug)]
pub(crate) struct ReadingMemory {
    /// Last rows of the prompt that are kept: residual stream and its norm.
    pub(crate) last_x: Region,
    pub(crate) last_normed: Region,
    pub(crate) logits: Region,
    pub(crate) logit_statistics: Region,
    /// A step of selection.
    pub(crate) selection: Region,
    /// States of a draft: see [`DraftPlaces`].
    pub(crate) draft: Region,
}

impl ReadingPlan {
    pub(crate) fn new(sizes: &Sizes, beams: usize, width: usize, passes: usize) -> Self {
        let (hidden, vocab, beams) = (sizes.hidden, sizes.vocab, beams.max(1));
        Self { hidden, vocab, beams, width, passes, draft: None }
    }

    /// Sizes of a reading that drafts, this many rows a level; its prompt may go on with text.
    pub(crate) fn of_draft(sizes: &Sizes, rows: usize, of: DraftSizes) -> Self {
        let rows = rows.max(1);
        Self { draft: Some(DraftPlan { of, rows }), ..Self::new(sizes, 1, rows, 0) }
    }

    pub(crate) fn draft(&self) -> Option<DraftPlan> {
        self.draft
    }

    /// Places of a draft; none where nothing is drafted, or they cannot be counted.
    pub(crate) fn draft_places(&self) -> Option<DraftPlaces> {
        self.draft?.places(self.hidden)
    }

    /// Rows and columns of the steps of the decoder, and of a draft: none of none.
    fn steps(&self) -> [(usize, usize); 2] {
        [(self.beams, self.vocab), self.draft.map_or((0, 0), |draft| (draft.rows, draft.of.codes))]
    }

    /// Places of its largest step of selection.
    pub(crate) fn selection(&self) -> Places {
        let [decoder, (rows, codes)] = self.steps();
        let decoder = Places::new(decoder.0, decoder.1, self.width);
        // A mask's words begin and end at multiples of 32 tokens.
        let draft = Places::new(rows, codes + 62, self.width);
        if draft.bytes() > decoder.bytes() { draft } else { decoder }
    }

    /// Regions of every byte; `None` where they cannot be counted.
    pub(crate) fn regions(&self) -> Option<Vec<RegionPlan>> {
        let kept = self.draft.map_or(1, |draft| draft.of.hidden);
        let [mut logits, mut statistics] = [0, 0];
        for (rows, columns) in self.steps() {
            let tiles = columns.div_ceil(TILE) + 1;
            logits = logits.max(product(&[rows, columns, 4])?);
            statistics = statistics.max(product(&[rows, tiles, 8])?);
        }
        let draft = match self.draft {
            None => 0,
            Some(draft) => draft.places(self.hidden)?.bytes,
        };
        let plans = [
            ("last rows", product(&[kept, self.hidden, 4])?),
            ("last normed rows", product(&[kept, self.hidden, 2])?),
            ("logits", logits),
            ("statistics of logits", statistics),
            ("selection", if self.width == 0 { 0 } else { self.selection().bytes() }),
            ("states of a draft", draft),
        ];
        Some(plans.map(region_plan).to_vec())
    }

    /// Bytes of all of them; `None` where they cannot be counted.
    pub(crate) fn region_bytes(&self) -> Option<usize> {
        self.regions()?.iter().try_fold(0_usize, |all, region| all.checked_add(region.bytes))
    }

    /// Bytes of its whole searches of a catalog, whose levels' codes are as many as there are
    /// tokens at most: taken with the first.
    pub(crate) fn search_bytes(&self) -> usize {
        let levels = self.draft.map_or(self.passes + 1, |draft| draft.of.levels);
        let width = self.width.max(self.beams).min(SORTED);
        let (codes, widths) = (vec![self.vocab as u32; levels], vec![width; levels]);
        let (segments, excluded) = (REQUEST_SEGMENTS, REQUEST_EXCLUDED);
        let search = SearchSizes { segments, excluded, codes: &codes, widths: &widths };
        search.bytes() + ancestor_bytes(self.passes, self.beams)
    }

    /// Bytes of both; `None` where they cannot be counted.
    pub(crate) fn bytes(&self) -> Option<usize> {
        self.region_bytes()?.checked_add(self.search_bytes())
    }
}

impl ReadingMemory {
    /// Names the regions that a driver took for a plan.
    pub(crate) fn new(regions: Vec<Region>) -> Option<Self> {
        let mut regions = regions.into_iter();
        let mut next = || regions.next();
        Some(Self {
            last_x: next()?,
            last_normed: next()?,
            logits: next()?,
            logit_statistics: next()?,
            selection: next()?,
            draft: next()?,
        })
    }
}

/// Layouts of a pass's description: that of few rows is short, so that it is soon on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Few,
    Many,
}

impl Layout {
    pub(crate) const ALL: [Self; 2] = [Self::Few, Self::Many];

    /// The layout of so many rows.
    pub(crate) fn of(rows: usize) -> Self {
        if Plan::splits(rows) { Self::Few } else { Self::Many }
    }
}

/// Places of a pass's description within its region.
///
/// Everything before `ancestors` is sent whole; of ancestors and items, what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PassPlaces {
    /// Limit on the rows that are merged of runs; the stride of ancestors and of sums.
    pub(crate) merged: usize,
    pub(crate) sizes: usize,
    /// i32 each: `[rows]`.
    pub(crate) tokens: usize,
    pub(crate) positions: usize,
    pub(crate) destinations: usize,
    pub(crate) visible: usize,
    pub(crate) own_tokens: usize,
    /// i32: `[head rows]`: the row of each.
    pub(crate) taken: usize,
    /// i32: `[head rows + requests]`: first column of each one's logits.
    pub(crate) windows: usize,
    /// i32: `[requests]`: number of each one's rows whose logits are wanted.
    pub(crate) counts: usize,
    /// i32: `[requests, kept rows]`: a prompt's rows that are kept, among the head rows.
    pub(crate) lasts: usize,
    pub(crate) requests: usize,
    /// i32: `[requests, pages of the longest prompt]`.
    pub(crate) pages: usize,
    /// i32: `[passes, merged]`.
    pub(crate) ancestors: usize,
    pub(crate) items: usize,
    pub(crate) bytes: usize,
}

impl PassPlaces {
    fn of(plan: &Plan, layout: Layout) -> Self {
        let sizes = &plan.sizes;
        let (rows, merged) = match layout {
            Layout::Few => (plan.rows.min(SPLIT_ROWS), plan.merged.min(SPLIT_ROWS)),
            Layout::Many => (plan.rows, plan.merged),
        };
        let mut end = 0;
        let mut take = |bytes: usize| {
            let at = end;
            end = (end + bytes).next_multiple_of(64);
            at
        };
        let group = sizes.heads / sizes.key_heads;
        let tiles = |rows: usize| (rows * group).div_ceil(ATTENTION_ROWS) + plan.requests;
        let items = tiles(rows) + tiles(merged) * plan.prompt.div_ceil(RUN);
        Self {
            merged,
            sizes: take(PassSizes::BYTES),
            tokens: take(rows * 4),
            positions: take(rows * 4),
            destinations: take(rows * 4),
            visible: take(rows * 4),
            own_tokens: take(rows * 4),
            taken: take((merged + plan.requests * plan.kept_rows()) * 4),
            windows: take((merged + 2 * plan.requests) * 4),
            counts: take(plan.requests * 4),
            lasts: take(plan.requests * plan.kept_rows() * 4),
            requests: take(plan.requests * AttentionRequest::BYTES),
            pages: take(plan.requests * plan.prompt_pages() * 4),
            ancestors: take(MOST_PASSES * merged * 4),
            items: take(items * sizes.key_heads * AttentionItem::BYTES),
            bytes: take(0),
        }
    }
}
