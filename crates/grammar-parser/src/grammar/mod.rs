//! The one grammar type: what every front end makes and every later pass reads.

mod embed;
mod scopes;
mod slots;
mod terminal_set;
mod token_limits;
mod tokens;

pub use embed::EmbedError;
pub use scopes::{GroupLimit, MemberScope, ScopeKind};
pub use slots::{OwnSet, Slot, SlotKind};
pub use terminal_set::{TerminalSet, ignored_terminals};
pub use token_limits::TokenLimit;

use palmette_core::SlotId;
use palmette_grammar_regex::CountedParts;

use crate::{Regex, Span};

/// A context-free grammar over terminals.
///
/// Frozen: a [`GrammarBuilder`] makes it. Ids are indices: `terminals()[id.index()]`.
///
/// Invariants, checked by [`GrammarBuilder::build`]: every symbol of a rule, the start and the
/// ignored terminals exist. Nothing else: a nonterminal may have no rule (it then matches nothing),
/// be unreachable, or be ambiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grammar {
    terminals: Vec<Terminal>,
    nonterminals: Vec<Nonterminal>,
    rules: Vec<Rule>,
    start: NonterminalId,
    ignored: Vec<TerminalId>,
    lexing: Lexing,
    indentation: Option<Indentation>,
    distinct_names: Option<DistinctNames>,
    slots: Vec<Slot>,
    scopes: Vec<MemberScope>,
    token_limits: Vec<TokenLimit>,
}

/// A terminal's place in [`Grammar::terminals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TerminalId(pub u32);

/// A nonterminal's place in [`Grammar::nonterminals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NonterminalId(pub u32);

/// A symbol of a rule's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Symbol {
    /// A lexeme of this terminal.
    Terminal(TerminalId),
    /// A text of this nonterminal.
    Nonterminal(NonterminalId),
}

/// A grammar symbol that stands for text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// The author's name for it, or the literal in quotes.
    pub name: String,
    /// The texts it matches.
    pub regex: Regex,
    /// Decides between terminals that match the same lexeme; higher goes first.
    pub priority: i32,
    /// Notation.
    pub kind: TerminalKind,
    /// The place of its definition.
    pub span: Option<Span>,
}

/// Notation of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TerminalKind {
    /// One text, such as a keyword: goes before patterns of the same priority.
    Literal,
    /// A regular expression.
    Pattern,
    /// A terminal that does not compete: its lexemes may end wherever it matches, and make no
    /// others lose. Terminals of a grammar that is read in any way ([`Lexing::Any`]) become so
    /// within another grammar.
    Free,
    /// A terminal without text: [`Indentation`] puts it between lexemes.
    Declared,
    /// A member of a [slot](Slot)'s set, which a binding gives. Its expression matches nothing, and
    /// it does not compete: its lexemes are the spellings of members.
    Member(SlotId),
}

impl TerminalKind {
    /// True for a terminal whose lexemes the lexer reads.
    pub fn has_text(self) -> bool {
        !matches!(self, Self::Declared | Self::Member(_))
    }
}

/// A grammar symbol that stands for one of its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nonterminal {
    /// The author's name for it, or a name made up for a part of a rule.
    pub name: String,
    /// The place of its definition.
    pub span: Option<Span>,
}

/// `head → body`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The nonterminal that is defined.
    pub head: NonterminalId,
    /// The symbols that it may be; none for the empty text.
    pub body: Vec<Symbol>,
}

/// The ways in which a text may be cut into lexemes; see the [crate's documentation](crate).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lexing {
    /// Lexemes of any length: every cutting counts.
    Any,
    /// Each lexeme is the longest that any terminal matches at its place.
    Longest,
    /// Each lexeme is the longest that any terminal matches at its place for which the parser's
    /// state has an action: lark's contextual lexer.
    Contextual,
}

impl Lexing {
    /// True when terminals compete for lexemes.
    pub fn competes(self) -> bool {
        self != Self::Any
    }
}

