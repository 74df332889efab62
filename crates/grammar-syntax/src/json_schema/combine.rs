//! Combinators: what several schemas say of one value, and what the opposite of a schema is.

use std::{rc::Rc, sync::Arc};

use hashbrown::HashMap;

use super::{
    arrays::{ArraySet, Count},
    cases::Cases,
    compile::{Compiler, Result},
    decimal::Decimal,
    goals::GoalId,
    keywords::{Role, role},
    members::{MemberCase, NAMES},
    numbers::NumberSet,
    objects::ObjectSet,
    options::Draft,
    resources::RECURSIVE,
    source::{Json, JsonId},
    strings::StringSet,
};

/// A part of what a schema says; all parts must hold.
pub(super) enum Part {
    /// Every one of these.
    All(Vec<JsonId>),
    /// At least one of the schemas.
    Any(Vec<JsonId>),
    /// Exactly one.
    One(Vec<JsonId>),
    Not(JsonId),
    If {
        condition: JsonId,
        then: Option<JsonId>,
        otherwise: Option<JsonId>,
    },
    /// A schema that holds if the member is there.
    With(Arc<str>, JsonId),
    /// Names that are there if the member is.
    WithNames(Arc<str>, Vec<Arc<str>>),
    Values(Vec<JsonId>),
}

/// A scalar by its value.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Scalar {
    Text(Arc<str>),
    Number(Decimal),
    /// True when it is `true`, and whether it is `null`.
    Word(bool, bool),
}

