//! Subset construction of lexer states, a step at a time.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;
use palmette_grammar_regex::expressions::{ExprId, ExpressionLimits, Expressions, Horizon};
use palmette_grammar_regex::{ByteSet, fingerprint};

use super::{
    Deciding, Demand, Ends, Guards, LexemeEnd, LexerError, LexerLimits, LexerState, Remainders,
    State, UNKNOWN,
    error::Kind,
    history::{Histories, HistoryId},
    rivalry::Rivalry,
};
use crate::{Budget, Grammar, Lexing, TerminalId, TerminalKind, TerminalSet};

/// Target of a step from a state.
pub(super) enum Transition {
    Dead,
    State(LexerState),
}

/// The part of a [`Lexer`](super::Lexer) that is behind its lock: expressions, and states by what
/// they mean.
#[derive(Debug)]
pub(super) struct Determiniser {
    expressions: Expressions,
    /// Ranks by terminal.
    ranks: Vec<Rank>,
    /// Ignored terminals, which do not lose to literals of their priority.
    ignored: TerminalSet,
    shadowed: TerminalSet,
    /// Free terminals, which do not compete.
    free: TerminalSet,
    lexing: Lexing,
    /// Expression of each terminal, where a text begins; where any lexeme does, but for those that
    /// look at the text before.
    whole: Box<[Live]>,
    histories: Histories,
    ids: HashMap<Meaning, LexerState>,
    /// States at which any lexeme begins, by their condition and the text before.
    begun: HashMap<(ExprId, HistoryId), LexerState>,
    meanings: Vec<Meaning>,
    /// Found when a lexeme first begins under a condition.
    beginnings: Vec<Beginning>,
    rivalry: Rivalry,
    /// Fingerprints of expressions, as far as they were asked for.
    fingerprints: HashMap<ExprId, u128>,
    max_states: usize,
    /// Memory that the states and their meanings keep elsewhere.
    list_bytes: usize,
}

/// Beginnings of a terminal's lexemes, as far as they are known.
#[derive(Debug)]
struct Beginning {
    terminal: TerminalId,
    /// The lexemes that it wins.
    left: ExprId,
    /// Bytes that were looked at.
    known: ByteSet,
    /// Bytes of the class that some lexeme begins with.
    leads: ByteSet,
}

/// Meaning of a state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Meaning {
    /// True when no byte of the lexeme was read.
    fresh: bool,
    /// True when the live terminals compete: only the longest lexeme counts, and of equals those of
    /// the highest rank.
    competes: bool,
    /// The condition that earlier lexemes put on the text from here.
    pending: ExprId,
    /// Residuals of the terminals that can still match, by terminal.
    live: Box<[Live]>,
    /// Guards: further demands on the text after the lexemes of some of these, by terminal.
    guards: Box<[Live]>,
    /// The text up to here, as far as lexemes that begin next look at it.
    history: HistoryId,
}

pub(super) type Live = (TerminalId, ExprId);

/// Priority, then literals before patterns: higher wins.
type Rank = (i32, bool);

/// Complements by rank: all but what terminals of higher ranks match.
type Losses = HashMap<Rank, ExprId>;

