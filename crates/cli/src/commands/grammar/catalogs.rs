//! `--catalog NAME=FILE`: the sets that a grammar leaves open, from catalogs, lexicons and lists of
//! texts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use clap::Args;
use palmette_catalog::{Catalog, Filter};
use palmette_core::{Binding, MemberSet};
use palmette_grammar::{BindError, GrammarConstraint, Slot};
use palmette_lexicon::{Lexicon, LexiconBuilder, LexiconSet, Selection};
use serde_json::Value;

use crate::output::{grouped, visible};

/// First bytes of a catalog's file, and of a lexicon's.
const CATALOG: &[u8; 8] = b"PALMCAT\0";
const LEXICON: &[u8; 8] = b"PALMLEX\0";

/// Sets for the slots of a grammar.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CatalogArgs {
    /// A set that the grammar names (x-catalog, %catalog, <catalog:NAME>), repeatable: a catalog,
    /// of whose items ids or attributes are written; a lexicon; or a text file with a member in
    /// each line
    #[arg(long, value_name = "NAME=FILE", value_parser = named, help_heading = "Catalogs")]
    catalog: Vec<(String, String)>,
    /// Items of a catalog that may be written, as JSON or @FILE, repeatable
    #[arg(long, value_name = "NAME=JSON", value_parser = named, help_heading = "Catalogs")]
    filter: Vec<(String, String)>,
}

/// A set and how many members it is taken from.
struct Filled {
    set: Arc<dyn MemberSet>,
    eligible: u64,
    of: u64,
}

fn named(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("expected NAME=VALUE, such as shop=shop.palm".to_owned()),
    }
}

impl CatalogArgs {
    /// The sets of these slots; `None` where there are no slots.
    pub(crate) fn sets(&self, slots: &[Slot]) -> anyhow::Result<Option<(Binding, Vec<String>)>> {
        self.check_names(slots)?;
        if slots.is_empty() {
            return Ok(None);
        }
        let mut opened = BTreeMap::new();
        let (mut sets, mut shortages) = (Vec::new(), Vec::new());
        for slot in slots {
            let file = self.file_of(slot)?;
            let source = match opened.get(&file) {
                Some(known) => known,
                None => opened.entry(file.clone()).or_insert(Source::open(&file)?),
            };
            let filled = source
                .fill(slot, &self.filters_of(slot)?)
                .with_context(|| format!("{}: {}", slot.label(), file.display()))?;
            if filled.eligible == 0 {
                let of = grouped(filled.of);
                shortages.push(format!("{}: 0 of {of} match", slot.label()));
            }
            sets.push(filled.set);
        }
        Ok(Some((Binding::new(sets), shortages)))
    }

    /// The constraint with its slots bound; itself where it has none.
    pub(crate) fn bind(&self, constraint: GrammarConstraint) -> anyhow::Result<GrammarConstraint> {
        let Some((binding, shortages)) = self.sets(constraint.slots())? else {
            return Ok(constraint);
        };
        constraint.bind_all(Arc::new(binding)).map_err(|error| match error {
            BindError::Empty { .. } => no_text(&shortages),
            error => error.into(),
        })
    }

    fn file_of(&self, slot: &Slot) -> anyhow::Result<PathBuf> {
        let given = self.catalog.iter().find(|(name, _)| *name == slot.name);
        let (_, file) = given.with_context(|| {
            let (name, label) = (&slot.name, slot.label());
            format!("the grammar names the catalog {label}; say which it is: --catalog {name}=FILE")
        })?;
        Ok(PathBuf::from(file))
    }

    /// The filters of a slot: the command's and the grammar's own.
    fn filters_of(&self, slot: &Slot) -> anyhow::Result<Vec<Filter>> {
        let given = self.filter.iter().filter(|(name, _)| *name == slot.name);
        let mut filters = Vec::new();
        for (name, text) in given {
            let text = match text.strip_prefix('@') {
                Some(path) => crate::input::read_text(Path::new(path), "a filter")?,
                None => text.clone(),
            };
            filters.push(Filter::parse(&text).with_context(|| format!("--filter {name}"))?);
        }
        if let Some(own) = &slot.filter {
            let label = slot.label();
            filters.push(Filter::parse(own).with_context(|| format!("the filter of {label}"))?);
        }
        Ok(filters)
    }

