//! Formats of answers: the members of a request that ask for one, and what each may say.

use super::document::document;
use super::format::{Format, Language, Part};
use super::members::{Members, Result, meant};
use crate::json_schema::source::{Json, JsonId};

/// Places of a format in a request, in the words of [`Members::follow`].
const PLACES: &[(&[&str], &str)] = &[
    (&["response_format"], "response_format"),
    (&["text", "format"], "text.format"),
    (&["output_config", "format"], "output_config.format"),
    (&["output_format"], "output_format"),
];

/// vLLM's members.
const GUIDED: &[(&str, &str)] = &[
    ("guided_json", "json"),
    ("guided_regex", "regex"),
    ("guided_choice", "choice"),
    ("guided_grammar", "grammar"),
];

/// Members of a request that ask for a format and are read; those within a member stand by its
/// name.
pub(super) const READ: &[&str] = &[
    "response_format",
    "text",
    "output_config",
    "output_format",
    "structured_outputs",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
];

/// Members that ask other servers for a format.
const ELSEWHERE: &[&str] = &[
    "ebnf",
    "extra_body",
    "format",
    "generationConfig",
    "generation_config",
    "grammar",
    "guided_decoding",
    "json_schema",
    "regex",
    "responseJsonSchema",
    "responseSchema",
    "response_schema",
    "schema",
    "structural_tag",
];

/// Types of a format of answers, and the members that each has besides: `value` is TGI's, `grammar`
/// Fireworks' type, a `schema` beside `json_object` llama.cpp's.
const TYPES: [(&str, &[&str]); 9] = [
    ("text", &[]),
    ("json_object", &["schema", "value"]),
    ("json_schema", &["json_schema", "schema", "value", "resources"]),
    ("json", &["schema", "value"]),
    ("structural_tag", &["format", "structures", "triggers"]),
    ("regex", &["pattern", "value"]),
    ("lark", &["grammar"]),
    ("gbnf", &["grammar"]),
    ("grammar", &["grammar", "value"]),
];

/// The format that a request asks for where no tool is called; `None` for any words.
pub(super) fn answer(members: &Members<'_>, root: JsonId) -> Result<Option<Part>> {
    if is_format(members, root) {
        return format(members, root);
    }
    for name in ELSEWHERE {
        if let Some(at) = members.get(root, name) {
            let places = PLACES.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
            let rule = format!(
                "{name:?} is not read here: the format of an answer is looked for in {places}, structured_outputs and guided_json, \
                 guided_regex, guided_choice and guided_grammar"
            );
            return Err(members.error(at, rule));
        }
    }
    for (name, silent) in [("text", "verbosity"), ("output_config", "effort")] {
        if let Some(at) = members.get(root, name) {
            members.only(at, name, &["format"], &[silent])?;
        }
    }
    let mut found: Vec<(String, Part)> = Vec::new();
    for (steps, name) in PLACES {
        if let Some(at) = members.follow(root, steps) {
            found.extend(format(members, at)?.map(|part| ((*name).to_owned(), part)));
        }
    }
    for (name, kind) in GUIDED {
        if let Some(at) = members.get(root, name) {
            found.push(((*name).to_owned(), guided(members, kind, at)?));
        }
    }
    if let Some(at) = members.get(root, "structured_outputs") {
        found.extend(structured(members, at)?);
    }
    match &found[..] {
        [(one, _), (other, part), ..] => {
            let rule = format!(
                "the answer can fit one format, and there are {one} and {other}; leave one out"
            );
            Err(members.error(part.at, rule))
        }
        _ => Ok(found.pop().map(|(_, part)| part)),
    }
}

/// True when a document is a format of answers itself.
pub(super) fn is_format(members: &Members<'_>, at: JsonId) -> bool {
    let kind = members.text_at(at, &["type"]);
    kind.is_some_and(|kind| TYPES.iter().any(|(name, _)| *name == kind))
        && members.get(at, "tools").is_none()
}

