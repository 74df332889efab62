//! What stacks say of tokens, found out before it is asked for.
//!
//! Positions of texts are many; what decides how tokens go on is little: the [place](super::tail_nodes), of which a terminal has some, or the
//! [lexeme in progress](super::mask_nodes), and some states from the top of the stack. Any way through the parser's states back to the
//! first is a stack, so all that may come is found by going back.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::level::{Fixed, Growing, LevelMemory};
use super::lexemes::Lexeme;
use super::suffixes::SuffixId;
use super::{ComponentsId, Lexemes, PieceId, Pieces, TailId, Tails, Unread};
use crate::Budget;
use crate::TerminalId;
use crate::lexer::LexerState;
use crate::lr::{StateId, Tables};
use crate::masks::read_nodes::{ReadNode, ReadNodeId};
use crate::recognizer::Recognizer;
use crate::vocabulary::VocabularyTrie;

/// Nodes to be looked at, those after fewer states first.
#[derive(Debug)]
pub(crate) struct StacksAhead {
    /// What places are numbers into, and how often nodes were dropped, once there are some.
    found_with: Option<(Arc<Pieces>, u32)>,
    /// By state, those from which it is reached.
    above: Vec<Vec<StateId>>,
    /// States that are reached by a terminal, whose places were not added yet.
    states: VecDeque<(TerminalId, StateId)>,
    /// By terminal, where it may end within tokens.
    places: HashMap<TerminalId, Arc<[SuffixId]>>,
    tails: Queue,
    masks: Queue,
    /// Lexemes in progress, with topmost states.
    in_progress: HashSet<(LexerState, StateId)>,
    /// The states so many states below one; as many as memory allows.
    below: HashMap<(StateId, u32), Arc<[StateId]>>,
    /// How many these are in all.
    num_below: usize,
    spare: Vec<LevelMemory>,
}

/// Which nodes are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// Those of places where terminals end.
    Tails,
    /// Those of lexemes in progress that [were looked at](StacksAhead::look_at_lexeme).
    Masks,
}

