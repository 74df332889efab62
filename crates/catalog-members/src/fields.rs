//! The fields of a catalog as one request sees them.

use std::sync::Arc;

use palmette_catalog::index::ItemSet;
use palmette_catalog::{CatalogConstraint, CodeTokens, Filter, nearest};
use palmette_catalog_filter::Columns;
use palmette_catalog_live::{CatalogView, SnapshotConstraint, ViewItems};
use palmette_core::MemberSpelling;
use palmette_lexicon::{Lexicon, LexiconSet, Selection};

use crate::code_set::{CodeSet, Part};
use crate::error::{FieldError, FieldErrorKind};
use crate::field_index::selection;
use crate::items::FieldItems;
use crate::segment_fields::SegmentFields;
use crate::set::{FieldSet, ItemNumbers};

/// The field of items' ids.
pub const ID_FIELD: &str = "id";
/// The field of items' semantic IDs, whose members are no texts: see [`CatalogFields::codes`].
pub const CODES_FIELD: &str = "codes";

/// The fields of a view of a catalog, each as a set of texts. Cheap to make and to clone.
///
/// A lexicon is a catalog without semantic IDs and attributes: its strings are the ids of items,
/// numbered by rank.
#[derive(Clone, Debug)]
pub struct CatalogFields(FieldSource);

#[derive(Clone, Debug)]
enum FieldSource {
    View(CatalogView),
    Lexicon(Arc<Lexicon>),
}

impl CatalogFields {
    /// The fields of a view.
    pub fn new(view: CatalogView) -> Self {
        Self(FieldSource::View(view))
    }

    /// The one field of a lexicon.
    pub fn from_lexicon(lexicon: Arc<Lexicon>) -> Self {
        Self(FieldSource::Lexicon(lexicon))
    }

    /// The view; `None` of a lexicon.
    pub fn view(&self) -> Option<&CatalogView> {
        match &self.0 {
            FieldSource::View(view) => Some(view),
            FieldSource::Lexicon(_) => None,
        }
    }

    /// The items, as scopes of a grammar ask for them; `None` of a lexicon.
    pub fn items(&self) -> Option<FieldItems> {
        self.view().map(|view| FieldItems::new(view.clone()))
    }

    /// Items in all.
    pub fn num_items(&self) -> u64 {
        match &self.0 {
            FieldSource::View(view) => view.num_items(),
            FieldSource::Lexicon(lexicon) => lexicon.len() as u64,
        }
    }

    /// Names of the fields, [`ID_FIELD`] first.
    pub fn names(&self) -> Vec<&str> {
        let mut names = vec![ID_FIELD];
        match &self.0 {
            FieldSource::View(CatalogView::Frozen(filters)) => {
                names.extend(filters.catalog().columns().columns().map(|column| column.name));
            }
            FieldSource::View(CatalogView::Snapshot(snapshot)) => {
                names.extend(snapshot.schema().columns.iter().map(|(name, _)| name.as_str()));
            }
            FieldSource::Lexicon(_) => {}
        }
        names
    }

    /// The values of a field that the items matching a filter have, all items where there is none.
    ///
    /// Cost: the first time for a field and segment, making its index; the first time for a filter,
    /// compiling it and a pass over its items; then a look-up in each segment. Ids that the filter
    /// excludes are a look-up each where the field is `id`; for another, a pass over the filter's
    /// items each time, unless the filter says nothing else. Others that ask for an index that is
    /// being made wait for it, so this is no call for jobs of rayon, on whose threads it sorts.
    ///
    /// # Errors
    /// When there is no such field, it has values that are no texts, or the filter does not fit the
    /// catalog.
    pub fn set(
        &self,
        field: &str,
        filter: Option<&Filter>,
        spelling: MemberSpelling,
    ) -> Result<FieldSet, FieldError> {
        if field == CODES_FIELD {
            return Err(FieldErrorKind::CodesAsTexts.into());
        }
        self.check_field(field)?;
        let filter = filter.filter(|filter| !filter.is_match_all());
        match &self.0 {
            FieldSource::View(view) => of_view(view, field, filter, spelling),
            FieldSource::Lexicon(lexicon) => of_lexicon(lexicon, filter, spelling),
        }
    }

    /// The semantic IDs that the items matching a filter have, all items where there is none, in
    /// the tokens that spell their codes.
    ///
    /// Cost: a few look-ups, and the first time for a filter compiling it; a pass over the codes of
    /// a segment where its codebooks may be larger than the model's.
    ///
    /// # Errors
    /// When there are no semantic IDs, an item has a code without a token, or the filter does not
    /// fit the catalog.
    pub fn codes(
        &self,
        filter: Option<&Filter>,
        tokens: &Arc<CodeTokens>,
    ) -> Result<CodeSet, FieldError> {
        let FieldSource::View(view) = &self.0 else { return Err(FieldErrorKind::NoCodes.into()) };
        let tokens = Arc::clone(tokens);
        match view {
            CatalogView::Frozen(filters) => {
                let catalog = Arc::clone(filters.catalog());
                CatalogConstraint::new(catalog, Arc::clone(&tokens)).map(drop)
            }
            CatalogView::Snapshot(snapshot) => {
                SnapshotConstraint::new(Arc::clone(snapshot), Arc::clone(&tokens)).map(drop)
            }
        }
        .map_err(FieldErrorKind::Tokens)?;
        let filter = filter.filter(|filter| !filter.is_match_all());
        let matching = filter.map(|filter| view.filter(filter)).transpose()?;
        let mut parts = Vec::new();
        for (segment, (catalog, _)) in view.parts().enumerate() {
            let items = items_of(view, matching.as_ref(), segment);
            if catalog.num_items() > 0 && items.is_none_or(|items| !items.is_empty()) {
                if catalog.num_levels() == 0 {
                    return Err(FieldErrorKind::NoCodes.into());
                }
                let (segment, items) = (segment as u32, items.cloned());
                parts.push(Part { segment, items });
            }
        }
        Ok(CodeSet::new(view.clone(), tokens, parts))
    }

