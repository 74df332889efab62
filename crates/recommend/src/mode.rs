//! Modes of finding items: by the decoder's passes, or by a draft head's steps.

use std::convert::Infallible;
use std::num::NonZeroUsize;

use palmette_catalog::LevelSpelling;
use palmette_core::{CommitError, Constraint, MaskWindow, RollbackError, TokenId, mask};
use serde::{Deserialize, Serialize};

use crate::bounds::MAX_BEAM_WIDTH;
use crate::prompt_format::PromptFormat;

/// Method of finding items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// [`Beam`](Self::Beam), and [`Probed`](Self::Probed) where the narrow search is a small part
    /// of it: the same items and scores either way. The probe is half wider than the items wanted
    /// and at least 16, and goes first where every level of the beam is eight times as wide; not
    /// where beams are traced, since those that cannot win are among them.
    #[default]
    Auto,
    /// Beam search with the decoder: a pass over the prompt, then one a level over all beams.
    Beam,
    /// [`Beam`](Self::Beam) search after a narrow one of this width, with the same items and
    /// scores. What cannot beat the last item that the narrow one found is not searched again
    /// ([`run_after_probe`](palmette_decode::BeamSearch::run_after_probe)). Where the beam is wide
    /// and the model knows its mind this saves most of the passes; where a model finds all items
    /// alike, the narrow search is lost. It does not go first where more items are wanted than its
    /// width, or some level of the beam is no wider.
    Probed(NonZeroUsize),
    /// [`Auto`](Self::Auto), and where its answer is not
    /// [proven](crate::Recommendations::is_proven), a second search of this width for what is at
    /// least as good as the last item of the first: beams below it are let go at once, so it is as
    /// wide only where the model finds so many prefixes that likely. Where the control breaks off
    /// the second search, the answer is the first's.
    Proven(NonZeroUsize),
    /// Beam search with a draft head after one pass over the prompt and its placeholders. Scores
    /// are the head's.
    Draft(Verification),
}

/// The least width of a probe, and the factor by which a beam is wider where [`Mode::Auto`] sends
/// one first.
const LEAST_PROBE: usize = 16;
const WIDER: usize = 8;
/// The factor by which the second search of [`Mode::Proven`] is wider, where none is named.
const PROOF: usize = 8;

impl Mode {
    /// Resolves [`Auto`](Self::Auto) for a search of `widths` that is to find `wanted` items, and
    /// looks for `sought`: a probe is as wide as these, where it is a small part of the search for
    /// those.
    pub(crate) fn resolved(
        self,
        widths: &[usize],
        (wanted, sought): (usize, usize),
        is_traced: bool,
    ) -> Self {
        if self != Self::Auto {
            return self;
        }
        let narrowest = widths.iter().copied().min().unwrap_or(0);
        let is_small = Self::probe_width(wanted).get().saturating_mul(WIDER) <= narrowest;
        let probe = Self::probe_width(sought);
        let is_probed = is_small && probe.get() < narrowest && !is_traced;
        if is_probed { Self::Probed(probe) } else { Self::Beam }
    }

    /// Width of a probe for `wanted` items, where none is named.
    pub fn probe_width(wanted: usize) -> NonZeroUsize {
        let width = wanted.saturating_add(wanted / 2).max(LEAST_PROBE);
        NonZeroUsize::new(width).unwrap_or(NonZeroUsize::MIN)
    }

    /// Width of the second search that proves a beam of this width, where none is named.
    pub fn prove_width(beam_width: usize) -> NonZeroUsize {
        let width = beam_width.saturating_mul(PROOF).min(MAX_BEAM_WIDTH);
        NonZeroUsize::new(width).unwrap_or(NonZeroUsize::MIN)
    }

    /// Mode of a request's first search.
    pub(crate) fn first_search(self) -> Self {
        match self {
            Self::Proven(_) => Self::Auto,
            Self::Auto | Self::Beam | Self::Probed(_) | Self::Draft(_) => self,
        }
    }

    /// Width of the search that follows one that is not proven.
    pub(crate) fn second_width(self) -> Option<NonZeroUsize> {
        match self {
            Self::Proven(width) => Some(width),
            Self::Auto | Self::Beam | Self::Probed(_) | Self::Draft(_) => None,
        }
    }

    /// The draft's verification; `None` where the decoder searches.
    pub fn verification(self) -> Option<Verification> {
        match self {
            Self::Draft(verification) => Some(verification),
            Self::Auto | Self::Beam | Self::Probed(_) | Self::Proven(_) => None,
        }
    }
}

/// Way in which drafted semantic IDs are held to the catalog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verification {
    /// The catalog's mask at every level: the search is the exact beam search over the items that
    /// may be recommended.
    #[default]
    Masks,
    /// A free search, and at the last level a look-up of whole IDs: the best extensions that are
    /// items are kept, as NEZHA (WWW 2026), algorithm 3, has it. Beams may be lost on the way to
    /// prefixes that no item has, and then there are fewer items than asked for.
    Keys,
    /// None: items are those of the generated IDs that happen to be one. To see what verification
    /// does.
    None,
}

/// Every sequence of one code a level, as a constraint: what a draft head may say when nothing
/// limits it.
#[derive(Clone, Debug)]
pub(crate) struct EveryCode {
    levels: Vec<LevelSpelling>,
    num_tokens: usize,
}

impl EveryCode {
    /// The first `levels` levels of the format, over a vocabulary of `num_tokens`.
    pub(crate) fn new(format: &PromptFormat, levels: usize, num_tokens: usize) -> Self {
        let levels = format.levels[..levels].iter().map(|level| level.tokens.clone()).collect();
        Self { levels, num_tokens }
    }

