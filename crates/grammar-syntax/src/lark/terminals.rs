//! Definitions of terminals to regular expressions, each after those it is built of.

use std::num::NonZeroU32;
use std::{collections::HashMap, ops::Range};

use super::{
    definitions::Definitions,
    emptiness::{self, Emptiness},
    error::Problems,
    options::LarkLimits,
    syntax::{Expr, WITHIN, written_name},
};
use crate::{CharClass, Regex, TerminalKind};

/// Regular expressions nested deeper than this are an error: later passes go into them by
/// recursion.
const MAX_DEPTH: u32 = 500;

/// Cost of an expression that a terminal is made of.
const UNITS_PER_EXPRESSION: usize = 16;

/// A terminal on its way into the grammar.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) name: String,
    /// Texts; without the empty one, of which [`Self::emptiness`] tells.
    pub(super) regex: Regex,
    pub(super) emptiness: Emptiness,
    pub(super) kind: TerminalKind,
    pub(super) priority: i32,
    /// The most tokens of its lexemes.
    pub(super) max_tokens: Option<NonZeroU32>,
    pub(super) range: Range<usize>,
}

/// All terminals: the named ones in the order of the definitions, then those that rules mention by
/// their text.
#[derive(Debug)]
pub(super) struct Terminals {
    pub(super) drafts: Vec<Draft>,
    by_name: HashMap<String, usize>,
    by_texts: HashMap<(TerminalKind, Regex), usize>,
    budget: u64,
}

/// Result of lowering an expression.
#[derive(Clone)]
struct Built {
    regex: Regex,
    /// True when it is one text in quotes.
    is_literal: bool,
    depth: u32,
    /// Nodes of the tree, those shared counted each time.
    nodes: u64,
}

impl Terminals {
    /// The named terminals. Recursion, and what passes a limit, is added to `problems`.
    pub(super) fn build(
        definitions: &Definitions,
        limits: &LarkLimits,
        problems: &mut Problems<'_>,
    ) -> Self {
        let mut terminals = Self {
            drafts: Vec::new(),
            by_name: HashMap::new(),
            by_texts: HashMap::new(),
            budget: limits.terminal_nodes as u64,
        };
        let mut built: HashMap<String, Built> = HashMap::new();
        for name in bottom_up(definitions, problems) {
            let Some((_, definition)) = definitions.get(&name) else { continue };
            let made = if matches!(definition.body, Expr::Declared) {
                Some(Built { regex: Regex::Never, is_literal: false, depth: 1, nodes: 1 })
            } else {
                terminals.expr(&definition.body, &built, &definition.name.range, problems)
            };
            let Some(made) = made else { return terminals };
            built.insert(name, made);
        }
        for definition in definitions.list.iter().filter(|definition| definition.is_terminal) {
            let Some(built) = built.get(&definition.name.text) else { continue };
            let kind = match definition.body {
                Expr::Declared => TerminalKind::Declared,
                _ if built.is_literal => TerminalKind::Literal,
                _ => TerminalKind::Pattern,
            };
            let name = definition.name.text.clone();
            let range = definition.name.range.clone();
            let limited = mentioned(&definition.body).into_iter().find(|name| {
                definitions.get(name).is_some_and(|(_, found)| found.max_tokens.is_some())
            });
            if let Some(limited) = limited {
                let message = format!(
                    "the limit on the tokens of `{}` does not hold within this terminal: lexemes are counted, not parts of them",
                    written_name(limited)
                );
                problems.warn(&range, message);
            }
            let index = terminals.draft(name, &built.regex, kind, definition.priority, range);
            terminals.by_name.insert(definition.name.text.clone(), index);
            terminals.drafts[index].max_tokens = definition.max_tokens;
            // Its texts stand for themselves elsewhere, without its limit; and one that no source
            // names is mentioned by its name alone.
            if definition.max_tokens.is_some() || definition.name.text.ends_with(WITHIN) {
                continue;
            }
            // Where two have the same texts, what rules mention by its text is the later one.
            terminals.by_texts.insert((kind, built.regex.clone()), index);
        }
        terminals
    }

