//! Stack simulation: lexemes that go on or begin on the top of an LR stack, and the suffixes that
//! the parser accepts.
//!
//! Simulations nest up to three levels deep: the mask's own, where a lexeme is in progress or has
//! ended; below it that of tokens that begin with new lexemes; and below that, that of what is left
//! of tokens in which a lexeme has ended. The lower two know one state at a time, and what they
//! find is kept ([`stack_nodes`](super::stack_nodes)).

use std::sync::Arc;

use palmette_core::TokenId;
use palmette_grammar_parser::blocks::{Letter, Line};
use palmette_grammar_parser::glr::{Lookahead, PartialStack, Settled, Shift, TopId};
use palmette_grammar_parser::lexer::LexerState;
use palmette_grammar_parser::lr::StateId;
use palmette_grammar_regex::expressions::ExprId;

use super::deferred_reduction::{DeferredReduction, Outcome, ReductionSite};
use super::layer_states::LayerId;
use super::lexeme_effect::{HeadEffect, LexemeEffect};
use super::lexemes::{LexemeId, LexemesInProgress};
use super::mask_failure::MaskFailure;
use super::member_begin::MemberBegin;
use super::place::Place;
use super::residual_id::ResidualId;
use super::simulation_context::{Memos, SimulationContext};
use super::simulation_memory::SimulationMemory;
use crate::{NonterminalId, TerminalId};

/// Continuation once a lexeme has ended.
#[derive(Clone, Copy, Debug)]
struct Continuation {
    stack: TopId,
    /// State that is pushed on the stack; `None` where the lexeme is dropped.
    to: Option<StateId>,
    /// State of the layer then; where the lexeme ends a line, the one before it.
    layer: LayerId,
    /// True when it depends on the next line how blocks go on.
    ends_line: bool,
    /// Terminal that need not [begin again](Place::follows).
    follows: Option<TerminalId>,
}

