//! Keys: permissions of clients, by scope and catalog.
//!
//! The file has a key a line, `name scope[,scope] catalogs sha256hex`: scopes are `recommend`, `items`, `admin` and `text`, none
//! of which includes another; catalogs are `*` or names with commas, of text models too; the last is the SHA-256 of the key in hexadecimal digits. Blank lines and
//! lines that begin with `#` mean nothing. Keys of one name are one client's: a new one is added, the client takes it, and the old one goes.
//! A key comes as `Authorization: Bearer …`. Hashes are compared in constant time, and neither
//! keys nor hashes are logged.
//!
//! # Invariants
//! - One table ([`ROUTES`]) says what each route needs; a route that is not in it is refused.
//! - A request's permissions go with its task ([`CURRENT`]); where there are none, nothing is permitted.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::extract::{FromRequestParts, MatchedPath, RawPathParams, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::audit;
use crate::problem::{Kind, Problem};
use crate::registry::{LoadError, check_name};
use crate::server::App;

/// Beginning of keys that are made here: what leaks is recognised.
const PREFIX: &str = "pal_";

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

/// A file of keys that cannot be read, or a key that cannot be made. No key or hash stands in the message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// The file.
    #[error("{path}: {error}", path = path.display())]
    Io {
        /// Path of it.
        path: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
    /// A line of the file.
    #[error("{path}, line {line}: {rule}", path = path.display())]
    Line {
        /// The file's path.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// The rule that it breaks.
        rule: String,
    },
    /// A key that was asked for.
    #[error("{0}")]
    Key(String),
}

/// A key that was made, and the line for the file. The key itself is nowhere else.
#[derive(Clone)]
pub struct NewKey {
    /// Text that the client sends.
    pub key: String,
    /// Line that the file gets.
    pub line: String,
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewKey").finish_non_exhaustive()
    }
}

impl NewKey {
    /// Makes a random key of 256 bits; no catalogs are all of them.
    ///
    /// # Errors
    /// When a name is none, there is no scope, or the system has no random numbers.
    pub fn make(name: &str, scopes: &[Scope], catalogs: &[String]) -> Result<Self, KeysError> {
        check_name("key", name).map_err(|error| KeysError::Key(error.to_string()))?;
        for catalog in catalogs.iter().filter(|name| *name != "*" || catalogs.len() > 1) {
            let rule = |error: LoadError| KeysError::Key(error.to_string());
            check_name("catalog", catalog).map_err(rule)?;
        }
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)
            .map_err(|error| KeysError::Key(format!("no random numbers: {error}")))?;
        let key = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
        let hash: String = Sha256::digest(&key).iter().map(|byte| format!("{byte:02x}")).collect();
        let scopes: Vec<String> = scopes.iter().map(Scope::to_string).collect();
        let catalogs = if catalogs.is_empty() { "*".to_owned() } else { catalogs.join(",") };
        let line = format!("{name} {} {catalogs} {hash}", scopes.join(","));
        Entry::parse(&line).map_err(KeysError::Key)?;
        Ok(Self { key, line })
    }

    /// Adds the line to a file of keys, which is made where there is none, for its owner alone.
    ///
    /// # Errors
    /// When a server would not read the file, or it cannot be written: it is as it was.
    pub fn add_to(&self, path: &Path) -> Result<(), KeysError> {
        let failed = |error| KeysError::Io { path: path.to_owned(), error };
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(failed)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        parse_keys(path, &text)?;
        let begin = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let before = file.metadata().map_err(failed)?.len();
        let written = file.write_all(format!("{begin}{}\n", self.line).as_bytes());
        written.and_then(|()| file.sync_all()).map_err(|error| {
            // A part of a line would be one that no server reads. Where that fails too, the first error says more.
            _ = file.set_len(before);
            failed(error)
        })
    }
}