    /// The terminal of this name.
    pub(super) fn named(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The terminal that is just this text, named or not.
    pub(super) fn with_text(&self, text: &str) -> Option<usize> {
        self.by_texts.get(&(TerminalKind::Literal, Regex::literal(text))).copied()
    }

    /// The terminal for an expression that a rule mentions by its text: the named one of the same
    /// texts, or a new one.
    pub(super) fn anonymous(&mut self, expr: &Expr, problems: &mut Problems<'_>) -> Option<usize> {
        let (range, label, kind) = match expr {
            Expr::Literal { text, ignore_case, range, .. } => {
                (range, self.label(text, *ignore_case), TerminalKind::Literal)
            }
            Expr::Regex { range, .. } | Expr::Characters { range, .. } => {
                let source = &problems.source.text[range.clone()];
                (range, source.to_owned(), TerminalKind::Pattern)
            }
            Expr::Tokens { tokens, range } => (range, tokens.to_string(), TerminalKind::Pattern),
            _ => unreachable!("only texts, regular expressions and tokens stand for themselves"),
        };
        let built = self.expr(expr, &HashMap::new(), range, problems)?;
        let key = (kind, built.regex);
        if let Some(&known) = self.by_texts.get(&key) {
            return Some(known);
        }
        let index = self.draft(label.clone(), &key.1, kind, 0, range.clone());
        self.by_name.entry(label).or_insert(index);
        self.by_texts.insert(key, index);
        Some(index)
    }

    /// The terminal for what `%ignore` says.
    pub(super) fn ignored(
        &mut self,
        expr: &Expr,
        range: &Range<usize>,
        problems: &mut Problems<'_>,
    ) -> Option<usize> {
        match expr {
            Expr::Terminal(name) => return self.named(&name.text),
            Expr::Literal { .. } | Expr::Regex { .. } | Expr::Characters { .. } => {
                return self.anonymous(expr, problems);
            }
            _ => {}
        }
        let mut named = HashMap::new();
        for name in mentioned(expr) {
            let draft = &self.drafts[self.named(name)?];
            if draft.kind == TerminalKind::Declared {
                problems.add(range, format!("`{name}` is only declared: it has no text to ignore"));
                return None;
            }
            let regex = match draft.emptiness {
                Emptiness::Always => draft.regex.clone().optional(),
                _ => draft.regex.clone(),
            };
            let (depth, nodes) = measure(&regex);
            named.insert(name.to_owned(), Built { regex, is_literal: false, depth, nodes });
        }
        let built = self.expr(expr, &named, range, problems)?;
        let label = problems.source.text[range.clone()].trim().to_owned();
        Some(self.draft(label, &built.regex, TerminalKind::Pattern, 0, range.clone()))
    }

    fn draft(
        &mut self,
        name: String,
        regex: &Regex,
        kind: TerminalKind,
        priority: i32,
        range: Range<usize>,
    ) -> usize {
        let emptiness = emptiness::emptiness(regex);
        let regex = emptiness::non_empty(regex);
        let max_tokens = None;
        self.drafts.push(Draft { name, regex, emptiness, kind, priority, max_tokens, range });
        self.drafts.len() - 1
    }

    /// Name of a text: a word in capitals, the name of a punctuation mark, or the text in quotes.
    fn label(&self, text: &str, ignore_case: bool) -> String {
        let is_word = text.starts_with(|c: char| c == '_' || c.is_alphabetic())
            && text.chars().all(|c| c == '_' || c.is_alphanumeric());
        let name =
            mark_name(text).map(str::to_owned).or_else(|| is_word.then(|| text.to_uppercase()));
        match name {
            Some(name) if !self.by_name.contains_key(&name) => name,
            _ => format!("{text:?}{}", if ignore_case { "i" } else { "" }),
        }
    }

    fn expr(
        &mut self,
        expr: &Expr,
        named: &HashMap<String, Built>,
        range: &Range<usize>,
        problems: &mut Problems<'_>,
    ) -> Option<Built> {
        let built = written_out(expr, named, problems)?;
        if built.depth > MAX_DEPTH {
            problems.add(
                range,
                format!("this is nested more than {MAX_DEPTH} deep through its terminals"),
            );
            return None;
        }
        let Some(left) = self.budget.checked_sub(built.nodes) else {
            problems.add(
                range,
                "here the terminals, written out, pass the limit `terminal_nodes`: use fewer or smaller ones, or \
                 raise it",
            );
            return None;
        };
        self.budget = left;
        problems.spend(built.nodes as usize)?;
        Some(built)
    }
}

impl Built {
    fn wrap(self, outer: impl FnOnce(Regex) -> Regex) -> Self {
        Self {
            regex: outer(self.regex),
            is_literal: false,
            depth: self.depth + 1,
            nodes: self.nodes.saturating_add(1),
        }
    }
}

/// An expression written out, with `named` put in for the terminals that it mentions.
fn written_out(
    expr: &Expr,
    named: &HashMap<String, Built>,
    problems: &mut Problems<'_>,
) -> Option<Built> {
    problems.spend(UNITS_PER_EXPRESSION)?;
    let leaf = |regex: &Regex, is_literal| {
        let (depth, nodes) = measure(regex);
        Some(Built { regex: regex.clone(), is_literal, depth, nodes })
    };
    let all = |exprs: &[Expr], problems: &mut Problems<'_>| -> Option<Vec<Built>> {
        exprs.iter().map(|expr| written_out(expr, named, problems)).collect()
    };
    match expr {
        Expr::Literal { regex, .. } => leaf(regex, true),
        Expr::Regex { regex, .. } => leaf(regex, false),
        Expr::Tokens { tokens, .. } => leaf(&Regex::Tokens(tokens.clone()), false),
        Expr::Characters { low, high, .. } => {
            leaf(&Regex::Class(CharClass::new([(*low, *high)])), false)
        }
        Expr::Terminal(name) => match named.get(&name.text) {
            Some(built) if built.regex == Regex::Never => {
                let message =
                    format!("`{}` has no text: it cannot be part of a terminal", name.text);
                problems.add(&name.range, message);
                None
            }
            built => built.cloned(),
        },
        Expr::Sequence(parts) => Some(join(all(parts, problems)?, Regex::concat)),
        Expr::Choice(options) => Some(join(all(options, problems)?, Regex::alternate)),
        Expr::And(parts, _) => Some(join(all(parts, problems)?, Regex::and)),
        Expr::Maybe(inner) => Some(written_out(inner, named, problems)?.wrap(Regex::optional)),
        Expr::Repeat { inner, min, max } => {
            Some(written_out(inner, named, problems)?.wrap(|inner| inner.repeat(*min, *max)))
        }
        Expr::Not(inner, _) => Some(written_out(inner, named, problems)?.wrap(Regex::complement)),
        // Reported by `Definitions::gather`.
        Expr::Rule(_)
        | Expr::Template { .. }
        | Expr::Parametric { .. }
        | Expr::If { .. }
        | Expr::Embedded { .. }
        | Expr::Declared => None,
    }
}

