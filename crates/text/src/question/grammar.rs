//! The grammar of an answer: the one member that names a form, or the tools that may be called.

use std::sync::atomic::AtomicBool;

use palmette_bindings::BoundGrammar;
use palmette_catalog_filter::parse_unique;
use palmette_document::{Fault, Faults, RawJson, place};
use palmette_grammar::frontends::gbnf::GbnfOptions;
use palmette_grammar::frontends::json_schema::Whitespace;
use palmette_grammar::frontends::lark::LarkOptions;
use palmette_grammar::{CacheError, GrammarSource};
use serde_json::{Map, Value};

use super::check::{Check, CheckError, FormCheck};
use super::tools::Tools;
use super::{
    ChatMembers, ChatQuestion, StructuredOutputs, TextDefaults, TextMembers, TextSettings,
};
use crate::grammar_compiler::GrammarCompiler;
use crate::model::TextModel;
use crate::sources::{self, JsonForm, regex};

/// A grammar, and the member that it is from.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedGrammar {
    /// The grammar.
    pub source: GrammarSource,
    /// The member, as a JSON pointer.
    pub pointer: String,
}

/// The compiled grammar of an answer.
#[derive(Clone, Debug)]
pub struct AnswerForm {
    /// The grammar, bound to the catalogs that it names.
    pub bound: BoundGrammar,
    /// The member that it is from, as a JSON pointer.
    pub pointer: String,
    /// Parts of the question that have no effect.
    pub warnings: Vec<String>,
}

impl ChatQuestion {
    /// The form of the answer alone, for who asks for masks: messages and sampling are not looked
    /// at. `None` where it is free.
    ///
    /// # Errors
    /// When the members about it break a rule, the grammar cannot be compiled, or that was called
    /// off.
    pub fn answer_form(
        &self,
        model: &TextModel,
        settings: &TextSettings,
        cancelled: &AtomicBool,
    ) -> Result<Option<AnswerForm>, CheckError> {
        let mut check = Check::new(model, settings, cancelled);
        let tools = check.take(self.own.callable_tools(model, settings)).flatten();
        let form = check.grammar(&self.text, tools.as_ref().map(|tools| (&self.own, tools)));
        let warnings = std::mem::take(&mut check.warnings);
        let named = |BoundForm { bound, pointer }| AnswerForm { bound, pointer, warnings };
        check.finish(form.map(named))
    }
}

impl TextMembers {
    /// The form that texts without tools have, over any vocabulary: no model is asked for. `None`
    /// where it is free.
    ///
    /// # Errors
    /// As [`ChatQuestion::answer_form`].
    pub fn form(
        &self,
        grammars: &GrammarCompiler,
        settings: &TextSettings,
        cancelled: &AtomicBool,
    ) -> Result<Option<AnswerForm>, CheckError> {
        let mut check = FormCheck::new(grammars, settings, cancelled);
        let form = check.grammar(self, None);
        let warnings = std::mem::take(&mut check.warnings);
        let named = |BoundForm { bound, pointer }| AnswerForm { bound, pointer, warnings };
        check.finish(form.map(named))
    }
}

/// A compiled grammar with its catalogs, and the member that it is from.
pub(super) struct BoundForm {
    pub(super) bound: BoundGrammar,
    pointer: String,
}

impl FormCheck<'_> {
    /// The compiled grammar of an answer, bound to its catalogs.
    pub(super) fn grammar(
        &mut self,
        text: &TextMembers,
        tools: Option<(&ChatMembers, &Tools)>,
    ) -> Option<BoundForm> {
        let defaults = &self.settings.defaults;
        let named = match tools {
            Some((chat, tools)) => text.calls(chat, tools, defaults).map(Some),
            None => text.grammar(defaults),
        };
        let given = text.catalogs.as_ref();
        let NamedGrammar { source, pointer } = match named {
            Ok(Some(named)) => named,
            Ok(None) => {
                self.no_catalogs(given);
                return None;
            }
            Err(faults) => {
                faults.into_iter().for_each(|fault| self.fault(fault));
                return None;
            }
        };
        match self.grammars.compile_open(&source, self.cancelled) {
            Ok(grammar) => {
                let name = place(&pointer);
                self.warnings.extend(grammar.notes().iter().map(|note| format!("{name}: {note}")));
                let bound = self.bound(given, &grammar.constraint, &pointer)?;
                Some(BoundForm { bound, pointer })
            }
            Err(CacheError::Cancelled) => {
                self.failure = Some(CheckError::Cancelled);
                None
            }
            Err(CacheError::Source(error)) => {
                self.fault(Fault::new(pointer, error.message_by_pointer()));
                None
            }
            Err(
                error @ (CacheError::Token(_)
                | CacheError::Compile(_)
                | CacheError::NoText
                | CacheError::Unbound { .. }),
            ) => {
                self.fault(Fault::new(pointer, error.to_string()));
                None
            }
        }
    }
}

