//! Spread of the model's recommendations over the catalog, as `palmette eval` tells it.

use palmette_eval::{Evaluation, Exposure, Question};
use palmette_live::CatalogView;
use serde_json::{Map, Value, json};

/// Which items are recommended, and which are asked for.
pub(crate) struct Spread {
    at: Vec<SpreadAt>,
    /// The share of questions whose item no history has.
    new_asked: f64,
}

struct SpreadAt {
    k: usize,
    coverage: f64,
    gini: f64,
    /// The share of recommendations that no history has.
    new: f64,
}

impl Spread {
    /// `known` are the histories that the questions are asked after: an item that none of them has is new.
    pub(crate) fn of<'a>(
        evaluation: &Evaluation,
        view: &CatalogView,
        questions: &[Question<'_>],
        known: impl Iterator<Item = &'a [u64]>,
        ks: &[usize],
    ) -> Self {
        let mut is_known = vec![false; view.num_numbers() as usize];
        known.flatten().for_each(|&item| is_known[item as usize] = true);
        let is_new = |item: u64| !is_known[item as usize];
        let at = |&k: &usize| {
            let lists = evaluation.answers.iter().map(|answer| answer.items.as_slice());
            let exposure = Exposure::of(lists, k, view.num_items());
            SpreadAt {
                k,
                coverage: exposure.coverage(),
                gini: exposure.gini(),
                new: exposure.share(is_new),
            }
        };
        let new_asked = questions.iter().filter(|question| is_new(question.target)).count();
        Self {
            at: ks.iter().map(at).collect(),
            new_asked: new_asked as f64 / questions.len().max(1) as f64,
        }
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
                "first {}: {} of the catalog, Gini {:.3}, {} new items\n",
                at.k,
                percent(at.coverage),
                at.gini,
                percent(at.new)
            );
        }
        text + &format!(
            "new items, which no history has: {} of those asked for\n",
            percent(self.new_asked)
        )
    }
}
