//! A mask put together from pieces, with a parser's stack at hand.

use hashbrown::HashSet;
use std::sync::Arc;

use super::analysis::Except;
use super::gathered::Gathered;
use super::lexemes::{Lexeme, LexemeId};
use super::suffixes::SuffixId;
use super::tops::{Shift, TopId, Tops, TopsMemory};
use super::{Lexemes, PieceId, Pieces, Unread};
use crate::glr::StackNode;
use crate::lexer::{AppendOnly, LexerState};
use crate::lr::StateId;
use crate::recognizer::Recognizer;
use crate::vocabulary::VocabularyTrie;
use crate::{Budget, TerminalId};

/// Memory for readings, kept from one to the next.
#[derive(Debug, Default)]
pub(in crate::masks) struct ReadingMemory {
    tops: TopsMemory,
    /// Where lexemes begin at a token's front, and on which stacks.
    fronts: Vec<TopId>,
    /// Where lexemes begin within tokens, and on which stacks.
    begins: Vec<(Place, TopId)>,
    seen: HashSet<(Place, TopId)>,
    /// What places refer to.
    exceptions: Vec<Arc<Except>>,
    shifts: Vec<Shift>,
    blank_nodes: Vec<SuffixId>,
    /// The pieces that tokens may stay within, each once.
    stayed: Vec<PieceId>,
    /// Where lexemes may go on that begin alike, and what they have in common.
    heads: Vec<Place>,
    heads_of: Option<Head>,
    along: Vec<(SuffixId, PieceId)>,
    gathered: Gathered,
}

/// What lexemes have in common that begin at one place: the blanks at their front, and the first byte of the text then, if there is one.
type Head = (Place, Option<PieceId>, Option<u8>);

/// A place in a trie of suffixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place {
    suffix: SuffixId,
    /// Which of the exceptions hold.
    except: Option<u32>,
}

impl Place {
    /// Before the first byte of all tokens.
    const FRONT: Self = Self { suffix: SuffixId::WHOLE, except: None };

    fn at(self, suffix: SuffixId) -> Self {
        Self { suffix, ..self }
    }
}

/// Puts a mask together.
///
/// It takes from the budget: a unit for each lexeme that may begin and each node of a trie that is walked.
#[derive(Debug)]
pub(in crate::masks) struct Reading<'a, 'b> {
    pub(in crate::masks) recognizer: &'a Recognizer,
    pub(in crate::masks) trie: &'a VocabularyTrie,
    pub(in crate::masks) lexemes: &'a mut Lexemes,
    pub(in crate::masks) memory: &'a mut ReadingMemory,
    pub(in crate::masks) budget: &'a mut Budget<'b>,
}

/// Where the parser is once a lexeme has ended.
#[derive(Clone, Copy, Debug)]
enum After {
    /// The lexeme is ignored.
    Same(TopId),
    /// It is shifted on a stack.
    Shifted(TopId, StateId),
}

impl Reading<'_, '_> {
    /// Finds the tokens that may follow a lexeme in progress on the stack that begins with `states`, the last of which is that of
    /// `lowest`: [`ReadingMemory::gathered`] then has them, of masks of `num_words` words. They are right for all stacks that begin
    /// with as many states as [`ReadingMemory::read`] has.
    pub(in crate::masks) fn fill(
        self,
        lexer: LexerState,
        states: &[StateId],
        lowest: StackNode<'_>,
        num_words: usize,
    ) -> Result<(), Unread> {
        self.budget.spend(1)?;
        let in_progress = self.lexemes.in_progress(self.recognizer.lexer(), lexer, self.budget)?;
        let pieces = Arc::clone(self.lexemes.pieces());
        let lexemes = Arc::clone(self.lexemes.all());
        let tops = Tops::new(std::mem::take(&mut self.memory.tops), states, lowest);
        self.memory.fronts.clear();
        self.memory.begins.clear();
        self.memory.seen.clear();
        self.memory.exceptions.clear();
        self.memory.stayed.clear();
        self.memory.heads_of = None;
        self.memory.gathered.clear(num_words);
        let mut at = Filling { reading: self, pieces: &pieces, lexemes: &lexemes, tops };
        let whole = at.tops.whole();
        let result = if in_progress.fresh {
            at.begin_at_fronts(whole)
        } else {
            at.go_on(whole, &in_progress.live)
        };
        let result = result.and_then(|()| at.begin_within()).and_then(|()| at.gather());
        at.reading.memory.tops = at.tops.finish();
        result
    }
}

impl ReadingMemory {
    /// The states that the last reading has read, from the top.
    pub(in crate::masks) fn read(&self) -> &[StateId] {
        self.tops.read()
    }

    /// The tokens that it has found.
    pub(in crate::masks) fn gathered(&self) -> &Gathered {
        &self.gathered
    }
}

/// A mask in the making.
struct Filling<'a, 'b, 's, 'p> {
    reading: Reading<'a, 'b>,
    pieces: &'p Pieces,
    lexemes: &'p AppendOnly<Lexeme>,
    tops: Tops<'s>,
}