impl Determiniser {
    pub(super) fn new(
        grammar: &Grammar,
        used: &BTreeSet<TerminalId>,
        limits: &LexerLimits,
        budget: &mut Budget<'_>,
    ) -> Result<Self, LexerError> {
        let mut expressions = Expressions::new(ExpressionLimits {
            max_expressions: limits.max_expressions,
            max_nesting: limits.max_nesting,
            max_visited: limits.max_visited,
        })?;
        let (mut whole, mut unpicked) = (Vec::with_capacity(used.len()), Vec::new());
        for &id in used {
            let terminal = &grammar.terminals()[id.index()];
            let name = || terminal.name.clone();
            let lexemes = expressions
                .making(budget)
                .compile_unpicked(&terminal.regex)
                .map_err(|error| Kind::Terminal { name: name(), why: error.0 })?;
            let compiled = expressions
                .making(budget)
                .picked(lexemes)
                .map_err(|error| Kind::Terminal { name: name(), why: error.into() })?;
            let null = expressions.null(compiled);
            if expressions.making(budget).can_hold(null)? {
                return Err(Kind::EmptyTerminal { name: name() }.into());
            }
            // What looks back may match nothing where a text begins, and something elsewhere.
            if compiled != ExprId::NEVER || expressions.looks_behind(lexemes.expr) {
                whole.push((id, compiled));
                unpicked.push((id, lexemes));
            }
        }
        let rank = |terminal: &crate::Terminal| {
            (terminal.priority, terminal.kind == TerminalKind::Literal)
        };
        let mut made = Self {
            expressions,
            ranks: grammar.terminals().iter().map(rank).collect(),
            shadowed: TerminalSet::new(grammar.terminals().len()),
            ignored: crate::grammar::ignored_terminals(grammar),
            free: free_terminals(grammar),
            lexing: grammar.lexing(),
            whole: whole.into(),
            histories: Histories::default(),
            ids: HashMap::new(),
            begun: HashMap::new(),
            meanings: Vec::new(),
            beginnings: Vec::new(),
            rivalry: Rivalry::default(),
            fingerprints: HashMap::new(),
            max_states: limits.max_states,
            list_bytes: 0,
        };
        made.histories = Histories::new(&mut made.expressions, &unpicked, budget)?;
        let looking_back = made.looking_back();
        let matches =
            |&(terminal, expr): &Live| expr != ExprId::NEVER || looking_back.contains(terminal);
        made.whole = made.whole.iter().copied().filter(matches).collect();
        if made.lexing.competes() {
            made.find_shadowed(grammar, budget)?;
        }
        Ok(made)
    }

    pub(super) fn shadowed(&self) -> &TerminalSet {
        &self.shadowed
    }

    pub(super) fn num_states(&self) -> usize {
        self.meanings.len()
    }

    pub(super) fn is_half_full(&self) -> bool {
        self.num_states() > self.max_states / 2
    }

    pub(super) fn num_expressions(&self) -> usize {
        self.expressions.len()
    }

    /// About how much memory everything here takes.
    pub(super) fn bytes(&self) -> usize {
        self.expressions.bytes()
            + self.fingerprints.len() * size_of::<(ExprId, u128)>()
            + self.list_bytes
            + self.meanings.capacity() * (2 * size_of::<Meaning>() + size_of::<State>())
    }

    pub(super) fn start(
        &mut self,
        states: &boxcar::Vec<State>,
        budget: &mut Budget<'_>,
    ) -> Result<LexerState, LexerError> {
        self.begin(states, ExprId::ALL, HistoryId::default(), budget)
    }

    /// The terminals that look at the text before their lexemes.
    pub(super) fn looking_back(&self) -> TerminalSet {
        let mut found = TerminalSet::new(self.ranks.len());
        for terminal in self.histories.terminals() {
            found.insert(terminal);
        }
        found
    }

    /// A state in which no byte was read, without what is left of other terminals than these.
    pub(super) fn restricted_to(
        &mut self,
        states: &boxcar::Vec<State>,
        state: LexerState,
        (terminals, guards): (&TerminalSet, &Guards),
        budget: &mut Budget<'_>,
    ) -> Result<LexerState, LexerError> {
        if self.lexing == Lexing::Longest {
            return Ok(state);
        }
        let Meaning { live, .. } = &self.meanings[state.0 as usize];
        let place = |terminal| live.binary_search_by_key(&terminal, |&(known, _)| known);
        let live = terminals.iter().filter_map(|one| Some(live[place(one).ok()?])).collect();
        let guards = guards.0.clone();
        let meaning = Meaning { live, guards, ..self.meanings[state.0 as usize].clone() };
        self.find(states, meaning, budget)
    }

    /// The guard that no text passes which meets the condition of one of these states.
    pub(super) fn guard_against(
        &mut self,
        states: &[LexerState],
        budget: &mut Budget<'_>,
    ) -> Result<ExprId, LexerError> {
        let conditions: Vec<_> =
            states.iter().map(|state| self.meanings[state.0 as usize].pending).collect();
        let mut making = self.expressions.making(budget);
        let any = making.or(conditions)?;
        Ok(making.not(any)?)
    }

