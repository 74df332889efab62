//! Items of histories as users name them, and how a view finds them.

use std::fmt;

use palmette_catalog::readers::parse_codes;
use palmette_catalog_filter::whole;
use palmette_catalog_live::CatalogView;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Serialize, Serializer};

use crate::history_item::HistoryItem;
use crate::view::SpelledView;

/// Item of a history as its user names it: by id, or by semantic ID.
///
/// In JSON an id is a text or a whole number, a semantic ID a list: of whole numbers, `[3, 1, 7]`,
/// or of texts, `["<a_3>", "<b_1>", "<c_7>"]`, or an object with such a list, `{"codes": [3, 1,
/// 7]}`. A text that is no id of the catalog is read as a semantic ID where it is spelled as one,
/// `3-1-7` or `<a_3><b_1><c_7>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NamedItem {
    /// An id, or a text that spells a semantic ID.
    Id(String),
    /// The codes of a semantic ID.
    Codes(Vec<u32>),
}

impl From<&str> for NamedItem {
    fn from(id: &str) -> Self {
        Self::Id(id.to_owned())
    }
}

impl From<String> for NamedItem {
    fn from(id: String) -> Self {
        Self::Id(id)
    }
}

impl From<&String> for NamedItem {
    fn from(id: &String) -> Self {
        Self::Id(id.clone())
    }
}

impl From<Vec<u32>> for NamedItem {
    fn from(codes: Vec<u32>) -> Self {
        Self::Codes(codes)
    }
}

impl fmt::Display for NamedItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "{id:?}"),
            Self::Codes(codes) => {
                let codes: Vec<String> = codes.iter().map(u32::to_string).collect();
                f.write_str(&codes.join("-"))
            }
        }
    }
}

impl Serialize for NamedItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Id(id) => serializer.serialize_str(id),
            Self::Codes(codes) => codes.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for NamedItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NamedItemVisitor)
    }
}

struct NamedItemVisitor;

impl<'de> Visitor<'de> for NamedItemVisitor {
    type Value = NamedItem;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an item: its id (a text or a whole number) or the list of its codes")
    }

    fn visit_str<E>(self, text: &str) -> Result<NamedItem, E> {
        Ok(text.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<NamedItem, E> {
        Ok(number.to_string().into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<NamedItem, E> {
        Ok(number.to_string().into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<NamedItem, E> {
        let wrong = || E::invalid_type(Unexpected::Float(number), &self);
        whole(number).map(|number| number.to_string().into()).ok_or_else(wrong)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<NamedItem, A::Error> {
        let (mut codes, mut tags) = (Vec::new(), String::new());
        while let Some(piece) = list.next_element::<Piece>()? {
            match piece {
                Piece::Code(code) => codes.push(code),
                Piece::Tag(tag) => tags.push_str(&tag),
            }
        }
        match (codes.is_empty(), tags.is_empty()) {
            (true, true) => Err(A::Error::custom("an item's list of codes is empty")),
            (false, true) => Ok(NamedItem::Codes(codes)),
            (true, false) => Ok(NamedItem::Id(tags)),
            (false, false) => Err(A::Error::custom(
                "an item's list of codes has numbers and texts; write [3, 1] or [\"<a_3>\", \"<b_1>\"]",
            )),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NamedItem, A::Error> {
        let mut item = None;
        while let Some(name) = map.next_key::<String>()? {
            if name != "codes" || item.is_some() {
                return Err(A::Error::custom(OBJECT));
            }
            item = Some(map.next_value::<CodeList>()?.0);
        }
        item.ok_or_else(|| A::Error::custom(OBJECT))
    }
}

/// The rule of items that are written as objects.
const OBJECT: &str = "an item as an object is {\"codes\": [code, …]} and nothing else";

/// A list of codes within an object: not an item of its own, which might be another object.
struct CodeList(NamedItem);

impl<'de> Deserialize<'de> for CodeList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = CodeList;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the list of its codes")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<CodeList, A::Error> {
                NamedItemVisitor.visit_seq(list).map(CodeList)
            }
        }
        deserializer.deserialize_any(List)
    }
}

/// One code in a list.
enum Piece {
    Code(u32),
    Tag(String),
}

impl<'de> Deserialize<'de> for Piece {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneCode;
        impl Visitor<'_> for OneCode {
            type Value = Piece;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a code: a whole number from 0 to 4294967295, or a text such as <a_3>")
            }

            fn visit_u64<E: Error>(self, code: u64) -> Result<Piece, E> {
                let code = u32::try_from(code);
                let out_of_range =
                    |_| E::invalid_value(Unexpected::Other("a larger number"), &self);
                code.map(Piece::Code).map_err(out_of_range)
            }

            fn visit_f64<E: Error>(self, code: f64) -> Result<Piece, E> {
                let number = whole(code).and_then(|code| u32::try_from(code).ok());
                let wrong = || E::invalid_type(Unexpected::Float(code), &self);
                number.map(Piece::Code).ok_or_else(wrong)
            }

            fn visit_str<E: Error>(self, tag: &str) -> Result<Piece, E> {
                match tag.starts_with('<') && tag.ends_with('>') {
                    true => Ok(Piece::Tag(tag.to_owned())),
                    false => Err(E::invalid_value(Unexpected::Str(tag), &self)),
                }
            }
        }
        deserializer.deserialize_any(OneCode)
    }
}

impl NamedItem {
    /// The id, or the codes as `3-1-7`.
    pub fn to_text(&self) -> String {
        match self {
            Self::Id(id) => id.clone(),
            codes @ Self::Codes(_) => codes.to_string(),
        }
    }

    /// The number of the item in a view: that with the id, or the first of those with the semantic
    /// ID.
    pub fn number_in(&self, view: &CatalogView) -> Option<u64> {
        let with_codes = |codes: &[u32]| view.find_codes(codes).first().copied();
        match self {
            Self::Codes(codes) => with_codes(codes),
            Self::Id(id) => view.find(id).or_else(|| {
                let prefixes = view.level_prefixes().unwrap_or_default().iter();
                check_letters(id, prefixes.map(String::as_str)).ok()?;
                with_codes(&spelled_codes(id)?)
            }),
        }
    }
}

/// An item that neither the catalog has nor the model can read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct UnknownItem {
    reason: String,
}

