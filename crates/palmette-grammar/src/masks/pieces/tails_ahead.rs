//! How tokens go on where lexemes end, found out before it is asked for.
//!
//! Positions of texts are many; what decides [how tokens go on](super::tail_nodes) is few: the place, of which a terminal has some, and
//! some states from the top of the stack. Any way through the parser's states back to the first is a stack, so all that may come is
//! found by going back.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::level::{Fixed, Growing, LevelMemory};
use super::lexemes::Lexeme;
use super::read_nodes::{ReadNode, ReadNodeId};
use super::suffixes::SuffixId;
use super::{Lexemes, PieceId, Pieces, TailId, Tails, Unread};
use crate::Budget;
use crate::TerminalId;
use crate::lr::{StateId, Tables};
use crate::recognizer::Recognizer;
use crate::vocabulary::VocabularyTrie;

/// Nodes to be looked at, those after fewer states first.
#[derive(Debug)]
pub(crate) struct TailsAhead {
    /// What places are numbers into, once there are some.
    pieces: Option<Arc<Pieces>>,
    /// By state, those from which it is reached.
    above: Vec<Vec<StateId>>,
    /// States that are reached by a terminal, whose places were not added yet.
    states: VecDeque<(TerminalId, StateId)>,
    /// By terminal, where it may end within tokens.
    places: HashMap<TerminalId, Arc<[SuffixId]>>,
    open: VecDeque<Open>,
    seen: HashSet<(ReadNodeId, StateId)>,
    /// The states so many states below one.
    below: HashMap<(StateId, u32), Arc<[StateId]>>,
    spare: Vec<LevelMemory>,
}

/// A node that may not be known.
#[derive(Clone, Copy, Debug)]
struct Open {
    after: After,
    state: StateId,
    /// How many steps lead to it.
    steps: u32,
}

#[derive(Clone, Copy, Debug)]
enum After {
    Place(SuffixId),
    Node(ReadNodeId),
}

/// At most so many wait to be looked at; others are left to be found out when they are asked for.
const MAX_OPEN: usize = 1 << 17;

/// What was looked at.
#[derive(Clone, Copy, Debug)]
pub(in crate::masks) enum Looked {
    /// Where a terminal may end, which adds more to be looked at.
    Place,
    /// A node, whose tail this is.
    Tail(TailId),
}

/// What a look is given.
pub(in crate::masks) struct Look<'a, 'b> {
    pub(in crate::masks) recognizer: &'a Recognizer,
    pub(in crate::masks) trie: &'a VocabularyTrie,
    pub(in crate::masks) num_words: usize,
    pub(in crate::masks) lexemes: &'a mut Lexemes,
    pub(in crate::masks) tails: &'a mut Tails,
    pub(in crate::masks) budget: &'a mut Budget<'b>,
}

impl TailsAhead {
    /// All of a grammar.
    pub(in crate::masks) fn new(tables: &Tables) -> Self {
        let mut above = vec![Vec::new(); tables.num_states()];
        let mut states = VecDeque::new();
        let mut seen = HashSet::new();
        for state in tables.states() {
            for &(terminal, target) in tables.shifts(state) {
                above[target.index()].push(state);
                if seen.insert(target) {
                    states.push_back((terminal, target));
                }
            }
            for &(_, target) in tables.gotos(state) {
                above[target.index()].push(state);
            }
        }
        for states in &mut above {
            states.sort_unstable();
            states.dedup();
        }
        Self {
            pieces: None,
            above,
            states,
            places: HashMap::new(),
            open: VecDeque::new(),
            seen: HashSet::new(),
            below: HashMap::new(),
            spare: Vec::new(),
        }
    }

    /// How many steps lead to the next one; `None` where there is no other.
    pub(in crate::masks) fn steps(&self) -> Option<u32> {
        if !self.states.is_empty() {
            return Some(0);
        }
        self.open.front().map(|open| open.steps)
    }

