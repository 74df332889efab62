//! Prompts as a model was trained on them: `prompt_template.json` in the model's directory.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use palmette_catalog_live::CatalogView;
use palmette_core::TokenId;
use palmette_model_template::{
    Chat, ChatTemplate, Printed, TemplateError, TextTemplate, Variables,
};
use palmette_vocabulary::PromptTokenizer;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::code_spelling::CodeSpelling;
use crate::error::{RecommendError, TemplateFault};
use crate::fields::PromptFields;
use crate::prompt_format::{LevelFormat, PromptFormat};

/// The template of a model's prompts, as its file says it.
///
/// The texts are Jinja. `history` is the list of items, oldest first, each of which prints as its
/// semantic ID and has the fields `id`, `title`, `codes` and the item's attributes; `query` and
/// `user` are [the request's](PromptFields); `bos_token`, `eos_token` and their like are the
/// tokenizer's. Names of added tokens in a text are read as these tokens.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TemplateFile {
    /// The prompt: a text, or several that are cut into tokens each alone, as programs do that join
    /// the tokens of parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Texts>,
    /// In its place messages of a conversation, for the model's chat template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message>>,
    /// Variables of the chat template, such as `enable_thinking`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub chat_options: Map<String, Value>,
    /// A text between the prompt and the first code.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before_item: String,
    /// The text after the last code: a mark, a line's end, the token that ends the answer. Its
    /// tokens count in an item's score.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub end: String,
    /// Names of the codes' tokens, a level each, with `{}` for the number; the catalog's `<a_12>`
    /// where they are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codes: Option<Vec<String>>,
    /// True where the tokenizer puts around a prompt what it puts around a text. Without it that is
    /// so of `prompt` and not of `messages`, whose template writes all there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub special_tokens: Option<bool>,
    /// The most recent items of a history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_history_items: Option<usize>,
    /// Items by which the window of a longer history moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_step: Option<usize>,
    /// Limit on the tokens of a prompt. The oldest items of a history are left out of a longer one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_prompt_tokens: Option<usize>,
    /// Free text that the model may write before the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<ThinkFile>,
    /// Free text that the model may write after an item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explain: Option<ExplainFile>,
}

/// One text, or several.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Texts {
    /// One.
    One(String),
    /// Several, each cut into tokens alone.
    Parts(Vec<String>),
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// `system`, `user`, `assistant`, or what else the chat template knows.
    pub role: String,
    /// Text of the message, in Jinja.
    pub content: String,
}

/// Reasoning before the item.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ThinkFile {
    /// Variables of the chat template where the model thinks, beside
    /// [`chat_options`](TemplateFile::chat_options).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub chat_options: Map<String, Value>,
    /// A text at the prompt's end, where the reasoning begins.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub begin: String,
    /// Name of the token that ends it. It is put there where the model has not written it in as
    /// many tokens as it may.
    pub end: String,
    /// A text between that token and the first code.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub then: String,
}

/// Text after an item.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ExplainFile {
    /// A text between the last code and what the model writes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub begin: String,
    /// Names of the tokens that end it; the tokenizer's `eos_token` where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub end: Vec<String>,
}

/// A template made ready: its texts compiled, with the tokenizer that cuts them.
///
/// Frozen and shared. A prompt costs a rendering and a tokenizing, some ten microseconds each a
/// kilobyte.
pub struct PromptTemplate {
    file: TemplateFile,
    prompt: Prompt,
    before_item: TextTemplate,
    think: Option<Think>,
    explain: Option<Explain>,
    tokenizer: PromptTokenizer,
    /// Tokens that the tokenizer puts before a text and after it.
    around: (Vec<TokenId>, Vec<TokenId>),
    special_tokens: BTreeMap<String, String>,
    /// Variables that the texts read: `history`, `user.age`.
    variables: BTreeSet<String>,
    end_tokens: Vec<TokenId>,
}

enum Prompt {
    Texts(Vec<TextTemplate>),
    Chat { template: Box<ChatTemplate>, messages: Vec<(String, TextTemplate)> },
}

struct Think {
    begin: TextTemplate,
    end: TokenId,
    then: Vec<TokenId>,
    chat_options: Map<String, Value>,
}