/// Blocks by indentation, as in Python: between lexemes, `indent` and `dedent` are put after a
/// `newline` whose last line begins deeper or less deep than the block it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indentation {
    /// The terminal that ends a line; the blanks after its last line break are the next line's
    /// depth.
    pub newline: TerminalId,
    /// Terminal that begins a block.
    pub indent: TerminalId,
    /// Terminal that ends a block.
    pub dedent: TerminalId,
    /// Opening brackets: between one and its closing one, `newline` is ignored.
    pub open: Vec<TerminalId>,
    /// Closing brackets.
    pub close: Vec<TerminalId>,
    /// Blanks that a tab counts for.
    pub tab_width: u32,
}

/// Scopes in which no name comes twice, as in the objects of JSON. Scopes nest.
///
/// A name's lexeme is a JSON string, blanks before it and a colon after it. The rules must leave a
/// way out: where the only lexemes that may come are names, one of them was not seen in the
/// innermost scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DistinctNames {
    /// Begin a scope.
    pub open: Vec<TerminalId>,
    /// Stand before names that are not the first of their scope.
    pub between: Vec<TerminalId>,
    /// End one.
    pub close: Vec<TerminalId>,
    /// Match one name each, which is this.
    pub one: Vec<(TerminalId, String)>,
    /// Match many names, in no scope one of those above.
    pub many: Vec<TerminalId>,
}

impl Grammar {
    /// About how much memory it takes, the expressions of its terminals included.
    pub fn bytes(&self) -> usize {
        let mut counted = CountedParts::default();
        let names = self.nonterminals.iter().map(|nonterminal| nonterminal.name.capacity());
        let terminals = self
            .terminals
            .iter()
            .map(|terminal| terminal.name.capacity() + counted.bytes_of(&terminal.regex));
        let bodies = self.rules.iter().map(|rule| rule.body.capacity() * size_of::<Symbol>());
        names.chain(terminals).chain(bodies).sum::<usize>()
            + self.terminals.capacity() * size_of::<Terminal>()
            + self.nonterminals.capacity() * size_of::<Nonterminal>()
            + self.rules.capacity() * size_of::<Rule>()
    }

    /// All terminals, by id.
    pub fn terminals(&self) -> &[Terminal] {
        &self.terminals
    }

    /// All nonterminals, by id.
    pub fn nonterminals(&self) -> &[Nonterminal] {
        &self.nonterminals
    }

    /// All rules, in the order in which they were added.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The nonterminal whose texts are the language.
    pub fn start(&self) -> NonterminalId {
        self.start
    }

    /// Terminals whose lexemes may stand anywhere between others, in ascending order.
    pub fn ignored(&self) -> &[TerminalId] {
        &self.ignored
    }

    /// The ways in which a text may be cut into lexemes.
    pub fn lexing(&self) -> Lexing {
        self.lexing
    }

    /// The grammar with the same rules over texts that are cut in these ways.
    pub fn with_lexing(&self, lexing: Lexing) -> Self {
        Self { lexing, ..self.clone() }
    }

    /// Blocks by indentation, where the grammar has them.
    pub fn indentation(&self) -> Option<&Indentation> {
        self.indentation.as_ref()
    }

    /// Scopes of distinct names, where the grammar has them.
    pub fn distinct_names(&self) -> Option<&DistinctNames> {
        self.distinct_names.as_ref()
    }
}

impl TerminalId {
    /// The id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl NonterminalId {
    /// The id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Collects terminals, nonterminals and rules.
#[derive(Clone, Debug, Default)]
pub struct GrammarBuilder {
    terminals: Vec<Terminal>,
    nonterminals: Vec<Nonterminal>,
    rules: Vec<Rule>,
    ignored: Vec<TerminalId>,
    indentation: Option<Indentation>,
    distinct_names: Option<DistinctNames>,
    slots: Vec<Slot>,
    scopes: Vec<MemberScope>,
    token_limits: Vec<TokenLimit>,
}

impl GrammarBuilder {
    /// A grammar without symbols and rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a terminal.
    pub fn terminal(&mut self, terminal: Terminal) -> TerminalId {
        self.terminals.push(terminal);
        TerminalId((self.terminals.len() - 1) as u32)
    }

