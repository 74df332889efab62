//! Judges: recommenders that are asked at validation.

use std::path::Path;
use std::sync::Arc;

use palmette_catalog::Catalog;
use palmette_model::Model;
use palmette_model::draft::DraftHead;
use palmette_recommend::{Mode, PromptFormat, Prompts, Recommender};
use palmette_recommend_eval::{ColdStart, EvalOptions, Question, UserHistories, evaluate};

use super::course::Validation;
use super::data;
use super::run_args::RunArgs;

const VALIDATION_K: usize = 10;

/// The questions of a run's validations, and what is needed to ask them.
pub(crate) struct Judge<'a> {
    catalog: Arc<Catalog>,
    prompts: Prompts,
    questions: Vec<Question<'a>>,
    /// Mode that asks the decoder or its draft head.
    mode: Mode,
    beam_width: usize,
    threads: usize,
}

impl<'a> Judge<'a> {
    /// Asks as `args` say, and nothing about the items of the cold start.
    pub(crate) fn new(
        args: &RunArgs,
        catalog: Arc<Catalog>,
        prompts: impl Into<Prompts>,
        histories: &'a UserHistories,
        cold: Option<&ColdStart>,
        mode: Mode,
    ) -> Self {
        let most = args.validation_users;
        let questions = data::validation_questions(histories, args.hold_out(), cold, most);
        let (beam_width, threads) = (args.validation_beam_width, args.threads());
        let prompts = prompts.into();
        Self { catalog, prompts, questions, mode, beam_width, threads }
    }

    /// The prompts of the model that is asked.
    pub(crate) fn format(&self) -> &PromptFormat {
        self.prompts.format()
    }

    /// True if a draft head is asked.
    pub(crate) fn asks_head(&self) -> bool {
        matches!(self.mode, Mode::Draft(_))
    }

    /// Asks the model in `dir` all questions; `None` where there are none.
    pub(crate) fn ask(&self, dir: &Path, epoch: u64) -> anyhow::Result<Option<Validation>> {
        if self.questions.is_empty() {
            return Ok(None);
        }
        let model = Model::load(dir)?;
        let head = match self.mode.verification() {
            None => None,
            Some(_) => Some(DraftHead::load(dir, &model, self.format().draft_shape()?)?),
        };
        let mut recommender =
            Recommender::new(model, Arc::clone(&self.catalog), self.prompts.clone())?;
        if let Some(head) = head {
            recommender = recommender.with_draft_head(head)?;
        }
        let (view, recommender) = (recommender.view()?, Arc::new(recommender));
        let options = EvalOptions {
            mode: self.mode,
            beam_width: self.beam_width,
            k: VALIDATION_K,
            include_seen: false,
            unconstrained: false,
            threads: self.threads,
        };
        let metrics = evaluate(&recommender, &view, &self.questions, &options, |_| {})?.metrics;
        let at = metrics.at(VALIDATION_K);
        let (hit_rate_at_10, ndcg_at_10) = (at.hit_rate, at.ndcg);
        Ok(Some(Validation { epoch, users: metrics.questions(), hit_rate_at_10, ndcg_at_10 }))
    }
}
