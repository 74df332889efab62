//! `--catalog NAME=FILE`: the sets that a grammar leaves open, from catalogs, lexicons and lists of
//! values.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail, ensure};
use clap::Args;
use palmette_catalog::{Catalog, Filter};
use palmette_catalog_members::{CatalogFields, FieldSet, ID_FIELD};
use palmette_core::{Binding, MemberSet, MemberSpelling};
use palmette_grammar::{BindError, GrammarConstraint, Slot, SlotKind};
use palmette_lexicon::Lexicon;
use palmette_text::question::CatalogBinder;

use super::documents::{DocumentArgs, Documents, NamedDocuments};
use crate::commands::lexicon::ListedValues;
use crate::commands::loading::{ViewArgs, filter, open_view};
use crate::output::{grouped, reading_bar};

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

/// Catalogs by their names, opened once for all grammars that name them.
#[derive(Debug)]
pub(crate) struct OpenCatalogs {
    catalogs: BTreeMap<String, NamedCatalog>,
    documents: BTreeMap<String, NamedDocuments>,
}

#[derive(Debug)]
struct NamedCatalog {
    path: PathBuf,
    fields: CatalogFields,
    filter: Option<Filter>,
    /// True once a grammar named it.
    is_named: AtomicBool,
}

/// Sets of a grammar's slots, in their order.
#[derive(Debug)]
pub(crate) struct SlotSets {
    pub(super) sets: Vec<SlotSet>,
    /// Sets without a member, with what they are taken from.
    shortages: Vec<String>,
}