struct Explain {
    begin: String,
    begin_tokens: usize,
    ends: Vec<TokenId>,
}

/// An item of a history for a prompt.
#[derive(Clone, Debug)]
pub(crate) struct PromptItem {
    pub(crate) codes: Vec<u32>,
    /// Number of the item in the view. `None` for a semantic ID, or an item that is gone.
    pub(crate) number: Option<u64>,
    pub(crate) id: Option<String>,
}

/// Question to a template: what a prompt is of.
#[derive(Clone, Copy)]
pub(crate) struct PromptAsked<'a> {
    /// The oldest first.
    pub(crate) items: &'a [PromptItem],
    pub(crate) view: &'a CatalogView,
    pub(crate) fields: &'a PromptFields,
    /// True where the model is to think before the item.
    pub(crate) thinks: bool,
}

/// Variables beside special tokens.
const KNOWN: [&str; 3] = ["history", "query", "user"];

impl TemplateFile {
    /// Name in a model's directory.
    pub const FILE_NAME: &str = "prompt_template.json";

    /// Limit on parts and messages.
    const MAX_TEXTS: usize = 64;

    /// Reads the text of a `prompt_template.json`.
    ///
    /// # Errors
    /// A sentence about what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let file: Self = serde_json::from_str(text).map_err(|e| format!("is not usable: {e}"))?;
        file.check()?;
        Ok(file)
    }

    fn check(&self) -> Result<(), String> {
        let texts = match (&self.prompt, &self.messages) {
            (Some(Texts::One(_)), None) => 1,
            (Some(Texts::Parts(parts)), None) => parts.len(),
            (None, Some(messages)) => messages.len(),
            (None, None) => return Err("has neither `prompt` nor `messages`; give one".into()),
            (Some(_), Some(_)) => return Err("has both `prompt` and `messages`; give one".into()),
        };
        if texts == 0 || texts > Self::MAX_TEXTS {
            return Err(format!("has {texts} texts; a prompt has 1 to {}", Self::MAX_TEXTS));
        }
        let has_options = !self.chat_options.is_empty()
            || self.think.as_ref().is_some_and(|think| !think.chat_options.is_empty());
        if self.messages.is_none() && has_options {
            return Err("has `chat_options`, which only `messages` read".into());
        }
        let most = PromptFormat::MAX_HISTORY_ITEMS;
        if self.max_history_items.is_some_and(|items| items == 0 || items > most) {
            return Err(format!("`max_history_items` must be from 1 to {most}"));
        }
        if self.max_prompt_tokens == Some(0) {
            return Err("`max_prompt_tokens` is 0; a prompt has at least 1".into());
        }
        self.spellings().map(|_| ())
    }

    /// The spellings of codes that it gives.
    ///
    /// # Errors
    /// For the first that is none.
    pub(crate) fn spellings(&self) -> Result<Option<Vec<CodeSpelling>>, String> {
        let all = self.codes.as_deref();
        all.map(|all| all.iter().map(|one| CodeSpelling::parse(one)).collect()).transpose()
    }

    /// The text of a `prompt_template.json`.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data can be written as JSON")
    }
}

impl fmt::Debug for PromptTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptTemplate").field("file", &self.file).finish_non_exhaustive()
    }
}

