//! References to substrings of documents in grammars: a name, and the unit of what is quoted.
//!
//! ```text
//! doc             whole words of the documents that a request binds to `doc`
//! doc.sentences   whole sentences
//! ```

use crate::catalog_references::check_name;
use crate::{MemberSpelling, Slot, SlotKind, Span, SubstringRule, SubstringUnit};

/// The slot of `name` or `name.unit`.
///
/// # Errors
/// The rule that it breaks.
pub(crate) fn from_label(
    label: &str,
    spelling: MemberSpelling,
    span: Option<Span>,
) -> Result<Slot, String> {
    let (name, unit) = match label.split_once('.') {
        Some((name, unit)) => (name, self::unit(unit)?),
        None => (label, SubstringUnit::default()),
    };
    slot(name, unit.into(), spelling, span)
}

/// The slot of a name and a rule.
///
/// # Errors
/// When the name is none.
pub(crate) fn slot(
    name: &str,
    rule: SubstringRule,
    spelling: MemberSpelling,
    span: Option<Span>,
) -> Result<Slot, String> {
    check_name(name, "documents")?;
    let kind = SlotKind::Documents(rule);
    Ok(Slot { name: name.to_owned(), kind, field: None, spelling, filter: None, span, own: None })
}

/// The unit of a name.
///
/// # Errors
/// When there is no such unit.
pub(crate) fn unit(name: &str) -> Result<SubstringUnit, String> {
    SubstringUnit::from_name(name).ok_or_else(|| {
        let names = SubstringUnit::ALL.map(SubstringUnit::name).join(", ");
        format!("{name:?} is no unit of substrings; units are {names}")
    })
}
