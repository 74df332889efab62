//! Viable terminals and bytes at a position.

use super::{Branch, Position, Recognizer, RecognizerError, RecognizerScratch};
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
pub(crate) struct Lexeme {
    pub(crate) lexer: LexerState,
    /// True when it begins here, after one that ends.
    pub(crate) begins: bool,
    /// Terminals that it may become and the parser takes.
    pub(crate) terminals: TerminalSet,
}

/// A message names at most so many things.
const MAX_NAMES: usize = 6;

impl Recognizer {
    /// The viable terminals: those in progress and those that may come next, ignored ones included.
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

    /// Names of what may follow, for the message about a text that does not: characters and ranges of them where these
    /// are at most six, else the six terminals with the shortest names, and then how many more there are. Blanks, control
    /// characters and ignored terminals are left out where something else may follow.
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
        let is_blank = |byte: &u8| *byte == b' ' || byte.is_ascii_control();
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

    /// The lexemes that a text may go on with: those in progress, and those that may begin where they may end.
    pub(crate) fn lexemes(
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
    pub(crate) fn begins_any(
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
        if self.lexer.is_fresh(branch.lexer) {
            return Ok(());
        }
        for end in self.lexer.ends(branch.lexer)? {
            for terminal in end.terminals.iter() {
                let after = self.step(branch, terminal, scratch)?;
                let Some((stacks, blocks, names)) = after else { continue };
                for (start, stacks) in self.begin(end.next, stacks, &names, scratch)? {
                    let (blocks, names) = (blocks.clone(), names.clone());
                    let after = Branch { stacks, blocks, names, ..branch.clone() };
                    lexemes.push(self.lexeme(&after, start, true, scratch)?);
                }
            }
        }
        Ok(())
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
        if self.knows_viable() {
            return Ok(Lexeme {
                lexer,
                begins,
                terminals: self.lexer.viable_terminals(lexer).clone(),
            });
        }
        let allowed = scratch.allowed(self, &branch.stacks)?;
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

    #[test]
    fn names_are_characters_where_these_are_few() {
        let schema = r#"{"type": "object", "properties": {"at": {"enum": ["10:00", "1\"", "2"]}, "n": {"type": "integer"},
            "s": {"type": "string"}}, "required": ["at", "n", "s"]}"#;
        let options = json_schema::JsonSchemaOptions::default();
        let grammar = Arc::new(json_schema::parse(schema, &options).unwrap());
        let check = |prefix: &str, expected: &[&str]| check_names(&grammar, prefix, expected);
        check("", &["`{`"]);
        check(r#"{"at": ""#, &["`1`", "`2`"]);
        check(r#"{"at": "1"#, &["`0`", r"`\`"]);
        check(r#"{"at": "2", "n": "#, &["`-`", "`0` to `9`"]);
        check(r#"{"at": "2", "n": 1, "s": "é"#, &["`!` to `~`", "a character beyond ASCII"]);
    }

    #[test]
    fn names_are_those_of_terminals_where_characters_are_many() {
        let source = "start: (A | B | CC | DD | PLUS | STAR | HASH | AT) DOT\nA: \"a\"\nB: \"c\"\nCC: \"e\"\n\
            DD: \"g\"\nPLUS: \"+\"\nSTAR: \"*\"\nHASH: \"#\"\nAT: \"@\"\nDOT: \".\"";
        let grammar = Arc::new(lark::parse(source, &lark::LarkOptions::default()).unwrap());
        check_names(&grammar, "", &["A", "B", "AT", "CC", "DD", "HASH", "2 more"]);
        check_names(&grammar, "a", &["`.`"]);
    }

    #[track_caller]
    fn check_names(grammar: &Arc<crate::Grammar>, prefix: &str, expected: &[&str]) {
        let (grammar, limits) = (Arc::clone(grammar), RecognizerLimits::default());
        let recognizer = Recognizer::new(grammar, &limits, &mut Budget::unlimited()).unwrap();
        let mut scratch = RecognizerScratch::default();
        let start = recognizer.start().unwrap();
        let position = recognizer.advance_all(start, prefix.as_bytes(), &mut scratch).unwrap();
        let names = recognizer.expected_names(&position.unwrap(), &mut scratch).unwrap();
        assert_eq!(names, expected, "after {prefix:?}");
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
                assert!(recognizer.lexer().viable_terminals(*lexer).iter().all(taken));
            }
            position = recognizer.advance(&position, byte, &mut scratch).unwrap().unwrap();
        }
        assert!(recognizer.is_accepting(&position, &mut scratch).unwrap());
    }
}
