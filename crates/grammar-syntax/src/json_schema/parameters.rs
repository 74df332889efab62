//! Arguments as parameters between marks: each by its name, texts as they are, other values in
//! JSON.
//!
//! ```text
//! <parameter=city>
//! New "York"
//! </parameter>
//! <parameter=days>
//! 3
//! </parameter>
//! ```

use std::rc::Rc;

use super::{
    cases::Cases,
    compile::Result,
    emit::Emitter,
    error::Kind,
    goals::GoalId,
    object_plan::Plan,
    options::PropertyOrder,
    parameter_styles::{Frame, ParameterStyle},
    strings::StringSet,
};
use crate::free_text::without;
use crate::named_tokens::{TextPart, pieces};
use crate::{CharClass, NonterminalId, Regex, Symbol, TokenPart, TokenPattern};

/// Number of parameters that may come in any order; more come in the schema's.
const MAX_IN_ANY_ORDER: u32 = 6;

impl Emitter<'_, '_> {
    /// The parameters of the objects in `cases`, and blanks after the last.
    pub(super) fn parameters(
        &mut self,
        head: NonterminalId,
        cases: &Cases,
        style: &'static ParameterStyle,
    ) -> Result<()> {
        let (empty, blanks) = (self.part("nothing"), self.part("blanks"));
        self.rule(empty, Vec::new())?;
        self.rule(blanks, Vec::new())?;
        let some = self.pattern("blanks", self.spelling.some_layout(), None)?;
        self.rule(blanks, vec![some])?;
        let [empty, blanks] = [empty, blanks].map(Symbol::Nonterminal);
        self.frame = Some(Frame { style, empty, blanks });
        for object in &cases.objects {
            let fresh = self.part("parameters");
            self.object(fresh, object)?;
            self.rule(head, vec![Symbol::Nonterminal(fresh), blanks])?;
        }
        self.frame = None;
        Ok(())
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
            let reason = "parameters between marks are not counted where they may have names that are not declared; \
                          leave minProperties out, or set additionalProperties to false";
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

    /// The mark before a parameter's name, and the name.
    pub(super) fn parameter_name(&mut self, names: &StringSet, frame: Frame) -> Result<Symbol> {
        let regex = match names {
            StringSet::OneOf(_) => names.regex(),
            // A name that could be taken for a mark is none.
            StringSet::All { .. } => Regex::and([names.regex(), plain_name()]),
        };
        let mut body = vec![frame.blanks];
        body.extend(self.marks(frame.style.begin)?);
        body.push(self.pattern("name", regex, None)?);
        let head = self.part("name");
        self.rule(head, body)?;
        Ok(Symbol::Nonterminal(head))
    }

    /// Rest after a parameter's name: marks, its value, and the mark that ends it.
    pub(super) fn parameter_value(&mut self, goal: GoalId, frame: Frame) -> Result<Option<Symbol>> {
        if goal == GoalId::NEVER {
            return Ok(None);
        }
        if let Some(&known) = self.parameter_values.get(&goal) {
            return Ok(Some(Symbol::Nonterminal(known)));
        }
        let head = self.part("parameter");
        self.parameter_values.insert(goal, head);
        let cases = self.compiler.value_cases_closed(goal)?;
        let style = frame.style;
        self.compiler.no_members(&cases, "names a set of strings as JSON writes them, and this parameter is written as its text; use a style in JSON")?;
        if !cases.strings.is_empty() {
            let texts = Regex::alternate(cases.strings.iter().map(StringSet::regex));
            let line_end = || Regex::literal("\n").optional();
            let texts = Regex::concat([line_end(), texts, line_end()]);
            let inside = Regex::and([texts, without(&[style.end], &[style.end])]);
            let some = Regex::and([inside, Regex::Class(CharClass::any()).repeat(1, None)]);
            let some = self.pattern("text", some, None)?;
            let before = self.before_value(style.before_text, frame)?;
            let end = self.marks(style.end)?;
            self.rule(head, [&before[..], &[some], &end].concat())?;
            if cases.strings.iter().any(|strings| strings.contains("")) {
                self.rule(head, [before, end].concat())?;
            }
        }
        let in_json = Cases { strings: Vec::new(), ..Cases::clone(&cases) };
        if in_json.len() > 0 {
            let before = self.before_value(style.before_json, frame)?;
            let end = self.marks(style.end)?;
            let value = self.value_of(goal, Rc::new(in_json));
            let body = [&before[..], &[value, frame.blanks], &end].concat();
            self.rule(head, body)?;
        }
        Ok(Some(Symbol::Nonterminal(head)))
    }

    fn before_value(&mut self, after_name: &str, frame: Frame) -> Result<Vec<Symbol>> {
        let mut symbols = self.marks(after_name)?;
        if !frame.style.before_value.is_empty() {
            symbols.push(frame.blanks);
            symbols.extend(self.marks(frame.style.before_value)?);
        }
        Ok(symbols)
    }

    /// A fixed text, in which names of special tokens may be these tokens.
    fn marks(&mut self, text: &str) -> Result<Vec<Symbol>> {
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
        style: Option<&'static ParameterStyle>,
    ) -> Result<()> {
        let cases = self.compiler.value_cases_closed(goal)?;
        if cases.len() > 0 && cases.objects.is_empty() {
            let root = self.compiler.root();
            return Err(self.compiler.source.error(root, Kind::NoObject));
        }
        let objects = Cases { objects: cases.objects.clone(), ..Cases::none() };
        match style {
            Some(style) => self.parameters(head, &objects, style),
            None => {
                let value = self.value_of(goal, Rc::new(objects));
                self.rule(head, vec![value])
            }
        }
    }
}

/// Names without what marks are made of.
fn plain_name() -> Regex {
    let marks = ['<', '>', '"', '=', '/', '｜'].map(|mark| (mark, mark));
    let outside = marks.into_iter().chain([('\0', ' '), ('\u{7f}', '\u{a0}')]);
    Regex::Class(CharClass::any().difference(&CharClass::new(outside))).repeat(1, None)
}