impl TextMembers {
    /// The grammar that an answer without tools fits; `None` where it is free.
    ///
    /// # Errors
    /// When several members name one, or a member is none that can be read. Schemas and grammars
    /// themselves are read when they are compiled.
    pub fn grammar(&self, defaults: &TextDefaults) -> Result<Option<NamedGrammar>, Faults> {
        let form = self.json_form.unwrap_or_default().or(defaults.json);
        let mut faults = Faults::default();
        let mut named = self.guided(form, &mut faults);
        if let Some(format) = &self.response_format {
            let pointer = "/response_format";
            match sources::from_response_format(format, form) {
                Ok(None) => {}
                Ok(Some(source)) => named.push((pointer.to_owned(), Some(source))),
                Err(error) => {
                    let at = format!("{pointer}{}", error.pointer());
                    faults.push(Fault::new(at, error.to_string()));
                    named.push((pointer.to_owned(), None));
                }
            }
        }
        if let [_, (second, _), ..] = &named[..] {
            let names: Vec<String> = named.iter().map(|(pointer, _)| place(pointer)).collect();
            let detail = format!(
                "the answer can fit one grammar, and there are {}; leave one",
                names.join(", ")
            );
            faults.push(Fault::new(second.clone(), detail));
        }
        faults.or(named.pop().and_then(|(pointer, source)| {
            let source = sources::with_resources(source?, &defaults.resources);
            Some(NamedGrammar { source, pointer })
        }))
    }

    /// The grammar of calls, and of answers without one.
    fn calls(
        &self,
        chat: &ChatMembers,
        tools: &Tools,
        defaults: &TextDefaults,
    ) -> Result<NamedGrammar, Faults> {
        let form = self.json_form.unwrap_or_default().or(defaults.json);
        let mut faults = Faults::default();
        for (pointer, _) in self.guided(form, &mut faults) {
            let name = place(&pointer);
            let detail = format!(
                "{name} cannot stand beside tools, whose calls have a grammar of their own; use response_format for answers without a call, or tool_choice none"
            );
            faults.push(Fault::new(pointer, detail));
        }
        let mut request = Map::new();
        request.insert("tools".to_owned(), Value::Array(tools.list.clone()));
        let parallel = chat.parallel_tool_calls.map(Value::Bool);
        for (name, value) in [
            ("tool_choice", chat.tool_choice.clone()),
            ("parallel_tool_calls", parallel),
            ("lax_tools", chat.lax_tools.map(Value::Bool)),
            ("response_format", self.response_format.clone()),
        ] {
            request.extend(value.map(|value| (name.to_owned(), value)));
        }
        let source = sources::from_tools(&Value::Object(request), &tools.format, form);
        let source = source
            .map_err(|error| Fault::new(error.pointer.clone(), error.without_span().to_string()));
        match faults.take(source) {
            Some(source) => faults.or(NamedGrammar {
                source: sources::with_resources(source, &defaults.resources),
                pointer: "/tools".to_owned(),
            }),
            None => Err(faults),
        }
    }

    /// The grammars of vLLM's members, by pointer; `None` for one that is at fault.
    fn guided(&self, form: JsonForm, faults: &mut Faults) -> Vec<(String, Option<GrammarSource>)> {
        let Self { guided_json, guided_regex, guided_choice, guided_grammar, .. } = self;
        let mut named = Vec::new();
        let mut add = |pointer: &str, source| {
            named.push((pointer.to_owned(), faults.take(source)));
        };
        if let Some(schema) = guided_json {
            let schema = document("/guided_json", schema);
            add("/guided_json", schema.map(|schema| form.json_schema(schema)));
        }
        if let Some(text) = guided_regex {
            add("/guided_regex", Ok(regex(text.clone())));
        }
        if let Some(choices) = guided_choice {
            add("/guided_choice", choice("/guided_choice", choices));
        }
        if let Some(text) = guided_grammar {
            add("/guided_grammar", Ok(lark_or_gbnf(text.clone())));
        }
        if let Some(outputs) = &self.structured_outputs {
            let before = named.len();
            outputs.grammars(form, faults, &mut named);
            if named.len() == before {
                faults.push(Fault::new(
                    "/structured_outputs",
                    "it asks for nothing; give one of json, regex, choice, grammar, json_object, structural_tag",
                ));
            }
        }
        named
    }
}

