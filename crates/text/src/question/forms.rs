//! Members that name the form of an answer.

use std::collections::BTreeMap;

use palmette_document::RawJson;
use palmette_grammar::frontends::json_schema::{Separators, Whitespace};
use serde::Deserialize;

use crate::item_search::ItemSearch;
use crate::sources::JsonForm;

/// Form of the JSON in answers and calls; the server, or the command, has a default of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct JsonFormMembers {
    /// Objects with `properties` have no other members, unless their schema says what others may
    /// be: `true` unless the server says otherwise.
    pub closed_objects: Option<bool>,
    /// Order of an object's members: `schema` unless the server says otherwise.
    pub order: Option<MemberOrder>,
    /// Whitespace between the tokens of the JSON text: `bounded` unless the server says otherwise.
    pub whitespace: Option<JsonWhitespace>,
}

impl JsonFormMembers {
    /// The form, with what is not said as `default` has it.
    pub fn or(self, default: JsonForm) -> JsonForm {
        JsonForm {
            closed_objects: self.closed_objects.unwrap_or(default.closed_objects),
            in_order: self.order.map_or(default.in_order, |order| order == MemberOrder::Schema),
            whitespace: self.whitespace.map_or(default.whitespace, Whitespace::from),
        }
    }
}

/// Order of an object's members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemberOrder {
    /// That of the schema's `properties`.
    Schema,
    /// Any.
    Any,
}

/// Whitespace between the tokens of a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum JsonWhitespace {
    /// A blank, or a line break with an indent.
    Bounded,
    /// Any.
    Flexible,
    /// None.
    Compact,
    /// A blank after each comma and colon.
    Spaced,
    /// The comma and the colon with blanks around them, as `json.dumps` takes them: `[", ", ": "]`.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<String>))]
    Separators(Separators),
}

impl From<JsonWhitespace> for Whitespace {
    fn from(given: JsonWhitespace) -> Self {
        match given {
            JsonWhitespace::Bounded => Self::Bounded,
            JsonWhitespace::Flexible => Self::Flexible,
            JsonWhitespace::Compact => Self::Compact,
            JsonWhitespace::Spaced => Self::Spaced,
            JsonWhitespace::Separators(separators) => Self::Separators(separators),
        }
    }
}

/// vLLM's constraints, of which one is given.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StructuredOutputs {
    /// A JSON Schema that the answer fits.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Value>))]
    pub json: Option<RawJson>,
    /// A regular expression that the answer matches.
    pub regex: Option<String>,
    /// Texts of which the answer is one.
    pub choice: Option<Vec<String>>,
    /// A grammar of the answer: Lark, or GBNF where a rule has `::=`.
    pub grammar: Option<String>,
    /// Any JSON object.
    pub json_object: Option<bool>,
    /// A structural tag.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Value>))]
    pub structural_tag: Option<RawJson>,
    /// Schemas that the one in `json` refers to, by their URIs: nothing is downloaded.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub resources: Option<BTreeMap<String, RawJson>>,
    /// No whitespace between the tokens of JSON.
    pub disable_any_whitespace: Option<bool>,
    /// Objects with `properties` have no other members, as they have none here anyway.
    pub disable_additional_properties: Option<bool>,
    /// Not looked at: there is one engine of grammars.
    pub disable_fallback: Option<bool>,
    /// `null`: whitespace by a pattern is not computed.
    pub whitespace_pattern: Option<String>,
}

/// Search of the items that an answer must have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ItemSearchMembers {
    /// Beginnings of items that are kept side by side.
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 1024, default = 64))]
    pub beam_width: Option<usize>,
    /// Items that are told beside each that is written, fewer than the width.
    #[cfg_attr(feature = "schema", schema(minimum = 0, default = 0))]
    pub alternatives: Option<usize>,
}

impl From<ItemSearchMembers> for ItemSearch {
    fn from(given: ItemSearchMembers) -> Self {
        let default = Self::default();
        let ItemSearchMembers { beam_width, alternatives } = given;
        Self {
            beam_width: beam_width.unwrap_or(default.beam_width),
            alternatives: alternatives.unwrap_or(default.alternatives),
        }
    }
}
