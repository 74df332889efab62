//! Exported catalogs: a file that downloads read, and its hash.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use palmette_catalog_live::CatalogView;
use sha2::{Digest, Sha256};
use tempfile::TempPath;

use super::catalog_files::EXPORT;
use crate::problem::{Kind, Problem};

/// Bytes that are hashed at once.
const PIECE: usize = 256 << 10;

/// A catalog in a file, for downloads.
#[derive(Debug)]
pub(crate) struct Exported {
    pub(crate) generation: Option<u64>,
    pub(crate) path: TempPath,
    pub(crate) len: u64,
    /// SHA-256 of the file, in quotes.
    pub(crate) tag: String,
}

impl Exported {
    /// Writes the items of a view to a hidden file of a folder.
    pub(crate) fn make(view: &CatalogView, dir: &Path) -> Result<Self, Problem> {
        let system = |error: &dyn std::fmt::Display| {
            tracing::error!(%error, "a catalog was not exported");
            Problem::new(Kind::Unavailable, format!("the export failed: {error}")).retry_after(1000)
        };
        std::fs::create_dir_all(dir).map_err(|error| system(&error))?;
        let file = tempfile::Builder::new().prefix(EXPORT).tempfile_in(dir);
        let path = file.map_err(|error| system(&error))?.into_temp_path();
        let written = match view {
            CatalogView::Frozen(filters) => filters.catalog().save(&path),
            CatalogView::Snapshot(snapshot) => {
                snapshot.to_catalog(|| {}).map_err(|error| system(&error))?.save(&path)
            }
        };
        written.map_err(|error| system(&error))?;
        let mut hash = Sha256::new();
        let mut file = File::open(&path).map_err(|error| system(&error))?;
        let mut piece = vec![0; PIECE];
        let mut len = 0;
        loop {
            match file.read(&mut piece).map_err(|error| system(&error))? {
                0 => break,
                n => {
                    hash.update(&piece[..n]);
                    len += n as u64;
                }
            }
        }
        let digits: String =
            hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { generation: view.generation(), path, len, tag: format!("\"{digits}\"") })
    }
}
