//! Description of a pass: rows, work lists and ancestors, built on the host and read by kernels.
//!
//! Rows that are merged of runs come first (beams, and short parts of long prompts), then parts of
//! prompts whose blocks read all of their keys. The order changes no bit.

use palmette_core::TokenId;

use crate::arguments::{Arguments, AttentionItem, AttentionRequest, PassSizes};
use crate::plan::{ATTENTION_ROWS, Layout, PassPlaces, Plan, RUN};
use crate::request::{DeviceRequest, RowKind};
use crate::{DeviceError, Driver, Event, Pinned, Region, Stream};

/// A request and its part of a pass.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) request: Box<DeviceRequest>,
    /// Rows of the part: of a prompt those from `request.read` on, or its beams. None where the
    /// prompt is read already, and other columns of its last row are asked for.
    pub(crate) rows: usize,
    /// True where its attention is merged of runs.
    pub(crate) is_merged: bool,
    /// True where the pass ends what the request asks for.
    pub(crate) is_last: bool,
    /// First of its rows in the pass.
    pub(crate) first_row: usize,
    /// First of its rows among those whose logits are wanted.
    pub(crate) head_row: usize,
    /// Place of its first columns.
    pub(crate) window: usize,
    /// Rows of the product that gives its logits: none where they are among another's.
    pub(crate) product_rows: usize,
}

impl Share {
    pub(crate) fn new(request: Box<DeviceRequest>, rows: usize, is_merged: bool) -> Self {
        let is_last = match request.kind {
            RowKind::Beams => true,
            _ => request.read + rows == request.prompt.len(),
        };
        let (first_row, head_row, window, product_rows) = (0, 0, 0, 0);
        Self { request, rows, is_merged, is_last, first_row, head_row, window, product_rows }
    }

    /// Rows whose hidden states are wanted, for logits or to be kept.
    pub(crate) fn head_rows(&self) -> usize {
        match self.request.kind {
            RowKind::Beams => self.rows,
            RowKind::Draft(_) => self.request.read + self.rows - self.first_kept(),
            RowKind::Prompt => usize::from(self.is_last),
            RowKind::Sequence if self.is_last => self.request.logits_rows,
            RowKind::Sequence => 0,
        }
    }

    /// Rows whose logits are wanted.
    fn logits_rows(&self) -> usize {
        if matches!(self.request.kind, RowKind::Draft(_)) { 0 } else { self.head_rows() }
    }

    /// First row of the prompt, from this part's on, that is kept for the reading.
    fn first_kept(&self) -> usize {
        let first = self.request.prompt.len() - self.request.kind.kept_rows();
        first.clamp(self.request.read, self.request.read + self.rows)
    }

    /// Rows of the part that are kept for the reading, and the place of the first among all that
    /// are; none where it keeps none.
    pub(crate) fn kept(&self) -> Option<(usize, usize)> {
        let (rows, request) = (self.head_rows().min(self.rows), &self.request);
        let is_kept = matches!(request.kind, RowKind::Prompt | RowKind::Draft(_)) && rows > 0;
        let first = || self.first_kept() + request.kind.kept_rows() - request.prompt.len();
        is_kept.then(|| (rows, first()))
    }

    /// Place of its logits in device memory, by which those of one product stand side by side.
    fn logits_place(&self) -> (u64, usize) {
        (self.request.memory.logits.address().0, self.request.logits_row)
    }
}

/// Numbers that the launches of a pass need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PassShape {
    pub(crate) layout: Layout,
    /// True where the rows whose logits are wanted are few.
    pub(crate) has_few_heads: bool,
}

impl PassShape {
    pub(crate) const ALL: [Self; 3] = [
        Self { layout: Layout::Few, has_few_heads: true },
        Self { layout: Layout::Many, has_few_heads: true },
        Self { layout: Layout::Many, has_few_heads: false },
    ];
}

/// Host memory of a pass's description, and the end of the pass that was described last.
#[derive(Debug)]
pub(crate) struct Description {
    fixed: Pinned,
    ancestors: Pinned,
    items: Pinned,
    /// Places of the shares that are of sequences, kept for its memory.
    sequences: Vec<usize>,
    /// After it, all may be written over.
    pub(crate) end: Option<Event>,
}