impl PromptTemplate {
    /// Makes a template ready for a model's directory, whose tokenizer spells these levels.
    ///
    /// # Errors
    /// A sentence where a text is no Jinja or reads what there is not, the tokenizer lacks a token
    /// that is named, or it does not read the codes' names as their tokens.
    pub(crate) fn new(
        file: TemplateFile,
        dir: &Path,
        tokenizer: PromptTokenizer,
        levels: &[LevelFormat],
    ) -> Result<Self, String> {
        let special_tokens =
            palmette_model_template::special_tokens(dir).map_err(|e| e.to_string())?;
        let mut variables = BTreeSet::new();
        let mut compiled = |name: &str, source: &str| {
            let template = TextTemplate::from_source(source);
            let template = template.map_err(|error| format!("`{name}`: {error}"))?;
            for variable in template.variables() {
                let root = variable.split('.').next().unwrap_or(variable);
                if !KNOWN.contains(&root) && !special_tokens.contains_key(root) {
                    let tokens: Vec<&str> = special_tokens.keys().map(String::as_str).collect();
                    return Err(format!(
                        "`{name}` reads {root:?}; there are {} and {}",
                        KNOWN.join(", "),
                        if tokens.is_empty() {
                            "no special tokens".into()
                        } else {
                            tokens.join(", ")
                        }
                    ));
                }
                variables.insert(variable.clone());
            }
            Ok(template)
        };
        let prompt = match (&file.prompt, &file.messages) {
            (Some(Texts::One(text)), _) => Prompt::Texts(vec![compiled("prompt", text)?]),
            (Some(Texts::Parts(parts)), _) => {
                let parts = parts.iter().map(|part| compiled("prompt", part));
                Prompt::Texts(parts.collect::<Result<_, _>>()?)
            }
            (None, messages) => {
                let messages = messages.iter().flatten();
                let messages = messages
                    .map(|of| Ok((of.role.clone(), compiled("messages", &of.content)?)))
                    .collect::<Result<_, String>>()?;
                let template = ChatTemplate::from_directory(dir).map_err(|e| e.to_string())?;
                Prompt::Chat { template: Box::new(template), messages }
            }
        };
        let before_item = compiled("before_item", &file.before_item)?;
        let think_begin = file.think.as_ref().map(|think| compiled("think.begin", &think.begin));
        let think_begin = think_begin.transpose()?;
        // The rest is the same for every request.
        let constant = |name: &str, source: &str| -> Result<String, String> {
            let template = TextTemplate::from_source(source);
            let template = template.map_err(|error| format!("`{name}`: {error}"))?;
            let read = template.variables().iter();
            if let Some(variable) = read.into_iter().find(|of| !special_tokens.contains_key(*of)) {
                return Err(format!(
                    "`{name}` reads {variable:?}; it may read special tokens alone"
                ));
            }
            let mut values = Variables::default();
            special_tokens.iter().for_each(|(name, token)| values.set(name.as_str(), token));
            template.render(&values).map_err(|error| format!("`{name}`: {error}"))
        };
        let token_of = |name: &str, source: &str| -> Result<TokenId, String> {
            let text = constant(name, source)?;
            tokenizer.token(&text).ok_or_else(|| {
                format!("`{name}` is {text:?}, of which the tokenizer makes no single token")
            })
        };
        let encode = |text: &str, around| tokenizer.encode(text, around).map_err(|e| e.to_string());
        let end = constant("end", &file.end)?;
        let end_tokens = tokens_after_codes(levels, &tokenizer, &end)?;
        let think = match (&file.think, think_begin) {
            (Some(of), Some(begin)) => {
                let mut chat_options = file.chat_options.clone();
                chat_options.extend(of.chat_options.clone());
                let end = token_of("think.end", &of.end)?;
                let then = encode(&constant("think.then", &of.then)?, false)?;
                Some(Think { begin, end, then, chat_options })
            }
            _ => None,
        };
        let explain = match &file.explain {
            Some(of) => {
                let names = match of.end.is_empty() {
                    true => &["{{ eos_token }}".to_owned()][..],
                    false => &of.end,
                };
                let ends = names.iter().map(|name| token_of("explain.end", name));
                let begin = constant("explain.begin", &of.begin)?;
                let begin_tokens = tokens_after_codes(levels, &tokenizer, &begin)?.len();
                Some(Explain { begin, begin_tokens, ends: ends.collect::<Result<_, _>>()? })
            }
            None => None,
        };
        let around = match file.special_tokens.unwrap_or(file.messages.is_none()) {
            true => around(&encode)?,
            false => (Vec::new(), Vec::new()),
        };
        Ok(Self {
            file,
            prompt,
            before_item,
            think,
            explain,
            tokenizer,
            around,
            special_tokens,
            variables,
            end_tokens,
        })
    }

    /// The file.
    pub fn file(&self) -> &TemplateFile {
        &self.file
    }

    /// The tokenizer that cuts its texts.
    pub fn tokenizer(&self) -> &PromptTokenizer {
        &self.tokenizer
    }