/// Several made into one; one alone stays what it is.
fn join(mut parts: Vec<Built>, joined: impl FnOnce(Vec<Regex>) -> Regex) -> Built {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    Built {
        depth: 1 + parts.iter().map(|part| part.depth).max().unwrap_or(0),
        nodes: parts.iter().fold(1, |nodes, part| nodes.saturating_add(part.nodes)),
        is_literal: false,
        regex: joined(parts.into_iter().map(|part| part.regex).collect()),
    }
}

/// Depth and nodes of a tree.
fn measure(regex: &Regex) -> (u32, u64) {
    let inner = match regex {
        Regex::Never
        | Regex::Empty
        | Regex::Literal(_)
        | Regex::Class(_)
        | Regex::Multiple(_)
        | Regex::Tokens(_) => (0, 0),
        Regex::Concat(parts) | Regex::Alternate(parts) | Regex::And(parts) => {
            parts.iter().map(measure).fold((0, 0), |all, part| (all.0.max(part.0), all.1 + part.1))
        }
        Regex::Repeat { inner, .. }
        | Regex::Not(inner)
        | Regex::Whole(inner)
        | Regex::Look { inner, .. } => measure(inner),
    };
    (inner.0 + 1, inner.1 + 1)
}

/// The names of all terminals, each after those that its definition mentions.
fn bottom_up(definitions: &Definitions, problems: &mut Problems<'_>) -> Vec<String> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut states = vec![State::New; definitions.list.len()];
    let mut order = Vec::new();
    for root in 0..definitions.list.len() {
        if !definitions.list[root].is_terminal || states[root] != State::New {
            continue;
        }
        // Chains may be as long as the grammar: no recursion.
        let mut path = vec![(root, mentioned(&definitions.list[root].body))];
        states[root] = State::Open;
        while let Some((at, waiting)) = path.last_mut() {
            let Some(name) = waiting.pop() else {
                states[*at] = State::Done;
                order.push(definitions.list[*at].name.text.clone());
                path.pop();
                continue;
            };
            let Some((next, definition)) = definitions.get(name) else { continue };
            match states[next] {
                State::Done => {}
                State::New => {
                    states[next] = State::Open;
                    path.push((next, mentioned(&definition.body)));
                }
                State::Open => {
                    let message = format!(
                        "terminal `{name}` is built of itself: make it a rule to have recursion"
                    );
                    problems.add(&definition.name.range, message);
                }
            }
        }
    }
    order
}