    /// The condition of a state on the next byte and what follows it.
    pub(super) fn demand(
        &mut self,
        state: LexerState,
        budget: &mut Budget<'_>,
    ) -> Result<Demand, LexerError> {
        let pending = self.meanings[state.0 as usize].pending;
        let may_end = self.expressions.holds_at_end(pending);
        let classes = self.expressions.classes([pending]);
        let mut after = Vec::with_capacity(classes.representatives().len());
        for &byte in classes.representatives() {
            after.push(self.expressions.making(budget).derive(pending, byte)?);
        }
        let after = (0..=u8::MAX).map(|byte| after[classes.class(byte)]).collect();
        Ok(Demand { may_end, after })
    }

    /// A state in which no byte was read, without competition.
    pub(super) fn unrivalled(
        &mut self,
        states: &boxcar::Vec<State>,
        state: LexerState,
        budget: &mut Budget<'_>,
    ) -> Result<LexerState, LexerError> {
        let meaning = Meaning { competes: false, ..self.meanings[state.0 as usize].clone() };
        self.find(states, meaning, budget)
    }

    /// Target of `byte`.
    pub(super) fn advance(
        &mut self,
        states: &boxcar::Vec<State>,
        from: LexerState,
        byte: u8,
        budget: &mut Budget<'_>,
    ) -> Result<Transition, LexerError> {
        let Meaning { competes, pending, live, guards, history, .. } =
            self.meanings[from.0 as usize].clone();
        let pending = match pending {
            ExprId::ALL => pending,
            _ => self.expressions.making(budget).derive(pending, byte)?,
        };
        if pending == ExprId::NEVER {
            return Ok(Transition::Dead);
        }
        let mut left = Vec::new();
        for &(terminal, expr) in &live {
            let expr = self.expressions.making(budget).derive(expr, byte)?;
            if expr != ExprId::NEVER {
                left.push((terminal, expr));
            }
        }
        let guards = match guards.is_empty() {
            true => guards,
            false => guards.iter().copied().filter(|&(of, _)| find(&left, of).is_some()).collect(),
        };
        let history = self.histories.after(&mut self.expressions, history, byte, budget)?;
        let live = left.into();
        let to = Meaning { fresh: false, competes, pending, live, guards, history };
        if let Some(&known) = self.ids.get(&to) {
            return Ok(Transition::State(known));
        }
        let possible = self.viable_terminals(&to, budget)?;
        if possible.is_empty() {
            return Ok(Transition::Dead);
        }
        self.add(states, to, possible).map(Transition::State)
    }

    /// Ends of the lexeme in progress.
    pub(super) fn ends(
        &mut self,
        states: &boxcar::Vec<State>,
        state: LexerState,
        budget: &mut Budget<'_>,
    ) -> Result<Ends, LexerError> {
        let Meaning { competes, pending, live, guards, history, .. } =
            self.meanings[state.0 as usize].clone();
        let num_terminals = self.ranks.len();
        let mut found = Ends { matched: TerminalSet::new(num_terminals), ends: [].into() };
        let nulls: Vec<Live> =
            live.iter().map(|&(terminal, expr)| (terminal, self.expressions.null(expr))).collect();
        if nulls.iter().all(|&(_, null)| null == ExprId::NEVER) {
            return Ok(found);
        }
        let longest = if competes { self.no_longer(&live, budget)? } else { ExprId::ALL };
        let mut by_condition = BTreeMap::<ExprId, TerminalSet>::new();
        let mut losses = Losses::new();
        for &(terminal, null) in &nulls {
            let condition = match competes && !self.free.contains(terminal) {
                true => {
                    let lost = self.lost(terminal, &nulls, &mut losses, budget)?;
                    self.expressions.making(budget).and([pending, longest, null, lost])?
                }
                false => self.expressions.making(budget).and([pending, null])?,
            };
            let condition = match find(&guards, terminal) {
                Some(guard) => self.expressions.making(budget).and([condition, guard])?,
                None => condition,
            };
            if self.expressions.making(budget).can_hold(condition)? {
                let group = by_condition.entry(condition);
                group.or_insert_with(|| TerminalSet::new(num_terminals)).insert(terminal);
            }
        }
        let mut ends = Vec::with_capacity(by_condition.len());
        for (condition, terminals) in by_condition {
            found.matched.union_with(&terminals);
            ends.push(LexemeEnd {
                terminals,
                next: self.begin(states, condition, history, budget)?,
            });
        }
        ends.sort_by_key(|end| end.terminals.iter().next());
        found.ends = ends.into();
        Ok(found)
    }

