//! `unevaluatedProperties` and `unevaluatedItems`: what no other part of a schema has looked at.
//!
//! Which members and items a part looks at is plain from the schema; but only parts that hold
//! count, and which hold depends on the value. So the value's *ways* to be valid are told apart:
//! for each a condition, and what is *seen* where it holds.
//!
//! Where the value must be valid, ways may overlap: if more parts hold than a way says, more is
//! seen, so less is left over, and what is left over was asked of no less. A way that says the
//! least is therefore among them always, and no part has to be denied but by `else`. Where the
//! value must not be valid, a way must say all.

use std::{collections::BTreeSet, rc::Rc, sync::Arc};

use super::{
    arrays::{ArraySet, Count},
    cases::Cases,
    combine::Part,
    compile::{Compiler, Result},
    goals::GoalId,
    objects::{Closing, ObjectSet, Scope},
    options::Draft,
    source::JsonId,
    strings::Texts,
};

/// A condition on a value, and what is seen of the value where it holds.
#[derive(Clone)]
struct Way {
    holds: Cases,
    seen: EvaluatedMembers,
}

/// Members or items that were looked at.
#[derive(Clone, PartialEq, Eq)]
struct EvaluatedMembers {
    names: BTreeSet<Arc<str>>,
    patterns: Vec<Texts>,
    /// Number of first items that are seen.
    items: usize,
    /// Items that meet one of these goals, each with its opposite.
    kinds: Vec<(GoalId, GoalId)>,
    all: bool,
}

/// True when ways may overlap; see the [module](self).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ways {
    Overlapping,
    Apart,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keyword {
    Properties,
    Items,
}

impl Keyword {
    const ALL: [Self; 2] = [Self::Properties, Self::Items];

    fn name(self) -> &'static str {
        match self {
            Self::Properties => "unevaluatedProperties",
            Self::Items => "unevaluatedItems",
        }
    }
}

