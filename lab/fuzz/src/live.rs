//! A small live catalog in a directory, and changes to its files.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use palmette_catalog_live::{
    LiveCatalog, LiveOptions, LiveReader, MergePolicy, ReaderOptions, SyncPolicy, Update,
};
use serde_json::{Value, json};

use crate::start::row_id;

/// The directory, and the contents of its files when they are sound.
#[derive(Debug)]
pub struct LiveDirectory {
    path: PathBuf,
    files: Vec<(PathBuf, Vec<u8>)>,
}

fn options() -> LiveOptions {
    LiveOptions {
        sync: SyncPolicy::Never,
        merging: MergePolicy::Never,
        memory_items: 4,
        checkpoint_bytes: u64::MAX,
        checkpoint_items: u64::MAX,
        ..LiveOptions::default()
    }
}

impl LiveDirectory {
    /// The directory of this process.
    pub fn get() -> &'static Self {
        static DIRECTORY: OnceLock<LiveDirectory> = OnceLock::new();
        DIRECTORY.get_or_init(|| {
            let path = std::env::temp_dir().join(format!("palmette-fuzz-{}", std::process::id()));
            _ = std::fs::remove_dir_all(&path);
            make(&path);
            let mut directory = Self { path, files: Vec::new() };
            let mut names: Vec<PathBuf> = directory.names().collect();
            names.sort();
            for name in names {
                let bytes = std::fs::read(&name).expect("it was written");
                directory.files.push((name, bytes));
            }
            directory
        })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn names(&self) -> impl Iterator<Item = PathBuf> {
        std::fs::read_dir(&self.path)
            .expect("it was made")
            .map(|entry| entry.expect("readable").path())
    }

    fn file(&self, prefix: &str) -> (&Path, &[u8]) {
        let is = |path: &Path| {
            path.file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.starts_with(prefix))
        };
        let (path, bytes) =
            self.files.iter().find(|(path, _)| is(path)).expect("all kinds are there");
        (path, bytes)
    }

    /// Appends a record to the log, with the generation that comes next and its checksum.
    pub fn append_entry(&self, entry: &[u8]) {
        let (path, bytes) = self.file("wal-");
        let mut at = 64;
        let mut generation = u64::from_le_bytes(bytes[16..24].try_into().expect("8 bytes"));
        while at < bytes.len() {
            let len = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
            (at, generation) = (at + 16 + len as usize, generation + 1);
        }
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&generation.to_le_bytes());
        hasher.update(entry);
        let mut log = bytes.to_vec();
        log.extend_from_slice(&(entry.len() as u32).to_le_bytes());
        log.extend_from_slice(&hasher.finalize().to_le_bytes());
        log.extend_from_slice(&generation.to_le_bytes());
        log.extend_from_slice(entry);
        std::fs::write(path, log).expect("room");
    }

    /// Puts JSON in the place of one member of the manifest, with the checksum that this makes:
    /// `member` and a colon, then the value.
    pub fn replace_manifest(&self, text: &[u8]) {
        let (path, bytes) = self.file("manifest-");
        let mut checked: Value = serde_json::from_slice(bytes).expect("it is sound");
        let Ok(text) = std::str::from_utf8(text) else { return };
        let Some((pointer, value)) = text.split_once(':') else { return };
        let Ok(value) = serde_json::from_str(value) else { return };
        let Some(place) = checked["manifest"].pointer_mut(pointer) else { return };
        *place = value;
        let manifest = serde_json::to_vec(&checked["manifest"]).expect("JSON");
        checked["checksum"] = crc32fast::hash(&manifest).into();
        std::fs::write(path, checked.to_string()).expect("room");
    }

    /// Changes bytes of a file, named by the first byte: three bytes each, a place and what is put
    /// there.
    pub fn change_bytes(&self, data: &[u8]) {
        let Some((&file, changes)) = data.split_first() else { return };
        let (path, bytes) = &self.files[file as usize % self.files.len()];
        let mut changed = bytes.clone();
        for change in changes.chunks_exact(3) {
            let place = usize::from(u16::from_le_bytes([change[0], change[1]]));
            if let Some(byte) = changed.get_mut(place) {
                *byte = change[2];
            }
        }
        std::fs::write(path, changed).expect("room");
    }

    /// Puts all files back.
    pub fn restore(&self) {
        for name in self.names() {
            if !self.files.iter().any(|(file, _)| *file == name) {
                std::fs::remove_file(name).expect("it is there");
            }
        }
        for (path, bytes) in &self.files {
            std::fs::write(path, bytes).expect("room");
        }
    }
}

fn make(path: &Path) {
    let live = LiveCatalog::create_with(path, None, None, options()).expect("a new folder");
    let upsert = |number: usize| {
        let codes = vec![number as u32 % 3, number as u32 % 5];
        let attributes = json!({"price": number, "brand": format!("b{}", number % 2)});
        let attributes = attributes.as_object().expect("an object").clone();
        Update::Upsert(palmette_catalog::Item { id: row_id(number), codes, attributes })
    };
    for first in [0, 3, 6, 9] {
        let mut batch: Vec<Update> = (first..first + 5).map(upsert).collect();
        batch.push(Update::Delete(row_id(first)));
        live.apply(&batch).expect("sound");
    }
    live.keep(Some("kept")).expect("room");
    live.apply(&[upsert(20), Update::Delete(row_id(4))]).expect("sound");
    live.checkpoint().expect("room");
    live.apply(&[upsert(21)]).expect("sound");
}

/// Opens a directory by a reader and by a writer, and asks both for everything.
pub fn ask_live(path: &Path) {
    let reader_options = ReaderOptions { poll: None, ..ReaderOptions::default() };
    let read = LiveReader::open_with(path, reader_options).map(|reader| {
        let snapshot = reader.snapshot();
        _ = reader.generation("kept");
        let mut items: Vec<_> = snapshot.items().map(|at| snapshot.item(at)).collect();
        items.sort_by(|a, b| a.id.cmp(&b.id));
        items
    });
    let Ok(live) = LiveCatalog::open_with(path, options()) else { return };
    live.merge_all().expect("what was opened is sound");
    let snapshot = live.snapshot();
    let mut items: Vec<_> = snapshot.items().map(|at| snapshot.item(at)).collect();
    items.sort_by(|a, b| a.id.cmp(&b.id));
    // A torn end is cut off by a writer; a reader waits for the rest of it. Both see what is whole.
    assert_eq!(read.ok().as_ref(), Some(&items));
}
