//! Buffers of one request's searches, and the searches made with them.

use std::collections::HashSet;
use std::num::NonZeroUsize;

use palmette_catalog::{CatalogConstraint, CatalogState};
use palmette_catalog_live::{SnapshotConstraint, SnapshotState, ViewItems};
use palmette_core::Constraint;
use palmette_decode::{BeamSearch, Control, Gains, Objective, TopK};
use palmette_model::draft::DraftRun;
use palmette_model::{Reading, ReadingShape};

use crate::backends::{DecoderBackend, DraftBackend, SoughtItems, Verifier, state_of};
use crate::error::RecommendError;
use crate::mode::{EveryCode, Mode, Verification};
use crate::passes::Passes;
use crate::recommended::Recommended;
use crate::recommender::Recommender;
use crate::request::{Planned, Request};
use crate::round_answer::RoundAnswer;
use crate::rules::{BoostedItems, Caps, IdMatch, ItemOrder, Plan};
use crate::shape::Shape;
use crate::terminated_constraint::{EndedState, TerminatedConstraint};
use crate::view::SpelledView;

/// Items that are kept behind an answer at most.
const MAX_AHEAD: usize = 1024;

/// Rows of the decode passes: nothing is read after the last level.
fn beams_read(widths: &[NonZeroUsize]) -> Vec<usize> {
    widths[..widths.len() - 1].iter().map(|width| width.get()).collect()
}

fn widths_max(widths: &[NonZeroUsize]) -> usize {
    widths.iter().map(|width| width.get()).max().unwrap_or(1)
}

#[derive(Debug)]
pub(crate) struct Buffers {
    pub(crate) shape: Shape,
    pub(crate) widths: Vec<NonZeroUsize>,
    /// The widths of a second search; those of the first where there is none.
    pub(crate) widest: Vec<NonZeroUsize>,
    pub(crate) reading: Box<dyn Reading>,
    pub(crate) draft: Option<DraftBuffers>,
    /// Each made with the first request over such a view.
    pub(crate) frozen: Option<Searches<CatalogConstraint>>,
    pub(crate) snapshot: Option<Searches<SnapshotConstraint>>,
    /// Searches where tokens follow an item.
    pub(crate) ended_frozen: Option<Searches<TerminatedConstraint<CatalogConstraint>>>,
    pub(crate) ended_snapshot: Option<Searches<TerminatedConstraint<SnapshotConstraint>>>,
    /// A draft's search where masks do not hold it to the catalog.
    pub(crate) free: Option<BeamSearch<EveryCode>>,
    pub(crate) latest: Latest,
}

/// Buffers of a draft head, and the selection over its logits.
#[derive(Debug)]
pub(crate) struct DraftBuffers {
    /// None where the reading drafts.
    pub(crate) run: Option<DraftRun>,
    pub(crate) top_k: TopK,
}

/// A search, the narrow one before it, and the wider one after it, where there are such.
#[derive(Debug)]
pub(crate) struct Searches<C: Constraint> {
    pub(crate) wide: BeamSearch<C>,
    probe: Option<BeamSearch<C>>,
    widest: Option<BeamSearch<C>>,
    /// The floor of the widest, where that has the latest results.
    widened_above: Option<f32>,
}

/// The search that holds the latest results.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Latest {
    Frozen,
    Snapshot,
    EndedFrozen,
    EndedSnapshot,
    Free,
}

/// A constraint whose accepting states are items.
pub(crate) trait ItemConstraint: Constraint {
    /// The numbers of the items at a state that may be recommended, in the order in which they are.
    fn numbers_at(&self, view: &SpelledView, state: &Self::State) -> impl Iterator<Item = u64>;

    /// True when every item of the view may be recommended.
    fn has_all_items(&self) -> bool;

    fn searches(buffers: &mut Buffers) -> &mut Option<Searches<Self>>
    where
        Self: Sized;

    /// Boosts as gains of this constraint's positions.
    fn gains<'a>(boosted: &'a BoostedItems<'a>) -> &'a dyn Gains<Self::State>;
}

impl ItemConstraint for CatalogConstraint {
    fn numbers_at(&self, _: &SpelledView, state: &CatalogState) -> impl Iterator<Item = u64> {
        self.items_at(state)
    }

    fn has_all_items(&self) -> bool {
        self.items().is_none()
    }

    fn searches(buffers: &mut Buffers) -> &mut Option<Searches<Self>> {
        buffers.latest = Latest::Frozen;
        &mut buffers.frozen
    }

