//! Viable terminals and bytes at a position.

use super::{Branch, ParserState, Position, Recognizer, RecognizerError, RecognizerScratch};
use crate::TerminalSet;
use crate::lexer::LexerState;

/// The terminals that a text may go on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Terminals that the lexeme in progress may become; none before the first byte.
    pub in_progress: TerminalSet,
    /// Terminals that may begin here, where the lexeme in progress may end.
    pub next: TerminalSet,
}

/// A lexeme that a text may go on with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lexeme {
    /// State of the lexer.
    pub lexer: LexerState,
    /// True when it begins here, after one that ends.
    pub begins: bool,
    /// Terminals that it may become and the parser takes.
    pub terminals: TerminalSet,
}

/// A message names at most so many things.
const MAX_NAMES: usize = 6;

impl Recognizer {
    /// The viable terminals: those in progress and those that may come next, ignored ones included.
    ///
    /// Cost: a question to the parser for each stack, and a look-up for each terminal that the
    /// lexer finds possible.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn expected(
        &self,
        position: &Position,
        scratch: &mut RecognizerScratch,
    ) -> Result<Expected, RecognizerError> {
        let none = TerminalSet::new(self.grammar.terminals().len());
        let mut expected = Expected { in_progress: none.clone(), next: none };
        for lexeme in self.lexemes(position, scratch)? {
            let is_next = lexeme.begins || self.lexer.is_fresh(lexeme.lexer);
            let found = if is_next { &mut expected.next } else { &mut expected.in_progress };
            found.union_with(&lexeme.terminals);
        }
        Ok(expected)
    }

    /// Names of what may follow, for the message about a text that does not: characters and ranges
    /// of them where these are at most six, else the six terminals with the shortest names, and
    /// then how many more there are. Blanks, control characters and ignored terminals are left out
    /// where something else may follow.
    ///
    /// Cost: a step for each byte.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn expected_names(
        &self,
        position: &Position,
        scratch: &mut RecognizerScratch,
    ) -> Result<Vec<String>, RecognizerError> {
        let mut bytes = Vec::new();
        for byte in 0..=u8::MAX {
            if self.advance(position, byte, scratch)?.is_some() {
                bytes.push(byte);
            }
        }
        // Where lines end statements, what is missing may be the end of one.
        let ends_line = |byte: u8| byte == b'\n' && self.layer().indentation.is_some();
        let is_blank = |byte: &u8| *byte == b' ' || byte.is_ascii_control() && !ends_line(*byte);
        if !bytes.iter().all(is_blank) {
            bytes.retain(|byte| !is_blank(byte));
        }
        let characters = names_of_bytes(&bytes);
        if characters.len() <= MAX_NAMES {
            return Ok(characters);
        }
        let Expected { in_progress: mut terminals, next } = self.expected(position, scratch)?;
        terminals.union_with(&next);
        let seen = terminals.iter().filter(|&terminal| !self.ignored().contains(terminal));
        let name =
            |terminal: crate::TerminalId| self.grammar.terminals()[terminal.index()].name.clone();
        let mut names: Vec<String> = seen.map(name).collect();
        names.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        names.dedup();
        if names.is_empty() {
            return Ok(characters);
        }
        if names.len() > MAX_NAMES {
            let more = names.len() - MAX_NAMES;
            names.truncate(MAX_NAMES);
            names.push(format!("{more} more"));
        }
        Ok(names)
    }

    /// The lexemes that a text may go on with: those in progress, and those that may begin where
    /// they may end.
    pub fn lexemes(
        &self,
        position: &Position,
        scratch: &mut RecognizerScratch,
    ) -> Result<Vec<Lexeme>, RecognizerError> {
        let mut lexemes = Vec::new();
        for branch in position.branches() {
            lexemes.push(self.in_progress(branch, scratch)?);
            self.add_next(branch, &mut lexemes, scratch)?;
        }
        Ok(lexemes)
    }

    /// Tells if `found` holds of the terminals of a lexeme that may begin after the branch's own.
    pub fn begins_any(
        &self,
        branch: &Branch,
        scratch: &mut RecognizerScratch,
        found: impl Fn(&TerminalSet) -> bool,
    ) -> Result<bool, RecognizerError> {
        let mut lexemes = Vec::new();
        self.add_next(branch, &mut lexemes, scratch)?;
        Ok(lexemes.iter().any(|lexeme| found(&lexeme.terminals)))
    }

    /// Adds the lexemes that may begin after the branch's own, where that may end.
    fn add_next(
        &self,
        branch: &Branch,
        lexemes: &mut Vec<Lexeme>,
        scratch: &mut RecognizerScratch,
    ) -> Result<(), RecognizerError> {
        if branch.member.is_some() || self.lexer.is_fresh(branch.lexer) {
            return Ok(());
        }
        for end in self.lexer.ends(branch.lexer)? {
            for terminal in end.terminals.iter() {
                let Some(after) = self.step(branch, terminal, scratch)? else { continue };
                for (start, stacks) in self.begin(end.next, &after, scratch)? {
                    let at = ParserState { stacks, ..after.clone() };
                    let after = at.into_branch(branch.lexer, branch.line);
                    lexemes.push(self.lexeme(&after, start, true, scratch)?);
                }
            }
        }
        Ok(())
    }

    /// A branch's lexeme in progress.
    pub fn in_progress(
        &self,
        branch: &Branch,
        scratch: &mut RecognizerScratch,
    ) -> Result<Lexeme, RecognizerError> {
        self.lexeme(branch, branch.lexer, false, scratch)
    }

    /// A lexeme in state `lexer` after the branch's lexemes.
    fn lexeme(
        &self,
        branch: &Branch,
        lexer: LexerState,
        begins: bool,
        scratch: &mut RecognizerScratch,
    ) -> Result<Lexeme, RecognizerError> {
        if let Some(place) = branch.member.as_ref().filter(|_| !begins) {
            let mut terminals = TerminalSet::new(self.grammar.terminals().len());
            terminals.insert(place.terminal);
            return Ok(Lexeme { lexer, begins, terminals });
        }
        if self.knows_viable() {
            return Ok(Lexeme {
                lexer,
                begins,
                terminals: self.lexer.viable_terminals(lexer).clone(),
            });
        }
        let allowed = scratch.allowed(self, (&branch.stacks, &branch.scopes))?;
        let mut terminals = TerminalSet::new(self.grammar.terminals().len());
        for terminal in self.lexer.viable_terminals(lexer).iter() {
            if allowed.contains(terminal) || self.layer.is_dropped(&branch.blocks, terminal) {
                terminals.insert(terminal);
            }
        }
        Ok(Lexeme { lexer, begins, terminals })
    }
}

/// Bytes, ascending, as characters in backticks; three or more in a row as a range.
fn names_of_bytes(bytes: &[u8]) -> Vec<String> {
    let (ascii, others) = bytes.split_at(bytes.partition_point(u8::is_ascii));
    let quoted = |byte: u8| match byte {
        b'`' => "a backtick".to_owned(),
        b'"' | b'\'' | b'\\' => format!("`{}`", char::from(byte)),
        _ => format!("`{}`", byte.escape_ascii()),
    };
    let mut names = Vec::new();
    for run in ascii.chunk_by(|a, b| a + 1 == *b) {
        match run {
            [first, _, .., last] => names.push(format!("{} to {}", quoted(*first), quoted(*last))),
            few => names.extend(few.iter().map(|&byte| quoted(byte))),
        }
    }
    if !others.is_empty() {
        names.push("a character beyond ASCII".to_owned());
    }
    names
}
