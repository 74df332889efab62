//! Limits on the tokens of lexemes, in masks of engines that read bytes.
//!
//! A lexeme of a terminal with a limit must be whole within its tokens. In its last ones, tokens
//! are kept after which what is left of it fits into those that are left; far from them no token
//! can leave more, so that masks are the engines' own. The rest of a lexeme is the shortest in
//! bytes, cut into the fewest tokens, so what is left of it after some tokens never is more, and a
//! token there always is.

use std::collections::HashSet;

use palmette_grammar_masks::token_cut::TokenCut;
use palmette_grammar_parser::lexer::LexerState;
use palmette_grammar_parser::recognizer::{
    LexemeTokens, Position, RecognizerError, RecognizerScratch,
};
use palmette_grammar_parser::{Regex, TerminalId, TerminalSet, TokenLimit};

use super::token_groups::NONE;
use super::{GrammarConstraint, GrammarScratch, MaskBudget};
use crate::TokenError;

/// States of a terminal's lexemes that are looked through, at most.
const MAX_STATES: usize = 1 << 12;

/// States of which each rest is cut into tokens, where its bytes do not tell enough, at most.
const MAX_CUT_STATES: usize = 1 << 8;

impl GrammarConstraint {
    /// Checks that each terminal with a limit has a text within it: its shortest one in bytes, in
    /// the fewest tokens of the vocabulary.
    ///
    /// # Errors
    /// When that of one is too long.
    pub fn check_token_limits(&self) -> Result<(), TokenError> {
        let grammar = self.recognizer.grammar();
        for limit in grammar.token_limits() {
            let terminal = limit.terminal;
            // One that no text has is left out of the lexer's start.
            let Ok(Some(from)) = self.lexeme_start(terminal) else { continue };
            let Ok(needed) = self.rest_tokens(from, terminal) else { continue };
            if needed > limit.tokens.get() {
                let name = grammar.terminals()[terminal.index()].name.as_str().into();
                let needed = (needed < NONE).then_some(needed);
                return Err(TokenError::Limit { name, most: limit.tokens.get(), needed });
            }
        }
        Ok(())
    }

    /// The position after the bytes of a token, once it has ended; `None` where a lexeme would not
    /// be whole within its tokens.
    pub(super) fn after_token(
        &self,
        position: Position,
        scratch: &mut RecognizerScratch,
    ) -> Result<Option<Position>, RecognizerError> {
        if !self.recognizer.token_limits().is_active() {
            return Ok(Some(position));
        }
        let position = self.recognizer.end_token(&position, scratch);
        Ok(self.ends_in_time(&position, scratch)?.then_some(position))
    }

