//! Ordered alternatives as a backtracking matcher picks them, for terminals with reluctant
//! quantifiers.
//!
//! A [`Node::First`] lists the ways to go on in the order in which such a matcher tries them. Where
//! a way matches, those after it are given up; a way before it may still match later, and if it
//! does, it is the one that is picked. So a match is one only as long as no way before it matches
//! what follows: a condition like a lookahead's. Reading a byte derives each way and splits it
//! again.

use std::{collections::HashSet, sync::Arc};

use super::{Exceeded, ExprId, ExprResult, Item, Maker, Node, Repeat};

impl Maker<'_, '_> {
    /// Pick of a backtracking matcher in `of`, whose alternatives and repeats are ordered.
    pub(super) fn first(&mut self, of: ExprId) -> ExprResult {
        let items = self.split(of)?;
        self.pick(&items)
    }

    /// Condition that the empty lexeme puts on what follows, where these are the ways.
    pub(super) fn first_null(&mut self, items: &[Item]) -> ExprResult {
        let (mut before, mut ends) = (Vec::new(), Vec::new());
        for &item in items {
            match item {
                Item::Go(way) => before.push(way),
                Item::Match(condition) => {
                    let any_before = self.or(before.iter().copied())?;
                    let preferred = self.grows(any_before)?;
                    let not_preferred = self.not(preferred)?;
                    ends.push(self.and([condition, not_preferred])?);
                }
            }
        }
        self.or(ends)
    }

    pub(super) fn derive_first(&mut self, items: &[Item], byte: u8) -> ExprResult {
        let mut derived = Vec::new();
        for item in items {
            if let Item::Go(way) = *item {
                let way = self.derive(way, byte)?;
                derived.extend_from_slice(&self.split(way)?);
            }
        }
        self.pick(&derived)
    }

    /// The ways of `items`, without those that come too late.
    fn pick(&mut self, items: &[Item]) -> ExprResult {
        let (mut kept, mut seen) = (Vec::new(), HashSet::new());
        // That no match before this item holds.
        let mut still = ExprId::ALL;
        for &item in items {
            match item {
                Item::Go(way) => {
                    let item = Item::Go(self.given(still, way)?);
                    if item != Item::Go(ExprId::NEVER) && seen.insert(item) {
                        kept.push(item);
                    }
                }
                Item::Match(condition) => {
                    let condition = self.and([still, condition])?;
                    if condition != ExprId::NEVER {
                        kept.push(Item::Match(condition));
                    }
                    let otherwise = self.not(condition)?;
                    still = self.and([still, otherwise])?;
                    if still == ExprId::NEVER {
                        break;
                    }
                }
            }
        }
        match kept[..] {
            [] => Ok(ExprId::NEVER),
            [Item::Match(condition)] => self.given(condition, ExprId::EMPTY),
            _ => self.intern(Node::First(kept.into())),
        }
    }

    /// The ways that `of` has, in order of preference. Each [`Item::Go`] takes a byte.
    fn split(&mut self, of: ExprId) -> Result<Arc<[Item]>, Exceeded> {
        if let Some(known) = self.splits.get(&of) {
            return Ok(Arc::clone(known));
        }
        let ways: Arc<[Item]> = self.split_node(of)?.into();
        self.splits.insert(of, Arc::clone(&ways));
        Ok(ways)
    }