impl SpelledView {
    /// Finds an item of a history: by its id, that of an item which was deleted included; else,
    /// where it is spelled as one, by its semantic ID, which need not be an item's as long as the
    /// model can read it.
    ///
    /// # Errors
    /// When no item has the id, and it spells nothing that the model reads; the message names ids
    /// that there are.
    pub fn find_item(&self, item: &NamedItem) -> Result<HistoryItem, UnknownItem> {
        let unknown = |reason| Err(UnknownItem { reason });
        let id = match item {
            NamedItem::Id(id) => id,
            NamedItem::Codes(codes) => match self.reads(codes) {
                Ok(()) => return Ok(HistoryItem::Codes(codes.clone())),
                Err(why) => return unknown(format!("item {item}: {why}")),
            },
        };
        if let Some(number) = self.view().find(id) {
            return Ok(HistoryItem::Number(number));
        }
        if let Some(codes) = self.departed(id) {
            return Ok(HistoryItem::Departed { id: id.clone(), codes });
        }
        let missing = no_such_id(self.view(), id);
        let Some(codes) = spelled_codes(id) else { return unknown(missing) };
        let prefixes = self.levels().iter().map(|level| level.prefix.as_str());
        match check_letters(id, prefixes).and_then(|()| self.reads(&codes)) {
            Ok(()) => Ok(HistoryItem::Codes(codes)),
            Err(why) => unknown(format!("{missing}; nor is it a semantic ID: {why}")),
        }
    }

    /// Finds the items of a history, as [`find_item`](Self::find_item). Unknown ones are an error,
    /// or left out; then their places in the history come with the others.
    ///
    /// # Errors
    /// For the first unknown item, unless `leaves_out`.
    pub fn find_items(
        &self,
        history: &[NamedItem],
        leaves_out: bool,
    ) -> Result<(Vec<HistoryItem>, Vec<usize>), UnknownItem> {
        let (mut items, mut left_out) = (Vec::with_capacity(history.len()), Vec::new());
        for (place, name) in history.iter().enumerate() {
            match self.find_item(name) {
                Ok(item) => items.push(item),
                Err(_) if leaves_out => left_out.push(place),
                Err(error) => return Err(error),
            }
        }
        Ok((items, left_out))
    }

    /// The codes of an item that was deleted, where the model can read them.
    pub(crate) fn departed(&self, id: &str) -> Option<Vec<u32>> {
        self.view().departed(id).filter(|codes| self.reads(codes).is_ok())
    }

