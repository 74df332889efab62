//! Scopes of distinct names, between lexer and parser: the memory of which names an open scope has
//! seen.
//!
//! A context-free grammar of objects whose `n` members come in any order, each at most once, has a
//! nonterminal for each of the `2ⁿ` subsets, and of names that are not listed there is none at all.
//! With this memory the rules need only count members: a name that was seen in the innermost scope
//! is denied, so what is counted is distinct names. Terminals of one name are left out of the
//! lexer's state where a lexeme begins (`NameLayer::leave_out`); of terminals of many names the
//! text is kept while it is read.
//!
//! [`DistinctNames`] has what a grammar must see to: a scope that asks for one more name has one
//! left.

mod reading;

use std::sync::Arc;

use hashbrown::HashMap;
use reading::Reading;

use crate::lexer::{Lexer, LexerError, LexerState};
use crate::{DistinctNames, Grammar, TerminalId, TerminalSet};

/// The layer of one grammar.
#[derive(Debug)]
pub struct NameLayer {
    /// Roles by terminal; empty where the grammar has no such scopes.
    roles: Box<[Role]>,
    /// The terminals of one name each, and the names.
    one: HashMap<TerminalId, Name>,
    /// Terminals by name.
    of_name: HashMap<Name, Vec<TerminalId>>,
    /// The terminals of many names.
    many: TerminalSet,
    /// All terminals of names.
    all: TerminalSet,
}

/// A terminal's part in scopes of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Other,
    Open,
    Between,
    Close,
    One,
    Many,
}

/// The open scopes and the name in progress; nothing at all mostly.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Names {
    memory: Option<Arc<Memory>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Memory {
    /// Outermost first.
    scopes: Arc<[Scope]>,
    /// The bytes of the lexeme in progress, while it may become one of many names.
    read: Option<Box<[u8]>>,
}

/// Beginnings of names that are looked at for one that goes on to a new name.
const MAX_BEGINNINGS: usize = 1 << 16;

/// The names that a scope has seen, in ascending order.
pub(crate) type Scope = Arc<[Name]>;

pub(crate) type Name = Arc<[u8]>;

impl NameLayer {
    /// Layer of a grammar.
    pub fn new(grammar: &Grammar) -> Self {
        let none = TerminalSet::new(grammar.terminals().len());
        let (many, all) = (none.clone(), none);
        let (one, of_name) = Default::default();
        let mut layer = Self { roles: Box::default(), one, of_name, many, all };
        let Some(names) = grammar.distinct_names() else { return layer };
        layer.roles = vec![Role::Other; grammar.terminals().len()].into();
        let DistinctNames { open, between, close, one, many } = names;
        for (terminals, role) in
            [(open, Role::Open), (between, Role::Between), (close, Role::Close), (many, Role::Many)]
        {
            terminals.iter().for_each(|terminal| layer.roles[terminal.index()] = role);
        }
        for &terminal in many {
            layer.many.insert(terminal);
            layer.all.insert(terminal);
        }
        for (terminal, name) in one {
            let name: Name = name.as_bytes().into();
            layer.roles[terminal.index()] = Role::One;
            layer.of_name.entry(Arc::clone(&name)).or_default().push(*terminal);
            layer.one.insert(*terminal, name);
            layer.all.insert(*terminal);
        }
        layer
    }

    /// Tells if the grammar has scopes of distinct names.
    pub fn is_active(&self) -> bool {
        !self.roles.is_empty()
    }

    /// The names after a lexeme of `terminal`; `None` when it is a name that was seen.
    pub fn after(&self, names: &Names, terminal: TerminalId) -> Option<Names> {
        let scopes = match self.roles.get(terminal.index()).copied().unwrap_or(Role::Other) {
            Role::Other | Role::Between if names.read().is_none() => return Some(names.clone()),
            Role::Other | Role::Between => names.open().into(),
            Role::Open => names.open().iter().cloned().chain([[].into()]).collect(),
            Role::Close => names.open().split_last().map_or(&[][..], |(_, outer)| outer).into(),
            Role::One => names.with(Arc::clone(&self.one[&terminal]))?,
            Role::Many => {
                let text = Reading::of(names.read().unwrap_or_default()).text;
                names.with(text.into())?
            }
        };
        Some(Names::new(scopes, None))
    }

