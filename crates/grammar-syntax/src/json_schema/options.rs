//! Options and limits of the JSON Schema front end.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::separators::Separators;

/// Options under which a JSON Schema becomes a grammar.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JsonSchemaOptions {
    /// Order in which the members of an object may come.
    pub order: PropertyOrder,
    /// Distinctness: each declared member at most once, in any order too, however many an object
    /// has. Off, optional ones of objects with more than `max_tracked` may come again
    /// ([`PropertyOrder::Any`]). On, their names are remembered where the rules do not track them,
    /// and each set of names that were there has lexer states of its own: over JSONSchemaBench the
    /// median mask costs 1.1 times as much, the 99th percentile 3 times.
    pub distinct_members: bool,
    /// Closure of objects: where a schema has `properties` and says nothing of other members
    /// (`additionalProperties`, `unevaluatedProperties`), there are none. Off, they are free, as
    /// the standard has it; but who writes such a schema for a model mostly means those members
    /// alone, and a model that may invent others does not come to an end.
    ///
    /// It is the whole of what holds for a value that is closed: the names of `allOf`, `$ref` and
    /// of the branches that hold count together, with those that are required and match
    /// `patternProperties`. A branch of `anyOf` without `properties` stays open, and where no
    /// object would be left, all do.
    pub closed_objects: bool,
    /// Whitespace between the tokens of the JSON text.
    pub whitespace: Whitespace,
    /// Lengths of numbers.
    pub digits: Digits,
    /// Escapes with which a string may be written.
    pub escapes: Escapes,
    /// Limit on the texts of an enumeration that are alternatives of one expression. More are a set
    /// that the grammar brings, a lexicon: it compiles in the time that it takes to read them, and
    /// a text of it is written in one way alone, with the escapes that JSON demands and no others.
    ///
    /// Under [`Escapes::Any`], and where a schema is a part of another grammar, all are
    /// alternatives.
    pub max_listed: usize,
    /// Limit on the bytes of those texts of an enumeration that are written in one way as
    /// alternatives too: of printable ASCII, without quotation marks and slashes. Where more than
    /// 32 have more, they are a set; the others stay alternatives, up to
    /// [`max_listed`](Self::max_listed). The language is the same.
    pub max_listed_bytes: usize,
    /// Limit on the tokens of a string that is a value, quotation marks and the blanks before it
    /// included; strings of an enumeration have none, nor have names and the values of other styles
    /// than JSON's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_string_tokens: Option<NonZeroU32>,
    /// True when `1.0` spells an integer, as it does for the standard since draft 6.
    pub integer_fractions: bool,
    /// True when `format` is enforced (for the formats that are known) or only an annotation. The
    /// drafts leave that to the caller; a metaschema among the resources that lists the vocabulary
    /// `format-assertion` asks for it in any case.
    pub formats: bool,
    /// Treatment of what no grammar can express.
    pub inexpressible: Inexpressible,
    /// The draft of schemas that do not name theirs in `$schema`.
    pub draft: Draft,
    /// Schemas that may be referred to, by URI. Nothing is ever downloaded.
    pub resources: BTreeMap<String, String>,
    /// Bounds on the work and on the result. Not written where options are: who reads says how much
    /// work is too much.
    #[serde(skip)]
    pub limits: JsonSchemaLimits,
}

/// Order in which the members of an object may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PropertyOrder {
    /// Any order.
    ///
    /// Up to `max_tracked` declared properties of an object (the required ones, where all are more)
    /// are tracked by the rules: each comes at most once, the required ones once. The cost doubles
    /// with each. Where more are required, or members must be counted by their names
    /// (`minProperties`, or some member that must be so), a position remembers the names of its
    /// open objects instead, and each comes at most once however many there are. Elsewhere a name
    /// may come again (a repeated name is JSON, and each of the repeated values is valid): optional
    /// ones of objects with more than `max_tracked`, but for
    /// [`distinct_members`](JsonSchemaOptions::distinct_members), and those that are not declared.
    Any {
        /// Number of properties of an object that the rules track; the number of states is 2 to
        /// this power.
        max_tracked: u32,
    },
    /// The order in which the schema's `properties` declare them, each at most once; then required
    /// names that are not declared; then all other members.
    Schema,
}

/// Whitespace between the tokens of the JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whitespace {
    /// Blanks that programs and people lay JSON out with, and no more, so that a model that is
    /// stuck cannot go on writing them: before each token up to [`MAX_BLANKS`](Self::MAX_BLANKS)
    /// space or tab, or a line break and up to [`MAX_INDENTATION`](Self::MAX_INDENTATION); none at
    /// the end.
    Bounded,
    /// Any JSON whitespace, any amount, before each token and at the end.
    Flexible,
    /// None: `{"a":[1,2]}`.
    Compact,
    /// One space after each comma and colon, none elsewhere: `{"a": [1, 2]}`.
    Spaced,
    /// These around each comma and colon, none elsewhere.
    Separators(Separators),
}

impl Whitespace {
    /// Spaces or tabs in a row, within a line, that [`Bounded`](Self::Bounded) allows.
    pub const MAX_BLANKS: u32 = 1;
    /// Spaces and tabs at the start of a line that [`Bounded`](Self::Bounded) allows.
    pub const MAX_INDENTATION: u32 = 40;

