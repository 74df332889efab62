//! The template of a conversation that a model's directory carries.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use minijinja::Environment;
use minijinja::value::Value as Jinja;
use serde_json::{Map, Value};

use crate::environment::{Manner, NOW, environment};
use crate::error::TemplateError;
use crate::generation_tags;

/// A conversation to make one text of.
#[derive(Clone, Copy, Debug)]
pub struct Chat<'a> {
    /// A list of messages, objects with `role` and `content` as a rule.
    pub messages: &'a Value,
    /// The tools that the model may call, as the template wants them: a list of JSON Schemas.
    pub tools: Option<&'a Value>,
    /// Ends the text where the assistant begins to speak.
    pub add_generation_prompt: bool,
    /// Further variables, such as `enable_thinking`; they take the place of the tokenizer's of the
    /// same name.
    pub extra: Option<&'a Map<String, Value>>,
    /// The time, in seconds since 1970, for templates that print the date. Without it these fail:
    /// no clock is read here.
    pub now: Option<i64>,
}

impl<'a> Chat<'a> {
    /// Messages alone.
    pub fn new(messages: &'a Value) -> Self {
        Self { messages, tools: None, add_generation_prompt: false, extra: None, now: None }
    }
}

/// The template of conversations of one model, with its special tokens.
///
/// Frozen and shared between threads. Rendered as transformers' `apply_chat_template(…,
/// tokenize=False)` does.
pub struct ChatTemplate {
    env: Environment<'static>,
    special_tokens: BTreeMap<String, String>,
}

const DEFAULT: &str = "default";
const TOOL_USE: &str = "tool_use";

impl fmt::Debug for ChatTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatTemplate")
            .field("special_tokens", &self.special_tokens)
            .finish_non_exhaustive()
    }
}

impl ChatTemplate {
    /// Reads the template of a model's directory: `chat_template.jinja`, else `chat_template` of
    /// `tokenizer_config.json`, a text or a list of named ones, of which `default` is taken, and
    /// `tool_use` where there are tools. The special tokens are those of `tokenizer_config.json`
    /// and `special_tokens_map.json`.
    ///
    /// # Errors
    /// When there is none ([`is_missing`](TemplateError::is_missing)), a file cannot be read, or a
    /// text is no Jinja.
    pub fn from_directory(dir: &Path) -> Result<Self, TemplateError> {
        let config = read_object(&dir.join("tokenizer_config.json"))?.unwrap_or_default();
        let path = dir.join("chat_template.jinja");
        let template = match path.exists() {
            true => {
                let text = std::fs::read_to_string(&path);
                let text = text.map_err(|error| TemplateError::file(&path, error))?;
                let template = Self::from_source(&text);
                template.map_err(|error| TemplateError::file(&path, error))?
            }
            false => {
                let path = dir.join("tokenizer_config.json");
                let Some(named) = config.get("chat_template").filter(|value| !value.is_null())
                else {
                    return Err(TemplateError::missing(dir));
                };
                let sources =
                    named_sources(named).map_err(|why| TemplateError::file(&path, why))?;
                let template = Self::from_sources(&sources);
                template.map_err(|error| TemplateError::file(&path, error))?
            }
        };
        Ok(template.with_special_tokens(special_tokens(dir)?))
    }

    /// Reads one template, without special tokens.
    ///
    /// # Errors
    /// When it is no Jinja; the message has the line.
    pub fn from_source(source: &str) -> Result<Self, TemplateError> {
        Self::from_sources(&[(DEFAULT, source)])
    }

    fn from_sources(sources: &[(&str, &str)]) -> Result<Self, TemplateError> {
        let mut env = environment(Manner::Chat);
        for &(name, source) in sources {
            let added = env.add_template_owned(name.to_owned(), generation_tags::without(source));
            added.map_err(|error| TemplateError::syntax(&error))?;
        }
        Ok(Self { env, special_tokens: BTreeMap::new() })
    }

    /// Sets variables for special tokens, such as `bos_token`.
    #[must_use]
    pub fn with_special_tokens(
        mut self,
        tokens: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        self.special_tokens.extend(tokens);
        self
    }

    /// The special tokens by the name of their variable: `bos_token`, `eos_token`, ….
    pub fn special_tokens(&self) -> &BTreeMap<String, String> {
        &self.special_tokens
    }

    /// The templates' texts, one after another: what a model writes around calls of tools shows in
    /// them.
    pub fn source(&self) -> String {
        self.env.templates().map(|(_, template)| template.source().to_owned()).collect()
    }