    /// The variables that its texts read, with their fields: `history`, `query`, `user.age`.
    pub fn variables(&self) -> &BTreeSet<String> {
        &self.variables
    }

    /// The tokens after the last code.
    pub fn end_tokens(&self) -> &[TokenId] {
        &self.end_tokens
    }

    /// The token that ends reasoning, and the tokens between it and the item; `None` where the
    /// template knows none.
    pub(crate) fn think_end(&self) -> Option<(TokenId, &[TokenId])> {
        self.think.as_ref().map(|think| (think.end, &think.then[..]))
    }

    /// The tokens that end an explanation; `None` where the template knows none.
    pub(crate) fn explain_ends(&self) -> Option<&[TokenId]> {
        self.explain.as_ref().map(|explain| &explain.ends[..])
    }

    /// Tokens between the last code and an explanation.
    pub(crate) fn explain_begin_tokens(&self) -> usize {
        self.explain.as_ref().map_or(0, |explain| explain.begin_tokens)
    }

    /// Approximate number of a prompt's tokens that are not codes. Four characters are taken for a
    /// token, and some tokens between `items` items.
    pub(crate) fn about_tokens(&self, items: usize) -> usize {
        let length = |texts: &Texts| match texts {
            Texts::One(text) => text.len(),
            Texts::Parts(parts) => parts.iter().map(String::len).sum(),
        };
        let prompt = self.file.prompt.as_ref().map_or(0, length);
        let messages = self.file.messages.iter().flatten();
        let messages: usize = messages.map(|message| message.content.len() + 20).sum();
        (prompt + messages + self.file.before_item.len()) / 4 + 2 * items
    }

    /// The token that ends a text, where the tokenizer has one.
    pub(crate) fn eos_token(&self) -> Option<TokenId> {
        self.tokenizer.token(self.special_tokens.get("eos_token")?)
    }

    /// True where its texts read a field, the whole that it is of, or a member of it.
    pub(crate) fn reads(&self, field: &str) -> bool {
        let is_of = |variable: &String| match variable.strip_prefix(field) {
            Some(member) => member.is_empty() || member.starts_with('.'),
            None => variable == root(field),
        };
        self.variables.iter().any(is_of)
    }

    /// Refuses fields that the template has no place for, and those that hold the name of a special
    /// token.
    ///
    /// # Errors
    /// For the first such field.
    pub fn check_fields(&self, fields: &PromptFields) -> Result<(), RecommendError> {
        for name in fields.names() {
            if !self.reads(&name) {
                let known = self.variables.iter().filter(|of| KNOWN[1..].contains(&root(of)));
                let known = known.cloned().collect();
                return Err(RecommendError::UnknownField { field: name, known });
            }
        }
        for (field, text) in fields.texts() {
            if let Some(token) = self.tokenizer.special_in(text) {
                let token = token.to_owned();
                return Err(RecommendError::TokenInField { field, token });
            }
        }
        Ok(())
    }

    /// The texts of a prompt, for whoever wants to see them.
    pub(crate) fn shown(
        &self,
        items: &[PromptItem],
        view: &CatalogView,
        levels: &[LevelFormat],
        fields: &PromptFields,
    ) -> Result<Vec<String>, RecommendError> {
        let printed = items.iter().map(|item| self.printed(item, view, levels));
        self.texts(printed.collect(), fields, false)
    }

    /// Writes the prompt's tokens for the newest items that fit into `max` tokens; returns how many
    /// these are.
    ///
    /// Cost: a rendering; where it is too long, one for each halving of what is left of the
    /// history.
    pub(crate) fn write(
        &self,
        asked: &PromptAsked<'_>,
        format: &PromptFormat,
        max: usize,
        prompt: &mut Vec<TokenId>,
    ) -> Result<usize, RecommendError> {
        let PromptAsked { items, view, fields, thinks } = *asked;
        let levels = &format.levels;
        let printed: Vec<Printed> =
            items.iter().map(|item| self.printed(item, view, levels)).collect();
        let write = |newest: usize, prompt: &mut Vec<TokenId>| {
            let shown = printed[printed.len() - newest..].to_vec();
            self.write_texts(&self.texts(shown, fields, thinks)?, prompt)
        };
        write(items.len(), prompt)?;
        if prompt.len() <= max {
            return Ok(items.len());
        }
        // The most that fit: `fits` do, `too_many` do not.
        let (mut fits, mut too_many) = (None, items.len());
        let mut next = 0;
        while fits != Some(next) {
            write(next, prompt)?;
            match prompt.len() <= max {
                true => fits = Some(next),
                false if next == 0 => {
                    return Err(RecommendError::PromptTooLong { tokens: prompt.len(), max });
                }
                false => too_many = next,
            }
            next = fits.unwrap_or(0).midpoint(too_many);
        }
        let used = format.num_held(items.len(), fits.unwrap_or(0));
        write(used, prompt)?;
        Ok(used)
    }

