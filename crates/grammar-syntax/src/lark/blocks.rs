//! Terminals of blocks by indentation: named by the options, or found by what the grammar declares.
//!
//! Python's grammar ends lines by `_NEWLINE`. Where there is none, as in lark's own example and in
//! gdtoolkit's GDScript, it is the terminal that stands before `_INDENT` in the rules, since a
//! block begins where a line has ended.

use std::collections::{BTreeSet, HashSet};

use super::{
    error::Problems,
    lower::Draft,
    options::{IndentationNames, LarkIndentation, LarkOptions},
    terminals::Terminals,
};
use crate::{Regex, Symbol, TerminalKind};

/// The terminals of blocks, by place.
pub(super) struct Blocks {
    pub(super) newline: usize,
    pub(super) indent: usize,
    pub(super) dedent: usize,
    pub(super) open: Vec<usize>,
    pub(super) close: Vec<usize>,
    pub(super) tab_width: u32,
}

/// Blocks of a grammar; the outer `None`: problems were found.
pub(super) fn find(
    options: &LarkOptions,
    terminals: &Terminals,
    rules: &[Draft],
    problems: &mut Problems<'_>,
) -> Option<Option<Blocks>> {
    let kind = |name: &str| terminals.named(name).map(|index| terminals.drafts[index].kind);
    let names = match &options.indentation {
        LarkIndentation::None => return Some(None),
        LarkIndentation::Named(names) => names.clone(),
        LarkIndentation::Detect => match detected(terminals, rules, problems)? {
            Some(names) => names,
            None => return Some(None),
        },
    };
    let mut sound = true;
    for (name, is_declared) in
        [(&names.newline, false), (&names.indent, true), (&names.dedent, true)]
    {
        if kind(name).map(|kind| kind == TerminalKind::Declared) != Some(is_declared) {
            let rule =
                if is_declared { "say %declare for it" } else { "define it as the end of a line" };
            problems.add_general(format!("blocks by indentation need terminal `{name}`: {rule}"));
            sound = false;
        }
    }
    if !sound {
        return None;
    }
    let pairs = names.brackets.iter();
    let pairs = pairs.filter_map(|(open, close)| {
        Some((terminals.with_text(open)?, terminals.with_text(close)?))
    });
    let (open, close) = pairs.unzip();
    Some(Some(Blocks {
        newline: terminals.named(&names.newline)?,
        indent: terminals.named(&names.indent)?,
        dedent: terminals.named(&names.dedent)?,
        open,
        close,
        tab_width: names.tab_width,
    }))
}

/// The names of blocks that a grammar declares.
fn detected(
    terminals: &Terminals,
    rules: &[Draft],
    problems: &mut Problems<'_>,
) -> Option<Option<IndentationNames>> {
    let python = IndentationNames::python();
    let kind = |name: &str| terminals.named(name).map(|index| terminals.drafts[index].kind);
    let is_declared = |name: &&str| kind(name) == Some(TerminalKind::Declared);
    let marks = [("_INDENT", "_DEDENT"), ("INDENT", "DEDENT")];
    let declared =
        marks.into_iter().find(|(indent, dedent)| [indent, dedent].into_iter().all(is_declared));
    let Some((indent, dedent)) = declared else { return Some(None) };
    let names = IndentationNames { indent: indent.to_owned(), dedent: dedent.to_owned(), ..python };
    if kind(&names.newline).is_some_and(|kind| kind != TerminalKind::Declared) {
        return Some(Some(names));
    }
    let mark = terminals.named(indent)?;
    let mut before = Preceding::new(rules).of(mark);
    before.retain(|&at| may_break_line(&terminals.drafts[at].regex));
    let is_used = rules.iter().flat_map(|rule| rule.alternatives.iter().flatten());
    let is_used = is_used.into_iter().any(|symbol| is_terminal(*symbol, mark));
    let found: Vec<_> = before.iter().map(|&at| terminals.drafts[at].name.clone()).collect();
    match &found[..] {
        [only] => Some(Some(IndentationNames { newline: only.clone(), ..names })),
        [] if !is_used => Some(None),
        _ => {
            let what = match &found[..] {
                [] => "no terminal with a line break stands before it".to_owned(),
                several => format!("{} stand before it", several.join(", ")),
            };
            problems.add(
                &terminals.drafts[mark].range,
                format!(
                    "`{indent}` begins a block after the end of a line, and {what}: name the terminal that ends lines `_NEWLINE` \
                     (in a library, `indentation` of the options names another)"
                ),
            );
            None
        }
    }
}