    /// Codes that the model may read in a history: an item's, or one for each of its levels.
    fn reads(&self, codes: &[u32]) -> Result<(), String> {
        let levels = self.levels();
        if codes.len() != levels.len() && self.view().find_codes(codes).is_empty() {
            return Err(format!(
                "it has {} codes, the model's semantic IDs have {}",
                codes.len(),
                levels.len()
            ));
        }
        for (level, (&code, at)) in codes.iter().zip(levels).enumerate() {
            if at.tokens.token(code).is_none() {
                let most = at.num_codes() - 1;
                return Err(match code > most {
                    true => {
                        format!("code {code} at level {level}, where the model knows 0 to {most}")
                    }
                    false => {
                        format!("code {code} at level {level}, for which the model has no token")
                    }
                });
            }
        }
        Ok(())
    }
}

/// Checks that the letters of a text such as `<a_3><b_1>` are those of the levels.
fn check_letters<'l>(text: &str, levels: impl Iterator<Item = &'l str>) -> Result<(), String> {
    let tags = text.split('<').skip(1);
    for (level, (tag, prefix)) in tags.zip(levels).enumerate() {
        let letters = tag.rsplit_once('_').map_or(tag, |(letters, _)| letters);
        if letters != prefix {
            return Err(format!(
                "level {level} is spelled <{letters}_…>, by the model <{prefix}_…>"
            ));
        }
    }
    Ok(())
}

/// The codes of a text such as `3-1-7` or `<a_3><b_1>`. A number alone is an id and no semantic ID.
fn spelled_codes(text: &str) -> Option<Vec<u32>> {
    let is_spelled = text.contains('-') || text.contains('<');
    let codes = parse_codes(text).ok().filter(|codes| is_spelled && !codes.is_empty())?;
    Some(codes)
}

fn no_such_id(view: &CatalogView, id: &str) -> String {
    let examples: Vec<&str> = view.numbers().take(3).map(|number| view.id(number)).collect();
    match examples.as_slice() {
        [] => format!("item {id:?} is not in the catalog, which is empty"),
        _ => format!(
            "item {id:?} is not in the catalog of {} items; its ids look like {}",
            view.num_items(),
            examples.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: Result<NamedItem, &str>) {
        match (serde_json::from_str::<NamedItem>(json), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{json}"),
            (Err(error), Err(word)) => {
                assert!(error.to_string().contains(word), "{json}: {error}");
            }
            (found, expected) => panic!("{json}: {found:?} where {expected:?} was expected"),
        }
    }

    #[test]
    fn items_in_json() {
        check("\"P7\"", Ok("P7".into()));
        check("-12", Ok("-12".into()));
        check("7.0", Ok("7".into()));
        check("[3.0, 1e0]", Ok(NamedItem::Codes(vec![3, 1])));
        check("[1.5]", Err("a code: a whole number"));
        check(r#"{"codes": [3, 1]}"#, Ok(NamedItem::Codes(vec![3, 1])));
        for other in [
            r#"{}"#,
            r#"{"codes": [3], "codes": [3]}"#,
            r#"{"id": "a"}"#,
            r#"{"codes": [3], "a": 1}"#,
        ] {
            check(other, Err("and nothing else"));
        }
        check(r#"{"codes": {"codes": [3]}}"#, Err("the list of its codes"));
        check(r#"{"codes": []}"#, Err("is empty"));
        check("1e16", Err("an item: its id"));
        check("[3, 1, 7]", Ok(NamedItem::Codes(vec![3, 1, 7])));
        check("[\"<a_3>\", \"<b_1>\"]", Ok("<a_3><b_1>".into()));
        check("1.5", Err("an item: its id"));
        check("null", Err("an item: its id"));
        check("[]", Err("is empty"));
        check("[3, \"<b_1>\"]", Err("numbers and texts"));
        check("[-3]", Err("a code: a whole number"));
        check("[4294967296]", Err("a code: a whole number"));
        check("[\"3\"]", Err("a code: a whole number"));
        check("[[3]]", Err("a code: a whole number"));
    }

    #[test]
    fn texts_that_spell_codes() {
        assert_eq!(spelled_codes("3-1-7"), Some(vec![3, 1, 7]));
        assert_eq!(spelled_codes("<a_3><b_1>"), Some(vec![3, 1]));
        for id in ["", "3", "P-1", "3-x", "<a_3", "2024-01-05T", "3--1", "-3"] {
            assert_eq!(spelled_codes(id), None, "{id}");
        }
    }
}
