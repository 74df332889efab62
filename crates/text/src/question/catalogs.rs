//! Sets that a question gives to the names of its grammar: catalogs, values, documents.

use palmette_catalog_filter::{Filter, id_text};
use palmette_document::{Fault, RawJson};
use serde::Deserialize;
use serde_json::{Value, json};

/// Set of a name that the grammar leaves open: a catalog, or values or documents of the question.
///
/// Without any of the three it is the catalog of that name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CatalogMembers {
    /// The catalog, where its name is another one.
    #[cfg_attr(feature = "schema", schema(example = "shop"))]
    pub catalog: Option<String>,
    /// Generation of a live catalog, by number or name; the newest without it.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Value>, example = 12))]
    pub generation: Option<Value>,
    /// Items that may be written: a filter, as for recommendations. One in the grammar counts too.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub filter: Option<RawJson>,
    /// Ids of items that may not be written; unknown ones exclude nothing.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Vec<String>>))]
    pub exclude: Option<Vec<Value>>,
    /// Texts of which one is written: 100,000 of 8 MiB together at most.
    pub values: Option<Vec<String>>,
    /// Texts that are quoted, where the grammar says how: 4 MiB together at most.
    pub documents: Option<Vec<String>>,
}

impl CatalogMembers {
    /// The name of the catalog; `None` of values and documents.
    ///
    /// # Errors
    /// When members exclude each other.
    pub(super) fn catalog_name<'a>(&'a self, name: &'a str) -> Result<Option<&'a str>, Fault> {
        let Self { catalog, generation, filter, exclude, values, documents } = self;
        let given = [
            ("catalog", catalog.is_some()),
            ("values", values.is_some()),
            ("documents", documents.is_some()),
            ("generation", generation.is_some()),
            ("filter", filter.is_some()),
            ("exclude", exclude.is_some()),
        ];
        let given: Vec<&str> = given.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
        let unfit = match (values.is_some(), documents.is_some()) {
            (false, false) => return Ok(Some(catalog.as_deref().unwrap_or(name))),
            (true, _) => given.iter().find(|name| !["values", "filter", "exclude"].contains(name)),
            (false, true) => given.iter().find(|name| **name != "documents"),
        };
        let Some(unfit) = unfit else { return Ok(None) };
        let kind = if values.is_some() { "values" } else { "documents" };
        let detail = format!("{kind} have no {unfit}; leave one of the two out");
        Err(Fault::new(pointer(name, unfit), detail))
    }

    /// The filter and the excluded ids together; `None` for all items.
    pub(super) fn filter(&self, name: &str) -> Result<Option<Filter>, Fault> {
        let fault = |member: &str, detail: String| Fault::new(pointer(name, member), detail);
        let parse = |text: &RawJson| Filter::parse(text.get());
        let filter = self.filter.as_ref().map(parse).transpose();
        let filter = filter.map_err(|error| fault("filter", error.to_string()))?;
        let Some(exclude) = &self.exclude else { return Ok(filter) };
        let id = |(place, id): (usize, &Value)| {
            id_text(id).ok_or_else(|| {
                fault(
                    &format!("exclude/{place}"),
                    format!("{id} is no id: a text or a whole number"),
                )
            })
        };
        let ids = exclude.iter().enumerate().map(id).collect::<Result<Vec<_>, _>>()?;
        let excluded = Filter::from_value(&json!({"exclude": ids}));
        let excluded = excluded.map_err(|error| fault("exclude", error.to_string()))?;
        Ok(Some(filter.map_or_else(|| excluded.clone(), |filter| filter.and(&excluded))))
    }

    /// The generation as text.
    pub(super) fn generation(&self, name: &str) -> Result<Option<String>, Fault> {
        match &self.generation {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(number) if number.is_u64() => Ok(Some(number.to_string())),
            Some(other) => {
                let detail = format!("it is {other}; a generation is a number, or a name");
                Err(Fault::new(pointer(name, "generation"), detail))
            }
        }
    }
}

/// The place of a member of a name's set in the question.
pub(super) fn pointer(name: &str, member: &str) -> String {
    let name = name.replace('~', "~0").replace('/', "~1");
    match member {
        "" => format!("/catalogs/{name}"),
        member => format!("/catalogs/{name}/{member}"),
    }
}
