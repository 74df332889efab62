//! Structural tags as XGrammar and vLLM write them, read into formats.

use std::num::NonZeroU32;

use super::format::{Delimiter, Format, Language, Part, Schema, Separated, Tag, Triggered};
use super::members::{Members, Result, meant};
use super::request::request;
use super::tool_formats::ToolFormat;
use crate::json_schema::source::{Json, JsonId};
use crate::json_schema::{
    ArgumentStyle, Framing, JsonSchemaOptions, PARAMETER_STYLES, ParameterStyle, PropertyOrder,
};
use crate::{TokenPart, TokenPattern};

/// Formats nested deeper than this are an error: each is read by recursion.
const MAX_NESTED: usize = 64;

/// A part is repeated at most so many times by count.
const MAX_REPEATED: u64 = 1_000;

const TOKEN_RULE: &str =
    "a rule is a list of a token, its name or its number, and the format that follows it";

/// Formats and the members that each has besides `type`.
const FORMATS: &[(&str, &[&str])] = &[
    ("const_string", &["value"]),
    ("json_schema", &["json_schema", "style", "any_order", "max_whitespace_cnt", "excludes"]),
    ("qwen_xml_parameter", &["json_schema"]),
    ("regex", &["pattern", "excludes"]),
    ("grammar", &["grammar"]),
    ("any_text", &["excludes", "max_tokens", "max_chars"]),
    ("sequence", &["elements"]),
    ("or", &["elements"]),
    ("optional", &["content"]),
    ("star", &["content"]),
    ("plus", &["content"]),
    ("repeat", &["content", "min", "max"]),
    ("tag", &["begin", "content", "end"]),
    ("triggered_tags", &["triggers", "tags", "at_least_one", "stop_after_first", "excludes"]),
    ("tags_with_separator", &["tags", "separator", "at_least_one", "stop_after_first"]),
    ("dispatch", &["rules", "loop", "excludes"]),
    ("token", &["token"]),
    ("exclude_token", &["exclude_tokens"]),
    ("any_tokens", &["exclude_tokens", "max_tokens"]),
    (
        "token_triggered_tags",
        &["trigger_tokens", "tags", "exclude_tokens", "at_least_one", "stop_after_first"],
    ),
    ("token_dispatch", &["rules", "loop", "exclude_tokens"]),
    ("tools", &["tool_format", "request", "reasoning", "any_order", "max_whitespace_cnt"]),
];

/// A whole document: a structural tag, the `format` of one, or a `response_format` that is one.
pub(super) fn document(members: &Members<'_>, root: JsonId) -> Result<Part> {
    let is_tag = members.text_at(root, &["type"]) == Some("structural_tag");
    let reader = Reader { members };
    match (members.get(root, "format"), members.get(root, "structures")) {
        (Some(format), _) => {
            members.only(
                root,
                "a structural tag",
                &["type", "format"],
                &["name", "description", "strict"],
            )?;
            reader.format(format, 0)
        }
        (None, Some(_)) => reader.older(root),
        (None, _) if is_tag => {
            let rule = "a structural tag has a \"format\", or \"structures\" and \"triggers\"";
            members.only(
                root,
                "a structural tag",
                &["type", "format", "structures", "triggers"],
                &[],
            )?;
            Err(members.error(root, rule))
        }
        (None, _) => reader.format(root, 0),
    }
}

struct Reader<'m, 's> {
    members: &'m Members<'s>,
}

impl Reader<'_, '_> {
    /// `{"structures": [{"begin", "schema", "end"}], "triggers": […]}`
    fn older(&self, root: JsonId) -> Result<Part> {
        let members = self.members;
        members.only(root, "a structural tag", &["type", "structures", "triggers"], &[])?;
        let mut tags = Vec::new();
        for at in members.list(root, "structures")? {
            members.only(at, "a structure", &["begin", "schema", "end"], &[])?;
            let content = Part::schema(members.needed(at, "schema")?);
            tags.push(Tag::new(at, members.text(at, "begin")?, content, members.text(at, "end")?));
        }
        let triggered = Triggered {
            triggers: members.texts(root, "triggers")?,
            tags,
            excludes: Vec::new(),
            at_least_one: false,
            stop_after_first: false,
        };
        Ok(Part::new(root, Format::Triggered(triggered)))
    }

