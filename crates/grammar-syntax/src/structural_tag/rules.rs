//! Formats to rules.

use hashbrown::HashMap;

use super::error::StructuralTagError;
use super::format::{
    Caller, Delimiter, EmbeddedGrammar, Format, Language, Part, Schema, Separated, Tag, Triggered,
};
use super::members::{Result, error as error_at};
use super::options::StructuralTagOptions;
use super::tool_formats::CallMark;
use crate::free_text::without;
use crate::json_schema::quoted::quoted;
use crate::json_schema::source::{JsonId, Source};
use crate::json_schema::{self, Framing, JsonSchemaError, PropertyOrder, Warning, Whitespace};
use crate::named_tokens::{TextPart, pieces};
use crate::{
    Budget, CharClass, Grammar, GrammarBuilder, Lexing, NonterminalId, Regex, Symbol, Terminal,
    TerminalKind, TokenLimit, TokenPart, TokenPattern,
};
use crate::{gbnf, lark, regex};

/// Limit on the digits of the number of a call, and the length of its id.
const MAX_DIGITS: u32 = 9;

/// Texts and tokens that end free text and any tokens.
#[derive(Debug, Default)]
struct Stops {
    texts: Vec<String>,
    tokens: Vec<TokenPart>,
}

/// Makes rules of formats.
pub(super) struct Rules<'s, 'b, 'c> {
    json: &'s Source,
    options: &'s StructuralTagOptions,
    budget: &'b mut Budget<'c>,
    builder: GrammarBuilder,
    warnings: Vec<Warning>,
    lexing: Lexing,
    /// Schemas that were read without a warning and leave no set open: tools often have the same.
    schemas: HashMap<SchemaKey, NonterminalId>,
}

/// Key of a schema's texts, beside the options of the document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SchemaKey {
    text: String,
    framing: Framing,
    order: PropertyOrder,
    is_compact: bool,
    is_closed: bool,
}

impl<'s, 'b, 'c> Rules<'s, 'b, 'c> {
    pub(super) fn new(
        json: &'s Source,
        options: &'s StructuralTagOptions,
        budget: &'b mut Budget<'c>,
    ) -> Self {
        let (builder, warnings) = (GrammarBuilder::new(), Vec::new());
        let schemas = HashMap::new();
        Self { json, options, budget, builder, warnings, lexing: Lexing::Any, schemas }
    }

    /// The grammar of a whole text, and what its schemas say without effect.
    pub(super) fn grammar(mut self, whole: &Part) -> Result<(Grammar, Vec<Warning>)> {
        let start = self.part(whole, &Stops::default())?;
        Ok((self.builder.build(start, self.lexing), self.warnings))
    }

    /// The nonterminal of a format; `stops` are what ends free text in it.
    fn part(&mut self, part: &Part, stops: &Stops) -> Result<NonterminalId> {
        self.spend(part.at, 16)?;
        match &part.format {
            Format::Fixed(text) => {
                let symbols = self.fixed(text);
                Ok(self.rules("text", [symbols]))
            }
            Format::Schema(schema) => self.schema(part.at, schema),
            Format::Document(text) => self.document(part.at, text),
            Format::EmbeddedGrammar(written) => self.written(part.at, written),
            Format::AnyText { excludes, max_chars, max_tokens } => {
                let excluded = [&excludes[..], &stops.texts].concat();
                let text = self.free_text(&excluded, &stops.texts, *max_chars);
                if let (Symbol::Terminal(terminal), &Some(tokens)) = (text, max_tokens) {
                    self.builder.token_limit(TokenLimit { terminal, tokens });
                }
                Ok(self.rules("free text", [vec![], vec![text]]))
            }
            Format::Sequence(parts) => {
                let mut body = Vec::with_capacity(parts.len());
                for part in parts {
                    body.push(Symbol::Nonterminal(self.part(part, stops)?));
                }
                Ok(self.rules("sequence", [body]))
            }
            Format::Or(parts) => {
                let mut bodies = Vec::with_capacity(parts.len());
                for part in parts {
                    bodies.push(vec![Symbol::Nonterminal(self.part(part, stops)?)]);
                }
                Ok(self.rules("choice", bodies))
            }
            Format::Repeated { content, min, max } => {
                let one = self.part(content, stops)?;
                Ok(self.repeated(one, *min, *max))
            }
            Format::Tag(tag) => self.tagged(tag),
            Format::Triggered(triggered) => self.triggered(part.at, triggered, stops),
            Format::Separated(separated) => self.separated(separated),
            Format::Token(token) => {
                let mut token = token.clone();
                if token.negated && !stops.tokens.is_empty() {
                    token.parts = [&token.parts[..], &stops.tokens[..]].concat().into();
                }
                Ok(self.one_token(token))
            }
        }
    }

