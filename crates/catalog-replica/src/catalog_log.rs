//! The log of one catalog: frames in an order that all agree on, and bases to begin from.
//!
//! Objects below the catalog's folder, `catalogs/NAME/IDENTITY`; numbers have 20 digits, so that
//! names sort as numbers do:
//!
//! | | |
//! |---|---|
//! | `log/NUMBER` | a frame ([`crate::frame`]), named by the generation of its first entry. `log/0` begins the log and stands for generation 0 |
//! | `base/NUMBER.json` | a base: generation, schema, kept generations, and the files with their lengths and SHA-256. Made last, so that what it names is there |
//! | `files/NUMBER-ATTEMPT-NAME` | the files of bases |
//! | `claims/NUMBER` | somebody makes, or made, the base of this many entries |
//!
//! # Order
//! A frame is added by making the object whose name follows from the one before. One of those that
//! try makes it; the others read what is there and try the next. Whether a frame that is found is
//! one's own, after an answer that was lost, is told by its bytes.
//!
//! # Trimming
//! Frames that a base stands for are deleted, the oldest first, never the one that a base ends
//! with. A name that was deleted could be made again by somebody who slept meanwhile. So whoever
//! made a frame looks for the one before it, the **anchor**, afterwards: while that is there,
//! nothing after it was ever deleted. Where it is gone the frame is taken back, and nothing was
//! acknowledged.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use palmette_catalog_live::replica::{Base, BaseFiles};
use palmette_catalog_live::{LiveCatalog, Schema};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::document;
use crate::error::{Kind, LogError};
use crate::frame::{self, Frame, MAX_ENTRIES};
use crate::identity::Identity;
use crate::shared_log::SharedLog;

const BASE_VERSION: u32 = 1;
/// More bases than are ever there.
const MANY: usize = 10_000;
/// Bases beside the newest that stay, for those who are reading them.
const OLD_BASES: usize = 1;

/// A catalog's log.
#[derive(Clone, Debug)]
pub struct CatalogLog {
    store: Arc<dyn SharedLog>,
    folder: String,
    identity: Identity,
}

/// A place between two frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The generation of the last entry before.
    pub(crate) after: u64,
    /// Hash of the frame that ends there.
    pub(crate) previous: u64,
    /// Number of that frame: while it is there nothing that follows was trimmed.
    pub(crate) anchor: u64,
}

/// The end of an attempt to add a frame.
#[derive(Debug)]
pub(crate) enum Appended {
    Made,
    /// Another frame is in this place.
    Taken(Bytes),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BaseDocument {
    version: u32,
    identity: String,
    generation: u64,
    num_items: u64,
    schema: Schema,
    kept: Vec<KeptDocument>,
    files: Vec<StoredFile>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptDocument {
    generation: u64,
    name: Option<String>,
}

/// A file in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredFile {
    /// Name of the file where it is used.
    pub name: String,
    /// The object.
    pub object: String,
    /// Length in bytes.
    pub bytes: u64,
    /// SHA-256, in digits.
    pub sha256: String,
}

impl CatalogLog {
    /// The log of a catalog by its name and identity.
    pub fn new(store: Arc<dyn SharedLog>, name: &str, identity: Identity) -> Self {
        Self { store, folder: format!("catalogs/{name}/{identity}"), identity }
    }

    /// Begins the log of a new catalog, with a base of generation 0.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn begin(
        store: Arc<dyn SharedLog>,
        name: &str,
        base: &Base,
    ) -> Result<Self, LogError> {
        let log = Self::new(store, name, Identity::random()?);
        log.put_base(base).await?;
        let genesis = Frame {
            identity: log.identity,
            attempt: Identity::random()?,
            first: 0,
            previous: 0,
            entries: vec![Bytes::new()],
        };
        log.store.create(&log.frame_name(0), genesis.write()).await?;
        Ok(log)
    }

    /// Identity of the log.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// The store that has it.
    pub fn store(&self) -> &Arc<dyn SharedLog> {
        &self.store
    }

    pub(crate) fn log_folder(&self) -> String {
        format!("{}/log", self.folder)
    }

    fn frame_name(&self, number: u64) -> String {
        format!("{}/log/{}", self.folder, digits(number))
    }

    fn base_name(&self, generation: u64) -> String {
        format!("{}/base/{}.json", self.folder, digits(generation))
    }

