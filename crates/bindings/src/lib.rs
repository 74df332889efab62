//! Bindings: catalogs, lexicons and lists by the names that grammars call them.
//!
//! Grammars and catalogs do not know each other: a grammar has slots, each with a name, a field and
//! perhaps a filter, and a catalog has fields as member sets. Here they meet, the same way for
//! every surface: [`Bindings`] are the sources of one request by name, [`Bindings::bind`] gives
//! each slot its set, and a [`BoundGrammar`] masks tokens and tells the members that a text has.
//!
//! ```
//! # use std::sync::Arc;
//! use palmette_bindings::Bindings;
//! # use palmette_catalog::{BuildOptions, Catalog, Item};
//! # use palmette_core::{Constraint, TokenId, Vocabulary};
//! # use palmette_grammar::frontends::gbnf;
//! # use palmette_grammar::{Budget, GrammarConstraint, PreparedVocabulary, Recognizer};
//! # use serde_json::json;
//! # let items = [("P1", 3), ("P2", 0), ("P3", 7)].map(|(id, stock)| {
//! #     let attributes = json!({"stock": stock}).as_object().unwrap().clone();
//! #     Item { id: id.into(), codes: vec![stock], attributes }
//! # });
//! # let catalog = Catalog::build(items.to_vec().into(), &BuildOptions::default())?;
//! # let vocabulary = Vocabulary::new(["P", "1", "2", "3", ","].map(Some).into_iter().chain([None]), [TokenId(5)])?;
//! # let vocabulary = Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)));
//! # let compile = |source: &str| {
//! #     let grammar = gbnf::parse(source, &Default::default()).unwrap();
//! #     let recognizer = Recognizer::new(Arc::new(grammar), &Default::default(), &mut Budget::unlimited());
//! #     GrammarConstraint::new(Arc::new(recognizer.unwrap()), Arc::clone(&vocabulary))
//! # };
//! let grammar = compile(r#"root ::= <catalog:shop> ("," <catalog:shop>)* "#); // it knows no item
//! let in_stock = Bindings::new()
//!     .catalog("shop", catalog)
//!     .filter("shop", r#"{"range": {"stock": {"gt": 0}}}"#)?;
//! let bound = in_stock.bind(&grammar)?;
//! let members = bound.members(b"P1,P3")?.expect("both are in stock");
//! assert_eq!(members[1].value, "P3");
//! assert_eq!((members[1].set.as_str(), members[1].span.clone()), ("shop", 3..5));
//! assert!(bound.members(b"P2")?.is_none());
//!
//! let error = Bindings::new().bind(&grammar).unwrap_err();
//! assert!(error.to_string().contains("names the catalog shop, which is not bound"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Scopes
//!
//! What was written of a set may bind what comes later: no item twice in a list, a few of a brand,
//! one item in a record. Such scopes are the grammar's; here they get the items.
//!
//! ```
//! # use std::sync::Arc;
//! # use palmette_bindings::Bindings;
//! # use palmette_catalog::{BuildOptions, Catalog, Item};
//! # use palmette_core::{TokenId, Vocabulary};
//! # use palmette_grammar::frontends::json_schema;
//! # use palmette_grammar::{Budget, GrammarConstraint, PreparedVocabulary, Recognizer};
//! # use serde_json::json;
//! # let items = [("P1", "Acme", "Mat"), ("P2", "Acme", "Tent"), ("P3", "Zeta", "Mat")];
//! # let items = items.map(|(id, brand, title)| {
//! #     let attributes = json!({"brand": brand, "title": title}).as_object().unwrap().clone();
//! #     Item { id: id.into(), codes: vec![0], attributes }
//! # });
//! # let catalog = Catalog::build(items.to_vec().into(), &BuildOptions::default())?;
//! # let vocabulary = Vocabulary::new(["[", "]", "P"].map(Some).into_iter().chain([None]), [TokenId(3)])?;
//! # let vocabulary = Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)));
//! # let compile = |schema: &str| {
//! #     let grammar = json_schema::parse(schema, &Default::default()).unwrap();
//! #     let recognizer = Recognizer::new(Arc::new(grammar), &Default::default(), &mut Budget::unlimited());
//! #     GrammarConstraint::new(Arc::new(recognizer.unwrap()), Arc::clone(&vocabulary))
//! # };
//! let grammar = compile(r#"{"type": "array", "minItems": 2, "maxItems": 5,
//!     "x-distinct": "shop", "x-at-most": [{"attribute": "brand", "items": 1}],
//!     "items": {"type": "object", "x-record": "shop", "required": ["sku", "title"], "properties": {
//!         "sku":   {"type": "string", "x-catalog": "shop.id"},
//!         "title": {"type": "string", "x-catalog": "shop.title"}}}}"#);
//! let bound = Bindings::new().catalog("shop", catalog).bind(&grammar)?;
//! let is_beginning = |text: &str| Ok::<_, Box<dyn std::error::Error>>(bound.members(text.as_bytes())?.is_some());
//! assert!(is_beginning(r#"[{"sku": "P1", "title": "Mat"}, {"title": "Mat", "sku": "P3"}]"#)?);
//! assert!(!is_beginning(r#"[{"sku": "P1", "title": "Tent"#)?);             // the title of another
//! assert!(!is_beginning(r#"[{"sku": "P1", "title": "Mat"}, {"sku": "P2"#)?); // the same brand
//! assert!(!is_beginning(r#"[{"sku": "P1", "title": "Mat"}, {"sku": "P3", "title": "Mat"},"#)?); // no third
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//! - A binding is pinned: what changes in a live catalog meanwhile is seen by the next one.
//! - The grammar is not compiled again, whatever is bound, unless a set is empty: then the
//!   alternatives that need it are left out, and each combination of empty sets is compiled once.
//! - Nothing that was given is ignored: a name that the grammar does not ask for is an error.
#![forbid(unsafe_code)]

mod bindings;
mod bound_grammar;
mod bound_sets;
mod code_tokens;
mod error;
mod item_scopes;
mod numbered_part;
mod place;
mod scope_sources;
mod set_source;

pub use bindings::Bindings;
pub use bound_grammar::{BoundGrammar, BoundSource};
pub use bound_sets::{BoundSet, BoundSets, Member, RankedItem};
pub use error::{BindingError, Shortage};
pub use palmette_catalog_members::CODES_FIELD;
pub use place::{MembersWithin, Place, PossibleMember, RefusedValue, written_value};
pub use set_source::SetSource;
