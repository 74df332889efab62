//! Options of reading a structural tag.

use crate::json_schema::JsonSchemaOptions;

/// Options under which a structural tag is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StructuralTagOptions {
    /// The options of its schemas.
    pub json_schema: JsonSchemaOptions,
}
