//! Loading for several commands: a model with its catalog, and the items a user names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail, ensure};
use clap::{Args, ValueEnum};
use palmette_catalog::{Catalog, Filter};
use palmette_catalog_live::{CatalogSource, CatalogView, LiveReader, ReaderOptions, Snapshot};
use palmette_model::draft::DraftHead;
use palmette_model::{LoadError, WeightFormat};
use palmette_recommend::{Mode, NamedItem, PromptFields, Prompts, RecommendError, Recommender};

use super::devices;
use crate::output::{grouped, visible};

/// A model and the catalog it may recommend from.
#[derive(Clone, Debug, Args)]
pub(crate) struct RecommenderArgs {
    /// Directory of the model: config.json, model.safetensors, semantic_ids.json, or
    /// prompt_template.json with tokenizer.json
    #[arg(long, value_name = "DIR")]
    pub(crate) model: PathBuf,
    /// Catalog, made by `palmette catalog build`, or directory of a live one
    #[arg(long, value_name = "FILE")]
    pub(crate) catalog: PathBuf,
    #[command(flatten)]
    pub(crate) view: ViewArgs,
    /// Serve the catalog although its semantic IDs are not those that the model was trained on
    #[arg(long)]
    pub(crate) force_ids: bool,
    /// Form in which the model's weights are kept
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = WeightsArg::F32)]
    pub(crate) weights: WeightsArg,
    /// Items by which the window of a longer history moves, instead of what the model's files say:
    /// prompts of a user then begin alike for as many events, so that they can be kept
    #[arg(long, value_name = "N")]
    pub(crate) history_step: Option<usize>,
    #[command(flatten)]
    pub(crate) device: devices::DeviceArgs,
    #[command(flatten)]
    pub(crate) prompt_cache: devices::PromptCacheArgs,
}

/// The moment of a live catalog that a command reads.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ViewArgs {
    /// A kept generation of a live catalog, by number or name, instead of the newest
    #[arg(long, value_name = "N|NAME")]
    pub(crate) generation: Option<String>,
    /// Go on without the segments of a live catalog whose files are damaged; each is named
    #[arg(long)]
    pub(crate) degraded: bool,
}

/// Format in which a model's weights are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WeightsArg {
    /// The stored values, computing in f32; bfloat16 stays bfloat16; on a device as bf16
    F32,
    /// Rounded to bfloat16, computing in f32: half the memory of f32
    Bf16,
    /// Layers rounded to 8 bits: a quarter of their memory, and faster; on processors with AVX2,
    /// AVX-512 VNNI or the dot products of ARM, and on devices
    Int8,
    /// Weights of int8, and attention's products in bfloat16, by AMX; on a device as int8
    Int8Bf16,
}

impl WeightsArg {
    /// The format, wherever it is computed with.
    pub(crate) fn name(self) -> WeightFormat {
        match self {
            Self::F32 => WeightFormat::F32,
            Self::Bf16 => WeightFormat::Bf16,
            Self::Int8 => WeightFormat::Int8,
            Self::Int8Bf16 => WeightFormat::Int8Bf16,
        }
    }

    /// True where the layers' weights become integers.
    pub(crate) fn rounds_to_int8(self) -> bool {
        matches!(self, Self::Int8 | Self::Int8Bf16)
    }

    /// The format, where this processor computes with it.
    pub(crate) fn format(self) -> anyhow::Result<WeightFormat> {
        let format = self.name();
        format.check_here().context("--weights")?;
        Ok(format)
    }
}

impl RecommenderArgs {
    /// With the model's draft head where the mode asks for one.
    pub(crate) fn load(&self, mode: Mode) -> anyhow::Result<Recommender> {
        self.load_over(open_source(&self.catalog, &self.view)?, mode, self.weights)
    }

