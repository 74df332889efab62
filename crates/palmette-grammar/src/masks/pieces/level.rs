//! Lexemes that go on or begin on a stack.
//!
//! A stack is read at up to three levels: the mask's own, where a lexeme is in progress or has ended; below it that of tokens that begin
//! with new lexemes; and below that, that of what is left of tokens in which a lexeme has ended. The lower two know one state at a time,
//! and what they find is kept ([`tail_nodes`](super::tail_nodes)).

use hashbrown::HashSet;
use palmette_core::TokenId;

use super::analysis::Except;
use super::lexemes::{InProgress, Lexeme, LexemeId};
use super::suffixes::SuffixId;
use super::tail_nodes::TailNodeId;
use super::tails::{Tail, TailId, Tails};
use super::tops::{Below, Deeper, Shift, TopId, Tops, TopsMemory, Unfinished};
use super::{Lexemes, PieceId, Pieces, Unread};
use crate::lexer::{AppendOnly, LexerState};
use crate::lr::StateId;
use crate::recognizer::Recognizer;
use crate::regex::expressions::ExprId;
use crate::vocabulary::VocabularyTrie;
use crate::{Budget, TerminalId};

/// What of a mask is found together. What each of them has does not depend on the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::masks) enum Component {
    /// The tokens that stay within a piece.
    Stay(PieceId),
    /// A tail.
    Tail(TailId),
}

/// The exceptions of one of the tries of suffixes after a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ExceptId {
    piece: PieceId,
    suffixes: u32,
}

impl Pieces {
    /// The exceptions.
    pub(super) fn except(&self, id: ExceptId) -> &Except {
        let analysis = self.piece(id.piece).analysis.get().expect("where they were found");
        analysis.suffixes[id.suffixes as usize].1.as_ref().expect("it has some")
    }
}

/// A place in a trie of suffixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    suffix: SuffixId,
    /// What does not count.
    except: Option<ExceptId>,
}

impl Place {
    /// Before the first byte of all tokens.
    const FRONT: Self = Self { suffix: SuffixId::WHOLE, except: None };

    fn at(self, suffix: SuffixId) -> Self {
        Self { suffix, ..self }
    }
}

/// What goes on at a place once a reduction is done that pops more of the stack than is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Pending {
    place: Place,
    pub(super) reduction: Unfinished,
}

/// What is found with one state at hand.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) tail: Tail,
    /// Ascending.
    pub(super) pending: Box<[Pending]>,
}

/// Where the parser is once a lexeme has ended.
#[derive(Clone, Copy, Debug)]
enum After {
    /// The lexeme is ignored.
    Same(TopId),
    /// It is shifted on a stack.
    Shifted(TopId, StateId),
}

/// What lexemes have in common that begin at one place: the blanks at their front, and the first byte of the text then, if there is one.
type Head = (Place, Option<PieceId>, Option<u8>);

/// The memory of a level, kept from one to the next.
#[derive(Debug, Default)]
pub(super) struct LevelMemory {
    pub(super) tops: TopsMemory,
    /// Single tokens, with the lengths of what was left of them.
    pub(super) tokens: Vec<(TokenId, u32)>,
    /// The pieces that tokens may stay within, each once.
    stayed: Vec<PieceId>,
    /// The stacks on which lexemes begin at a token's front.
    fronts: Vec<TopId>,
    /// Where lexemes begin within tokens, and on which stacks.
    begins: Vec<(Place, TopId)>,
    seen: HashSet<(Place, TopId)>,
    shifts: Vec<Shift>,
    blank_nodes: Vec<SuffixId>,
    /// Where lexemes may go on that begin alike, and what they have in common.
    heads: Vec<Place>,
    heads_of: Option<Head>,
    along: Vec<(SuffixId, PieceId)>,
    pending: Vec<Pending>,
}

impl LevelMemory {
    fn clear(&mut self) {
        self.tokens.clear();
        self.stayed.clear();
        self.fronts.clear();
        self.begins.clear();
        self.seen.clear();
        self.pending.clear();
        self.heads_of = None;
    }
}

