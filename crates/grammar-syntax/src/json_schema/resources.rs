//! Resolution of references: `$id`, anchors, JSON pointers.

use std::{collections::BTreeMap, sync::Arc};

use hashbrown::HashMap;

use super::{
    error::{JsonSchemaError, Kind},
    keywords::{Role, role},
    metaschemas::metaschema,
    options::Draft,
    source::{Json, JsonId, Source},
    uri::{percent_decoded, resolve, split_fragment},
};
use crate::Budget;

/// Stands for `$recursiveAnchor` among the names of dynamic anchors, which are never empty.
pub(super) const RECURSIVE: &str = "";

/// The URIs and anchors of all schemas that were read.
#[derive(Debug)]
pub(super) struct Resources {
    /// URIs without fragments.
    roots: HashMap<String, JsonId>,
    /// (URI of the resource, name).
    anchors: HashMap<(String, String), JsonId>,
    /// Dynamic anchors by the URI of their resource.
    dynamic: HashMap<String, Vec<(Arc<str>, JsonId)>>,
    /// The resources' outermost schemas: URI and draft.
    resources: HashMap<JsonId, (String, Draft)>,
    /// Vocabularies by URI of the resource, where a metaschema of its own says.
    vocabularies: HashMap<String, Vocabularies>,
    /// Resources that were given and not read yet.
    given: BTreeMap<String, String>,
    default_draft: Draft,
    max_depth: usize,
}

/// Vocabularies that the metaschema of a resource lists.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vocabularies {
    /// Vocabulary of assertions; without it, keywords like `type` and `minimum` are no more than
    /// annotations.
    pub(super) validation: bool,
    /// Vocabulary by which `format` is an assertion, whatever the options say.
    pub(super) format_assertion: bool,
}

impl Resources {
    pub(super) fn new(
        given: &BTreeMap<String, String>,
        default_draft: Draft,
        max_depth: usize,
    ) -> Self {
        let given =
            given.iter().map(|(uri, text)| (split_fragment(uri).0.to_owned(), text.clone()));
        Self {
            roots: HashMap::new(),
            anchors: HashMap::new(),
            dynamic: HashMap::new(),
            resources: HashMap::new(),
            vocabularies: HashMap::new(),
            given: given.collect(),
            default_draft,
            max_depth,
        }
    }

    /// Reads a document that is known as `uri` (empty for the schema itself).
    pub(super) fn add(
        &mut self,
        source: &mut Source,
        uri: &str,
        text: &str,
        budget: &mut Budget<'_>,
    ) -> Result<JsonId, JsonSchemaError> {
        let name = (!uri.is_empty()).then(|| uri.to_owned());
        let root = source.add(name, text, self.max_depth, budget)?;
        let draft = draft(source, root)?.unwrap_or(self.default_draft);
        self.roots.insert(uri.to_owned(), root);
        self.resources.insert(root, (uri.to_owned(), draft));
        self.note_vocabularies(source, root, uri, budget)?;
        // Depth first by an own stack: (schema, URI and draft of its resource).
        let mut open = vec![(root, uri.to_owned(), draft)];
        while let Some((at, base, draft_above)) = open.pop() {
            let members = source.object(at).map_or(0, |object| object.members().len());
            let step = budget.spend(8 * (1 + members) as u64);
            step.map_err(|why| source.error(at, Kind::Interrupted(why)))?;
            let (base, draft) = self.enter(source, at, base, draft_above)?;
            let Some(object) = source.object(at) else { continue };
            for (name, value) in object.members() {
                let schemas: Vec<JsonId> = match (role(name), source.json(*value)) {
                    (Some(Role::Schema), _) => vec![*value],
                    (Some(Role::Schemas | Role::Mixed), Json::Array(items)) => items.clone(),
                    (Some(Role::NamedSchemas), Json::Object(named)) => {
                        named.members().iter().map(|(_, schema)| *schema).collect()
                    }
                    (Some(Role::Mixed), Json::Object(named)) if &**name == "dependencies" => {
                        named.members().iter().map(|(_, schema)| *schema).collect()
                    }
                    (Some(Role::Mixed), _) => vec![*value],
                    _ => Vec::new(),
                };
                open.extend(schemas.into_iter().map(|schema| (schema, base.clone(), draft)));
            }
        }
        Ok(root)
    }

    /// Notes what the metaschema of a document says of vocabularies, if it is one that was given.
    fn note_vocabularies(
        &mut self,
        source: &Source,
        root: JsonId,
        uri: &str,
        budget: &mut Budget<'_>,
    ) -> Result<(), JsonSchemaError> {
        let Some(object) = source.object(root) else { return Ok(()) };
        let text = |name: &str| object.get(name).and_then(|at| source.string(at));
        let metaschema = text("$schema").and_then(|uri| self.given.get(split_fragment(uri).0));
        let Some(metaschema) = metaschema else { return Ok(()) };
        let mut metasource = Source::default();
        let meta = metasource.add(None, metaschema, self.max_depth, budget)?;
        let listed = metasource.object(meta).and_then(|meta| meta.get("$vocabulary"));
        let Some(listed) = listed.and_then(|at| metasource.object(at)) else { return Ok(()) };
        let lists = |name: &str| listed.members().iter().any(|(uri, _)| uri.ends_with(name));
        let listed = Vocabularies {
            validation: lists("/vocab/validation"),
            format_assertion: lists("/vocab/format-assertion"),
        };
        let own =
            text("$id").map_or_else(|| uri.to_owned(), |id| resolve(uri, split_fragment(id).0));
        self.vocabularies.insert(own, listed);
        Ok(())
    }

