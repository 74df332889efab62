//! Words to statements.

use std::ops::Range;

use super::{
    embedded,
    error::Problems,
    literals,
    syntax::{Definition, Expr, Name, Statement},
    tokens::{self, Kind, Word},
};
use crate::token_references;

/// Groups within groups past this many are an error: every later pass goes into them by recursion.
pub(super) const MAX_NESTING: usize = 100;

/// Cost of a statement, beside its regular expressions and texts.
const UNITS_PER_STATEMENT: usize = 64;

/// The statements of a grammar, in order; what is wrong with it is added to `problems`, and the
/// next statement is tried.
pub(super) fn statements(problems: &mut Problems<'_>) -> Vec<Statement> {
    let words = tokens::cut(problems);
    let mut parser = Parser { words, at: 0, depth: 0, problems, statements: Vec::new() };
    while parser.peek().kind != Kind::End {
        if parser.take(Kind::Newline) {
            continue;
        }
        if parser.problems.spend(UNITS_PER_STATEMENT).is_none() {
            break;
        }
        parser.depth = 0;
        let before = parser.at;
        if parser.statement().is_none() {
            parser.at = parser.at.max(before + 1).min(parser.words.len() - 1);
            while parser.peek().kind != Kind::End && !parser.at_statement() {
                parser.at += 1;
            }
        }
    }
    parser.statements
}

/// A `None` of its methods means that the reason has been reported.
pub(super) struct Parser<'p, 'a> {
    words: Vec<Word>,
    at: usize,
    /// Number of groups that are open.
    pub(super) depth: usize,
    pub(super) problems: &'p mut Problems<'a>,
    pub(super) statements: Vec<Statement>,
}

impl Parser<'_, '_> {
    fn statement(&mut self) -> Option<()> {
        if self.peek().kind != Kind::Directive {
            let definition = self.definition()?;
            self.statements.push(Statement::Define(definition));
            return Some(());
        }
        let directive = self.next();
        match self.text(&directive.range) {
            "%extend" => {
                let definition = self.definition()?;
                self.statements.push(Statement::Extend(definition));
            }
            "%override" => {
                let definition = self.definition()?;
                self.statements.push(Statement::Override(definition));
            }
            "%ignore" => {
                let from = self.peek().range.start;
                let ignored = self.choice()?;
                let to = self.words[self.at.saturating_sub(1)].range.end;
                self.end_of_statement()?;
                self.statements.push(Statement::Ignore(ignored, from..to.max(from)));
            }
            "%declare" => {
                while self.is_name() {
                    let name = self.name()?;
                    self.statements.push(Statement::Declare(name));
                }
                self.end_of_statement()?;
            }
            "%import" => self.import()?,
            "%llguidance" => self.header()?,
            other => {
                let message = format!(
                    "`{other}` is not supported; there are %import, %ignore, %declare, %extend and %override"
                );
                self.problems.add(&directive.range, message);
                return None;
            }
        }
        Some(())
    }

    /// `?name{parameters}.priority: …`
    fn definition(&mut self) -> Option<Definition> {
        while self.take(Kind::Mark('?')) || self.take(Kind::Mark('!')) {}
        if !self.is_name() {
            return self.unexpected("a definition begins with the name of a rule or a terminal");
        }
        let is_terminal = self.peek().kind == Kind::TerminalName;
        let name = self.name()?;
        let mut parameters = Vec::new();
        if self.peek().kind == Kind::Mark('{') {
            let open = self.next();
            if is_terminal {
                self.problems.add(&open.range, "only rules can be templates, not terminals");
                return None;
            }
            loop {
                if self.peek().kind != Kind::RuleName {
                    return self.unexpected("a template's parameters are lower_case names");
                }
                parameters.push(self.name()?);
                if !self.take(Kind::Mark(',')) {
                    break;
                }
            }
            self.expect('}', "to close the template's parameters")?;
        }
        if self.is_number_next() && !is_terminal {
            parameters.push(self.own_number()?);
        }
        let attributes = self.attributes()?;
        let mut priority = 0;
        if self.take(Kind::Mark('.')) {
            let number = self.peek().clone();
            if number.kind != Kind::Number {
                return self.unexpected("a priority is a whole number, as in `NAME.2: …`");
            }
            let Ok(read) = self.text(&number.range).parse() else {
                self.problems.add(&number.range, "a priority must fit in 32 bits");
                return None;
            };
            priority = read;
            self.at += 1;
        }
        if !self.take(Kind::Mark(':')) {
            return self.unexpected("a definition is written `name: …`; here the `:` is missing");
        }
        let body = self.choice()?;
        self.end_of_statement()?;
        let plain =
            Definition { is_terminal, parameters, priority, ..Definition::terminal(name, body) };
        Some(self.with_attributes(plain, attributes))
    }