impl Description {
    pub(crate) fn new(driver: &dyn Driver, plan: &Plan) -> Result<Self, DeviceError> {
        let most = |bytes: fn(&PassPlaces) -> usize| {
            let bytes = Layout::ALL.map(|layout| bytes(&plan.places(layout)));
            bytes.into_iter().max().unwrap_or(0)
        };
        Ok(Self {
            fixed: driver.pinned(most(|places| places.ancestors))?,
            ancestors: driver.pinned(most(|places| places.items - places.ancestors))?,
            items: driver.pinned(most(|places| places.bytes - places.items))?,
            sequences: Vec::with_capacity(plan.requests),
            end: None,
        })
    }

    /// Describes a pass of these shares and sends it, on the stream of passes.
    pub(crate) fn send(
        &mut self,
        driver: &dyn Driver,
        plan: &Plan,
        to: &Region,
        shares: &mut [Share],
    ) -> Result<PassShape, DeviceError> {
        shares.sort_by_key(|share| !share.is_merged);
        let rows: usize = shares.iter().map(|share| share.rows).sum();
        let layout = Layout::of(rows);
        let places = plan.places(layout);
        let group = plan.sizes.heads / plan.sizes.key_heads;
        let mut fixed = Image(self.fixed.bytes()?);
        let mut ancestors = Image(self.ancestors.bytes()?);
        let of_sequences = join_sequences(&mut self.sequences, shares);
        let (mut heads, mut windows) = (of_sequences, of_sequences);
        let (mut row, mut merged, mut passes) = (0, 0, 0);
        for (index, share) in shares.iter_mut().enumerate() {
            share.first_row = row;
            if share.request.kind != RowKind::Sequence {
                (share.head_row, share.window) = (heads, windows);
                share.product_rows = share.logits_rows();
            }
            let (head_rows, logits_rows) = (share.head_rows(), share.logits_rows());
            let kept = share.kept().map_or(0, |(rows, _)| rows);
            let request = &share.request;
            let column = request.columns.start as i32;
            let mut numbers = |place, at: usize, of: &mut dyn Iterator<Item = i32>| {
                fixed.numbers(place + at * 4, of);
            };
            let (first, count) = (row as i32, share.rows as i32);
            match request.kind {
                RowKind::Prompt | RowKind::Sequence | RowKind::Draft(_) => {
                    let begin = request.read as i32;
                    let tokens = &request.prompt[request.read..][..share.rows];
                    numbers(places.tokens, row, &mut tokens.iter().map(number));
                    numbers(places.positions, row, &mut (begin..begin + count));
                    let pages = request.chain.pages();
                    let destination =
                        |at: i32| (pages[at as usize / 64] * 64 + at as u32 % 64) as i32;
                    numbers(places.destinations, row, &mut (begin..begin + count).map(destination));
                    numbers(places.visible, row, &mut (begin + 1..=begin + count));
                    numbers(places.own_tokens, row, &mut (0..count).map(|_| 0));
                    let heads_end = first + count;
                    let taken = head_rows.min(share.rows) as i32;
                    numbers(places.taken, share.head_row, &mut (heads_end - taken..heads_end));
                    let last = index * plan.kept_rows();
                    numbers(places.lasts, last, &mut (heads..heads + kept).map(|row| row as i32));
                    heads += kept;
                }
                RowKind::Beams => {
                    let (prompt, own) = (request.prompt.len() as i32, request.ancestors.passes());
                    let position = prompt + own as i32 - 1;
                    let all = || 0..count;
                    numbers(places.tokens, row, &mut request.beams.iter().map(number));
                    numbers(places.positions, row, &mut all().map(|_| position));
                    let slots = request.ancestors.slots();
                    let written = slots.last().into_iter().flatten();
                    numbers(places.destinations, row, &mut written.map(|slot| !slot));
                    numbers(places.visible, row, &mut all().map(|_| prompt));
                    numbers(places.own_tokens, row, &mut all().map(|_| own as i32));
                    for (pass, slots) in slots.iter().enumerate() {
                        let at = (pass * places.merged + row) * 4;
                        ancestors.numbers(at, slots.iter().copied());
                    }
                    passes = passes.max(own);
                    numbers(places.taken, heads, &mut (first..first + count));
                    heads += share.rows;
                }
            }
            numbers(places.windows, share.window, &mut (0..logits_rows).map(|_| column));
            let counted = if kept > 0 { kept } else { share.product_rows };
            numbers(places.counts, index, &mut [counted as i32].into_iter());
            let first_page = index * plan.prompt_pages();
            let pages = request.chain.pages().iter().map(|&page| page as i32);
            numbers(places.pages, first_page, &mut { pages });
            let described =
                AttentionRequest { first_row: first, rows: count, first_page: first_page as i32 };
            fixed.structs(places.requests + index * AttentionRequest::BYTES, &[described]);
            if request.kind != RowKind::Sequence {
                windows += logits_rows;
            }
            row += share.rows;
            merged = if share.is_merged { row } else { merged };
        }
        let mut items = Image(self.items.bytes()?);
        let mut count = 0;
        // Prompts first, the last tiles of a prompt before the others: they see the most keys.
        for (index, share) in shares.iter().enumerate().rev() {
            let visible = match share.request.kind {
                RowKind::Beams => share.request.prompt.len(),
                _ => share.request.read + share.rows,
            };
            let runs = match share.is_merged {
                true => 0..visible.div_ceil(RUN) as i32,
                false => -1..0,
            };
            for tile in (0..(share.rows * group).div_ceil(ATTENTION_ROWS)).rev() {
                for key_head in 0..plan.sizes.key_heads as i32 {
                    for run in runs.clone() {
                        let (request, first_row) = (index as i32, (tile * ATTENTION_ROWS) as i32);
                        let item = AttentionItem { request, key_head, first_row, run };
                        items.structs(count * AttentionItem::BYTES, &[item]);
                        count += 1;
                    }
                }
            }
        }
        let sizes = PassSizes {
            rows: row as i32,
            head_rows: heads as i32,
            items: count as i32,
            merge_rows: merged as i32,
            first_merge: 0,
        };
        fixed.structs(places.sizes, &[sizes]);
        let write = |at, from: &mut Pinned, bytes| match bytes {
            0 => Ok(()),
            _ => driver.write(Stream::Compute, to, at, from, bytes),
        };
        write(0, &mut self.fixed, places.ancestors)?;
        write(places.ancestors, &mut self.ancestors, passes * places.merged * 4)?;
        write(places.items, &mut self.items, count * AttentionItem::BYTES)?;
        Ok(PassShape { layout, has_few_heads: layout == Layout::Few || Plan::splits(heads) })
    }
}

