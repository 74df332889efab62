//! Making expressions: each constructor simplifies, so that equal languages often are equal
//! expressions.
//!
//! A simplification that asks whether a part matches the empty lexeme must not be made for a part
//! with a lookbehind: that is known only once the lexer is at the part's place.

use std::collections::BTreeMap;

use super::{Arm, Exceeded, ExprId, ExprResult, Maker, Node, Repeat};

impl Maker<'_, '_> {
    /// A switch: one byte, then what its arm says. `arms` are sorted and disjoint; neighbours that
    /// agree are joined.
    pub(super) fn switch(&mut self, arms: impl IntoIterator<Item = Arm>) -> ExprResult {
        let mut kept: Vec<Arm> = Vec::new();
        for arm in arms {
            match kept.last_mut() {
                _ if arm.then == ExprId::NEVER => {}
                Some(last) if last.then == arm.then && last.high + 1 == arm.low => {
                    last.high = arm.high;
                }
                _ => kept.push(arm),
            }
        }
        if kept.is_empty() { Ok(ExprId::NEVER) } else { self.intern(Node::Switch(kept.into())) }
    }

    /// The concatenation of two expressions.
    pub fn concat(&mut self, first: ExprId, second: ExprId) -> ExprResult {
        let mut second = second;
        // The parts of a left-nested chain, without descending.
        let mut first = first;
        let mut left = Vec::new();
        while let Node::Concat(a, b) = *self.node(first) {
            left.push(a);
            first = b;
        }
        loop {
            second = self.concat_pair(first, second)?;
            match left.pop() {
                Some(before) => first = before,
                None => return Ok(second),
            }
        }
    }

    /// [`concat`](Self::concat), where `first` is no concatenation.
    fn concat_pair(&mut self, first: ExprId, second: ExprId) -> ExprResult {
        if first == ExprId::NEVER || second == ExprId::NEVER {
            return Ok(ExprId::NEVER);
        }
        if first == ExprId::EMPTY {
            return Ok(second);
        }
        if second == ExprId::EMPTY {
            return Ok(first);
        }
        let of = self.facts(first);
        if second == ExprId::ALL && of.null == ExprId::ALL && !of.behind {
            return Ok(ExprId::ALL);
        }
        if let Node::Given { condition, inner } = *self.node(first) {
            let whole = self.concat(inner, second)?;
            return self.given(condition, whole);
        }
        self.intern(Node::Concat(first, second))
    }

    /// The union of expressions.
    pub fn or(&mut self, parts: impl IntoIterator<Item = ExprId>) -> ExprResult {
        let mut flat = Vec::new();
        for part in parts {
            match self.node(part) {
                Node::Never => {}
                Node::Or(nested) => flat.extend_from_slice(nested),
                _ => flat.push(part),
            }
        }
        if flat.contains(&ExprId::ALL) {
            return Ok(ExprId::ALL);
        }
        flat.sort_unstable();
        flat.dedup();
        if flat.len() > 1 {
            self.join_switches(&mut flat)?;
            self.join_repeats(&mut flat)?;
            flat.sort_unstable();
            flat.dedup();
        }
        let nullable = |part: &ExprId| {
            let of = self.facts(*part);
            *part != ExprId::EMPTY && of.null == ExprId::ALL && !of.behind
        };
        if flat.iter().any(nullable) {
            flat.retain(|&part| part != ExprId::EMPTY);
        }
        match flat[..] {
            [] => Ok(ExprId::NEVER),
            [only] => Ok(only),
            _ if self.has_opposites(&flat) => Ok(ExprId::ALL),
            _ => self.intern(Node::Or(flat.into())),
        }
    }

    /// The ordered choice of expressions, tried in this order.
    pub(super) fn ordered(&mut self, parts: impl IntoIterator<Item = ExprId>) -> ExprResult {
        let mut kept = Vec::new();
        for part in parts {
            if part != ExprId::NEVER && !kept.contains(&part) {
                kept.push(part);
            }
        }
        match kept[..] {
            [] => Ok(ExprId::NEVER),
            [only] => Ok(only),
            _ => self.intern(Node::Ordered(kept.into())),
        }
    }

