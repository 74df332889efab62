//! The grammar of what the start rule reaches.

use super::{
    blocks,
    definitions::Definitions,
    error::Problems,
    lower::Draft,
    options::LarkOptions,
    syntax::{RuleScope, written_name},
    terminals::{self, Terminals},
};
use crate::{
    Grammar, GrammarBuilder, Indentation, Lexing, MemberScope, NonterminalId, Regex, Symbol,
    Terminal, TerminalId, TerminalKind, TokenLimit,
};

/// Results of the passes before.
pub(super) struct Parts<'a> {
    pub(super) definitions: &'a Definitions,
    pub(super) terminals: &'a mut Terminals,
    pub(super) rules: Vec<Draft>,
}

/// The start rule's place in the definitions.
pub(super) fn start_rule(
    definitions: &Definitions,
    options: &LarkOptions,
    problems: &mut Problems<'_>,
) -> Option<usize> {
    let start = &options.start;
    match definitions.get(start) {
        Some((index, found)) if !found.is_terminal && found.parameters.is_empty() => {
            return Some(index);
        }
        Some((_, found)) => {
            let what = if found.is_terminal { "a terminal" } else { "a template" };
            problems.add(
                &found.name.range,
                format!("the start, `{start}`, must be a rule; this is {what}"),
            );
        }
        None => {
            let rules = definitions
                .list
                .iter()
                .filter(|rule| !rule.is_terminal && rule.parameters.is_empty());
            let mut names: Vec<_> = rules.map(|rule| &*rule.name.text).collect();
            let more = names.len().saturating_sub(50);
            names.truncate(50);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            problems.add_general(match names.is_empty() {
                true => format!("there is no rule `{start}` to start from: the grammar has no rules"),
                false => format!(
                    "there is no rule `{start}` to start from; there are {}{more}: name one of them as the start",
                    names.join(", ")
                ),
            });
        }
    }
    None
}

/// The grammar, or `None` when problems were found.
pub(super) fn grammar(
    parts: Parts<'_>,
    start: NonterminalId,
    options: &LarkOptions,
    problems: &mut Problems<'_>,
) -> Option<Grammar> {
    let Parts { definitions, terminals, rules } = parts;
    let mut ignored = Vec::new();
    for (expr, range) in &definitions.ignored {
        let index = terminals.ignored(expr, range, problems)?;
        if terminals.drafts[index].kind == TerminalKind::Declared {
            let message = format!(
                "`{}` is only declared: it has no text to ignore",
                terminals.drafts[index].name
            );
            problems.add(range, message);
        }
        if terminals.drafts[index].max_tokens.is_some() {
            let message = "each of these has so many tokens at most; any number of them may stand beside each other";
            problems.warn(range, message);
        }
        ignored.push(index);
    }
    let (reached_rules, mut kept) = reach(start, &rules, terminals.drafts.len());
    for &index in &ignored {
        // What matches nothing but the empty text is nothing to ignore.
        kept[index] = terminals.drafts[index].regex != Regex::Never;
    }
    let blocks = blocks::find(options, terminals, &rules, problems)?;
    let lexing = lexing(options, blocks.is_some(), problems)?;
    if let Some(blocks) = &blocks {
        for index in [blocks.newline, blocks.indent, blocks.dedent] {
            kept[index] = true;
        }
    }
    for (index, draft) in terminals.drafts.iter().enumerate() {
        let made_by_blocks =
            blocks.as_ref().is_some_and(|found| [found.indent, found.dedent].contains(&index));
        if kept[index] && draft.kind == TerminalKind::Declared && !made_by_blocks {
            let message = format!(
                "`{}` is only declared and rules use it: define it (only the terminals of blocks by indentation have no \
                 text)",
                draft.name
            );
            problems.add(&draft.range, message);
        }
    }

    let mut builder = GrammarBuilder::new();
    let mut ids: Vec<Option<TerminalId>> = Vec::with_capacity(terminals.drafts.len());
    for (draft, kept) in terminals.drafts.iter().zip(&kept) {
        ids.push(kept.then(|| {
            // Of a terminal that a rule's attributes made, who reads a message knows the rule.
            let terminal = builder.terminal(Terminal {
                name: written_name(&draft.name).to_owned(),
                regex: draft.regex.clone(),
                priority: draft.priority,
                kind: draft.kind,
                span: Some(problems.source.span(&draft.range)),
            });
            if let Some(tokens) = draft.max_tokens {
                builder.token_limit(TokenLimit { terminal, tokens });
            }
            terminal
        }));
    }
    let mut heads: Vec<Option<NonterminalId>> = Vec::with_capacity(rules.len());
    let mut embeds = false;
    for (draft, reached) in rules.iter().zip(&reached_rules) {
        let span = problems.source.span(&draft.range);
        heads.push(match &draft.embedded {
            Some(grammar) if *reached => {
                embeds = true;
                Some(builder.embed(grammar).expect("it was checked where it was read"))
            }
            _ => reached.then(|| builder.nonterminal(draft.name.clone(), Some(span))),
        });
    }
    if embeds && (blocks.is_some() || lexing == Lexing::Longest) {
        problems.add_general(
            "grammars within a grammar (`%json` and its like) need contextual lexing, without blocks by indentation",
        );
        return None;
    }
    // What is ignored is so between lexemes of this grammar, not within those that it embeds.
    let ignored: Vec<_> = ignored.into_iter().filter_map(|index| ids[index]).collect();
    let skipped = if embeds { builder.skipped(ignored.clone()) } else { None };
    for (draft, head) in rules.iter().zip(&heads) {
        let Some(head) = head else { continue };
        let ends = match &draft.scope {
            Some(scope) => {
                let terminals = &terminals.drafts;
                Some(ends_of_scope((draft, scope), terminals, &mut builder, problems)?)
            }
            None => None,
        };
        for alternative in &draft.alternatives {
            let mut body = Vec::with_capacity(alternative.len());
            for (at, symbol) in alternative.iter().enumerate() {
                match symbol {
                    Symbol::Terminal(id) => {
                        let own = match ends {
                            Some((open, _)) if at == 0 => open,
                            Some((_, close)) if at + 1 == alternative.len() => close,
                            _ => ids[id.index()]?,
                        };
                        body.push(Symbol::Terminal(own));
                        body.extend(skipped);
                    }
                    Symbol::Nonterminal(id) => body.push(Symbol::Nonterminal(heads[id.index()]?)),
                }
            }
            builder.rule(*head, body);
        }
    }
    let mut start = heads[start.index()]?;
    match skipped {
        None => ignored.into_iter().for_each(|id| builder.ignore(id)),
        Some(skipped) => {
            let inner =
                std::mem::replace(&mut start, builder.nonterminal(options.start.clone(), None));
            builder.rule(start, [skipped, Symbol::Nonterminal(inner)]);
        }
    }
    if let Some(blocks) = blocks {
        let id = |index: usize| ids[index];
        let brackets = |texts: &[usize]| texts.iter().filter_map(|&index| ids[index]).collect();
        builder.indentation(Indentation {
            newline: id(blocks.newline)?,
            indent: id(blocks.indent)?,
            dedent: id(blocks.dedent)?,
            open: brackets(&blocks.open),
            close: brackets(&blocks.close),
            tab_width: blocks.tab_width,
        });
    }
    Some(builder.build(start, lexing))
}

