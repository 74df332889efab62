//! Rules of the business: read from a file, and their effects as programs read them.

use std::path::Path;

use anyhow::Context;
use palmette_document::RawJson;
use palmette_recommend::{Recommendations, Reranked, Rules};
use serde_json::{Value, json};

use crate::input;

/// The rules of a file, as JSON.
pub(super) fn rules_text(path: &Path) -> anyhow::Result<RawJson> {
    let text = String::from_utf8(input::read(path).context("--rules")?);
    let name = || format!("--rules {}", path.display());
    let text = text.with_context(name)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    // Read here, so that what is no rule is told with the file's name.
    Rules::parse(text).with_context(name)?;
    RawJson::from_text(text).with_context(name)
}

/// Adds the effects of rules to a document.
pub(super) fn add_rules(document: &mut Value, answer: &Recommendations) {
    document["searches"] = answer.searches.into();
    document["reranked"] = match answer.reranked {
        Some(Reranked { by, pool }) => {
            json!({"by": "maximal marginal relevance", "lambda": by.lambda, "pool": pool})
        }
        None => Value::Null,
    };
    let Some(items) = document["items"].as_array_mut() else { return };
    for (shown, item) in items.iter_mut().zip(&answer.items) {
        shown["boost"] = item.boost.into();
        shown["pinned"] = item.pinned.into();
    }
}