/// Simulation of the parser on a stack of which only the topmost state is known.
///
/// It takes from the budget: a unit for each lexeme that may begin and each node of a trie that is
/// walked.
pub(super) struct StackSimulation<'p, 'g, 'b> {
    fixed: SimulationContext<'p>,
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
    pub(super) fn read_place(mut self, place: Place) -> Result<Outcome, MaskFailure> {
        self.start(place, TopId::WHOLE);
        let found = self.find_all();
        self.finish(found)
    }

    /// Suffixes that are accepted once a rule's head is on the stack.
    pub(super) fn read_reduced(
        mut self,
        at: ReductionSite,
        head: NonterminalId,
    ) -> Result<Outcome, MaskFailure> {
        let tables = self.fixed.recognizer.parser().tables();
        if let Some(target) = tables.goto(self.partial.state(TopId::WHOLE), head) {
            let stack = self.partial.push(target, TopId::WHOLE);
            match at {
                ReductionSite::Place(place) => self.start(place, stack),
                ReductionSite::Within(lexeme, terminal, layer) => {
                    self.go_on_with_terminal(stack, (terminal, layer), |_| Ok(Some(lexeme)))?;
                }
            }
        }
        let found = self.find_all();
        self.finish(found)
    }

    /// Finds a mask, as far as the stack is known.
    pub(super) fn read_mask(
        mut self,
        in_progress: &LexemesInProgress,
        layer: LayerId,
    ) -> Result<Outcome, MaskFailure> {
        let found = self.find_mask(in_progress, layer);
        self.finish(found)
    }

    fn find_mask(
        &mut self,
        in_progress: &LexemesInProgress,
        layer: LayerId,
    ) -> Result<(), MaskFailure> {
        self.memory.is_mask = true;
        let whole = TopId::WHOLE;
        if in_progress.fresh {
            let front = Place { condition: in_progress.condition, layer, ..Place::FRONT };
            self.memory.fronts.push((front, whole));
        } else {
            self.go_on(whole, in_progress, layer)?;
        }
        let fronts = std::mem::take(&mut self.memory.fronts);
        for &(front, stack) in &fronts {
            self.along_known(front, stack)?;
        }
        self.memory.fronts = fronts;
        self.follow_begun()
    }

    /// Adds the tokens that go on where lexemes begin within them.
    fn follow_begun(&mut self) -> Result<(), MaskFailure> {
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
        } else {
            self.memory.add_front(place, stack);
        }
    }

    /// Interns what was found, if it was; gives the memory back.
    fn finish(self, found: Result<(), MaskFailure>) -> Result<Outcome, MaskFailure> {
        let mut memory = SimulationMemory { partial: self.partial, ..self.memory };
        let suffix_sets = self.memos.suffix_sets;
        let found = found.map(|()| Outcome {
            suffix_set: suffix_sets.intern(memory.found.clone()),
            deferred: suffix_sets.deferred.intern(&mut memory.deferred),
        });
        suffix_sets.spare.push(memory);
        found
    }

    /// Finds how tokens go on at all places that were added.
    fn find_all(&mut self) -> Result<(), MaskFailure> {
        let mut done = 0;
        while let Some(&(front, stack)) = self.memory.fronts.get(done) {
            done += 1;
            self.begin_lexemes(front, stack)?;
        }
        // What comes where a lexeme has ended is kept for other fronts.
        self.follow_begun()?;
        while let Some((place, stack)) = self.memory.within.pop() {
            if self.memory.seen.insert((place, stack)) {
                self.begin_lexemes(place, stack)?;
            }
            self.memory.within.append(&mut self.memory.begins);
        }
        Ok(())
    }

    /// Adds the suffixes that are accepted at a place as far as the stack is known, and what is
    /// deferred then.
    fn along_known(&mut self, place: Place, stack: TopId) -> Result<(), MaskFailure> {
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
        match memory.is_mask {
            true => suffix_sets.add_part(&mut memory.found, suffix_set),
            false => suffix_sets.add_tokens(&mut memory.found, suffix_set),
        }
        Ok(())
    }

    /// Adds the tokens that go on with lexemes in progress.
    fn go_on(
        &mut self,
        stack: TopId,
        in_progress: &LexemesInProgress,
        layer: LayerId,
    ) -> Result<(), MaskFailure> {
        let recognizer = self.fixed.recognizer;
        let tables = recognizer.parser().tables();
        let top = self.partial.state(stack);
        let live = &*in_progress.live;
        // Where a name may begin, all names of the grammar are in progress, of which the parser
        // takes few.
        if tables.reductions(top).next().is_none() && tables.shifts(top).len() < live.len() {
            let left = |terminal: TerminalId| {
                let at = live.binary_search_by_key(&terminal, |&(terminal, _)| terminal).ok()?;
                Some(live[at].1)
            };
            let shifts = tables.shifts(top).iter().map(|&(terminal, to)| (terminal, Some(to)));
            let shifts = shifts.filter(|&(terminal, _)| !self.is_dropped(terminal, layer));
            let dropped = self.dropped(layer).map(|terminal| (terminal, None));
            let all: Vec<_> = shifts.chain(dropped).collect();
            for (terminal, to) in all {
                if let Some(expr) = left(terminal) {
                    let after = [self.after(stack, to, terminal, layer)];
                    self.go_on_with(in_progress.state, expr, &after)?;
                }
            }
            return Ok(());
        }
        for &(terminal, expr) in live {
            if self.is_dropped(terminal, layer) {
                let after = [self.after(stack, None, terminal, layer)];
                self.go_on_with(in_progress.state, expr, &after)?;
            } else {
                let left = |at: &mut Self| at.left(in_progress.state, expr);
                self.go_on_with_terminal(stack, (terminal, layer), left)?;
            }
        }
        Ok(())
    }

    /// Continuation after a lexeme of a terminal, on a stack and in a state of the layer, where a
    /// state is pushed unless the lexeme is dropped.
    fn after(
        &mut self,
        stack: TopId,
        to: Option<StateId>,
        terminal: TerminalId,
        layer: LayerId,
    ) -> Continuation {
        let of = self.fixed.recognizer.layer();
        let newline = of.indentation.as_ref().map(|marks| marks.newline);
        let ends_line = to.is_some() && newline == Some(terminal);
        let states = &mut self.memos.suffix_sets.layer_states;
        let layer = match ends_line {
            true => layer,
            false => {
                let after = states.after(of, layer, Letter::of(terminal));
                after.expect("only a line can have no block to be in")
            }
        };
        let lexer = self.fixed.recognizer.lexer();
        let follows = to.is_none() && self.memos.lexemes.is_closed(lexer, terminal);
        Continuation { stack, to, layer, ends_line, follows: follows.then_some(terminal) }
    }

    /// True when the parser does not see lexemes of a terminal.
    fn is_dropped(&self, terminal: TerminalId, layer: LayerId) -> bool {
        let blocks = &self.memos.suffix_sets.layer_states.get(layer).blocks;
        self.fixed.recognizer.layer().is_dropped(blocks, terminal)
    }

    /// The terminals whose lexemes the parser does not see.
    fn dropped(&self, layer: LayerId) -> impl Iterator<Item = TerminalId> + use<'p> {
        let of = self.fixed.recognizer.layer();
        let newline = of.indentation.as_ref().map(|marks| marks.newline);
        let newline = newline
            .filter(|&newline| !of.ignored.contains(newline) && self.is_dropped(newline, layer));
        of.ignored.iter().chain(newline)
    }

    /// Adds the tokens that go on with a terminal's lexeme in progress on a stack.
    fn go_on_with_terminal(
        &mut self,
        stack: TopId,
        (terminal, layer): (TerminalId, LayerId),
        left: impl FnOnce(&mut Self) -> Result<Option<LexemeId>, MaskFailure>,
    ) -> Result<(), MaskFailure> {
        let shifts = self.shifts(stack, Lookahead::Terminal(terminal))?;
        let after = shifts.iter().map(|&(_, base, to)| self.after(base, Some(to), terminal, layer));
        let after: Vec<_> = after.collect();
        self.memory.shifts = shifts;
        if after.is_empty() && self.partial.open_reductions().is_empty() {
            return Ok(());
        }
        let Some(lexeme) = left(self)? else { return Ok(()) };
        self.defer(ReductionSite::Within(lexeme, terminal, layer));
        self.go_on_with_lexeme(lexeme, &after)
    }

    /// Shifts that are possible next, as far as the stack is known; [`defer`](Self::defer) those
    /// that are open.
    fn shifts(&mut self, stack: TopId, next: Lookahead<'_>) -> Result<Vec<Shift>, MaskFailure> {
        let mut shifts = std::mem::take(&mut self.memory.shifts);
        shifts.clear();
        let tables = self.fixed.recognizer.parser().tables();
        self.partial.shifts(tables, &[stack], next, &mut shifts)?;
        Ok(shifts)
    }

    /// Defers the reductions that are open.
    fn defer(&mut self, at: ReductionSite) {
        let open = self.partial.open_reductions().iter();
        self.memory.deferred.extend(open.map(|&reduction| DeferredReduction { at, reduction }));
    }

    /// Adds the tokens that go on with one of the lexemes in progress.
    fn go_on_with(
        &mut self,
        state: LexerState,
        expr: ExprId,
        after: &[Continuation],
    ) -> Result<(), MaskFailure> {
        match self.left(state, expr)? {
            Some(lexeme) => self.go_on_with_lexeme(lexeme, after),
            None => Ok(()),
        }
    }

    /// Residual of a terminal in a state of the lexer.
    fn left(&mut self, state: LexerState, expr: ExprId) -> Result<Option<LexemeId>, MaskFailure> {
        let Memos { lexemes, budget, .. } = &mut self.memos;
        lexemes.left(self.fixed.recognizer.lexer(), state, expr, budget)
    }

    /// Adds the tokens that go on with a lexeme; those of a mask that end within its text are a
    /// part of their own.
    fn go_on_with_lexeme(
        &mut self,
        lexeme: LexemeId,
        after: &[Continuation],
    ) -> Result<(), MaskFailure> {
        if after.is_empty() {
            return Ok(());
        }
        // What lexemes have in common is a part of each of them, which other masks have without the
        // others.
        self.memory.head = None;
        self.at_front(Place::FRONT, lexeme, after)?;
        let SimulationMemory { found, is_mask, .. } = &mut self.memory;
        if *is_mask && !found.tokens.is_empty() {
            found.parts.push(self.memos.suffix_sets.of_text(lexeme, &mut found.tokens));
        }
        Ok(())
    }

    /// Adds how tokens go on at a place with all lexemes that may begin on a stack, as far as it is
    /// known. Marks of blocks come first: once one of them is shifted, the place is added anew.
    fn begin_lexemes(&mut self, place: Place, stack: TopId) -> Result<(), MaskFailure> {
        let recognizer = self.fixed.recognizer;
        let marks = self.memos.suffix_sets.layer_states.get(place.layer).marks;
        if let Some(mark) = recognizer.layer().mark(marks) {
            let layer = self.memos.suffix_sets.layer_states.after_mark(place.layer);
            let shifts = self.shifts(stack, Lookahead::Terminal(mark))?;
            self.defer(ReductionSite::Place(place));
            for &(_, base, to) in &shifts {
                let next = self.partial.push(to, base);
                self.start(Place { layer, ..place }, next);
            }
            self.memory.shifts = shifts;
            return Ok(());
        }
        let Some(stack) = self.settled(place, stack)? else { return Ok(()) };
        let was_reduced = place.context.is_some();
        let context = || recognizer.contexts().map(|all| all.of(self.partial.state(stack)));
        let place = Place { context: place.context.or_else(context), ..place };
        // Within tokens, only what comes there can be the next lexeme.
        let viable = match place.is_front() {
            true => None,
            false => Some(self.memos.viable_at(place.suffix)),
        };
        let mut shifts =
            self.shifts(stack, viable.as_deref().map_or(Lookahead::Any, Lookahead::OneOf))?;
        self.defer(ReductionSite::Place(place));
        shifts.sort_unstable();
        let mut after = Vec::new();
        for of_terminal in shifts.chunk_by(|(a, ..), (b, ..)| a == b) {
            let terminal = of_terminal[0].0;
            if self.is_dropped(terminal, place.layer) {
                continue;
            }
            if recognizer.grammar().slot_of(terminal).is_some() {
                self.begin_member(place, terminal)?;
                continue;
            }
            after.clear();
            for &(_, base, to) in of_terminal {
                after.push(self.after(base, Some(to), terminal, place.layer));
            }
            self.begin_lexeme(place, terminal, &after)?;
        }
        self.memory.shifts = shifts;
        // What is ignored is no lookahead to reduce by: after it, the stack is what it was, and so
        // is the next lexeme's context.
        if was_reduced {
            return Ok(());
        }
        for terminal in self.dropped(place.layer) {
            let is_viable = viable.as_ref().is_none_or(|viable| viable.contains(terminal));
            if is_viable && place.follows != Some(terminal) {
                let after = self.after(stack, None, terminal, place.layer);
                self.begin_lexeme(place, terminal, &[after])?;
            }
        }
        Ok(())
    }

    /// Adds that a member may begin at a place, or after the lexeme that comes first there.
    fn begin_member(&mut self, place: Place, terminal: TerminalId) -> Result<(), MaskFailure> {
        let Some(first) = place.before else {
            self.add_member(place, terminal);
            return Ok(());
        };
        for place in self.after_joined(first)? {
            self.add_member(place, terminal);
        }
        Ok(())
    }

    fn add_member(&mut self, place: Place, terminal: TerminalId) {
        let in_all = place.except.is_none() && place.condition == ExprId::ALL;
        let begin = MemberBegin { terminal, suffix: place.suffix, in_all };
        self.memory.found.parts.push(self.memos.suffix_sets.of_member(begin));
    }

    /// The places after a lexeme that comes first at a front.
    fn after_joined(
        &mut self,
        first: LexemeId,
    ) -> Result<impl Iterator<Item = Place> + use<'p>, MaskFailure> {
        let fixed = self.fixed;
        let first = fixed.lexemes[first.index()].whole.expect("only one residual is joined");
        let ended = fixed.residuals.ends(first);
        let ended = ended.map(|condition| Place { condition, ..Place::FRONT });
        Ok(ended.into_iter().chain(fixed.ends_within(first, self.memos.budget)?))
    }

    /// Adds how tokens go on at a place with a terminal's lexeme, as one with the lexeme that comes
    /// first there.
    fn begin_lexeme(
        &mut self,
        place: Place,
        terminal: TerminalId,
        after: &[Continuation],
    ) -> Result<(), MaskFailure> {
        let Some(lexeme) = self.begun(place, terminal)? else { return Ok(()) };
        let Some(first) = place.before else { return self.go_on_at(place, lexeme, after) };
        if after[0].ends_line || self.fixed.lexemes[lexeme.index()].looks_behind {
            return self.begin_after(first, place, terminal, after);
        }
        let Memos { lexemes, budget, .. } = &mut self.memos;
        match lexemes.joined(self.fixed.recognizer.lexer(), (first, lexeme), budget)? {
            Some(joined) => self.at_front(place, joined, after),
            None => Ok(()),
        }
    }

    /// Adds how tokens go on with a terminal's lexeme after the one that comes first at a front,
    /// where both cannot be one residual: what comes after a line's end depends on that alone, and
    /// one that looks behind sees no other lexeme.
    fn begin_after(
        &mut self,
        first: LexemeId,
        front: Place,
        terminal: TerminalId,
        after: &[Continuation],
    ) -> Result<(), MaskFailure> {
        for end in self.after_joined(first)? {
            let Place { context, layer, .. } = front;
            let place = Place { context, layer, ..end };
            if let Some(lexeme) = self.begun(place, terminal)? {
                self.go_on_at(place, lexeme, after)?;
            }
        }
        Ok(())
    }

    /// Adds how tokens go on at a place with a lexeme.
    fn go_on_at(
        &mut self,
        place: Place,
        lexeme: LexemeId,
        after: &[Continuation],
    ) -> Result<(), MaskFailure> {
        match place.is_front() {
            true => self.at_front(place, lexeme, after),
            false => self.begin_at(place, lexeme, after),
        }
    }

    /// A terminal before its first byte; `None` where it cannot begin.
    fn begun(
        &mut self,
        place: Place,
        terminal: TerminalId,
    ) -> Result<Option<LexemeId>, MaskFailure> {
        let Memos { lexemes, budget, .. } = &mut self.memos;
        let at = (place.context, place.condition);
        lexemes.begun(self.fixed.recognizer, terminal, at, budget)
    }

    /// The stack on which a lexeme begins at a place: where the topmost state decides its context,
    /// after the reductions that need no lookahead; `None` where that is not known, which is then
    /// deferred, or there is none.
    fn settled(&mut self, place: Place, stack: TopId) -> Result<Option<TopId>, MaskFailure> {
        let recognizer = self.fixed.recognizer;
        if recognizer.contexts().is_none() || place.context.is_some() {
            return Ok(Some(stack));
        }
        Ok(match self.partial.settled(recognizer.parser().tables(), stack)? {
            Settled::On(stack) => Some(stack),
            Settled::Nowhere => None,
            Settled::After(reduction) => {
                self.memory
                    .deferred
                    .push(DeferredReduction { at: ReductionSite::Place(place), reduction });
                None
            }
        })
    }

    /// Adds the tokens that begin with what is left of a lexeme.
    fn at_front(
        &mut self,
        front: Place,
        id: LexemeId,
        after: &[Continuation],
    ) -> Result<(), MaskFailure> {
        self.memos.budget.spend(1)?;
        let lexeme = &self.fixed.lexemes[id.index()];
        if after[0].ends_line {
            self.start_after_line(id, after)?;
            return self.begin_at(Place::FRONT, id, after);
        }
        let Some(whole) = lexeme.whole else { return self.begin_at(Place::FRONT, id, after) };
        if front.before.is_none() && self.is_joined(whole)? {
            for &after in after {
                let next = after.stack(&mut self.partial);
                self.start(Place { before: Some(id), ..after.front(ExprId::ALL) }, next);
            }
            return self.consumed(whole, &[]);
        }
        if let Some(condition) = self.fixed.residuals.ends(whole) {
            for &after in after {
                let next = after.stack(&mut self.partial);
                self.start(after.front(condition), next);
            }
        }
        self.consumed(whole, after)
    }

    /// Adds the fronts after a line's end of which nothing is to come.
    fn start_after_line(
        &mut self,
        lexeme: LexemeId,
        after: &[Continuation],
    ) -> Result<(), MaskFailure> {
        let SimulationContext { recognizer, residuals, .. } = self.fixed;
        let Memos { lexemes, suffix_sets, budget, .. } = &mut self.memos;
        let whole = lexemes.whole_residual(recognizer.lexer(), lexeme, budget)?;
        let Some(condition) = whole.and_then(|whole| residuals.ends(whole)) else { return Ok(()) };
        for &after in after {
            let states = &mut suffix_sets.layer_states;
            if let Some(layer) = states.after_line(recognizer.layer(), after.layer, Line::UNKNOWN) {
                let next = after.stack(&mut self.partial);
                self.memory.add_front(Place { condition, layer, ..Place::FRONT }, next);
            }
        }
        Ok(())
    }

    /// True when a lexeme is taken as one with each that may come next.
    ///
    /// PERF: after a space any word may come, and so most of what is left of the tokens that begin
    /// with one. As a part of the lexeme that comes next these are found once for all stacks.
    fn is_joined(&mut self, whole: ResidualId) -> Result<bool, MaskFailure> {
        let SimulationContext { residuals, trie, num_words, .. } = self.fixed;
        let effect = residuals.effect(trie, num_words, whole, self.memos.budget)?;
        Ok(effect.consumed.is_sparse() && effect.suffixes.iter().any(|ended| ended.are_many))
    }

    /// Adds how tokens go on at a place with a lexeme, taken as it is.
    fn begin_at(
        &mut self,
        place: Place,
        lexeme: LexemeId,
        after: &[Continuation],
    ) -> Result<(), MaskFailure> {
        self.memos.budget.spend(1)?;
        let ends_line = after.first().is_some_and(|after| after.ends_line);
        let effect = self.memos.lexeme_effect(place.suffix, lexeme, ends_line)?;
        let Self { fixed, memory, .. } = self;
        let except = place.except.map(|except| fixed.residuals.except(except));
        let counts = |&&(token, left): &&(TokenId, u32)| {
            except.is_none_or(|except| !except.contains(token, left))
        };
        let LexemeEffect { head, tokens, part, ends } = &*effect;
        let is_same = |(known, without): &(Arc<HeadEffect>, _)| {
            Arc::ptr_eq(known, head) && *without == place.except
        };
        if !memory.head.as_ref().is_some_and(is_same) {
            memory.found.consuming.extend(head.consuming);
            memory.found.tokens.extend(head.tokens.iter().filter(counts));
            memory.head = Some((Arc::clone(head), place.except));
        }
        memory.found.tokens.extend(tokens.iter().filter(counts));
        if let Some(part) = *part {
            let suffix_sets = &mut self.memos.suffix_sets;
            let left = |except| suffix_sets.without(part, except, fixed.residuals);
            memory.found.parts.push(place.except.map_or(part, left));
        }
        for &after in after {
            let next = after.stack(&mut self.partial);
            for end in ends {
                let except = end.place.except.or(place.except);
                self.end_at(Place { except, ..end.place }, (after, end.line), next)?;
            }
        }
        Ok(())
    }

    /// Adds a place where a lexeme has ended, unless that leads to a line with no block to be in.
    fn end_at(
        &mut self,
        place: Place,
        (after, line): (Continuation, Line),
        next: TopId,
    ) -> Result<(), MaskFailure> {
        let states = &mut self.memos.suffix_sets.layer_states;
        let layer = match after.ends_line {
            true => states.after_line(self.fixed.recognizer.layer(), after.layer, line),
            false => Some(after.layer),
        };
        if let Some(layer) = layer {
            let layer = self.memos.layer_at(place.suffix, layer);
            let place = Place { layer, follows: after.follows, ..place };
            self.memory.begins.push((place, next));
        }
        Ok(())
    }

    /// Adds the tokens consumed whole by a residual, and the places where its lexeme has ended
    /// within others.
    fn consumed(
        &mut self,
        residual: ResidualId,
        after: &[Continuation],
    ) -> Result<(), MaskFailure> {
        if !self.memory.found.consuming.contains(&residual) {
            self.memory.found.consuming.push(residual);
        }
        let fixed = self.fixed;
        for end in fixed.ends_within(residual, self.memos.budget)? {
            if fixed.goes_on(end, self.memos.budget)? {
                for &after in after {
                    let next = after.stack(&mut self.partial);
                    self.end_at(end, (after, Line::OTHER), next)?;
                }
            }
        }
        Ok(())
    }
}

impl Continuation {
    /// The stack on which the next lexeme begins.
    fn stack(self, partial: &mut PartialStack) -> TopId {
        self.to.map_or(self.stack, |to| partial.push(to, self.stack))
    }

    /// The place before the first byte of tokens then.
    fn front(self, condition: ExprId) -> Place {
        Place { condition, layer: self.layer, follows: self.follows, ..Place::FRONT }
    }
}
