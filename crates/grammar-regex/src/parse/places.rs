//! Resolves conditions on places: from a syntax tree to the tree of the texts it matches.
//!
//! Read from left to right, all that matters of what precedes is its last character (or that there
//! is none), and of what a place demanded to follow, which character may be next (or none). Both
//! matter only as far as the conditions of this tree tell characters apart, so there are few such
//! [`State`]s. A node is prepared with the *rest*: for every state the texts from there on.
//! Prepared so, it is itself the rest of what stands before it.
//!
//! A lookahead becomes an intersection of the rest with what it demands. An unlimited repetition of
//! something that holds places becomes a system of equations, one unknown for each state, which is
//! solved by elimination (Arden's rule).

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
};

use super::{
    conditions::{MAX_KINDS, kinds, simplify},
    equations::{alternate, solve, then},
    error::RegexError,
    notation::Reading,
    restrict::{is_nullable, non_empty, with_first, with_last},
    syntax::{Node, Place, Side, class_regex, lower_all},
};
use crate::{Budget, CharClass, Regex};

/// Number of conditions one behind the other that are resolved, counting repetitions as often as
/// they are written out.
const MAX_CONDITIONS: usize = 250;
/// Limit on the nodes that may be made.
const MAX_WORK: usize = 200_000;
/// Limit on the states that a repetition may pass.
const MAX_STATES: usize = 24;
/// Cost of a node of the result: it is compared with others on the way.
const UNITS_PER_NODE: u64 = 32;

pub(super) fn resolve(
    node: Node,
    reading: Reading,
    budget: &mut Budget<'_>,
) -> Result<Regex, RegexError> {
    let looks = reading != Reading::Lexeme;
    if !looks && node.is_plain(looks) {
        // Before lookarounds for one character become conditions: working these in would lose what
        // is reluctant.
        return Ok(node.lower(true));
    }
    let node = simplify(node);
    if node.is_plain(looks) {
        let plain = node.lower(!looks);
        let around = |inner| Regex::concat([Regex::anything(), inner, Regex::anything()]);
        return Ok(if reading == Reading::Search { around(plain) } else { plain });
    }
    match work_in(node.clone(), reading, budget) {
        // What cannot be worked in is looked at as a text is read.
        Err(error) if looks && error.interrupted.is_none() => {
            let around = |inner| Regex::concat([Regex::anything(), inner, Regex::anything()]);
            let alone = node.lower_alone();
            let alone = if reading == Reading::Search { around(alone) } else { alone };
            Ok(Regex::Whole(alone.into()))
        }
        texts => texts,
    }
}

/// The tree in which conditions are worked in.
fn work_in(node: Node, reading: Reading, budget: &mut Budget<'_>) -> Result<Regex, RegexError> {
    let resolver = Resolver {
        reading,
        kinds: kinds(&node)?,
        conditions: Cell::new(0),
        work: Cell::new(0),
        budget: RefCell::new(budget.split_off()),
    };
    let whole = match reading {
        Reading::Search => {
            let any = Node::Class(CharClass::any());
            let before = Node::Repeat {
                inner: Box::new(any),
                min: 0,
                max: None,
                reluctant: false,
                offset: 0,
            };
            Node::Concat(vec![before, node])
        }
        _ => node,
    };
    let texts = resolver.resolve(&whole);
    budget.join(&resolver.budget.borrow());
    texts
}

/// Knowledge at a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct State {
    /// The kind of the last character, [`START`], or [`start_after`] one.
    before: usize,
    /// The kinds of characters that may be next, one bit each; the bit past them: none may.
    after: u32,
}

/// No character: the text's beginning.
const START: usize = usize::MAX;

/// Beginning of a lexeme after a character of a kind, which belongs to the text before.
fn start_after(kind: usize) -> usize {
    START - 1 - kind
}

/// Kind of the character before a lexeme, where it begins.
fn kind_before_start(before: usize) -> Option<usize> {
    (before != START).then(|| START - 1 - before).filter(|&kind| kind <= MAX_KINDS)
}

type Outcome<T> = Result<T, RegexError>;

/// Continuation after a place, for every state.
struct Rest<'a> {
    make: Box<dyn Fn(State) -> Outcome<Regex> + 'a>,
    made: RefCell<BTreeMap<State, Regex>>,
}

impl<'a> Rest<'a> {
    fn new(make: impl Fn(State) -> Outcome<Regex> + 'a) -> Rc<Self> {
        Rc::new(Self { make: Box::new(make), made: RefCell::default() })
    }

