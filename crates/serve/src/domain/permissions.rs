//! Permissions: what each route needs, and what the key of a request grants.
//!
//! # Invariants
//! - One table ([`ROUTES`]) says what each route needs; a route that is not in it is refused.
//! - A request's permissions go with its task ([`CURRENT`]); where there are none, nothing is
//!   permitted.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::problem::{Kind, Problem};

tokio::task_local! {
    /// Permissions of the request that this task answers.
    pub(crate) static CURRENT: Arc<Grant>;
}

/// A permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Recommending.
    Recommend,
    /// Reading and changing items.
    Items,
    /// Making and deleting catalogs, generations, targets and models.
    Admin,
    /// Asking text models.
    Text,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 4] = [Self::Recommend, Self::Items, Self::Admin, Self::Text];
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Recommend => "recommend",
            Self::Items => "items",
            Self::Admin => "admin",
            Self::Text => "text",
        })
    }
}

/// A name that no [`Scope`] has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown scope {0:?}; the scopes are recommend, items, admin and text")]
pub struct UnknownScope(String);

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(name: &str) -> Result<Self, UnknownScope> {
        let scope = Self::ALL.into_iter().find(|scope| scope.to_string() == name);
        scope.ok_or_else(|| UnknownScope(name.to_owned()))
    }
}

/// Permissions of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// No permission: of routes that need no key.
    Nothing,
    /// Everything: of a server without keys.
    Everything,
    /// Named scopes, and named catalogs or all.
    Some { scopes: Vec<Scope>, catalogs: Option<BTreeSet<String>> },
}

impl Grant {
    pub(crate) fn permits(&self, catalog: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Some { catalogs, .. } => catalogs.as_ref().is_none_or(|of| of.contains(catalog)),
        }
    }
}

/// True where the request that this task answers may use a catalog.
pub(crate) fn permits(catalog: &str) -> bool {
    CURRENT.try_with(|grant| grant.permits(catalog)).unwrap_or(false)
}

/// Refuses a catalog that the request's key does not permit.
pub(crate) fn check_catalog(catalog: &str) -> Result<(), Problem> {
    match permits(catalog) {
        true => Ok(()),
        false => Err(Problem::new(
            Kind::Forbidden,
            format!("the key does not permit catalog {catalog:?}"),
        )),
    }
}

/// Permissions of the request that this task answers, for tasks that go on with it.
pub(crate) fn current() -> Arc<Grant> {
    CURRENT.try_with(Arc::clone).unwrap_or_else(|_| Arc::new(Grant::Nothing))
}

/// Need of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// No key.
    Nothing,
    /// Any key.
    Key,
    /// A key with this scope.
    Scope(Scope),
}

const RECOMMEND: Need = Need::Scope(Scope::Recommend);
const ITEMS: Need = Need::Scope(Scope::Items);
const ADMIN: Need = Need::Scope(Scope::Admin);
const TEXT: Need = Need::Scope(Scope::Text);

