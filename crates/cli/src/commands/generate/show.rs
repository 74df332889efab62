//! Text on standard output as it comes.

use std::io::{ErrorKind, Write};

use anyhow::Context;
use palmette_text::Piece;
use serde_json::json;

use super::arguments::GenerateArgs;
use crate::output::print_json;

/// Output of a text, piece by piece.
pub(super) enum Show {
    /// Nowhere: a document has all at the end.
    Nothing,
    /// A JSON document each.
    Json { index: usize },
    /// To people or a file.
    Text(TextShow),
}

pub(super) struct TextShow {
    /// Control characters are not for a terminal.
    is_terminal: bool,
    /// Printed as it comes, or held until the end.
    streams: bool,
    held: String,
    /// True when the output ends in a line end.
    ends_line: bool,
    /// The reader has gone away (`palmette … | head`).
    is_gone: bool,
}

impl Show {
    pub(super) fn new(args: &GenerateArgs, is_terminal: bool, n: usize, index: usize) -> Self {
        match (args.json, args.stream) {
            (true, true) => Self::Json { index },
            (true, false) => Self::Nothing,
            (false, stream) => {
                // Several texts are told apart by a heading.
                let held = if n > 1 { format!("== {}\n", index + 1) } else { String::new() };
                let streams = stream || is_terminal;
                Self::Text(TextShow { is_terminal, streams, held, ends_line: true, is_gone: false })
            }
        }
    }

    pub(super) fn piece(&mut self, piece: &Piece) -> anyhow::Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::Json { index } => print_json(&match piece {
                Piece::Text(text) => json!({"index": index, "text": text}),
                Piece::Reasoning(text) => json!({"index": index, "reasoning": text}),
                Piece::CallBegin { index: call, name } => {
                    json!({"index": index, "call": call, "name": name})
                }
                Piece::Arguments(text) => json!({"index": index, "arguments": text}),
                Piece::CallEnd { is_whole } => json!({"index": index, "is_whole": is_whole}),
            }),
            Self::Text(show) => match piece {
                Piece::Text(text) | Piece::Reasoning(text) | Piece::Arguments(text) => {
                    show.print(text)
                }
                Piece::CallBegin { name, .. } => {
                    let line = if show.ends_line { "" } else { "\n" };
                    show.print(&format!("{line}call {name} "))
                }
                Piece::CallEnd { is_whole: true } => show.print("\n"),
                Piece::CallEnd { is_whole: false } => show.print(" (cut off)\n"),
            },
        }
    }

    /// True where nobody reads any more, and there is no sense in writing on.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Text(TextShow { is_gone: true, .. }))
    }

    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        let Self::Text(show) = self else { return Ok(()) };
        if !show.ends_line {
            show.print("\n")?;
        }
        show.streams = true;
        show.print("")
    }
}

impl TextShow {
    fn print(&mut self, text: &str) -> anyhow::Result<()> {
        if let Some(last) = text.chars().last() {
            self.ends_line = last == '\n';
        }
        self.held.push_str(text);
        if !self.streams || self.held.is_empty() {
            return Ok(());
        }
        let text = std::mem::take(&mut self.held);
        let shown = |c: char| {
            if c.is_control() && !"\n\t".contains(c) { char::REPLACEMENT_CHARACTER } else { c }
        };
        let text = if self.is_terminal { text.chars().map(shown).collect() } else { text };
        let mut out = std::io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_gone = true;
                Ok(())
            }
            result => result.context("writing the output"),
        }
    }
}
