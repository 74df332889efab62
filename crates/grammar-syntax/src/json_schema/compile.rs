//! The compiler from claims on a value to the cases in which they hold.

use std::{collections::BTreeMap, rc::Rc, sync::Arc};

use hashbrown::{HashMap, HashSet};

use super::{
    arrays::ArraySet,
    cases::{Cases, without_parts},
    dynamic_scope::{ScopeId, Scopes},
    error::{JsonSchemaError, Kind, REPEATED, Warning},
    exclusion::Exclusions,
    goals::{About, Claim, GoalId, Goals},
    keywords::{self, DEPENDENT, Role, role},
    members::CatalogSlots,
    objects::ObjectSet,
    options::{Draft, Inexpressible, JsonSchemaOptions, PropertyOrder},
    resources::Resources,
    source::{Json, JsonId, Source},
    wrappers::{Wrapper, wrapper},
};
use crate::Budget;
use crate::misspelling::meant;

pub(super) type Result<T> = std::result::Result<T, JsonSchemaError>;

/// Results so far.
pub(super) struct Compiler<'o> {
    pub(super) options: &'o JsonSchemaOptions,
    pub(super) source: Source,
    pub(super) resources: Resources,
    pub(super) goals: Goals,
    pub(super) budget: Budget<'o>,
    pub(super) scopes: Scopes,
    /// Path to the schema at hand.
    pub(super) scope: ScopeId,
    root: JsonId,
    /// The goal that rules are made for.
    emitting: GoalId,
    claim_cases: HashMap<Claim, Rc<Cases>>,
    goal_cases: HashMap<GoalId, Rc<Cases>>,
    /// Claims whose cases are being found, outermost first.
    open: Vec<OpenClaim>,
    /// True while the claims of `allOf` and references are worked out, which must all hold.
    pub(super) is_joint: bool,
    /// The outermost open claim that was come back to, where what is worked out depends on it.
    came_back_to: Option<usize>,
    pub(super) exclusions: Exclusions,
    /// Number of values deep that it is being asked whether a goal is empty.
    probing: usize,
    pub(super) nesting: usize,
    work: usize,
    warnings: BTreeMap<JsonId, String>,
    /// Members that a schema requires and does not allow: what leaves it without a value.
    pub(super) contradictions: BTreeMap<JsonId, String>,
    /// The slots of `x-catalog` and `x-substring`.
    pub(super) catalog_slots: CatalogSlots,
}

/// A claim that is being worked out.
#[derive(Clone, Copy, Debug)]
struct OpenClaim {
    claim: Claim,
    /// True when the one before asks for it and for more, whatever the value is.
    together: bool,
}

/// A step of combining schemas in units of the budget.
const UNITS_PER_STEP: usize = 32;

/// Warning about a schema that asks for itself.
const ADDS_NOTHING: &str = "this schema refers to itself without a member or an item in between; that it must hold adds nothing to it";

/// Number of values deep that [`Compiler::is_empty`] looks.
const MAX_PROBING: usize = 3;

impl<'o> Compiler<'o> {
    pub(super) fn new(
        schema_text: &str,
        options: &'o JsonSchemaOptions,
        mut budget: Budget<'o>,
    ) -> Result<Self> {
        let mut source = Source::default();
        let max_depth = options.limits.max_depth;
        let mut resources = Resources::new(&options.resources, options.draft, max_depth);
        let root = resources.add(&mut source, "", schema_text, &mut budget)?;
        if let Some(Wrapper { what, schema }) = wrapper(&source, root) {
            return Err(source.error(root, Kind::Wrapped { what, schema }));
        }
        Ok(Self {
            options,
            source,
            resources,
            goals: Goals::new(),
            budget,
            scopes: Scopes::new(),
            scope: ScopeId::EMPTY,
            root,
            emitting: GoalId::ANY,
            claim_cases: HashMap::new(),
            goal_cases: HashMap::new(),
            open: Vec::new(),
            is_joint: false,
            came_back_to: None,
            exclusions: Exclusions::new(),
            probing: 0,
            nesting: 0,
            work: 0,
            warnings: BTreeMap::new(),
            contradictions: BTreeMap::new(),
            catalog_slots: CatalogSlots::default(),
        })
    }

    pub(super) fn root(&self) -> JsonId {
        self.root
    }

    /// The goal of being valid for `schema`.
    pub(super) fn goal(&mut self, schema: JsonId) -> Result<GoalId> {
        self.claim_goal(schema, false)
    }