    fn gains<'a>(boosted: &'a BoostedItems<'a>) -> &'a dyn Gains<Self::State> {
        boosted
    }
}

impl ItemConstraint for SnapshotConstraint {
    fn numbers_at(&self, view: &SpelledView, state: &SnapshotState) -> impl Iterator<Item = u64> {
        self.items_at(state).map(|at| view.view().number(at))
    }

    fn has_all_items(&self) -> bool {
        self.items().is_none()
    }

    fn searches(buffers: &mut Buffers) -> &mut Option<Searches<Self>> {
        buffers.latest = Latest::Snapshot;
        &mut buffers.snapshot
    }

    fn gains<'a>(boosted: &'a BoostedItems<'a>) -> &'a dyn Gains<Self::State> {
        boosted
    }
}

impl ItemConstraint for TerminatedConstraint<CatalogConstraint> {
    fn numbers_at(
        &self,
        view: &SpelledView,
        state: &EndedState<CatalogState>,
    ) -> impl Iterator<Item = u64> {
        self.inner().numbers_at(view, &state.inner)
    }

    fn has_all_items(&self) -> bool {
        self.inner().has_all_items()
    }

    fn searches(buffers: &mut Buffers) -> &mut Option<Searches<Self>> {
        buffers.latest = Latest::EndedFrozen;
        &mut buffers.ended_frozen
    }

    fn gains<'a>(boosted: &'a BoostedItems<'a>) -> &'a dyn Gains<Self::State> {
        boosted
    }
}

impl ItemConstraint for TerminatedConstraint<SnapshotConstraint> {
    fn numbers_at(
        &self,
        view: &SpelledView,
        state: &EndedState<SnapshotState>,
    ) -> impl Iterator<Item = u64> {
        self.inner().numbers_at(view, &state.inner)
    }

    fn has_all_items(&self) -> bool {
        self.inner().has_all_items()
    }

    fn searches(buffers: &mut Buffers) -> &mut Option<Searches<Self>> {
        buffers.latest = Latest::EndedSnapshot;
        &mut buffers.ended_snapshot
    }

    fn gains<'a>(boosted: &'a BoostedItems<'a>) -> &'a dyn Gains<Self::State> {
        boosted
    }
}

/// Question of one request, made ready.
#[derive(Clone, Copy)]
pub(crate) struct PreparedRequest<'a> {
    pub(crate) request: &'a Request<'a>,
    /// Mode of its search, decided.
    pub(crate) mode: Mode,
    pub(crate) view: &'a SpelledView,
    pub(crate) plan: &'a Plan<'a>,
}

/// One search of a request: its items, `None` for all, and the number of them that are needed.
#[derive(Clone, Copy)]
pub(crate) struct Round<'a> {
    pub(crate) items: Option<&'a ViewItems>,
    /// Items that other requests may have in common with this one, `None` for all; and the numbers
    /// of those that are not among `items`.
    pub(crate) shared: Option<&'a ViewItems>,
    pub(crate) excluded: &'a [u64],
    pub(crate) need: usize,
    /// Items that the search is to find: those and, maybe, some that come next.
    pub(crate) sought: usize,
    /// False where the prompt has been read.
    pub(crate) is_first: bool,
    pub(crate) order: &'a ItemOrder<'a>,
}

/// Aim of one search: the items that a walk over its results takes.
pub(crate) struct Sought<'a, C: ItemConstraint> {
    pub(crate) objective: Objective<'a, C>,
    pub(crate) of: PreparedRequest<'a>,
    pub(crate) round: Round<'a>,
    /// Caps as they are before the search.
    pub(crate) caps: Option<Caps<'a>>,
}

