//! Rules of the business: read from a file, and their effects as programs read them.

use std::path::Path;
use std::time::SystemTime;

use anyhow::Context;
use palmette_recommend::{Moment, Recommendations, Reranked, Rules};
use serde_json::{Value, json};

use crate::input;

/// Rules of a file.
#[derive(Debug)]
pub(super) struct GivenRules {
    pub(super) rules: Rules,
    pub(super) text: String,
    /// The moment of the call, in seconds since 1970, where the rules ask for one and name none.
    pub(super) now: Option<f64>,
}

/// The rules of a file, at this moment unless they name one; `earlier` is that of a run that is gone on with.
pub(super) fn rules(path: &Path, earlier: Option<f64>) -> anyhow::Result<GivenRules> {
    let text = String::from_utf8(input::read(path).context("--rules")?);
    let name = || format!("--rules {}", path.display());
    let text = text.with_context(name)?;
    let rules = Rules::parse(&text).with_context(name)?;
    if rules.valid.as_ref().is_none_or(|valid| valid.now.is_some()) {
        return Ok(GivenRules { rules, text, now: None });
    }
    let clock = SystemTime::UNIX_EPOCH.elapsed().context("the clock is before 1970")?;
    let now = earlier.unwrap_or(clock.as_secs_f64());
    Ok(GivenRules { rules: rules.at(Moment::Seconds(now)), text, now: Some(now) })
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
