//! Stack simulation: lexemes that go on or begin on the top of an LR stack, and the suffixes that the parser accepts.
//!
//! Simulations nest up to three levels deep: the mask's own, where a lexeme is in progress or has ended; below it that of tokens that begin
//! with new lexemes; and below that, that of what is left of tokens in which a lexeme has ended. The lower two know one state at a time,
//! and what they find is kept ([`stack_nodes`](super::stack_nodes)).

use hashbrown::HashSet;
use palmette_core::TokenId;
use palmette_parser::glr::{PartialStack, Settled, Shift, TopId};
use palmette_parser::lexer::LexerState;
use palmette_parser::lr::StateId;
use palmette_parser::recognizer::{ContextId, Recognizer};
use palmette_regex::expressions::ExprId;

use super::deferred_reduction::{At, DeferredId, DeferredReduction};
use super::lexemes::{InProgress, Lexeme, LexemeId};
use super::stack_nodes::Asked;
use super::suffix_sets::{SuffixSet, SuffixSetId, SuffixSets};
use super::suffix_trie::SuffixId;
use super::token_effect::Except;
use super::{Lexemes, ResidualId, Residuals, Unread};
use crate::vocabulary::VocabularyTrie;
use crate::{Budget, NonterminalId, TerminalId};

/// The exceptions of one of the tries of suffixes after a residual.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ExceptId {
    residual: ResidualId,
    suffixes: u32,
}

impl Residuals {
    /// The exceptions.
    pub(super) fn except(&self, id: ExceptId) -> &Except {
        let effect = self.residual(id.residual).effect.get().expect("where they were found");
        effect.suffixes[id.suffixes as usize].except.as_ref().expect("it has some")
    }
}

/// A place in a trie of suffixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) suffix: SuffixId,
    /// Tokens that do not count.
    pub(super) except: Option<ExceptId>,
    /// Condition that earlier lexemes put on the text from here.
    pub(super) condition: ExprId,
    /// Residual of a lexeme that comes first; only before the first byte of tokens.
    pub(super) before: Option<LexemeId>,
    /// The context of the lexeme that begins here, where there are contexts and reductions have begun that wait for the lexeme; else
    /// that of the topmost state.
    pub(super) context: Option<ContextId>,
}

impl Place {
    /// Place before the first byte of all tokens.
    const FRONT: Self = Self {
        suffix: SuffixId::WHOLE,
        except: None,
        condition: ExprId::ALL,
        before: None,
        context: None,
    };

    fn is_front(self) -> bool {
        self.suffix == SuffixId::WHOLE
    }

    pub(super) fn asked(self) -> Asked {
        if self.is_front() { Asked::Front } else { Asked::Within }
    }

    fn at(self, suffix: SuffixId) -> Self {
        Self { suffix, ..self }
    }

    /// Place at which a lexeme has ended that puts a condition on the text from here.
    fn after_lexeme(self, suffix: SuffixId, condition: ExprId) -> Self {
        Self { suffix, condition, before: None, context: None, ..self }
    }
}

/// Result of a simulation with one state at hand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) suffix_set: SuffixSetId,
    pub(super) deferred: DeferredId,
}

/// Stack once a lexeme has ended.
#[derive(Clone, Copy, Debug)]
enum After {
    /// The lexeme is ignored.
    Same(TopId),
    /// Shift on a stack.
    Shifted(TopId, StateId),
}

/// Common head of lexemes that begin at one place: the blanks at their front, and the first byte of the text then, if there is one.
type Head = (Place, Option<ResidualId>, Option<u8>);

/// Memory of a simulation, kept from one to the next.
#[derive(Debug, Default)]
pub(super) struct SimulationMemory {
    partial: PartialStack,
    /// The tokens that may follow, as far as they were found.
    found: SuffixSet,
    /// True when that is a mask.
    is_mask: bool,
    /// The stacks on which lexemes begin at a token's front, and under which conditions.
    fronts: Vec<(Place, TopId)>,
    /// Places within tokens at which lexemes begin, and their stacks.
    begins: Vec<(Place, TopId)>,
    /// Stacks among them that are followed here.
    within: Vec<(Place, TopId)>,
    seen: HashSet<(Place, TopId)>,
    shifts: Vec<Shift>,
    blank_nodes: Vec<SuffixId>,
    /// Places where lexemes that begin alike may go on, and what they have in common.
    heads: Vec<Place>,
    heads_of: Option<Head>,
    along: Vec<(SuffixId, ResidualId)>,
    deferred: Vec<DeferredReduction>,
}