    /// A state that goes on as `state` does within a horizon.
    pub(super) fn bounded_equivalent(
        &mut self,
        states: &boxcar::Vec<State>,
        state: LexerState,
        within: Horizon,
        budget: &mut Budget<'_>,
    ) -> Result<LexerState, LexerError> {
        let Meaning { fresh, competes, pending, live, guards, history } =
            self.meanings[state.0 as usize].clone();
        // What else competes, or is asked of what follows, could tell counts apart however far they
        // are.
        let is_alone = pending == ExprId::ALL && guards.is_empty() && (!competes || live.len() < 2);
        if fresh || !is_alone {
            return Ok(state);
        }
        let mut alike = Vec::with_capacity(live.len());
        for &(terminal, expr) in &live {
            let Some(other) = self.expressions.making(budget).bounded_equivalent(expr, within)?
            else {
                return Ok(state);
            };
            // It matches more than `expr`, so if none of its lexemes can grow, none of those can.
            if competes
                && other != expr
                && !self.expressions.making(budget).is_prefix_free(other)?
            {
                return Ok(state);
            }
            alike.push((terminal, other));
        }
        let live = alike.into();
        self.find(states, Meaning { fresh, competes, pending, live, guards, history }, budget)
    }

    /// Fingerprint of a state's meaning.
    pub(super) fn fingerprint(&mut self, state: LexerState) -> u128 {
        let Self { expressions, fingerprints, meanings, histories, .. } = self;
        let Meaning { fresh, competes, pending, live, guards, history } =
            &meanings[state.0 as usize];
        let mut of = |expr| expressions.fingerprint(expr, fingerprints);
        let pending = of(*pending);
        let [live, guards] = [live, guards]
            .map(|list| list.iter().map(|&(one, expr)| (one, of(expr))).collect::<Vec<_>>());
        let seen: Vec<_> = histories.expressions(*history).map(&mut of).collect();
        fingerprint(&(fresh, competes, pending, live, guards, seen))
    }

