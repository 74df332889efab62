//! The reason why fewer items were found than were asked for.

use std::collections::HashSet;
use std::fmt;

use palmette_recommend::{CheckedQuestion, HistoryItem, Mode, Recommendations, Verification};
use serde::Serialize;

use crate::output::grouped;

/// An answer of fewer items than were asked for.
#[derive(Debug, Serialize)]
pub(super) struct Fewer {
    asked: usize,
    found: usize,
    /// Items that match the filter, or all of the catalog.
    matching: u64,
    /// Items of these that the history has, where they are not recommended again.
    seen: u64,
    reason: String,
}

impl Fewer {
    /// `None` where as many were found as were asked for.
    pub(super) fn of(asked: &CheckedQuestion, answer: &Recommendations) -> Option<Self> {
        let (found, k) = (answer.items.len(), asked.question().k);
        if found >= k {
            return None;
        }
        let view = asked.view().view();
        let all = asked.items().cloned().unwrap_or_else(|| view.all_items());
        let matching = all.len();
        let seen: HashSet<u64> = match asked.question().exclude_seen {
            false => HashSet::new(),
            true => asked
                .history()
                .iter()
                .flat_map(|item| match item {
                    HistoryItem::Number(number) => vec![*number],
                    HistoryItem::Codes(codes) => view.find_codes(codes),
                    HistoryItem::Departed { .. } => Vec::new(),
                })
                .collect(),
        };
        let left = view.without(&all, seen).len();
        let seen = matching - left;
        let mut reason = match (asked.items(), matching) {
            (None, _) => format!("the catalog has {}", grouped(matching)),
            (Some(_), 1) => "1 matches the filter".to_owned(),
            (Some(_), _) => format!("{} match the filter", grouped(matching)),
        };
        if seen > 0 {
            let (these, them) = if seen == 1 { ("1 is", "it") } else { ("are", "them") };
            let these =
                if seen == 1 { these.to_owned() } else { format!("{} {these}", grouped(seen)) };
            reason += &format!(
                ", of which {these} in the history (--include-seen recommends {them} too)"
            );
        }
        let others = left.saturating_sub(answer.eligible);
        if others > 0 {
            reason += &format!(", and {} more are excluded or not valid now", grouped(others));
        }
        if answer.eligible.min(k as u64) > found as u64 && asked.rules().is_some() {
            reason += "; rules hold the others back";
        }
        if left > found as u64
            && let Mode::Draft(Verification::Keys | Verification::None) = answer.mode
        {
            reason += "; a free search may lose items on the way, --verify masks does not";
        }
        Some(Self { asked: k, found, matching, seen, reason })
    }
}

impl fmt::Display for Fewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "only {} items may be recommended: {}", self.found, self.reason)
    }
}
