//! Generations of a catalog as requests name them.

use palmette_catalog_live::{CatalogView, KeptGeneration};

use super::registry::ServedCatalog;
use crate::problem::{Kind, Problem};
use crate::wire::GenerationName;

/// A catalog at its newest generation, or at one that is kept. Opening the latter maps files.
pub(crate) fn view_at(
    catalog: &ServedCatalog,
    name: Option<&GenerationName>,
) -> Result<CatalogView, Problem> {
    let newest = catalog.source.view();
    let Some(name) = name else { return Ok(newest) };
    let Some(now) = newest.generation() else {
        return Err(Problem::invalid(
            "/generation",
            "the catalog is frozen and has no generations",
        ));
    };
    if matches!(name, GenerationName::Number(number) if *number == now) {
        return Ok(newest);
    }
    let number = find_kept(&catalog.generations(), name, now)?;
    let kept = catalog.kept_snapshot(number);
    kept.map(CatalogView::from).map_err(|error| Problem::new(Kind::Gone, error.to_string()))
}

/// The number of a kept generation.
pub(crate) fn find_kept(
    kept: &[KeptGeneration],
    name: &GenerationName,
    now: u64,
) -> Result<u64, Problem> {
    let (found, shown) = match name {
        GenerationName::Number(number) => {
            (kept.iter().find(|of| of.generation == *number), number.to_string())
        }
        GenerationName::Name(name) => {
            (kept.iter().rev().find(|of| of.name.as_ref() == Some(name)), format!("{name:?}"))
        }
    };
    if let Some(found) = found {
        return Ok(found.generation);
    }
    let there: Vec<String> = kept
        .iter()
        .map(|of| match &of.name {
            Some(name) => format!("{} ({name})", of.generation),
            None => of.generation.to_string(),
        })
        .collect();
    let there = if there.is_empty() {
        "none is".to_owned()
    } else {
        format!("kept are {}", there.join(", "))
    };
    let detail = format!("generation {shown} is not kept; {there}, and {now} is the newest");
    Err(Problem::new(Kind::Gone, detail))
}