    /// The open scopes after a lexeme of `terminal`, without its own name; `None` where that was
    /// seen.
    pub(crate) fn scopes_after(&self, names: &Names, terminal: TerminalId) -> Option<Arc<[Scope]>> {
        match self.roles.get(terminal.index()) {
            Some(Role::Open | Role::Close) => Some(self.after(names, terminal)?.scopes()),
            Some(Role::One) if names.innermost().contains(&self.one[&terminal]) => None,
            _ => Some(names.scopes()),
        }
    }

    /// True for a terminal that begins a scope.
    pub(crate) fn opens(&self, terminal: TerminalId) -> bool {
        self.roles.get(terminal.index()) == Some(&Role::Open)
    }

    /// True for a terminal that ends a scope.
    pub(crate) fn closes(&self, terminal: TerminalId) -> bool {
        self.roles.get(terminal.index()) == Some(&Role::Close)
    }

    /// The one name that a terminal matches.
    pub(crate) fn name(&self, terminal: TerminalId) -> Option<&Name> {
        self.one.get(&terminal)
    }

    /// Takes the terminals of the names that were seen out of those that may begin here.
    pub(crate) fn leave_out(&self, names: &Names, terminals: &mut TerminalSet) {
        for terminal in names.innermost().iter().filter_map(|name| self.of_name.get(name)).flatten()
        {
            terminals.remove(*terminal);
        }
    }

    /// Takes in a byte of a lexeme, which leads to `state`; `begins` where it is the first. `false`
    /// when only names that were seen can come of it.
    pub fn read(
        &self,
        names: &mut Names,
        byte: u8,
        begins: bool,
        lexer: &Lexer,
        state: LexerState,
    ) -> Result<bool, LexerError> {
        if !self.is_active() {
            return Ok(true);
        }
        let possible = lexer.viable_terminals(state);
        if !possible.intersects(&self.many) {
            if names.read().is_some() {
                *names = Names::new(names.scopes(), None);
            }
            return Ok(true);
        }
        let before = names.read().filter(|_| !begins).unwrap_or_default();
        let read = [before, &[byte]].concat();
        *names = Names::new(names.scopes(), Some(read.as_slice().into()));
        let others = possible.iter().any(|terminal| !self.many.contains(terminal));
        Ok(others || self.is_live(names, &read, lexer, state)?)
    }

    /// Tells if a lexeme that began with `read` can become a name that was not seen.
    ///
    /// Depth first, along the beginnings of names that were seen: any other beginning is that of a
    /// new name. JSON strings leave few ways to spell those; of what is none, no more than
    /// [`MAX_BEGINNINGS`] are looked at.
    fn is_live(
        &self,
        names: &Names,
        read: &[u8],
        lexer: &Lexer,
        state: LexerState,
    ) -> Result<bool, LexerError> {
        let mut work = vec![(state, read.to_vec())];
        let mut left = MAX_BEGINNINGS;
        while let Some((state, read)) = work.pop() {
            let reading = Reading::of(&read);
            if left == 0 || !is_seen(names.innermost(), &reading) {
                return Ok(true);
            }
            left -= 1;
            let bytes = match (reading.begun, reading.ended) {
                (_, true) => continue,
                (true, _) => 0..=u8::MAX,
                (false, _) if lexer.advance(state, b'"')?.is_some() => b'"'..=b'"',
                // Within a line break of two characters.
                (false, _) => 0..=b' ',
            };
            for byte in bytes {
                if let Some(next) = lexer.advance(state, byte)?
                    && lexer.viable_terminals(next).intersects(&self.many)
                {
                    work.push((next, [&read[..], &[byte]].concat()));
                }
            }
        }
        Ok(false)
    }

    /// Tells if one of these terminals may have a name after it, in a scope that has seen some.
    pub fn is_between(&self, terminals: &TerminalSet) -> bool {
        terminals.iter().any(|terminal| self.roles[terminal.index()] == Role::Between)
    }

    /// Tells if one of these terminals may have a name after it.
    pub fn is_before_name(&self, terminals: &TerminalSet) -> bool {
        let role = |terminal: TerminalId| self.roles[terminal.index()];
        terminals.iter().any(|terminal| matches!(role(terminal), Role::Open | Role::Between))
    }

    /// Tells if a name that begins within a token may be the one in progress, which becomes one of
    /// these terminals.
    pub fn may_become(&self, names: &Names, possible: &TerminalSet, begun: &BegunName) -> bool {
        if !self.has_names(possible) {
            return false;
        }
        let BegunName::One(begun) = begun else { return true };
        let read = Reading::of(names.read().unwrap_or_default());
        possible.iter().any(|terminal| match self.one.get(&terminal) {
            Some(name) => begun.may_be(name),
            None => self.many.contains(terminal) && begun.may_be_same(&read),
        })
    }