impl Compiler<'_> {
    /// The values that are valid for `schema`.
    pub(super) fn schema_cases(&mut self, schema: JsonId) -> Result<Cases> {
        self.warn_unknown(schema);
        let parts = self.parts(schema)?;
        let mut cases = if self.refers_only(schema) {
            Cases::all()
        } else {
            let own = self.own(schema)?;
            self.note_contradictions(schema, &own)?;
            let says = Cases {
                null: true,
                truth: true,
                falsity: true,
                // Bounds of one schema may contradict each other; what meets itself nowhere is
                // empty.
                numbers: own.numbers.intersection(&own.numbers).into_iter().collect(),
                strings: match own.member {
                    None => own.strings.intersection(&own.strings).into_iter().collect(),
                    Some(_) => Vec::new(),
                },
                members: own.member.into_iter().collect(),
                arrays: own.array.map(Rc::new).into_iter().collect(),
                objects: own.object.map(Rc::new).into_iter().collect(),
            };
            self.meet(&own.types, &says)?
        };
        for part in &parts {
            let was_possible = cases.len() > 0;
            cases = match part {
                Part::One(schemas) if self.constants(schemas).is_some() => {
                    let holds = self.part_cases(part)?;
                    self.meet(&cases, &holds)?
                }
                Part::One(schemas) => self.exactly_one(&cases, schemas)?,
                Part::If { condition, then, otherwise } => {
                    self.conditional(&cases, *condition, *then, *otherwise, false)?
                }
                _ => {
                    let holds = self.part_cases(part)?;
                    self.meet(&cases, &holds)?
                }
            };
            if was_possible && cases.len() == 0 {
                let what = self.named_part(schema, part);
                self.contradict(
                    schema,
                    format!("{what} and what stands beside it allow no value together"),
                );
            }
        }
        let cases = self.with_unevaluated(schema, cases)?;
        if let [only] = &cases.objects[..] {
            self.note_impossible_member(schema, only);
        }
        Ok(cases)
    }

    /// The keyword of a part, for messages.
    fn named_part(&self, schema: JsonId, part: &Part) -> &'static str {
        let has = |keyword: &str| self.get(schema, keyword).is_some();
        match part {
            Part::All(_) if has("allOf") => "the parts of `allOf`",
            Part::All(_) => "what `$ref` leads to",
            Part::Any(_) => "each alternative of `anyOf`",
            Part::One(_) => "each alternative of `oneOf`",
            Part::Not(_) => "`not`",
            Part::If { .. } => "`if`",
            Part::With(..) | Part::WithNames(..) => "what depends on a member",
            Part::Values(_) if has("enum") => "each value of `enum`",
            Part::Values(_) => "`const`",
        }
    }

    /// The values that are not valid for `schema`.
    pub(super) fn denied_schema_cases(&mut self, schema: JsonId) -> Result<Cases> {
        self.warn_unknown(schema);
        let parts = self.parts(schema)?;
        let mut cases = Cases::none();
        if !self.refers_only(schema) {
            let own = self.own(schema)?;
            cases = self.complement(&own.types)?;
            let own_parts = [
                Cases::numbers(own.numbers.complement()),
                match own.member {
                    None => Cases::strings(own.strings.complement()),
                    Some(member) => Cases {
                        members: vec![MemberCase { outside: true, ..member }],
                        ..Cases::none()
                    },
                },
                match own.array {
                    Some(array) => self.array_complement(&array)?,
                    None => Cases { arrays: Cases::all().arrays, ..Cases::none() },
                },
                match own.object {
                    Some(object) => self.object_complement(&object)?,
                    None => Cases { objects: Cases::all().objects, ..Cases::none() },
                },
            ];
            for part in own_parts {
                cases = self.join(cases, &part)?;
            }
        }
        for part in &parts {
            let fails = self.denied_part_cases(part)?;
            cases = self.join(cases, &fails)?;
        }
        let fails = self.wrong_unevaluated(schema)?;
        self.join(cases, &fails)
    }

    /// True when all beside `$ref` is to be ignored.
    fn refers_only(&self, schema: JsonId) -> bool {
        self.draft(schema) <= Draft::Draft7 && self.get(schema, "$ref").is_some()
    }

    pub(super) fn parts(&mut self, schema: JsonId) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        if let Some(at) = self.get(schema, "$ref") {
            let target = self.refer("$ref", at)?;
            parts.push(Part::All(vec![target]));
            if self.refers_only(schema) {
                return Ok(parts);
            }
        }
        if let Some(at) = self.get(schema, "$dynamicRef") {
            parts.push(Part::All(vec![self.dynamic_target(at)?]));
        }
        if let Some(at) = self.get(schema, "$recursiveRef") {
            let root = self.resources.resource_root(&self.source, at);
            let moves = self.get(root, "$recursiveAnchor");
            let moves = moves.is_some_and(|at| matches!(self.source.json(at), Json::Bool(true)));
            let meant = self.scopes.meaning(self.scope, RECURSIVE).filter(|_| moves);
            parts.push(Part::All(vec![meant.unwrap_or(root)]));
        }
        // What leaves few values goes first: the combinators are worked out within what was said
        // before.
        if let Some(at) = self.get(schema, "enum") {
            let Json::Array(values) = self.source.json(at) else {
                return Err(self.invalid(at, "must be a list of values".into()));
            };
            parts.push(Part::Values(values.clone()));
        }
        if let Some(at) = self.get(schema, "const") {
            parts.push(Part::Values(vec![at]));
        }
        for (keyword, part) in [
            ("allOf", Part::All as fn(Vec<JsonId>) -> Part),
            ("anyOf", Part::Any),
            ("oneOf", Part::One),
        ] {
            if let Some(at) = self.get(schema, keyword) {
                parts.push(part(self.schemas(at)?));
            }
        }
        if let Some(at) = self.get(schema, "not") {
            parts.push(Part::Not(at));
        }
        if let Some(condition) = self.get(schema, "if") {
            let (then, otherwise) = (self.get(schema, "then"), self.get(schema, "else"));
            if then.is_some() || otherwise.is_some() {
                parts.push(Part::If { condition, then, otherwise });
            }
        }
        for keyword in ["dependentSchemas", "dependentRequired", "dependencies"] {
            for (name, at) in self.named(schema, keyword)? {
                let names = matches!(self.source.json(at), Json::Array(_) | Json::String(_));
                parts.push(match (names, keyword) {
                    (false, "dependentSchemas" | "dependencies") => Part::With(name, at),
                    _ => Part::WithNames(name, self.names(at)?),
                });
            }
        }
        Ok(parts)
    }

    /// The schema that a dynamic reference means in the scope at hand.
    fn dynamic_target(&mut self, at: JsonId) -> Result<JsonId> {
        let target = self.refer("$dynamicRef", at)?;
        let fragment = self.source.string(at).and_then(|uri| uri.split_once('#'));
        let name = fragment.map(|(_, name)| name.to_owned()).unwrap_or_default();
        // Unless it leads to a dynamic anchor, it is like any other reference.
        let anchor = self.get(target, "$dynamicAnchor").and_then(|at| self.source.string(at));
        let moves = anchor.is_some_and(|anchor| **anchor == *name);
        let meant = self.scopes.meaning(self.scope, &name).filter(|_| moves);
        Ok(meant.unwrap_or(target))
    }

    fn part_cases(&mut self, part: &Part) -> Result<Cases> {
        match part {
            Part::All(schemas) => {
                let goals = self.goals_of(schemas, false)?;
                self.is_joint = true;
                let cases = self.together(&goals);
                self.is_joint = false;
                cases
            }
            Part::Any(schemas) => match self.constants(schemas) {
                Some(values) => self.constant_cases(schemas, &values),
                None => {
                    let goals = self.goals_of(schemas, false)?;
                    self.either(&goals)
                }
            },
            Part::One(schemas) => match self.constants(schemas) {
                Some(values) => {
                    let values = self.once_each(values)?;
                    self.constant_cases(schemas, &values)
                }
                None => self.exactly_one(&Cases::all(), schemas),
            },
            Part::Not(schema) => {
                let goal = self.denied_goal(*schema)?;
                self.together(&[goal])
            }
            Part::If { condition, then, otherwise } => {
                self.conditional(&Cases::all(), *condition, *then, *otherwise, false)
            }
            Part::With(name, schema) => {
                let goal = self.goal(*schema)?;
                let holds = self.together(&[goal])?;
                let there = Cases::object(ObjectSet::requiring([name.clone()]));
                let with = self.meet(&holds, &there)?;
                self.join(unless_member(name), &with)
            }
            Part::WithNames(name, names) => {
                let all = [name].into_iter().chain(names).cloned();
                let with = Cases::object(ObjectSet::requiring(all));
                self.join(unless_member(name), &with)
            }
            Part::Values(values) => self.values(values),
        }
    }

    fn denied_part_cases(&mut self, part: &Part) -> Result<Cases> {
        match part {
            Part::All(schemas) => {
                let goals = self.goals_of(schemas, true)?;
                self.either(&goals)
            }
            Part::Any(schemas) => {
                let goals = self.goals_of(schemas, true)?;
                self.together(&goals)
            }
            Part::One(schemas) => {
                let goals = self.goals_of(schemas, true)?;
                let mut cases = self.together(&goals)?;
                let goals = self.goals_of(schemas, false)?;
                for (at, &one) in goals.iter().enumerate() {
                    for &other in &goals[..at] {
                        let both = self.together(&[other, one])?;
                        cases = self.join(cases, &both)?;
                    }
                }
                Ok(cases)
            }
            Part::Not(schema) => {
                let goal = self.goal(*schema)?;
                self.together(&[goal])
            }
            Part::If { condition, then, otherwise } => {
                self.conditional(&Cases::all(), *condition, *then, *otherwise, true)
            }
            Part::With(name, schema) => {
                let goal = self.denied_goal(*schema)?;
                let fails = self.together(&[goal])?;
                let there = Cases::object(ObjectSet::requiring([name.clone()]));
                self.meet(&fails, &there)
            }
            Part::WithNames(name, names) => {
                let there = Cases::object(ObjectSet::requiring([name.clone()]));
                let mut cases = Cases::none();
                for missing in names {
                    let without = Cases::object(ObjectSet::without(missing));
                    let fails = self.meet(&there, &without)?;
                    cases = self.join(cases, &fails)?;
                }
                Ok(cases)
            }
            Part::Values(values) => {
                let cases = self.values(values)?;
                self.complement(&cases)
            }
        }
    }

    /// The values of alternatives that are one scalar each and say nothing else but annotations: an
    /// enumeration, as generators of schemas write one with titles. `None` where an alternative is
    /// none.
    fn constants(&self, schemas: &[JsonId]) -> Option<Vec<JsonId>> {
        schemas.iter().map(|&schema| self.constant(schema)).collect()
    }

    fn constant(&self, schema: JsonId) -> Option<JsonId> {
        let value = self.get(schema, "const")?;
        let kind = match self.source.json(value) {
            Json::Null => "null",
            Json::Bool(_) => "boolean",
            Json::Number(_) => "number",
            Json::String(_) => "string",
            Json::Array(_) | Json::Object(_) => return None,
        };
        let says_nothing = |(name, at): &(Arc<str>, JsonId)| match &**name {
            "const" => true,
            "type" => self.source.string(*at).is_some_and(|named| &**named == kind),
            other => {
                matches!(role(other), None | Some(Role::Annotation))
                    || self.source.is_absent(other, *at)
            }
        };
        let object = self.source.object(schema)?;
        object.members().iter().all(says_nothing).then_some(value)
    }

    fn constant_cases(&mut self, schemas: &[JsonId], values: &[JsonId]) -> Result<Cases> {
        schemas.iter().for_each(|&schema| self.warn_unknown(schema));
        self.values(values)
    }

    /// Scalars without those that come twice: they are values of two alternatives.
    fn once_each(&mut self, values: Vec<JsonId>) -> Result<Vec<JsonId>> {
        let mut times = HashMap::<_, usize>::new();
        let mut keys = Vec::with_capacity(values.len());
        for &value in &values {
            self.spend(1)?;
            let key = match self.source.json(value) {
                Json::String(text) => Scalar::Text(Arc::clone(text)),
                Json::Number(_) => Scalar::Number(self.number(value)?),
                other => {
                    Scalar::Word(matches!(other, Json::Bool(true)), matches!(other, Json::Null))
                }
            };
            *times.entry(key.clone()).or_default() += 1;
            keys.push(key);
        }
        Ok(values
            .into_iter()
            .zip(keys)
            .filter(|(_, key)| times[key] == 1)
            .map(|(value, _)| value)
            .collect())
    }

    fn goals_of(&mut self, schemas: &[JsonId], denied: bool) -> Result<Vec<GoalId>> {
        let goal = |&schema: &JsonId| {
            if denied { self.denied_goal(schema) } else { self.goal(schema) }
        };
        schemas.iter().map(goal).collect()
    }

    fn together(&mut self, goals: &[GoalId]) -> Result<Cases> {
        let goal = self.goals.all_of(goals.iter().copied());
        Ok(Cases::clone(&*self.goal_cases(goal)?))
    }

    /// The values that meet one of some goals, or none of them.
    pub(super) fn choice_cases(&mut self, place: u32, denied: bool) -> Result<Cases> {
        let goals = self.goals.choice(place);
        if !denied {
            return self.either(&goals);
        }
        let mut cases = Cases::all();
        for &goal in &*goals {
            let opposite = self.opposite(goal);
            let fails = self.goal_cases(opposite)?;
            cases = self.meet(&cases, &fails)?;
        }
        Ok(cases)
    }

    fn either(&mut self, goals: &[GoalId]) -> Result<Cases> {
        let mut cases = Cases::none();
        for &goal in goals {
            let more = self.goal_cases(goal)?;
            cases = self.join(cases, &more)?;
        }
        Ok(cases)
    }

    /// The values of `within` that are of exactly one alternative: each alternative less the
    /// others. Where two have no value of `within` in common, or none of a type, nothing is taken
    /// away.
    fn exactly_one(&mut self, within: &Cases, schemas: &[JsonId]) -> Result<Cases> {
        let goals = self.goals_of(schemas, false)?;
        let opposites = self.goals_of(schemas, true)?;
        let mut alternatives = Vec::with_capacity(goals.len());
        for &goal in &goals {
            let alternative = self.goal_cases(goal)?;
            alternatives.push(self.meet(within, &alternative)?);
        }
        let mut others = vec![Vec::new(); goals.len()];
        for at in 0..goals.len() {
            for before in 0..at {
                let common = self.meet(&alternatives[before], &alternatives[at])?;
                let apart = self.goals.all_of([goals[before], goals[at]]) == GoalId::NEVER;
                if !apart && !self.is_empty_union(&common) {
                    let elsewhere = self.of_other_types(&common);
                    others[at].push((opposites[before], elsewhere.clone()));
                    others[before].push((opposites[at], elsewhere));
                }
            }
        }
        let mut cases = Cases::none();
        for (mut alone, others) in alternatives.into_iter().zip(others) {
            for (other, elsewhere) in others {
                let other = self.goal_cases(other)?;
                alone = self.meet(&alone, &elsewhere.or(&other))?;
            }
            cases = self.join(cases, &alone)?;
        }
        Ok(cases)
    }

    /// All arrays unless some are in `cases`, and likewise objects, of which to take others away is
    /// the most work.
    fn of_other_types(&mut self, cases: &Cases) -> Cases {
        let all = Cases::all();
        let has_arrays = cases.arrays.iter().any(|array| !self.is_empty_array(array));
        let has_objects = cases.objects.iter().any(|object| !self.is_empty_object(object));
        Cases {
            arrays: if has_arrays { Vec::new() } else { all.arrays },
            objects: if has_objects { Vec::new() } else { all.objects },
            ..Cases::none()
        }
    }

    /// The values of `within` for which a conditional holds, or with `denied` does not.
    fn conditional(
        &mut self,
        within: &Cases,
        condition: JsonId,
        then: Option<JsonId>,
        otherwise: Option<JsonId>,
        denied: bool,
    ) -> Result<Cases> {
        let mut cases = Cases::none();
        for (branch, negated) in [(then, false), (otherwise, true)] {
            let goal = match branch {
                Some(schema) if denied => self.denied_goal(schema)?,
                Some(schema) => self.goal(schema)?,
                None if denied => GoalId::NEVER,
                None => GoalId::ANY,
            };
            let condition =
                if negated { self.denied_goal(condition)? } else { self.goal(condition)? };
            let condition = self.goal_cases(condition)?;
            let holds = self.meet(within, &condition)?;
            let goal = self.goal_cases(goal)?;
            let holds = self.meet(&holds, &goal)?;
            cases = self.join(cases, &holds)?;
        }
        Ok(cases)
    }

    /// The values not in `cases`, whose goals are of one claim each.
    pub(super) fn complement(&mut self, cases: &Cases) -> Result<Cases> {
        let mut rest = Cases {
            null: !cases.null,
            truth: !cases.truth,
            falsity: !cases.falsity,
            ..Cases::all()
        };
        let others = Cases { numbers: Vec::new(), ..Cases::all() };
        for numbers in &cases.numbers {
            let outside = others.clone().or(&Cases::numbers(NumberSet::complement(numbers)));
            rest = self.meet(&rest, &outside)?;
        }
        let others = Cases { strings: Vec::new(), ..Cases::all() };
        for strings in &cases.strings {
            let outside = others.clone().or(&Cases::strings(StringSet::complement(strings)));
            rest = self.meet(&rest, &outside)?;
        }
        for &member in &cases.members {
            let outside = MemberCase { outside: !member.outside, ..member };
            let outside = Cases { members: vec![outside], ..others.clone() };
            rest = self.meet(&rest, &outside)?;
        }
        let others = Cases { arrays: Vec::new(), ..Cases::all() };
        for array in &cases.arrays {
            let outside = others.clone().or(&self.array_complement(array)?);
            rest = self.meet(&rest, &outside)?;
        }
        let others = Cases { objects: Vec::new(), ..Cases::all() };
        for object in &cases.objects {
            let outside = others.clone().or(&self.object_complement(object)?);
            rest = self.meet(&rest, &outside)?;
        }
        Ok(rest)
    }

    /// The arrays not in `array`.
    fn array_complement(&mut self, array: &ArraySet) -> Result<Cases> {
        self.no_scope(&array.scopes)?;
        let mut sets = Vec::new();
        for (at, &item) in array.prefix.iter().enumerate() {
            if item != GoalId::ANY {
                let mut prefix = vec![GoalId::ANY; at];
                prefix.push(self.opposite(item));
                sets.push(ArraySet { prefix, min: at as u64 + 1, ..ArraySet::any() });
            }
        }
        if let Some(below) = array.min.checked_sub(1) {
            sets.push(ArraySet { max: Some(below), ..ArraySet::any() });
        }
        if let Some(max) = array.max {
            sets.push(ArraySet { min: max.saturating_add(1), ..ArraySet::any() });
        }
        if array.rest != GoalId::ANY {
            let (from, opposite) = (array.prefix.len() as u64, array.rest);
            let count = Count { from, goal: self.opposite(opposite), opposite, min: 1, max: None };
            sets.push(ArraySet { counts: vec![count], min: from + 1, ..ArraySet::any() });
        }
        for count in &array.counts {
            if let Some(below) = count.min.checked_sub(1) {
                let fewer = Count { min: 0, max: Some(below), ..count.clone() };
                sets.push(ArraySet { counts: vec![fewer], ..ArraySet::any() });
            }
            if let Some(max) = count.max {
                let more = Count { min: max.saturating_add(1), max: None, ..count.clone() };
                sets.push(ArraySet { counts: vec![more], ..ArraySet::any() });
            }
        }
        if let Some(unique) = array.unique {
            let unique_at = array.unique_at;
            sets.push(ArraySet { unique: Some(!unique), unique_at, min: 2, ..ArraySet::any() });
        }
        let mut cases = Cases::none();
        for set in sets.into_iter().filter_map(ArraySet::normalised) {
            cases = self.join(cases, &Cases::array(set))?;
        }
        Ok(cases)
    }

    /// The objects not in `object`.
    fn object_complement(&mut self, object: &ObjectSet) -> Result<Cases> {
        self.no_scope(&object.records)?;
        let mut sets = Vec::new();
        for scope in &object.scopes {
            for (name, goal) in &scope.properties {
                if *goal != GoalId::ANY {
                    let mut set = ObjectSet::member(name, self.opposite(*goal));
                    set.required.push(name.clone());
                    sets.push(set);
                }
            }
            for (pattern, goal) in &scope.patterns {
                if *goal != GoalId::ANY {
                    let names = StringSet::All { min: 0, max: None, all: vec![pattern.clone()] };
                    sets.push(ObjectSet::existing(names, self.opposite(*goal)));
                }
            }
            if scope.others != GoalId::ANY {
                let goal = self.opposite(scope.others);
                sets.push(ObjectSet::existing(scope.other_names(), goal));
            }
        }
        for &names in &object.names {
            let denied = self.opposite(names);
            let denied = self.goal_cases(denied)?;
            self.no_members(&denied, NAMES)?;
            for names in denied.strings.iter() {
                sets.push(ObjectSet::existing(names.clone(), GoalId::ANY));
            }
        }
        sets.extend(object.required.iter().map(ObjectSet::without));
        if let Some(below) = object.min.checked_sub(1) {
            sets.push(ObjectSet { max: Some(below), ..ObjectSet::any() });
        }
        if let Some(max) = object.max {
            sets.push(ObjectSet { min: max.saturating_add(1), ..ObjectSet::any() });
        }
        if !object.exists.is_empty() {
            unreachable!("a schema's own keywords ask for no member of a kind");
        }
        let mut cases = Cases::none();
        for set in sets {
            cases = self.join(cases, &Cases::object(set))?;
        }
        Ok(cases)
    }
}

/// Every value but the objects with the member `name`.
fn unless_member(name: &Arc<str>) -> Cases {
    Cases { objects: vec![Rc::new(ObjectSet::without(name))], ..Cases::all() }
}
