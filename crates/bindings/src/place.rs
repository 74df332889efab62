//! Places of a text: what may follow there, byte by byte and member by member, for who types.

use std::ops::Range;
use std::sync::Arc;

use palmette_catalog_members::{CODES_FIELD, ID_FIELD};
use palmette_core::{Constraint, Cursor, MemberId, MemberSet, MemberSpelling, NUMBER_MARK};
use palmette_grammar::{
    CommitBytesError, GrammarScratch, MemberPlace, Position, Recognizer, RecognizerError,
    RecognizerScratch, Slot, SlotKind, WrittenMember,
};

use crate::BoundGrammar;
use crate::bound_sets::{BoundSet, Member};

/// Place within a text, and what may follow there.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Bytes of the text before the place: all of it, or what stands before the first byte with
    /// which no text of the language goes on.
    pub read: usize,
    /// True if the text may end there.
    pub may_end: bool,
    /// The bytes that may follow, ascending.
    pub next: Vec<u8>,
    /// The bytes that must follow.
    pub forced: Vec<u8>,
    /// The sets of which a member is in progress there, or may begin.
    pub within: Vec<MembersWithin>,
    /// The members before it.
    pub members: Vec<Member>,
    /// The value that the text has there, where that is none of those that may be written.
    pub refused: Option<RefusedValue>,
}

/// Value that a text has in a set's place and that may not be written there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedValue {
    /// The name of the set.
    pub set: String,
    /// The field.
    pub field: String,
    /// The value.
    pub value: String,
    /// Values that may be written and are most like it, the nearest first.
    pub nearest: Vec<String>,
}

/// Members of a set that may be written at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembersWithin {
    /// The name of the set.
    pub set: String,
    /// The field.
    pub field: String,
    /// Part of a member's spelling that is written already, in bytes of the text.
    pub written: Range<usize>,
    /// The first of the members, ascending by their spellings.
    pub members: Vec<PossibleMember>,
    /// True if there are more.
    pub more: bool,
}

/// Member that may be written at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PossibleMember {
    /// The value.
    pub value: String,
    /// The id of the item, where one is meant.
    pub id: Option<String>,
    /// The bytes of its spelling that are not written yet.
    pub rest: Vec<u8>,
}

/// Values that are near to one that may not be written.
const NUM_NEAREST: usize = 3;
/// Bytes that must follow, at most.
const MAX_FORCED: usize = 1024;

impl BoundGrammar {
    /// Place after a text, or after as much of it as the language has, with at most so
    /// many members of each set.
    ///
    /// Cost: a step for each byte of the text, 256 at the place, and for each member listed 256 for
    /// each byte at which it parts from others.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded.
    pub fn place(&self, text: &[u8], max_members: usize) -> Result<Place, RecognizerError> {
        let (grammar, scratch) = (self.constraint(), &mut RecognizerScratch::default());
        let recognizer = grammar.recognizer();
        let start = grammar.start();
        let mut at = start.position().cloned().expect("a bound grammar has a text");
        let mut open = open_members(recognizer, &at, (&[], 0), 0, scratch)?;
        let mut read = 0;
        for &byte in text.iter().take_while(|&&byte| byte != NUMBER_MARK) {
            let Some(next) = recognizer.advance(&at, byte, scratch)? else { break };
            (at, read) = (next, read + 1);
            open = open_members(recognizer, &at, (&open, byte), read, scratch)?;
        }
        let mut next = Vec::new();
        for byte in (0..=u8::MAX).filter(|&byte| byte != NUMBER_MARK) {
            if recognizer.advance(&at, byte, scratch)?.is_some() {
                next.push(byte);
            }
        }
        let refused = match read < text.len() {
            true => open.iter().find_map(|member| self.refused(member, text, read)),
            false => None,
        };
        let sets = open.iter().filter_map(|member| self.within(member, read, max_members));
        let mut within: Vec<MembersWithin> = sets.collect();
        let all = within.len();
        within.retain(|set| set.members.iter().any(|member| !member.rest.is_empty()));
        let mut longer = text[..read].to_vec();
        // One that has been written whole counts once the text goes on.
        longer.extend(next.first().filter(|_| within.is_empty() && all > 0));
        let mut members = self.members(&longer)?.unwrap_or_default();
        members.retain(|member| member.span.end <= read);
        let may_end = recognizer.is_accepting(&at, scratch)?;
        let (mut state, scratch) = (start, &mut GrammarScratch::default());
        let forced = match grammar.commit_bytes(&mut state, &text[..read], scratch) {
            Ok(()) => grammar.forced_bytes(&state, MAX_FORCED, scratch)?,
            Err(CommitBytesError::Limit(error)) => return Err(error),
            Err(CommitBytesError::NotAllowed { .. }) => Vec::new(),
        };
        Ok(Place { read, may_end, next, forced, within, members, refused })
    }

