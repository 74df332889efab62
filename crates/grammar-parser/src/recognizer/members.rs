//! Members in progress: branches of a text within a spelling of a bound set.
//!
//! A member terminal has no expression, so the lexer knows nothing of it. Where the parser takes
//! one, a branch of its own begins at the start of the slot's set and follows it by a cursor; where
//! a spelling has been read whole, the lexeme may end there, and the parser shifts the terminal
//! like any other.

use std::sync::Arc;

use palmette_core::{Binding, MemberId, SlotId};

use super::member_place::{MemberPlace, ScopedSet, TextPart, Trail, WrittenMember};
use super::vacuous::Entered;
use super::{
    Branch, CompileError, ParserState, Position, Recognizer, RecognizerError, RecognizerScratch,
};
use crate::blocks::Line;
use crate::glr::Parser;
use crate::lexer::LexerState;
use crate::{Grammar, Lexing, Regex, TerminalId, TerminalSet};

/// The member terminals of a grammar, with their slots.
#[derive(Debug, Default)]
pub(super) struct Members {
    terminals: Vec<(TerminalId, SlotId)>,
    /// State of a branch within a member: it knows no terminal.
    state: Option<LexerState>,
}

impl Members {
    pub(super) fn new(grammar: &Grammar) -> Self {
        let all = (0..grammar.terminals().len() as u32).map(TerminalId);
        let terminals = all.filter_map(|id| Some((id, grammar.slot_of(id)?))).collect();
        Self { terminals, state: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.terminals.is_empty()
    }

    /// The terminals as a set.
    pub(super) fn set(&self, grammar: &Grammar) -> TerminalSet {
        let mut set = TerminalSet::new(grammar.terminals().len());
        for &(terminal, _) in &self.terminals {
            set.insert(terminal);
        }
        set
    }

    pub(super) fn with_state(self, state: LexerState) -> Self {
        Self { state: Some(state), ..self }
    }
}

/// Refuses a grammar in which members could not be told from what competes for the same bytes.
pub(super) fn check(grammar: &Grammar, parser: &Parser) -> Result<(), CompileError> {
    let members = Members::new(grammar);
    if members.is_empty() {
        return Ok(());
    }
    let name = |terminal: TerminalId| grammar.terminals()[terminal.index()].name.clone();
    let first = members.terminals[0].0;
    if grammar.lexing() == Lexing::Longest {
        return Err(CompileError::LongestMembers { terminal: name(first) });
    }
    if grammar.indentation().is_some() {
        return Err(CompileError::MembersAmongBlocks { terminal: name(first) });
    }
    if let Some(&ignored) = grammar.ignored().iter().find(|id| grammar.slot_of(**id).is_some()) {
        return Err(CompileError::IgnoredMembers { terminal: name(ignored) });
    }
    let tables = parser.tables();
    let entered = Entered::new(tables);
    let all = (0..grammar.terminals().len() as u32).map(TerminalId);
    for looking in all.filter(|id| looks_ahead(&grammar.terminals()[id.index()].regex)) {
        for state in entered.after(tables, looking) {
            let follows =
                tables.shifts(state).iter().find(|(id, _)| grammar.slot_of(*id).is_some());
            if let Some(&(member, _)) = follows {
                let (terminal, before) = (name(member), name(looking));
                return Err(CompileError::MemberAfterLookahead { terminal, before });
            }
        }
    }
    Ok(())
}

/// True for an expression that may ask something of the text after its lexeme.
fn looks_ahead(regex: &Regex) -> bool {
    match regex {
        Regex::Look { behind, .. } => !behind,
        Regex::Concat(parts) | Regex::Alternate(parts) | Regex::And(parts) => {
            parts.iter().any(looks_ahead)
        }
        Regex::Repeat { inner, .. } | Regex::Not(inner) => looks_ahead(inner),
        Regex::Never
        | Regex::Empty
        | Regex::Literal(_)
        | Regex::Class(_)
        | Regex::Multiple(_)
        | Regex::Whole(_)
        | Regex::Tokens(_) => false,
    }
}

impl Recognizer {
    /// The position before the first byte under a binding of the grammar's slots; `None` where no
    /// text is in the language, as far as sets without members do not decide it: see
    /// [`Grammar::without_slots`].
    ///
    /// # Errors
    /// When a limit is exceeded.
    ///
    /// # Panics
    /// When the binding has another number of slots.
    pub fn start_bound(
        &self,
        binding: &Arc<Binding>,
        scratch: &mut RecognizerScratch,
    ) -> Result<Option<Position>, RecognizerError> {
        assert_eq!(binding.len(), self.grammar.slots().len(), "a binding of another grammar");
        scratch.bind(Some(binding));
        let Some(start) = &self.start else { return Ok(None) };
        scratch.next.clear();
        for branch in start.branches() {
            self.add(branch.clone(), scratch);
            self.begin_members(&ParserState::of(branch), None, None, scratch)?;
        }
        Ok(self.position_of_next(scratch))
    }

