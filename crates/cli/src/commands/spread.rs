//! Spread of the model's recommendations over the catalog, as `palmette eval` tells it.

use palmette_catalog_live::CatalogView;
use palmette_recommend_eval::{Evaluation, Exposure, KnownHistories, Question};
use serde_json::{Map, Value, json};

/// Spread of the items that are recommended, and of those that are asked for.
pub(crate) struct Spread {
    at: Vec<SpreadAt>,
    /// The share of questions whose item no history has.
    new_asked: Option<f64>,
}

struct SpreadAt {
    k: usize,
    coverage: f64,
    gini: f64,
    /// The share of recommendations that no history has.
    new: Option<f64>,
}

impl Spread {
    /// An item is new where none of the `known` histories has it; to a question, none but what its
    /// own user did later. `None` where it is not known which histories those are.
    pub(crate) fn of(
        evaluation: &Evaluation,
        view: &CatalogView,
        questions: &[(Question<'_>, &[u64])],
        known: Option<&KnownHistories<'_>>,
        ks: &[usize],
    ) -> Self {
        let at = |&k: &usize| {
            let lists = evaluation.answers.iter().map(|answer| answer.items.as_slice());
            let exposure = Exposure::of(lists, k, view.num_items());
            SpreadAt {
                k,
                coverage: exposure.coverage(),
                gini: exposure.gini(),
                new: known.map(|known| exposure.share(|item| !known.has(item))),
            }
        };
        let new_asked = known.map(|known| {
            let is_new = |(question, own): &&(Question<'_>, &[u64])| {
                !known.has_elsewhere(question.target, own)
                    && !question.history.contains(&question.target)
            };
            questions.iter().filter(is_new).count() as f64 / questions.len().max(1) as f64
        });
        Self { at: ks.iter().map(at).collect(), new_asked }
    }

    pub(crate) fn document(&self) -> Value {
        let at = self.at.iter().flat_map(|at| {
            let k = at.k;
            [
                (format!("coverage@{k}"), json!(at.coverage)),
                (format!("gini@{k}"), json!(at.gini)),
                (format!("new_items@{k}"), json!(at.new)),
            ]
        });
        let mut document: Map<String, Value> = at.collect();
        document.insert("new_items_asked_for".to_owned(), json!(self.new_asked));
        document.into()
    }

    pub(crate) fn text(&self) -> String {
        let percent = |share: f64| format!("{:.2}%", 100.0 * share);
        let mut text = String::new();
        for at in &self.at {
            text += &format!(
                "first {}: {} of the catalog, Gini {:.3}",
                at.k,
                percent(at.coverage),
                at.gini
            );
            text += &at.new.map_or_else(String::new, |new| format!(", {} new items", percent(new)));
            text += "\n";
        }
        if let Some(new) = self.new_asked {
            text +=
                &format!("new items, which no history has: {} of those asked for\n", percent(new));
        }
        text
    }
}