impl Filling<'_, '_, '_, '_> {
    /// Adds the tokens that go on with these lexemes.
    fn go_on(&mut self, stack: TopId, live: &[(TerminalId, LexemeId)]) -> Result<(), Unread> {
        let mut shifts = std::mem::take(&mut self.reading.memory.shifts);
        for &(terminal, lexeme) in live {
            shifts.clear();
            let mut after = Vec::new();
            if self.reading.recognizer.ignored().contains(terminal) {
                after.push(After::Same(stack));
            } else {
                let tables = self.reading.recognizer.parser().tables();
                self.tops.shifts(tables, stack, Some(terminal), &mut shifts)?;
                after.extend(shifts.iter().map(|&(_, base, to)| After::Shifted(base, to)));
            }
            if !after.is_empty() {
                self.at_front(lexeme, &after)?;
            }
        }
        self.reading.memory.shifts = shifts;
        let mut done = 0;
        while let Some(&stack) = self.reading.memory.fronts.get(done) {
            done += 1;
            self.begin_at_fronts(stack)?;
        }
        Ok(())
    }

    /// Adds the tokens that stay within pieces.
    fn gather(&mut self) -> Result<(), Unread> {
        let pieces = self.pieces;
        let Reading { trie, ref mut budget, .. } = self.reading;
        let ReadingMemory { gathered, stayed, .. } = &mut *self.reading.memory;
        let num_words = gathered.num_words();
        let mut large = Vec::new();
        for &piece in &*stayed {
            let stay = &pieces.analysis(trie, num_words, piece, budget)?.stay;
            if stay.is_large() {
                large.push(piece);
            } else {
                gathered.insert_all(stay);
            }
        }
        large.sort_unstable();
        if large.len() > 1
            && let Some(union) = pieces.union(&large, num_words)
        {
            gathered.insert_row(&union);
            return Ok(());
        }
        for piece in large {
            let stay = &pieces.analysis(trie, num_words, piece, budget)?.stay;
            pieces.add_bytes(stay.ask(num_words));
            gathered.insert_all(stay);
        }
        Ok(())
    }

    /// Adds the tokens that begin with a new lexeme.
    fn begin_at_fronts(&mut self, stack: TopId) -> Result<(), Unread> {
        self.each_lexeme(stack, |at, lexeme, after| at.at_front(lexeme, after))
    }

    /// Adds what is left of tokens in which a lexeme has ended.
    fn begin_within(&mut self) -> Result<(), Unread> {
        while let Some((place, stack)) = self.reading.memory.begins.pop() {
            if !self.reading.memory.seen.insert((place, stack)) {
                continue;
            }
            self.each_lexeme(stack, |at, lexeme, after| {
                at.begin_at(place, at.lexemes.get(lexeme.index()), after)
            })?;
        }
        Ok(())
    }

    /// Shows all lexemes that may begin on a stack.
    fn each_lexeme(
        &mut self,
        stack: TopId,
        mut show: impl FnMut(&mut Self, LexemeId, &[After]) -> Result<(), Unread>,
    ) -> Result<(), Unread> {
        let recognizer = self.reading.recognizer;
        let mut shifts = std::mem::take(&mut self.reading.memory.shifts);
        shifts.clear();
        self.tops.shifts(recognizer.parser().tables(), stack, None, &mut shifts)?;
        shifts.sort_unstable();
        let mut after = Vec::new();
        for of_terminal in shifts.chunk_by(|(a, ..), (b, ..)| a == b) {
            let Some(lexeme) = self.reading.lexemes.whole(
                recognizer.lexer(),
                of_terminal[0].0,
                self.reading.budget,
            )?
            else {
                continue;
            };
            after.clear();
            after.extend(of_terminal.iter().map(|&(_, base, to)| After::Shifted(base, to)));
            show(self, lexeme, &after)?;
        }
        for terminal in recognizer.ignored().iter() {
            if let Some(lexeme) =
                self.reading.lexemes.whole(recognizer.lexer(), terminal, self.reading.budget)?
            {
                show(self, lexeme, &[After::Same(stack)])?;
            }
        }
        self.reading.memory.shifts = shifts;
        Ok(())
    }

    /// Adds the tokens that begin with what is left of a lexeme.
    fn at_front(&mut self, lexeme: LexemeId, after: &[After]) -> Result<(), Unread> {
        self.reading.budget.spend(1)?;
        let lexeme = self.lexemes.get(lexeme.index());
        if let Some(whole) = lexeme.whole {
            if self.pieces.ends(whole) {
                for &after in after {
                    let next = self.next(after);
                    if !self.reading.memory.fronts.contains(&next) {
                        self.reading.memory.fronts.push(next);
                    }
                }
            }
            return self.stay(whole, |at, place| {
                at.begin(place, after);
                Ok(())
            });
        }
        self.begin_at(Place::FRONT, lexeme, after)
    }

