//! Cases to measure: grammars, each with texts.

use std::io::BufRead;

use palmette_core::TokenId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::dumps;

/// A grammar and texts, as a line of a file of cases.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GrammarCase {
    /// Name in reports.
    pub name: String,
    /// The syntax of the grammar: `json_schema`, `lark`, `gbnf` or `regex`.
    pub kind: String,
    /// The grammar as its author wrote it.
    pub grammar: String,
    /// Texts to follow.
    pub texts: Vec<CaseText>,
}

/// A text as tokens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaseText {
    /// True if it is in the language.
    pub valid: bool,
    /// Tokens of the text, without an end token.
    pub tokens: Vec<u32>,
}

/// A line that is not a case.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// A line that cannot be read.
    #[error("line {line}: {source}")]
    Read {
        /// From 1.
        line: usize,
        /// Cause of the failure.
        source: std::io::Error,
    },
    /// A line that is not what it should be.
    #[error("line {line} is not {expected}: {source}")]
    Parse {
        /// From 1.
        line: usize,
        /// A line of such a file.
        expected: &'static str,
        /// Place and kind of the difference.
        source: serde_json::Error,
    },
    /// A text cannot be cut into tokens.
    #[error("line {line}: {why}")]
    Tokenize {
        /// From 1.
        line: usize,
        /// Reason for which it has no tokens.
        why: String,
    },
}

#[derive(Deserialize)]
struct SchemaLine {
    name: String,
    schema: Value,
    tests: Vec<SchemaTest>,
}

#[derive(Deserialize)]
struct SchemaTest {
    valid: bool,
    data: Value,
}

/// Reads schemas with instances, a line each: `{"name", "schema", "tests": [{"valid", "data"}]}`.
/// The text of an instance is that of Python's `json.dumps`, which `tokenize` cuts into tokens.
///
/// # Errors
/// At the first line that cannot be read, is not such an object, or holds text that has no tokens.
pub fn read_schemas<E: std::fmt::Display>(
    lines: impl BufRead,
    tokenize: impl Fn(&str) -> Result<Vec<TokenId>, E>,
) -> Result<Vec<GrammarCase>, CaseError> {
    let expected = r#"{"name", "schema", "tests": [{"valid", "data"}]}"#;
    let mut cases = Vec::new();
    for (line, text) in numbered(lines) {
        let text = text.map_err(|source| CaseError::Read { line, source })?;
        let read: SchemaLine = serde_json::from_str(&text).map_err(|source| CaseError::Parse {
            line,
            expected,
            source,
        })?;
        let mut texts = Vec::with_capacity(read.tests.len());
        for test in &read.tests {
            let tokens = tokenize(&dumps(&test.data))
                .map_err(|why| CaseError::Tokenize { line, why: why.to_string() })?;
            let tokens = tokens.into_iter().map(|token| token.0).collect();
            texts.push(CaseText { valid: test.valid, tokens });
        }
        let grammar = read.schema.to_string();
        cases.push(GrammarCase { name: read.name, kind: "json_schema".to_owned(), grammar, texts });
    }
    Ok(cases)
}

/// Reads cases, a line each: `{"name", "kind", "grammar", "texts": [{"valid", "tokens"}]}`.
///
/// # Errors
/// At the first line that cannot be read or is not such an object.
pub fn read_cases(lines: impl BufRead) -> Result<Vec<GrammarCase>, CaseError> {
    let expected = r#"{"name", "kind", "grammar", "texts": [{"valid", "tokens"}]}"#;
    numbered(lines)
        .map(|(line, text)| {
            let text = text.map_err(|source| CaseError::Read { line, source })?;
            serde_json::from_str(&text).map_err(|source| CaseError::Parse {
                line,
                expected,
                source,
            })
        })
        .collect()
}

/// The lines that are not blank, with their numbers from 1.
fn numbered(lines: impl BufRead) -> impl Iterator<Item = (usize, std::io::Result<String>)> {
    let blank =
        |text: &std::io::Result<String>| text.as_ref().is_ok_and(|text| text.trim().is_empty());
    (1..).zip(lines.lines()).filter(move |(_, text)| !blank(text))
}
