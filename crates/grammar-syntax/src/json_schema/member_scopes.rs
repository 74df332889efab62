//! `x-distinct`, `x-at-most` and `x-record`: arrays and objects within which members of a set have
//! to do with each other.
//!
//! Such a value is written with brackets of its own, which tell the parser where the scope begins
//! and ends; between them it is like any other.

use std::sync::Arc;

use super::arrays::ArraySet;
use super::cases::Cases;
use super::compile::{Compiler, Result};
use super::emit::{Emitter, LeftOut};
use super::objects::ObjectSet;
use super::schema_scope::SchemaScope;
use super::source::{Json, JsonId};
use crate::catalog_references::check_name;
use crate::{GroupLimit, MemberScope, NonterminalId, ScopeKind, Symbol};

/// Refusal of denying a value with a scope, or joining it with another.
const MEANS_MORE: &str = "stands where all values but these are asked for (`not`, `oneOf`, `if`), or beside another scope; ask for it once, \
                          outside of those";

impl Compiler<'_> {
    /// The scope of an array's schema.
    pub(super) fn array_scope(&mut self, schema: JsonId) -> Result<Option<SchemaScope>> {
        let at_most = self.get(schema, "x-at-most");
        let Some(at) = self.get(schema, "x-distinct") else {
            return match at_most {
                None => Ok(None),
                Some(at) => {
                    let reason = "stands beside \"x-distinct\", which names the set whose items are counted; add that";
                    Err(self.unsupported(at, reason))
                }
            };
        };
        let name = self.scope_name(at)?;
        let at_most = at_most.map(|at| self.group_limit(at)).transpose()?;
        Ok(Some(SchemaScope { name, kind: ScopeKind::Distinct { at_most }, at }))
    }

    /// The scope of an object's schema.
    pub(super) fn object_scope(&mut self, schema: JsonId) -> Result<Option<SchemaScope>> {
        let Some(at) = self.get(schema, "x-record") else { return Ok(None) };
        Ok(Some(SchemaScope { name: self.scope_name(at)?, kind: ScopeKind::Record, at }))
    }

    /// Refuses a scope beside a type whose values it says nothing of: what it promises would not be
    /// held.
    pub(super) fn check_scopes(&self, schema: JsonId, types: &Cases) -> Result<()> {
        for (keyword, has_its_type, way_out) in [
            (
                "x-distinct",
                !types.arrays.is_empty(),
                "no array is asked for: put it beside `items`",
            ),
            ("x-at-most", !types.arrays.is_empty(), "no array is asked for: put it beside `items`"),
            (
                "x-record",
                !types.objects.is_empty(),
                "no object is asked for: put it beside `properties`",
            ),
        ] {
            if let (Some(at), false) = (self.get(schema, keyword), has_its_type) {
                return Err(self.unsupported(at, format!("stands where {way_out}")));
            }
        }
        Ok(())
    }

    fn scope_name(&self, at: JsonId) -> Result<Arc<str>> {
        let Some(name) = self.source.string(at).cloned() else {
            return Err(self.unsupported(at, "is the name of a set, as in \"x-catalog\""));
        };
        match check_name(&name, "a set") {
            Ok(()) => Ok(name),
            Err(reason) => Err(self.unsupported(at, reason)),
        }
    }

    fn group_limit(&self, at: JsonId) -> Result<GroupLimit> {
        const RULE: &str = "must be a list of one rule, {\"attribute\": a name, \"items\": the most items with equal values of it, at least 1}";
        const ONE_RULE: &str =
            "has several rules: a choice could run into a wall that another order avoids; keep one";
        let invalid = || self.invalid(at, RULE.to_owned());
        let rule = match self.source.json(at) {
            Json::Array(rules) if rules.len() > 1 => return Err(self.unsupported(at, ONE_RULE)),
            Json::Array(rules) if rules.len() == 1 => self.source.object(rules[0]),
            _ => None,
        };
        let rule = rule.ok_or_else(invalid)?;
        let (mut attribute, mut items) = (None, None);
        for (name, value) in rule.members() {
            match &**name {
                "attribute" => attribute = self.source.string(*value).map(|name| name.to_string()),
                "items" => {
                    items = u32::try_from(self.count(*value)?).ok().filter(|&items| items > 0)
                }
                _ => return Err(invalid()),
            }
        }
        match (attribute, items) {
            (Some(attribute), Some(items)) => Ok(GroupLimit { attribute, items }),
            _ => Err(invalid()),
        }
    }

    /// Refuses to tell the values outside of one with a scope.
    pub(super) fn no_scope(&self, scopes: &[SchemaScope]) -> Result<()> {
        scopes.first().map_or(Ok(()), |scope| Err(self.unsupported(scope.at, MEANS_MORE)))
    }
}

