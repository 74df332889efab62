//! Keys: permissions of clients, by scope and catalog.
//!
//! The file has a key a line, `name scope[,scope] catalogs sha256hex`: scopes are `recommend`,
//! `items`, `admin` and `text`, none of which includes another; catalogs are `*` or names with
//! commas, of text models too; the last is the SHA-256 of the key in hexadecimal digits. Blank
//! lines and lines that begin with `#` mean nothing. Keys of one name are one client's: a new one
//! is added, the client takes it, and the old one goes. A key comes as `Authorization: Bearer …`.
//! Hashes are compared in constant time, and neither keys nor hashes are logged.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::name::{InvalidName, check_name};
use super::permissions::{Grant, Scope};

/// Beginning of keys that are made here: what leaks is recognised.
const PREFIX: &str = "pal_";

/// A file of keys that cannot be read, or a key that cannot be made. No key or hash stands in the
/// message.
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
            let rule = |error: InvalidName| KeysError::Key(error.to_string());
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
            // A part of a line would be one that no server reads. Where that fails too, the first
            // error says more.
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

    /// True where requests need keys.
    pub(crate) fn are_needed(&self) -> bool {
        self.path.is_some()
    }

    /// Name and permissions of the key in the bytes of an `Authorization` header.
    ///
    /// Every hash is compared, so that the time says nothing.
    pub(crate) fn find(&self, given: &[u8]) -> Option<(String, Arc<Grant>)> {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

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
