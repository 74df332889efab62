//! `--document NAME=FILE`: documents whose substrings a grammar leaves open.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{bail, ensure};
use clap::Args;
use palmette_bindings::SetSource;
use palmette_grammar::{Slot, SlotKind};
use serde::Serialize;

use super::open_catalogs::NamedSource;

/// Documents for the slots of a grammar.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DocumentArgs {
    /// A text that the grammar quotes (x-substring, %substring, <substring:NAME>), repeatable:
    /// files of one name are its documents
    #[arg(long, value_name = "NAME=FILE", value_parser = super::catalogs::named, help_heading = "Catalogs")]
    document: Vec<(String, String)>,
}

/// The place of documents where a member stands first.
#[derive(Debug, Serialize)]
pub(super) struct Citation {
    pub(super) file: String,
    /// Bytes of the file's text.
    pub(super) span: [usize; 2],
}

impl DocumentArgs {
    pub(super) fn is_empty(&self) -> bool {
        self.document.is_empty()
    }

    /// Reads all documents.
    pub(super) fn open(&self) -> anyhow::Result<BTreeMap<String, NamedSource>> {
        let mut opened: BTreeMap<&String, (Vec<String>, Vec<String>)> = BTreeMap::new();
        for (name, file) in &self.document {
            let (texts, files) = opened.entry(name).or_default();
            texts.push(crate::input::read_text(Path::new(file), "a document")?);
            files.push(file.clone());
        }
        let source = |(name, (texts, files)): (&String, (Vec<String>, _))| {
            (name.clone(), NamedSource::new(SetSource::from_documents(texts), files))
        };
        Ok(opened.into_iter().map(source).collect())
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
