//! Formats to rules.

use super::free_text::without;
use super::{StructuralTagError, StructuralTagOptions, has_type};
use crate::json_schema::source::{Json, JsonId, Source};
use crate::json_schema::{self, Warning};
use crate::{
    Budget, Grammar, GrammarBuilder, Lexing, NonterminalId, Regex, Symbol, Terminal, TerminalKind,
    TokenPart, TokenPattern,
};
use crate::{gbnf, regex};

/// Formats nested deeper than this are an error: each is read by recursion.
const MAX_NESTED: usize = 64;

/// A part is repeated at most so many times by count.
const MAX_REPEATED: u64 = 1_000;

type Result<T> = std::result::Result<T, StructuralTagError>;

/// Makes rules of formats.
pub(super) struct Formats<'s, 'b, 'c> {
    json: &'s Source,
    options: &'s StructuralTagOptions,
    budget: &'b mut Budget<'c>,
    builder: GrammarBuilder,
    warnings: Vec<Warning>,
    nested: usize,
}

/// A tag: a text that begins it, what is in it, texts that end it.
struct Tag {
    at: JsonId,
    begin: Delimiter,
    content: JsonId,
    ends: Vec<Delimiter>,
}

/// The beginning or end of a tag.
#[derive(Clone)]
enum Delimiter {
    Text(String),
    Token(TokenPattern),
}

impl<'s, 'b, 'c> Formats<'s, 'b, 'c> {
    pub(super) fn new(
        json: &'s Source,
        options: &'s StructuralTagOptions,
        budget: &'b mut Budget<'c>,
    ) -> Self {
        let builder = GrammarBuilder::new();
        Self { json, options, budget, builder, warnings: Vec::new(), nested: 0 }
    }

    /// The grammar of a whole document.
    pub(super) fn document(mut self, root: JsonId) -> Result<(Grammar, Vec<Warning>)> {
        let start = match (has_type(self.json, root), self.member(root, "format")) {
            (_, Some(format)) => self.format(format, &[])?,
            (true, None) if self.member(root, "structures").is_some() => self.older(root)?,
            (true, None) => {
                return Err(self.error(
                    root,
                    "a structural tag has a \"format\", or \"structures\" and \"triggers\"",
                ));
            }
            (false, None) => self.format(root, &[])?,
        };
        Ok((self.builder.build(start, Lexing::Any), self.warnings))
    }

    /// `{"structures": [{"begin", "schema", "end"}], "triggers": […]}`
    fn older(&mut self, root: JsonId) -> Result<NonterminalId> {
        let mut tags = Vec::new();
        for at in self.list(root, "structures")? {
            let begin = Delimiter::Text(self.text(at, "begin")?);
            let end = Delimiter::Text(self.text(at, "end")?);
            tags.push(Tag { at, begin, content: self.needed(at, "schema")?, ends: vec![end] });
        }
        let mut made = Vec::new();
        for tag in &tags {
            let content = self.schema(tag.content)?;
            made.push(self.wrapped(tag, content));
        }
        let triggers = self.texts(root, "triggers")?;
        self.triggered(root, &triggers, &tags, &made, &[], (false, false))
    }

    /// The nonterminal of a format; `stops` are texts that end free text in it.
    fn format(&mut self, at: JsonId, stops: &[String]) -> Result<NonterminalId> {
        self.nested += 1;
        if self.nested > MAX_NESTED {
            return Err(self.error(at, format!("formats are nested more than {MAX_NESTED} deep")));
        }
        self.spend(at, 16)?;
        let made = self.format_by_type(at, stops);
        self.nested -= 1;
        made
    }

