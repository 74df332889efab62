//! Expressions taken over from elsewhere, and the parts at an expression's front.

use hashbrown::HashMap;

use super::{Arm, Exceeded, ExprId, Expressions, Item, Maker, Node, Repeat};
use crate::fingerprint;

/// An expression as what stands at its front and what is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Front {
    /// Any number of certain bytes, or blanks, which may be counted.
    pub blanks: Option<ExprId>,
    /// Text after the first part.
    pub text: Box<[u8]>,
    /// Expression of what remains.
    pub rest: ExprId,
}

impl Expressions {
    /// True when what the expression matches depends on its lexeme alone, not on what is before or
    /// after it.
    pub fn is_context_free(&self, of: ExprId) -> bool {
        let facts = self.facts(of);
        !facts.ahead && !facts.behind
    }

    /// True when what is before a lexeme may matter.
    pub fn looks_behind(&self, of: ExprId) -> bool {
        self.facts(of).behind
    }

    /// Fingerprint of an expression's shape, whatever numbers it and its parts have here; `known`
    /// are those of parts.
    ///
    /// Cost: linear in the parts that are not known yet.
    pub fn fingerprint(&self, of: ExprId, known: &mut HashMap<ExprId, u128>) -> u128 {
        let mut work = vec![of];
        while let Some(next) = self.next_of(&mut work, known) {
            let node = self.node(next);
            let mut parts = Vec::new();
            node.parts(|part| parts.push(known[&part]));
            if let Node::Or(_) | Node::And(_) = node {
                // They lie in the order of their numbers.
                parts.sort_unstable();
            }
            let made = fingerprint(&(node.with_parts(|_| ExprId::NEVER), parts));
            known.insert(next, made);
        }
        known[&of]
    }

    /// The next one of `work` that is not known while its parts are, which are added to the work
    /// otherwise. Chains are long: without recursion, parts come before wholes.
    fn next_of<T>(&self, work: &mut Vec<ExprId>, known: &HashMap<ExprId, T>) -> Option<ExprId> {
        loop {
            let next = *work.last()?;
            let open = work.len();
            if !known.contains_key(&next) {
                self.node(next).parts(|part| {
                    if !known.contains_key(&part) {
                        work.push(part);
                    }
                });
            }
            if work.len() == open {
                work.pop();
                if !known.contains_key(&next) {
                    return Some(next);
                }
            }
        }
    }

    /// True when it is a repetition of single bytes without bounds.
    fn is_any_number_of_bytes(&self, of: ExprId) -> bool {
        let Node::Repeat(Repeat { inner, min: 0, max: None, reluctant: false }) = *self.node(of)
        else {
            return false;
        };
        match self.node(inner) {
            Node::Switch(arms) => arms.iter().all(|arm| arm.then == ExprId::EMPTY),
            _ => false,
        }
    }

    /// True of a repeat or choice of blanks alone, in few parts, that asks nothing of its
    /// surroundings. A blank as it is counts as text.
    fn is_blanks(&self, of: ExprId) -> bool {
        if !matches!(self.node(of), Node::Repeat(_) | Node::Or(_)) {
            return false;
        }
        let mut parts = vec![of];
        let mut at = 0;
        while let Some(&part) = parts.get(at) {
            let reads_blanks = match self.node(part) {
                Node::Switch(arms) => arms.iter().all(|arm| {
                    let is_blank = |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
                    (arm.low..=arm.high).all(is_blank)
                }),
                Node::Concat(..) | Node::Or(_) => true,
                Node::Repeat(repeat) => !repeat.reluctant,
                _ => part == ExprId::EMPTY,
            };
            if !reads_blanks || at == MAX_BLANK_PARTS {
                return false;
            }
            at += 1;
            self.node(part).parts(|inner| {
                if !parts.contains(&inner) {
                    parts.push(inner);
                }
            });
        }
        self.facts(of).plain
    }
}

/// Blanks of more parts are not told from other expressions.
const MAX_BLANK_PARTS: usize = 16;

impl Maker<'_, '_> {
    /// Imports an expression, where `known` are those of `from` that were taken over before.
    ///
    /// Cost: linear in the parts that are not known yet, and a unit for each of them.
    ///
    /// # Errors
    /// When a limit is exceeded, or the budget used up; what is in `known` by then is sound.
    pub fn import(
        &mut self,
        from: &Expressions,
        of: ExprId,
        known: &mut HashMap<ExprId, ExprId>,
    ) -> Result<ExprId, Exceeded> {
        let mut work = vec![of];
        while let Some(next) = from.next_of(&mut work, known) {
            self.spend(1)?;
            let node = from.node(next).with_parts(|part| known[&part]);
            let made = self.intern(node)?;
            known.insert(next, made);
        }
        Ok(known[&of])
    }