    /// A name as messages show it.
    fn shown(&self, name: &str) -> String {
        format!("{}/{name}", self.store.address())
    }

    /// Adds a frame at a place.
    ///
    /// # Errors
    /// When the store does not answer: the frame may be there then, and the same call finds it.
    /// When the place was trimmed.
    pub(crate) async fn append(&self, at: &Position, bytes: &Bytes) -> Result<Appended, LogError> {
        let name = self.frame_name(at.after + 1);
        if !self.store.create(&name, bytes.clone()).await? {
            match self.store.read(&name).await? {
                Some(found) if found == *bytes => {}
                Some(found) => return Ok(Appended::Taken(found)),
                None => return Err(LogError::store(self.shown(&name), "it was trimmed meanwhile")),
            }
        }
        if !self.has_anchor(at).await? {
            self.store.delete(&name).await?;
            return Err(self.lost(at.after).await?);
        }
        Ok(Appended::Made)
    }

    /// True while nothing that follows a place was trimmed.
    pub(crate) async fn has_anchor(&self, at: &Position) -> Result<bool, LogError> {
        self.store.exists(&self.frame_name(at.anchor)).await
    }

    pub(crate) fn behind(&self, at: &Position) -> LogError {
        let object = self.shown(&self.frame_name(at.after + 1));
        Kind::Behind { object, generation: at.after }.into()
    }

    /// The frame that follows a place; `None` where there is none so far.
    pub(crate) async fn next(&self, at: &Position) -> Result<Option<(Frame, Position)>, LogError> {
        match self.store.read(&self.frame_name(at.after + 1)).await? {
            None => Ok(None),
            Some(bytes) => self.check(at, &bytes).map(Some),
        }
    }

    /// Frames after a place that are there, each with its number, as far as they were found; they
    /// are to be checked.
    pub(crate) async fn read_ahead(
        &self,
        at: &Position,
        most: usize,
    ) -> Result<Vec<(Bytes, u64)>, LogError> {
        // One look tells whether there are several.
        let Some(first) = self.store.read(&self.frame_name(at.after + 1)).await? else {
            return Ok(Vec::new());
        };
        let mut found = vec![(first, at.after + 1)];
        let names = self.store.names(&self.log_folder(), &digits(at.after + 1), most).await?;
        let reads = names.into_iter().filter_map(|name| {
            let number = name.parse::<u64>().ok()?;
            let store = Arc::clone(&self.store);
            let name = self.frame_name(number);
            Some(async move { Ok::<_, LogError>((store.read(&name).await?, number)) })
        });
        for read in futures_util::future::join_all(reads).await {
            let (Some(bytes), number) = read? else { break };
            found.push((bytes, number));
        }
        Ok(found)
    }

    /// Checks that a frame follows a place; returns it with the place after it.
    pub(crate) fn check(
        &self,
        at: &Position,
        bytes: &Bytes,
    ) -> Result<(Frame, Position), LogError> {
        let number = at.after + 1;
        let wrong = |problem: String| {
            let object = self.shown(&self.frame_name(number));
            LogError::damaged(object, format!("entry {number} cannot be applied: {problem}"))
        };
        let frame = self.read_frame(number, bytes)?;
        if frame.previous != at.previous {
            return Err(wrong(format!(
                "it follows another entry {} than the one that was applied here: the log was replaced by one of another history, or by an \
                 older copy that went on; restore the log that the replicas follow, or remove this replica's directory",
                at.after
            )));
        }
        let position =
            Position { after: frame.end() - 1, previous: frame::hash(bytes), anchor: number };
        Ok((frame, position))
    }

    /// Reads the frame of a number, of this log.
    fn read_frame(&self, number: u64, bytes: &Bytes) -> Result<Frame, LogError> {
        let wrong = |problem: String| {
            let object = self.shown(&self.frame_name(number));
            LogError::damaged(object, format!("entry {number} cannot be applied: {problem}"))
        };
        let frame = Frame::read(bytes)
            .map_err(|problem| wrong(format!("{problem}; restore the object from a copy")))?;
        if frame.identity != self.identity {
            return Err(wrong(format!(
                "it is of the log {}, not of {}, which this replica follows: two logs were swapped or mixed; put it back",
                frame.identity, self.identity
            )));
        }
        if frame.first != number {
            return Err(wrong(format!(
                "it is entry {}, in the place of another; restore the object from a copy",
                frame.first
            )));
        }
        Ok(frame)
    }