/// The terminals that begin and end a scope's rule, copied for it alone.
fn ends_of_scope(
    (rule, scope): (&Draft, &RuleScope),
    terminals: &[terminals::Draft],
    builder: &mut GrammarBuilder,
    problems: &mut Problems<'_>,
) -> Option<(TerminalId, TerminalId)> {
    let ends = |body: &Vec<Symbol>| match body[..] {
        [Symbol::Terminal(open), .., Symbol::Terminal(close)]
            if [open, close].iter().all(|id| terminals[id.index()].kind.has_text()) =>
        {
            Some((open, close))
        }
        _ => None,
    };
    let mut all = rule.alternatives.iter().map(ends);
    let first = all.next().flatten();
    let Some((open, close)) = first.filter(|_| all.all(|other| other == first)) else {
        let message = format!(
            "`{}` is a scope of members, which begins and ends with terminals, the same in each alternative: write them in this \
             rule, as in `\"[\" item (\",\" item)* \"]\"`",
            rule.name
        );
        problems.add(&scope.set.range, message);
        return None;
    };
    let mut copy = |id: TerminalId| {
        let draft = &terminals[id.index()];
        builder.terminal(Terminal {
            name: draft.name.clone(),
            regex: draft.regex.clone(),
            priority: draft.priority,
            kind: draft.kind,
            span: Some(problems.source.span(&draft.range)),
        })
    };
    let (open, close) = (copy(open), copy(close));
    let span = Some(problems.source.span(&scope.set.range));
    let (name, kind) = (scope.set.text.clone(), scope.kind.clone());
    builder.scope(MemberScope { name, kind, open, close, span });
    Some((open, close))
}

/// The ways to cut texts; `None` where they and blocks by indentation exclude each other.
fn lexing(options: &LarkOptions, has_blocks: bool, problems: &mut Problems<'_>) -> Option<Lexing> {
    match (options.lexing, has_blocks) {
        (Some(Lexing::Contextual), true) => {
            problems.add_general(
                "blocks by indentation need a line's end to be one wherever it stands, so lexing cannot be `contextual`: use \
                 `longest`, which is the default for this grammar",
            );
            None
        }
        (Some(lexing), _) => Some(lexing),
        (None, true) => Some(Lexing::Longest),
        (None, false) => Some(Lexing::Contextual),
    }
}

/// Rules and terminals that `start` reaches.
fn reach(start: NonterminalId, rules: &[Draft], num_terminals: usize) -> (Vec<bool>, Vec<bool>) {
    let (mut reached, mut terminals) = (vec![false; rules.len()], vec![false; num_terminals]);
    let mut waiting = vec![start];
    reached[start.index()] = true;
    while let Some(head) = waiting.pop() {
        for symbol in rules[head.index()].alternatives.iter().flatten() {
            match *symbol {
                Symbol::Terminal(id) => terminals[id.index()] = true,
                Symbol::Nonterminal(id) if reached[id.index()] => {}
                Symbol::Nonterminal(id) => {
                    reached[id.index()] = true;
                    waiting.push(id);
                }
            }
        }
    }
    (reached, terminals)
}