impl<C: ItemConstraint> Sought<'_, C> {
    /// The answer of the latest search, counted by the caps.
    pub(crate) fn answer(
        &self,
        searches: &Searches<C>,
        caps: &mut Option<Caps<'_>>,
    ) -> RoundAnswer {
        let (search, floor) = (searches.latest(), searches.widened_above);
        let answer = self.answer_of(search, floor, caps);
        let ahead = self.ahead(search, floor, &answer);
        RoundAnswer { ahead, ..answer }
    }

    /// The items behind an answer's that are the first of all that are left, caps aside. Gains of
    /// boosts depend on the items that a search may find, and so does what it finds without those
    /// of an answer: with boosts there are none. Nor with pinned items, which may be others than
    /// those that are recommended.
    fn ahead(
        &self,
        search: &BeamSearch<C>,
        floor: Option<f32>,
        answer: &RoundAnswer,
    ) -> Vec<Recommended> {
        let PreparedRequest { request, plan, .. } = self.of;
        let is_own =
            plan.boosts.is_none() && plan.rules.diversity.is_none() && plan.pins.is_empty();
        if request.page.is_none() || !is_own {
            return Vec::new();
        }
        let taken: HashSet<u64> = answer.items.iter().map(|item| item.number).collect();
        let least = search.missed_at_most().into_iter().chain(floor).reduce(f32::max);
        let found = self.found(search);
        let ranked = self.round.order.ranked(found);
        let proven = ranked.take_while(|item| least.is_none_or(|least| item.score >= least));
        proven.filter(|item| !taken.contains(&item.number)).take(MAX_AHEAD).collect()
    }

    /// The answer of a search, of one above a floor no items that are below: they are found where
    /// others of their ID are above, and may come after items that are not.
    fn answer_of(
        &self,
        search: &BeamSearch<C>,
        floor: Option<f32>,
        caps: &mut Option<Caps<'_>>,
    ) -> RoundAnswer {
        let items = self.walk(search, floor, caps, self.round.need);
        let beam_width = search.widths().last().map_or(0, |width| width.get());
        let (missed_at_most, ahead) = (search.missed_at_most(), Vec::new());
        RoundAnswer { items, missed_at_most, ahead, beam_width }
    }

    /// The items for a device that has the catalog.
    fn sought_items(&self, drafts: bool) -> SoughtItems<'_> {
        let Round { shared: items, excluded, .. } = self.round;
        SoughtItems { view: self.of.view.view(), items, excluded, drafts }
    }

    /// Bound on what an answer misses; `None` where it is proven.
    fn bound(&self, answer: &RoundAnswer) -> Option<f32> {
        let Round { need, items, .. } = self.round;
        let view = self.of.view.view();
        let eligible = items.map_or_else(|| view.num_items(), ViewItems::len);
        answer.shortfall_bound(need, eligible, self.caps.is_some())
    }

    /// The first items of a search's results that are needed and that no cap holds back.
    fn walk(
        &self,
        search: &BeamSearch<C>,
        floor: Option<f32>,
        caps: &mut Option<Caps<'_>>,
        need: usize,
    ) -> Vec<Recommended> {
        let found = self.found(search);
        let is_free =
            |item: &Recommended| caps.as_mut().is_none_or(|caps| caps.count(item.number).is_ok());
        let is_above = |item: &Recommended| floor.is_none_or(|floor| item.score >= floor);
        let ranked = self.round.order.ranked(found).take_while(is_above);
        ranked.filter(is_free).take(need).collect()
    }

    /// The semantic IDs of a search's results.
    fn found<'s>(
        &'s self,
        search: &'s BeamSearch<C>,
    ) -> impl Iterator<Item = IdMatch<impl Iterator<Item = u64> + 's>> + 's {
        let (constraint, view) = (self.objective.constraint, self.of.view);
        search.results().map(move |found| {
            let numbers = constraint.numbers_at(view, found.state);
            IdMatch { score: found.score, gain: found.gain, numbers }
        })
    }

    /// The score of the last item sought; `None` where a search finds too few.
    pub(crate) fn last_sought(&self, search: &BeamSearch<C>) -> Option<f32> {
        let sought = self.round.sought;
        let items = self.walk(search, None, &mut self.caps.clone(), sought);
        items.last().filter(|_| items.len() == sought).map(|item| item.score)
    }
}

impl<C: Constraint> Searches<C> {
    pub(crate) fn new(widths: &[NonZeroUsize]) -> Self {
        let wide = BeamSearch::with_widths(widths);
        Self { wide, probe: None, widest: None, widened_above: None }
    }

    /// The search that has the latest results.
    pub(crate) fn latest(&self) -> &BeamSearch<C> {
        self.widest.as_ref().filter(|_| self.widened_above.is_some()).unwrap_or(&self.wide)
    }

