//! Arguments as parameters between marks, or as keywords.
//!
//! ```text
//! <parameter=city>
//! New "York"
//! </parameter>
//! <parameter=days>
//! 3
//! </parameter>
//! ```
//!
//! A text between marks is written as it is, another value in JSON. Which of them a value is shows
//! in the marks, or in the schema; where that allows both, a text that could be read as one of the
//! other values is none: `null`, numbers, what begins as a list or an object does.

use std::rc::Rc;
use std::sync::Arc;

use super::{
    argument_styles::{ArgumentStyle, Frame},
    cases::Cases,
    compile::Result,
    emit::Emitter,
    error::Kind,
    goals::GoalId,
    json_text::some_blanks,
    number_text::{any_integer, any_number},
    numbers::{NumberSet, Property},
    object_plan::Plan,
    options::PropertyOrder,
    parameter_names::NamePlace,
    parameter_styles::{ITEM, ParameterStyle},
    strings::StringSet,
};
use crate::free_text::without;
use crate::named_tokens::{TextPart, pieces};
use crate::{CharClass, NonterminalId, Regex, Symbol, TokenPart, TokenPattern};

/// Number of parameters that may come in any order; more come in the schema's.
const MAX_IN_ANY_ORDER: u32 = 6;

impl Emitter<'_, '_> {
    /// The parameters of the objects in `cases`, and blanks after the last; keywords where there is
    /// no style.
    pub(super) fn parameters(
        &mut self,
        head: NonterminalId,
        cases: &Cases,
        style: Option<&'static ParameterStyle>,
    ) -> Result<()> {
        let (empty, blanks) = (self.part("nothing"), self.part("blanks"));
        self.rule(empty, Vec::new())?;
        self.rule(blanks, Vec::new())?;
        let [empty, blanks_symbol] = [empty, blanks].map(Symbol::Nonterminal);
        let comma = match style {
            Some(_) => {
                let some = self.pattern("blanks", self.spelling.some_layout(), None)?;
                self.rule(blanks, vec![some])?;
                empty
            }
            None => self.keyword_comma()?,
        };
        self.frame = Some(Frame { style, empty, comma, blanks: blanks_symbol });
        for object in &cases.objects {
            let fresh = self.part("parameters");
            self.object(fresh, object)?;
            self.rule(head, vec![Symbol::Nonterminal(fresh), blanks_symbol])?;
        }
        self.frame = None;
        Ok(())
    }

    fn keyword_comma(&mut self) -> Result<Symbol> {
        let comma = Regex::concat([Regex::literal(","), Regex::literal(" ").optional()]);
        self.pattern(",", comma, None)
    }

    /// The order of parameters; an error where they would have to be counted by names that are not
    /// known.
    pub(super) fn parameter_order(
        &self,
        plan: &Plan,
        order: PropertyOrder,
    ) -> Result<PropertyOrder> {
        let num_declared = plan.places.iter().filter(|place| place.declared).count();
        let others = plan.is_open() || num_declared < plan.places.len();
        if plan.tells_names_apart() && others {
            let reason = "minProperties counts parameters, and outside of JSON none are counted that have no declared names; \
                          leave it out, or set additionalProperties to false";
            return Err(self.compiler.unsupported(self.compiler.place(), reason));
        }
        Ok(match order {
            PropertyOrder::Any { max_tracked }
                if plan.places.len() <= max_tracked.max(MAX_IN_ANY_ORDER) as usize =>
            {
                PropertyOrder::Any { max_tracked: max_tracked.max(MAX_IN_ANY_ORDER) }
            }
            _ => PropertyOrder::Schema,
        })
    }

    /// The mark before a parameter's name, and the name; of a keyword its name and the mark after.
    ///
    /// # Errors
    /// When one that the schema lists cannot be written.
    pub(super) fn parameter_name(&mut self, names: &StringSet, frame: Frame) -> Result<Symbol> {
        let place = frame.style.map_or(NamePlace::Bare, NamePlace::Marks);
        self.check_names(names, place)?;
        let Some(style) = frame.style else {
            let Some(name) = NamePlace::bare_names(names) else { return Ok(self.nothing()) };
            let regex = Regex::concat([name, Regex::literal("=")]);
            return self.pattern("name=", regex, None);
        };
        let regex = match names {
            StringSet::OneOf(listed) => {
                let written = listed.iter().map(|name| style.written_name(name));
                Regex::alternate(written.map(|name| Regex::literal(&name)))
            }
            // A name that could be taken for a mark is none, nor for one with an escape.
            StringSet::All { .. } => match NamePlace::bare_names(names) {
                None => return Ok(self.nothing()),
                Some(regex) if style.escapes_names => {
                    let escapes = [Regex::anything(), Regex::literal("&"), Regex::anything()];
                    Regex::and([regex, Regex::complement(Regex::concat(escapes))])
                }
                Some(regex) => regex,
            },
        };
        let mut body = vec![frame.blanks];
        body.extend(self.marks(style.begin)?);
        body.push(self.pattern("name", regex, None)?);
        let head = self.part("name");
        self.rule(head, body)?;
        Ok(Symbol::Nonterminal(head))
    }

