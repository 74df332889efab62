//! Sets of suffixes accepted at a place within tokens, by the parser's stack.
//!
//! Whatever lexeme it is, it ends at the same few places of tokens: any string, however many of its characters are left, ends at a quote.
//! What may come there depends on the parser's stack, and of that mostly on a few states. So it is kept by place and these states, and a
//! mask is put together from what was found for other lexemes.

use hashbrown::HashMap;
use palmette_core::TokenId;

use super::deferred_reduction::DeferredSets;
use super::lexemes::LexemeId;
use super::mask_nodes::{ComponentsId, MaskNodes, SaidOfMask};
use super::stack_simulation::{Component, ExceptId};
use super::suffix_nodes::SuffixNodes;
use super::{ResidualId, Residuals};
use crate::stack_automaton::StackAutomaton;
use crate::{IndexSet, table_bytes};

/// Tokens that may go on at a place.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct SuffixSet {
    /// Ascending, with the lengths of what is left of them there; 0 before their first byte.
    pub(super) tokens: Box<[(TokenId, u32)]>,
    /// Residuals by which other tokens are consumed whole, ascending; only before their first byte.
    pub(super) consuming: Box<[ResidualId]>,
}

/// A number into [`SuffixSets`]; equal numbers are equal suffix sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SuffixSetId(u32);

impl SuffixSetId {
    /// The suffix set of no tokens.
    pub(super) const NOTHING: Self = Self(0);
}

/// The suffix sets of a grammar, as far as they were asked for.
#[derive(Debug)]
pub(crate) struct SuffixSets {
    suffix_sets: IndexSet<SuffixSet>,
    pub(super) nodes: SuffixNodes,
    pub(super) mask_nodes: MaskNodes,
    pub(super) deferred: DeferredSets,
    /// Suffix sets without exceptions.
    without: HashMap<(SuffixSetId, ExceptId), SuffixSetId>,
    /// By lexeme, the tokens that end within its text.
    texts: HashMap<LexemeId, SuffixSetId>,
    /// Memory that the suffix sets own.
    bytes: usize,
}

impl Default for SuffixSets {
    fn default() -> Self {
        let mut made = Self {
            suffix_sets: IndexSet::default(),
            nodes: SuffixNodes::default(),
            mask_nodes: MaskNodes::default(),
            deferred: DeferredSets::default(),
            without: HashMap::default(),
            texts: HashMap::default(),
            bytes: 0,
        };
        let nothing = made.intern(SuffixSet::default());
        debug_assert_eq!(nothing, SuffixSetId::NOTHING, "it is the first one");
        made
    }
}

impl SuffixSets {
    /// About how much memory they take.
    pub(crate) fn memory_bytes(&self) -> usize {
        table_bytes::<SuffixSet>(self.suffix_sets.len())
            + self.nodes.memory_bytes()
            + self.mask_nodes.memory_bytes()
            + self.deferred.memory_bytes()
            + table_bytes::<(SuffixSetId, ExceptId, SuffixSetId)>(self.without.len())
            + table_bytes::<(LexemeId, SuffixSetId)>(self.texts.len())
            + self.bytes
    }

    pub(super) fn get(&self, id: SuffixSetId) -> &SuffixSet {
        &self.suffix_sets[id.0 as usize]
    }

    /// Stack automaton of masks, by lexeme in progress.
    pub(crate) fn of_masks(&self) -> &StackAutomaton<SaidOfMask> {
        &self.mask_nodes.nodes
    }

    /// Components of a mask.
    pub(crate) fn components(&self, id: ComponentsId) -> &[Component] {
        self.mask_nodes.components(id)
    }

    /// The tokens of a suffix set.
    pub(crate) fn tokens(&self, id: SuffixSetId) -> impl Iterator<Item = TokenId> {
        self.get(id).tokens.iter().map(|&(token, _)| token)
    }

    /// Residuals by which the others of a suffix set are consumed whole, ascending.
    pub(crate) fn consuming(&self, id: SuffixSetId) -> &[ResidualId] {
        &self.get(id).consuming
    }

    /// Number of tokens of a suffix set.
    pub(crate) fn num_tokens(&self, id: SuffixSetId) -> usize {
        self.get(id).tokens.len()
    }

    /// Forgets all but the suffix sets themselves: what they were found by is numbers into residuals that are no more.
    pub(crate) fn forget(&mut self) {
        self.nodes = SuffixNodes::default();
        self.mask_nodes = MaskNodes::default();
        self.deferred = DeferredSets::default();
        self.without = HashMap::default();
        self.texts = HashMap::default();
    }

    /// A suffix set without exceptions.
    pub(super) fn without(
        &mut self,
        suffix_set: SuffixSetId,
        except: ExceptId,
        residuals: &Residuals,
    ) -> SuffixSetId {
        if let Some(&known) = self.without.get(&(suffix_set, except)) {
            return known;
        }
        let except_of = residuals.except(except);
        let SuffixSet { tokens, consuming } = self.get(suffix_set);
        let counts = |&&(token, left): &&(TokenId, u32)| !except_of.contains(token, left);
        let left = tokens.iter().filter(counts).copied().collect();
        let left = SuffixSet { tokens: left, consuming: consuming.clone() };
        let found = self.intern(left);
        self.without.insert((suffix_set, except), found);
        found
    }

    /// The suffix set of the tokens that end within the text of a lexeme, which are taken out of `tokens`.
    pub(super) fn of_text(
        &mut self,
        lexeme: LexemeId,
        tokens: &mut Vec<(TokenId, u32)>,
    ) -> SuffixSetId {
        if let Some(&known) = self.texts.get(&lexeme) {
            tokens.clear();
            return known;
        }
        tokens.sort_unstable();
        tokens.dedup();
        let found =
            self.intern(SuffixSet { tokens: tokens.drain(..).collect(), ..SuffixSet::default() });
        self.texts.insert(lexeme, found);
        found
    }

    /// The suffix set of the tokens of several, of what is left of which the lengths are those `at_front`, or as they are.
    pub(super) fn union(
        &mut self,
        one: SuffixSetId,
        others: &[SuffixSetId],
        at_front: bool,
    ) -> SuffixSetId {
        match (one, others) {
            (_, []) => return one,
            (SuffixSetId::NOTHING, &[other]) if !at_front => return other,
            _ => {}
        }
        let all = || std::iter::once(one).chain(others.iter().copied()).map(|id| self.get(id));
        let tokens = all().flat_map(|suffix_set| &suffix_set.tokens);
        let mut tokens: Vec<_> =
            tokens.map(|&(token, left)| (token, if at_front { 0 } else { left })).collect();
        tokens.sort_unstable();
        tokens.dedup();
        let mut consuming: Vec<_> =
            all().flat_map(|suffix_set| &suffix_set.consuming).copied().collect();
        consuming.sort_unstable();
        consuming.dedup();
        self.intern(SuffixSet { tokens: tokens.into(), consuming: consuming.into() })
    }

    /// The number of a suffix set.
    pub(super) fn intern(&mut self, suffix_set: SuffixSet) -> SuffixSetId {
        let bytes = size_of_val(&*suffix_set.tokens) + size_of_val(&*suffix_set.consuming);
        let (number, is_new) = self.suffix_sets.insert_full(suffix_set);
        self.bytes += if is_new { bytes } else { 0 };
        SuffixSetId(number as u32)
    }
}
