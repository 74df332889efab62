//! Reading a grammar from a file, as written or as compiled, and making it ready.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::Args;
use palmette_grammar::{
    Budget, Grammar, GrammarConstraint, Recognizer, RecognizerLimits, SavedGrammar,
    VocabularySlices,
};

use crate::output::visible;

use super::{ReadingArgs, Syntax};

/// A grammar and how it is written.
#[derive(Debug, Args)]
pub(crate) struct GrammarFileArgs {
    /// The grammar
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// How it is written [default: by the file's ending]
    #[arg(long, value_name = "SYNTAX")]
    syntax: Option<Syntax>,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Work that compiling may take, in steps of some nanoseconds
    #[arg(long, value_name = "STEPS", default_value_t = 20_000_000_000)]
    budget: u64,
}

impl GrammarFileArgs {
    /// How the grammar is written, in a word.
    pub(crate) fn kind(&self) -> anyhow::Result<&'static str> {
        if self.is_compiled() { Ok("compiled") } else { Ok(self.syntax()?.name()) }
    }

    /// What the file says; what of it has no effect goes to standard error.
    pub(crate) fn parse(&self) -> anyhow::Result<Grammar> {
        if self.is_compiled() {
            return Ok(Grammar::clone(self.open()?.grammar()));
        }
        let named = || self.file.display().to_string();
        let source = std::fs::read_to_string(&self.file).with_context(named)?;
        let (grammar, warnings) =
            self.reading.parse(self.syntax()?, &source).with_context(named)?;
        for warning in warnings {
            eprintln!("warning: {}: {}", self.file.display(), visible(&warning));
        }
        Ok(grammar)
    }

    /// The grammar made ready; the tokens that it asks for are those of a vocabulary already, or left out.
    pub(crate) fn compile(&self, grammar: Grammar) -> anyhow::Result<Recognizer> {
        let limits = RecognizerLimits::default();
        Recognizer::new(Arc::new(grammar), &limits, &mut self.budget())
            .with_context(|| self.file.display().to_string())
    }

    /// The grammar made ready over a vocabulary, with what a compiled one knows of masks.
    pub(crate) fn constraint(
        &self,
        vocabulary: &Arc<VocabularySlices>,
    ) -> anyhow::Result<GrammarConstraint> {
        if !self.is_compiled() {
            let grammar = self.parse()?.with_tokens_of(vocabulary.vocabulary());
            let grammar = grammar.with_context(|| self.file.display().to_string())?;
            let recognizer = Arc::new(self.compile(grammar)?);
            return Ok(GrammarConstraint::new(recognizer, Arc::clone(vocabulary)));
        }
        let limits = RecognizerLimits::default();
        let reopened = self
            .open()?
            .compile(vocabulary, &limits, &mut self.budget())
            .with_context(|| self.file.display().to_string())?;
        if reopened.nodes.is_none() {
            eprintln!(
                "warning: {}: its masks are of another version of palmette and are found out again; compile it anew",
                self.file.display()
            );
        }
        Ok(reopened.constraint)
    }

    fn syntax(&self) -> anyhow::Result<Syntax> {
        self.syntax.map_or_else(|| Syntax::of(&self.file), Ok)
    }

    /// Whether it is a file of `palmette grammar compile`.
    fn is_compiled(&self) -> bool {
        let ending = self.file.extension();
        self.syntax.is_none() && ending.is_some_and(|ending| ending.eq_ignore_ascii_case("pmg"))
    }

    fn open(&self) -> anyhow::Result<SavedGrammar> {
        let named = || self.file.display().to_string();
        ensure!(
            self.reading.is_default(),
            "{}: a compiled grammar was read already; leave out --start, --order, --whitespace, --relax and --strict",
            named()
        );
        SavedGrammar::open(&self.file).with_context(named)
    }

    pub(crate) fn budget(&self) -> Budget<'static> {
        Budget::new(self.budget)
    }
}