    /// The goal of not being valid for `schema`.
    pub(super) fn denied_goal(&mut self, schema: JsonId) -> Result<GoalId> {
        self.claim_goal(schema, true)
    }

    pub(super) fn value_goal(&mut self, value: JsonId, denied: bool) -> GoalId {
        self.goals.add(vec![Claim { about: About::Value(value), denied }])
    }

    /// The goal of not meeting `goal`, which is of one claim at most.
    pub(super) fn opposite(&mut self, goal: GoalId) -> GoalId {
        match self.goals.claims(goal).map(|claims| claims.to_vec()).as_deref() {
            None => GoalId::ANY,
            Some([]) => GoalId::NEVER,
            Some(&[Claim { about, denied }]) => {
                self.goals.add(vec![Claim { about, denied: !denied }])
            }
            Some(_) => unreachable!("a schema's own goals are of one claim"),
        }
    }

    fn claim_goal(&mut self, mut schema: JsonId, mut denied: bool) -> Result<GoalId> {
        let (asked, mut scope) = (schema, self.scope);
        // What only refers to another schema is that schema; that way, unions and intersections are
        // made once. Chains of references are followed however long they are; one that comes back
        // to itself has no meaning.
        let (mut seen, mut is_opposed) = (HashSet::new(), false);
        while seen.insert((schema, denied)) {
            scope = self.entered(scope, schema);
            let object = match self.source.json(schema) {
                Json::Bool(valid) => {
                    return Ok(if *valid != denied { GoalId::ANY } else { GoalId::NEVER });
                }
                Json::Object(object) => object,
                _ => {
                    let reason = "a schema is an object or a boolean".into();
                    return Err(self.invalid(schema, reason));
                }
            };
            let source = &self.source;
            let mut effective = object.members().iter().filter(|(name, at)| match role(name) {
                Some(Role::Annotation) | None => false,
                _ if source.is_absent(name, *at) => false,
                Some(Role::Core) => &**name == "$ref" || name.ends_with("Ref"),
                _ => &**name != "definitions" && &**name != "$defs",
            });
            match (effective.next().cloned(), effective.next()) {
                (None, _) => {
                    self.warn_unknown(schema);
                    return Ok(if denied { GoalId::NEVER } else { GoalId::ANY });
                }
                (Some((name, value)), None) if &*name == "$ref" => {
                    self.warn_unknown(schema);
                    schema = self.refer("$ref", value)?;
                }
                (Some((name, value)), None) if &*name == "not" => {
                    self.warn_unknown(schema);
                    schema = value;
                    denied = !denied;
                    is_opposed = true;
                }
                _ => {
                    return Ok(self
                        .goals
                        .add(vec![Claim { about: About::Schema(schema, scope), denied }]));
                }
            }
        }
        // A whole schema that says nothing else is a mistake.
        if is_opposed || asked == self.root {
            return Err(self.looping(schema));
        }
        self.warn(schema, ADDS_NOTHING.to_owned());
        Ok(if denied { GoalId::NEVER } else { GoalId::ANY })
    }

    /// The schema that the reference at `keyword` means.
    pub(super) fn refer(&mut self, keyword: &str, at: JsonId) -> Result<JsonId> {
        self.resources.refer(&mut self.source, keyword, at, &mut self.budget)
    }

    /// The scope at `schema`, which is reached from `scope`.
    pub(super) fn entered(&mut self, scope: ScopeId, schema: JsonId) -> ScopeId {
        let anchors = self.resources.dynamic_anchors(&self.source, schema);
        if anchors.is_empty() { scope } else { self.scopes.enter(scope, anchors) }
    }

    /// The cases in which a goal is met.
    pub(super) fn goal_cases(&mut self, goal: GoalId) -> Result<Rc<Cases>> {
        if let Some(found) = self.goal_cases.get(&goal) {
            return Ok(found.clone());
        }
        let Some(claims) = self.goals.claims(goal).cloned() else {
            return Ok(Rc::new(Cases::none()));
        };
        let mut cases: Option<Rc<Cases>> = None;
        for &claim in &*claims {
            let next = self.claim_cases(claim)?;
            cases = Some(match cases {
                Some(cases) => Rc::new(self.meet(&cases, &next)?),
                None => next,
            });
        }
        let cases = cases.unwrap_or_else(|| Rc::new(Cases::all()));
        if self.came_back_to.is_none() {
            self.goal_cases.insert(goal, cases.clone());
        }
        Ok(cases)
    }

