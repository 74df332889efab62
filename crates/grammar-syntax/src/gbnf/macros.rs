//! Macros of XGrammar's EBNF: what a name with arguments in parentheses stands for.
//!
//! ```text
//! TagDispatch(("<a>", rule), …, excludes=("</t>",), loop_after_dispatch=false)
//! TokenTagDispatch((7, rule), …, excludes=(9,))    Token(7, 8)    ExcludeToken(9)
//! Regex("[0-9]+", flags="is", json_string=true)    Substring("ab", "cd")
//! ```
//!
//! A dispatch is free text, or any tokens, in which each trigger is followed by its rule. A name
//! that is a rule's own is none of these.

use super::GbnfError;
use super::reader::Reader;
use super::syntax::{Expression, Kind};
use crate::chunks::{MAX_CHUNKS, parts_of};
use crate::free_text::without;
use crate::regex::{self, RegexOptions};
use crate::{CharClass, Regex, TokenPart, TokenPattern};

/// Names that a macro may have.
const MACROS: [&str; 6] =
    ["TagDispatch", "TokenTagDispatch", "Token", "ExcludeToken", "Regex", "Substring"];

type Result<T> = std::result::Result<T, GbnfError>;

/// An argument, and its byte range in the source.
struct Argument {
    value: Value,
    place: (usize, usize),
}

enum Value {
    Text(String),
    Number(u32),
    Flag(bool),
    Rule(String),
    Tuple(Vec<Argument>),
}

/// The arguments of a call: those without a name, and those with one.
#[derive(Default)]
struct Arguments {
    plain: Vec<Argument>,
    named: Vec<(String, Argument)>,
}

