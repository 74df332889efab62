//! Suffix sets of a grammar, and the memos that find them by the parser's stack.
//!
//! Whatever lexeme it is, it ends at the same few places of tokens: any string, however many of its
//! characters are left, ends at a quote. What may come there depends on the parser's stack, and of
//! that mostly on a few states. So it is kept by place and these states, and a mask is put together
//! from what was found for other lexemes.

use hashbrown::HashMap;
use palmette_core::TokenId;

use super::Residuals;
use super::deferred_reduction::DeferredSets;
use super::layer_states::LayerStates;
use super::lexeme_effect::LexemeEffects;
use super::lexemes::LexemeId;
use super::member_begin::MemberBegin;
use super::node_answer::{NodeAnswer, QuerySubject};
use super::place::{ExceptionsId, Place};
use super::simulation_memory::SimulationMemory;
use super::suffix_set::{SetKind, SuffixSet, SuffixSetId};
use crate::stack_automaton::{AutomatonNodeId, StackAutomaton};
use crate::tables::{IndexSet, table_bytes};

/// The suffix sets of a grammar, and the stack automata that find them, as far as they were asked
/// for.
#[derive(Debug)]
pub(crate) struct SuffixSets {
    suffix_sets: IndexSet<SuffixSet>,
    /// Places by their numbers in the nodes.
    pub(super) places: IndexSet<Place>,
    pub(super) place_nodes: StackAutomaton<NodeAnswer>,
    pub(super) mask_nodes: StackAutomaton<NodeAnswer>,
    pub(super) deferred: DeferredSets,
    pub(super) effects: LexemeEffects,
    pub(crate) layer_states: LayerStates,
    /// Numbers of the places that are nodes of the vocabulary's trie.
    pub(crate) below: HashMap<u32, u32>,
    /// Suffix sets without exceptions.
    without: HashMap<(SuffixSetId, ExceptionsId), SuffixSetId>,
    /// Tokens that end within a lexeme's text, by lexeme.
    texts: HashMap<LexemeId, SuffixSetId>,
    /// Memory that the suffix sets own.
    bytes: usize,
    /// Memory for simulations.
    pub(super) spare: Vec<SimulationMemory>,
}

impl Default for SuffixSets {
    fn default() -> Self {
        Self {
            suffix_sets: IndexSet::from_iter([SuffixSet::default()]),
            places: IndexSet::default(),
            place_nodes: StackAutomaton::default(),
            mask_nodes: StackAutomaton::default(),
            deferred: DeferredSets::default(),
            effects: LexemeEffects::default(),
            layer_states: LayerStates::default(),
            below: HashMap::new(),
            without: HashMap::new(),
            texts: HashMap::new(),
            bytes: 0,
            spare: Vec::new(),
        }
    }
}

impl SuffixSets {
    /// About how much memory they take.
    pub(crate) fn memory_bytes(&self) -> usize {
        table_bytes::<SuffixSet>(self.suffix_sets.len())
            + table_bytes::<Place>(self.places.len())
            + self.place_nodes.memory_bytes()
            + self.mask_nodes.memory_bytes()
            + self.deferred.memory_bytes()
            + self.effects.memory_bytes()
            + self.layer_states.memory_bytes()
            + table_bytes::<(SuffixSetId, ExceptionsId, SuffixSetId)>(self.without.len())
            + table_bytes::<(LexemeId, SuffixSetId)>(self.texts.len())
            + table_bytes::<[u32; 2]>(self.below.len())
            + self.bytes
    }

    pub(crate) fn get(&self, id: SuffixSetId) -> &SuffixSet {
        &self.suffix_sets[id.0 as usize]
    }

    /// Stack automaton of masks, by lexeme in progress.
    pub(crate) fn of_masks(&self) -> &StackAutomaton<NodeAnswer> {
        &self.mask_nodes
    }

    /// Stack automaton of places within tokens.
    pub(crate) fn of_places(&self) -> &StackAutomaton<NodeAnswer> {
        &self.place_nodes
    }

    /// Stack automaton of masks, to be added to.
    pub(crate) fn of_masks_mut(&mut self) -> &mut StackAutomaton<NodeAnswer> {
        &mut self.mask_nodes
    }

    /// A node of masks from a file, of this number there; gives what stands for its suffix set.
    pub(crate) fn restored_node(
        &mut self,
        number: u32,
        missing: u32,
    ) -> (AutomatonNodeId, SuffixSetId) {
        let kind = SetKind::Restored(number);
        let restored = SuffixSet { kind, ..SuffixSet::default() };
        let suffix_set = self.intern(restored);
        let deferred = self.deferred.intern(&mut Vec::new());
        let said = NodeAnswer { suffix_set, deferred, asked: QuerySubject::Mask };
        (self.mask_nodes.intern(said, missing), suffix_set)
    }