    /// The format at a place that has so many around it.
    fn format(&self, at: JsonId, depth: usize) -> Result<Part> {
        let members = self.members;
        if depth >= MAX_NESTED {
            let rule = format!("formats are nested more than {MAX_NESTED} deep");
            return Err(members.error(at, rule));
        }
        let kind = match members.optional_text(at, "type")? {
            Some(kind) => kind,
            // Tags are often written without.
            None if members.get(at, "begin").is_some() => "tag",
            None => {
                let rule = "a format has a \"type\", such as \"json_schema\" or \"tag\"";
                return Err(members.error(at, rule));
            }
        };
        let Some((_, known)) = FORMATS.iter().find(|(name, _)| *name == kind) else {
            return Err(self.unknown(at, kind));
        };
        let known: Vec<&str> = std::iter::once("type").chain(known.iter().copied()).collect();
        members.only(at, &format!("the format {kind:?}"), &known, &[])?;
        let depth = depth + 1;
        let content = || Ok(Box::new(self.format(members.needed(at, "content")?, depth)?));
        let repeated = |min, max| Ok(Format::Repeated { content: content()?, min, max });
        let format = match kind {
            "const_string" => Format::Fixed(members.text(at, "value")?.to_owned()),
            "json_schema" => return self.schema(at),
            "qwen_xml_parameter" => {
                let style = ArgumentStyle::Parameters(ParameterStyle::known("qwen_xml"));
                return self.schema_in_style(at, style);
            }
            "regex" => {
                self.no_texts(at, "excludes")?;
                return self.written(at, "pattern", Language::Regex);
            }
            "grammar" => return self.written(at, "grammar", Language::Gbnf),
            "any_text" => {
                let excludes = members.optional_texts(at, "excludes")?;
                let max_chars = members.optional_count(at, "max_chars")?;
                match members.optional_count(at, "max_tokens")? {
                    // No token or no character, no text.
                    max if max == Some(0) || max_chars == Some(0) => Format::Fixed(String::new()),
                    max => {
                        let max = max.map(|max| u32::try_from(max).unwrap_or(u32::MAX));
                        let max_tokens = max.and_then(NonZeroU32::new);
                        Format::AnyText { excludes, max_chars, max_tokens }
                    }
                }
            }
            "sequence" => Format::Sequence(self.formats(at, depth)?),
            "or" => Format::Or(self.formats(at, depth)?),
            "optional" => repeated(0, Some(1))?,
            "star" => repeated(0, None)?,
            "plus" => repeated(1, None)?,
            "repeat" => self.repeat(at, depth)?,
            "tag" => Format::Tag(Box::new(self.tag(at, depth)?)),
            "triggered_tags" => Format::Triggered(Triggered {
                triggers: members.texts(at, "triggers")?,
                tags: self.tags(at, depth)?,
                excludes: members.optional_texts(at, "excludes")?,
                at_least_one: members.flag(at, "at_least_one")?,
                stop_after_first: members.flag(at, "stop_after_first")?,
            }),
            "tags_with_separator" => Format::Separated(Separated {
                tags: self.tags(at, depth)?,
                separator: members.text(at, "separator")?.to_owned(),
                at_least_one: members.flag(at, "at_least_one")?,
                stop_after_first: members.flag(at, "stop_after_first")?,
            }),
            "dispatch" => Format::Triggered(self.dispatch(at, depth)?),
            "token" => {
                let parts = [self.token(members.needed(at, "token")?)?].into();
                Format::Token(TokenPattern { parts, negated: false })
            }
            "token_triggered_tags" => self.token_triggered(at, depth)?,
            "token_dispatch" => self.token_dispatch(at, depth)?,
            "tools" => return self.tools(at),
            _ => self.tokens_but(at, kind == "any_tokens")?,
        };
        Ok(Part::new(at, format))
    }

