//! Options with which vocabularies are loaded, for all commands that take one.

use clap::{Args, ValueEnum};
use palmette_vocabulary::{AngleTokens, LoadOptions, LoadedVocabulary, load_with};

/// What a vocabulary's file leaves open.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct VocabularyArgs {
    /// Special token of the vocabulary that its file does not name, such as '<|tool|>=128011'; repeatable
    #[arg(long, value_name = "NAME=ID", value_parser = special_token, help_heading = "Vocabulary")]
    special_token: Vec<(String, u32)>,
    /// Token that ends the output, by name or id, in place of those found; repeatable
    #[arg(long, value_name = "NAME|ID", help_heading = "Vocabulary")]
    end_token: Vec<String>,
    /// Added tokens such as <tool_call> that a tokenizer.json marks as text
    #[arg(long, value_name = "KIND", default_value = "special", help_heading = "Vocabulary")]
    angle_tokens: Angles,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum)]
enum Angles {
    /// Special: never spelled as text
    #[default]
    Special,
    /// Text, as the file says
    Text,
}

impl VocabularyArgs {
    /// Loads a vocabulary, and says which tokens were taken as special against its file.
    pub(crate) fn load(&self, name: &str) -> anyhow::Result<LoadedVocabulary> {
        let options = LoadOptions {
            special_tokens: self.special_token.clone(),
            end_tokens: self.end_token.clone(),
            angle_tokens: match self.angle_tokens {
                Angles::Special => AngleTokens::Special,
                Angles::Text => AngleTokens::Text,
            },
        };
        let loaded = load_with(name, &options)?;
        if let Some(first) = loaded.angle_tokens.first() {
            let count = loaded.angle_tokens.len();
            eprintln!(
                "note: {name}: {count} added tokens that the file marks as text, such as {first}, are special here; \
                 --angle-tokens text takes them as text"
            );
        }
        Ok(loaded)
    }
}

/// A name and an id. The name may have equals signs.
fn special_token(text: &str) -> Result<(String, u32), String> {
    let split = text.rsplit_once('=').filter(|(name, _)| !name.is_empty());
    let token = split.and_then(|(name, id)| Some((name.to_owned(), id.parse().ok()?)));
    token.ok_or_else(|| "a special token is written NAME=ID, with a number below 2^32".to_owned())
}