impl Compiler<'_> {
    /// The subset valid by these two, too, of `cases`, the values that are valid by all other
    /// keywords of `schema`.
    pub(super) fn with_unevaluated(&mut self, schema: JsonId, mut cases: Cases) -> Result<Cases> {
        for keyword in Keyword::ALL {
            let Some((at, goal)) = self.unevaluated(schema, keyword)? else { continue };
            let mut left = cases.clone();
            let mut asked = Cases::none();
            match keyword {
                Keyword::Properties => asked.objects = std::mem::take(&mut left.objects),
                Keyword::Items => asked.arrays = std::mem::take(&mut left.arrays),
            }
            // What no value of these can do is left out early: conditions mostly exclude one
            // another.
            for way in self.ways_of(&asked, schema, keyword, Ways::Overlapping, false)? {
                let rest = match keyword {
                    Keyword::Properties => Cases::object(way.seen.rest_of_members(goal)),
                    Keyword::Items => self.rest_of_items(at, &way.seen, goal)?,
                };
                let held = self.meet(&way.holds, &rest)?;
                left = self.join(left, &held)?;
            }
            cases = left;
        }
        Ok(cases)
    }

    /// The values that are wrong by one of these two keywords; of those that are wrong by another
    /// anyway, any may be missing.
    pub(super) fn wrong_unevaluated(&mut self, schema: JsonId) -> Result<Cases> {
        let mut wrong = Cases::none();
        for keyword in Keyword::ALL {
            let Some((at, goal)) = self.unevaluated(schema, keyword)? else { continue };
            for way in self.ways(schema, keyword, Ways::Apart, false)? {
                if way.seen.all {
                    continue;
                }
                let found = match keyword {
                    Keyword::Properties => {
                        let names = way.seen.scope(GoalId::ANY).other_names();
                        Cases::object(ObjectSet::existing(names, self.opposite(goal)))
                    }
                    Keyword::Items => self.wrong_items(at, &way.seen, goal)?,
                };
                let found = self.meet(&way.holds, &found)?;
                wrong = self.join(wrong, &found)?;
            }
        }
        Ok(wrong)
    }

    /// The keyword's place and what it asks; `None` where it asks nothing.
    fn unevaluated(
        &mut self,
        schema: JsonId,
        keyword: Keyword,
    ) -> Result<Option<(JsonId, GoalId)>> {
        let Some(at) = self.get(schema, keyword.name()) else { return Ok(None) };
        let draft = self.draft(schema);
        if draft < Draft::Draft201909 {
            let name = keyword.name();
            self.warn(
                at,
                format!("`{name}` has no effect before draft 2019-09; {draft:?} is meant"),
            );
            return Ok(None);
        }
        let goal = self.goal(at)?;
        Ok((goal != GoalId::ANY).then_some((at, goal)))
    }

    /// The ways for a value to be valid for `schema`; `within` another schema its own unevaluated
    /// keyword sees all that is left.
    fn ways(
        &mut self,
        schema: JsonId,
        keyword: Keyword,
        apart: Ways,
        within: bool,
    ) -> Result<Vec<Way>> {
        self.ways_of(&Cases::all(), schema, keyword, apart, within)
    }

    /// The [`ways`](Self::ways) of those values that are in `cases`.
    fn ways_of(
        &mut self,
        cases: &Cases,
        schema: JsonId,
        keyword: Keyword,
        apart: Ways,
        within: bool,
    ) -> Result<Vec<Way>> {
        if self.source.object(schema).is_none() {
            return Ok(vec![Way::if_only(cases.clone())]);
        }
        self.nesting += 1;
        if self.nesting > self.options.limits.max_nesting {
            return Err(self.looping(schema));
        }
        let scope = self.entered(self.scope, schema);
        let outer = std::mem::replace(&mut self.scope, scope);
        let seen = self.own_seen(schema, keyword, within)?;
        let mut ways = vec![Way { holds: cases.clone(), seen }];
        for part in self.parts(schema)? {
            let options = match part {
                Part::All(schemas) => {
                    for schema in schemas {
                        let more = self.ways(schema, keyword, apart, true)?;
                        ways = self.both(ways, more)?;
                    }
                    continue;
                }
                Part::Any(schemas) => self.any_ways(&schemas, keyword, apart)?,
                Part::One(schemas) => self.one_ways(&schemas, keyword, apart)?,
                Part::With(name, schema) => {
                    let there = Cases::object(ObjectSet::requiring([name.clone()]));
                    let ways = self.ways(schema, keyword, apart, true)?;
                    let mut ways = self.both(vec![Way::if_only(there)], ways)?;
                    ways.push(match apart {
                        Ways::Overlapping => Way::nothing(),
                        Ways::Apart => {
                            let without = Cases::object(ObjectSet::without(&name));
                            Way::if_only(Cases { objects: without.objects, ..Cases::all() })
                        }
                    });
                    ways
                }
                // That a condition holds counts without `then` and `else`, too: see below.
                Part::If { .. } => continue,
                Part::Not(_) | Part::WithNames(..) | Part::Values(_) => continue,
            };
            ways = self.both(ways, options)?;
        }
        if let Some(condition) = self.get(schema, "if") {
            let options = self.conditional_ways(schema, condition, keyword, apart)?;
            ways = self.both(ways, options)?;
        }
        self.scope = outer;
        self.nesting -= 1;
        Ok(ways)
    }

    /// Members or items that the schema's own keywords look at.
    fn own_seen(
        &mut self,
        schema: JsonId,
        keyword: Keyword,
        within: bool,
    ) -> Result<EvaluatedMembers> {
        let mut seen = EvaluatedMembers::nothing();
        let refers_only = self.draft(schema) <= Draft::Draft7 && self.get(schema, "$ref").is_some();
        if refers_only {
            return Ok(seen);
        }
        seen.all = within && self.get(schema, keyword.name()).is_some();
        match keyword {
            Keyword::Properties => {
                seen.all |= self.get(schema, "additionalProperties").is_some();
                let names = self.named(schema, "properties")?;
                seen.names = names.into_iter().map(|(name, _)| name).collect();
                for (name, at) in self.named(schema, "patternProperties")? {
                    seen.patterns.push(Texts::new(self.pattern(at, &name)?));
                }
            }
            Keyword::Items => {
                let (prefix, rest) = self.places(schema)?;
                seen.all |= rest.is_some();
                seen.items = prefix.len();
                let contains = self.get(schema, "contains");
                if let Some(at) = contains.filter(|_| self.draft(schema) >= Draft::Draft202012) {
                    seen.kinds.push((self.goal(at)?, self.denied_goal(at)?));
                }
            }
        }
        Ok(seen)
    }

    /// The ways in which `schema` holds.
    fn holding(&mut self, schema: JsonId, keyword: Keyword, apart: Ways) -> Result<Vec<Way>> {
        let goal = self.goal(schema)?;
        let holds = Cases::clone(&*self.goal_cases(goal)?);
        let ways = self.ways(schema, keyword, apart, true)?;
        self.both(vec![Way::if_only(holds)], ways)
    }

    /// The one way in which `schema` does not hold.
    fn failing(&mut self, schema: JsonId) -> Result<Way> {
        let goal = self.denied_goal(schema)?;
        Ok(Way::if_only(Cases::clone(&*self.goal_cases(goal)?)))
    }

    /// The ways in which each of `schemas` holds, of those that see anything.
    fn telling(
        &mut self,
        schemas: &[JsonId],
        keyword: Keyword,
        apart: Ways,
    ) -> Result<Vec<(JsonId, Vec<Way>)>> {
        let mut telling = Vec::new();
        for &schema in schemas {
            let ways = self.ways(schema, keyword, apart, true)?;
            if ways.iter().any(|way| way.seen != EvaluatedMembers::nothing()) {
                telling.push((schema, self.holding(schema, keyword, apart)?));
            }
        }
        Ok(telling)
    }

    /// Any of `schemas` may hold; that one must is asked elsewhere.
    fn any_ways(&mut self, schemas: &[JsonId], keyword: Keyword, apart: Ways) -> Result<Vec<Way>> {
        let mut ways = vec![Way::nothing()];
        for (schema, mut options) in self.telling(schemas, keyword, apart)? {
            options.push(match apart {
                Ways::Overlapping => Way::nothing(),
                Ways::Apart => self.failing(schema)?,
            });
            ways = self.both(ways, options)?;
        }
        Ok(ways)
    }

    /// At most one of `schemas` holds, which is asked elsewhere.
    fn one_ways(&mut self, schemas: &[JsonId], keyword: Keyword, apart: Ways) -> Result<Vec<Way>> {
        let mut ways = Vec::new();
        let mut none = Way::nothing();
        for (schema, options) in self.telling(schemas, keyword, apart)? {
            ways.extend(options);
            if apart == Ways::Apart {
                let fails = self.failing(schema)?;
                none.holds = self.meet(&none.holds, &fails.holds)?;
            }
        }
        ways.push(none);
        Ok(ways)
    }

    fn conditional_ways(
        &mut self,
        schema: JsonId,
        condition: JsonId,
        keyword: Keyword,
        apart: Ways,
    ) -> Result<Vec<Way>> {
        let mut ways = self.holding(condition, keyword, apart)?;
        if let Some(then) = self.get(schema, "then") {
            let more = self.ways(then, keyword, apart, true)?;
            ways = self.both(ways, more)?;
        }
        let otherwise = self.get(schema, "else");
        let mut others = vec![match (apart, otherwise) {
            (Ways::Overlapping, None) => Way::nothing(),
            _ => self.failing(condition)?,
        }];
        if let Some(otherwise) = otherwise {
            let more = self.ways(otherwise, keyword, apart, true)?;
            others = self.both(others, more)?;
        }
        ways.extend(others);
        Ok(ways)
    }

    /// The ways in which one of `first` and one of `second` hold together.
    fn both(&mut self, first: Vec<Way>, second: Vec<Way>) -> Result<Vec<Way>> {
        let max = self.options.limits.max_cases;
        if first.len().saturating_mul(second.len()) > max {
            let why = ": so many ways there are for parts of this schema to hold".to_owned();
            return Err(self.over(self.place(), "max_cases", max, why));
        }
        let mut ways: Vec<Way> = Vec::with_capacity(first.len() * second.len());
        for one in &first {
            for other in &second {
                let holds = self.meet(&one.holds, &other.holds)?;
                if !self.is_empty_union(&holds) {
                    ways.push(Way { holds, seen: one.seen.with(&other.seen) });
                }
            }
        }
        Ok(ways)
    }

    /// The arrays whose items that are not seen meet `goal`.
    fn rest_of_items(
        &mut self,
        at: JsonId,
        seen: &EvaluatedMembers,
        goal: GoalId,
    ) -> Result<Cases> {
        let prefix = vec![GoalId::ANY; seen.items];
        let rest = self.asked_of_items(at, seen, goal).map_or(GoalId::ANY, |(rest, _)| rest);
        let set = ArraySet { prefix, rest, ..ArraySet::any() }.normalised();
        Ok(set.map_or_else(Cases::none, Cases::array))
    }

    /// The arrays with an item that is not seen and does not meet `goal`.
    fn wrong_items(&mut self, at: JsonId, seen: &EvaluatedMembers, goal: GoalId) -> Result<Cases> {
        let Some((opposite, wrong)) = self.asked_of_items(at, seen, goal) else {
            return Ok(Cases::none());
        };
        let from = seen.items as u64;
        let count = Count { from, goal: wrong, opposite, min: 1, max: None };
        let set = ArraySet { counts: vec![count], min: from + 1, ..ArraySet::any() };
        Ok(set.normalised().map_or_else(Cases::none, Cases::array))
    }

    /// Goal of items past the first ones that are seen, and what they then are not; `None` where
    /// all are seen.
    fn asked_of_items(
        &mut self,
        at: JsonId,
        seen: &EvaluatedMembers,
        goal: GoalId,
    ) -> Option<(GoalId, GoalId)> {
        if seen.all {
            return None;
        }
        let (kinds, opposites): (Vec<_>, Vec<_>) = seen.kinds.iter().copied().unzip();
        let options: Vec<GoalId> = kinds.into_iter().chain([goal]).collect();
        let either = self.goals.either(&options, at);
        let opposites = opposites.into_iter().chain([self.opposite(goal)]);
        Some((either, self.goals.all_of(opposites)))
    }
}