    fn unknown(&self, at: JsonId, kind: &str) -> super::error::StructuralTagError {
        let names: Vec<&str> = FORMATS.iter().map(|(name, _)| *name).collect();
        let hint =
            meant(kind, &names).map_or(String::new(), |name| format!(" (did you mean {name:?}?)"));
        let names = names.join(", ");
        self.members.error(at, format!("the format {kind:?} is not known{hint}; there are {names}"))
    }

    fn formats(&self, at: JsonId, depth: usize) -> Result<Vec<Part>> {
        let elements = self.members.list(at, "elements")?;
        elements.into_iter().map(|element| self.format(element, depth)).collect()
    }

    fn schema(&self, at: JsonId) -> Result<Part> {
        let members = self.members;
        self.no_texts(at, "excludes")?;
        let style = match members.optional_text(at, "style")? {
            None | Some("json") => ArgumentStyle::Json,
            Some(name) => {
                ArgumentStyle::Parameters(ParameterStyle::named(name).ok_or_else(|| {
                    let names = PARAMETER_STYLES.iter().map(|style| style.name).collect::<Vec<_>>();
                    let names = names.join(", ");
                    let rule = format!(
                        "the style {name:?} of arguments is not known; there are json, {names}"
                    );
                    members.error(at, rule)
                })?)
            }
        };
        self.schema_in_style(at, style)
    }

    fn schema_in_style(&self, at: JsonId, style: ArgumentStyle) -> Result<Part> {
        let schema = self.layout(at)?;
        let framing = Framing { objects: style != ArgumentStyle::Json, style, ..schema.framing };
        let at = self.members.needed(at, "json_schema")?;
        Ok(Part::new(at, Format::Schema(Schema { framing, ..schema })))
    }

    /// The order of members and the blanks that a format asks for, of any schema.
    fn layout(&self, at: JsonId) -> Result<Schema> {
        let order = self.members.optional_flag(at, "any_order")?.map(|any| match any {
            true => JsonSchemaOptions::default().order,
            false => PropertyOrder::Schema,
        });
        let max_blanks = self.members.optional_count(at, "max_whitespace_cnt")?;
        let max_blanks = max_blanks.map(|max| u32::try_from(max).unwrap_or(u32::MAX));
        let framing = Framing { max_blanks, ..Framing::default() };
        Ok(Schema { framing, order, ..Schema::default() })
    }

    /// `{"tool_format": "hermes", "request": {"tools": […], …}}`: an answer to a request with tools
    /// in the format of a family. `reasoning` is `"begun"` where the prompt has begun it, or
    /// `"over"`.
    fn tools(&self, at: JsonId) -> Result<Part> {
        let members = self.members;
        let name = members.text(at, "tool_format")?;
        let known =
            ToolFormat::of_name(name).map_err(|error| members.error(at, error.to_string()))?;
        let reasoning = match (members.optional_text(at, "reasoning")?, known.reasoning) {
            (None, reasoning) => reasoning,
            (Some("over"), _) => None,
            (Some("begun"), reasoning) => reasoning.map(|(_, end)| ("", end)),
            (Some(word), _) => {
                let rule = format!("reasoning is \"begun\" or \"over\", not {word:?}");
                return Err(members.error(members.needed(at, "reasoning")?, rule));
            }
        };
        let format = ToolFormat { reasoning, ..*known };
        request(members, members.needed(at, "request")?, &format, &self.layout(at)?)
    }

    fn written(&self, at: JsonId, name: &str, language: Language) -> Result<Part> {
        let text = self.members.text(at, name)?;
        Ok(Part::written(self.members.needed(at, name)?, language, text))
    }

    /// A list that may be there if it is empty.
    fn no_texts(&self, at: JsonId, name: &str) -> Result<()> {
        match self.members.optional_texts(at, name)?.is_empty() {
            true => Ok(()),
            false => {
                let rule = format!(
                    "{name:?} is not known in this format; it is in any_text, triggered_tags and dispatch"
                );
                Err(self.members.error(self.members.needed(at, name)?, rule))
            }
        }
    }

