//! Formats of answers: the members of a request that ask for one, and what each may say.

use super::document::document;
use super::format::{Language, Part};
use super::members::{Members, Result};
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

/// Members of a request that ask for a format and are read; those within a member stand by its name.
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

/// Words that `type` is in a format of answers.
const TYPES: [&str; 8] =
    ["text", "json_object", "json_schema", "structural_tag", "regex", "lark", "gbnf", "json"];

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
    kind.is_some_and(|kind| TYPES.contains(&kind)) && members.get(at, "tools").is_none()
}

/// A `response_format` and its like.
fn format(members: &Members<'_>, at: JsonId) -> Result<Option<Part>> {
    const SILENT: &[&str] = &["name", "description", "strict", "schema_name"];
    let what = "a response format";
    let kind = members.text_at(at, &["type"]);
    if !matches!(kind, Some("structural_tag")) {
        let known = ["type", "json_schema", "schema", "pattern", "grammar"];
        members.only(at, what, &known, SILENT)?;
    }
    let written = |name, language| {
        let text = members.text(at, name)?;
        Ok(Some(Part::written(members.needed(at, name)?, language, text)))
    };
    match kind {
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(Part::made_schema(at, ANY_OBJECT))),
        Some("json_schema") => {
            if let Some(inner) = members.get(at, "json_schema") {
                members.only(inner, "json_schema", &["schema", "name"], SILENT)?;
            }
            let inside = members.follow(at, &["json_schema", "schema"]);
            let schema = inside.or_else(|| members.get(at, "schema")).ok_or_else(|| {
                let rule = "a response format of a schema has it at \"json_schema\", \"schema\"";
                members.error(at, rule)
            })?;
            Ok(Some(Part::schema(schema)))
        }
        Some("structural_tag") => document(members, at).map(Some),
        Some("regex") => written("pattern", Language::Regex),
        Some("lark") => written("grammar", Language::Lark),
        Some("gbnf") => written("grammar", Language::Gbnf),
        _ => {
            let rule = "a response format has the \"type\" \"text\", \"json_object\", \"json_schema\", \"structural_tag\", \
                        \"regex\", \"lark\" or \"gbnf\"";
            Err(members.error(at, rule))
        }
    }
}

/// vLLM's `structured_outputs`: one member of these.
fn structured(members: &Members<'_>, at: JsonId) -> Result<Vec<(String, Part)>> {
    const KINDS: [&str; 6] =
        ["json", "regex", "choice", "grammar", "json_object", "structural_tag"];
    members.only(at, "structured_outputs", &KINDS, &["disable_fallback", "_backend", "backend"])?;
    let mut found = Vec::new();
    for kind in KINDS {
        if let Some(inner) = members.get(at, kind) {
            if matches!(members.json.json(inner), Json::Bool(false)) && kind == "json_object" {
                continue;
            }
            found.push((format!("structured_outputs.{kind}"), guided(members, kind, inner)?));
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
        // Clients send a schema, or one in a JSON string.
        "json" => match text {
            Some(text) => Part::made_schema(at, text),
            None => Part::schema(at),
        },
        "json_object" => Part::made_schema(at, ANY_OBJECT),
        "regex" => Part::written(at, Language::Regex, needed()?),
        "grammar" => {
            let text = needed()?;
            Part::written(at, language_of(text), text)
        }
        "choice" => Part::new(at, choices(members, at)?),
        _ => match text {
            Some(_) => {
                let rule = "a structural tag is an object here, not one in a JSON string";
                return Err(members.error(at, rule));
            }
            None => document(members, at)?,
        },
    })
}

fn choices(members: &Members<'_>, at: JsonId) -> Result<super::format::Format> {
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
        false => Ok(super::format::Format::Or(parts)),
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

const ANY_OBJECT: &str = "{\"type\":\"object\"}";
