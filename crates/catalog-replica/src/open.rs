//! Addresses of shared logs.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::directory::DirectoryLog;
use crate::error::LogError;
use crate::shared_log::SharedLog;

/// Opens a store by its address.
pub type OpenHome = fn(&str) -> Result<Arc<dyn SharedLog>, LogError>;

/// Homes that the program brings along, by the scheme of their addresses.
static HOMES: Mutex<Vec<(&str, OpenHome)>> = Mutex::new(Vec::new());

/// Adds a kind of store to those that [`open`] knows, by the scheme of its addresses: `s3` for
/// `s3://…`. The function is called where there is a tokio runtime.
pub fn add_home(scheme: &'static str, open: OpenHome) {
    HOMES.lock().unwrap_or_else(PoisonError::into_inner).push((scheme, open));
}

fn added_home(scheme: &str) -> Option<OpenHome> {
    let homes = HOMES.lock().unwrap_or_else(PoisonError::into_inner);
    homes.iter().find(|(of, _)| *of == scheme).map(|&(_, open)| open)
}

/// Opens the store at an address: `file://DIRECTORY`, with the feature `postgres`
/// `postgres://USER@HOST/DATABASE`, and those that were [added](add_home).
///
/// # Errors
/// When it is no such address, this program was built without what it takes, or the store cannot be
/// reached.
pub async fn open(address: &str) -> Result<Arc<dyn SharedLog>, LogError> {
    let wrong = |problem: &str| Err(LogError::address(shown(address), problem));
    let scheme = address.split_once("://").map_or("", |(scheme, _)| scheme);
    if let Some(open) = added_home(scheme) {
        return open(address);
    }
    match address.split_once("://") {
        Some(("file", path)) if !path.is_empty() => {
            Ok(Arc::new(DirectoryLog::open(Path::new(path))?))
        }
        Some(("file", _)) => wrong("it names no directory"),
        Some(("s3" | "gs" | "az", _)) => wrong(
            "this program was built without the object stores of clouds; the program in clouds/ of the sources has them",
        ),
        Some(("postgres" | "postgresql", _)) => open_postgres(address).await,
        _ => wrong("it is no address of a log"),
    }
}

#[cfg(feature = "postgres")]
async fn open_postgres(address: &str) -> Result<Arc<dyn SharedLog>, LogError> {
    Ok(Arc::new(crate::postgres::PostgresLog::open(address).await?))
}

#[cfg(not(feature = "postgres"))]
async fn open_postgres(address: &str) -> Result<Arc<dyn SharedLog>, LogError> {
    let problem = "this program was built without it; build it with --features postgres";
    Err(LogError::address(shown(address), problem))
}

/// An address without what may be a password.
pub(crate) fn shown(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let path = path.split('?').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (address, wanted) in [
            ("postgres://me:secret@host:5/db?sslmode=x", "postgres://host:5/db"),
            ("s3://bucket/a/b", "s3://bucket/a/b"),
            ("file:///x", "file:///x"),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(shown(address), wanted);
        }
    }

    #[tokio::test]
    async fn wrong_addresses_say_what_is_right() {
        for address in ["", "x", "file://", "http://x/y", "ftp://x"] {
            let error = open(address).await.unwrap_err().to_string();
            assert!(error.contains("file://DIRECTORY"), "{error}");
        }
    }
}
