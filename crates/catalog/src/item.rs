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

/// An item without attributes, of its id and codes.
impl<I: Into<String>, C: Into<Vec<u32>>> From<(I, C)> for Item {
    fn from((id, codes): (I, C)) -> Self {
        Self { id: id.into(), codes: codes.into(), attributes: Map::new() }
    }
}

impl Item {
    /// The attribute `title`, if it is there and is text.
    pub fn title(&self) -> Option<&str> {
        self.attributes.get("title")?.as_str()
    }
}
