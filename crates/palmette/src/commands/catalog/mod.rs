//! `palmette catalog`: build, inspect, filter, plan, live.

mod build;
mod filter;
mod inspect;
mod live;
mod plan;
mod stats;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum CatalogCommand {
    /// Build a catalog from a file of items
    ///
    /// Formats, told by the file's name, its first bytes or --format:
    ///   index-json  .json     {"0": ["<a_183>", "<b_7>"], …} or {"0": [183, 7], …}
    ///   info-text   .txt      <a_183><b_7> TAB title TAB id
    ///   jsonl       .jsonl    {"item_id": "P1", "codes": [183, 7], "title": …, more attributes}
    ///   csv         .csv      a header with item_id and codes, or code_0, code_1, …; more columns
    ///   parquet     .parquet  the columns of csv; codes may be a list
    ///   arrow       .arrow    the same, as an Arrow IPC file or stream
    ///
    /// Items may come in any order, semantic IDs may differ in length, and several items may share
    /// one. A bad line is an error that names it; nothing is dropped. One item is in memory at a time
    /// beside what is kept: `palmette catalog plan` says how much that is.
    #[command(verbatim_doc_comment)]
    Build(build::BuildArgs),
    /// Show what is in a catalog: its levels and attributes, an item, or what follows a prefix
    Inspect(inspect::InspectArgs),
    /// Count and list the items that match a filter
    ///
    /// A filter is a JSON object with any of must, should, must_not (conditions) and exclude (ids):
    ///   {"must": [{"match": {"brand": "Acme"}}, {"range": {"price": {"gte": 10, "lt": 20}}}],
    ///    "should": [{"match": {"color": ["red", "blue"]}}, {"exists": "discount"}],
    ///    "must_not": {"ids": ["P0007"]},
    ///    "exclude": ["P0001", "P0002"]}
    /// All of must, at least one of should, none of must_not. Conditions may be such objects
    /// themselves. The spellings of Elasticsearch (term, terms) and Qdrant (key, has_id) are taken too.
    #[command(verbatim_doc_comment)]
    Filter(filter::FilterArgs),
    /// Work out how many bytes a catalog will take, before there is one
    Plan(plan::PlanArgs),
    /// Catalogs that change: insert, replace and delete items without a rebuild, and lose none in a crash
    #[command(subcommand)]
    Live(live::LiveCommand),
}

pub(crate) fn run(command: &CatalogCommand) -> anyhow::Result<()> {
    match command {
        CatalogCommand::Build(args) => build::build(args),
        CatalogCommand::Inspect(args) => inspect::inspect(args),
        CatalogCommand::Filter(args) => filter::run(args),
        CatalogCommand::Plan(args) => plan::run(args),
        CatalogCommand::Live(command) => live::run(command),
    }
}