/// The keys of a file's text.
fn parse_keys(path: &Path, text: &str) -> Result<Vec<Entry>, KeysError> {
    let mut entries = Vec::new();
    for (line, text) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        if text.trim().is_empty() || text.trim_start().starts_with('#') {
            continue;
        }
        let entry = Entry::parse(text);
        entries.push(entry.map_err(|rule| KeysError::Line {
            path: path.to_owned(),
            line,
            rule,
        })?);
    }
    Ok(entries)
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
    fn permits(&self, catalog: &str) -> bool {
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

/// A key of the file.
#[derive(Debug)]
struct Entry {
    name: String,
    hash: [u8; 32],
    grant: Arc<Grant>,
}

impl Entry {
    fn parse(line: &str) -> Result<Self, String> {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [name, scopes, catalogs, hash] = fields[..] else {
            return Err(format!(
                "{} fields, expected 4: name scope[,scope] catalogs sha256hex",
                fields.len()
            ));
        };
        check_name("key", name).map_err(|error| error.to_string())?;
        let scopes = scopes.split(',').map(Scope::from_str).collect::<Result<Vec<_>, _>>();
        let scopes = scopes.map_err(|error| error.to_string())?;
        let catalogs = match catalogs {
            "*" => None,
            names => {
                let names = names.split(',').map(|name| match check_name("catalog", name) {
                    Ok(()) => Ok(name.to_owned()),
                    Err(error) => Err(error.to_string()),
                });
                Some(names.collect::<Result<_, _>>()?)
            }
        };
        // Its text is not shown: it may be a key, put there by mistake.
        let hash = from_hex(hash).ok_or("the fourth field is no SHA-256: 64 hexadecimal digits")?;
        Ok(Self { name: name.to_owned(), hash, grant: Arc::new(Grant::Some { scopes, catalogs }) })
    }
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| (pair[at] as char).to_digit(16);
        *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
    }
    Some(bytes)
}

/// The keys of a server, as they were read last.
#[derive(Debug)]
pub(crate) struct Keys {
    path: Option<PathBuf>,
    entries: ArcSwap<Vec<Entry>>,
}

impl Keys {
    /// Reads the file; without one every request may do everything.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, KeysError> {
        let keys = Self { path: path.map(Path::to_owned), entries: ArcSwap::default() };
        keys.reload()?;
        Ok(keys)
    }

    /// Reads the file again; where it is unsound, the keys before stay. Returns the number of keys.
    pub(crate) fn reload(&self) -> Result<usize, KeysError> {
        let Some(path) = &self.path else { return Ok(0) };
        let text = std::fs::read_to_string(path)
            .map_err(|error| KeysError::Io { path: path.clone(), error })?;
        let entries = parse_keys(path, &text)?;
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        tracing::debug!(?names, "keys were read");
        let count = entries.len();
        self.entries.store(Arc::new(entries));
        Ok(count)
    }

    /// The permissions of a request, or the problem that it is answered with.
    async fn admit(&self, parts: &mut Parts) -> Result<Arc<Grant>, Problem> {
        if self.path.is_none() {
            return Ok(Arc::new(Grant::Everything));
        }
        // What is no route is answered as such.
        let route = parts.extensions.get::<MatchedPath>().map(|path| path.as_str().to_owned());
        let Some(route) = route else { return Ok(Arc::new(Grant::Nothing)) };
        let need = need(parts.method.as_str(), &route);
        if need == Some(Need::Nothing) {
            return Ok(Arc::new(Grant::Nothing));
        }
        let (name, grant) = self.find(parts).ok_or_else(|| {
            Problem::new(Kind::Unauthorised, "send a valid key: Authorization: Bearer <key>")
        })?;
        audit::note(|facts| facts.key = Some(name));
        match need {
            Some(Need::Nothing | Need::Key) => {}
            Some(Need::Scope(scope)) => match &*grant {
                Grant::Some { scopes, .. } if scopes.contains(&scope) => {}
                _ => {
                    let detail = format!("this needs a key with the scope {scope}");
                    return Err(Problem::new(Kind::Forbidden, detail));
                }
            },
            None if ROUTES.iter().any(|(_, path, _)| *path == route) => {
                return Err(Problem::new(
                    Kind::MethodNotAllowed,
                    format!(
                        "{} does not take {}; /openapi.json has what it takes",
                        parts.uri.path(),
                        parts.method
                    ),
                ));
            }
            None => return Err(Problem::new(Kind::Forbidden, "no key permits this")),
        }
        let params = RawPathParams::from_request_parts(parts, &()).await;
        let params = params.map_err(|error| {
            Problem::new(Kind::Invalid, format!("the path: {}", error.body_text()))
        })?;
        let catalog = params.iter().find(|(name, _)| *name == "c").map(|(_, value)| value);
        match catalog {
            Some(catalog) if !grant.permits(catalog) => Err(Problem::new(
                Kind::Forbidden,
                format!("the key does not permit catalog {catalog:?}"),
            )),
            _ => Ok(grant),
        }
    }

    /// The name and the permissions of the key that the request has. Every hash is compared, so that the time says nothing.
    fn find(&self, parts: &Parts) -> Option<(String, Arc<Grant>)> {
        let given = parts.headers.get(AUTHORIZATION).map_or(&b""[..], |value| value.as_bytes());
        let (scheme, key) = given.split_at_checked(7).unwrap_or((b"", b""));
        let is_bearer = scheme.eq_ignore_ascii_case(b"bearer ") && !key.is_empty();
        let hash: [u8; 32] = Sha256::digest(key).into();
        let mut found = None;
        for entry in &**self.entries.load() {
            if bool::from(entry.hash.ct_eq(&hash)) && is_bearer {
                found = Some((entry.name.clone(), Arc::clone(&entry.grant)));
            }
        }
        found
    }
}

