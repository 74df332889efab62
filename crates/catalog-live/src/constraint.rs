//! A snapshot as a constraint over a model's tokens.

use std::convert::Infallible;
use std::sync::Arc;

use palmette_catalog::index::{ItemSet, MaskTarget, PartScratch};
use palmette_catalog::{CatalogState, CodeTokens, LevelSpelling, TokensError};
use palmette_catalog_filter::{Filter, FilterError};
use palmette_core::{
    CommitAllError, CommitError, Constraint, MaskWindow, RollbackError, TokenId, mask,
};

use crate::gathered::{Gathered, GatheredParts};
use crate::segment::{MAX_SEGMENTS, SegmentView};
use crate::snapshot::{ItemRef, Snapshot, SnapshotItems};

/// The semantic IDs of a snapshot's items, or of some of them, as sequences of a model's tokens.
///
/// It equals a [`CatalogConstraint`](palmette_catalog::CatalogConstraint) over a catalog built from
/// the same items: what may follow a prefix is what may follow it in any segment. Cheap to make and
/// to clone.
#[derive(Clone, Debug)]
pub struct SnapshotConstraint {
    snapshot: Arc<Snapshot>,
    tokens: Arc<CodeTokens>,
    items: Option<Arc<SnapshotItems>>,
}

/// A prefix of semantic IDs: its place in each segment. 136 bytes.
///
/// Where no item that may be returned has the prefix, the part is [`CatalogState::DEAD`]; equal
/// prefixes are thus equal states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotState {
    pub(crate) parts: [CatalogState; MAX_SEGMENTS],
    level: u32,
    /// A bit for each segment: whether the part there is not dead. A step asks a segment only about
    /// the states that have its bit.
    pub(crate) alive: u32,
}

/// Working memory of one thread.
#[derive(Clone, Debug, Default)]
pub struct SnapshotScratch {
    /// The code that each state is moved over.
    codes: Vec<u32>,
    gathered: Gathered,
    parts: PartScratch,
    /// Codes that may follow one state, with the segment and the place there.
    children: Vec<(u32, u32, CatalogState)>,
}

/// A code that no item has, for tokens that spell none.
const NO_CODE: u32 = u32::MAX;

impl SnapshotState {
    /// Codes committed so far.
    pub fn level(&self) -> usize {
        self.level as usize
    }

    /// The place in each segment.
    pub fn parts(&self) -> &[CatalogState; MAX_SEGMENTS] {
        &self.parts
    }

    fn dead(level: usize) -> Self {
        Self { parts: [CatalogState::DEAD; MAX_SEGMENTS], level: level as u32, alive: 0 }
    }

    fn is_dead(&self) -> bool {
        self.alive == 0
    }

    #[inline]
    fn is_alive_in(&self, segment: usize) -> bool {
        self.alive >> segment & 1 == 1
    }

    #[inline]
    fn set_part(&mut self, segment: usize, part: CatalogState) {
        self.parts[segment] = part;
        self.alive &= !(1 << segment);
        self.alive |= u32::from(!part.is_dead()) << segment;
    }
}

impl SnapshotConstraint {
    /// Joins a snapshot with the tokens a model spells it by. Cost: a few look-ups a segment, and
    /// once a segment a pass over its codes where codebooks may be larger than the model's.
    ///
    /// # Errors
    /// When an item has a level or a code without a token: it could never be spelled.
    pub fn new(snapshot: Arc<Snapshot>, tokens: Arc<CodeTokens>) -> Result<Self, TokensError> {
        for view in snapshot.segments() {
            check_tokens(view, &tokens)?;
        }
        Ok(Self { snapshot, tokens, items: None })
    }

    /// Restricts the snapshot to `items`, which alone may be returned. They are a set of this
    /// snapshot. Positions are then those that are reached from its start under the set, and not
    /// those of another.
    ///
    /// # Panics
    /// When they are of a snapshot with another number of segments.
    pub fn with_items(&self, items: Arc<SnapshotItems>) -> Self {
        assert_eq!(items.sets.len(), self.snapshot.segments().len(), "items of another snapshot");
        Self { items: Some(items), ..self.clone() }
    }

    /// Restricts the snapshot to what matches `filter`.
    ///
    /// # Errors
    /// As [`Snapshot::filter`].
    pub fn with_filter(&self, filter: &Filter) -> Result<Self, FilterError> {
        Ok(self.with_items(Arc::new(self.snapshot.filter(filter)?)))
    }

    /// The snapshot.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// The model's tokens.
    pub fn tokens(&self) -> &Arc<CodeTokens> {
        &self.tokens
    }

