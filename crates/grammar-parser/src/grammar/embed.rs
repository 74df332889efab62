//! Grammars within grammars: the rules of one become rules of another.

use palmette_core::SlotId;

use super::{
    DistinctNames, Grammar, GrammarBuilder, Lexing, NonterminalId, Symbol, Terminal, TerminalId,
    TerminalKind,
};

/// A grammar that cannot be part of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// Grammar that makes blocks by indentation, which depend on the whole text.
    #[error(
        "a grammar with blocks by indentation cannot be part of another; the depth of a line is that of the whole text's"
    )]
    Indentation,
    /// Lexemes of it are the longest wherever the parser is.
    #[error(
        "a grammar whose lexemes are the longest of all terminals cannot be part of another, whose terminals it knows nothing \
         of; read it with contextual lexing"
    )]
    Longest,
}

impl GrammarBuilder {
    /// Adds the rules of a grammar; gives the nonterminal of its texts.
    ///
    /// The grammar keeps its own ways of cutting texts: terminals of one that is cut in any way are
    /// [free](TerminalKind::Free), and what it ignores may stand between its own lexemes, nowhere
    /// else. The grammar that is being built must then be cut in any way or by context.
    ///
    /// # Errors
    /// When it depends on more than its own text.
    pub fn embed(&mut self, grammar: &Grammar) -> Result<NonterminalId, EmbedError> {
        if grammar.indentation.is_some() {
            return Err(EmbedError::Indentation);
        }
        if grammar.lexing == Lexing::Longest {
            return Err(EmbedError::Longest);
        }
        let slots = self.slots_of(&grammar.slots);
        let terminals: Vec<_> = grammar
            .terminals
            .iter()
            .map(|terminal| self.terminal(embedded(terminal, grammar.lexing, &slots)))
            .collect();
        let heads: Vec<_> = grammar
            .nonterminals
            .iter()
            .map(|nonterminal| self.nonterminal(nonterminal.name.clone(), nonterminal.span))
            .collect();
        if let Some(names) = &grammar.distinct_names {
            self.distinct_names.get_or_insert_default().add(names, &terminals);
        }
        self.scopes_of(&grammar.scopes, |terminal| terminals[terminal.index()]);
        self.token_limits_of(&grammar.token_limits, |terminal| terminals[terminal.index()]);
        let ignored = grammar.ignored.iter().map(|terminal| terminals[terminal.index()]).collect();
        let skipped = self.skipped(ignored);
        for rule in &grammar.rules {
            let mut body = Vec::with_capacity(rule.body.len());
            for symbol in &rule.body {
                match *symbol {
                    Symbol::Nonterminal(id) => body.push(Symbol::Nonterminal(heads[id.index()])),
                    Symbol::Terminal(id) => {
                        body.push(Symbol::Terminal(terminals[id.index()]));
                        body.extend(skipped);
                    }
                }
            }
            self.rule(heads[rule.head.index()], body);
        }
        let start = heads[grammar.start.index()];
        Ok(match skipped {
            None => start,
            Some(skipped) => {
                let outer = self
                    .nonterminal(grammar.nonterminals[grammar.start.index()].name.clone(), None);
                self.rule(outer, [skipped, Symbol::Nonterminal(start)]);
                outer
            }
        })
    }

    /// A nonterminal for any number of lexemes that a grammar ignores, which its rules then allow
    /// between theirs; `None` where there are none.
    pub fn skipped(&mut self, ignored: Vec<TerminalId>) -> Option<Symbol> {
        if ignored.is_empty() {
            return None;
        }
        let skipped = self.nonterminal("ignored", None);
        self.rule(skipped, []);
        for terminal in ignored {
            self.rule(skipped, [Symbol::Nonterminal(skipped), Symbol::Terminal(terminal)]);
        }
        Some(Symbol::Nonterminal(skipped))
    }
}

impl DistinctNames {
    /// Adds those of a grammar whose terminals are these now.
    fn add(&mut self, names: &Self, terminals: &[TerminalId]) {
        let here =
            |of: &[TerminalId]| of.iter().map(|id| terminals[id.index()]).collect::<Vec<_>>();
        self.open.extend(here(&names.open));
        self.between.extend(here(&names.between));
        self.close.extend(here(&names.close));
        self.many.extend(here(&names.many));
        let one = names.one.iter().map(|(id, name)| (terminals[id.index()], name.clone()));
        self.one.extend(one);
    }
}

fn embedded(terminal: &Terminal, lexing: Lexing, slots: &[SlotId]) -> Terminal {
    let kind = match (lexing, terminal.kind) {
        (Lexing::Any, TerminalKind::Literal | TerminalKind::Pattern) => TerminalKind::Free,
        (_, TerminalKind::Member(slot)) => TerminalKind::Member(slots[slot.index()]),
        (_, kind) => kind,
    };
    Terminal { kind, ..terminal.clone() }
}
