//! Stack-automaton nodes of masks, by the lexeme in progress, and of places in tokens.

use palmette_grammar_parser::lr::StateId;

use super::deferred_reduction::Outcome;
use super::mask_failure::MaskFailure;
use super::node_answer::{NodeAnswer, NodeKey, QuerySubject};
use super::place::Place;
use super::simulation_context::Memos;
use super::stack_simulation::StackSimulation;
use super::suffix_set::{SetKind, SuffixSetId};
use super::suffix_sets::SuffixSets;
use crate::stack_automaton::{AutomatonNodeId, StackAutomaton};

impl SuffixSets {
    pub(super) fn nodes(&self, asked: QuerySubject) -> &StackAutomaton<NodeAnswer> {
        match asked {
            QuerySubject::Mask => &self.mask_nodes,
            QuerySubject::Front | QuerySubject::Within => &self.place_nodes,
        }
    }

    fn nodes_mut(&mut self, asked: QuerySubject) -> &mut StackAutomaton<NodeAnswer> {
        match asked {
            QuerySubject::Mask => &mut self.mask_nodes,
            QuerySubject::Front | QuerySubject::Within => &mut self.place_nodes,
        }
    }

    /// True when a node of masks is from a file, so that nothing can be told of what is below it
    /// but what was in the file.
    fn is_restored(&self, node: AutomatonNodeId) -> bool {
        let set = self.get(self.mask_nodes.get(node).said.suffix_set);
        matches!(set.kind, SetKind::Restored(_))
    }

    fn add_node(
        &mut self,
        asked: QuerySubject,
        Outcome { suffix_set, deferred }: Outcome,
    ) -> AutomatonNodeId {
        let missing = self.deferred.missing(deferred);
        self.nodes_mut(asked).intern(NodeAnswer { suffix_set, deferred, asked }, missing)
    }
}

impl Memos<'_, '_, '_> {
    /// The node of a lexeme in progress on stacks with this topmost state. One from a file is
    /// replaced, and found again with it what is below.
    pub(super) fn first_mask(
        &mut self,
        NodeKey { number, lexer, layer }: NodeKey,
        top: StateId,
    ) -> Result<AutomatonNodeId, MaskFailure> {
        if let Some(known) = self.suffix_sets.mask_nodes.first(number, top)
            && !self.suffix_sets.is_restored(known)
        {
            return Ok(known);
        }
        let recognizer = self.fixed.recognizer;
        let in_progress = self.lexemes.in_progress(recognizer.lexer(), lexer, self.budget)?;
        let found = StackSimulation::on(self.reborrow(), top).read_mask(&in_progress, layer)?;
        let node = self.suffix_sets.add_node(QuerySubject::Mask, found);
        self.suffix_sets.mask_nodes.know_first(number, top, node);
        Ok(node)
    }

    /// The node of a place, of which all tokens count, on stacks with this topmost state.
    pub(super) fn first_suffixes(
        &mut self,
        place: Place,
        top: StateId,
    ) -> Result<AutomatonNodeId, MaskFailure> {
        let number = self.suffix_sets.places.insert_full(place).0 as u32;
        if let Some(known) = self.suffix_sets.place_nodes.first(number, top) {
            return Ok(known);
        }
        let mut found = StackSimulation::on(self.reborrow(), top).read_place(place)?;
        let asked = place.asked();
        if asked == QuerySubject::Front {
            found.suffix_set =
                self.suffix_sets.union(asked, SuffixSetId::NOTHING, &[found.suffix_set]);
        }
        let node = self.suffix_sets.add_node(asked, found);
        self.suffix_sets.place_nodes.know_first(number, top, node);
        Ok(node)
    }

    /// The node after the state that decides how one goes on.
    pub(super) fn next(
        &mut self,
        asked: QuerySubject,
        node: AutomatonNodeId,
        state: StateId,
    ) -> Result<AutomatonNodeId, MaskFailure> {
        let nodes = self.suffix_sets.nodes(asked);
        if let Some(known) = nodes.next(node, state) {
            return Ok(known);
        }
        let NodeAnswer { suffix_set, deferred, asked } = nodes.get(node).said;
        let step = self.step(deferred, state)?;
        let more = self.suffix_sets.get(step.suffix_set).parts.clone();
        let suffix_set = self.suffix_sets.union(asked, suffix_set, &more);
        let found = Outcome { suffix_set, deferred: step.deferred };
        let next = self.suffix_sets.add_node(asked, found);
        self.suffix_sets.nodes_mut(asked).know_next(node, state, next);
        Ok(next)
    }

    /// Reads the states that `below` gives, from a node on, until no other can matter or there is
    /// none; gives what the last node says, and how many of the states that it misses were read.
    pub(super) fn read_on(
        &mut self,
        asked: QuerySubject,
        mut node: AutomatonNodeId,
        mut below: impl FnMut() -> Option<StateId>,
    ) -> Result<(NodeAnswer, u32), MaskFailure> {
        loop {
            let at = self.suffix_sets.nodes(asked).get(node);
            let mut deciding = None;
            for read in 0..at.missing {
                deciding = below();
                if deciding.is_none() {
                    return Ok((at.said, read));
                }
            }
            let Some(state) = deciding else { return Ok((at.said, 0)) };
            node = self.next(asked, node, state)?;
        }
    }
}