    /// Front of an expression.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn front(&mut self, of: ExprId) -> Result<Front, Exceeded> {
        let (mut blanks, mut rest) = (None, of);
        if let Node::Concat(head, tail) = *self.node(of)
            && (self.is_any_number_of_bytes(head) || self.is_blanks(head))
        {
            (blanks, rest) = (Some(head), tail);
        }
        let mut text = Vec::new();
        loop {
            let (mut head, tail) = match *self.node(rest) {
                Node::Concat(head, tail) => (head, tail),
                _ => (rest, ExprId::EMPTY),
            };
            let before = text.len();
            while let Node::Switch(arms) = self.node(head)
                && let [Arm { low, high, then }] = **arms
                && low == high
            {
                text.push(low);
                head = then;
            }
            if text.len() == before {
                break;
            }
            rest = self.concat(head, tail)?;
            if head != ExprId::EMPTY {
                break;
            }
        }
        Ok(Front { blanks, text: text.into(), rest })
    }
}

impl Node {
    /// Shows the expressions it is made of.
    pub(super) fn parts(&self, mut show: impl FnMut(ExprId)) {
        match self {
            Self::Never | Self::Empty | Self::Multiple(_) => {}
            Self::Switch(arms) => arms.iter().for_each(|arm| show(arm.then)),
            Self::Concat(a, b) => [*a, *b].into_iter().for_each(show),
            Self::Or(parts) | Self::Ordered(parts) | Self::And(parts) => {
                parts.iter().copied().for_each(show);
            }
            Self::Not(inner)
            | Self::Unordered(inner)
            | Self::Whole(inner)
            | Self::Grows(inner)
            | Self::Longer(inner)
            | Self::Repeat(Repeat { inner, .. })
            | Self::Behind { history: inner, .. } => show(*inner),
            Self::Given { condition, inner } => [*condition, *inner].into_iter().for_each(show),
            Self::First(items) => items.iter().for_each(|item| match *item {
                Item::Match(part) | Item::Go(part) => show(part),
            }),
        }
    }