    /// The items that may be returned; `None` for all.
    pub fn items(&self) -> Option<&Arc<SnapshotItems>> {
        self.items.as_ref()
    }

    /// The items that may be returned and whose whole semantic ID is this prefix, the oldest first.
    pub fn items_at(&self, state: &SnapshotState) -> impl Iterator<Item = ItemRef> + '_ {
        let parts = state.parts;
        self.snapshot.segments().iter().enumerate().flat_map(move |(at, view)| {
            let ranks = match parts[at].is_dead() {
                true => 0..0,
                false => view.segment.catalog().items_at(&parts[at]),
            };
            let items = self.items_of(at);
            let allowed = move |rank: &u64| items.is_none_or(|items| items.ranks().contains(*rank));
            ranks.filter(allowed).map(move |rank| ItemRef { segment: at as u32, rank })
        })
    }

    /// The items of a segment that may be returned; `None` for all.
    fn items_of(&self, segment: usize) -> Option<&ItemSet> {
        match &self.items {
            Some(items) => Some(&items.sets[segment]),
            None => self.snapshot.segments()[segment].live.as_deref(),
        }
    }

    /// The state over `code`; its parts are all dead if nothing has it there.
    fn child(&self, state: &SnapshotState, code: u32) -> SnapshotState {
        let mut next = SnapshotState::dead(state.level() + 1);
        for (at, view) in self.snapshot.segments().iter().enumerate() {
            if !state.is_alive_in(at) {
                continue;
            }
            if let Some(child) = view.segment.catalog().child(&state.parts[at], code)
                && any_in(self.items_of(at), child.ranks())
            {
                next.set_part(at, child);
            }
        }
        next
    }

    /// The first `level` codes of a state.
    fn codes(&self, state: &SnapshotState, level: usize) -> Vec<u32> {
        if state.is_dead() {
            return Vec::new();
        }
        let at = state.alive.trailing_zeros() as usize;
        let catalog = self.snapshot.segments()[at].segment.catalog();
        let mut codes = catalog.codes(state.parts[at].ranks().start);
        codes.truncate(level);
        codes
    }
}

impl Constraint for SnapshotConstraint {
    type State = SnapshotState;
    type Scratch = SnapshotScratch;
    type Error = Infallible;

    fn num_tokens(&self) -> usize {
        self.tokens.num_tokens()
    }

    fn start(&self) -> SnapshotState {
        let mut start = SnapshotState::dead(0);
        for (at, view) in self.snapshot.segments().iter().enumerate() {
            let state = view.segment.catalog().start();
            if any_in(self.items_of(at), state.ranks()) {
                start.set_part(at, state);
            }
        }
        start
    }

    fn fill_mask(
        &self,
        state: &SnapshotState,
        scratch: &mut SnapshotScratch,
        mask: &mut [u32],
    ) -> Result<(), Infallible> {
        self.fill_masks(std::slice::from_ref(state), scratch, mask)
    }

    fn fill_masks(
        &self,
        states: &[SnapshotState],
        scratch: &mut SnapshotScratch,
        masks: &mut [u32],
    ) -> Result<(), Infallible> {
        self.write_masks(states, scratch, (0, mask::num_words(self.num_tokens())), masks);
        Ok(())
    }

    fn fill_window(
        &self,
        states: &[SnapshotState],
        scratch: &mut SnapshotScratch,
        window: &mut MaskWindow,
    ) -> Result<(), Infallible> {
        let runs = states.chunk_by(|a, b| a.level == b.level);
        window.reset(self.tokens.token_range(runs.map(|run| run[0].level())), states.len());
        let columns = (window.first_token(), window.columns().len());
        self.write_masks(states, scratch, columns, window.words_mut());
        Ok(())
    }

    /// Every item below a prefix has a code after it, but for those whose whole ID it is.
    fn goes_on(
        &self,
        state: &SnapshotState,
        _: &mut SnapshotScratch,
    ) -> Result<Option<bool>, Infallible> {
        Ok(Some(self.snapshot.segments().iter().enumerate().any(|(at, view)| {
            let (part, catalog) = (&state.parts[at], view.segment.catalog());
            state.is_alive_in(at)
                && any_in(self.items_of(at), catalog.items_at(part).end..part.ranks().end)
        })))
    }

