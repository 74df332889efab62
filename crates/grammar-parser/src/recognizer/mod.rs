//! Reading a text byte by byte: lexer and parser together, without tokens.
//!
//! A [`Recognizer`] is a grammar made ready. A [`Position`] is what a text so far may be: *branches*,
//! each a way to cut it into lexemes with all ways to parse these. [`Recognizer::advance`] reads a
//! byte: in each branch the lexeme in progress goes on, or it ended before the byte and the parser
//! shifts what it was. Branches that nothing can complete are dropped at once, so a position is
//! live by its existence.

mod bound;
mod contexts;
mod dead_ends;
mod error;
mod expected;
mod lexeme_tokens;
mod member_place;
mod members;
mod parser_state;
mod position;
mod scratch;
mod token_limits;
mod vacuous;

use std::sync::Arc;

use palmette_core::ScopeMemory;

pub use bound::{BoundRecognizer, Lack};
pub use contexts::{ContextId, Contexts, ContextualStates};
use dead_ends::exclusion;
pub use dead_ends::{DeadEnd, DeadEnds};
pub use error::{CompileError, RecognizerError};
pub use expected::Expected;
pub use expected::Lexeme;
pub use lexeme_tokens::{LexemeTokens, TokenLimits};
pub use member_place::{MemberPlace, TextPart, WrittenMember};
use members::Members;
use parser_state::ParserState;
pub use position::{Branch, Position};
pub use scratch::RecognizerScratch;
use vacuous::is_vacuous;

use crate::blocks::{Blocks, Layer, Line};
use crate::glr::{Parser, Stacks};
use crate::lexer::{LexemeEnd, Lexer, LexerLimits, LexerState};
use crate::names::{NameLayer, Names};
use crate::scopes::ScopeLayer;
use crate::{
    Budget, Grammar, GrammarBuilder, Lexing, ParserLimits, Symbol, TerminalId, TerminalKind,
    TerminalSet,
};

/// A grammar made ready to read texts: its lexer and its parser.
///
/// Frozen, but that the lexer grows as it is used; threads share it.
#[derive(Debug)]
pub struct Recognizer {
    /// The grammar that was given.
    source: Arc<Grammar>,
    grammar: Arc<Grammar>,
    /// The limits that it was made within.
    limits: RecognizerLimits,
    lexer: Lexer,
    parser: Parser,
    layer: Layer,
    names: NameLayer,
    scopes: ScopeLayer,
    token_limits: TokenLimits,
    beginnings: Beginnings,
    dead_ends: DeadEnds,
    members: Members,
    start: Option<Position>,
    /// Mark that tells it from other recognizers.
    mark: Arc<()>,
}

/// The terminals with which a lexeme begins.
#[derive(Debug)]
enum Beginnings {
    /// Any: how a text is cut does not depend on the parser.
    All,
    /// Terminals that can follow on the stacks at hand.
    Viable,
    /// Terminals of the topmost states' contexts.
    Contextual(Contexts),
}

impl Beginnings {
    fn new(grammar: &Grammar, parser: &Parser, ignored: &TerminalSet) -> Self {
        match grammar.lexing() {
            Lexing::Contextual => Self::Contextual(Contexts::new(parser.tables(), ignored, &[])),
            Lexing::Any if grammar.indentation().is_none() => Self::Viable,
            Lexing::Any | Lexing::Longest => Self::All,
        }
    }
}

/// Limits of a [`Recognizer`]. Exceeding one is an error that names it.
#[derive(Clone, Debug, Default)]
pub struct RecognizerLimits {
    /// The lexer.
    pub lexer: LexerLimits,
    /// The parser.
    pub parser: ParserLimits,
}

