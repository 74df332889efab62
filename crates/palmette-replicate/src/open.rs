//! Addresses of shared logs.

use std::path::Path;
use std::sync::Arc;

use crate::directory::DirectoryLog;
use crate::error::LogError;
use crate::shared_log::SharedLog;

/// Opens the store at an address: `file://DIRECTORY`, and with the features of those names `s3://BUCKET/PREFIX` (`aws`),
/// `gs://BUCKET/PREFIX` (`gcp`), `az://CONTAINER/PREFIX` (`azure`), `postgres://USER@HOST/DATABASE` (`postgres`).
///
/// # Errors
/// When it is no such address, this program was built without what it takes, or the store cannot be reached.
pub async fn open(address: &str) -> Result<Arc<dyn SharedLog>, LogError> {
    let wrong = |problem: &str| Err(LogError::address(shown(address), problem));
    match address.split_once("://") {
        Some(("file", path)) if !path.is_empty() => {
            Ok(Arc::new(DirectoryLog::open(Path::new(path))?))
        }
        Some(("file", _)) => wrong("it names no directory"),
        Some((scheme @ ("s3" | "gs" | "az"), _)) => open_objects(scheme, address),
        Some(("postgres" | "postgresql", _)) => open_postgres(address).await,
        _ => wrong("it is no address of a log"),
    }
}

#[cfg(any(feature = "aws", feature = "gcp", feature = "azure"))]
fn open_objects(scheme: &str, address: &str) -> Result<Arc<dyn SharedLog>, LogError> {
    Ok(Arc::new(crate::objects::ObjectLog::open(scheme, address)?))
}

#[cfg(not(any(feature = "aws", feature = "gcp", feature = "azure")))]
fn open_objects(scheme: &str, address: &str) -> Result<Arc<dyn SharedLog>, LogError> {
    Err(left_out(scheme, address))
}

#[cfg(feature = "postgres")]
async fn open_postgres(address: &str) -> Result<Arc<dyn SharedLog>, LogError> {
    Ok(Arc::new(crate::postgres::PostgresLog::open(address).await?))
}

#[cfg(not(feature = "postgres"))]
async fn open_postgres(address: &str) -> Result<Arc<dyn SharedLog>, LogError> {
    Err(left_out("postgres", address))
}

/// The error of a kind of store that this program was built without.
#[allow(dead_code, reason = "builds with every feature leave nothing out")]
pub(crate) fn left_out(scheme: &str, address: &str) -> LogError {
    let feature = match scheme {
        "s3" => "aws",
        "gs" => "gcp",
        "az" => "azure",
        other => other,
    };
    let problem = format!("this program was built without it; build it with --features {feature}");
    LogError::address(shown(address), problem)
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