/// The terminals that an expression mentions, last first.
fn mentioned(expr: &Expr) -> Vec<&str> {
    let mut names = Vec::new();
    let mut waiting = vec![expr];
    while let Some(expr) = waiting.pop() {
        match expr {
            Expr::Terminal(name) => names.push(&*name.text),
            Expr::Sequence(parts) | Expr::Choice(parts) | Expr::And(parts, _) => {
                waiting.extend(parts.iter().rev());
            }
            Expr::Maybe(inner) | Expr::Repeat { inner, .. } | Expr::Not(inner, _) => {
                waiting.push(inner)
            }
            _ => {}
        }
    }
    names.reverse();
    names
}

/// Name of a punctuation mark, after the grammars' custom.
fn mark_name(text: &str) -> Option<&'static str> {
    Some(match text {
        "." => "DOT",
        "," => "COMMA",
        ":" => "COLON",
        ";" => "SEMICOLON",
        "+" => "PLUS",
        "-" => "MINUS",
        "*" => "STAR",
        "/" => "SLASH",
        "\\" => "BACKSLASH",
        "|" => "VBAR",
        "?" => "QMARK",
        "!" => "BANG",
        "@" => "AT",
        "#" => "HASH",
        "$" => "DOLLAR",
        "%" => "PERCENT",
        "^" => "CIRCUMFLEX",
        "&" => "AMPERSAND",
        "_" => "UNDERSCORE",
        "<" => "LESSTHAN",
        ">" => "MORETHAN",
        "=" => "EQUAL",
        "\"" => "DBLQUOTE",
        "'" => "QUOTE",
        "`" => "BACKQUOTE",
        "~" => "TILDE",
        "(" => "LPAR",
        ")" => "RPAR",
        "{" => "LBRACE",
        "}" => "RBRACE",
        "[" => "LSQB",
        "]" => "RSQB",
        "\n" => "NEWLINE",
        "\r\n" => "CRLF",
        "\t" => "TAB",
        " " => "SPACE",
        _ => return None,
    })
}
