//! Problems of a grammar, with their places.

use std::{fmt, ops::Range};

use crate::json_schema::Warning;
use crate::{Budget, Interrupted, Span};

/// Problems past this many are counted, not kept.
const MAX_PROBLEMS: usize = 20;

/// Characters of a line that are shown.
const MAX_SHOWN: usize = 160;

/// A grammar that cannot be read, with everything found wrong with it.
///
/// Its message has one paragraph a problem: place and reason, then the line with a mark below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LarkError {
    problems: Vec<LarkProblem>,
    more: usize,
    interrupted: Option<Interrupted>,
}

/// One thing wrong with a grammar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LarkProblem {
    /// The problem and the way out.
    pub message: String,
    /// The place, unless it is about the whole grammar.
    pub span: Option<Span>,
    /// The line at `span`, shortened when it is very long; empty without one.
    pub line: String,
}

impl LarkError {
    /// The problems, in the order of the source; never empty. After the first 20 the rest is only
    /// counted.
    pub fn problems(&self) -> &[LarkProblem] {
        &self.problems
    }

    /// The reason for which the work stopped, if the budget ran out or it was called off: then
    /// nothing need be wrong with the grammar.
    pub fn interrupted(&self) -> Option<Interrupted> {
        self.interrupted
    }
}

impl std::error::Error for LarkError {}

impl fmt::Display for LarkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}

impl fmt::Display for LarkProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(span) = self.span else { return f.write_str(&self.message) };
        write!(f, "{span}: {}", self.message)?;
        let column = span.column as usize;
        if column > MAX_SHOWN {
            return Ok(());
        }
        let blank = |c: char| if c == '\t' { '\t' } else { ' ' };
        let indent: String = self.line.chars().take(column - 1).map(blank).collect();
        let width = (span.end - span.start).clamp(1, MAX_SHOWN);
        let shown = self.line.chars().count().saturating_sub(column - 1).max(1);
        write!(f, "\n  {}\n  {indent}{}", self.line, "^".repeat(width.min(shown)))
    }
}

/// A grammar's text, by lines.
#[derive(Debug)]
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    line_starts: Vec<usize>,
}

impl<'a> Source<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let after_breaks = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let line_starts = std::iter::once(0).chain(after_breaks.map(|(at, _)| at + 1)).collect();
        Self { text, line_starts }
    }

    pub(super) fn span(&self, range: &Range<usize>) -> Span {
        let line = self.line_of(range.start);
        let before = &self.text[self.line_starts[line]..range.start];
        let column = before.chars().count() as u32 + 1;
        Span { start: range.start, end: range.end, line: line as u32 + 1, column }
    }

    fn line_of(&self, at: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= at) - 1
    }

    fn line(&self, at: usize) -> String {
        let rest = &self.text[self.line_starts[self.line_of(at)]..];
        rest.lines().next().unwrap_or("").chars().take(MAX_SHOWN).collect()
    }
}

/// Collects problems; and what is left of the budget, since running out of it is one.
#[derive(Debug)]
pub(super) struct Problems<'a> {
    pub(super) source: Source<'a>,
    pub(super) budget: Budget<'a>,
    /// Warnings of this grammar and of those within it.
    pub(super) warnings: Vec<Warning>,
    /// Grammars around this one.
    pub(super) nested: u32,
    interrupted: Option<Interrupted>,
    found: Vec<LarkProblem>,
    more: usize,
}

impl<'a> Problems<'a> {
    pub(super) fn new(text: &'a str, budget: Budget<'a>, nested: u32) -> Self {
        let (warnings, found, source) = (Vec::new(), Vec::new(), Source::new(text));
        Self { source, budget, warnings, nested, interrupted: None, found, more: 0 }
    }

    /// Takes units off the budget; `None` when it is used up, which then is a problem.
    pub(super) fn spend(&mut self, units: usize) -> Option<()> {
        match self.budget.spend(units as u64) {
            Ok(()) => Some(()),
            Err(why) => {
                self.interrupt(why);
                None
            }
        }
    }

    /// The work stops here.
    pub(super) fn interrupt(&mut self, why: Interrupted) {
        if self.interrupted.is_none() {
            self.interrupted = Some(why);
            self.add_general(why.to_string());
        }
    }

    pub(super) fn add(&mut self, at: &Range<usize>, message: impl Into<String>) {
        let (span, line) = (self.source.span(at), self.source.line(at.start));
        self.push(LarkProblem { message: message.into(), span: Some(span), line });
    }

    /// Adds a warning at a place: what is read, but perhaps not as it was meant.
    pub(super) fn warn(&mut self, at: &Range<usize>, message: impl Into<String>) {
        let span = self.source.span(at);
        self.warnings.push(Warning { pointer: String::new(), span, message: message.into() });
    }

    /// A problem of the whole grammar.
    pub(super) fn add_general(&mut self, message: impl Into<String>) {
        self.push(LarkProblem { message: message.into(), span: None, line: String::new() });
    }

    /// True when another problem would only be counted.
    pub(super) fn is_full(&self) -> bool {
        self.found.len() >= MAX_PROBLEMS
    }

    /// The error, when there is any problem.
    pub(super) fn check(&mut self) -> Result<(), LarkError> {
        if self.found.is_empty() {
            return Ok(());
        }
        self.found.sort_by_key(|problem| problem.span.map(|span| span.start));
        let (problems, interrupted) = (std::mem::take(&mut self.found), self.interrupted);
        Err(LarkError { problems, more: self.more, interrupted })
    }

    fn push(&mut self, problem: LarkProblem) {
        if self.found.contains(&problem) {
            return;
        }
        if self.found.len() < MAX_PROBLEMS {
            self.found.push(problem);
        } else {
            self.more += 1;
        }
    }
}