/// Set of a slot.
#[derive(Debug)]
pub(super) enum SlotSet {
    Fields(Arc<FieldSet>),
    Documents(Documents),
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
        let mut catalogs = BTreeMap::new();
        for (name, path) in &self.catalog {
            let fields = match opened.get(path.as_str()) {
                Some(fields) => fields.clone(),
                None => opened.entry(path).or_insert(open_fields(Path::new(path))?).clone(),
            };
            let given = self.filter.iter().find(|(of, _)| of == name);
            let filter = given.map(|(_, text)| filter(text)).transpose();
            let filter = filter.with_context(|| format!("--filter {name}"))?;
            let (path, is_named) = (path.into(), AtomicBool::new(false));
            catalogs.insert(name.clone(), NamedCatalog { path, fields, filter, is_named });
        }
        Ok(OpenCatalogs { catalogs, documents: self.documents.open()? })
    }

    /// The constraint with its slots bound; itself where it has none.
    pub(crate) fn bind(&self, constraint: GrammarConstraint) -> anyhow::Result<GrammarConstraint> {
        match self.for_slots(constraint.slots())? {
            None => Ok(constraint),
            Some(catalogs) => catalogs.bind_slots(&constraint),
        }
    }

    /// Refuses names that the grammar does not ask for, and names that come twice.
    fn check_names(&self, slots: &[Slot]) -> anyhow::Result<()> {
        let catalogs = slots.iter().filter(|slot| slot.kind == SlotKind::Catalog);
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

impl OpenCatalogs {
    /// The sets of these slots.
    pub(crate) fn sets(&self, slots: &[Slot]) -> anyhow::Result<SlotSets> {
        let (mut sets, mut shortages) = (Vec::new(), Vec::new());
        for slot in slots {
            if let SlotKind::Documents(rule) = slot.kind {
                let documents = self.documents(slot)?.quoted(slot, rule)?;
                shortages.extend(documents.shortage(slot));
                sets.push(SlotSet::Documents(documents));
                continue;
            }
            let catalog = self.catalog(slot)?;
            catalog.is_named.store(true, Ordering::Relaxed);
            let set = catalog
                .set(slot)
                .with_context(|| format!("{}: {}", slot.label(), catalog.path.display()))?;
            if set.is_empty() {
                let of = grouped(catalog.fields.num_items());
                shortages.push(format!("{}: 0 of {of} match", slot.label()));
            }
            sets.push(SlotSet::Fields(Arc::new(set)));
        }
        Ok(SlotSets { sets, shortages })
    }

    /// True where an item of a slot's catalog has this value, whatever the filters.
    pub(super) fn has(&self, slot: &Slot, value: &str) -> bool {
        let all = self
            .catalog(slot)
            .ok()
            .and_then(|catalog| catalog.fields.set(field_of(slot), None, MemberSpelling::Raw).ok());
        all.is_some_and(|all| all.find(value).is_some())
    }

    /// The first option whose catalog or documents no grammar has named so far.
    pub(crate) fn unnamed(&self) -> Option<String> {
        let is_named = |catalog: &NamedCatalog| catalog.is_named.load(Ordering::Relaxed);
        let catalogs = self.catalogs.iter().filter(|(_, catalog)| !is_named(catalog));
        let documents = self.documents.iter().filter(|(_, documents)| !documents.is_named());
        let catalogs = catalogs.map(|(name, _)| format!("--catalog {name}"));
        let documents = documents.map(|(name, _)| format!("--document {name}"));
        catalogs.chain(documents).next()
    }

    /// A grammar with its slots bound.
    pub(crate) fn bind_slots(
        &self,
        constraint: &GrammarConstraint,
    ) -> anyhow::Result<GrammarConstraint> {
        let sets = self.sets(constraint.slots())?;
        constraint.bind_all(Arc::new(sets.binding())).map_err(|error| match error {
            BindError::Empty { .. } => sets.no_text(),
            error => error.into(),
        })
    }

    fn catalog(&self, slot: &Slot) -> anyhow::Result<&NamedCatalog> {
        self.catalogs.get(&slot.name).with_context(|| {
            let (name, label) = (&slot.name, slot.label());
            format!("the grammar names the catalog {label}; say which it is: --catalog {name}=FILE")
        })
    }
}

impl OpenCatalogs {
    fn documents(&self, slot: &Slot) -> anyhow::Result<&NamedDocuments> {
        self.documents.get(&slot.name).with_context(|| {
            let name = &slot.name;
            format!(
                "the grammar quotes documents {name}; say which they are: --document {name}=FILE"
            )
        })
    }
}

impl SlotSet {
    /// The set that is bound.
    pub(super) fn member_set(&self) -> Arc<dyn MemberSet> {
        match self {
            Self::Fields(set) => Arc::clone(set) as Arc<dyn MemberSet>,
            Self::Documents(documents) => documents.set(),
        }
    }
}

impl CatalogBinder for OpenCatalogs {
    fn bind(
        &self,
        grammar: &GrammarConstraint,
    ) -> Result<GrammarConstraint, Box<dyn Error + Send + Sync>> {
        self.bind_slots(grammar).map_err(|error| format!("{error:#}").into())
    }
}

impl NamedCatalog {
    /// The values of a slot under its own filter and the command's.
    fn set(&self, slot: &Slot) -> anyhow::Result<FieldSet> {
        let own = slot.filter.as_deref().map(Filter::parse).transpose();
        let own = own.context("the grammar's filter")?;
        let filter = match (&self.filter, own) {
            (Some(given), Some(own)) => Some(given.and(&own)),
            (given, own) => own.or_else(|| given.clone()),
        };
        Ok(self.fields.set(field_of(slot), filter.as_ref(), slot.spelling)?)
    }
}

/// The field of a slot.
pub(super) fn field_of(slot: &Slot) -> &str {
    slot.field.as_deref().unwrap_or(ID_FIELD)
}

impl SlotSets {
    /// The sets as a binding.
    pub(crate) fn binding(&self) -> Binding {
        let sets = self.sets.iter().map(SlotSet::member_set);
        Binding::new(sets.collect::<Vec<_>>())
    }

    /// The error of a binding that leaves no text.
    pub(crate) fn no_text(&self) -> anyhow::Error {
        let shortages = self.shortages.join("; ");
        anyhow::anyhow!("no text is left, since the grammar needs a member: {shortages}")
    }
}