    /// The intersection of expressions.
    pub fn and(&mut self, parts: impl IntoIterator<Item = ExprId>) -> ExprResult {
        let mut flat = Vec::new();
        for part in parts {
            match self.node(part) {
                Node::And(nested) => flat.extend_from_slice(nested),
                _ if part == ExprId::ALL => {}
                _ => flat.push(part),
            }
        }
        flat.sort_unstable();
        flat.dedup();
        if flat.iter().any(|&part| matches!(self.node(part), Node::Multiple(_))) {
            self.count_digits(&mut flat)?;
        }
        match flat[..] {
            [] => return Ok(ExprId::ALL),
            [only] => return Ok(only),
            // Sorted, so that it would be first.
            [ExprId::NEVER, ..] => return Ok(ExprId::NEVER),
            _ if self.has_opposites(&flat) => return Ok(ExprId::NEVER),
            _ => {}
        }
        let shortest = flat.iter().map(|&part| self.facts(part).shortest).max();
        if shortest > flat.iter().map(|&part| self.facts(part).longest).min() {
            return Ok(ExprId::NEVER);
        }
        let behind = flat.iter().any(|&part| self.facts(part).behind);
        if flat.contains(&ExprId::EMPTY) && !behind {
            let nulls: Vec<_> = flat.iter().map(|&part| self.null(part)).collect();
            let condition = self.and(nulls)?;
            return self.given(condition, ExprId::EMPTY);
        }
        self.intern(Node::And(flat.into()))
    }

    /// Takes the parts that only count digits into a multiple, which tells without a search whether
    /// any of its numbers is so long.
    fn count_digits(&mut self, parts: &mut Vec<ExprId>) -> Result<(), Exceeded> {
        let counts: Vec<(u32, Option<u32>)> =
            parts.iter().filter_map(|&part| self.digits_counted(part)).collect();
        if counts.is_empty() {
            return Ok(());
        }
        let mut counted = false;
        for at in 0..parts.len() {
            let Node::Multiple(of) = *self.node(parts[at]) else { continue };
            let all = counts.iter().try_fold(of, |of, &(min, max)| of.of_length(min, max));
            let Some(all) = all else { continue };
            counted = true;
            parts[at] = match all.is_possible() {
                true => self.intern(Node::Multiple(all))?,
                false => ExprId::NEVER,
            };
        }
        if counted {
            parts.retain(|&part| self.digits_counted(part).is_none());
            parts.sort_unstable();
            parts.dedup();
        }
        Ok(())
    }

    /// Number of digits of an expression, if it is any so many digits.
    fn digits_counted(&self, of: ExprId) -> Option<(u32, Option<u32>)> {
        let is_digit = |of: ExprId| match self.node(of) {
            Node::Switch(arms) => {
                matches!(**arms, [Arm { low: b'0', high: b'9', then: ExprId::EMPTY }])
            }
            _ => false,
        };
        match *self.node(of) {
            Node::Repeat(Repeat { inner, min, max, reluctant: false }) if is_digit(inner) => {
                Some((min, max))
            }
            Node::Switch(_) if is_digit(of) => Some((1, Some(1))),
            _ => None,
        }
    }

    /// Any bytes but these.
    pub fn not(&mut self, inner: ExprId) -> ExprResult {
        match *self.node(inner) {
            Node::Not(twice) => Ok(twice),
            Node::Never => Ok(ExprId::ALL),
            _ if inner == ExprId::ALL => Ok(ExprId::NEVER),
            _ => self.intern(Node::Not(inner)),
        }
    }

    /// Longest-first form of an expression: its lexemes, the longest first.
    pub(super) fn unordered(&mut self, inner: ExprId) -> ExprResult {
        match self.node(inner) {
            Node::Never | Node::Empty | Node::Unordered(_) => Ok(inner),
            _ => self.intern(Node::Unordered(inner)),
        }
    }

    /// A text by itself, whose lookarounds see nothing beside it.
    pub(super) fn whole(&mut self, inner: ExprId) -> ExprResult {
        match self.is_context_free(inner) {
            true => Ok(inner),
            false => self.intern(Node::Whole(inner)),
        }
    }

    /// `min` to `max` times, as often as it goes.
    pub(super) fn repeat(&mut self, inner: ExprId, min: u32, max: Option<u32>) -> ExprResult {
        self.repeated(Repeat { inner, min, max, reluctant: false })
    }

    pub(super) fn repeated(&mut self, repeat: Repeat) -> ExprResult {
        let Repeat { inner, mut min, max, reluctant } = repeat;
        if max == Some(0) || inner == ExprId::EMPTY || inner == ExprId::NEVER {
            let none = min > 0 && max != Some(0) && inner == ExprId::NEVER;
            return Ok(if none { ExprId::NEVER } else { ExprId::EMPTY });
        }
        if (min, max) == (1, Some(1)) {
            return Ok(inner);
        }
        let of = self.facts(inner);
        if of.null == ExprId::ALL && !of.behind && !reluctant {
            min = 0;
        }
        let endless = matches!(
            *self.node(inner),
            Node::Repeat(Repeat { min: 0, max: None, reluctant: false, .. })
        );
        if endless && !reluctant {
            return Ok(inner);
        }
        self.intern(Node::Repeat(Repeat { inner, min, max, reluctant }))
    }