impl Way {
    /// The way that holds always and sees nothing.
    fn nothing() -> Self {
        Self::if_only(Cases::all())
    }

    fn if_only(holds: Cases) -> Self {
        Self { holds, seen: EvaluatedMembers::nothing() }
    }
}

impl EvaluatedMembers {
    fn nothing() -> Self {
        let (names, patterns, kinds) = (BTreeSet::new(), Vec::new(), Vec::new());
        Self { names, patterns, items: 0, kinds, all: false }
    }

    fn with(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.names.extend(other.names.iter().cloned());
        for pattern in &other.patterns {
            if !both.patterns.contains(pattern) {
                both.patterns.push(pattern.clone());
            }
        }
        for kind in &other.kinds {
            if !both.kinds.contains(kind) {
                both.kinds.push(*kind);
            }
        }
        both.items = both.items.max(other.items);
        both.all |= other.all;
        both
    }

    /// The scope in which `others` is asked of the members that are not seen.
    fn scope(&self, others: GoalId) -> Scope {
        Scope {
            properties: self.names.iter().map(|name| (name.clone(), GoalId::ANY)).collect(),
            patterns: self.patterns.iter().map(|names| (names.clone(), GoalId::ANY)).collect(),
            others: if self.all { GoalId::ANY } else { others },
            closing: Closing::default(),
        }
    }

    /// The objects whose members that are not seen meet `goal`.
    fn rest_of_members(&self, goal: GoalId) -> ObjectSet {
        let mut set = ObjectSet::any();
        if !self.all {
            set.scopes.push(Rc::new(self.scope(goal)));
        }
        set
    }
}