impl Recognizer {
    /// Makes a grammar ready.
    ///
    /// # Errors
    /// When a terminal or a scope of members cannot be honoured, blocks by indentation meet
    /// contextual lexing, a limit is exceeded, the budget is used up or the compilation is
    /// cancelled.
    pub fn new(
        grammar: Arc<Grammar>,
        limits: &RecognizerLimits,
        budget: &mut Budget<'_>,
    ) -> Result<Self, CompileError> {
        Self::make(grammar, limits, false, budget)
    }

    /// Makes a grammar ready, or the part of one that was, whose scopes may have nothing left.
    fn make(
        grammar: Arc<Grammar>,
        limits: &RecognizerLimits,
        is_part: bool,
        budget: &mut Budget<'_>,
    ) -> Result<Self, CompileError> {
        if grammar.indentation().is_some() && grammar.lexing() == Lexing::Contextual {
            return Err(CompileError::ContextualBlocks);
        }
        let source = Arc::clone(&grammar);
        let grammar = crate::rules::merge_interchangeable(grammar, budget)?;
        let mut lexer = Lexer::with_budget(&grammar, &limits.lexer, budget)?;
        let mut possible = lexer.viable_terminals(lexer.start()).clone();
        possible.union_with(lexer.looking_back());
        let mut grammar = spelled(grammar, &possible);
        let mut parser = Parser::with_budget(&grammar, &limits.parser, budget)?;
        members::check(&grammar, &parser)?;
        let members = Members::new(&grammar);
        let layer = Layer::new(&grammar);
        let names = NameLayer::new(&grammar);
        let scopes = ScopeLayer::new(&grammar, parser.tables().rules(), is_part, budget)?;
        let token_limits = TokenLimits::new(&grammar);
        let mark = Arc::default();
        let mut beginnings = Beginnings::new(&grammar, &parser, &layer.ignored);
        let mut dead_ends = DeadEnds::NONE;
        // What the text before a lexeme decides, neither proof follows.
        if !lexer.looking_back().is_empty() {
            dead_ends.are_excluded = false;
        } else if let Beginnings::Contextual(contexts) = &beginnings {
            let uncut = grammar.with_lexing(Lexing::Any);
            let free = Lexer::with_budget(&uncut, &limits.lexer, budget)?;
            let both = (&lexer, &free);
            let asked = (contexts, &layer.ignored, &members.set(&grammar));
            if is_vacuous(both, parser.tables(), asked, budget)? {
                (grammar, lexer, beginnings) = (Arc::new(uncut), free, Beginnings::Viable);
            } else if let Some(member) = members.set(&grammar).iter().next() {
                let terminal = grammar.terminals()[member.index()].name.clone();
                return Err(CompileError::ContextualMembers { terminal });
            } else {
                let stacks = parser.start();
                let (tables, ignored) = (parser.tables(), &layer.ignored);
                let excluded =
                    exclusion(&lexer, tables, contexts, ignored, stacks.states(), budget)?;
                dead_ends = excluded.dead_ends;
                if let Some(tables) = excluded.tables {
                    let contexts = Contexts::new(&tables, ignored, &excluded.guards);
                    beginnings = Beginnings::Contextual(contexts);
                    parser = parser.with_tables(tables);
                }
            }
        }
        let members = match members.is_empty() {
            true => members,
            false => {
                let none = TerminalSet::new(grammar.terminals().len());
                let state = lexer.restricted_to(lexer.start(), &none)?;
                members.with_state(state)
            }
        };
        let start = None;
        let mut recognizer = Self {
            source,
            grammar,
            limits: limits.clone(),
            lexer,
            parser,
            layer,
            names,
            scopes,
            token_limits,
            beginnings,
            dead_ends,
            members,
            start,
            mark,
        };
        recognizer.start = recognizer.find_start()?;
        recognizer.bind_own_sets()?;
        Ok(recognizer)
    }

    /// The grammar, without rules that no text fits: those with a terminal that matches nothing or
    /// is ignored. Many terminals that stand in the same places are one. Where competition between
    /// terminals is proven to be vacuous, its lexing is [`Lexing::Any`].
    pub fn grammar(&self) -> &Arc<Grammar> {
        &self.grammar
    }

