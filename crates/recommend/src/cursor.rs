//! Cursors: the items that the pages of a listing have given, as a text.
//!
//! A page after the first asks the same question again, without the items that were given; so a
//! cursor holds them and the fingerprint of their question, and whoever has the catalog can go on,
//! at any of its generations. A text of base64url, for clients to pass on as it is.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

/// Items that a listing has given, and the question that it is of.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cursor {
    /// Hash of the question, [without](crate::question) what pages may differ in.
    #[serde(rename = "q")]
    pub(crate) question: String,
    /// Ids of the items, in the order in which they were given.
    pub(crate) given: Vec<String>,
    /// The most items that a page wanted.
    #[serde(rename = "wide")]
    pub(crate) widest: usize,
}

impl Cursor {
    /// Items that a listing goes on to: each page reads them all.
    pub(crate) const MAX_ITEMS: usize = 10_000;

    /// Reads a cursor that [`to_text`](Self::to_text) wrote.
    ///
    /// # Errors
    /// When it is none, or of more items than there are pages for.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok();
        let cursor: Option<Self> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let Some(cursor) = cursor else {
            return Err(format!(
                "{} is no cursor: send the `cursor` of the answer before as it is, or `\"paged\": true` for the first page",
                shortened(text)
            ));
        };
        match cursor.given.len() {
            0..=Self::MAX_ITEMS => Ok(cursor),
            given => Err(format!(
                "{given} items were given, and pages go on to {}: filter for what is wanted",
                Self::MAX_ITEMS
            )),
        }
    }

    /// The cursor as a text.
    pub(crate) fn to_text(&self) -> String {
        let json = serde_json::to_vec(self).expect("texts are JSON");
        BASE64_URL_SAFE_NO_PAD.encode(json)
    }
}

fn shortened(text: &str) -> String {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
