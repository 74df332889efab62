//! Rules of the business: read from a file, and their effects as programs read them.

use std::path::Path;
use std::time::SystemTime;

use anyhow::Context;
use palmette_recommend::{Moment, Recommendations, Reranked, Rules};
use serde_json::{Value, json};

use crate::input;

/// The rules of a file, at this moment unless they name one.
pub(super) fn rules(path: &Path) -> anyhow::Result<Rules> {
    let text = String::from_utf8(input::read(path).context("--rules")?);
    let name = || format!("--rules {}", path.display());
    let rules = Rules::parse(&text.with_context(name)?).with_context(name)?;
    let now = SystemTime::UNIX_EPOCH.elapsed().context("the clock is before 1970")?;
    Ok(rules.at(Moment::Seconds(now.as_secs_f64())))
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