    /// Tells if one of these terminals is a name.
    pub fn has_names(&self, terminals: &TerminalSet) -> bool {
        terminals.intersects(&self.all)
    }
}

impl Names {
    fn new(scopes: Arc<[Scope]>, read: Option<Box<[u8]>>) -> Self {
        let is_empty = scopes.is_empty() && read.is_none();
        Self { memory: (!is_empty).then(|| Arc::new(Memory { scopes, read })) }
    }

    /// Tells if there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        self.memory.is_none()
    }

    /// Tells if a name was seen that may come again.
    pub fn is_any_seen(&self) -> bool {
        !self.innermost().is_empty()
    }

    /// One of many names in progress: whether its opening quote was read; `None` where there is no
    /// such name.
    pub fn in_progress(&self) -> Option<bool> {
        self.read().map(|read| !read.trim_ascii_start().is_empty())
    }

    /// Tells if the name in progress, or where there is none, one that begins so, is one that was
    /// seen when it goes on with `bytes`.
    pub fn repeats(&self, bytes: &[u8]) -> Repeats {
        let read = self.read().unwrap_or_default().trim_ascii_start();
        let reading = Reading::of(&[read, bytes].concat());
        let alike: Vec<&Name> =
            self.innermost().iter().filter(|name| reading.may_be(name)).collect();
        match () {
            () if alike.is_empty() => Repeats::Never,
            () if reading.ended => Repeats::Already,
            () if reading.escapes => Repeats::Perhaps((0..=u8::MAX).collect()),
            () => {
                let at = reading.text.len();
                let next = alike.iter().map(|name| name.get(at).copied().unwrap_or(b'"'));
                let mut next: Vec<u8> = next.chain([b'\\']).collect();
                next.sort_unstable();
                next.dedup();
                Repeats::Perhaps(next)
            }
        }
    }

    /// Tells if a name that begins within a token may be one that was seen in an open scope, or in
    /// one that the token opens.
    pub fn may_repeat(&self, begun: &BegunName) -> bool {
        let BegunName::One(reading) = begun else { return true };
        self.open().iter().any(|scope| is_seen(scope, reading))
    }

    fn read(&self) -> Option<&[u8]> {
        self.memory.as_ref()?.read.as_deref()
    }

    fn scopes(&self) -> Arc<[Scope]> {
        self.memory.as_ref().map(|memory| Arc::clone(&memory.scopes)).unwrap_or_default()
    }

    fn open(&self) -> &[Scope] {
        self.memory.as_ref().map_or(&[], |memory| &memory.scopes)
    }

    fn innermost(&self) -> &[Name] {
        self.open().last().map_or(&[], |scope| &**scope)
    }

    /// The scopes with one more name in the innermost, if there is any; `None` when it was seen.
    fn with(&self, name: Name) -> Option<Arc<[Scope]>> {
        let Some((innermost, outer)) = self.open().split_last() else { return Some([].into()) };
        let at = innermost.binary_search(&name).err()?;
        let (before, after) = innermost.split_at(at);
        let scope = before.iter().cloned().chain([name]).chain(after.iter().cloned()).collect();
        Some(outer.iter().cloned().chain([scope]).collect())
    }
}

/// Tells if a name that began so, or is this, may be one of these.
fn is_seen(scope: &[Name], reading: &Reading) -> bool {
    scope.iter().any(|name| reading.may_be(name))
}

/// Verdict on a name that goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// Another name than all that were seen.
    Never,
    /// A name that was seen begins so; of that one, these bytes may come next.
    Perhaps(Vec<u8>),
    /// The closing quote was read.
    Already,
}

/// A name that begins within a token.
#[derive(Debug)]
pub enum BegunName {
    /// Beginning of the name, read there.
    One(Reading),
    /// Several names.
    Several,
}

impl BegunName {
    /// The name that begins within `text`, whatever lexeme this begins in; `None` where no name
    /// begins in it, or nothing is read of one.
    pub fn within(text: &[u8]) -> Option<Self> {
        let after = text.iter().enumerate().filter(|(_, byte)| matches!(byte, b',' | b'{'));
        let begun = after.map(|(at, _)| text[at + 1..].trim_ascii_start());
        let mut begun = begun.filter(|rest| rest.len() > 1 && rest[0] == b'"');
        let first = begun.next()?;
        Some(if begun.next().is_some() { Self::Several } else { Self::One(Reading::of(first)) })
    }
}