/// Lets a request through by its key, and gives its permissions to the task.
pub(crate) async fn enforce(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    note_path(&mut parts).await;
    match app.keys.admit(&mut parts).await {
        Ok(grant) => CURRENT.scope(grant, next.run(Request::from_parts(parts, body))).await,
        Err(problem) => problem.into_response(),
    }
}

/// Notes what the path of a request names, for the log.
async fn note_path(parts: &mut Parts) {
    let Ok(params) = RawPathParams::from_request_parts(parts, &()).await else { return };
    for (name, value) in &params {
        match name {
            "c" => audit::note(|facts| facts.catalog = Some(value.to_owned())),
            "alias" => audit::note(|facts| facts.target = Some(value.to_owned())),
            "model" => audit::note(|facts| facts.model = Some(value.to_owned())),
            _ => {}
        }
    }
}

/// Need of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
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

/// Every route and what it needs. Where a path has the parameter `c`, the key must permit this catalog too; recommending checks the
/// catalog of its target, asking for text the name of the model.
const ROUTES: &[(&str, &str, Need)] = &[
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
fn need(method: &str, route: &str) -> Option<Need> {
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

    #[test]
    fn a_new_key_is_its_line() {
        let scopes = [Scope::Items, Scope::Recommend];
        let made = NewKey::make("feed", &scopes, &["a".into(), "b".into()]).unwrap();
        let entry = Entry::parse(&made.line).unwrap();
        let hash: [u8; 32] = Sha256::digest(&made.key).into();
        assert_eq!((entry.name.as_str(), entry.hash), ("feed", hash));
        let catalogs = Some(BTreeSet::from(["a".to_owned(), "b".to_owned()]));
        assert_eq!(*entry.grant, Grant::Some { scopes: scopes.to_vec(), catalogs });
        assert!(!format!("{made:?}").contains(&made.key));
        assert!(!made.line.contains(&made.key));
        assert_ne!(NewKey::make("feed", &scopes, &[]).unwrap().key, made.key);
        assert!(NewKey::make("a b", &scopes, &[]).is_err());
        assert!(NewKey::make("a", &[], &[]).is_err());
        assert!(NewKey::make("a", &scopes, &["x,*".into()]).is_err());
    }

    #[test]
    fn unsound_lines_name_the_rule_and_no_secret() {
        let digits = "0".repeat(64);
        for (line, word) in [
            ("a admin *".to_owned(), "3 fields"),
            (format!("a admin * {digits} x"), "5 fields"),
            (format!("a/b admin * {digits}"), "no name of a key"),
            (format!("a root * {digits}"), "recommend, items, admin and text"),
            (format!("a admin, * {digits}"), "unknown scope"),
            (format!("a admin a,,b {digits}"), "no name of a catalog"),
            ("a admin * secret".to_owned(), "64 hexadecimal digits"),
            (format!("a admin * é{}", "0".repeat(62)), "64 hexadecimal digits"),
        ] {
            let rule = Entry::parse(&line).unwrap_err();
            assert!(rule.contains(word), "{line}: {rule}");
            assert!(!rule.contains("secret"), "{rule}");
        }
    }
}
