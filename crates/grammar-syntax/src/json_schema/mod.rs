//! JSON Schema: the JSON texts of the values that are valid for a schema.
//!
//! # Steps
//! 1. `source` reads the schema with the place of every value; `resources` finds out what
//!    references mean.
//! 2. A *claim* says of a value that it is valid for a schema, or that it is not. A *goal*
//!    (`goals`) is a set of claims: the values for which all hold. `schema` and `combine` turn a
//!    goal into *cases* (`cases`): a union of sets of values, each of one type. `allOf` and sibling
//!    keywords intersect, `anyOf` unites, `not`, `oneOf` and `if` deny claims. Goals of members and
//!    items are only named there, so recursion ends: there are finitely many.
//! 3. `emit` makes a nonterminal for each goal and rules for its cases. Strings, names and numbers
//!    are one terminal each, whitespace before it included. Nonterminals with the same rules become
//!    one (`sharing`).
//!
//! # What is exact, and what is chosen
//! The grammar accepts exactly the texts of valid values, in these spellings:
//!
//! - numbers under a condition: without exponent, or with one after a single digit before the point
//!   that is not zero (`1.25e-7`); where divisibility matters, without exponent (integers alone:
//!   with one from 16 up). Integers may be spelled `1.0`
//!   ([`JsonSchemaOptions::integer_fractions`]). How long they may be: [`Digits`];
//! - strings: [`Escapes`]; half a surrogate pair is no character;
//! - objects: [`PropertyOrder`]; a name that comes again is one member, and may come again only
//!   where that cannot matter;
//! - whitespace: [`Whitespace`].
//!
//! # Keywords
//! All of drafts 4, 6, 7, 2019-09 and 2020-12 but these, which are errors: `uniqueItems` on
//! infinitely many values, `unevaluatedItems` with a schema other than `true` and `false`, or
//! several lists, beside `contains`, and the format `idn-hostname`. `contentEncoding` and its
//! siblings are annotations, and [`Warning`]s. A keyword that is null is as if it were not there,
//! with a warning; types may be written in capitals and counts in quotes, as in Gemini's interface.
//!
//! Enforced formats: `date`, `time`, `date-time`, `duration`, `email`, `idn-email`, `hostname`,
//! `ipv4`, `ipv6`, `uri`, `uri-reference`, `iri`, `iri-reference`, `uri-template`, `uuid`,
//! `json-pointer`, `relative-json-pointer`, and `regex`. Two of them are not regular, and enforced
//! as far as they are: of host names in Punycode (`xn--…`) the letters are checked, not what they
//! encode; in `regex`, groups nest up to twelve deep and what backreferences name is not looked
//! for. `int8` to `int64` and `uint8` to `uint64` are bounds of integers. Other formats, as unknown
//! keywords, have no effect and are listed as [`Warning`]s. [`Inexpressible`] has two other ways:
//! all of this is an error, or none of it.

mod argument_styles;
mod arrays;
mod cases;
pub(crate) mod catalog_json;
mod combine;
mod compile;
mod decimal;
mod dynamic_scope;
mod emit;
mod emit_arrays;
mod emit_objects;
mod enumeration;
mod error;
mod exclusion;
mod few_texts;
mod formats;
mod framing;
mod goals;
mod json_text;
mod keywords;
mod listed_sets;
mod matching;
mod member_scopes;
mod members;
mod metaschemas;
mod number_intervals;
mod number_lengths;
pub(super) mod number_text;
mod numbers;
mod object_plan;
mod objects;
mod options;
mod parameter_names;
mod parameter_styles;
mod parameters;
pub(super) mod quoted;
mod resources;
mod schema;
mod schema_scope;
mod separators;
mod sharing;
pub(super) mod source;
mod strings;
pub(crate) mod substring_json;
mod unevaluated;
mod uri;
mod wrappers;

pub use argument_styles::{ArgumentStyle, ValueNotation};
pub(crate) use argument_styles::{FUNCTION_GEMMA, GEMMA};
pub(super) use error::REPEATED;
pub use error::{JsonSchemaError, Warning};
pub(crate) use framing::Framing;
pub use options::{
    Digits, Draft, Escapes, Inexpressible, JsonSchemaLimits, JsonSchemaOptions, PropertyOrder,
    Whitespace,
};
pub use parameter_styles::{ITEM, PARAMETER_STYLES, ParameterStyle};
pub use separators::{SeparatorError, Separators};

use crate::{Budget, Grammar};

/// The grammar of the JSON texts of the values that are valid for a schema.
///
/// # Errors
/// With the place in the schema: no JSON; a tool definition or response format, which has a schema
/// inside; a keyword whose value the standard does not allow; a keyword that no grammar can
/// express; a reference to a schema that is not given; a limit passed; no value is valid.
pub fn parse(schema_text: &str, options: &JsonSchemaOptions) -> Result<Grammar, JsonSchemaError> {
    parse_with_warnings(schema_text, options).map(|(grammar, _)| grammar)
}

/// [`parse`], with what the schema says without effect: unknown keywords and formats, and what
/// [`Inexpressible::Ignored`] leaves out.
///
/// # Errors
/// As [`parse`].
pub fn parse_with_warnings(
    schema_text: &str,
    options: &JsonSchemaOptions,
) -> Result<(Grammar, Vec<Warning>), JsonSchemaError> {
    parse_with_budget(schema_text, options, &mut Budget::unlimited())
}

/// [`parse_with_warnings`], as long as the budget lasts and nobody calls it off.
///
/// [`JsonSchemaLimits::max_work`] bounds the combining of schemas whatever the budget; the budget
/// counts all steps, those of reading and of writing rules too.
///
/// # Errors
/// As [`parse`], and when the work is [`interrupted`](JsonSchemaError::interrupted).
pub fn parse_with_budget(
    schema_text: &str,
    options: &JsonSchemaOptions,
    budget: &mut Budget<'_>,
) -> Result<(Grammar, Vec<Warning>), JsonSchemaError> {
    parse_within(schema_text, options, Framing::default(), budget)
}

/// [`parse_with_budget`] for values within another text.
pub(crate) fn parse_within(
    schema_text: &str,
    options: &JsonSchemaOptions,
    framing: Framing,
    budget: &mut Budget<'_>,
) -> Result<(Grammar, Vec<Warning>), JsonSchemaError> {
    let mut compiler = compile::Compiler::new(schema_text, options, budget.split_off())?;
    let grammar = emit::emit(&mut compiler, framing);
    budget.join(&compiler.budget);
    Ok((grammar?, compiler.warnings()))
}
