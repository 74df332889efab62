//! Reading a grammar from a file, and making it ready.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use palmette_grammar::{Budget, Grammar, Recognizer, RecognizerLimits};

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
    pub(crate) fn syntax(&self) -> anyhow::Result<Syntax> {
        self.syntax.map_or_else(|| Syntax::of(&self.file), Ok)
    }

    /// What the file says; what of it has no effect goes to standard error.
    pub(crate) fn parse(&self) -> anyhow::Result<Grammar> {
        let named = || self.file.display().to_string();
        let source = std::fs::read_to_string(&self.file).with_context(named)?;
        let (grammar, warnings) =
            self.reading.parse(self.syntax()?, &source).with_context(named)?;
        for warning in warnings {
            eprintln!("warning: {}: {}", self.file.display(), visible(&warning));
        }
        Ok(grammar)
    }

    /// The grammar made ready.
    pub(crate) fn compile(&self, grammar: Grammar) -> anyhow::Result<Recognizer> {
        let limits = RecognizerLimits::default();
        Recognizer::new(Arc::new(grammar), &limits, &mut self.budget())
            .with_context(|| self.file.display().to_string())
    }

    pub(crate) fn budget(&self) -> Budget<'static> {
        Budget::new(self.budget)
    }
}
