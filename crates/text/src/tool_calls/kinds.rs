//! Kinds of values that the parameters of tools have, by their schemas.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use palmette_grammar::frontends::structural_tag::ARGUMENT_SCHEMAS;
use serde_json::{Map, Value};

/// Schemas within each other that are looked into; of deeper ones every kind is expected.
const MAX_DEPTH: usize = 32;

/// Schemas that are looked into for one parameter; beyond, every kind is expected.
const MAX_STEPS: usize = 2_000;

/// A set of kinds of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    /// No kind.
    const NONE: Self = Self(0);
    /// Strings alone.
    pub(super) const STRING: Self = Self(1);
    const NULL: Self = Self(2);
    const BOOLEAN: Self = Self(4);
    /// Whole numbers.
    const INTEGER: Self = Self(8);
    /// Numbers of any kind.
    const NUMBER: Self = Self(8 | 16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);
    /// Every kind.
    pub(super) const ALL: Self = Self(127);
    /// Every kind but strings.
    pub(super) const NO_STRING: Self = Self(126);

    fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The kind of a value.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) => {
                let is_whole = number.is_i64()
                    || number.is_u64()
                    || number.as_f64().is_some_and(|number| number.fract() == 0.0);
                if is_whole { Self::INTEGER } else { Self::NUMBER }
            }
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    /// True where a text is read as this value, and not as itself: where no string may be, all
    /// values are, whatever the schema asks for.
    pub(super) fn admits(self, value: &Value) -> bool {
        !self.has(Self::STRING) || self.has(Self::of(value)) && !value.is_string()
    }

    /// True where a text that begins so, after blanks, may be read as JSON.
    pub(super) fn may_begin(self, first: char) -> bool {
        let kind = match first {
            '{' => Self::OBJECT,
            '[' => Self::ARRAY,
            '-' | '0'..='9' => Self::INTEGER,
            't' | 'f' => Self::BOOLEAN,
            'n' => Self::NULL,
            // Strings are written as they are where they may be.
            '"' => Self::NONE,
            _ => return false,
        };
        !self.has(Self::STRING) || kind != Self::NONE && self.has(kind)
    }

    fn named(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "string" => Self::STRING,
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => Self::ALL,
        }
    }
}

/// The kinds of the parameters of tools, by the tools' names.
///
/// A model that writes parameters between marks does not say whether `3` is a number or a text: the
/// tool's schema does. Of a tool or a parameter that is not known every kind is expected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArgumentKinds {
    tools: Arc<HashMap<String, ToolKinds>>,
}

/// Kinds of the parameters of a tool.
#[derive(Clone, Debug, PartialEq)]
struct ToolKinds {
    named: HashMap<String, Kinds>,
    others: Kinds,
    /// The schema of the arguments, for what is within parameters; null where there is none.
    root: Value,
}

/// A step from a value to one within it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The member of a name.
    Member(String),
    /// A member of no declared name.
    Other,
    /// An item of a list.
    Item,
}

impl ArgumentKinds {
    /// The kinds of tools as requests define them; of those that `lax` lets take any object, where
    /// they say `"strict": false`, every kind is expected.
    pub fn of_tools(definitions: &[Value], lax: bool) -> Self {
        let mut tools = HashMap::new();
        for tool in definitions {
            let listed = ["functionDeclarations", "function_declarations"]
                .iter()
                .find_map(|name| tool.get(name)?.as_array());
            for tool in listed.map_or(std::slice::from_ref(tool), Vec::as_slice) {
                if let Some((name, kinds)) = tool_kinds(tool, lax && says_lax(tool)) {
                    tools.insert(name, kinds);
                }
            }
        }
        Self { tools: Arc::new(tools) }
    }

    /// True where a tool is known.
    pub(super) fn has_tool(&self, tool: &str) -> bool {
        self.tools.contains_key(tool)
    }

    /// True where a known tool's name begins so.
    pub(super) fn begins_tool(&self, text: &str) -> bool {
        self.tools.keys().any(|name| name.starts_with(text))
    }

    /// The kinds that a parameter of a tool may be of.
    pub(super) fn kinds(&self, tool: &str, parameter: &str) -> Kinds {
        let Some(tool) = self.tools.get(tool) else { return Kinds::ALL };
        tool.named.get(parameter).copied().unwrap_or(tool.others)
    }

