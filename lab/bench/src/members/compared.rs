//! Comparison of whole masks with the definition, along texts and along tokens at random.

use palmette_core::{Constraint, mask};
use palmette_grammar::{GrammarConstraint, GrammarScratch};
use palmette_lexicon::Lexicon;
use serde::Serialize;
use serde_json::json;

use super::definition::{Definition, fingerprint};
use super::strings::word;
use super::whole::{MAX_WHY, next_token};
use super::{MembersBench, below};
use crate::random::Random;

/// Tokens of a walk at most: what is allowed may never end a list.
const MAX_TOKENS: usize = 200;

/// Masks that were compared with the definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// Masks.
    pub masks: usize,
    /// Masks of the definition that they were compared with: one for each place.
    pub places: usize,
    /// Masks that differ in any token.
    pub different: usize,
}

/// Members of the texts that are walked.
pub(super) struct Draws<'a> {
    pub(super) lexicon: &'a Lexicon,
    /// Ranks that may be drawn; all where there are none.
    pub(super) of: Option<&'a [usize]>,
    /// Words of free text.
    pub(super) words: &'a [String],
}

impl MembersBench {
    /// Walks texts until `masks` more have been compared.
    ///
    /// Half of the texts are followed to their end. The others are left at a random byte, from
    /// where each token is one of those allowed: other spellings, members that nobody drew.
    pub(super) fn compare(
        &self,
        [engine, definition]: [&GrammarConstraint; 2],
        drawn: &Draws<'_>,
        masks: usize,
        compared: &mut Compared,
    ) {
        let mut random = Random::new(self.seed ^ 17);
        let mut definition = Definition::new(definition);
        let up_to = compared.masks + masks;
        while compared.masks < up_to {
            let text = drawn.text(&mut random);
            let leaves_at = below(&mut random, 2 * text.len());
            let both = (engine, &mut definition);
            walk(both, (&text, leaves_at), &mut random, up_to, compared);
        }
        compared.places += definition.num_found;
    }
}

/// Compares the masks along a text, and from a byte on along tokens at random. One that differs is
/// counted; the walk ends where engine or definition goes no further.
fn walk(
    (engine, definition): (&GrammarConstraint, &mut Definition<'_>),
    (text, leaves_at): (&str, usize),
    random: &mut Random,
    up_to: usize,
    compared: &mut Compared,
) {
    let mut row = vec![0; mask::num_words(engine.num_tokens())];
    let (mut state, mut scratch) = (engine.start(), GrammarScratch::default());
    let (mut place, mut read) = (definition.start(), 0);
    for _ in 0..MAX_TOKENS {
        let Some(at) = &place else { return };
        engine.fill_mask(&state, &mut scratch, &mut row).expect("no limit");
        compared.masks += 1;
        compared.different += usize::from(fingerprint(&row) != definition.mask(at));
        if compared.masks == up_to || read == text.len() {
            return;
        }
        let token = if read < leaves_at {
            let rest = &text.as_bytes()[read..];
            let (token, len) = next_token(random, engine.prepared_vocabulary(), rest);
            read += len;
            token
        } else {
            let num_allowed = mask::count(&row);
            let nth = below(random, num_allowed.max(1));
            let Some(token) = mask::iter(&row).nth(nth) else { return };
            token
        };
        let is_end = engine.ends().contains(&token);
        if is_end || engine.commit(&mut state, token, &mut scratch).is_err() {
            return;
        }
        place = definition.after(at, engine.vocabulary().text(token));
    }
}

impl Draws<'_> {
    /// A list of one to three objects: a member and a text of up to 60 characters, of words,
    /// letters of other scripts, and what is escaped.
    fn text(&self, random: &mut Random) -> String {
        const LETTERS: [char; 12] =
            ['é', 'ß', '語', '🙂', '"', '\\', '/', '\n', '\u{1}', ',', ' ', '7'];
        let num_items = 1 + below(random, 3);
        let mut item = || {
            let rank = match self.of {
                None => below(random, self.lexicon.len()),
                Some(ranks) => ranks[below(random, ranks.len())],
            };
            let title = String::from_utf8(self.lexicon.text(rank)).expect("UTF-8");
            let mut why = String::new();
            for _ in 0..below(random, 12) {
                match below(random, 2) {
                    0 => word(random, self.words, &mut why),
                    _ => why.push(LETTERS[below(random, LETTERS.len())]),
                }
            }
            let why: String = why.chars().take(MAX_WHY).collect();
            json!({"title": title, "why": why})
        };
        let items: Vec<_> = (0..num_items).map(|_| item()).collect();
        json!(items).to_string()
    }
}