    /// `a | b -> alias | …`
    fn choice(&mut self) -> Option<Expr> {
        let mut options = Vec::new();
        loop {
            let option = self.conjunction()?;
            options.push(self.conditioned(option)?);
            if self.peek().kind == Kind::Arrow {
                let arrow = self.next();
                if self.depth > 0 {
                    self.problems.add(
                        &arrow.range,
                        "an alias names a whole alternative of a rule, not one inside a group: leave it out or make \
                         the group a rule",
                    );
                    return None;
                }
                if !self.is_name() {
                    return self.unexpected("after `->` comes the alternative's name");
                }
                self.name()?;
            }
            if !self.take(Kind::Mark('|')) {
                break;
            }
        }
        Some(if options.len() == 1 { options.remove(0) } else { Expr::Choice(options) })
    }

    /// `a b & c d`
    fn conjunction(&mut self) -> Option<Expr> {
        let from = self.peek().range.start;
        let mut parts = vec![self.sequence()?];
        while self.take(Kind::Mark('&')) {
            parts.push(self.sequence()?);
        }
        let to = self.words[self.at.saturating_sub(1)].range.end.max(from);
        Some(if parts.len() == 1 { parts.remove(0) } else { Expr::And(parts, from..to) })
    }

    fn sequence(&mut self) -> Option<Expr> {
        let mut parts = Vec::new();
        loop {
            self.skip_breaks_in_group();
            match self.peek().kind {
                Kind::Newline | Kind::End | Kind::Arrow | Kind::Mark('|' | '&' | ')' | ']') => {
                    break;
                }
                Kind::Directive if self.is_if() => break,
                _ => parts.push(self.repeated()?),
            }
        }
        Some(if parts.len() == 1 { parts.remove(0) } else { Expr::Sequence(parts) })
    }

    /// An atom and how often it may stand there.
    fn repeated(&mut self) -> Option<Expr> {
        let start = self.peek().range.start;
        let negated = self.take(Kind::Mark('~'));
        let inner = self.atom()?;
        let bounds = match self.peek().kind {
            Kind::Mark('?') => self.postfix((0, Some(1))),
            Kind::Mark('*') => self.postfix((0, None)),
            Kind::Mark('+') => self.postfix((1, None)),
            Kind::Mark('~') if self.word(1).kind == Kind::Number => Some(self.tilde_bounds()?),
            Kind::Mark('{') => Some(self.brace_bounds()?),
            _ => None,
        };
        let range = start..self.words[self.at.saturating_sub(1)].range.end;
        if bounds.is_some()
            && (matches!(self.peek().kind, Kind::Mark('?' | '*' | '+' | '{'))
                || self.peek().kind == Kind::Mark('~') && self.word(1).kind == Kind::Number)
        {
            return self.unexpected("two repetitions of one thing: put the first into parentheses");
        }
        if negated && bounds.is_some() {
            self.problems.add(&range, "`~` before and a repetition after: write `~(…)` or `(~…)…`");
            return None;
        }
        Some(match bounds {
            _ if negated => Expr::Not(Box::new(inner), range),
            None => inner,
            Some((min, max)) => {
                if max.is_some_and(|max| max < min) {
                    let message = format!("{min} to {} times is never", max.unwrap_or(0));
                    self.problems.add(&range, message);
                    return None;
                }
                Expr::Repeat { inner: Box::new(inner), min, max }
            }
        })
    }

