//! Deferred reductions: they pop below what was read of a stack, and resume when more is read.
//!
//! On a stack of which only the top is known, tokens go on as far as the parser shifts their lexemes. Where it would reduce by a rule that
//! pops more than is known, what comes then is *pending*: where the tokens are, the head of the rule, and how many states are
//! missing. As these are read, what is pending goes on, and ends or is pending again. It is little once the first
//! states are read, brackets that close one after the other mostly, and the same for many stacks. What each part of it finds is
//! kept by itself ("Precomputing grammar masks": templates that pop, composed).

use super::Unread;
use super::level::{ExceptId, Fixed, Found, Growing, Level, Place};
use super::lexemes::LexemeId;
use super::tails::TailId;
use super::tops::Unfinished;
use crate::lr::StateId;
use crate::masks::interned::{GrowingMap, Interned};
use crate::{NonterminalId, TerminalId};

/// Where tokens are when the parser reduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum At {
    Place(Place),
    /// Before their first byte, in a terminal's lexeme, of which this is left.
    Within(LexemeId, TerminalId),
}

/// What goes on once a reduction is done that pops more of the stack than is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Pending {
    pub(super) at: At,
    pub(super) reduction: Unfinished,
}

/// What is pending together; equal numbers are equal sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PendingId(u32);

/// What becomes of something pending once a state is read.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// What is found.
    pub(super) tails: Box<[TailId]>,
    pub(super) pending: PendingId,
}

/// What is pending in a grammar, and what becomes of it.
#[derive(Debug, Default)]
pub(super) struct PendingSets {
    /// Ascending.
    sets: Interned<Box<[Pending]>>,
    /// With the state that is missing.
    steps: GrowingMap<(PendingId, StateId), Step>,
    /// With what a rule's head goes on.
    reduced: GrowingMap<(At, NonterminalId, StateId), (TailId, PendingId)>,
    bytes: usize,
}

impl Pending {
    /// What is left to be read after some states that make no difference.
    pub(super) fn after(self, read: u32) -> Self {
        let Unfinished { head, missing } = self.reduction;
        Self { reduction: Unfinished { head, missing: missing - read }, ..self }
    }

    /// The same at a place of which some tokens do not count.
    pub(super) fn without(self, except: Option<ExceptId>) -> Self {
        match self.at {
            At::Place(place) if except.is_some() => {
                Self { at: At::Place(Place { except, ..place }), ..self }
            }
            _ => self,
        }
    }
}

impl PendingSets {
    /// About how much memory they take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.sets.memory_bytes()
            + self.steps.memory_bytes()
            + self.reduced.memory_bytes()
            + self.bytes
    }

    pub(super) fn get(&self, id: PendingId) -> &[Pending] {
        self.sets.get(id.0)
    }

    /// The number of a set, ascending, and how many states are [missing](Self::missing).
    pub(super) fn intern(&mut self, set: Box<[Pending]>) -> (PendingId, u32) {
        let bytes = size_of_val(&*set);
        let (number, is_new) = self.sets.intern(set);
        self.bytes += if is_new { bytes } else { 0 };
        let id = PendingId(number);
        (id, self.missing(id))
    }

    /// Of so many states only the last decides how a set goes on; 0 where it is empty.
    pub(super) fn missing(&self, id: PendingId) -> u32 {
        self.get(id).iter().map(|pending| pending.reduction.missing).min().unwrap_or(0)
    }
}

impl Growing<'_, '_> {
    /// What is found once the state is read that decides how something pending goes on, and what is pending then.
    pub(super) fn step(
        &mut self,
        fixed: Fixed<'_>,
        pending: PendingId,
        state: StateId,
    ) -> Result<Step, Unread> {
        if let Some(known) = self.tails.pending.steps.get(&(pending, state)) {
            return Ok(known.clone());
        }
        let set: Box<[Pending]> = self.tails.pending.get(pending).into();
        let known = self.tails.pending.missing(pending);
        let (mut tails, mut rest) = (Vec::new(), Vec::new());
        for pending in set {
            if pending.reduction.missing > known {
                rest.push(pending.after(known));
                continue;
            }
            let (at, except) = match pending.at {
                At::Place(place) => (At::Place(Place { except: None, ..place }), place.except),
                at @ At::Within(..) => (at, None),
            };
            let (mut tail, after) = self.reduced(fixed, at, pending.reduction.head, state)?;
            if let Some(except) = except {
                tail = self.tails.without(tail, except, fixed.pieces);
            }
            if tail != TailId::NOTHING {
                tails.push(tail);
            }
            let after = self.tails.pending.get(after).iter();
            rest.extend(after.map(|pending| pending.without(except)));
        }
        tails.sort_unstable();
        tails.dedup();
        rest.sort_unstable();
        rest.dedup();
        let sets = &mut self.tails.pending;
        let (rest, _) = sets.intern(rest.into());
        let found = Step { tails: tails.into(), pending: rest };
        sets.bytes += size_of_val(&*found.tails);
        sets.steps.insert((pending, state), found.clone());
        Ok(found)
    }

    /// How tokens go on once a rule's head is on top of a state.
    fn reduced(
        &mut self,
        fixed: Fixed<'_>,
        at: At,
        head: NonterminalId,
        state: StateId,
    ) -> Result<(TailId, PendingId), Unread> {
        if let Some(&known) = self.tails.pending.reduced.get(&(at, head, state)) {
            return Ok(known);
        }
        let Found { tail, pending } =
            Level::on(fixed, self.reborrow(), state).read_reduced(at, head)?;
        let (pending, _) = self.tails.pending.intern(pending);
        let found = (self.tails.intern(tail), pending);
        self.tails.pending.reduced.insert((at, head, state), found);
        Ok(found)
    }
}
