//! Reading a grammar from a file, as written or as compiled, and making it ready.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::Args;
use palmette_grammar::frontends::json_schema;
use palmette_grammar::{
    Budget, Grammar, GrammarConstraint, GrammarSource, PreparedVocabulary, Recognizer,
    RecognizerLimits, SavedGrammar,
};

use serde::Serialize;

use crate::input;
use crate::output::visible;

use super::{ReadingArgs, Syntax};

/// A grammar and how it is written.
#[derive(Debug, Args)]
pub(crate) struct GrammarFileArgs {
    /// The grammar; - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Syntax of the grammar [default: by the file's ending]
    #[arg(long, value_name = "SYNTAX")]
    syntax: Option<Syntax>,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Work that compiling may take, in steps of some nanoseconds
    #[arg(long, value_name = "STEPS", default_value_t = 20_000_000_000)]
    budget: u64,
}

impl GrammarFileArgs {
    /// Syntax of the grammar, in a word.
    pub(crate) fn kind(&self) -> anyhow::Result<&'static str> {
        if self.is_compiled() { Ok("compiled") } else { Ok(self.syntax()?.name()) }
    }

    /// The grammar in the file, and warnings about parts of it without effect.
    pub(crate) fn parse(&self) -> anyhow::Result<(Grammar, Vec<Warning>)> {
        let source = match self.is_compiled() {
            true => self.open()?.source().clone(),
            false => self.source()?,
        };
        self.parsed(&source)
    }

    /// The grammar as it is written in the file.
    fn source(&self) -> anyhow::Result<GrammarSource> {
        let named = || self.file.display().to_string();
        let text = input::read_text(&self.file, "a grammar")?;
        self.reading.source(self.syntax()?, text).with_context(named)
    }

    fn parsed(&self, source: &GrammarSource) -> anyhow::Result<(Grammar, Vec<Warning>)> {
        let parsed = source.parse_with_budget(&mut self.budget());
        let (grammar, warnings) = parsed.with_context(|| self.file.display().to_string())?;
        Ok((grammar, warnings.into_iter().map(Warning::from).collect()))
    }

    /// Prints warnings to standard error, but where they are part of a JSON document.
    pub(crate) fn show(&self, warnings: &[Warning], json: bool) {
        for warning in warnings.iter().filter(|_| !json) {
            eprintln!("warning: {}: {}", self.file.display(), visible(&warning.to_string()));
        }
    }

    /// The grammar made ready; the tokens that it asks for are those of a vocabulary already, or
    /// left out.
    pub(crate) fn compile(&self, grammar: Grammar) -> anyhow::Result<Recognizer> {
        let limits = RecognizerLimits::default();
        Recognizer::new(Arc::new(grammar), &limits, &mut self.budget())
            .with_context(|| self.file.display().to_string())
    }

    /// The grammar made ready over a vocabulary, with what a compiled one knows of masks, and its
    /// source.
    pub(crate) fn constraint(
        &self,
        vocabulary: &Arc<PreparedVocabulary>,
    ) -> anyhow::Result<(GrammarConstraint, GrammarSource, Vec<Warning>)> {
        if !self.is_compiled() {
            let source = self.source()?;
            let (grammar, warnings) = self.parsed(&source)?;
            let grammar = grammar.with_tokens_of(vocabulary.vocabulary());
            let grammar = grammar.with_context(|| self.file.display().to_string())?;
            let recognizer = Arc::new(self.compile(grammar)?);
            let constraint = GrammarConstraint::new(recognizer, Arc::clone(vocabulary));
            let checked = constraint.check_token_limits();
            checked.with_context(|| self.file.display().to_string())?;
            return Ok((constraint, source, warnings));
        }
        let saved = self.open()?;
        let reopened = saved
            .compile(vocabulary, &RecognizerLimits::default(), &mut self.budget())
            .with_context(|| self.file.display().to_string())?;
        let message =
            "its masks are of another version of palmette and are found out again; compile it anew";
        let outdated = reopened.nodes.is_none().then(|| Warning::of_file(message));
        let warnings = reopened.warnings.into_iter().map(Warning::from).chain(outdated);
        Ok((reopened.constraint, saved.source().clone(), warnings.collect()))
    }

    fn syntax(&self) -> anyhow::Result<Syntax> {
        ensure!(
            self.syntax.is_some() || !input::is_stdin(&self.file),
            "standard input has no ending that tells how the grammar is written; say --syntax lark, gbnf, json-schema or regex"
        );
        self.syntax.map_or_else(|| Syntax::of(&self.file), Ok)
    }

    /// True for a file of `palmette grammar compile`.
    fn is_compiled(&self) -> bool {
        let ending = self.file.extension();
        self.syntax.is_none() && ending.is_some_and(|ending| ending.eq_ignore_ascii_case("pmg"))
    }

    fn open(&self) -> anyhow::Result<SavedGrammar> {
        let named = || self.file.display().to_string();
        ensure!(
            self.reading.is_default(),
            "{}: a compiled grammar was read already; leave out --start, --lexing, --tools and the options of JSON Schema",
            named()
        );
        SavedGrammar::open(&self.file).with_context(named)
    }

    pub(crate) fn budget(&self) -> Budget<'static> {
        Budget::new(self.budget)
    }
}

/// A part of a grammar's file that has no effect.
#[derive(Debug, Serialize)]
pub(crate) struct Warning {
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) column: Option<u32>,
    /// In a JSON Schema, the JSON pointer to what it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pointer: Option<String>,
}

impl Warning {
    fn of_file(message: &str) -> Self {
        Self { message: message.to_owned(), line: None, column: None, pointer: None }
    }
}

impl From<json_schema::Warning> for Warning {
    fn from(warning: json_schema::Warning) -> Self {
        Self {
            message: warning.message,
            line: Some(warning.span.line),
            column: Some(warning.span.column),
            pointer: Some(warning.pointer).filter(|pointer| !pointer.is_empty()),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(line), Some(column)) = (self.line, self.column) {
            let end = if self.pointer.is_some() { "," } else { ":" };
            write!(f, "line {line}, column {column}{end} ")?;
        }
        if let Some(pointer) = &self.pointer {
            write!(f, "at {pointer:?}: ")?;
        }
        f.write_str(&self.message)
    }
}
