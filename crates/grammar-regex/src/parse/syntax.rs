//! The syntax tree between reading and resolving: classes are resolved, conditions on places are
//! not.

use crate::{CharClass, Regex};

/// Limit on the nesting of groups.
pub(super) const MAX_NESTING: usize = 200;

#[derive(Clone, Debug)]
pub(super) enum Node {
    /// One character.
    Class(CharClass),
    /// Concatenation; the empty text if there are no parts.
    Concat(Vec<Node>),
    Alternate(Vec<Node>),
    Repeat {
        inner: Box<Node>,
        min: u32,
        max: Option<u32>,
        reluctant: bool,
        offset: usize,
    },
    /// A lookaround.
    Look {
        inner: Box<Node>,
        behind: bool,
        negated: bool,
        offset: usize,
    },
    /// The empty text at a place of one of these kinds.
    Place(Vec<Place>),
}

/// A kind of place between two characters.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) before: Side,
    pub(super) after: Side,
}

/// Kinds of what may be on one side of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Side {
    /// A character of this class,
    pub(super) class: CharClass,
    /// or, if this is set, no character: the text's beginning (before) or end (after).
    pub(super) border: bool,
}

impl Node {
    pub(super) fn empty() -> Self {
        Self::Concat(Vec::new())
    }

    pub(super) fn look_ahead(inner: Node, offset: usize) -> Self {
        Self::Look { inner: Box::new(inner), behind: false, negated: false, offset }
    }

    /// `^`, at the beginning of lines too if `lines`.
    pub(super) fn start(lines: bool) -> Self {
        let class = if lines { CharClass::single('\n') } else { CharClass::new([]) };
        Self::Place(vec![Place { before: Side { class, border: true }, after: Side::free() }])
    }

    /// `$`, at the end of lines too if `lines`.
    pub(super) fn end(lines: bool) -> Self {
        let class = if lines { CharClass::single('\n') } else { CharClass::new([]) };
        Self::Place(vec![Place { before: Side::free(), after: Side { class, border: true } }])
    }

    /// `\b`, or `\B` if `negated`, for words of these characters.
    pub(super) fn word_boundary(word: &CharClass, negated: bool) -> Self {
        let inside = Side { class: word.clone(), border: false };
        let outside = inside.complement();
        let pairs = match negated {
            false => [(inside.clone(), outside.clone()), (outside, inside)],
            true => [(inside.clone(), inside), (outside.clone(), outside)],
        };
        Self::Place(pairs.map(|(before, after)| Place { before, after }).into())
    }

    /// True when it holds no conditions on places; lookarounds count as such where `looks`.
    pub(super) fn is_plain(&self, looks: bool) -> bool {
        match self {
            Self::Class(_) => true,
            Self::Place(_) => false,
            Self::Look { inner, .. } => !looks && inner.is_plain(looks),
            Self::Repeat { inner, .. } => inner.is_plain(looks),
            Self::Concat(parts) | Self::Alternate(parts) => {
                parts.iter().all(|part| part.is_plain(looks))
            }
        }
    }

    /// True when there is a lookaround in it.
    pub(super) fn has_look(&self) -> bool {
        match self {
            Self::Class(_) | Self::Place(_) => false,
            Self::Look { .. } => true,
            Self::Repeat { inner, .. } => inner.has_look(),
            Self::Concat(parts) | Self::Alternate(parts) => parts.iter().any(Self::has_look),
        }
    }

    /// The tree of a node that holds no [`Place`]. Reluctance is kept where `keep_reluctant`.
    pub(super) fn lower(&self, keep_reluctant: bool) -> Regex {
        match self {
            Self::Class(class) => class_regex(class),
            Self::Concat(parts) => lower_all(parts, keep_reluctant),
            Self::Alternate(options) => {
                Regex::alternate(options.iter().map(|option| option.lower(keep_reluctant)))
            }
            Self::Repeat { inner, min, max, reluctant, .. } => {
                let mut repeat = inner.lower(keep_reluctant).repeat(*min, *max);
                if let Regex::Repeat { reluctant: kept, .. } = &mut repeat
                    && (*min, *max) != (1, Some(1))
                {
                    *kept = *reluctant && keep_reluctant;
                }
                repeat
            }
            Self::Look { inner, behind, negated, .. } => {
                Regex::Look { inner: inner.lower(false).into(), behind: *behind, negated: *negated }
            }
            Self::Place(_) => unreachable!("places are resolved before"),
        }
    }
}

impl Node {
    /// The tree of a node within a text by itself, where lookarounds and conditions on places stay:
    /// each looks at all of the text on its side.
    pub(super) fn lower_alone(&self) -> Regex {
        match self {
            Self::Class(class) => class_regex(class),
            Self::Concat(parts) => Regex::concat(parts.iter().map(Self::lower_alone)),
            Self::Alternate(options) => Regex::alternate(options.iter().map(Self::lower_alone)),
            Self::Repeat { inner, min, max, .. } => inner.lower_alone().repeat(*min, *max),
            Self::Look { inner, behind, negated, .. } => {
                let sought = inner.lower_alone();
                let inner =
                    if *behind { Regex::concat([Regex::anything(), sought]) } else { sought };
                Regex::Look { inner: inner.into(), behind: *behind, negated: *negated }
            }
            Self::Place(places) => Regex::alternate(
                places
                    .iter()
                    .map(|place| Regex::concat([place.before.look(true), place.after.look(false)])),
            ),
        }
    }
}

impl Side {
    /// A look at this side of a place, within a text by itself.
    fn look(&self, behind: bool) -> Regex {
        if self.is_free() {
            return Regex::Empty;
        }
        let class = class_regex(&self.class);
        let (inner, negated) = match (behind, self.border) {
            (true, true) => {
                let last = Regex::concat([Regex::anything(), class]);
                (Regex::alternate([Regex::Empty, last]), false)
            }
            (true, false) => (Regex::concat([Regex::anything(), class]), false),
            (false, true) => (class_regex(&self.class.complement()), true),
            (false, false) => (class, false),
        };
        Regex::Look { inner: inner.into(), behind, negated }
    }

    /// Anything.
    pub(super) fn free() -> Self {
        Self { class: CharClass::any(), border: true }
    }

    pub(super) fn complement(&self) -> Self {
        Self { class: self.class.complement(), border: !self.border }
    }

    /// True when it is the side before a text.
    pub(super) fn is_text_start(&self) -> bool {
        self.border && self.class.is_empty()
    }

    pub(super) fn is_free(&self) -> bool {
        self.border && self.class == CharClass::any()
    }
}

/// The tree of nodes one after another, their single characters put together.
pub(super) fn lower_all(parts: &[Node], keep_reluctant: bool) -> Regex {
    let mut lowered = Vec::new();
    let mut text = String::new();
    for part in parts {
        match part {
            Node::Class(class) if only_char(class).is_some() => text.extend(only_char(class)),
            _ => {
                lowered.push(Regex::literal(&std::mem::take(&mut text)));
                lowered.push(part.lower(keep_reluctant));
            }
        }
    }
    lowered.push(Regex::literal(&text));
    Regex::concat(lowered)
}

/// One character of a class, as simple as it goes.
pub(super) fn class_regex(class: &CharClass) -> Regex {
    match only_char(class) {
        Some(only) => Regex::literal(only.encode_utf8(&mut [0; 4])),
        None if class.is_empty() => Regex::Never,
        None => Regex::Class(class.clone()),
    }
}

fn only_char(class: &CharClass) -> Option<char> {
    match class.ranges() {
        &[(low, high)] if low == high => Some(low),
        _ => None,
    }
}