impl SimulationMemory {
    fn clear(&mut self) {
        self.found.clear();
        self.is_mask = false;
        self.fronts.clear();
        self.begins.clear();
        self.within.clear();
        self.seen.clear();
        self.deferred.clear();
        self.heads_of = None;
    }
}

/// Context that all simulations read.
#[derive(Clone, Copy)]
pub(super) struct Fixed<'p> {
    pub(super) recognizer: &'p Recognizer,
    pub(super) trie: &'p VocabularyTrie,
    pub(super) num_words: usize,
    pub(super) residuals: &'p Residuals,
    pub(super) lexemes: &'p boxcar::Vec<Lexeme>,
}

/// Memos that all simulations add to.
pub(super) struct Memos<'p, 'g, 'b> {
    pub(super) fixed: Fixed<'p>,
    pub(super) lexemes: &'g mut Lexemes,
    pub(super) suffix_sets: &'g mut SuffixSets,
    pub(super) budget: &'g mut Budget<'b>,
}

impl<'p, 'b> Memos<'p, '_, 'b> {
    /// Lends them for a while.
    pub(super) fn reborrow(&mut self) -> Memos<'p, '_, 'b> {
        let Self { fixed, lexemes, suffix_sets, budget } = self;
        Memos { fixed: *fixed, lexemes, suffix_sets, budget }
    }
}

/// Simulation of the parser on a stack of which only the topmost state is known.
///
/// It takes from the budget: a unit for each lexeme that may begin and each node of a trie that is walked.
pub(super) struct StackSimulation<'p, 'g, 'b> {
    fixed: Fixed<'p>,
    memos: Memos<'p, 'g, 'b>,
    partial: PartialStack,
    memory: SimulationMemory,
}

impl<'p, 'g, 'b> StackSimulation<'p, 'g, 'b> {
    /// A stack of which only the topmost state is known.
    pub(super) fn on(memos: Memos<'p, 'g, 'b>, top: StateId) -> Self {
        let mut memory = memos.suffix_sets.spare.pop().unwrap_or_default();
        memory.clear();
        let mut partial = std::mem::take(&mut memory.partial);
        partial.begin(&[top]);
        Self { fixed: memos.fixed, memos, partial, memory }
    }

    /// Suffixes that are accepted at a place.
    pub(super) fn read_place(mut self, place: Place) -> Result<Found, Unread> {
        self.start(place, TopId::WHOLE);
        let found = self.find_all();
        self.finish(found)
    }

    /// Suffixes that are accepted once a rule's head is on the stack.
    pub(super) fn read_reduced(mut self, at: At, head: NonterminalId) -> Result<Found, Unread> {
        let tables = self.fixed.recognizer.parser().tables();
        if let Some(target) = tables.goto(self.partial.state(TopId::WHOLE), head) {
            let stack = self.partial.push(target, TopId::WHOLE);
            match at {
                At::Place(place) => self.start(place, stack),
                At::Within(lexeme, terminal) => {
                    self.go_on_with_terminal(stack, terminal, |_| Ok(Some(lexeme)))?;
                }
            }
        }
        let found = self.find_all();
        self.finish(found)
    }

    /// Finds a mask, as far as the stack is known.
    pub(super) fn read_mask(mut self, in_progress: &InProgress) -> Result<Found, Unread> {
        let found = self.find_mask(in_progress);
        self.finish(found)
    }

    fn find_mask(&mut self, in_progress: &InProgress) -> Result<(), Unread> {
        self.memory.is_mask = true;
        let whole = TopId::WHOLE;
        if in_progress.fresh {
            let front = Place { condition: in_progress.condition, ..Place::FRONT };
            self.memory.fronts.push((front, whole));
        } else {
            self.go_on(whole, in_progress)?;
        }
        let fronts = std::mem::take(&mut self.memory.fronts);
        for &(front, stack) in &fronts {
            self.along_known(front, stack)?;
        }
        self.memory.fronts = fronts;
        self.follow_begun()
    }