    /// The cases of a value that stands by itself, its objects [closed](ObjectSet::closed) where
    /// that is asked for.
    ///
    /// Claims on the same value are combined before: an object is closed as a whole, never a branch
    /// of its schema alone.
    pub(super) fn value_cases_closed(&mut self, goal: GoalId) -> Result<Rc<Cases>> {
        let cases = self.goal_cases(goal)?;
        if !self.options.closed_objects || cases.objects.is_empty() {
            return Ok(cases);
        }
        let mut objects: Vec<Rc<ObjectSet>> = Vec::with_capacity(cases.objects.len());
        for object in &cases.objects {
            self.spend(1)?;
            let closed = object.closed(&mut self.goals).map(Rc::new);
            objects.extend(closed.filter(|closed| !self.is_empty_object(closed)));
        }
        // No object is what nobody means: then members are free.
        if objects.is_empty() {
            return Ok(cases);
        }
        Ok(Rc::new(Cases { objects, ..Cases::clone(&cases) }))
    }

    fn claim_cases(&mut self, claim: Claim) -> Result<Rc<Cases>> {
        if let Some(found) = self.claim_cases.get(&claim) {
            return Ok(found.clone());
        }
        let (About::Schema(at, _) | About::Value(at) | About::Either(_, at)) = claim.about;
        if let Some(place) = self.open.iter().position(|open| open.claim == claim) {
            let within = self.open[place + 1..].iter().all(|open| open.together);
            if !(within && self.is_joint) || claim.denied {
                return Err(self.looping(at));
            }
            // That a schema holds if it holds, and more does, says no more than that.
            self.warn(at, ADDS_NOTHING.to_owned());
            self.came_back_to = Some(self.came_back_to.map_or(place, |known| known.min(place)));
            return Ok(Rc::new(Cases::all()));
        }
        self.nesting += 1;
        if self.nesting > self.options.limits.max_nesting {
            let why = ": so many schemas refer to one another on the same value".to_owned();
            return Err(self.over(at, "max_nesting", self.options.limits.max_nesting, why));
        }
        let place = self.open.len();
        let together = std::mem::take(&mut self.is_joint);
        self.open.push(OpenClaim { claim, together });
        let outer = self.scope;
        let cases = match (claim.about, claim.denied) {
            (About::Schema(schema, scope), denied) => {
                self.scope = scope;
                if denied { self.denied_schema_cases(schema) } else { self.schema_cases(schema) }
            }
            (About::Value(value), denied) => self.value_cases(value, denied),
            (About::Either(place, _), denied) => self.choice_cases(place, denied),
        }?;
        self.scope = outer;
        self.open.pop();
        self.is_joint = together;
        self.nesting -= 1;
        let cases = Rc::new(cases);
        if self.came_back_to == Some(place) {
            self.came_back_to = None;
        }
        // What was found on the way to an open claim holds within that claim alone.
        if self.came_back_to.is_none() {
            self.claim_cases.insert(claim, cases.clone());
        }
        Ok(cases)
    }

    /// The values in both, less those that are plainly impossible.
    pub(super) fn meet(&mut self, one: &Cases, other: &Cases) -> Result<Cases> {
        let products = |one: usize, other: usize| one.saturating_mul(other);
        let size = products(one.strings.len(), other.strings.len())
            .max(products(one.numbers.len(), other.numbers.len()))
            .max(products(one.arrays.len(), other.arrays.len()))
            .max(products(one.objects.len(), other.objects.len()));
        self.spend(size)?;
        let mut met = one.and(other, &mut self.goals);
        met.members = self.meet_members(one, other)?;
        if met.strings != one.strings && met.strings != other.strings {
            let exclusions = &mut self.exclusions;
            met.strings.retain(|set| exclusions.may_be(set));
        }
        if met.objects.len() > 1 || one.objects.len() > 1 || other.objects.len() > 1 {
            met.objects = self.possible(met.objects, Self::is_empty_object);
            self.spend(met.objects.len() * met.objects.len() / 8)?;
            met.objects = without_parts(met.objects, 0, &mut self.goals);
        }
        if met.arrays.len() > 1 || one.arrays.len() > 1 || other.arrays.len() > 1 {
            met.arrays = self.possible(met.arrays, Self::is_empty_array);
        }
        self.bounded(&met)?;
        Ok(met)
    }