    /// Residuals of a state's terminals.
    pub(super) fn remainders(&mut self, state: LexerState) -> Remainders<'_> {
        let Meaning { pending, live, .. } = &self.meanings[state.0 as usize];
        Remainders { pending: *pending, live, expressions: &mut self.expressions }
    }

    /// Residuals of a state's terminals, each with all that decides its lexeme: the rivals that
    /// could take it, and the condition on the text from here.
    pub(super) fn guarded(
        &mut self,
        state: LexerState,
        budget: &mut Budget<'_>,
    ) -> Result<Vec<Live>, LexerError> {
        let Meaning { competes, pending, live, guards, .. } =
            self.meanings[state.0 as usize].clone();
        let mut guarded = Vec::with_capacity(live.len());
        for &(terminal, expr) in &live {
            let stands = match competes && !self.free.contains(terminal) {
                true => self.unless_rivalled((terminal, expr), &live, budget)?,
                false => expr,
            };
            let stands = match find(&guards, terminal) {
                Some(guard) => self.before(stands, guard, budget)?,
                None => stands,
            };
            match self.expressions.making(budget).given(pending, stands)? {
                ExprId::NEVER => {}
                left => guarded.push((terminal, left)),
            }
        }
        Ok(guarded)
    }

    /// The lexemes of a live terminal that no other takes, where what follows lets none grow.
    fn unless_rivalled(
        &mut self,
        (terminal, expr): Live,
        live: &[Live],
        budget: &mut Budget<'_>,
    ) -> Result<ExprId, LexerError> {
        let whole = self.whole_of(terminal);
        let rank = self.losing_rank(terminal);
        let loses = !self.shadowed.contains(terminal);
        let (mut longer, mut higher) = (Vec::new(), Vec::new());
        for &(rival, left) in live.iter().filter(|(rival, _)| !self.free.contains(*rival)) {
            let of_rival = self.whole_of(rival);
            if self.rivalry.outgrows(&mut self.expressions, of_rival, whole, budget)? {
                longer.push((of_rival, left));
            }
            if loses
                && self.ranks[rival.index()] > rank
                && self.rivalry.meets(&mut self.expressions, of_rival, whole, budget)?
            {
                higher.push(left);
            }
        }
        let longer = self.widest(longer, budget)?;
        let mut making = self.expressions.making(budget);
        let (longer, higher) = (making.or(longer)?, making.or(higher)?);
        let longer = making.longer(longer)?;
        let (longest, unranked) = (making.not(longer)?, making.not(higher)?);
        Ok(making.and([expr, longest, unranked])?)
    }

    /// Rivals of a terminal: all that are longer than some lexeme of it, or take one by their rank.
    pub(super) fn rivals(
        &mut self,
        terminal: TerminalId,
        budget: &mut Budget<'_>,
    ) -> Result<TerminalSet, LexerError> {
        let mut found = TerminalSet::new(self.ranks.len());
        let Some(expr) = find(&self.whole, terminal).filter(|_| !self.free.contains(terminal))
        else {
            return Ok(found);
        };
        let rank = self.losing_rank(terminal);
        let (one, whole) = ((terminal, expr), self.whole.clone());
        for &rival in rivals(&whole, &self.free) {
            let is_higher = self.ranks[rival.0.index()] > rank;
            if self.rivalry.outgrows(&mut self.expressions, rival, one, budget)?
                || is_higher && self.rivalry.meets(&mut self.expressions, rival, one, budget)?
            {
                found.insert(rival.0);
            }
        }
        Ok(found)
    }

    /// Deciding terminals among some: those that decide what a lexeme of one of them is.
    pub(super) fn deciding(
        &mut self,
        terminal: TerminalId,
        among: &TerminalSet,
        budget: &mut Budget<'_>,
    ) -> Result<Deciding, LexerError> {
        let none = || TerminalSet::new(self.ranks.len());
        let mut found = Deciding { infinite: none(), finite: none() };
        found.infinite.insert(terminal);
        let Some(whole) = find(&self.whole, terminal) else { return Ok(found) };
        if self.free.contains(terminal) {
            return Ok(found);
        }
        let (mut longer, mut higher) = (Vec::new(), Vec::new());
        let rank = self.losing_rank(terminal);
        let loses = !self.shadowed.contains(terminal);
        for rival in among.iter().filter(|&rival| !self.free.contains(rival)) {
            let Some(of_rival) = find(&self.whole, rival) else { continue };
            let (one, other) = ((rival, of_rival), (terminal, whole));
            if self.rivalry.outgrows(&mut self.expressions, one, other, budget)? {
                longer.push((one, of_rival));
            }
            if loses
                && self.ranks[rival.index()] > rank
                && self.rivalry.meets(&mut self.expressions, one, other, budget)?
            {
                higher.push((rival, self.expressions.is_finite(of_rival)));
            }
        }
        let rivals: Vec<_> = longer.iter().map(|&(rival, _)| rival).collect();
        let widest = self.widest(longer, budget)?;
        for (rival, _) in rivals.into_iter().filter(|(_, expr)| widest.contains(expr)) {
            found.infinite.insert(rival);
        }
        for (rival, is_finite) in higher {
            match is_finite && !found.infinite.contains(rival) {
                true => found.finite.insert(rival),
                false => found.infinite.insert(rival),
            };
        }
        Ok(found)
    }

    /// Residuals of some terminals, without those whose lexemes others have as well.
    fn widest(
        &mut self,
        of: Vec<(Live, ExprId)>,
        budget: &mut Budget<'_>,
    ) -> Result<Vec<ExprId>, LexerError> {
        let mut kept = Vec::with_capacity(of.len());
        'each: for &(one, left) in &of {
            for &(other, _) in of.iter().filter(|&&(other, _)| other != one) {
                // PERF: few are a part of a finite one, and literals are many.
                if self.expressions.is_finite(other.1) {
                    continue;
                }
                let (expressions, rivalry) = (&mut self.expressions, &mut self.rivalry);
                if rivalry.covers(expressions, other, one, budget)?
                    && (other < one || !rivalry.covers(expressions, one, other, budget)?)
                {
                    continue 'each;
                }
            }
            kept.push(left);
        }
        Ok(kept)
    }

    fn whole_of(&self, terminal: TerminalId) -> Live {
        let at = self.whole.binary_search_by_key(&terminal, |&(known, _)| known);
        self.whole[at.expect("only terminals that match something are live")]
    }

    /// The state at which a lexeme begins, given the condition that is on the text from here, and
    /// the text before.
    fn begin(
        &mut self,
        states: &boxcar::Vec<State>,
        pending: ExprId,
        history: HistoryId,
        budget: &mut Budget<'_>,
    ) -> Result<LexerState, LexerError> {
        // PERF: of a thousand terminals a look-up by what the state means reads 8 KB, and each end
        // of a lexeme asks for one.
        if let Some(&known) = self.begun.get(&(pending, history)) {
            return Ok(known);
        }
        let competes = self.lexing.competes();
        let (expressions, whole) = (&mut self.expressions, &self.whole);
        let live = self.histories.whole(expressions, whole, history, budget)?;
        let meaning = Meaning { fresh: true, competes, pending, live, guards: [].into(), history };
        let possible = match (pending, self.lexing) {
            (ExprId::ALL, _) => self.viable_terminals(&meaning, budget)?,
            // Lexemes begin in states for fewer terminals, made of this one.
            (_, Lexing::Contextual) => self.all_terminals(),
            _ if !self.histories.is_empty() => self.viable_terminals(&meaning, budget)?,
            _ => self.possible_under(pending, budget)?,
        };
        let state = self.add(states, meaning, possible)?;
        self.begun.insert((pending, history), state);
        Ok(state)
    }

    /// The state of a meaning.
    fn find(
        &mut self,
        states: &boxcar::Vec<State>,
        meaning: Meaning,
        budget: &mut Budget<'_>,
    ) -> Result<LexerState, LexerError> {
        if let Some(&known) = self.ids.get(&meaning) {
            return Ok(known);
        }
        let possible = self.viable_terminals(&meaning, budget)?;
        self.add(states, meaning, possible)
    }

    fn add(
        &mut self,
        states: &boxcar::Vec<State>,
        meaning: Meaning,
        possible: TerminalSet,
    ) -> Result<LexerState, LexerError> {
        let index = self.meanings.len();
        if index >= self.max_states {
            return Err(Kind::States(self.max_states).into());
        }
        let exprs = meaning.live.iter().map(|&(_, expr)| expr).chain([meaning.pending]);
        let exprs = exprs.chain(self.histories.expressions(meaning.history));
        let classes = self.expressions.classes(exprs);
        let row: Box<[_]> = classes.representatives().iter().map(|_| UNKNOWN.into()).collect();
        self.list_bytes += size_of_val(&*row) + 2 * size_of_val(&*meaning.live);
        let may_end = meaning.fresh && self.expressions.holds_at_end(meaning.pending);
        let ends = std::sync::OnceLock::new();
        let is_fresh = meaning.fresh;
        let pushed = states.push(State { classes, row, possible, is_fresh, may_end, ends });
        debug_assert_eq!(pushed, index, "one thread at a time holds the determiniser");
        let id = LexerState(index as u32);
        self.ids.insert(meaning.clone(), id);
        self.meanings.push(meaning);
        Ok(id)
    }

    /// The terminals that the lexeme can still become, for some text that follows.
    fn viable_terminals(
        &mut self,
        meaning: &Meaning,
        budget: &mut Budget<'_>,
    ) -> Result<TerminalSet, LexerError> {
        let mut possible = TerminalSet::new(self.ranks.len());
        let mut losses = Losses::new();
        for &(terminal, expr) in &meaning.live {
            let left = match meaning.competes && !self.free.contains(terminal) {
                true => {
                    let guard = find(&meaning.guards, terminal);
                    self.winning((terminal, expr), guard, &meaning.live, &mut losses, budget)?
                }
                false => match find(&meaning.guards, terminal) {
                    Some(guard) => self.before(expr, guard, budget)?,
                    None => expr,
                },
            };
            if self.is_something_under(meaning.pending, left, budget)? {
                possible.insert(terminal);
            }
        }
        Ok(possible)
    }

    /// The terminals that a lexeme may become that begins under a condition.
    ///
    /// PERF: a keyword may end at each of the beginnings that names share with it, under a
    /// condition of its own, and most conditions hold or not by the next byte. Where one surely
    /// holds, what begins with that byte was asked before.
    fn possible_under(
        &mut self,
        pending: ExprId,
        budget: &mut Budget<'_>,
    ) -> Result<TerminalSet, LexerError> {
        let whole = self.whole.clone();
        if self.beginnings.is_empty() {
            let (mut losses, mut beginnings) = (Losses::new(), Vec::new());
            for &live in &whole {
                let left = match self.lexing.competes() && !self.free.contains(live.0) {
                    true => self.winning(live, None, &whole, &mut losses, budget)?,
                    false => live.1,
                };
                let (known, leads) = (ByteSet::default(), ByteSet::default());
                beginnings.push(Beginning { terminal: live.0, left, known, leads });
            }
            self.beginnings = beginnings;
        }
        // The bytes after which the condition holds; and whether it fails after all others.
        let (mut free, mut is_decided) = (ByteSet::default(), true);
        let classes = self.expressions.classes([pending]);
        for (class, &byte) in classes.representatives().iter().enumerate() {
            match self.expressions.making(budget).derive(pending, byte)? {
                ExprId::ALL => {
                    free.insert_all((0..=u8::MAX).filter(|&byte| classes.class(byte) == class));
                }
                after => is_decided &= after == ExprId::NEVER,
            }
        }
        let mut possible = TerminalSet::new(self.ranks.len());
        for at in 0..self.beginnings.len() {
            let Beginning { terminal, left, .. } = self.beginnings[at];
            // No terminal matches the empty text, so there is a next byte.
            if self.leads_on(at, &free, budget)?
                || !is_decided && self.is_something_under(pending, left, budget)?
            {
                possible.insert(terminal);
            }
        }
        Ok(possible)
    }

    /// True when a terminal may begin with one of these bytes.
    fn leads_on(
        &mut self,
        at: usize,
        bytes: &ByteSet,
        budget: &mut Budget<'_>,
    ) -> Result<bool, LexerError> {
        let Beginning { left, known, leads, .. } = &mut self.beginnings[at];
        if leads.meets(bytes) {
            return Ok(true);
        }
        let classes = self.expressions.classes([*left]);
        for byte in 0..=u8::MAX {
            if !bytes.contains(byte) || known.contains(byte) {
                continue;
            }
            let class = classes.class(byte);
            let alike = (0..=u8::MAX).filter(|&byte| classes.class(byte) == class);
            let after = self.expressions.making(budget).derive(*left, byte)?;
            let is_something = self.expressions.making(budget).matches_something(after)?;
            known.insert_all(alike.clone());
            if is_something {
                leads.insert_all(alike);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The terminals that match something.
    fn all_terminals(&self) -> TerminalSet {
        let mut all = TerminalSet::new(self.ranks.len());
        for &(terminal, _) in &self.whole {
            all.insert(terminal);
        }
        all
    }

    /// The lexemes of an expression before a text that passes a guard.
    fn before(
        &mut self,
        expr: ExprId,
        guard: ExprId,
        budget: &mut Budget<'_>,
    ) -> Result<ExprId, LexerError> {
        let mut making = self.expressions.making(budget);
        let passed = making.given(guard, ExprId::EMPTY)?;
        Ok(making.concat(expr, passed)?)
    }

    /// The lexemes that a live terminal wins, and with which what follows passes its guard.
    fn winning(
        &mut self,
        (terminal, expr): Live,
        guard: Option<ExprId>,
        live: &[Live],
        losses: &mut Losses,
        budget: &mut Budget<'_>,
    ) -> Result<ExprId, LexerError> {
        let lost = self.lost(terminal, live, losses, budget)?;
        let mut left = self.expressions.making(budget).and([expr, lost])?;
        if guard.is_some() || self.expressions.looks_ahead(expr) {
            let all = rivals(live, &self.free).map(|&(_, expr)| expr);
            let all = self.expressions.making(budget).or(all)?;
            let longer = self.expressions.making(budget).longer(all)?;
            let longest = self.expressions.making(budget).not(longer)?;
            left = self.expressions.making(budget).and([left, longest])?;
        }
        if let Some(guard) = guard {
            left = self.before(left, guard, budget)?;
        }
        Ok(left)
    }

    fn is_something_under(
        &mut self,
        pending: ExprId,
        left: ExprId,
        budget: &mut Budget<'_>,
    ) -> Result<bool, LexerError> {
        let left = self.expressions.making(budget).given(pending, left)?;
        Ok(self.expressions.making(budget).matches_something(left)?)
    }

    /// The complement of what terminals that are ranked higher than `terminal` match, in whose
    /// favour it loses.
    fn lost(
        &mut self,
        terminal: TerminalId,
        live: &[Live],
        losses: &mut Losses,
        budget: &mut Budget<'_>,
    ) -> Result<ExprId, LexerError> {
        if self.shadowed.contains(terminal) {
            return Ok(ExprId::ALL);
        }
        let rank = self.losing_rank(terminal);
        if let Some(&known) = losses.get(&rank) {
            return Ok(known);
        }
        let rivals = rivals(live, &self.free);
        let higher = rivals.filter(|(other, _)| self.ranks[other.index()] > rank);
        let higher = self.expressions.making(budget).or(higher.map(|&(_, expr)| expr))?;
        let lost = self.expressions.making(budget).not(higher)?;
        losses.insert(rank, lost);
        Ok(lost)
    }

    /// Takes the terminals out that do not compete.
    pub(super) fn remove_free(&self, terminals: &mut TerminalSet) {
        for terminal in self.free.iter() {
            terminals.remove(terminal);
        }
    }

    /// True when two texts of a terminal in a row are always one of it.
    pub(super) fn is_closed(
        &mut self,
        terminal: TerminalId,
        budget: &mut Budget<'_>,
    ) -> Result<bool, LexerError> {
        let Some(&(_, expr)) = self.whole.iter().find(|&&(id, _)| id == terminal) else {
            return Ok(true);
        };
        let mut making = self.expressions.making(budget);
        let twice = making.concat(expr, expr)?;
        let others = making.not(expr)?;
        let beyond = making.and([twice, others])?;
        Ok(!making.matches_something(beyond)?)
    }

    /// True when some of these terminals lose to others of them where all match the same lexeme.
    pub(super) fn has_losers(&self, terminals: &TerminalSet) -> bool {
        let rivals = || terminals.iter().filter(|&one| !self.free.contains(one));
        let loses = |loser| {
            let rank = self.losing_rank(loser);
            rivals().any(|other| self.ranks[other.index()] > rank)
        };
        rivals().any(|one| !self.shadowed.contains(one) && loses(one))
    }

    /// The rank that others must pass to beat a terminal: to blanks and comments, a literal within
    /// them is no keyword.
    fn losing_rank(&self, terminal: TerminalId) -> Rank {
        let (priority, is_literal) = self.ranks[terminal.index()];
        (priority, is_literal || self.ignored.contains(terminal))
    }

    /// The condition that none of the competing live terminals matches more than what was read.
    fn no_longer(&mut self, live: &[Live], budget: &mut Budget<'_>) -> Result<ExprId, LexerError> {
        let rivals = rivals(live, &self.free).map(|&(_, expr)| expr);
        let all = self.expressions.making(budget).or(rivals)?;
        let grows = self.expressions.making(budget).grows(all)?;
        Ok(self.expressions.making(budget).not(grows)?)
    }

    /// Finds the terminals each of whose texts, by itself, a terminal that is ranked higher matches
    /// as well.
    fn find_shadowed(
        &mut self,
        grammar: &Grammar,
        budget: &mut Budget<'_>,
    ) -> Result<(), LexerError> {
        let whole = self.whole.clone();
        let mut losses = Losses::new();
        let free = self.free.clone();
        for &(terminal, expr) in rivals(&whole, &free) {
            let lost = self.lost(terminal, &whole, &mut losses, budget)?;
            if lost == ExprId::ALL {
                continue;
            }
            let left = self.expressions.making(budget).and([expr, lost])?;
            let wins =
                self.expressions.making(budget).matches_something(left).map_err(|error| {
                    let name = grammar.terminals()[terminal.index()].name.clone();
                    Kind::Terminal { name, why: error.into() }
                })?;
            if !wins {
                self.shadowed.insert(terminal);
            }
        }
        Ok(())
    }
}

/// An entry about a terminal, in a list by terminal.
fn find(list: &[Live], terminal: TerminalId) -> Option<ExprId> {
    list.binary_search_by_key(&terminal, |&(known, _)| known).ok().map(|at| list[at].1)
}

/// The live terminals that compete.
fn rivals<'l>(live: &'l [Live], free: &'l TerminalSet) -> impl Iterator<Item = &'l Live> {
    live.iter().filter(|(terminal, _)| !free.contains(*terminal))
}

fn free_terminals(grammar: &Grammar) -> TerminalSet {
    let mut free = TerminalSet::new(grammar.terminals().len());
    for (terminal, id) in grammar.terminals().iter().zip(0..) {
        if terminal.kind == TerminalKind::Free {
            free.insert(TerminalId(id));
        }
    }
    free
}