    /// The empty lexeme where the lexeme so far is in `history`, or (`negated`) is not.
    pub(super) fn behind(&mut self, history: ExprId, negated: bool) -> ExprResult {
        self.intern(Node::Behind { history, negated })
    }

    /// Conditioned expression: `inner` where the lexeme and what follows together are in
    /// `condition`.
    pub fn given(&mut self, condition: ExprId, inner: ExprId) -> ExprResult {
        match *self.node(inner) {
            _ if condition == ExprId::NEVER => Ok(ExprId::NEVER),
            _ if condition == ExprId::ALL => Ok(inner),
            Node::Never => Ok(inner),
            Node::Given { condition: other, inner } => {
                let condition = self.and([condition, other])?;
                self.given(condition, inner)
            }
            _ => self.intern(Node::Given { condition, inner }),
        }
    }

    /// The condition that `inner` matches a lexeme at the front that is not empty.
    pub fn grows(&mut self, inner: ExprId) -> ExprResult {
        match inner {
            ExprId::NEVER | ExprId::EMPTY => Ok(ExprId::NEVER),
            _ => self.intern(Node::Grows(inner)),
        }
    }

    /// Lexemes that could have been a longer lexeme of `inner`, as what follows shows.
    pub fn longer(&mut self, inner: ExprId) -> ExprResult {
        match inner {
            ExprId::NEVER | ExprId::EMPTY => Ok(ExprId::NEVER),
            _ => self.intern(Node::Longer(inner)),
        }
    }

    /// True when a part and its complement are both there.
    fn has_opposites(&self, parts: &[ExprId]) -> bool {
        parts.iter().any(|&part| match self.node(part) {
            Node::Not(inner) => parts.binary_search(inner).is_ok(),
            _ => false,
        })
    }

    /// Joins switches that agree on every byte that both have.
    fn join_switches(&mut self, parts: &mut Vec<ExprId>) -> Result<(), Exceeded> {
        let is_switch = |part: &&ExprId| matches!(self.node(**part), Node::Switch(_));
        if parts.iter().filter(is_switch).count() < 2 {
            return Ok(());
        }
        let mut targets = [ExprId::NEVER; 256];
        let mut joined = 0;
        let mut apart = Vec::with_capacity(parts.len());
        for &part in &*parts {
            let Node::Switch(arms) = self.node(part) else {
                apart.push(part);
                continue;
            };
            let agrees = |arm: &Arm| {
                let held = &targets[arm.low as usize..=arm.high as usize];
                held.iter().all(|&target| target == ExprId::NEVER || target == arm.then)
            };
            if arms.iter().all(agrees) {
                for arm in arms {
                    targets[arm.low as usize..=arm.high as usize].fill(arm.then);
                }
                joined += 1;
            } else {
                apart.push(part);
            }
        }
        if joined > 1 {
            let arms = (0..=255u8).map(|b| Arm { low: b, high: b, then: targets[b as usize] });
            apart.push(self.switch(arms)?);
            *parts = apart;
        }
        Ok(())
    }

    /// Joins repeats of one part before one rest where their counts overlap or meet.
    fn join_repeats(&mut self, parts: &mut Vec<ExprId>) -> Result<(), Exceeded> {
        let mut groups: BTreeMap<(ExprId, ExprId), Vec<Repeat>> = BTreeMap::new();
        let mut apart = Vec::with_capacity(parts.len());
        for &part in &*parts {
            let (head, rest) = match *self.node(part) {
                Node::Concat(head, rest) => (head, rest),
                _ => (part, ExprId::EMPTY),
            };
            match self.node(head) {
                Node::Repeat(repeat) => {
                    groups.entry((repeat.inner, rest)).or_default().push(*repeat);
                }
                _ => apart.push(part),
            }
        }
        if groups.values().all(|group| group.len() < 2) {
            return Ok(());
        }
        for ((_, rest), mut group) in groups {
            group.sort_unstable_by_key(|repeat| (repeat.min, repeat.reluctant));
            let mut kept: Vec<Repeat> = Vec::new();
            for repeat in group {
                match kept.last_mut() {
                    Some(last)
                        if last.max.is_none_or(|max| repeat.min <= max.saturating_add(1)) =>
                    {
                        last.max = last.max.zip(repeat.max).map(|(a, b)| a.max(b));
                    }
                    _ => kept.push(repeat),
                }
            }
            for repeat in kept {
                let head = self.repeated(repeat)?;
                apart.push(self.concat(head, rest)?);
            }
        }
        *parts = apart;
        Ok(())
    }
}