    /// Adds a nonterminal that as yet has no rule.
    pub fn nonterminal(&mut self, name: impl Into<String>, span: Option<Span>) -> NonterminalId {
        self.nonterminals.push(Nonterminal { name: name.into(), span });
        NonterminalId((self.nonterminals.len() - 1) as u32)
    }

    /// Adds `head → body`.
    pub fn rule(&mut self, head: NonterminalId, body: impl Into<Vec<Symbol>>) {
        self.rules.push(Rule { head, body: body.into() });
    }

    /// Lets a terminal stand anywhere between others.
    pub fn ignore(&mut self, terminal: TerminalId) {
        self.ignored.push(terminal);
    }

    /// Blocks by indentation.
    pub fn indentation(&mut self, indentation: Indentation) {
        self.indentation = Some(indentation);
    }

    /// Scopes of distinct names.
    pub fn distinct_names(&mut self, names: DistinctNames) {
        self.distinct_names = Some(names);
    }

    /// The grammar whose language is that of `start`.
    ///
    /// # Panics
    /// When a symbol that does not exist is mentioned: ids of another builder.
    pub fn build(mut self, start: NonterminalId, lexing: Lexing) -> Grammar {
        let (terminals, nonterminals) = (self.terminals.len(), self.nonterminals.len());
        let exists = |symbol: &Symbol| match symbol {
            Symbol::Terminal(id) => id.index() < terminals,
            Symbol::Nonterminal(id) => id.index() < nonterminals,
        };
        for rule in &self.rules {
            let known = exists(&Symbol::Nonterminal(rule.head)) && rule.body.iter().all(exists);
            assert!(known, "{rule:?} mentions a symbol of another grammar");
        }
        assert!(exists(&Symbol::Nonterminal(start)), "the start is of another grammar");
        self.ignored.sort_unstable();
        self.ignored.dedup();
        let blocks = self.indentation.iter().flat_map(|blocks| {
            let marks = [blocks.newline, blocks.indent, blocks.dedent];
            marks.into_iter().chain(blocks.open.iter().chain(&blocks.close).copied())
        });
        let names = self.distinct_names.iter().flat_map(|names| {
            let DistinctNames { open, between, close, one, many } = names;
            let one = one.iter().map(|(terminal, _)| *terminal);
            [open, between, close, many].into_iter().flatten().copied().chain(one)
        });
        let mut mentioned = self.ignored.iter().copied().chain(blocks).chain(names);
        assert!(mentioned.all(|id| id.index() < terminals), "a terminal is of another grammar");
        drop(mentioned);
        let is_here =
            |scope: &MemberScope| scope.open.index() < terminals && scope.close.index() < terminals;
        assert!(self.scopes.iter().all(is_here), "a scope is of another grammar");
        let limited = self.token_limits.iter().map(|limit| limit.terminal.index());
        assert!(limited.max().is_none_or(|last| last < terminals), "a limit is of another grammar");
        let is_known = |terminal: &Terminal| match terminal.kind {
            TerminalKind::Member(slot) => slot.index() < self.slots.len(),
            _ => true,
        };
        assert!(self.terminals.iter().all(is_known), "a slot is of another grammar");
        self.order_slots();
        Grammar {
            terminals: self.terminals,
            nonterminals: self.nonterminals,
            rules: self.rules,
            start,
            ignored: self.ignored,
            lexing,
            indentation: self.indentation,
            distinct_names: self.distinct_names,
            slots: self.slots,
            scopes: self.scopes,
            token_limits: self.token_limits,
        }
    }
}