    /// The values in either.
    pub(super) fn join(&mut self, one: Cases, other: &Cases) -> Result<Cases> {
        self.spend(1 + one.len().max(other.len()))?;
        let grows = !one.objects.is_empty() && !other.objects.is_empty();
        let num_known = one.objects.len();
        let mut joined = one.or(other);
        if grows {
            joined.objects = without_parts(joined.objects, num_known, &mut self.goals);
        }
        self.bounded(&joined)?;
        Ok(joined)
    }

    fn bounded(&mut self, cases: &Cases) -> Result<()> {
        let max = self.options.limits.max_cases;
        if cases.len() <= max {
            return Ok(());
        }
        let why = ": the combinators of this schema multiply to more alternatives".to_owned();
        Err(self.over(self.place(), "max_cases", max, why))
    }

    pub(super) fn spend(&mut self, work: usize) -> Result<()> {
        self.work = self.work.saturating_add(work.max(1));
        self.tick(work.max(1).saturating_mul(UNITS_PER_STEP))?;
        let max = self.options.limits.max_work;
        if self.work <= max {
            return Ok(());
        }
        Err(self.over(self.place(), "max_work", max, " of combining schemas".to_owned()))
    }

    /// Takes units off the budget.
    pub(super) fn tick(&mut self, units: usize) -> Result<()> {
        let stopped = self.budget.spend(units as u64);
        stopped.map_err(|why| self.source.error(self.place(), Kind::Interrupted(why)))
    }

    fn possible<T>(
        &mut self,
        sets: Vec<Rc<T>>,
        is_empty: impl Fn(&mut Self, &T) -> bool,
    ) -> Vec<Rc<T>> {
        sets.into_iter().filter(|set| !is_empty(self, set)).collect()
    }

    /// True when it is plain that no value meets the goal. `false` may be wrong: it only costs
    /// work.
    pub(super) fn is_empty(&mut self, goal: GoalId) -> bool {
        if goal == GoalId::NEVER || goal == GoalId::ANY || self.probing >= MAX_PROBING {
            return goal == GoalId::NEVER;
        }
        // Values within a value: a schema that is open outside may come again here.
        let open = std::mem::take(&mut self.open);
        let (nesting, scope) = (self.nesting, self.scope);
        let together = std::mem::take(&mut self.is_joint);
        let came_back_to = self.came_back_to.take();
        self.probing += 1;
        let cases = self.goal_cases(goal);
        let empty = cases.is_ok_and(|cases| self.is_empty_union(&cases));
        self.probing -= 1;
        (self.nesting, self.scope) = (nesting, scope);
        (self.is_joint, self.came_back_to) = (together, came_back_to);
        self.open = open;
        empty
    }

    /// True when it is plain that there is no value in `cases`.
    pub(super) fn is_empty_union(&mut self, cases: &Cases) -> bool {
        !(cases.null || cases.truth || cases.falsity)
            && cases.numbers.is_empty()
            && cases.strings.is_empty()
            && cases.members.is_empty()
            && cases.arrays.iter().all(|array| self.is_empty_array(array))
            && cases.objects.iter().all(|object| self.is_empty_object(object))
    }

    pub(super) fn is_empty_array(&mut self, array: &ArraySet) -> bool {
        let sure = array.min.min(array.prefix.len() as u64 + 1);
        (0..sure).any(|at| self.is_empty(array.item(at)))
    }

    pub(super) fn is_empty_object(&mut self, object: &ObjectSet) -> bool {
        object.required.iter().any(|name| {
            let value = object.value(name, &mut self.goals);
            self.is_empty(value)
        })
    }

    fn value_cases(&mut self, value: JsonId, denied: bool) -> Result<Cases> {
        let cases = self.one_value(value)?;
        if denied { self.complement(&cases) } else { Ok(cases) }
    }

    /// Begins the emission of rules for this goal.
    pub(super) fn emit_goal(&mut self, goal: GoalId) {
        self.emitting = goal;
    }

    /// The place at which the compiler is, for messages.
    pub(super) fn place(&self) -> JsonId {
        let emitting = self.goals.claims(self.emitting).and_then(|claims| claims.first());
        match self.open.last().map(|open| &open.claim).or(emitting) {
            Some(Claim {
                about: About::Schema(at, _) | About::Value(at) | About::Either(_, at),
                ..
            }) => *at,
            None => self.root,
        }
    }

    pub(super) fn draft(&self, schema: JsonId) -> Draft {
        self.resources.draft(&self.source, schema)
    }