    /// Adds the tokens that go on where lexemes begin within them.
    fn follow_begun(&mut self) -> Result<(), Unread> {
        while let Some((place, stack)) = self.memory.begins.pop() {
            if self.memory.seen.insert((place, stack)) {
                self.along_known(place, stack)?;
            }
        }
        Ok(())
    }

    /// Adds a place on a stack.
    fn start(&mut self, place: Place, stack: TopId) {
        if !place.is_front() {
            self.memory.within.push((place, stack));
        } else if !self.memory.fronts.contains(&(place, stack)) {
            self.memory.fronts.push((place, stack));
        }
    }

    /// Interns what was found, if it was; gives the memory back.
    fn finish(self, found: Result<(), Unread>) -> Result<Found, Unread> {
        let mut memory = SimulationMemory { partial: self.partial, ..self.memory };
        let suffix_sets = self.memos.suffix_sets;
        let found = found.map(|()| Found {
            suffix_set: suffix_sets.intern(memory.found.clone()),
            deferred: suffix_sets.deferred.intern(&mut memory.deferred),
        });
        suffix_sets.spare.push(memory);
        found
    }

    /// Finds how tokens go on at all places that were added.
    fn find_all(&mut self) -> Result<(), Unread> {
        let mut done = 0;
        while let Some(&(front, stack)) = self.memory.fronts.get(done) {
            done += 1;
            self.each_lexeme(front, stack, |at, lexeme, after| at.at_front(front, lexeme, after))?;
        }
        // What comes where a lexeme has ended is kept for other fronts.
        self.follow_begun()?;
        while let Some((place, stack)) = self.memory.within.pop() {
            if self.memory.seen.insert((place, stack)) {
                self.each_lexeme(place, stack, |at, lexeme, after| {
                    at.begin_at(place, &at.fixed.lexemes[lexeme.index()], after)
                })?;
            }
            self.memory.within.append(&mut self.memory.begins);
        }
        Ok(())
    }

    /// Adds the suffixes that are accepted at a place as far as the stack is known, and what is deferred then.
    fn along_known(&mut self, place: Place, stack: TopId) -> Result<(), Unread> {
        let Some(stack) = self.settled(place, stack)? else { return Ok(()) };
        let Self { fixed, memos, partial, memory } = self;
        let (mut at, mut is_known) = (stack, true);
        let counted = Place { except: None, ..place };
        let first = memos.first_suffixes(counted, partial.state(at))?;
        let (said, read) = memos.read_on(place.asked(), first, || {
            at = partial.below(at).unwrap_or_else(|_| {
                is_known = false;
                None
            })?;
            Some(partial.state(at))
        })?;
        let suffix_sets = &mut *memos.suffix_sets;
        if !is_known {
            let deferred = suffix_sets.deferred.get(said.deferred).iter();
            let deferred = deferred.map(|deferred| deferred.after(read).without(place.except));
            memory.deferred.extend(deferred);
        }
        let suffix_set = match place.except {
            None => said.suffix_set,
            Some(except) => suffix_sets.without(said.suffix_set, except, fixed.residuals),
        };
        if !memory.is_mask {
            memory.found.tokens.extend_from_slice(&suffix_sets.get(suffix_set).tokens);
        } else if suffix_set != SuffixSetId::NOTHING {
            memory.found.parts.push(suffix_set);
        }
        Ok(())
    }