    fn split_node(&mut self, of: ExprId) -> Result<Vec<Item>, Exceeded> {
        match self.node(of).clone() {
            Node::Never => Ok(vec![]),
            Node::Empty | Node::Behind { .. } => Ok(vec![Item::Match(self.null(of))]),
            Node::Switch(_) => Ok(vec![Item::Go(of)]),
            Node::Ordered(parts) => {
                let mut ways = Vec::new();
                for &part in &parts {
                    ways.extend_from_slice(&self.split(part)?);
                }
                Ok(ways)
            }
            Node::Concat(a, b) => {
                let mut ways = Vec::new();
                for way in self.split(a)?.iter() {
                    match *way {
                        Item::Go(way) => ways.push(Item::Go(self.concat(way, b)?)),
                        Item::Match(condition) => {
                            let rest = self.split(b)?;
                            self.add_ways(&mut ways, condition, &rest)?;
                        }
                    }
                }
                Ok(ways)
            }
            Node::Repeat(repeat) => self.split_repeat(repeat),
            Node::Given { condition, inner } => {
                let (inner, mut ways) = (self.split(inner)?, Vec::new());
                self.add_ways(&mut ways, condition, &inner)?;
                Ok(ways)
            }
            // A set of lexemes, whatever it is made of.
            Node::Unordered(inner) => {
                let some_byte = self.concat(ExprId::ANY_BYTE, ExprId::ALL)?;
                let goes_on = self.and([inner, some_byte])?;
                let goes_on = self.unordered(goes_on)?;
                Ok(vec![Item::Go(goes_on), Item::Match(self.null(inner))])
            }
            Node::Or(_)
            | Node::Multiple(_)
            | Node::And(_)
            | Node::Not(_)
            | Node::First(_)
            | Node::Whole(_)
            | Node::Grows(_)
            | Node::Longer(_) => unreachable!("sets within an ordered whole are marked as such"),
        }
    }

    /// Adds `more`, given a condition.
    fn add_ways(
        &mut self,
        ways: &mut Vec<Item>,
        condition: ExprId,
        more: &[Item],
    ) -> Result<(), Exceeded> {
        for way in more {
            ways.push(match *way {
                Item::Go(way) => Item::Go(self.given(condition, way)?),
                Item::Match(other) => Item::Match(self.and([condition, other])?),
            });
        }
        Ok(())
    }

    fn split_repeat(&mut self, repeat: Repeat) -> Result<Vec<Item>, Exceeded> {
        let max = repeat.max.map(|max| max - 1);
        let rest = Repeat { min: repeat.min.saturating_sub(1), max, ..repeat };
        let inner = self.split(repeat.inner)?;
        let is_condition = |way: &Item| matches!(way, Item::Match(if_) if *if_ != ExprId::ALL);
        let may_take_nothing = repeat.min > 1 && inner.iter().any(is_condition);
        if may_take_nothing {
            self.split_fewer(repeat)?;
        }
        let rest = self.repeated(rest)?;
        let stop = Item::Match(ExprId::ALL);
        let mut ways = Vec::new();
        if repeat.min == 0 && repeat.reluctant {
            ways.push(stop);
        }
        for &way in inner.iter() {
            match way {
                Item::Go(way) => ways.push(Item::Go(self.concat(way, rest)?)),
                // As often as it must be repeated, each repetition is one by itself.
                Item::Match(condition) if may_take_nothing && condition != ExprId::ALL => {
                    let more = self.split(rest)?;
                    self.add_ways(&mut ways, condition, &more)?;
                }
                // After that, one that takes nothing leaves the loop; and where it always can, so
                // can all.
                Item::Match(_) => ways.push(way),
            }
        }
        if repeat.min == 0 && !repeat.reluctant {
            ways.push(stop);
        }
        if may_take_nothing {
            // What was tried before is tried in vain.
            let mut seen = HashSet::new();
            ways.retain(|&way| seen.insert(way));
        }
        Ok(ways)
    }

    /// Splits a repeat with fewer repetitions, the fewest first, so that none is split within
    /// another.
    fn split_fewer(&mut self, repeat: Repeat) -> Result<(), Exceeded> {
        if repeat.min > self.limits.max_nesting {
            return Err(Exceeded::Nesting(self.limits.max_nesting));
        }
        for less in (1..repeat.min).rev() {
            let max = repeat.max.map(|max| max - less);
            let fewer = self.repeated(Repeat { min: repeat.min - less, max, ..repeat })?;
            self.split(fewer)?;
        }
        Ok(())
    }
}
