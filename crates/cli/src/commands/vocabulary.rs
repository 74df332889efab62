//! Vocabularies on the command line: their options, and `palmette vocabulary`, a description of
//! one.

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use palmette_core::TokenId;
use palmette_vocabulary::{AngleTokens, LoadOptions, LoadedVocabulary, load_with};
use serde::Serialize;

use crate::output::{grouped, print, print_json, table, visible};

/// Options of every command that loads a vocabulary.
#[derive(Clone, Debug, Args)]
pub(crate) struct VocabularyOptions {
    /// A special token that the vocabulary's file lacks or has as text; again for more
    #[arg(long, value_name = "NAME=ID", value_parser = special_token, help_heading = "Vocabulary")]
    special_token: Vec<(String, TokenId)>,
    /// A token that ends the output, in place of those found; again for more
    #[arg(long, value_name = "NAME|ID", help_heading = "Vocabulary")]
    end_token: Vec<String>,
    /// Added tokens written <…> that the file marks as text: special tokens, which no text holds,
    /// or text
    #[arg(long, value_enum, value_name = "KIND", default_value_t = AngleTokensArg::Special, help_heading = "Vocabulary")]
    angle_tokens: AngleTokensArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AngleTokensArg {
    Special,
    Text,
}

/// `NAME=ID`; the name may hold `=`.
fn special_token(given: &str) -> anyhow::Result<(String, TokenId)> {
    let split = given.rsplit_once('=').filter(|(name, _)| !name.is_empty());
    let (name, id) = split.ok_or_else(|| anyhow!("it is NAME=ID, as in '<|call|>=200012'"))?;
    let id = id.parse().with_context(|| format!("{id:?} is no token id, a whole number from 0"))?;
    Ok((name.to_owned(), TokenId(id)))
}

impl VocabularyOptions {
    /// Loads a vocabulary; what was assumed about it goes to standard error, but where it is part
    /// of a JSON document.
    pub(crate) fn load(&self, name: &str, json: bool) -> anyhow::Result<LoadedVocabulary> {
        let loaded = load_with(name, &self.options())?;
        for assumed in loaded.assumptions.iter().filter(|_| !json) {
            let assumed = visible(&assumed.to_string());
            eprintln!("note: {name}: {assumed} (--angle-tokens, --special-token)");
        }
        Ok(loaded)
    }

    /// Options of a loader of vocabularies.
    pub(crate) fn options(&self) -> LoadOptions {
        LoadOptions {
            special_tokens: self.special_token.clone(),
            end_tokens: self.end_token.clone(),
            angle_tokens: match self.angle_tokens {
                AngleTokensArg::Special => AngleTokens::Special,
                AngleTokensArg::Text => AngleTokens::Text,
            },
        }
    }
}

/// Show what a vocabulary's file says: its tokens, which are special, which end the output, and
/// what was assumed
#[derive(Debug, Args)]
pub(crate) struct VocabularyArgs {
    /// The name of an encoding such as o200k_base, or a file
    #[arg(value_name = "NAME|FILE")]
    vocab: String,
    #[command(flatten)]
    options: VocabularyOptions,
    /// Largest number of special tokens to show
    #[arg(long, value_name = "N", default_value_t = 40)]
    show: usize,
    /// Print one JSON document, with all special tokens, instead of text
    #[arg(long)]
    json: bool,
}

/// A loaded vocabulary, as documents describe it.
#[derive(Debug, Serialize)]
pub(crate) struct Description {
    name: String,
    format: String,
    num_tokens: usize,
    /// Tokens with text.
    texts: usize,
    ends: Vec<u32>,
    ends_found: String,
    /// Tokens that the source does not state to be so, in a sentence each.
    assumed: Vec<String>,
}

impl Description {
    pub(crate) fn of(loaded: &LoadedVocabulary) -> Self {
        Self {
            name: loaded.name.clone(),
            format: loaded.format.to_string(),
            num_tokens: loaded.vocabulary.num_tokens(),
            texts: loaded.vocabulary.texts().count(),
            ends: loaded.vocabulary.ends().iter().map(|end| end.0).collect(),
            ends_found: loaded.ends.to_string(),
            assumed: loaded.assumptions.iter().map(ToString::to_string).collect(),
        }
    }
}

#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    description: Description,
    /// True where the source says how text is cut into tokens.
    tokenizer: bool,
    special_tokens: Vec<SpecialToken>,
}

#[derive(Debug, Serialize)]
struct SpecialToken {
    id: u32,
    name: String,
}

pub(crate) fn run(args: &VocabularyArgs) -> anyhow::Result<()> {
    let loaded = args.options.load(&args.vocab, true)?;
    let special =
        |(token, name): &(TokenId, String)| SpecialToken { id: token.0, name: name.clone() };
    let report = Report {
        description: Description::of(&loaded),
        tokenizer: loaded.tokenizer.is_some(),
        special_tokens: loaded.specials.iter().map(special).collect(),
    };
    if args.json { print_json(&report) } else { print(&text(&report, args.show)) }
}

fn text(report: &Report, show: usize) -> String {
    let Report { description: of, tokenizer, special_tokens } = report;
    let mut text = format!(
        "{}: {}, {} tokens, {} of them with text\n",
        visible(&of.name),
        of.format,
        grouped(of.num_tokens as u64),
        grouped(of.texts as u64)
    );
    let ends: Vec<_> = of.ends.iter().map(u32::to_string).collect();
    let ends = if ends.is_empty() {
        "no end token".to_owned()
    } else {
        format!("end tokens {}", ends.join(", "))
    };
    text += &format!("{ends}, {}\n", visible(&of.ends_found));
    for assumed in &of.assumed {
        text += &format!("assumed: {}\n", visible(assumed));
    }
    if !tokenizer {
        text += "how text is cut into tokens is not said\n";
    }
    let shown = special_tokens.iter().take(show);
    let rows: Vec<_> =
        shown.map(|token| vec![token.id.to_string(), visible(&token.name)]).collect();
    if !rows.is_empty() {
        text += &format!("\n{}", table(&[" token", "special"], &rows));
    }
    if special_tokens.len() > show {
        let more = grouped((special_tokens.len() - show) as u64);
        text += &format!("and {more} more; --show shows them\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_tokens_on_the_command_line() {
        let read = |given| special_token(given).ok();
        assert_eq!(read("<|call|>=7"), Some(("<|call|>".to_owned(), TokenId(7))));
        assert_eq!(read("<a=b>=7"), Some(("<a=b>".to_owned(), TokenId(7))));
        for bad in ["", "a", "=7", "a=", "a=x", "a=-1", "a=4294967296"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
