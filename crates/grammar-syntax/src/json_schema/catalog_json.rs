//! References to catalogs in JSON: `"shop.title"`, or `{"name": "shop", "field": "title", "filter":
//! {…}}`.

use super::source::{Json, JsonId, Source};
use crate::catalog_references::{from_label, slot};
use crate::{Budget, MemberSpelling, Slot, Span};

/// The slot of a JSON value: a label, or an object with `name`, `field` and `filter`.
///
/// # Errors
/// The rule that it breaks.
pub(crate) fn from_json(
    json: &Source,
    value: JsonId,
    spelling: MemberSpelling,
    span: Option<Span>,
) -> Result<Slot, String> {
    const RULE: &str = "a catalog is named \"shop.id\", or by an object with \"name\", and where they are needed \"field\" and \"filter\"";
    if let Json::String(label) = json.json(value) {
        return from_label(label, spelling, span);
    }
    let object = json.object(value).ok_or_else(|| RULE.to_owned())?;
    let (mut name, mut field, mut filter) = (None, None, None);
    for (member, value) in object.members() {
        let text = || {
            let text = json.string(*value).map(|text| text.to_string());
            text.ok_or_else(|| format!("{member:?} is a string; {RULE}"))
        };
        match &**member {
            "name" => name = Some(text()?),
            "field" => field = Some(text()?),
            "filter" => filter = Some(json.text(*value).to_owned()),
            other => return Err(format!("{other:?} is no member here; {RULE}")),
        }
    }
    let name = name.ok_or_else(|| RULE.to_owned())?;
    let slot = slot(&name, field.as_deref(), spelling, span)?;
    Ok(Slot { filter, ..slot })
}

/// [`from_json`] of a JSON text.
///
/// # Errors
/// The rule that it breaks.
pub(crate) fn from_json_text(source: &str) -> Result<Slot, String> {
    let mut json = Source::default();
    let root = json.add(None, source, 3, &mut Budget::unlimited());
    let root = root.map_err(|_| "after `%catalog` comes a JSON object".to_owned())?;
    from_json(&json, root, MemberSpelling::Raw, None)
}
