//! Bodies about the items of a catalog.

use palmette_catalog_live::Applied;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::GenerationName;
use super::filter::Condition;

/// An item.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ItemEntry {
    /// Id of it.
    #[schema(example = "P0001")]
    pub id: String,
    /// Semantic ID of it.
    #[schema(example = json!([0, 5, 16, 2]))]
    pub codes: Vec<u32>,
    /// Attributes of it, or those that were asked for.
    #[schema(value_type = Object, example = json!({"title": "Desk lamp", "price": 44.9}))]
    pub attributes: Map<String, Value>,
}

/// Changes of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct ItemsApplied {
    /// The generation that the batch made: what is read from it on has all of the batch.
    pub generation: u64,
    /// Items inserted or replaced.
    pub upserted: u64,
    /// Patches that changed an item.
    pub patched: u64,
    /// Patches that changed nothing.
    pub unchanged: u64,
    /// Deletes that removed an item.
    pub deleted: u64,
    /// Deletes of ids that no item had.
    pub unknown_deletes: u64,
}

impl From<Applied> for ItemsApplied {
    fn from(applied: Applied) -> Self {
        let Applied { generation, upserted, patched, unchanged, deleted, unknown_deletes } =
            applied;
        Self { generation, upserted, patched, unchanged, deleted, unknown_deletes }
    }
}

/// A page of items.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ItemQuery {
    /// Items to list: a filter; all without it.
    #[schema(value_type = Option<Condition>, example = json!({"must": [{"range": {"price": {"lt": 60}}}]}))]
    pub filter: Option<Box<RawValue>>,
    /// Words of which an item must have all, in any case and as parts of words, in its id or its
    /// text attributes `title` and `name`. A page looks at 50,000 items at most, so it may have few
    /// or none and a cursor; it has no `count`.
    #[schema(example = "red tent")]
    pub words: Option<String>,
    /// Items of the page.
    #[serde(default = "hundred")]
    #[schema(minimum = 1, maximum = 1000, default = 100)]
    pub limit: usize,
    /// The page after the one that was answered with this.
    pub cursor: Option<String>,
    /// Attributes to answer with; all without it.
    pub fields: Option<Vec<String>>,
    /// Answer with the number of items that match, too.
    #[serde(default)]
    pub count: bool,
    /// The generation to list: the newest, or one that is kept, by number or name. A cursor has it.
    pub generation: Option<GenerationName>,
}

fn hundred() -> usize {
    100
}

/// Items in catalog order: by codes; those that share them in the order in which they came.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ItemPage {
    /// The generation; null where the catalog is frozen.
    pub generation: Option<u64>,
    /// The items.
    pub items: Vec<ItemEntry>,
    /// The cursor of the next page; null after the last item.
    pub cursor: Option<String>,
    /// Items that match in all, exactly, where `count` asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}