/// What all levels read.
#[derive(Clone, Copy)]
pub(super) struct Fixed<'p> {
    pub(super) recognizer: &'p Recognizer,
    pub(super) trie: &'p VocabularyTrie,
    pub(super) num_words: usize,
    pub(super) pieces: &'p Pieces,
    pub(super) lexemes: &'p AppendOnly<Lexeme>,
}

/// What all levels add to.
pub(super) struct Growing<'g, 'b> {
    pub(super) lexemes: &'g mut Lexemes,
    pub(super) tails: &'g mut Tails,
    pub(super) budget: &'g mut Budget<'b>,
    /// Memory for further levels.
    pub(super) spare: &'g mut Vec<LevelMemory>,
}

impl<'b> Growing<'_, 'b> {
    /// The same for a while.
    pub(super) fn reborrow(&mut self) -> Growing<'_, 'b> {
        let Self { lexemes, tails, budget, spare } = self;
        Growing { lexemes, tails, budget, spare }
    }
}

/// A stack being read.
///
/// It takes from the budget: a unit for each lexeme that may begin and each node of a trie that is walked.
pub(super) struct Level<'p, 'g, 'b> {
    fixed: Fixed<'p>,
    growing: Growing<'g, 'b>,
    tops: Tops<'g>,
    memory: LevelMemory,
}

impl<'p, 'g, 'b> Level<'p, 'g, 'b> {
    /// A stack that begins with `states`, below the last of which is `below`.
    pub(super) fn new(
        fixed: Fixed<'p>,
        growing: Growing<'g, 'b>,
        states: &[StateId],
        below: Below<'g>,
    ) -> Self {
        let mut memory = growing.spare.pop().unwrap_or_default();
        memory.clear();
        let tops = Tops::new(std::mem::take(&mut memory.tops), states, below);
        Self { fixed, growing, tops, memory }
    }

    /// A stack of which only the topmost state is known.
    pub(super) fn on(fixed: Fixed<'p>, growing: Growing<'g, 'b>, top: StateId) -> Self {
        let below = if top == StateId::START { Below::Entry(None) } else { Below::Unknown };
        Self::new(fixed, growing, &[top], below)
    }

    /// Gives the memory back, in which are the states that were read.
    pub(super) fn finish(self) -> LevelMemory {
        LevelMemory { tops: self.tops.finish(), ..self.memory }
    }

    /// How tokens go on at a place.
    pub(super) fn read_place(mut self, suffix: SuffixId) -> Result<Found, Unread> {
        let whole = self.tops.whole();
        self.start(Place { suffix, except: None }, whole);
        self.read_to_end()
    }

    /// How tokens go on where something is pending, of which as many states are missing as with this one are known.
    pub(super) fn read_pending(mut self, pending: &[Pending], known: u32) -> Result<Found, Unread> {
        let tables = self.fixed.recognizer.parser().tables();
        let whole = self.tops.whole();
        for &Pending { place, reduction: Unfinished { head, missing } } in pending {
            if missing > known {
                let reduction = Unfinished { head, missing: missing - known };
                self.memory.pending.push(Pending { place, reduction });
            } else if let Some(target) = tables.goto(self.tops.state(whole), head) {
                let stack = self.tops.push(target, whole);
                self.start(place, stack);
            }
        }
        self.read_to_end()
    }

    /// Finds what a mask is made of: ascending, each once.
    pub(super) fn read_mask(
        &mut self,
        in_progress: &InProgress,
        components: &mut Vec<Component>,
    ) -> Result<(), Unread> {
        components.clear();
        let whole = self.tops.whole();
        if in_progress.fresh {
            self.memory.fronts.push(whole);
        } else {
            self.go_on(whole, in_progress, components)?;
        }
        let fronts = std::mem::take(&mut self.memory.fronts);
        for &stack in &fronts {
            components.push(Component::Tail(self.tail(SuffixId::WHOLE, stack)?));
        }
        self.memory.fronts = fronts;
        self.tails_of_begins(components)?;
        components.extend(self.memory.stayed.iter().copied().map(Component::Stay));
        components.sort_unstable();
        components.dedup();
        Ok(())
    }