    /// Looks at one more; leaves all out where places have become numbers into other pieces, as they do once these take too much memory.
    ///
    /// # Errors
    /// When the budget is used up; work that was called off is begun again by the next call.
    pub(in crate::masks) fn look(&mut self, look: Look<'_, '_>) -> Result<Looked, Unread> {
        let pieces = Arc::clone(look.lexemes.pieces());
        if !Arc::ptr_eq(self.pieces.get_or_insert_with(|| Arc::clone(&pieces)), &pieces) {
            self.states.clear();
            self.open.clear();
        }
        let lexemes = Arc::clone(look.lexemes.all());
        let fixed = Fixed {
            recognizer: look.recognizer,
            trie: look.trie,
            num_words: look.num_words,
            pieces: &pieces,
            lexemes: &lexemes,
        };
        let mut growing = Growing {
            lexemes: look.lexemes,
            tails: look.tails,
            budget: look.budget,
            spare: &mut self.spare,
        };
        growing.budget.spend(1)?;
        if let Some(&(terminal, state)) = self.states.front() {
            let places = match self.places.get(&terminal) {
                Some(known) => Arc::clone(known),
                None => {
                    let found: Arc<[_]> = places(fixed, &mut growing, terminal)?.into();
                    Arc::clone(self.places.entry(terminal).or_insert(found))
                }
            };
            let open = |&place| Open { after: After::Place(place), state, steps: 1 };
            self.open.extend(places.iter().map(open));
            self.states.pop_front();
            return Ok(Looked::Place);
        }
        let Some(&Open { after, state, steps }) = self.open.front() else {
            return Ok(Looked::Place);
        };
        let node = match after {
            After::Place(place) => growing.first_tail(fixed, place, state)?,
            After::Node(node) => growing.next_tail(fixed, node, state)?,
        };
        let &ReadNode { said: (tail, _), missing, .. } = growing.tails.nodes.get(node);
        self.open.pop_front();
        if missing > 0 && self.open.len() < MAX_OPEN {
            for &below in &*self.below(state, missing) {
                if self.seen.insert((node, below)) {
                    self.open.push_back(Open {
                        after: After::Node(node),
                        state: below,
                        steps: steps + 1,
                    });
                }
            }
        }
        Ok(Looked::Tail(tail))
    }

    /// The states that may be so many states below one.
    fn below(&mut self, state: StateId, depth: u32) -> Arc<[StateId]> {
        if let Some(known) = self.below.get(&(state, depth)) {
            return Arc::clone(known);
        }
        let mut found = vec![state];
        for _ in 0..depth {
            found = found.iter().flat_map(|state| &self.above[state.index()]).copied().collect();
            found.sort_unstable();
            found.dedup();
        }
        let found: Arc<[StateId]> = found.into();
        self.below.insert((state, depth), Arc::clone(&found));
        found
    }

    /// Leaves out what the last call was to look at.
    pub(in crate::masks) fn skip(&mut self) {
        if self.states.pop_front().is_none() {
            self.open.pop_front();
        }
    }
}

/// Where a terminal may end within tokens, and before their first byte.
fn places(
    fixed: Fixed<'_>,
    growing: &mut Growing<'_, '_>,
    terminal: TerminalId,
) -> Result<Vec<SuffixId>, Unread> {
    let Growing { lexemes, budget, .. } = growing;
    let lexer = fixed.recognizer.lexer();
    let Some(lexeme) = lexemes.whole(lexer, terminal, budget)? else { return Ok(Vec::new()) };
    let lexeme = fixed.lexemes.get(lexeme.index());
    let mut found = vec![SuffixId::WHOLE];
    for at in 0..lexeme.text.len() {
        ends_of_text(fixed, budget, &lexeme.text[at..], lexeme.rest, &mut found)?;
    }
    let mut seen = HashSet::new();
    let mut work: Vec<PieceId> = match *lexeme {
        Lexeme { whole: Some(whole), .. } => vec![whole],
        Lexeme { rest, .. } => vec![rest],
    };
    while let Some(piece) = work.pop() {
        if !seen.insert(piece) {
            continue;
        }
        let bytes = fixed.pieces.classes(piece).representatives();
        budget.spend(1 + bytes.len() as u64)?;
        found.extend(fixed.pieces.known_ends(piece));
        for &byte in bytes {
            work.extend(fixed.pieces.advance(piece, byte, budget)?);
        }
    }
    found.sort_unstable_by_key(|place| place.index());
    found.dedup();
    Ok(found)
}

/// Adds the places where a text ends that begins a token, with what comes after it.
fn ends_of_text(
    fixed: Fixed<'_>,
    budget: &mut Budget<'_>,
    text: &[u8],
    rest: PieceId,
    found: &mut Vec<SuffixId>,
) -> Result<(), Unread> {
    let Fixed { pieces, trie, .. } = fixed;
    let mut place = SuffixId::WHOLE;
    for &byte in text {
        match pieces.suffixes.child(trie, place, byte) {
            Some(child) => place = child,
            None => return Ok(()),
        }
    }
    let mut work = vec![(place, rest)];
    while let Some((place, piece)) = work.pop() {
        budget.spend(1)?;
        let node = pieces.suffixes.node(place);
        if pieces.ends(piece) && !node.bytes().is_empty() {
            found.push(place);
        }
        for (&byte, at) in node.bytes().iter().zip(0..) {
            if let Some(next) = pieces.advance(piece, byte, budget)? {
                work.push((pieces.suffixes.child_at(trie, place, at), next));
            }
        }
    }
    Ok(())
}

impl Pieces {
    /// The tries of suffixes after a piece, if it is known what tokens do to it.
    fn known_ends(&self, piece: PieceId) -> impl Iterator<Item = SuffixId> {
        let analysis = self.piece(piece).analysis.get();
        analysis.into_iter().flat_map(|analysis| analysis.suffixes.iter().map(|&(id, _)| id))
    }
}