#[derive(Debug, Default)]
struct Queue {
    open: VecDeque<Open>,
    seen: HashSet<(ReadNodeId, StateId)>,
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

impl Queue {
    /// Adds what comes after a node, unless that is too much.
    fn add(&mut self, node: ReadNodeId, below: &[StateId], steps: u32) {
        if self.open.len() < MAX_OPEN {
            let seen = &mut self.seen;
            let new = below.iter().filter(|&&state| seen.insert((node, state)));
            let open = |&state| Open { after: After::Node(node), state, steps: steps + 1 };
            self.open.extend(new.map(open));
        }
    }
}

/// At most so many wait to be looked at; others are left to be found out when they are asked for.
const MAX_OPEN: usize = 1 << 17;

/// So many states below others are kept, in some megabytes; they are found again otherwise.
const MAX_BELOW: usize = 1 << 20;

/// What was looked at.
#[derive(Clone, Copy, Debug)]
pub(in crate::masks) enum Looked {
    /// What adds more to be looked at.
    Place,
    /// A place's node, whose tail this is.
    Tail(TailId),
    /// What a mask is made of.
    Mask(ComponentsId),
}

/// What a look is given.
pub(in crate::masks) struct Look<'a, 'b> {
    pub(in crate::masks) recognizer: &'a Recognizer,
    pub(in crate::masks) trie: &'a VocabularyTrie,
    pub(in crate::masks) num_words: usize,
    pub(in crate::masks) lexemes: &'a mut Lexemes,
    pub(in crate::masks) tails: &'a mut Tails,
    pub(in crate::masks) budget: &'a mut Budget<'b>,
    /// How often nodes were dropped.
    pub(in crate::masks) generation: u32,
}

impl<'b> Look<'_, 'b> {
    /// Lets what is found out grow.
    fn growing<T>(
        self,
        spare: &mut Vec<LevelMemory>,
        grow: impl FnOnce(Fixed<'_>, Growing<'_, 'b>) -> T,
    ) -> T {
        let pieces = Arc::clone(self.lexemes.pieces());
        let lexemes = Arc::clone(self.lexemes.all());
        let Self { recognizer, trie, num_words, .. } = self;
        let fixed = Fixed { recognizer, trie, num_words, pieces: &pieces, lexemes: &lexemes };
        let Self { lexemes, tails, budget, .. } = self;
        grow(fixed, Growing { lexemes, tails, budget, spare })
    }
}

impl StacksAhead {
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
            found_with: None,
            above,
            states,
            places: HashMap::new(),
            tails: Queue::default(),
            masks: Queue::default(),
            in_progress: HashSet::new(),
            below: HashMap::new(),
            num_below: 0,
            spare: Vec::new(),
        }
    }

    /// How many steps lead to the next one; `None` where there is no other.
    pub(in crate::masks) fn steps(&self, which: Ahead) -> Option<u32> {
        let queue = match which {
            Ahead::Tails if !self.states.is_empty() => return Some(0),
            Ahead::Tails => &self.tails,
            Ahead::Masks => &self.masks,
        };
        queue.open.front().map(|open| open.steps)
    }

    /// Looks at a lexeme in progress on stacks with this topmost state; its masks are looked at as far as that alone decides, what depends on
    /// more of the stack is added.
    ///
    /// # Errors
    /// When the budget is used up; work that was called off is begun again by the next call.
    pub(in crate::masks) fn look_at_lexeme(
        &mut self,
        lexer: LexerState,
        top: StateId,
        look: Look<'_, '_>,
    ) -> Result<Looked, Unread> {
        if self.in_progress.contains(&(lexer, top)) || !self.is_current(&look) {
            return Ok(Looked::Place);
        }
        let node = look.growing(&mut self.spare, |fixed, mut growing| {
            growing.budget.spend(1)?;
            let node = growing.first_mask(fixed, lexer, top)?;
            let &ReadNode { said, missing, .. } = growing.tails.mask_nodes.get(node);
            Ok::<_, Unread>((node, missing, Looked::Mask(said.made_of)))
        })?;
        self.in_progress.insert((lexer, top));
        Ok(self.found(Ahead::Masks, node, top, 1))
    }

    /// Looks at one more; leaves all out once nodes were dropped, or places have become numbers into other pieces, as they do where these
    /// take too much memory.
    ///
    /// # Errors
    /// When the budget is used up; work that was called off is begun again by the next call.
    pub(in crate::masks) fn look(
        &mut self,
        which: Ahead,
        look: Look<'_, '_>,
    ) -> Result<Looked, Unread> {
        if !self.is_current(&look) {
            return Ok(Looked::Place);
        }
        if which == Ahead::Tails
            && let Some(&(terminal, state)) = self.states.front()
        {
            let places = match self.places.get(&terminal) {
                Some(known) => Arc::clone(known),
                None => {
                    let found = look.growing(&mut self.spare, |fixed, mut growing| {
                        growing.budget.spend(1)?;
                        places(fixed, &mut growing, terminal)
                    })?;
                    Arc::clone(self.places.entry(terminal).or_insert(found.into()))
                }
            };
            let open = |&place| Open { after: After::Place(place), state, steps: 1 };
            self.tails.open.extend(places.iter().map(open));
            self.states.pop_front();
            return Ok(Looked::Place);
        }
        let queue = match which {
            Ahead::Tails => &mut self.tails,
            Ahead::Masks => &mut self.masks,
        };
        let Some(&Open { after, state, steps }) = queue.open.front() else {
            return Ok(Looked::Place);
        };
        let node = look.growing(&mut self.spare, |fixed, mut growing| {
            growing.budget.spend(1)?;
            Ok::<_, Unread>(match which {
                Ahead::Tails => {
                    let node = match after {
                        After::Place(place) => growing.first_tail(fixed, place, state)?,
                        After::Node(node) => growing.next_tail(fixed, node, state)?,
                    };
                    let &ReadNode { said, missing, .. } = growing.tails.nodes.get(node);
                    (node, missing, Looked::Tail(said.tail))
                }
                Ahead::Masks => {
                    let After::Node(after) = after else { unreachable!("a place is a tail's") };
                    let node = growing.next_mask(fixed, after, state)?;
                    let &ReadNode { said, missing, .. } = growing.tails.mask_nodes.get(node);
                    (node, missing, Looked::Mask(said.made_of))
                }
            })
        })?;
        queue.open.pop_front();
        Ok(self.found(which, node, state, steps))
    }

    /// Adds what comes after a node whose last state was read.
    fn found(
        &mut self,
        which: Ahead,
        (node, missing, looked): (ReadNodeId, u32, Looked),
        state: StateId,
        steps: u32,
    ) -> Looked {
        if missing == 0 {
            return looked;
        }
        let below = self.below(state, missing);
        let queue = match which {
            Ahead::Tails => &mut self.tails,
            Ahead::Masks => &mut self.masks,
        };
        queue.add(node, &below, steps);
        if below.is_empty() { looked } else { Looked::Place }
    }

    /// Whether what was found still means something; forgets all that does not.
    fn is_current(&mut self, look: &Look<'_, '_>) -> bool {
        let pieces = look.lexemes.pieces();
        let (same, generation) =
            self.found_with.get_or_insert_with(|| (Arc::clone(pieces), look.generation));
        let is_current = Arc::ptr_eq(same, pieces) && *generation == look.generation;
        if !is_current {
            self.states.clear();
            (self.tails, self.masks) = (Queue::default(), Queue::default());
        }
        is_current
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
        if self.num_below + found.len() > MAX_BELOW {
            (self.below, self.num_below) = (HashMap::new(), 0);
        }
        self.num_below += found.len();
        self.below.insert((state, depth), Arc::clone(&found));
        found
    }

    /// Leaves out what the last call was to look at.
    pub(in crate::masks) fn skip(&mut self, which: Ahead) {
        match which {
            Ahead::Tails if !self.states.is_empty() => _ = self.states.pop_front(),
            Ahead::Tails => _ = self.tails.open.pop_front(),
            Ahead::Masks => _ = self.masks.open.pop_front(),
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
