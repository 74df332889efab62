//! Graph of a mask automaton: its nodes and edges as far as they were read, to be shown.

use hashbrown::HashMap;
use palmette_grammar_parser::lexer::LexerState;
use palmette_grammar_parser::lr::StateId;

use super::MaskAutomaton;
use super::memo::Memo;
use crate::stack_automaton::AutomatonNodeId;

/// Nodes of an automaton that were read so far, each by its number, in the order in which a search
/// from the first ones meets them.
#[derive(Clone, Debug, Default)]
pub struct AutomatonGraph {
    /// Questions, with the topmost state of a stack and the node that it leads to.
    pub firsts: Vec<GraphFirst>,
    /// The nodes.
    pub nodes: Vec<GraphNode>,
}

/// First node of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphFirst {
    /// The lexeme in progress.
    pub lexer: LexerState,
    /// The topmost state of the stack.
    pub top: StateId,
    /// The node.
    pub node: usize,
}

/// Node of an automaton: what some states of a stack decide.
#[derive(Clone, Debug)]
pub struct GraphNode {
    /// Tokens that it is sure of; `None` where no position has needed their mask.
    pub tokens: Option<usize>,
    /// States below of which only the last decides how it goes on; 0 where it reads no more.
    pub missing: u32,
    /// States of a stack that are read on the shortest way to it.
    pub depth: usize,
    /// Nodes after it, with the states that decide.
    pub nexts: Vec<(StateId, usize)>,
}

impl AutomatonGraph {
    /// The most states of a stack that any node was reached by, on the shortest way.
    pub fn deepest(&self) -> usize {
        self.nodes.iter().map(|node| node.depth).max().unwrap_or(0)
    }
}

impl MaskAutomaton {
    /// Nodes and edges that were read so far. Cost: all of them, and a mask for each node; not for
    /// decoding steps.
    pub fn graph(&self) -> AutomatonGraph {
        let memo = self.memo.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let automaton = memo.suffix_sets.of_masks();
        let (mut graph, mut numbers) = (AutomatonGraph::default(), HashMap::new());
        let mut words = vec![0; self.vocabulary.num_words()];
        let mut ids: Vec<AutomatonNodeId> = Vec::new();
        let mut number = |graph: &mut AutomatonGraph, ids: &mut Vec<_>, id, depth| {
            *numbers.entry(id).or_insert_with(|| {
                let node = automaton.get(id);
                let tokens = memo.composed_of(node.said.suffix_set).map(|mask| {
                    memo.masks.copy(mask, &memo.suffix_sets, &mut words);
                    words.iter().map(|word| word.count_ones() as usize).sum()
                });
                let (missing, nexts) = (node.missing, Vec::new());
                graph.nodes.push(GraphNode { tokens, missing, depth, nexts });
                ids.push(id);
                graph.nodes.len() - 1
            })
        };
        for (of, top, id) in automaton.firsts() {
            let node = number(&mut graph, &mut ids, id, 1);
            graph.firsts.push(GraphFirst { lexer: memo.lexer_of(of), top, node });
        }
        let mut at = 0;
        while at < graph.nodes.len() {
            let id = ids[at];
            let depth = graph.nodes[at].depth + graph.nodes[at].missing as usize;
            for (state, next) in automaton.nexts(id) {
                let next = number(&mut graph, &mut ids, next, depth);
                graph.nodes[at].nexts.push((state, next));
            }
            at += 1;
        }
        graph
    }
}

impl Memo {
    /// The lexeme in progress that a question is about.
    fn lexer_of(&self, question: u32) -> LexerState {
        // Without blocks questions are numbered by lexer states.
        let of_blocks = self.questions.get_index(question as usize).map(|&(lexer, _)| lexer);
        of_blocks.unwrap_or(LexerState(question))
    }
}