    /// Makes the probe that the mode sends first. Small beside the rest, so that it is no part of
    /// the [`Shape`].
    pub(crate) fn set_probe(&mut self, mode: Mode) {
        let widths = self.wide.widths();
        let width = match mode {
            Mode::Probed(width) => Some(width).filter(|&width| widths.iter().all(|&of| of > width)),
            Mode::Auto | Mode::Beam | Mode::Proven(_) | Mode::Draft(_) => None,
        };
        if self.probe.as_ref().map(|probe| probe.widths()[0]) != width {
            let levels = widths.len();
            self.probe = width.map(|width| BeamSearch::with_widths(&vec![width; levels]));
        }
    }
}

impl Buffers {
    pub(crate) fn new(
        recommender: &Recommender,
        shape: Shape,
        threads: usize,
    ) -> Result<Self, RecommendError> {
        let num_ends = recommender.sought_ends(shape.draft.is_some()).len();
        let (widths, widest_widths) = (shape.steps(num_ends)?, shape.widest_steps(num_ends)?);
        let widest = widths_max(&widest_widths);
        let beams = beams_read(&widest_widths);
        let prompt_tokens = recommender.max_prompt_tokens().saturating_add(shape.free_tokens);
        let draft = match shape.draft {
            None => None,
            Some(_) => {
                let here = recommender.draft_head();
                let run = here.map(|head| DraftRun::new(head, widest, threads));
                Some(DraftBuffers { run, top_k: TopK::with_capacity(widest) })
            }
        };
        let shape_of_reading = reading_shape(recommender, &shape, prompt_tokens, &beams, widest)?;
        let reading = recommender.engine().open(&shape_of_reading, threads)?;
        Ok(Self {
            shape,
            widths,
            widest: widest_widths,
            reading,
            draft,
            frozen: None,
            snapshot: None,
            ended_frozen: None,
            ended_snapshot: None,
            free: None,
            latest: Latest::Frozen,
        })
    }

    /// The memory that [`new`](Self::new) would take, masks of the search included; a draft head's
    /// own buffers are small beside those and left out.
    pub(crate) fn planned(
        recommender: &Recommender,
        shape: &Shape,
        threads: usize,
    ) -> Result<Planned, RecommendError> {
        let num_ends = recommender.sought_ends(shape.draft.is_some()).len();
        let (widths, widest_widths) = (shape.steps(num_ends)?, shape.widest_steps(num_ends)?);
        let widest = widths_max(&widest_widths);
        let beams = beams_read(&widest_widths);
        let prompt_tokens = recommender.max_prompt_tokens().saturating_add(shape.free_tokens);
        let of_reading = reading_shape(recommender, shape, prompt_tokens, &beams, widest)?;
        let reading = recommender.engine().planned_bytes(&of_reading, threads)?;
        let masks = widest.saturating_mul(recommender.mask_words() * size_of::<u32>());
        let widths = widths.iter().map(|width| width.get()).collect();
        Ok(Planned { widths, bytes: reading.saturating_add(masks) })
    }

    /// A search under masks; in mode [`Mode::Proven`] a wider one follows above its last item where
    /// it is not proven. The better of both is the [latest](Searches::latest).
    pub(crate) fn search_in_mode<C: ItemConstraint>(
        &mut self,
        searches: &mut Searches<C>,
        recommender: &Recommender,
        passes: &mut Passes,
        sought: &Sought<'_, C>,
        control: &mut Control<'_>,
    ) -> Result<(), RecommendError> {
        searches.widened_above = None;
        self.search(searches, recommender, passes, sought, control)?;
        if !matches!(sought.of.mode, Mode::Proven(_)) {
            return Ok(());
        }
        let first = sought.answer_of(&searches.wide, None, &mut sought.caps.clone());
        let last = first.items.last().map(|item| item.score);
        let (Some(missed), Some(floor)) = (sought.bound(&first), last) else { return Ok(()) };
        let Self { reading, widest, .. } = self;
        let sought_items = sought.sought_items(false);
        let reading = &mut **reading;
        let backend = &mut DecoderBackend { recommender, reading, passes, sought: sought_items };
        let wider = searches.widest.get_or_insert_with(|| BeamSearch::with_widths(widest));
        match wider.run_above(floor, sought.objective, backend, control) {
            Ok(()) => {}
            // There is an answer: what was broken off is its proof.
            Err(RecommendError::Cancelled) => return Ok(()),
            Err(error) => return Err(error),
        }
        let second = sought.answer_of(wider, Some(floor), &mut sought.caps.clone());
        // Under caps what is proven may be fewer: an item that was missing holds back several.
        let is_better = match sought.bound(&second) {
            None => true,
            Some(bound) => bound < missed && second.items.len() >= first.items.len(),
        };
        searches.widened_above = is_better.then_some(floor);
        Ok(())
    }

