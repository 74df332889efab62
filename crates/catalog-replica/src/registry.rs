//! The table of models, catalogs and targets that all processes of one log have.
//!
//! Each version is one object, `registry/NUMBER.json`, whole: the newest counts, and the next is
//! made by one of those that try. An alias points at a pair of model and catalog, so that a new
//! model with a catalog of its semantic IDs goes live everywhere by one version, and back by
//! another. The files of a model are objects `models/NAME/HASH/…`.

use std::collections::BTreeMap;
use std::path::{Component, Path};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::catalog_log::{StoredFile, digits, get_file, put_file, system};
use crate::document;
use crate::error::{Kind, LogError};
use crate::identity::Identity;
use crate::shared_log::SharedLog;

const VERSION: u32 = 1;
const FOLDER: &str = "registry";
/// Versions that stay, for processes that slept.
const KEPT_VERSIONS: u64 = 1000;
/// Attempts at a version while others make theirs.
const MAX_TRIES: usize = 100;

/// Models, catalogs and targets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registry {
    /// Models by name.
    pub models: BTreeMap<String, ModelFiles>,
    /// The identity of each catalog's log.
    pub catalogs: BTreeMap<String, String>,
    /// Model and catalog of each alias.
    pub targets: BTreeMap<String, (String, String)>,
    /// Alias of the target that requests ask for which name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_target: Option<String>,
}

/// The files of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFiles {
    /// Hash of their names and contents.
    pub hash: String,
    /// In the order of their names.
    pub files: Vec<StoredFile>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Version {
    version: u32,
    /// Identity of the whole log, the same in all versions.
    cluster: String,
    number: u64,
    /// Tells versions of several writers apart.
    attempt: String,
    registry: Registry,
}

/// Versions of the table in a store.
#[derive(Debug)]
pub struct RegistryLog {
    store: Arc<dyn SharedLog>,
    known: Mutex<Option<Arc<Version>>>,
}

impl RegistryLog {
    /// The table of a store.
    pub fn new(store: Arc<dyn SharedLog>) -> Self {
        Self { store, known: Mutex::default() }
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn SharedLog> {
        &self.store
    }

    /// Identity of the whole log: of all that is in the store. It is made with the first version.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn cluster(&self) -> Result<String, LogError> {
        loop {
            if let Some(version) = self.look().await? {
                return Ok(version.cluster.clone());
            }
            let cluster = Identity::random()?.to_string();
            self.make(cluster, 1, Registry::default()).await?;
        }
    }

    /// The newest version, and its number.
    ///
    /// # Errors
    /// When the store cannot be reached, or has the table of another log now.
    pub async fn newest(&self) -> Result<Option<(u64, Registry)>, LogError> {
        Ok(self.look().await?.map(|version| (version.number, version.registry.clone())))
    }

    /// Makes a version by a function over the newest; none where it changes nothing. Judged anew
    /// where another process was first.
    ///
    /// # Errors
    /// Those of the function, and when the store cannot be reached.
    pub async fn change<E: From<LogError>>(
        &self,
        mut change: impl FnMut(&mut Registry) -> Result<(), E>,
    ) -> Result<(u64, Registry), E> {
        self.cluster().await?;
        for _ in 0..MAX_TRIES {
            let Some(now) = self.look().await? else { break };
            let mut registry = now.registry.clone();
            change(&mut registry)?;
            if registry == now.registry {
                return Ok((now.number, registry));
            }
            let number = now.number + 1;
            if self.make(now.cluster.clone(), number, registry.clone()).await? {
                self.trim(number).await?;
                return Ok((number, registry));
            }
        }
        Err(LogError::store(self.store.address(), "others change the table all the time").into())
    }

    /// Waits until there may be a new version.
    pub async fn wait(&self, most: Duration) {
        self.store.wait(FOLDER, most).await;
    }

    fn name(number: u64) -> String {
        format!("{FOLDER}/{}.json", digits(number))
    }