    /// Refuses names that a schema lists and that cannot be written at a place.
    pub(super) fn check_names(&self, names: &StringSet, place: NamePlace) -> Result<()> {
        let StringSet::OneOf(listed) = names else { return Ok(()) };
        let broken = |name: &Arc<str>| Some((name.clone(), place.broken_rule(name)?));
        let Some((name, rule)) = listed.iter().find_map(broken) else { return Ok(()) };
        let source = &self.compiler.source;
        let at = source.declaring(&name).unwrap_or_else(|| self.compiler.place());
        Err(source.error(at, Kind::ParameterName { name: name.to_string(), rule }))
    }

    /// Rules of a member, by its name where the mark after the value repeats it; false where it
    /// does not. Of names that are not known one by one none is written there: no rule could tell
    /// which it was.
    pub(super) fn members_ended_by_name(
        &mut self,
        head: NonterminalId,
        names: &StringSet,
        value: Symbol,
    ) -> Result<bool> {
        let style = self.frame.and_then(|frame| frame.style);
        let Some(style) = style.filter(|style| style.ends_by_name()) else { return Ok(false) };
        let StringSet::OneOf(listed) = names else { return Ok(true) };
        for name in listed {
            let begin = self.name(&StringSet::one(name.clone()), None)?;
            let mut body = vec![begin, value];
            body.extend(self.marks(&style.end_of(name))?);
            self.rule(head, body)?;
        }
        Ok(true)
    }

    /// Rest after a parameter's name: marks, its value, and the mark that ends it, unless that
    /// repeats the name; of an item of a list all of it.
    pub(super) fn parameter_value(
        &mut self,
        goal: GoalId,
        style: &'static ParameterStyle,
        is_item: bool,
    ) -> Result<Option<Symbol>> {
        if goal == GoalId::NEVER {
            return Ok(None);
        }
        if let Some(&known) = self.parameter_values.get(&(goal, is_item)) {
            return Ok(Some(Symbol::Nonterminal(known)));
        }
        let head = self.part("parameter");
        self.parameter_values.insert((goal, is_item), head);
        let cases = self.compiler.value_cases_closed(goal)?;
        self.compiler.no_members(&cases, "names a set of strings as JSON writes them, and this parameter is written as its text; use a style in JSON")?;
        let blanks = self.frame.map(|frame| frame.blanks);
        let end = match style.ends_by_name() {
            true if is_item => self.marks(&style.end_of(ITEM))?,
            true => Vec::new(),
            false => self.marks(style.end)?,
        };
        if style.is_nested() && style.tells_types() && goal == GoalId::ANY {
            // What may be anything is JSON, whose types nobody needs to tell.
            let before = self.before_value(&style.before_type(""), style, is_item)?;
            let value = self.value_of(goal, cases);
            self.rule(head, [&before[..], &[value], blanks.as_slice(), &end].concat())?;
            return Ok(Some(Symbol::Nonterminal(head)));
        }
        let in_json = Cases { strings: Vec::new(), ..Cases::clone(&cases) };
        let in_marks = self.is_in_marks(goal, &cases, style)?;
        if !cases.strings.is_empty() {
            let (texts, stop) = (padded(&cases.strings, style.padding), style.text_stop());
            let mut inside = vec![texts, without(&[stop], &[stop])];
            inside.push(Regex::Class(CharClass::any()).repeat(1, None));
            if style.before_text == style.before_json
                && let Some(others) = read_as_json(&in_json)
            {
                inside.push(Regex::complement(others));
            }
            let some = self.pattern("text", Regex::and(inside), None)?;
            let before = self.before_value(style.before_text, style, is_item)?;
            self.rule(head, [&before[..], &[some], &end].concat())?;
            if cases.strings.iter().any(|strings| strings.contains("")) {
                self.rule(head, [&before[..], &end].concat())?;
            }
        }
        for (type_name, in_json) in by_type(in_json, style, goal == GoalId::ANY) {
            let before = self.before_value(&style.before_type(type_name), style, is_item)?;
            let values = match in_marks {
                true => self.nested_values(goal, in_json)?,
                false => vec![self.value_of(goal, Rc::new(in_json))],
            };
            for value in values {
                self.rule(head, [&before[..], &[value], blanks.as_slice(), &end].concat())?;
            }
        }
        Ok(Some(Symbol::Nonterminal(head)))
    }

