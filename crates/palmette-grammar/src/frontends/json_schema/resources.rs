//! Which schema a reference means: `$id`, anchors, JSON pointers.

use std::collections::{BTreeMap, HashMap};

use super::{
    error::{JsonSchemaError, Kind},
    keywords::{Role, role},
    options::Draft,
    source::{Json, JsonId, Source},
    uri::{percent_decoded, resolve, split_fragment},
};

/// The URIs and anchors of all schemas that were read.
#[derive(Debug)]
pub(super) struct Resources {
    /// URIs without fragments.
    roots: HashMap<String, JsonId>,
    /// (URI of the resource, name).
    anchors: HashMap<(String, String), JsonId>,
    /// Dynamic anchors by name, all of them.
    dynamic: BTreeMap<String, Vec<JsonId>>,
    /// The resources' outermost schemas: URI and draft.
    resources: HashMap<JsonId, (String, Draft)>,
    /// Resources that were given and not read yet.
    given: BTreeMap<String, String>,
    default_draft: Draft,
    max_depth: usize,
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
            dynamic: BTreeMap::new(),
            resources: HashMap::new(),
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
    ) -> Result<JsonId, JsonSchemaError> {
        let name = (!uri.is_empty()).then(|| uri.to_owned());
        let root = source.add(name, text, self.max_depth)?;
        let draft = draft(source, root)?.unwrap_or(self.default_draft);
        self.roots.insert(uri.to_owned(), root);
        self.resources.insert(root, (uri.to_owned(), draft));
        // Depth first by an own stack: (schema, URI and draft of its resource).
        let mut open = vec![(root, uri.to_owned(), draft)];
        while let Some((at, base, draft_above)) = open.pop() {
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
            self.dynamic.entry(name.to_string()).or_default().push(at);
        }
        Ok(result)
    }

    /// The draft that the schema `at` is written for.
    pub(super) fn draft(&self, source: &Source, at: JsonId) -> Draft {
        self.resource(source, at).1
    }

    /// All schemas with the dynamic anchor `name`.
    pub(super) fn dynamic(&self, name: &str) -> &[JsonId] {
        self.dynamic.get(name).map_or(&[], Vec::as_slice)
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
                let Some(text) = self.given.remove(uri) else { return Err(unresolved(source)) };
                self.add(source, uri, &text)?
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
