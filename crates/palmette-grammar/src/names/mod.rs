//! Scopes of distinct names, between lexer and parser: the memory of which names an open scope has seen.
//!
//! A context-free grammar of objects whose `n` members come in any order, each at most once, has a nonterminal for each
//! of the `2ⁿ` subsets, and of names that are not listed there is none at all. With this memory the rules need only
//! count members: a name that was seen in the innermost scope is denied, so what is counted is distinct names. Terminals
//! of one name are left out of the lexer's state where a lexeme begins ([`NameLayer::leave_out`]); of terminals of many
//! names the text is kept while it is read.
//!
//! [`DistinctNames`] has what a grammar must see to: a scope that asks for one more name has one left.

mod reading;

use std::sync::Arc;

use hashbrown::HashMap;
use reading::Reading;

use crate::lexer::{Lexer, LexerError, LexerState};
use crate::{DistinctNames, Grammar, TerminalId, TerminalSet};

/// The layer of one grammar.
#[derive(Debug)]
pub(crate) struct NameLayer {
    /// By terminal; empty where the grammar has no such scopes.
    roles: Box<[Role]>,
    /// The terminals of one name each, and the names.
    one: HashMap<TerminalId, Arc<[u8]>>,
    /// The terminals of many names.
    many: TerminalSet,
    /// All of these.
    all: TerminalSet,
}

/// A terminal's part in scopes of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Other,
    Open,
    Close,
    One,
    Many,
}

/// The open scopes and the name in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Names {
    /// Outermost first; `None` is none.
    scopes: Option<Arc<[Scope]>>,
    /// The bytes of the lexeme in progress, while it may become one of many names.
    read: Option<Arc<[u8]>>,
}

/// The names that a scope has seen, in ascending order.
type Scope = Arc<[Name]>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Name {
    /// That of a terminal of one name.
    Of(TerminalId),
    /// One of many: its text.
    Text(Arc<[u8]>),
}

impl NameLayer {
    pub(crate) fn new(grammar: &Grammar) -> Self {
        let none = TerminalSet::new(grammar.terminals().len());
        let (many, all) = (none.clone(), none);
        let mut layer = Self { roles: Box::default(), one: HashMap::new(), many, all };
        let Some(DistinctNames { open, close, one, many }) = grammar.distinct_names() else {
            return layer;
        };
        layer.roles = vec![Role::Other; grammar.terminals().len()].into();
        open.iter().for_each(|terminal| layer.roles[terminal.index()] = Role::Open);
        close.iter().for_each(|terminal| layer.roles[terminal.index()] = Role::Close);
        for (terminal, name) in one {
            layer.roles[terminal.index()] = Role::One;
            layer.one.insert(*terminal, name.as_bytes().into());
            layer.all.insert(*terminal);
        }
        for &terminal in many {
            layer.roles[terminal.index()] = Role::Many;
            layer.many.insert(terminal);
            layer.all.insert(terminal);
        }
        layer
    }

    /// Whether the grammar has scopes of distinct names.
    pub(crate) fn is_active(&self) -> bool {
        !self.roles.is_empty()
    }

    /// After a lexeme of `terminal`; `None` when it is a name that was seen.
    pub(crate) fn after(&self, names: &Names, terminal: TerminalId) -> Option<Names> {
        let mut scopes = names.scopes.clone();
        match self.roles.get(terminal.index()).copied().unwrap_or(Role::Other) {
            Role::Other => {}
            Role::Open => scopes = Some(names.open().iter().cloned().chain([[].into()]).collect()),
            Role::Close => {
                let outer = names.open().split_last().map_or(&[][..], |(_, outer)| outer);
                scopes = (!outer.is_empty()).then(|| outer.into());
            }
            Role::One => scopes = names.with(Name::Of(terminal))?,
            Role::Many => {
                let text = Reading::of(names.read.as_deref().unwrap_or_default()).text;
                scopes = names.with(Name::Text(text.into()))?;
            }
        }
        Some(Names { scopes, read: None })
    }

    /// Takes the terminals of the names that were seen out of those that may begin here.
    pub(crate) fn leave_out(&self, names: &Names, terminals: &mut TerminalSet) {
        for name in names.innermost() {
            if let Name::Of(terminal) = name {
                terminals.remove(*terminal);
            }
        }
    }