impl StructuredOutputs {
    fn grammars(
        &self,
        form: JsonForm,
        faults: &mut Faults,
        named: &mut Vec<(String, Option<GrammarSource>)>,
    ) {
        let form = JsonForm {
            closed_objects: form.closed_objects || self.disable_additional_properties == Some(true),
            whitespace: match self.disable_any_whitespace {
                Some(true) => Whitespace::Compact,
                Some(false) | None => form.whitespace,
            },
            ..form
        };
        if self.whitespace_pattern.is_some() {
            faults.push(Fault::new(
                "/structured_outputs/whitespace_pattern",
                "whitespace by a pattern is not computed here; leave it out, and ask for a form of JSON by json_form: \
                 {\"whitespace\": \"bounded\"}, or flexible, compact, spaced",
            ));
        }
        if self.resources.is_some() && self.json.is_none() {
            faults.push(Fault::new(
                "/structured_outputs/resources",
                "resources are schemas that the one in json refers to, and there is no json; leave them out",
            ));
        }
        let mut add = |pointer: &str, source| {
            named.push((pointer.to_owned(), faults.take(source)));
        };
        if let Some(schema) = &self.json {
            let given = self.resources.iter().flatten();
            let resources =
                given.map(|(uri, schema)| (uri.clone(), schema.get().to_owned())).collect();
            let pointer = "/structured_outputs/json";
            let schema = document(pointer, schema);
            add(pointer, schema.map(|schema| form.json_schema_among(schema, resources)));
        }
        if let Some(text) = &self.regex {
            add("/structured_outputs/regex", Ok(regex(text.clone())));
        }
        if let Some(choices) = &self.choice {
            let pointer = "/structured_outputs/choice";
            add(pointer, choice(pointer, choices));
        }
        if let Some(text) = &self.grammar {
            add("/structured_outputs/grammar", Ok(lark_or_gbnf(text.clone())));
        }
        if self.json_object == Some(true) {
            let any = form.json_schema(r#"{"type":"object"}"#);
            add("/structured_outputs/json_object", Ok(any));
        }
        if let Some(tag) = &self.structural_tag {
            let pointer = "/structured_outputs/structural_tag";
            let tag = document(pointer, tag);
            add(pointer, tag.map(|tag| form.structural_tag(tag)));
        }
    }
}

/// A schema or tag, or one in a JSON string, as clients send both. Of two members of one name one
/// would be lost.
fn document(pointer: &str, value: &RawJson) -> Result<String, Fault> {
    let text = value.get();
    let refused = |error: serde_json::Error| Fault::new(pointer, error.to_string());
    let text = match text.starts_with('"') {
        true => serde_json::from_str(text).map_err(refused)?,
        false => text.to_owned(),
    };
    match parse_unique(&text) {
        Err(error) if error.is_data() => Err(refused(error)),
        // What is no JSON, or nests too deep, is told by whoever reads it.
        _ => Ok(text),
    }
}

/// One of several texts, as an expression.
fn choice(pointer: &str, choices: &[String]) -> Result<GrammarSource, Fault> {
    if choices.is_empty() {
        return Err(Fault::new(pointer, "there are no choices; give one text at least"));
    }
    let escaped = |text: &String| -> String {
        let is_plain = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric();
        let one = |c: char| match is_plain(c) {
            true => c.to_string(),
            // A code that no dialect reads otherwise.
            false => format!("\\x{:02X}", u32::from(c)),
        };
        text.chars().map(one).collect()
    };
    Ok(regex(choices.iter().map(escaped).collect::<Vec<_>>().join("|")))
}

/// A grammar in Lark's language, or in EBNF if it defines a rule with `::=`.
fn lark_or_gbnf(text: String) -> GrammarSource {
    let defines = |line: &str| {
        let Some((name, _)) = line.split_once("::=") else { return false };
        let name = name.trim();
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(is_name)
    };
    match text.lines().any(defines) {
        true => GrammarSource::Gbnf { text, options: GbnfOptions::default() },
        false => GrammarSource::Lark { text, options: LarkOptions::default() },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use palmette_grammar::frontends::structural_tag::ToolFormat;
    use serde_json::json;

    use super::*;

    fn members(members: Value) -> TextMembers {
        palmette_document::read(members.to_string().as_bytes()).unwrap()
    }

    fn grammar(given: Value) -> Result<Option<NamedGrammar>, Faults> {
        members(given).grammar(&TextDefaults::default())
    }

    fn text(given: Value) -> String {
        grammar(given).unwrap().map_or(String::new(), |named| named.source.text().to_owned())
    }

    #[test]
    fn every_spelling_is_its_grammar() {
        for (members, want) in [
            (json!({}), ""),
            (json!({"response_format": {"type": "text"}}), ""),
            (json!({"response_format": {"type": "json_object"}}), r#"{"type":"object"}"#),
            (
                json!({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": [1]}}}}),
                r#"{"enum":[1]}"#,
            ),
            (json!({"guided_json": {"enum": [1]}}), r#"{"enum":[1]}"#),
            (json!({"guided_json": "{\"enum\": [1]}"}), r#"{"enum": [1]}"#),
            (json!({"guided_regex": "a+"}), "a+"),
            (json!({"guided_choice": ["a b", "c|d", "é"]}), r"a\x20b|c\x7Cd|é"),
            (json!({"structured_outputs": {"json_object": true}}), r#"{"type":"object"}"#),
            (json!({"structured_outputs": {"choice": ["a"]}}), "a"),
            (
                json!({"structured_outputs": {"structural_tag": {"structures": [], "triggers": [], "x": null}}}),
                r#"{"structures":[],"triggers":[],"x":null}"#,
            ),
        ] {
            assert_eq!(text(members.clone()), want, "{members}");
        }
        let of = |text: &str| grammar(json!({"guided_grammar": text})).unwrap().unwrap().source;
        assert!(matches!(of("start: \"a\""), GrammarSource::Lark { .. }));
        assert!(matches!(of("root ::= \"a\""), GrammarSource::Gbnf { .. }));
        assert!(matches!(of("start: \"::=\""), GrammarSource::Lark { .. }));
    }

    #[test]
    fn choices_match_themselves_alone() {
        use palmette_grammar::frontends::regex::{RegexOptions, parse};
        let all: String = (1..128_u8).map(char::from).collect();
        let source = choice("", &[all, "ß\u{1F600}".to_owned()]).unwrap();
        parse(source.text(), &RegexOptions::default()).unwrap();
    }

    #[test]
    fn two_grammars_and_none_are_refused_by_name() {
        for (members, pointer) in [
            (json!({"guided_json": {}, "guided_regex": "a"}), "/guided_regex"),
            (
                json!({"guided_json": {}, "response_format": {"type": "json_object"}}),
                "/response_format",
            ),
            (
                json!({"structured_outputs": {"regex": "a", "choice": ["b"]}}),
                "/structured_outputs/choice",
            ),
            (json!({"structured_outputs": {}}), "/structured_outputs"),
            (json!({"guided_choice": []}), "/guided_choice"),
            (json!({"response_format": {"type": "jsno"}}), "/response_format/type"),
            (
                json!({"response_format": {"type": "json_object", "json_schema": {}}}),
                "/response_format/json_schema",
            ),
            (
                json!({"structured_outputs": {"regex": "a", "resources": {"u": true}}}),
                "/structured_outputs/resources",
            ),
        ] {
            let faults = grammar(members.clone()).unwrap_err();
            assert_eq!(faults.iter().next().unwrap().pointer, pointer, "{members}: {faults}");
        }
    }

    #[test]
    fn faults_of_all_forms_are_told_at_once() {
        let faults = grammar(json!({
            "guided_choice": [], "structured_outputs": {"whitespace_pattern": " ", "resources": {}},
            "response_format": {"type": "jsno"},
        }));
        let faults = faults.unwrap_err();
        let pointers: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(
            pointers,
            [
                "/guided_choice",
                "/structured_outputs/whitespace_pattern",
                "/structured_outputs/resources",
                "/structured_outputs",
                "/response_format/type",
                "/response_format",
            ]
        );
    }

    #[test]
    fn tools_have_the_grammar_of_calls() {
        let format = *ToolFormat::named("hermes").unwrap();
        let tool = json!({"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}});
        let tools = Tools { list: vec![tool], lax: false, format };
        let calls = |choice: Option<Value>, text: Value| {
            let chat = ChatMembers { tool_choice: choice, ..ChatMembers::default() };
            members(text).calls(&chat, &tools, &TextDefaults::default())
        };
        let named = calls(None, json!({})).unwrap();
        assert!(matches!(named.source, GrammarSource::Tools { .. }), "{named:?}");
        let other = json!({"type": "function", "function": {"name": "x"}});
        let faults = calls(Some(other), json!({"guided_regex": "a"})).unwrap_err();
        let pointers: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(pointers.len(), 2, "{faults}");
        assert_eq!(pointers[0], "/guided_regex");
        assert!(pointers[1].starts_with("/tool_choice"), "{faults}");
    }

    #[test]
    fn resources_of_the_surface_are_beside_those_of_the_question() {
        let resources = BTreeMap::from([
            ("urn:a".to_owned(), "true".to_owned()),
            ("urn:b".to_owned(), "false".to_owned()),
        ]);
        let defaults = TextDefaults { resources, ..TextDefaults::default() };
        let own = json!({"json": {"$ref": "urn:a"}, "resources": {"urn:a": {"const": 1}}});
        let named = members(json!({"structured_outputs": own})).grammar(&defaults).unwrap();
        let GrammarSource::JsonSchema { options, .. } = named.unwrap().source else {
            panic!("it is a schema")
        };
        assert_eq!(options.resources["urn:a"], r#"{"const":1}"#);
        assert_eq!(options.resources["urn:b"], "false");
    }
}
