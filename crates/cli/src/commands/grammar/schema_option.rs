//! Options of JSON Schema that few ask for, as `NAME=VALUE`.

use std::num::NonZeroU32;

use palmette_grammar::frontends::json_schema::{Draft, JsonSchemaOptions, PropertyOrder};

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SchemaOption {
    Formats(bool),
    DistinctMembers(bool),
    ClosedObjects(bool),
    IntegerFractions(bool),
    Draft(Draft),
    MaxTracked(u32),
    MaxListed(usize),
    MaxListedBytes(usize),
    MaxStringTokens(NonZeroU32),
    Limit(Limit, usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit {
    Depth,
    Nesting,
    Cases,
    States,
    Rules,
    Work,
}

const LIMITS: [(&str, Limit); 6] = [
    ("max_depth", Limit::Depth),
    ("max_nesting", Limit::Nesting),
    ("max_cases", Limit::Cases),
    ("max_states", Limit::States),
    ("max_rules", Limit::Rules),
    ("max_work", Limit::Work),
];

/// Reads `NAME=VALUE`.
pub(crate) fn schema_option(text: &str) -> Result<SchemaOption, String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err("an option is written NAME=VALUE".to_owned());
    };
    let truth = || match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("{name} is true or false, not {value:?}")),
    };
    let number = || value.parse().map_err(|_| format!("{name} is a whole number, not {value:?}"));
    match name {
        "formats" => truth().map(SchemaOption::Formats),
        "distinct_members" => truth().map(SchemaOption::DistinctMembers),
        "closed_objects" => truth().map(SchemaOption::ClosedObjects),
        "integer_fractions" => truth().map(SchemaOption::IntegerFractions),
        "max_tracked" => match value.parse() {
            Ok(count) => Ok(SchemaOption::MaxTracked(count)),
            Err(_) => Err(format!("max_tracked is a whole number below 2^32, not {value:?}")),
        },
        "max_listed" => number().map(SchemaOption::MaxListed),
        "max_listed_bytes" => number().map(SchemaOption::MaxListedBytes),
        "max_string_tokens" => match value.parse() {
            Ok(tokens) => Ok(SchemaOption::MaxStringTokens(tokens)),
            Err(_) => Err(format!(
                "max_string_tokens is a whole number from 1 to 2^32 - 1, not {value:?}"
            )),
        },
        "draft" => {
            let known = Draft::NAMES.iter().find(|(draft, _)| *draft == value);
            let drafts = Draft::NAMES.map(|(draft, _)| draft).join(", ");
            known
                .map(|&(_, draft)| SchemaOption::Draft(draft))
                .ok_or_else(|| format!("there is no draft {value:?}; there are {drafts}"))
        }
        _ => {
            let limit = LIMITS.iter().find(|(known, _)| *known == name);
            let limit = limit.ok_or_else(|| {
                let limits = LIMITS.map(|(limit, _)| limit).join(", ");
                format!(
                    "there is no option {name:?}; there are draft, formats, distinct_members, closed_objects, integer_fractions, max_tracked, max_listed, max_listed_bytes, max_string_tokens, {limits}"
                )
            })?;
            number().map(|number| SchemaOption::Limit(limit.1, number))
        }
    }
}

impl SchemaOption {
    /// Sets it.
    pub(crate) fn set(self, options: &mut JsonSchemaOptions) {
        let limits = &mut options.limits;
        match self {
            Self::Formats(formats) => options.formats = formats,
            Self::DistinctMembers(distinct) => options.distinct_members = distinct,
            Self::ClosedObjects(closed) => options.closed_objects = closed,
            Self::IntegerFractions(fractions) => options.integer_fractions = fractions,
            Self::Draft(draft) => options.draft = draft,
            Self::MaxTracked(max_tracked) => {
                if let PropertyOrder::Any { max_tracked: tracked } = &mut options.order {
                    *tracked = max_tracked;
                }
            }
            Self::MaxListed(max) => options.max_listed = max,
            Self::MaxListedBytes(max) => options.max_listed_bytes = max,
            Self::MaxStringTokens(max) => options.max_string_tokens = Some(max),
            Self::Limit(Limit::Depth, max) => limits.max_depth = max,
            Self::Limit(Limit::Nesting, max) => limits.max_nesting = max,
            Self::Limit(Limit::Cases, max) => limits.max_cases = max,
            Self::Limit(Limit::States, max) => limits.max_states = max,
            Self::Limit(Limit::Rules, max) => limits.max_rules = max,
            Self::Limit(Limit::Work, max) => limits.max_work = max,
        }
    }
}
