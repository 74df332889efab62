//! What may come at a position, in terminals.

use super::{Branch, Position, Recognizer, RecognizerError, RecognizerScratch};
use crate::TerminalSet;
use crate::lexer::LexerState;

/// The terminals that a text may go on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// What the lexeme in progress may become; none before the first byte.
    pub in_progress: TerminalSet,
    /// What may begin here, where the lexeme in progress may end.
    pub next: TerminalSet,
}

/// A lexeme that a text may go on with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lexeme {
    pub(crate) lexer: LexerState,
    /// Whether it begins here, after one that ends.
    pub(crate) begins: bool,
    /// What it may become that the parser takes.
    pub(crate) terminals: TerminalSet,
}

impl Recognizer {
    /// What a reader may be told to expect: the terminals in progress and those that may come next, ignored ones included.
    ///
    /// Cost: a question to the parser for each stack, and a look-up for each terminal that the lexer finds possible.
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

    /// The lexemes that a text may go on with: those in progress, and those that may begin where they may end.
    pub(crate) fn lexemes(
        &self,
        position: &Position,
        scratch: &mut RecognizerScratch,
    ) -> Result<Vec<Lexeme>, RecognizerError> {
        let mut lexemes = Vec::new();
        for branch in position.branches() {
            lexemes.push(self.in_progress(branch, scratch)?);
            if self.lexer.is_fresh(branch.lexer) {
                continue;
            }
            for end in self.lexer.ends(branch.lexer)? {
                for terminal in end.terminals.iter() {
                    let parsed = (&branch.stacks, &branch.blocks);
                    let letter = self.layer.ended(terminal, branch.line);
                    let shift = |stacks: &_, terminal| scratch.shift(self, stacks, terminal);
                    let after = self.layer.step_by(parsed, letter, shift)?;
                    if let Some((stacks, blocks)) = after {
                        let start = self.begin(end.next, &stacks, scratch)?;
                        let after = Branch { stacks, blocks, ..branch.clone() };
                        lexemes.push(self.lexeme(&after, start, true, scratch)?);
                    }
                }
            }
        }
        Ok(lexemes)
    }

    /// A branch's lexeme in progress.
    pub(crate) fn in_progress(
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
        if self.is_contextual {
            return Ok(Lexeme { lexer, begins, terminals: self.lexer.possible(lexer).clone() });
        }
        let allowed = scratch.allowed(self, &branch.stacks)?;
        let mut terminals = TerminalSet::new(self.grammar.terminals().len());
        for terminal in self.lexer.possible(lexer).iter() {
            if allowed.contains(terminal) || self.layer.is_dropped(&branch.blocks, terminal) {
                terminals.insert(terminal);
            }
        }
        Ok(Lexeme { lexer, begins, terminals })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::frontends::{json_schema, lark};
    use crate::{Budget, RecognizerLimits};

    #[track_caller]
    fn check(prefix: &str, in_progress: &[&str], next: &[&str]) {
        let source =
            "start: (NAME \"=\" NUMBER \";\")+\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/\n%ignore \" \"";
        let grammar = lark::parse(source, &lark::LarkOptions::default()).unwrap();
        let limits = RecognizerLimits::default();
        let recognizer =
            Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited()).unwrap();
        let mut scratch = RecognizerScratch::default();
        let start = recognizer.start().unwrap();
        let position = recognizer.advance_all(start, prefix.as_bytes(), &mut scratch).unwrap();
        let expected = recognizer.expected(&position.unwrap(), &mut scratch).unwrap();
        let ignored = recognizer.ignored();
        let names = |set: &TerminalSet| -> Vec<String> {
            let seen = set.iter().filter(|&terminal| !ignored.contains(terminal));
            seen.map(|id| recognizer.grammar().terminals()[id.index()].name.clone()).collect()
        };
        assert_eq!(names(&expected.in_progress), in_progress, "in progress after {prefix:?}");
        assert_eq!(names(&expected.next), next, "next after {prefix:?}");
    }

    #[test]
    fn before_the_first_byte_all_is_next() {
        check("", &[], &["NAME"]);
    }

    #[test]
    fn a_lexeme_may_go_on_or_end() {
        check("ab", &["NAME"], &["EQUAL"]);
        check("ab=1", &["NUMBER"], &["SEMICOLON"]);
    }

    #[test]
    fn a_lexeme_that_cannot_go_on_is_in_progress_still() {
        check("ab=1;", &["SEMICOLON"], &["NAME"]);
    }

    /// Names of one object are nothing to another, nor to the values.
    #[test]
    fn lexemes_become_what_the_parser_takes_or_nothing() {
        let schema = r#"{"type": "object", "additionalProperties": false, "properties": {
            "abc": {"type": "object", "additionalProperties": false, "properties": {"abd": {"type": "string"}}},
            "abe": {"enum": ["abd", "x"]}}}"#;
        let grammar = json_schema::parse(schema, &json_schema::JsonSchemaOptions::default());
        let (grammar, limits) = (Arc::new(grammar.unwrap()), RecognizerLimits::default());
        let recognizer = Recognizer::new(grammar, &limits, &mut Budget::unlimited()).unwrap();
        let mut scratch = RecognizerScratch::default();
        let mut position = recognizer.start().unwrap().clone();
        for &byte in br#"{"abc": {"abd" : "abd"}, "abe": "abd"}"# {
            for Branch { lexer, stacks, .. } in position.branches() {
                let allowed = scratch.allowed(&recognizer, stacks).unwrap();
                let taken = |terminal| {
                    allowed.contains(terminal) || recognizer.ignored().contains(terminal)
                };
                assert!(recognizer.lexer().possible(*lexer).iter().all(taken));
            }
            position = recognizer.advance(&position, byte, &mut scratch).unwrap().unwrap();
        }
        assert!(recognizer.is_accepting(&position, &mut scratch).unwrap());
    }
}