    fn format_by_type(&mut self, at: JsonId, stops: &[String]) -> Result<NonterminalId> {
        let kind = match self.member(at, "type") {
            Some(_) => self.text(at, "type")?,
            // Tags are often written without.
            None if self.member(at, "begin").is_some() => "tag".to_owned(),
            None => {
                return Err(
                    self.error(at, "a format has a \"type\", such as \"json_schema\" or \"tag\"")
                );
            }
        };
        match kind.as_str() {
            "const_string" => {
                let text = self.text(at, "value")?;
                let symbols = self.fixed(&text);
                Ok(self.rules("text", [symbols]))
            }
            "json_schema" => {
                let style = self.member(at, "style").map(|_| self.text(at, "style")).transpose()?;
                match style.as_deref() {
                    None | Some("json") => self.schema(self.needed(at, "json_schema")?),
                    Some(style) => Err(self.error(
                        at,
                        format!("the style {style:?} of arguments is not known; there is \"json\""),
                    )),
                }
            }
            "regex" => self.regex(at),
            "grammar" => self.grammar(at),
            "any_text" => {
                let mut excluded = self.optional_texts(at, "excludes")?;
                excluded.extend_from_slice(stops);
                let max = self.member(at, "max_chars").map(|_| self.count(at, "max_chars")).transpose()?;
                if self.member(at, "max_tokens").is_some_and(|id| !matches!(self.json.json(id), Json::Null)) {
                    return Err(self.error(at, "\"max_tokens\" is not known here; limit the text by \"max_chars\""));
                }
                let text = self.free_text(&excluded, stops, max);
                Ok(self.rules("free text", [vec![], vec![text]]))
            }
            "sequence" => {
                let elements = self.list(at, "elements")?;
                let mut body = Vec::with_capacity(elements.len());
                for element in elements {
                    body.push(Symbol::Nonterminal(self.format(element, stops)?));
                }
                Ok(self.rules("sequence", [body]))
            }
            "or" => {
                let mut bodies = Vec::new();
                for element in self.list(at, "elements")? {
                    bodies.push(vec![Symbol::Nonterminal(self.format(element, stops)?)]);
                }
                Ok(self.rules("choice", bodies))
            }
            "optional" => self.repeated(at, stops, 0, Some(1)),
            "star" => self.repeated(at, stops, 0, None),
            "plus" => self.repeated(at, stops, 1, None),
            "repeat" => {
                let min = self.count(at, "min")?;
                let max = match self.json.text(self.needed(at, "max")?) {
                    "-1" => None,
                    _ => Some(self.count(at, "max")?),
                };
                self.repeated(at, stops, min, max)
            }
            "tag" => {
                let tag = self.tag(at)?;
                self.tagged(&tag)
            }
            "triggered_tags" => {
                let tags = self.tags(at)?;
                let mut made = Vec::with_capacity(tags.len());
                for tag in &tags {
                    made.push(self.tagged(tag)?);
                }
                let triggers = self.texts(at, "triggers")?;
                let mut excluded = self.optional_texts(at, "excludes")?;
                excluded.extend_from_slice(stops);
                let flags = (self.flag(at, "at_least_one")?, self.flag(at, "stop_after_first")?);
                self.triggered(at, &triggers, &tags, &made, &excluded, flags)
            }
            "tags_with_separator" => self.separated(at),
            "token" => {
                let token = self.token(self.needed(at, "token")?)?;
                Ok(self.one_token(TokenPattern { parts: [token].into(), negated: false }))
            }
            "exclude_token" | "any_tokens" => {
                let mut parts = Vec::new();
                if self.member(at, "exclude_tokens").is_some() {
                    for token in self.list(at, "exclude_tokens")? {
                        parts.push(self.token(token)?);
                    }
                }
                let one = self.one_token(TokenPattern { parts: parts.into(), negated: true });
                Ok(if kind == "any_tokens" { self.star(one) } else { one })
            }
            other => Err(self.error(
                at,
                format!(
                    "the format {other:?} is not known; there are const_string, json_schema, regex, grammar, any_text, sequence, or, \
                     optional, star, plus, repeat, tag, triggered_tags, tags_with_separator, token, exclude_token and any_tokens"
                ),
            )),
        }
    }

    fn tags(&mut self, at: JsonId) -> Result<Vec<Tag>> {
        self.list(at, "tags")?.into_iter().map(|tag| self.tag(tag)).collect()
    }

    fn tag(&mut self, at: JsonId) -> Result<Tag> {
        let begin = self.delimiter(self.needed(at, "begin")?)?;
        let end = self.needed(at, "end")?;
        let ends = match self.json.json(end) {
            Json::Array(ends) if !ends.is_empty() => ends.clone(),
            _ => vec![end],
        };
        let ends = ends.into_iter().map(|end| self.delimiter(end)).collect::<Result<_>>()?;
        Ok(Tag { at, begin, content: self.needed(at, "content")?, ends })
    }

    /// A text, or `{"type": "token", "token": …}`.
    fn delimiter(&self, at: JsonId) -> Result<Delimiter> {
        match self.json.json(at) {
            Json::String(text) => Ok(Delimiter::Text(text.to_string())),
            Json::Object(object) if object.get("token").is_some() => {
                let token = self.token(self.needed(at, "token")?)?;
                Ok(Delimiter::Token(TokenPattern { parts: [token].into(), negated: false }))
            }
            _ => {
                Err(self
                    .error(at, "a text, or a token: {\"type\": \"token\", \"token\": \"<name>\"}"))
            }
        }
    }

