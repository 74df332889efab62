//! Items: what a catalog holds.

use serde_json::{Map, Value};

/// One thing that can be recommended.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The name the outside world knows the item by; not empty, and distinct within one source.
    pub id: String,
    /// The semantic ID, one code a level. Distinct items may share one: a collision.
    pub codes: Vec<u32>,
    /// Title, price, brand and whatever else the source says, in the source's order.
    pub attributes: Map<String, Value>,
}

impl Item {
    /// The attribute `title`, if it is there and is text.
    pub fn title(&self) -> Option<&str> {
        self.attributes.get("title")?.as_str()
    }
}