    /// Adds a place on a stack.
    fn start(&mut self, place: Place, stack: TopId) {
        if place != Place::FRONT {
            self.memory.begins.push((place, stack));
        } else if !self.memory.fronts.contains(&stack) {
            self.memory.fronts.push(stack);
        }
    }

    /// Finds how tokens go on at all places that were added.
    fn read_to_end(mut self) -> Result<Found, Unread> {
        let found = self.find_all();
        let memory = self.tops.finish();
        self.growing.spare.push(LevelMemory { tops: memory, ..self.memory });
        found
    }

    fn find_all(&mut self) -> Result<Found, Unread> {
        while let Some((place, stack)) = self.memory.begins.pop() {
            if self.memory.seen.insert((place, stack)) {
                self.each_lexeme(place, stack, |at, lexeme, after| {
                    at.begin_at(place, at.fixed.lexemes.get(lexeme.index()), after)
                })?;
            }
        }
        let mut done = 0;
        while let Some(&stack) = self.memory.fronts.get(done) {
            done += 1;
            self.each_lexeme(Place::FRONT, stack, |at, lexeme, after| at.at_front(lexeme, after))?;
        }
        while let Some((place, stack)) = self.memory.begins.pop() {
            if self.memory.seen.insert((place, stack)) {
                self.along_known(place, stack)?;
            }
        }
        let LevelMemory { tokens, stayed, pending, .. } = &mut self.memory;
        tokens.sort_unstable();
        tokens.dedup();
        stayed.sort_unstable();
        pending.sort_unstable();
        pending.dedup();
        let tail = Tail { tokens: tokens.as_slice().into(), stayed: stayed.as_slice().into() };
        Ok(Found { tail, pending: pending.as_slice().into() })
    }

    /// Adds the tokens that go on at a place within them after a front, as far as the stack is known, and what is pending then.
    fn along_known(&mut self, place: Place, stack: TopId) -> Result<(), Unread> {
        let (node, read) = self.node(place.suffix, stack)?;
        let nodes = &self.growing.tails.nodes;
        let mut tail = nodes.tail(node);
        if let Some(read) = read {
            self.memory.pending.extend(nodes.pending(node).iter().map(|pending| {
                let Unfinished { head, missing } = pending.reduction;
                let reduction = Unfinished { head, missing: missing - read };
                Pending { place: Place { except: place.except, ..pending.place }, reduction }
            }));
        }
        if let Some(except) = place.except {
            tail = self.growing.tails.without(tail, except, self.fixed.pieces);
        }
        self.memory.tokens.extend_from_slice(&self.growing.tails.get(tail).tokens);
        Ok(())
    }

    /// Finds the tails of the places where lexemes begin within tokens.
    fn tails_of_begins(&mut self, components: &mut Vec<Component>) -> Result<(), Unread> {
        while let Some((place, stack)) = self.memory.begins.pop() {
            if !self.memory.seen.insert((place, stack)) {
                continue;
            }
            let mut tail = self.tail(place.suffix, stack)?;
            if let Some(except) = place.except {
                tail = self.growing.tails.without(tail, except, self.fixed.pieces);
            }
            if tail != TailId::NOTHING {
                components.push(Component::Tail(tail));
            }
        }
        Ok(())
    }

    /// How tokens go on at a place on a stack that is known whole.
    fn tail(&mut self, suffix: SuffixId, stack: TopId) -> Result<TailId, Unread> {
        let (node, _) = self.node(suffix, stack)?;
        Ok(self.growing.tails.nodes.tail(node))
    }