    /// The kinds that a value within the arguments of a tool may be of, by the steps to it.
    ///
    /// Cost: that of a parameter, without allocation; within one a walk over the schema.
    pub(super) fn kinds_within(&self, tool: &str, steps: &[Step]) -> Kinds {
        match (steps, self.tools.get(tool)) {
            ([Step::Member(parameter)], _) => self.kinds(tool, parameter),
            (_, Some(tool)) => Walk::new(&tool.root).within(&tool.root, steps, 0),
            (_, None) => Kinds::ALL,
        }
    }
}

/// True where a definition says that its schema does not bind.
fn says_lax(tool: &Value) -> bool {
    let inner = ["function", "toolSpec"].iter().find_map(|name| tool[name].get("strict"));
    inner.filter(|strict| !strict.is_null()).unwrap_or(&tool["strict"]) == false
}

/// The name of a tool and the kinds of its parameters: every kind where it takes any object.
fn tool_kinds(tool: &Value, takes_any: bool) -> Option<(String, ToolKinds)> {
    let inner = ["function", "toolSpec", "custom"].iter().find_map(|name| tool.get(name));
    let inner = inner.filter(|inner| inner.is_object()).unwrap_or(tool);
    let name = inner["name"].as_str()?.to_owned();
    if takes_any {
        let any = ToolKinds { named: HashMap::new(), others: Kinds::ALL, root: Value::Null };
        return Some((name, any));
    }
    let schema = ARGUMENT_SCHEMAS.iter().find_map(|name| inner.get(name));
    let Some(schema) = schema else {
        let named = HashMap::from([("input".to_owned(), Kinds::STRING)]);
        return Some((name, ToolKinds { named, others: Kinds::ALL, root: Value::Null }));
    };
    // Bedrock's schema is within a member.
    let is_wrapper = schema.as_object().is_some_and(|object| object.len() == 1);
    let root = schema.get("json").filter(|_| is_wrapper).unwrap_or(schema);
    let mut names = BTreeSet::new();
    Walk::new(root).names(root, 0, &mut names);
    let kinds = |step| Walk::new(root).within(root, &[step], 0);
    let kinds_of = |name: &str| (name.to_owned(), kinds(Step::Member(name.to_owned())));
    let named = names.into_iter().map(kinds_of).collect();
    Some((name, ToolKinds { named, others: kinds(Step::Other), root: root.clone() }))
}

/// A walk over the schemas that say something of one value.
struct Walk<'s> {
    root: &'s Value,
    steps: usize,
}

impl<'s> Walk<'s> {
    fn new(root: &'s Value) -> Self {
        Self { root, steps: 0 }
    }

    /// The members of a schema, unless too many were looked into.
    fn members(&mut self, schema: &'s Value, depth: usize) -> Option<&'s Map<String, Value>> {
        self.steps += 1;
        schema.as_object().filter(|_| depth < MAX_DEPTH && self.steps <= MAX_STEPS)
    }

    fn referred(&self, schema: &Map<String, Value>) -> Option<&'s Value> {
        let name = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root.pointer(name)
    }

    /// The names of members that the schema of an object declares.
    fn names(&mut self, schema: &'s Value, depth: usize, names: &mut BTreeSet<&'s str>) {
        let Some(members) = self.members(schema, depth) else { return };
        if let Some(Value::Object(properties)) = members.get("properties") {
            names.extend(properties.keys().map(String::as_str));
        }
        let of = |key: &str| members.get(key).and_then(Value::as_array);
        let listed = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(of).flatten();
        let single = ["then", "else"].into_iter().filter_map(|key| members.get(key));
        let referred = self.referred(members);
        for inner in listed.chain(single).chain(referred) {
            self.names(inner, depth + 1, names);
        }
    }

    /// The kinds of what the steps lead to, in values of a schema.
    fn within(&mut self, schema: &'s Value, steps: &[Step], depth: usize) -> Kinds {
        let [step, rest @ ..] = steps else { return self.value(schema, depth) };
        let Some(members) = self.members(schema, depth) else { return Kinds::ALL };
        let others = || {
            let has_patterns = members.contains_key("patternProperties");
            members.get("additionalProperties").filter(|_| !has_patterns)
        };
        let own = match step {
            Step::Member(name) => {
                members.get("properties").and_then(|declared| declared.get(name)).or_else(others)
            }
            Step::Other => others(),
            Step::Item => members.get("items").filter(|_| !members.contains_key("prefixItems")),
        };
        let mut kinds = match own {
            // What may not be there may be of any kind elsewhere.
            None | Some(Value::Bool(_) | Value::Array(_)) => Kinds::ALL,
            Some(own) => self.within(own, rest, depth + 1),
        };
        let walk = |walk: &mut Self, inner| walk.within(inner, steps, depth + 1);
        kinds = kinds.and(self.combined(members, &walk));
        if members.contains_key("if") {
            let branches = ["then", "else"].map(|key| match members.get(key) {
                None => Kinds::ALL,
                Some(inner) => self.within(inner, steps, depth + 1),
            });
            kinds = kinds.and(branches[0].or(branches[1]));
        }
        kinds
    }