    /// A tag with its content, in which free text ends where the tag does.
    fn tagged(&mut self, tag: &Tag) -> Result<NonterminalId> {
        let ends = tag.ends.iter().filter_map(|end| match end {
            Delimiter::Text(text) if !text.is_empty() => Some(text.clone()),
            _ => None,
        });
        let content = self.format(tag.content, &ends.collect::<Vec<_>>())?;
        Ok(self.wrapped(tag, content))
    }

    fn wrapped(&mut self, tag: &Tag, content: NonterminalId) -> NonterminalId {
        let begin = self.delimiting(&tag.begin);
        let mut bodies = Vec::with_capacity(tag.ends.len());
        for end in &tag.ends {
            let mut body = begin.clone();
            body.push(Symbol::Nonterminal(content));
            body.extend(self.delimiting(end));
            bodies.push(body);
        }
        self.rules("tag", bodies)
    }

    fn delimiting(&mut self, delimiter: &Delimiter) -> Vec<Symbol> {
        match delimiter {
            Delimiter::Text(text) => self.fixed(text),
            Delimiter::Token(token) => vec![Symbol::Nonterminal(self.one_token(token.clone()))],
        }
    }

    /// Free text in which tags stand, each where one of the triggers does.
    fn triggered(
        &mut self,
        at: JsonId,
        triggers: &[String],
        tags: &[Tag],
        made: &[NonterminalId],
        excluded: &[String],
        (at_least_one, stop_after_first): (bool, bool),
    ) -> Result<NonterminalId> {
        for tag in tags {
            let begun = match &tag.begin {
                Delimiter::Text(begin) => {
                    triggers.iter().any(|trigger| begin.starts_with(trigger.as_str()))
                }
                Delimiter::Token(_) => true,
            };
            if !begun {
                return Err(self.error(
                    tag.at,
                    "no trigger begins this tag: give one that its \"begin\" starts with",
                ));
            }
        }
        if let Some(empty) = triggers.iter().chain(excluded).position(String::is_empty) {
            return Err(self
                .error(at, format!("trigger {empty} is the empty text, which stands everywhere")));
        }
        let stops: Vec<String> = triggers.iter().chain(excluded).cloned().collect();
        let before = self.free_text(&stops, triggers, None);
        let last = self.free_text(&stops, &[], None);
        let last = Symbol::Nonterminal(self.rules("last text", [vec![], vec![last]]));
        let bodies = made.iter().map(|&tag| vec![Symbol::Nonterminal(tag)]);
        let tag = Symbol::Nonterminal(self.rules("tags", bodies.collect::<Vec<_>>()));
        Ok(match (at_least_one, stop_after_first) {
            (true, true) => self.rules("one tag", [vec![tag]]),
            (false, true) => self.rules("text and tag", [vec![last], vec![tag], vec![before, tag]]),
            (first, false) => {
                let first = if first { vec![tag] } else { vec![] };
                let list = self.rules("text and tags", [first]);
                self.builder.rule(list, [Symbol::Nonterminal(list), tag]);
                self.builder.rule(list, [Symbol::Nonterminal(list), before, tag]);
                self.rules("text, tags and text", [vec![Symbol::Nonterminal(list), last]])
            }
        })
    }

    fn separated(&mut self, at: JsonId) -> Result<NonterminalId> {
        let mut bodies = Vec::new();
        for tag in self.tags(at)? {
            bodies.push(vec![Symbol::Nonterminal(self.tagged(&tag)?)]);
        }
        let tag = Symbol::Nonterminal(self.rules("tags", bodies));
        let separator = self.text(at, "separator")?;
        let separator = self.fixed(&separator);
        let mut bodies = vec![vec![tag]];
        if !self.flag(at, "at_least_one")? {
            bodies.push(vec![]);
        }
        if self.flag(at, "stop_after_first")? {
            return Ok(self.rules("one tag", bodies));
        }
        let list = self.rules("tag list", [vec![tag]]);
        let more = [&[Symbol::Nonterminal(list)][..], &separator, &[tag]].concat();
        self.builder.rule(list, more);
        bodies[0] = vec![Symbol::Nonterminal(list)];
        Ok(self.rules("tags with separators", bodies))
    }