    /// Adds the tokens that go on at a place with a lexeme's blanks, its text and what comes then.
    fn begin_at(&mut self, place: Place, lexeme: &Lexeme, after: &[After]) -> Result<(), Unread> {
        let (first, text) = match &*lexeme.text {
            [first, text @ ..] => (Some(*first), text),
            [] => (None, &[] as _),
        };
        let head = (place, lexeme.blanks, first);
        let mut heads = std::mem::take(&mut self.reading.memory.heads);
        if self.reading.memory.heads_of != Some(head) {
            self.find_heads(head, &mut heads)?;
            self.reading.memory.heads_of = Some(head);
        }
        for &head in &heads {
            self.follow(head, text, lexeme.rest, after)?;
        }
        self.reading.memory.heads = heads;
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
                self.stay(blanks, |_, place| {
                    heads.push(place);
                    Ok(())
                })?;
            }
            Some(blanks) => {
                let mut nodes = std::mem::take(&mut self.reading.memory.blank_nodes);
                self.blank_nodes(place, blanks, &mut nodes)?;
                heads.extend(nodes.iter().map(|&node| place.at(node)));
                self.reading.memory.blank_nodes = nodes;
            }
        }
        if let Some(first) = first {
            heads.retain_mut(|place| {
                let after = self.pieces.suffixes.child(self.reading.trie, place.suffix, first);
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
        mut show: impl FnMut(&mut Self, Place) -> Result<(), Unread>,
    ) -> Result<(), Unread> {
        let pieces = self.pieces;
        let Reading { trie, ref mut budget, .. } = self.reading;
        let ReadingMemory { gathered, stayed, .. } = &mut *self.reading.memory;
        let analysis = pieces.analysis(trie, gathered.num_words(), piece, budget)?;
        if !stayed.contains(&piece) {
            stayed.push(piece);
        }
        for (suffix, except) in &analysis.suffixes {
            let known = &mut self.reading.memory.exceptions;
            let except = except.as_ref().map(|except| {
                known.push(Arc::clone(except));
                known.len() as u32 - 1
            });
            show(self, Place { suffix: *suffix, except })?;
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
        self.reading.budget.spend(1)?;
        let mut at = place;
        for &byte in text {
            match self.pieces.suffixes.child(self.reading.trie, at.suffix, byte) {
                Some(child) => at.suffix = child,
                None => return Ok(()),
            }
            self.insert(at);
        }
        self.along(at, rest, after)
    }

    /// Adds the tokens that go on with a piece.
    fn along(&mut self, place: Place, piece: PieceId, after: &[After]) -> Result<(), Unread> {
        let suffixes = &self.pieces.suffixes;
        let mut work = std::mem::take(&mut self.reading.memory.along);
        work.clear();
        work.push((place.suffix, piece));
        while let Some((suffix, piece)) = work.pop() {
            self.reading.budget.spend(1)?;
            if self.pieces.ends(piece) {
                self.begin(place.at(suffix), after);
            }
            for (&byte, at) in suffixes.node(suffix).bytes().iter().zip(0..) {
                if let Some(next) = self.pieces.advance(piece, byte, self.reading.budget)? {
                    let child = suffixes.child_at(self.reading.trie, suffix, at);
                    self.insert(place.at(child));
                    work.push((child, next));
                }
            }
        }
        self.reading.memory.along = work;
        Ok(())
    }

    /// Finds the nodes that are reached by any number of a piece's bytes, and adds the tokens that end there.
    fn blank_nodes(
        &mut self,
        place: Place,
        blanks: PieceId,
        nodes: &mut Vec<SuffixId>,
    ) -> Result<(), Unread> {
        nodes.clear();
        nodes.push(place.suffix);
        let mut done = 0;
        while let Some(&node) = nodes.get(done) {
            done += 1;
            for (&byte, at) in self.pieces.suffixes.node(node).bytes().iter().zip(0..) {
                if self.pieces.advance(blanks, byte, self.reading.budget)?.is_some() {
                    let child = self.pieces.suffixes.child_at(self.reading.trie, node, at);
                    self.insert(place.at(child));
                    nodes.push(child);
                }
            }
        }
        Ok(())
    }

    /// A lexeme has ended, and more of tokens is to come.
    fn begin(&mut self, place: Place, after: &[After]) {
        if self.pieces.suffixes.node(place.suffix).bytes().is_empty() {
            return;
        }
        for &after in after {
            let next = self.next(after);
            self.reading.memory.begins.push((place, next));
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
        let node = self.pieces.suffixes.node(place.suffix);
        let ReadingMemory { exceptions, gathered, .. } = &mut *self.reading.memory;
        let Some(except) = place.except else {
            node.tokens().iter().for_each(|&token| gathered.insert(token));
            return;
        };
        let except = &exceptions[except as usize];
        for &token in node.tokens() {
            if !except.contains(token, node.depth()) {
                gathered.insert(token);
            }
        }
    }
}