/// A `response_format` and its like.
fn format(members: &Members<'_>, at: JsonId) -> Result<Option<Part>> {
    const SILENT: &[&str] = &["name", "description", "strict", "schema_name"];
    let kind = members.text_at(at, &["type"]);
    let Some((kind, known)) = TYPES.iter().find(|(name, _)| Some(*name) == kind) else {
        let names = TYPES.iter().map(|(name, _)| format!("{name:?}")).collect::<Vec<_>>();
        let hint = kind
            .and_then(|kind| meant(kind, &TYPES.map(|(name, _)| name)))
            .map_or(String::new(), |name| format!(" (did you mean {name:?}?)"));
        let given = kind.map_or(String::new(), |kind| format!(", not {kind:?}{hint}"));
        let rule = format!("the \"type\" of a response format is {}{given}", names.join(", "));
        return Err(members.error(at, rule));
    };
    if *kind == "structural_tag" {
        return document(members, at).map(Some);
    }
    let what = format!("a response format of type {kind:?}");
    members.only(at, &what, &[&["type"], *known].concat(), SILENT)?;
    let inner = members.get(at, "json_schema").filter(|_| known.contains(&"json_schema"));
    if let Some(inner) = inner {
        members.only(inner, "json_schema", &["schema", "resources"], SILENT)?;
    }
    let inside = inner.map(|inner| members.needed(inner, "schema")).transpose()?;
    let given = known.iter().filter(|name| !["json_schema", "resources"].contains(name));
    let given = given.filter_map(|name| members.get(at, name));
    let mut given = inside.into_iter().chain(given);
    let body = given.next();
    if let Some(other) = given.next() {
        return Err(members.error(other, format!("{what} has one body; leave the others out")));
    }
    let needed = || {
        let name = match *kind {
            "json_schema" => "\"json_schema\", \"schema\"".to_owned(),
            _ => format!("{:?}", known[0]),
        };
        body.ok_or_else(|| members.error(at, format!("{what} has one at {name}")))
    };
    let written = |language: fn(&str) -> Language| {
        let body = needed()?;
        let text = members.json.string(body).map(|text| &**text);
        let text = text.ok_or_else(|| members.error(body, "must be a text"))?;
        Ok(Some(Part::written(body, language(text), text)))
    };
    match *kind {
        "text" => Ok(None),
        "json_object" | "json" if body.is_none() => Ok(Some(Part::made_schema(at, ANY_OBJECT))),
        "json_schema" => {
            let mut part = schema(members, needed()?);
            if let (Some(at), Format::Schema(schema)) =
                (members.get(inner.unwrap_or(at), "resources"), &mut part.format)
            {
                let object = members.json.object(at);
                let rule = "it is an object of schemas by their URIs";
                let object = object.ok_or_else(|| members.error(at, rule))?;
                schema.resources = object.members().to_vec();
            }
            Ok(Some(part))
        }
        "json_object" | "json" => Ok(Some(schema(members, needed()?))),
        "regex" => written(|_| Language::Regex),
        "lark" => written(|_| Language::Lark),
        "gbnf" => written(|_| Language::Gbnf),
        _ => written(language_of),
    }
}

/// A schema, or one in a JSON string, as clients send both.
fn schema(members: &Members<'_>, at: JsonId) -> Part {
    match members.json.string(at) {
        Some(text) => Part::made_schema(at, text),
        None => Part::schema(at),
    }
}

/// vLLM's `structured_outputs`: one member of these.
fn structured(members: &Members<'_>, at: JsonId) -> Result<Vec<(String, Part)>> {
    const KINDS: [&str; 6] =
        ["json", "regex", "choice", "grammar", "json_object", "structural_tag"];
    const FORMS: [&str; 2] = ["disable_any_whitespace", "disable_additional_properties"];
    let known = [&KINDS[..], &FORMS].concat();
    members.only(
        at,
        "structured_outputs",
        &[&known[..], &["whitespace_pattern"]].concat(),
        &["disable_fallback", "_backend", "backend"],
    )?;
    if let Some(pattern) = members.get(at, "whitespace_pattern") {
        return Err(members.error(pattern, WHITESPACE_PATTERN));
    }
    let [is_compact, is_closed] = [members.flag(at, FORMS[0])?, members.flag(at, FORMS[1])?];
    let mut found = Vec::new();
    for kind in KINDS {
        if let Some(inner) = members.get(at, kind) {
            if matches!(members.json.json(inner), Json::Bool(false)) && kind == "json_object" {
                continue;
            }
            let mut part = guided(members, kind, inner)?;
            if let Format::Schema(schema) = &mut part.format {
                (schema.is_compact, schema.is_closed) = (is_compact, is_closed);
            }
            found.push((format!("structured_outputs.{kind}"), part));
        }
    }
    if found.is_empty() {
        let rule = format!("it asks for nothing; give one of {}", KINDS.join(", "));
        return Err(members.error(at, rule));
    }
    Ok(found)
}

/// A value of one of vLLM's kinds.
fn guided(members: &Members<'_>, kind: &str, at: JsonId) -> Result<Part> {
    let text = members.json.string(at).map(|text| &**text);
    let needed = || {
        let rule = format!("{kind:?} must be a text");
        text.ok_or_else(|| members.error(at, rule))
    };
    Ok(match kind {
        "json" => schema(members, at),
        "json_object" => Part::made_schema(at, ANY_OBJECT),
        "regex" => Part::written(at, Language::Regex, needed()?),
        "grammar" => {
            let text = needed()?;
            Part::written(at, language_of(text), text)
        }
        "choice" => Part::new(at, choices(members, at)?),
        _ => match text {
            Some(text) => Part::new(at, Format::Document(text.to_owned())),
            None => document(members, at)?,
        },
    })
}

fn choices(members: &Members<'_>, at: JsonId) -> Result<Format> {
    let Json::Array(items) = members.json.json(at) else {
        return Err(members.error(at, "the choices are a list of texts"));
    };
    let one = |&item: &JsonId| match members.json.string(item) {
        Some(text) => Ok(Part::fixed(item, text)),
        None => Err(members.error(item, "a choice is a text")),
    };
    let parts = items.iter().map(one).collect::<Result<Vec<_>>>()?;
    match parts.is_empty() {
        true => Err(members.error(at, "there are no choices; give one text at least")),
        false => Ok(Format::Or(parts)),
    }
}

/// EBNF where a rule is defined by `::=`, else Lark's language.
fn language_of(text: &str) -> Language {
    let defines = |line: &str| {
        let Some((name, _)) = line.split_once("::=") else { return false };
        let name = name.trim();
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(is_name)
    };
    if text.lines().any(defines) { Language::Gbnf } else { Language::Lark }
}

const WHITESPACE_PATTERN: &str = "whitespace by a pattern is not computed here; leave it out, and choose a form of JSON by the options \
                                  (--whitespace; over HTTP `json_form`)";

const ANY_OBJECT: &str = "{\"type\":\"object\"}";