    /// The kinds of values of a schema.
    fn value(&mut self, schema: &'s Value, depth: usize) -> Kinds {
        let Some(members) = self.members(schema, depth) else { return Kinds::ALL };
        let union = |kinds: &mut dyn Iterator<Item = Kinds>| kinds.fold(Kinds::NONE, Kinds::or);
        let mut kinds = match members.get("type") {
            Some(Value::String(name)) => Kinds::named(name),
            Some(Value::Array(names)) => {
                union(&mut names.iter().filter_map(Value::as_str).map(Kinds::named))
            }
            _ => Kinds::ALL,
        };
        if members.get("nullable") == Some(&Value::Bool(true)) {
            kinds = kinds.or(Kinds::NULL);
        }
        if let Some(Value::Array(values)) = members.get("enum") {
            kinds = kinds.and(union(&mut values.iter().map(Kinds::of)));
        }
        if let Some(value) = members.get("const") {
            kinds = kinds.and(Kinds::of(value));
        }
        kinds.and(self.combined(members, &|walk, inner| walk.value(inner, depth + 1)))
    }

    /// Kinds that the schemas within a schema, about the same value, let be.
    fn combined(
        &mut self,
        members: &'s Map<String, Value>,
        walk: &dyn Fn(&mut Self, &'s Value) -> Kinds,
    ) -> Kinds {
        let mut kinds = Kinds::ALL;
        if let Some(Value::Array(all)) = members.get("allOf") {
            kinds = all.iter().fold(kinds, |kinds, inner| kinds.and(walk(self, inner)));
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(any)) = members.get(key) {
                let one = any.iter().fold(Kinds::NONE, |kinds, inner| kinds.or(walk(self, inner)));
                kinds = kinds.and(one);
            }
        }
        match self.referred(members) {
            None => kinds,
            Some(inner) => kinds.and(walk(self, inner)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_are_those_of_the_schema() {
        let tools = ArgumentKinds::of_tools(
            &[
                json!({"type": "function", "function": {"name": "f", "parameters": {
                    "properties": {
                        "text": {"type": "string"}, "count": {"type": "INTEGER", "nullable": true},
                        "either": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/list"}]},
                        "listed": {"enum": ["a", 3.5, null]}, "free": {},
                        "loop": {"$ref": "#/properties/loop"},
                    },
                    "allOf": [{"properties": {"text": {}, "more": {"const": true}}}],
                    "additionalProperties": {"type": "number"},
                    "$defs": {"list": {"type": "array"}},
                }}}),
                json!({"name": "g", "input_schema": {"json": {"properties": {"a": {"type": ["object", "null"]}}}}}),
                json!({"type": "custom", "custom": {"name": "h"}}),
            ],
            false,
        );
        let union = |kinds: &[Kinds]| kinds.iter().fold(Kinds::NONE, |all, &one| all.or(one));
        for (tool, parameter, expected) in [
            ("f", "text", Kinds::STRING),
            ("f", "count", union(&[Kinds::INTEGER, Kinds::NULL])),
            ("f", "either", union(&[Kinds::STRING, Kinds::ARRAY])),
            ("f", "listed", union(&[Kinds::STRING, Kinds::NUMBER, Kinds::NULL])),
            ("f", "free", Kinds::ALL),
            ("f", "loop", Kinds::ALL),
            // Beside the other schema it is an additional member, and a number.
            ("f", "more", Kinds::NONE),
            ("f", "other", Kinds::NUMBER),
            ("g", "a", union(&[Kinds::OBJECT, Kinds::NULL])),
            ("h", "input", Kinds::STRING),
            ("unknown", "a", Kinds::ALL),
        ] {
            assert_eq!(tools.kinds(tool, parameter), expected, "{tool} {parameter}");
        }
    }
}