    /// The place after an entry that was applied, and the entries after it that are in the same
    /// frame.
    ///
    /// # Errors
    /// When the log does not have the entry: it was trimmed, or it is not the log that was
    /// followed.
    pub(crate) async fn place_of(
        &self,
        generation: u64,
    ) -> Result<(Position, Vec<Bytes>), LogError> {
        let from = (generation + 1).saturating_sub(MAX_ENTRIES as u64);
        let after = from.checked_sub(1).map_or_else(String::new, digits);
        let names = self.store.names(&self.log_folder(), &after, MAX_ENTRIES + 1).await?;
        let numbers = names.iter().filter_map(|name| name.parse::<u64>().ok());
        let Some(number) = numbers.take_while(|&number| number <= generation).last() else {
            return Err(self.lost(generation).await?);
        };
        let Some(bytes) = self.store.read(&self.frame_name(number)).await? else {
            return Err(self.lost(generation).await?);
        };
        let frame = self.read_frame(number, &bytes)?;
        if frame.end() <= generation {
            return Err(self.lost(generation).await?);
        }
        let position =
            Position { after: frame.end() - 1, previous: frame::hash(&bytes), anchor: number };
        let left = frame.entries.into_iter().skip((generation + 1 - number) as usize);
        Ok((position, left.collect()))
    }

    /// The error of a log that does not have an entry that was applied here.
    async fn lost(&self, generation: u64) -> Result<LogError, LogError> {
        let object = self.shown(&self.frame_name(generation));
        if self.newest_base().await?.is_some_and(|newest| newest > generation) {
            return Ok(Kind::Behind { object, generation }.into());
        }
        Ok(LogError::damaged(
            object,
            format!(
                "the log does not have entry {generation}, which was applied here: it is another log, or was restored from an older copy; \
                 restore the newer one, or remove this replica's directory"
            ),
        ))
    }

    /// Looks, where no frame follows a place, for the reason: the end of the log, or a gap.
    ///
    /// # Errors
    /// When frames are missing, because they were trimmed or lost.
    pub(crate) async fn check_end(&self, at: &Position) -> Result<(), LogError> {
        let names = self.store.names(&self.log_folder(), &digits(at.after), 1).await?;
        let next = at.after + 1;
        let Some(later) = names.first() else {
            return match self.has_anchor(at).await? {
                true => Ok(()),
                false => Err(self.lost(at.after).await?),
            };
        };
        if *later == digits(next) || self.store.exists(&self.frame_name(next)).await? {
            return Ok(());
        }
        if self.newest_base().await?.is_some_and(|newest| newest > at.after) {
            return Err(self.behind(at));
        }
        Err(LogError::damaged(
            self.shown(&self.frame_name(next)),
            format!(
                "entry {next} is missing, and {} is there: the log has a gap; restore the object from a copy",
                later.trim_start_matches('0')
            ),
        ))
    }

    /// The generation of the newest base.
    pub(crate) async fn newest_base(&self) -> Result<Option<u64>, LogError> {
        Ok(self.bases().await?.last().copied())
    }

    /// Generations of the bases, ascending.
    async fn bases(&self) -> Result<Vec<u64>, LogError> {
        let names = self.store.names(&format!("{}/base", self.folder), "", MANY).await?;
        let number = |name: &String| name.strip_suffix(".json")?.parse().ok();
        Ok(names.iter().filter_map(number).collect())
    }

    async fn base_document(&self, generation: u64) -> Result<Option<BaseDocument>, LogError> {
        let name = self.base_name(generation);
        let Some(bytes) = self.store.read(&name).await? else { return Ok(None) };
        let wrong = |problem: String| LogError::damaged(self.shown(&name), problem);
        let document: BaseDocument = document::read(&bytes)
            .map_err(|problem| wrong(format!("{problem}; delete the base, or restore it")))?;
        let BaseDocument { version, identity, generation: said, .. } = &document;
        if *version != BASE_VERSION {
            return Err(wrong(format!(
                "the base has version {version}; this program reads version {BASE_VERSION}"
            )));
        }
        if *identity != self.identity.to_string() {
            return Err(wrong(format!(
                "the base is of the log {identity}, not of {}, which this replica follows; delete it, or put it back",
                self.identity
            )));
        }
        if *said != generation {
            return Err(wrong(format!(
                "the base is of generation {said}, in the place of another; delete it"
            )));
        }
        Ok(Some(document))
    }

