//! `palmette catalog`: build, inspect, filter, verify, plan, live.

mod build;
mod conflict;
mod filter;
mod inspect;
mod live;
mod plan;
mod sources;
mod stats;
mod verify;

use clap::Subcommand;

#[cfg(feature = "tables")]
pub(crate) use sources::with_way_out;

/// One command after the other, for those who come here first.
pub(crate) const AFTER_HELP: &str = "\
A catalog is a file with every item that may be recommended: its semantic ID (a few codes, one a
level), its id and its attributes.

  palmette demo --export shop                                   files to try it on
  palmette catalog plan --items 4034 --levels 4 --vocab 64      what it will take
  palmette catalog build shop/items.jsonl --out shop.palm
  palmette catalog inspect shop.palm                            levels and attributes
  palmette catalog inspect shop.palm --item P0001
  palmette catalog filter shop.palm '{\"must\": {\"range\": {\"price\": {\"lt\": 20}}}}'";

#[derive(Debug, Subcommand)]
pub(crate) enum CatalogCommand {
    /// Build a catalog from a file of items
    ///
    /// Formats, told by each file's name, its first bytes or --format:
    ///   index-json    .json     {"0": ["<a_183>", "<b_7>"], …} or {"0": [183, 7], …}
    ///   inverse-json            {"183-7": ["0", "1"], …}: semantic IDs to items
    ///   info-text     .txt      <a_183><b_7> TAB title TAB id
    ///   jsonl         .jsonl    {"item_id": "P1", "codes": [183, 7], "title": …, more attributes}
    ///                 .json     the same, or a list of such objects
    ///   csv, tsv      .csv .tsv a header with item_id and codes, or code_0, …; more columns
    ///   npy           .npy      an array (items, levels); ids are the numbers of its rows
    ///   parquet       .parquet  the columns of csv; codes may be a list
    ///   arrow         .arrow    the same, as an Arrow IPC file or stream (Feather)
    ///
    /// More keys and columns are attributes, to be shown and filtered on. Codes as text are
    /// <a_183><b_7>, 183 7, 183-7, 183,7 or [183, 7]. Items may come in any order and from several
    /// files, semantic IDs may differ in length, and several items may share one. A bad line is an
    /// error that names it; nothing is dropped. One item is in memory at a time beside what is
    /// kept: `palmette catalog plan` says how much that is.
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
    /// An item matches when all of must hold, at least one of should, where there is any, and none
    /// of must_not, and its id is not in exclude. {} matches every item.
    ///
    /// Conditions:
    ///   {"match": {"brand": "Acme"}}                 the attribute is this text, number or boolean
    ///   {"match": {"brand": ["Acme", "Zeta"]}}       it is any of these
    ///   {"range": {"price": {"gte": 10, "lt": 20}}}  it lies between gt or gte, and lt or lte
    ///   {"ids": ["P1", "P2"]}                        the item's id is one of these
    ///   {"match": {"brand": {"except": ["Acme"]}}}   it is there and none of these
    ///   {"exists": "brand"}                          the item has a value there, other than []
    ///   {"is_empty": {"key": "brand"}}               it has none, or []
    ///   {"key": "tags", "values_count": {"gte": 2}}  so many elements are in the list
    ///   {"nested": {"key": "variants", "filter": …}} an object there matches the filter
    ///   {"should": […]} and the like                 the filter within the filter matches
    /// A list is asked of its elements; variants.color is a field within an attribute. A missing
    /// attribute matches nothing. Elasticsearch's queries (bool, term, terms, nested, …) and
    /// Qdrant's conditions (key, has_id, min_should, …) are taken too and mean what they mean
    /// there.
    #[command(verbatim_doc_comment)]
    Filter(filter::FilterArgs),
    /// Read every file of a catalog, or of a live one with its kept generations, and check all of
    /// it
    ///
    /// Names each damaged file and the block, and ends with status 1 where there is any.
    Verify(verify::VerifyArgs),
    /// Work out how many bytes a catalog will take, before there is one
    ///
    /// Index, ids and attributes, the peak of the build, and each level of the index; from numbers
    /// alone, in no time.
    Plan(plan::PlanArgs),
    /// Catalogs that change: insert, replace and delete items without a rebuild, and lose none in a
    /// crash
    #[command(subcommand)]
    Live(live::LiveCommand),
}

pub(crate) fn run(command: &CatalogCommand) -> anyhow::Result<()> {
    match command {
        CatalogCommand::Build(args) => build::build(args),
        CatalogCommand::Inspect(args) => inspect::inspect(args),
        CatalogCommand::Filter(args) => filter::run(args),
        CatalogCommand::Verify(args) => verify::run(args),
        CatalogCommand::Plan(args) => plan::run(args),
        CatalogCommand::Live(command) => live::run(command),
    }
}