    /// The grammar that it was made of.
    pub fn source(&self) -> &Arc<Grammar> {
        &self.source
    }

    /// Lexer of the grammar.
    #[doc(hidden)]
    pub fn lexer(&self) -> &Lexer {
        &self.lexer
    }

    /// Parser of the grammar.
    #[doc(hidden)]
    pub fn parser(&self) -> &Parser {
        &self.parser
    }

    /// The terminals that the parser does not see.
    pub fn ignored(&self) -> &TerminalSet {
        &self.layer.ignored
    }

    /// Layer between lexer and parser.
    pub fn layer(&self) -> &Layer {
        &self.layer
    }

    /// The memory of names between lexer and parser.
    pub fn names(&self) -> &NameLayer {
        &self.names
    }

    /// The memory of members between parser and sets.
    pub fn scopes(&self) -> &ScopeLayer {
        &self.scopes
    }

    /// Report on dead ends, made when the grammar was made ready; without contextual lexing there
    /// are none by competition.
    pub fn dead_ends(&self) -> &DeadEnds {
        &self.dead_ends
    }

    /// About how much memory its lexer, as built so far, and its tables take; without the grammar.
    pub fn bytes(&self) -> usize {
        let contexts = self.contexts().map_or(0, Contexts::bytes);
        self.lexer.bytes() + self.parser.tables().bytes() + contexts
    }

    /// The position before the first byte; `None` when no text is in the language.
    pub fn start(&self) -> Option<&Position> {
        self.start.as_ref()
    }