/// Every route and what it needs. Where a path has the parameter `c`, the key must permit this
/// catalog too; recommending checks the catalog of its target, asking for text the name of the
/// model and the catalogs that its grammar names.
pub(crate) const ROUTES: &[(&str, &str, Need)] = &[
    ("GET", "/", Need::Nothing),
    ("GET", "/assets/{name}", Need::Nothing),
    ("GET", "/livez", Need::Nothing),
    ("GET", "/readyz", Need::Nothing),
    ("GET", "/healthz", Need::Nothing),
    ("GET", "/metrics", Need::Nothing),
    ("GET", "/openapi.json", Need::Nothing),
    ("GET", "/v1/version", Need::Key),
    ("POST", "/v1/recommend", RECOMMEND),
    ("POST", "/v1/recommend/batch", RECOMMEND),
    ("POST", "/v1/recommend/stream", RECOMMEND),
    ("POST", "/v1/chat/completions", TEXT),
    ("POST", "/v1/completions", TEXT),
    ("POST", "/v1/masks", TEXT),
    ("POST", "/v1/messages", TEXT),
    ("POST", "/v1/messages/count_tokens", TEXT),
    ("POST", "/v1/places", TEXT),
    ("POST", "/v1/responses", TEXT),
    ("POST", "/tokenize", TEXT),
    ("POST", "/detokenize", TEXT),
    ("GET", "/v1/models/{model}", Need::Key),
    ("GET", "/v1/targets", Need::Key),
    ("POST", "/v1/targets", ADMIN),
    ("PUT", "/v1/targets/{alias}", ADMIN),
    ("GET", "/v1/models", Need::Key),
    ("POST", "/v1/models", ADMIN),
    ("DELETE", "/v1/models/{model}", ADMIN),
    ("GET", "/v1/operations", Need::Key),
    ("GET", "/v1/operations/{id}", Need::Key),
    ("DELETE", "/v1/operations/{id}", ADMIN),
    ("GET", "/v1/catalogs", Need::Key),
    ("GET", "/v1/catalogs/{c}", Need::Key),
    ("PUT", "/v1/catalogs/{c}", ADMIN),
    ("DELETE", "/v1/catalogs/{c}", ADMIN),
    ("GET", "/v1/catalogs/{c}/export", ITEMS),
    ("GET", "/v1/catalogs/{c}/generations", Need::Key),
    ("POST", "/v1/catalogs/{c}/generations", ADMIN),
    ("DELETE", "/v1/catalogs/{c}/generations/{generation}", ADMIN),
    ("POST", "/v1/catalogs/{c}/rollback", ADMIN),
    ("POST", "/v1/catalogs/{c}/items", ITEMS),
    ("POST", "/v1/catalogs/{c}/items/query", ITEMS),
    ("GET", "/v1/catalogs/{c}/items/{id}", ITEMS),
    ("PUT", "/v1/catalogs/{c}/items/{id}", ITEMS),
    ("PATCH", "/v1/catalogs/{c}/items/{id}", ITEMS),
    ("DELETE", "/v1/catalogs/{c}/items/{id}", ITEMS),
];

/// Need of a route; `None` where the table has it not.
pub(crate) fn need(method: &str, route: &str) -> Option<Need> {
    let method = if method == "HEAD" { "GET" } else { method };
    let find = |route: &str| ROUTES.iter().find(|(of, path, _)| (*of, *path) == (method, route));
    // An item may have the name of the listing.
    let item =
        || find("/v1/catalogs/{c}/items/{id}").filter(|_| route == "/v1/catalogs/{c}/items/query");
    let found = find(route).or_else(item);
    found.map(|(_, _, need)| *need)
}

/// True if a request of a route changes something, and the log names who did it.
pub(crate) fn is_change(method: &str, route: &str) -> bool {
    let may_change = matches!(need(method, route), Some(ITEMS | ADMIN));
    may_change
        && !matches!(method, "GET" | "HEAD")
        && !(method == "POST" && route.ends_with("/query"))
}

/// Scopes that a route needs of a key, none where any key will do; `None` where it needs no key.
pub(crate) fn scopes(method: &str, route: &str) -> Option<Vec<Scope>> {
    match need(method, route) {
        Some(Need::Scope(scope)) => Some(vec![scope]),
        Some(Need::Key) => Some(Vec::new()),
        Some(Need::Nothing) | None => None,
    }
}

/// True if a route changes something by its body.
pub(crate) fn is_write(method: &str, route: &str) -> bool {
    matches!(method, "POST" | "PUT" | "PATCH") && is_change(method, route)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_in_the_table() {
        let document = serde_json::to_value(crate::server::openapi()).unwrap();
        let mut found = BTreeSet::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys().filter(|name| *name != "parameters") {
                let method = method.to_ascii_uppercase();
                assert!(need(&method, path).is_some(), "{method} {path} is not in the table");
                found.insert((method, path.clone()));
            }
        }
        for (method, path, need) in ROUTES {
            let is_page = matches!(*path, "/" | "/assets/{name}");
            assert!(
                is_page || found.contains(&((*method).to_owned(), (*path).to_owned())),
                "{method} {path} is no route"
            );
            let is_open = !path.starts_with("/v1/") && !path.ends_with("tokenize");
            assert_eq!(*need == Need::Nothing, is_open, "{path}");
        }
    }
}
