//! Tokens by which one text model spells the codes of catalogs, kept for each generation of them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use palmette_catalog::{CodeTokens, FilterCache};
use palmette_catalog_live::{CatalogView, Snapshot};
use palmette_recommend::FolderSpelling;

/// The tokens, or the reason why there are none.
type FoundTokens = Result<Arc<CodeTokens>, String>;

/// Tokens of a text model by the view of a catalog whose codes they spell.
///
/// Found when a question first names the codes of a view; who asks for the same meanwhile waits.
/// Not for a thread that others wait for. They are dropped with the view: what is kept does not
/// keep a generation in memory.
#[derive(Debug)]
pub(crate) struct KeptCodeTokens {
    /// The model's folder; `None` of one that is in memory alone.
    dir: Option<PathBuf>,
    num_tokens: usize,
    /// Reading of the folder, once it was asked for.
    spelling: OnceLock<Result<FolderSpelling, String>>,
    /// The view that was asked for last is the last.
    kept: Mutex<Vec<Entry>>,
}

#[derive(Clone, Debug)]
struct Entry {
    view: WeakView,
    tokens: Arc<OnceLock<FoundTokens>>,
}

/// View that keeps no generation in memory.
#[derive(Clone, Debug)]
enum WeakView {
    Frozen(Weak<FilterCache>),
    Snapshot(Weak<Snapshot>),
}

/// Views whose tokens are kept.
const MAX_VIEWS: usize = 32;

impl KeptCodeTokens {
    /// No tokens so far, of a model whose vocabulary has `num_tokens`.
    pub(crate) fn new(dir: Option<&Path>, num_tokens: usize) -> Self {
        let (dir, spelling, kept) = (dir.map(Path::to_owned), OnceLock::new(), Mutex::default());
        Self { dir, num_tokens, spelling, kept }
    }

    /// The tokens that spell the codes of a view.
    pub(crate) fn of(&self, view: &CatalogView) -> FoundTokens {
        let entry = self.entry(view);
        entry.tokens.get_or_init(|| self.find(view)).clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry(&self, view: &CatalogView) -> Entry {
        let mut kept = self.lock();
        kept.retain(|entry| !entry.view.is_gone());
        let entry = match kept.iter().position(|entry| entry.view.is(view)) {
            Some(place) => kept.remove(place),
            None => Entry { view: WeakView::new(view), tokens: Arc::default() },
        };
        if kept.len() == MAX_VIEWS {
            kept.remove(0);
        }
        kept.push(entry.clone());
        entry
    }

    fn find(&self, view: &CatalogView) -> FoundTokens {
        let Some(dir) = &self.dir else {
            return Err(
                "the model is in memory alone; load it from a folder, whose files name its tokens"
                    .to_owned(),
            );
        };
        let spelling = self
            .spelling
            .get_or_init(|| FolderSpelling::read(dir).map_err(|error| error.to_string()));
        let tokens = spelling.as_ref().map_err(String::clone)?;
        let tokens = tokens.code_tokens(view, self.num_tokens);
        let tokens = Arc::new(tokens.map_err(|error| error.to_string())?);
        // Most generations bring no code that the one before has not: one table is enough.
        let kept = self.lock();
        let mut known = kept.iter().filter_map(|entry| entry.tokens.get()?.as_ref().ok());
        Ok(known.find(|known| **known == tokens).map_or(tokens, Arc::clone))
    }
}

impl WeakView {
    fn new(view: &CatalogView) -> Self {
        match view {
            CatalogView::Frozen(of) => Self::Frozen(Arc::downgrade(of)),
            CatalogView::Snapshot(of) => Self::Snapshot(Arc::downgrade(of)),
        }
    }

    fn is(&self, view: &CatalogView) -> bool {
        match (self, view) {
            (Self::Frozen(weak), CatalogView::Frozen(of)) => weak.as_ptr() == Arc::as_ptr(of),
            (Self::Snapshot(weak), CatalogView::Snapshot(of)) => weak.as_ptr() == Arc::as_ptr(of),
            _ => false,
        }
    }