    /// True where a lexeme in progress can be whole within its tokens.
    fn ends_in_time(
        &self,
        position: &Position,
        scratch: &mut RecognizerScratch,
    ) -> Result<bool, RecognizerError> {
        let (limits, lexer) = (self.recognizer.token_limits(), self.recognizer.lexer());
        for branch in position.branches() {
            if branch.tokens == LexemeTokens::default() {
                return Ok(true);
            }
            for terminal in lexer.viable_terminals(branch.lexer).iter() {
                if limits.is_over(terminal, branch.tokens) {
                    continue;
                }
                let is_short = match limits.left(terminal, branch.tokens) {
                    Some(left) => self.rest_tokens(branch.lexer, terminal)? <= left,
                    None => true,
                };
                if is_short && self.recognizer.takes(branch, terminal, scratch)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// True where a token may leave a lexeme with too few tokens for its rest.
    pub(super) fn limits_matter(&self, position: &Position) -> Result<bool, RecognizerError> {
        let (limits, lexer) = (self.recognizer.token_limits(), self.recognizer.lexer());
        if !limits.is_active() {
            return Ok(false);
        }
        for &(terminal, rest) in self.longest_rests() {
            let Some(most) = limits.most(terminal) else { continue };
            // A lexeme that begins within the token has one.
            if rest >= most {
                return Ok(true);
            }
            let is_near = position.branches().iter().any(|branch| {
                branch.tokens != LexemeTokens::default()
                    && branch.tokens.count().saturating_add(rest) >= most
                    && lexer.viable_terminals(branch.lexer).contains(terminal)
            });
            if is_near {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Clears the bits of tokens after which a lexeme would not be whole within its tokens; all
    /// bits where that fails.
    pub(super) fn deny_beyond_limits(
        &self,
        position: &Position,
        scratch: &mut GrammarScratch,
        mask: &mut [u32],
        work: &MaskBudget<'_>,
    ) -> Result<(), RecognizerError> {
        if !self.limits_matter(position)? {
            return Ok(());
        }
        let found = self.tokens_in_time(position, mask, scratch, &mut work.budget(work.walk));
        match found {
            Ok(in_time) => in_time.fill(mask),
            Err(error) => {
                mask.fill(0);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Tokens to the end of a lexeme in progress as `terminal`; [`NONE`] where there are none.
    fn rest_tokens(&self, state: LexerState, terminal: TerminalId) -> Result<u32, RecognizerError> {
        if let Some(known) = self.lexeme_rests.get((state, terminal)) {
            return Ok(known);
        }
        let rest = self.completions().lexeme_rest(state, terminal)?;
        let mut cut = TokenCut::default();
        let tokens = rest.and_then(|rest| cut.cut(self.vocabulary.trie(), &rest));
        let tokens = tokens.and_then(|tokens| u32::try_from(tokens).ok()).unwrap_or(NONE);
        self.lexeme_rests.insert((state, terminal), tokens);
        Ok(tokens)
    }

    /// The state in which lexemes of one terminal begin; `None` where it has none.
    fn lexeme_start(&self, terminal: TerminalId) -> Result<Option<LexerState>, RecognizerError> {
        let lexer = self.recognizer.lexer();
        if !lexer.viable_terminals(lexer.start()).contains(terminal) {
            return Ok(None);
        }
        let mut only = TerminalSet::new(self.recognizer.grammar().terminals().len());
        only.insert(terminal);
        Ok(Some(lexer.restricted_to(lexer.start(), &only)?))
    }

    fn longest_rests(&self) -> &[(TerminalId, u32)] {
        self.lexeme_rests.longest(|| {
            let limits = self.recognizer.grammar().token_limits().iter();
            limits
                .map(|limit| {
                    // Where it is not known, each token is looked at.
                    let rest = self.longest_rest(limit).unwrap_or(NONE);
                    (limit.terminal, rest)
                })
                .collect()
        })
    }

    /// The most tokens that the rest of a terminal's lexeme takes after its first byte, or a bound
    /// of them that is below the limit.
    fn longest_rest(&self, limit: &TokenLimit) -> Result<u32, RecognizerError> {
        let (terminal, most) = (limit.terminal, limit.tokens.get());
        // No more tokens than bytes.
        let has_bytes = self.has_bytes_of_text();
        let regex = &self.recognizer.grammar().terminals()[terminal.index()].regex;
        if has_bytes && let Some(bound) = rest_bytes(regex).filter(|&bound| bound < most) {
            return Ok(bound);
        }
        let lexer = self.recognizer.lexer();
        let Some(from) = self.lexeme_start(terminal)? else { return Ok(0) };
        let (mut states, mut known) = (vec![from], HashSet::from([from]));
        let mut at = 0;
        while let Some(&state) = states.get(at) {
            for (_, next) in lexer.steps(state)? {
                if lexer.viable_terminals(next).contains(terminal) && known.insert(next) {
                    states.push(next);
                }
            }
            if states.len() > MAX_STATES {
                return Ok(NONE);
            }
            at += 1;
        }
        let (mut longest, mut cuts) = (0, 0);
        for &state in &states[1..] {
            let rest = self.completions().lexeme_rest(state, terminal)?;
            let bytes = rest.map_or(NONE, |rest| rest.len() as u32);
            let tokens = match has_bytes && bytes < most {
                true => bytes,
                false => {
                    cuts += 1;
                    self.rest_tokens(state, terminal)?
                }
            };
            longest = longest.max(tokens);
            if longest == NONE || cuts > MAX_CUT_STATES {
                return Ok(NONE);
            }
        }
        Ok(longest)
    }

    /// True where each byte that texts have is a token.
    fn has_bytes_of_text(&self) -> bool {
        let trie = self.vocabulary.trie();
        let mut bytes = (0..=0xBF).chain(0xC2..=0xF4);
        bytes.all(|byte: u8| {
            trie.child(0, byte).is_some_and(|node| !trie.own_ranks(node).is_empty())
        })
    }
}

/// Bound of the bytes after which a text that has begun is one of an expression; `None` where its
/// form does not tell.
fn rest_bytes(regex: &Regex) -> Option<u32> {
    Some(lengths(regex)?.rest)
}

/// Bounds of lengths, in bytes: of a shortest text, and of the rest of any beginning of one.
struct Lengths {
    shortest: u32,
    rest: u32,
}

fn lengths(regex: &Regex) -> Option<Lengths> {
    let (shortest, rest) = match regex {
        Regex::Empty => (0, 0),
        Regex::Literal(text) => (text.len() as u32, text.len() as u32),
        Regex::Class(class) => {
            let is_ascii = class.ranges().first().is_some_and(|&(low, _)| low.is_ascii());
            (if is_ascii { 1 } else { 4 }, 4)
        }
        Regex::Concat(parts) => {
            let mut whole = (0_u32, 0_u32);
            for part in parts.iter().rev() {
                let Lengths { shortest, rest } = lengths(part)?;
                // What is left of this part, then those after it.
                whole.1 = whole.1.max(rest.saturating_add(whole.0));
                whole.0 = whole.0.saturating_add(shortest);
            }
            whole
        }
        Regex::Alternate(parts) => {
            let mut whole = (u32::MAX, 0);
            for part in parts.iter() {
                let Lengths { shortest, rest } = lengths(part)?;
                whole = (whole.0.min(shortest), whole.1.max(rest));
            }
            whole
        }
        Regex::Repeat { inner, min, .. } => {
            let Lengths { shortest, rest } = lengths(inner)?;
            let others = shortest.saturating_mul(min.saturating_sub(1));
            (shortest.saturating_mul(*min), rest.saturating_add(others))
        }
        Regex::Never | Regex::Multiple(_) | Regex::And(_) | Regex::Not(_) => return None,
        Regex::Look { .. } | Regex::Whole(_) | Regex::Tokens(_) => return None,
    };
    Some(Lengths { shortest, rest })
}
