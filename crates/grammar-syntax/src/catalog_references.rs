//! References to catalogs in grammars: a name, and the part of an item that is written.
//!
//! ```text
//! shop            ids of the items of the set that a request binds to `shop`
//! shop.title      values of an attribute
//! shop.codes      semantic IDs, in the model's own tokens by number
//! ```

use crate::{Grammar, GrammarBuilder, Lexing, MemberSpelling, Slot, SlotKind, Span, Symbol};

/// The part of an item that is written where no other is named.
const ID: &str = "id";
/// The part of an item that is its semantic ID.
const CODES: &str = "codes";

/// The slot of `name` or `name.field`.
///
/// # Errors
/// The rule that it breaks.
pub(crate) fn from_label(
    label: &str,
    spelling: MemberSpelling,
    span: Option<Span>,
) -> Result<Slot, String> {
    let (name, field) = match label.split_once('.') {
        Some((name, field)) => (name, Some(field)),
        None => (label, None),
    };
    slot(name, field, spelling, span)
}

/// A grammar of the members of a slot and nothing else.
pub(crate) fn grammar(slot: Slot) -> Grammar {
    let mut builder = GrammarBuilder::new();
    let span = slot.span;
    let start = builder.nonterminal(slot.label(), span);
    let slot = builder.slot(slot);
    let terminal = builder.member_terminal(slot, span);
    builder.rule(start, [Symbol::Terminal(terminal)]);
    builder.build(start, Lexing::Any)
}

/// The slot of a name and a field.
///
/// # Errors
/// The rule that they break.
pub(crate) fn slot(
    name: &str,
    field: Option<&str>,
    spelling: MemberSpelling,
    span: Option<Span>,
) -> Result<Slot, String> {
    check_name(name, "a catalog")?;
    if field.is_some_and(str::is_empty) {
        return Err(format!(
            "after the point of {name:?} stands the part of an item that is written, such as {name}.title; for ids write {name}.{ID}, or {name} alone"
        ));
    }
    let field = field.filter(|field| *field != ID).map(str::to_owned);
    let kind = if field.as_deref() == Some(CODES) { SlotKind::Codes } else { SlotKind::Catalog };
    if kind == SlotKind::Codes && spelling == MemberSpelling::JsonString {
        return Err(format!(
            "codes are tokens by number, which no JSON string holds; write {name}.{ID} here, or the items outside of the JSON, by a Lark or GBNF grammar"
        ));
    }
    let (filter, own) = (None, None);
    Ok(Slot { name: name.to_owned(), kind, field, spelling, filter, span, own })
}

/// Checks the name of a set, which has none of the characters that end it somewhere.
///
/// # Errors
/// The rule that it breaks.
pub(crate) fn check_name(name: &str, what: &str) -> Result<(), String> {
    let is_bad = name.contains(['.', '<', '>', '"']) || name.contains(char::is_whitespace);
    if name.is_empty() || is_bad {
        return Err(format!(
            "{name:?} is no name of {what}: it has no blanks, points, brackets or quotes, and is not empty"
        ));
    }
    Ok(())
}
