//! The cases: a grammar and texts as tokens of o200k_base, spelled as Python's `json.dumps` does.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use base64::Engine as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A grammar and texts.
#[derive(Debug, Serialize, Deserialize)]
pub struct Case {
    pub name: String,
    pub kind: Kind,
    pub grammar: String,
    pub texts: Vec<Text>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    JsonSchema,
    Lark,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Text {
    pub valid: bool,
    pub tokens: Vec<u32>,
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

/// The tokens' bytes by id (none for special ones) and the end token.
pub struct Vocabulary {
    pub tokens: Vec<Option<Vec<u8>>>,
    pub end: u32,
}

pub fn vocabulary() -> Vocabulary {
    let encoding = tiktoken_rs::o200k_base().expect("the encoding comes with the crate");
    let end = encoding.encode_with_special_tokens("<|endoftext|>")[0];
    let special: Vec<u32> = encoding
        .special_tokens()
        .iter()
        .flat_map(|name| encoding.encode_with_special_tokens(name))
        .collect();
    let size = special.iter().max().map_or(0, |&id| id + 1);
    let tokens = (0..size)
        .map(|id| if special.contains(&id) { None } else { encoding.decode_bytes(&[id]).ok() })
        .collect();
    Vocabulary { tokens, end }
}

pub fn prepare(
    schemas: Option<&Path>,
    lark: &[String],
    out: &Path,
    vocab_out: Option<&Path>,
) -> anyhow::Result<()> {
    let encoding = tiktoken_rs::o200k_base()?;
    let mut out = BufWriter::new(fs::File::create(out)?);
    let mut write = |case: &Case| -> anyhow::Result<()> {
        serde_json::to_writer(&mut out, case)?;
        Ok(out.write_all(b"\n")?)
    };
    if let Some(schemas) = schemas {
        for line in BufReader::new(fs::File::open(schemas)?).lines() {
            let line: SchemaLine = serde_json::from_str(&line?)?;
            let texts = line.tests.iter().map(|test| Text {
                valid: test.valid,
                tokens: encoding.encode_ordinary(&dumps(&test.data)),
            });
            write(&Case {
                name: line.name,
                kind: Kind::JsonSchema,
                grammar: line.schema.to_string(),
                texts: texts.collect(),
            })?;
        }
    }
    for spec in lark {
        let (name, rest) = spec.split_once('=').context("NAME=GRAMMAR:TEXTS")?;
        let (grammar, texts) = rest.split_once(':').context("NAME=GRAMMAR:TEXTS")?;
        let texts: anyhow::Result<Vec<Text>> = texts
            .split(',')
            .map(|path| {
                let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
                Ok(Text { valid: true, tokens: encoding.encode_ordinary(&text) })
            })
            .collect();
        write(&Case {
            name: name.to_owned(),
            kind: Kind::Lark,
            grammar: fs::read_to_string(grammar)?,
            texts: texts?,
        })?;
    }
    if let Some(path) = vocab_out {
        let vocabulary = vocabulary();
        let encode = |bytes: &Vec<u8>| base64::engine::general_purpose::STANDARD.encode(bytes);
        let tokens: Vec<Option<String>> =
            vocabulary.tokens.iter().map(|token| token.as_ref().map(encode)).collect();
        fs::write(path, serde_json::json!({ "tokens": tokens, "end": vocabulary.end }).to_string())?;
    }
    Ok(())
}

/// As Python's `json.dumps` with its defaults: `", "`, `": "`, ASCII only.
fn dumps(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

fn write_value(value: &Value, text: &mut String) {
    match value {
        Value::Array(values) => {
            text.push('[');
            for (at, value) in values.iter().enumerate() {
                text.push_str(if at > 0 { ", " } else { "" });
                write_value(value, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push('{');
            for (at, (key, value)) in members.iter().enumerate() {
                text.push_str(if at > 0 { ", " } else { "" });
                write_string(key, text);
                text.push_str(": ");
                write_value(value, text);
            }
            text.push('}');
        }
        Value::String(string) => write_string(string, text),
        other => write!(text, "{other}").expect("a string takes everything"),
    }
}

fn write_string(string: &str, text: &mut String) {
    for c in serde_json::to_string(string).expect("strings have a JSON form").chars() {
        if c.is_ascii() {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(text, "\\u{unit:04x}").expect("a string takes everything");
            }
        }
    }
}
