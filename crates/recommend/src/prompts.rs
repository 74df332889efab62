//! Prompts of a model: its tokens for semantic IDs, and the template that it was trained on, where
//! there is one.

use std::path::Path;
use std::sync::Arc;

use palmette_catalog_live::CatalogView;
use palmette_core::TokenId;
use palmette_vocabulary::PromptTokenizer;

use crate::code_spelling::{self, CodeSpelling};
use crate::error::{FormatError, RecommendError};
use crate::fields::PromptFields;
use crate::prompt_format::{LevelFormat, PromptFormat};
use crate::template::{PromptAsked, PromptItem, PromptTemplate, TemplateFile};

/// Spelling of histories and items by a model: a [`PromptFormat`], and a [`PromptTemplate`] where
/// the model was trained on text.
///
/// Cheap to clone. A plain format becomes one by `into()`.
#[derive(Clone, Debug)]
pub struct Prompts {
    format: PromptFormat,
    template: Option<Arc<PromptTemplate>>,
    spelling: SpellingSource,
}

/// The source of the levels' tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpellingSource {
    /// `semantic_ids.json`.
    File,
    /// The names of the tokenizer's tokens, one spelling a level.
    Tokenizer(Vec<CodeSpelling>),
}

impl From<PromptFormat> for Prompts {
    fn from(format: PromptFormat) -> Self {
        Self { format, template: None, spelling: SpellingSource::File }
    }
}

/// Limit on the tokens of a prompt where the template gives none.
const DEFAULT_TOKENS: usize = 1024;

/// Items of a history where neither file says how many.
const DEFAULT_HISTORY_ITEMS: usize = 50;

impl Prompts {
    /// Reads a model's directory, for a catalog or for any: `prompt_template.json` where it is
    /// there, and `semantic_ids.json`, or the levels' tokens by the names of the tokens in
    /// `tokenizer.json` in its place: those of the catalog's codes, or without a catalog of all
    /// that have numbers.
    ///
    /// # Errors
    /// When a file is damaged, the tokenizer lacks a token that a code or the template needs, or
    /// neither file says how prompts are written.
    pub fn read(dir: &Path, catalog: Option<&CatalogView>) -> Result<Self, FormatError> {
        let template_path = dir.join(TemplateFile::FILE_NAME);
        let of_template = |reason| FormatError { path: template_path.clone(), reason };
        let file = match template_path.exists() {
            true => {
                let text = std::fs::read_to_string(&template_path);
                let text = text.map_err(|e| of_template(format!("cannot be read: {e}")))?;
                Some(TemplateFile::from_json(&text).map_err(of_template)?)
            }
            false => None,
        };
        Self::assemble(dir, file, catalog)
    }

