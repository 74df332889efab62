//! `--catalog NAME=FILE`: the sets that a grammar leaves open, from catalogs, lexicons and lists of
//! values.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use clap::Args;
use palmette_bindings::SetSource;
use palmette_catalog::Catalog;
use palmette_catalog_members::CatalogFields;
use palmette_grammar::{GrammarConstraint, Slot, SlotKind};
use palmette_lexicon::Lexicon;

use super::documents::DocumentArgs;
use super::open_catalogs::{NamedSource, OpenCatalogs};
use crate::commands::lexicon::ListedValues;
use crate::commands::loading::{ViewArgs, filter, open_view};
use crate::output::reading_bar;

/// Sets for the slots of a grammar.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CatalogArgs {
    /// Catalog that the grammar names (x-catalog, %catalog, <catalog:NAME>), repeatable
    ///
    /// A catalog's file or the directory of a live one, of whose items ids or attributes are
    /// written; a lexicon (`palmette lexicon build`); or a text file with a value in each line.
    #[arg(long, value_name = "NAME=FILE", value_parser = named, help_heading = "Catalogs")]
    catalog: Vec<(String, String)>,
    /// Items of a catalog that may be written: a filter as JSON or @FILE, repeatable
    #[arg(long, value_name = "NAME=JSON", value_parser = named, help_heading = "Catalogs")]
    filter: Vec<(String, String)>,
    #[command(flatten)]
    documents: DocumentArgs,
}

pub(super) fn named(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("expected NAME=VALUE, such as shop=shop.palm".to_owned()),
    }
}

impl CatalogArgs {
    /// True where none of the options is given.
    pub(super) fn is_empty(&self) -> bool {
        self.catalog.is_empty() && self.filter.is_empty() && self.documents.is_empty()
    }

    /// The catalogs that a grammar's slots name; `None` where there are no slots. Nothing is opened
    /// before names are known to be right.
    pub(crate) fn for_slots(&self, slots: &[Slot]) -> anyhow::Result<Option<OpenCatalogs>> {
        self.documents.check_names(slots)?;
        self.check_names(slots)?;
        if slots.is_empty() {
            return Ok(None);
        }
        self.open().map(Some)
    }

    /// Opens all catalogs.
    pub(crate) fn open(&self) -> anyhow::Result<OpenCatalogs> {
        check_twice("catalog", &self.catalog)?;
        check_twice("filter", &self.filter)?;
        for (name, _) in &self.filter {
            let is_catalog = self.catalog.iter().any(|(catalog, _)| catalog == name);
            ensure!(is_catalog, "--filter {name}: say which it is: --catalog {name}=FILE");
        }
        let mut opened: BTreeMap<&str, CatalogFields> = BTreeMap::new();
        let mut sources = self.documents.open()?;
        for (name, path) in &self.catalog {
            let fields = match opened.get(path.as_str()) {
                Some(fields) => fields.clone(),
                None => opened.entry(path).or_insert(open_fields(Path::new(path))?).clone(),
            };
            let given = self.filter.iter().find(|(of, _)| of == name);
            let filter = given.map(|(_, text)| filter(text)).transpose();
            let filter = filter.with_context(|| format!("--filter {name}"))?;
            let mut source = SetSource::from_fields(fields);
            if let Some(filter) = filter {
                source = source.matching(&filter);
            }
            let of_both = || format!("--catalog {name} and --document {name}: give one of the two");
            ensure!(!sources.contains_key(name), of_both());
            sources.insert(name.clone(), NamedSource::new(source, vec![path.clone()]));
        }
        Ok(OpenCatalogs::new(sources))
    }

    /// The constraint with its slots bound; itself where it has none.
    pub(crate) fn bind(&self, constraint: GrammarConstraint) -> anyhow::Result<GrammarConstraint> {
        match self.for_slots(constraint.slots())? {
            None => Ok(constraint),
            Some(catalogs) => Ok(catalogs.bind(&constraint)?.constraint().clone()),
        }
    }

    /// Refuses names that the grammar does not ask for, and names that come twice.
    fn check_names(&self, slots: &[Slot]) -> anyhow::Result<()> {
        let is_documents = |slot: &&Slot| matches!(slot.kind, SlotKind::Documents(_));
        let catalogs = slots.iter().filter(|slot| !is_documents(slot));
        let mut known: Vec<&str> = catalogs.map(|slot| &*slot.name).collect();
        known.sort_unstable();
        known.dedup();
        for (option, given) in [("catalog", &self.catalog), ("filter", &self.filter)] {
            for (name, _) in given {
                if !known.contains(&&**name) && slots.iter().any(|slot| slot.name == *name) {
                    bail!(
                        "{name} are documents in the grammar; give them as --document {name}=FILE"
                    );
                }
                if known.is_empty() {
                    bail!("--{option} {name}: the grammar names no catalog; leave it out");
                }
                ensure!(
                    known.contains(&&**name),
                    "--{option} {name}: the grammar names no such catalog; it names {}",
                    known.join(", ")
                );
            }
            check_twice(option, given)?;
        }
        Ok(())
    }
}

fn check_twice(option: &str, given: &[(String, String)]) -> anyhow::Result<()> {
    for (at, (name, _)) in given.iter().enumerate() {
        let is_twice = given[..at].iter().any(|(earlier, _)| earlier == name);
        ensure!(!is_twice, "--{option} {name} is given twice; give it once");
    }
    Ok(())
}

/// Opens a catalog's file, the directory of a live one, a lexicon, or a list of values.
fn open_fields(path: &Path) -> anyhow::Result<CatalogFields> {
    if path.is_dir() {
        return Ok(CatalogFields::new(open_view(path, &ViewArgs::default())?));
    }
    let mut begin = Vec::new();
    let file = File::open(path).with_context(|| path.display().to_string())?;
    file.take(8).read_to_end(&mut begin).with_context(|| path.display().to_string())?;
    if Catalog::has_magic(&begin) {
        return Ok(CatalogFields::new(open_view(path, &ViewArgs::default())?));
    }
    let lexicon = match Lexicon::has_magic(&begin) {
        // Its lines are not its values.
        false if is_table(path) => bail!(
            "{0} is a table of items, and a file in which each line is a value is read here; make a catalog of it \
             (palmette catalog build {0} --out shop.palm) or a lexicon (palmette lexicon build {0} --field …)",
            path.display()
        ),
        true => Lexicon::open(path)?,
        false => {
            let bar = reading_bar(std::fs::metadata(path).map_or(0, |meta| meta.len()), false);
            let lexicon = ListedValues::read(&[path], None, &bar)?.builder.finish();
            bar.finish_and_clear();
            lexicon
        }
    };
    Ok(CatalogFields::from_lexicon(Arc::new(lexicon)))
}

/// True for the name of a file of items.
fn is_table(path: &Path) -> bool {
    const ENDINGS: [&str; 9] =
        ["json", "jsonl", "ndjson", "csv", "tsv", "parquet", "arrow", "feather", "npy"];
    path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known))
}
