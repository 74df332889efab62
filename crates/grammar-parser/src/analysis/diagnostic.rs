//! An analysis in words.

use std::fmt;

use super::conflicts::MAX_EXAMPLE;
use super::{Analysis, Conflict};
use crate::lr::TableError;
use crate::span::Span;
use crate::{Grammar, NonterminalId, Symbol, TerminalId};

/// A message to a grammar's author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Severity.
    pub severity: Severity,
    /// The finding in words.
    pub message: String,
    /// The place in the source.
    pub span: Option<Span>,
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Hardly what was meant.
    Error,
    /// Perhaps not what was meant.
    Warning,
    /// Good to know: it may cost time.
    Note,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(span) = self.span {
            write!(f, "{span}: ")?;
        }
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        write!(f, "{severity}: {}", self.message)
    }
}

/// Messages on all findings of an analysis, errors first.
pub(super) fn diagnostics(
    grammar: &Grammar,
    analysis: &Analysis,
    no_tables: Option<TableError>,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut each = |severity, ids: &[NonterminalId], what: &str| {
        for &id in ids {
            let nonterminal = &grammar.nonterminals()[id.index()];
            let message = format!("`{}` {what}", nonterminal.name);
            found.push(Diagnostic { severity, message, span: nonterminal.span });
        }
    };
    each(Severity::Error, &analysis.undefined, "has no rule, so it matches nothing");
    if analysis.is_empty_language(grammar) {
        let only = [grammar.start()];
        each(Severity::Warning, &only, "is the start and derives no text: everything is denied");
    }
    let others = |ids: &[NonterminalId], but: &[NonterminalId]| -> Vec<NonterminalId> {
        ids.iter().copied().filter(|id| !but.contains(id)).collect()
    };
    each(Severity::Warning, &analysis.unreachable, "is not used by any text of the start");
    let known = [&analysis.undefined[..], &[grammar.start()]].concat();
    let unproductive = others(&analysis.unproductive, &known);
    each(Severity::Warning, &unproductive, "derives no text: none of its rules comes to an end");
    each(
        Severity::Note,
        &analysis.cyclic,
        "derives itself alone, so its texts have endlessly many parses",
    );
    let hidden = "may begin with itself behind something empty (hidden left recursion)";
    each(Severity::Note, &analysis.hidden_left_recursive, hidden);
    found.extend(analysis.conflicts.iter().map(|conflict| {
        Diagnostic {
            severity: Severity::Note,
            message: describe(grammar, conflict),
            span: conflict
                .rules
                .first()
                .and_then(|&rule| grammar.nonterminals()[grammar.rules()[rule].head.index()].span),
        }
    }));
    found.extend(no_tables.map(|error| Diagnostic {
        severity: Severity::Error,
        message: format!("no parser can be made: {error}"),
        span: None,
    }));
    found.sort_by_key(|diagnostic| diagnostic.severity);
    found
}

/// Number of terminals of a conflict that are named.
const MAX_NAMED: usize = 8;

fn describe(grammar: &Grammar, conflict: &Conflict) -> String {
    let name = |id: TerminalId| match grammar.terminals().get(id.index()) {
        Some(terminal) => terminal.name.as_str(),
        None => "the end of the text",
    };
    let mut on: Vec<_> = conflict.on.iter().take(MAX_NAMED).map(name).collect();
    let more = format!("{} more", conflict.on.len().saturating_sub(MAX_NAMED));
    if conflict.on.len() > MAX_NAMED {
        on.push(&more);
    }
    let rules: Vec<_> =
        conflict.rules.iter().map(|&rule| format!("`{}`", rule_text(grammar, rule))).collect();
    let shift = if conflict.shifts { " or read on" } else { "" };
    let example = match conflict.example.as_deref() {
        Some([]) => "at the start".to_owned(),
        Some(example) => {
            let names: Vec<_> = example.iter().map(|&id| name(id)).collect();
            format!("after {}", names.join(" "))
        }
        None => format!("after more than {MAX_EXAMPLE} terminals"),
    };
    format!(
        "{example}, before {}, one terminal does not decide whether to end {}{shift}",
        on.join(", "),
        rules.join(" or ")
    )
}

fn rule_text(grammar: &Grammar, rule: usize) -> String {
    let rule = &grammar.rules()[rule];
    let mut text = format!("{} →", grammar.nonterminals()[rule.head.index()].name);
    for symbol in &rule.body {
        text.push(' ');
        text.push_str(match symbol {
            Symbol::Terminal(id) => &grammar.terminals()[id.index()].name,
            Symbol::Nonterminal(id) => &grammar.nonterminals()[id.index()].name,
        });
    }
    text
}