    /// The value of a keyword of a schema.
    pub(super) fn get(&self, schema: JsonId, keyword: &str) -> Option<JsonId> {
        let found = self.source.object(schema)?.get(keyword)?;
        if self.source.is_absent(keyword, found) {
            return None;
        }
        let listed = self.resources.vocabularies(&self.source, schema);
        let asserts = listed.is_none_or(|listed| listed.validation || keyword == "format");
        (asserts || role(keyword) != Some(Role::Assertion)).then_some(found)
    }

    pub(super) fn invalid(&self, at: JsonId, reason: String) -> JsonSchemaError {
        self.source.error(at, Kind::Invalid { keyword: self.keyword(at), reason })
    }

    pub(super) fn unsupported(&self, at: JsonId, reason: impl Into<String>) -> JsonSchemaError {
        let (keyword, reason) = (self.keyword(at), reason.into());
        self.source.error(at, Kind::Unsupported { keyword, reason })
    }

    /// Reports what no grammar can express, but a request should not be lost for: a warning, unless
    /// all is to be enforced.
    pub(super) fn relaxed(&mut self, at: JsonId, message: &str, way_out: &str) -> Result<()> {
        if self.options.inexpressible == Inexpressible::Refused {
            let or =
                "or let it go unenforced (`Inexpressible::Approximated`: no --strict; or --relax)";
            return Err(self.unsupported(at, format!("{message}; {way_out}, {or}")));
        }
        self.warn(at, format!("not enforced: {message}"));
        Ok(())
    }

    /// Reports what no grammar can express, and is not enforced: an error, or a warning when the
    /// caller wants it.
    pub(super) fn not_enforced(&mut self, at: JsonId, message: &str, way_out: &str) -> Result<()> {
        if self.options.inexpressible == Inexpressible::Ignored {
            self.warn(at, format!("not enforced: {message}"));
            return Ok(());
        }
        let or = "or let it go unenforced (`Inexpressible::Ignored`, --relax)";
        Err(self.unsupported(at, format!("{message}; {way_out}, {or}")))
    }

    pub(super) fn over(
        &self,
        at: JsonId,
        limit: &'static str,
        value: usize,
        why: String,
    ) -> JsonSchemaError {
        self.source.error(at, Kind::Limit { limit, value, why })
    }

    pub(super) fn looping(&self, at: JsonId) -> JsonSchemaError {
        let reason = "this schema refers to itself without a member or an item in between".into();
        self.source.error(at, Kind::Invalid { keyword: "$ref".into(), reason })
    }

    /// The keyword whose value is at `at` or around it.
    fn keyword(&self, at: JsonId) -> String {
        let pointer = self.source.pointer(at);
        let steps = pointer.rsplit('/').map(|step| step.replace("~1", "/").replace("~0", "~"));
        steps.into_iter().find(|step| role(step).is_some()).unwrap_or_else(|| "schema".into())
    }

    pub(super) fn warn(&mut self, at: JsonId, message: String) {
        self.warnings.entry(at).or_insert(message);
    }

    /// Warns of the schemas for which no value is valid: those without cases but of arrays and
    /// objects, of which `no_value` tells.
    pub(super) fn warn_of_schemas(&mut self, no_value: impl Fn(&Cases) -> bool) {
        let mut found = Vec::new();
        for (claim, cases) in &self.claim_cases {
            if let Claim { about: About::Schema(at, _), denied: false } = *claim
                && !(cases.null || cases.truth || cases.falsity)
                && cases.numbers.is_empty()
                && cases.strings.is_empty()
                && cases.members.is_empty()
                && no_value(cases)
            {
                found.push(at);
            }
        }
        for at in found {
            let why = self.contradictions.get(&at).map_or(String::new(), |why| format!(": {why}"));
            self.warn(at, format!("no value is valid for this schema{why}"));
        }
    }

    /// Reason that no value is valid for the whole schema, as far as one part says it: itself, or
    /// the only one that has none.
    pub(super) fn why_none(&self, root: JsonId) -> String {
        if let Some(why) = self.contradictions.get(&root) {
            return format!(": {why}");
        }
        let mut found = self.contradictions.iter();
        match (found.next(), found.next()) {
            (Some((&at, why)), None) => format!(": at {:?}, {why}", self.source.pointer(at)),
            _ => match self.goals.impossible() {
                Some(name) => format!(": `{name}` is required, and no value of it is allowed"),
                None => String::new(),
            },
        }
    }

