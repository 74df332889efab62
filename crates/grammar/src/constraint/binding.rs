//! Binding: the sets of a grammar's slots for one request.

use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;
use palmette_core::{Binding, MemberSet, ScopeId, SlotId, TokenId};
use palmette_grammar_masks::{MaskAutomaton, MemberRows};
use palmette_grammar_parser::Slot;
use palmette_grammar_parser::recognizer::{
    BoundRecognizer, CompileError, Lack, Position, Recognizer, RecognizerError, TextPart,
    WrittenMember,
};
use palmette_grammar_parser::scopes::ScopeShortage;

use super::{GrammarConstraint, GrammarScratch};

/// The set that a request gives for a slot.
pub type SetBinding = Arc<dyn MemberSet>;

/// Sets of a constraint's slots, with what is known of masks under them.
#[derive(Clone, Debug)]
pub(super) struct BoundSlots {
    recognizer: Arc<BoundRecognizer>,
    pub(super) rows: Arc<MemberRows>,
}

impl BoundSlots {
    /// The sets that a grammar brings, where it has no open slots.
    pub(super) fn from_own_sets(recognizer: &Arc<Recognizer>) -> Option<Self> {
        let recognizer = Arc::new(BoundRecognizer::from_own_sets(recognizer)?);
        Some(Self { recognizer, rows: Arc::default() })
    }

    /// The position before the first byte.
    pub(super) fn start(&self) -> &Position {
        &self.recognizer.start
    }

    /// About how much memory is taken by what is known of masks.
    pub(super) fn bytes(&self) -> usize {
        self.rows.bytes()
    }
}

/// A grammar without what needs members of some slots, and the engine of its masks.
#[derive(Clone, Debug)]
struct ReducedGrammar {
    recognizer: Arc<Recognizer>,
    automaton: Option<Arc<MaskAutomaton>>,
}

/// Memo of a grammar without what no text can have, by what it lacks.
#[derive(Debug, Default)]
pub(super) struct ReducedGrammars {
    known: Mutex<HashMap<LackKey, ReducedGrammar>>,
}

/// Slots without members, and scopes that no text fills.
type LackKey = (Vec<SlotId>, Vec<ScopeId>);

/// At most so many combinations of slots and scopes are remembered; then the memory begins anew.
const MAX_REDUCED: usize = 16;

/// Sets that cannot be bound to a grammar.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// No text is left: alternatives that need a member of an empty set are not there.
    #[error("no text is left: {} has no member, and the grammar needs one; bind a set that has", .empty.join(", "))]
    Empty {
        /// Names of the slots without members.
        empty: Vec<String>,
    },
    /// No text is left: scopes have fewer members than the grammar needs there.
    #[error("no text is left: {}; bind more, or ask for fewer", shortages(.0))]
    Short(Vec<ScopeShortage>),
    /// The grammar without what needs a member of an empty set cannot be made ready.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

fn shortages(all: &[ScopeShortage]) -> String {
    let of = |ScopeShortage { scope, eligible, needed, .. }: &ScopeShortage| {
        format!("{scope} has {eligible} to choose from and needs {needed}")
    };
    all.iter().map(of).collect::<Vec<_>>().join(", ")
}

impl GrammarConstraint {
    /// The sets that the grammar leaves open, in the order in which they are bound.
    pub fn slots(&self) -> &[Slot] {
        self.recognizer.source().open_slots()
    }

    /// A constraint on the texts whose members are of these sets, `set` giving one for each slot.
    /// The grammar is not compiled again, unless a set is empty.
    ///
    /// # Errors
    /// When no text is left, or what `set` says.
    ///
    /// # Panics
    /// When the grammar has no slots.
    pub fn bind<E: From<BindError>>(
        &self,
        mut set: impl FnMut(&Slot) -> Result<SetBinding, E>,
    ) -> Result<Self, E> {
        let slots = self.slots();
        assert!(!slots.is_empty(), "a grammar without slots");
        let sets = slots.iter().map(&mut set).collect::<Result<Vec<_>, E>>()?;
        Ok(self.bind_all(Arc::new(Binding::new(sets)))?)
    }

