//! A member that a text writes and its set does not have, with those that are near.

use palmette_bindings::{BoundSet, written_value};
use palmette_catalog_members::FieldSet;
use palmette_core::{MemberSet, SlotId};
use palmette_grammar::{BoundRecognizer, RecognizerScratch, Slot, WrittenMember};
use serde::Serialize;

use super::check::{Place, place};
use super::open_catalogs::{OpenCatalogs, field_of};

/// Value where a member is asked for, which is none.
#[derive(Debug, Serialize)]
pub(super) struct RefusedMember {
    pub(super) catalog: String,
    pub(super) field: String,
    pub(super) text: String,
    /// Beginning of its spelling.
    pub(super) begins_at: Place,
    /// True where an item has it that does not match the filter.
    pub(super) is_filtered_out: bool,
    /// The scope in which what was written before leaves it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) left_out_by: Option<String>,
    /// True where it was written before in the text.
    #[serde(skip)]
    is_written: bool,
    pub(super) nearest: Vec<String>,
}

/// Bytes before the place of a refusal at which its member may begin.
const MAX_READ: usize = 400;
/// Places and slots that the grammar is asked about.
const MAX_TRIES: usize = 64;
const NUM_NEAREST: usize = 3;

impl RefusedMember {
    /// The member in progress where a text is refused, whose spelling the byte there does not
    /// continue. A place is where a member begins if the grammar reads the text so far and the
    /// remainder of some member as one.
    pub(super) fn find(
        (catalogs, sets): (&OpenCatalogs, &[BoundSet]),
        bound: &BoundRecognizer,
        text: &[u8],
        refused_at: usize,
    ) -> anyhow::Result<Option<Self>> {
        let slots = bound.recognizer.source().slots();
        let mut scratch = RecognizerScratch::default();
        if let Some(left_out) = Self::left_out(sets, bound, text, refused_at)? {
            return Ok(Some(left_out));
        }
        let mut tries = 0;
        for start in refused_at.saturating_sub(MAX_READ)..=refused_at {
            for ((slot, set), place) in slots.iter().zip(sets).zip(0..) {
                let BoundSet::Field(set) = set else { continue };
                let Some(rest) = remainder(set, &text[start..refused_at]) else { continue };
                tries += 1;
                if tries > MAX_TRIES {
                    return Ok(None);
                }
                let whole = [&text[..refused_at], &rest].concat();
                let spans = spans_at_end(bound, whole, &mut scratch)?;
                if spans.contains(&(SlotId(place), start)) {
                    return Ok(Self::of_slot(catalogs, (slot, set), text, (start, refused_at)));
                }
            }
        }
        Ok(None)
    }

    /// The member in progress, where it is one of its set and an open scope has it no longer.
    fn left_out(
        sets: &[BoundSet],
        bound: &BoundRecognizer,
        text: &[u8],
        refused_at: usize,
    ) -> anyhow::Result<Option<Self>> {
        let BoundRecognizer { recognizer, sets: binding, start } = bound;
        if !recognizer.scopes().is_active() {
            return Ok(None);
        }
        let (slots, scopes) = (recognizer.source().slots(), recognizer.source().scopes());
        let scratch = &mut RecognizerScratch::default();
        let Some(before) = recognizer.advance_all(start, &text[..refused_at], scratch)? else {
            return Ok(None);
        };
        let begun = recognizer.begin_members_after(&before, scratch)?;
        let begun = begun.iter().flat_map(|begun| begun.branches());
        for branch in before.branches().iter().chain(begun) {
            let Some(place) = &branch.member else { continue };
            let slot = &slots[place.slot.index()];
            let open = branch.scopes.open().iter().rev().map(|open| &scopes[open.scope.index()]);
            let mut open = open.filter(|scope| scope.name == slot.name);
            let (Some(scope), Some(BoundSet::Field(whole))) =
                (open.next(), sets.get(place.slot.index()))
            else {
                continue;
            };
            let tells_apart = slot.field.is_none() || scope.kind.is_distinct();
            let outermost = open.next_back().unwrap_or(scope);
            // Cursors tell how much was read, so a member in progress begins at one place.
            let set = place.set(binding);
            let begins_at = (refused_at.saturating_sub(MAX_READ)..=refused_at).find(|&begin| {
                let read = text[begin..refused_at].iter();
                let mut read = read.copied();
                let at =
                    set.start().and_then(|at| read.try_fold(at, |at, byte| set.advance(&at, byte)));
                at.as_ref() == Some(&place.cursor)
            });
            let Some(begin) = begins_at else { continue };
            let value = written_value(slot.spelling, &text[begin..], refused_at - begin);
            let Some(text_of) = value.filter(|value| whole.find(value).is_some()) else { continue };
            // What has been read whole was not refused; something behind it was.
            let mut read = Vec::new();
            set.member(&place.cursor).into_iter().for_each(|member| set.text(member, &mut read));
            if read == text_of.as_bytes() {
                continue;
            }
            let written = recognizer.members(binding, &text[..begin], scratch)?;
            let is_same = |member: &WrittenMember| {
                let mut known = Vec::new();
                binding.set(member.slot).text(member.member, &mut known);
                member.slot == place.slot && known == text_of.as_bytes()
            };
            let is_written = tells_apart && written.unwrap_or_default().iter().any(is_same);
            return Ok(Some(Self {
                catalog: slot.name.clone(),
                field: field_of(slot).to_owned(),
                begins_at: self::place(text, begin),
                is_filtered_out: false,
                left_out_by: Some(if is_written { outermost } else { scope }.label()),
                is_written,
                nearest: Vec::new(),
                text: text_of,
            }));
        }
        Ok(None)
    }