    /// Lists the members of `schema` that no draft knows, or that have no effect where they stand.
    pub(super) fn warn_unknown(&mut self, schema: JsonId) {
        let Some(object) = self.source.object(schema) else { return };
        let mut notes: Vec<(JsonId, String)> = Vec::new();
        for (name, at) in object.members() {
            if role(name).is_some_and(|role| role != Role::Annotation)
                && self.source.is_absent(name, *at)
            {
                notes.push((*at, format!("`{name}` is null: read as if it were not there")));
            }
        }
        for (name, others) in DEPENDENT {
            if let Some(at) = object.get(name)
                && others.iter().all(|other| object.get(other).is_none())
            {
                let others: Vec<String> = others.iter().map(|name| format!("`{name}`")).collect();
                let message = format!("`{name}` has no effect without {}", others.join(" or "));
                notes.push((at, message));
            }
        }
        if let Some(at) = object.get("additionalItems")
            && !object.get("items").is_some_and(|at| matches!(self.source.json(at), Json::Array(_)))
        {
            let message = "`additionalItems` has no effect: `items` is no list beside it";
            notes.push((at, message.to_owned()));
        }
        if self.draft(schema) <= Draft::Draft7 && object.get("$ref").is_some() {
            for (name, at) in object.members() {
                let is_read = matches!(&**name, "definitions" | "$defs")
                    || matches!(role(name), None | Some(Role::Core | Role::Annotation));
                if !is_read {
                    let message = format!(
                        "`{name}` has no effect: up to draft 7 nothing beside `$ref` is read; put both into `allOf`"
                    );
                    notes.push((*at, message));
                }
            }
        }
        if let Some(at) = object.get("propertyOrdering")
            && self.options.order != PropertyOrder::Schema
        {
            let message = "`propertyOrdering` has no effect: members come in any order (--order schema keeps one)";
            notes.push((at, message.to_owned()));
        }
        for (at, message) in notes {
            self.warn(at, message);
        }
        let Some(object) = self.source.object(schema) else { return };
        if let (Some(at), None) = (object.get("nullable"), object.get("type"))
            && matches!(self.source.json(at), Json::Bool(true))
        {
            let message = "`nullable` has no effect: it is read beside a `type`; allow null by `anyOf` with {\"type\": \"null\"}";
            self.warn(at, message.to_owned());
        }
        let Some(object) = self.source.object(schema) else { return };
        let unknown: Vec<(Arc<str>, JsonId)> =
            object.members().iter().filter(|(name, _)| role(name).is_none()).cloned().collect();
        for (name, value) in unknown {
            if &*name == "x-guidance" {
                let message = self.guidance(value);
                self.warn(value, message);
            } else if !name.starts_with("x-") {
                let known: Vec<&str> = keywords::names().collect();
                let hint = meant(&name, &known)
                    .map_or(String::new(), |name| format!(" (did you mean `{name}`?)"));
                let message = format!("unknown keyword `{name}`: it has no effect{hint}");
                self.warn(value, message);
            }
        }
    }

    /// Warning about llguidance's options within a schema: by each member, what there is instead.
    fn guidance(&self, at: JsonId) -> String {
        let members = self.source.object(at).map_or(&[][..], |object| object.members());
        let instead = |name: &str| match name {
            "whitespace_flexible" | "whitespace_pattern" | "item_separator" | "key_separator" => {
                "blanks are an option here, --whitespace"
            }
            "lenient" => "what no grammar expresses is left out by --relax",
            "coerce_one_of" => "`oneOf` is read as the standard has it, exactly one",
            "json_allowed_escapes" => "escapes are an option here, --escapes",
            "no_forcing" => "forced tokens are asked for by who generates",
            _ => "it is not known here",
        };
        let parts: Vec<String> =
            members.iter().map(|(name, _)| format!("`{name}` ({})", instead(name))).collect();
        match parts.is_empty() {
            true => "`x-guidance` has no effect".to_owned(),
            false => format!("`x-guidance` has no effect: {}", parts.join(", ")),
        }
    }

    pub(super) fn warnings(&self) -> Vec<Warning> {
        let repeated = self.source.repeated().iter().map(|&at| (at, REPEATED));
        let warnings = self.warnings.iter().map(|(&at, message)| (at, message.as_str()));
        let warning = |(at, message): (JsonId, &str)| Warning {
            pointer: self.source.pointer(at),
            span: self.source.span(at),
            message: message.to_owned(),
        };
        repeated.chain(warnings).map(warning).collect()
    }
}