    /// Image of a node whose parts are taken over.
    fn with_parts(&self, to: impl Fn(ExprId) -> ExprId) -> Self {
        let all = |parts: &[ExprId]| parts.iter().map(|&part| to(part)).collect::<Vec<_>>();
        let sorted = |parts: &[ExprId]| {
            let mut parts = all(parts);
            parts.sort_unstable();
            parts.into()
        };
        match self {
            Self::Never => Self::Never,
            Self::Empty => Self::Empty,
            Self::Multiple(of) => Self::Multiple(*of),
            Self::Switch(arms) => {
                Self::Switch(arms.iter().map(|arm| Arm { then: to(arm.then), ..*arm }).collect())
            }
            Self::Concat(a, b) => Self::Concat(to(*a), to(*b)),
            Self::Or(parts) => Self::Or(sorted(parts)),
            Self::Ordered(parts) => Self::Ordered(all(parts).into()),
            Self::And(parts) => Self::And(sorted(parts)),
            Self::Not(inner) => Self::Not(to(*inner)),
            Self::Repeat(repeat) => Self::Repeat(Repeat { inner: to(repeat.inner), ..*repeat }),
            &Self::Behind { history, negated } => Self::Behind { history: to(history), negated },
            Self::Unordered(inner) => Self::Unordered(to(*inner)),
            Self::Whole(inner) => Self::Whole(to(*inner)),
            &Self::Given { condition, inner } => {
                Self::Given { condition: to(condition), inner: to(inner) }
            }
            Self::First(items) => Self::First(
                items
                    .iter()
                    .map(|item| match *item {
                        Item::Match(part) => Item::Match(to(part)),
                        Item::Go(part) => Item::Go(to(part)),
                    })
                    .collect(),
            ),
            Self::Grows(inner) => Self::Grows(to(*inner)),
            Self::Longer(inner) => Self::Longer(to(*inner)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expressions::ExpressionLimits;
    use crate::{Budget, CharClass, Regex};

    fn expressions() -> Expressions {
        let limits =
            ExpressionLimits { max_expressions: 1000, max_nesting: 100, max_visited: 1000 };
        Expressions::new(limits).unwrap()
    }

    fn blank() -> Regex {
        Regex::Class(CharClass::new([(' ', ' '), ('\n', '\n')])).repeat(0, None)
    }

    #[test]
    fn what_comes_from_several_places_is_one() {
        let parts = ["x", "ab", "[é]"].map(Regex::literal);
        let regex = Regex::concat([
            Regex::alternate(parts.clone()).repeat(1, Some(3)),
            Regex::and([blank(), Regex::complement(Regex::literal("\n"))]),
        ]);
        let (mut here, mut first, mut second) = (expressions(), expressions(), expressions());
        for part in &parts {
            second.making(&mut Budget::unlimited()).compile(part).unwrap();
        }
        let mut prints = Vec::new();
        let ids = [&mut first, &mut second].map(|from| {
            let of = from.making(&mut Budget::unlimited()).compile(&regex).unwrap();
            prints.push(from.fingerprint(of, &mut HashMap::new()));
            here.making(&mut Budget::unlimited()).import(from, of, &mut HashMap::new()).unwrap()
        });
        prints.push(here.fingerprint(ids[0], &mut HashMap::new()));
        assert!(prints.iter().all(|print| *print == prints[0]), "{prints:x?}");
        let part = here.making(&mut Budget::unlimited()).compile(&parts[0]).unwrap();
        assert_ne!(here.fingerprint(part, &mut HashMap::new()), prints[0]);
        assert_eq!(ids[0], ids[1]);
        for (text, matches) in [("x", true), ("ab[é]", true), ("x\n", false), ("x\n ", true)] {
            let left = text.bytes().try_fold(ids[0], |of, byte| {
                here.making(&mut Budget::unlimited()).derive(of, byte)
            });
            assert_eq!(here.null(left.unwrap()) != ExprId::NEVER, matches, "{text:?}");
        }
    }

    #[test]
    fn a_front_is_blanks_and_text() {
        let mut expressions = expressions();
        let digit = Regex::Class(CharClass::new([('0', '9')]));
        let of = Regex::concat([blank(), Regex::literal("\"a\":"), digit.clone(), blank()]);
        let of = expressions.making(&mut Budget::unlimited()).compile(&of).unwrap();
        let blanks = expressions.making(&mut Budget::unlimited()).compile(&blank()).unwrap();
        let rest = expressions
            .making(&mut Budget::unlimited())
            .compile(&Regex::concat([digit, blank()]))
            .unwrap();
        let text = b"\"a\":".as_slice().into();
        let front = Front { blanks: Some(blanks), text, rest };
        assert_eq!(expressions.making(&mut Budget::unlimited()).front(of), Ok(front));
        let front = Front { blanks: None, text: [].into(), rest };
        assert_eq!(expressions.making(&mut Budget::unlimited()).front(rest), Ok(front));
    }

    /// Layout before a name of JSON: blanks, or a line break and counted blanks.
    #[test]
    fn blanks_that_are_counted_are_a_front_until_they_are_used_up() {
        let mut expressions = expressions();
        let mut budget = Budget::unlimited();
        let counted = |max| Regex::Class(CharClass::new([(' ', ' ')])).repeat(0, Some(max));
        let layout =
            Regex::alternate([counted(1), Regex::concat([Regex::literal("\n"), counted(3)])]);
        let of = Regex::concat([layout, Regex::literal("name")]);
        let of = expressions.making(&mut budget).compile(&of).unwrap();
        for (read, blanks, text) in [
            ("", true, "name"),
            (" ", false, "name"),
            ("\n", true, "name"),
            ("\n  ", true, "name"),
            ("\n   ", false, "name"),
            ("\n   n", false, "ame"),
        ] {
            let mut making = expressions.making(&mut budget);
            let left = read.bytes().try_fold(of, |of, byte| making.derive(of, byte)).unwrap();
            let front = making.front(left).unwrap();
            assert_eq!(
                (front.blanks.is_some(), &*front.text),
                (blanks, text.as_bytes()),
                "{read:?}"
            );
            // Put together again it is what it was.
            let mut whole = making.compile(&Regex::literal(text)).unwrap();
            whole = making.concat(whole, front.rest).unwrap();
            whole = making.concat(front.blanks.unwrap_or(ExprId::EMPTY), whole).unwrap();
            assert_eq!(whole, left, "{read:?}");
        }
        // Letters that are counted are compared with the vocabulary as they are.
        let letters = Regex::Class(CharClass::new([('a', 'c')])).repeat(0, Some(3));
        let of = Regex::concat([letters, Regex::literal("name")]);
        let mut making = expressions.making(&mut budget);
        let of = making.compile(&of).unwrap();
        assert_eq!(making.front(of).unwrap().blanks, None);
    }
}
