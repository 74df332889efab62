//! Report on a model's directory: levels and tokens, prompts, and what follows an item, for people
//! and programs.

use palmette_catalog_live::CatalogView;
use palmette_core::TokenId;
use serde::Serialize;

use crate::error::{RecommendError, TemplateFault};
use crate::fields::PromptFields;
use crate::history_item::HistoryItem;
use crate::prompts::{Prompts, SpellingSource};
use crate::template::{PromptAsked, PromptItem};

/// Report on a model's prompts, for one catalog.
#[derive(Clone, Debug, Serialize)]
pub struct Understanding {
    /// `semantic_ids.json`, or `tokenizer.json` where the levels' tokens were found by their names.
    pub levels_from: &'static str,
    /// Each level.
    pub levels: Vec<UnderstoodLevel>,
    /// The text that a model was trained on, or its absence.
    pub template: bool,
    /// Fields of requests that its texts read: `query`, `user.age`.
    pub fields: Vec<String>,
    /// Tokens after the last code of an item; they count in its score.
    pub end: Vec<UnderstoodToken>,
    /// The token that ends reasoning before the item, where the template knows of any.
    pub think_end: Option<UnderstoodToken>,
    /// The tokens that end text after an item, where the template knows of any.
    pub explain_ends: Vec<UnderstoodToken>,
    /// Limit on the items of a history.
    pub max_history_items: usize,
}

/// One level.
#[derive(Clone, Debug, Serialize)]
pub struct UnderstoodLevel {
    /// The catalog's letters.
    pub prefix: String,
    /// The name of its codes' tokens, where it was found by that.
    pub spelling: Option<String>,
    /// Size of the codebook.
    pub num_codes: u32,
    /// Codes that have a token.
    pub spelled: u32,
    /// True where the tokens are consecutive, in the order of the codes.
    pub is_run: bool,
    /// Lowest token of the level.
    pub first_token: Option<u32>,
    /// Highest token of the level.
    pub last_token: Option<u32>,
    /// Codes whose token is not the first code's plus their distance to it.
    pub moved: u32,
}

/// A token with its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnderstoodToken {
    /// Number of the token.
    pub token: u32,
    /// Name in the tokenizer, where there is one.
    pub name: Option<String>,
}

/// A prompt as it is made: its texts and its tokens.
#[derive(Clone, Debug, Serialize)]
pub struct WrittenPrompt {
    /// The texts, each cut into tokens alone; none where prompts are codes alone.
    pub texts: Vec<String>,
    /// The tokens.
    pub tokens: Vec<u32>,
    /// Items of the history that it holds.
    pub history_used: usize,
}

impl Prompts {
    /// Report on the prompts, level by level and token by token.
    pub fn understanding(&self) -> Understanding {
        let (format, template) = (self.format(), self.template());
        let named = |token: TokenId| self.named(token);
        let level = |(place, level): (usize, &crate::prompt_format::LevelFormat)| {
            let tokens: Vec<(u32, TokenId)> = level.spelled().collect();
            let spelling = match self.spelling() {
                SpellingSource::Tokenizer(all) => all.get(place).map(ToString::to_string),
                SpellingSource::File => None,
            };
            let numbers = tokens.iter().map(|&(_, TokenId(token))| token);
            let first = tokens.first().copied();
            let is_moved = |&&(code, TokenId(token)): &&(u32, TokenId)| {
                first.is_some_and(|(least, TokenId(first))| {
                    u64::from(first) + u64::from(code - least) != u64::from(token)
                })
            };
            UnderstoodLevel {
                prefix: level.prefix.clone(),
                spelling,
                num_codes: level.num_codes(),
                spelled: tokens.len() as u32,
                is_run: matches!(level.tokens, palmette_catalog::LevelSpelling::Run(_)),
                first_token: numbers.clone().min(),
                last_token: numbers.max(),
                moved: tokens.iter().filter(is_moved).count() as u32,
            }
        };
        let fields = template.into_iter().flat_map(|template| template.variables());
        let is_field = |name: &&String| *name == "query" || name.starts_with("user");
        Understanding {
            levels_from: match self.spelling() {
                SpellingSource::File => crate::PromptFormat::FILE_NAME,
                SpellingSource::Tokenizer(_) => palmette_vocabulary::PromptTokenizer::FILE_NAME,
            },
            levels: format.levels.iter().enumerate().map(level).collect(),
            template: template.is_some(),
            fields: fields.filter(is_field).cloned().collect(),
            end: format.end_tokens.iter().map(|&token| named(TokenId(token))).collect(),
            think_end: template
                .and_then(|template| template.think_end())
                .map(|(end, _)| named(end)),
            explain_ends: template
                .and_then(|template| template.explain_ends())
                .map_or_else(Vec::new, |ends| ends.iter().map(|&end| named(end)).collect()),
            max_history_items: format.max_history_items,
        }
    }

    /// A token with its name.
    pub fn named(&self, token: TokenId) -> UnderstoodToken {
        let tokenizer = self.template().map(|template| template.tokenizer());
        let name = tokenizer.and_then(|tokenizer| tokenizer.name(token)).map(str::to_owned);
        UnderstoodToken { token: token.0, name }
    }

    /// Prompt of a history, of a limited number of tokens.
    ///
    /// # Errors
    /// When the template cannot be rendered, or a field is unknown.
    pub fn prompt(
        &self,
        history: &[HistoryItem],
        view: &CatalogView,
        fields: &PromptFields,
        max_tokens: usize,
    ) -> Result<WrittenPrompt, RecommendError> {
        let item = |item: &HistoryItem| {
            let (number, id) = match item {
                HistoryItem::Number(number) => (Some(*number), None),
                HistoryItem::Codes(codes) => match view.find_codes(codes)[..] {
                    [only] => (Some(only), None),
                    _ => (None, None),
                },
                HistoryItem::Departed { id, .. } => (None, Some(id.clone())),
            };
            PromptItem { codes: item.codes(view), number, id }
        };
        let items: Vec<PromptItem> = history.iter().map(item).collect();
        let asked = PromptAsked { items: &items, view, fields, thinks: false };
        let mut tokens = Vec::new();
        let history_used = self.write(&asked, max_tokens, &mut tokens)?;
        let shown = &items[items.len() - history_used..];
        let texts = match self.template() {
            Some(template) => template.shown(shown, view, &self.format().levels, fields)?,
            None => Vec::new(),
        };
        let tokens = tokens.iter().map(|token| token.0).collect();
        Ok(WrittenPrompt { texts, tokens, history_used })
    }

    /// The names of an item's tokens with their numbers: its codes, and what follows them.
    ///
    /// # Errors
    /// When a code has no token.
    pub fn spelled_item(&self, codes: &[u32]) -> Result<Vec<UnderstoodToken>, RecommendError> {
        let mut tokens = Vec::new();
        for (place, (level, &code)) in self.format().levels.iter().zip(codes).enumerate() {
            let token = level.tokens.token(code).ok_or_else(|| {
                TemplateFault::new(format!("code {code} at level {place} has no token"))
            })?;
            tokens.push(self.named(token));
        }
        let end = self.format().end_tokens.iter().map(|&token| self.named(TokenId(token)));
        tokens.extend(end);
        Ok(tokens)
    }
}