    /// Adds the tokens that go on with lexemes in progress.
    fn go_on(&mut self, stack: TopId, in_progress: &InProgress) -> Result<(), Unread> {
        let recognizer = self.fixed.recognizer;
        let tables = recognizer.parser().tables();
        let top = self.partial.state(stack);
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
                    self.go_on_with(in_progress.state, expr, &after)?;
                }
            }
            for terminal in recognizer.ignored().iter() {
                if let Some(expr) = left(terminal) {
                    let after = [After::Same(stack)];
                    self.go_on_with(in_progress.state, expr, &after)?;
                }
            }
            return Ok(());
        }
        for &(terminal, expr) in live {
            if recognizer.ignored().contains(terminal) {
                let after = [After::Same(stack)];
                self.go_on_with(in_progress.state, expr, &after)?;
            } else {
                let left = |at: &mut Self| at.left(in_progress.state, expr);
                self.go_on_with_terminal(stack, terminal, left)?;
            }
        }
        Ok(())
    }

    /// Adds the tokens that go on with a terminal's lexeme in progress on a stack.
    fn go_on_with_terminal(
        &mut self,
        stack: TopId,
        terminal: TerminalId,
        left: impl FnOnce(&mut Self) -> Result<Option<LexemeId>, Unread>,
    ) -> Result<(), Unread> {
        let tables = self.fixed.recognizer.parser().tables();
        let mut shifts = std::mem::take(&mut self.memory.shifts);
        shifts.clear();
        let found = self.partial.shifts(tables, &[stack], Some(terminal), &mut shifts);
        let after: Vec<_> = shifts.iter().map(|&(_, base, to)| After::Shifted(base, to)).collect();
        self.memory.shifts = shifts;
        found?;
        if after.is_empty() && self.partial.open_reductions().is_empty() {
            return Ok(());
        }
        let Some(lexeme) = left(self)? else { return Ok(()) };
        let at = At::Within(lexeme, terminal);
        let open = self.partial.open_reductions().iter();
        self.memory.deferred.extend(open.map(|&reduction| DeferredReduction { at, reduction }));
        self.go_on_with_lexeme(lexeme, &after)
    }

    /// Adds the tokens that go on with one of the lexemes in progress.
    fn go_on_with(
        &mut self,
        state: LexerState,
        expr: ExprId,
        after: &[After],
    ) -> Result<(), Unread> {
        match self.left(state, expr)? {
            Some(lexeme) => self.go_on_with_lexeme(lexeme, after),
            None => Ok(()),
        }
    }

    /// Residual of a terminal in a state of the lexer.
    fn left(&mut self, state: LexerState, expr: ExprId) -> Result<Option<LexemeId>, Unread> {
        let Memos { lexemes, budget, .. } = &mut self.memos;
        lexemes.left(self.fixed.recognizer.lexer(), state, expr, budget)
    }

    /// Adds the tokens that go on with a lexeme; those of a mask that end within its text are a part of their own.
    fn go_on_with_lexeme(&mut self, lexeme: LexemeId, after: &[After]) -> Result<(), Unread> {
        if after.is_empty() {
            return Ok(());
        }
        // What lexemes have in common is a part of each of them, which other masks have without the others.
        self.memory.heads_of = None;
        self.at_front(Place::FRONT, lexeme, after)?;
        let SimulationMemory { found, is_mask, .. } = &mut self.memory;
        if *is_mask && !found.tokens.is_empty() {
            found.parts.push(self.memos.suffix_sets.of_text(lexeme, &mut found.tokens));
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
        let Some(stack) = self.settled(place, stack)? else { return Ok(()) };
        let was_reduced = place.context.is_some();
        let context = || recognizer.contexts().map(|all| all.of(self.partial.state(stack)));
        let place = Place { context: place.context.or_else(context), ..place };
        let mut shifts = std::mem::take(&mut self.memory.shifts);
        shifts.clear();
        self.partial.shifts(recognizer.parser().tables(), &[stack], None, &mut shifts)?;
        let open = self.partial.open_reductions().iter();
        let at = At::Place(place);
        self.memory.deferred.extend(open.map(|&reduction| DeferredReduction { at, reduction }));
        shifts.sort_unstable();
        let mut after = Vec::new();
        for of_terminal in shifts.chunk_by(|(a, ..), (b, ..)| a == b) {
            if let Some(lexeme) = self.begun(place, of_terminal[0].0)? {
                after.clear();
                after.extend(of_terminal.iter().map(|&(_, base, to)| After::Shifted(base, to)));
                show(self, lexeme, &after)?;
            }
        }
        self.memory.shifts = shifts;
        // What is ignored is no lookahead to reduce by: after it, the stack is what it was, and so is the next lexeme's context.
        if was_reduced {
            return Ok(());
        }
        for terminal in recognizer.ignored().iter() {
            if let Some(lexeme) = self.begun(place, terminal)? {
                show(self, lexeme, &[After::Same(stack)])?;
            }
        }
        Ok(())
    }

    /// A terminal before its first byte; `None` where it cannot begin.
    fn begun(&mut self, place: Place, terminal: TerminalId) -> Result<Option<LexemeId>, Unread> {
        let Memos { lexemes, budget, .. } = &mut self.memos;
        let (recognizer, at) = (self.fixed.recognizer, (place.context, place.condition));
        let begun = lexemes.begun(recognizer, terminal, at, budget)?;
        match begun.zip(place.before) {
            Some((lexeme, before)) => lexemes.joined(recognizer.lexer(), (before, lexeme), budget),
            None => Ok(begun),
        }
    }

    /// The stack on which a lexeme begins at a place: where the topmost state decides its context, after the reductions that need no
    /// lookahead; `None` where that is not known, which is then deferred, or there is none.
    fn settled(&mut self, place: Place, stack: TopId) -> Result<Option<TopId>, Unread> {
        let recognizer = self.fixed.recognizer;
        if recognizer.contexts().is_none() || place.context.is_some() {
            return Ok(Some(stack));
        }
        Ok(match self.partial.settled(recognizer.parser().tables(), stack)? {
            Settled::On(stack) => Some(stack),
            Settled::Nowhere => None,
            Settled::After(reduction) => {
                self.memory.deferred.push(DeferredReduction { at: At::Place(place), reduction });
                None
            }
        })
    }

    /// Adds the tokens that begin with what is left of a lexeme.
    fn at_front(&mut self, front: Place, id: LexemeId, after: &[After]) -> Result<(), Unread> {
        self.memos.budget.spend(1)?;
        let lexeme = &self.fixed.lexemes[id.index()];
        let Some(whole) = lexeme.whole else { return self.begin_at(Place::FRONT, lexeme, after) };
        if front.before.is_none() && self.is_joined(whole)? {
            for &after in after {
                let next = self.next(after);
                self.start(Place { before: Some(id), ..Place::FRONT }, next);
            }
            return self.consumed(whole, |_, _| Ok(()));
        }
        if let Some(condition) = self.fixed.residuals.ends(whole) {
            let front = Place { condition, ..Place::FRONT };
            for &after in after {
                let next = (front, self.next(after));
                if !self.memory.fronts.contains(&next) {
                    self.memory.fronts.push(next);
                }
            }
        }
        self.consumed(whole, |at, place| at.begin(place, after))
    }

    /// True when a lexeme is taken as one with each that may come next.
    ///
    /// PERF: after a space any word may come, and so most of what is left of the tokens that begin with one. As a part of the lexeme that
    /// comes next these are found once for all stacks.
    fn is_joined(&mut self, whole: ResidualId) -> Result<bool, Unread> {
        let Fixed { residuals, trie, num_words, .. } = self.fixed;
        let effect = residuals.effect(trie, num_words, whole, self.memos.budget)?;
        Ok(effect.consumed.is_sparse() && effect.suffixes.iter().any(|ended| ended.are_many))
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
            Some(blanks) if place.is_front() => {
                heads.push(place);
                self.consumed(blanks, |_, place| {
                    heads.push(place);
                    Ok(())
                })?;
            }
            Some(blanks) => {
                let mut nodes = std::mem::take(&mut self.memory.blank_nodes);
                self.blank_nodes(place, blanks, &mut nodes)?;
                heads.extend(nodes.iter().map(|&node| place.at(node)));
                self.memory.blank_nodes = nodes;
            }
        }
        if let Some(first) = first {
            let Fixed { residuals, trie, .. } = self.fixed;
            heads.retain_mut(|place| {
                let after = residuals.suffixes.child(trie, place.suffix, first);
                if let Some(suffix) = after {
                    *place = place.at(suffix);
                    self.insert(*place);
                }
                after.is_some()
            });
        }
        Ok(())
    }

    /// Adds the tokens consumed whole by a residual; shows what may be left of others.
    fn consumed(
        &mut self,
        residual: ResidualId,
        mut show: impl FnMut(&mut Self, Place) -> Result<(), Unread>,
    ) -> Result<(), Unread> {
        let Fixed { residuals, trie, num_words, .. } = self.fixed;
        let effect = residuals.effect(trie, num_words, residual, self.memos.budget)?;
        if !self.memory.found.consuming.contains(&residual) {
            self.memory.found.consuming.push(residual);
        }
        for (ended, suffixes) in effect.suffixes.iter().zip(0..) {
            let except = ended.except.as_ref().map(|_| ExceptId { residual, suffixes });
            let place = Place::FRONT.after_lexeme(ended.suffixes, ended.condition);
            show(self, Place { except, ..place })?;
        }
        Ok(())
    }

    /// Adds the tokens that go on with a text and what comes then.
    fn follow(
        &mut self,
        place: Place,
        text: &[u8],
        rest: ResidualId,
        after: &[After],
    ) -> Result<(), Unread> {
        self.memos.budget.spend(1)?;
        let Fixed { residuals, trie, .. } = self.fixed;
        let mut at = place;
        for &byte in text {
            match residuals.suffixes.child(trie, at.suffix, byte) {
                Some(child) => at.suffix = child,
                None => return Ok(()),
            }
            self.insert(at);
        }
        self.along(at, rest, after)
    }

    /// Adds the tokens that go on with a residual.
    fn along(&mut self, place: Place, residual: ResidualId, after: &[After]) -> Result<(), Unread> {
        let Fixed { residuals, trie, .. } = self.fixed;
        let mut work = std::mem::take(&mut self.memory.along);
        work.clear();
        work.push((place.suffix, residual));
        while let Some((suffix, residual)) = work.pop() {
            self.memos.budget.spend(1)?;
            if let Some(condition) = residuals.ends(residual) {
                self.begin(place.after_lexeme(suffix, condition), after)?;
            }
            for (&byte, at) in residuals.suffixes.node(suffix).bytes().iter().zip(0..) {
                if let Some(next) = residuals.advance(residual, byte, self.memos.budget)? {
                    let child = residuals.suffixes.child_at(trie, suffix, at);
                    self.insert(place.at(child));
                    work.push((child, next));
                }
            }
        }
        self.memory.along = work;
        Ok(())
    }

    /// Finds the nodes that are reached by any number of a residual's bytes, and adds the tokens that end there.
    fn blank_nodes(
        &mut self,
        place: Place,
        blanks: ResidualId,
        nodes: &mut Vec<SuffixId>,
    ) -> Result<(), Unread> {
        let Fixed { residuals, trie, .. } = self.fixed;
        nodes.clear();
        nodes.push(place.suffix);
        let mut done = 0;
        while let Some(&node) = nodes.get(done) {
            done += 1;
            for (&byte, at) in residuals.suffixes.node(node).bytes().iter().zip(0..) {
                if residuals.advance(blanks, byte, self.memos.budget)?.is_some() {
                    let child = residuals.suffixes.child_at(trie, node, at);
                    self.insert(place.at(child));
                    nodes.push(child);
                }
            }
        }
        Ok(())
    }

    /// A lexeme has ended, and more of tokens is to come.
    fn begin(&mut self, place: Place, after: &[After]) -> Result<(), Unread> {
        let residuals = self.fixed.residuals;
        let bytes = residuals.suffixes.node(place.suffix).bytes();
        if bytes.is_empty() {
            return Ok(());
        }
        if place.condition != ExprId::ALL {
            let allowed = residuals.allowed_by(place.condition, self.memos.budget)?;
            if !bytes.iter().any(|&byte| allowed.contains(byte)) {
                return Ok(());
            }
        }
        for &after in after {
            let next = self.next(after);
            self.memory.begins.push((place, next));
        }
        Ok(())
    }

    fn next(&mut self, after: After) -> TopId {
        match after {
            After::Same(stack) => stack,
            After::Shifted(base, to) => self.partial.push(to, base),
        }
    }

    /// Adds the tokens that are at their end.
    fn insert(&mut self, place: Place) {
        let node = self.fixed.residuals.suffixes.node(place.suffix);
        let tokens = node.tokens().iter().map(|&token| (token, node.depth()));
        match place.except {
            None => self.memory.found.tokens.extend(tokens),
            Some(except) => {
                let except = self.fixed.residuals.except(except);
                let counts = |&(token, left): &(TokenId, u32)| !except.contains(token, left);
                self.memory.found.tokens.extend(tokens.filter(counts));
            }
        }
    }
}