    /// True where lists and objects among the values stand in marks, too. Where marks do not tell
    /// of what type a value is, they do if it is a list or an object without doubt, as an empty
    /// text is read by the schema alone, and if the object has names that are known.
    fn is_in_marks(&mut self, goal: GoalId, cases: &Cases, style: &ParameterStyle) -> Result<bool> {
        if !style.is_nested() || style.tells_types() {
            return Ok(style.is_nested());
        }
        let is_either = cases.arrays.is_empty() != cases.objects.is_empty();
        if goal == GoalId::ANY || !cases.strings.is_empty() || !is_either {
            return Ok(false);
        }
        for object in &cases.objects {
            let plan = self.plan(object)?;
            if plan.is_some_and(|plan| plan.is_open() && plan.places.is_empty()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The values of cases where lists and objects are written in marks.
    fn nested_values(&mut self, goal: GoalId, cases: Cases) -> Result<Vec<Symbol>> {
        let mut values = Vec::new();
        for array in &cases.arrays {
            if array.unique.is_some() {
                let reason = "is not kept where items stand between marks; leave it out";
                return Err(self.compiler.unsupported(self.compiler.place(), reason));
            }
            let fresh = self.part("items");
            self.array(fresh, array)?;
            values.push(Symbol::Nonterminal(fresh));
        }
        for object in &cases.objects {
            let fresh = self.part("parameters");
            self.object(fresh, object)?;
            values.push(Symbol::Nonterminal(fresh));
        }
        let others = Cases { arrays: Vec::new(), objects: Vec::new(), ..cases };
        if others.len() > 0 {
            values.push(self.value_of(goal, Rc::new(others)));
        }
        Ok(values)
    }

    fn before_value(
        &mut self,
        after_name: &str,
        style: &ParameterStyle,
        is_item: bool,
    ) -> Result<Vec<Symbol>> {
        let mut symbols = Vec::new();
        if is_item {
            symbols.extend(self.frame.map(|frame| frame.blanks));
            symbols.extend(self.marks(&style.before_item(after_name))?);
        } else {
            symbols.extend(self.marks(after_name)?);
        }
        if !style.before_value.is_empty() {
            symbols.extend(self.frame.map(|frame| frame.blanks));
            symbols.extend(self.marks(style.before_value)?);
        }
        Ok(symbols)
    }

    /// A fixed text, in which names of special tokens may be these tokens.
    pub(super) fn marks(&mut self, text: &str) -> Result<Vec<Symbol>> {
        let mut symbols = Vec::new();
        for piece in pieces(text) {
            let literal = |text: &str| (format!("{text:?}"), Regex::literal(text));
            match piece {
                TextPart::Text(text) => {
                    let (name, regex) = literal(text);
                    symbols.push(self.pattern(&name, regex, None)?);
                }
                TextPart::Name(text) => {
                    let (name, regex) = literal(text);
                    let spelled = self.pattern(&name, regex, None)?;
                    let parts = [TokenPart::Optional(text.into())].into();
                    let tokens = TokenPattern { parts, negated: false };
                    let token = self.pattern(&tokens.to_string(), Regex::Tokens(tokens), None)?;
                    let either = self.part(text);
                    self.rule(either, vec![spelled])?;
                    self.rule(either, vec![token])?;
                    symbols.push(Symbol::Nonterminal(either));
                }
            }
        }
        Ok(symbols)
    }

    /// The rules of a text that is an object, or its parameters: values of other types are none.
    pub(super) fn arguments(
        &mut self,
        head: NonterminalId,
        goal: GoalId,
        style: ArgumentStyle,
    ) -> Result<()> {
        let cases = self.compiler.value_cases_closed(goal)?;
        if cases.len() > 0 && cases.objects.is_empty() {
            let root = self.compiler.root();
            return Err(self.compiler.source.error(root, Kind::NoObject));
        }
        let objects = Cases { objects: cases.objects.clone(), ..Cases::none() };
        match style {
            ArgumentStyle::Parameters(style) => self.parameters(head, &objects, Some(style)),
            ArgumentStyle::Keywords => self.parameters(head, &objects, None),
            ArgumentStyle::Json | ArgumentStyle::Notated(_) => {
                let value = self.value_of(goal, Rc::new(objects));
                self.rule(head, vec![value])
            }
        }
    }
}

/// The cases by the types of values that a style tells apart, each with the name of its type; all
/// together where it tells none. An integer is a number where a schema asks for either; where it
/// asks for nothing, either may be said of it.
fn by_type(cases: Cases, style: &ParameterStyle, is_any: bool) -> Vec<(&'static str, Cases)> {
    let none = Cases::none;
    let Cases { null, truth, falsity, .. } = cases;
    let integers = match is_any {
        true => vec![NumberSet::with(Property::Integer, true)],
        false => Vec::new(),
    };
    let all = match style.tells_types() {
        false => vec![("", cases)],
        true => vec![
            ("null", Cases { null, ..none() }),
            ("boolean", Cases { truth, falsity, ..none() }),
            ("number", Cases { numbers: cases.numbers, ..none() }),
            ("integer", Cases { numbers: integers, ..none() }),
            ("array", Cases { arrays: cases.arrays, ..none() }),
            ("object", Cases { objects: cases.objects, ..none() }),
        ],
    };
    all.into_iter().filter(|(_, cases)| cases.len() > 0).collect()
}

/// Texts of which one of `strings` is left when the padding is taken off, once before and once
/// after.
fn padded(strings: &[StringSet], padding: &str) -> Regex {
    let texts = Regex::alternate(strings.iter().map(StringSet::regex));
    if padding.is_empty() || strings.contains(&StringSet::any()) {
        return texts;
    }
    let pad = Regex::literal(padding);
    let is_inside = |text: &str| !text.starts_with(padding) && !text.ends_with(padding);
    let are_listed = strings.iter().all(|set| match set {
        StringSet::OneOf(texts) => texts.iter().all(|text| is_inside(text)),
        StringSet::All { .. } => false,
    });
    if are_listed {
        return Regex::concat([pad.clone().optional(), texts, pad.optional()]);
    }
    let starts = Regex::concat([pad.clone(), Regex::anything()]);
    let ends = Regex::concat([Regex::anything(), pad.clone()]);
    let [no_start, no_end] = [starts, ends].map(Regex::complement);
    Regex::alternate([
        Regex::concat([pad.clone(), texts.clone(), pad.clone()]),
        Regex::concat([pad.clone(), Regex::and([texts.clone(), no_end.clone()])]),
        Regex::concat([Regex::and([texts.clone(), no_start.clone()]), pad]),
        Regex::and([texts, no_start, no_end]),
    ])
}

/// Texts that are read as a value of `cases` and not as themselves, where both may be; none where
/// only texts may be.
fn read_as_json(cases: &Cases) -> Option<Regex> {
    if cases.len() == 0 {
        return None;
    }
    // Whoever reads knows the kinds of values alone: `false` is read where `true` may be.
    let is_boolean = cases.truth || cases.falsity;
    let mut texts = Vec::new();
    for (there, word) in [(cases.null, "null"), (is_boolean, "true"), (is_boolean, "false")] {
        texts.extend(there.then(|| Regex::literal(word)));
    }
    if !cases.numbers.is_empty() {
        let are_integers = cases.numbers.iter().all(NumberSet::has_integers_alone);
        let letter = Regex::Class(CharClass::new([('e', 'e'), ('E', 'E')]));
        let exponent = Regex::concat([Regex::anything(), letter, Regex::anything()]);
        texts.push(match are_integers {
            true => Regex::alternate([any_integer(true), Regex::and([any_number(), exponent])]),
            false => any_number(),
        });
    }
    let blanks = some_blanks().optional();
    let mut read = vec![Regex::concat([blanks.clone(), Regex::alternate(texts), blanks.clone()])];
    for (is_none, bracket) in [(cases.arrays.is_empty(), "["), (cases.objects.is_empty(), "{")] {
        if !is_none {
            read.push(Regex::concat([blanks.clone(), Regex::literal(bracket), Regex::anything()]));
        }
    }
    Some(Regex::alternate(read))
}