    /// True if a word, such as a variable's name or a role, stands in the templates.
    /// One that does not is not read.
    pub fn mentions(&self, word: &str) -> bool {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let stands = |source: &str| {
            source.match_indices(word).any(|(at, _)| {
                let (before, after) = (&source[..at], &source[at + word.len()..]);
                !before.ends_with(is_part) && !after.starts_with(is_part)
            })
        };
        self.env.templates().any(|(_, template)| stands(template.source()))
    }

    /// The text of a conversation. Its special tokens stand in it as text: it is to be tokenized
    /// without others being added.
    ///
    /// # Errors
    /// When the template refuses the conversation ([`raised`](TemplateError::raised)), fails, or
    /// takes too many steps.
    pub fn render(&self, chat: &Chat<'_>) -> Result<String, TemplateError> {
        let mut variables: BTreeMap<&str, Jinja> = BTreeMap::new();
        for (name, token) in &self.special_tokens {
            variables.insert(name, Jinja::from(token.as_str()));
        }
        variables.insert("messages", Jinja::from_serialize(chat.messages));
        variables.insert("tools", Jinja::from_serialize(chat.tools));
        variables.insert("documents", Jinja::from(()));
        variables.insert("add_generation_prompt", Jinja::from(chat.add_generation_prompt));
        variables.extend(chat.now.map(|now| (NOW, Jinja::from(now))));
        for (name, value) in chat.extra.into_iter().flatten() {
            variables.insert(name, Jinja::from_serialize(value));
        }
        let has_tools = chat.tools.and_then(Value::as_array).is_some_and(|tools| !tools.is_empty());
        let special = has_tools.then(|| self.env.get_template(TOOL_USE).ok()).flatten();
        let template = match special {
            Some(template) => Ok(template),
            None => self.env.get_template(DEFAULT),
        };
        let text = template.and_then(|template| template.render(variables));
        text.map_err(|error| TemplateError::render(&error))
    }
}

/// The special tokens of a model's directory by the names of their variables, `bos_token`,
/// `eos_token`, …: the entries `…_token` of `special_tokens_map.json` and `tokenizer_config.json`,
/// of which the latter goes before.
///
/// # Errors
/// When a file is no JSON object. One that is not there has none.
pub fn special_tokens(dir: &Path) -> Result<BTreeMap<String, String>, TemplateError> {
    let mut tokens = BTreeMap::new();
    for file in ["special_tokens_map.json", "tokenizer_config.json"] {
        tokens.extend(read_object(&dir.join(file))?.iter().flat_map(named_tokens));
    }
    Ok(tokens)
}

/// The object of a JSON file; `None` where there is no file.
fn read_object(path: &Path) -> Result<Option<Map<String, Value>>, TemplateError> {
    if !path.exists() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(path).map_err(|error| TemplateError::file(path, error))?;
    let object = serde_json::from_str(&text);
    Ok(Some(object.map_err(|error| TemplateError::file(path, error))?))
}

/// The templates of `chat_template`, each with its name; one of them is the default.
fn named_sources(value: &Value) -> Result<Vec<(&str, &str)>, String> {
    let sources: Vec<(&str, &str)> = match value {
        Value::String(source) => vec![(DEFAULT, source)],
        Value::Array(list) => {
            let named: Option<_> = list.iter().map(named_source).collect();
            named.ok_or("`chat_template` is a list of which an entry lacks `name` or `template`")?
        }
        _ => return Err("`chat_template` is neither a text nor a list".to_owned()),
    };
    match sources.iter().any(|&(name, _)| name == DEFAULT) {
        true => Ok(sources),
        false => {
            let names: Vec<&str> = sources.iter().map(|&(name, _)| name).collect();
            Err(format!(
                "`chat_template` has no template named {DEFAULT:?}, only {}; put the one to use in chat_template.jinja",
                names.join(", ")
            ))
        }
    }
}

fn named_source(entry: &Value) -> Option<(&str, &str)> {
    Some((entry.get("name")?.as_str()?, entry.get("template")?.as_str()?))
}

/// The entries `…_token` of a tokenizer's configuration, a text each or an object with `content`.
fn named_tokens(config: &Map<String, Value>) -> impl Iterator<Item = (String, String)> {
    config.iter().filter(|(name, _)| name.ends_with("_token")).filter_map(|(name, value)| {
        let text = value.as_str().or_else(|| value.get("content")?.as_str())?;
        Some((name.clone(), text.to_owned()))
    })
}
