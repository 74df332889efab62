//! Grammars by the types of llguidance, and parameters of constraints.

use std::ffi::c_char;

use palmette_grammar::{Budget, CacheLimits, GrammarSource};
use serde_json::Value;

use super::texts::write_text;
use super::tokenizer::LlgTokenizer;
use crate::arguments::{invalid, needed, word};
use crate::border;
use crate::error::Error;
use crate::grammar::Grammar;

/// Limits of llguidance's parser. They are not read: the work of compiling and of masks is counted
/// otherwise here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LlgParserLimits {
    /// Items in a row.
    pub max_items_in_row: usize,
    /// Fuel of the lexer's beginning.
    pub initial_lexer_fuel: u64,
    /// Fuel of the lexer for a mask.
    pub step_lexer_fuel: u64,
    /// Items for a mask.
    pub step_max_items: usize,
    /// States of the lexer.
    pub max_lexer_states: usize,
    /// Symbols of the grammar.
    pub max_grammar_size: usize,
    /// Work ahead for large lexemes.
    pub precompute_large_lexemes: bool,
    /// Positions in errors.
    pub verbose_errors: bool,
}

/// Parameters of a constraint or matcher.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LlgConstraintInit {
    /// The tokenizer.
    pub tokenizer: *const LlgTokenizer,
    /// Level of the log for llg_flush_logs(): 0 nothing, 1 warnings, 2 commits too.
    pub log_buffer_level: u32,
    /// Level of what is written to the error stream; not read.
    pub log_stderr_level: u32,
    /// True when `llg_commit_token` may give more tokens than the one committed.
    pub ff_tokens_ok: bool,
    /// True when tokens may be taken back; none are.
    pub backtrack_ok: bool,
    /// Limits, which are not read.
    pub limits: LlgParserLimits,
}

impl LlgConstraintInit {
    /// # Safety
    /// The tokenizer is null or alive.
    pub(super) unsafe fn tokenizer(&self) -> Result<&LlgTokenizer, Error> {
        // SAFETY: the caller's promise.
        needed(unsafe { self.tokenizer.as_ref() }, "tokenizer")
    }

    /// # Safety
    /// The tokenizer is null or alive.
    pub(super) unsafe fn compile(&self, source: GrammarSource) -> Result<Grammar, Error> {
        // SAFETY: the caller's promise.
        let tokenizer = unsafe { self.tokenizer()? };
        Grammar::compile(&tokenizer.shared.vocabulary, source, None, &false.into())
    }
}

/// The source of a grammar, by a type's name.
pub(super) fn source(kind: &str, data: &str) -> Result<GrammarSource, Error> {
    let named = |language, text: &str| GrammarSource::in_language(language, text.to_owned(), "");
    Ok(match kind {
        "regex" => named("regex", data)?,
        "json" | "json_schema" => named("json_schema", data)?,
        "json_object" => named("json_object", "")?,
        "lark" => named("lark", data)?,
        "llguidance" | "guidance" if data.trim_start().starts_with('{') => of_list(data)?,
        "llguidance" | "guidance" => named("lark", data)?,
        kind => {
            let types = "regex, json, json_schema, json_object, lark and llguidance";
            return Err(invalid(format!(
                "there is no constraint type {kind:?}; there are {types}"
            )));
        }
    })
}

/// The source of a list of grammars, which is one here.
fn of_list(data: &str) -> Result<GrammarSource, Error> {
    let list: Value = serde_json::from_str(data)
        .map_err(|error| invalid(format!("a list of grammars is no JSON: {error}")))?;
    let grammars = list["grammars"].as_array().map(Vec::as_slice).unwrap_or_default();
    let [grammar] = grammars else {
        let count = grammars.len();
        let rule = "the list \"grammars\" has one; put others into rules of one Lark grammar (%json, %lark)";
        return Err(invalid(format!("there are {count} grammars: {rule}")));
    };
    match (&grammar["json_schema"], grammar["lark_grammar"].as_str()) {
        (Value::Null, Some(text)) => source("lark", text),
        (Value::Null, None) => {
            Err(invalid("a grammar of the list has json_schema or lark_grammar".to_owned()))
        }
        (schema, None) => source("json_schema", &schema.to_string()),
        (_, Some(_)) => Err(invalid(
            "a grammar of the list has json_schema and lark_grammar; give one".to_owned(),
        )),
    }
}

/// Sets the parameters to those that llguidance has unless told otherwise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_constraint_init_set_defaults(
    init: *mut LlgConstraintInit,
    tokenizer: *const LlgTokenizer,
) {
    let limits = LlgParserLimits {
        max_items_in_row: 2000,
        initial_lexer_fuel: 1_000_000,
        step_lexer_fuel: 200_000,
        step_max_items: 50_000,
        max_lexer_states: 250_000,
        max_grammar_size: 500_000,
        precompute_large_lexemes: true,
        verbose_errors: true,
    };
    let defaults = LlgConstraintInit {
        tokenizer,
        log_buffer_level: 0,
        log_stderr_level: 1,
        ff_tokens_ok: false,
        backtrack_ok: false,
        limits,
    };
    if !init.is_null() {
        // SAFETY: it is not null, and the caller's promise.
        unsafe { init.write(defaults) };
    }
}

/// Checks a grammar without a tokenizer: 0 where it can be read, 1 with a warning, -1 with an
/// error, in `message`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_validate_grammar(
    init: Option<&LlgConstraintInit>,
    constraint_type: *const c_char,
    data: *const c_char,
    message: *mut c_char,
    message_len: usize,
) -> i32 {
    let check = || -> Result<Vec<String>, Error> {
        needed(init, "init")?;
        // SAFETY: the caller's promise.
        let (kind, data) = unsafe {
            (
                needed(word(constraint_type, "constraint_type")?, "constraint_type")?,
                needed(word(data, "data")?, "data")?,
            )
        };
        let source = source(kind, data)?;
        let read = source.parse_with_budget(&mut Budget::new(CacheLimits::default().steps));
        let (_, warnings) = read.map_err(|error| Error::of_source(&error, source.text()))?;
        Ok(warnings.iter().map(ToString::to_string).collect())
    };
    border::ask(-1, || {
        let (answer, text) = match check() {
            Ok(warnings) => (i32::from(!warnings.is_empty()), warnings.join("\n")),
            Err(error) => (-1, error.message().to_owned()),
        };
        // SAFETY: the caller's promise.
        unsafe { write_text(text.as_bytes(), message, message_len) };
        answer
    })
}