    /// The position of the branches that were added.
    fn position_of_next(&self, scratch: &mut RecognizerScratch) -> Option<Position> {
        std::mem::swap(&mut scratch.now, &mut scratch.next);
        scratch.next.clear();
        scratch.now.sort_by(|a, b| a.key().cmp(&b.key()));
        (!scratch.now.is_empty()).then(|| scratch.position(self))
    }

    /// Begins the members that the parser takes on some stacks: after `byte`, or before the first
    /// one where it is `None`.
    pub(super) fn begin_members(
        &self,
        at: &ParserState,
        trail: Option<&Arc<Trail>>,
        byte: Option<u8>,
        scratch: &mut RecognizerScratch,
    ) -> Result<(), RecognizerError> {
        let (Some(state), Some(binding)) = (self.members.state, scratch.binding.clone()) else {
            return Ok(());
        };
        let allowed = scratch.allowed(self, (&at.stacks, &at.scopes))?;
        for &(terminal, slot) in &self.members.terminals {
            if !allowed.contains(terminal) {
                continue;
            }
            let scoped = self.scopes.set(&binding, slot, terminal, &at.scopes);
            let set = scoped.as_deref().unwrap_or_else(|| binding.set(slot));
            let cursor = set.start().and_then(|start| match byte {
                None => Some(start),
                Some(byte) => set.advance(&start, byte),
            });
            let Some(cursor) = cursor else { continue };
            let begin = scratch.offset.unwrap_or(0);
            let scoped = ScopedSet(scoped);
            let place = MemberPlace { terminal, slot, cursor, scoped, begin };
            let (member, trail) = (Some(Arc::new(place)), trail.cloned());
            let branch = at.clone().into_branch(state, Line::OTHER);
            self.add(Branch { member, trail, ..branch }, scratch);
        }
        Ok(())
    }

    /// The position after `byte` in what begins with it, after the lexemes in progress; `None` when
    /// nothing does.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn begin_next(
        &self,
        position: &Position,
        byte: u8,
        scratch: &mut RecognizerScratch,
    ) -> Result<Option<Position>, RecognizerError> {
        scratch.bind(position.binding());
        scratch.next.clear();
        for branch in position.branches() {
            self.begin_lexemes(branch, byte, scratch)?;
        }
        Ok(self.position_of_next(scratch))
    }

    /// True where no scope of members can have too few left within the next `bytes` of a text,
    /// whatever they are; a bound that is easy to tell, so that `false` says nothing.
    pub fn is_roomy(&self, position: &Position, bytes: usize) -> bool {
        let Some(binding) = position.binding().filter(|_| self.scopes.is_active()) else {
            return true;
        };
        let branches = position.branches().iter();
        let branches = branches.map(|branch| (&branch.stacks, &branch.scopes));
        self.scopes.is_roomy(binding, branches, bytes)
    }

    /// Adds the bytes that must follow where nothing but one member is in progress, as far as the
    /// set tells.
    pub fn forced_by_member(&self, position: &Position, bytes: &mut Vec<u8>) {
        if let ([branch], Some(binding)) = (position.branches(), position.binding())
            && let Some(place) = &branch.member
        {
            place.set(binding).forced(&place.cursor, bytes);
        }
    }