fn is_terminal(symbol: Symbol, at: usize) -> bool {
    matches!(symbol, Symbol::Terminal(id) if id.index() == at)
}

/// True when a text of an expression may hold a line break, as far as its characters tell.
fn may_break_line(regex: &Regex) -> bool {
    match regex {
        Regex::Never | Regex::Empty | Regex::Multiple(_) | Regex::Tokens(_) => false,
        Regex::Literal(text) => text.contains('\n'),
        Regex::Class(class) => class.contains('\n'),
        Regex::Concat(parts) | Regex::Alternate(parts) | Regex::And(parts) => {
            parts.iter().any(may_break_line)
        }
        Regex::Repeat { inner, .. } | Regex::Whole(inner) => may_break_line(inner),
        Regex::Not(_) => true,
        Regex::Look { .. } => false,
    }
}

/// Rules, asked which terminals may stand directly before a symbol.
struct Preceding<'r> {
    rules: &'r [Draft],
    nullable: Vec<bool>,
    /// The terminals that may come last, by rule.
    last: Vec<BTreeSet<usize>>,
}

impl<'r> Preceding<'r> {
    fn new(rules: &'r [Draft]) -> Self {
        let nullable = vec![false; rules.len()];
        let last = vec![BTreeSet::new(); rules.len()];
        let mut made = Self { rules, nullable, last };
        while made.grow() {}
        made
    }

    /// Adds what follows from what is known; tells if that was something.
    fn grow(&mut self) -> bool {
        let mut grown = false;
        for (at, rule) in self.rules.iter().enumerate() {
            for body in &rule.alternatives {
                let mut ends = BTreeSet::new();
                let is_nullable = self.add_ends(body, &mut ends);
                grown |= is_nullable && !std::mem::replace(&mut self.nullable[at], true);
                let before = self.last[at].len();
                self.last[at].append(&mut ends);
                grown |= self.last[at].len() > before;
            }
        }
        grown
    }

    /// Adds the terminals with which some symbols may end; true when these may be empty.
    fn add_ends(&self, symbols: &[Symbol], ends: &mut BTreeSet<usize>) -> bool {
        for symbol in symbols.iter().rev() {
            match *symbol {
                Symbol::Terminal(id) => {
                    ends.insert(id.index());
                    return false;
                }
                Symbol::Nonterminal(id) => {
                    ends.extend(&self.last[id.index()]);
                    if !self.nullable[id.index()] {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// The terminals that may stand directly before a terminal.
    fn of(&self, terminal: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let (mut seen, mut heads) = (HashSet::new(), Vec::new());
        let mut add = |wanted: &dyn Fn(Symbol) -> bool, heads: &mut Vec<usize>| {
            for (at, rule) in self.rules.iter().enumerate() {
                for body in &rule.alternatives {
                    for (place, _) in body.iter().enumerate().filter(|(_, symbol)| wanted(**symbol))
                    {
                        if self.add_ends(&body[..place], &mut found) && seen.insert(at) {
                            heads.push(at);
                        }
                    }
                }
            }
        };
        add(&|symbol| is_terminal(symbol, terminal), &mut heads);
        while let Some(head) = heads.pop() {
            let is_head = |symbol| matches!(symbol, Symbol::Nonterminal(id) if id.index() == head);
            add(&is_head, &mut heads);
        }
        found
    }
}