    fn successors(
        &self,
        state: &SnapshotState,
        scratch: &mut SnapshotScratch,
        mut visit: impl FnMut(TokenId, SnapshotState),
    ) -> Result<(), Infallible> {
        let Some(level) = self.tokens.levels().get(state.level()) else { return Ok(()) };
        let run = match level {
            LevelSpelling::Run(run) => run,
            table @ LevelSpelling::Table(_) => {
                table.in_order(|child| self.merge_successors(state, scratch, child), visit);
                return Ok(());
            }
        };
        let first = run.first_token;
        let next = SnapshotState::dead(state.level() + 1);
        let segments = self.snapshot.segments();
        let mut alive = (0..segments.len()).filter(|&at| state.is_alive_in(at));
        let (Some(only), None) = (alive.next(), alive.next()) else {
            self.merge_successors(state, scratch, |code, next| {
                visit(TokenId(first + code), next);
            });
            return Ok(());
        };
        let index = segments[only].segment.catalog().index();
        index.successors(&[state.parts[only]], self.items_of(only), |_, code, child| {
            let mut next = next;
            next.set_part(only, child);
            visit(TokenId(first + code), next);
        });
        Ok(())
    }

    fn commit(
        &self,
        state: &mut SnapshotState,
        token: TokenId,
        _: &mut SnapshotScratch,
    ) -> Result<(), CommitError> {
        let num_tokens = self.num_tokens();
        if token.index() >= num_tokens {
            return Err(CommitError::UnknownToken { token, num_tokens });
        }
        let next = self.tokens.code(state.level(), token).map(|code| self.child(state, code));
        let next = next.filter(|next| !next.is_dead());
        *state = next.ok_or(CommitError::NotAllowed { token, position: state.level() })?;
        Ok(())
    }

    fn commit_all(
        &self,
        states: &mut [SnapshotState],
        tokens: &[TokenId],
        scratch: &mut SnapshotScratch,
    ) -> Result<(), CommitAllError> {
        assert_eq!(states.len(), tokens.len(), "a token for each state");
        let mut rest = tokens;
        for states in states.chunk_by_mut(|a, b| a.level == b.level) {
            let (tokens, after) = rest.split_at(states.len());
            rest = after;
            let level = states[0].level();
            let code_of = |&token: &TokenId| self.tokens.code(level, token).unwrap_or(NO_CODE);
            scratch.codes.clear();
            scratch.codes.extend(tokens.iter().map(code_of));
            let SnapshotScratch { codes, gathered, parts: scratch, .. } = scratch;
            let segments = self.snapshot.segments();
            gathered.gather(states, segments.len());
            gathered.gather_codes(codes, segments.len());
            // The oldest segment is mostly the largest and waits for memory the longest; what the
            // others read first comes meanwhile.
            for (at, view) in segments.iter().enumerate().skip(1) {
                let GatheredParts { parts, codes, .. } = gathered.parts_mut(at, codes);
                view.segment.catalog().index().prefetch_parts(level, parts, codes);
            }
            for (at, view) in segments.iter().enumerate() {
                let (index, items) = (view.segment.catalog().index(), self.items_of(at));
                let GatheredParts { parts, rows, codes, alive } = gathered.parts_mut(at, codes);
                index.advance_parts(level, parts, codes, items, scratch);
                for (&part, &row) in parts.iter().zip(rows) {
                    states[row as usize].parts[at] = part;
                    alive[row as usize] &= !(u32::from(part.is_dead()) << at);
                }
            }
            let alive = states.iter_mut().zip(gathered.alive());
            alive.for_each(|(state, &alive)| state.alive = alive);
        }
        for (place, (state, &token)) in states.iter_mut().zip(tokens).enumerate() {
            if state.is_dead() {
                return Err(CommitAllError::NotAllowed { place, token });
            }
            state.level += 1;
        }
        Ok(())
    }

    fn rollback(&self, state: &mut SnapshotState, num_tokens: usize) -> Result<(), RollbackError> {
        let level = RollbackError::remaining(state.level(), num_tokens)?;
        let codes = self.codes(state, level);
        *state = codes.iter().fold(self.start(), |state, &code| self.child(&state, code));
        Ok(())
    }

    fn is_accepting(
        &self,
        state: &SnapshotState,
        _: &mut SnapshotScratch,
    ) -> Result<bool, Infallible> {
        Ok(self.snapshot.segments().iter().enumerate().any(|(at, view)| {
            let part = &state.parts[at];
            state.is_alive_in(at)
                && any_in(self.items_of(at), view.segment.catalog().items_at(part))
        }))
    }
}