    /// Refuses names that the grammar does not ask for, and names that come twice.
    fn check_names(&self, slots: &[Slot]) -> anyhow::Result<()> {
        let mut known: Vec<&str> = slots.iter().map(|slot| &*slot.name).collect();
        known.sort_unstable();
        known.dedup();
        for (option, given) in [("catalog", &self.catalog), ("filter", &self.filter)] {
            for (at, (name, _)) in given.iter().enumerate() {
                if known.is_empty() {
                    bail!("--{option} {name}: the grammar names no catalog; leave it out");
                }
                ensure!(
                    known.contains(&&**name),
                    "--{option} {name}: the grammar names no such catalog; it names {}",
                    known.join(", ")
                );
                let is_twice = given[..at].iter().any(|(earlier, _)| earlier == name);
                ensure!(!is_twice, "--{option} {name} is given twice; give it once");
            }
        }
        Ok(())
    }
}

/// The error of a binding that leaves no text.
pub(crate) fn no_text(shortages: &[String]) -> anyhow::Error {
    anyhow::anyhow!("no text is left, since the grammar needs a member: {}", shortages.join("; "))
}

/// Texts that were opened.
enum Source {
    Catalog(Box<Catalog>),
    Lexicon(Arc<Lexicon>),
}

impl Source {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let mut begin = Vec::new();
        let file = File::open(path).with_context(|| path.display().to_string())?;
        file.take(8).read_to_end(&mut begin).with_context(|| path.display().to_string())?;
        if begin == CATALOG {
            return Ok(Self::Catalog(Box::new(Catalog::open(path)?)));
        }
        if begin == LEXICON {
            return Ok(Self::Lexicon(Arc::new(Lexicon::open(path)?)));
        }
        let text = crate::input::read_text(path, "a list of members, one in each line")?;
        let texts = text.lines().filter(|line| !line.is_empty());
        let lexicon = Lexicon::from_texts(texts).with_context(|| path.display().to_string())?;
        Ok(Self::Lexicon(Arc::new(lexicon)))
    }

    fn fill(&self, slot: &Slot, filters: &[Filter]) -> anyhow::Result<Filled> {
        let (lexicon, eligible, of) = match self {
            Self::Lexicon(lexicon) => {
                if let Some(field) = &slot.field {
                    bail!(
                        "a list of texts has no field {field:?}; name it without a field, or give a catalog"
                    );
                }
                ensure!(
                    filters.is_empty(),
                    "a list of texts has no attributes to filter by; give a catalog"
                );
                (Arc::clone(lexicon), lexicon.len() as u64, lexicon.len() as u64)
            }
            Self::Catalog(catalog) => {
                let (lexicon, eligible) = texts_of(catalog, slot.field.as_deref(), filters)?;
                (Arc::new(lexicon), eligible, catalog.num_items())
            }
        };
        let set = LexiconSet::new(lexicon, Selection::All, slot.spelling)?;
        Ok(Filled { set: Arc::new(set), eligible, of })
    }
}

/// Ids or values of an attribute of the items that match all filters, and the number of those items
/// that have one.
fn texts_of(
    catalog: &Catalog,
    field: Option<&str>,
    filters: &[Filter],
) -> anyhow::Result<(Lexicon, u64)> {
    let selected: Vec<_> =
        filters.iter().map(|filter| catalog.select(filter)).collect::<Result<_, _>>()?;
    let is_selected = |rank: &u64| selected.iter().all(|set| set.contains(*rank));
    if let Some(field) = field {
        let known: Vec<&str> = catalog.columns().columns().map(|column| column.name).collect();
        ensure!(
            known.contains(&field),
            "the catalog has no attribute {field:?}; it has id, {}",
            known.join(", ")
        );
    }
    let mut texts = LexiconBuilder::new();
    let mut eligible = 0;
    for rank in (0..catalog.num_items()).filter(is_selected) {
        let mut is_any = false;
        let mut push = |text: &str| {
            is_any |= !text.is_empty();
            texts.push(text.as_bytes()).with_context(|| format!("item {}", catalog.id(rank)))
        };
        match field {
            None => push(catalog.id(rank))?,
            Some(field) => match catalog.attributes(rank).get(field) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) => push(text)?,
                Some(Value::Array(values)) if values.iter().all(Value::is_string) => {
                    values.iter().filter_map(Value::as_str).try_for_each(&mut push)?;
                }
                Some(other) => bail!(
                    "item {} has {field} {}; members are texts, or lists of them",
                    catalog.id(rank),
                    visible(&other.to_string())
                ),
            },
        }
        eligible += u64::from(is_any);
    }
    Ok((texts.finish(), eligible))
}