    fn postfix(&mut self, bounds: (u32, Option<u32>)) -> Option<(u32, Option<u32>)> {
        self.at += 1;
        Some(bounds)
    }

    /// `~ n` or `~ n..m`
    fn tilde_bounds(&mut self) -> Option<(u32, Option<u32>)> {
        self.at += 1;
        let min = self.count()?;
        let max = if self.take(Kind::DotDot) { self.count()? } else { min };
        Some((min, Some(max)))
    }

    /// `{n}`, `{n,}`, `{,m}` or `{n,m}`
    fn brace_bounds(&mut self) -> Option<(u32, Option<u32>)> {
        self.at += 1;
        let min = if self.peek().kind == Kind::Mark(',') { 0 } else { self.count()? };
        let max = if !self.take(Kind::Mark(',')) {
            Some(min)
        } else if self.peek().kind == Kind::Mark('}') {
            None
        } else {
            Some(self.count()?)
        };
        self.expect('}', "to close the numbers of a repetition")?;
        Some((min, max))
    }

    fn count(&mut self) -> Option<u32> {
        let word = self.peek().clone();
        if word.kind != Kind::Number {
            return self.unexpected("a number of times is missing");
        }
        self.at += 1;
        let Ok(count) = self.text(&word.range).parse() else {
            let message = format!("a number of times is between 0 and {}", u32::MAX);
            self.problems.add(&word.range, message);
            return None;
        };
        Some(count)
    }

    pub(super) fn atom(&mut self) -> Option<Expr> {
        let before = self.at;
        let word = self.next();
        match word.kind {
            Kind::Mark('(') => self.group(&word, ')'),
            Kind::Mark('[') => Some(Expr::Maybe(Box::new(self.group(&word, ']')?))),
            Kind::TerminalName => Some(Expr::Terminal(self.named(&word))),
            Kind::RuleName if self.is_template_usage() => self.template(&word),
            Kind::RuleName if self.is_number_next() => self.parametric(&word),
            Kind::RuleName => Some(Expr::Rule(self.named(&word))),
            Kind::Text if self.peek().kind == Kind::DotDot => self.characters(&word),
            Kind::Text => literals::text(&word.range, self.problems),
            Kind::Pattern => literals::pattern(&word.range, self.problems),
            Kind::Embedded => embedded::read(&word.range, self.problems),
            Kind::Tokens => {
                let read = token_references::read(self.text(&word.range)).ok();
                read.map(|(tokens, _)| Expr::Tokens { tokens, range: word.range.clone() })
            }
            Kind::Directive => {
                let message = format!(
                    "`{}` inside a definition is not supported: there are `%json {{…}}`, `%regex {{…}}` and `%lark {{…}}`",
                    self.text(&word.range)
                );
                self.problems.add(&word.range, message);
                None
            }
            _ => {
                self.at = before;
                self.unexpected(
                    "a name, a text in quotes, a regular expression or a group is expected",
                )
            }
        }
    }