    /// How tokens go on at a place on a stack as far as that is known, and how many of the states that are missing were read, if what
    /// is pending is so because of that.
    fn node(
        &mut self,
        suffix: SuffixId,
        stack: TopId,
    ) -> Result<(TailNodeId, Option<u32>), Unread> {
        let mut at = stack;
        let mut node = self.growing.first_node(self.fixed, suffix, self.tops.state(at))?;
        loop {
            let missing = self.growing.tails.nodes.missing(node);
            if missing == 0 {
                return Ok((node, None));
            }
            for read in 0..missing {
                match self.tops.below(at) {
                    Ok(Some(below)) => at = below,
                    Ok(None) => return Ok((node, None)),
                    Err(Deeper) => return Ok((node, Some(read))),
                }
            }
            node = self.growing.next_node(self.fixed, node, self.tops.state(at))?;
        }
    }

    /// Adds the tokens that go on with lexemes in progress; of those that are taken as texts, what they are made of.
    fn go_on(
        &mut self,
        stack: TopId,
        in_progress: &InProgress,
        components: &mut Vec<Component>,
    ) -> Result<(), Unread> {
        let recognizer = self.fixed.recognizer;
        let tables = recognizer.parser().tables();
        let top = self.tops.state(stack);
        let live = &*in_progress.live;
        // Where a name may begin, all names of the grammar are in progress, of which the parser takes few.
        if tables.reductions(top).next().is_none() && tables.shifts(top).len() < live.len() {
            let left = |terminal: TerminalId| {
                let at = live.binary_search_by_key(&terminal, |&(terminal, _)| terminal).ok()?;
                Some(live[at].1)
            };
            for &(terminal, to) in tables.shifts(top) {
                if let Some(expr) = left(terminal) {
                    let after = [After::Shifted(stack, to)];
                    self.go_on_with(in_progress.state, expr, &after, components)?;
                }
            }
            for terminal in recognizer.ignored().iter() {
                if let Some(expr) = left(terminal) {
                    let after = [After::Same(stack)];
                    self.go_on_with(in_progress.state, expr, &after, components)?;
                }
            }
            return Ok(());
        }
        let mut shifts = std::mem::take(&mut self.memory.shifts);
        let mut after = Vec::new();
        for &(terminal, expr) in live {
            shifts.clear();
            after.clear();
            if recognizer.ignored().contains(terminal) {
                after.push(After::Same(stack));
            } else {
                self.tops.shifts(tables, stack, Some(terminal), &mut shifts)?;
                after.extend(shifts.iter().map(|&(_, base, to)| After::Shifted(base, to)));
            }
            if !after.is_empty() {
                self.go_on_with(in_progress.state, expr, &after, components)?;
            }
        }
        self.memory.shifts = shifts;
        Ok(())
    }

    /// Adds the tokens that go on with one of the lexemes in progress.
    fn go_on_with(
        &mut self,
        state: LexerState,
        expr: ExprId,
        after: &[After],
        components: &mut Vec<Component>,
    ) -> Result<(), Unread> {
        let Growing { lexemes, budget, .. } = &mut self.growing;
        let lexer = self.fixed.recognizer.lexer();
        let Some(lexeme) = lexemes.left(lexer, state, expr, budget)? else { return Ok(()) };
        self.at_front(lexeme, after)?;
        if !self.memory.tokens.is_empty() {
            let tail = self.growing.tails.of_text(lexeme, &mut self.memory.tokens);
            components.push(Component::Tail(tail));
        }
        Ok(())
    }