    /// Forgets all but the suffix sets and the states of the layer themselves: what they were found
    /// by is numbers into residuals that are no more.
    pub(crate) fn forget(&mut self) {
        let Self { suffix_sets, layer_states, bytes, .. } = std::mem::take(self);
        *self = Self { suffix_sets, layer_states, bytes, ..Self::default() };
    }

    /// A suffix set without exceptions.
    pub(super) fn without(
        &mut self,
        suffix_set: SuffixSetId,
        except: ExceptionsId,
        residuals: &Residuals,
    ) -> SuffixSetId {
        if let Some(&known) = self.without.get(&(suffix_set, except)) {
            return known;
        }
        let except_of = residuals.except(except);
        let mut left = self.get(suffix_set).clone();
        if let SetKind::Member(begin) = &mut left.kind {
            *begin = begin.in_some();
        }
        left.tokens.retain(|&(token, left)| !except_of.contains(token, left));
        left.parts.iter_mut().for_each(|part| *part = self.without(*part, except, residuals));
        let found = self.intern(left);
        self.without.insert((suffix_set, except), found);
        found
    }

    /// The suffix set of the tokens that end within the text of a lexeme, which are taken out of
    /// `tokens`.
    pub(super) fn of_text(
        &mut self,
        lexeme: LexemeId,
        tokens: &mut Vec<(TokenId, u32)>,
    ) -> SuffixSetId {
        let tokens = std::mem::take(tokens);
        if let Some(&known) = self.texts.get(&lexeme) {
            return known;
        }
        let found = self.intern(SuffixSet { tokens, ..SuffixSet::default() });
        self.texts.insert(lexeme, found);
        found
    }

    /// The suffix set of the tokens that go on with a member.
    pub(super) fn of_member(&mut self, begin: MemberBegin) -> SuffixSetId {
        self.intern(SuffixSet { kind: SetKind::Member(begin), ..SuffixSet::default() })
    }

    /// The members that may begin in a set.
    pub(crate) fn members_of(&self, id: SuffixSetId) -> impl Iterator<Item = MemberBegin> {
        self.get(id).parts.iter().filter_map(|&part| match self.get(part).kind {
            SetKind::Member(begin) => Some(begin),
            SetKind::Tokens | SetKind::Restored(_) => None,
        })
    }

    /// The tokens of a set that is accepted at a place within tokens.
    pub(crate) fn tokens_within(&self, id: SuffixSetId) -> impl Iterator<Item = TokenId> {
        let set = self.get(id);
        let parts = set.parts.iter().flat_map(|&part| self.get(part).tokens());
        set.tokens().chain(parts)
    }

    /// One suffix set with others.
    pub(super) fn union(
        &mut self,
        asked: QuerySubject,
        one: SuffixSetId,
        others: &[SuffixSetId],
    ) -> SuffixSetId {
        if others.is_empty() {
            return one;
        }
        let mut union = self.get(one).clone();
        for &other in others {
            match asked {
                QuerySubject::Mask => self.add_part(&mut union, other),
                QuerySubject::Front | QuerySubject::Within => self.add_tokens(&mut union, other),
            }
        }
        if asked == QuerySubject::Front {
            union.tokens.iter_mut().for_each(|(_, left)| *left = 0);
        }
        self.intern(union)
    }

    /// Adds a set to one of a mask, as a part with the parts of its own.
    pub(super) fn add_part(&self, to: &mut SuffixSet, part: SuffixSetId) {
        if part != SuffixSetId::NOTHING {
            to.parts.push(part);
            to.parts.extend_from_slice(&self.get(part).parts);
        }
    }

    /// Adds the tokens of a set to another, those that are many as its parts.
    pub(super) fn add_tokens(&self, to: &mut SuffixSet, of: SuffixSetId) {
        let SuffixSet { tokens, consuming, parts, kind: _ } = self.get(of);
        to.tokens.extend_from_slice(tokens);
        to.consuming.extend_from_slice(consuming);
        to.parts.extend_from_slice(parts);
    }

    /// The number of a suffix set, in whatever order.
    pub(super) fn intern(&mut self, mut suffix_set: SuffixSet) -> SuffixSetId {
        let SuffixSet { tokens, consuming, parts, kind: _ } = &mut suffix_set;
        sort(tokens);
        sort(consuming);
        sort(parts);
        let bytes = size_of_val(&**tokens) + size_of_val(&**consuming) + size_of_val(&**parts);
        let (number, is_new) = self.suffix_sets.insert_full(suffix_set);
        self.bytes += if is_new { bytes } else { 0 };
        SuffixSetId(number as u32)
    }
}

/// Sorts, and leaves each once.
fn sort<T: Ord>(all: &mut Vec<T>) {
    all.sort_unstable();
    all.dedup();
    all.shrink_to_fit();
}