    /// Puts a base into the store, unless there is one of its generation. Those of its kept
    /// generations must be there.
    async fn put_base(&self, base: &Base) -> Result<(), LogError> {
        let dir = temporary()?;
        let names = base.write(dir.path())?;
        let attempt = Identity::random()?;
        let mut files = Vec::with_capacity(names.len());
        for name in names {
            let object =
                format!("{}/files/{}-{attempt}-{name}", self.folder, digits(base.generation()));
            files.push(put_file(&*self.store, &dir.path().join(name), name, object).await?);
        }
        let kept = base.kept.iter();
        let kept =
            kept.map(|kept| KeptDocument { generation: kept.generation, name: kept.name.clone() });
        let document = BaseDocument {
            version: BASE_VERSION,
            identity: self.identity.to_string(),
            generation: base.generation(),
            num_items: base.num_items(),
            schema: base.schema().clone(),
            kept: kept.collect(),
            files,
        };
        let name = self.base_name(base.generation());
        if !self.store.create(&name, document::write(&document)).await? {
            // Somebody else's stands; these files are nobody's.
            for file in &document.files {
                self.store.delete(&file.object).await?;
            }
        }
        Ok(())
    }

    /// True for one of those that ask: it makes the base of this number.
    pub(crate) async fn claim_base(&self, number: u64) -> Result<bool, LogError> {
        self.store.create(&self.claim_name(number), Bytes::from_static(b"claimed")).await
    }

    /// Leaves the base of a number to the next that asks.
    pub(crate) async fn give_back(&self, number: u64) -> Result<(), LogError> {
        self.store.delete(&self.claim_name(number)).await
    }

    fn claim_name(&self, number: u64) -> String {
        format!("{}/claims/{}", self.folder, digits(number))
    }

    /// Puts the base of a replica into the store, and those of its kept generations that are not
    /// there.
    pub(crate) async fn put_bases(&self, live: &LiveCatalog, base: &Base) -> Result<(), LogError> {
        for kept in &base.kept {
            if self.store.exists(&self.base_name(kept.generation)).await? {
                continue;
            }
            self.put_base(&live.base_of_kept(kept.generation)?).await?;
        }
        self.put_base(base).await
    }

    /// Fetches the newest base and those of its kept generations into a directory.
    pub(crate) async fn fetch_base(&self, dir: &Path) -> Result<BaseFiles, LogError> {
        let missing = |what: String| LogError::store(self.shown(&self.folder), what);
        // A base may be trimmed while it is fetched: then there is a newer one.
        let newest = self.newest_base().await?.ok_or_else(|| {
            missing("the log has no base to begin with; is it another store?".to_owned())
        })?;
        let gone = |generation| missing(format!("the base {generation} is gone; repeat"));
        let document = self.base_document(newest).await?.ok_or_else(|| gone(newest))?;
        let fetch = async |document: &BaseDocument| -> Result<PathBuf, LogError> {
            let to = dir.join(digits(document.generation));
            std::fs::create_dir_all(&to).map_err(|error| system(&to, &error))?;
            for file in &document.files {
                get_file(&*self.store, file, &to.join(&file.name)).await?;
            }
            Ok(to)
        };
        let mut kept = Vec::with_capacity(document.kept.len());
        for KeptDocument { generation, name } in &document.kept {
            let of_kept = self.base_document(*generation).await?;
            let of_kept = of_kept.ok_or_else(|| gone(*generation))?;
            kept.push((*generation, name.clone(), fetch(&of_kept).await?));
        }
        let to = fetch(&document).await?;
        Ok(BaseFiles { dir: to, generation: newest, schema: document.schema, kept })
    }

