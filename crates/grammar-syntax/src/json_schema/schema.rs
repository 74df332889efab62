//! Keywords of one schema, sorted by the type that they constrain.

use std::{collections::BTreeSet, rc::Rc, sync::Arc};

use palmette_grammar_regex::parse::{Dialect, Flags, Reading, RegexError, parse_noting};

use super::{
    arrays::{ArraySet, Count},
    cases::Cases,
    compile::{Compiler, Result},
    decimal::Decimal,
    error::Kind,
    formats,
    goals::GoalId,
    matching,
    members::MemberCase,
    numbers::{NumberSet, Property},
    objects::{Closing, ObjectSet, Scope},
    options::{Draft, Inexpressible},
    source::{Json, JsonId},
    strings::{StringSet, Texts},
};
use crate::Regex;
use crate::misspelling::meant;

/// Numbers with more digits are refused, which programs that read JSON cannot hold.
const MAX_DIGITS: usize = 4_096;

/// Bounds with more are: an expression has each digit with all before it.
const MAX_BOUND_DIGITS: usize = 400;

/// Limit on the characters of a number in a message.
const MAX_SHOWN: usize = 40;

/// The type that a word of Gemini's stands for, which writes types in capitals.
fn plain_type(word: &str) -> Option<&'static str> {
    TYPES.into_iter().find(|name| name.to_ascii_uppercase() == word)
}

/// The type that a programming language's word for one stands for.
fn type_meant(word: &str) -> Option<&'static str> {
    let lower = word.to_ascii_lowercase();
    let known = TYPES.into_iter().find(|name| *name == lower);
    known.or_else(|| match &*lower {
        "str" | "text" => Some("string"),
        "int" | "long" => Some("integer"),
        "float" | "double" | "decimal" => Some("number"),
        "bool" => Some("boolean"),
        "list" | "tuple" | "set" => Some("array"),
        "dict" | "map" => Some("object"),
        "none" | "nonetype" | "nil" => Some("null"),
        other => meant(other, &TYPES),
    })
}

const TYPES: [&str; 7] = ["null", "boolean", "number", "integer", "string", "array", "object"];

/// Constraints of a schema on each type, by its own keywords; combinators and references are not in
/// it.
pub(super) struct KeywordConstraints {
    /// The types it allows; of numbers, those of which `numbers` is true.
    pub(super) types: Cases,
    pub(super) numbers: NumberSet,
    pub(super) strings: StringSet,
    /// The set that is narrower than all strings, of a schema with `x-catalog` or
    /// `x-substring`.
    pub(super) member: Option<MemberCase>,
    pub(super) array: Option<ArraySet>,
    pub(super) object: Option<ObjectSet>,
}

