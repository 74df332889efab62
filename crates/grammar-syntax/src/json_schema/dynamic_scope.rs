//! Dynamic scopes: the schema that a dynamic reference means depends on the way to it.
//!
//! On the way to a schema, resources are entered one after another. Of those that have a dynamic
//! anchor of a name, the first gives the name its meaning. A grammar is made from one schema, so
//! all ways are known, and there are finitely many such meanings.

use std::{collections::BTreeMap, rc::Rc, sync::Arc};

use hashbrown::HashMap;

use super::source::JsonId;

/// A place in [`Scopes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ScopeId(u32);

/// Meanings of dynamic anchors, by name; all that came up so far.
#[derive(Debug)]
pub(super) struct Scopes {
    scopes: Vec<Rc<Meanings>>,
    ids: HashMap<Rc<Meanings>, ScopeId>,
}

type Meanings = BTreeMap<Arc<str>, JsonId>;

impl ScopeId {
    /// Scope in which no dynamic anchor was passed.
    pub(super) const EMPTY: Self = Self(0);
}

impl Scopes {
    pub(super) fn new() -> Self {
        let empty = Rc::new(Meanings::new());
        Self { scopes: vec![empty.clone()], ids: HashMap::from([(empty, ScopeId::EMPTY)]) }
    }

    /// Meaning of the dynamic anchor `name` in `scope`.
    pub(super) fn meaning(&self, scope: ScopeId, name: &str) -> Option<JsonId> {
        self.scopes[scope.0 as usize].get(name).copied()
    }

    /// The scope after a resource with these anchors is entered.
    pub(super) fn enter(&mut self, scope: ScopeId, anchors: &[(Arc<str>, JsonId)]) -> ScopeId {
        let before = &self.scopes[scope.0 as usize];
        if anchors.iter().all(|(name, _)| before.contains_key(name)) {
            return scope;
        }
        let mut meanings = Meanings::clone(before);
        for (name, at) in anchors {
            meanings.entry(name.clone()).or_insert(*at);
        }
        let meanings = Rc::new(meanings);
        let next = ScopeId(self.scopes.len() as u32);
        let id = *self.ids.entry(meanings.clone()).or_insert(next);
        if id == next {
            self.scopes.push(meanings);
        }
        id
    }
}