/// Gives the rows of sequences whose logits are wanted the first places among those of a pass, in
/// the order of their logits in memory, so that one product gives all that stand side by side
/// there; returns their number.
fn join_sequences(order: &mut Vec<usize>, shares: &mut [Share]) -> usize {
    let is_wanted =
        |share: &Share| share.request.kind == RowKind::Sequence && share.head_rows() > 0;
    order.clear();
    order.extend((0..shares.len()).filter(|&at| is_wanted(&shares[at])));
    order.sort_unstable_by_key(|&at| shares[at].logits_place());
    let (mut rows, mut first) = (0, None::<usize>);
    for &at in &*order {
        let (place, count) = (shares[at].logits_place(), shares[at].head_rows());
        (shares[at].head_row, shares[at].window) = (rows, rows);
        let end = |of: &Share| (of.logits_place().0, of.logits_place().1 + of.product_rows);
        match first.filter(|&of| end(&shares[of]) == place) {
            Some(of) => shares[of].product_rows += count,
            None => {
                shares[at].product_rows = count;
                first = Some(at);
            }
        }
        rows += count;
    }
    rows
}

fn number(token: &TokenId) -> i32 {
    token.0 as i32
}

/// Bytes as kernels read them.
struct Image<'a>(&'a mut [u8]);

impl Image<'_> {
    fn numbers(&mut self, at: usize, numbers: impl IntoIterator<Item = i32>) {
        let to = self.0[at..].chunks_exact_mut(4);
        to.zip(numbers).for_each(|(to, number)| to.copy_from_slice(&number.to_le_bytes()));
    }

    fn structs<A: Arguments>(&mut self, at: usize, items: &[A]) {
        let to = self.0[at..].chunks_exact_mut(A::BYTES);
        to.zip(items).for_each(|(to, item)| item.write(to));
    }
}