    /// Loads as [`load`](Self::load) does, over an open catalog and with weights in this format.
    pub(crate) fn load_over(
        &self,
        catalog: CatalogSource,
        mode: Mode,
        weights: WeightsArg,
    ) -> anyhow::Result<Recommender> {
        let mut prompts = Prompts::read(&self.model, Some(&catalog.view()))?;
        if self.force_ids {
            prompts = prompts.without_witnesses();
        }
        if let Some(step) = self.history_step {
            prompts = prompts
                .with_history_step(step)
                .map_err(|error| anyhow!("--history-step: {error}"))?;
        }
        // Each thread of the machine may have a request.
        let requests = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let device = self.device.choice(requests)?.with_prompt_cache(self.prompt_cache)?;
        let drafts = mode.verification().is_some();
        let engine = device.load(&self.model, &prompts, weights, drafts)?;
        let head = match engine.model() {
            Some(model) if drafts => {
                let shape = prompts.format().draft_shape()?;
                Some(DraftHead::load(&self.model, &model, shape).map_err(with_training)?)
            }
            _ => None,
        };
        let both = || format!("{} with {}", self.model.display(), self.catalog.display());
        let recommender = Recommender::new(engine, catalog, prompts);
        let recommender = recommender.map_err(with_way_out).with_context(both)?;
        if let Err(other) = recommender.format().check_shop(recommender.view()?.view()) {
            eprintln!("note: {}: {other} (--force-ids says that it is meant so)", both());
        }
        Ok(match head {
            Some(head) => recommender.with_draft_head(head).with_context(both)?,
            None => recommender,
        })
    }
}

/// Names the program that makes a draft head, where there is none.
pub(crate) fn with_training(error: LoadError) -> anyhow::Error {
    match error.is_io() {
        true => anyhow!("`palmette-train draft` trains draft heads: {error}"),
        false => error.into(),
    }
}

/// Names the option that overrides an error, where there is one.
fn with_way_out(error: RecommendError) -> anyhow::Error {
    match error {
        RecommendError::OtherIds { .. } => {
            anyhow!("{error}; --force-ids serves these all the same")
        }
        other => other.into(),
    }
}

/// Sets the beam widths of `--widths`, if it was given.
pub(crate) fn with_widths(
    recommender: Recommender,
    widths: Option<&[usize]>,
) -> anyhow::Result<Recommender> {
    let Some(widths) = widths else { return Ok(recommender) };
    let text = || widths.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    recommender.with_widths(widths.to_vec()).with_context(|| format!("--widths {}", text()))
}

/// Opens a catalog file, or the directory of a live one, which other processes may be writing and
/// reading.
pub(crate) fn open_source(path: &Path, view: &ViewArgs) -> anyhow::Result<CatalogSource> {
    if !path.is_dir() {
        ensure!(
            view.generation.is_none(),
            "--generation is for the directory of a live catalog; {} is a file",
            path.display()
        );
        return Ok(Catalog::open(path)?.into());
    }
    Ok(open_snapshot(path, view)?.into())
}

/// One generation in the directory of a live catalog, which other processes may be writing and
/// reading.
pub(crate) fn open_snapshot(path: &Path, view: &ViewArgs) -> anyhow::Result<Arc<Snapshot>> {
    // Commands answer for one moment.
    let options = ReaderOptions { poll: None, degraded: view.degraded, ..ReaderOptions::default() };
    let reader = LiveReader::open_with(path, options)?;
    let snapshot = match &view.generation {
        Some(name) => reader.generation(name)?,
        None => reader.snapshot(),
    };
    for damaged in snapshot.damaged() {
        let num_items = grouped(damaged.num_items);
        eprintln!("warning: {num_items} items are left out: {}", visible(&damaged.problem));
    }
    Ok(snapshot)
}

/// [`open_source`], as a view.
pub(crate) fn open_view(path: &Path, view: &ViewArgs) -> anyhow::Result<CatalogView> {
    Ok(open_source(path, view)?.view())
}

/// Makes rayon's workers as many as asked for, one per core by default; returns how many.
pub(crate) fn set_threads(threads: Option<usize>) -> anyhow::Result<usize> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = threads.unwrap_or(cores);
    ensure!((1..=1024).contains(&threads), "--threads is {threads}; it must be from 1 to 1024");
    // Only the first call in a process can set it, and every command calls this once.
    let _ = rayon_pool(threads);
    Ok(threads)
}

fn rayon_pool(threads: usize) -> Result<(), rayon::ThreadPoolBuildError> {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()
}