    /// Text between members and between items, without the blanks that may stand before it.
    pub(super) fn comma(&self) -> &str {
        match self {
            Self::Bounded | Self::Flexible | Self::Compact => ",",
            Self::Spaced => ", ",
            Self::Separators(separators) => separators.comma(),
        }
    }

    /// Text between a name and its value.
    pub(super) fn colon(&self) -> &str {
        match self {
            Self::Bounded | Self::Flexible | Self::Compact => ":",
            Self::Spaced => ": ",
            Self::Separators(separators) => separators.colon(),
        }
    }
}

/// Lengths of numbers. The standard knows no limit, and readers do: `1e5000` is infinity there, or
/// zero with a minus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Digits {
    /// Numbers that readers take for what they are, so that a model that is stuck cannot go on
    /// writing digits: up to [`MAX_DIGITS`](Self::MAX_DIGITS) digits before the point and as many
    /// after it, and with an exponent those that are doubles. Where bounds or divisors of a schema
    /// have more digits, numbers may have them and half as many as that again. Multiples of
    /// decimals whose digits are above 20,000, and of several numbers without a common multiple of
    /// 64 bits, have any number.
    Bounded,
    /// Any number of digits.
    Any,
}

impl Digits {
    /// Digits before the point, and after it, that [`Bounded`](Self::Bounded) allows: those of
    /// integers of 128 bits.
    pub const MAX_DIGITS: u32 = 40;
}

/// Escapes with which a string may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Escapes {
    /// In strings whose text is free, but for its length, every character may be escaped in any way
    /// that JSON knows. In others printable ASCII characters stand for themselves (quote and
    /// backslash excepted, and `\/` spells a slash, too), and every other character may be escaped
    /// in any way.
    Needed,
    /// Every character may be escaped in any way that JSON knows.
    Any,
}

/// Treatment of what no grammar can express: `uniqueItems` over infinitely many values that are not
/// all strings, the formats `idn-hostname`, `hostname` (what a label in Punycode encodes) and
/// `regex` (groups nested without bound), and in draft 7 what `contentEncoding` and
/// `contentMediaType` say of a string.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Inexpressible {
    /// An error, and so are formats that are not known: what compiles allows valid texts only.
    Refused,
    /// An error where it would not be enforced at all. Of the formats `hostname` and `regex` is
    /// enforced what a grammar can; `contentEncoding` and `contentMediaType` are annotations;
    /// formats that are not known, and `uniqueItems` where items are not told apart, are reported
    /// as warnings.
    #[default]
    Approximated,
    /// Lenient: what would be an error is reported as a warning and not enforced.
    Ignored,
}

/// A version of the standard.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Draft {
    /// Draft 4.
    Draft4,
    /// Draft 6.
    Draft6,
    /// Draft 7.
    Draft7,
    /// Draft 2019-09.
    Draft201909,
    /// Draft 2020-12.
    Draft202012,
}

/// Bounds on the work and on the result; beyond one, compilation is an error that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JsonSchemaLimits {
    /// Greatest nesting of the source.
    pub max_depth: usize,
    /// Greatest number of schemas nested in one another on the same value, by references or
    /// combinators.
    pub max_nesting: usize,
    /// Limit on the alternatives of one combination of schemas.
    pub max_cases: usize,
    /// Limit on the states of an automaton or a counter within one array, object or number.
    pub max_states: usize,
    /// Limit on the rules of the grammar.
    pub max_rules: usize,
    /// Limit on the steps of combining schemas.
    pub max_work: usize,
}

impl Default for JsonSchemaOptions {
    fn default() -> Self {
        Self {
            order: PropertyOrder::Any { max_tracked: 4 },
            distinct_members: false,
            closed_objects: false,
            whitespace: Whitespace::Bounded,
            digits: Digits::Bounded,
            escapes: Escapes::Needed,
            max_listed: 4_096,
            max_listed_bytes: 4_096,
            max_string_tokens: None,
            integer_fractions: true,
            formats: true,
            inexpressible: Inexpressible::default(),
            draft: Draft::Draft202012,
            resources: BTreeMap::new(),
            limits: JsonSchemaLimits::default(),
        }
    }
}

impl Default for JsonSchemaLimits {
    fn default() -> Self {
        Self {
            max_depth: 256,
            max_nesting: 200,
            max_cases: 2_000,
            max_states: 20_000,
            max_rules: 1_000_000,
            max_work: 4_000_000,
        }
    }
}

impl Draft {
    /// Drafts by the names that options have for them.
    pub const NAMES: [(&str, Self); 5] = [
        ("4", Self::Draft4),
        ("6", Self::Draft6),
        ("7", Self::Draft7),
        ("2019-09", Self::Draft201909),
        ("2020-12", Self::Draft202012),
    ];

    /// The draft that a `$schema` names, where it is known.
    pub(super) fn named(uri: &str) -> Option<Self> {
        let name = uri.trim_end_matches('#').trim_end_matches('/');
        let name = name.strip_prefix("http").map_or(name, |rest| rest.trim_start_matches('s'));
        Some(match name.strip_prefix("://json-schema.org/")? {
            "draft-03/schema" | "draft-04/schema" | "schema" => Self::Draft4,
            "draft-06/schema" => Self::Draft6,
            "draft-07/schema" => Self::Draft7,
            "draft/2019-09/schema" => Self::Draft201909,
            "draft/2020-12/schema" => Self::Draft202012,
            _ => return None,
        })
    }
}