    /// The members that begin after the lexemes in progress, before their first byte; `None` where
    /// none does.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn begin_members_after(
        &self,
        position: &Position,
        scratch: &mut RecognizerScratch,
    ) -> Result<Option<Position>, RecognizerError> {
        scratch.bind(position.binding());
        scratch.next.clear();
        for branch in position.branches() {
            if let Some(place) = &branch.member {
                if self.whole_member(place, scratch).is_some() {
                    self.begin_members_after_lexeme(branch, place.terminal, scratch)?;
                }
                continue;
            }
            for end in self.lexer.ends(branch.lexer)? {
                for terminal in self.terminals_of(branch, end) {
                    self.begin_members_after_lexeme(branch, terminal, scratch)?;
                }
            }
        }
        Ok(self.position_of_next(scratch))
    }

    fn begin_members_after_lexeme(
        &self,
        branch: &Branch,
        terminal: TerminalId,
        scratch: &mut RecognizerScratch,
    ) -> Result<(), RecognizerError> {
        match self.step(branch, terminal, scratch)? {
            Some(after) => self.begin_members(&after, None, None, scratch),
            None => Ok(()),
        }
    }

    /// The position after the members that have been read whole, before the first byte of other
    /// lexemes; `None` where none has been.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn after_members(
        &self,
        position: &Position,
        scratch: &mut RecognizerScratch,
    ) -> Result<Option<Position>, RecognizerError> {
        scratch.bind(position.binding());
        scratch.next.clear();
        for branch in position.branches() {
            let Some(place) = &branch.member else { continue };
            if self.whole_member(place, scratch).is_none() {
                continue;
            }
            let Some(after) = self.step(branch, place.terminal, scratch)? else { continue };
            for (lexer, stacks) in self.begin(self.lexer.start(), &after, scratch)? {
                let begun = ParserState { stacks, ..after.clone() };
                self.add(begun.into_branch(lexer, Line::OTHER), scratch);
            }
        }
        Ok(self.position_of_next(scratch))
    }

    /// Advances the member in progress by `byte`.
    pub(super) fn advance_member(
        &self,
        mut branch: Branch,
        place: &MemberPlace,
        byte: u8,
        scratch: &mut RecognizerScratch,
    ) {
        let Some(binding) = &scratch.binding else { return };
        if let Some(cursor) = place.set(binding).advance(&place.cursor, byte) {
            branch.member = Some(Arc::new(MemberPlace { cursor, ..place.clone() }));
            self.add(branch, scratch);
        }
    }

    /// The member that has been read whole at a place.
    pub(super) fn whole_member(
        &self,
        place: &MemberPlace,
        scratch: &RecognizerScratch,
    ) -> Option<MemberId> {
        let binding = scratch.binding.as_ref()?;
        place.set(binding).member(&place.cursor)
    }

    /// Adds a member to a branch's trail, where members are traced.
    pub(super) fn trail_after(
        &self,
        branch: &Branch,
        scratch: &RecognizerScratch,
    ) -> Option<Arc<Trail>> {
        let (Some(end), Some(place)) = (scratch.offset, &branch.member) else {
            return branch.trail.clone();
        };
        let member = self.whole_member(place, scratch)?;
        let last = WrittenMember { slot: place.slot, member, span: place.begin..end };
        Some(Arc::new(Trail { last, before: branch.trail.clone() }))
    }

    /// The members of open slots that a text has, in their order: of a text with several readings,
    /// those of one of them.
    ///
    /// Members of the text so far count where they have ended, or where the text may end with them.
    /// `None` where the text begins no text of the language.
    ///
    /// Cost: a step for each byte.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn members(
        &self,
        binding: &Arc<Binding>,
        text: &[u8],
        scratch: &mut RecognizerScratch,
    ) -> Result<Option<Vec<WrittenMember>>, RecognizerError> {
        let whole = TextPart { spellings: vec![text], num_bytes: text.len() };
        self.members_of_parts(binding, std::iter::once(whole), scratch)
    }

    /// The members of a text as [`members`](Self::members) tells them, of one in parts that may be
    /// read in several ways: tokens, which are texts or numbers.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn members_of_parts<'p>(
        &self,
        binding: &Arc<Binding>,
        parts: impl Iterator<Item = TextPart<'p>>,
        scratch: &mut RecognizerScratch,
    ) -> Result<Option<Vec<WrittenMember>>, RecognizerError> {
        let Some(start) = self.start_bound(binding, scratch)? else { return Ok(None) };
        scratch.now.clear();
        scratch.now.extend_from_slice(start.branches());
        let traced = self.trace(parts, scratch);
        scratch.offset = None;
        scratch.now.clear();
        scratch.next.clear();
        traced
    }

    fn trace<'p>(
        &self,
        parts: impl Iterator<Item = TextPart<'p>>,
        scratch: &mut RecognizerScratch,
    ) -> Result<Option<Vec<WrittenMember>>, RecognizerError> {
        let mut begin = 0;
        for TextPart { spellings, num_bytes } in parts {
            let before = std::mem::take(&mut scratch.now);
            let mut after = Vec::new();
            for spelling in spellings {
                scratch.now.clone_from(&before);
                for (at, byte) in spelling.iter().enumerate() {
                    scratch.offset = Some(begin + at.min(num_bytes));
                    self.read(std::slice::from_ref(byte), scratch)?;
                }
                after.append(&mut scratch.now);
            }
            scratch.next.clear();
            after.into_iter().for_each(|branch| self.add(branch, scratch));
            std::mem::swap(&mut scratch.now, &mut scratch.next);
            scratch.now.sort_by(|a, b| a.key().cmp(&b.key()));
            begin += num_bytes;
        }
        scratch.offset = Some(begin);
        let branches = std::mem::take(&mut scratch.now);
        // A reading that may end here goes first: it is the whole text's.
        let mut best: Option<(bool, Option<Arc<Trail>>)> = None;
        for branch in &branches {
            let ends = self.branch_accepts_end(branch, scratch)?;
            if best.as_ref().is_none_or(|(known, _)| ends && !known) {
                let trail = match ends {
                    true => self.trail_after(branch, scratch),
                    false => branch.trail.clone(),
                };
                best = Some((ends, trail));
            }
        }
        Ok(best.map(|(_, trail)| {
            let mut members: Vec<WrittenMember> = Vec::new();
            let mut rest = trail.as_ref();
            while let Some(trail) = rest {
                if trail.last.slot.index() < self.grammar.open_slots().len() {
                    members.push(trail.last.clone());
                }
                rest = trail.before.as_ref();
            }
            members.reverse();
            members
        }))
    }
}
