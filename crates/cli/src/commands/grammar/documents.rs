//! `--document NAME=FILE`: documents whose substrings a grammar leaves open.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail, ensure};
use clap::Args;
use palmette_core::{MemberId, MemberSet, SubstringRule};
use palmette_grammar::{Slot, SlotKind};
use palmette_lexicon::{DocumentPlace, SubstringSet, Substrings, SubstringsBuilder};
use serde::Serialize;

/// Documents for the slots of a grammar.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DocumentArgs {
    /// A text that the grammar quotes (x-substring, %substring, <substring:NAME>), repeatable:
    /// files of one name are its documents
    #[arg(long, value_name = "NAME=FILE", value_parser = super::catalogs::named, help_heading = "Catalogs")]
    document: Vec<(String, String)>,
}

/// Documents of one name, read once for all grammars that quote them.
#[derive(Debug, Default)]
pub(super) struct NamedDocuments {
    files: Vec<String>,
    texts: Vec<String>,
    /// True once a grammar named them.
    is_named: AtomicBool,
}

/// Substrings of documents for a slot, with their files.
#[derive(Debug)]
pub(super) struct Documents {
    set: SubstringSet,
    files: Vec<String>,
}

/// The place of documents where a member stands first.
#[derive(Debug, Serialize)]
pub(super) struct Citation {
    pub(super) file: String,
    /// Bytes of the file's text.
    pub(super) span: [usize; 2],
}

impl DocumentArgs {
    /// Reads all documents.
    pub(super) fn open(&self) -> anyhow::Result<BTreeMap<String, NamedDocuments>> {
        let mut opened: BTreeMap<String, NamedDocuments> = BTreeMap::new();
        for (name, file) in &self.document {
            let documents = opened.entry(name.clone()).or_default();
            documents.texts.push(crate::input::read_text(Path::new(file), "a document")?);
            documents.files.push(file.clone());
        }
        Ok(opened)
    }

    /// Refuses documents that the grammar does not ask for.
    pub(super) fn check_names(&self, slots: &[Slot]) -> anyhow::Result<()> {
        let is_documents = |slot: &&Slot| matches!(slot.kind, SlotKind::Documents(_));
        let known: Vec<&str> = slots.iter().filter(is_documents).map(|slot| &*slot.name).collect();
        for (name, file) in &self.document {
            if known.contains(&&**name) {
                continue;
            }
            if slots.iter().any(|slot| slot.name == *name) {
                bail!("{name} is a catalog in the grammar; give it as --catalog {name}={file}");
            }
            ensure!(
                !known.is_empty(),
                "--document {name}: the grammar quotes no documents; leave it out"
            );
            bail!(
                "--document {name}: the grammar quotes no such documents; it quotes {}",
                known.join(", ")
            );
        }
        Ok(())
    }
}

impl NamedDocuments {
    /// The substrings that a slot asks for, by its rule.
    pub(super) fn quoted(&self, slot: &Slot, rule: SubstringRule) -> anyhow::Result<Documents> {
        self.is_named.store(true, Ordering::Relaxed);
        let mut builder = SubstringsBuilder::new(rule);
        for (text, file) in self.texts.iter().zip(&self.files) {
            builder.push(text).with_context(|| format!("--document {}={file}", slot.name))?;
        }
        let set = SubstringSet::new(Arc::new(builder.finish()), slot.spelling);
        Ok(Documents { set, files: self.files.clone() })
    }

    pub(super) fn is_named(&self) -> bool {
        self.is_named.load(Ordering::Relaxed)
    }
}

impl Documents {
    pub(super) fn set(&self) -> Arc<dyn MemberSet> {
        Arc::new(self.set.clone())
    }

    fn substrings(&self) -> &Substrings {
        self.set.substrings()
    }

    pub(super) fn cite(&self, member: MemberId) -> Citation {
        let DocumentPlace { document, span } = self.substrings().first_place(member);
        Citation { file: self.files[document].clone(), span: [span.start, span.end] }
    }

    /// Says that no substring follows the rule, where none does.
    pub(super) fn shortage(&self, slot: &Slot) -> Option<String> {
        if !self.substrings().is_empty() {
            return None;
        }
        let (name, num, rule) = (&slot.name, self.files.len(), self.substrings().rule());
        let max = rule.max().map(|max| format!(" and at most {max}")).unwrap_or_default();
        let (unit, min) = (rule.unit().name(), rule.min());
        Some(format!(
            "{name}: none of its {num} documents has {unit} of at least {min}{max} characters"
        ))
    }
}
