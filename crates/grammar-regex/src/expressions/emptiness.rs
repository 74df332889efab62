//! Emptiness of an expression: a search through its derivatives.

use std::{cmp::Reverse, collections::BinaryHeap};

use hashbrown::{HashMap, hash_map::Entry};

use super::{Exceeded, ExprId, Maker, Node};

impl Maker<'_, '_> {
    /// True when some lexeme, with something following it, is in `of`.
    ///
    /// # Errors
    /// When more expressions would have to be visited than the limit allows.
    pub fn matches_something(&mut self, of: ExprId) -> Result<bool, Exceeded> {
        self.search(of, Kind::Lexemes)
    }

    /// True when the condition holds for some text of whole characters.
    ///
    /// # Errors
    /// When more expressions would have to be visited than the limit allows.
    pub fn can_hold(&mut self, condition: ExprId) -> Result<bool, Exceeded> {
        if condition == ExprId::NEVER || self.holds_at_end(condition) {
            return Ok(condition != ExprId::NEVER);
        }
        let utf8 = self.utf8;
        let within = self.and([condition, utf8])?;
        self.search(within, Kind::Conditions)
    }

    fn search(&mut self, start: ExprId, kind: Kind) -> Result<bool, Exceeded> {
        if let Some(known) = self.known(start, kind)? {
            return Ok(known);
        }
        // Best first: what may be nearest to an end; among those, who was reached first. What is
        // only counted off, or has parts that do not get in each other's way, is gone through on a
        // straight way then.
        let mut reached_from: HashMap<_, _> = HashMap::from([(start, start)]);
        let mut queue = BinaryHeap::from([Reverse((self.facts(start).distance, 0, start, 0))]);
        let mut num_reached = 0;
        while let Some(Reverse((distance, order, from, tried))) = queue.pop() {
            let classes = self.classes([from]);
            for (class, &byte) in classes.representatives().iter().enumerate().skip(tried) {
                let to = self.derive(from, byte)?;
                let Entry::Vacant(new) = reached_from.entry(to) else { continue };
                new.insert(from);
                match self.known(to, kind)? {
                    Some(true) => {
                        self.remember_way(&reached_from, to, kind);
                        return Ok(true);
                    }
                    Some(false) => {}
                    None => {
                        num_reached += 1;
                        let left = self.facts(to).distance;
                        queue.push(Reverse((left, num_reached, to, 0)));
                        if left < distance {
                            queue.push(Reverse((distance, order, from, class + 1)));
                            break;
                        }
                    }
                }
                if reached_from.len() > self.limits.max_visited {
                    return Err(Exceeded::Visited(self.limits.max_visited));
                }
            }
        }
        for &expr in reached_from.keys() {
            *self.memo(expr, kind) = Some(false);
        }
        Ok(false)
    }

    /// Answer that can be told without a search.
    fn known(&mut self, of: ExprId, kind: Kind) -> Result<Option<bool>, Exceeded> {
        if of == ExprId::NEVER {
            return Ok(Some(false));
        }
        if self.facts(of).plain {
            return Ok(Some(true));
        }
        if let Some(known) = *self.memo(of, kind) {
            return Ok(Some(known));
        }
        if self.excludes_itself(of)? {
            *self.memo(of, kind) = Some(false);
            return Ok(Some(false));
        }
        let ends = match kind {
            Kind::Conditions => self.holds_at_end(of),
            Kind::Lexemes => self.can_hold(self.null(of))?,
        };
        if ends {
            *self.memo(of, kind) = Some(true);
        }
        Ok(ends.then_some(true))
    }

    /// True for an intersection with a part that is within what another part leaves out: texts of
    /// up to forty characters that are no texts.
    ///
    /// PERF: a search would count the characters off, for each set of patterns that a name has or
    /// has not matched.
    fn excludes_itself(&mut self, of: ExprId) -> Result<bool, Exceeded> {
        let Node::And(parts) = self.node(of).clone() else { return Ok(false) };
        let (mut left_out, mut others) = (Vec::new(), Vec::new());
        for &part in &parts {
            match *self.node(part) {
                Node::Not(inner) => left_out.push(inner),
                _ => others.push(part),
            }
        }
        if left_out.is_empty() {
            return Ok(false);
        }
        for part in others {
            if self.facts(part).behind {
                continue;
            }
            let whole = self.relaxed(part)?;
            if left_out.contains(&whole) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn remember_way(&mut self, from: &HashMap<ExprId, ExprId>, end: ExprId, kind: Kind) {
        let mut at = end;
        loop {
            *self.memo(at, kind) = Some(true);
            match from.get(&at) {
                Some(&before) if before != at => at = before,
                _ => break,
            }
        }
    }

    fn memo(&mut self, of: ExprId, kind: Kind) -> &mut Option<bool> {
        let facts = &mut self.facts[of.index()];
        match kind {
            Kind::Lexemes => &mut facts.has_lexemes,
            Kind::Conditions => &mut facts.can_hold,
        }
    }
}

/// Substitute of an expression.
#[derive(Clone, Copy)]
enum Kind {
    Lexemes,
    Conditions,
}