    fn known(&self) -> Option<Arc<Version>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn look(&self) -> Result<Option<Arc<Version>>, LogError> {
        loop {
            let known = self.known();
            let after = known
                .as_ref()
                .map_or_else(String::new, |known| format!("{}.json", digits(known.number)));
            let names = self.store.names(FOLDER, &after, KEPT_VERSIONS as usize * 2).await?;
            let Some(newest) = names.iter().rfind(|name| name.ends_with(".json")) else {
                return match &known {
                    Some(known) if !self.store.exists(&Self::name(known.number)).await? => {
                        Err(LogError::damaged(
                            self.shown(&Self::name(known.number)),
                            "the table of targets is gone that is served here: the store is another, or was restored from an older copy",
                        ))
                    }
                    _ => Ok(known),
                };
            };
            let name = format!("{FOLDER}/{newest}");
            // It may have been trimmed meanwhile, where many newer ones came.
            let Some(bytes) = self.store.read(&name).await? else { continue };
            let wrong = |problem: String| LogError::damaged(self.shown(&name), problem);
            let version: Version = document::read(&bytes).map_err(|problem| {
                wrong(format!("the table of targets is damaged: {problem}; restore it from a copy"))
            })?;
            if version.version != VERSION {
                let found = version.version;
                return Err(wrong(format!(
                    "the table of targets has version {found}; this program reads version {VERSION}"
                )));
            }
            if let Some(known) = &known
                && known.cluster != version.cluster
            {
                return Err(wrong(format!(
                    "the table of targets is of the log {}, not of {}, which is followed here: two logs were swapped; put it back",
                    version.cluster, known.cluster
                )));
            }
            let version = Arc::new(version);
            *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&version));
            return Ok(Some(version));
        }
    }

    fn shown(&self, name: &str) -> String {
        format!("{}/{name}", self.store.address())
    }

    /// Makes a version, if nobody else does.
    async fn make(
        &self,
        cluster: String,
        number: u64,
        registry: Registry,
    ) -> Result<bool, LogError> {
        let attempt = Identity::random()?.to_string();
        let bytes =
            document::write(&Version { version: VERSION, cluster, number, attempt, registry });
        let name = Self::name(number);
        let mut tries = 0;
        let is_made = loop {
            match self.store.create(&name, bytes.clone()).await {
                Ok(true) => break true,
                // An answer before may have been lost.
                Ok(false) => {
                    break self.store.read(&name).await?.is_some_and(|found| found == bytes);
                }
                Err(error) if error.is_unreachable() && tries < 5 => {
                    tries += 1;
                    tokio::time::sleep(Duration::from_millis(100 << tries)).await;
                }
                Err(error) => return Err(error),
            }
        };
        // As for frames: what follows one that is there was never trimmed.
        if is_made && number > 1 && !self.store.exists(&Self::name(number - 1)).await? {
            self.store.delete(&name).await?;
            return Ok(false);
        }
        Ok(is_made)
    }

    async fn trim(&self, newest: u64) -> Result<(), LogError> {
        let Some(before) = newest.checked_sub(KEPT_VERSIONS) else { return Ok(()) };
        for name in self.store.names(FOLDER, "", 100).await? {
            if name.trim_end_matches(".json").parse::<u64>().is_ok_and(|number| number < before) {
                self.store.delete(&format!("{FOLDER}/{name}")).await?;
            }
        }
        Ok(())
    }

    /// Puts the files of a model's directory into the store; they are to be named in the table
    /// then.
    ///
    /// # Errors
    /// When the directory cannot be read or the store not be written.
    pub async fn put_model(&self, name: &str, dir: &Path) -> Result<ModelFiles, LogError> {
        let (hash, paths) = hash_of_model(dir)?;
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            let object = format!("models/{name}/{hash}/{path}");
            files.push(put_file(&*self.store, &dir.join(&path), &path, object).await?);
        }
        Ok(ModelFiles { hash, files })
    }

    /// Fetches the files of a model into a directory, which is made.
    ///
    /// # Errors
    /// When one is missing or damaged.
    pub async fn fetch_model(&self, model: &ModelFiles, to: &Path) -> Result<(), LogError> {
        let parent = to.parent().unwrap_or(to);
        std::fs::create_dir_all(parent).map_err(|error| system(parent, &error))?;
        let making = tempfile::Builder::new().prefix(".model-").tempdir_in(parent);
        let making = making.map_err(|error| system(parent, &error))?;
        for file in &model.files {
            let is_below =
                Path::new(&file.name).components().all(|part| matches!(part, Component::Normal(_)));
            if !is_below {
                let problem = "its name leads out of the model's directory";
                return Err(LogError::damaged(self.shown(&file.object), problem));
            }
            let path = making.path().join(&file.name);
            get_file(&*self.store, file, &path).await?;
            std::fs::File::open(&path)
                .and_then(|file| file.sync_all())
                .map_err(|error| system(&path, &error))?;
        }
        std::fs::rename(making.keep(), to).map_err(|error| system(to, &error))
    }
}

/// The hash of a model's directory, and the names of its files, in order. Only files directly in it
/// are a model's.
pub(crate) fn hash_of_model(dir: &Path) -> Result<(String, Vec<String>), LogError> {
    let read = || -> std::io::Result<(String, Vec<String>)> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let name = entry.file_name().into_string().unwrap_or_default();
            // A link to a file is one.
            if !name.starts_with('.') && entry.path().is_file() {
                names.push(name);
            }
        }
        names.sort_unstable();
        let mut hash = Sha256::new();
        for name in &names {
            let bytes = std::fs::read(dir.join(name))?;
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name.as_bytes());
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(&bytes);
        }
        let digits = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Ok((digits, names))
    };
    let (hash, names) = read().map_err(|error| system(dir, &error))?;
    match names.is_empty() {
        true => {
            Err(Kind::Refused(format!("{}: the directory of a model has no files", dir.display()))
                .into())
        }
        false => Ok((hash, names)),
    }
}