    fn of_slot(
        catalogs: &OpenCatalogs,
        (slot, set): (&Slot, &FieldSet),
        text: &[u8],
        (start, refused_at): (usize, usize),
    ) -> Option<Self> {
        let value = written_value(slot.spelling, &text[start..], refused_at - start)?;
        if set.find(&value).is_some() {
            return None;
        }
        let is_filtered_out = catalogs.has(slot, &value);
        Some(Self {
            catalog: slot.name.clone(),
            field: field_of(slot).to_owned(),
            begins_at: place(text, start),
            is_filtered_out,
            left_out_by: None,
            is_written: false,
            nearest: if is_filtered_out { Vec::new() } else { set.nearest(&value, NUM_NEAREST) },
            text: value,
        })
    }

    /// The sentence about it.
    pub(super) fn message(&self) -> String {
        let Self { catalog, field, text, .. } = self;
        if let Some(scope) = &self.left_out_by {
            return match self.is_written {
                true => format!("{text:?} is there already ({scope})"),
                false => format!("{text:?} is left out by what was written before it ({scope})"),
            };
        }
        let article = if field.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        if self.is_filtered_out {
            return format!(
                "{text:?} is {article} {field} of catalog {catalog}, and no item that has it matches the filter"
            );
        }
        let nearest = match &*self.nearest {
            [] => String::new(),
            [one] => format!("; the nearest is {one}"),
            all => format!("; the nearest are {}", all.join(", ")),
        };
        format!("{text:?} is no {field} of catalog {catalog}{nearest}")
    }
}

/// Slots and beginnings of the members that end with a text.
fn spans_at_end(
    bound: &BoundRecognizer,
    mut text: Vec<u8>,
    scratch: &mut RecognizerScratch,
) -> anyhow::Result<Vec<(SlotId, usize)>> {
    let BoundRecognizer { recognizer, sets, start } = bound;
    let end = text.len();
    let Some(at) = recognizer.advance_all(start, &text, scratch)? else { return Ok(Vec::new()) };
    // A member counts once the text goes on after it, or may end there.
    for byte in 0..=u8::MAX {
        if recognizer.advance(&at, byte, scratch)?.is_some() {
            text.push(byte);
            break;
        }
    }
    let members = recognizer.members(sets, &text, scratch)?.unwrap_or_default();
    let at_end = members.into_iter().filter(|member| member.span.end == end);
    Ok(at_end.map(|member| (member.slot, member.span.start)).collect())
}

/// The bytes of some member's spelling after those read; `None` where no member goes on so.
fn remainder(set: &FieldSet, read: &[u8]) -> Option<Vec<u8>> {
    let mut at = set.start()?;
    for &byte in read {
        at = set.advance(&at, byte)?;
    }
    let mut rest = Vec::new();
    while set.member(&at).is_none() {
        // Down the only way there is, without a step for each byte that is not there.
        let begin = rest.len();
        set.forced(&at, &mut rest);
        for &byte in &rest[begin..] {
            at = set.advance(&at, byte)?;
        }
        if rest.len() > begin {
            continue;
        }
        let (byte, next) = (0..=u8::MAX).find_map(|byte| Some((byte, set.advance(&at, byte)?)))?;
        rest.push(byte);
        at = next;
    }
    Some(rest)
}
