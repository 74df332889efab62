//! References to substrings of documents in JSON: `"doc"`, or `{"of": "doc", "unit": "words",
//! "min": 20, "max": 400}`.

use super::source::{Json, JsonId, Source};
use crate::substring_references::{from_label, slot, unit};
use crate::{Budget, MemberSpelling, Slot, Span, SubstringRule, SubstringUnit};

/// The slot of a JSON value: a label, or an object with `of`, `unit`, `min` and `max`.
///
/// # Errors
/// The rule that it breaks.
pub(crate) fn from_json(
    json: &Source,
    value: JsonId,
    spelling: MemberSpelling,
    span: Option<Span>,
) -> Result<Slot, String> {
    const RULE: &str = "substrings are of the documents that \"of\" names; \"unit\" is chars, words or sentences, \"min\" and \"max\" count characters";
    if let Json::String(label) = json.json(value) {
        return from_label(label, spelling, span);
    }
    let object = json.object(value).ok_or_else(|| RULE.to_owned())?;
    let mut of = None;
    let (mut quoted, mut min, mut max) = (SubstringUnit::default(), 1, None);
    for (member, value) in object.members() {
        let text = || {
            let text = json.string(*value).map(|text| text.to_string());
            text.ok_or_else(|| format!("{member:?} is a string; {RULE}"))
        };
        let number = || {
            let number = match json.json(*value) {
                Json::Number(number) => number.parse().ok(),
                _ => None,
            };
            let most = u32::MAX;
            number.ok_or_else(|| format!("{member:?} is an integer from 1 to {most}; {RULE}"))
        };
        match &**member {
            "of" => of = Some(text()?),
            "unit" => quoted = unit(&text()?)?,
            "min" => min = number()?,
            "max" => max = Some(number()?),
            other => return Err(format!("{other:?} is no member here; {RULE}")),
        }
    }
    let of = of.ok_or_else(|| RULE.to_owned())?;
    let rule = SubstringRule::new(quoted, min, max).map_err(|error| error.to_string())?;
    slot(&of, rule, spelling, span)
}

/// [`from_json`] of a JSON text.
///
/// # Errors
/// The rule that it breaks.
pub(crate) fn from_json_text(source: &str) -> Result<Slot, String> {
    let mut json = Source::default();
    let root = json.add(None, source, 3, &mut Budget::unlimited());
    let root = root.map_err(|_| "after `%substring` comes a JSON object".to_owned())?;
    from_json(&json, root, MemberSpelling::Raw, None)
}