/// The items named on the command line: `12,7,99`, or `["12", "a,b", [3, 1, 7]]` as JSON where an
/// id holds commas or blanks at its ends; none for an empty text.
pub(crate) fn named_items(text: &str) -> anyhow::Result<Vec<NamedItem>> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let items: Vec<NamedItem> = match text.starts_with('[') {
        true => serde_json::from_str(text).context(
            "items that begin with [ are read as a JSON list, such as [\"12\", \"a,b\"]",
        )?,
        false => text.split(',').map(|id| id.trim().into()).collect(),
    };
    let is_empty = |item: &NamedItem| matches!(item, NamedItem::Id(id) if id.is_empty());
    ensure!(
        !items.iter().any(is_empty),
        "an item id is empty: separate ids by single commas, as in 12,7,99"
    );
    Ok(items)
}

/// Fields of a request for the places that a model's prompts have for them.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct FieldArgs {
    /// Query of the user, where the model's prompts have a place for it; a row of histories with a
    /// query of its own keeps that
    #[arg(long, value_name = "TEXT", help_heading = "Prompts")]
    pub(crate) query: Option<String>,
    /// Fields of the user as a JSON object, where the model's prompts have places for them; a row
    /// of histories keeps those of its own, and has the others from here
    #[arg(long, value_name = "JSON", help_heading = "Prompts")]
    pub(crate) user: Option<String>,
}

impl FieldArgs {
    pub(crate) fn fields(&self) -> anyhow::Result<PromptFields> {
        let user = self.user.as_deref().map(serde_json::from_str).transpose();
        let user = user.context("--user is a JSON object, such as '{\"age\": 31}'")?;
        Ok(PromptFields { query: self.query.clone(), user: user.unwrap_or_default() })
    }
}

/// A filter and its text.
pub(crate) struct GivenFilter {
    pub(crate) filter: Filter,
    pub(crate) text: String,
}

/// A filter as JSON, or as `@FILE`, with its text.
pub(crate) fn filter_text(text: &str) -> anyhow::Result<GivenFilter> {
    // Messages say themselves that they are about a filter, or where in one.
    let Some(path) = text.strip_prefix('@') else {
        return Ok(GivenFilter { filter: Filter::parse(text)?, text: text.to_owned() });
    };
    ensure!(!path.is_empty(), "a filter's @ is followed by the name of a file, as in @filter.json");
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{path}: the filter cannot be read"))?;
    let text = text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned);
    let filter = Filter::parse(&text).with_context(|| path.to_owned())?;
    Ok(GivenFilter { filter, text })
}

/// A filter as JSON, or as `@FILE`.
pub(crate) fn filter(text: &str) -> anyhow::Result<Filter> {
    Ok(filter_text(text)?.filter)
}

/// The number of one item; in a frozen catalog it is its rank.
pub(crate) fn number(view: &CatalogView, id: &str) -> anyhow::Result<u64> {
    ensure!(!id.is_empty(), "an item id is empty: separate ids by single commas, as in 12,7,99");
    if let Some(number) = view.find(id) {
        return Ok(number);
    }
    let examples: Vec<String> =
        view.numbers().take(3).map(|number| visible(view.id(number))).collect();
    match examples.as_slice() {
        [] => bail!("item {id:?} is not in the catalog, which is empty"),
        _ => bail!(
            "item {id:?} is not in the catalog of {} items; its ids look like {}",
            grouped(view.num_items()),
            examples.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use palmette_recommend::NamedItem;

    use super::named_items;

    #[track_caller]
    fn check(text: &str, expected: Option<&[&str]>) {
        let items = named_items(text).ok();
        let expected =
            expected.map(|ids| ids.iter().map(|&id| id.into()).collect::<Vec<NamedItem>>());
        assert_eq!(items, expected, "{text:?}");
    }

    #[test]
    fn items_on_the_command_line() {
        check(" ", Some(&[]));
        check("12, 7,99 ", Some(&["12", "7", "99"]));
        check("12,,7", None);
        check("[]", Some(&[]));
        check(r#" ["a,b", " c", 7, "[x]"]"#, Some(&["a,b", " c", "7", "[x]"]));
        for bad in ["[12", "[x]", "[1.5]", "[null]", r#"["a"] b"#, "[[]]"] {
            check(bad, None);
        }
        assert_eq!(named_items("[[3, 1]]").unwrap(), [NamedItem::Codes(vec![3, 1])]);
    }
}
