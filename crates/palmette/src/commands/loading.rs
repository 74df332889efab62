//! What several commands load and how they name it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use clap::Args;
use palmette_catalog::Catalog;
use palmette_model::Model;
use palmette_recommend::{PromptFormat, Recommender};
use serde_json::{Value, json};

/// A model and the catalog it may recommend from.
#[derive(Debug, Args)]
pub(crate) struct RecommenderArgs {
    /// Directory of the model: config.json, model.safetensors, semantic_ids.json
    #[arg(long, value_name = "DIR")]
    pub(crate) model: PathBuf,
    /// Catalog, made by `palmette catalog build`
    #[arg(long, value_name = "FILE")]
    pub(crate) catalog: PathBuf,
}

impl RecommenderArgs {
    pub(crate) fn load(&self) -> anyhow::Result<Recommender> {
        let catalog = Arc::new(Catalog::open(&self.catalog)?);
        let format = PromptFormat::read(&self.model)?;
        let model = Model::load(&self.model)?;
        Recommender::new(model, catalog, format)
            .with_context(|| format!("{} with {}", self.model.display(), self.catalog.display()))
    }
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

/// The ranks of items named on the command line, `12,7,99`; nothing for an empty text.
pub(crate) fn ranks(catalog: &Catalog, ids: &str) -> anyhow::Result<Vec<u32>> {
    if ids.trim().is_empty() {
        return Ok(Vec::new());
    }
    ids.split(',').map(|id| rank(catalog, id.trim())).collect()
}

/// The rank of one item.
pub(crate) fn rank(catalog: &Catalog, id: &str) -> anyhow::Result<u32> {
    ensure!(!id.is_empty(), "an item id is empty: separate ids by single commas, as in 12,7,99");
    if let Some(rank) = catalog.rank_of(id) {
        return Ok(rank);
    }
    let examples: Vec<&str> =
        (0..catalog.num_items().min(3)).map(|rank| catalog.id(rank)).collect();
    match examples.as_slice() {
        [] => bail!("item {id:?} is not in the catalog, which is empty"),
        _ => bail!(
            "item {id:?} is not in the catalog of {} items; its ids look like {}",
            catalog.num_items(),
            examples.join(", ")
        ),
    }
}

/// An item as programs read it.
pub(crate) fn item_json(catalog: &Catalog, rank: u32) -> Value {
    json!({
        "id": catalog.id(rank),
        "title": catalog.title(rank),
        "codes": catalog.codes(rank),
    })
}

/// An item with its score, as programs read it.
pub(crate) fn scored_item_json(catalog: &Catalog, rank: u32, score: f32) -> Value {
    json!({
        "id": catalog.id(rank),
        "title": catalog.title(rank),
        "score": score,
        "codes": catalog.codes(rank),
    })
}

/// A semantic ID as people read it: `<a_12><b_3>` where the source spelled it so, else `12-3`.
pub(crate) fn codes_text(catalog: &Catalog, codes: &[u32]) -> String {
    match catalog.level_prefixes() {
        Some(prefixes) if prefixes.len() >= codes.len() => {
            codes.iter().zip(prefixes).map(|(code, prefix)| format!("<{prefix}_{code}>")).collect()
        }
        _ => codes.iter().map(u32::to_string).collect::<Vec<_>>().join("-"),
    }
}

/// The title of an item, or its id where it has none.
pub(crate) fn name(catalog: &Catalog, rank: u32) -> String {
    catalog.title(rank).unwrap_or_else(|| format!("item {}", catalog.id(rank)))
}

/// At most `width` characters, the last one an ellipsis where more were cut.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text.chars().take(width - 1).chain(['…']).collect(),
    }
}

/// Makes a folder for a file that is to be written.
pub(crate) fn make_parent(path: &Path) -> anyhow::Result<()> {
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => std::fs::create_dir_all(parent)
            .with_context(|| format!("{}: cannot be made", parent.display())),
        None => Ok(()),
    }
}
