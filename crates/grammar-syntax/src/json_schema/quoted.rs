//! Texts of any grammar as the content of a JSON string.

use super::json_text::Spelling;
use super::options::{Escapes, Whitespace};
use crate::{Grammar, GrammarBuilder, Terminal};

/// The grammar of the contents of JSON strings, without their quotes, whose values are texts of
/// `grammar`.
///
/// Each character is spelled for itself, and no spelling begins another: where texts are cut into
/// lexemes, their spellings are, too.
///
/// # Errors
/// When it asks for more than characters.
pub(crate) fn quoted(grammar: &Grammar) -> Result<Grammar, &'static str> {
    if grammar.indentation().is_some() {
        return Err("blocks by indentation cannot be written within a JSON string");
    }
    if grammar.distinct_names().is_some() {
        return Err(
            "names that are remembered, such as those of a JSON Schema with many required members, cannot be \
                    written within a JSON string",
        );
    }
    if grammar.token_terminals().next().is_some() {
        return Err("tokens by name or number cannot stand within a JSON string; write their text");
    }
    let spelling = Spelling::new(Whitespace::Compact, Escapes::Needed);
    let mut builder = GrammarBuilder::new();
    for terminal in grammar.terminals() {
        let regex = spelling.spelled(&terminal.regex);
        builder.terminal(Terminal { regex, ..terminal.clone() });
    }
    for nonterminal in grammar.nonterminals() {
        builder.nonterminal(nonterminal.name.clone(), nonterminal.span);
    }
    for rule in grammar.rules() {
        builder.rule(rule.head, rule.body.clone());
    }
    grammar.ignored().iter().for_each(|&ignored| builder.ignore(ignored));
    builder.token_limits_of(grammar.token_limits(), |terminal| terminal);
    Ok(builder.build(grammar.start(), grammar.lexing()))
}