impl Compiler<'_> {
    pub(super) fn own(&mut self, schema: JsonId) -> Result<KeywordConstraints> {
        let (types, strings) = (self.types(schema)?, self.strings(schema)?);
        let member = self.member_case(schema, &strings, &types)?;
        Ok(KeywordConstraints {
            types,
            numbers: self.numbers(schema)?,
            strings,
            member,
            array: self.array(schema)?,
            object: self.object(schema)?,
        })
    }

    fn types(&mut self, schema: JsonId) -> Result<Cases> {
        let Some(at) = self.get(schema, "type") else { return Ok(Cases::all()) };
        let names = match self.source.json(at) {
            Json::Array(names) => names.clone(),
            _ => vec![at],
        };
        let mut types = Cases::none();
        for name in names {
            let all = Cases::all();
            let word = self.source.string(name).map(|name| &**name);
            let one = match word.map(|word| plain_type(word).unwrap_or(word)) {
                Some("null") => Cases { null: true, ..Cases::none() },
                Some("boolean") => Cases { truth: true, falsity: true, ..Cases::none() },
                Some("number") => Cases::numbers(all.numbers),
                Some("integer") => Cases::numbers(vec![NumberSet::with(Property::Integer, true)]),
                Some("string") => Cases::strings(all.strings),
                Some("array") => Cases { arrays: all.arrays, ..Cases::none() },
                Some("object") => Cases { objects: all.objects, ..Cases::none() },
                Some("any") if self.draft(schema) <= Draft::Draft4 => all,
                other => {
                    let hint = other
                        .and_then(type_meant)
                        .map_or(String::new(), |name| format!(" (did you mean {name:?}?)"));
                    let reason = format!(
                        "the types are null, boolean, number, integer, string, array and object{hint}"
                    );
                    return Err(self.invalid(name, reason));
                }
            };
            types = types.or(&one);
        }
        types.null |= self.is_nullable(schema)?;
        self.check_scopes(schema, &types)?;
        Ok(types)
    }

    /// True when `nullable` lets null in beside a type, as in OpenAPI 3.0.
    fn is_nullable(&mut self, schema: JsonId) -> Result<bool> {
        let Some(at) = self.get(schema, "nullable") else { return Ok(false) };
        let nullable = match self.source.json(at) {
            Json::Bool(nullable) => *nullable,
            Json::Null => false,
            _ => return Err(self.invalid(at, "must be true or false".into())),
        };
        let listed = self.get(schema, "enum").map(|list| self.source.json(list));
        if let (true, Some(Json::Array(values))) = (nullable, listed)
            && !values.iter().any(|&value| matches!(self.source.json(value), Json::Null))
        {
            let message = "`nullable` has no effect: `enum` does not list null; add it there";
            self.warn(at, message.to_owned());
        }
        Ok(nullable)
    }

    fn numbers(&mut self, schema: JsonId) -> Result<NumberSet> {
        let mut set = NumberSet::any();
        let mut require = |property: Property, holds: bool| {
            if let NumberSet::All(conditions) = &mut set {
                conditions.insert(super::numbers::Condition { property, holds });
            }
        };
        let exclusive = |keyword| self.get(schema, keyword).map(|at| (at, self.source.json(at)));
        let (low, high) = (exclusive("exclusiveMinimum"), exclusive("exclusiveMaximum"));
        if let Some(at) = self.get(schema, "minimum") {
            let bound = self.bound(at)?;
            match low {
                Some((_, Json::Bool(true))) => require(Property::Above(bound), true),
                _ => require(Property::AtLeast(bound), true),
            }
        }
        if let Some(at) = self.get(schema, "maximum") {
            let bound = self.bound(at)?;
            match high {
                Some((_, Json::Bool(true))) => require(Property::AtLeast(bound), false),
                _ => require(Property::Above(bound), false),
            }
        }
        // A boolean is draft 4's way of saying it of `minimum` and `maximum`.
        if let Some((at, json)) = low
            && !matches!(json, Json::Bool(_))
        {
            require(Property::Above(self.bound(at)?), true);
        }
        if let Some((at, json)) = high
            && !matches!(json, Json::Bool(_))
        {
            require(Property::AtLeast(self.bound(at)?), false);
        }
        if let Some(at) = self.get(schema, "format")
            && self.asserts_formats(schema)
            && let Some((low, high)) = formats::integers(&self.text(at)?)
        {
            require(Property::Integer, true);
            require(Property::AtLeast(Decimal::of_units(low, 0)), true);
            require(Property::Above(Decimal::of_units(high, 0)), false);
        }
        if let Some(at) = self.get(schema, "multipleOf") {
            let divisor = self.number(at)?;
            if divisor.negative || divisor.is_zero() {
                return Err(self.invalid(at, "must be above zero".into()));
            }
            if divisor.factors().is_none() {
                let reason = "of a number with more than 19 digits; round it";
                return Err(self.unsupported(at, reason));
            }
            require(Property::MultipleOf(divisor), true);
        }
        Ok(set)
    }

    fn strings(&mut self, schema: JsonId) -> Result<StringSet> {
        let min = self.get(schema, "minLength").map(|at| self.length(at)).transpose()?.unwrap_or(0);
        let max = self.get(schema, "maxLength").map(|at| self.length(at)).transpose()?;
        let mut all = Vec::new();
        if let Some(at) = self.get(schema, "pattern") {
            let text = self.text(at)?;
            all.push(Texts::new(self.pattern(at, &text)?));
        }
        if let Some(at) = self.get(schema, "format") {
            let name = self.text(at)?;
            if self.asserts_formats(schema) {
                self.format(at, &name, &mut all)?;
            }
        }
        for keyword in ["contentEncoding", "contentMediaType"] {
            if let Some(at) = self.get(schema, keyword) {
                let message = "no grammar of JSON reads what a string encodes";
                match self.is_strict() && self.draft(schema) <= Draft::Draft7 {
                    true => self.not_enforced(at, message, "leave it out")?,
                    false => self.warn(at, format!("not enforced: {message}")),
                }
            }
        }
        Ok(StringSet::All { min, max, all }.listed())
    }

    /// True when formats are more than annotations.
    fn asserts_formats(&self, schema: JsonId) -> bool {
        let listed = self.resources.vocabularies(&self.source, schema);
        self.options.formats || listed.is_some_and(|listed| listed.format_assertion)
    }

    fn format(&mut self, at: JsonId, name: &str, all: &mut Vec<Texts>) -> Result<()> {
        let regex = formats::regex(name);
        if let Some(why) = formats::not_regular(name)
            && (regex.is_none() || self.is_strict())
        {
            let message =
                format!("no grammar can tell which strings are of the format {name:?}: {why}");
            self.not_enforced(at, &message, "leave it out, give a \"pattern\"")?;
        } else if regex.is_none() && !formats::is_annotation(name) {
            let message = format!("unknown format {name:?}");
            if self.is_strict() {
                self.not_enforced(at, &message, "leave it out, give a \"pattern\"")?;
            }
            self.warn(at, format!("{message}: it has no effect"));
        }
        all.extend(regex.map(Texts::new));
        Ok(())
    }

    /// True when what no grammar can express whole is an error.
    fn is_strict(&self) -> bool {
        self.options.inexpressible == Inexpressible::Refused
    }

    fn array(&mut self, schema: JsonId) -> Result<Option<ArraySet>> {
        let mut set = ArraySet::any();
        let (prefix, rest) = self.places(schema)?;
        for item in prefix {
            let goal = self.goal(item)?;
            set.prefix.push(goal);
        }
        if let Some(rest) = rest {
            set.rest = self.goal(rest)?;
        }
        if let Some(at) = self.get(schema, "minItems") {
            set.min = self.count(at)?;
        }
        if let Some(at) = self.get(schema, "maxItems") {
            set.max = Some(self.count(at)?);
        }
        if let Some(at) = self.get(schema, "contains") {
            let (goal, opposite) = (self.goal(at)?, self.denied_goal(at)?);
            let bound = |keyword| self.get(schema, keyword).map(|at| self.count(at)).transpose();
            let (min, max) = (bound("minContains")?.unwrap_or(1), bound("maxContains")?);
            if min > 0 || max.is_some() {
                set.counts.push(Count { from: 0, goal, opposite, min, max });
            }
        }
        if let Some(at) = self.get(schema, "uniqueItems") {
            match self.source.json(at) {
                Json::Bool(true) => (set.unique, set.unique_at) = (Some(true), Some(at)),
                Json::Bool(false) => {}
                _ => return Err(self.invalid(at, "must be true or false".into())),
            }
        }
        set.scopes.extend(self.array_scope(schema)?);
        Ok(set.normalised())
    }

    /// The schemas of the first items one by one, and that of the others.
    pub(super) fn places(&self, schema: JsonId) -> Result<(Vec<JsonId>, Option<JsonId>)> {
        let items = self.get(schema, "items");
        let list = |at: JsonId| match self.source.json(at) {
            Json::Array(schemas) => Some(schemas.clone()),
            _ => None,
        };
        // A list under `items` is what `prefixItems` is now, and `additionalItems` then is what
        // `items` is now.
        if let Some(prefix) = items.and_then(list) {
            return Ok((prefix, self.get(schema, "additionalItems")));
        }
        match self.get(schema, "prefixItems") {
            Some(at) => match list(at) {
                Some(prefix) => Ok((prefix, items)),
                None => Err(self.invalid(at, "must be a list of schemas".into())),
            },
            None => Ok((Vec::new(), items)),
        }
    }

    fn object(&mut self, schema: JsonId) -> Result<Option<ObjectSet>> {
        let mut set = ObjectSet::any();
        let mut scope = Scope {
            properties: Vec::new(),
            patterns: Vec::new(),
            others: GoalId::ANY,
            closing: self.closing(schema)?,
        };
        for (name, at) in self.named(schema, "properties")? {
            scope.properties.push((name, self.goal(at)?));
        }
        // Gemini's.
        if let Some(at) = self.get(schema, "propertyOrdering") {
            let order = self.names(at)?;
            let place = |name: &Arc<str>| order.iter().position(|named| named == name);
            scope.properties.sort_by_key(|(name, _)| place(name).unwrap_or(order.len()));
        }
        for (name, at) in self.named(schema, "patternProperties")? {
            let pattern = Texts::new(self.pattern(at, &name)?);
            scope.patterns.push((pattern, self.goal(at)?));
        }
        if let Some(at) = self.get(schema, "additionalProperties") {
            scope.others = self.goal(at)?;
        }
        let says = !scope.properties.is_empty() || !scope.patterns.is_empty();
        if says || scope.others != GoalId::ANY || scope.closing != Closing::default() {
            set.scopes.push(Rc::new(scope));
        }
        if let Some(at) = self.get(schema, "required") {
            set.required = self.names(at)?;
        }
        if let Some(at) = self.get(schema, "minProperties") {
            set.min = self.count(at)?;
        }
        if let Some(at) = self.get(schema, "maxProperties") {
            set.max = Some(self.count(at)?);
        }
        if let Some(at) = self.get(schema, "propertyNames") {
            let goal = self.goal(at)?;
            if goal != GoalId::ANY {
                set.names.push(goal);
            }
        }
        set.records.extend(self.object_scope(schema)?);
        self.note_impossible_member(schema, &set);
        let possible = set.max.is_none_or(|max| set.min.max(set.required.len() as u64) <= max);
        Ok(possible.then_some(set))
    }

    /// Notes a member that an object must have and may not: the commonest slip in schemas that list
    /// their members.
    pub(super) fn note_impossible_member(&mut self, schema: JsonId, set: &ObjectSet) {
        let required = set.required.iter();
        let never = |name: &&Arc<str>| set.value(name, &mut self.goals) == GoalId::NEVER;
        let Some(name) = required.clone().find(never).cloned() else { return };
        let is_declared = |scope: &Rc<Scope>| scope.properties.iter().any(|(at, _)| *at == name);
        let is_matched = |scope: &Rc<Scope>| {
            scope.patterns.iter().any(|(names, goal)| {
                *goal == GoalId::NEVER && matching::matches(names.regex(), &name)
            })
        };
        let is_left_out = |scope: &Rc<Scope>| scope.others == GoalId::NEVER && !is_declared(scope);
        let why = match &set.scopes {
            scopes if scopes.iter().any(is_matched) => {
                "a pattern of `patternProperties` allows it no value"
            }
            scopes if scopes.iter().any(is_left_out) => {
                "not allowed: `properties` does not declare it, and `additionalProperties` lets no other in"
            }
            _ => "its schema allows no value",
        };
        self.contradict(schema, format!("`{name}` is required and {why}"));
    }

    /// Notes why a schema has no value; what is said first stays.
    pub(super) fn contradict(&mut self, schema: JsonId, why: String) {
        self.contradictions.entry(schema).or_insert(why);
    }

    /// Notes keywords of one schema that leave no value between them.
    pub(super) fn note_contradictions(
        &mut self,
        schema: JsonId,
        own: &KeywordConstraints,
    ) -> Result<()> {
        for (least, most) in [
            ("minLength", "maxLength"),
            ("minItems", "maxItems"),
            ("minProperties", "maxProperties"),
        ] {
            if let (Some(low), Some(high)) = (self.get(schema, least), self.get(schema, most))
                && self.count(low)? > self.count(high)?
            {
                self.contradict(schema, format!("`{least}` is more than `{most}`"));
            }
        }
        if own.numbers.intersection(&own.numbers).is_none() {
            self.contradict(schema, "no number is within all of its bounds".to_owned());
        }
        if let Some(at) = self.get(schema, "required")
            && let Some(most) = self.get(schema, "maxProperties")
            && self.names(at)?.len() as u64 > self.count(most)?
        {
            self.contradict(
                schema,
                "`required` lists more members than `maxProperties`".to_owned(),
            );
        }
        for keyword in ["enum", "anyOf", "oneOf", "type"] {
            if let Some(Json::Array(list)) =
                self.get(schema, keyword).map(|list| self.source.json(list))
                && list.is_empty()
            {
                self.contradict(schema, format!("`{keyword}` is an empty list"));
            }
        }
        Ok(())
    }

    /// Meaning of a schema for the closure of objects; none where they are not closed.
    fn closing(&self, schema: JsonId) -> Result<Closing> {
        let there = |keyword| self.get(schema, keyword);
        if !self.options.closed_objects {
            return Ok(Closing::default());
        }
        Ok(Closing {
            declares: there("properties").is_some(),
            says: there("additionalProperties").or(there("unevaluatedProperties")).is_some(),
            required: there("required").map_or(Ok(Vec::new()), |at| self.names(at))?,
        })
    }

    /// The members of an object of schemas.
    pub(super) fn named(&self, schema: JsonId, keyword: &str) -> Result<Vec<(Arc<str>, JsonId)>> {
        let Some(at) = self.get(schema, keyword) else { return Ok(Vec::new()) };
        match self.source.object(at) {
            Some(object) => Ok(object.members().to_vec()),
            None => Err(self.invalid(at, "must be an object".into())),
        }
    }

    /// A list of names, each once.
    pub(super) fn names(&self, at: JsonId) -> Result<Vec<Arc<str>>> {
        let Json::Array(items) = self.source.json(at) else {
            let reason = match self.source.json(at) {
                Json::Bool(_) => {
                    "must be a list of names, which stands beside `properties`: since draft 4 it is not said of each member"
                }
                _ => "must be a list of names",
            };
            return Err(self.invalid(at, reason.into()));
        };
        let mut names: Vec<Arc<str>> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for &item in items {
            let name = self.text(item)?;
            if seen.insert(name.clone()) {
                names.push(name);
            }
        }
        Ok(names)
    }

    pub(super) fn schemas(&self, at: JsonId) -> Result<Vec<JsonId>> {
        match self.source.json(at) {
            Json::Array(schemas) => Ok(schemas.clone()),
            _ => Err(self.invalid(at, "must be a list of schemas".into())),
        }
    }

    /// A pattern of ECMA-262, as the standard has it, with what other dialects have where it has
    /// nothing; what is none then is read as Python's and Rust's, whose patterns Pydantic and
    /// others export as they are.
    pub(super) fn pattern(&mut self, at: JsonId, text: &str) -> Result<Regex> {
        let (flags, mut first) = (Flags::default(), None);
        for dialect in [Dialect::Ecma, Dialect::Python, Dialect::Rust] {
            let mut notes = Vec::new();
            let into = (&mut self.budget, &mut notes);
            match parse_noting(text, dialect, flags, Reading::Search, into) {
                Err(error) if error.is_irregular => {
                    first = Some(error);
                    break;
                }
                Err(error) if error.interrupted.is_none() => _ = first.get_or_insert(error),
                read => {
                    for note in notes {
                        self.warn(at, format!("the pattern {text:?}: {}", note.message));
                    }
                    return self.pattern_or(at, text, read);
                }
            }
        }
        let first = first.expect("each dialect has refused it");
        self.pattern_or(at, text, Err(first))
    }

    fn pattern_or(
        &self,
        at: JsonId,
        text: &str,
        read: std::result::Result<Regex, RegexError>,
    ) -> Result<Regex> {
        read.map_err(|error| match error.interrupted {
            Some(why) => self.source.error(at, Kind::Interrupted(why)),
            None => self.unsupported(at, format!("the pattern {text:?}: {error}")),
        })
    }

    fn text(&self, at: JsonId) -> Result<Arc<str>> {
        match self.source.string(at) {
            Some(text) => Ok(text.clone()),
            None => Err(self.invalid(at, "must be a string".into())),
        }
    }

    pub(super) fn number(&self, at: JsonId) -> Result<Decimal> {
        let Json::Number(text) = self.source.json(at) else {
            return Err(self.invalid(at, "must be a number".into()));
        };
        let number = Decimal::parse(text).ok_or_else(|| {
            let shown: String = text.chars().take(MAX_SHOWN).collect();
            let more = if shown.len() < text.len() { "…" } else { "" };
            let reason = format!(
                "the exponent of {shown}{more} is not between {} and {}; write a number closer to zero and one, or \
                 leave it out",
                i32::MIN,
                i32::MAX
            );
            self.unsupported(at, reason)
        })?;
        self.of_few_digits(at, number, MAX_DIGITS)
    }

    /// A number that others are compared with.
    fn bound(&self, at: JsonId) -> Result<Decimal> {
        self.number(at).and_then(|bound| self.of_few_digits(at, bound, MAX_BOUND_DIGITS))
    }

    fn of_few_digits(&self, at: JsonId, number: Decimal, max: usize) -> Result<Decimal> {
        match number.digits.len() {
            count if count > max => Err(self
                .unsupported(at, format!("a number of {count} digits, more than {max}; round it"))),
            _ => Ok(number),
        }
    }

    /// A whole number, not below zero.
    pub(super) fn count(&self, at: JsonId) -> Result<u64> {
        // Gemini's interface writes 64-bit numbers in quotes.
        if let Some(Ok(count)) = self.source.string(at).map(|text| text.parse()) {
            return Ok(count);
        }
        let number = self.number(at)?;
        if number.negative || !number.is_integer() {
            return Err(self.invalid(at, "must be a whole number, not below zero".into()));
        }
        number.scaled(0).ok_or_else(|| {
            let reason =
                format!("must be at most {}; write a lower number or leave it out", u64::MAX);
            self.unsupported(at, reason)
        })
    }

    fn length(&self, at: JsonId) -> Result<u32> {
        u32::try_from(self.count(at)?).map_err(|_| {
            let max = u32::MAX as usize;
            self.over(at, "the length of a string", max, String::new())
        })
    }

    /// The set of one value.
    pub(super) fn one_value(&mut self, value: JsonId) -> Result<Cases> {
        Ok(match self.source.json(value) {
            Json::Null => Cases { null: true, ..Cases::none() },
            Json::Bool(true) => Cases { truth: true, ..Cases::none() },
            Json::Bool(false) => Cases { falsity: true, ..Cases::none() },
            Json::String(text) => Cases::strings(vec![StringSet::one(text.clone())]),
            Json::Number(_) => Cases::numbers(vec![NumberSet::one(self.number(value)?)]),
            Json::Array(items) => {
                let items = items.clone();
                let prefix: Vec<GoalId> =
                    items.into_iter().map(|item| self.value_goal(item, false)).collect();
                let length = prefix.len() as u64;
                let (min, max, rest) = (length, Some(length), GoalId::NEVER);
                Cases::array(ArraySet { prefix, rest, min, max, ..ArraySet::any() })
            }
            Json::Object(object) => {
                let members = object.members().to_vec();
                let mut set = ObjectSet::requiring(members.iter().map(|(name, _)| name.clone()));
                let properties = members
                    .into_iter()
                    .map(|(name, value)| (name, self.value_goal(value, false)))
                    .collect();
                let (patterns, others) = (Vec::new(), GoalId::NEVER);
                let closing = Closing::default();
                set.scopes.push(Rc::new(Scope { properties, patterns, others, closing }));
                Cases::object(set)
            }
        })
    }

    /// The values listed at `at`, scalars gathered.
    pub(super) fn values(&mut self, values: &[JsonId]) -> Result<Cases> {
        let mut cases = Cases::none();
        let mut texts: Vec<Arc<str>> = Vec::new();
        let mut numbers = BTreeSet::new();
        for &value in values {
            match self.source.json(value) {
                Json::String(text) => {
                    texts.push(text.clone());
                }
                Json::Number(_) => {
                    numbers.insert(self.number(value)?);
                }
                _ => {
                    let one = self.one_value(value)?;
                    cases = self.join(cases, &one)?;
                }
            }
        }
        if !texts.is_empty() {
            // PERF: sorted at once; a million texts one by one took three times as long.
            cases.strings.push(StringSet::OneOf(texts.into_iter().collect()));
        }
        if !numbers.is_empty() {
            cases.numbers.push(NumberSet::OneOf(numbers));
        }
        Ok(cases)
    }
}