    fn printed(&self, item: &PromptItem, view: &CatalogView, levels: &[LevelFormat]) -> Printed {
        let mut text = String::new();
        for (level, &code) in levels.iter().zip(&item.codes) {
            let token = level.tokens.token(code);
            text += token.and_then(|token| self.tokenizer.name(token)).unwrap_or_default();
        }
        let mut fields = Map::new();
        if let Some(number) = item.number {
            let (catalog, rank) = view.place(number);
            fields = catalog.attributes(rank);
            fields.insert("id".into(), catalog.id(rank).into());
        } else if let Some(id) = &item.id {
            fields.insert("id".into(), id.as_str().into());
        }
        fields.insert("codes".into(), json!(item.codes));
        fields.insert("sid".into(), text.as_str().into());
        Printed { text, fields }
    }

    /// The texts of a prompt, each of which is cut into tokens alone.
    fn texts(
        &self,
        history: Vec<Printed>,
        fields: &PromptFields,
        thinks: bool,
    ) -> Result<Vec<String>, RecommendError> {
        let mut variables = Variables::default();
        self.special_tokens.iter().for_each(|(name, token)| variables.set(name.as_str(), token));
        variables.set_printed("history", history);
        if let Some(query) = &fields.query {
            variables.set("query", query);
        }
        variables.set("user", &fields.user);
        let failed = |error: TemplateError| self.failed(&error, fields);
        let think = self.think.as_ref().filter(|_| thinks);
        let mut texts = match &self.prompt {
            Prompt::Texts(parts) => {
                let parts = parts.iter().map(|part| part.render(&variables));
                parts.collect::<Result<Vec<_>, _>>().map_err(failed)?
            }
            Prompt::Chat { template, messages } => {
                let mut chat = Vec::with_capacity(messages.len());
                for (role, content) in messages {
                    let content = content.render(&variables).map_err(failed)?;
                    chat.push(json!({"role": role, "content": content}));
                }
                let extra = think.map_or(&self.file.chat_options, |think| &think.chat_options);
                let messages = Value::Array(chat);
                let chat = Chat { add_generation_prompt: true, ..Chat::new(&messages) };
                let chat = Chat { extra: Some(extra), ..chat };
                vec![template.render(&chat).map_err(failed)?]
            }
        };
        let last = think.map_or(&self.before_item, |think| &think.begin);
        let last = last.render(&variables).map_err(failed)?;
        if let Some(text) = texts.last_mut() {
            *text += &last;
        }
        Ok(texts)
    }

    fn write_texts(
        &self,
        texts: &[String],
        prompt: &mut Vec<TokenId>,
    ) -> Result<(), RecommendError> {
        prompt.clear();
        prompt.extend_from_slice(&self.around.0);
        for text in texts {
            let tokens = self.tokenizer.encode(text, false);
            prompt.extend(tokens.map_err(|error| TemplateFault::new(error.to_string()))?);
        }
        prompt.extend_from_slice(&self.around.1);
        Ok(())
    }

    /// The tokens of an item's codes and what comes between them and an explanation.
    pub(crate) fn explain_tokens(
        &self,
        codes: &[u32],
        levels: &[LevelFormat],
    ) -> Result<Vec<TokenId>, RecommendError> {
        let begin = self.explain.as_ref().map_or("", |explain| &explain.begin);
        let name = |(level, &code): (&LevelFormat, &u32)| {
            self.tokenizer.name(level.tokens.token(code)?).map(str::to_owned)
        };
        let names: Option<String> = levels.iter().zip(codes).map(name).collect();
        let text = names.unwrap_or_default() + begin;
        let tokens = self.tokenizer.encode(&text, false);
        Ok(tokens.map_err(|error| TemplateFault::new(error.to_string()))?)
    }

