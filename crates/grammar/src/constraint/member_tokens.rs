//! Members of one set as token sequences: what a search of an item goes through.

use std::convert::Infallible;
use std::sync::Arc;

use palmette_core::{
    Budget, CommitError, Constraint, Cursor, MemberSet, NUMBER_BYTES, RollbackError, SequencePart,
    SlotId, TokenId, mask,
};
use palmette_grammar_masks::PreparedVocabulary;
use palmette_grammar_parser::SlotKind;
use palmette_grammar_parser::recognizer::{MemberPlace, RecognizerError};

use super::{GrammarConstraint, GrammarScratch, GrammarState};

/// The members of a set, each in tokens that end where it does.
///
/// Sequences may be prefixes of others: a state that is accepting may go on.
#[derive(Clone, Debug)]
pub(crate) struct MemberTokens {
    set: Arc<dyn MemberSet>,
    vocabulary: Arc<PreparedVocabulary>,
}

/// Place within a member: cursors after each token, the start first; none of an empty set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberState {
    cursors: Vec<Cursor>,
}

impl MemberTokens {
    fn after(&self, state: &MemberState, token: TokenId) -> Option<Cursor> {
        let last = state.cursors.last()?;
        let spellings = self.vocabulary.spellings().of(self.vocabulary.vocabulary(), token);
        let mut read = spellings.filter_map(|spelling| {
            let (first, rest) = spelling.split_first()?;
            let first = self.set.advance(last, *first)?;
            rest.iter().try_fold(first, |at, &byte| self.set.advance(&at, byte))
        });
        read.next()
    }
}

impl Constraint for MemberTokens {
    type State = MemberState;
    type Scratch = ();
    type Error = Infallible;

    fn num_tokens(&self) -> usize {
        self.vocabulary.vocabulary().num_tokens()
    }

    fn start(&self) -> MemberState {
        MemberState { cursors: self.set.start().into_iter().collect() }
    }

    fn fill_mask(
        &self,
        state: &MemberState,
        (): &mut (),
        mask: &mut [u32],
    ) -> Result<(), Infallible> {
        assert_eq!(mask.len(), mask::num_words(self.num_tokens()), "a mask row");
        mask.fill(0);
        if let Some(at) = state.cursors.last() {
            let (trie, budget) = (self.vocabulary.trie(), &mut Budget::unlimited());
            let filled = self.set.effect(at, trie, 0, mask, &mut Vec::new(), budget);
            filled.expect("an unlimited budget");
        }
        Ok(())
    }

    fn successors(
        &self,
        state: &MemberState,
        (): &mut (),
        mut visit: impl FnMut(TokenId, MemberState),
    ) -> Result<(), Infallible> {
        let mut allowed = vec![0; mask::num_words(self.num_tokens())];
        self.fill_mask(state, &mut (), &mut allowed)?;
        for token in mask::iter(&allowed) {
            if let Some(cursor) = self.after(state, token) {
                let mut next = state.clone();
                next.cursors.push(cursor);
                visit(token, next);
            }
        }
        Ok(())
    }

    fn commit(
        &self,
        state: &mut MemberState,
        token: TokenId,
        (): &mut (),
    ) -> Result<(), CommitError> {
        let (num_tokens, position) = (self.num_tokens(), state.cursors.len().saturating_sub(1));
        if token.index() >= num_tokens {
            return Err(CommitError::UnknownToken { token, num_tokens });
        }
        let next = self.after(state, token).ok_or(CommitError::NotAllowed { token, position })?;
        state.cursors.push(next);
        Ok(())
    }

    fn rollback(&self, state: &mut MemberState, num_tokens: usize) -> Result<(), RollbackError> {
        let committed = state.cursors.len().saturating_sub(1);
        let left = RollbackError::remaining(committed, num_tokens)?;
        if num_tokens > 0 {
            state.cursors.truncate(left + 1);
        }
        Ok(())
    }

    fn is_accepting(&self, state: &MemberState, (): &mut ()) -> Result<bool, Infallible> {
        Ok(state.cursors.last().is_some_and(|at| self.set.member(at).is_some()))
    }
}

impl GrammarConstraint {
    /// The semantic IDs that must come next, to be [searched](Constraint::next_part): where the
    /// allowed tokens, those of `mask`, all begin a member of one slot of codes.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded.
    pub(super) fn next_codes(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
        mask: &[u32],
    ) -> Result<Option<SequencePart>, RecognizerError> {
        let slots = self.recognizer.grammar().slots();
        let is_of_codes = |slot: SlotId| slots[slot.index()].kind == SlotKind::Codes;
        let (Some(position), Some(binding)) = (state.position(), self.binding()) else {
            return Ok(None);
        };
        if state.ended() || !slots.iter().any(|slot| slot.kind == SlotKind::Codes) {
            return Ok(None);
        }
        let reading = &mut scratch.recognizer;
        let begun = self.recognizer.begin_members_after(position, reading)?;
        let begun = begun.iter().flat_map(|begun| begun.branches());
        // At the beginning of a text members have begun with it. One that has ended may be there
        // still: whether it goes on the mask says.
        let members = position.branches().iter().chain(begun);
        let places = members.filter_map(|branch| branch.member.as_ref());
        let mut fresh = places
            .filter(|place| place.set(binding).start().is_some_and(|start| start == place.cursor));
        let Some(first) = fresh.next().filter(|place| is_of_codes(place.slot)) else {
            return Ok(None);
        };
        let set = first.shared_set(binding);
        let is_other = |place: &Arc<MemberPlace>| {
            place.slot != first.slot || !Arc::ptr_eq(&place.shared_set(binding), &set)
        };
        if fresh.any(is_other) {
            return Ok(None);
        }
        let max_tokens = set.longest().map(|bytes| bytes / NUMBER_BYTES);
        let part = MemberTokens { set, vocabulary: Arc::clone(&self.vocabulary) };
        let allowed = &mut scratch.mask;
        allowed.resize(mask.len(), 0);
        let Ok(()) = part.fill_mask(&part.start(), &mut (), allowed);
        let is_only_way = *allowed == mask;
        Ok(is_only_way.then(|| SequencePart { constraint: Arc::new(part), max_tokens }))
    }
}

#[cfg(test)]
mod tests {
    use palmette_core::Vocabulary;
    use palmette_testkit::laws;
    use palmette_testkit::member_sets::NaiveSet;

    use super::*;

    #[test]
    fn members_as_tokens_are_a_constraint() {
        let tokens = [Some("a"), Some("ab"), Some("b"), None, None, Some("c")];
        let vocabulary = Vocabulary::new(tokens, [TokenId(4)]).expect("texts");
        let vocabulary = Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)));
        let number = TokenId(3).to_spelling().to_vec();
        let texts = [b"ab".to_vec(), b"abb".to_vec(), b"c".to_vec(), [&number[..], b"c"].concat()];
        let set = Arc::new(NaiveSet::raw((0..).zip(texts)));
        laws::check(&MemberTokens { set, vocabulary: Arc::clone(&vocabulary) }, 1, 100, 5);
        let empty = MemberTokens { set: Arc::new(NaiveSet::default()), vocabulary };
        laws::check(&empty, 1, 2, 2);
    }
}
