//! From histories to examples and questions.

use anyhow::{Context, anyhow, ensure};
use palmette_catalog::Catalog;
use palmette_catalog_live::CatalogView;
use palmette_recommend::Prompts;
use palmette_recommend_eval::{
    ColdStart, Histories, HistoryFormat, HoldOut, Question, Skipped, Split, UserHistories,
    evenly_spread,
};

use super::run_args::RunArgs;
use super::training_data::{TrainingData, TrainingHistory};

/// The histories that are trained on, their items found in the catalog, with the fields that the
/// model's prompts read.
///
/// # Errors
/// When they cannot be read, name an item that the catalog lacks, or are questions where those are
/// not trained on.
pub(crate) fn histories(
    args: &RunArgs,
    view: &CatalogView,
    prompts: &Prompts,
) -> anyhow::Result<UserHistories> {
    let path = &args.histories;
    let options = args.histories_args.options().map_err(|reason| anyhow!("--where: {reason}"))?;
    let format = options.format_of(path).unwrap_or(HistoryFormat::Json);
    let (histories, notes) = Histories::read_with(path, format, &options)?;
    for sentence in notes.sentences() {
        eprintln!("note: {}: {sentence}", path.display());
    }
    let mut histories = histories.bind(path, view, args.unknown)?;
    let Skipped { items, histories: of, .. } = histories.skipped;
    if items > 0 {
        eprintln!(
            "note: {}: {items} items of {of} histories are not in the catalog and were left out",
            path.display()
        );
    }
    if histories.are_questions {
        check_questions(args, prompts)?;
    }
    if let Some(sentence) = histories.drop_unread_fields(prompts) {
        eprintln!("note: {}: {sentence}", path.display());
    }
    Ok(histories)
}

/// The items that `--cold-start` holds out, if it is given.
///
/// # Errors
/// When the share holds out no item, or all.
pub(crate) fn cold_start(
    args: &RunArgs,
    catalog: &Catalog,
    histories: &UserHistories,
) -> anyhow::Result<Option<ColdStart>> {
    let Some(share) = args.cold_start else { return Ok(None) };
    ColdStart::newest(histories, catalog.num_items(), share)
        .with_context(|| format!("--cold-start with {}", args.histories.display()))
        .map(Some)
}

/// # Errors
/// When rows that are questions with their answers cannot be trained on.
fn check_questions(args: &RunArgs, prompts: &Prompts) -> anyhow::Result<()> {
    let path = args.histories.display();
    ensure!(
        !TrainingData::are_codes(prompts),
        "{path}: its rows are questions with their answers; train on a whole history a user"
    );
    ensure!(
        args.hold_out() == HoldOut::Nothing,
        "{path}: its rows are questions with their answers, of which none is held out; give the rows that are trained on, and \
         --hold-out nothing"
    );
    Ok(())
}

/// The part of each history that is trained on, as far as there is one; nothing of a history that
/// has an item of the cold start there.
pub(crate) fn training_histories<'a>(
    histories: &'a UserHistories,
    hold_out: HoldOut,
    cold: Option<&ColdStart>,
) -> Vec<TrainingHistory<'a>> {
    let is_question = histories.are_questions;
    let training = |(place, history): (usize, &'a Vec<u64>)| {
        let (items, fields) = (hold_out.training(history), histories.fields.get(place));
        TrainingHistory { items, fields, is_question }
    };
    let all = histories.items.iter().enumerate().map(training);
    let is_trained = |history: &TrainingHistory<'_>| {
        !history.items.is_empty() && cold.is_none_or(|cold| cold.is_without(history.items))
    };
    all.filter(is_trained).collect()
}

/// The validation questions of at most `most` users; none where their answers are trained on, nor
/// any with an item of the cold start.
pub(crate) fn validation_questions<'a>(
    histories: &'a UserHistories,
    hold_out: HoldOut,
    cold: Option<&ColdStart>,
    most: usize,
) -> Vec<Question<'a>> {
    if hold_out != HoldOut::Both {
        return Vec::new();
    }
    let asked = histories.questions(Split::Validation);
    let is_without_cold = |question: &Question<'_>| {
        cold.is_none_or(|cold| cold.is_without(question.history) && !cold.contains(question.target))
    };
    evenly_spread(&asked.filter(is_without_cold).collect::<Vec<_>>(), most)
}