    /// Error of a failed rendering: the fields that it lacks, or else its message.
    fn failed(&self, error: &TemplateError, fields: &PromptFields) -> RecommendError {
        let has: BTreeSet<String> = fields.names().collect();
        let missing = self.variables.iter().filter(|&name| match root(name) {
            "query" => !has.contains("query"),
            "user" => name.contains('.') && !has.contains(name),
            _ => false,
        });
        let missing: Vec<String> = missing.cloned().collect();
        let reason = error.to_string();
        match missing.is_empty() {
            true => TemplateFault::new(reason).into(),
            false => RecommendError::MissingFields { missing, reason },
        }
    }
}

fn root(variable: &str) -> &str {
    variable.split('.').next().unwrap_or(variable)
}

/// The tokens of a text that follows the codes of an item. They are cut together, since a tokenizer
/// may read the beginning of a text otherwise than its middle.
fn tokens_after_codes(
    levels: &[LevelFormat],
    tokenizer: &PromptTokenizer,
    text: &str,
) -> Result<Vec<TokenId>, String> {
    let (mut names, mut tokens) = (String::new(), Vec::new());
    for (at, level) in levels.iter().enumerate() {
        let (_, token) = level.spelled().next().ok_or(format!("level {at} has no tokens"))?;
        let name = tokenizer.name(token);
        names += name.ok_or_else(|| format!("the tokenizer has no token {token} (level {at})"))?;
        tokens.push(token);
    }
    let read = tokenizer.encode(&(names.clone() + text), false).map_err(|e| e.to_string())?;
    match read.strip_prefix(&tokens[..]) {
        Some(after) => Ok(after.to_vec()),
        None => Err(format!(
            "the tokenizer does not read {names:?} as the tokens of these names, {tokens:?}, but as {:?}: they must be added tokens",
            &read[..read.len().min(16)]
        )),
    }
}

/// Tokens that a tokenizer puts before a text and after it.
fn around(
    encode: &impl Fn(&str, bool) -> Result<Vec<TokenId>, String>,
) -> Result<(Vec<TokenId>, Vec<TokenId>), String> {
    let (alone, whole) = (encode("a", false)?, encode("a", true)?);
    let at = whole.windows(alone.len().max(1)).position(|window| window == alone);
    let at = at.ok_or("the tokenizer changes a text by what it puts around it")?;
    Ok((whole[..at].to_vec(), whole[at + alone.len()..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_refused(text: &str, words: &str) {
        let reason = TemplateFile::from_json(text).unwrap_err();
        assert!(reason.contains(words), "{reason}");
    }

    #[test]
    fn files_without_sense_are_refused() {
        check_refused("{}", "neither `prompt` nor `messages`");
        check_refused(r#"{"prompt": "a", "messages": []}"#, "both");
        check_refused(r#"{"prompt": []}"#, "0 texts");
        check_refused(r#"{"prompt": "a", "promt": "b"}"#, "unknown field `promt`");
        check_refused(r#"{"prompt": "a", "chat_options": {"x": 1}}"#, "only `messages`");
        check_refused(r#"{"prompt": "a", "codes": ["<a_>"]}"#, "is no spelling");
        check_refused(r#"{"prompt": "a", "max_history_items": 0}"#, "max_history_items");
        check_refused(r#"{"prompt": "a", "max_prompt_tokens": 0}"#, "max_prompt_tokens");
    }

    #[test]
    fn written_files_read_back() {
        let text = r#"{"messages": [{"role": "user", "content": "{{ history }}"}], "end": "\n", "codes": ["<a_{}>"],
            "think": {"end": "</think>", "chat_options": {"enable_thinking": true}}, "explain": {}}"#;
        let file = TemplateFile::from_json(text).unwrap();
        assert_eq!(TemplateFile::from_json(&file.to_json()), Ok(file));
    }
}