impl Emitter<'_, '_> {
    /// The rules of an array in a scope; `false` where it has none.
    pub(super) fn scoped_array(&mut self, head: NonterminalId, array: &ArraySet) -> Result<bool> {
        let Some(scope) = array.scopes.first().cloned() else { return Ok(false) };
        self.compiler.no_scope(&array.scopes[1..])?;
        let unique = match scope.kind {
            // No item comes twice anyway.
            ScopeKind::Distinct { .. } if self.has_members_alone(array)?.is_some() => None,
            _ => array.unique,
        };
        let plain = ArraySet { scopes: Vec::new(), unique, ..array.clone() };
        self.bracketed(head, scope, ("[", "]"), |emitter, inside| emitter.array(inside, &plain))?;
        Ok(true)
    }

    /// The rules of an array whose items are members of one set, none of which comes twice; `false`
    /// where it is none.
    pub(super) fn unique_members(&mut self, head: NonterminalId, array: &ArraySet) -> Result<bool> {
        let Some(name) = self.has_members_alone(array)? else { return Ok(false) };
        let at = array.unique_at.unwrap_or(self.compiler.root());
        let scope = SchemaScope { name, kind: ScopeKind::Distinct { at_most: None }, at };
        let plain = ArraySet { unique: None, ..array.clone() };
        self.bracketed(head, scope, ("[", "]"), |emitter, inside| emitter.array(inside, &plain))?;
        Ok(true)
    }

    /// The rules of an object in a scope; `false` where it has none.
    pub(super) fn scoped_object(
        &mut self,
        head: NonterminalId,
        object: &ObjectSet,
    ) -> Result<bool> {
        let Some(scope) = object.records.first().cloned() else { return Ok(false) };
        self.compiler.no_scope(&object.records[1..])?;
        let plain = ObjectSet { records: Vec::new(), ..object.clone() };
        self.bracketed(head, scope, ("{", "}"), |emitter, inside| emitter.object(inside, &plain))?;
        Ok(true)
    }

    /// The name of the set that all items of an array are members of, all of one field.
    fn has_members_alone(&mut self, array: &ArraySet) -> Result<Option<Arc<str>>> {
        if !array.prefix.is_empty() || !array.counts.is_empty() {
            return Ok(None);
        }
        let cases = self.compiler.goal_cases(array.rest)?;
        let [member] = cases.members[..] else { return Ok(None) };
        let is_alone = *cases == Cases { members: vec![member], ..Cases::none() };
        let slot = self.compiler.catalog_slots.slot(member.slot);
        Ok(is_alone.then(|| (*slot.name).into()))
    }

    /// `head` as brackets of a scope's own around what `inside` writes without its brackets.
    fn bracketed(
        &mut self,
        head: NonterminalId,
        SchemaScope { name, kind, at }: SchemaScope,
        (open, close): (&str, &str),
        emit: impl FnOnce(&mut Self, NonterminalId) -> Result<()>,
    ) -> Result<()> {
        if self.frame.is_some() {
            let reason =
                "stands on parameters, which have no brackets; write it within the value of one";
            return Err(self.compiler.unsupported(at, reason));
        }
        let inside = self.part("inside");
        let outer = self.left_out.replace(LeftOut::default());
        let emitted = emit(self, inside);
        let left_out = std::mem::replace(&mut self.left_out, outer).unwrap_or_default();
        emitted?;
        let open = self.own_bracket(open, left_out.open)?;
        let close = self.own_bracket(close, left_out.close)?;
        let body =
            vec![Symbol::Terminal(open), Symbol::Nonterminal(inside), Symbol::Terminal(close)];
        self.rule(head, body)?;
        let span = Some(self.compiler.source.span(at));
        self.builder.scope(MemberScope { name: name.to_string(), kind, open, close, span });
        Ok(())
    }
}
