//! Fields of a catalog's items as member sets: ids and attributes that a grammar may name.
//!
//! A grammar leaves a set of texts open and names it; a catalog has the texts. [`CatalogFields`]
//! joins the two for one request: of a view of a catalog, frozen or live, it gives the values of a
//! field that the items matching a filter have, as a [`FieldSet`]. It is a
//! [`MemberSet`](palmette_core::MemberSet), pinned to the view: what is updated meanwhile is seen
//! by the next view.
//!
//! | field | its members |
//! |---|---|
//! | `id` | ids of the items |
//! | an attribute of text | the texts |
//! | of lists of text | the words of the lists |
//! | of numbers, booleans, times | what JSON writes for them, without quotes |
//! | of JSON | texts, numbers and booleans likewise, and lists of texts; objects are an error |
//!
//! A value is a member while one of the items has it. The empty text is none.
//!
//! The field `codes` is no text: its members are semantic IDs in a model's own tokens, by number,
//! so [`CatalogFields::codes`] is given these and makes a [`CodeSet`]. Masks then ask the index
//! which codes may follow, as recommending does.
//!
//! ```
//! use palmette_catalog::{BuildOptions, Catalog, Filter, Item};
//! use palmette_catalog_members::CatalogFields;
//! use palmette_core::{MemberSet, MemberSpelling};
//! use serde_json::json;
//!
//! let items = [("P1", "Acme", 3), ("P2", "Zeta", 0), ("P3", "Acme", 7)].map(|(id, brand, stock)| {
//!     let attributes = json!({"brand": brand, "stock": stock}).as_object().unwrap().clone();
//!     Item { id: id.into(), codes: vec![0, stock], attributes }
//! });
//! let catalog = Catalog::build(items.to_vec().into(), &BuildOptions::default())?;
//! let fields = CatalogFields::new(catalog.into());
//!
//! let in_stock = Filter::parse(r#"{"range": {"stock": {"gt": 0}}}"#)?;
//! let brands = fields.set("brand", Some(&in_stock), MemberSpelling::Raw)?;
//! assert_eq!((brands.num_items(), brands.len()), (2, 1));
//! assert!(brands.find("Acme").is_some() && brands.find("Zeta").is_none());
//!
//! let ids = fields.set("id", None, MemberSpelling::JsonString)?;
//! let member = ids.find("P2").expect("an item");
//! assert_eq!(ids.item(member), fields.view().unwrap().find("P2"));
//! assert_eq!(
//!     fields.set("brnad", None, MemberSpelling::Raw).unwrap_err().to_string(),
//!     r#"field "brnad" is not there; the nearest is "brand""#,
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The order of things: `field_index` makes the lexicon of one field of one frozen catalog, and
//! tells items from values; `segment_fields` keeps these, and the values of filters, with the
//! catalog; `fields` asks every segment of a view; `set` is the union.
//!
//! # Cost
//!
//! The lexicon of a field is made at first use and kept with its catalog or segment, for all
//! requests: one pass over the distinct values, which are sorted already for texts, and a sort for
//! ids. The values of a filter's items are one pass over the items, and kept as long as the
//! filter's items are. Both count in [`CatalogFields::bytes`].
#![forbid(unsafe_code)]

mod code_set;
mod error;
mod field_index;
mod fields;
mod items;
mod number_path;
mod segment_fields;
mod set;

pub use code_set::CodeSet;
pub use error::FieldError;
pub use fields::{CODES_FIELD, CatalogFields, ID_FIELD};
pub use items::{FieldItems, ItemGroups};
pub use set::FieldSet;