    /// Reads a directory as [`read`](Self::read) does, with a template that need not lie there.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_with(
        dir: &Path,
        template: TemplateFile,
        catalog: Option<&CatalogView>,
    ) -> Result<Self, FormatError> {
        Self::assemble(dir, Some(template), catalog)
    }

    /// Limit on a prompt's tokens, such that a model's `positions` hold it and an item.
    ///
    /// # Errors
    /// When they do not hold the longest prompt that is asked for.
    pub fn max_tokens(&self, positions: usize) -> Result<usize, RecommendError> {
        let (format, max) = (&self.format, positions);
        let after = format.levels.len() + format.end_tokens.len();
        let Some(template) = &self.template else {
            let needed = format.max_prompt_tokens().saturating_add(after);
            let max_history_items = format.max_history_items;
            return match needed > max {
                true => Err(RecommendError::HistoryTooLong { max_history_items, needed, max }),
                false => Ok(format.max_prompt_tokens()),
            };
        };
        let file = template.file();
        // Where text may follow a prompt, it needs positions too.
        let shares = if file.think.is_some() || file.explain.is_some() { 2 } else { 1 };
        let most = (max.saturating_sub(after) / shares).clamp(1, DEFAULT_TOKENS);
        let prompt = file.max_prompt_tokens.unwrap_or(most);
        match prompt.saturating_add(after) > max {
            true => Err(RecommendError::NoPositions { prompt, after, max }),
            false => Ok(prompt),
        }
    }

    fn assemble(
        dir: &Path,
        file: Option<TemplateFile>,
        catalog: Option<&CatalogView>,
    ) -> Result<Self, FormatError> {
        let template_path = dir.join(TemplateFile::FILE_NAME);
        let format_path = dir.join(PromptFormat::FILE_NAME);
        let of_template = |reason| FormatError { path: template_path.clone(), reason };
        let of_format = |reason| FormatError { path: format_path.clone(), reason };
        let kept = format_path.exists().then(|| PromptFormat::read(dir)).transpose()?;
        let has_tokenizer = dir.join(PromptTokenizer::FILE_NAME).exists();
        let (Some(file), kept) = (file, kept.clone()) else {
            return match kept {
                Some(format) => Ok(format.into()),
                None if has_tokenizer => Err(of_template(format!(
                    "there is no such file, nor {}: the text of this model's prompts is not known. `palmette model inspect {} \
                     --catalog FILE --preset NAME --write` writes both for models that were trained on known prompts",
                    PromptFormat::FILE_NAME,
                    dir.display()
                ))),
                None => {
                    Err(PromptFormat::read(dir).err().unwrap_or_else(|| of_format(String::new())))
                }
            };
        };
        let tokenizer = PromptTokenizer::from_directory(dir);
        let tokenizer = tokenizer.map_err(|error| of_template(error.to_string()))?;
        let (levels, spelling) = match &kept {
            Some(format) => (format.levels.clone(), SpellingSource::File),
            None => {
                let given = file.spellings().map_err(of_template)?;
                let levels = code_spelling::levels(catalog, &tokenizer, given.as_deref());
                let (spellings, levels): (Vec<CodeSpelling>, Vec<LevelFormat>) =
                    levels.map_err(of_template)?.into_iter().unzip();
                (levels, SpellingSource::Tokenizer(spellings))
            }
        };
        let (of_file, step) = (file.max_history_items, file.history_step);
        let template = PromptTemplate::new(file, dir, tokenizer, &levels).map_err(of_template)?;
        let end_tokens: Vec<u32> = template.end_tokens().iter().map(|token| token.0).collect();
        let format = match kept {
            Some(format) => {
                if !format.end_tokens.is_empty() && format.end_tokens != end_tokens {
                    let other = &format.end_tokens;
                    return Err(of_template(format!(
                        "`end` is the tokens {end_tokens:?}, and {} has {other:?}; take it out there",
                        PromptFormat::FILE_NAME
                    )));
                }
                let max_history_items = of_file.unwrap_or(format.max_history_items);
                let history_step = step.or(format.history_step);
                PromptFormat { end_tokens, max_history_items, history_step, ..format }
            }
            None => PromptFormat {
                bos_token: None,
                pad_token: None,
                levels,
                end_tokens,
                max_history_items: of_file.unwrap_or(DEFAULT_HISTORY_ITEMS),
                history_step: step,
                witnesses: Vec::new(),
            },
        };
        format.check().map_err(of_format)?;
        Ok(Self { format, template: Some(Arc::new(template)), spelling })
    }

    /// The tokens of semantic IDs.
    pub fn format(&self) -> &PromptFormat {
        &self.format
    }

    /// The template of prompts.
    pub fn template(&self) -> Option<&Arc<PromptTemplate>> {
        self.template.as_ref()
    }

    /// The source of the levels' tokens.
    pub fn spelling(&self) -> &SpellingSource {
        &self.spelling
    }

    /// Prompts without witnesses, for catalogs of other semantic IDs than those that the model was
    /// trained on.
    #[must_use]
    pub fn without_witnesses(mut self) -> Self {
        self.format.witnesses.clear();
        self
    }

    /// Prompts with witnesses of a catalog that has the model's semantic IDs.
    #[must_use]
    pub fn with_witnesses_of(mut self, catalog: &CatalogView) -> Self {
        self.format.set_witnesses(catalog);
        self
    }

    /// Prompts whose window of a longer history moves by so many items, in place of what the
    /// model's files say.
    ///
    /// # Errors
    /// When it is 0, or more than a prompt holds.
    pub fn with_history_step(mut self, step: usize) -> Result<Self, String> {
        self.format.history_step = Some(step);
        self.format.check()?;
        Ok(self)
    }

    /// Approximate number of tokens in the prompt of a history of `items` items.
    pub(crate) fn about_tokens(&self, items: usize) -> usize {
        let codes = items.min(self.format.max_history_items) * self.format.levels.len();
        1 + codes + self.template.as_ref().map_or(0, |template| template.about_tokens(items))
    }

    /// Fields with a word each for all that the template reads: for prompts whose length counts and
    /// nothing else.
    pub fn sample_fields(&self) -> PromptFields {
        let mut fields = PromptFields::default();
        for name in self.template.iter().flat_map(|template| template.variables()) {
            match name.split_once('.') {
                None if name == "query" => fields.query = Some("something".to_owned()),
                Some(("user", field)) => {
                    let field = field.split('.').next().unwrap_or(field);
                    fields.user.insert(field.to_owned(), "something".into());
                }
                _ => {}
            }
        }
        fields
    }

    /// Refuses fields that prompts have no place for.
    ///
    /// # Errors
    /// For the first.
    pub fn check_fields(&self, fields: &PromptFields) -> Result<(), RecommendError> {
        match (&self.template, fields.names().next()) {
            (Some(template), _) => template.check_fields(fields),
            (None, Some(field)) => Err(RecommendError::UnknownField { field, known: Vec::new() }),
            (None, None) => Ok(()),
        }
    }

    /// Fields without those that no text reads, for fields that came with data; returns the names
    /// of these.
    pub fn drop_unread(&self, fields: &mut PromptFields) -> Vec<String> {
        let reads = |name: &str| self.template.as_ref().is_some_and(|of| of.reads(name));
        let mut dropped = Vec::new();
        fields.retain(|name| {
            let is_read = reads(name);
            dropped.extend((!is_read).then(|| name.to_owned()));
            is_read
        });
        dropped
    }

    /// Writes the prompt of a history, given as numbers of the view, over `prompt`, of at most
    /// `max` tokens; returns how many of the newest items it holds.
    ///
    /// # Errors
    /// When the template cannot be rendered with these fields, or the prompt is too long without
    /// any item.
    ///
    /// # Panics
    /// When the view has no such number.
    pub fn write_prompt(
        &self,
        history: &[u64],
        view: &CatalogView,
        fields: &PromptFields,
        max: usize,
        prompt: &mut Vec<TokenId>,
    ) -> Result<usize, RecommendError> {
        let item =
            |&number| PromptItem { codes: view.codes(number), number: Some(number), id: None };
        let items: Vec<PromptItem> = history.iter().map(item).collect();
        self.write(&PromptAsked { items: &items, view, fields, thinks: false }, max, prompt)
    }

    /// Writes the prompt, of at most `max` tokens; returns how many of the newest items it holds.
    pub(crate) fn write(
        &self,
        asked: &PromptAsked<'_>,
        max: usize,
        prompt: &mut Vec<TokenId>,
    ) -> Result<usize, RecommendError> {
        self.check_fields(asked.fields)?;
        let most = self.format.num_held(asked.items.len(), self.format.max_history_items);
        let items = &asked.items[asked.items.len() - most..];
        match &self.template {
            Some(template) => {
                template.write(&PromptAsked { items, ..*asked }, &self.format, max, prompt)
            }
            None if asked.thinks => Err(RecommendError::NoThink),
            None => {
                let codes: Vec<&[u32]> = items.iter().map(|item| &item.codes[..]).collect();
                self.format.write_items(&codes, prompt);
                Ok(codes.len())
            }
        }
    }
}