    /// A tag with its content, in which free text ends where the tag does.
    fn tagged(&mut self, tag: &Tag) -> Result<NonterminalId> {
        let mut stops = Stops::default();
        for end in &tag.ends {
            match end {
                Delimiter::Text(text) if !text.is_empty() => stops.texts.push(text.clone()),
                Delimiter::Token(token) => stops.tokens.extend(token.parts.iter().cloned()),
                Delimiter::Text(_) | Delimiter::Marked(..) => {}
            }
        }
        let content = self.part(&tag.content, &stops)?;
        let begin = self.delimiting(&tag.begin);
        let mut bodies = Vec::with_capacity(tag.ends.len());
        for end in &tag.ends {
            let mut body = begin.clone();
            body.push(Symbol::Nonterminal(content));
            body.extend(self.delimiting(end));
            bodies.push(body);
        }
        Ok(self.rules("tag", bodies))
    }

    fn delimiting(&mut self, delimiter: &Delimiter) -> Vec<Symbol> {
        match delimiter {
            Delimiter::Text(text) => self.fixed(text),
            Delimiter::Marked(before, mark, after) => {
                let (least, characters): (_, &[_]) = match mark {
                    CallMark::Number => (1, &[('0', '9')]),
                    CallMark::Id => (MAX_DIGITS, &[('0', '9'), ('A', 'Z'), ('a', 'z')]),
                };
                let one = Regex::Class(CharClass::new(characters.iter().copied()));
                let mark = one.repeat(least, Some(MAX_DIGITS));
                let mark = self.terminal("mark of a call".to_owned(), mark);
                [self.fixed(before), vec![mark], self.fixed(after)].concat()
            }
            Delimiter::Token(token) => vec![Symbol::Nonterminal(self.one_token(token.clone()))],
        }
    }

