//! Plans: steps that keep the matches of each chunk of ranks.

use palmette_mapped::RankSet;

use super::code_set::CodeSet;
use super::scan::{Words, scan};
use crate::columns::codes::Codes;

/// A filter whose values have been looked up.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) must: Vec<Step<'a>>,
    /// `None` where there is nothing that should hold; an empty list holds for no item.
    pub(super) should: Option<Vec<Step<'a>>>,
    pub(super) must_not: Vec<Step<'a>>,
}

/// A condition whose values have been looked up.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// The code is in the set.
    Codes { codes: &'a Codes, set: CodeSet },
    /// The rank is in the set.
    Ranks(RankSet),
    /// At least `count` of the steps hold.
    AtLeast { count: usize, steps: Vec<Step<'a>> },
    /// The plan holds.
    Plan(Plan<'a>),
}

impl Plan<'_> {
    /// Leaves of `wanted`, the ranks of a chunk, those that match.
    pub(super) fn keep(&self, chunk: usize, wanted: &mut Words) {
        let mut hits = [0; RankSet::CHUNK_WORDS];
        for step in &self.must {
            if is_empty(wanted) {
                return;
            }
            step.hits(chunk, wanted, &mut hits);
            *wanted = hits;
        }
        for step in &self.must_not {
            if is_empty(wanted) {
                return;
            }
            step.hits(chunk, wanted, &mut hits);
            wanted.iter_mut().zip(&hits).for_each(|(wanted, hit)| *wanted &= !hit);
        }
        if let Some(should) = &self.should {
            // Only ranks that none has hit yet are asked of the next.
            let mut left = *wanted;
            for step in should {
                if is_empty(&left) {
                    break;
                }
                step.hits(chunk, &left, &mut hits);
                left.iter_mut().zip(&hits).for_each(|(left, hit)| *left &= !hit);
            }
            wanted.iter_mut().zip(&left).for_each(|(wanted, left)| *wanted &= !left);
        }
    }

    fn cost(&self) -> usize {
        self.must
            .iter()
            .chain(self.should.iter().flatten())
            .chain(&self.must_not)
            .map(Step::cost)
            .sum()
    }
}

impl Step<'_> {
    /// Sets `hits` to those of the `wanted` ranks of a chunk for which the step holds.
    fn hits(&self, chunk: usize, wanted: &Words, hits: &mut Words) {
        match self {
            Self::Codes { codes, set } => scan(codes, chunk, set, wanted, hits),
            Self::Ranks(ranks) => {
                *hits = *ranks.chunk_words(chunk);
                hits.iter_mut().zip(wanted).for_each(|(hit, wanted)| *hit &= wanted);
            }
            Self::AtLeast { count, steps } => at_least(*count, steps, chunk, wanted, hits),
            Self::Plan(plan) => {
                *hits = *wanted;
                plan.keep(chunk, hits);
            }
        }
    }

    /// Rough cost, by which steps are ordered.
    pub(super) fn cost(&self) -> usize {
        match self {
            Self::Codes { codes, set } => (1 << codes.width() as usize) * set.cost(),
            Self::Ranks(_) => 0,
            Self::AtLeast { steps, .. } => steps.iter().map(Step::cost).sum(),
            Self::Plan(plan) => plan.cost(),
        }
    }
}

/// Sets `hits` to those of the `wanted` ranks of a chunk for which `count` of the steps hold.
fn at_least(count: usize, steps: &[Step<'_>], chunk: usize, wanted: &Words, hits: &mut Words) {
    if count == 0 || count > steps.len() {
        *hits = if count == 0 { *wanted } else { [0; RankSet::CHUNK_WORDS] };
        return;
    }
    let mut held = vec![0_u16; RankSet::CHUNK_WORDS * 64];
    for step in steps {
        step.hits(chunk, wanted, hits);
        for (word, held) in hits.iter().zip(held.chunks_exact_mut(64)) {
            held.iter_mut().enumerate().for_each(|(bit, held)| *held += (word >> bit & 1) as u16);
        }
    }
    for (hits, held) in hits.iter_mut().zip(held.chunks_exact(64)) {
        let bit = |(bit, &held): (usize, &u16)| u64::from(usize::from(held) >= count) << bit;
        *hits = held.iter().enumerate().map(bit).sum();
    }
}

fn is_empty(words: &Words) -> bool {
    words.iter().fold(0, |any, word| any | word) == 0
}