    fn repeat(&self, at: JsonId, depth: usize) -> Result<Format> {
        let members = self.members;
        let min = members.count(at, "min")?;
        let max = match members.json.text(members.needed(at, "max")?) {
            "-1" => None,
            _ => Some(members.count(at, "max")?),
        };
        if max.unwrap_or(min) > MAX_REPEATED || max.is_some_and(|max| max < min) {
            let rule = format!(
                "a part is repeated from \"min\" to \"max\" times, {MAX_REPEATED} at most, or -1 for any number"
            );
            return Err(members.error(at, rule));
        }
        let content = self.format(members.needed(at, "content")?, depth)?;
        Ok(Format::Repeated { content: Box::new(content), min, max })
    }

    fn tags(&self, at: JsonId, depth: usize) -> Result<Vec<Tag>> {
        let one = |tag| {
            self.members.only(tag, "a tag", &["type", "begin", "content", "end"], &[])?;
            match self.members.optional_text(tag, "type")? {
                None | Some("tag") => self.tag(tag, depth),
                Some(kind) => Err(self
                    .members
                    .error(tag, format!("a tag is to stand here, and this is {kind:?}"))),
            }
        };
        self.members.list(at, "tags")?.into_iter().map(one).collect()
    }

    fn tag(&self, at: JsonId, depth: usize) -> Result<Tag> {
        let members = self.members;
        let begin = self.delimiter(members.needed(at, "begin")?)?;
        let end = members.needed(at, "end")?;
        let ends = match members.json.json(end) {
            Json::Array(ends) if !ends.is_empty() => ends.clone(),
            _ => vec![end],
        };
        let ends = ends.into_iter().map(|end| self.delimiter(end)).collect::<Result<_>>()?;
        let content = self.format(members.needed(at, "content")?, depth)?;
        Ok(Tag { at, begin, content, ends })
    }

    /// A text, or `{"type": "token", "token": …}`.
    fn delimiter(&self, at: JsonId) -> Result<Delimiter> {
        match self.members.json.json(at) {
            Json::String(text) => Ok(Delimiter::Text(text.to_string())),
            Json::Object(_) if self.members.get(at, "token").is_some() => {
                self.members.only(at, "a token", &["type", "token"], &[])?;
                let parts = [self.token(self.members.needed(at, "token")?)?].into();
                Ok(Delimiter::Token(TokenPattern { parts, negated: false }))
            }
            _ => {
                let rule = "a text, or a token: {\"type\": \"token\", \"token\": \"<name>\"}";
                Err(self.members.error(at, rule))
            }
        }
    }

    /// `{"rules": [[pattern, format], …], "loop": true}`: a pattern is a tag that nothing ends.
    fn dispatch(&self, at: JsonId, depth: usize) -> Result<Triggered> {
        let members = self.members;
        let (mut triggers, mut tags) = (Vec::new(), Vec::new());
        for rule in members.list(at, "rules")? {
            let (pattern, content) = match members.json.json(rule) {
                Json::Array(pair) if pair.len() == 2 => (members.json.string(pair[0]), pair[1]),
                _ => (None, rule),
            };
            let pattern = pattern.ok_or_else(|| {
                members.error(rule, "a rule is a list of a text and the format that follows it")
            })?;
            triggers.push(pattern.to_string());
            tags.push(Tag::new(rule, pattern, self.format(content, depth)?, ""));
        }
        Ok(Triggered {
            triggers,
            tags,
            excludes: members.optional_texts(at, "excludes")?,
            at_least_one: false,
            stop_after_first: members.optional_flag(at, "loop")? == Some(false),
        })
    }

    /// Tags that tokens begin, among other tokens.
    fn token_triggered(&self, at: JsonId, depth: usize) -> Result<Format> {
        let members = self.members;
        let triggers = self.tokens(members.list(at, "trigger_tokens")?)?;
        let tags = self.tags(at, depth)?;
        let begun = |tag: &Tag| match &tag.begin {
            Delimiter::Token(begin) => begin.parts.iter().all(|part| triggers.contains(part)),
            Delimiter::Text(_) | Delimiter::Marked(..) => false,
        };
        if let Some(tag) = tags.iter().find(|tag| !begun(tag)) {
            let rule = "no token of \"trigger_tokens\" begins this tag: its \"begin\" is one, {\"type\": \"token\", \"token\": …}";
            return Err(members.error(tag.at, rule));
        }
        let at_least_one = members.flag(at, "at_least_one")?;
        let stop_after_first = members.flag(at, "stop_after_first")?;
        self.among_tokens(at, triggers, tags, at_least_one, stop_after_first)
    }