    /// Writes a row whose first bit is that of `first_token`.
    fn write_mask(&self, level: usize, first_token: u32, words: &mut [u32]) {
        words.fill(0);
        let Some(at) = self.levels.get(level) else { return };
        let tokens = (0..at.num_codes()).filter_map(|code| at.token(code));
        tokens.for_each(|token| mask::insert(words, TokenId(token.0 - first_token)));
    }

    fn spells(&self, level: usize, token: TokenId) -> bool {
        self.levels.get(level).is_some_and(|at| at.code(token).is_some())
    }
}

impl Constraint for EveryCode {
    /// Codes committed so far.
    type State = usize;
    type Scratch = ();
    type Error = Infallible;

    fn num_tokens(&self) -> usize {
        self.num_tokens
    }

    fn start(&self) -> usize {
        0
    }

    fn fill_mask(&self, state: &usize, (): &mut (), words: &mut [u32]) -> Result<(), Infallible> {
        assert_eq!(words.len(), mask::num_words(self.num_tokens), "words of a mask row");
        self.write_mask(*state, 0, words);
        Ok(())
    }

    /// The states of a step are of one level: its tokens, or those up to the last of several.
    fn fill_window(
        &self,
        states: &[usize],
        (): &mut (),
        window: &mut MaskWindow,
    ) -> Result<(), Infallible> {
        let levels = states.iter().filter_map(|&level| self.levels.get(level));
        let ranges = levels.map(LevelSpelling::token_range).filter(|range| !range.is_empty());
        let range = ranges.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
        window.reset(range.unwrap_or(0..0), states.len());
        let (first_token, words) = (window.first_token(), window.columns().len());
        let rows = window.words_mut().chunks_exact_mut(words.max(1));
        rows.zip(states).for_each(|(row, &level)| self.write_mask(level, first_token, row));
        Ok(())
    }

    fn goes_on(&self, state: &usize, (): &mut ()) -> Result<Option<bool>, Infallible> {
        let level = self.levels.get(*state);
        Ok(Some(level.is_some_and(|level| !level.token_range().is_empty())))
    }

    fn successors(
        &self,
        state: &usize,
        (): &mut (),
        mut visit: impl FnMut(TokenId, usize),
    ) -> Result<(), Infallible> {
        let Some(at) = self.levels.get(*state) else { return Ok(()) };
        let next = state + 1;
        let codes =
            |child: &mut dyn FnMut(u32, usize)| (0..at.num_codes()).for_each(|c| child(c, next));
        at.in_order(codes, &mut visit);
        Ok(())
    }

    fn commit(&self, state: &mut usize, token: TokenId, (): &mut ()) -> Result<(), CommitError> {
        let num_tokens = self.num_tokens;
        if token.index() >= num_tokens {
            return Err(CommitError::UnknownToken { token, num_tokens });
        }
        if !self.spells(*state, token) {
            return Err(CommitError::NotAllowed { token, position: *state });
        }
        *state += 1;
        Ok(())
    }

    fn rollback(&self, state: &mut usize, num_tokens: usize) -> Result<(), RollbackError> {
        *state = RollbackError::remaining(*state, num_tokens)?;
        Ok(())
    }

    fn is_accepting(&self, state: &usize, (): &mut ()) -> Result<bool, Infallible> {
        Ok(*state == self.levels.len())
    }
}

#[cfg(test)]
mod tests {
    use palmette_catalog::TokenTable;
    use palmette_core::TokenMask;

    use super::*;
    use crate::prompt_format::LevelFormat;

    fn format() -> PromptFormat {
        let level = |first_token, num_codes| LevelFormat::run("a", first_token, num_codes);
        let table = TokenTable::new([Some(30), None, Some(21), Some(25)]);
        let table = LevelFormat { prefix: "d".into(), tokens: table.into() };
        let levels = vec![level(2, 4), level(6, 3), level(9, 5), table];
        PromptFormat {
            bos_token: Some(1),
            pad_token: Some(0),
            levels,
            end_tokens: Vec::new(),
            max_history_items: 2,
            history_step: None,
            witnesses: Vec::new(),
        }
    }

    #[test]
    fn a_probe_goes_first_where_it_is_a_small_part() {
        let probed = |width| Mode::Probed(NonZeroUsize::new(width).unwrap());
        for (widths, wanted, expected) in [
            (&[128, 128][..], 10, probed(16)),
            (&[127, 512], 10, Mode::Beam),
            (&[512, 512], 40, probed(60)),
            (&[512, 512], 50, Mode::Beam),
            (&[], 1, Mode::Beam),
        ] {
            assert_eq!(
                Mode::Auto.resolved(widths, (wanted, wanted), false),
                expected,
                "{widths:?}"
            );
            assert_eq!(Mode::Auto.resolved(widths, (wanted, wanted), true), Mode::Beam);
            assert_eq!(Mode::Auto.resolved(widths, (wanted, 1000), false), Mode::Beam);
            assert_eq!(probed(7).resolved(widths, (wanted, wanted), true), probed(7));
        }
    }

    #[test]
    fn every_code_of_a_level_may_follow_and_no_other() {
        palmette_testkit::laws::check(&EveryCode::new(&format(), 4, 40), 1, 20, 6);
        let every = EveryCode::new(&format(), 3, 40);
        let mut mask = TokenMask::new(40);
        let Ok(()) = every.fill_mask(&1, &mut (), mask.as_words_mut());
        assert!(mask.iter().eq((6..9).map(TokenId)));
        assert_eq!([2, 3].map(|state| every.is_accepting(&state, &mut ())), [Ok(false), Ok(true)]);
    }
}