    /// Vocabularies that the metaschema of the schema `at` lists, where it lists any.
    pub(super) fn vocabularies(&self, source: &Source, at: JsonId) -> Option<Vocabularies> {
        // Few schemas have a metaschema of their own: the others need not look for their resource.
        if self.vocabularies.is_empty() {
            return None;
        }
        self.vocabularies.get(&self.resource(source, at).0).copied()
    }

    /// Notes the names of the schema `at`; returns the URI and draft of the resource that it is in.
    fn enter(
        &mut self,
        source: &Source,
        at: JsonId,
        base: String,
        draft_above: Draft,
    ) -> Result<(String, Draft), JsonSchemaError> {
        let Some(object) = source.object(at) else { return Ok((base, draft_above)) };
        let text = |name: &str| object.get(name).and_then(|value| source.string(value));
        let own_draft = draft(source, at)?.unwrap_or(draft_above);
        let referring = own_draft <= Draft::Draft7 && object.get("$ref").is_some();
        let id = if own_draft <= Draft::Draft4 { text("id") } else { text("$id") };
        let mut result = (base, own_draft);
        if let Some(id) = id.filter(|_| !referring) {
            let (uri, fragment) = split_fragment(id);
            if !uri.is_empty() {
                let uri = resolve(&result.0, uri);
                self.roots.entry(uri.clone()).or_insert(at);
                self.resources.insert(at, (uri.clone(), own_draft));
                result.0 = uri;
            }
            if !fragment.is_empty() {
                self.anchors.insert((result.0.clone(), fragment.to_owned()), at);
            }
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = text(keyword) {
                self.anchors.insert((result.0.clone(), name.to_string()), at);
            }
        }
        if let Some(name) = text("$dynamicAnchor") {
            self.dynamic.entry(result.0.clone()).or_default().push((name.clone(), at));
        }
        let moves = object.get("$recursiveAnchor").map(|value| source.json(value));
        if let (Some(Json::Bool(true)), true) = (moves, self.resources.contains_key(&at)) {
            self.dynamic.entry(result.0.clone()).or_default().push((RECURSIVE.into(), at));
        }
        Ok(result)
    }

    /// The draft that the schema `at` is written for.
    pub(super) fn draft(&self, source: &Source, at: JsonId) -> Draft {
        self.resource(source, at).1
    }

    /// The dynamic anchors of the resource that the schema `at` is in; [`RECURSIVE`] is one of them
    /// where it has `$recursiveAnchor`.
    pub(super) fn dynamic_anchors(&self, source: &Source, at: JsonId) -> &[(Arc<str>, JsonId)] {
        // Few schemas have any: the others need not look for their resource.
        if self.dynamic.is_empty() {
            return &[];
        }
        self.dynamic.get(&self.resource(source, at).0).map_or(&[], Vec::as_slice)
    }

    /// The resource's outermost schema that the schema `at` is in.
    pub(super) fn resource_root(&self, source: &Source, mut at: JsonId) -> JsonId {
        while !self.resources.contains_key(&at) {
            at = source.parent(at).expect("a document's root is a resource");
        }
        at
    }

    fn resource(&self, source: &Source, at: JsonId) -> &(String, Draft) {
        &self.resources[&self.resource_root(source, at)]
    }

    /// The schema that the reference at `keyword` (a member of a schema, a string) means.
    pub(super) fn refer(
        &mut self,
        source: &mut Source,
        keyword: &str,
        at: JsonId,
        budget: &mut Budget<'_>,
    ) -> Result<JsonId, JsonSchemaError> {
        let Some(reference) = source.string(at).cloned() else {
            let (keyword, reason) = (keyword.into(), "must be a URI reference in quotes".into());
            return Err(source.error(at, Kind::Invalid { keyword, reason }));
        };
        let absolute = resolve(&self.resource(source, at).0, &reference);
        let (uri, fragment) = split_fragment(&absolute);
        let unresolved = |source: &Source| {
            let (keyword, uri) = (keyword.to_owned(), reference.to_string());
            source.error(at, Kind::Unresolved { keyword, uri })
        };
        let root = match self.roots.get(uri) {
            Some(&root) => root,
            None => {
                let known = || metaschema(uri).map(str::to_owned);
                let text = self.given.remove(uri).or_else(known);
                let text = text.ok_or_else(|| unresolved(source))?;
                self.add(source, uri, &text, budget)?
            }
        };
        let fragment = percent_decoded(fragment);
        let found = if fragment.is_empty() || fragment.starts_with('/') {
            source.follow(root, &fragment)
        } else {
            // The resource may call itself otherwise than it is called here.
            let own = self.resource(source, root).0.clone();
            let anchor = |uri: &str| self.anchors.get(&(uri.to_owned(), fragment.clone())).copied();
            anchor(uri).or_else(|| anchor(&own))
        };
        found.ok_or_else(|| unresolved(source))
    }
}

/// The draft that a schema names for itself.
fn draft(source: &Source, at: JsonId) -> Result<Option<Draft>, JsonSchemaError> {
    let named = source.object(at).and_then(|object| object.get("$schema"));
    let Some(named) = named else { return Ok(None) };
    Ok(source.string(named).and_then(|uri| Draft::named(uri)))
}
