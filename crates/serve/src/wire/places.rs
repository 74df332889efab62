//! Types of questions about places in texts, and of their answers.

use std::collections::BTreeMap;

use palmette_bindings::{MembersWithin, PossibleMember};
use palmette_text::question::OwnMembers;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{BoundCatalog, TextMember};

/// Members of a question about a place that are not a text's.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct PlaceMembers {
    /// The text before the place.
    pub text: Option<String>,
    /// Members of each set to show at most.
    #[schema(maximum = 200, default = 20)]
    pub show: Option<usize>,
}

impl OwnMembers for PlaceMembers {
    const BODY: &'static str = "PlaceBody";
    const ABOUT: &'static str = "A question about a place in a text.";
}

/// A place within a text, and what may follow there.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PlaceAnswer {
    /// Bytes of the text before the place: all, or those before what is refused.
    pub read: usize,
    /// Character that is refused behind the place, where the text goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedText>,
    /// True where the text may end here.
    pub may_end: bool,
    /// Text that must follow.
    pub forced: String,
    /// ASCII characters that may follow, in runs.
    pub next: Vec<CharacterRange>,
    /// True if others may follow too.
    pub other_characters: bool,
    /// The sets of which a member is in progress here, or may begin.
    pub within: Vec<MembersHere>,
    /// Catalogs and documents that the grammar names, as they were bound.
    pub catalogs: BTreeMap<String, BoundCatalog>,
    /// Members of these before the place.
    pub members: Vec<TextMember>,
    /// Milliseconds that finding it took.
    pub milliseconds: f64,
    /// Parts of the request that have no effect, where there are some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Character that is refused behind a place.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RefusedText {
    /// The byte of the text at which its first character begins.
    pub at: usize,
    /// The character.
    pub character: char,
    /// The reason.
    pub detail: String,
}

/// Characters of a run, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct CharacterRange {
    /// The first.
    pub from: char,
    /// The last.
    pub to: char,
}

/// Members of a set that may be written at a place.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MembersHere {
    /// Name of the set, as the grammar has it.
    pub set: String,
    /// `id` or an attribute; of documents the unit that is quoted.
    pub field: String,
    /// Begin and end of what is written of one already, in bytes of the text.
    pub span: [usize; 2],
    /// The first of the members, ascending by their spellings.
    pub members: Vec<WritableMember>,
    /// True if there are more.
    pub more: bool,
}

/// A member that may be written at a place.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WritableMember {
    /// The value.
    pub value: String,
    /// Id of the item, where one is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Part of its spelling that is not written yet.
    pub rest: String,
}

impl CharacterRange {
    /// The ASCII characters among bytes that ascend, and whether there are other bytes.
    pub(crate) fn of_bytes(bytes: &[u8]) -> (Vec<Self>, bool) {
        let mut ranges: Vec<Self> = Vec::new();
        for &byte in bytes.iter().filter(|byte| byte.is_ascii()) {
            let one = char::from(byte);
            // Letters, digits and signs are runs of their own.
            let kind =
                |of: char| (of.is_ascii_lowercase(), of.is_ascii_uppercase(), of.is_ascii_digit());
            match ranges.last_mut() {
                Some(last)
                    if last.to as u8 + 1 == byte
                        && one.is_ascii_graphic()
                        && kind(last.to) == kind(one) =>
                {
                    last.to = one;
                }
                Some(_) | None => ranges.push(Self { from: one, to: one }),
            }
        }
        (ranges, bytes.last().is_some_and(|byte| !byte.is_ascii()))
    }
}

impl MembersHere {
    pub(crate) fn of(within: MembersWithin) -> Self {
        let MembersWithin { set, field, written, members, more } = within;
        let writable = |PossibleMember { value, id, rest }| WritableMember {
            value,
            id,
            rest: String::from_utf8_lossy(&rest).into_owned(),
        };
        let members = members.into_iter().map(writable).collect();
        Self { set, field, span: [written.start, written.end], members, more }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_a_kind_are_a_run() {
        let ranges = |bytes: &[u8]| {
            let (ranges, others) = CharacterRange::of_bytes(bytes);
            let ranges: Vec<String> =
                ranges.iter().map(|range| [range.from, range.to].iter().collect()).collect();
            (ranges.join(" "), others)
        };
        assert_eq!(ranges(b"\"01239:ABad"), ("\"\" 03 99 :: AB aa dd".to_owned(), false));
        assert_eq!(ranges(b"\t\n"), ("\t\t \n\n".to_owned(), false));
        assert_eq!(ranges(&[b'x', 0xC3]), ("xx".to_owned(), true));
        assert_eq!(ranges(b""), (String::new(), false));
    }
}