    /// Deletes the frames, bases and claims that nobody needs. Of the frames before the newest
    /// base, the last `retain` entries stay.
    pub(crate) async fn trim(&self, retain: u64) -> Result<(), LogError> {
        let bases = self.bases().await?;
        let Some(&newest) = bases.last() else { return Ok(()) };
        let Some(document) = self.base_document(newest).await? else { return Ok(()) };
        let first_kept = bases.len().saturating_sub(1 + OLD_BASES);
        let is_kept =
            |generation: &u64| document.kept.iter().any(|of| of.generation == *generation);
        let mut wanted: Vec<String> = Vec::new();
        for (at, generation) in bases.iter().enumerate() {
            if at < first_kept && !is_kept(generation) {
                self.store.delete(&self.base_name(*generation)).await?;
            } else if let Some(of) = self.base_document(*generation).await? {
                wanted.extend(of.files.into_iter().map(|file| file.object));
            }
        }
        // Files of newer bases may be of one that is being made.
        let folder = format!("{}/files", self.folder);
        let oldest_wanted = bases.get(first_kept).copied().unwrap_or(newest);
        for name in self.store.names(&folder, "", MANY).await? {
            let object = format!("{folder}/{name}");
            let of = name.split('-').next().and_then(|number| number.parse::<u64>().ok());
            if of.is_some_and(|of| of < oldest_wanted) && !wanted.contains(&object) {
                self.store.delete(&object).await?;
            }
        }
        // The oldest first: see the head of this file.
        let keep_from = newest.saturating_sub(retain);
        loop {
            let names = self.store.names(&self.log_folder(), "", 1000).await?;
            let numbers: Vec<u64> = names.iter().filter_map(|name| name.parse().ok()).collect();
            let old: Vec<u64> = numbers
                .windows(2)
                .take_while(|pair| pair[1] <= keep_from)
                .map(|pair| pair[0])
                .collect();
            for &number in &old {
                self.store.delete(&self.frame_name(number)).await?;
            }
            if old.len() + 1 < names.len() || names.len() < 1000 {
                return Ok(());
            }
        }
    }

    /// Deletes the claims before a number.
    pub(crate) async fn forget_claims(&self, before: u64) -> Result<(), LogError> {
        let folder = format!("{}/claims", self.folder);
        for name in self.store.names(&folder, "", MANY).await? {
            if name.parse::<u64>().is_ok_and(|number| number < before) {
                self.store.delete(&format!("{folder}/{name}")).await?;
            }
        }
        Ok(())
    }
}

/// A number as part of a name.
pub(crate) fn digits(number: u64) -> String {
    format!("{number:020}")
}

/// A directory for files on their way to a store.
pub(crate) fn temporary() -> Result<tempfile::TempDir, LogError> {
    tempfile::tempdir().map_err(|error| Kind::System(error.to_string()).into())
}

pub(crate) fn system(path: &Path, error: &dyn std::fmt::Display) -> LogError {
    Kind::System(format!("{}: {error}", path.display())).into()
}

/// Puts a file into a store, and says what is there then.
pub(crate) async fn put_file(
    store: &dyn SharedLog,
    path: &Path,
    name: &str,
    object: String,
) -> Result<StoredFile, LogError> {
    let (bytes, sha256) = length_and_hash(path)?;
    store.put_file(&object, path).await?;
    Ok(StoredFile { name: name.to_owned(), object, bytes, sha256 })
}

/// Fetches a file, and checks that it is the one that was put there.
pub(crate) async fn get_file(
    store: &dyn SharedLog,
    file: &StoredFile,
    to: &Path,
) -> Result<(), LogError> {
    let object = format!("{}/{}", store.address(), file.object);
    if !store.get_file(&file.object, to).await? {
        return Err(LogError::store(object, "it is gone; was it deleted by hand?"));
    }
    let (bytes, sha256) = length_and_hash(to)?;
    if (bytes, &sha256) != (file.bytes, &file.sha256) {
        return Err(LogError::damaged(
            object,
            format!(
                "it has {bytes} bytes with the hash {sha256}, and was put there with {} and {}: it is damaged; restore it from a copy",
                file.bytes, file.sha256
            ),
        ));
    }
    Ok(())
}