    /// A search under masks, by the decoder or the draft head.
    fn search<C: ItemConstraint>(
        &mut self,
        searches: &mut Searches<C>,
        recommender: &Recommender,
        passes: &mut Passes,
        sought: &Sought<'_, C>,
        control: &mut Control<'_>,
    ) -> Result<(), RecommendError> {
        let Self { reading, draft, .. } = self;
        let reading = &mut **reading;
        let Searches { wide, probe, .. } = searches;
        let (objective, Round { sought: most, is_first, .. }) = (sought.objective, sought.round);
        let sought_items = sought.sought_items(draft.is_some());
        if let Some(draft) = draft {
            let sought = Some(sought_items);
            let backend = &mut DraftBackend::<C> {
                recommender,
                reading,
                draft,
                passes,
                sought,
                verifier: None,
            };
            return wide.run_controlled(objective, backend, control);
        }
        let backend = &mut DecoderBackend { recommender, reading, passes, sought: sought_items };
        match probe.as_mut().filter(|probe| is_first && most <= probe.widths()[0].get()) {
            Some(probe) if sought.caps.is_none() => {
                wide.run_after_probe(probe, objective, most, backend, control)
            }
            Some(probe) => {
                let last = |search: &BeamSearch<C>| sought.last_sought(search);
                wide.run_above_probe(probe, objective, last, backend, control)
            }
            None if is_first => wide.run_controlled(objective, backend, control),
            None => wide.run_again(objective, backend, control),
        }
    }

    /// A draft's search over every code, verified at the last level or not at all.
    pub(crate) fn draft_freely<C: ItemConstraint>(
        &mut self,
        recommender: &Recommender,
        passes: &mut Passes,
        constraint: &C,
        PreparedRequest { request, view, .. }: PreparedRequest<'_>,
        round: Round<'_>,
        control: &mut Control<'_>,
    ) -> Result<RoundAnswer, RecommendError> {
        let num_levels = view.view().num_levels();
        let num_tokens = recommender.engine().config().vocab_size;
        let every = EveryCode::new(recommender.format(), num_levels, num_tokens);
        let mut free = self.free.take().unwrap_or_else(|| BeamSearch::with_widths(&self.widths));
        self.latest = Latest::Free;
        let (mut scratch, mut codes) = (C::Scratch::default(), Vec::new());
        let Self { reading, draft, .. } = self;
        let draft = draft.as_mut().ok_or(RecommendError::NoDraftHead)?;
        let verifier = match request.mode {
            Mode::Draft(Verification::Keys) => Some(Verifier {
                constraint,
                scratch: &mut scratch,
                tokens: view.tokens(),
                keys: view.keys()?,
                all_items: constraint.has_all_items(),
                num_levels,
                codes: &mut codes,
            }),
            _ => None,
        };
        let backend = &mut DraftBackend {
            recommender,
            reading: &mut **reading,
            draft,
            passes,
            sought: None,
            verifier,
        };
        let done = free.run_controlled(&every, backend, control);
        let found = free.results().map(|found| {
            let state = state_of(constraint, &mut scratch, found.tokens);
            let numbers: Vec<u64> =
                state.iter().flat_map(|state| constraint.numbers_at(view, state)).collect();
            IdMatch { score: found.score, gain: 0.0, numbers: numbers.into_iter() }
        });
        let beam_width = free.widths().last().map_or(0, |width| width.get());
        let answer = done.map(|()| RoundAnswer {
            items: round.order.ranked(found).take(round.need).collect(),
            ahead: Vec::new(),
            missed_at_most: free.missed_at_most(),
            beam_width,
        });
        self.free = Some(free);
        answer
    }
}

/// Sizes of a reading: of the decoder's passes, or of a draft head's levels after its placeholders.
fn reading_shape<'a>(
    recommender: &Recommender,
    shape: &Shape,
    prompt_tokens: usize,
    beams: &'a [usize],
    widest: usize,
) -> Result<ReadingShape<'a>, RecommendError> {
    if shape.draft.is_none() {
        return Ok(ReadingShape::new(prompt_tokens, beams, widest));
    }
    let head = recommender.draft_outline().ok_or(RecommendError::NoDraftHead)?;
    Ok(ReadingShape::of_draft(prompt_tokens.saturating_add(head.num_placeholders()), widest))
}