    fn within(&self, open: &OpenMember, read: usize, most: usize) -> Option<MembersWithin> {
        let OpenMember { place, begin } = open;
        let (set, slot) = self.slot(place.slot)?;
        // Nobody types tokens by their numbers.
        if matches!(set, BoundSet::Codes(_)) {
            return None;
        }
        // What scopes leave of the set.
        let members = place.set(self.constraint().binding()?);
        let mut listed = first_members(members, &place.cursor, most.saturating_add(1));
        let more = listed.len() > most;
        listed.truncate(most);
        let possible = |(member, rest): (MemberId, Vec<u8>)| {
            let end = rest.len();
            let named =
                self.named_member(WrittenMember { slot: place.slot, member, span: 0..end })?;
            Some(PossibleMember { value: named.value, id: named.id, rest })
        };
        Some(MembersWithin {
            set: slot.name.clone(),
            field: field_of(slot).to_owned(),
            written: *begin..read,
            members: listed.into_iter().filter_map(possible).collect(),
            more,
        })
    }

    /// The value in progress where the text is refused, if the set does not have it.
    fn refused(&self, open: &OpenMember, text: &[u8], read: usize) -> Option<RefusedValue> {
        let (BoundSet::Field(set), slot) = self.slot(open.place.slot)? else { return None };
        let value = written_value(slot.spelling, &text[open.begin..], read - open.begin)?;
        // What the set has is refused by something else.
        set.find(&value).is_none().then(|| RefusedValue {
            set: slot.name.clone(),
            field: field_of(slot).to_owned(),
            nearest: set.nearest(&value, NUM_NEAREST),
            value,
        })
    }
}

fn field_of(slot: &Slot) -> &str {
    match slot.kind {
        SlotKind::Documents(rule) => rule.unit().name(),
        SlotKind::Codes => CODES_FIELD,
        SlotKind::Catalog => slot.field.as_deref().unwrap_or(ID_FIELD),
    }
}

/// Member in progress, and the byte at which it began.
struct OpenMember {
    place: Arc<MemberPlace>,
    begin: usize,
}

/// The members in progress at a position, and those that may begin there, after `read` bytes the
/// last of which is `byte`; `before` are those of the position before it.
fn open_members(
    recognizer: &Recognizer,
    position: &Position,
    (before, byte): (&[OpenMember], u8),
    read: usize,
    scratch: &mut RecognizerScratch,
) -> Result<Vec<OpenMember>, RecognizerError> {
    let mut open: Vec<OpenMember> = Vec::new();
    let mut add = |place: Arc<MemberPlace>, begin: usize| {
        if !open.iter().any(|member| member.place == place) {
            open.push(OpenMember { place, begin });
        }
    };
    let places = |position: &Position| {
        let branches = position.branches().iter();
        branches.filter_map(|branch| branch.member.clone()).collect::<Vec<_>>()
    };
    for place in places(position) {
        let set = position.binding().map(|sets| place.set(sets));
        let leads_here = |member: &&OpenMember| {
            let next = set.and_then(|set| set.advance(&member.place.cursor, byte));
            member.place.slot == place.slot && next.as_ref() == Some(&place.cursor)
        };
        // Before the first byte there is none.
        let begin = before.iter().find(leads_here).map_or(read, |member| member.begin);
        add(place, begin);
    }
    if let Some(begun) = recognizer.begin_members_after(position, scratch)? {
        for place in places(&begun) {
            add(place, read);
        }
    }
    Ok(open)
}

/// The first members from a cursor on with what is left of their spellings, ascending by these;
/// depth first, on a stack of its own, since spellings are as long as they like.
fn first_members(set: &dyn MemberSet, from: &Cursor, most: usize) -> Vec<(MemberId, Vec<u8>)> {
    let (mut listed, mut rest) = (Vec::new(), Vec::new());
    // Cursors that are still to be gone on from, with the bytes that lead there.
    let mut waiting = vec![(from.clone(), 0, None)];
    while let Some((mut at, len, byte)) = waiting.pop() {
        if listed.len() >= most {
            break;
        }
        rest.truncate(len);
        rest.extend(byte);
        // Down the only way there is, without a step for each byte that is not there.
        let begin = rest.len();
        set.forced(&at, &mut rest);
        for &byte in &rest[begin..] {
            match set.advance(&at, byte) {
                Some(next) => at = next,
                None => return listed,
            }
        }
        if let Some(member) = set.member(&at) {
            listed.push((member, rest.clone()));
        }
        // The last is taken first.
        let ways = (0..=u8::MAX).rev();
        waiting.extend(
            ways.filter_map(|byte| Some((set.advance(&at, byte)?, rest.len(), Some(byte)))),
        );
    }
    listed
}

/// The value that a text writes from its beginning on, of which `read` bytes were read; shortened
/// where it is long.
pub fn written_value(spelling: MemberSpelling, text: &[u8], read: usize) -> Option<String> {
    const MAX_BYTES: usize = 200;
    let text = String::from_utf8_lossy(&text[..text.len().min(read + MAX_BYTES)]);
    match spelling {
        MemberSpelling::JsonString => {
            let mut is_escaped = false;
            let end = text.char_indices().find(|&(_, c)| {
                let ends = c == '"' && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                ends
            });
            let (end, _) = end?;
            serde_json::from_str(&format!("\"{}\"", &text[..end])).ok()
        }
        MemberSpelling::Raw => {
            let is_of_name = |c: char| c.is_alphanumeric() || "-_.".contains(c);
            let rest = text.get(read..)?;
            let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
            Some(text[..read + end].to_owned()).filter(|value| !value.is_empty())
        }
    }
}