    fn group(&mut self, open: &Word, close: char) -> Option<Expr> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            let message = format!(
                "groups are nested more than {MAX_NESTING} deep: make the inner ones rules or terminals"
            );
            self.problems.add(&open.range, message);
            return None;
        }
        let inner = self.choice()?;
        self.skip_breaks_in_group();
        if self.peek().kind != Kind::Mark(close) {
            if matches!(self.peek().kind, Kind::Newline | Kind::End) {
                let message = format!("this is never closed: `{close}` is missing");
                self.problems.add(&open.range, message);
                return None;
            }
            return self.unexpected(&format!("`{close}` is missing before this"));
        }
        self.at += 1;
        self.depth -= 1;
        Some(match inner {
            // A group is an expression of its own: how rules are shared depends on it.
            Expr::Sequence(_) | Expr::Choice(_) => inner,
            other => Expr::Sequence(vec![other]),
        })
    }

    /// `"a".."z"`, from its first text on.
    fn characters(&mut self, low: &Word) -> Option<Expr> {
        self.at += 1;
        let high = self.peek().clone();
        let range = low.range.start..high.range.end;
        if high.kind != Kind::Text {
            return self.unexpected("a range is written `\"a\"..\"z\"`");
        }
        self.at += 1;
        let low = literals::character(&low.range, self.problems)?;
        let high = literals::character(&high.range, self.problems)?;
        if low > high {
            self.problems.add(&range, format!("the range is empty: {low:?} comes after {high:?}"));
            return None;
        }
        Some(Expr::Characters { low, high, range })
    }

    fn is_template_usage(&self) -> bool {
        self.peek().kind == Kind::Mark('{')
            && !matches!(self.word(1).kind, Kind::Number | Kind::Mark(','))
    }

    fn template(&mut self, name: &Word) -> Option<Expr> {
        let name = self.named(name);
        let open = self.next();
        self.depth += 1;
        if self.depth > MAX_NESTING {
            let message = format!("templates are nested more than {MAX_NESTING} deep");
            self.problems.add(&open.range, message);
            return None;
        }
        let mut arguments = Vec::new();
        loop {
            if matches!(self.peek().kind, Kind::Mark('(' | '[')) {
                return self.unexpected(
                    "a template's argument is a name, a text, a regular expression or a template: make the group a \
                     rule",
                );
            }
            arguments.push(self.atom()?);
            if !self.take(Kind::Mark(',')) {
                break;
            }
        }
        self.expect('}', "to close the template's arguments")?;
        self.depth -= 1;
        Some(Expr::Template { name, arguments })
    }

    /// `%import library.NAME`, `%import library.NAME -> MINE`, `%import library (A, B)`
    fn import(&mut self) -> Option<()> {
        if self.peek().kind == Kind::Mark('.') {
            return self.unexpected(
                "grammars of other files cannot be imported: copy the definitions here (`%import common.NAME` works)",
            );
        }
        let mut path = Vec::new();
        loop {
            if !self.is_name() {
                return self.unexpected(
                    "%import is written `%import common.NAME` or `%import common (A, B)`",
                );
            }
            path.push(self.name()?);
            if !self.take(Kind::Mark('.')) {
                break;
            }
        }
        let mut names = Vec::new();
        if self.take(Kind::Mark('(')) {
            loop {
                while self.take(Kind::Newline) {}
                if !self.is_name() {
                    return self.unexpected("the imported names are written `(A, B)`");
                }
                let name = self.name()?;
                names.push((name.clone(), name));
                while self.take(Kind::Newline) {}
                if !self.take(Kind::Mark(',')) {
                    break;
                }
            }
            self.expect(')', "to close the imported names")?;
        } else {
            let name = path.pop()?;
            let mut as_name = name.clone();
            if self.take(Kind::Arrow) {
                if !self.is_name() {
                    return self.unexpected("after `->` comes the name under which it is imported");
                }
                as_name = self.name()?;
            }
            names.push((name, as_name));
        }
        let library = Name {
            text: path.iter().map(|name| &*name.text).collect::<Vec<_>>().join("."),
            range: match (path.first(), path.last()) {
                (Some(first), Some(last)) => first.range.start..last.range.end,
                _ => names[0].0.range.clone(),
            },
        };
        self.end_of_statement()?;
        self.statements.extend(names.into_iter().map(|(name, as_name)| Statement::Import {
            library: library.clone(),
            name,
            as_name,
        }));
        Some(())
    }

    /// `%llguidance {}`: grammars for that engine begin so.
    fn header(&mut self) -> Option<()> {
        if self.peek().kind == Kind::Mark('{') && self.word(1).kind == Kind::Mark('}') {
            self.at += 2;
            return self.end_of_statement();
        }
        self.unexpected("options in `%llguidance { … }` are not supported: leave them out")
    }

    fn end_of_statement(&mut self) -> Option<()> {
        match self.peek().kind {
            Kind::Newline | Kind::End => Some(()),
            Kind::Mark(':') => {
                self.unexpected("a `:` inside a definition: the one before must end its line")
            }
            _ => self.unexpected("the definition should end here"),
        }
    }

    /// Inside a group a line break means nothing, unless the group was not closed and a statement
    /// follows.
    fn skip_breaks_in_group(&mut self) {
        while self.depth > 0 && self.peek().kind == Kind::Newline && !self.at_statement() {
            self.at += 1;
        }
    }

    /// True when a line break is next and a statement after it.
    fn at_statement(&self) -> bool {
        if self.peek().kind != Kind::Newline {
            return false;
        }
        let mut ahead = 1;
        while matches!(self.word(ahead).kind, Kind::Mark('?' | '!') | Kind::Newline) {
            ahead += 1;
        }
        match self.word(ahead).kind {
            Kind::Directive | Kind::End => true,
            Kind::RuleName | Kind::TerminalName => match self.word(ahead + 1).kind {
                Kind::Mark(':' | '.') => true,
                Kind::Mark('{') => {
                    let mut close = ahead + 2;
                    while matches!(self.word(close).kind, Kind::RuleName | Kind::Mark(',')) {
                        close += 1;
                    }
                    self.word(close).kind == Kind::Mark('}')
                        && matches!(self.word(close + 1).kind, Kind::Mark(':' | '.'))
                }
                _ => false,
            },
            _ => false,
        }
    }

    pub(super) fn is_name(&self) -> bool {
        matches!(self.peek().kind, Kind::RuleName | Kind::TerminalName)
    }

    pub(super) fn name(&mut self) -> Option<Name> {
        let word = self.next();
        Some(self.named(&word))
    }

    pub(super) fn named(&self, word: &Word) -> Name {
        Name { text: self.text(&word.range).to_owned(), range: word.range.clone() }
    }

    pub(super) fn expect(&mut self, mark: char, why: &str) -> Option<()> {
        if self.take(Kind::Mark(mark)) {
            return Some(());
        }
        self.unexpected(&format!("`{mark}` is expected {why}"))
    }

    /// Reports the next word.
    pub(super) fn unexpected<T>(&mut self, rule: &str) -> Option<T> {
        let word = self.peek().clone();
        let found = match word.kind {
            Kind::End => "the grammar ends here".to_owned(),
            Kind::Newline => "the line ends here".to_owned(),
            _ => format!("`{}`", self.text(&word.range).chars().take(40).collect::<String>()),
        };
        self.problems.add(&word.range, format!("{found}: {rule}"));
        None
    }

    pub(super) fn take(&mut self, kind: Kind) -> bool {
        let found = self.peek().kind == kind;
        self.at += usize::from(found && kind != Kind::End);
        found
    }

    /// Goes back by a word.
    pub(super) fn back(&mut self) {
        self.at = self.at.saturating_sub(1);
    }

    /// The next word, passed over; the last one stays.
    pub(super) fn next(&mut self) -> Word {
        let word = self.peek().clone();
        self.at = (self.at + 1).min(self.words.len() - 1);
        word
    }

    pub(super) fn peek(&self) -> &Word {
        self.word(0)
    }

    pub(super) fn word(&self, ahead: usize) -> &Word {
        &self.words[(self.at + ahead).min(self.words.len() - 1)]
    }

    pub(super) fn text(&self, range: &Range<usize>) -> &str {
        &self.problems.source.text[range.clone()]
    }
}