    /// The position after `byte`; `None` when no text of the language goes on so.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn advance(
        &self,
        position: &Position,
        byte: u8,
        scratch: &mut RecognizerScratch,
    ) -> Result<Option<Position>, RecognizerError> {
        self.advance_all(position, &[byte], scratch)
    }

    /// The position after all of `bytes`; `None` when no text of the language goes on so.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn advance_all(
        &self,
        position: &Position,
        bytes: &[u8],
        scratch: &mut RecognizerScratch,
    ) -> Result<Option<Position>, RecognizerError> {
        scratch.bind(position.binding());
        scratch.now.clear();
        scratch.now.extend_from_slice(position.branches());
        let result = self.read(bytes, scratch);
        scratch.next.clear();
        if result.is_err() {
            scratch.now.clear();
        }
        let live = result.map(|()| !scratch.now.is_empty())?;
        Ok(live.then(|| scratch.position(self)))
    }

    /// All readings of two positions: where a token may be read in two ways.
    pub fn either(
        &self,
        one: Position,
        other: Position,
        scratch: &mut RecognizerScratch,
    ) -> Position {
        scratch.bind(one.binding());
        scratch.next.clear();
        for branch in one.branches().iter().chain(other.branches()) {
            self.add(branch.clone(), scratch);
        }
        std::mem::swap(&mut scratch.now, &mut scratch.next);
        scratch.now.sort_by(|a, b| a.key().cmp(&b.key()));
        scratch.position(self)
    }

    /// True when the text so far is in the language.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn is_accepting(
        &self,
        position: &Position,
        scratch: &mut RecognizerScratch,
    ) -> Result<bool, RecognizerError> {
        if let Some(&known) = position.accepting().get() {
            return Ok(known);
        }
        let accepting = self.accepts_end(position, scratch)?;
        Ok(*position.accepting().get_or_init(|| accepting))
    }

    fn find_start(&self) -> Result<Option<Position>, RecognizerError> {
        let scratch = &mut RecognizerScratch::default();
        let stacks = self.parser.start();
        let empty = self.parser.accepts_end(&stacks, &mut scratch.parser)?;
        let mut first = TerminalSet::new(self.grammar.terminals().len());
        self.parser.allowed(&stacks, &mut first, &mut scratch.parser)?;
        if !empty && first.is_empty() {
            return Ok(None);
        }
        let at = ParserState::new(stacks);
        let begun = self.begin(self.lexer.start(), &at, scratch)?;
        let branch = |(lexer, stacks)| ParserState::new(stacks).into_branch(lexer, Line::OTHER);
        let mut branches: Vec<Branch> = begun.map(branch).collect();
        first.union_with(&self.layer.ignored);
        let is_live =
            |branch: &Branch| self.lexer.viable_terminals(branch.lexer).intersects(&first);
        if !empty && self.contexts().is_some() && !branches.iter().any(is_live) {
            return Ok(None);
        }
        Ok(Some(Position::new(&mut branches, None)))
    }

    /// Moves the branches in `scratch.now` over `bytes`.
    fn read(&self, bytes: &[u8], scratch: &mut RecognizerScratch) -> Result<(), RecognizerError> {
        for &byte in bytes {
            let mut now = std::mem::take(&mut scratch.now);
            scratch.next.clear();
            for branch in now.drain(..) {
                self.begin_lexemes(&branch, byte, scratch)?;
                self.go_on(branch, byte, scratch)?;
            }
            scratch.now = std::mem::replace(&mut scratch.next, now);
            if scratch.now.len() > 1 {
                scratch.now.sort_by(|a, b| a.key().cmp(&b.key()));
            }
        }
        Ok(())
    }

    /// The lexeme in progress goes on with `byte`.
    fn go_on(
        &self,
        mut branch: Branch,
        byte: u8,
        scratch: &mut RecognizerScratch,
    ) -> Result<(), RecognizerError> {
        if let Some(place) = branch.member.clone() {
            self.advance_member(branch, &place, byte, scratch);
            return Ok(());
        }
        let Some(lexer) = self.lexer.advance(branch.lexer, byte)? else { return Ok(()) };
        let possible = self.lexer.viable_terminals(lexer);
        // The branch was live, and still is if what it may become is the same. At the start it may
        // only have been at its end.
        let begun = !self.lexer.is_fresh(branch.lexer);
        let is_same = begun && possible == self.lexer.viable_terminals(branch.lexer);
        branch.lexer = lexer;
        if !self.count_byte(&mut branch, !begun) {
            return Ok(());
        }
        let is_same = is_same && branch.tokens.count() == 0;
        branch.line = self.layer.line_after(branch.line, byte);
        if !self.names.read(&mut branch.names, byte, !begun, &self.lexer, lexer)? {
            return Ok(());
        }
        if is_same || self.is_live(&branch, scratch)? {
            self.add(branch, scratch);
        }
        Ok(())
    }

    /// The lexeme in progress ended before `byte`.
    fn begin_lexemes(
        &self,
        branch: &Branch,
        byte: u8,
        scratch: &mut RecognizerScratch,
    ) -> Result<(), RecognizerError> {
        if let Some(place) = &branch.member {
            return match self.whole_member(place, scratch) {
                Some(_) => {
                    self.begin_after(branch, (place.terminal, self.lexer.start()), byte, scratch)
                }
                None => Ok(()),
            };
        }
        for end in self.lexer.ends(branch.lexer)? {
            for terminal in self.terminals_of(branch, end) {
                self.begin_after(branch, (terminal, end.next), byte, scratch)?;
            }
        }
        Ok(())
    }

    /// The lexeme in progress ended before `byte` as `terminal`; `next` is the state in which
    /// others begin.
    fn begin_after(
        &self,
        branch: &Branch,
        (terminal, next): (TerminalId, LexerState),
        byte: u8,
        scratch: &mut RecognizerScratch,
    ) -> Result<(), RecognizerError> {
        let Some(after) = self.step(branch, terminal, scratch)? else { return Ok(()) };
        let trail = self.trail_after(branch, scratch);
        if !self.members.is_empty() {
            self.begin_members(&after, trail.as_ref(), Some(byte), scratch)?;
        }
        let line = self.layer.line_after(Line::OTHER, byte);
        for (start, stacks) in self.begin(next, &after, scratch)? {
            let Some(lexer) = self.lexer.advance(start, byte)? else { continue };
            let mut at = ParserState { stacks, ..after.clone() };
            let live = self.names.read(&mut at.names, byte, true, &self.lexer, lexer)?;
            let mut begun = Branch { trail: trail.clone(), ..at.into_branch(lexer, line) };
            if live && self.count_byte(&mut begun, true) && self.is_live(&begun, scratch)? {
                self.add(begun, scratch);
            }
        }
        Ok(())
    }

    /// The state `next`, in which no byte of a lexeme was read, for the terminals with which a
    /// lexeme begins after some stacks, less the names that were seen and what open scopes have not
    /// enough left for; stacks that differ in these terminals are parted.
    fn begin(
        &self,
        next: LexerState,
        at: &ParserState,
        scratch: &mut RecognizerScratch,
    ) -> Result<impl Iterator<Item = (LexerState, Stacks)> + use<>, RecognizerError> {
        let mut others = Vec::new();
        let (stacks, names) = (at.stacks.clone(), &at.names);
        let first = match &self.beginnings {
            Beginnings::All => (next, stacks),
            Beginnings::Viable => (scratch.restricted_to(self, next, at)?, stacks),
            Beginnings::Contextual(contexts) => {
                let parts = stacks.by_top(|state| contexts.of(state));
                let mut begin = |(context, stacks)| {
                    let state = match names.is_any_seen() {
                        true => self.among_unseen((contexts, context), next, names)?,
                        false => {
                            let known = scratch.contextual(self);
                            known.begin(&self.lexer, contexts, next, context)?
                        }
                    };
                    Ok::<_, RecognizerError>((state, stacks))
                };
                let mut parts = parts.into_iter();
                let first = begin(parts.next().expect("stacks are never none"))?;
                for part in parts {
                    others.push(begin(part)?);
                }
                first
            }
        };
        Ok(std::iter::once(first).chain(others))
    }

    /// The state `next` for the terminals of a context less the names that were seen.
    fn among_unseen(
        &self,
        (contexts, context): (&Contexts, ContextId),
        next: LexerState,
        names: &Names,
    ) -> Result<LexerState, RecognizerError> {
        let leave_out = |terminals: &mut _| self.names.leave_out(names, terminals);
        Ok(contexts.begin(&self.lexer, next, context, leave_out)?)
    }

    /// The contexts in which lexemes begin, where these depend on the parser's topmost state.
    pub fn contexts(&self) -> Option<&Contexts> {
        match &self.beginnings {
            Beginnings::Contextual(contexts) => Some(contexts),
            Beginnings::All | Beginnings::Viable => None,
        }
    }

    /// True when states of the lexer know only terminals that the parser takes.
    fn knows_viable(&self) -> bool {
        matches!(self.beginnings, Beginnings::Viable)
    }

    /// The stacks after a lexeme that ended as `terminal`, and the states in which the next one
    /// begins after them, where no names were seen and there are no blocks; `next` is the
    /// [end's](crate::lexer::LexemeEnd::next).
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn after(
        &self,
        stacks: &Stacks,
        terminal: TerminalId,
        next: LexerState,
        scratch: &mut RecognizerScratch,
    ) -> Result<impl Iterator<Item = (LexerState, Stacks)> + use<>, RecognizerError> {
        let stacks = match self.layer.ignored.contains(terminal) {
            true => Some(stacks.clone()),
            false => scratch.shift(self, stacks, terminal)?,
        };
        let begun = stacks.map(|stacks| self.begin(next, &ParserState::new(stacks), scratch));
        Ok(begun.transpose()?.into_iter().flatten())
    }

    /// The stacks after a terminal that is not ignored, by the rules alone.
    pub(crate) fn shifted(
        &self,
        stacks: &Stacks,
        terminal: TerminalId,
        scratch: &mut RecognizerScratch,
    ) -> Result<Option<Stacks>, RecognizerError> {
        Ok(scratch.shift(self, stacks, terminal)?)
    }

    /// Adds a live branch; branches that differ in their stacks only become one.
    fn add(&self, mut branch: Branch, scratch: &mut RecognizerScratch) {
        branch.line = self.layer.line_of(self.lexer.viable_terminals(branch.lexer), branch.line);
        if branch.tokens.count() > 0 {
            // What goes on after more tokens of a lexeme goes on after fewer.
            let is_alike = |known: &Branch| {
                known.stacks == branch.stacks
                    && known.tokens.at_end() == branch.tokens.at_end()
                    && Branch { tokens: branch.tokens, ..known.clone() }.key() == branch.key()
            };
            if let Some(at) = scratch.next.iter().position(is_alike) {
                if scratch.next[at].tokens <= branch.tokens {
                    return;
                }
                scratch.next.swap_remove(at);
            }
        }
        match scratch.next.iter_mut().find(|known| known.key() == branch.key()) {
            Some(known) => known.stacks = self.parser.merge(&known.stacks, &branch.stacks),
            None => scratch.next.push(branch),
        }
    }

    /// True when the lexeme in progress can become something that the parser takes.
    fn is_live(
        &self,
        branch: &Branch,
        scratch: &mut RecognizerScratch,
    ) -> Result<bool, RecognizerError> {
        // That one terminal is left was seen when its tokens were counted.
        if self.knows_viable() {
            return Ok(true);
        }
        let mut possible = self.lexer.viable_terminals(branch.lexer);
        let kept;
        if branch.tokens.count() > 0 {
            let mut left = possible.clone();
            for terminal in possible.iter() {
                if self.token_limits.is_over(terminal, branch.tokens) {
                    left.remove(terminal);
                }
            }
            kept = left;
            possible = &kept;
        }
        let parsed = (&branch.stacks, &branch.blocks);
        Ok(self.layer.accepts_any(&self.parser, parsed, possible, &mut scratch.parser)?)
    }

    /// The terminals as which a branch's lexeme may end, of one of its ends.
    pub(super) fn terminals_of<'a>(
        &'a self,
        branch: &'a Branch,
        end: &'a LexemeEnd,
    ) -> impl Iterator<Item = TerminalId> + 'a {
        let (limits, tokens) = (&self.token_limits, branch.tokens);
        end.terminals.iter().filter(move |&terminal| !limits.is_over(terminal, tokens))
    }

    /// True when the text may end at a position.
    fn accepts_end(
        &self,
        position: &Position,
        scratch: &mut RecognizerScratch,
    ) -> Result<bool, RecognizerError> {
        scratch.bind(position.binding());
        for branch in position.branches() {
            if self.branch_accepts_end(branch, scratch)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// True when the text may end in a branch.
    fn branch_accepts_end(
        &self,
        branch: &Branch,
        scratch: &mut RecognizerScratch,
    ) -> Result<bool, RecognizerError> {
        if let Some(place) = &branch.member {
            return match self.whole_member(place, scratch) {
                Some(_) => self.accepts_end_after(branch, place.terminal, scratch),
                None => Ok(false),
            };
        }
        let (layer, parser) = (&self.layer, &self.parser);
        let parsed = (&branch.stacks, &branch.blocks);
        if self.lexer.may_end(branch.lexer)
            && layer.accepts_end(parser, parsed, &mut scratch.parser)?
        {
            return Ok(true);
        }
        for end in self.lexer.ends(branch.lexer)? {
            if !self.lexer.may_end(end.next) {
                continue;
            }
            for terminal in self.terminals_of(branch, end) {
                if self.accepts_end_after(branch, terminal, scratch)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// True when the text may end after a branch's lexeme, which ends as `terminal`.
    fn accepts_end_after(
        &self,
        branch: &Branch,
        terminal: TerminalId,
        scratch: &mut RecognizerScratch,
    ) -> Result<bool, RecognizerError> {
        let Some(after) = self.step(branch, terminal, scratch)? else { return Ok(false) };
        let parsed = (&after.stacks, &after.blocks);
        Ok(self.layer.accepts_end(&self.parser, parsed, &mut scratch.parser)?)
    }

    /// A branch after its lexeme, which ends as `terminal`.
    fn step(
        &self,
        branch: &Branch,
        terminal: TerminalId,
        scratch: &mut RecognizerScratch,
    ) -> Result<Option<ParserState>, RecognizerError> {
        let Some(names) = self.names.after(&branch.names, terminal) else { return Ok(None) };
        let parsed = (&branch.stacks, &branch.blocks);
        if self.layer.indentation.is_some() || self.layer.ignored.contains(terminal) {
            let letter = self.layer.ended(terminal, branch.line);
            let after = self.layer.step(&self.parser, parsed, letter, &mut scratch.parser)?;
            let scopes = branch.scopes.clone();
            return Ok(after.map(|(stacks, blocks)| ParserState { stacks, blocks, names, scopes }));
        }
        let Some(stacks) = scratch.shift(self, &branch.stacks, terminal)? else { return Ok(None) };
        let scopes = match self.scopes.is_active() {
            false => ScopeMemory::default(),
            true => {
                let member = branch.member.as_ref();
                let member = member.and_then(|place| self.whole_member(place, scratch));
                let binding = scratch.binding.as_deref();
                let after = self.scopes.after(binding, &branch.scopes, terminal, member);
                let Some(scopes) = after else { return Ok(None) };
                if !scratch.has_left(self, &stacks, &scopes)? {
                    return Ok(None);
                }
                scopes
            }
        };
        Ok(Some(ParserState { stacks, blocks: Blocks::default(), names, scopes }))
    }
}

/// A grammar without the rules that no text fits, where `possible` are the terminals that match
/// some text. The parser would wait for their terminals in vain.
fn spelled(grammar: Arc<Grammar>, possible: &TerminalSet) -> Arc<Grammar> {
    let fits = |symbol: &Symbol| match *symbol {
        Symbol::Nonterminal(_) => true,
        Symbol::Terminal(terminal) => {
            let marks = match grammar.terminals()[terminal.index()].kind {
                TerminalKind::Declared => grammar.indentation().is_some(),
                TerminalKind::Member(_) => true,
                TerminalKind::Literal | TerminalKind::Pattern | TerminalKind::Free => false,
            };
            marks || possible.contains(terminal) && !grammar.ignored().contains(&terminal)
        }
    };
    // A rule that the start does not reach is no matter, nor are its terminals, which the lexer
    // leaves out.
    if grammar.rules().iter().all(|rule| rule.body.iter().all(fits)) {
        return grammar;
    }
    let mut kept = GrammarBuilder::new();
    kept.slots_of(grammar.slots());
    for terminal in grammar.terminals() {
        kept.terminal(terminal.clone());
    }
    for nonterminal in grammar.nonterminals() {
        kept.nonterminal(nonterminal.name.clone(), nonterminal.span);
    }
    for rule in grammar.rules().iter().filter(|rule| rule.body.iter().all(fits)) {
        kept.rule(rule.head, rule.body.clone());
    }
    grammar.ignored().iter().for_each(|&terminal| kept.ignore(terminal));
    if let Some(blocks) = grammar.indentation() {
        kept.indentation(blocks.clone());
    }
    if let Some(names) = grammar.distinct_names() {
        kept.distinct_names(names.clone());
    }
    kept.scopes_of(grammar.scopes(), |terminal| terminal);
    kept.token_limits_of(grammar.token_limits(), |terminal| terminal);
    Arc::new(kept.build(grammar.start(), grammar.lexing()))
}