    /// Takes in a byte of a lexeme, which leads to `state`; `begins` where it is the first. `false` when only names that
    /// were seen can come of it.
    pub(crate) fn read(
        &self,
        names: &mut Names,
        byte: u8,
        begins: bool,
        lexer: &Lexer,
        state: LexerState,
    ) -> Result<bool, LexerError> {
        let possible = lexer.possible(state);
        if !self.has_many(possible) {
            names.read = None;
            return Ok(true);
        }
        let before = names.read.as_deref().filter(|_| !begins).unwrap_or_default();
        let read: Arc<[u8]> = before.iter().copied().chain([byte]).collect();
        names.read = Some(Arc::clone(&read));
        let others = possible.iter().any(|terminal| !self.many.contains(terminal));
        Ok(others || self.is_live(names, &read, lexer, state)?)
    }

    /// Whether a lexeme of these terminals may be one of many names.
    pub(crate) fn has_many(&self, possible: &TerminalSet) -> bool {
        possible.intersects(&self.many)
    }

    /// Whether one of these terminals is a name.
    pub(crate) fn has_names(&self, terminals: &TerminalSet) -> bool {
        terminals.intersects(&self.all)
    }

    /// Whether the name in progress, or where there is none, one that begins so, is one that was seen when it goes on
    /// with `bytes`.
    pub(crate) fn repeats(&self, names: &Names, bytes: &[u8]) -> Repeats {
        let read = names.read.as_deref().unwrap_or_default().trim_ascii_start();
        let reading = Reading::of(&[read, bytes].concat());
        match self.may_repeat(names, &reading) {
            false => Repeats::Never,
            true if reading.ended => Repeats::Already,
            true => Repeats::Perhaps,
        }
    }

    /// Whether a name that began so, or is this, may be one that was seen.
    fn may_repeat(&self, names: &Names, reading: &Reading) -> bool {
        names.innermost().iter().any(|name| {
            let seen = match name {
                Name::Of(terminal) => &self.one[terminal],
                Name::Text(text) => text,
            };
            if reading.ended { **seen == *reading.text } else { seen.starts_with(&reading.text) }
        })
    }

    /// Whether a lexeme that began with `read` can become a name that was not seen.
    ///
    /// Depth first, along the beginnings of names that were seen: any other beginning is that of a new name.
    fn is_live(
        &self,
        names: &Names,
        read: &[u8],
        lexer: &Lexer,
        state: LexerState,
    ) -> Result<bool, LexerError> {
        let mut work = vec![(state, read.to_vec())];
        while let Some((state, read)) = work.pop() {
            let reading = Reading::of(&read);
            if !self.may_repeat(names, &reading) {
                return Ok(true);
            }
            let bytes = match (reading.begun, reading.ended) {
                (_, true) => continue,
                (false, _) => b'"'..=b'"',
                (true, _) => 0..=u8::MAX,
            };
            for byte in bytes {
                if let Some(next) = lexer.advance(state, byte)?
                    && self.has_many(lexer.possible(next))
                {
                    work.push((next, [&read[..], &[byte]].concat()));
                }
            }
        }
        Ok(false)
    }

    /// Whether `text`, read from the middle of any lexeme on, may begin a name within it and read some of it: only then
    /// may it hold a name that was seen, unless a name is in progress.
    pub(crate) fn may_begin_name(text: &[u8]) -> bool {
        (0..text.len()).any(|at| {
            let rest = text[at + 1..].trim_ascii_start();
            matches!(text[at], b',' | b'{') && rest.len() > 1 && rest[0] == b'"'
        })
    }
}

impl Names {
    /// Whether there is nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        self.scopes.is_none() && self.read.is_none()
    }

    fn open(&self) -> &[Scope] {
        self.scopes.as_deref().unwrap_or_default()
    }

    fn innermost(&self) -> &[Name] {
        self.open().last().map_or(&[], |scope| &**scope)
    }

    /// The scopes with one more name in the innermost; `None` when it was seen.
    #[expect(clippy::option_option, reason = "there may be no scope")]
    fn with(&self, name: Name) -> Option<Option<Arc<[Scope]>>> {
        let Some((innermost, outer)) = self.open().split_last() else { return Some(None) };
        let at = innermost.binary_search(&name).err()?;
        let (before, after) = innermost.split_at(at);
        let scope = before.iter().cloned().chain([name]).chain(after.iter().cloned()).collect();
        Some(Some(outer.iter().cloned().chain([scope]).collect()))
    }

    /// Whether a name was seen that may come again.
    pub(crate) fn is_any_seen(&self) -> bool {
        !self.innermost().is_empty()
    }

    /// Whether the opening quote of one of many names was read.
    pub(crate) fn is_within_one(&self) -> bool {
        self.read.as_deref().is_some_and(|read| !read.trim_ascii_start().is_empty())
    }
}

/// Whether a name comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// It is another.
    Never,
    /// As far as it was read, one that was seen begins so.
    Perhaps,
    /// Its closing quote was read.
    Already,
}