    /// Shows all lexemes that may begin at a place on a stack, as far as it is known.
    fn each_lexeme(
        &mut self,
        place: Place,
        stack: TopId,
        mut show: impl FnMut(&mut Self, LexemeId, &[After]) -> Result<(), Unread>,
    ) -> Result<(), Unread> {
        let recognizer = self.fixed.recognizer;
        let mut shifts = std::mem::take(&mut self.memory.shifts);
        shifts.clear();
        self.tops.shifts(recognizer.parser().tables(), stack, None, &mut shifts)?;
        let unfinished = self.tops.unfinished().iter();
        self.memory.pending.extend(unfinished.map(|&reduction| Pending { place, reduction }));
        shifts.sort_unstable();
        let mut after = Vec::new();
        for of_terminal in shifts.chunk_by(|(a, ..), (b, ..)| a == b) {
            if let Some(lexeme) = self.whole(of_terminal[0].0)? {
                after.clear();
                after.extend(of_terminal.iter().map(|&(_, base, to)| After::Shifted(base, to)));
                show(self, lexeme, &after)?;
            }
        }
        for terminal in recognizer.ignored().iter() {
            if let Some(lexeme) = self.whole(terminal)? {
                show(self, lexeme, &[After::Same(stack)])?;
            }
        }
        self.memory.shifts = shifts;
        Ok(())
    }

    /// A terminal before its first byte.
    fn whole(&mut self, terminal: TerminalId) -> Result<Option<LexemeId>, Unread> {
        let Growing { lexemes, budget, .. } = &mut self.growing;
        lexemes.whole(self.fixed.recognizer.lexer(), terminal, budget)
    }

    /// Adds the tokens that begin with what is left of a lexeme.
    fn at_front(&mut self, lexeme: LexemeId, after: &[After]) -> Result<(), Unread> {
        self.growing.budget.spend(1)?;
        let lexeme = self.fixed.lexemes.get(lexeme.index());
        let Some(whole) = lexeme.whole else { return self.begin_at(Place::FRONT, lexeme, after) };
        if self.fixed.pieces.ends(whole) {
            for &after in after {
                let next = self.next(after);
                if !self.memory.fronts.contains(&next) {
                    self.memory.fronts.push(next);
                }
            }
        }
        self.stay(whole, |at, place| {
            at.begin(place, after);
        })
    }

    /// Adds the tokens that go on at a place with a lexeme's blanks, its text and what comes then.
    fn begin_at(&mut self, place: Place, lexeme: &Lexeme, after: &[After]) -> Result<(), Unread> {
        let (first, text) = match &*lexeme.text {
            [first, text @ ..] => (Some(*first), text),
            [] => (None, &[] as _),
        };
        let head = (place, lexeme.blanks, first);
        let mut heads = std::mem::take(&mut self.memory.heads);
        if self.memory.heads_of != Some(head) {
            self.find_heads(head, &mut heads)?;
            self.memory.heads_of = Some(head);
        }
        for &head in &heads {
            self.follow(head, text, lexeme.rest, after)?;
        }
        self.memory.heads = heads;
        Ok(())
    }

    /// Finds the places after what lexemes have in common, and adds the tokens that end on the way.
    fn find_heads(
        &mut self,
        (place, blanks, first): Head,
        heads: &mut Vec<Place>,
    ) -> Result<(), Unread> {
        heads.clear();
        match blanks {
            None => heads.push(place),
            Some(blanks) if place == Place::FRONT => {
                heads.push(place);
                self.stay(blanks, |_, place| heads.push(place))?;
            }
            Some(blanks) => {
                let mut nodes = std::mem::take(&mut self.memory.blank_nodes);
                self.blank_nodes(place, blanks, &mut nodes)?;
                heads.extend(nodes.iter().map(|&node| place.at(node)));
                self.memory.blank_nodes = nodes;
            }
        }
        if let Some(first) = first {
            let Fixed { pieces, trie, .. } = self.fixed;
            heads.retain_mut(|place| {
                let after = pieces.suffixes.child(trie, place.suffix, first);
                if let Some(suffix) = after {
                    *place = place.at(suffix);
                    self.insert(*place);
                }
                after.is_some()
            });
        }
        Ok(())
    }