    fn is_gone(&self) -> bool {
        match self {
            Self::Frozen(weak) => weak.strong_count() == 0,
            Self::Snapshot(weak) => weak.strong_count() == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use palmette_catalog::{BuildOptions, Catalog, Item};
    use palmette_catalog_live::{LiveCatalog, LiveOptions, Update};
    use serde_json::json;

    use super::*;

    fn item(id: &str, codes: [u32; 2]) -> Item {
        Item { id: id.to_owned(), codes: codes.to_vec(), attributes: Default::default() }
    }

    /// A tokenizer with tokens `<a_0>` to `<a_3>` and `<b_0>` to `<b_3>` behind three letters.
    fn folder() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let names = ["a", "b"].map(|level| (0..4).map(move |code| format!("<{level}_{code}>")));
        let added = (3..).zip(names.into_iter().flatten()).map(|(id, name)| {
            json!({"id": id, "content": name, "special": false, "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false})
        });
        let model = json!({"type": "BPE", "vocab": {"x": 0, "y": 1, "z": 2}, "merges": []});
        let file =
            json!({"version": "1.0", "added_tokens": added.collect::<Vec<_>>(), "model": model});
        std::fs::write(dir.path().join("tokenizer.json"), file.to_string()).unwrap();
        dir
    }

    #[test]
    fn tokens_are_found_once_a_generation_and_dropped_with_it() {
        let (model, dir) = (folder(), tempfile::tempdir().unwrap());
        let items = vec![item("i", [0, 1]), item("j", [1, 2])];
        let options = BuildOptions { codes_per_level: Some(vec![5, 4]), ..BuildOptions::default() };
        let items = Catalog::build(items.into(), &options).unwrap();
        let live = LiveCatalog::create_with(dir.path(), Some(items), None, LiveOptions::default())
            .unwrap();
        let codes = KeptCodeTokens::new(Some(model.path()), 11);
        let first = codes.of(&live.view()).unwrap();
        assert_eq!(first.token(1, 2), Some(palmette_core::TokenId(9)));
        assert!(Arc::ptr_eq(&first, &codes.of(&live.view()).unwrap()));
        assert_eq!(codes.lock().len(), 1);
        // Another generation has an entry of its own and the same table; the old one's is gone with
        // it.
        let held = live.view();
        live.apply(&[Update::Upsert(item("k", [3, 3]))]).unwrap();
        assert!(Arc::ptr_eq(&first, &codes.of(&live.view()).unwrap()));
        assert_eq!(codes.lock().len(), 2);
        drop(held);
        live.apply(&[Update::Upsert(item("l", [4, 0]))]).unwrap();
        let error = codes.of(&live.view()).unwrap_err();
        assert!(error.contains("no token \"<a_4>\", which item \"l\" needs"), "{error}");
        assert_eq!(codes.lock().len(), 1);
        // However many there are.
        let views: Vec<CatalogView> = (0..40)
            .map(|_| {
                let one = vec![item("i", [0, 1])];
                Catalog::build(one.into(), &BuildOptions::default()).unwrap().into()
            })
            .collect();
        assert!(views.iter().all(|view| codes.of(view).as_ref() == Ok(&first)));
        assert_eq!(codes.lock().len(), MAX_VIEWS);
    }

    #[test]
    fn models_without_tokens_for_codes_say_so() {
        let one = Catalog::build(vec![item("i", [0, 1])].into(), &BuildOptions::default()).unwrap();
        let view = CatalogView::from(one);
        let error = KeptCodeTokens::new(None, 11).of(&view).unwrap_err();
        assert!(error.contains("in memory alone"), "{error}");
        let empty = tempfile::tempdir().unwrap();
        let error = KeptCodeTokens::new(Some(empty.path()), 11).of(&view).unwrap_err();
        assert!(error.contains("tokenizer.json"), "{error}");
    }
}
