//! `x-catalog` and `x-substring`: strings that are members of a set which a request binds.
//!
//! The set is not known here, so that it is neither intersected with other sets of strings nor
//! complemented: where a schema asks for that, it is refused at its place. Strings outside of a set
//! are kept as such until it is plain that none is asked for, as beside the other alternatives of a
//! `oneOf`.

use super::cases::Cases;
use super::compile::{self, Compiler};
use super::source::{JsonId, Source};
use super::strings::StringSet;
use super::{catalog_json, substring_json};
use crate::{MemberSpelling, Slot, Span};

/// A set of strings that is known by its slot alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct MemberCase {
    /// Place in [`CatalogSlots`].
    pub(super) slot: u32,
    /// True for the strings that are no members.
    pub(super) outside: bool,
}

/// The slots that a schema names, each with the place where it does first.
#[derive(Debug, Default)]
pub(super) struct CatalogSlots(Vec<(Slot, JsonId)>);

impl CatalogSlots {
    fn add(&mut self, slot: Slot, at: JsonId) -> u32 {
        let known = self.0.iter().position(|(known, _)| known.is_same(&slot));
        known.unwrap_or_else(|| {
            self.0.push((slot, at));
            self.0.len() - 1
        }) as u32
    }

    /// A slot by its place.
    pub(super) fn slot(&self, place: u32) -> &Slot {
        &self.0[place as usize].0
    }

    fn place(&self, place: u32) -> JsonId {
        self.0[place as usize].1
    }
}

/// Reader of a slot from the value of its keyword.
type FromJson = fn(&Source, JsonId, MemberSpelling, Option<Span>) -> Result<Slot, String>;

impl Compiler<'_> {
    /// The slot of a schema's `x-catalog` or `x-substring`.
    pub(super) fn member_case(
        &mut self,
        schema: JsonId,
        strings: &StringSet,
        types: &Cases,
    ) -> compile::Result<Option<MemberCase>> {
        let (at, from_json): (_, FromJson) =
            match (self.get(schema, "x-catalog"), self.get(schema, "x-substring")) {
                (None, None) => return Ok(None),
                (Some(at), None) => (at, catalog_json::from_json),
                (None, Some(at)) => (at, substring_json::from_json),
                (Some(_), Some(at)) => return Err(self.unsupported(at, ASKS_BOTH)),
            };
        let span = Some(self.source.span(at));
        let slot = from_json(&self.source, at, MemberSpelling::JsonString, span);
        let slot = slot.map_err(|reason| self.unsupported(at, reason))?;
        let beside = Cases { strings: vec![StringSet::any()], null: types.null, ..Cases::none() };
        if *types != beside {
            let reason = "stands beside \"type\": \"string\", which it narrows to the members of a set; add that";
            return Err(self.unsupported(at, reason));
        }
        if *strings != StringSet::any() {
            return Err(self.unsupported(at, ASKS_BOTH));
        }
        let slot = self.catalog_slots.add(slot, at);
        Ok(Some(MemberCase { slot, outside: false }))
    }

    /// The strings by slots that are in both.
    pub(super) fn meet_members(
        &self,
        one: &Cases,
        other: &Cases,
    ) -> compile::Result<Vec<MemberCase>> {
        if one.members.is_empty() && other.members.is_empty() {
            return Ok(Vec::new());
        }
        let mut met = Vec::new();
        for (cases, with) in [(one, other), (other, one)] {
            for &member in &cases.members {
                if with.strings.contains(&StringSet::any()) || with.members.contains(&member) {
                    met.push(member);
                    continue;
                }
                let is_opposite =
                    |of: &MemberCase| of.slot == member.slot && of.outside != member.outside;
                let is_known = with.strings.is_empty() && with.members.iter().all(is_opposite);
                if !is_known {
                    return Err(self.unsupported(self.catalog_slots.place(member.slot), ASKS_BOTH));
                }
            }
        }
        met.sort_unstable();
        met.dedup();
        Ok(met)
    }

    /// Refuses strings by slots where texts are asked for that must be known.
    pub(super) fn no_members(&self, cases: &Cases, reason: &str) -> compile::Result<()> {
        match cases.members.first() {
            None => Ok(()),
            Some(member) => {
                Err(self.unsupported(self.catalog_slots.place(member.slot), reason.to_owned()))
            }
        }
    }

    /// Refuses the strings that are no members of a set: what is to be written is known of members
    /// alone.
    pub(super) fn no_outsiders(&self, cases: &Cases) -> compile::Result<()> {
        match cases.members.iter().find(|member| member.outside) {
            None => Ok(()),
            Some(member) => {
                let reason = "stands where all strings but its members are asked for (`not`, `oneOf`, `if`), which are not known before \
                              the set is bound; exclude members by a filter of the set instead";
                Err(self.unsupported(self.catalog_slots.place(member.slot), reason))
            }
        }
    }
}

/// Refusal of a set as the names of an object.
pub(super) const NAMES: &str = "cannot say which names an object may have; list them, or write its members as a list of objects";

/// Refusal of a set that is to be intersected with another condition.
const ASKS_BOTH: &str = "stands beside another condition on the same string, and the set is not known before it is bound; say the condition by a \
                         filter of the set";