    fn repeated(
        &mut self,
        at: JsonId,
        stops: &[String],
        min: u64,
        max: Option<u64>,
    ) -> Result<NonterminalId> {
        let bound = max.unwrap_or(min);
        if bound > MAX_REPEATED || max.is_some_and(|max| max < min) {
            let rule = format!(
                "a part is repeated from \"min\" to \"max\" times, {MAX_REPEATED} at most, or -1 for any number"
            );
            return Err(self.error(at, rule));
        }
        let one = self.format(self.needed(at, "content")?, stops)?;
        let mut body = vec![Symbol::Nonterminal(one); min as usize];
        match max {
            None => body.push(Symbol::Nonterminal(self.star(one))),
            Some(max) => {
                let mut rest = None;
                for _ in min..max {
                    let more = [Symbol::Nonterminal(one)].into_iter().chain(rest).collect();
                    rest = Some(Symbol::Nonterminal(self.rules("at most", [vec![], more])));
                }
                body.extend(rest);
            }
        }
        Ok(self.rules("repeated", [body]))
    }

    fn star(&mut self, one: NonterminalId) -> NonterminalId {
        let star = self.rules("any number", [vec![]]);
        self.builder.rule(star, [Symbol::Nonterminal(star), Symbol::Nonterminal(one)]);
        star
    }

    fn schema(&mut self, at: JsonId) -> Result<NonterminalId> {
        let text = self.json.text(at);
        let read = json_schema::parse_with_budget(text, &self.options.json_schema, self.budget);
        let (grammar, warnings) = read.map_err(|error| StructuralTagError {
            interrupted: error.interrupted(),
            ..self.error(at, format!("in this schema: {error}"))
        })?;
        self.warnings.extend(warnings);
        self.embed(at, &grammar)
    }

    fn regex(&mut self, at: JsonId) -> Result<NonterminalId> {
        let pattern = self.text(at, "pattern")?;
        let read = regex::parse_with_budget(&pattern, &regex::RegexOptions::default(), self.budget);
        let grammar = read.map_err(|error| StructuralTagError {
            interrupted: error.interrupted,
            ..self.error(at, format!("in this pattern: {error}"))
        })?;
        self.embed(at, &grammar)
    }

    fn grammar(&mut self, at: JsonId) -> Result<NonterminalId> {
        let text = self.text(at, "grammar")?;
        let read = gbnf::parse_with_budget(&text, &gbnf::GbnfOptions::default(), self.budget);
        let grammar = read.map_err(|error| StructuralTagError {
            interrupted: error.interrupted,
            ..self.error(at, format!("in this grammar: {error}"))
        })?;
        self.embed(at, &grammar)
    }

    fn embed(&mut self, at: JsonId, grammar: &Grammar) -> Result<NonterminalId> {
        self.builder.embed(grammar).map_err(|error| self.error(at, error.to_string()))
    }