    /// Bytes of the indexes of fields and the values of filters that are kept: with the segments of
    /// the view, for all views that have them.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            FieldSource::View(view) => {
                view.parts().map(|(catalog, _)| catalog.derived::<SegmentFields>().bytes()).sum()
            }
            FieldSource::Lexicon(lexicon) => lexicon.bytes() + lexicon.table_bytes(),
        }
    }

    fn check_field(&self, field: &str) -> Result<(), FieldError> {
        let names = self.names();
        if names.contains(&field) {
            return Ok(());
        }
        let hint = match nearest(field, names.iter().copied()) {
            Some(nearest) => format!("the nearest is {nearest:?}"),
            None if names.len() == 1 => "the only one is \"id\"".to_owned(),
            None if names.len() > 30 => {
                let num_left = names.len() - 30;
                format!("there are {} and {num_left} more", names[..30].join(", "))
            }
            None => format!("there are {}", names.join(", ")),
        };
        Err(FieldErrorKind::Unknown { field: field.to_owned(), hint }.into())
    }
}

fn of_view(
    view: &CatalogView,
    field: &str,
    filter: Option<&Filter>,
    spelling: MemberSpelling,
) -> Result<FieldSet, FieldError> {
    // An id that is excluded is no member, whatever else is: the set without exclusions is kept.
    let excluded = filter.map_or(&[][..], Filter::excluded);
    let is_of_ids = field == ID_FIELD && !excluded.is_empty();
    let matching = match filter {
        Some(filter) if is_of_ids => Some(view.filter(&filter.without_excluded())?),
        Some(filter) => Some(view.filter(filter)?),
        None => None,
    };
    let excluded = if is_of_ids { excluded } else { &[] };
    field_set(view, field, matching.as_ref(), excluded, spelling)
}

/// The values of a field that some items have, all items where there are none given, without the
/// excluded ids.
pub(crate) fn field_set(
    view: &CatalogView,
    field: &str,
    matching: Option<&ViewItems>,
    excluded: &[String],
    spelling: MemberSpelling,
) -> Result<FieldSet, FieldError> {
    let (mut parts, mut num_items) = (Vec::new(), 0);
    for (segment, (catalog, _)) in view.parts().enumerate() {
        let items = items_of(view, matching, segment);
        if items.is_some_and(|items| items.is_empty()) {
            continue;
        }
        let fields = catalog.derived::<SegmentFields>();
        let Some(index) = fields.index(catalog, field)? else { continue };
        let mut values = fields.values(catalog, (field, &index), items);
        if !excluded.is_empty() {
            let ids = excluded.iter().map(String::as_str);
            values = index.without_ids(values, catalog, ids);
        }
        num_items += values.num_items;
        parts.push(lexicon_set(index.lexicon(), values.selection, spelling));
    }
    let numbers = (field == ID_FIELD).then(|| ItemNumbers::View(view.clone()));
    Ok(FieldSet::new(parts, num_items, numbers))
}

/// The items of a segment among some of a view.
pub(crate) fn shared_items<'a>(
    view: &CatalogView,
    items: &'a ViewItems,
    segment: usize,
) -> &'a Arc<ItemSet> {
    &view.item_sets(items)[segment]
}

/// The items of a segment that match, all that are there where nothing is asked; `None` for all.
fn items_of<'a>(
    view: &'a CatalogView,
    matching: Option<&'a ViewItems>,
    segment: usize,
) -> Option<&'a Arc<ItemSet>> {
    match (matching, view) {
        (Some(matching), _) => Some(&view.item_sets(matching)[segment]),
        (None, CatalogView::Frozen(_)) => None,
        (None, CatalogView::Snapshot(snapshot)) => snapshot.segments()[segment].live(),
    }
}

fn of_lexicon(
    lexicon: &Arc<Lexicon>,
    filter: Option<&Filter>,
    spelling: MemberSpelling,
) -> Result<FieldSet, FieldError> {
    let selection = match filter {
        None => Selection::All,
        Some(filter) => {
            let rank = |id: &str| lexicon.rank(id.as_bytes()).map(|rank| rank as u64);
            selection(Columns::empty(lexicon.len() as u64).select(filter, &rank)?)
        }
    };
    if let (Some(rank), MemberSpelling::JsonString) = (lexicon.first_not_utf8(), spelling) {
        let item = format!("{:?}", String::from_utf8_lossy(&lexicon.text(rank)));
        let problem = "it is not UTF-8 and cannot be written in JSON; leave it out of the lexicon";
        let (field, problem) = (ID_FIELD.to_owned(), problem.to_owned());
        return Err(FieldErrorKind::Index { field, item, problem }.into());
    }
    let set = lexicon_set(lexicon, selection, spelling);
    let num_items = palmette_core::MemberSet::len(&set);
    Ok(FieldSet::new(vec![set], num_items, Some(ItemNumbers::Ranks)))
}

/// The set of some strings of a lexicon, all of them UTF-8 or written as they are.
fn lexicon_set(
    lexicon: &Arc<Lexicon>,
    selection: Selection,
    spelling: MemberSpelling,
) -> LexiconSet {
    let set = LexiconSet::new(Arc::clone(lexicon), selection, spelling);
    set.expect("a selection of this lexicon, whose strings are UTF-8")
}
