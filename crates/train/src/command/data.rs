//! From histories to examples and questions.

use std::sync::Arc;

use anyhow::{Context, anyhow, ensure};
use palmette_catalog::Catalog;
use palmette_recommend_eval::{
    ColdStart, Histories, HistoryFormat, HoldOut, Question, Skipped, Split, UserHistories,
    evenly_spread,
};

use super::run_args::RunArgs;

/// The histories that are trained on, their items found in the catalog.
///
/// # Errors
/// When they cannot be read, name an item that the catalog lacks, or are questions.
pub(crate) fn histories(args: &RunArgs, catalog: &Arc<Catalog>) -> anyhow::Result<UserHistories> {
    let path = &args.histories;
    let view = Arc::clone(catalog).into();
    let options = args.histories_args.options().map_err(|reason| anyhow!("--where: {reason}"))?;
    let format = options.format_of(path).unwrap_or(HistoryFormat::Json);
    let (histories, notes) = Histories::read_with(path, format, &options)?;
    for sentence in notes.sentences() {
        eprintln!("note: {}: {sentence}", path.display());
    }
    let histories = histories.bind(path, &view, args.unknown)?;
    let Skipped { items, histories: of, .. } = histories.skipped;
    if items > 0 {
        eprintln!(
            "note: {}: {items} items of {of} histories are not in the catalog and were left out",
            path.display()
        );
    }
    ensure!(
        !histories.are_questions,
        "{}: its rows are questions with their answers; train on a whole history a user",
        path.display()
    );
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

/// The semantic IDs of the items of each history that are trained on; of a history that has an item
/// of the cold start there, none.
pub(crate) fn training_histories(
    catalog: &Catalog,
    histories: &UserHistories,
    hold_out: HoldOut,
    cold: Option<&ColdStart>,
) -> Vec<Vec<Vec<u32>>> {
    let trained = histories.items.iter().map(|history| hold_out.training(history));
    let trained = trained.filter(|items| cold.is_none_or(|cold| cold.is_without(items)));
    trained.map(|items| items.iter().map(|&rank| catalog.codes(rank)).collect()).collect()
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
    let asked = histories.items.iter().filter_map(|history| Split::Validation.question(history));
    let is_without_cold = |question: &Question<'_>| {
        cold.is_none_or(|cold| cold.is_without(question.history) && !cold.contains(question.target))
    };
    evenly_spread(&asked.filter(is_without_cold).collect::<Vec<_>>(), most)
}