impl Reader<'_> {
    /// True when `name` is a macro's and an argument list follows, which is where the reader is.
    pub(super) fn at_macro(&self, name: &str) -> bool {
        MACROS.contains(&name)
            && !self.is_defined(name)
            && self.rest().trim_start().starts_with('(')
    }

    /// The expression that a macro stands for; the reader is after its name.
    pub(super) fn macro_call(&mut self, name: &str, start: usize) -> Result<Kind> {
        self.skip_blanks();
        let Arguments { plain, named } = self.arguments()?;
        let place = (start, self.at);
        let allowed: &[&str] = match name {
            "TagDispatch" | "TokenTagDispatch" => &["excludes", "loop_after_dispatch"],
            "Regex" => &["flags", "json_string"],
            _ => &[],
        };
        for (at, (argument, given)) in named.iter().enumerate() {
            if !allowed.contains(&&**argument) {
                let listed =
                    if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
                let rule = format!("{name} has no argument named {argument}; there are: {listed}");
                return Err(self.error(given.place, &rule));
            }
            if named[..at].iter().any(|(before, _)| before == argument) {
                return Err(self.error(given.place, &format!("{argument} is given twice")));
            }
        }
        let option = |name: &str| named.iter().find(|(given, _)| given == name).map(|(_, it)| it);
        match name {
            "TagDispatch" | "TokenTagDispatch" => {
                let loops = option("loop_after_dispatch").map_or(Ok(true), |it| self.flag(it))?;
                let excludes = match option("excludes") {
                    None => &[][..],
                    Some(Argument { value: Value::Tuple(items), .. }) => items,
                    Some(other) => {
                        let rule = "excludes is a tuple: `excludes=(\"a\", \"b\")`";
                        return Err(self.error(other.place, rule));
                    }
                };
                match name {
                    "TagDispatch" => self.tag_dispatch(&plain, excludes, loops, place),
                    _ => self.token_dispatch(&plain, excludes, loops, place),
                }
            }
            "Token" | "ExcludeToken" if plain.is_empty() => {
                let rule = format!("{name} has the number of one token at least: `{name}(7)`");
                Err(self.error(place, &rule))
            }
            "Token" => Ok(Kind::Tokens(self.tokens_of(&plain, false)?)),
            "ExcludeToken" => Ok(Kind::Tokens(self.tokens_of(&plain, true)?)),
            "Regex" => {
                let flags = option("flags").map(|it| self.text(it)).transpose()?;
                let in_json = option("json_string").map_or(Ok(false), |it| self.flag(it))?;
                let [pattern] = &plain[..] else {
                    return Err(self.error(place, "Regex has one text, the expression"));
                };
                let regex = self.regex(pattern, flags)?;
                let plain = CharClass::new([(' ', '!'), ('#', '['), (']', char::MAX)]);
                Ok(Kind::Pattern(match in_json {
                    true => Regex::and([regex, Regex::Class(plain).repeat(0, None)]),
                    false => regex,
                }))
            }
            _ => {
                let chunks = plain.iter().map(|chunk| self.text(chunk).map(str::to_owned));
                let chunks = chunks.collect::<Result<Vec<_>>>()?;
                if chunks.len() > MAX_CHUNKS {
                    let rule = format!(
                        "{} texts; a part may begin at each of at most {MAX_CHUNKS}: use larger ones",
                        chunks.len()
                    );
                    return Err(self.error(place, &rule));
                }
                Ok(Kind::Embedded(Box::new(parts_of(&chunks))))
            }
        }
    }

    /// An expression in the notation of regular expressions; `.` is any character unless flags
    /// are given.
    fn regex(&mut self, pattern: &Argument, flags: Option<&str>) -> Result<Regex> {
        let mut options = RegexOptions::default();
        options.flags.dot_all = flags.is_none();
        for letter in flags.unwrap_or_default().chars() {
            match letter {
                'i' => options.flags.ignore_case = true,
                's' => options.flags.dot_all = true,
                'u' => {}
                _ => {
                    let rule = format!("the flag {letter:?} is not known; there are i, s and u");
                    return Err(self.error(pattern.place, &rule));
                }
            }
        }
        let source = self.text(pattern)?;
        let read = regex::read_with_budget(source, &options, &mut self.budget);
        read.map_err(|error| {
            let message = format!("in this expression: {error}");
            GbnfError { interrupted: error.interrupted, ..self.error(pattern.place, &message) }
        })
    }

    fn tag_dispatch(
        &self,
        pairs: &[Argument],
        excludes: &[Argument],
        loops: bool,
        place: (usize, usize),
    ) -> Result<Kind> {
        let rule = "a tag is a pair of a text that is not empty and a rule: `(\"<a>\", rule)`";
        let pairs = self.pairs(pairs, rule, |value| match value {
            Value::Text(text) if !text.is_empty() => Some(text.clone()),
            _ => None,
        })?;
        let triggers: Vec<&str> = pairs.iter().map(|(trigger, _)| &**trigger).collect();
        let mut stops = triggers.clone();
        for exclude in excludes {
            let text = self.text(exclude)?;
            if text.is_empty() || triggers.iter().any(|trigger| trigger.starts_with(text)) {
                let rule = "this text stands everywhere, or begins a tag that could not be written; leave it out";
                return Err(self.error(exclude.place, rule));
            }
            stops.push(text);
        }
        let some = || Regex::Class(CharClass::any()).repeat(1, None);
        let free = |next: &[&str]| Kind::FreeText(Regex::and([some(), without(&stops, next)]));
        let (before, last) = (free(&triggers), free(&[]));
        let tags = pairs.iter().map(|(trigger, rule)| {
            let parts = [Kind::Literal(trigger.clone()), Kind::Reference(rule.clone())];
            Kind::Sequence(parts.map(|kind| Expression { kind, place }).into())
        });
        Ok(dispatch(before, last, tags.collect(), (loops, false), place))
    }

    fn token_dispatch(
        &self,
        pairs: &[Argument],
        excludes: &[Argument],
        loops: bool,
        place: (usize, usize),
    ) -> Result<Kind> {
        let rule = "a trigger is a pair of a token's number and a rule: `(7, rule)`";
        let pairs = self.pairs(pairs, rule, |value| match value {
            Value::Number(number) => Some(*number),
            _ => None,
        })?;
        let mut others = self.tokens_of(excludes, true)?;
        let triggers: Vec<_> =
            pairs.iter().map(|&(number, _)| TokenPart::Numbers(number, number)).collect();
        if let Some(at) = others.parts.iter().position(|part| triggers.contains(part)) {
            let rule = "this token begins a rule and could not be written; leave it out";
            return Err(self.error(excludes[at].place, rule));
        }
        others.parts = [&triggers[..], &others.parts[..]].concat().into();
        let tags = pairs.iter().zip(&triggers).map(|((_, rule), trigger)| {
            let token = TokenPattern { parts: [trigger.clone()].into(), negated: false };
            let parts = [Kind::Tokens(token), Kind::Reference(rule.clone())];
            Kind::Sequence(parts.map(|kind| Expression { kind, place }).into())
        });
        let others = || Kind::Tokens(others.clone());
        Ok(dispatch(others(), others(), tags.collect(), (loops, true), place))
    }

    fn pairs<T>(
        &self,
        pairs: &[Argument],
        rule: &str,
        first: fn(&Value) -> Option<T>,
    ) -> Result<Vec<(T, String)>> {
        let pair = |argument: &Argument| {
            let found = match &argument.value {
                Value::Tuple(items) => match &items[..] {
                    [one, Argument { value: Value::Rule(name), .. }] => {
                        first(&one.value).map(|one| (one, name.clone()))
                    }
                    _ => None,
                },
                _ => None,
            };
            found.ok_or_else(|| self.error(argument.place, rule))
        };
        pairs.iter().map(pair).collect()
    }

    fn tokens_of(&self, numbers: &[Argument], negated: bool) -> Result<TokenPattern> {
        let one = |argument: &Argument| match argument.value {
            Value::Number(number) => Ok(TokenPart::Numbers(number, number)),
            _ => Err(self.error(argument.place, "a token is its number here: `7`")),
        };
        Ok(TokenPattern { parts: numbers.iter().map(one).collect::<Result<_>>()?, negated })
    }

    fn text<'v>(&self, argument: &'v Argument) -> Result<&'v str> {
        match &argument.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.error(argument.place, "a text stands here: `\"…\"`")),
        }
    }

    fn flag(&self, argument: &Argument) -> Result<bool> {
        match argument.value {
            Value::Flag(flag) => Ok(flag),
            _ => Err(self.error(argument.place, "`true` or `false` stands here")),
        }
    }

    /// `(value, name=value, …)`
    fn arguments(&mut self) -> Result<Arguments> {
        let mut found = Arguments::default();
        self.list(&mut |reader| {
            let start = reader.at;
            let value = reader.value(true)?;
            reader.skip_blanks();
            match value {
                Value::Rule(name) if reader.eat("=") => {
                    reader.skip_blanks();
                    let start = reader.at;
                    let value = reader.value(true)?;
                    found.named.push((name, Argument { value, place: (start, reader.at) }));
                }
                value => found.plain.push(Argument { value, place: (start, reader.at) }),
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Items between parentheses and commas, of which one may be the last.
    fn list(&mut self, one: &mut dyn FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let start = self.at;
        self.eat("(");
        self.skip_blanks();
        while !self.eat(")") {
            self.spend(start)?;
            one(self)?;
            self.skip_blanks();
            if !self.eat(",") && self.peek() != Some(')') {
                return Err(self.unexpected("arguments are between parentheses, with commas"));
            }
            self.skip_blanks();
        }
        Ok(())
    }

    fn value(&mut self, tuples: bool) -> Result<Value> {
        match self.peek() {
            Some('"') => self.literal().map(Value::Text),
            Some('0'..='9') => self.number().map(Value::Number),
            Some('(') if tuples => {
                let mut items = Vec::new();
                self.list(&mut |reader| {
                    let start = reader.at;
                    let value = reader.value(false)?;
                    items.push(Argument { value, place: (start, reader.at) });
                    Ok(())
                })?;
                Ok(Value::Tuple(items))
            }
            _ => match self.name() {
                "" => Err(self.unexpected(
                    "an argument is a text, a number, `true`, `false`, a rule's name, or a tuple of these",
                )),
                "true" => Ok(Value::Flag(true)),
                "false" => Ok(Value::Flag(false)),
                name => Ok(Value::Rule(name.to_owned())),
            },
        }
    }
}

/// Free text, `before` a tag and as the `last`, among `tags`; the free parts may be repeated where
/// they are single tokens.
fn dispatch(
    before: Kind,
    last: Kind,
    tags: Vec<Kind>,
    (loops, are_single): (bool, bool),
    place: (usize, usize),
) -> Kind {
    let here = |kind| Expression { kind, place };
    let max = if are_single { None } else { Some(1) };
    let some = |kind| here(Kind::Repeat(Box::new(here(kind)), 0, max));
    let last = some(last);
    if tags.is_empty() {
        return last.kind;
    }
    let tag = here(Kind::Choice(tags.into_iter().map(here).collect()));
    let tag = here(Kind::Sequence(vec![some(before), tag]));
    match loops {
        true => Kind::Sequence(vec![here(Kind::Repeat(Box::new(tag), 0, None)), last]),
        false => Kind::Choice(vec![last, tag]),
    }
}