    fn texts(&self, state: State) -> Outcome<Regex> {
        if let Some(made) = self.made.borrow().get(&state) {
            return Ok(made.clone());
        }
        let texts = (self.make)(state)?;
        self.made.borrow_mut().insert(state, texts.clone());
        Ok(texts)
    }
}

struct Resolver<'b> {
    reading: Reading,
    /// A partition of all characters: those of one kind no condition tells apart.
    kinds: Vec<CharClass>,
    conditions: Cell<usize>,
    work: Cell<usize>,
    budget: RefCell<Budget<'b>>,
}

impl Resolver<'_> {
    fn resolve(&self, whole: &Node) -> Outcome<Regex> {
        let after = self.any_next();
        let texts = self.prepare(whole, self.after())?;
        let at_start = texts.texts(State { before: START, after })?;
        if self.reading != Reading::Lexeme {
            return Ok(at_start);
        }
        // A lexeme begins within a text: what is before it is looked at where it matters.
        let mut groups = vec![(at_start, self.end_bit())];
        for kind in 0..self.kinds.len() {
            let texts = texts.texts(State { before: start_after(kind), after })?;
            match groups.iter_mut().find(|(known, _)| *known == texts) {
                Some((_, bits)) => *bits |= 1 << kind,
                None => groups.push((texts, 1 << kind)),
            }
        }
        groups.retain(|(texts, _)| *texts != Regex::Never);
        let options = groups
            .into_iter()
            .map(|(texts, bits)| then(self.look(bits, bits & self.end_bit() != 0, true), texts));
        Ok(alternate(options))
    }

    fn any_next(&self) -> u32 {
        (1 << (self.kinds.len() + 1)) - 1
    }

    fn end_bit(&self) -> u32 {
        1 << self.kinds.len()
    }

    /// The states after a character.
    fn inner_states(&self) -> impl Iterator<Item = State> {
        let after = self.any_next();
        (0..self.kinds.len()).map(move |before| State { before, after })
    }

    /// The kinds on one side of a place, and for the side after it whether there may be none.
    fn bits(&self, side: &Side) -> u32 {
        let kinds = self.kinds.iter().enumerate();
        let bits: u32 = kinds
            .filter(|(_, kind)| kind.ranges().first().is_some_and(|r| side.class.contains(r.0)))
            .map(|(at, _)| 1 << at)
            .sum();
        bits | if side.border { self.end_bit() } else { 0 }
    }

    fn class_of(&self, bits: u32) -> CharClass {
        let kinds = self.kinds.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
        CharClass::new(kinds.flat_map(|(_, kind)| kind.ranges().iter().copied()))
    }

    /// The end of the expression.
    fn after<'a>(&'a self) -> Rc<Rest<'a>> {
        Rest::new(move |state| {
            Ok(match self.reading {
                Reading::Search => self.anything_under(state),
                Reading::Text if state.after & self.end_bit() != 0 => Regex::Empty,
                Reading::Text => Regex::Never,
                Reading::Lexeme if state.after == self.end_bit() => Regex::Empty,
                Reading::Lexeme => self.look_for_next(state.after),
            })
        })
    }

    /// Any text, as far as the state lets it begin.
    fn anything_under(&self, state: State) -> Regex {
        if state.after == self.any_next() {
            return Regex::anything();
        }
        let first = class_regex(&self.class_of(state.after));
        let none = if state.after & self.end_bit() != 0 { Regex::Empty } else { Regex::Never };
        alternate([Regex::concat([first, Regex::anything()]), none])
    }

    /// A lookahead for one of these kinds.
    fn look_for_next(&self, bits: u32) -> Regex {
        self.look(bits, bits & self.end_bit() != 0, false)
    }

    fn look(&self, bits: u32, border: bool, behind: bool) -> Regex {
        if bits & self.any_next() == self.any_next() {
            return Regex::Empty;
        }
        let class = self.class_of(bits);
        let (negated, class) = if border { (true, class.complement()) } else { (false, class) };
        if class.is_empty() {
            return if negated { Regex::Empty } else { Regex::Never };
        }
        Regex::Look { inner: class_regex(&class).into(), behind, negated }
    }

    fn count(&self, offset: usize) -> Outcome<()> {
        self.conditions.set(self.conditions.get() + 1);
        if self.conditions.get() > MAX_CONDITIONS {
            let message = format!(
                "more than {MAX_CONDITIONS} anchors, word boundaries and lookarounds, counting repetitions as \
                 often as they are written out; repeat less"
            );
            return Err(RegexError::new(offset, message));
        }
        Ok(())
    }

    fn step(&self, regex: Regex) -> Outcome<Regex> {
        let parts = match &regex {
            Regex::Concat(parts) | Regex::Alternate(parts) | Regex::And(parts) => parts.len(),
            _ => 1,
        };
        self.work.set(self.work.get() + parts);
        self.budget.borrow_mut().spend(UNITS_PER_NODE * parts as u64)?;
        if self.work.get() > MAX_WORK {
            let message = format!(
                "resolving anchors, word boundaries and lookarounds takes more than {MAX_WORK} nodes; use fewer"
            );
            return Err(RegexError::new(0, message));
        }
        Ok(regex)
    }

    /// Texts of these, which hold no conditions if they are several, and then `rest`.
    fn prepare_stretch<'a>(
        &'a self,
        parts: &'a [Node],
        rest: Rc<Rest<'a>>,
    ) -> Outcome<Rc<Rest<'a>>> {
        if let [only] = parts {
            return self.prepare(only, rest);
        }
        let looks = self.reading != Reading::Lexeme;
        self.prepare_plain(lower_all(parts, !looks), parts.iter().any(Node::has_look), rest)
    }

    fn prepare_plain<'a>(
        &'a self,
        plain: Regex,
        has_looks: bool,
        rest: Rc<Rest<'a>>,
    ) -> Outcome<Rc<Rest<'a>>> {
        Ok(Rest::new(move |state| {
            let texts = match has_looks {
                true => self.looking_then(&plain, state, &rest)?,
                false => self.plain_then(&plain, state, &rest)?,
            };
            self.step(texts)
        }))
    }

    /// Texts of `node` and then `rest`.
    fn prepare<'a>(&'a self, node: &'a Node, rest: Rc<Rest<'a>>) -> Outcome<Rc<Rest<'a>>> {
        let looks = self.reading != Reading::Lexeme;
        if node.is_plain(looks) {
            return self.prepare_plain(node.lower(!looks), node.has_look(), rest);
        }
        match node {
            Node::Class(_) => unreachable!("a class is plain"),
            Node::Concat(parts) => {
                let mut stretches =
                    parts.chunk_by(|one, next| one.is_plain(looks) && next.is_plain(looks)).rev();
                stretches.try_fold(rest, |rest, stretch| self.prepare_stretch(stretch, rest))
            }
            Node::Alternate(options) => {
                let options = options.iter().map(|option| self.prepare(option, rest.clone()));
                let options: Vec<_> = options.collect::<Outcome<_>>()?;
                Ok(Rest::new(move |state| {
                    let texts = options.iter().map(|option| option.texts(state));
                    self.step(alternate(texts.collect::<Outcome<Vec<_>>>()?))
                }))
            }
            Node::Place(places) => {
                self.count(0)?;
                Ok(Rest::new(move |state| self.place_then(places, state, &rest)))
            }
            Node::Repeat { inner, min, max, offset, .. } => {
                self.prepare_repeat(inner, *min, *max, *offset, rest)
            }
            Node::Look { inner, behind: false, negated, offset } => {
                self.count(*offset)?;
                let reading = self.reading;
                let beyond = Rest::new(move |state| {
                    Ok(match reading {
                        Reading::Lexeme => self.look_for_next(state.after),
                        _ => self.anything_under(state),
                    })
                });
                let sought = self.prepare(inner, beyond)?;
                let negated = *negated;
                Ok(Rest::new(move |state| {
                    let from = State { after: self.any_next(), ..state };
                    let sought = sought.texts(from)?;
                    let rest = rest.texts(state)?;
                    self.step(match reading {
                        Reading::Lexeme => {
                            then(Regex::Look { inner: sought.into(), behind: false, negated }, rest)
                        }
                        _ if negated => both(rest, Regex::complement(sought)),
                        _ => both(rest, sought),
                    })
                }))
            }
            Node::Look { offset, .. } => Err(RegexError::new(
                *offset,
                "a lookbehind for more than one character cannot be worked in here; leave it out, or write what \
                 precedes as part of the expression",
            )),
        }
    }

    /// `plain`, which holds no condition, then the rest.
    fn plain_then(&self, plain: &Regex, state: State, rest: &Rest<'_>) -> Outcome<Regex> {
        let free = state.after == self.any_next();
        let nullable = is_nullable(plain);
        let groups = self.rests_after_a_character(rest)?;
        if let [(only, _)] = &groups[..]
            && free
            && (!nullable || rest.texts(state)? == *only)
        {
            return Ok(then(plain.clone(), only.clone()));
        }
        let first = match free {
            true => non_empty(plain),
            false => with_first(plain, &self.class_of(state.after)),
        };
        let mut options = Vec::new();
        for (texts, bits) in &groups {
            let last = match groups.len() {
                1 => first.clone(),
                _ => with_last(&first, &self.class_of(*bits)),
            };
            options.push(then(last, texts.clone()));
        }
        if nullable {
            options.push(rest.texts(state)?);
        }
        Ok(alternate(options))
    }

    /// Repetition whose `plain` part holds lookarounds, which can be asked about its ends instead.
    fn looking_then(&self, plain: &Regex, state: State, rest: &Rest<'_>) -> Outcome<Regex> {
        let next = self.look(state.after, state.after & self.end_bit() != 0, false);
        let mut groups = self.rests_after_a_character(rest)?;
        let at_start = rest.texts(State { before: START, after: self.any_next() })?;
        match groups.iter_mut().find(|(texts, _)| *texts == at_start) {
            Some((_, bits)) => *bits |= self.end_bit(),
            None => groups.push((at_start, self.end_bit())),
        }
        let options = groups
            .into_iter()
            .map(|(texts, bits)| then(self.look(bits, bits & self.end_bit() != 0, true), texts));
        Ok(then(Regex::concat([next, plain.clone()]), alternate(options)))
    }

    /// Character that may follow, with the kinds that it may follow.
    fn rests_after_a_character(&self, rest: &Rest<'_>) -> Outcome<Vec<(Regex, u32)>> {
        let mut groups: Vec<(Regex, u32)> = Vec::new();
        for state in self.inner_states() {
            let texts = rest.texts(state)?;
            match groups.iter_mut().find(|(known, _)| *known == texts) {
                Some((_, bits)) => *bits |= 1 << state.before,
                None => groups.push((texts, 1 << state.before)),
            }
        }
        Ok(groups)
    }

    fn place_then(&self, places: &[Place], state: State, rest: &Rest<'_>) -> Outcome<Regex> {
        let mut after = 0;
        for place in places {
            let fits = match (state.before, kind_before_start(state.before)) {
                (START, _) => place.before.border,
                // `^` and `\A` say nothing where a lexeme begins.
                (_, Some(_)) if place.before.is_text_start() => true,
                (_, Some(kind)) | (kind, None) => self.bits(&place.before) >> kind & 1 == 1,
            };
            if fits {
                after |= self.bits(&place.after);
            }
        }
        match after & state.after {
            0 => Ok(Regex::Never),
            after => rest.texts(State { after, ..state }),
        }
    }

    fn prepare_repeat<'a>(
        &'a self,
        inner: &'a Node,
        min: u32,
        max: Option<u32>,
        offset: usize,
        rest: Rc<Rest<'a>>,
    ) -> Outcome<Rc<Rest<'a>>> {
        let looks = self.reading != Reading::Lexeme && inner.has_look();
        if looks && let Some(unit) = tempered(inner) {
            return self.prepare_tempered(inner, unit, (min, max), offset, rest);
        }
        if looks && max.is_none() {
            return Err(RegexError::new(offset, LOOKAHEAD_REPEATED));
        }
        self.prepare_written_out(inner, min, max, offset, rest)
    }

    /// `inner` as often as it must be, then as often as it may be.
    fn prepare_written_out<'a>(
        &'a self,
        inner: &'a Node,
        min: u32,
        max: Option<u32>,
        offset: usize,
        rest: Rc<Rest<'a>>,
    ) -> Outcome<Rc<Rest<'a>>> {
        let mut prepared = match max {
            None => self.prepare_star(inner, offset, rest)?,
            Some(max) => {
                let mut prepared = rest.clone();
                for _ in min..max {
                    self.count(offset)?;
                    let once = self.prepare(inner, prepared)?;
                    let rest = rest.clone();
                    prepared = Rest::new(move |state| {
                        self.step(alternate([once.texts(state)?, rest.texts(state)?]))
                    });
                }
                prepared
            }
        };
        for _ in 0..min {
            self.count(offset)?;
            prepared = self.prepare(inner, prepared)?;
        }
        Ok(prepared)
    }

    /// `inner` any number of times: the unknown of a state is the rest, or one `inner` to another
    /// state and the unknown of that.
    fn prepare_star<'a>(
        &'a self,
        inner: &'a Node,
        offset: usize,
        rest: Rc<Rest<'a>>,
    ) -> Outcome<Rc<Rest<'a>>> {
        self.count(offset)?;
        Ok(Rest::new(move |state| {
            let mut states = vec![state];
            let mut once: Vec<BTreeMap<State, Regex>> = Vec::new();
            while let Some(&from) = states.get(once.len()) {
                let reached = RefCell::new(Vec::new());
                let note = |state| {
                    reached.borrow_mut().push(state);
                    Ok(Regex::Empty)
                };
                self.prepare(inner, Rest::new(note))?.texts(from)?;
                let mut ways = BTreeMap::new();
                for to in reached.into_inner() {
                    let only =
                        move |state| Ok(if state == to { Regex::Empty } else { Regex::Never });
                    ways.insert(to, self.prepare(inner, Rest::new(only))?.texts(from)?);
                    if !states.contains(&to) {
                        states.push(to);
                    }
                }
                once.push(ways);
                if states.len() > MAX_STATES {
                    let message = format!(
                        "this repetition passes more than {MAX_STATES} different places; use fewer anchors and \
                         word boundaries in it"
                    );
                    return Err(RegexError::new(offset, message));
                }
            }
            let ends: Vec<Regex> =
                states.iter().map(|&state| rest.texts(state)).collect::<Outcome<_>>()?;
            Ok(solve(number(&states, once), ends))
        }))
    }

    /// `unit` again and again, where each is a character before which a lookahead is refuted.
    ///
    /// Where nothing follows the repetition, its texts are those of characters alone less those in
    /// which the lookahead holds somewhere.
    fn prepare_tempered<'a>(
        &'a self,
        inner: &'a Node,
        unit: (&'a Node, &'a CharClass),
        times: (u32, Option<u32>),
        offset: usize,
        rest: Rc<Rest<'a>>,
    ) -> Outcome<Rc<Rest<'a>>> {
        let (sought, class) = unit;
        let (min, max) = times;
        self.count(offset)?;
        let sought =
            self.prepare(sought, Rest::new(move |state| Ok(self.anything_under(state))))?;
        Ok(Rest::new(move |state| {
            let mut rests = self.rests_after_a_character(&rest)?;
            let same = rests.len() == 1 && rest.texts(state)? == rests[0].0;
            let follows = rests.swap_remove(0).0;
            if same && min == 0 && follows == Regex::anything() {
                return Ok(follows);
            }
            let mut forbidden = self.rests_after_a_character(&sought)?;
            let from = State { after: self.any_next(), ..state };
            let alike = forbidden.len() == 1 && sought.texts(from)? == forbidden[0].0;
            let alone = same && follows == Regex::Empty && state.after == self.any_next();
            if alone && alike {
                let forbidden = non_empty(&forbidden.swap_remove(0).0);
                let forbidden = Regex::concat([Regex::anything(), forbidden]);
                let free = class_regex(class).repeat(min, max);
                return self.step(both(free, Regex::complement(forbidden)));
            }
            if max.is_none() {
                return Err(RegexError::new(offset, LOOKAHEAD_REPEATED));
            }
            self.prepare_written_out(inner, min, max, offset, rest.clone())?.texts(state)
        }))
    }
}

const LOOKAHEAD_REPEATED: &str = "a lookahead for more than one character within a repetition without end cannot be \
     worked in here, unless it is `(?!…)` before one character and `$` follows the repetition; put the lookahead \
     before the repetition, or bound the repetition";

/// Ways by the number of a state instead of the state.
fn number(states: &[State], ways: Vec<BTreeMap<State, Regex>>) -> Vec<Vec<Regex>> {
    let row = |mut ways: BTreeMap<State, Regex>| {
        let cells = states.iter().map(|state| ways.remove(state).unwrap_or(Regex::Never));
        cells.collect()
    };
    ways.into_iter().map(row).collect()
}

/// The lookahead and the class of `(?!…)[…]`.
fn tempered(node: &Node) -> Option<(&Node, &CharClass)> {
    match node {
        Node::Concat(parts) => match &parts[..] {
            [only] => tempered(only),
            [Node::Look { inner, behind: false, negated: true, .. }, Node::Class(class)] => {
                Some((inner, class))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The intersection of two.
fn both(one: Regex, other: Regex) -> Regex {
    let anything = Regex::anything();
    if one == anything {
        return other;
    }
    if other == anything {
        return one;
    }
    Regex::and([one, other])
}