    /// A constraint on the texts whose members are of these sets, in the order of the
    /// [slots](Self::slots).
    ///
    /// # Errors
    /// When no text is left.
    ///
    /// # Panics
    /// When the grammar has another number of slots.
    pub fn bind_all(&self, sets: Arc<Binding>) -> Result<Self, BindError> {
        let lack = self.recognizer.lack(&sets)?;
        let ReducedGrammar { recognizer, automaton } = self.reduced(&lack)?;
        let bound = BoundRecognizer::from_parts(Arc::clone(&recognizer), sets)?;
        let bound = Arc::new(bound.ok_or_else(|| self.none_left(&lack))?);
        let (dictionary, rows, endings, lexeme_rests) = Default::default();
        let bound = Some(BoundSlots { recognizer: bound, rows });
        Ok(Self { recognizer, automaton, bound, dictionary, endings, lexeme_rests, ..self.clone() })
    }

    fn none_left(&self, lack: &Lack) -> BindError {
        if lack.scopes.is_empty() {
            let label = |slot: &SlotId| self.slots()[slot.index()].label();
            return BindError::Empty { empty: lack.slots.iter().map(label).collect() };
        }
        BindError::Short(self.recognizer.shortages(lack))
    }

    /// The grammar without a part that no text can have.
    fn reduced(&self, lack: &Lack) -> Result<ReducedGrammar, CompileError> {
        let (recognizer, automaton) = (&self.recognizer, &self.automaton);
        if lack.is_empty() {
            let (recognizer, automaton) = (Arc::clone(recognizer), automaton.clone());
            return Ok(ReducedGrammar { recognizer, automaton });
        }
        let scopes = lack.scopes.iter().map(|short| short.scope).collect();
        let key = (lack.slots.clone(), scopes);
        let known = self.reduced.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&key) {
            return Ok(known.clone());
        }
        drop(known);
        let recognizer = Arc::new(recognizer.without(lack)?);
        let new = |automaton: &Arc<MaskAutomaton>| Arc::new(automaton.without_nodes());
        let made = ReducedGrammar { recognizer, automaton: automaton.as_ref().map(new) };
        let mut known = self.reduced.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_REDUCED {
            known.clear();
        }
        Ok(known.entry(key).or_insert(made).clone())
    }

    /// The sets that are bound.
    pub fn binding(&self) -> Option<&Arc<Binding>> {
        self.bound.as_ref().map(|bound| &bound.recognizer.sets)
    }

    /// The members that a text has, in their order; `None` where it begins no text of the language.
    /// A member counts where it has ended, or where the text may end with it.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded.
    pub fn members(
        &self,
        text: &[u8],
        scratch: &mut GrammarScratch,
    ) -> Result<Option<Vec<WrittenMember>>, RecognizerError> {
        match self.binding() {
            None => Ok(Some(Vec::new())),
            Some(sets) => self.recognizer.members(sets, text, &mut scratch.recognizer),
        }
    }

    /// The members that a text has, as [`members`](Self::members) tells them, of one in tokens:
    /// semantic IDs are none of its bytes. Places count the bytes that `num_bytes` gives for each
    /// token, such as those of a special token's name where it is shown.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded.
    ///
    /// # Panics
    /// When a token is not in the vocabulary.
    pub fn members_of_tokens(
        &self,
        tokens: &[TokenId],
        num_bytes: impl Fn(TokenId) -> usize,
        scratch: &mut GrammarScratch,
    ) -> Result<Option<Vec<WrittenMember>>, RecognizerError> {
        let Some(sets) = self.binding() else { return Ok(Some(Vec::new())) };
        let (spellings, vocabulary) = (self.vocabulary.spellings(), self.vocabulary());
        let parts = tokens.iter().map(|&token| TextPart {
            spellings: spellings.of(vocabulary, token).collect(),
            num_bytes: num_bytes(token),
        });
        self.recognizer.members_of_parts(sets, parts, &mut scratch.recognizer)
    }
}