    /// Adds the tokens that stay within a piece; shows what may be left of others.
    fn stay(
        &mut self,
        piece: PieceId,
        mut show: impl FnMut(&mut Self, Place),
    ) -> Result<(), Unread> {
        let Fixed { pieces, trie, num_words, .. } = self.fixed;
        let analysis = pieces.analysis(trie, num_words, piece, self.growing.budget)?;
        if !self.memory.stayed.contains(&piece) {
            self.memory.stayed.push(piece);
        }
        for ((suffix, except), suffixes) in analysis.suffixes.iter().zip(0..) {
            let except = except.as_ref().map(|_| ExceptId { piece, suffixes });
            show(self, Place { suffix: *suffix, except });
        }
        Ok(())
    }

    /// Adds the tokens that go on with a text and what comes then.
    fn follow(
        &mut self,
        place: Place,
        text: &[u8],
        rest: PieceId,
        after: &[After],
    ) -> Result<(), Unread> {
        self.growing.budget.spend(1)?;
        let Fixed { pieces, trie, .. } = self.fixed;
        let mut at = place;
        for &byte in text {
            match pieces.suffixes.child(trie, at.suffix, byte) {
                Some(child) => at.suffix = child,
                None => return Ok(()),
            }
            self.insert(at);
        }
        self.along(at, rest, after)
    }

    /// Adds the tokens that go on with a piece.
    fn along(&mut self, place: Place, piece: PieceId, after: &[After]) -> Result<(), Unread> {
        let Fixed { pieces, trie, .. } = self.fixed;
        let mut work = std::mem::take(&mut self.memory.along);
        work.clear();
        work.push((place.suffix, piece));
        while let Some((suffix, piece)) = work.pop() {
            self.growing.budget.spend(1)?;
            if pieces.ends(piece) {
                self.begin(place.at(suffix), after);
            }
            for (&byte, at) in pieces.suffixes.node(suffix).bytes().iter().zip(0..) {
                if let Some(next) = pieces.advance(piece, byte, self.growing.budget)? {
                    let child = pieces.suffixes.child_at(trie, suffix, at);
                    self.insert(place.at(child));
                    work.push((child, next));
                }
            }
        }
        self.memory.along = work;
        Ok(())
    }

    /// Finds the nodes that are reached by any number of a piece's bytes, and adds the tokens that end there.
    fn blank_nodes(
        &mut self,
        place: Place,
        blanks: PieceId,
        nodes: &mut Vec<SuffixId>,
    ) -> Result<(), Unread> {
        let Fixed { pieces, trie, .. } = self.fixed;
        nodes.clear();
        nodes.push(place.suffix);
        let mut done = 0;
        while let Some(&node) = nodes.get(done) {
            done += 1;
            for (&byte, at) in pieces.suffixes.node(node).bytes().iter().zip(0..) {
                if pieces.advance(blanks, byte, self.growing.budget)?.is_some() {
                    let child = pieces.suffixes.child_at(trie, node, at);
                    self.insert(place.at(child));
                    nodes.push(child);
                }
            }
        }
        Ok(())
    }

    /// A lexeme has ended, and more of tokens is to come.
    fn begin(&mut self, place: Place, after: &[After]) {
        if self.fixed.pieces.suffixes.node(place.suffix).bytes().is_empty() {
            return;
        }
        for &after in after {
            let next = self.next(after);
            self.memory.begins.push((place, next));
        }
    }

    fn next(&mut self, after: After) -> TopId {
        match after {
            After::Same(stack) => stack,
            After::Shifted(base, to) => self.tops.push(to, base),
        }
    }

    /// Adds the tokens that are at their end.
    fn insert(&mut self, place: Place) {
        let node = self.fixed.pieces.suffixes.node(place.suffix);
        let tokens = node.tokens().iter().map(|&token| (token, node.depth()));
        match place.except {
            None => self.memory.tokens.extend(tokens),
            Some(except) => {
                let except = self.fixed.pieces.except(except);
                let counts = |&(token, left): &(TokenId, u32)| !except.contains(token, left);
                self.memory.tokens.extend(tokens.filter(counts));
            }
        }
    }
}