fn length_and_hash(path: &Path) -> Result<(u64, String), LogError> {
    let hash = || -> std::io::Result<(u64, String)> {
        let (mut file, mut hash) = (File::open(path)?, Sha256::new());
        let (mut piece, mut length) = (vec![0; 256 << 10], 0);
        loop {
            match file.read(&mut piece)? {
                0 => break,
                n => {
                    hash.update(&piece[..n]);
                    length += n as u64;
                }
            }
        }
        Ok((length, hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
    };
    hash().map_err(|error| system(path, &error))
}

#[cfg(test)]
mod tests {
    use palmette_catalog_live::{LiveCatalog, LiveOptions};

    use super::*;
    use crate::memory::MemoryLog;

    fn frame(log: &CatalogLog, at: &Position, entries: usize) -> Bytes {
        let frame = Frame {
            identity: log.identity,
            attempt: Identity::random().unwrap(),
            first: at.after + 1,
            previous: at.previous,
            entries: vec![Bytes::from_static(b"entry"); entries],
        };
        frame.write()
    }

    /// A log with frames of three entries each, and the places after them.
    async fn log(store: &Arc<MemoryLog>, frames: usize) -> (CatalogLog, Vec<Position>) {
        let dir = tempfile::tempdir().unwrap();
        let live =
            LiveCatalog::create_with(dir.path(), None, None, LiveOptions::default()).unwrap();
        let store = Arc::clone(store) as Arc<dyn SharedLog>;
        let log = CatalogLog::begin(store, "x", &Base::initial(live.snapshot())).await.unwrap();
        let mut places = vec![log.place_of(0).await.unwrap().0];
        for _ in 0..frames {
            let at = places[places.len() - 1];
            let bytes = frame(&log, &at, 3);
            assert!(matches!(log.append(&at, &bytes).await, Ok(Appended::Made)));
            // Again, as if the answer had been lost.
            assert!(matches!(log.append(&at, &bytes).await, Ok(Appended::Made)));
            places.push(log.next(&at).await.unwrap().unwrap().1);
        }
        (log, places)
    }

    #[tokio::test]
    async fn one_frame_is_in_a_place() {
        let store = Arc::new(MemoryLog::default());
        let (log, places) = log(&store, 2).await;
        let theirs = store.read(&log.frame_name(1)).await.unwrap().unwrap();
        let taken = log.append(&places[0], &frame(&log, &places[0], 1)).await;
        assert!(matches!(taken, Ok(Appended::Taken(found)) if found == theirs));
        for (generation, place, left) in [(3, 1, 0), (4, 2, 2), (5, 2, 1), (6, 2, 0)] {
            let (found, entries) = log.place_of(generation).await.unwrap();
            assert_eq!((found, entries.len()), (places[place], left), "{generation}");
        }
        assert!(log.place_of(7).await.is_err());
        assert_eq!(log.read_ahead(&places[0], 8).await.unwrap().len(), 2);
    }

    /// Trimmed frames are not made again, though their names are free.
    #[tokio::test]
    async fn nothing_is_added_to_what_was_trimmed() {
        let store = Arc::new(MemoryLog::default());
        let (log, places) = log(&store, 4).await;
        for number in [0, 1, 4] {
            store.delete(&log.frame_name(number)).await.unwrap();
        }
        store.objects().insert(log.base_name(9), Bytes::new());
        let error = log.append(&places[1], &frame(&log, &places[1], 1)).await.unwrap_err();
        assert!(error.is_behind(), "{error}");
        assert!(!store.exists(&log.frame_name(4)).await.unwrap());
        assert!(log.check_end(&places[1]).await.unwrap_err().is_behind());
        assert!(log.place_of(3).await.unwrap_err().is_behind());
        assert!(log.check_end(&places[4]).await.is_ok());
    }

    #[tokio::test]
    async fn trimming_leaves_what_a_base_ends_with() {
        let store = Arc::new(MemoryLog::default());
        let (log, places) = log(&store, 6).await;
        let base = store.objects()[&log.base_name(0)].clone();
        let mut document: BaseDocument = document::read(&base).unwrap();
        for generation in [3, 9, 12] {
            document.generation = generation;
            store.objects().insert(log.base_name(generation), document::write(&document));
        }
        let numbers = async || {
            let names = store.names(&log.log_folder(), "", 100).await.unwrap();
            names.iter().map(|name| name.parse().unwrap()).collect::<Vec<u64>>()
        };
        log.trim(6).await.unwrap();
        assert_eq!(numbers().await, [4, 7, 10, 13, 16]);
        assert_eq!(log.bases().await.unwrap(), [9, 12]);
        log.trim(0).await.unwrap();
        // The last of it is the frame with generation 12, from which whoever begins there goes on.
        assert_eq!(numbers().await, [10, 13, 16]);
        assert_eq!(log.place_of(12).await.unwrap().0, places[4]);
        assert!(log.has_anchor(&places[4]).await.unwrap());
        assert!(!log.has_anchor(&places[3]).await.unwrap());
    }
}