impl SnapshotConstraint {
    /// Writes all words of the mask rows of states: rows of so many words, whose first bit is that
    /// of a token at or before the tokens of every such level.
    fn write_masks(
        &self,
        states: &[SnapshotState],
        scratch: &mut SnapshotScratch,
        (first_token, words): (u32, usize),
        masks: &mut [u32],
    ) {
        assert_eq!(masks.len(), states.len() * words, "mask rows of {} states", states.len());
        masks.fill(0);
        if words == 0 {
            return;
        }
        let mut rest = masks;
        for states in states.chunk_by(|a, b| a.level == b.level) {
            let (masks, after) = rest.split_at_mut(states.len() * words);
            rest = after;
            let level = states[0].level();
            let first_bit = match self.tokens.levels().get(level) {
                Some(LevelSpelling::Run(run)) => run.first_token - first_token,
                Some(table @ LevelSpelling::Table(_)) => {
                    self.add_masks_by_table(states, table, (first_token, words), masks);
                    continue;
                }
                None => continue,
            };
            let segments = self.snapshot.segments();
            scratch.gathered.gather(states, segments.len());
            for (at, view) in segments.iter().enumerate() {
                let (index, items) = (view.segment.catalog().index(), self.items_of(at));
                let target = MaskTarget { masks: &mut *masks, words_per_row: words, first_bit };
                let (parts, rows) = scratch.gathered.of_segment(at);
                index.add_masks_of_parts(level, parts, rows, items, target);
            }
        }
    }

    /// Sets the bits of what may follow states of a level that is spelled by a table.
    fn add_masks_by_table(
        &self,
        states: &[SnapshotState],
        table: &LevelSpelling,
        (first_token, words): (u32, usize),
        masks: &mut [u32],
    ) {
        for (at, view) in self.snapshot.segments().iter().enumerate() {
            let (index, items) = (view.segment.catalog().index(), self.items_of(at));
            for (row, state) in states.iter().enumerate().filter(|(_, state)| state.is_alive_in(at))
            {
                let row = &mut masks[row * words..][..words];
                index.successors(&[state.parts[at]], items, |_, code, _| {
                    if let Some(TokenId(token)) = table.token(code) {
                        mask::insert(row, TokenId(token - first_token));
                    }
                });
            }
        }
    }

    /// Visits what may follow a state that lies in several segments, in order of the codes.
    fn merge_successors(
        &self,
        state: &SnapshotState,
        scratch: &mut SnapshotScratch,
        mut visit: impl FnMut(u32, SnapshotState),
    ) {
        let children = &mut scratch.children;
        children.clear();
        for (at, view) in self.snapshot.segments().iter().enumerate() {
            if state.is_alive_in(at) {
                let index = view.segment.catalog().index();
                index.successors(&[state.parts[at]], self.items_of(at), |_, code, child| {
                    children.push((code, at as u32, child));
                });
            }
        }
        children.sort_unstable_by_key(|&(code, at, _)| (code, at));
        for same_code in children.chunk_by(|a, b| a.0 == b.0) {
            let mut next = SnapshotState::dead(state.level() + 1);
            for &(_, at, child) in same_code {
                next.set_part(at as usize, child);
            }
            visit(same_code[0].0, next);
        }
    }
}

#[inline]
fn any_in(items: Option<&ItemSet>, ranks: std::ops::Range<u64>) -> bool {
    match items {
        Some(items) => items.ranks().any_in(ranks),
        None => !ranks.is_empty(),
    }
}

/// Fails unless every present item of a segment has a token for each code.
fn check_tokens(view: &SegmentView, tokens: &CodeTokens) -> Result<(), TokensError> {
    let (segment, levels) = (&view.segment, tokens.levels());
    let catalog = segment.catalog();
    let fits = |level: usize| {
        let Some(tokens) = levels.get(level) else { return false };
        let is_within = catalog.index().code_bounds()[level] <= tokens.num_codes()
            || segment.largest_code(level).is_none_or(|code| code < tokens.num_codes());
        let all_codes = |visit: &mut dyn FnMut(u32)| catalog.index().for_each_code(level, visit);
        is_within && tokens.unspelled(all_codes).is_none()
    };
    if (0..catalog.num_levels()).all(fits) {
        return Ok(());
    }
    // Some item of the segment does not fit; it may be one that is gone.
    for rank in view.ranks() {
        let codes = catalog.codes(rank);
        if codes.len() > levels.len() {
            return Err(TokensError::TooManyLevels { catalog: codes.len(), model: levels.len() });
        }
        let wrong = (0..codes.len()).find(|&level| levels[level].token(codes[level]).is_none());
        let Some(level) = wrong else { continue };
        let (code, num_codes) = (codes[level], levels[level].num_codes());
        let item = catalog.id(rank).to_owned();
        return Err(match code < num_codes {
            true => TokensError::UnspelledCode { level, code, item },
            false => TokensError::CodeWithoutToken { level, code, num_codes, item },
        });
    }
    Ok(())
}