    fn triggered(
        &mut self,
        at: JsonId,
        triggered: &Triggered,
        stops: &Stops,
    ) -> Result<NonterminalId> {
        let Triggered { triggers, tags, excludes, .. } = triggered;
        let begun = |tag: &Tag| match &tag.begin {
            Delimiter::Text(begin) | Delimiter::Marked(begin, ..) => {
                triggers.iter().any(|trigger| begin.starts_with(trigger))
            }
            Delimiter::Token(_) => true,
        };
        if let Some(tag) = tags.iter().find(|tag| !begun(tag)) {
            let rule = "no trigger begins this tag: give one that its \"begin\" starts with";
            return Err(self.error(tag.at, rule));
        }
        if let Some(empty) = triggers.iter().chain(excludes).position(String::is_empty) {
            let rule = format!("trigger {empty} is the empty text, which stands everywhere");
            return Err(self.error(at, rule));
        }
        let mut made = Vec::with_capacity(tags.len());
        for tag in tags {
            made.push(vec![Symbol::Nonterminal(self.tagged(tag)?)]);
        }
        let tag = Symbol::Nonterminal(self.rules("tags", made));
        let stops = [&triggers[..], excludes, &stops.texts].concat();
        let before = self.free_text(&stops, triggers, None);
        let last = self.free_text(&stops, &[], None);
        let last = Symbol::Nonterminal(self.rules("last text", [vec![], vec![last]]));
        Ok(match (triggered.at_least_one, triggered.stop_after_first) {
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

    fn separated(&mut self, separated: &Separated) -> Result<NonterminalId> {
        let mut bodies = Vec::with_capacity(separated.tags.len());
        for tag in &separated.tags {
            bodies.push(vec![Symbol::Nonterminal(self.tagged(tag)?)]);
        }
        let tag = Symbol::Nonterminal(self.rules("tags", bodies));
        let separator = self.fixed(&separated.separator);
        let mut bodies = vec![vec![tag]];
        if !separated.at_least_one {
            bodies.push(vec![]);
        }
        if separated.stop_after_first {
            return Ok(self.rules("one tag", bodies));
        }
        let list = self.rules("tag list", [vec![tag]]);
        let more = [&[Symbol::Nonterminal(list)][..], &separator, &[tag]].concat();
        self.builder.rule(list, more);
        bodies[0] = vec![Symbol::Nonterminal(list)];
        Ok(self.rules("tags with separators", bodies))
    }

    fn repeated(&mut self, one: NonterminalId, min: u64, max: Option<u64>) -> NonterminalId {
        let (min, one) = (min as usize, Symbol::Nonterminal(one));
        let mut body = vec![one; min];
        match max {
            None => {
                let star = self.rules("any number", [vec![]]);
                self.builder.rule(star, [Symbol::Nonterminal(star), one]);
                body.push(Symbol::Nonterminal(star));
            }
            Some(max) => {
                let mut rest = None;
                for _ in min..max as usize {
                    let more = [one].into_iter().chain(rest).collect();
                    rest = Some(Symbol::Nonterminal(self.rules("at most", [vec![], more])));
                }
                body.extend(rest);
            }
        }
        self.rules("repeated", [body])
    }

    fn schema(&mut self, at: JsonId, schema: &Schema) -> Result<NonterminalId> {
        let mut options = self.options.json_schema.clone();
        options.order = schema.order.unwrap_or(options.order);
        options.closed_objects |= schema.is_closed;
        // What stands around it may be cut in ways that members of a set are not told from.
        options.max_listed = usize::MAX;
        options.max_listed_bytes = usize::MAX;
        let given = schema.resources.iter();
        let given = given.map(|(uri, at)| (uri.to_string(), self.json.text(*at).to_owned()));
        options.resources.extend(given);
        if schema.is_compact {
            options.whitespace = Whitespace::Compact;
        }
        let text = schema.text.as_deref().unwrap_or_else(|| self.json.text(at));
        let key = SchemaKey {
            text: text.to_owned(),
            framing: schema.framing,
            order: options.order,
            is_compact: schema.is_compact,
            is_closed: schema.is_closed,
        };
        let is_alone = schema.resources.is_empty();
        if let Some(&known) = self.schemas.get(&key).filter(|_| is_alone) {
            return Ok(known);
        }
        let read = json_schema::parse_within(text, &options, schema.framing, self.budget);
        let is_here = schema.text.is_none();
        let (grammar, warnings) = read.map_err(|error| {
            let refused = self.schema_error(at, is_here, &error);
            match schema.caller.as_ref().filter(|_| error.unwritable_parameter().is_some()) {
                Some(Caller { tool, format }) => {
                    let message =
                        format!("the tool {tool:?} in the format {format}: {}", refused.message);
                    StructuralTagError { message, ..refused }
                }
                None => refused,
            }
        })?;
        let is_plain = is_alone && warnings.is_empty() && grammar.slots().is_empty();
        self.warnings.extend(warnings.into_iter().map(|warning| match is_here {
            true => Warning {
                pointer: self.json.pointer(at) + &warning.pointer,
                span: self.json.span_within(at, warning.span),
                message: warning.message,
            },
            false => Warning {
                pointer: self.json.pointer(at),
                span: self.json.span(at),
                message: warning.to_string(),
            },
        }));
        let made = self.embed(at, &grammar)?;
        if is_plain {
            self.schemas.insert(key, made);
        }
        Ok(made)
    }

    /// An error of the schema at a place of this document, or of one that was not written here, as
    /// one of this document.
    fn schema_error(
        &self,
        at: JsonId,
        is_here: bool,
        error: &JsonSchemaError,
    ) -> StructuralTagError {
        let interrupted = error.interrupted();
        let pointer = self.json.pointer(at);
        match (error.document(), error.span()) {
            (None, Some(span)) if is_here => StructuralTagError {
                span: Some(self.json.span_within(at, span)),
                message: error.message_at(&pointer),
                pointer: pointer + error.pointer(),
                interrupted,
            },
            _ => StructuralTagError {
                interrupted,
                ..self.error(at, format!("in this schema: {error}"))
            },
        }
    }

    /// A structural tag that the document has in a JSON string: its places are of that text.
    fn document(&mut self, at: JsonId, text: &str) -> Result<NonterminalId> {
        let read = super::parse_with_budget(text, self.options, self.budget);
        let (grammar, warnings) = read.map_err(|error| StructuralTagError {
            interrupted: error.interrupted,
            ..error_at(self.json, at, format!("in this structural tag: {error}"))
        })?;
        let (pointer, span) = (self.json.pointer(at), self.json.span(at));
        self.warnings.extend(warnings.into_iter().map(|warning| Warning {
            pointer: pointer.clone(),
            span,
            message: format!("in this structural tag: {warning}"),
        }));
        self.embed(at, &grammar)
    }

    fn written(&mut self, at: JsonId, written: &EmbeddedGrammar) -> Result<NonterminalId> {
        let (text, budget) = (&written.text, &mut *self.budget);
        let refused = |what: &str, error: &dyn std::fmt::Display, interrupted| StructuralTagError {
            interrupted,
            ..error_at(self.json, at, format!("in this {what}: {error}"))
        };
        let grammar = match written.language {
            Language::Gbnf => {
                let read = gbnf::parse_with_budget(text, &gbnf::GbnfOptions::default(), budget);
                read.map_err(|error| refused("grammar", &error, error.interrupted))?
            }
            Language::Regex => {
                let read = regex::parse_with_budget(text, &regex::RegexOptions::default(), budget);
                read.map_err(|error| refused("pattern", &error, error.interrupted))?
            }
            Language::Lark => {
                let read = lark::parse_with_budget(text, &lark::LarkOptions::default(), budget);
                let (grammar, warnings) =
                    read.map_err(|error| refused("grammar", &error, error.interrupted()))?;
                let (pointer, span) = (self.json.pointer(at), self.json.span(at));
                self.warnings.extend(warnings.into_iter().map(|warning| Warning {
                    pointer: pointer.clone(),
                    span,
                    message: format!("in this grammar: {warning}"),
                }));
                grammar
            }
        };
        let grammar = match written.quoted {
            true => quoted(&grammar).map_err(|rule| self.error(at, rule))?,
            false => grammar,
        };
        self.embed(at, &grammar)
    }

    fn embed(&mut self, at: JsonId, grammar: &Grammar) -> Result<NonterminalId> {
        if grammar.lexing() == Lexing::Contextual {
            self.lexing = Lexing::Contextual;
        }
        self.builder.embed(grammar).map_err(|error| self.error(at, error.to_string()))
    }

    /// The symbols of a fixed text: names of tokens in it are the tokens or their characters.
    fn fixed(&mut self, text: &str) -> Vec<Symbol> {
        let mut symbols = Vec::new();
        for piece in pieces(text) {
            symbols.push(match piece {
                TextPart::Text(text) => self.literal(text),
                TextPart::Name(name) => {
                    let spelled = vec![self.literal(name)];
                    let parts = [TokenPart::Optional(name.into())].into();
                    let token = TokenPattern { parts, negated: false };
                    let token = self.builder.terminal(Terminal::tokens(token, None));
                    let either = self.rules(name, [spelled, vec![Symbol::Terminal(token)]]);
                    Symbol::Nonterminal(either)
                }
            });
        }
        symbols
    }

    fn literal(&mut self, text: &str) -> Symbol {
        self.terminal(format!("{text:?}"), Regex::literal(text))
    }

    /// Text that holds none of `stops`, also where one of `next` follows, and is not empty.
    fn free_text(&mut self, stops: &[String], next: &[String], max: Option<u64>) -> Symbol {
        let [stops, next] =
            [stops, next].map(|texts| texts.iter().map(String::as_str).collect::<Vec<_>>());
        let max = max.map(|max| u32::try_from(max).unwrap_or(u32::MAX));
        let some = Regex::Class(CharClass::any()).repeat(1, max);
        let regex = Regex::and([some, without(&stops, &next)]);
        self.terminal("free text".to_owned(), regex)
    }

    fn one_token(&mut self, tokens: TokenPattern) -> NonterminalId {
        let terminal = self.builder.terminal(Terminal::tokens(tokens, None));
        self.rules("token", [vec![Symbol::Terminal(terminal)]])
    }

    /// A terminal that competes with none, whatever the grammars within do.
    fn terminal(&mut self, name: String, regex: Regex) -> Symbol {
        let kind = TerminalKind::Free;
        let terminal = Terminal { name, regex, priority: 0, kind, span: None };
        Symbol::Terminal(self.builder.terminal(terminal))
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

    fn spend(&mut self, at: JsonId, units: u64) -> Result<()> {
        let spent = self.budget.spend(units);
        spent.map_err(|why| StructuralTagError {
            interrupted: Some(why),
            ..self.error(at, why.to_string())
        })
    }

    fn error(&self, at: JsonId, message: impl Into<String>) -> StructuralTagError {
        error_at(self.json, at, message)
    }
}
