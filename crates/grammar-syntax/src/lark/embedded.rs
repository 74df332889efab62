//! Grammars in other languages within a rule: `%json {…}`, `%regex {…}` and `%lark {…}`, as
//! llguidance writes them, and `%catalog {…}` and `%substring {…}`.
//!
//! ```text
//! start: /[^{]*/ answer
//! answer: %json {"type": "object", "properties": {"city": {"type": "string"}}}
//! quote: %regex {"substring_words": "some words that a part of is quoted"}
//! port: %regex {"integer_between": [1, 65535]}
//! sku: %catalog {"name": "shop", "field": "id"}
//! words: %substring {"of": "doc", "unit": "words"}
//! list: %lark { start: "a" ("," "a")*  %ignore " " }
//! ```

use std::ops::Range;
use std::sync::Arc;

use super::error::Problems;
use super::options::{LarkLimits, LarkOptions};
use super::syntax::Expr;
use crate::catalog_references;
use crate::chunks::{MAX_CHUNKS, parts_of};
use crate::json_schema::number_text::integers_between;
use crate::json_schema::source::{Json, JsonId, Source};
use crate::json_schema::{self, JsonSchemaOptions, catalog_json, substring_json};
use crate::{Budget, Grammar, GrammarBuilder, Lexing, Symbol, Terminal, TerminalKind};

/// Grammars within grammars past this many are an error: each is read by recursion.
const MAX_NESTED: u32 = 8;

/// The grammar of a directive with a grammar in braces; `None` when it is none, which was reported.
pub(super) fn read(range: &Range<usize>, problems: &mut Problems<'_>) -> Option<Expr> {
    let word = &problems.source.text[range.clone()];
    let brace = word.find('{')?;
    let (directive, inside) = (word[..brace].trim_end(), &word[brace..]);
    let made = match directive {
        "%json" => schema(inside, problems),
        "%regex" => regular(inside),
        "%catalog" => catalog_json::from_json_text(inside).map(catalog_references::grammar),
        "%substring" => substring_json::from_json_text(inside).map(catalog_references::grammar),
        _ => nested(&inside[1..inside.len() - 1], problems),
    };
    let checked = made.and_then(|grammar| {
        // What cannot be embedded is said at its place.
        GrammarBuilder::new().embed(&grammar).map(|_| grammar).map_err(|error| error.to_string())
    });
    match checked {
        Ok(grammar) => Some(Expr::Embedded { grammar: Arc::new(grammar), range: range.clone() }),
        Err(message) => {
            problems.add(&(range.start..range.start + directive.len()), message);
            None
        }
    }
}

fn schema(source: &str, problems: &mut Problems<'_>) -> Result<Grammar, String> {
    // A part of another grammar has neighbours that members of a set may not be told from.
    let (max_listed, max_listed_bytes) = (usize::MAX, usize::MAX);
    let options = JsonSchemaOptions { max_listed, max_listed_bytes, ..Default::default() };
    let mut budget = problems.budget.split_off();
    let read = json_schema::parse_with_budget(source, &options, &mut budget);
    problems.budget.join(&budget);
    let (grammar, warnings) = read.map_err(|error| {
        if let Some(why) = error.interrupted() {
            problems.interrupt(why);
        }
        format!("in this schema: {error}")
    })?;
    problems.warnings.extend(warnings);
    Ok(grammar)
}

/// `%regex`: texts that are cumbersome to write as a regular expression.
fn regular(source: &str) -> Result<Grammar, String> {
    let rule = "after `%regex` comes one of {\"substring_chars\": text}, {\"substring_words\": text}, {\"substring_chunks\": \
                [texts]} and {\"integer_between\": [least, greatest]}; a regular expression is written `/…/`";
    let mut json = Source::default();
    let root = json.add(None, source, 2, &mut Budget::unlimited()).map_err(|_| rule)?;
    let members = json.object(root).map(|object| object.members());
    let Some([(name, value)]) = members else { return Err(rule.to_owned()) };
    match &**name {
        "integer_between" => integer(&json, *value),
        _ => parts(&pieces(&json, name, *value).ok_or(rule)?),
    }
}

/// A terminal of the integers between two numbers.
fn integer(json: &Source, value: JsonId) -> Result<Grammar, String> {
    let number = |id: &JsonId| match json.json(*id) {
        Json::Number(text) => text.parse().ok(),
        _ => None,
    };
    let bounds: Option<Vec<i64>> = match json.json(value) {
        Json::Array(items) => items.iter().map(number).collect(),
        _ => None,
    };
    let Some(&[low, high]) = bounds.as_deref() else {
        let most = i64::MAX;
        return Err(format!(
            "\"integer_between\" is a list of two integers up to {most}, without a point or an exponent, such as [1, 65535]"
        ));
    };
    if low > high {
        return Err(format!("no integer is between {low} and {high}; the least comes first"));
    }
    let mut builder = GrammarBuilder::new();
    let start = builder.nonterminal("integer", None);
    let terminal = builder.terminal(Terminal {
        name: format!("{low}..{high}"),
        regex: integers_between(low, high),
        priority: 0,
        kind: TerminalKind::Pattern,
        span: None,
    });
    builder.rule(start, [Symbol::Terminal(terminal)]);
    Ok(builder.build(start, Lexing::Any))
}

/// Any part of a text that begins and ends where one of its pieces does.
fn parts(pieces: &[String]) -> Result<Grammar, String> {
    if pieces.len() > MAX_CHUNKS {
        let len = pieces.len();
        return Err(format!(
            "{len} pieces; a part may begin at each of at most {MAX_CHUNKS}: use larger ones"
        ));
    }
    Ok(parts_of(pieces))
}

fn pieces(json: &Source, name: &str, value: JsonId) -> Option<Vec<String>> {
    match (name, json.json(value)) {
        ("substring_chars", Json::String(text)) => Some(text.chars().map(String::from).collect()),
        ("substring_words", Json::String(text)) => {
            Some(words(text).into_iter().map(String::from).collect())
        }
        ("substring_chunks", Json::Array(items)) => {
            items.iter().map(|&item| Some(json.string(item)?.to_string())).collect()
        }
        _ => None,
    }
}

/// Runs of letters, digits and underscores, of blanks, and of other characters.
fn words(text: &str) -> Vec<&str> {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let kind = |character: char| (is_word(character), character.is_whitespace());
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|next| kind(next) != kind(first)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after;
    }
    words
}

fn nested(source: &str, problems: &mut Problems<'_>) -> Result<Grammar, String> {
    if problems.nested >= MAX_NESTED {
        return Err(format!(
            "grammars are nested more than {MAX_NESTED} deep: name their rules apart and put them into one"
        ));
    }
    let mut budget = problems.budget.split_off();
    let options = LarkOptions { limits: LarkLimits::default(), ..LarkOptions::default() };
    let read = super::read(source, &options, &mut budget, problems.nested + 1);
    problems.budget.join(&budget);
    let (grammar, warnings) = read.map_err(|error| {
        if let Some(why) = error.interrupted() {
            problems.interrupt(why);
        }
        format!("in this grammar: {error}")
    })?;
    problems.warnings.extend(warnings);
    Ok(grammar)
}