    /// `{"rules": [[token, format], …], "loop": true}`: a token is the beginning of a tag that
    /// nothing ends.
    fn token_dispatch(&self, at: JsonId, depth: usize) -> Result<Format> {
        let members = self.members;
        let (mut triggers, mut tags) = (Vec::new(), Vec::new());
        for rule in members.list(at, "rules")? {
            let Json::Array(pair) = members.json.json(rule) else {
                return Err(members.error(rule, TOKEN_RULE));
            };
            let &[token, content] = &pair[..] else {
                return Err(members.error(rule, TOKEN_RULE));
            };
            let token = self.token(token)?;
            let mut tag = Tag::new(rule, "", self.format(content, depth)?, "");
            let parts = [token.clone()].into();
            tag.begin = Delimiter::Token(TokenPattern { parts, negated: false });
            triggers.push(token);
            tags.push(tag);
        }
        let stop_after_first = members.optional_flag(at, "loop")? == Some(false);
        self.among_tokens(at, triggers, tags, false, stop_after_first)
    }

    /// Tags among tokens that are no triggers and are not excluded.
    fn among_tokens(
        &self,
        at: JsonId,
        triggers: Vec<TokenPart>,
        tags: Vec<Tag>,
        at_least_one: bool,
        stop_after_first: bool,
    ) -> Result<Format> {
        let mut excluded = triggers;
        excluded.extend(self.tokens(self.members.optional_list(at, "exclude_tokens")?)?);
        let other = Format::Token(TokenPattern { parts: excluded.into(), negated: true });
        let tags = tags.into_iter().map(|tag| Part::new(tag.at, Format::Tag(Box::new(tag))));
        let tag = Part::new(at, Format::Or(tags.collect()));
        let some = |part: Part, max| {
            Part::new(at, Format::Repeated { content: Box::new(part), min: 0, max })
        };
        let others = || some(Part::new(at, other.clone()), None);
        Ok(match (at_least_one, stop_after_first) {
            (true, true) => tag.format,
            (false, true) => Format::Sequence(vec![others(), some(tag, Some(1))]),
            (first, false) => {
                let one = Format::Or(vec![Part::new(at, other.clone()), tag.clone()]);
                let rest = some(Part::new(at, one), None);
                Format::Sequence(if first { vec![tag, rest] } else { vec![rest] })
            }
        })
    }

    fn tokens(&self, listed: Vec<JsonId>) -> Result<Vec<TokenPart>> {
        listed.into_iter().map(|token| self.token(token)).collect()
    }

    /// One token, or any number of them, that are not among those excluded.
    fn tokens_but(&self, at: JsonId, many: bool) -> Result<Format> {
        let members = self.members;
        let parts = self.tokens(members.optional_list(at, "exclude_tokens")?)?.into();
        let one = Format::Token(TokenPattern { parts, negated: true });
        if !many {
            return Ok(one);
        }
        let max = members.optional_count(at, "max_tokens")?;
        if max.is_some_and(|max| max > MAX_REPEATED) {
            let rule =
                format!("\"max_tokens\" is {MAX_REPEATED} at most; leave it out for any number");
            return Err(members.error(members.needed(at, "max_tokens")?, rule));
        }
        Ok(Format::Repeated { content: Box::new(Part::new(at, one)), min: 0, max })
    }

    fn token(&self, at: JsonId) -> Result<TokenPart> {
        match self.members.json.json(at) {
            Json::String(name) => Ok(TokenPart::Named(name.clone())),
            Json::Number(number) => match number.parse() {
                Ok(number) => Ok(TokenPart::Numbers(number, number)),
                Err(_) => Err(self.members.error(at, format!("{number} is no token's number"))),
            },
            _ => Err(self.members.error(at, "a token is its name or its number")),
        }
    }
}