    /// The symbols of a fixed text: names of tokens in it are the tokens or their characters.
    fn fixed(&mut self, text: &str) -> Vec<Symbol> {
        let mut symbols = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (start, end) = token_name(rest).unwrap_or((rest.len(), rest.len()));
            if start > 0 {
                symbols.push(self.literal(&rest[..start]));
            }
            if start < end {
                let name = &rest[start..end];
                let spelled = vec![self.literal(name)];
                let part = TokenPart::Optional(name.into());
                let token = self.builder.terminal(Terminal::tokens(
                    TokenPattern { parts: [part].into(), negated: false },
                    None,
                ));
                let either = self.rules(name, [spelled, vec![Symbol::Terminal(token)]]);
                symbols.push(Symbol::Nonterminal(either));
            }
            rest = &rest[end..];
        }
        symbols
    }

    fn literal(&mut self, text: &str) -> Symbol {
        self.terminal(format!("{text:?}"), Regex::literal(text), TerminalKind::Literal)
    }

    /// Text that holds none of `stops`, also where one of `next` follows, and is not empty.
    fn free_text(&mut self, stops: &[String], next: &[String], max: Option<u64>) -> Symbol {
        let [stops, next] =
            [stops, next].map(|texts| texts.iter().map(String::as_str).collect::<Vec<_>>());
        let max = max.map(|max| u32::try_from(max).unwrap_or(u32::MAX));
        let some = Regex::Class(crate::CharClass::any()).repeat(1, max);
        let regex = Regex::and([some, without(&stops, &next)]);
        self.terminal("free text".to_owned(), regex, TerminalKind::Pattern)
    }

    fn one_token(&mut self, tokens: TokenPattern) -> NonterminalId {
        let terminal = self.builder.terminal(Terminal::tokens(tokens, None));
        self.rules("token", [vec![Symbol::Terminal(terminal)]])
    }

    fn terminal(&mut self, name: String, regex: Regex, kind: TerminalKind) -> Symbol {
        Symbol::Terminal(self.builder.terminal(Terminal {
            name,
            regex,
            priority: 0,
            kind,
            span: None,
        }))
    }

    fn rules(
        &mut self,
        name: &str,
        bodies: impl IntoIterator<Item = Vec<Symbol>>,
    ) -> NonterminalId {
        let head = self.builder.nonterminal(name, None);
        bodies.into_iter().for_each(|body| self.builder.rule(head, body));
        head
    }

    fn token(&self, at: JsonId) -> Result<TokenPart> {
        match self.json.json(at) {
            Json::String(name) => Ok(TokenPart::Named(name.clone())),
            Json::Number(number) => match number.parse() {
                Ok(number) => Ok(TokenPart::Numbers(number, number)),
                Err(_) => Err(self.error(at, format!("{number} is no token's number"))),
            },
            _ => Err(self.error(at, "a token is its name or its number")),
        }
    }

    fn member(&self, at: JsonId, name: &str) -> Option<JsonId> {
        self.json.object(at)?.get(name)
    }

    fn needed(&self, at: JsonId, name: &str) -> Result<JsonId> {
        self.member(at, name).ok_or_else(|| self.error(at, format!("{name:?} is missing here")))
    }

    fn text(&self, at: JsonId, name: &str) -> Result<String> {
        let id = self.needed(at, name)?;
        let text = self.json.string(id).map(ToString::to_string);
        text.ok_or_else(|| self.error(id, format!("{name:?} must be a text")))
    }

    fn texts(&self, at: JsonId, name: &str) -> Result<Vec<String>> {
        let text = |&id: &JsonId| match self.json.string(id) {
            Some(text) => Ok(text.to_string()),
            None => Err(self.error(id, format!("{name:?} must be a list of texts"))),
        };
        self.list(at, name)?.iter().map(text).collect()
    }

    fn optional_texts(&self, at: JsonId, name: &str) -> Result<Vec<String>> {
        if self.member(at, name).is_some() { self.texts(at, name) } else { Ok(Vec::new()) }
    }

    fn list(&self, at: JsonId, name: &str) -> Result<Vec<JsonId>> {
        let id = self.needed(at, name)?;
        match self.json.json(id) {
            Json::Array(items) => Ok(items.clone()),
            _ => Err(self.error(id, format!("{name:?} must be a list"))),
        }
    }

    fn count(&self, at: JsonId, name: &str) -> Result<u64> {
        let id = self.needed(at, name)?;
        self.json
            .text(id)
            .parse()
            .map_err(|_| self.error(id, format!("{name:?} must be a whole number, not below zero")))
    }

    fn flag(&self, at: JsonId, name: &str) -> Result<bool> {
        match self.member(at, name).map(|id| (id, self.json.json(id))) {
            None => Ok(false),
            Some((_, Json::Bool(flag))) => Ok(*flag),
            Some((id, _)) => Err(self.error(id, format!("{name:?} must be true or false"))),
        }
    }

    fn spend(&mut self, at: JsonId, units: u64) -> Result<()> {
        let spent = self.budget.spend(units);
        spent.map_err(|why| StructuralTagError {
            interrupted: Some(why),
            ..self.error(at, why.to_string())
        })
    }

    fn error(&self, at: JsonId, message: impl Into<String>) -> StructuralTagError {
        StructuralTagError {
            span: Some(self.json.span(at)),
            pointer: self.json.pointer(at),
            message: message.into(),
            interrupted: None,
        }
    }
}

/// The first part of a text that is written as special tokens are: `<…>` without blanks, or capitals in brackets.
fn token_name(text: &str) -> Option<(usize, usize)> {
    text.char_indices().find_map(|(start, first)| {
        let close = match first {
            '<' => '>',
            '[' => ']',
            _ => return None,
        };
        let inside = &text[start + 1..];
        let length = inside.find(close)?;
        let is_name = match first {
            '<' => !inside[..length].contains(|c: char| c.is_whitespace() || c == '<'),
            _ => inside[..length].chars().all(|c| c.is_ascii_uppercase() || c == '_' || c == '/'),
        };
        (length > 0 && is_name).then(|| (start, start + length + 2))
    })
}
